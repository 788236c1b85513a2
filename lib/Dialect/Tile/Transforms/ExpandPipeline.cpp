//===- ExpandPipeline.cpp - Skewing of loops as scheduled -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEEXPANDPIPELINE
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

struct ExpandPipeline
    : fovea::tile::impl::TileExpandPipelineBase<ExpandPipeline> {
  void runOnOperation() override;
};

/// A loop whose step `i` runs stage 0 of iteration `i` and stage 1 of `i - 1`.
class SkewedLoop {
public:
  explicit SkewedLoop(scf::ForOp loop) : loop(loop) {}

  /// Reads and checks the schedule. Reports its errors.
  LogicalResult analyze();

  void expand();

private:
  struct Scheduled {
    Operation *op;
    int64_t stage;
    int64_t order;
  };

  /// Returns true if the loop has a second stage.
  bool isSkewed() const {
    return llvm::any_of(schedule, [](const Scheduled &scheduled) {
      return scheduled.stage == 1;
    });
  }
  /// Puts the body in the scheduled order.
  void reorder();

  int64_t getStage(Value value);
  LogicalResult verifyUse(const Scheduled &user, Value value);
  LogicalResult addCrossing(const Scheduled &user, Value value);
  /// Returns true if the loop carries this value from its last stage.
  bool isLate(size_t argument) {
    return getStage(loop.getYieldedValues()[argument]) == 1;
  }

  /// Returns the values that one step needs from the step before: the loop's
  /// own values, then those that cross from stage 0 to stage 1.
  SmallVector<Value> getState(const IRMapping &first);
  void mapState(ValueRange state, IRMapping &first, IRMapping &second);
  void emit(OpBuilder &builder, IRMapping *first, IRMapping *second);

  scf::ForOp loop;
  SmallVector<Scheduled> schedule;
  DenseMap<Operation *, size_t> places;
  SetVector<Value> crossing;
};

} // namespace

/// Returns 1 for values that stage 1 of the body computes, 0 for all others.
int64_t SkewedLoop::getStage(Value value) {
  Operation *producer = value.getDefiningOp();
  if (!producer || producer->getBlock() != loop.getBody())
    return 0;
  return schedule[places.find(producer)->second].stage;
}

LogicalResult SkewedLoop::analyze() {
  for (Operation &op : loop.getBody()->without_terminator()) {
    auto stage = op.getAttrOfType<IntegerAttr>(kStageAttrName);
    auto order = op.getAttrOfType<IntegerAttr>(kOrderAttrName);
    if (!stage)
      return op.emitOpError("in a scheduled loop must have a ")
             << kStageAttrName << " and a " << kOrderAttrName;
    schedule.push_back({&op, stage.getInt(), order.getInt()});
  }
  llvm::sort(schedule, [](const Scheduled &a, const Scheduled &b) {
    return a.order < b.order;
  });
  for (auto [place, scheduled] : llvm::enumerate(schedule)) {
    if (place && scheduled.order == schedule[place - 1].order)
      return scheduled.op->emitOpError("has the ")
             << kOrderAttrName << " " << scheduled.order << " of another op";
    places[scheduled.op] = place;
  }
  for (const Scheduled &scheduled : schedule)
    for (Value value : getUsedValues(scheduled.op))
      if (failed(verifyUse(scheduled, value)))
        return failure();
  return success();
}

LogicalResult SkewedLoop::verifyUse(const Scheduled &user, Value value) {
  Operation *producer = value.getDefiningOp();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != loop.getBody())
      return success();
    bool isLateValue =
        argument.getArgNumber() && isLate(argument.getArgNumber() - 1);
    if (user.stage == 1) {
      return isLateValue ? success() : addCrossing(user, value);
    }
    if (!isLateValue)
      return success();
    // The value is computed in this same step.
    producer =
        loop.getYieldedValues()[argument.getArgNumber() - 1].getDefiningOp();
  } else if (!producer || producer->getBlock() != loop.getBody()) {
    return success();
  } else if (user.stage != getStage(value)) {
    if (user.stage == 0)
      return user.op->emitOpError(
          "of stage 0 must not depend on stage 1 of the "
          "same iteration");
    return addCrossing(user, value);
  }
  if (places[producer] < places[user.op])
    return success();
  InFlightDiagnostic error =
      user.op->emitOpError("is ordered before an op that it depends on");
  error.attachNote(producer->getLoc()) << "this one";
  return error;
}

/// Lets `value` cross from stage 0 to its use in stage 1. Fails if the use then
/// reads a tile that its op overwrites in between: memory of an op's own holds
/// one tile, and a product in flight still reads its operands.
LogicalResult SkewedLoop::addCrossing(const Scheduled &user, Value value) {
  crossing.insert(value);
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getArgNumber())
    value = loop.getYieldedValues()[argument.getArgNumber() - 1];
  SmallVector<Value> read = {value};
  for (auto product = value.getDefiningOp<MmaAsyncOp>(); product;) {
    llvm::append_values(read, product.getA(), product.getB());
    Value acc = product.getAcc();
    product = acc ? acc.getDefiningOp<MmaAsyncOp>() : MmaAsyncOp();
  }
  for (Value tile : read) {
    Operation *writer = tile.getDefiningOp();
    if (!isa<SharedType>(tile.getType()) || !writer ||
        writer->getBlock() != loop.getBody() || isa<AcquireOp, WaitOp>(writer))
      continue;
    InFlightDiagnostic error = user.op->emitOpError(
        "of stage 1 needs a tile of stage 0 that the next iteration "
        "overwrites");
    error.attachNote(writer->getLoc()) << "has memory for one iteration's tile";
    return error;
  }
  return success();
}

/// Returns what a condition is that holds in the first iteration only: itself
/// in that iteration, which is not in the loop, else false.
static Value resolve(OpBuilder &builder, FirstOnlyOp op,
                     const IRMapping &mapping, bool isFirst) {
  if (isFirst)
    return mapping.lookupOrDefault(op.getCondition());
  return arith::ConstantIntOp::create(builder, op.getLoc(), 0, /*width=*/1);
}

/// Clones the ops of the given stages in order: those of stage 0 with `first`,
/// those of stage 1 with `second`.
void SkewedLoop::emit(OpBuilder &builder, IRMapping *first, IRMapping *second) {
  for (const Scheduled &scheduled : schedule) {
    IRMapping *mapping = scheduled.stage ? second : first;
    if (!mapping)
      continue;
    // The steps of the loop have stage 1 of any iteration.
    bool isSteady = first && second, isKnown = !isSteady || !scheduled.stage;
    if (auto op = dyn_cast<FirstOnlyOp>(scheduled.op); op && isKnown) {
      mapping->map(op.getResult(), resolve(builder, op, *mapping, !isSteady));
      continue;
    }
    Operation *copy = builder.clone(*scheduled.op, *mapping);
    copy->removeAttr(kStageAttrName);
    copy->removeAttr(kOrderAttrName);
    if (isKnown)
      copy->walk([&](FirstOnlyOp op) {
        OpBuilder nested(op);
        op.replaceAllUsesWith(resolve(nested, op, {}, !isSteady));
        op.erase();
      });
    if (!scheduled.stage || !first)
      continue;
    // Stage 0 of the next iteration is in this step.
    for (auto [index, yielded] : llvm::enumerate(loop.getYieldedValues()))
      if (yielded.getDefiningOp() == scheduled.op)
        first->map(loop.getRegionIterArgs()[index], second->lookup(yielded));
  }
}

SmallVector<Value> SkewedLoop::getState(const IRMapping &first) {
  SmallVector<Value> state;
  for (auto [index, argument] : llvm::enumerate(loop.getRegionIterArgs()))
    state.push_back(first.lookupOrDefault(
        isLate(index) ? Value(argument) : loop.getYieldedValues()[index]));
  for (Value value : crossing)
    state.push_back(first.lookupOrDefault(value));
  return state;
}

void SkewedLoop::mapState(ValueRange state, IRMapping &first,
                          IRMapping &second) {
  for (auto [index, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    IRMapping &mapping = isLate(index) ? second : first;
    mapping.map(argument, state[index]);
  }
  for (auto [index, value] : llvm::enumerate(crossing))
    second.map(value, state[loop.getNumRegionIterArgs() + index]);
}

void SkewedLoop::reorder() {
  Operation *end = loop.getBody()->getTerminator();
  for (const Scheduled &scheduled : schedule) {
    scheduled.op->moveBefore(end);
    scheduled.op->removeAttr(kStageAttrName);
    scheduled.op->removeAttr(kOrderAttrName);
  }
}

void SkewedLoop::expand() {
  if (!isSkewed())
    return reorder();
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), step = loop.getStep();
  Value isEntered = arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::slt, lower, loop.getUpperBound());
  auto emitSteps = [&](OpBuilder &nested, Location loc) {
    IRMapping prologue;
    prologue.map(loop.getInductionVar(), lower);
    for (auto [argument, init] :
         llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
      prologue.map(argument, init);
    emit(nested, &prologue, nullptr);

    Value second = arith::AddIOp::create(nested, loc, lower, step);
    auto steady = scf::ForOp::create(
        nested, loc, second, loop.getUpperBound(), step, getState(prologue),
        [&](OpBuilder &inner, Location loc, Value iv, ValueRange state) {
          IRMapping first, second;
          first.map(loop.getInductionVar(), iv);
          mapState(state, first, second);
          emit(inner, &first, &second);
          scf::YieldOp::create(inner, loc, getState(first));
        });

    IRMapping unused, epilogue;
    mapState(steady.getResults(), unused, epilogue);
    emit(nested, nullptr, &epilogue);
    SmallVector<Value> results;
    for (auto [index, yielded] : llvm::enumerate(loop.getYieldedValues()))
      results.push_back(isLate(index) ? epilogue.lookup(yielded)
                                      : Value(steady.getResult(index)));
    scf::YieldOp::create(nested, loc, results);
  };
  auto branch = scf::IfOp::create(
      builder, loc, isEntered, emitSteps, [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, loop.getInitArgs());
      });
  loop->replaceAllUsesWith(branch.getResults());
  loop->erase();
}

/// Sets the number of later products that may be in flight when a wait ends.
static void setPending(WaitMmaOp wait) {
  auto product = wait.getToken().getDefiningOp<MmaAsyncOp>();
  if (!product || product->getBlock() != wait->getBlock())
    return;
  int64_t pending = 0;
  for (Operation *op = product->getNextNode(); op != wait;
       op = op->getNextNode())
    pending += isa<MmaAsyncOp>(op);
  // The most that an instruction can leave in flight.
  constexpr int64_t kMost = 7;
  wait.setPending(std::min(pending, kMost));
}

void ExpandPipeline::runOnOperation() {
  SmallVector<scf::ForOp> loops;
  getOperation()->walk([&](LaunchOp launch) {
    launch->walk([&](scf::ForOp loop) {
      if (llvm::any_of(*loop.getBody(), [](Operation &op) {
            return op.hasAttr(kStageAttrName);
          }))
        loops.push_back(loop);
    });
  });
  for (scf::ForOp loop : loops) {
    SkewedLoop skewed(loop);
    if (failed(skewed.analyze()))
      return signalPassFailure();
    skewed.expand();
  }
  getOperation()->walk(setPending);
}
