//===- TileKeys.h - The loop over tiles of keys -----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEKEYS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEKEYS_H

#include "fovea/Analysis/MaskTables.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/PatternMatch.h"

namespace fovea::attn {

/// The effects of the mask on a tiled pass.
struct KeyLoopInfo {
  bool hasMask = false;
  /// True if the loop's bounds leave no tile to skip (MaskBounds::exact).
  bool isExact = true;
};

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

/// Cuts `pass`, already a tile of queries, into an `scf.for` over tiles of
/// `keyTile` keys. The mask gives the bounds of the loop, the condition under
/// which a tile is skipped, unless the bounds are exact, and the condition
/// under which the mask is applied to it. Replaces and erases `pass`.
mlir::FailureOr<KeyLoopInfo> tileKeys(mlir::RewriterBase &rewriter,
                                      OnlineAttentionOp pass, int64_t keyTile,
                                      const MaskTables &tables);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEKEYS_H
