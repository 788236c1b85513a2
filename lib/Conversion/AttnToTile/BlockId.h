//===- BlockId.h - Number of the block of a launch that runs ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_BLOCKID_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_BLOCKID_H

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Tile/IR/Tile.h"

namespace fovea {

/// Returns the number of the block in dimension `dim` of the grid. It is a
/// constant if the dimension has one block only, so that loops without
/// iterations are known before warps get roles.
inline mlir::OpFoldResult getBlockId(const IndexMath &index,
                                     tile::LaunchOp launch, unsigned dim) {
  if (mlir::getConstantIntValue(launch.getGrid()[dim]) == 1)
    return index.constant(0);
  return launch.getBlockIds()[dim];
}

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_BLOCKID_H
