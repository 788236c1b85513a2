//===- FewRows.h - Batches of few queries on many keys ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any number of queries is served by tiles of them, one for each block. A few,
// as a prompt of one sequence on a long cache, leave most multiprocessors idle:
// code of their own splits the keys.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_FEWROWS_H
#define FOVEA_ANALYSIS_FEWROWS_H

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Analysis/TileCalls.h"

#include <algorithm>
#include <array>
#include <limits>

namespace fovea {

/// The calls of a function that one code for few rows serves.
struct FewRows : TileCalls {
  /// The rows of a head that such codes are made for: queries, or those of all
  /// heads of a group, and some without one (`attn-pack-groups`). The first one
  /// that serves a call is taken; those in front of the last one serve no more
  /// queries, or those of two tiles where heads are rows. (H200, 32 heads on 8,
  /// d = 128, 4k keys, us, by the first and by the second: 32 queries 22.8
  /// and 29.9, 128 42.4 and 36.3.)
  static constexpr std::array<int64_t, 2> kTypical = {64, 128};
  /// As many keys for each query of a batch, and in all, make up for merging
  /// the parts; where their number is not known there are many.
  static constexpr int64_t kKeysPerQuery = 8, kFewestKeys = 2048;

  /// The most queries of a sequence, or of all that lie packed.
  int64_t mostQueries = std::numeric_limits<int64_t>::max();

  bool contain(int64_t numBatches, int64_t numQueries,
               std::optional<int64_t> numKeys) const {
    int64_t keysPerQuery = batch ? kKeysPerQuery : 0;
    return hasFewTiles(numBatches, numQueries) && numQueries <= mostQueries &&
           (!numKeys ||
            *numKeys >= std::max(kFewestKeys, keysPerQuery * numQueries));
  }
};

/// The same for each number of queries that codes are made for.
using FewRowsOfCodes = std::array<FewRows, FewRows::kTypical.size()>;

/// Returns the calls of `function`, which has one attention without a schedule,
/// of any number of queries, that schedules for few rows are for; none where
/// that cannot be told from sizes of operands, or where the model splits no
/// keys for few. The function is as codes for few have it: queries of a group's
/// heads may be rows of one (`attn-pack-groups`).
FewRowsOfCodes findFewRows(mlir::func::FuncOp function,
                           machine::TargetAttr target,
                           const ScheduleOptions &options);

} // namespace fovea

#endif // FOVEA_ANALYSIS_FEWROWS_H
