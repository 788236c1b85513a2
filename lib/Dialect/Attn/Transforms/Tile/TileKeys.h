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

/// What became of the mask of a tiled pass.
struct KeyLoopInfo {
  bool hasMask = false;
  /// The loop's bounds leave no tile to skip (MaskBounds::exact).
  bool isExact = true;
};

/// Where a tile along a dimension begins, and how much of it there is.
struct TileSpan {
  mlir::OpFoldResult offset, size;
};

/// The tile of `size` at `place`, without what lies before `first`, if that is
/// given, and from `end` on. Some of it must be left.
TileSpan clipTile(mlir::OpBuilder &builder, mlir::Location loc,
                  mlir::Value place, int64_t size,
                  std::optional<mlir::OpFoldResult> first,
                  mlir::OpFoldResult end);

/// Cuts `pass`, already a tile of queries, into an `scf.for` over tiles of
/// `keyTile` keys. From its mask come the bounds of the loop, the condition
/// under which a tile is skipped, unless the bounds are exact, and the
/// condition under which the mask is applied to it. Replaces and erases `pass`.
mlir::FailureOr<KeyLoopInfo> tileKeys(mlir::RewriterBase &rewriter,
                                      OnlineAttentionOp pass, int64_t keyTile,
                                      const MaskTables &tables);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILE_TILEKEYS_H
