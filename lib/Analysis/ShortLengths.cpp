//===- ShortLengths.cpp - Lengths that have code of their own -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/ShortLengths.h"

#include "GpuScheduleModel.h"

#include "fovea/Analysis/PackedQueries.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Interfaces/ValueBoundsOpInterface.h"

#define DEBUG_TYPE "short-lengths"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Returns true if blocks that take tiles as they are numbered have as much to
/// do: under a mask, one of a head's two tiles takes most of its time (causal
/// attention of 256, d = 128, H100: 166 TFLOP/s to 158).
static bool areEven(ScheduleAttr schedule, int64_t length) {
  constexpr int64_t kTwoTiles = 2;
  return schedule.getOrder() != WorkOrder::LongestFirst ||
         schedule.getBlocks() == Blocks::Dealt ||
         length > kTwoTiles * schedule.getQueryTile();
}

namespace {
/// One attention in the usual code, and in that for short lengths.
struct Choice {
  AttentionOp usual, forShort;
  ScheduleAttr usualSchedule, shortSchedule;
  /// The rows of a query in the latter.
  int64_t rows;

  /// Returns true if its tiles have fewer queries in the latter. Other
  /// differences gain little (d = 64 and 256, H100: 1%), and larger tiles leave
  /// multiprocessors idle where a batch is small.
  bool hasSmallerTiles() const {
    return usualSchedule && shortSchedule &&
           usualSchedule.getQueryTile() * rows > shortSchedule.getQueryTile();
  }
};
} // namespace

static SmallVector<AttentionOp> findAttentions(func::FuncOp function) {
  SmallVector<AttentionOp> ops;
  function.walk([&](AttentionOp op) { ops.push_back(op); });
  return ops;
}

/// Returns true if a step's lengths up to `length` take less time by schedules
/// for short ones.
static bool isFaster(ArrayRef<Choice> choices, machine::TargetAttr target,
                     int64_t length) {
  // What other schedules must save: the model may be off by as much (causal
  // attention of 896: predicted 0.97, measured 1.05; packed queries of 24 heads
  // on 4, 16 of 128 on 4k: 0.94, and 1.09).
  constexpr double kGain = 0.965, kPackedGain = 0.93;
  double usual = 0, shorter = 0, gain = kGain;
  for (const Choice &choice : choices) {
    if (getPackedQueries(choice.usual))
      gain = kPackedGain;
    bool areHeads = choice.rows > 1;
    if (!areHeads && !areEven(choice.shortSchedule, length))
      return false;
    // Tiles of whole queries have empty rows at most lengths, few of which are
    // multiples of a tile.
    int64_t samples = areHeads ? 2 : 1;
    for (int64_t sample = 0; sample < samples; ++sample) {
      int64_t at = length - sample * ShortLengths::getStep(length) / 2;
      usual +=
          predictGpuSeconds(choice.usual, target, choice.usualSchedule, at) /
          double(samples);
      shorter +=
          predictGpuSeconds(choice.forShort, target, choice.shortSchedule, at) /
          double(samples);
    }
  }
  LDBG() << "length " << length << ": " << usual * 1e6
         << " us, with schedules for short lengths " << shorter * 1e6;
  return shorter < gain * usual;
}

ShortLengths fovea::findShortLengths(func::FuncOp usual, func::FuncOp forShort,
                                     machine::TargetAttr target,
                                     const ScheduleOptions &options) {
  ScheduleOptions shortOptions = options;
  shortOptions.typicalLength = kShortLength;
  SmallVector<Choice> choices;
  ShortLengths found;
  SmallVector<AttentionOp> usualOps = findAttentions(usual),
                           shortOps = findAttentions(forShort);
  if (usualOps.size() != shortOps.size())
    return {};
  for (auto [usualOp, shortOp] : llvm::zip_equal(usualOps, shortOps)) {
    // With parts of fixed sizes a row has the same bits whatever the lengths.
    if (usualOp.getSchedule() || usualOp.getSplitSize() ||
        !usualOp.getQuery().getType().isDynamicDim(2))
      continue;
    Choice choice = {usualOp, shortOp, selectSchedule(usualOp, target, options),
                     selectSchedule(shortOp, target, shortOptions),
                     countRowsOfQuery(shortOp) / countRowsOfQuery(usualOp)};
    Value queries = usualOp.getQuery(), packed = getPackedQueries(usualOp);
    if (!choice.hasSmallerTiles())
      continue;
    if (packed) {
      // Sequences of several attentions may have other means.
      found.sequences = SizePlace::find(usual, queries, 0);
      if (!found.sequences || usualOps.size() > 1)
        return {};
      queries = packed;
    }
    std::optional<SizePlace> place = SizePlace::find(usual, queries, 2);
    if (!place)
      return {};
    choices.push_back(choice);
    found.places.push_back(*place);
  }
  if (choices.empty())
    return {};
  for (int64_t length = ShortLengths::kFineStep;
       length <= ShortLengths::kLongest;
       length += ShortLengths::getStep(length + 1))
    if (isFaster(choices, target, length))
      found.add(length);
  return found.steps ? found : ShortLengths();
}
