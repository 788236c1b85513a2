//===- OwnSlots.cpp - Slots of warp groups --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "Indices.h"
#include "OwnRows.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

#define DEBUG_TYPE "tile-own-slots"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEOWNSLOTS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

struct OwnSlots : fovea::tile::impl::TileOwnSlotsBase<OwnSlots> {
  void runOnOperation() override;

private:
  void split(RolesOp roles);
};

/// What another role does with a use of a ring: it fills the slot by a copy, or
/// stores what it holds.
struct Service {
  /// In the order in which they run; consecutive.
  SmallVector<Operation *> ops;
  bool isLoad;
};

/// A ring of one slot for all rows of the role that computes.
class SharedSlot {
public:
  SharedSlot(RingOp ring, RoleOp compute, scf::ForOp items)
      : ring(ring), compute(compute), items(items) {}

  /// Returns the reason for which its groups cannot have slots of their own, or
  /// nullopt if they can.
  std::optional<StringRef> analyze();

  /// Gives each group a slot. `group` is the number of the group that computes.
  void rewrite(Value group);

private:
  std::optional<StringRef> analyzeCompute(Operation *user);
  std::optional<StringRef> analyzeService(Operation *user);
  /// Adds what reads or writes the tile, through a view of it or not.
  std::optional<StringRef> addAccesses(Value tile);
  /// Returns true if other roles can compute `value` for an item and a group.
  bool isOfItem(Value value);
  Value clone(OpBuilder &builder, Value value, IRMapping &mapping);
  void rewriteCompute(Operation *op, Value group);
  void rewriteService(const Service &service);

  int64_t getNumGroups() {
    return static_cast<int64_t>(compute.getWarps()) / kGroupWarps;
  }

  RingOp ring;
  RoleOp compute;
  /// The loop over items.
  scf::ForOp items;
  SmallVector<Operation *> computes;
  SmallVector<Service> services;
  /// The distance of the rows that a group has from those that it owns, if it
  /// may be any.
  std::optional<Value> distance;
  /// The ring that takes the place of the slot.
  RingOp own;
};

} // namespace

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

std::optional<StringRef> SharedSlot::addAccesses(Value tile) {
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    Value by;
    Value view = tile;
    if (auto shift = dyn_cast<ShiftRowsOp>(user)) {
      by = shift.getBy();
      view = shift.getResult();
    }
    if (distance.value_or(by) != by)
      return "has rows of different distances";
    distance = by;
    for (OpOperand &access : by ? view.getUses() : tile.getUses()) {
      auto product = dyn_cast<MmaOp>(access.getOwner());
      bool isLeft = product && access.getOperandNumber() == 0 &&
                    product.getKind() == MmaKind::Wgmma;
      if (!isLeft && !isa<WriteOp>(access.getOwner()))
        return "is read by more than products";
    }
  }
  return std::nullopt;
}

bool SharedSlot::isOfItem(Value value) {
  if (!compute.getBody().isAncestor(value.getParentRegion()) ||
      value == items.getInductionVar())
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isOfItem(operand); });
}

std::optional<StringRef> SharedSlot::analyzeCompute(Operation *user) {
  computes.push_back(user);
  if (!items->isProperAncestor(user))
    return "is used outside of the loop over items";
  if (isa<WaitOp, AcquireOp>(user))
    return addAccesses(user->getResult(0));
  if (!isa<ReleaseOp, WriteOp>(user))
    return "has other uses";
  return std::nullopt;
}

std::optional<StringRef> SharedSlot::analyzeService(Operation *user) {
  auto role = user->getParentOfType<RoleOp>();
  auto loop = dyn_cast<scf::ForOp>(user->getParentOp());
  if (!role || !role.getSingle() || !loop || loop->getParentOp() != role ||
      loop.getLowerBound() != items.getLowerBound() ||
      loop.getUpperBound() != items.getUpperBound() ||
      loop.getStep() != items.getStep())
    return "has a role with other loops";
  // What the other ops of a use are is found from its first one.
  if (isa<LoadAsyncOp, ReleaseOp>(user))
    return std::nullopt;
  Service service;
  service.isLoad = isa<AcquireOp>(user);
  service.ops.push_back(user);
  Operation *next = user->getNextNode();
  if (service.isLoad) {
    auto load = dyn_cast<LoadAsyncOp>(next);
    if (!load || load.getSlot() != user->getResult(0) || load.getRuns() ||
        !load.getRows().empty())
      return "is not filled by one copy";
    service.ops.push_back(load);
  } else {
    auto store = dyn_cast<StoreAsyncOp>(next);
    if (!isa<WaitOp>(user) || !store || store.getAdd() ||
        store.getSource() != user->getResult(0))
      return "is not stored at once";
    auto wait = dyn_cast<WaitStoresOp>(store->getNextNode());
    auto release =
        wait ? dyn_cast<ReleaseOp>(wait->getNextNode()) : ReleaseOp();
    if (!release || release.getRing() != ring.getRing())
      return "is not stored at once";
    llvm::append_range(service.ops,
                       ArrayRef<Operation *>{store, wait, release});
  }
  services.push_back(std::move(service));
  return std::nullopt;
}

std::optional<StringRef> SharedSlot::analyze() {
  RingType type = ring.getRing().getType();
  if (type.getStages() != 1 || ring.getBase())
    return "has several slots, or those of another ring";
  if (type.getTile().getShape().front() !=
      kWarpRows * static_cast<int64_t>(compute.getWarps()))
    return "has slots of other rows";
  for (Operation *user : ring.getRing().getUsers()) {
    auto reason = compute->isProperAncestor(user) ? analyzeCompute(user)
                                                  : analyzeService(user);
    if (reason)
      return reason;
  }
  if (computes.empty() || services.empty())
    return "is of one role";
  if (!distance || (*distance && !isOfItem(*distance)))
    return "has rows that other roles do not know";
  // The result before has been stored by the time of the next one.
  if (llvm::count_if(computes, llvm::IsaPred<AcquireOp>) == 1)
    return "is written once for an item";
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// Emits the scalar ops of the role that computes which `value` follows from.
Value SharedSlot::clone(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || !compute->isProperAncestor(op))
    return value;
  for (Value operand : op->getOperands())
    mapping.map(operand, clone(builder, operand, mapping));
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

/// Returns the number of a group's use.
static Value getOwnUse(Indices &index, Value use, int64_t groups, Value group) {
  Value first = index.create<arith::MulIOp>(use, index.constant(groups));
  return index.create<arith::AddIOp>(first, group);
}

void SharedSlot::rewriteCompute(Operation *op, Value group) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Indices index(builder, loc);
  auto getUse = [&](Value use) {
    return getOwnUse(index, use, getNumGroups(), group);
  };
  if (auto release = dyn_cast<ReleaseOp>(op)) {
    release.getUseMutable().assign(getUse(release.getUse()));
    release.getRingMutable().assign(own.getRing());
    return;
  }
  if (auto write = dyn_cast<WriteOp>(op)) {
    write.getUseMutable().assign(getUse(write.getUse()));
    write.getRingMutable().assign(own.getRing());
    return;
  }
  SharedType tile = own.getRing().getType().getTile();
  Value slot;
  if (auto wait = dyn_cast<WaitOp>(op))
    slot = WaitOp::create(builder, loc, tile, own, getUse(wait.getUse()));
  else
    slot = AcquireOp::create(builder, loc, tile, own,
                             getUse(cast<AcquireOp>(op).getUse()));
  Value back = index.create<arith::MulIOp>(group, index.constant(-kGroupRows));
  Value view = ShiftRowsOp::create(builder, loc, slot, back);
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    if (auto shift = dyn_cast<ShiftRowsOp>(user)) {
      shift.replaceAllUsesWith(view);
      shift.erase();
    }
  op->getResult(0).replaceAllUsesWith(view);
  op->erase();
}

void SharedSlot::rewriteService(const Service &service) {
  Operation *first = service.ops.front();
  OpBuilder builder(first);
  Location loc = first->getLoc();
  Indices index(builder, loc);
  int64_t groups = getNumGroups();
  auto loop = cast<scf::ForOp>(first->getParentOp());
  auto getDistance = [&](Value group) -> Value {
    if (!*distance)
      return index.constant(0);
    IRMapping mapping;
    mapping.map(items.getInductionVar(), loop.getInductionVar());
    compute.walk([&](GroupOp op) { mapping.map(op.getResult(), group); });
    return clone(builder, *distance, mapping);
  };
  Value use = isa<AcquireOp>(first) ? cast<AcquireOp>(first).getUse()
                                    : cast<WaitOp>(first).getUse();
  auto ofGroups = scf::ForOp::create(builder, loc, index.constant(0),
                                     index.constant(groups), index.constant(1));
  builder.setInsertionPointToStart(ofGroups.getBody());
  Value group = ofGroups.getInductionVar();
  if (*distance) {
    // The group with a tile's first rows ends first. Where groups take rows
    // there and back, it has the last ones of the next tile, and waits for them
    // first.
    Value isFirst = builder.createOrFold<arith::CmpIOp>(
        loc,
        service.isLoad ? arith::CmpIPredicate::ne : arith::CmpIPredicate::eq,
        getDistance(index.constant(0)), index.constant(0));
    Value other =
        index.create<arith::SubIOp>(index.constant(groups - 1), group);
    group = arith::SelectOp::create(builder, loc, isFirst, group, other);
  }
  Value row = index.create<arith::MulIOp>(group, index.constant(kGroupRows));
  row = index.create<arith::AddIOp>(row, getDistance(group));
  Value ownUse = getOwnUse(index, use, groups, group);

  IRMapping mapping;
  mapping.map(ring.getRing(), own.getRing());
  mapping.map(use, ownUse);
  auto shift = [&](auto access) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(access);
    moveRows(builder, access, access.getIndicesMutable(), access.getDims(),
             row);
  };
  SharedType tile = own.getRing().getType().getTile();
  for (Operation *op : service.ops) {
    Operation *copy = builder.clone(*op, mapping);
    if (isa<AcquireOp, WaitOp>(copy))
      copy->getResult(0).setType(tile);
    else if (auto load = dyn_cast<LoadAsyncOp>(copy))
      shift(load);
    else if (auto store = dyn_cast<StoreAsyncOp>(copy)) {
      shift(store);
      if (Value valid = store.getValid()) {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPoint(store);
        Value left = arith::SubIOp::create(builder, loc, valid, row);
        store.getValidMutable().assign(left);
      }
    }
  }
  for (Operation *op : llvm::reverse(service.ops))
    op->erase();
}

void SharedSlot::rewrite(Value group) {
  OpBuilder builder(ring);
  RingType type = ring.getRing().getType();
  SharedType tile = type.getTile();
  int64_t groups = getNumGroups();
  auto ownTile =
      SharedType::get(tile.getContext(), {kGroupRows, tile.getShape().back()},
                      tile.getElementType(), tile.getSwizzle());
  own = RingOp::create(builder, ring.getLoc(),
                       RingType::get(type.getContext(), groups, ownTile));
  own.setGroups(groups);
  // Distances are emitted for other roles before they lose their use.
  for (const Service &service : services)
    rewriteService(service);
  for (Operation *op : computes)
    rewriteCompute(op, group);
  ring.erase();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Returns the number of the group that runs the role.
static Value getGroup(RoleOp role) {
  for (auto group : role.getBody().getOps<GroupOp>())
    return group;
  auto builder = OpBuilder::atBlockBegin(&role.getBody().front());
  return GroupOp::create(builder, role.getLoc());
}

void OwnSlots::split(RolesOp roles) {
  RoleOp compute;
  for (auto role : roles.getBody().getOps<RoleOp>()) {
    if (!role.getSingle() && compute)
      return;
    if (!role.getSingle())
      compute = role;
  }
  if (!compute)
    return;
  auto loops = llvm::to_vector(compute.getBody().getOps<scf::ForOp>());
  if (loops.size() != 1)
    return;
  if (auto reason = findSharedRows(
          compute, kWarpRows * static_cast<int64_t>(compute.getWarps()))) {
    LDBG() << "role at " << compute.getLoc() << " stays: it " << *reason;
    return;
  }
  auto launch = roles->getParentOfType<LaunchOp>();
  for (RingOp ring : llvm::to_vector(launch.getBody().getOps<RingOp>())) {
    SharedSlot slot(ring, compute, loops.front());
    if (auto reason = slot.analyze()) {
      LDBG() << "ring at " << ring.getLoc() << " stays: it " << *reason;
      continue;
    }
    slot.rewrite(getGroup(compute));
    ++numSplit;
  }
}

void OwnSlots::runOnOperation() {
  getOperation()->walk([&](RolesOp roles) { split(roles); });
}
