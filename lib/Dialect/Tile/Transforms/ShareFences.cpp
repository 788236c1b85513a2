//===- ShareFences.cpp - Releases behind fences that are there ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/Proxies.h"
#include "fovea/Support/DebugLog.h"

#define DEBUG_TYPE "tile-share-fences"

namespace fovea::tile {
#define GEN_PASS_DEF_TILESHAREFENCES
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {
struct ShareFences : fovea::tile::impl::TileShareFencesBase<ShareFences> {
  void runOnOperation() override;
};
} // namespace

/// Returns true if a slot is to be released before `op`: it waits for another
/// role, which may wait for the slot, or takes the memory of a ring.
static bool needsRelease(Operation *op) {
  return op
      ->walk([](Operation *nested) {
        auto write = dyn_cast<ToSharedOp>(nested);
        return isa<WaitOp, AcquireOp>(nested) || (write && write.getRing())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns the op behind which threads that read the slot have fenced, and have
/// issued the product that reads what they wrote before the fence. Null if
/// there is none in the block before the slot is to be released.
static Operation *findPlace(ReleaseOp release) {
  Operation *fence = nullptr;
  for (Operation *next = release->getNextNode(); next && !needsRelease(next);
       next = next->getNextNode()) {
    if (endsWithProxyFence(next))
      fence = next;
    else if (fence && isa<MmaAsyncOp>(next))
      return next;
  }
  return fence;
}

void ShareFences::runOnOperation() {
  getOperation()->walk([&](RingOp ring) {
    llvm::SmallPtrSet<Operation *, 4> reads;
    findReadsByThreads(ring.getRing(), reads);
    if (reads.empty())
      return;
    for (Operation *user : ring.getRing().getUsers()) {
      auto release = dyn_cast<ReleaseOp>(user);
      auto role = user->getParentOfType<RoleOp>();
      if (!release || !role || role.getSingle())
        continue;
      Operation *place = findPlace(release);
      LDBG() << "release at " << release.getLoc()
             << (place ? ": behind a fence" : ": stays");
      if (!place)
        continue;
      release->moveAfter(place);
      ++numMoved;
    }
  });
}
