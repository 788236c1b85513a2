//===- StageStores.cpp - Stores by TMA ------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

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
      Block &body = launch.getBody().front();
      for (StoreOp store : llvm::to_vector(body.getOps<StoreOp>()))
        stage(store);
    });
  }

private:
  void stage(StoreOp store);
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

void StageStores::stage(StoreOp store) {
  FragmentType value = store.getValue().getType();
  if (value.getRank() != 2 || store.getValid())
    return;
  auto tile = SharedType::get(&getContext(), value.getShape(),
                              value.getElementType(), /*swizzle=*/0);
  tile = tile.cloneWith(tile.getWidestSwizzle());
  if (!suitsTensorMap(store.getTarget().getType(), store.getDims(), tile))
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
