//===- SwapGroups.cpp - Rows dealt to warp groups there and back ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "Indices.h"
#include "OwnRows.h"
#include "Schedule.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#define DEBUG_TYPE "tile-swap-groups"

namespace fovea::tile {
#define GEN_PASS_DEF_TILESWAPGROUPS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

struct SwapGroups : fovea::tile::impl::TileSwapGroupsBase<SwapGroups> {
  void runOnOperation() override;
};

/// A role whose warp groups run apart, in a loop over tiles.
class TileLoop {
public:
  explicit TileLoop(RoleOp role) : role(role) {}

  /// Finds the groups' number and the loop; returns the reason for which groups
  /// cannot take other rows in every other iteration, or nullopt if they can.
  std::optional<StringRef> analyze();

  void rewrite();

private:
  std::optional<StringRef> analyzeLoop();
  /// Returns true if groups begin and end a loop over steps where their own
  /// rows do: each has as many steps then, later than the group before it.
  bool areInLine();
  void shift(MapOp map);
  void shift(LoadOp load);
  void shift(StoreOp store);
  void shift(FromSharedOp read);
  void shift(OpOperand &tile);

  RoleOp role;
  GroupOp group;
  scf::ForOp tiles;
  /// The distance of the rows that a group has from those that it owns.
  Value distance;
  /// The views of tiles that many ops read.
  DenseMap<Value, Value> views;
};

} // namespace

std::optional<StringRef> TileLoop::analyze() {
  int64_t numbers = 0;
  role.walk([&](GroupOp op) {
    group = op;
    ++numbers;
  });
  if (numbers != 1 || group->getParentOp() != role)
    return numbers ? "has several numbers of its groups"
                   : "has groups that do not run apart";
  for (auto loop : role.getBody().getOps<scf::ForOp>()) {
    if (tiles)
      return "has several loops";
    tiles = loop;
  }
  if (!tiles)
    return "has no loop";
  if (areInLine())
    return "has groups that follow one another";
  if (auto reason = findSharedRows(
          role, kWarpRows * static_cast<int64_t>(role.getWarps())))
    return reason;
  return analyzeLoop();
}

bool TileLoop::areInLine() {
  DenseSet<Value> own{group.getResult()};
  role.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->getNumRegions() == 0 &&
        llvm::any_of(op->getOperands(),
                     [&](Value value) { return own.contains(value); }))
      own.insert_range(op->getResults());
  });
  return role
      .walk([&](scf::ForOp loop) {
        return own.contains(loop.getLowerBound()) &&
                       own.contains(loop.getUpperBound()) &&
                       !loop.getBody()->getOps<MmaOp>().empty()
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns true if a load reads a tile into registers, row by row.
static bool isOfRows(LoadOp load) {
  auto type = dyn_cast<FragmentType>(load.getResult().getType());
  return type && type.getRank() == 2;
}

std::optional<StringRef> TileLoop::analyzeLoop() {
  if (!matchPattern(tiles.getLowerBound(), m_Zero()) ||
      !matchPattern(tiles.getStep(), m_One()))
    return "has a loop that does not count from 0";
  if (llvm::any_of(tiles.getResultTypes(),
                   [](Type type) { return !type.isIndex(); }))
    return "has a loop that carries more than numbers";
  std::optional<StringRef> reason;
  tiles.walk([&](Operation *op) {
    auto load = dyn_cast<LoadOp>(op);
    if ((load && !isOfRows(load)) || isa<SumDiagonalsOp>(op))
      reason = "reads rows other than those of tiles in slots";
    if (isa<ShiftRowsOp>(op))
      reason = "has groups with other rows already";
    auto product = dyn_cast<MmaOp>(op);
    if (product && isa<SharedType>(product.getA().getType()) &&
        !tiles.getRegion().isAncestor(product.getA().getParentRegion()))
      reason = "reads rows of a tile from outside of its loop";
  });
  return reason;
}

/// Adds the distance to the row of each element.
void TileLoop::shift(MapOp map) {
  Block &body = map.getBody().front();
  Value row = body.getArgument(map->getNumOperands());
  if (row.use_empty())
    return;
  auto builder = OpBuilder::atBlockBegin(&body);
  auto shifted = arith::AddIOp::create(builder, map.getLoc(), row, distance);
  row.replaceAllUsesExcept(shifted, shifted);
}

void TileLoop::shift(LoadOp load) {
  OpBuilder builder(load);
  moveRows(builder, load, load.getIndicesMutable(), load.getDims(), distance);
}

void TileLoop::shift(StoreOp store) {
  OpBuilder builder(store);
  Location loc = store.getLoc();
  moveRows(builder, store, store.getIndicesMutable(), store.getDims(),
           distance);
  if (Value valid = store.getValid())
    store.getValidMutable().assign(
        arith::SubIOp::create(builder, loc, valid, distance));
}

/// A line has numbers for the rows of all groups.
void TileLoop::shift(FromSharedOp read) {
  if (!read.getSteps())
    return shift(read.getSourceMutable());
  int64_t step = (*read.getSteps())[0];
  if (step == 0)
    return;
  OpBuilder builder(read);
  Indices index(builder, read.getLoc());
  Value by = index.create<arith::MulIOp>(distance, index.constant(step));
  read.getFirstMutable().assign(
      index.create<arith::AddIOp>(read.getFirst(), by));
}

/// Replaces a tile in shared memory with a view of it.
void TileLoop::shift(OpOperand &tile) {
  Value &view = views[tile.get()];
  if (!view) {
    OpBuilder builder(role.getContext());
    builder.setInsertionPointAfterValue(tile.get());
    view =
        ShiftRowsOp::create(builder, tile.get().getLoc(), tile.get(), distance);
  }
  tile.set(view);
}

void TileLoop::rewrite() {
  Location loc = tiles.getLoc();
  auto builder = OpBuilder::atBlockBegin(tiles.getBody());
  Indices index(builder, loc);
  int64_t last = static_cast<int64_t>(role.getWarps()) / kGroupWarps - 1;
  Value odd =
      index.create<arith::AndIOp>(tiles.getInductionVar(), index.constant(1));
  Value isBack = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                       odd, index.constant(0));
  Value other = index.create<arith::SubIOp>(index.constant(last), group);
  Value apart = index.create<arith::SubIOp>(other, group);
  Value back = index.create<arith::MulIOp>(apart, index.constant(kGroupRows));
  distance =
      arith::SelectOp::create(builder, loc, isBack, back, index.constant(0));

  // Numbers of the group's own rows from before the loop.
  IRMapping mapping;
  mapping.map(group.getResult(),
              arith::SelectOp::create(builder, loc, isBack, other, group));
  for (Operation *op = group->getNextNode(); op != tiles;
       op = op->getNextNode()) {
    if (llvm::none_of(getUsedValues(op),
                      [&](Value value) { return mapping.contains(value); }))
      continue;
    Operation *own = builder.clone(*op, mapping);
    for (auto [before, after] :
         llvm::zip_equal(op->getResults(), own->getResults()))
      before.replaceUsesWithIf(after, [&](OpOperand &use) {
        return tiles->isProperAncestor(use.getOwner()) && use.getOwner() != own;
      });
  }

  tiles.walk([&](Operation *op) {
    if (auto map = dyn_cast<MapOp>(op))
      shift(map);
    else if (auto load = dyn_cast<LoadOp>(op))
      shift(load);
    else if (auto store = dyn_cast<StoreOp>(op))
      shift(store);
    else if (auto write = dyn_cast<WriteOp>(op))
      shift(write.getSlotMutable());
    else if (auto read = dyn_cast<FromSharedOp>(op))
      shift(read);
    else if (auto product = dyn_cast<MmaOp>(op);
             product && isa<SharedType>(product.getA().getType()))
      shift(product.getAMutable());
  });
}

void SwapGroups::runOnOperation() {
  getOperation()->walk([&](RoleOp role) {
    if (role.getSingle())
      return;
    TileLoop loop(role);
    if (std::optional<StringRef> reason = loop.analyze()) {
      LDBG() << "role at " << role.getLoc() << " stays: it " << *reason;
      return;
    }
    loop.rewrite();
    ++numSwapped;
  });
}
