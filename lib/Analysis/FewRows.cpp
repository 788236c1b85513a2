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
static FewRowsOfCodes findFewPacked(func::FuncOp function, AttentionOp op,
                                    Value packed, machine::TargetAttr target,
                                    ScheduleOptions options) {
  auto queries = SizePlace::find(function, packed, 2),
       keys = SizePlace::find(function, op.getKey(), 2);
  if (!queries)
    return {};
  FewRowsOfCodes codes;
  ScheduleAttr next;
  int64_t rows = countRowsOfQuery(op);
  for (size_t number = codes.size(); number-- > 0;) {
    options.typicalRows = FewRows::kTypical[number];
    ScheduleAttr schedule = selectSchedule(op, target, options);
    if (!schedule || schedule.getBlocks() != Blocks::Dealt ||
        schedule.getSplit() < 2 || schedule == next)
      continue;
    FewRows &few = codes[number];
    few = {{std::nullopt, *queries, keys,
            std::max<int64_t>(schedule.getQueryTile() / rows, 1)}};
    // More keep the machine busy as they are.
    few.mostTiles = target.getCores() / op.getQuery().getType().getDimSize(1);
    if (number + 1 < codes.size())
      few.mostQueries = FewRows::kTypical[number] / rows;
    LDBG() << function.getName() << ": few packed queries have " << schedule;
    next = schedule;
  }
  return codes;
}

/// The most tiles whose rows are heads of a group that code for the fewest rows
/// serves (H200, 32 heads on 8, us, by it and by the next one: 1 x 32 on 4k
/// 13.8 and 18.1, 2 x 32 on 8k 35.8 and 31.8, 4 x 24 on 4k 38.4 and 31.5).
static constexpr int64_t kMostTilesOfHeads = 2;

FewRowsOfCodes fovea::findFewRows(func::FuncOp function,
                                  machine::TargetAttr target,
                                  const ScheduleOptions &options) {
  AttentionOp op = findAttentionOfAnyLength(function);
  if (!op || !op.getQuery().getType().isDynamicDim(0))
    return {};
  RankedTensorType query = op.getQuery().getType();
  if (Value packed = getPackedQueries(op))
    return findFewPacked(function, op, packed, target, options);
  Value whole = getQueriesOfHeads(op);
  auto batch = SizePlace::find(function, whole, 0),
       queries = SizePlace::find(function, whole, 2),
       keys = SizePlace::find(function, op.getKey(), 2);
  if (!batch || !queries)
    return {};
  FewRowsOfCodes codes;
  ScheduleAttr next;
  int64_t rows = countRowsOfQuery(op);
  for (size_t number = codes.size(); number-- > 0;) {
    ScheduleOptions forFew = options;
    forFew.typicalRows = FewRows::kTypical[number];
    ScheduleAttr schedule = selectSchedule(op, target, forFew);
    // The same code may serve all.
    if (!schedule || !schedule.isSplit() || schedule == next)
      continue;
    FewRows &few = codes[number];
    few = {{batch, *queries, keys,
            std::max<int64_t>(schedule.getQueryTile() / rows, 1)}};
    // Of more tiles each has no two parts that are busy at once.
    few.mostTiles = target.getCores() / (2 * query.getDimSize(1));
    if (number + 1 < codes.size()) {
      few.mostQueries = FewRows::kTypical[number];
      // Of rows that are heads all are one sequence's.
      if (rows > 1) {
        few.mostTiles = std::min(few.mostTiles, kMostTilesOfHeads);
        few.mostQueries = kMostTilesOfHeads * few.tile;
      }
    }
    LDBG() << function.getName() << ": up to " << few.mostTiles
           << " tiles of a head have " << schedule;
    next = schedule;
  }
  return codes;
}
