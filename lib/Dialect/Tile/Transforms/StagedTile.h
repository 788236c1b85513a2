//===- StagedTile.h - Tiles of shared memory for stores ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_STAGEDTILE_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_STAGEDTILE_H

#include "fovea/Dialect/Tile/IR/Tile.h"

namespace fovea::tile {

/// Returns the tiles of shared memory that `store` can go through, from the
/// whole result to the fewest columns of it; none if TMA cannot store it.
llvm::SmallVector<SharedType> getStagedTiles(StoreOp store);

/// Returns true if `store` may write its whole result where the tile `operand`
/// of one iteration lies, which only products read as their left operand: each
/// warp then writes the rows that it alone has read.
bool canTakePlace(StoreOp store, mlir::Value operand);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_STAGEDTILE_H
