//===- SkipRows.cpp - Loops that warp groups end on their own -------------===//
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
#include "mlir/IR/Matchers.h"

#define DEBUG_TYPE "tile-skip-rows"

namespace fovea::tile {
#define GEN_PASS_DEF_TILESKIPROWS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

struct SkipRows : fovea::tile::impl::TileSkipRowsBase<SkipRows> {
  void runOnOperation() override;
};

/// A role whose warp groups own a tile's rows, one group after another.
class SplitRole {
public:
  explicit SplitRole(RoleOp role) : role(role) {}

  /// Replaces a number for all rows by the one for the group's own.
  void rewrite(OfRowsOp ofRows);

private:
  /// Emits, once, the group's first and last row.
  ValueRange getOwnRows();

  RoleOp role;
  SmallVector<Value> ownRows;
};

/// A loop that every warp group may end, or begin, where its own rows do.
class SplitLoop {
public:
  explicit SplitLoop(scf::ForOp loop) : loop(loop) {}

  /// Finds the slots that the loop waits for; returns the reason for which
  /// groups cannot bound the loop on their own, or nullopt.
  std::optional<StringRef> analyze(int64_t rows);

  scf::ForOp getLoop() const { return loop; }

  /// Passes by the slots up to those of the `end` for all rows.
  void passByRest(Value end);

  /// Passes by the slots from those of the `begin` for all rows on.
  void passByFirst(Value begin);

private:
  /// Returns the number of steps from one place to another.
  Value countSteps(OpBuilder &builder, Value from, Value to);
  /// Waits for the slots of uses from `first` to `end`, and releases them.
  void passBy(OpBuilder &builder, Value first, Value end);
  /// Adds the ring of a wait in the loop; returns false if the wait's slot is
  /// not the next one of the loop's counter, or not released by the iteration.
  bool addRing(WaitOp wait);

  scf::ForOp loop;
  /// The rings of which each iteration waits for a slot and releases it, in the
  /// order in which slots are filled, and the number of the loop's result that
  /// counts the slots.
  SmallVector<Value> rings;
  std::optional<unsigned> counter;
};

} // namespace

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

ValueRange SplitRole::getOwnRows() {
  if (ownRows.empty()) {
    auto builder = OpBuilder::atBlockBegin(&role.getBody().front());
    Indices index(builder, role.getLoc());
    Value group = GroupOp::create(builder, role.getLoc());
    Value first =
        index.create<arith::MulIOp>(group, index.constant(kGroupRows));
    Value last =
        index.create<arith::AddIOp>(first, index.constant(kGroupRows - 1));
    ownRows = {first, last};
  }
  return ownRows;
}

void SplitRole::rewrite(OfRowsOp ofRows) {
  OpBuilder builder(ofRows);
  Block &body = ofRows.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), getOwnRows());
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  Value own = cast<YieldOp>(body.getTerminator()).getValue();
  ofRows.replaceAllUsesWith(mapping.lookupOrDefault(own));
  ofRows.erase();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

bool SplitLoop::addRing(WaitOp wait) {
  auto argument = dyn_cast<BlockArgument>(wait.getUse());
  if (wait->getParentOp() != loop || !argument ||
      argument.getOwner() != loop.getBody() || argument.getArgNumber() == 0)
    return false;
  unsigned number = argument.getArgNumber() - 1;
  auto next = loop.getYieldedValues()[number].getDefiningOp<arith::AddIOp>();
  if (counter.value_or(number) != number || !next ||
      next.getLhs() != argument || !matchPattern(next.getRhs(), m_One()))
    return false;
  counter = number;
  rings.push_back(wait.getRing());
  return llvm::any_of(wait.getRing().getUsers(), [&](Operation *user) {
    auto release = dyn_cast<ReleaseOp>(user);
    return release && release->getParentOp() == loop &&
           release.getUse() == argument;
  });
}

std::optional<StringRef> SplitLoop::analyze(int64_t rows) {
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!step)
    return "has a step that is no constant";
  // Where a diagonal ends the loop, the first group then ends it before the
  // last one.
  if (*step > rows - kGroupRows)
    return "has steps longer than the distance of the groups";
  bool countsSlots = true;
  loop.walk([&](Operation *op) {
    auto wait = dyn_cast<WaitOp>(op);
    countsSlots &= !isa<AcquireOp, WriteOp>(op) && (!wait || addRing(wait));
  });
  if (!countsSlots || rings.empty())
    return "has slots that are not counted by one number that it carries";
  return std::nullopt;
}

Value SplitLoop::countSteps(OpBuilder &builder, Value from, Value to) {
  Indices index(builder, loop.getLoc());
  int64_t step = *getConstantIntValue(loop.getStep());
  Value span = index.create<arith::SubIOp>(to, from);
  span = index.create<arith::MaxSIOp>(span, index.constant(0));
  span = index.create<arith::AddIOp>(span, index.constant(step - 1));
  return index.divide(span, index.constant(step)).first;
}

void SplitLoop::passByRest(Value end) {
  OpBuilder builder(loop->getContext());
  builder.setInsertionPointAfter(loop);
  // The iterations of all groups together.
  Value count = countSteps(builder, loop.getLowerBound(), end);
  Value reached = loop.getResult(*counter);
  auto last = arith::AddIOp::create(builder, loop.getLoc(),
                                    loop.getInitArgs()[*counter], count);
  reached.replaceAllUsesWith(last);
  passBy(builder, reached, last);
}

void SplitLoop::passByFirst(Value begin) {
  OpBuilder builder(loop);
  OpOperand &init = loop.getInitArgsMutable()[*counter];
  Value count = countSteps(builder, begin, loop.getLowerBound());
  auto reached =
      arith::AddIOp::create(builder, loop.getLoc(), init.get(), count);
  passBy(builder, init.get(), reached);
  init.set(reached);
}

void SplitLoop::passBy(OpBuilder &builder, Value first, Value end) {
  Location loc = loop.getLoc();
  Indices index(builder, loc);
  // Slots are filled in turn, so they are also emptied in turn.
  scf::ForOp::create(
      builder, loc, first, end, index.constant(1), ValueRange(),
      [&](OpBuilder &nested, Location loc, Value use, ValueRange) {
        for (Value ring : rings) {
          WaitOp::create(nested, loc, ring, use);
          ReleaseOp::create(nested, loc, ring, use);
        }
        scf::YieldOp::create(nested, loc);
      });
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Returns the loop that ends or begins at `ofRows`, if that is its only use.
static scf::ForOp getLoop(OfRowsOp ofRows) {
  if (!ofRows->hasOneUse())
    return {};
  auto loop = dyn_cast<scf::ForOp>(*ofRows->user_begin());
  bool isBound =
      loop && llvm::is_contained({loop.getLowerBound(), loop.getUpperBound()},
                                 ofRows.getResult());
  return isBound ? loop : scf::ForOp();
}

void SkipRows::runOnOperation() {
  getOperation()->walk([&](RoleOp role) {
    SmallVector<OfRowsOp> numbers;
    role.walk([&](OfRowsOp op) { numbers.push_back(op); });
    if (numbers.empty() || role.getSingle())
      return;
    SplitRole split(role);
    if (std::optional<StringRef> reason =
            findSharedRows(role, numbers.front().getRows())) {
      LDBG() << "role at " << role.getLoc() << " stays: it " << *reason;
      return;
    }
    SmallVector<std::pair<OfRowsOp, SplitLoop>> begins, ends;
    for (OfRowsOp number : numbers) {
      scf::ForOp loop = getLoop(number);
      if (!loop) {
        // Branches on elements: each warp may take its own.
        if (number.getWhole().getType().isInteger(1))
          split.rewrite(number);
        continue;
      }
      SplitLoop splitLoop(loop);
      if (auto reason = splitLoop.analyze(number.getRows())) {
        LDBG() << "loop at " << loop.getLoc() << " stays: it " << *reason;
        continue;
      }
      bool isEnd = loop.getUpperBound() == number.getResult();
      (isEnd ? ends : begins).emplace_back(number, std::move(splitLoop));
    }
    auto rewrite = [&](OfRowsOp number, SplitLoop &splitLoop, bool isEnd) {
      scf::ForOp loop = splitLoop.getLoop();
      OpBuilder builder(number->getContext());
      builder.setInsertionPointAfter(number);
      Location loc = number.getLoc();
      Value whole = number.getWhole();
      if (isEnd) {
        loop.setUpperBound(arith::MinSIOp::create(builder, loc, number, whole));
        splitLoop.passByRest(whole);
      } else {
        Value end = loop.getUpperBound();
        if (auto ofRows = end.getDefiningOp<OfRowsOp>())
          end = ofRows.getWhole();
        Value begin = arith::MaxSIOp::create(builder, loc, number, whole);
        loop.setLowerBound(arith::MinSIOp::create(builder, loc, begin, end));
        splitLoop.passByFirst(whole);
      }
      split.rewrite(number);
      ++numSplit;
    };
    // A loop's begin comes first: the slots in front of it count for its end.
    for (auto &[number, splitLoop] : begins)
      rewrite(number, splitLoop, /*isEnd=*/false);
    for (auto &[number, splitLoop] : ends)
      rewrite(number, splitLoop, /*isEnd=*/true);
  });
  SmallVector<OfRowsOp> others;
  getOperation()->walk([&](OfRowsOp op) { others.push_back(op); });
  for (OfRowsOp op : others) {
    op.replaceAllUsesWith(op.getWhole());
    op.erase();
  }
}
