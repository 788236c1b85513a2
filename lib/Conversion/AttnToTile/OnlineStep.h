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

#include "StepScores.h"

namespace fovea {

/// The running values as fragments: of the types `getOutput`, `getRows` and
/// `getSums`. The maximum is in the units of fragments of scores.
struct RunningValues {
  mlir::Value acc;
  mlir::Value max;
  mlir::Value sum;
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

/// Returns a fragment of a number of each warp that shares a row, such as sums,
/// of which every thread has all of its row.
mlir::Value exchangeParts(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value parts);

/// Returns the sum of each row, in units of the exponential of its maximum.
/// `init`, null or the score of one more key for each row, adds to it: the sum
/// is infinite where that is far above the maximum, as without keys.
mlir::Value emitWholeSum(mlir::OpBuilder &builder, mlir::Location loc,
                         const TileSizes &sizes, RunningValues running,
                         ScoreUnit unit, mlir::Value init);

/// Returns the output `acc / sum` in elements of `type`, of the sum of each
/// row; zeros in rows without a key. The sum is 0 in these rows only: in others
/// it is at least the exponential of a maximum, about 1, or NaN.
mlir::Value emitOutput(mlir::OpBuilder &builder, mlir::Location loc,
                       const TileSizes &sizes, mlir::Value acc, mlir::Value sum,
                       mlir::FloatType type);

/// Returns the log-sum-exp in elements of `type`, of the maximum and the sum of
/// each row; minus infinity in rows without a key, and `init` where the sum is
/// infinite.
mlir::Value emitLogSumExp(mlir::OpBuilder &builder, mlir::Location loc,
                          const TileSizes &sizes, mlir::Value max,
                          mlir::Value sum, ScoreUnit unit, mlir::Value init,
                          mlir::FloatType type);

/// Returns what `lse`, the log-sum-exp in elements of the accumulator, is
/// rounded by; 0 where it or the sum is infinite.
mlir::Value emitLogSumExpRest(mlir::OpBuilder &builder, mlir::Location loc,
                              const TileSizes &sizes, mlir::Value max,
                              mlir::Value sum, ScoreUnit unit, mlir::Value lse);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_ONLINESTEP_H
