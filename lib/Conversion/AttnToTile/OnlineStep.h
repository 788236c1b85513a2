//===- OnlineStep.h - Softmax on fragments ----------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What one tile of keys does to the running values, and what becomes of them in
// the end, as tile ops.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_ONLINESTEP_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_ONLINESTEP_H

#include "ScoreTile.h"

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Tile/IR/Tile.h"

namespace fovea {

/// The tiles of a program of attention, padded to what products take.
struct TileSizes {
  int64_t queries;
  int64_t keys;
  int64_t headDim;
  int64_t valueDim;
  /// Of queries, keys and values, and of the running values.
  mlir::FloatType element;
  mlir::FloatType accumulation;

  tile::FragmentType getScores() const;
  tile::FragmentType getOutput() const;
  tile::FragmentType getRows() const;
};

/// What fragments hold of scores: `x`, of which a score is `unit * x`.
struct ScoreUnit {
  /// Of attention with this factor; `score` may be empty. Without a region
  /// products stay as they are, if the factor is
  /// positive and neither tiny nor huge.
  static ScoreUnit get(const llvm::APFloat &scale, mlir::Region &score);

  double unit;
  /// Whether the factor has yet to be multiplied: products are `x`.
  bool isRaw;

  double getBase2() const;
};

/// The running values as fragments: `queries x valueDim`, `queries`, `queries`.
/// The maximum is of what fragments hold of scores.
struct RunningValues {
  mlir::Value acc;
  mlir::Value max;
  mlir::Value sum;
};

/// One tile of keys, in the values of the program.
struct KeyStep {
  attn::OnlineAttentionOp op;
  ScoreTile tile;
  /// Whether the mask region must be applied.
  mlir::OpFoldResult partial;
  /// Loads the tile of keys, of values.
  std::function<mlir::Value(mlir::OpBuilder &)> loadKeys, loadValues;
};

/// `x + sign * y` of a score and what is subtracted from it, as a multiply-add,
/// which `convert-tile-to-nvvm` makes a sum of these very numbers. A product
/// that a score is would be contracted into another sum, and have more digits
/// there than where the maximum was taken.
mlir::Value emitExactSum(mlir::OpBuilder &body, mlir::Location loc,
                         mlir::Value x, mlir::Value y, double sign = 1.0);

/// Emits one step on the tile `query` in shared memory.
RunningValues emitOnlineStep(mlir::OpBuilder &builder, const TileSizes &sizes,
                             const KeyStep &step, mlir::Value query,
                             RunningValues running);

/// The output `acc / sum` in elements of `type`; zeros in rows without a key.
/// Their sum is 0; that of others is not, for a maximum's exponential is 1, or
/// is NaN.
mlir::Value emitOutput(mlir::OpBuilder &builder, mlir::Location loc,
                       const TileSizes &sizes, RunningValues running,
                       mlir::FloatType type);

/// The log-sum-exp in elements of `type`; minus infinity in rows without a key.
mlir::Value emitLogSumExp(mlir::OpBuilder &builder, mlir::Location loc,
                          const TileSizes &sizes, RunningValues running,
                          ScoreUnit unit, mlir::FloatType type);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_ONLINESTEP_H
