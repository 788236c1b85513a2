//===- BackwardStep.h - Gradients of a tile of scores -----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDSTEP_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDSTEP_H

#include "OnlineStep.h"
#include "fovea/Conversion/Utils/ReproducibleSum.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fovea {

/// A read of a captured tensor whose gradient, one for each score, goes to the
/// memref `target`, which has the tensor's shape, at the place of the read.
struct ScatteredRead {
  mlir::tensor::ExtractOp op;
  /// True if gradients are added in memory, because scores share elements.
  bool isShared;
  /// True if a warp's sums along diagonals of the scores are added instead.
  bool addsDiagonals;
  /// True if the memref holds zeros before the launch.
  bool isZeroed;
  mlir::Value target = {};
  /// The representation of the memref's sums, if they are integers.
  std::optional<ReproducibleSum> integers = std::nullopt;
};

/// One tile of queries and one tile of keys, in the values of the program.
struct BackwardStep {
  attn::OnlineBackwardOp op;
  ScoreTile tile;
  /// Tiles in shared memory; `gradient` is that of the output.
  mlir::Value query, key, value, gradient;
  /// Reads of tensors that have gradients, in the score region: first those
  /// that the step sums over queries, then those that it sends to memory.
  mlir::ArrayRef<mlir::tensor::ExtractOp> reads;
  mlir::ArrayRef<ScatteredRead> scattered;
  /// For each query: minus the log-sum-exp (minus infinity if the query has no
  /// key or does not exist), and minus delta. The former is in base 2 if one
  /// multiply-add subtracts it, else in the units of scores; `rest`, which may
  /// be null, is its rounding error, in base 2.
  mlir::Value shift, rest, negatedDelta;
  /// The words of what the mask reads for each query (in `tile.tileReads`), in
  /// shared memory: integers of 64 bits have two, the low one first.
  llvm::SmallVector<mlir::Value> maskWords;
  /// What the regions read for the whole tile (`tile.tileReads`): rows of its
  /// tiles are queries. Of the mask's reads these follow those that have words.
  llvm::SmallVector<CapturedTile> scoreCaptures, maskCaptures;
};

/// Gradients as fragments; those of queries and keys are without the scale:
/// `queries x headDim`, `keys x headDim` and `keys x valueDim`; and for each of
/// the step's reads the gradient of the value that is read, summed over
/// queries: `keys`.
struct BackwardGradients {
  mlir::Value query, key, value;
  llvm::SmallVector<mlir::Value> reads;
};

/// Returns true if one multiply-add gives the exponents of probabilities. This
/// holds for products by tensor cores, which leave time for no more, to which
/// nothing was added.
bool isFusedBackward(ScoreUnit unit, const TileSizes &sizes);

/// Emits a step: adds to `sums`, which do not include `query`, and returns the
/// gradients that the step adds to its queries. Scores are transposed, `keys x
/// queries`, so that probabilities and gradients of scores are left operands of
/// products in registers. Fails with an error where the score region has no
/// derivative.
mlir::FailureOr<BackwardGradients>
emitBackwardStep(mlir::OpBuilder &builder, const TileSizes &sizes,
                 const BackwardStep &step, const BackwardGradients &sums);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDSTEP_H
