//===- SharedMemory.h - Where tiles lie in shared memory --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_SHAREDMEMORY_H
#define FOVEA_DIALECT_TILE_IR_SHAREDMEMORY_H

#include "fovea/Dialect/Tile/IR/Tile.h"

namespace fovea::tile {

/// Bytes that slots and tiles begin at a multiple of: as the swizzle of 128
/// bytes needs it.
inline constexpr int64_t kSharedAlignment = 1024;

/// Bytes of an mbarrier object.
inline constexpr int64_t kBarrierBytes = 8;

/// Bytes from one slot of such tiles, or of a ring, to the next.
int64_t getSlotBytes(SharedType tile);
int64_t getSlotBytes(RingType type);

/// Whether copies into the ring's slots leave out rows.
bool hasRows(RingOp ring);

/// Where a launch has what it has in shared memory, in bytes from the start.
struct SharedMemoryPlan {
  /// Tiles of `tile.load` and of `tile.to_shared` with memory of its own, and
  /// the first slots of rings.
  llvm::DenseMap<mlir::Operation *, int64_t> offsets;
  /// Of each ring its mbarriers: `stages` that say when a slot is full, then
  /// `stages` that say when it is empty, then, if copies leave out rows, one
  /// for whoever waits for a copy to write zeros (`hasRows`).
  llvm::DenseMap<mlir::Operation *, int64_t> barriers;
  /// All of it.
  int64_t bytes = 0;
};

/// Bytes of shared memory that a block may have on the GPU that `op` is for.
int64_t getSharedMemoryLimit(mlir::Operation *op);

/// Gives every tile and ring of `launch` its place.
SharedMemoryPlan planSharedMemory(LaunchOp launch);

/// On a `tile.load` into shared memory, a `tile.to_shared` with memory of its
/// own and a `tile.ring`: where its tile or first slot begins, in bytes from
/// the block's dynamic shared memory.
inline constexpr llvm::StringLiteral kSharedOffsetAttrName =
    "tile.shared_offset";
/// On a `tile.ring`: where its mbarriers begin, `stages` that say when a slot
/// is full and then `stages` that say when it is empty, of 8 bytes each.
inline constexpr llvm::StringLiteral kBarrierOffsetAttrName =
    "tile.barrier_offset";

/// Gives every tile and ring of `launch` its place and writes it into the two
/// attributes above. Returns the bytes in all, or fails, with an error on
/// `launch`, where they exceed `limit`.
mlir::FailureOr<int64_t> placeSharedMemory(LaunchOp launch, int64_t limit);

/// What the attributes say; they are there.
int64_t getSharedOffset(mlir::Operation *op);
int64_t getBarrierOffset(RingOp ring);

} // namespace fovea::tile

#endif // FOVEA_DIALECT_TILE_IR_SHAREDMEMORY_H
