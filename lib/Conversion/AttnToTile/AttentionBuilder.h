//===- AttentionBuilder.h - Tiled attention as one launch -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_ATTENTIONBUILDER_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_ATTENTIONBUILDER_H

#include "LaunchBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace fovea {

/// Rewrites a loop over tiles of attention.
class AttentionBuilder final : public LaunchBuilder {
public:
  AttentionBuilder(mlir::RewriterBase &rewriter, mlir::scf::ForallOp forall,
                   bool exactFunctions)
      : LaunchBuilder(rewriter, forall), exactFunctions(exactFunctions) {}

  mlir::LogicalResult run() override;

private:
  /// Elementwise ops on the output are exact, whatever their types.
  const bool exactFunctions;

  mlir::LogicalResult checkSizes();
  mlir::LogicalResult convertOp(mlir::Operation &op) override;
  /// Finds the values that hold sums.
  void findSums();
  /// Returns the fragment that a running value becomes.
  tile::FragmentType getRunningType(mlir::Value value);
  mlir::LogicalResult convertFill(mlir::linalg::FillOp op);
  /// Returns the value that replaces `value`. A fill before the loop, which a
  /// tile that is all of a tensor shares with others, is emitted again.
  mlir::Value getRunningValue(mlir::Value value);
  /// Returns the three running values of a pass, as fragments.
  mlir::FailureOr<RunningValues>
  getRunningValues(mlir::Value acc, mlir::Value max, mlir::Value sum);
  mlir::LogicalResult convertFor(mlir::scf::ForOp op);
  /// Rows of a tile of `count` rows, from `first` to `last`, both included.
  struct RowsOfTile {
    mlir::OpFoldResult first, last, count;
  };
  /// Returns the box of a pass's scores in some rows of its tile.
  static MaskBox getBox(IndexMath &index, attn::OnlineAttentionOp pass,
                        const RowsOfTile &rows, Span keys);
  using OfRowsFn = llvm::function_ref<mlir::OpFoldResult(mlir::OpBuilder &,
                                                         const RowsOfTile &)>;
  /// Returns what `whole` becomes, with what `emit` computes for a part of the
  /// rows of the pass's tile. The ops are emitted in front of `place`, which is
  /// about to be converted. If they are more than `mostOps`, a part of the rows
  /// has what the whole has.
  mlir::FailureOr<mlir::Value>
  getOfRows(mlir::Operation *place, mlir::Value whole,
            attn::OnlineAttentionOp pass, OfRowsFn emit,
            std::optional<size_t> mostOps = std::nullopt);
  /// Returns true if the tiles of keys are visited from the last to the first.
  bool isDescending();
  /// Returns the end of a loop over keys, or its begin if it is descending: the
  /// mask, or the end of the queries, may leave some rows fewer keys.
  mlir::FailureOr<mlir::Value> getBound(mlir::scf::ForOp op);
  /// Returns the begin of a loop over keys that is not descending: the mask may
  /// keep some rows only keys behind those of the first steps.
  mlir::FailureOr<mlir::Value> getBegin(mlir::scf::ForOp op);
  /// Returns the sum of the places that a descending loop visits first and
  /// last.
  mlir::Value getEnds(mlir::scf::ForOp op);
  /// Returns whether the mask must be applied: some rows may have none.
  mlir::FailureOr<mlir::Value> getPartial(attn::OnlineAttentionOp op);
  /// Returns true if the mask reads of tensors only what a row has, in at most
  /// 32 bits each.
  static bool readsRows(mlir::Region &mask);
  /// Returns the extremes of the values that the mask reads for the rows of the
  /// executing warp.
  llvm::SmallVector<Span> emitExtremes(mlir::OpBuilder &builder,
                                       mlir::Region &mask,
                                       const ScoreTile &tile);
  /// Returns whether the mask may remove keys of a step for a row of the
  /// executing warp, by the extremes of what it reads (`--tile-hoist-rows`
  /// finds them once).
  mlir::OpFoldResult emitArePartial(mlir::OpBuilder &builder,
                                    attn::OnlineAttentionOp op,
                                    const ScoreTile &tile);
  mlir::LogicalResult convertIf(mlir::scf::IfOp op);
  mlir::LogicalResult convertOnline(attn::OnlineAttentionOp op);
  /// Reads a tile of queries into registers, once, and returns it as the left
  /// operand of products, and a factor of these for each row, or null: numbers
  /// that products are not of are multiplied to be in range.
  std::pair<mlir::Value, mlir::Value> readQuery(mlir::Value tile);
  mlir::LogicalResult convertFinalize(attn::FinalizeOp op);
  mlir::LogicalResult convertYield(mlir::Operation *terminator);
  /// Loads, once, the scores that rows begin from, if there are any: before the
  /// loop over keys, where nobody waits for them, if their place is known
  /// there.
  mlir::LogicalResult loadInit(bool isEnd);
  /// Lets `fragment` stand for `tile`, along whose dimensions `tileDims` its
  /// rows, and its columns if there are any, run, and stores it where the tile
  /// is inserted.
  mlir::LogicalResult storeTile(mlir::Value fragment, mlir::Value tile,
                                mlir::ArrayRef<int64_t> tileDims);
  /// Moves what comes behind the first store under a condition into both of its
  /// branches: what one stores, such as the log-sum-exp, is computed while
  /// another store goes on.
  void moveIntoChoice();
  /// Where some stores have no condition, joins the branches of those that
  /// have one, with what only they store, which others do not wait for.
  void joinChoices();
  /// Checks that everything that the loop inserts has been stored.
  mlir::LogicalResult checkStores();
  /// Converts an op on tiles that reads fragments. Another one is computed
  /// where it is read.
  mlir::LogicalResult convertElementwise(mlir::linalg::LinalgOp op);
  /// Finds the operands whose rows are gathered.
  void findRowMaps();
  /// Computes, in the loop that is to be converted, which keys are present for
  /// `pass`.
  void findPresentKeys(attn::OnlineAttentionOp pass);

  friend class TileElements;

  /// A fragment that stands for a tile; see `storeTile`.
  struct TileFragment {
    mlir::Value fragment;
    mlir::SmallVector<int64_t> dims;
  };

  mlir::SmallVector<attn::OnlineAttentionOp> passes;
  attn::FinalizeOp end;
  /// The loaded scores, or null.
  mlir::Value init;
  /// True if products take queries from registers, beside keys that they or
  /// other warps widen, and what `readQuery` returned.
  bool readsQueries = false;
  /// True in a loop that visits the last keys first.
  bool isLastFirst = false;
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, mlir::Value>> readQueries;
  /// Tensors that are the same running value form one class.
  llvm::EquivalenceClasses<mlir::Value> sums;
  llvm::DenseMap<mlir::Operation *, PresentKeys> present;
  llvm::DenseMap<mlir::Value, TileFragment> fragments;
  /// The first branch of stores, if what is stored depends on a condition.
  mlir::scf::IfOp choice;
  /// How many tiles have been stored, and how many of them in such branches.
  int64_t stores = 0, storesIfChosen = 0;
  /// The op of the program after which it computes the output.
  mlir::Operation *lastBeforeEnd = nullptr;
  /// Ops in front of which others were inserted, each with the op that preceded
  /// it before.
  mlir::SmallVector<std::pair<mlir::Operation *, mlir::Operation *>> emitted;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_ATTENTIONBUILDER_H
