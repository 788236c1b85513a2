//===- StageStores.cpp - Stores by TMA ------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counters.h"
#include "StagedTile.h"

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/SharedMemory.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/IR/PatternMatch.h"

#define DEBUG_TYPE "tile-stage-stores"

namespace fovea::tile {
#define GEN_PASS_DEF_TILESTAGESTORES
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {
struct StageStores : fovea::tile::impl::TileStageStoresBase<StageStores> {
  void runOnOperation() override {
    getOperation()->walk([&](LaunchOp launch) {
      SmallVector<StoreOp> adds;
      launch.walk([&](StoreOp store) {
        if (store.getAdd())
          adds.push_back(store);
      });
      for (StoreOp store : adds)
        stageAdd(store, launch);
      Block &body = launch.getBody().front();
      for (StoreOp store : llvm::to_vector(body.getOps<StoreOp>()))
        if (!store.getAdd())
          stage(store);
      SmallVector<StoreOp> others;
      launch.walk([&](StoreOp store) {
        if (!store.getAdd() && isInLoop(store))
          others.push_back(store);
      });
      for (StoreOp store : others)
        stageInLoop(store, launch);
    });
  }

private:
  void stage(StoreOp store);
  void stageAdd(StoreOp store, LaunchOp launch);
  void stageInLoop(StoreOp store, LaunchOp launch);
  void stageInRing(StoreOp store, SharedType tile, LaunchOp launch);
};
} // namespace

/// Returns a ring of the launch with `bytes` of slots, all of whose uses end
/// before `store`; null if there is none. For a ring whose slots are stored,
/// only the role that stores knows the end.
static Value findFreeRing(StoreOp store, int64_t bytes) {
  Block *body = store->getBlock();
  for (auto ring : body->getOps<RingOp>()) {
    RingType type = ring.getRing().getType();
    if (type.getTile().getSizeInBytes() * type.getStages() < bytes)
      continue;
    bool isOver = llvm::all_of(ring->getUsers(), [&](Operation *user) {
      return !isa<WriteOp>(user) &&
             body->findAncestorOpInBlock(*user)->isBeforeInBlock(store);
    });
    if (isOver)
      return ring.getRing();
  }
  return {};
}

SharedType fovea::tile::getStagedTile(StoreOp store) {
  FragmentType value = store.getValue().getType();
  if (value.getRank() != 2 || store.getValid())
    return {};
  auto tile = SharedType::get(store.getContext(), value.getShape(),
                              value.getElementType(), /*swizzle=*/0);
  tile = tile.cloneWith(tile.getWidestSwizzle());
  return suitsTensorMap(store.getTarget().getType(), store.getDims(), tile)
             ? tile
             : SharedType();
}

/// Returns true if there is shared memory for a ring of one such tile.
static bool hasRoom(SharedType tile, LaunchOp launch) {
  return planSharedMemory(launch).bytes + getSlotBytes(tile) +
             2 * kBarrierBytes <=
         getSharedMemoryLimit(launch);
}

void StageStores::stageAdd(StoreOp store, LaunchOp launch) {
  SharedType tile = getStagedTile(store);
  StringRef objection;
  if (!tile)
    objection = "TMA cannot store it";
  else if (!tile.getElementType().isF32())
    objection = "TMA adds f32 alone";
  else if (!hasRoom(tile, launch))
    objection = "there is no shared memory left for it";
  LDBG() << "sum of " << store.getValue().getType() << " at " << store.getLoc()
         << ": "
         << (objection.empty() ? "through shared memory, by TMA" : objection);
  if (!objection.empty())
    return;
  if (isInLoop(store))
    return stageInRing(store, tile, launch);
  Location loc = store.getLoc();
  OpBuilder builder(store);
  Value staged = ToSharedOp::create(builder, loc, tile, store.getValue());
  StoreAsyncOp::create(builder, loc, staged, store.getTarget(),
                       store.getIndices(), store.getDims(), /*add=*/true);
  WaitStoresOp::create(builder, loc);
  store.erase();
  ++numStaged;
}

/// Stores through the slot of a ring: the role that stores can differ from the
/// one that computes.
void StageStores::stageInRing(StoreOp store, SharedType tile, LaunchOp launch) {
  IRRewriter builder(store.getContext());
  Location loc = store.getLoc();
  Value use = getCounter(builder, store);
  builder.setInsertionPointToStart(&launch.getBody().front());
  Value ring = RingOp::create(
      builder, loc, RingType::get(store.getContext(), /*stages=*/1, tile));
  builder.setInsertionPoint(store);
  Value slot = AcquireOp::create(builder, loc, tile, ring, use);
  WriteOp::create(builder, loc, store.getValue(), slot, ring, use);
  Value staged = WaitOp::create(builder, loc, tile, ring, use);
  StoreAsyncOp::create(builder, loc, staged, store.getTarget(),
                       store.getIndices(), store.getDims(), store.getAdd());
  WaitStoresOp::create(builder, loc);
  ReleaseOp::create(builder, loc, ring, use);
  store.erase();
  ++numStaged;
}

void StageStores::stageInLoop(StoreOp store, LaunchOp launch) {
  SharedType tile = getStagedTile(store);
  bool fits = tile && hasRoom(tile, launch);
  LDBG() << "store of " << store.getValue().getType() << " at "
         << store.getLoc() << ", in a loop: "
         << (fits   ? "through a ring, by TMA"
             : tile ? "from registers, for there is no shared memory left"
                    : "from registers, for TMA cannot store it");
  if (fits)
    stageInRing(store, tile, launch);
}

void StageStores::stage(StoreOp store) {
  SharedType tile = getStagedTile(store);
  Value ring = tile ? findFreeRing(store, tile.getSizeInBytes()) : Value();
  LDBG() << "store of " << store.getValue().getType() << " at "
         << store.getLoc() << ": "
         << (ring   ? "through the slots of a ring, by TMA"
             : tile ? "from registers, for no ring is large enough and over"
                    : "from registers, for TMA cannot store it");
  if (!ring)
    return;
  OpBuilder builder(store);
  Location loc = store.getLoc();
  Value staged = ToSharedOp::create(builder, loc, tile, store.getValue(), ring);
  StoreAsyncOp::create(builder, loc, staged, store.getTarget(),
                       store.getIndices(), store.getDims());
  WaitStoresOp::create(builder, loc);
  store.erase();
  ++numStaged;
}
