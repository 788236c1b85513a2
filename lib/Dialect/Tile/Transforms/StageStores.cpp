//===- StageStores.cpp - Stores by TMA ------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/SharedMemory.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"

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
    });
  }

private:
  void stage(StoreOp store);
  void stageAdd(StoreOp store, LaunchOp launch);
};
} // namespace

/// A ring of the launch with `bytes` of slots, all of whose uses end before
/// `store`; null if there is none.
static Value findFreeRing(StoreOp store, int64_t bytes) {
  Block *body = store->getBlock();
  for (auto ring : body->getOps<RingOp>()) {
    RingType type = ring.getRing().getType();
    if (type.getTile().getSizeInBytes() * type.getStages() < bytes)
      continue;
    bool isOver = llvm::all_of(ring->getUsers(), [&](Operation *user) {
      return body->findAncestorOpInBlock(*user)->isBeforeInBlock(store);
    });
    if (isOver)
      return ring.getRing();
  }
  return {};
}

/// The tile that `store` can go through; null if TMA cannot store it.
static SharedType getStaged(StoreOp store) {
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

void StageStores::stageAdd(StoreOp store, LaunchOp launch) {
  SharedType tile = getStaged(store);
  if (!tile || !tile.getElementType().isF32() ||
      planSharedMemory(launch).bytes + getSlotBytes(tile) >
          getSharedMemoryLimit(launch))
    return;
  // Outside of all loops nothing writes the tile anew.
  Operation *outermost = store;
  while (outermost->getParentOp() != launch)
    outermost = outermost->getParentOp();
  Location loc = store.getLoc();
  OpBuilder builder(store);
  // The tile can be written before the block's turn comes.
  if (auto turn = dyn_cast_or_null<TakeTurnOp>(store->getPrevNode()))
    builder.setInsertionPoint(turn);
  if (outermost != store)
    WaitStoresOp::create(builder, loc);
  Value staged = ToSharedOp::create(builder, loc, tile, store.getValue());
  builder.setInsertionPoint(store);
  StoreAsyncOp::create(builder, loc, staged, store.getTarget(),
                       store.getIndices(), store.getDims(), /*add=*/true);
  builder.setInsertionPointAfter(outermost);
  WaitStoresOp::create(builder, loc);
  store.erase();
  ++numStaged;
}

void StageStores::stage(StoreOp store) {
  SharedType tile = getStaged(store);
  if (!tile)
    return;
  Value ring = findFreeRing(store, tile.getSizeInBytes());
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
