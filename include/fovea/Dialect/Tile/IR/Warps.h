//===- Warps.h - Division of a product among warps --------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of `tile-assign-layouts`, which models of schedules also use.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_WARPS_H
#define FOVEA_DIALECT_TILE_IR_WARPS_H

#include "fovea/Dialect/Machine/IR/GpuArch.h"

namespace fovea::tile {

/// The grid of warps over the results of a product.
struct WarpGrid {
  /// Warps one below the other, each with 16 rows or a multiple of 16.
  int64_t rows;
  /// Warps side by side, which share the columns of those rows.
  int64_t columns;

  /// Returns the grid in which as many of `warps` warps have rows as find 16
  /// rows, and the others share columns.
  static WarpGrid get(int64_t rows, int64_t warps);

  /// Returns true if each warp has a multiple of 16 rows and of 8 columns.
  bool divides(int64_t rows, int64_t columns) const;

  /// Returns true if warp groups can compute a product of 16-bit operands with
  /// so many columns by `wgmma` (PTX ISA 9.7.15): whole groups share rows, with
  /// at most 256 columns each. Groups that share columns begin at panels of the
  /// right operand, which have `panel` columns; with 0 they may begin anywhere.
  bool canUseWgmma(const machine::GpuArch &arch, int64_t columns,
                   int64_t panel) const;
};

} // namespace fovea::tile

#endif // FOVEA_DIALECT_TILE_IR_WARPS_H
