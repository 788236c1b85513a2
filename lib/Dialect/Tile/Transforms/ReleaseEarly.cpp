//===- ReleaseEarly.cpp - Slots released by the last step -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

#define DEBUG_TYPE "tile-release-early"

namespace fovea::tile {
#define GEN_PASS_DEF_TILERELEASEEARLY
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {
struct ReleaseEarly : fovea::tile::impl::TileReleaseEarlyBase<ReleaseEarly> {
  void runOnOperation() override;
};
} // namespace

/// Returns true if each group that reads the ring has one slot of it.
static bool hasOneSlot(Value ring) {
  auto op = ring.getDefiningOp<RingOp>();
  return op && op.getRing().getType().getStages() == op.getNumGroups() &&
         !op.getBase();
}

/// Returns true if an op in `op`, or `op` itself, may read shared memory.
static bool mayRead(Operation *op) {
  return op
      ->walk([](Operation *nested) {
        return isa<MmaOp, MmaAsyncOp, FromSharedOp, WriteOp, StoreAsyncOp>(
                   nested)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns the wait behind which an iteration of the loop reads no tile from
/// outside of the loop: it reads only one, as the left operand of one product.
/// Null if there is none.
static WaitMmaOp findLastRead(scf::ForOp loop) {
  SmallVector<OpOperand *> reads;
  loop.getBody()->walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (isa<SharedType>(operand.get().getType()) &&
          loop.isDefinedOutsideOfLoop(operand.get()))
        reads.push_back(&operand);
  });
  if (reads.size() != 1)
    return {};
  auto product = dyn_cast<MmaAsyncOp>(reads.front()->getOwner());
  if (!product || product->getParentOp() != loop ||
      !product.getToken().hasOneUse())
    return {};
  auto wait = dyn_cast<WaitMmaOp>(*product.getToken().user_begin());
  return wait && wait->getParentOp() == loop ? wait : WaitMmaOp();
}

/// Emits a copy of `release` under a condition.
static void releaseIf(OpBuilder &builder, ReleaseOp release, Value condition) {
  auto branch = scf::IfOp::create(builder, release.getLoc(), condition);
  branch.getThenBodyBuilder().clone(*release);
}

/// Releases in the last iteration of the loop, behind the last read, or in
/// front of the loop if it has no iteration.
static void releaseInLoop(ReleaseOp release, scf::ForOp loop, WaitMmaOp last) {
  Location loc = release.getLoc();
  OpBuilder builder(loop);
  auto isOver = [&](Value place) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, place,
                                 loop.getUpperBound());
  };
  releaseIf(builder, release, isOver(loop.getLowerBound()));
  builder.setInsertionPointAfter(last);
  Value next = arith::AddIOp::create(builder, loc, loop.getInductionVar(),
                                     loop.getStep());
  releaseIf(builder, release, isOver(next));
}

/// Releases behind the last read of what comes before `end` in its block, if
/// that is in a loop. Returns false, with nothing changed, if it is not.
static bool moveUp(ReleaseOp release, Block::iterator end) {
  Block &block = *end->getBlock();
  while (end != block.begin() && !mayRead(&*std::prev(end)))
    --end;
  if (end == block.begin())
    return false;
  Operation *reader = &*std::prev(end);
  if (auto loop = dyn_cast<scf::ForOp>(reader)) {
    WaitMmaOp last = findLastRead(loop);
    if (last)
      releaseInLoop(release, loop, last);
    return bool(last);
  }
  // A branch for items that have steps.
  auto branch = dyn_cast<scf::IfOp>(reader);
  if (!branch || branch.getElseRegion().empty() ||
      llvm::any_of(*branch.elseBlock(),
                   [](Operation &op) { return mayRead(&op); }) ||
      !moveUp(release, branch.thenBlock()->getTerminator()->getIterator()))
    return false;
  OpBuilder::atBlockBegin(branch.elseBlock()).clone(*release);
  return true;
}

/// Adds the ops of the block that `value` follows from, operands first. Returns
/// false if one of them is more than arithmetic.
static bool findArithmetic(Value value, Block &block,
                           llvm::SetVector<Operation *> &ops) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block || ops.contains(op))
    return true;
  if (op->getNumRegions() != 0 || !isMemoryEffectFree(op) ||
      !llvm::all_of(op->getOperands(), [&](Value operand) {
        return findArithmetic(operand, block, ops);
      }))
    return false;
  ops.insert(op);
  return true;
}

/// Computes the number of the release's use at the start of its block; returns
/// false if it follows from what the block does.
static bool computeFirst(ReleaseOp release) {
  Block &block = *release->getBlock();
  llvm::SetVector<Operation *> ops;
  if (!findArithmetic(release.getUse(), block, ops))
    return false;
  for (Operation *op : llvm::reverse(ops))
    if (op != &block.front())
      op->moveBefore(&block.front());
  return true;
}

void ReleaseEarly::runOnOperation() {
  SmallVector<ReleaseOp> releases;
  getOperation()->walk([&](ReleaseOp release) {
    auto role = release->getParentOfType<RoleOp>();
    if (role && !role.getSingle() && hasOneSlot(release.getRing()))
      releases.push_back(release);
  });
  for (ReleaseOp release : releases) {
    bool isMoved =
        computeFirst(release) && moveUp(release, release->getIterator());
    LDBG() << "release at " << release.getLoc()
           << (isMoved ? ": in the last iteration" : ": stays");
    if (!isMoved)
      continue;
    release.erase();
    ++numMoved;
  }
}
