//===- SpecializeWarps.cpp - Splitting of programs into roles -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule.h"
#include "WidenedRings.h"

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "tile-specialize-warps"

namespace fovea::tile {
#define GEN_PASS_DEF_TILESPECIALIZEWARPS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

namespace {
struct SpecializeWarps
    : fovea::tile::impl::TileSpecializeWarpsBase<SpecializeWarps> {
  void runOnOperation() override {
    getOperation()->walk([&](LaunchOp launch) {
      Block &body = launch.getBody().front();
      if (body.getOps<RingOp>().empty() || !body.getOps<RolesOp>().empty()) {
        LDBG() << "launch at " << launch.getLoc()
               << ": no roles, for it has no rings, or roles already";
        return;
      }
      specialize(launch);
      ++numSpecialized;
    });
  }

private:
  void specialize(LaunchOp launch);
};
} // namespace

/// The work of a role. A program without sends (stores of slots that fragments
/// are written to) has no role for them, nor one that widens where there is
/// nothing to widen. Copies for an item, such as its queries, to a ring of one
/// slot have a role of their own: a thread that waits until the slot is read
/// copies nothing else, while slots for the item's steps may be free.
enum class Work { Copy, CopyItem, Widen, Send, Compute };

/// Returns true if fragments are written to the ring's slots.
static bool isWritten(Value ring) {
  return llvm::any_of(ring.getUsers(), llvm::IsaPred<WriteOp>);
}

/// Returns true if copies to the ring are for an item: they are in a loop, for
/// all iterations of another one in it, and there is one slot.
static bool isOfItem(Value ring) {
  if (cast<RingType>(ring.getType()).getStages() > 1)
    return false;
  return llvm::any_of(ring.getUsers(), [](Operation *user) {
    auto load = dyn_cast<LoadAsyncOp>(user);
    auto loop = load ? dyn_cast<scf::ForOp>(load->getParentOp()) : scf::ForOp();
    if (!loop || load.getRuns())
      return false;
    return loop
        .walk([&](LoadAsyncOp other) {
          return other->getParentOfType<scf::ForOp>() != loop
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  });
}

/// Returns true if a store reads a slot that fragments are written to.
static bool isSend(StoreAsyncOp store) {
  auto wait = store.getSource().getDefiningOp<WaitOp>();
  return wait && isWritten(wait.getRing());
}

/// Returns the kind of work that `op` is part of, unless other work also needs
/// it.
static Work getWork(Operation *op) {
  if (isa<AcquireOp, LoadAsyncOp>(op)) {
    Value ring = isa<AcquireOp>(op) ? cast<AcquireOp>(op).getRing()
                                    : cast<LoadAsyncOp>(op).getRing();
    if (holdsWidened(ring))
      return Work::Widen;
    if (isWritten(ring))
      return Work::Compute;
    return isOfItem(ring) ? Work::CopyItem : Work::Copy;
  }
  auto getReading = [](Value ring) {
    if (holdsBytes(ring))
      return Work::Widen;
    return isWritten(ring) ? Work::Send : Work::Compute;
  };
  if (auto wait = dyn_cast<WaitOp>(op))
    return getReading(wait.getRing());
  if (auto release = dyn_cast<ReleaseOp>(op))
    return getReading(release.getRing());
  if (isa<WidenIntoOp>(op))
    return Work::Widen;
  if (auto store = dyn_cast<StoreAsyncOp>(op))
    return isSend(store) ? Work::Send : Work::Compute;
  // This op belongs to the stores before it.
  if (isa<WaitStoresOp>(op))
    for (Operation *before = op->getPrevNode(); before;
         before = before->getPrevNode())
      if (auto store = dyn_cast<StoreAsyncOp>(before))
        return isSend(store) ? Work::Send : Work::Compute;
  return isa<TakeTurnOp, PassTurnOp>(op) ? Work::Send : Work::Compute;
}

/// Returns true if the program sends something and, where blocks take turns,
/// sends everything that it adds to memory.
static bool canSend(Block &body) {
  bool hasSends = false, hasTurns = false, hasOthers = false;
  body.walk([&](Operation *op) {
    auto store = dyn_cast<StoreAsyncOp>(op);
    hasSends |= store && isSend(store);
    hasOthers |= store && store.getAdd() && !isSend(store);
    hasOthers |= isa<StoreOp>(op) && cast<StoreOp>(op).getAdd();
    hasTurns |= isa<TakeTurnOp>(op);
  });
  return hasSends && !(hasTurns && hasOthers);
}

namespace {
/// The ops that some work of a program depends on; the role that does the work
/// leaves out all others.
class RoleSlice {
public:
  RoleSlice(Block &body, Work work) : body(body), work(work) {
    body.walk([&](Operation *op) {
      if (getWork(op) != work)
        return;
      done.push_back(op);
      addUsed(op);
      addAncestors(op);
    });
  }

  bool isEmpty() const { return done.empty(); }

  /// Clones the needed ops of a block, except its terminator.
  void clone(Block &block, OpBuilder &builder, IRMapping &mapping) const;
  /// Removes the work itself from the block.
  void eraseWork() const;

private:
  void add(Value value);
  /// Adds the values that `op`, or its regions, use.
  void addUsed(Operation *op);
  void addAncestors(Operation *op);
  void cloneLoop(scf::ForOp loop, OpBuilder &builder, IRMapping &mapping) const;
  void cloneBranch(scf::IfOp branch, OpBuilder &builder,
                   IRMapping &mapping) const;

  Block &body;
  Work work;
  /// The work, in order: what it is shows only beside all other work.
  SmallVector<Operation *> done;
  DenseSet<Value> values;
  DenseSet<Operation *> ops;
};
} // namespace

void RoleSlice::eraseWork() const {
  for (Operation *op : llvm::reverse(done))
    op->erase();
}

/// Marks the loops and branches around `op`, and the values that control them,
/// as needed.
void RoleSlice::addAncestors(Operation *op) {
  for (Operation *parent = op->getParentOp(); parent != body.getParentOp();
       parent = parent->getParentOp()) {
    if (!ops.insert(parent).second)
      return;
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      for (Value bound :
           {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
        add(bound);
    else if (auto branch = dyn_cast<scf::IfOp>(parent))
      add(branch.getCondition());
  }
}

void RoleSlice::add(Value value) {
  if (!body.getParent()->isAncestor(value.getParentRegion()) ||
      !values.insert(value).second)
    return;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument.getArgNumber()) {
      int64_t index = argument.getArgNumber() - 1;
      add(loop.getInitArgs()[index]);
      add(loop.getYieldedValues()[index]);
    }
    return;
  }
  Operation *op = value.getDefiningOp();
  int64_t index = cast<OpResult>(value).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    add(loop.getRegionIterArgs()[index]);
    addAncestors(loop.getBody()->getTerminator());
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    add(branch.thenYield().getOperand(index));
    add(branch.elseYield().getOperand(index));
    addAncestors(branch.thenYield());
  } else if (ops.insert(op).second) {
    addUsed(op);
  }
  addAncestors(op);
}

void RoleSlice::addUsed(Operation *op) {
  for (Value value : getUsedValues(op))
    add(value);
}

void RoleSlice::clone(Block &block, OpBuilder &builder,
                      IRMapping &mapping) const {
  for (Operation &op : block.without_terminator()) {
    if (getWork(&op) == work)
      builder.clone(op, mapping);
    else if (!ops.contains(&op))
      continue;
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      cloneLoop(loop, builder, mapping);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      cloneBranch(branch, builder, mapping);
    else
      builder.clone(op, mapping);
  }
}

void RoleSlice::cloneLoop(scf::ForOp loop, OpBuilder &builder,
                          IRMapping &mapping) const {
  SmallVector<Value> inits, yields;
  SmallVector<int64_t> kept;
  for (auto [index, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    if (!values.contains(argument))
      continue;
    kept.push_back(index);
    inits.push_back(mapping.lookupOrDefault(loop.getInitArgs()[index]));
  }
  auto copy = scf::ForOp::create(
      builder, loop.getLoc(), mapping.lookupOrDefault(loop.getLowerBound()),
      mapping.lookupOrDefault(loop.getUpperBound()),
      mapping.lookupOrDefault(loop.getStep()), inits,
      [&](OpBuilder &nested, Location loc, Value iv, ValueRange arguments) {
        mapping.map(loop.getInductionVar(), iv);
        for (auto [index, argument] : llvm::zip_equal(kept, arguments))
          mapping.map(loop.getRegionIterArgs()[index], argument);
        clone(*loop.getBody(), nested, mapping);
        for (int64_t index : kept)
          yields.push_back(
              mapping.lookupOrDefault(loop.getYieldedValues()[index]));
        scf::YieldOp::create(nested, loc, yields);
      });
  for (auto [index, result] : llvm::zip_equal(kept, copy.getResults()))
    mapping.map(loop.getResult(index), result);
}

void RoleSlice::cloneBranch(scf::IfOp branch, OpBuilder &builder,
                            IRMapping &mapping) const {
  SmallVector<int64_t> kept;
  for (OpResult result : branch.getResults())
    if (values.contains(result))
      kept.push_back(result.getResultNumber());
  auto cloneRegion = [&](Region &region, OpBuilder &nested, Location loc) {
    clone(region.front(), nested, mapping);
    SmallVector<Value> yields;
    for (int64_t index : kept)
      yields.push_back(mapping.lookupOrDefault(
          region.front().getTerminator()->getOperand(index)));
    scf::YieldOp::create(nested, loc, yields);
  };
  auto copyThen = [&](OpBuilder &nested, Location loc) {
    cloneRegion(branch.getThenRegion(), nested, loc);
  };
  auto copyElse = [&](OpBuilder &nested, Location loc) {
    cloneRegion(branch.getElseRegion(), nested, loc);
  };
  Value condition = mapping.lookupOrDefault(branch.getCondition());
  auto copy =
      branch.getElseRegion().empty()
          ? scf::IfOp::create(builder, branch.getLoc(), condition, copyThen)
          : scf::IfOp::create(builder, branch.getLoc(), condition, copyThen,
                              copyElse);
  for (auto [index, result] : llvm::zip_equal(kept, copy.getResults()))
    mapping.map(branch.getResult(index), result);
}

namespace {
/// A role of one thread, or of the threads that copy runs of rows.
struct Service {
  std::string name;
  RoleSlice slice;
  /// The lane of turns that this role serves, if several do the same work.
  int64_t lane = 0;
  /// True if several threads share the work: those that copy runs of rows.
  bool isShared = false;
};
} // namespace

/// Returns the number of lanes in which a program takes turns.
static int64_t getNumLanes(Block &body) {
  int64_t lanes = 1;
  body.walk([&](TakeTurnOp turn) {
    lanes = std::max<int64_t>(lanes, turn.getLanes());
  });
  return lanes;
}

/// Returns the lane of a turn, or of a send after a turn was taken; null where
/// there is only one lane.
static Value getLane(Operation *op) {
  if (auto turn = dyn_cast<TakeTurnOp>(op))
    return turn.getLane();
  if (auto turn = dyn_cast<PassTurnOp>(op))
    return turn.getLane();
  for (; !isa<RoleOp>(op); op = op->getParentOp())
    for (Operation *before = op->getPrevNode(); before;
         before = before->getPrevNode())
      if (auto turn = dyn_cast<TakeTurnOp>(before))
        return turn.getLane();
  return {};
}

/// Removes from a role all sends of other lanes. The role still waits for the
/// tiles of all lanes and releases them, so that roles go through a ring
/// together.
static void keepLane(Block &body, int64_t lane) {
  SmallVector<std::pair<Operation *, Value>> sends;
  body.walk([&](Operation *op) {
    if (isa<TakeTurnOp, PassTurnOp, StoreAsyncOp, WaitStoresOp>(op))
      sends.emplace_back(op, getLane(op));
  });
  for (auto [op, sent] : sends) {
    if (!sent) {
      if (lane > 0)
        op->erase();
      continue;
    }
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Value kept = arith::ConstantIndexOp::create(builder, loc, lane);
    Value isKept = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         sent, kept);
    auto branch = scf::IfOp::create(builder, loc, isKept);
    op->moveBefore(branch.thenYield());
  }
}

/// Returns true if `op` computes scalars from scalars: it may run before the
/// roles.
static bool isScalar(Operation *op) {
  auto isTile = [](Type type) { return isa<TileDialect>(type.getDialect()); };
  WalkResult result = op->walk([&](Operation *nested) {
    bool isFree = isMemoryEffectFree(nested) ||
                  hasSingleEffect<MemoryEffects::Read>(nested);
    bool isPlain = (!isa_and_present<TileDialect>(nested->getDialect()) ||
                    isa<DealtCountOp, DealtOp>(nested)) &&
                   llvm::none_of(nested->getOperandTypes(), isTile) &&
                   llvm::none_of(nested->getResultTypes(), isTile);
    return isFree && isPlain ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

/// Returns the warps that widen tiles; 0 if there is nothing to widen.
static int64_t getWideners(Block &body) {
  int64_t warps = 0;
  body.walk([&](WidenIntoOp widen) {
    warps = std::max<int64_t>(warps, widen.getWarps());
  });
  return warps;
}

/// Returns true if the program copies runs of rows.
static bool copiesRuns(Block &body) {
  WalkResult result = body.walk([](LoadAsyncOp load) {
    return load.getRuns() ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

void SpecializeWarps::specialize(LaunchOp launch) {
  Block &body = launch.getBody().front();
  // Rings, and scalars that depend only on scalars, stay before the roles.
  DenseSet<Operation *> common;
  SmallVector<Operation *> inRoles;
  for (Operation &op : body.without_terminator()) {
    bool isReady = llvm::all_of(op.getOperands(), [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      return !producer || producer->getBlock() != &body ||
             common.contains(producer);
    });
    if (isReady && (isa<RingOp>(op) || isScalar(&op)))
      common.insert(&op);
    else
      inRoles.push_back(&op);
  }

  // The registers that a thread gets at the launch, and their redistribution.
  int64_t warps = launch.getWarps(), wideners = getWideners(body);
  bool hasRuns = copiesRuns(body);
  IntegerAttr serviceRegisters, widenRegisters, computeRegisters;
  OpBuilder builder(body.getTerminator());
  if (auto registers = machine::dealRegisters(
          machine::getGpuOrDefault(launch).getRegistersPerCore(), warps,
          wideners)) {
    // Places of rows are computed in registers, which each warp group leaves.
    constexpr int64_t kFewestForPlaces = 32, kLeft = 8;
    if (hasRuns && registers->service < kFewestForPlaces) {
      registers->compute -= kLeft;
      registers->service += kLeft * (warps / kGroupWarps);
    }
    computeRegisters = builder.getI64IntegerAttr(registers->compute);
    serviceRegisters = builder.getI64IntegerAttr(registers->service);
    widenRegisters = builder.getI64IntegerAttr(registers->widen);
  }

  Location loc = launch.getLoc();
  LDBG() << "launch at " << loc << ": " << warps << " warps compute";
  if (computeRegisters)
    LDBG() << "  with " << computeRegisters.getInt()
           << " registers a thread, and other roles with "
           << serviceRegisters.getInt();
  auto roles = RolesOp::create(builder, loc);
  builder.createBlock(&roles.getBody());
  auto addRole = [&](StringRef name, int64_t warps, IntegerAttr registers,
                     bool isSingle) {
    auto role = RoleOp::create(builder, loc, builder.getStringAttr(name),
                               builder.getI64IntegerAttr(warps), registers,
                               isSingle ? builder.getUnitAttr() : UnitAttr());
    role.getBody().emplaceBlock();
    RoleOp::ensureTerminator(role.getBody(), builder, loc);
    return &role.getBody().front();
  };
  Block *compute = addRole("compute", warps, computeRegisters,
                           /*isSingle=*/false);
  for (Operation *op : inRoles)
    op->moveBefore(compute->getTerminator());

  // These roles share a warp group before the others.
  SmallVector<Service> services;
  if (RoleSlice slice(*compute, Work::Copy); !slice.isEmpty())
    services.push_back({"load", std::move(slice), /*lane=*/0, hasRuns});
  if (RoleSlice slice(*compute, Work::CopyItem); !slice.isEmpty())
    services.push_back({"load_item", std::move(slice)});
  if (RoleSlice slice(*compute, Work::Send);
      !slice.isEmpty() && canSend(*compute)) {
    int64_t lanes = getNumLanes(*compute);
    for (int64_t lane = 0; lane < lanes; ++lane)
      services.push_back(
          {lanes == 1 ? "store" : ("store" + Twine(lane)).str(), slice, lane});
  }
  builder.setInsertionPointToStart(&roles.getBody().front());
  int64_t free = kGroupWarps;
  for (const auto &[index, service] : llvm::enumerate(services)) {
    int64_t share = free / static_cast<int64_t>(services.size() - index);
    LDBG() << "  role " << service.name << ": "
           << (service.isShared ? "the threads" : "one thread") << " of "
           << share << " warps";
    Block *body = addRole(service.name, share, serviceRegisters,
                          /*isSingle=*/!service.isShared);
    free -= share;
    OpBuilder nested(body->getTerminator());
    IRMapping mapping;
    service.slice.clone(*compute, nested, mapping);
    keepLane(*body, service.lane);
  }
  if (wideners) {
    RoleSlice slice(*compute, Work::Widen);
    LDBG() << "  role widen: " << wideners << " warps";
    Block *body =
        addRole("widen", wideners, widenRegisters, /*isSingle=*/false);
    OpBuilder nested(body->getTerminator());
    IRMapping mapping;
    slice.clone(*compute, nested, mapping);
    services.push_back({"widen", std::move(slice)});
  }
  for (Service &service : services)
    if (service.lane == 0)
      service.slice.eraseWork();
}
