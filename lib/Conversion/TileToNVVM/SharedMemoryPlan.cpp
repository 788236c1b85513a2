//===- SharedMemoryPlan.cpp - Where tiles lie in shared memory ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedMemoryPlan.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea::tile;

/// Bytes of one mbarrier object.
static constexpr int64_t kBarrierBytes = 8;

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

FailureOr<int64_t> fovea::tile::planSharedMemory(LaunchOp launch,
                                                 int64_t limit) {
  int64_t total = 0;
  auto place = [&](Operation *op, int64_t bytes) {
    total = llvm::alignTo(total, kSharedAlignment);
    setOffset(op, kSharedOffsetAttrName, total);
    total += bytes;
  };
  SmallVector<RingOp> rings;
  launch.walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op)) {
      if (auto shared = dyn_cast<SharedType>(load.getResult().getType()))
        place(op, shared.getSizeInBytes());
    } else if (auto write = dyn_cast<ToSharedOp>(op)) {
      if (!write.getRing())
        place(op, write.getResult().getType().getSizeInBytes());
    } else if (auto ring = dyn_cast<RingOp>(op)) {
      RingType type = ring.getRing().getType();
      int64_t slot =
          llvm::alignTo(type.getTile().getSizeInBytes(), kSharedAlignment);
      place(op, slot * type.getStages());
      rings.push_back(ring);
    }
  });
  total = llvm::alignTo(total, kBarrierBytes);
  for (RingOp ring : rings) {
    setOffset(ring, kBarrierOffsetAttrName, total);
    total += 2 * kBarrierBytes * ring.getRing().getType().getStages();
  }
  if (total > limit)
    return launch.emitOpError("needs ")
           << total << " bytes of shared memory, but a block has " << limit;
  return total;
}
