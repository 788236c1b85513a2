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
    few = {std::nullopt, *queries, keys,
           std::max<int64_t>(schedule.getQueryTile() / rows, 1)};
    // More keep the machine busy as they are.
    few.mostTiles = target.getCores() / op.getQuery().getType().getDimSize(1);
    if (number + 1 < codes.size())
      few.mostQueries = FewRows::kTypical[number] / rows;
    LDBG() << function.getName() << ": few packed queries have " << schedule;
    next = schedule;
  }
  return codes;
}

/// Returns the most queries of a sequence that such a code serves, of so many
/// rows each: as many as it is made for, and where heads are rows those of two
/// of its tiles (H200, 32 heads on 8, 32 queries on 4k: 15.5 us, by one tile of
/// the next code 18.1).
static int64_t getMostQueries(size_t number, int64_t rows) {
  return FewRows::kTypical[number] * (rows > 1 ? 2 : 1) / rows;
}

FewRowsOfCodes fovea::findFewRows(func::FuncOp function,
                                  machine::TargetAttr target,
                                  const ScheduleOptions &options) {
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
    few = {batch, *queries, keys,
           std::max<int64_t>(schedule.getQueryTile() / rows, 1)};
    // Of more tiles each has no two parts that are busy at once.
    few.mostTiles = target.getCores() / (2 * query.getDimSize(1));
    if (number + 1 < codes.size())
      few.mostQueries = getMostQueries(number, rows);
    LDBG() << function.getName() << ": up to " << few.mostTiles
           << " tiles of a head have " << schedule;
    next = schedule;
  }
  return codes;
}
