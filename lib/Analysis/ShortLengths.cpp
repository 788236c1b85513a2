//===- ShortLengths.cpp - Lengths that have code of their own -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/ShortLengths.h"

#include "GpuScheduleModel.h"

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

ShortLengths fovea::findShortLengths(func::FuncOp function,
                                     machine::TargetAttr target,
                                     const ScheduleOptions &options) {
  // What other schedules must save: the model may be off by as much (causal
  // attention of 896: predicted 0.97, measured 1.05).
  constexpr double kGain = 0.965;
  ScheduleOptions forShort = options;
  forShort.typicalLength = kShortLength;
  struct Choice {
    AttentionOp op;
    ScheduleAttr usual, forShort;
  };
  SmallVector<Choice> choices;
  ShortLengths found;
  WalkResult result = function.walk([&](AttentionOp op) {
    // With parts of fixed sizes a row has the same bits whatever the lengths.
    if (op.getSchedule() || op.getSplitSize() ||
        !op.getQuery().getType().isDynamicDim(2))
      return WalkResult::advance();
    Choice choice = {op, selectSchedule(op, target, options),
                     selectSchedule(op, target, forShort)};
    // Other differences gain little (d = 64 and 256, H100: 1%), and larger
    // tiles leave multiprocessors idle where a batch is small.
    if (!choice.usual || !choice.forShort ||
        choice.usual.getQueryTile() <= choice.forShort.getQueryTile())
      return WalkResult::advance();
    std::optional<SizePlace> place =
        SizePlace::find(function, op.getQuery(), 2);
    if (!place)
      return WalkResult::interrupt();
    choices.push_back(choice);
    found.places.push_back(*place);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return {};
  for (int64_t length = ShortLengths::kStep; length <= ShortLengths::kLongest;
       length += ShortLengths::kStep) {
    double usual = 0, shorter = 0;
    bool isEven = true;
    for (const Choice &choice : choices) {
      isEven &= areEven(choice.forShort, length);
      usual += predictGpuSeconds(choice.op, target, choice.usual, length);
      shorter += predictGpuSeconds(choice.op, target, choice.forShort, length);
    }
    LDBG() << function.getName() << ", length " << length << ": " << usual * 1e6
           << " us, with schedules for short lengths " << shorter * 1e6;
    if (isEven && shorter < kGain * usual)
      found.add(length);
  }
  return found.steps ? found : ShortLengths();
}
