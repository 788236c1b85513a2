//===- BackwardBuilder.h - Attention's gradients as a launch ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDBUILDER_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDBUILDER_H

#include "BackwardStep.h"

#include "fovea/Analysis/MaskAnalysis.h"
#include "fovea/Analysis/MaskTables.h"

#include "mlir/IR/PatternMatch.h"

namespace fovea {

/// Rewrites one scheduled `attn.attention_backward` to statistics of its rows,
/// a launch whose blocks sum the gradients of their keys and values and add
/// those of queries in memory, and the rounding of the latter. `deterministic`:
/// where scores share elements of captured tensors, the gradients of these
/// tensors are summed in integers, or by successive launches within which no
/// scores share an element.
class BackwardBuilder {
public:
  BackwardBuilder(mlir::RewriterBase &rewriter, attn::AttentionBackwardOp op,
                  bool deterministic)
      : rewriter(rewriter), op(op), loc(op.getLoc()),
        deterministic(deterministic) {}

  /// Replaces the op. On failure the IR is as it was and `getReason` says why.
  mlir::LogicalResult run();
  llvm::StringRef getReason() const { return reason; }

private:
  /// The tile of keys that one block has of one head.
  struct Block {
    mlir::Value batch, head, kvHead;
    /// The first row of the tile, and the number of its rows that exist.
    mlir::Value first;
    mlir::OpFoldResult count;
    /// Keys and values in shared memory.
    mlir::Value key, value;
  };
  using Values = mlir::SmallVector<mlir::Value>;
  /// Emits the step of a tile of queries.
  using TileFn = llvm::function_ref<mlir::FailureOr<Values>(
      mlir::Value at, const Truth &truth, mlir::ValueRange sums)>;

  mlir::LogicalResult fail(const llvm::Twine &why);
  mlir::LogicalResult checkSizes();
  void createStatistics();
  mlir::Value createResult(mlir::Value result, mlir::Value like,
                           mlir::FloatType element);
  void createLaunch(mlir::ArrayRef<mlir::OpFoldResult> grid,
                    mlir::ValueRange outputs);
  mlir::FailureOr<Values> emitLaunches();
  mlir::FailureOr<Values> emitLaunch(mlir::ValueRange outputs, Block block);
  mlir::LogicalResult readInLaunch();
  mlir::Value roundQueryGradient(mlir::Value sums);

  // Gradients of captured tensors, implemented in BackwardCaptures.cpp.
  mlir::LogicalResult findReads();
  void planSharedSums();
  bool canTakeTurns(mlir::Value capture);
  mlir::OpFoldResult getNumTerms(mlir::Value capture);
  mlir::FloatType getSumType(mlir::Value capture);
  void createScatteredSums(Values &outputs);
  void tieScatteredSums();
  mlir::Value sumKeys(mlir::tensor::ExtractOp read, mlir::Value sums);
  mlir::Value roundSums(mlir::Value capture, mlir::Value sums,
                        const ReproducibleSum &integers);
  mlir::Value sumReads(mlir::Value capture, mlir::ValueRange sums,
                       mlir::Type type);

  mlir::FailureOr<Values> emitHeads(
      Block &block, mlir::ValueRange sums,
      llvm::function_ref<mlir::FailureOr<Values>(mlir::ValueRange sums)> emit);
  /// The loop over tiles of queries that the mask keeps for `block`.
  mlir::FailureOr<Values> emitTiles(const Block &block, mlir::ValueRange sums,
                                    TileFn emit);
  BackwardStep makeStep(const Block &block, mlir::Value at, const Truth &truth);

  mlir::Value getMemRef(mlir::Value tensor) { return memrefs.lookup(tensor); }
  mlir::Value load(mlir::Value tensor, mlir::ValueRange indices, int64_t rows,
                   int64_t columns, mlir::ValueRange present = {});
  /// The rows of `block`'s keys and values that are not absent for all queries
  /// of its heads, as operands of loads.
  Values findPresentRows(const Block &block);
  mlir::Value loadStatistic(mlir::Value tensor, mlir::ValueRange indices);
  mlir::Value fill(mlir::ArrayRef<int64_t> shape);
  void store(mlir::Value sum, mlir::OpOperand &output, double factor,
             mlir::ValueRange indices);

  mlir::RewriterBase &rewriter;
  attn::AttentionBackwardOp op;
  mlir::Location loc;
  bool deterministic;
  std::string reason;

  TileSizes sizes;
  /// Reads of captured tensors that have gradients: first the reads whose
  /// gradients a block sums, then those whose gradients go to memory, by
  /// captured tensor.
  mlir::SmallVector<mlir::tensor::ExtractOp> reads;
  mlir::SmallVector<ScatteredRead> scattered;
  /// True where each batch, or each head of keys, has a launch of its own, one
  /// after another.
  std::array<bool, 2> takesTurns = {false, false};
  /// Remarks on how the sums of captured tensors' gradients get a fixed order,
  /// or that they have none.
  mlir::SmallVector<std::string> remarks;
  mlir::SmallVector<mlir::OpFoldResult> querySizes, keySizes;
  /// Query heads of one head of keys.
  mlir::OpFoldResult group;
  /// As in `BackwardStep`, for all queries.
  mlir::Value shift, rest, negatedDelta;
  MaskTables tables;
  tile::LaunchOp launch;
  llvm::DenseMap<mlir::Value, mlir::Value> memrefs;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDBUILDER_H
