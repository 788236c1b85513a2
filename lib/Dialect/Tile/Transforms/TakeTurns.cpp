//===- TakeTurns.cpp - Warp groups that issue products in turn ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "Differences.h"
#include "OwnRows.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#define DEBUG_TYPE "tile-take-turns"

namespace fovea::tile {
#define GEN_PASS_DEF_TILETAKETURNS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {
/// Products that are in flight together, in one block.
struct Step {
  MmaAsyncOp first, last;
};

struct TakeTurns : fovea::tile::impl::TileTakeTurnsBase<TakeTurns> {
  void runOnOperation() override;
};
} // namespace

/// Returns the products of a block that are issued before one is waited for, if
/// there are several.
static std::optional<Step> findStep(Block &block) {
  Step step;
  for (Operation &op : block) {
    if (isa<WaitMmaOp>(op))
      break;
    auto product = dyn_cast<MmaAsyncOp>(op);
    if (!product)
      continue;
    if (!step.first)
      step.first = product;
    step.last = product;
  }
  if (step.first == step.last)
    return std::nullopt;
  return step;
}

/// Returns the steps of a role that each of its warp groups has equally often.
static SmallVector<Step> findSteps(RoleOp role) {
  SmallVector<Value> sources;
  role.walk([&](Operation *op) {
    if (isa<GroupOp, AnyOp, ExtremesOp>(op))
      llvm::append_range(sources, op->getResults());
  });
  Differences differences(sources);
  SmallVector<Step> steps;
  role.walk([&](Block *block) {
    std::optional<Step> step = findStep(*block);
    if (!step)
      return;
    bool isAlike = differences.isRunAlike(step->first);
    LDBG() << "products at " << step->first.getLoc()
           << (isAlike ? " are issued in turn" : " are some groups' only");
    if (isAlike)
      steps.push_back(*step);
  });
  return steps;
}

/// Lets the last group pass its turn to the first, before anything else.
static void passToFirst(RoleOp role) {
  auto builder = OpBuilder::atBlockBegin(&role.getBody().front());
  Location loc = role.getLoc();
  Value group = GroupOp::create(builder, loc);
  Value last = arith::ConstantIndexOp::create(
      builder, loc, role.getWarps() / kGroupWarps - 1);
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       group, last);
  auto branch = scf::IfOp::create(builder, loc, isLast);
  OpBuilder inBranch = branch.getThenBodyBuilder();
  PassGroupTurnOp::create(inBranch, loc);
}

void TakeTurns::runOnOperation() {
  SmallVector<RoleOp> roles;
  getOperation()->walk([&](RoleOp role) {
    if (!role->getParentOfType<LaunchOp>().getInTurn() || role.getSingle())
      return;
    auto rows = static_cast<int64_t>(role.getWarps()) * kWarpRows;
    if (std::optional<StringRef> reason = findSharedRows(role, rows))
      LDBG() << "role at " << role.getLoc() << " stays: it " << *reason;
    else
      roles.push_back(role);
  });
  for (RoleOp role : roles) {
    SmallVector<Step> steps = findSteps(role);
    if (steps.empty())
      continue;
    passToFirst(role);
    for (Step step : steps) {
      OpBuilder builder(step.first);
      TakeGroupTurnOp::create(builder, step.first.getLoc());
      builder.setInsertionPointAfter(step.last);
      PassGroupTurnOp::create(builder, step.last.getLoc());
      ++numSteps;
    }
  }
}
