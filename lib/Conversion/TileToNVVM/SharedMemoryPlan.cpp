//===- SharedMemoryPlan.cpp - Where tiles lie in shared memory ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedMemoryPlan.h"

using namespace mlir;
using namespace fovea::tile;

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
