//===- SharedAdds.h - Additions that blocks share ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_SHAREDADDS_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_SHAREDADDS_H

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fovea::tile {

/// Returns the loops around `op` in its launch, the outermost first.
llvm::SmallVector<mlir::scf::ForOp> getLoops(mlir::Operation *op);

/// Returns the dimensions of the grid whose blocks `store` to the same
/// addresses.
llvm::SmallVector<unsigned> getSharedDims(LaunchOp launch, StoreOp store);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_SHAREDADDS_H
