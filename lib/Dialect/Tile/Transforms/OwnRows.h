//===- OwnRows.h - Rows that warp groups own --------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_OWNROWS_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_OWNROWS_H

#include "fovea/Dialect/Tile/IR/Tile.h"

namespace fovea::tile {

/// The rows of the share of a warp in a `wgmma` product.
inline constexpr int64_t kWarpRows = kGroupRows / kGroupWarps;

/// Returns the reason for which the warp groups of `role` do not each own 64
/// rows of all its fragments, of `rows` rows, without those of others; nullopt
/// if they do.
std::optional<llvm::StringRef> findSharedRows(RoleOp role, int64_t rows);

/// Moves the place of a tile, which `op` copies from or to global memory along
/// `dims`, by so many rows, a multiple of 64.
void moveRows(mlir::OpBuilder &builder, mlir::Operation *op,
              mlir::MutableOperandRange indices, llvm::ArrayRef<int64_t> dims,
              mlir::Value distance);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_OWNROWS_H
