//===- TileSharedMemory.cpp - Placement of tiles in shared memory ---------===//
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

int64_t fovea::tile::getSlotStride(RingOp ring) {
  return getSlotBytes(ring.getBase() ? ring.getBase().getType()
                                     : ring.getRing().getType());
}

SmallVector<int64_t> fovea::tile::getNumberOffsets(TypeRange numbers) {
  SmallVector<int64_t> offsets;
  int64_t end = 0;
  for (Type type : numbers) {
    int64_t bytes = type.getIntOrFloatBitWidth() / CHAR_BIT;
    offsets.push_back(llvm::alignTo(end, bytes));
    end = offsets.back() + bytes;
  }
  return offsets;
}

int64_t fovea::tile::getNumberBytes(TypeRange numbers) {
  return getNumberOffsets(numbers).back() +
         numbers.back().getIntOrFloatBitWidth() / CHAR_BIT;
}

bool fovea::tile::hasRows(RingOp ring) {
  return llvm::any_of(ring.getRing().getUsers(), [](Operation *user) {
    auto load = dyn_cast<LoadAsyncOp>(user);
    return load && !load.getRows().empty() && !load.getWholeRuns();
  });
}

/// Returns the bytes of the tiles that `op` has memory of its own for; 0 if
/// none.
static int64_t getTileBytes(Operation *op) {
  if (auto ring = dyn_cast<RingOp>(op)) {
    RingType type = ring.getRing().getType();
    return ring.getBase() ? 0 : getSlotBytes(type) * type.getStages();
  }
  if (auto write = dyn_cast<ToSharedOp>(op))
    return write.getRing() ? 0
                           : getSlotBytes(write.getResult().getType()) *
                                 write.getSlots().value_or(1);
  if (auto widen = dyn_cast<WidenOp>(op))
    return getSlotBytes(widen.getResult().getType());
  auto load = dyn_cast<LoadOp>(op);
  auto tile =
      load ? dyn_cast<SharedType>(load.getResult().getType()) : SharedType();
  return tile ? tile.getSizeInBytes() : 0;
}

bool fovea::tile::hasTiles(Operation *op) {
  return isa<RingOp>(op) || getTileBytes(op) != 0;
}

int64_t fovea::tile::getSharedMemoryLimit(Operation *op) {
  return machine::getGpuOrDefault(op).getFastMemory();
}

SharedMemoryPlan fovea::tile::planSharedMemory(LaunchOp launch) {
  SharedMemoryPlan plan;
  SmallVector<RingOp> rings;
  launch.walk([&](Operation *op) {
    if (auto ring = dyn_cast<RingOp>(op))
      rings.push_back(ring);
    int64_t bytes = getTileBytes(op);
    if (!bytes)
      return;
    plan.bytes = llvm::alignTo(plan.bytes, kSharedAlignment);
    plan.offsets[op] = plan.bytes;
    plan.bytes += bytes;
  });
  for (RingOp ring : rings)
    if (Value base = ring.getBase())
      plan.offsets[ring] = plan.offsets.lookup(base.getDefiningOp());
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

static void setOffset(Operation *op, StringRef name, int64_t offset) {
  op->setAttr(name, Builder(op->getContext()).getI64IntegerAttr(offset));
}

static int64_t getOffset(Operation *op, StringRef name) {
  return op->getAttrOfType<IntegerAttr>(name).getInt();
}

int64_t fovea::tile::getSharedOffset(Operation *op) {
  return getOffset(op, kSharedOffsetAttrName);
}

int64_t fovea::tile::getBarrierOffset(RingOp ring) {
  return getOffset(ring, kBarrierOffsetAttrName);
}

FailureOr<int64_t> fovea::tile::placeSharedMemory(LaunchOp launch,
                                                  int64_t limit) {
  SharedMemoryPlan plan = planSharedMemory(launch);
  for (auto [op, offset] : plan.offsets)
    setOffset(op, kSharedOffsetAttrName, offset);
  for (auto [ring, offset] : plan.barriers)
    setOffset(ring, kBarrierOffsetAttrName, offset);
  if (plan.bytes > limit)
    return launch.emitOpError("needs ") << plan.bytes
                                        << " bytes of shared memory, but a "
                                           "block has "
                                        << limit;
  return plan.bytes;
}
