//===- TileWarps.cpp - Division of a product among warps ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/IR/Warps.h"

#include <numeric>

using namespace fovea;
using namespace fovea::tile;

WarpGrid WarpGrid::get(int64_t rows, int64_t warps) {
  int64_t rowWarps = std::gcd(std::max<int64_t>(rows / 16, 1), warps);
  return {rowWarps, warps / rowWarps};
}

bool WarpGrid::divides(int64_t tileRows, int64_t tileColumns) const {
  return tileRows % (16 * rows) == 0 && tileColumns % (8 * columns) == 0;
}

bool WarpGrid::canUseWgmma(const machine::GpuArch &arch, int64_t tileColumns,
                           int64_t panel) const {
  int64_t width = tileColumns / columns;
  bool isWhole = columns == 1 || panel == 0 || width % panel == 0;
  return arch.hasWarpGroups && rows % machine::kGroupWarps == 0 &&
         width <= 256 && isWhole;
}
