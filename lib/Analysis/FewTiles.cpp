//===- FewTiles.cpp - Calls with few tiles of queries ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/FewTiles.h"

#include "fovea/Analysis/PackedQueries.h"
#include "fovea/Support/DebugLog.h"

#define DEBUG_TYPE "attn-select-schedule"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

FewTilesOfCodes fovea::findFewTiles(func::FuncOp function,
                                    machine::TargetAttr target,
                                    const ScheduleOptions &options) {
  AttentionOp op = findAttentionOfAnyLength(function);
  if (!op || getPackedQueries(op))
    return {};
  RankedTensorType query = op.getQuery().getType();
  if (query.getDimSize(1) == 0)
    return {};
  ScheduleAttr usual = selectSchedule(op, target, options);
  if (!usual)
    return {};
  Value whole = getQueriesOfHeads(op);
  FewTiles few;
  if (query.isDynamicDim(0)) {
    few.batch = SizePlace::find(function, whole, 0);
    if (!few.batch)
      return {};
  } else if (query.getDimSize(0) != 1) {
    return {};
  }
  auto queries = SizePlace::find(function, whole, 2),
       keys = SizePlace::find(function, op.getKey(), 2);
  if (!queries || !keys)
    return {};
  few.queries = *queries;
  few.keys = keys;
  FewTilesOfCodes codes;
  for (auto [rows, code] : llvm::zip_equal(FewTiles::kRows, codes)) {
    ScheduleOptions forFew = options;
    forFew.tileRows = rows;
    ScheduleAttr schedule = selectSchedule(op, target, forFew);
    if (!schedule || schedule.getQueryTile() >= usual.getQueryTile() ||
        schedule.isSplit())
      continue;
    code = few;
    code.tile = std::max<int64_t>(rows / countRowsOfQuery(op), 1);
    code.mostTiles =
        countFewTiles(schedule.getBlocks(), target) / query.getDimSize(1);
    LDBG() << function.getName() << ": up to " << code.mostTiles
           << " tiles of a head have " << schedule;
  }
  return codes;
}
