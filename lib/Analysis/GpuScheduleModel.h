//===- GpuScheduleModel.h - Schedules of attention on a GPU -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_ANALYSIS_GPUSCHEDULEMODEL_H
#define FOVEA_LIB_ANALYSIS_GPUSCHEDULEMODEL_H

#include "fovea/Analysis/GpuFootprint.h"
#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Dialect/Tile/IR/Tile.h"

#include "llvm/ADT/DenseSet.h"

namespace fovea {

/// The largest number of scalar instructions that products may unroll to.
inline constexpr int64_t kLargestUnrolled = 4096;

/// Registers for operands of products that are not read from shared memory.
inline constexpr int64_t kOperandRegisters = 40;

/// Returns the registers for the random bits of a thread's scores under
/// dropout, all of which ptxas computes side by side.
inline int64_t getDropoutRegisters(int64_t threadScores) {
  return threadScores + 16;
}

/// Returns the order of work; blocks under a mask have unequal work.
inline attn::WorkOrder getWorkOrder(mlir::Region &mask) {
  return mask.empty() ? attn::WorkOrder::Linear : attn::WorkOrder::LongestFirst;
}

/// Returns the shape of an op, with `length` for lengths that are dynamic;
/// where the batch is, too, and lengths are short, there are many sequences.
template <typename OpTy>
AttentionShape getShapeWithLength(OpTy op, int64_t length) {
  constexpr int64_t kManyTokens = 16384;
  AttentionShape shape = AttentionShape::get(op);
  if (op.getQuery().getType().isDynamicDim(0) && length < kUsualLength)
    shape.batch = kManyTokens / length;
  if (op.getQuery().getType().isDynamicDim(2))
    shape.queries = length * shape.rowsOfQuery;
  if (op.getKey().getType().isDynamicDim(2))
    shape.keys = length;
  return shape;
}

/// Returns the tiles of queries of an attention, without regard to a split;
/// with those behind the last one of a head that its cluster takes as well.
inline int64_t countQueryTiles(const AttentionShape &shape,
                               attn::ScheduleAttr schedule) {
  return shape.batch * shape.heads *
         int64_t(llvm::alignTo(
             llvm::divideCeil(shape.queries, schedule.getQueryTile()),
             schedule.getCluster()));
}

/// The least part of the scores that a mask keeps that does not say where loops
/// over keys begin, as well as where they end: half, but for what samples miss.
inline constexpr double kOneEdge = 0.49;

/// Returns true if warp groups may end a loop over keys by their own queries
/// (`tile-skip-rows`): if a tile of keys does not reach across all but one.
inline bool mayEndApart(attn::ScheduleAttr schedule) {
  return schedule.getKeyTile() <= schedule.getQueryTile() - tile::kGroupRows;
}

/// Returns the number of blocks that a multiprocessor runs at once.
int64_t getResidentBlocks(const GpuFootprint &footprint,
                          machine::TargetAttr target);

/// Returns the tiles of keys that a mask keeps of a tile of queries. Where each
/// query has keys of its own, a loop visits those of its last query.
double countKeyTiles(const AttentionShape &shape, attn::ScheduleAttr schedule,
                     const GpuFootprint &footprint);

/// Returns true if `op`, or an op in its regions, has an operand in `values`.
bool usesAny(mlir::Operation &op,
             const llvm::SmallDenseSet<mlir::Value> &values);

/// Returns the estimated seconds of one attention under `schedule`, which has
/// warps.
double predictGpuSeconds(const AttentionShape &shape,
                         machine::TargetAttr target,
                         attn::ScheduleAttr schedule);

/// Returns the same of `op`, whose dynamic lengths are `length`; of queries
/// that lie packed, as these are added to caches, their lengths alone.
double predictGpuSeconds(attn::AttentionOp op, machine::TargetAttr target,
                         attn::ScheduleAttr schedule, int64_t length);

/// Returns the schedules whose tile fits a block of the GPU, those with the
/// least predicted time first.
llvm::SmallVector<ScheduleChoice>
listGpuSchedules(attn::AttentionOp op, machine::TargetAttr target,
                 const ScheduleOptions &options);
llvm::SmallVector<ScheduleChoice> listGpuSchedules(attn::AttentionBackwardOp op,
                                                   machine::TargetAttr target);

/// Inserts a schedule behind those that take no longer, and logs its predicted
/// time.
void insertChoice(llvm::SmallVectorImpl<ScheduleChoice> &choices,
                  attn::ScheduleAttr schedule, double seconds);

/// Returns the same as `selectGradients`, for a GPU and for a host. The
/// captured tensors are read in the score region itself.
attn::GradientsAttr
selectGpuGradients(attn::AttentionBackwardOp op, bool deterministic,
                   llvm::SmallVectorImpl<std::string> &remarks);
attn::GradientsAttr selectHostGradients(attn::AttentionBackwardOp op,
                                        machine::TargetAttr target);

/// Returns the number of shares of a group's query heads (`#attn.gradients`) on
/// a GPU: the fewest with which the time is near the least.
int64_t selectShares(attn::AttentionBackwardOp op, machine::TargetAttr target,
                     attn::ScheduleAttr schedule);

} // namespace fovea

#endif // FOVEA_LIB_ANALYSIS_GPUSCHEDULEMODEL_H
