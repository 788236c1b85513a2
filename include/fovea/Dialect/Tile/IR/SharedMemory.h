//===- SharedMemory.h - Placement of tiles in shared memory -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_TILE_IR_SHAREDMEMORY_H
#define FOVEA_DIALECT_TILE_IR_SHAREDMEMORY_H

#include "fovea/Dialect/Tile/IR/Tile.h"

namespace fovea::tile {

/// The alignment of slots and tiles in bytes, which the swizzle of 128 bytes
/// requires.
inline constexpr int64_t kSharedAlignment = 1024;

/// The bytes of an mbarrier object.
inline constexpr int64_t kBarrierBytes = 8;

/// The slots of a ring of widened tiles: one is read while the next is written.
inline constexpr int64_t kWidenedSlots = 2;

/// Returns the bytes of a slot of such tiles, or of a ring.
int64_t getSlotBytes(SharedType tile);
int64_t getSlotBytes(RingType type);

/// Returns the bytes from one slot of a ring to the next: those of the slots
/// that it shares, if these are another ring's.
int64_t getSlotStride(RingOp ring);

/// Returns where numbers of these types that are published in a slot begin, in
/// bytes: one behind the other, each at a multiple of its own size.
llvm::SmallVector<int64_t> getNumberOffsets(mlir::TypeRange numbers);

/// Returns the bytes that such numbers, of which there is one, take.
int64_t getNumberBytes(mlir::TypeRange numbers);

/// Returns true if copies into the ring's slots leave out rows.
bool hasRows(RingOp ring);

/// The offsets of a launch's objects in shared memory, in bytes from its start.
struct SharedMemoryPlan {
  /// The tiles of `tile.load` and `tile.widen`, the tiles of `tile.to_shared`
  /// with memory of its own, and the first slots of rings.
  llvm::DenseMap<mlir::Operation *, int64_t> offsets;
  /// The mbarriers of each ring: `stages` that signal a full slot, then
  /// `stages` that signal an empty slot, then, if copies leave out rows, one on
  /// which a thread waits for the copy before zeros are written (`hasRows`).
  llvm::DenseMap<mlir::Operation *, int64_t> barriers;
  /// The size of all objects together.
  int64_t bytes = 0;
};

/// Returns the bytes of shared memory that a block may have on the GPU that
/// `op` is for.
int64_t getSharedMemoryLimit(mlir::Operation *op);

/// Assigns offsets to every tile and ring of `launch`.
SharedMemoryPlan planSharedMemory(LaunchOp launch);

/// Returns true if `op` has a place in shared memory for tiles: a `tile.load`
/// into shared memory, a `tile.widen`, a `tile.to_shared` without a ring, or a
/// `tile.ring`.
bool hasTiles(mlir::Operation *op);

/// Assigns offsets to every tile and ring of `launch` and writes them into
/// `tile.shared_offset` and `tile.barrier_offset`. Returns the total bytes, or
/// fails with an error on `launch` where they exceed `limit`.
mlir::FailureOr<int64_t> placeSharedMemory(LaunchOp launch, int64_t limit);

/// Return the values of the attributes, which must be present.
int64_t getSharedOffset(mlir::Operation *op);
int64_t getBarrierOffset(RingOp ring);

} // namespace fovea::tile

#endif // FOVEA_DIALECT_TILE_IR_SHAREDMEMORY_H
