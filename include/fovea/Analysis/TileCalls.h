//===- TileCalls.h - Calls by their tiles of queries ------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What says of a call that it has few tiles of queries: sizes of its operands.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_TILECALLS_H
#define FOVEA_ANALYSIS_TILECALLS_H

#include "fovea/Analysis/SizePlace.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "llvm/Support/MathExtras.h"

namespace fovea {

/// Calls of a function by the tiles of queries that they have.
struct TileCalls {
  /// The number of batches, and of queries of each; without one, those of the
  /// only batch, or, of sequences that lie packed, the number of all queries.
  std::optional<SizePlace> batch;
  SizePlace queries;
  /// None where the number of keys is no operand's size, as that of a table of
  /// pages.
  std::optional<SizePlace> keys;
  /// The queries of a tile, and the most tiles of a head, of all sequences; 0:
  /// no call is served.
  int64_t tile = 1, mostTiles = 0;

  bool hasFewTiles(int64_t numBatches, int64_t numQueries) const {
    return numBatches > 0 && numQueries > 0 && numBatches <= mostTiles &&
           int64_t(llvm::divideCeil(numQueries, tile)) * numBatches <=
               mostTiles;
  }
};

/// Returns the only attention of `function`, if it has no schedule, as many
/// heads as its type says, and any number of queries; else null.
attn::AttentionOp findAttentionOfAnyLength(mlir::func::FuncOp function);

} // namespace fovea

#endif // FOVEA_ANALYSIS_TILECALLS_H
