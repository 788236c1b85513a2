//===- TileSequences.h - Tiles of queries of one sequence -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where sequences are packed one after another, a tile of queries at a multiple
// of its size may have the end of one and the beginning of the next: it visits
// the keys of both, and masks all of them. So tiles begin anew where a query
// sees none of the keys of the query in front of it. Of each block of as many
// queries as a tile has, only the last such place counts: what lies between two
// of them is shorter than a tile, and stays in one with what is in front.
//
// A block then has at most two tiles, one that continues a sequence at a
// multiple of the tile's size from its first query, and one that begins a
// sequence. Either may be empty.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILESEQUENCES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILESEQUENCES_H

#include "fovea/Analysis/MaskTables.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// Emits, in front of `pass`, which is not yet tiled, the loops that find its
/// tiles of at most `queryTile` queries, with parts that may differ by steps of
/// `keyTile` keys.
RowTiles findSequenceTiles(mlir::RewriterBase &rewriter, OnlineAttentionOp pass,
                           int64_t queryTile, int64_t keyTile);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILESEQUENCES_H
