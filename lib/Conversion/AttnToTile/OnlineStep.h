//===- OnlineStep.h - Softmax on fragments ----------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tile ops that update the running values by one tile of keys, and that finish
// the running values at the end.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_ONLINESTEP_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_ONLINESTEP_H

#include "ScoreTile.h"

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fovea {

/// Rows and columns of the tiles that products take are multiples of this
/// number.
inline constexpr int64_t kProductMultiple = 16;

/// The sizes of the tiles of an attention program, padded to what products
/// take.
struct TileSizes {
  int64_t queries;
  int64_t keys;
  int64_t headDim;
  int64_t valueDim;
  /// Element types of the operands of products, and of the running values.
  mlir::FloatType element;
  mlir::FloatType accumulation;

  bool usesTensorCores() const { return element.getIntOrFloatBitWidth() == 16; }
  tile::FragmentType getScores() const;
  /// Probabilities as the left operand of the product with values.
  tile::FragmentType getWeights() const;
  tile::FragmentType getOutput() const;
  tile::FragmentType getRows() const;
  /// Sums of rows; for tensor cores, which leave no time to exchange them in
  /// each step, in four parts, of the columns that a thread has: their numbers
  /// divided by two are equal modulo four.
  tile::FragmentType getSums() const;
};

/// The unit of the numbers `x` that fragments hold for scores: a score is `unit
/// * factor * x`.
struct ScoreUnit {
  /// Returns the unit for attention with this factor; `score` may be empty.
  /// Without a region, products stay as they are if the factor is positive and
  /// neither tiny nor huge.
  static ScoreUnit get(const llvm::APFloat &scale, mlir::Region &score);
  /// Returns the unit for `op`: also the number by which its score region
  /// multiplies at last, which then costs nothing. It is a constant, as in a
  /// soft cap, or a scalar from outside of the region, as a scale that is an
  /// operand, which is clamped to positive numbers neither tiny nor huge.
  static ScoreUnit get(attn::OnlineAttentionOp op);

  double unit;
  /// True if the factor has yet to be multiplied: products are `x`.
  bool isRaw;
  /// Null: 1.
  mlir::Value factor = {};

  /// Returns the unit in base 2, without the factor.
  double getBase2() const;
  /// Returns `number * factor` as a number of type `type`.
  mlir::Value emitProduct(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::FloatType type, double number) const;
};

/// The running values as fragments: of the types `getOutput`, `getRows` and
/// `getSums`. The maximum is in the units of fragments of scores.
struct RunningValues {
  mlir::Value acc;
  mlir::Value max;
  mlir::Value sum;
};

/// One tile of keys, in the values of the program.
struct KeyStep {
  attn::OnlineAttentionOp op;
  ScoreTile tile;
  /// A factor of the products with keys for each row; null: none.
  mlir::Value factors;
  /// Functions that load the tile of keys and of values.
  std::function<mlir::Value(mlir::OpBuilder &)> loadKeys, loadValues;
  /// The function that loads what a region reads of a captured tensor for the
  /// whole tile.
  std::function<mlir::Value(mlir::OpBuilder &, mlir::tensor::ExtractOp)>
      loadCapture;
};

/// Emits `x + sign * y`, of a score and the number that is subtracted from it,
/// as a multiply-add, which `convert-tile-to-nvvm` turns into a sum of exactly
/// these numbers. Otherwise a score that is a product would be contracted into
/// the sum, and have more digits there than where the maximum was taken.
mlir::Value emitExactSum(mlir::OpBuilder &body, mlir::Location loc,
                         mlir::Value x, mlir::Value y, double sign = 1.0);

/// Emits one step on the tile `query`, in shared memory or in registers.
RunningValues emitOnlineStep(mlir::OpBuilder &builder, const TileSizes &sizes,
                             const KeyStep &step, mlir::Value query,
                             RunningValues running);

/// Emits a `tile.combine_parts` of running values at the end of their loop:
/// those of two parts of its keys are relative to the larger maximum.
RunningValues emitCombinedParts(mlir::OpBuilder &builder, mlir::Location loc,
                                const TileSizes &sizes, RunningValues running,
                                ScoreUnit unit);

/// Returns the output `acc / sum` in elements of `type`; zeros in rows without
/// a key. The sum is 0 in these rows only: in others it is at least the
/// exponential of a maximum, 1 or a quarter (`kHeadroom`), or NaN. `init`, null
/// or the score of one more key for each row, whose value is 0, adds to the
/// sum.
mlir::Value emitOutput(mlir::OpBuilder &builder, mlir::Location loc,
                       const TileSizes &sizes, RunningValues running,
                       ScoreUnit unit, mlir::Value init, mlir::FloatType type);

/// Returns the log-sum-exp in elements of `type`, with that of `init`; minus
/// infinity in rows without a key.
mlir::Value emitLogSumExp(mlir::OpBuilder &builder, mlir::Location loc,
                          const TileSizes &sizes, RunningValues running,
                          ScoreUnit unit, mlir::Value init,
                          mlir::FloatType type);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_ONLINESTEP_H
