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

/// Returns the tile of shared memory that `store` can go through; null if TMA
/// cannot store it.
SharedType getStagedTile(StoreOp store);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_STAGEDTILE_H
