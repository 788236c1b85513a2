//===- Prefetch.cpp - Copies started iterations ahead ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

#define DEBUG_TYPE "tile-prefetch"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEPREFETCH
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

/// A copy into a ring's slot in a loop, which can be started earlier.
struct Copy {
  AcquireOp acquire;
  LoadAsyncOp load;
  WaitOp wait;
  /// The loop's ops that compute what the copy reads, in order.
  SetVector<Operation *> inputs;

  int64_t getDistance() { return acquire.getRing().getType().getStages() - 1; }
};

struct Prefetch : fovea::tile::impl::TilePrefetchBase<Prefetch> {
  void runOnOperation() override {
    getOperation()->walk([&](LaunchOp launch) {
      // Roles run ahead by themselves.
      if (!launch.getBody().getOps<RolesOp>().empty())
        return;
      for (auto loop : launch.getBody().getOps<scf::ForOp>())
        prefetch(loop);
    });
  }

private:
  void prefetch(scf::ForOp loop);
  bool collect(scf::ForOp loop, LoadAsyncOp load, Copy &copy);
  void emit(OpBuilder &builder, scf::ForOp loop, Copy &copy, Value base,
            Value use, int64_t ahead);
};

} // namespace

/// Returns true if `loop` adds 1 to `count` in every iteration.
static bool isCounter(scf::ForOp loop, BlockArgument count) {
  auto add =
      loop.getTiedLoopYieldedValue(count)->get().getDefiningOp<arith::AddIOp>();
  return add && add.getLhs() == count && matchPattern(add.getRhs(), m_One());
}

/// Fills in the ops that `load` needs; returns false if it depends on more than
/// the induction variable and the count of uses.
bool Prefetch::collect(scf::ForOp loop, LoadAsyncOp load, Copy &copy) {
  copy.load = load;
  copy.acquire = load.getSlot().getDefiningOp<AcquireOp>();
  for (Operation *user : load.getRing().getUsers())
    if (auto wait = dyn_cast<WaitOp>(user);
        wait && wait.getUse() == load.getUse() &&
        wait->getBlock() == load->getBlock())
      copy.wait = wait;
  auto count = dyn_cast<BlockArgument>(load.getUse());
  if (!copy.acquire || !copy.wait ||
      copy.acquire->getBlock() != load->getBlock() ||
      !copy.acquire.getResult().hasOneUse() || !count ||
      count.getOwner() != loop.getBody() || copy.getDistance() < 1 ||
      count == loop.getInductionVar() || !isCounter(loop, count))
    return false;
  Block *body = loop.getBody();
  SmallVector<Value> values(load.getIndices());
  llvm::append_range(values, load.getRows());
  SetVector<Value> used;
  getUsedValuesDefinedAbove(load.getPlace(), used);
  llvm::append_range(values, used);
  while (!values.empty()) {
    Value value = values.pop_back_val();
    if (value.getParentBlock() != body)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument != loop.getInductionVar())
        return false;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (op->getNumRegions() || !isMemoryEffectFree(op))
      return false;
    if (copy.inputs.insert(op))
      llvm::append_range(values, op->getOperands());
  }
  copy.inputs = mlir::topologicalSort(copy.inputs);
  return true;
}

/// Starts the copy of the iteration that is `ahead` iterations after `base`, if
/// there is one.
void Prefetch::emit(OpBuilder &builder, scf::ForOp loop, Copy &copy, Value base,
                    Value use, int64_t ahead) {
  Location loc = copy.load.getLoc();
  Value place = base;
  if (ahead) {
    Value steps = arith::ConstantIndexOp::create(builder, loc, ahead);
    Value distance =
        builder.createOrFold<arith::MulIOp>(loc, loop.getStep(), steps);
    place = arith::AddIOp::create(builder, loc, base, distance);
    use = arith::AddIOp::create(builder, loc, use, steps);
  }
  Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                       place, loop.getUpperBound());
  auto branch =
      scf::IfOp::create(builder, loc, exists, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), place);
  mapping.map(copy.load.getUse(), use);
  for (Operation *input : copy.inputs)
    builder.clone(*input, mapping);
  builder.clone(*copy.acquire, mapping);
  builder.clone(*copy.load, mapping);
}

void Prefetch::prefetch(scf::ForOp loop) {
  SmallVector<Copy> copies;
  for (auto load : loop.getBody()->getOps<LoadAsyncOp>()) {
    Copy copy;
    bool isMoved = collect(loop, load, copy);
    LDBG() << "copy at " << load.getLoc() << ": "
           << (isMoved ? "is started " + std::to_string(copy.getDistance()) +
                             " iterations earlier"
                       : "stays: it depends on more than the place of the "
                         "iteration, or its ring has one slot");
    if (isMoved)
      copies.push_back(std::move(copy));
  }
  // Waits right before the loop need not delay its first copies.
  Operation *start = loop;
  SmallVector<Operation *> constants;
  for (Operation *op = loop->getPrevNode(); op; op = op->getPrevNode()) {
    if (isa<WaitOp>(op))
      start = op;
    else if (op->hasTrait<OpTrait::ConstantLike>())
      constants.push_back(op);
    else
      break;
  }
  for (Operation *constant : llvm::reverse(constants))
    if (start->isBeforeInBlock(constant))
      constant->moveBefore(start);
  OpBuilder builder(start);
  for (Copy &copy : copies) {
    Value first =
        loop.getTiedLoopInit(cast<BlockArgument>(copy.load.getUse()))->get();
    for (int64_t ahead = 0; ahead < copy.getDistance(); ++ahead)
      emit(builder, loop, copy, loop.getLowerBound(), first, ahead);
  }
  // An iteration first waits for its own copies, all at once. Where threads
  // must meet for that, they then also know that the slots of the last
  // iteration are free, into which the next copies go.
  Operation *last = nullptr;
  for (Copy &copy : copies) {
    if (last)
      copy.wait->moveAfter(last);
    else
      copy.wait->moveBefore(&loop.getBody()->front());
    last = copy.wait;
  }
  if (!last)
    return;
  OpBuilder inLoop(last->getContext());
  inLoop.setInsertionPointAfter(last);
  for (Copy &copy : copies)
    emit(inLoop, loop, copy, loop.getInductionVar(), copy.load.getUse(),
         copy.getDistance());
  for (Copy &copy : copies) {
    copy.load.erase();
    copy.acquire.erase();
    ++numPrefetched;
  }
}
