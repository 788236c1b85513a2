//===- Multibuffer.cpp - Rings for loads ----------------------------------===//
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

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

#define DEBUG_TYPE "tile-multibuffer"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEMULTIBUFFER
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

/// Returns the stages of rings in loops.
static int64_t getStages(LaunchOp launch) {
  return launch.getStages().value_or(2);
}

/// Returns true if a loop in `block` has loads.
static bool hasInnerLoads(Block *block) {
  auto isLoad = [](Operation *op) {
    return isa<LoadOp, LoadAsyncOp>(op) ? WalkResult::interrupt()
                                        : WalkResult::advance();
  };
  return llvm::any_of(block->getOps<scf::ForOp>(), [&](scf::ForOp loop) {
    return loop->walk(isLoad).wasInterrupted();
  });
}

/// Returns true if a load in a loop fills a tile that no product reads.
static bool isElementwise(LoadOp load) {
  return isa<SharedType>(load.getResult().getType()) &&
         llvm::all_of(load->getUsers(), llvm::IsaPred<FromSharedOp>);
}

/// Returns the bytes of the tiles that stores in loops are staged in
/// (`tile-stage-stores`), but for those that can take the place of `tile`, if
/// it is given.
static int64_t getStagedBytes(LaunchOp launch, Value tile = {}) {
  int64_t bytes = 0;
  launch->walk([&](StoreOp store) {
    if (!isInLoop(store) || (tile && canTakePlace(store, tile)))
      return;
    if (SmallVector<SharedType> staged = getStagedTiles(store); !staged.empty())
      bytes += getSlotBytes(staged.back());
  });
  return bytes;
}

/// Returns what a loop's step writes and products of the same step read.
static SmallVector<ToSharedOp> getStepWrites(LaunchOp launch) {
  SmallVector<ToSharedOp> writes;
  launch->walk([&](ToSharedOp write) {
    bool isRead = llvm::all_of(write->getUsers(), [&](Operation *user) {
      return isa<MmaOp>(user) && user->getBlock() == write->getBlock();
    });
    if (isInLoop(write) && isRead && !write.getRing() && !write.getSlots())
      writes.push_back(write);
  });
  return writes;
}

/// Returns the stages of the ring for a load in a loop. Loops around others
/// load less often, and leave memory to the results that they store; so do
/// tiles that no product reads, which are as large as scores, and are over
/// early in a step.
static int64_t getStages(LoadOp load, SharedType tile, LaunchOp launch) {
  bool isOuter = hasInnerLoads(load->getBlock());
  if (!isOuter && !isElementwise(load))
    return getStages(launch);
  int64_t bytes =
      planSharedMemory(launch).bytes + getStagedBytes(launch, load.getResult());
  if (!isOuter)
    for (ToSharedOp write : getStepWrites(launch))
      bytes += getSlotBytes(write.getResult().getType());
  // Barriers of rings to come.
  bytes += kSharedAlignment;
  int64_t most = isOuter ? 2 : getStages(launch);
  int64_t left = getSharedMemoryLimit(launch) - bytes;
  // The plan has the load's tile already.
  return std::clamp<int64_t>(1 + left / getSlotBytes(tile), 1, most);
}

namespace {

/// A load that becomes a ring, and the tile that is copied.
struct Copied {
  LoadOp load;
  SharedType tile;
  SmallVector<int64_t> dims;
};

struct Multibuffer : fovea::tile::impl::TileMultibufferBase<Multibuffer> {
  using TileMultibufferBase::TileMultibufferBase;

  void runOnOperation() override {
    getOperation()->walk([&](LaunchOp launch) {
      LDBG() << "launch at " << launch.getLoc() << ": " << getStages(launch)
             << " stages, rings from " << minStages << " on";
      if (getStages(launch) >= minStages)
        convert(launch);
    });
  }

private:
  void convert(LaunchOp launch);
  void convert(Copied &copied, LaunchOp launch, Value use, int64_t stages);
  void convert(WidenOp widen, LaunchOp launch);
  void addSlots(LaunchOp launch);
};

} // namespace

/// Returns the tile that a ring copies for `load`, if TMA can make the copy, or
/// threads if rows lie apart, and only the load's block, or ops nested in it,
/// use the tile.
static std::optional<Copied> getCopied(LoadOp load) {
  bool isInLaunch = isa<LaunchOp>(load->getParentOp());
  if (!isInLaunch && !isInLoop(load))
    return std::nullopt;
  if (llvm::any_of(load->getUsers(), [](Operation *user) {
        return user->hasTrait<OpTrait::IsTerminator>();
      }))
    return std::nullopt;
  Copied copied = {load, {}, llvm::to_vector(load.getDims())};
  if (auto fragment = dyn_cast<FragmentType>(load.getResult().getType())) {
    // Work that needs many registers uses one number for each column of a tile,
    // and cannot wait for these to come from memory.
    bool isColumn = llvm::any_of(load->getUsers(), [&](Operation *user) {
      auto map = dyn_cast<MapOp>(user);
      return map && llvm::is_contained(map.getColumns(), load.getResult());
    });
    int64_t rank = load.getSource().getType().getRank();
    if (isInLaunch || !isColumn || fragment.getRank() != 1 || rank < 2 ||
        copied.dims.front() != rank - 1)
      return std::nullopt;
    copied.tile =
        SharedType::get(load.getContext(), {1, fragment.getShape().front()},
                        fragment.getElementType(), /*swizzle=*/0);
    copied.dims.insert(copied.dims.begin(), rank - 2);
  } else {
    copied.tile = cast<SharedType>(load.getResult().getType());
  }
  // Threads can copy rows that lie apart.
  bool suits = load.getRuns()
                   ? copied.tile.getSwizzle() != 0
                   : suitsTensorMap(load.getSource().getType(), copied.dims,
                                    copied.tile) &&
                         suitsTensorMap(load.getIndices().back(),
                                        copied.tile.getElementType());
  if (!suits)
    return std::nullopt;
  return copied;
}

void Multibuffer::convert(LaunchOp launch) {
  IRRewriter rewriter(&getContext());
  // Where a mask hides all keys, no op reads the queries.
  SmallVector<LoadOp> unread;
  launch.walk([&](LoadOp load) {
    if (load->use_empty())
      unread.push_back(load);
  });
  for (LoadOp load : unread)
    load.erase();
  // The loads of each block, the launch's first.
  llvm::MapVector<Block *, SmallVector<Copied>> blocks;
  blocks[&launch.getBody().front()];
  launch.walk([&](LoadOp load) {
    std::optional<Copied> copied = getCopied(load);
    LDBG() << "  load of " << load.getResult().getType() << " at "
           << load.getLoc() << ": "
           << (copied ? "a ring"
                      : "stays, for TMA cannot copy it, or its tile "
                        "is used beyond its block");
    if (copied)
      blocks[load->getBlock()].push_back(*copied);
  });
  // Loads of inner loops, and for products, come first: what memory they leave
  // others may take.
  SmallVector<SmallVector<Copied>> ordered, outer;
  for (auto &[block, loads] : blocks) {
    if (loads.empty())
      continue;
    bool isOuter = !isa<LaunchOp>(block->getParentOp()) && hasInnerLoads(block);
    auto &sorted = (isOuter ? outer : ordered).emplace_back();
    for (bool elementwise : {false, true})
      llvm::copy_if(loads, std::back_inserter(sorted),
                    [&](const Copied &copied) {
                      return isElementwise(copied.load) == elementwise;
                    });
  }
  ordered.append(outer);
  for (SmallVector<Copied> &loads : ordered) {
    Operation *first = loads.front().load;
    bool isInLaunch = isa<LaunchOp>(first->getParentOp());
    Value use;
    if (!isInLaunch)
      use = getCounter(rewriter, first);
    for (Copied &copied : loads) {
      if (isInLaunch) {
        rewriter.setInsertionPoint(copied.load);
        use = arith::ConstantIndexOp::create(rewriter, copied.load.getLoc(), 0);
      }
      convert(copied, launch, use,
              isInLaunch ? 1 : getStages(copied.load, copied.tile, launch));
    }
  }
  SmallVector<WidenOp> widened;
  launch.walk([&](WidenOp widen) { widened.push_back(widen); });
  for (WidenOp widen : widened)
    convert(widen, launch);
  addSlots(launch);
}

/// Replaces a tile by what a use of a ring holds: waited for before its first
/// reader in its block, and released after its last one.
static void replaceByUse(OpBuilder &builder, Value tile, Value ring,
                         Value use) {
  Operation *op = tile.getDefiningOp();
  Location loc = op->getLoc();
  // The first and the last user in this block, or the ops around these users.
  Operation *first = op, *last = op;
  for (Operation *user : op->getUsers()) {
    Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
    if (first == op || here->isBeforeInBlock(first))
      first = here;
    if (last->isBeforeInBlock(here))
      last = here;
  }
  builder.setInsertionPoint(first);
  Value full = WaitOp::create(
      builder, loc, cast<RingType>(ring.getType()).getTile(), ring, use);
  if (isa<FragmentType>(tile.getType()))
    full = FromSharedOp::create(builder, loc, tile.getType(), full);
  else
    builder.setInsertionPointAfter(last);
  tile.replaceAllUsesWith(full);
  ReleaseOp::create(builder, loc, ring, use);
  op->erase();
}

void Multibuffer::convert(Copied &copied, LaunchOp launch, Value use,
                          int64_t stages) {
  OpBuilder builder(&getContext());
  LoadOp load = copied.load;
  Location loc = load.getLoc();
  SharedType tile = copied.tile;
  builder.setInsertionPointToStart(&launch.getBody().front());
  auto type = RingType::get(&getContext(), stages, tile);
  Value ring = RingOp::create(builder, loc, type);

  builder.setInsertionPoint(load);
  Value slot = AcquireOp::create(builder, loc, tile, ring, use);
  auto copy =
      LoadAsyncOp::create(builder, loc, load.getSource(), load.getIndices(),
                          slot, ring, use, copied.dims, load.getRows());
  copy.setInnerAttr(load.getInnerAttr());
  copy.setUsedAttr(load.getUsedAttr());
  if (load.getRuns()) {
    copy.setRunsAttr(load.getRunsAttr());
    copy.setWholeRuns(load.getWholeRuns());
    copy.getPlace().takeBody(load.getPlace());
  }
  replaceByUse(builder, load.getResult(), ring, use);
  ++numRings;
}

/// Makes a ring of the tiles that a ring's bytes are widened to.
void Multibuffer::convert(WidenOp widen, LaunchOp launch) {
  auto bytes = widen.getSource().getDefiningOp<WaitOp>();
  bool leaves = llvm::any_of(widen->getUsers(), [](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>();
  });
  if (!bytes || bytes->getBlock() != widen->getBlock() || leaves)
    return;
  OpBuilder builder(&getContext());
  Location loc = widen.getLoc();
  SharedType tile = widen.getResult().getType();
  auto stages =
      std::min<int64_t>(bytes.getRing().getType().getStages(), kWidenedSlots);
  builder.setInsertionPointToStart(&launch.getBody().front());
  auto type = RingType::get(&getContext(), stages, tile);
  Value ring = RingOp::create(builder, loc, type);
  builder.setInsertionPoint(widen);
  Value use = bytes.getUse();
  Value slot = AcquireOp::create(builder, loc, tile, ring, use);
  WidenIntoOp::create(builder, loc, widen.getSource(), widen.getFrom(),
                      widen.getWarps(), slot, ring, use);
  replaceByUse(builder, widen.getResult(), ring, use);
  ++numRings;
}

/// Gives a second slot to tiles that a loop's step writes and products of the
/// same step read, as far as there is memory beside what stores need more.
void Multibuffer::addSlots(LaunchOp launch) {
  constexpr int64_t kSlots = 2;
  IRRewriter rewriter(&getContext());
  for (ToSharedOp write : getStepWrites(launch)) {
    int64_t bytes = getSlotBytes(write.getResult().getType()) * (kSlots - 1);
    int64_t all =
        planSharedMemory(launch).bytes + getStagedBytes(launch) + bytes;
    bool fits = all <= getSharedMemoryLimit(launch);
    LDBG() << "  a second slot for what is written at " << write.getLoc()
           << ": " << all << " of " << getSharedMemoryLimit(launch)
           << " bytes of shared memory" << (fits ? "" : ", too many");
    if (!fits)
      continue;
    write.getUseMutable().assign(getCounter(rewriter, write));
    write.setSlots(kSlots);
    ++numSlots;
  }
}
