//===- TensorMaps.h - Copies that TMA supports ------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_TENSORMAPS_H
#define FOVEA_DIALECT_TILE_IR_TENSORMAPS_H

#include "fovea/Dialect/Tile/IR/Tile.h"

namespace fovea::tile {

/// Addresses and strides of a descriptor must be multiples of this many bytes.
inline constexpr int64_t kTensorMapAlignment = 16;

/// The most dimensions of a memref that a copy writes only some rows of a tile
/// to: its descriptor has one more.
inline constexpr int64_t kLargestClippedRank = 4;

/// The most elements of a box along each dimension.
inline constexpr int64_t kLargestBox = 256;

/// Returns the rank of a descriptor of tiles in a tensor of so many dimensions:
/// there is one more if it copies all panels of a run.
int64_t getTensorMapRank(int64_t dims, SharedType tile);

/// Returns true if a descriptor of `source` has no dimension of panels, or the
/// columns of `source` are known to be whole ones.
bool hasWholePanels(mlir::MemRefType source, SharedType tile);

/// Returns true if a copy of such elements may begin at `column` of the last
/// dimension of a descriptor, whatever its value: it is known to be a multiple
/// of 16 bytes. At others an H100 stops with an illegal instruction, which the
/// PTX ISA does not say.
bool suitsTensorMap(mlir::Value column, mlir::Type element);

/// Returns true if there is a tile, and TMA can copy such tiles along `dims` of
/// `source`, given a suitable address and strides.
bool suitsTensorMap(mlir::MemRefType source, llvm::ArrayRef<int64_t> dims,
                    SharedType tile);

} // namespace fovea::tile

#endif // FOVEA_DIALECT_TILE_IR_TENSORMAPS_H
