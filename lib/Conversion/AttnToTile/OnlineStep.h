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

/// The running values as fragments: `queries x valueDim`, `queries`, `queries`.
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

/// Emits one step on the tile `query` in shared memory.
RunningValues emitOnlineStep(mlir::OpBuilder &builder, const TileSizes &sizes,
                             const KeyStep &step, mlir::Value query,
                             RunningValues running);

/// The output `acc / sum` in elements of `type`; zeros in rows without a key.
mlir::Value emitOutput(mlir::OpBuilder &builder, mlir::Location loc,
                       const TileSizes &sizes, RunningValues running,
                       mlir::FloatType type);

/// The log-sum-exp; minus infinity in rows without a key.
mlir::Value emitLogSumExp(mlir::OpBuilder &builder, mlir::Location loc,
                          const TileSizes &sizes, RunningValues running);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_ONLINESTEP_H
