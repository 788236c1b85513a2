//===- Warps.h - How warps share a product ----------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of `tile-assign-layouts`, which models of schedules ask as well.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_WARPS_H
#define FOVEA_DIALECT_TILE_IR_WARPS_H

#include "fovea/Dialect/Machine/IR/GpuArch.h"

namespace fovea::tile {

/// Warps as they lie over the results of a product.
struct WarpGrid {
  /// Warps one below the other, each with 16 rows or a multiple.
  int64_t rows;
  /// Warps side by side, which share those rows' columns.
  int64_t columns;

  /// Of `warps` warps as many have rows as find 16, the others share columns.
  static WarpGrid get(int64_t rows, int64_t warps);

  /// Whether each warp has a multiple of 16 rows and of 8 columns.
  bool divides(int64_t rows, int64_t columns) const;

  /// Whether warp groups compute a product of 16-bit operands with so many
  /// columns by `wgmma` (PTX ISA 9.7.15): whole groups share rows, with at most
  /// 256 columns each. Groups that share columns begin at panels of the right
  /// operand, of `panel` columns; 0 where they may begin anywhere.
  bool canUseWgmma(const machine::GpuArch &arch, int64_t columns,
                   int64_t panel) const;
};

} // namespace fovea::tile

#endif // FOVEA_DIALECT_TILE_IR_WARPS_H
