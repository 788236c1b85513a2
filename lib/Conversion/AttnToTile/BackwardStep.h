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
/// memref `target` of the tensor's shape, where the read was.
struct ScatteredRead {
  mlir::tensor::ExtractOp op;
  /// Whether it is added there, for scores share elements.
  bool isShared;
  /// Whether a warp's sums along diagonals of the scores are added instead.
  bool addsDiagonals;
  /// Whether the memref holds zeros before.
  bool isZeroed;
  mlir::Value target = {};
  /// How the memref has sums, if it has them in integers.
  std::optional<ReproducibleSum> integers = std::nullopt;
};

/// One tile of queries and one of keys, in the values of the program.
struct BackwardStep {
  attn::AttentionBackwardOp op;
  ScoreTile tile;
  /// Whether the mask region must be applied.
  mlir::OpFoldResult partial;
  /// Tiles in shared memory; `gradient` is that of the output.
  mlir::Value query, key, value, gradient;
  /// What the score region reads of tensors that have gradients: what the step
  /// sums over queries, and what it sends to memory.
  mlir::ArrayRef<mlir::tensor::ExtractOp> reads;
  mlir::ArrayRef<ScatteredRead> scattered;
  /// For each query, minus the log-sum-exp, minus infinity if it has no key or
  /// does not exist, and minus delta. The former is in base 2 if one
  /// multiply-add subtracts it, else in the units of scores; `rest`, which may
  /// be null, is what rounding left of it, in base 2.
  mlir::Value shift, rest, negatedDelta;
};

/// Gradients as fragments, those of queries and keys without the scale:
/// `queries x headDim`, `keys x headDim` and `keys x valueDim`; and for each of
/// the step's reads the gradient of what is read, summed over queries: `keys`.
struct BackwardGradients {
  mlir::Value query, key, value;
  llvm::SmallVector<mlir::Value> reads;
};

/// Whether one multiply-add gives the exponents of probabilities: of products
/// by tensor cores, which leave time for no more, and which nothing was added
/// to.
bool isFusedBackward(ScoreUnit unit, const TileSizes &sizes);

/// Emits a step: adds to `sums`, of which `query` is none, and finds what the
/// step adds to its queries. Scores are transposed, `keys x queries`, so that
/// probabilities and gradients of scores are left operands of products in
/// registers. Fails with an error where the score region has no derivative.
mlir::FailureOr<BackwardGradients>
emitBackwardStep(mlir::OpBuilder &builder, const TileSizes &sizes,
                 const BackwardStep &step, const BackwardGradients &sums);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_BACKWARDSTEP_H
