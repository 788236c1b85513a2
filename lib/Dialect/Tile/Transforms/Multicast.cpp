//===- Multicast.cpp - Copies that the blocks of a cluster share ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "Differences.h"

#include "fovea/Dialect/Tile/IR/TensorMaps.h"
#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#define DEBUG_TYPE "tile-multicast"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEMULTICAST
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

struct Multicast : fovea::tile::impl::TileMulticastBase<Multicast> {
  void runOnOperation() override;
};

} // namespace

/// Returns the reason for which blocks do not fill a ring together, or nullopt.
static std::optional<StringRef> getObstacle(RingOp ring, int64_t blocks,
                                            const Differences &differences) {
  if (ring.getBase() || ring.getGroups())
    return "has slots of groups, or another ring's";
  if (ring.getRing().getType().getTile().getNumPanels() % blocks)
    return "has a number of panels that they do not divide";
  for (Operation *user : ring.getRing().getUsers()) {
    // A block that reuses the memory has waited for all that is copied to it.
    if (isa<WaitOp, ReleaseOp, ToSharedOp>(user))
      continue;
    if (isa<RingOp>(user))
      return "shares its slots";
    if (!isa<AcquireOp, LoadAsyncOp>(user))
      return "is not filled by copies";
    if (!differences.isSame(user))
      return "is filled differently in each of them";
    auto load = dyn_cast<LoadAsyncOp>(user);
    if (!load)
      continue;
    if (!load.getRows().empty() || load.getRuns())
      return "is filled with parts of tiles";
    if (auto source = dyn_cast<MemRefType>(load.getSource().getType());
        source && !suitsTensorMap(source, load.getDims(), load.getCopiedTile()))
      return "is filled by threads";
  }
  return std::nullopt;
}

void Multicast::runOnOperation() {
  getOperation()->walk([&](LaunchOp launch) {
    int64_t blocks = launch.getBlocksOfCluster();
    if (blocks == 1)
      return;
    // What follows from the blocks' numbers in the cluster differs.
    SmallVector<Value> ranks;
    launch.walk([&](ClusterRankOp op) { ranks.push_back(op.getResult()); });
    Differences differences(ranks);
    for (auto ring : launch.getBody().getOps<RingOp>()) {
      std::optional<StringRef> obstacle =
          getObstacle(ring, blocks, differences);
      LDBG() << "ring at " << ring.getLoc() << " "
             << obstacle.value_or("is filled by the cluster");
      if (obstacle)
        continue;
      ring.setCluster(blocks);
      ++numShared;
    }
  });
}
