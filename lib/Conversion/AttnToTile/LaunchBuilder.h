//===- LaunchBuilder.h - A loop over tiles as one launch --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_LAUNCHBUILDER_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_LAUNCHBUILDER_H

#include "OnlineStep.h"
#include "RowMap.h"
#include "TileView.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"

namespace fovea {

/// Rewrites one `scf.forall` that `attn-tile` has made to a `tile.launch`: what
/// the loops of attention and of its backward pass have in common.
class LaunchBuilder {
public:
  LaunchBuilder(mlir::RewriterBase &rewriter, mlir::scf::ForallOp forall)
      : rewriter(rewriter), forall(forall), loc(forall.getLoc()) {}
  virtual ~LaunchBuilder() = default;

  /// Replaces the loop. On failure the IR is unchanged and `getReason` says
  /// why.
  virtual mlir::LogicalResult run() = 0;
  llvm::StringRef getReason() const { return reason; }

protected:
  mlir::LogicalResult fail(const llvm::Twine &why);

  /// Returns the tensors from outside that the loop reads elements of.
  mlir::SetVector<mlir::Value> getTensorsRead();
  /// Creates the launch, with a block for each iteration, and continues in its
  /// program.
  void createLaunch(attn::ScheduleAttr schedule, llvm::StringRef name,
                    llvm::ArrayRef<mlir::Value> inputs,
                    mlir::ValueRange outputs);
  mlir::LogicalResult convertBlock(mlir::Block &block);
  /// Creates the loop that `loop` becomes, with a body that has no ops yet.
  mlir::scf::ForOp createLoop(mlir::scf::ForOp loop, mlir::ValueRange inits);
  virtual mlir::LogicalResult convertOp(mlir::Operation &op) = 0;

  /// Clones an op on scalars, which may read tensors.
  mlir::FailureOr<mlir::Operation *> cloneScalar(mlir::OpBuilder &builder,
                                                 mlir::Operation &op,
                                                 mlir::IRMapping &values);
  /// Emits what `value` needs of a region on scalars, and returns it; see
  /// `ScoreTile::emitRegion`.
  mlir::Value emitRegion(mlir::OpBuilder &builder, mlir::Region &region,
                         mlir::ValueRange arguments, mlir::ValueRange existing,
                         mlir::Value value, const mlir::IRMapping &known);
  /// Returns those of `reads`, in regions of `op`, that can be made for whole
  /// tiles, of keys from `key` on. Says which cannot.
  mlir::SmallVector<TileRead> getTileReads(mlir::Operation *op,
                                           llvm::ArrayRef<TileRead> reads,
                                           mlir::OpFoldResult key);
  /// Loads what a region's `read` reads of a captured tensor for a tile of
  /// scores. Returns null, and sets the reason of the failure, if it cannot.
  CapturedTile loadCapture(mlir::OpBuilder &builder, const TileRead &read,
                           const ScoreTile &tile);

  /// Returns the memref inside that stands for a tensor from outside, or null.
  mlir::Value getMemRef(mlir::Value tensor);
  mlir::Value getSize(mlir::Value tensor, int64_t dim);
  bool isOutside(mlir::Value value);
  mlir::OpFoldResult getMapped(mlir::OpFoldResult value);
  /// Returns the place of a tile whose first element is `at`; empty: the start.
  attn::PerCoordinate<mlir::Value> getPlace(mlir::ValueRange at);
  /// Returns the tile of scores of `op`, an `attn.online_attention` or an
  /// `attn.online_backward`, whose operands `query` and `key` are the views of.
  /// Narrows its regions, which are to be emitted.
  /// A region of it that cannot be emitted sets the reason of the failure.
  template <typename OpTy>
  ScoreTile getScoreTile(OpTy op, const TileView &query, const TileView &key);
  /// Returns the rows present of a tile of keys from `first` on, given the keys
  /// present outside the program.
  mlir::SmallVector<mlir::Value> getPresentRows(PresentKeys keys,
                                                mlir::OpFoldResult first);
  mlir::OpFoldResult getTileSize(const TileView &view, int64_t dim);
  mlir::FailureOr<TileView> getOperandView(mlir::Value tile);

  /// Returns the indices at which a tile is accessed: one for each dimension of
  /// the memref.
  mlir::SmallVector<mlir::Value> getIndices(mlir::OpBuilder &builder,
                                            const TileView &view);
  /// Returns the type of the numbers whose bits the tensor that `tensor` is
  /// gathered from has; null if there is none.
  mlir::FloatType getWidenedType(mlir::Value tensor);
  /// Loads a tile in which rows that are not in `present`, if it is given, are
  /// zero; with `wholeRuns`, their contents do not matter.
  mlir::Value loadTile(mlir::OpBuilder &builder, const TileView &view,
                       int64_t rows, int64_t columns,
                       mlir::ValueRange present = {}, bool wholeRuns = false);
  /// Loads a tile of a tensor whose rows are gathered.
  mlir::Value loadRows(mlir::OpBuilder &builder, const TileView &view,
                       const RowMap &map, tile::SharedType type,
                       mlir::ValueRange present, bool wholeRuns);
  /// Returns a tile in shared memory: one that loops do not change is loaded
  /// once, before them. `getPresent` emits the rows that are present.
  using PresentFn = llvm::function_ref<mlir::SmallVector<mlir::Value>()>;
  mlir::FailureOr<mlir::Value> loadAhead(mlir::Value tile, int64_t rows,
                                         int64_t columns,
                                         PresentFn getPresent = nullptr);

  mlir::RewriterBase &rewriter;
  mlir::scf::ForallOp forall;
  mlir::Location loc;
  std::string reason;

  TileSizes sizes;
  /// The warps that widen tiles of bytes.
  int64_t wideners = 0;
  tile::LaunchOp launch;
  mlir::IRMapping mapping;
  llvm::DenseMap<mlir::Value, mlir::Value> memrefs;
  /// The maps of tensors whose rows are gathered.
  llvm::MapVector<mlir::Value, RowMap> rowMaps;
  /// Tiles that were loaded before the loops.
  llvm::DenseMap<mlir::Value, mlir::Value> ahead;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_LAUNCHBUILDER_H
