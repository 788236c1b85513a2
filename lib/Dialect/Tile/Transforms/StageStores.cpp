//===- StageStores.cpp - Stores by TMA ------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counters.h"
#include "StagedTile.h"
#include "WidenedRings.h"

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/SharedMemory.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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
      SmallVector<StoreOp> adds, once, inLoops;
      launch.walk([&](StoreOp store) {
        (store.getAdd()    ? adds
         : isInLoop(store) ? inLoops
                           : once)
            .push_back(store);
      });
      for (StoreOp store : adds)
        stageAdd(store, launch);
      for (StoreOp store : once)
        stage(store);
      for (StoreOp store : inLoops)
        stageInLoop(store, launch);
    });
  }

private:
  void stage(StoreOp store);
  void stageAdd(StoreOp store, LaunchOp launch);
  void stageInLoop(StoreOp store, LaunchOp launch);
  void stageInRing(StoreOp store, SharedType tile, LaunchOp launch,
                   WaitOp place = {});
};
} // namespace

/// Returns a ring of the launch with `bytes` of slots, all of whose uses end
/// before `store`; null if there is none. For a ring whose slots are stored, or
/// widened, only the role that does so knows the end.
static Value findFreeRing(StoreOp store, int64_t bytes) {
  Block *body = &store->getParentOfType<LaunchOp>().getBody().front();
  Operation *place = body->findAncestorOpInBlock(*store);
  for (auto ring : body->getOps<RingOp>()) {
    RingType type = ring.getRing().getType();
    if (type.getTile().getSizeInBytes() * type.getStages() < bytes ||
        holdsBytes(ring.getRing()))
      continue;
    bool isOver = llvm::all_of(ring->getUsers(), [&](Operation *user) {
      return !isa<WriteOp>(user) &&
             (body->findAncestorOpInBlock(*user)->isBeforeInBlock(place) ||
              insideMutuallyExclusiveRegions(user, store));
    });
    if (isOver)
      return ring.getRing();
  }
  return {};
}

/// Returns the tile of shared memory for so many columns of what is stored, or
/// for all of them; null if TMA cannot store it.
static SharedType getStagedTile(StoreOp store,
                                std::optional<int64_t> columns = std::nullopt) {
  FragmentType value = store.getValue().getType();
  if (value.getRank() != 2 ||
      (store.needsClippedMap() &&
       store.getTarget().getType().getRank() > kLargestClippedRank))
    return {};
  // What few iterations store would take memory from what all of them do.
  if (!store.getAdd() && isInLoop(store) &&
      isa<scf::IfOp>(store->getParentOp()))
    return {};
  auto tile = SharedType::get(
      store.getContext(),
      {value.getShape()[0], columns.value_or(value.getShape()[1])},
      value.getElementType(), /*swizzle=*/0);
  tile = tile.cloneWith(tile.getWidestSwizzle());
  bool suits =
      suitsTensorMap(store.getTarget().getType(), store.getDims(), tile) &&
      suitsTensorMap(store.getIndices().back(), tile.getElementType());
  return suits ? tile : SharedType();
}

SmallVector<SharedType> fovea::tile::getStagedTiles(StoreOp store) {
  SharedType whole = getStagedTile(store);
  if (!whole)
    return {};
  SmallVector<SharedType> tiles{whole};
  // Parts are whole panels, and warps write whole rows of them; sums of blocks
  // that take turns are added at once.
  LayoutAttr layout = store.getValue().getType().getLayout();
  if (store.getAdd() || (layout && !layout.hasWholeRows()))
    return tiles;
  int64_t columns = whole.getShape()[1];
  for (int64_t panels = whole.getNumPanels(); panels % 2 == 0; panels /= 2) {
    columns /= 2;
    if (columns % whole.getPanelColumns())
      break;
    tiles.push_back(getStagedTile(store, columns));
  }
  return tiles;
}

bool fovea::tile::canTakePlace(StoreOp store, Value operand) {
  SharedType whole = getStagedTile(store);
  auto tile = cast<SharedType>(operand.getType());
  Block *block = store->getBlock();
  LayoutAttr layout = store.getValue().getType().getLayout();
  if (store.getAdd() || !whole ||
      operand.getDefiningOp()->getBlock() != block ||
      getSlotBytes(whole) > getSlotBytes(tile) ||
      whole.getShape()[0] != tile.getShape()[0] ||
      whole.getRowBytes() != tile.getRowBytes() ||
      whole.getRunRows() != tile.getRunRows() || !layout ||
      !layout.hasWholeRows())
    return false;
  // By WGMMA, of which a warp reads its own rows of the left operand alone.
  return llvm::all_of(operand.getUses(), [&](OpOperand &use) {
    auto product = dyn_cast<MmaOp>(use.getOwner());
    return product && product.getKind() == MmaKind::Wgmma &&
           use.getOperandNumber() == 0 && product.getA() != product.getB() &&
           block->findAncestorOpInBlock(*product)->isBeforeInBlock(store);
  });
}

/// Returns the wait for the tile, in a ring of several slots, whose place the
/// result can take; null if there is none.
static WaitOp findPlace(StoreOp store) {
  for (auto wait : store->getBlock()->getOps<WaitOp>()) {
    auto ring = wait.getRing().getDefiningOp<RingOp>();
    bool isFilledByCopies = llvm::none_of(ring.getRing().getUsers(),
                                          llvm::IsaPred<WriteOp, RingOp>);
    if (ring.getRing().getType().getStages() > 1 && isFilledByCopies &&
        canTakePlace(store, wait.getResult()))
      return wait;
  }
  return {};
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
                       store.getIndices(), store.getValid(), store.getDims(),
                       /*add=*/true, store.getInnerAttr(), store.getUsedAttr());
  WaitStoresOp::create(builder, loc);
  store.erase();
  ++numStaged;
}

/// Stores through the slot of a ring, part by part where the slot takes only
/// some columns: the role that stores can differ from the one that computes.
/// With `place` the slot is that of a tile which is read no more.
void StageStores::stageInRing(StoreOp store, SharedType tile, LaunchOp launch,
                              WaitOp place) {
  IRRewriter builder(store.getContext());
  Location loc = store.getLoc();
  Value use, ring;
  if (place) {
    use = place.getUse();
    auto base = cast<RingOp>(place.getRing().getDefiningOp());
    builder.setInsertionPointAfter(base);
    ring = RingOp::create(builder, loc,
                          RingType::get(store.getContext(),
                                        place.getRing().getType().getStages(),
                                        tile),
                          base.getRing());
  } else {
    use = getCounter(builder, store);
    builder.setInsertionPointToStart(&launch.getBody().front());
    ring = RingOp::create(
        builder, loc, RingType::get(store.getContext(), /*stages=*/1, tile));
  }
  builder.setInsertionPoint(store);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  int64_t columns = tile.getShape()[1];
  int64_t parts = store.getValue().getType().getShape()[1] / columns;
  if (parts > 1)
    use = arith::MulIOp::create(builder, loc, use, constant(parts));
  for (int64_t part = 0; part < parts; ++part) {
    SmallVector<Value> indices(store.getIndices());
    IntegerAttr column;
    if (parts > 1) {
      column = builder.getI64IntegerAttr(part * columns);
      Value &last = indices[store.getDims().back()];
      last =
          arith::AddIOp::create(builder, loc, last, constant(part * columns));
    }
    Value slot = AcquireOp::create(builder, loc, tile, ring, use);
    WriteOp::create(builder, loc, store.getValue(), slot, ring, use, column);
    Value staged = WaitOp::create(builder, loc, tile, ring, use);
    StoreAsyncOp::create(builder, loc, staged, store.getTarget(), indices,
                         store.getValid(), store.getDims(), store.getAdd(),
                         store.getInnerAttr(), store.getUsedAttr());
    WaitStoresOp::create(builder, loc);
    ReleaseOp::create(builder, loc, ring, use);
    if (part + 1 < parts)
      use = arith::AddIOp::create(builder, loc, use, constant(1));
  }
  store.erase();
  ++numStaged;
}

void StageStores::stageInLoop(StoreOp store, LaunchOp launch) {
  SmallVector<SharedType> tiles = getStagedTiles(store);
  auto fitting = llvm::find_if(
      tiles, [&](SharedType tile) { return hasRoom(tile, launch); });
  bool fits = fitting != tiles.end();
  // Warps wait for each other's parts, but not where a whole tile lies.
  WaitOp place;
  if (!fits || fitting != tiles.begin())
    place = findPlace(store);
  LDBG() << "store of " << store.getValue().getType() << " at "
         << store.getLoc() << ", in a loop: "
         << (tiles.empty() ? "from registers, for TMA cannot store it, or not "
                             "each iteration does"
             : place       ? "in the place of an operand, by TMA"
             : fits        ? "through a ring, by TMA"
                           : "from registers, for there is no shared memory "
                             "left");
  if (place)
    stageInRing(store, tiles.front(), launch, place);
  else if (fits)
    stageInRing(store, *fitting, launch);
}

/// Returns the place of the first op behind `store` that is not known to leave
/// shared memory alone, or may be staged in it as well.
static Block::iterator findEndOfRegisterWork(StoreOp store) {
  auto isRegisterWork = [](Operation &op) {
    if (auto other = dyn_cast<StoreOp>(op))
      return !getStagedTile(other);
    return isPure(&op) && !op.hasTrait<OpTrait::IsTerminator>();
  };
  return std::find_if_not(std::next(store->getIterator()),
                          store->getBlock()->end(), isRegisterWork);
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
                       store.getIndices(), store.getValid(), store.getDims(),
                       /*add=*/false, store.getInnerAttr(),
                       store.getUsedAttr());
  // What registers have, as the log-sum-exp, is stored meanwhile.
  builder.setInsertionPoint(store->getBlock(), findEndOfRegisterWork(store));
  WaitStoresOp::create(builder, loc);
  store.erase();
  ++numStaged;
}
