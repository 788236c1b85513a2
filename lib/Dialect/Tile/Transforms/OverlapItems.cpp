//===- OverlapItems.cpp - One item's first product beside the last --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "Schedule.h"
#include "UnwrittenMemory.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include <limits>

#define DEBUG_TYPE "tile-overlap-items"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEOVERLAPITEMS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

struct OverlapItems : fovea::tile::impl::TileOverlapItemsBase<OverlapItems> {
  void runOnOperation() override;
};

/// A role's loop over items, each of which is a skewed loop with a product in
/// front of it, whose result the loop begins with, and one behind it.
class ItemLoop {
public:
  explicit ItemLoop(scf::ForOp items) : items(items) {}

  /// Finds the parts; returns the reason for which there are none, or nullopt.
  std::optional<StringRef> analyze();

  void rewrite();

private:
  std::optional<StringRef> analyzeGuard();
  std::optional<StringRef> analyzeStart();
  std::optional<StringRef> analyzeEnd();

  /// Emits the waits for an item's own tiles and, under a branch, its first
  /// product. Returns the product's result, and the tiles.
  SmallVector<Value> emitStart(OpBuilder &builder, IRMapping &mapping);
  /// Emits an item from the values that the start of it gave, and the start of
  /// the next one. Returns what that gives, and the next one's numbers that the
  /// loop carries.
  SmallVector<Value> emitItem(OpBuilder &builder, IRMapping &mapping,
                              Value next, Value hasNext);
  /// Emits the last product of the item, what follows, and beside these the
  /// start of the next item, which has steps.
  SmallVector<Value> emitOverlap(OpBuilder &builder, IRMapping mapping,
                                 IRMapping next);
  /// Emits the same one after another: either item may have no steps, and there
  /// may be no next item.
  SmallVector<Value> emitSequence(OpBuilder &builder, IRMapping mapping,
                                  IRMapping next, Value hasNext);
  /// Returns the tiles of an item that `waits` give.
  SmallVector<Value> getTiles(const IRMapping &mapping);
  /// Returns true if a late result is the last product's, which an item without
  /// steps gives as zero.
  bool isLastSum(OpResult result);
  /// Clones loops over slots that nothing reads, restricted to the slots that
  /// the last product's ring does or does not have.
  void cloneSkips(OpBuilder &builder, ArrayRef<scf::ForOp> loops,
                  const IRMapping &mapping, bool ofLast);
  /// Returns whether the loops over slots that nothing reads, behind an item's
  /// steps and in front of the next one's, take so few that the next item's
  /// first slots can be filled before the last product's slot is released; null
  /// if there are no such loops.
  Value areFewSkips(OpBuilder &builder, const IRMapping &mapping,
                    const IRMapping &next);
  Value getCondition(const IRMapping &mapping) {
    return mapping.lookupOrDefault(guard.getCondition());
  }

  scf::ForOp items;
  /// Skips everything for an item without steps.
  scf::IfOp guard;
  scf::ForOp steps;
  MmaAsyncOp first, last;
  WaitMmaOp firstWait, lastWait;

  /// In the guard: the ops of the first product, from the wait for its operands
  /// to the release of their slots; the other ops up to the loop; the ops
  /// behind it.
  SmallVector<Operation *> head, middle, tail;
  /// Around the guard: pure ops that the head and the guard's condition need;
  /// waits for tiles that all products of an item read, with views of these;
  /// other ops in front;
  /// ops behind the guard that do not need the last product, and those that
  /// come after it.
  SmallVector<Operation *> numbers, waits, others, early, late;
  /// The numbers that are the same for all items.
  SmallVector<Operation *> sameNumbers;
  /// The results of the others that other ops use. An item's are known when the
  /// item before it ends, and the loop carries them: they are a chain of
  /// divisions and bounds, for which the first step would wait.
  SmallVector<Value> carriedNumbers;
  /// Those that are conditions of what the item has anyway, each of which would
  /// take a register: they are computed again.
  SmallVector<Operation *> conditions;
  /// Among the ops that come after the last product, the branches in which
  /// warps wait for another block. No product is in flight meanwhile: an item
  /// that takes such a branch is not overlapped.
  SmallVector<scf::IfOp> meetings;
  /// Loops in front of the guard, and behind it, that go through slots that
  /// nothing reads.
  SmallVector<scf::ForOp> firstSkips, skips;
  /// The values of the guard that the tail needs.
  llvm::SetVector<Value> crossing;
  /// The guard's results that the tail gives, and the others.
  SmallVector<OpResult> lateResults, earlyResults;
};

} // namespace

static Value isBefore(OpBuilder &builder, Value a, Value b) {
  return arith::CmpIOp::create(builder, a.getLoc(), arith::CmpIPredicate::slt,
                               a, b);
}

/// Returns the ops of `block` that `values` depend on, in order.
static SmallVector<Operation *> getSlice(ArrayRef<Value> values, Block *block) {
  DenseSet<Operation *> slice;
  SmallVector<Value> open(values);
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != block || !slice.insert(op).second)
      continue;
    llvm::append_range(open, getUsedValues(op));
  }
  SmallVector<Operation *> ordered;
  for (Operation &op : *block)
    if (slice.contains(&op))
      ordered.push_back(&op);
  return ordered;
}

/// Returns the wait for an asynchronous product, if it is its only use and
/// stands in the same block.
static WaitMmaOp getWait(MmaAsyncOp product) {
  if (!product->hasOneUse())
    return {};
  auto wait = dyn_cast<WaitMmaOp>(*product->user_begin());
  return wait && wait->getBlock() == product->getBlock() ? wait : WaitMmaOp();
}

std::optional<StringRef> ItemLoop::analyzeGuard() {
  for (auto branch : items.getBody()->getOps<scf::IfOp>()) {
    bool hasProducts =
        branch->walk([](MmaAsyncOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    if (!hasProducts)
      continue;
    if (guard)
      return "has several branches with products";
    guard = branch;
  }
  if (!guard || !guard.elseBlock() ||
      !llvm::hasSingleElement(*guard.elseBlock()))
    return "has no skewed loop";
  auto loops = guard.thenBlock()->getOps<scf::ForOp>();
  if (!llvm::hasSingleElement(loops))
    return "has no skewed loop";
  steps = *loops.begin();
  for (auto product : guard.thenBlock()->getOps<MmaAsyncOp>()) {
    MmaAsyncOp &place = product->isBeforeInBlock(steps) ? first : last;
    if (place)
      return "has more than a product before or after its steps";
    place = product;
  }
  if (!first || !last || first.getAcc())
    return "has no product before its steps, or none after them";
  firstWait = getWait(first);
  lastWait = getWait(last);
  if (!firstWait || !lastWait || !firstWait->isBeforeInBlock(steps))
    return "has a product that is not waited for at once";
  return std::nullopt;
}

/// Returns the ring of a wait or a release; null for other ops.
static Value getRing(Operation *op) {
  if (auto wait = dyn_cast<WaitOp>(op))
    return wait.getRing();
  if (auto release = dyn_cast<ReleaseOp>(op))
    return release.getRing();
  return {};
}

/// Returns true for a loop that goes through slots that nothing reads.
static bool isSkip(Operation &op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  return loop && loop.getNumResults() == 0 &&
         llvm::all_of(loop.getBody()->without_terminator(),
                      [](Operation &nested) { return !!getRing(&nested); });
}

/// Returns true if `map` reads memory, and needs nothing but numbers for that.
static bool isRead(MapOp map) {
  return map->walk([](memref::LoadOp) { return WalkResult::interrupt(); })
             .wasInterrupted() &&
         llvm::all_of(getSlice(map.getResult(), map->getBlock()), isFixed);
}

std::optional<StringRef> ItemLoop::analyzeStart() {
  Block *inner = guard.thenBlock();
  head = getSlice(firstWait.getResult(), inner);
  SmallVector<Value> needed{guard.getCondition()};
  for (auto loop : items.getBody()->getOps<scf::ForOp>())
    if (isSkip(*loop) && loop->isBeforeInBlock(guard)) {
      firstSkips.push_back(loop);
      llvm::append_range(needed, getUsedValues(loop));
    }
  for (Operation *op : head) {
    if (!isa<WaitOp, MmaAsyncOp, WaitMmaOp>(op) && !isFixed(op))
      return "needs more than tiles for its first product";
    llvm::append_range(needed, getUsedValues(op));
  }
  // Memory answers while the results of the item in front are written. Groups
  // that take turns have no registers left for what is read.
  if (!items->getParentOfType<LaunchOp>().getInTurn())
    for (auto map : items.getBody()->getOps<MapOp>())
      if (map->isBeforeInBlock(guard) && isRead(map))
        needed.push_back(map.getResult());
  // The slots that only the first product reads.
  for (auto release : inner->getOps<ReleaseOp>())
    if (release->isBeforeInBlock(steps))
      head.push_back(release);
  for (Operation &op : inner->without_terminator())
    if (!llvm::is_contained(head, &op) && op.isBeforeInBlock(steps))
      middle.push_back(&op);
  for (Operation *op : middle)
    if (!isFixed(op))
      return "does more than arithmetic between its first product and its "
             "steps";

  for (Operation *op : getSlice(needed, items.getBody())) {
    if (isa<WaitOp, ShiftRowsOp>(op))
      waits.push_back(op);
    else if (isFixed(op) && op != guard)
      numbers.push_back(op);
    else
      return "needs more than numbers and tiles for its first product";
  }
  for (Operation *op : numbers)
    for (Value value : getUsedValues(op))
      if (llvm::is_contained(waits, value.getDefiningOp()))
        return "needs tiles for its numbers";
  DenseSet<Value> changing;
  changing.insert_range(items.getBody()->getArguments());
  SmallVector<Operation *> perItem;
  for (Operation *op : numbers) {
    if (llvm::none_of(getUsedValues(op),
                      [&](Value value) { return changing.contains(value); })) {
      sameNumbers.push_back(op);
      continue;
    }
    changing.insert_range(op->getResults());
    perItem.push_back(op);
  }
  // What an item has beside its place and what is carried.
  DenseSet<Value> known;
  known.insert_range(items.getBody()->getArguments());
  for (Operation *op : perItem) {
    auto isKnown = [&](Value value) {
      return !changing.contains(value) || known.contains(value);
    };
    bool isCondition = op->getNumResults() == 1 &&
                       op->getResult(0).getType().isInteger(1) &&
                       op->getNumRegions() == 0;
    if (isCondition && llvm::all_of(op->getOperands(), isKnown)) {
      conditions.push_back(op);
      known.insert_range(op->getResults());
      continue;
    }
    for (Value result : op->getResults())
      if (!llvm::all_of(result.getUsers(), [&](Operation *user) {
            return llvm::is_contained(
                numbers, items.getBody()->findAncestorOpInBlock(*user));
          })) {
        carriedNumbers.push_back(result);
        known.insert(result);
      }
  }
  return std::nullopt;
}

/// Returns the branch that `op` is, if warps wait for another block in it, and
/// only there.
static scf::IfOp getMeeting(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch || !branch.elseBlock())
    return {};
  auto waits = [](Region &region) {
    return region.walk([](AwaitOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  };
  bool isMeeting =
      waits(branch.getThenRegion()) && !waits(branch.getElseRegion());
  return isMeeting ? branch : scf::IfOp();
}

void ItemLoop::cloneSkips(OpBuilder &builder, ArrayRef<scf::ForOp> loops,
                          const IRMapping &mapping, bool ofLast) {
  DenseSet<Value> last;
  for (Operation *op : tail)
    last.insert(getRing(op));
  for (scf::ForOp skip : loops) {
    IRMapping inner(mapping);
    auto copy = cast<scf::ForOp>(builder.clone(*skip, inner));
    for (Operation &op : llvm::make_early_inc_range(*copy.getBody()))
      if (Value ring = getRing(&op); ring && last.contains(ring) != ofLast)
        op.erase();
  }
}

Value ItemLoop::areFewSkips(OpBuilder &builder, const IRMapping &mapping,
                            const IRMapping &next) {
  Location loc = items.getLoc();
  int64_t stages = std::numeric_limits<int64_t>::max();
  Value all;
  auto add = [&](scf::ForOp skip, const IRMapping &numbers) {
    for (auto wait : skip.getOps<WaitOp>())
      stages = std::min(stages, wait.getRing().getType().getStages());
    Value count = arith::SubIOp::create(
        builder, loc, numbers.lookupOrDefault(skip.getUpperBound()),
        numbers.lookupOrDefault(skip.getLowerBound()));
    all = all ? arith::AddIOp::create(builder, loc, all, count) : count;
  };
  for (scf::ForOp skip : skips)
    add(skip, mapping);
  for (scf::ForOp skip : firstSkips)
    add(skip, next);
  if (!all)
    return {};
  return isBefore(builder, all,
                  arith::ConstantIndexOp::create(builder, loc, stages));
}

std::optional<StringRef> ItemLoop::analyzeEnd() {
  Block *inner = guard.thenBlock(), *outer = items.getBody();
  DenseSet<Value> given;
  for (Operation *op = steps->getNextNode(); op != inner->getTerminator();
       op = op->getNextNode()) {
    tail.push_back(op);
    given.insert_range(op->getResults());
  }
  for (Operation *op : tail)
    for (Value value : getUsedValues(op)) {
      if (llvm::is_contained(waits, value.getDefiningOp()))
        return "reads the tiles of its first product in its last";
      bool isInside = value.getParentRegion() == &guard.getThenRegion();
      if (!isInside || given.contains(value))
        continue;
      if (!isa<FragmentType, IndexType>(value.getType()))
        return "has a last product of other values than fragments and numbers";
      crossing.insert(value);
    }

  // What follows: releases of tiles that the last product does not read, and
  // numbers, can come before it.
  DenseSet<Operation *> dependent;
  for (OpResult result : guard.getResults()) {
    Value yielded = guard.thenYield().getResults()[result.getResultNumber()];
    (given.contains(yielded) ? lateResults : earlyResults).push_back(result);
    if (given.contains(yielded))
      for (Operation *user : result.getUsers())
        dependent.insert(outer->findAncestorOpInBlock(*user));
  }
  for (Operation &op : outer->without_terminator()) {
    if (op.isBeforeInBlock(guard)) {
      if (!llvm::is_contained(numbers, &op) &&
          !llvm::is_contained(waits, &op) &&
          !llvm::is_contained(firstSkips, &op))
        others.push_back(&op);
      continue;
    }
    if (&op == guard)
      continue;
    if (isSkip(op)) {
      skips.push_back(cast<scf::ForOp>(op));
      continue;
    }
    bool isLate = dependent.contains(&op) ||
                  (!isa<ReleaseOp>(op) && !isMemoryEffectFree(&op));
    for (Value value : getUsedValues(&op))
      isLate |= llvm::is_contained(late, value.getDefiningOp());
    (isLate ? late : early).push_back(&op);
  }
  for (Operation *op : late)
    if (scf::IfOp meeting = getMeeting(op)) {
      if (llvm::is_contained(late, meeting.getCondition().getDefiningOp()))
        return "waits for other blocks depending on its last product";
      meetings.push_back(meeting);
    }
  for (Operation *op : others)
    if (!isFixed(op))
      return "begins with more than numbers and tiles";
  for (Value yielded : items.getYieldedValues())
    if (llvm::is_contained(late, yielded.getDefiningOp()) ||
        llvm::is_contained(lateResults, yielded))
      return "carries a result of its last product";
  return std::nullopt;
}

std::optional<StringRef> ItemLoop::analyze() {
  if (!items.use_empty())
    return "has results";
  for (auto part : {&ItemLoop::analyzeGuard, &ItemLoop::analyzeStart,
                    &ItemLoop::analyzeEnd})
    if (std::optional<StringRef> reason = (this->*part)())
      return reason;
  return std::nullopt;
}

static Value createZero(OpBuilder &builder, Location loc, Type type) {
  auto fragment = dyn_cast<FragmentType>(type);
  Type element = fragment ? fragment.getElementType() : type;
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
  return fragment ? FillOp::create(builder, loc, fragment, zero) : zero;
}

/// Clones ops in order.
static void clone(OpBuilder &builder, ArrayRef<Operation *> ops,
                  IRMapping &mapping) {
  for (Operation *op : ops)
    builder.clone(*op, mapping);
}

/// Returns what `values` are mapped to.
static SmallVector<Value> lookup(ValueRange values, const IRMapping &mapping) {
  return llvm::map_to_vector(
      values, [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Returns what a branch yields for some of its results.
static SmallVector<Value> getYielded(scf::YieldOp yield,
                                     ArrayRef<OpResult> results,
                                     const IRMapping &mapping) {
  return llvm::map_to_vector(results, [&](OpResult result) -> Value {
    return mapping.lookupOrDefault(
        yield.getResults()[result.getResultNumber()]);
  });
}

/// Returns a branch, each of whose regions yields what a function returns.
static SmallVector<Value>
createIf(OpBuilder &builder, Location loc, Value condition,
         function_ref<SmallVector<Value>(OpBuilder &)> emitThen,
         function_ref<SmallVector<Value>(OpBuilder &)> emitElse) {
  auto branch = scf::IfOp::create(
      builder, loc, condition,
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, emitThen(nested));
      },
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, emitElse(nested));
      });
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> ItemLoop::getTiles(const IRMapping &mapping) {
  return llvm::map_to_vector(waits, [&](Operation *wait) {
    return mapping.lookup(wait->getResult(0));
  });
}

SmallVector<Value> ItemLoop::emitStart(OpBuilder &builder, IRMapping &mapping) {
  Location loc = items.getLoc();
  clone(builder, waits, mapping);
  for (scf::ForOp skip : firstSkips)
    builder.clone(*skip, mapping);
  SmallVector<Value> values = createIf(
      builder, loc, getCondition(mapping),
      [&](OpBuilder &nested) {
        IRMapping inner(mapping);
        clone(nested, head, inner);
        return lookup(firstWait.getResult(), inner);
      },
      [&](OpBuilder &nested) {
        return SmallVector<Value>{
            createZero(nested, loc, firstWait.getResult().getType())};
      });
  llvm::append_range(values, getTiles(mapping));
  return values;
}

SmallVector<Value> ItemLoop::emitOverlap(OpBuilder &builder, IRMapping mapping,
                                         IRMapping next) {
  auto split = [](ArrayRef<Operation *> ops, Operation *at) {
    size_t place = llvm::find(ops, at) - ops.begin();
    return std::pair(ops.take_front(place), ops.drop_front(place + 1));
  };
  auto [tailIssue, tailRest] = split(tail, lastWait);
  auto [headIssue, headRest] = split(head, firstWait);
  cloneSkips(builder, skips, mapping, /*ofLast=*/false);
  cloneSkips(builder, firstSkips, next, /*ofLast=*/false);
  clone(builder, tailIssue, mapping);
  clone(builder, waits, next);
  clone(builder, headIssue, next);
  auto wait = cast<WaitMmaOp>(builder.clone(*lastWait, mapping));
  wait.setPending(1);
  clone(builder, tailRest, mapping);
  cloneSkips(builder, skips, mapping, /*ofLast=*/true);
  cloneSkips(builder, firstSkips, next, /*ofLast=*/true);
  for (auto [result, value] : llvm::zip_equal(
           lateResults, getYielded(guard.thenYield(), lateResults, mapping)))
    mapping.map(result, value);
  for (Operation *op : late) {
    auto meeting = llvm::find(meetings, op);
    if (meeting == meetings.end()) {
      builder.clone(*op, mapping);
      continue;
    }
    for (Operation &nested : meeting->elseBlock()->without_terminator())
      builder.clone(nested, mapping);
    mapping.map(meeting->getResults(),
                lookup(meeting->elseYield().getResults(), mapping));
  }
  builder.clone(*firstWait, next);
  clone(builder, headRest, next);

  SmallVector<Value> values = lookup(firstWait.getResult(), next);
  llvm::append_range(values, getTiles(next));
  return values;
}

bool ItemLoop::isLastSum(OpResult result) {
  unsigned number = result.getResultNumber();
  auto fill = guard.elseYield().getOperand(number).getDefiningOp<FillOp>();
  return fill && matchPattern(fill.getValue(), m_AnyZeroFloat()) &&
         guard.thenYield().getOperand(number) == lastWait.getResult() &&
         crossing.contains(last.getAcc());
}

SmallVector<Value> ItemLoop::emitSequence(OpBuilder &builder, IRMapping mapping,
                                          IRMapping next, Value hasNext) {
  Location loc = items.getLoc();
  SmallVector<Value> results = createIf(
      builder, loc, getCondition(mapping),
      [&](OpBuilder &nested) {
        IRMapping inner(mapping);
        clone(nested, tail, inner);
        return getYielded(guard.thenYield(), lateResults, inner);
      },
      [&](OpBuilder &) {
        SmallVector<Value> yielded =
            getYielded(guard.elseYield(), lateResults, mapping);
        // An accumulator of an item without steps is zero already, in the
        // registers of the last product's result.
        for (auto [result, value] : llvm::zip_equal(lateResults, yielded))
          if (isLastSum(result))
            value = mapping.lookup(last.getAcc());
        return yielded;
      });
  for (auto [result, value] : llvm::zip_equal(lateResults, results))
    mapping.map(result, value);
  for (scf::ForOp skip : skips)
    builder.clone(*skip, mapping);
  clone(builder, late, mapping);
  return createIf(
      builder, loc, hasNext,
      [&](OpBuilder &nested) { return emitStart(nested, next); },
      [&](OpBuilder &nested) {
        SmallVector<Value> values{
            createZero(nested, loc, firstWait.getResult().getType())};
        llvm::append_range(values, getTiles(mapping));
        return values;
      });
}

SmallVector<Value> ItemLoop::emitItem(OpBuilder &builder, IRMapping &mapping,
                                      Value next, Value hasNext) {
  Location loc = items.getLoc();
  clone(builder, others, mapping);
  SmallVector<Value> values = createIf(
      builder, loc, getCondition(mapping),
      [&](OpBuilder &nested) {
        IRMapping inner(mapping);
        clone(nested, middle, inner);
        nested.clone(*steps, inner);
        SmallVector<Value> values =
            getYielded(guard.thenYield(), earlyResults, inner);
        llvm::append_range(values, lookup(crossing.getArrayRef(), inner));
        return values;
      },
      [&](OpBuilder &nested) {
        SmallVector<Value> values =
            getYielded(guard.elseYield(), earlyResults, mapping);
        for (Value value : crossing)
          values.push_back(createZero(nested, loc, value.getType()));
        return values;
      });
  for (auto [result, value] : llvm::zip(earlyResults, values))
    mapping.map(result, value);
  for (auto [value, crossed] : llvm::zip_equal(
           crossing, ArrayRef(values).drop_front(earlyResults.size())))
    mapping.map(value, crossed);
  clone(builder, early, mapping);

  // Without a next item its numbers, which no one needs, are those of this.
  IRMapping nextMapping;
  nextMapping.map(items.getInductionVar(), next);
  for (auto [argument, yielded] :
       llvm::zip_equal(items.getRegionIterArgs(), items.getYieldedValues()))
    nextMapping.map(argument, mapping.lookupOrDefault(yielded));
  clone(builder, numbers, nextMapping);
  Value bothHaveSteps = arith::AndIOp::create(
      builder, loc, getCondition(mapping), getCondition(nextMapping));
  Value canOverlap =
      arith::AndIOp::create(builder, loc, bothHaveSteps, hasNext);
  if (Value areFew = areFewSkips(builder, mapping, nextMapping))
    canOverlap = arith::AndIOp::create(builder, loc, canOverlap, areFew);
  for (scf::IfOp meeting : meetings) {
    Value isTaken = mapping.lookupOrDefault(meeting.getCondition());
    Value no = arith::ConstantIntOp::create(builder, loc, 0, 1);
    canOverlap = arith::SelectOp::create(builder, loc, isTaken, no, canOverlap);
  }
  SmallVector<Value> given = createIf(
      builder, loc, canOverlap,
      [&](OpBuilder &nested) {
        return emitOverlap(nested, mapping, nextMapping);
      },
      [&](OpBuilder &nested) {
        return emitSequence(nested, mapping, nextMapping, hasNext);
      });
  llvm::append_range(given, lookup(carriedNumbers, nextMapping));
  return given;
}

void ItemLoop::rewrite() {
  OpBuilder builder(items);
  Location loc = items.getLoc();
  Value lower = items.getLowerBound(), upper = items.getUpperBound(),
        step = items.getStep();
  auto isEntered =
      scf::IfOp::create(builder, loc, isBefore(builder, lower, upper));
  builder.setInsertionPointToStart(isEntered.thenBlock());
  IRMapping start;
  start.map(items.getInductionVar(), lower);
  start.map(items.getRegionIterArgs(), items.getInitArgs());
  clone(builder, numbers, start);
  SmallVector<Value> inits(items.getInitArgs());
  llvm::append_range(inits, emitStart(builder, start));
  llvm::append_range(inits, lookup(carriedNumbers, start));

  auto loop = scf::ForOp::create(builder, loc, lower, upper, step, inits);
  builder.setInsertionPointToStart(loop.getBody());
  Value iv = loop.getInductionVar();
  size_t numArgs = items.getNumRegionIterArgs();
  IRMapping mapping;
  mapping.map(items.getInductionVar(), iv);
  mapping.map(items.getRegionIterArgs(),
              loop.getRegionIterArgs().take_front(numArgs));
  auto carried = loop.getRegionIterArgs().drop_front(numArgs);
  mapping.map(firstWait.getResult(), carried.front());
  carried = carried.drop_front();
  for (auto [wait, tile] :
       llvm::zip_equal(waits, carried.take_front(waits.size())))
    mapping.map(wait->getResult(0), tile);
  mapping.map(carriedNumbers, carried.drop_front(waits.size()));
  clone(builder, sameNumbers, mapping);
  clone(builder, conditions, mapping);

  Value after = arith::AddIOp::create(builder, loc, iv, step);
  Value hasNext = isBefore(builder, after, upper);
  Value next = arith::SelectOp::create(builder, loc, hasNext, after, iv);
  SmallVector<Value> nextStart = emitItem(builder, mapping, next, hasNext);
  SmallVector<Value> yields = lookup(items.getYieldedValues(), mapping);
  llvm::append_range(yields, nextStart);
  scf::YieldOp::create(builder, loc, yields);
  items.erase();
}

void OverlapItems::runOnOperation() {
  SmallVector<scf::ForOp> loops;
  getOperation()->walk([&](RoleOp role) {
    llvm::append_range(loops, role.getBody().getOps<scf::ForOp>());
  });
  for (scf::ForOp loop : loops) {
    ItemLoop items(loop);
    if (std::optional<StringRef> reason = items.analyze()) {
      LDBG() << "loop at " << loop.getLoc() << " stays: it " << *reason;
      continue;
    }
    items.rewrite();
    ++numOverlapped;
  }
}
