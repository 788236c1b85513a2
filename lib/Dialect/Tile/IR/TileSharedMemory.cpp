//===- TileSharedMemory.cpp - Where tiles lie in shared memory ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/IR/SharedMemory.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

int64_t fovea::tile::getSlotBytes(SharedType tile) {
  return llvm::alignTo(tile.getSizeInBytes(), kSharedAlignment);
}

int64_t fovea::tile::getSlotBytes(RingType type) {
  return getSlotBytes(type.getTile());
}

bool fovea::tile::hasRows(RingOp ring) {
  return llvm::any_of(ring.getRing().getUsers(), [](Operation *user) {
    auto load = dyn_cast<LoadAsyncOp>(user);
    return load && !load.getRows().empty();
  });
}

/// Bytes of the tiles that `op` has memory of its own for; 0: none.
static int64_t getTileBytes(Operation *op) {
  if (auto ring = dyn_cast<RingOp>(op)) {
    RingType type = ring.getRing().getType();
    return getSlotBytes(type) * type.getStages();
  }
  if (auto write = dyn_cast<ToSharedOp>(op))
    return write.getRing() ? 0
                           : getSlotBytes(write.getResult().getType()) *
                                 write.getSlots().value_or(1);
  auto load = dyn_cast<LoadOp>(op);
  auto tile =
      load ? dyn_cast<SharedType>(load.getResult().getType()) : SharedType();
  return tile ? tile.getSizeInBytes() : 0;
}

int64_t fovea::tile::getSharedMemoryLimit(Operation *op) {
  return machine::getGpuOrDefault(op).getFastMemory();
}

SharedMemoryPlan fovea::tile::planSharedMemory(LaunchOp launch) {
  SharedMemoryPlan plan;
  SmallVector<RingOp> rings;
  launch.walk([&](Operation *op) {
    int64_t bytes = getTileBytes(op);
    if (!bytes)
      return;
    plan.bytes = llvm::alignTo(plan.bytes, kSharedAlignment);
    plan.offsets[op] = plan.bytes;
    plan.bytes += bytes;
    if (auto ring = dyn_cast<RingOp>(op))
      rings.push_back(ring);
  });
  plan.bytes = llvm::alignTo(plan.bytes, kBarrierBytes);
  for (RingOp ring : rings) {
    plan.barriers[ring] = plan.bytes;
    int64_t barriers = 2 * ring.getRing().getType().getStages();
    if (hasRows(ring))
      ++barriers;
    plan.bytes += barriers * kBarrierBytes;
  }
  return plan;
}
