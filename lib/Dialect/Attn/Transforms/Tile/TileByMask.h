//===- TileByMask.h - Loops over tiles that a mask keeps --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEBYMASK_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEBYMASK_H

#include "fovea/Analysis/MaskTables.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// The effects of the mask on a tiled pass.
struct MaskedLoopInfo {
  bool hasMask = false;
  /// True if the loop's bounds leave no tile to skip (MaskBounds::exact).
  bool isExact = true;
};

/// One of `count` parts of the keys or, with `size`, of those between the
/// multiples of so many keys, from the first that the mask keeps on.
struct KeyPart {
  mlir::OpFoldResult number, count;
  int64_t size = 0;
};

/// Cuts `pass`, already a tile of queries, into an `scf.for` over tiles of
/// `size` keys, or over a part of these tiles. The mask gives the bounds of the
/// loop, the condition under which a tile is skipped, unless the bounds are
/// exact, and the condition under which the mask is applied to it. With
/// `cutsTiles` tiles end where bounds that say all end, and need no mask: a
/// GPU's tiles are whole. With `fromFirst` the first tile begins at the first
/// key that the mask keeps, and not at a multiple of the size. With `rows` the
/// loop visits what the mask keeps of any of these, which other tiles of
/// queries share. Replaces and erases `pass`.
mlir::FailureOr<MaskedLoopInfo>
tileByMask(mlir::RewriterBase &rewriter, OnlineAttentionOp pass, int64_t size,
           const MaskTables &tables, bool cutsTiles,
           std::optional<KeyPart> part = {}, bool fromFirst = false,
           std::optional<Span> rows = {});
/// Does the same to a tile of queries `along` keys, or to a tile of keys
/// `along` rows.
mlir::FailureOr<MaskedLoopInfo> tileByMask(mlir::RewriterBase &rewriter,
                                           OnlineBackwardOp pass,
                                           Coordinate along, int64_t size,
                                           const MaskTables &tables,
                                           bool cutsTiles);

/// Returns the first place of a part's tiles of `size` from `lower` on, and the
/// end of the last of them. Parts of no given size have as many tiles, and the
/// first ones one more, until none is left.
std::pair<mlir::OpFoldResult, mlir::OpFoldResult>
getTilesOf(IndexMath &math, const KeyPart &part, mlir::OpFoldResult lower,
           mlir::OpFoldResult upper, int64_t size);

/// Emits the number of tiles of `size` keys, or of parts of a size, that the
/// mask keeps of any query of `batch`, of a pass that is not yet tiled.
mlir::Value countKeyTiles(mlir::OpBuilder &builder, OnlineAttentionOp pass,
                          mlir::Value batch, int64_t size);

/// The start of a tile along a dimension, and its size.
struct TileSpan {
  mlir::OpFoldResult offset, size;
};

/// Returns the tile of `size` at `place`, without the part before `first`, if
/// that is given, and the part from `end` on. The rest must not be empty.
TileSpan clipTile(mlir::OpBuilder &builder, mlir::Location loc,
                  mlir::Value place, int64_t size,
                  std::optional<mlir::OpFoldResult> first,
                  mlir::OpFoldResult end);

/// Returns the sizes of the scores of `pass`: batches, heads, queries, keys.
llvm::SmallVector<mlir::OpFoldResult> getScoreSizes(mlir::OpBuilder &builder,
                                                    OnlineAttentionOp pass);
llvm::SmallVector<mlir::OpFoldResult> getScoreSizes(mlir::OpBuilder &builder,
                                                    OnlineBackwardOp pass);

/// Emits `tile`, a tile of an op whose destinations are the running values of a
/// loop, into these: returns the new running values.
llvm::SmallVector<mlir::Value> insertTiles(mlir::OpBuilder &builder,
                                           mlir::Operation *tile);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEBYMASK_H
