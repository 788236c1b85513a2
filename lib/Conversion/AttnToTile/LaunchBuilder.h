//===- LaunchBuilder.h - Tiled attention as one launch ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_LAUNCHBUILDER_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_LAUNCHBUILDER_H

#include "OnlineStep.h"
#include "TileView.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace fovea {

/// Rewrites one `scf.forall` that `attn-tile` has made to a `tile.launch`.
class LaunchBuilder {
public:
  LaunchBuilder(mlir::RewriterBase &rewriter, mlir::scf::ForallOp forall)
      : rewriter(rewriter), forall(forall), loc(forall.getLoc()) {}

  /// Replaces the loop. On failure the IR is unchanged and `getReason` says
  /// why.
  mlir::LogicalResult run();
  llvm::StringRef getReason() const { return reason; }

private:
  mlir::LogicalResult fail(const llvm::Twine &why);

  mlir::LogicalResult checkSizes();
  void createLaunch();
  mlir::LogicalResult convertBlock(mlir::Block &block);
  mlir::LogicalResult convertOp(mlir::Operation &op);
  /// Finds the values that hold sums.
  void findSums();
  /// Returns the fragment that a running value becomes.
  tile::FragmentType getRunningType(mlir::Value value);
  mlir::LogicalResult convertFill(mlir::linalg::FillOp op);
  /// Returns the value that replaces `value`. A fill before the loop, which a
  /// tile that is all of a tensor shares with others, is emitted again.
  mlir::Value getRunningValue(mlir::Value value);
  mlir::LogicalResult convertFor(mlir::scf::ForOp op);
  mlir::LogicalResult convertIf(mlir::scf::IfOp op);
  mlir::LogicalResult convertOnline(attn::OnlineAttentionOp op);
  mlir::LogicalResult convertFinalize(attn::FinalizeOp op);
  mlir::LogicalResult convertYield(mlir::Operation *terminator);

  /// Clones an op on scalars, which may read tensors.
  mlir::FailureOr<mlir::Operation *> cloneScalar(mlir::OpBuilder &builder,
                                                 mlir::Operation &op,
                                                 mlir::IRMapping &values);
  mlir::Value emitRegion(mlir::OpBuilder &builder, mlir::Region &region,
                         mlir::ValueRange arguments);

  /// Returns the memref inside that stands for a tensor from outside, or null.
  mlir::Value getMemRef(mlir::Value tensor);
  mlir::Value getSize(mlir::Value tensor, int64_t dim);
  bool isOutside(mlir::Value value);
  mlir::OpFoldResult getMapped(mlir::OpFoldResult value);
  mlir::OpFoldResult getTileSize(const TileView &view, int64_t dim);
  mlir::FailureOr<TileView> getOperandView(mlir::Value tile);

  /// Returns the indices at which a tile is accessed: one for each dimension of
  /// the memref.
  mlir::SmallVector<mlir::Value> getIndices(mlir::OpBuilder &builder,
                                            const TileView &view);
  mlir::Value loadTile(mlir::OpBuilder &builder, const TileView &view,
                       int64_t rows, int64_t columns,
                       mlir::ValueRange present = {});
  mlir::LogicalResult storeTile(mlir::Value fragment, mlir::Value tile,
                                mlir::ArrayRef<int64_t> tileDims);
  /// Returns the tile of queries in shared memory, loaded before the loops.
  mlir::FailureOr<mlir::Value> getQuery(mlir::Value query);
  /// Computes, in the loop that is to be converted, which keys are present for
  /// `pass`.
  void findPresentKeys(attn::OnlineAttentionOp pass);

  mlir::RewriterBase &rewriter;
  mlir::scf::ForallOp forall;
  mlir::Location loc;
  std::string reason;

  mlir::SmallVector<attn::OnlineAttentionOp> passes;
  TileSizes sizes;
  /// Tensors that are the same running value form one class.
  llvm::EquivalenceClasses<mlir::Value> sums;
  tile::LaunchOp launch;
  mlir::IRMapping mapping;
  llvm::DenseMap<mlir::Value, mlir::Value> memrefs;
  llvm::DenseMap<mlir::Value, mlir::Value> queries;
  llvm::DenseMap<mlir::Operation *, PresentKeys> present;
  /// Ops in front of which others were inserted, each with the op that preceded
  /// it before.
  mlir::SmallVector<std::pair<mlir::Operation *, mlir::Operation *>> emitted;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_LAUNCHBUILDER_H
