//===- TilePacked.h - Tiles of sequences that lie packed --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences of several lengths, one packed behind the other, are a batch of the
// longest one's length while attention is computed. A loop in front copies each
// one's queries, or its keys or values, to the first rows of its batch, and one
// behind copies the rows of results back. Tiles are read and written where
// sequences lie instead.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEPACKED_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEPACKED_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// If nothing reads results of `loop`, which has a tile of one batch and head
/// in each iteration, but one loop over the batches that copies the first rows
/// of each to a tensor of its own, lets `loop` write these rows there. A tile
/// then has no other rows, and without one its loops over keys have no step.
/// Returns false, and changes nothing of `loop`, if there is no such copy.
bool fuseScatter(mlir::RewriterBase &rewriter, mlir::scf::ForallOp loop);

/// If a tile of one batch and head in `loop` is a slice of what a loop over the
/// batches copies rows to, the first ones of each, lets it be a slice of what
/// these are copied from: where they begin as the rows do that the iteration
/// writes, of which it then has no more than there are.
void fuseGathers(mlir::RewriterBase &rewriter, mlir::scf::ForallOp loop);

/// If `keys`, those or the values of one batch and head in `loop`, are a slice
/// of what a loop over the batches copies rows to, the first ones of each, lets
/// them be the slice of what these are copied from: no more than there are.
void fuseGatherOfKeys(mlir::RewriterBase &rewriter, mlir::scf::ForallOp loop,
                      mlir::Value keys);

/// The rows of a batch.
struct BatchRows {
  mlir::Value count;
  /// How many a query has.
  int64_t ofQuery;
  /// A result of the loop, as its body has it, and the dimension along which
  /// this has the queries of all batches.
  mlir::Value result;
  int64_t dim;
};

/// Returns the rows of a batch, as `fuseScatter` has found them, if an
/// iteration of `loop` writes to all of its results some of these from one on.
std::optional<BatchRows> getRowsOfBatch(mlir::scf::ForallOp loop);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEPACKED_H
