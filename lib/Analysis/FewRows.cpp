//===- FewRows.cpp - Batches of few queries on many keys ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/FewRows.h"

#include "fovea/Analysis/PackedQueries.h"
#include "fovea/Support/DebugLog.h"

#define DEBUG_TYPE "attn-select-schedule"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Returns the calls of few packed queries, of any number of sequences, which
/// have parts in the list of their tiles.
static FewRows findFewPacked(func::FuncOp function, AttentionOp op,
                             Value packed, machine::TargetAttr target,
                             ScheduleOptions options) {
  auto queries = SizePlace::find(function, packed, 2);
  options.typicalRows = FewRows::kTypical.back();
  ScheduleAttr schedule =
      queries ? selectSchedule(op, target, options) : ScheduleAttr();
  if (!schedule || schedule.getBlocks() != Blocks::Dealt ||
      schedule.getSplit() < 2)
    return {};
  LDBG() << function.getName() << ": few packed queries have " << schedule;
  FewRows few = {std::nullopt, *queries,
                 SizePlace::find(function, op.getKey(), 2)};
  few.tile =
      std::max<int64_t>(schedule.getQueryTile() / countRowsOfQuery(op), 1);
  // More keep the machine busy as they are.
  few.mostTiles = target.getCores() / op.getQuery().getType().getDimSize(1);
  return few;
}

FewRowsOfCodes fovea::findFewRows(func::FuncOp function,
                                  machine::TargetAttr target,
                                  const ScheduleOptions &options) {
  // Waves of blocks that parts of more tiles would be. (H200, 32 heads on 8, d
  // = 128, 8k keys in 4 parts, us: 64 queries 89.5 to 32, 256, of two waves, 90
  // to 84, in 8 parts 104.)
  constexpr int64_t kMostWaves = 2;
  SmallVector<AttentionOp> ops;
  function.walk([&](AttentionOp op) { ops.push_back(op); });
  if (ops.size() != 1)
    return {};
  AttentionOp op = ops.front();
  RankedTensorType query = op.getQuery().getType();
  // With parts of fixed sizes a row has the same bits whatever the lengths.
  if (op.getSchedule() || op.getSplitSize() || !query.isDynamicDim(0) ||
      !query.isDynamicDim(2) || query.isDynamicDim(1))
    return {};
  if (Value packed = getPackedQueries(op)) {
    FewRowsOfCodes codes;
    codes.back() = findFewPacked(function, op, packed, target, options);
    return codes;
  }
  auto batch = SizePlace::find(function, op.getQuery(), 0),
       queries = SizePlace::find(function, op.getQuery(), 2),
       keys = SizePlace::find(function, op.getKey(), 2);
  if (!batch || !queries)
    return {};
  FewRowsOfCodes codes;
  ScheduleAttr next;
  for (size_t number = codes.size(); number-- > 0;) {
    ScheduleOptions forFew = options;
    forFew.typicalRows = FewRows::kTypical[number];
    ScheduleAttr schedule = selectSchedule(op, target, forFew);
    // The same code may serve all.
    if (!schedule || !schedule.isSplit() || schedule == next)
      continue;
    FewRows &few = codes[number];
    few = {batch, *queries, keys, schedule.getQueryTile()};
    int64_t heads = query.getDimSize(1);
    few.mostTiles = std::min(target.getCores() / (2 * heads),
                             kMostWaves * target.getCores() /
                                 (heads * schedule.getSplit()));
    if (number + 1 < codes.size())
      few.mostQueries = FewRows::kTypical[number];
    LDBG() << function.getName() << ": up to " << few.mostTiles
           << " tiles of a head have " << schedule;
    next = schedule;
  }
  return codes;
}
