//===- Tile.h - The tile dialect --------------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_TILE_H
#define FOVEA_DIALECT_TILE_IR_TILE_H

#include "fovea/Dialect/Machine/IR/Machine.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fovea::tile {

/// One digit of a register or thread number, and its contribution to an
/// element's coordinates: `stride` along dimension `dim` for each of its `size`
/// values.
struct Digit {
  /// The dimension of a digit whose value does not matter.
  static constexpr int64_t kReplicated = -1;

  int64_t size;
  int64_t stride;
  int64_t dim;

  bool operator==(const Digit &other) const {
    return size == other.size && stride == other.stride && dim == other.dim;
  }
};

using machine::kGroupWarps;
using machine::kWarpSize;

/// The threads that hold a row of an accumulator, each two neighbours of 8.
inline constexpr int64_t kRowThreads = 4;

/// The rows of one `wgmma` instruction, by one warp group.
inline constexpr int64_t kGroupRows = 64;
/// Rows after which a swizzle repeats.
inline constexpr int64_t kSwizzledRows = 8;

/// The names of the dialect's attributes of ops, which its description lists.
inline constexpr llvm::StringLiteral kStageAttrName = "tile.stage";
inline constexpr llvm::StringLiteral kOrderAttrName = "tile.order";
inline constexpr llvm::StringLiteral kSharedOffsetAttrName =
    "tile.shared_offset";
inline constexpr llvm::StringLiteral kBarrierOffsetAttrName =
    "tile.barrier_offset";

/// The steps of a program of which another block may run a part
/// (`tile-share-items`), or more: a part costs about as much as a few.
inline constexpr int64_t kFewestSharedSteps = 32;

/// Returns how many of the columns of an accumulator a part of it has where
/// another accumulator of that width needs registers beside it
/// (`tile-split-columns`).
inline int64_t getColumnsOfPart(int64_t columns) {
  constexpr int64_t kMostWhole = 128, kMostOfPart = 96, kMultiple = 16;
  if (columns > kMostWhole)
    while (columns > kMostOfPart && columns % (2 * kMultiple) == 0)
      columns /= 2;
  return columns;
}

/// Returns how many numbers of a row elements of a matrix of `shape` read that
/// lie `steps` apart along its dimensions (`tile.from_shared`).
inline int64_t getLineColumns(llvm::ArrayRef<int64_t> steps,
                              llvm::ArrayRef<int64_t> shape) {
  int64_t columns = 1;
  for (auto [step, size] : llvm::zip_equal(steps, shape))
    columns += std::abs(step) * (size - 1);
  return columns;
}

llvm::hash_code hash_value(const Digit &digit);

/// The shared memory of a block, as a resource of effects.
struct SharedMemory : public mlir::SideEffects::Resource::Base<SharedMemory> {
  llvm::StringRef getName() final { return "SharedMemory"; }
};

/// What of memory caches hold, as a resource of effects.
struct Caches : public mlir::SideEffects::Resource::Base<Caches> {
  llvm::StringRef getName() final { return "Caches"; }
};

} // namespace fovea::tile

#include "fovea/Dialect/Tile/IR/TileDialect.h.inc"
#include "fovea/Dialect/Tile/IR/TileEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "fovea/Dialect/Tile/IR/TileAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "fovea/Dialect/Tile/IR/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "fovea/Dialect/Tile/IR/TileOps.h.inc"

namespace fovea::tile {

/// Returns of how many neighbouring rows of the tile that `op` copies from or
/// to global memory the second of its dimensions has places; 0 if all rows run
/// along the first one.
int64_t getInnerRows(mlir::Operation *op);

/// Returns how many of these places are used: all, if nothing is said.
int64_t getUsedRows(mlir::Operation *op);

/// Returns how many places so many rows of that tile take along the first
/// dimension that they run along.
int64_t countPlaces(mlir::Operation *op, int64_t rows);

} // namespace fovea::tile

#endif // FOVEA_DIALECT_TILE_IR_TILE_H
