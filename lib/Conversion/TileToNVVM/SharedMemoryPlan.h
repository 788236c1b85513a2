//===- SharedMemoryPlan.h - Where tiles lie in shared memory ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_SHAREDMEMORYPLAN_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_SHAREDMEMORYPLAN_H

#include "fovea/Dialect/Tile/IR/SharedMemory.h"

namespace fovea::tile {

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

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_SHAREDMEMORYPLAN_H
