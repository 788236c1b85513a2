//===- ScheduleModel.h - Time of attention under a schedule -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model that schedules are chosen by: the cycles of one tile on one core,
// from its vector operations, and the tiles that the busiest core gets. It
// wants to rank schedules; its times are estimates. On a GPU: the products,
// softmax and latencies of a block, and the waves of blocks.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_SCHEDULEMODEL_H
#define FOVEA_ANALYSIS_SCHEDULEMODEL_H

#include "fovea/Dialect/Attn/IR/Attn.h"

#include <optional>
#include <string>

namespace fovea {

/// The sizes of one attention. Dynamic sizes are replaced by typical ones.
struct AttentionShape {
  int64_t batch;
  int64_t heads;
  int64_t kvHeads;
  int64_t queries;
  int64_t keys;
  int64_t headDim;
  int64_t valueDim;
  /// Bytes of an element of the keys and values, and of the accumulation type.
  int64_t elementBytes;
  int64_t accumulationBytes;
  /// The part of the scores that a mask leaves, in [0, 1].
  double visible = 1.0;

  static AttentionShape get(attn::AttentionOp op);
  static AttentionShape get(attn::OnlineAttentionOp op);
  static AttentionShape get(attn::AttentionBackwardOp op);
};

/// The part of the keys, in [0, 1], between the bounds that the mask analysis
/// finds for blocks of queries, in the first batch and head. What captured
/// values decide counts as kept.
double estimateVisible(mlir::Region &mask, int64_t queries, int64_t keys);

/// Estimated seconds of one attention of `shape` on `target` under `schedule`.
double predictSeconds(const AttentionShape &shape, machine::TargetAttr target,
                      attn::ScheduleAttr schedule);

/// The element type in which a GPU multiplies queries, keys, values and the
/// output's gradient, to which `attn-match-operands` converts them: the
/// narrowest with all numbers of queries, keys and values; but f32 instead of
/// f16 where the gradient is not f16, which has not the range of gradients.
mlir::FloatType getProductType(attn::AttentionOp op);
mlir::FloatType getProductType(attn::AttentionBackwardOp op);

/// Why no schedule is chosen for `op` on `target`, whatever the tile: on GPUs
/// head dims must be multiples of 8 up to 256.
std::optional<std::string> getUnfitReason(attn::AttentionOp op,
                                          machine::TargetAttr target);
/// The same of the gradients of attention, on a GPU: there, too, captured
/// tensors with gradients must be read outside of regions within the score
/// region.
std::optional<std::string> getUnfitReason(attn::AttentionBackwardOp op,
                                          machine::TargetAttr target);

/// Elementwise or row-wise work that makes the keys or values of one attention.
struct KeyProducer {
  /// Scalar operations, memory accesses among them, for all keys once.
  double operations = 0;
  /// Bytes of its result.
  double bytes = 0;
  /// How often a key is read: by each tile of queries of each head that shares
  /// it, in each pass over the keys.
  double reads = 0;

  /// Adds an op; the first one makes what attention reads.
  void add(mlir::Operation *op);
};

/// Estimated seconds that it saves to compute keys or values each time they are
/// read, instead of once in a kernel that writes them to memory: the traffic
/// and the start of that kernel, less all computations but one. Negative where
/// a kernel of its own is faster.
double predictGainInLoads(const KeyProducer &producer,
                          machine::TargetAttr target);

/// The schedule with the least predicted time among those whose tile fits the
/// target: a host's near memory, a GPU's shared memory, with keys for each of
/// `passes` passes, and registers. Null if none does.
attn::ScheduleAttr selectSchedule(attn::AttentionOp op,
                                  machine::TargetAttr target,
                                  int64_t passes = 1);
/// The same of the gradients of attention, whose kernels are GPUs' alone.
attn::ScheduleAttr selectSchedule(attn::AttentionBackwardOp op,
                                  machine::TargetAttr target);

/// Whether the schedule of `op`, which a person may have written, can be
/// executed: warps can share its products; and if the module has a target, a
/// tile fits its memory and registers. An error on `op` says what does not.
mlir::LogicalResult verifySchedule(attn::AttentionOp op);
mlir::LogicalResult verifySchedule(attn::AttentionBackwardOp op);

/// Bytes of one tile's working set on a host under `schedule`: queries,
/// accumulator, keys, values and scores in the type `accumulation`.
int64_t getTileBytes(attn::ScheduleAttr schedule, mlir::Type accumulation,
                     int64_t headDim, int64_t valueDim);

} // namespace fovea

#endif // FOVEA_ANALYSIS_SCHEDULEMODEL_H
