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
//   tiles[b], end[b]    the tiles that batch b has, and the end of the keys of
//                       the last one
//   keys[b, t]          end[b] - (tiles[b] - 1 - t) * the queries of a tile, as
//                       under a causal mask
//   batch[w], tile[w]   those of item w: by the class of keys[b, t], the binary
//                       digits of the number of steps that see them, of which
//                       few are one class, then by batches
//
// The tiles of a batch in one class follow one another, and a program of the
// loop finds where: behind those of greater classes, and of that of batches in
// front, which are sums over batches. So it does not matter how many tiles the
// longest sequence may have; how many all have is bounded by the rows that they
// write.
//
// Where keys are split, into n parts that keep a machine busy at once, tiles
// that see more than `target` keys are several items, which come first:
//
//   total               the sum of keys[b, t], each at most the last one's
//   target              total / n; where all tiles are few, so many that each
//                       tile of as many keys has as many parts, of one or two
//                       items for each of the n
//   parts[b]            of each tile of b with more keys: the last one's, by
//                       the target, rounded up; less than an eighth of it is
//                       no part
//   number[w], count[w] which part item w is, and of how many
//   first[s]            the first item of such a tile s, for the loop that
//                       merges them
//
// There are less than n such tiles, and at most 6n items of them: all have less
// than three parts for each `target` that they see, since the tiles of a batch
// see at least half of what its last one does, and n is at most doubled.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILELIST_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILELIST_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// If the batches of `loop`, over batches, heads and tiles of `queryTile` rows,
/// have numbers of rows that tensors decide, lets it run over one batch, heads,
/// and a list of the tiles that have a row; or of parts of their keys, if
/// `split` is more than 1, and nothing else is computed of the tiles. Returns
/// the loop that replaces `loop`, or null if there is no such list.
mlir::scf::ForallOp listTiles(mlir::RewriterBase &rewriter,
                              mlir::scf::ForallOp loop, int64_t queryTile,
                              int64_t split);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILELIST_H
