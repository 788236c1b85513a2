//===- FewTiles.h - Calls with few tiles of queries -------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel that serves all lengths has tiles of queries that are best where
// they are many. One short sequence has fewer of them than a machine has
// multiprocessors, and takes as long as the longest: code of its own has
// smaller ones.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_FEWTILES_H
#define FOVEA_ANALYSIS_FEWTILES_H

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Analysis/TileCalls.h"

#include <array>

namespace fovea {

/// The calls of a function that one code for few tiles serves.
struct FewTiles : TileCalls {
  /// The rows of a tile in such codes. The first one that serves a call is
  /// taken. (H200, d = 64, 16 heads, causal, us, by the first, by the second
  /// and by what is usual: 500 8.6, 11.3 and 14.2; 2000 43.5, 26.1 and 34.3.)
  static constexpr std::array<int64_t, 2> kRows = {64, 128};
  /// Keys beyond so many for each query are a cache's, of which heads share
  /// what they read.
  static constexpr int64_t kKeysPerQuery = 2;

  bool contain(int64_t numBatches, int64_t numQueries,
               std::optional<int64_t> numKeys) const {
    return hasFewTiles(numBatches, numQueries) && numKeys && *numKeys >= 0 &&
           *numKeys <= kKeysPerQuery * numQueries;
  }
};

/// The same for each number of rows that codes are made for.
using FewTilesOfCodes = std::array<FewTiles, FewTiles::kRows.size()>;

/// Returns the calls of `function`, which has one attention without a schedule,
/// of any number of queries, that schedules for few tiles are for; none where
/// that cannot be told from sizes of operands, as of sequences that lie packed,
/// or where what is usual has as small tiles.
FewTilesOfCodes findFewTiles(mlir::func::FuncOp function,
                             machine::TargetAttr target,
                             const ScheduleOptions &options);

} // namespace fovea

#endif // FOVEA_ANALYSIS_FEWTILES_H
