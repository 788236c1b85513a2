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
#include "fovea/Analysis/SizePlace.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace fovea {

/// The calls of a function that code for few rows serves.
struct FewRows {
  /// The queries that such code is made for.
  static constexpr int64_t kTypical = 128;
  /// As many keys for each query, and in all, make up for merging the parts.
  static constexpr int64_t kKeysPerQuery = 8, kFewestKeys = 2048;

  SizePlace batch, queries;
  /// None where the number of keys is no operand's size, as that of a table of
  /// pages; there are many then.
  std::optional<SizePlace> keys;
  /// The queries of a tile, and the most tiles of a head, of all sequences; 0:
  /// no call is served.
  int64_t tile = 1, mostTiles = 0;

  bool contain(int64_t numBatches, int64_t numQueries,
               std::optional<int64_t> numKeys) const {
    return numBatches > 0 && numQueries > 0 && numBatches <= mostTiles &&
           int64_t(llvm::divideCeil(numQueries, tile)) * numBatches <=
               mostTiles &&
           (!numKeys ||
            *numKeys >= std::max(kFewestKeys, kKeysPerQuery * numQueries));
  }
};

/// Returns the calls of `function`, which has one attention without a schedule,
/// of any number of queries, that a schedule for few rows is for; none where
/// that cannot be told from sizes of operands, or where the model splits no
/// keys for few.
FewRows findFewRows(mlir::func::FuncOp function, machine::TargetAttr target,
                    const ScheduleOptions &options);

} // namespace fovea

#endif // FOVEA_ANALYSIS_FEWROWS_H
