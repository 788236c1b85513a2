//===- ScheduleModel.h - Time of attention under a schedule -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model by which schedules are chosen: the cycles of one tile on one core,
// from its vector operations, and the number of tiles of the busiest core. Its
// purpose is to rank schedules; its times are estimates. On a GPU it counts the
// products, softmax and latencies of a block, and the waves of blocks.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_SCHEDULEMODEL_H
#define FOVEA_ANALYSIS_SCHEDULEMODEL_H

#include "fovea/Analysis/CaptureReads.h"
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
  /// The parts in bf16 of operands that a unit for pairs could multiply; else
  /// 0.
  int64_t pairParts = 0;
  /// The fraction of the scores that a mask keeps, in [0, 1].
  double visible = 1.0;
  /// True if tiles between the mask's bounds may be empty, which only a test of
  /// each finds.
  bool isTested = false;
  /// Instructions of a GPU that a score region needs for each score; functions
  /// count by their rate.
  double scoreOps = 0;
  /// What a GPU may read of captured tensors for whole tiles of scores.
  TileReads captures = {};
  /// False if batch, heads or queries are not static, so that their numbers
  /// here are assumed.
  bool hasStaticRows = true;
  /// The rows of a query, if these are of the heads of its group
  /// (`attn-pack-groups`).
  int64_t rowsOfQuery = 1;

  static AttentionShape get(attn::AttentionOp op);
  static AttentionShape get(attn::OnlineAttentionOp op);
  static AttentionShape get(attn::AttentionBackwardOp op);
};

/// Returns how many products of matrices in bf16 a host computes for each of an
/// attention on operands of `parts` parts in bf16: one for bf16, three for f16
/// where these are faster than one in f32, and 0 where vectors of the
/// accumulation type multiply.
int64_t countPairProducts(int64_t parts, machine::TargetAttr target);

/// Returns the fraction of the keys, in [0, 1], that lie between the bounds
/// that the mask analysis finds for blocks of queries, in the first batch and
/// head. Scores that depend on captured values count as kept.
double estimateVisible(mlir::Region &mask, int64_t queries, int64_t keys);

/// Returns the estimated seconds of one attention of `shape` on `target` under
/// `schedule`.
double predictSeconds(const AttentionShape &shape, machine::TargetAttr target,
                      attn::ScheduleAttr schedule);

/// Returns the element type in which a GPU multiplies queries, keys, values and
/// the output's gradient, to which `attn-match-operands` converts them. It is
/// the narrowest type that represents all numbers of queries, keys and values;
/// but f32 instead of f16 where the gradient is not f16, since f16 lacks the
/// range of gradients.
mlir::FloatType getProductType(attn::AttentionOp op);
mlir::FloatType getProductType(attn::AttentionBackwardOp op);

/// Returns the reason for which no schedule can be chosen for `op` on `target`,
/// with any tile, or nullopt: on GPUs head dims must be multiples of 8 up to
/// 256.
std::optional<std::string> getUnfitReason(attn::AttentionOp op,
                                          machine::TargetAttr target);
/// Returns the same for the gradients of attention on a GPU. In addition,
/// captured tensors with gradients must not be read in regions nested in the
/// score region.
std::optional<std::string> getUnfitReason(attn::AttentionBackwardOp op,
                                          machine::TargetAttr target);

/// Returns the reason for which `op` is not computed by a schedule, not even by
/// one that a person wrote, or nullopt: on GPUs head dims must be known and up
/// to 256.
std::optional<std::string> getScheduleObstacle(attn::AttentionOp op,
                                               machine::TargetAttr target);
std::optional<std::string> getScheduleObstacle(attn::AttentionBackwardOp op,
                                               machine::TargetAttr target);

/// Elementwise or row-wise work that makes the keys or values of one attention.
struct KeyProducer {
  /// Scalar operations, including memory accesses, to make all keys once.
  double operations = 0;
  /// Bytes of the result.
  double bytes = 0;
  /// The number of times that a key is read: by each tile of queries of each
  /// head that shares it, in each pass over the keys.
  double reads = 0;

  /// Adds an op; the first op added makes the tensor that attention reads.
  void add(mlir::Operation *op);
};

/// Returns the estimated seconds saved by computing keys or values each time
/// they are read, instead of once in a kernel that writes them to memory: the
/// traffic and the start of that kernel, less all computations but one.
/// Negative where a separate kernel is faster.
double predictGainInLoads(const KeyProducer &producer,
                          machine::TargetAttr target);

/// A schedule that a target can execute.
struct ScheduleChoice {
  attn::ScheduleAttr schedule;
  /// The predicted time; nullopt where the model ranks without one.
  std::optional<double> seconds;
};

/// The lengths that a GPU's dynamic ones are taken for: one kernel serves all
/// of them, and has to be good for short ones, too.
inline constexpr int64_t kUsualLength = 4096;

/// What a schedule of attention is chosen by, beside the op and the target.
struct ScheduleOptions {
  /// Passes over the keys; on a GPU each has tiles of its own.
  int64_t passes = 1;
  /// True if no operand of f32 is split into parts.
  bool exactProducts = false;
  /// The lengths that a GPU's dynamic ones are taken for; 0: `kUsualLength`. If
  /// they are shorter than is usual, a dynamic batch is taken for many
  /// sequences.
  int64_t typicalLength = 0;
  /// The rows of a head of all sequences of a GPU's dynamic batch, if they are
  /// few: queries, or those of a group's heads; 0: they are not.
  int64_t typicalRows = 0;
  /// The rows of a GPU's tiles of queries, if a dynamic batch has so few that
  /// all are busy at once (`countFewTiles`); 0: they are not.
  int64_t tileRows = 0;
};

/// Returns how many tiles of all heads are few: one for each multiprocessor, or
/// two where blocks get them when they are free, as one may be much shorter.
int64_t countFewTiles(attn::Blocks blocks, machine::TargetAttr target);

/// Returns the schedules whose tile fits the target, those with the least
/// predicted time first: a host's near memory; a GPU's registers and shared
/// memory. Empty if no tile fits.
llvm::SmallVector<ScheduleChoice>
listSchedules(attn::AttentionOp op, machine::TargetAttr target,
              const ScheduleOptions &options = {});
/// Returns the same for the gradients of attention, without `gradients`.
llvm::SmallVector<ScheduleChoice> listSchedules(attn::AttentionBackwardOp op,
                                                machine::TargetAttr target);

/// Returns the first of these schedules; null if there is none.
attn::ScheduleAttr selectSchedule(attn::AttentionOp op,
                                  machine::TargetAttr target,
                                  const ScheduleOptions &options = {});
attn::ScheduleAttr selectSchedule(attn::AttentionBackwardOp op,
                                  machine::TargetAttr target);

/// Returns the attentions that have no schedule yet, and the backward passes
/// that may have one, in the order of the text: those that
/// `attn-select-schedule` chooses for.
llvm::SmallVector<mlir::Operation *> findUnscheduled(mlir::Operation *root);
/// Returns how work items under `schedule` divide the sums of `op`; with
/// `deterministic`, sums in a GPU's memory have a fixed order. Appends a remark
/// for each captured tensor for which that takes memory or launches of its own.
attn::GradientsAttr
selectGradients(attn::AttentionBackwardOp op, attn::ScheduleAttr schedule,
                machine::TargetAttr target, bool deterministic,
                llvm::SmallVectorImpl<std::string> &remarks);

/// Succeeds if the schedule of `op`, which a person may have written, can be
/// executed: warps can share its products and, if the module has a target, a
/// tile, or on a GPU those of all passes over the keys, fits its memory and
/// registers. Emits an error on `op` that names the part that does not fit.
mlir::LogicalResult verifySchedule(attn::AttentionOp op, int64_t passes = 1);
mlir::LogicalResult verifySchedule(attn::OnlineAttentionOp op);
mlir::LogicalResult verifySchedule(attn::AttentionBackwardOp op);

/// Returns true if `queries` in lanes would leave half of a vector empty or
/// more, so that a host's lanes have features instead.
constexpr bool hasFewQueries(int64_t queries, int64_t lanes) {
  return 2 * queries <= lanes;
}

/// Returns the bytes of one tile's working set on a host under `schedule`:
/// queries, accumulator, keys, values and scores in the type `accumulation`.
int64_t getTileBytes(attn::ScheduleAttr schedule, mlir::Type accumulation,
                     int64_t headDim, int64_t valueDim);

} // namespace fovea

#endif // FOVEA_ANALYSIS_SCHEDULEMODEL_H
