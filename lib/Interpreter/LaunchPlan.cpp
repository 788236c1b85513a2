//===- LaunchPlan.cpp - Checks of memory, layouts and budgets -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadBlock.h"

#include "mlir/Analysis/Liveness.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

Operation *interpreter::getRoleOp(Operation *op) {
  while (!isa<tile::RoleOp, tile::LaunchOp>(op))
    op = op->getParentOp();
  return op;
}

/// Returns the number of warps that compute on a role's fragments.
static int64_t getWarps(Operation *role) {
  if (auto op = dyn_cast<tile::RoleOp>(role))
    return op.getWarps();
  return cast<tile::LaunchOp>(role).getWarps();
}

static tile::FragmentType getFragment(Type type) {
  if (auto token = dyn_cast<tile::TokenType>(type))
    return token.getFragment();
  return dyn_cast<tile::FragmentType>(type);
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// Returns true if only ops that take elements one by one read the result of a
/// `tile.map`: each element can be computed where it is read.
static bool isComputedWhereRead(mlir::Value value) {
  return value.getDefiningOp<tile::MapOp>() &&
         llvm::all_of(value.getUsers(),
                      llvm::IsaPred<tile::MapOp, tile::ReduceOp, tile::AnyOp,
                                    tile::ExtremesOp>);
}

namespace {

/// A lower bound of the 32-bit registers of one thread that a role's fragments
/// take, at the point where most are live.
class RegisterEstimate {
public:
  explicit RegisterEstimate(Operation *role)
      : warps(getWarps(role)), liveness(role) {
    visit(role->getRegion(0).front(), {});
  }

  int64_t peak = 0;
  Operation *place = nullptr;

private:
  using Values = llvm::SetVector<mlir::Value>;

  void visit(Block &block, const Values &outer) {
    const LivenessBlockInfo *info = liveness.getLiveness(&block);
    for (Operation &op : block) {
      // An operand may share the registers of a result.
      Values before = outer, after = outer;
      for (mlir::Value value : info->currentlyLiveValues(&op)) {
        Operation *start = info->getStartOperation(value);
        if (start != &op)
          before.insert(value);
        if (info->isLiveOut(value) ||
            info->getEndOperation(value, start) != &op)
          after.insert(value);
      }
      note(before, &op);
      note(after, &op);
      if (op.getNumRegions() == 0 || isa<tile::MapOp, tile::RolesOp>(op))
        continue;
      // A loop reads its outer values in every iteration, so they stay live in
      // it.
      Values through = after;
      for (mlir::Value result : op.getResults())
        through.remove(result);
      if (isa<LoopLikeOpInterface>(op))
        op.walk([&](Operation *nested) {
          for (mlir::Value operand : nested->getOperands())
            if (nested != &op && before.contains(operand))
              through.insert(operand);
        });
      for (Region &region : op.getRegions())
        for (Block &body : region)
          visit(body, through);
    }
  }

  void note(const Values &values, Operation *op) {
    int64_t sum = 0;
    // Values read from shared memory can be read when they are used.
    for (mlir::Value value : values)
      if (!value.getDefiningOp<tile::FromSharedOp>() &&
          !isComputedWhereRead(value))
        sum += count(value.getType());
    if (sum <= peak)
      return;
    peak = sum;
    place = op;
  }

  int64_t count(Type type) const {
    tile::FragmentType fragment = getFragment(type);
    if (!fragment)
      return 0;
    int64_t elements = 1;
    for (int64_t size : fragment.getShape())
      elements *= size;
    int64_t perThread =
        fragment.getLayout()
            ? fragment.getLayout().getNumRegisters()
            : llvm::divideCeil(elements, warps * tile::kWarpSize);
    return llvm::divideCeil(
        perThread * fragment.getElementType().getIntOrFloatBitWidth(), 32);
  }

  int64_t warps;
  Liveness liveness;
};

} // namespace

static LogicalResult checkRegisters(Operation *role, int64_t budget) {
  RegisterEstimate estimate(role);
  if (estimate.peak <= budget)
    return success();
  InFlightDiagnostic diagnostic = role->emitOpError("needs at least ")
                                  << estimate.peak
                                  << " registers a thread for its fragments, "
                                     "of at most "
                                  << budget;
  diagnostic.attachNote(estimate.place->getLoc()) << "live here";
  return diagnostic;
}

/// Checks the roles of a launch, and the ops outside of them.
static LogicalResult checkBudgets(tile::LaunchOp launch,
                                  const SimulationOptions &options) {
  SmallVector<tile::RoleOp> roles;
  launch.walk([&](tile::RoleOp role) { roles.push_back(role); });
  int64_t threads = launch.getWarps() * tile::kWarpSize, granted = 0;
  if (!roles.empty())
    threads = 0;
  for (tile::RoleOp role : roles) {
    threads += role.getWarps() * tile::kWarpSize;
    granted += role.getWarps() * tile::kWarpSize *
               static_cast<int64_t>(role.getRegisters().value_or(0));
  }
  if (threads > machine::kLargestBlock)
    return launch.emitOpError("has ")
           << threads << " threads a block, more than "
           << machine::kLargestBlock;
  int64_t registers = options.gpu.registersPerCore;
  if (granted > registers)
    return launch.emitOpError("grants its roles ")
           << granted << " registers, of " << registers;
  int64_t share =
      machine::getEqualShare(registers, threads, options.threadRegisters);
  for (tile::RoleOp role : roles) {
    int64_t budget = role.getRegisters().value_or(share);
    if (failed(checkRegisters(
            role, std::min<int64_t>(budget, options.threadRegisters))))
      return failure();
  }
  return checkRegisters(launch, share);
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

static LogicalResult checkFragments(tile::LaunchOp launch) {
  WalkResult walk = launch.getBody().walk([&](Operation *op) {
    Operation *role = getRoleOp(op->getParentOp());
    int64_t threads = getWarps(role) * tile::kWarpSize;
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(),
                                              op->getResultTypes())) {
      tile::FragmentType fragment = getFragment(type);
      if (!fragment)
        continue;
      if (auto roleOp = dyn_cast<tile::RoleOp>(role);
          roleOp && roleOp.getSingle()) {
        op->emitOpError("is on fragments, in a role that one thread runs");
        return WalkResult::interrupt();
      }
      if (tile::LayoutAttr layout = fragment.getLayout();
          layout && layout.getNumThreads() != threads) {
        op->emitOpError("is on a fragment of ")
            << layout.getNumThreads() << " threads, in a role of " << threads
            << ": " << fragment;
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

FailureOr<LaunchPlan>
interpreter::planLaunch(tile::LaunchOp launch,
                        const SimulationOptions &options) {
  if (failed(checkFragments(launch)) || failed(checkBudgets(launch, options)))
    return failure();
  LaunchPlan plan;
  plan.memory = tile::planSharedMemory(launch);
  plan.hasTurns =
      launch.getBody()
          .walk([](tile::PassTurnOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  launch.getBody().walk([&](Operation *op) {
    if (isa<tile::GroupOp, tile::TakeGroupTurnOp, tile::PassGroupTurnOp>(op))
      plan.groups[getRoleOp(op)] = getWarps(getRoleOp(op)) / tile::kGroupWarps;
  });
  WalkResult walk = launch.getBody().walk([&](tile::WaitOp op) {
    auto ring = op.getRing().getDefiningOp<tile::RingOp>();
    if (!ring) {
      op.emitOpError("is on a ring that no tile.ring of the launch gives");
      return WalkResult::interrupt();
    }
    LaunchPlan::Waiters &waiters = plan.waiters[ring];
    waiters.resize(ring.getNumGroups());
    Operation *role = getRoleOp(op);
    int64_t numGroups = plan.getNumGroups(role);
    if (waiters.size() > 1 && numGroups > 1 &&
        numGroups != static_cast<int64_t>(waiters.size())) {
      op.emitOpError("is on a ring of slots of ")
          << waiters.size() << " groups, in a role of " << numGroups;
      return WalkResult::interrupt();
    }
    if (!llvm::is_contained(waiters.front(), Runner(role, 0)))
      for (int64_t group = 0; group < numGroups; ++group)
        for (auto [owner, runners] : llvm::enumerate(waiters))
          if (waiters.size() == 1 || numGroups == 1 ||
              group == static_cast<int64_t>(owner))
            runners.emplace_back(role, group);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  if (plan.memory.bytes > options.gpu.sharedPerBlock)
    return launch.emitOpError("needs ")
           << plan.memory.bytes
           << " bytes of shared memory a block, of at most "
           << options.gpu.sharedPerBlock;
  return plan;
}
