//===- TileList.h - Lists of the tiles that sequences have ------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences that lie packed have tiles of queries of their own number, known to
// the device alone. A loop in front lists them:
//
//   tiles[b], end[b]    the tiles that batch b has, and the keys of the last
//   one keys[b, t]          end[b] - (tiles[b] - 1 - t) * the queries of a
//   tile, as
//                       under a causal mask
//   batch[w], tile[w]   those of item w: by the binary digits of the number of
//                       steps that see keys[b, t], then by batches
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILELIST_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILELIST_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// If the batches of `loop`, over batches, heads and tiles of `queryTile` rows,
/// have numbers of rows that tensors decide, lets it run over one batch, heads,
/// and a list of the tiles that have a row. Returns the loop that replaces
/// `loop`, or null if there is no such list.
mlir::scf::ForallOp listTiles(mlir::RewriterBase &rewriter,
                              mlir::scf::ForallOp loop, int64_t queryTile);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILELIST_H
