//===- TileVerify.h - What verifiers of tile ops share ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_IR_TILEVERIFY_H
#define FOVEA_LIB_DIALECT_TILE_IR_TILEVERIFY_H

#include "fovea/Dialect/Tile/IR/Tile.h"

namespace fovea::tile {

/// Returns the shape and the element type of a fragment, or a tile in shared
/// memory.
std::pair<llvm::ArrayRef<int64_t>, mlir::Type> getTile(mlir::Type type);

/// Returns the rows of a tile that an op with a fragment of `rows` reads or
/// writes: these, or those of one of the warp groups of its role that run
/// apart.
int64_t getTileRows(mlir::Operation *op, SharedType tile, int64_t rows);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_IR_TILEVERIFY_H
