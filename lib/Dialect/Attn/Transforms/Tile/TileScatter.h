//===- TileScatter.h - Rows of results that belong elsewhere ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences of several lengths, one packed behind the other, are a batch of the
// longest one's length while attention is computed. A loop behind copies the
// rows that each has to where they belong. The tiles of attention are written
// there at once instead.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILESCATTER_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILESCATTER_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// If nothing reads some results of `loop`, which has a tile of one batch and
/// head in each iteration, but one loop over the batches that copies the first
/// rows of each to a tensor of its own, lets `loop` write these rows there. Its
/// loops over keys have no step where no row of the tile is one. Returns the
/// loop that replaces `loop`, or null if there is no such copy.
mlir::scf::ForallOp fuseScatter(mlir::RewriterBase &rewriter,
                                mlir::scf::ForallOp loop);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILESCATTER_H
