//===- WidenedRings.h - Rings of tiles that a role widens -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_WIDENEDRINGS_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_WIDENEDRINGS_H

#include "fovea/Dialect/Tile/IR/Tile.h"

namespace fovea::tile {

/// Returns true if tiles are widened into the ring's slots.
inline bool holdsWidened(mlir::Value ring) {
  return llvm::any_of(ring.getUsers(), [&](mlir::Operation *user) {
    auto widen = llvm::dyn_cast<WidenIntoOp>(user);
    return widen && widen.getRing() == ring;
  });
}

/// Returns true if the ring's slots hold bytes that are widened.
inline bool holdsBytes(mlir::Value ring) {
  return llvm::any_of(ring.getUsers(), [](mlir::Operation *user) {
    auto wait = llvm::dyn_cast<WaitOp>(user);
    return wait && llvm::any_of(wait->getUsers(), llvm::IsaPred<WidenIntoOp>);
  });
}

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_WIDENEDRINGS_H
