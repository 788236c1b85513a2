//===- ListTiles.cpp - attn-list-tiles ------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop that tests each tile cannot run ahead: the next tile is not known. A
// list of the tiles that pass the test, made before, gives a loop without
// tests.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "ItemSlice.h"

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"
#include "fovea/Support/Multiples.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "mlir/Transforms/RegionUtils.h"

#define DEBUG_TYPE "attn-list-tiles"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNLISTTILES
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
/// A loop over tiles, in a parallel loop, that passes by those that a test
/// rejects.
class TestedLoop {
public:
  /// Returns the loop if its tests can be made before the parallel loop.
  static std::optional<TestedLoop> get(scf::ForOp loop);

  /// Replaces the loop by one over a list of the tiles that pass the test.
  void rewrite(RewriterBase &rewriter);

private:
  TestedLoop(scf::ForOp loop, scf::IfOp branch, scf::ForallOp forall)
      : loop(loop), branch(branch), forall(forall), slice(forall) {}

  bool collect(Value value) {
    return slice.collect(value, loop.getInductionVar());
  }
  bool collectTests();
  bool findLength();
  SmallVector<Value> getItem(RewriterBase &rewriter);
  void createLists(RewriterBase &rewriter);
  void emitEntry(OpBuilder &builder, Location loc, ValueRange arguments);

  /// Returns the type of numbers in lists: 32 bits, which a kernel knows to be
  /// small, where places of less than 30 have room in them beside the flags.
  Type getNumberType() {
    return IntegerType::get(loop.getContext(), flags.size() <= 2 ? 32 : 64);
  }

  /// Returns what places are divided by in lists: by the step if they are
  /// multiples of it, which readers of the tiles may need to know; else by 1.
  int64_t getUnit() {
    std::optional<int64_t> step = getConstantIntValue(loop.getStep());
    return step && Multiples(*step).contains(loop.getLowerBound()) ? *step : 1;
  }

  scf::ForOp loop;
  scf::IfOp branch;
  scf::ForallOp forall;
  /// What the bounds and the tests are computed by.
  ItemSlice slice;
  /// Booleans that an accepted tile uses, which need not be computed again.
  SmallVector<Value> flags;
  /// The dimension of a tensor that the loop steps through.
  Value tensor;
  int64_t tensorDim = 0;
  /// By item: places of the tiles, in units, with the flags in the lowest bits,
  /// and, for each tile, how many are accepted up to it.
  Value list, counts;
  /// The most tiles of an item.
  OpFoldResult room;
};
} // namespace

/// Returns true if `value` depends on an element of a tensor that is read for
/// each tile.
static bool readsTensor(Value value, scf::ForOp loop) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody())
    return false;
  return isa<tensor::ExtractOp>(op) ||
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return readsTensor(operand, loop);
         });
}

bool TestedLoop::collectTests() {
  std::initializer_list<Value> tests = {loop.getLowerBound(),
                                        loop.getUpperBound(), loop.getStep(),
                                        branch.getCondition()};
  if (!llvm::all_of(tests, [&](Value value) { return collect(value); }))
    return false;
  SetVector<Value> used;
  getUsedValuesDefinedAbove(branch.getThenRegion(), used);
  for (Value value : used) {
    Operation *op = value.getDefiningOp();
    bool isTest = value.getType().isInteger(1) && op &&
                  op->getBlock() == loop.getBody() && op != branch &&
                  collect(value);
    if (isTest)
      flags.push_back(value);
    else if (readsTensor(value, loop))
      return false;
  }
  return true;
}

/// Finds the tensor whose tiles the loop visits: none of its places is beyond
/// the tensor's size.
bool TestedLoop::findLength() {
  Value iv = loop.getInductionVar();
  auto isAtPlace = [&](OpFoldResult offset) {
    auto value = dyn_cast<Value>(offset);
    if (!value || value == iv)
      return value == iv;
    // A tile whose first rows are left out begins behind its place.
    auto apply = value.getDefiningOp<affine::AffineApplyOp>();
    Builder builder(loop.getContext());
    return apply && apply.getOperands().size() == 2 &&
           apply.getOperand(0) == iv &&
           apply.getAffineMap() ==
               AffineMap::get(1, 1,
                              builder.getAffineDimExpr(0) +
                                  builder.getAffineSymbolExpr(0));
  };
  branch.getThenRegion().walk([&](tensor::ExtractSliceOp tile) {
    if (forall.getRegion().isAncestor(tile.getSource().getParentRegion()))
      return WalkResult::advance();
    for (auto [dim, offset] : llvm::enumerate(tile.getMixedOffsets()))
      if (isAtPlace(offset)) {
        tensor = getShaped(tile.getSource());
        tensorDim = static_cast<int64_t>(dim);
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return static_cast<bool>(tensor);
}

std::optional<TestedLoop> TestedLoop::get(scf::ForOp loop) {
  auto forall = loop->getParentOfType<scf::ForallOp>();
  if (!forall)
    return std::nullopt;
  auto branches = loop.getBody()->getOps<scf::IfOp>();
  if (!llvm::hasSingleElement(branches))
    return std::nullopt;
  scf::IfOp branch = *branches.begin();
  for (Operation &op : loop.getBody()->without_terminator())
    if (&op != branch && (op.getNumRegions() != 0 || !isPure(&op)))
      return std::nullopt;
  // All blocks of a cluster visit all tiles, and one may have its tile of
  // queries behind the last one, of which there is no list.
  bool isClustered = branch
                         ->walk([](OnlineAttentionOp pass) {
                           ScheduleAttr schedule = pass.getScheduleAttr();
                           return schedule && schedule.getCluster() > 1
                                      ? WalkResult::interrupt()
                                      : WalkResult::advance();
                         })
                         .wasInterrupted();
  if (isClustered) {
    LDBG() << "loop at " << loop.getLoc()
           << ": the blocks of a cluster visit the same tiles";
    return std::nullopt;
  }
  // A rejected tile changes nothing.
  if (!llvm::equal(loop.getYieldedValues(), branch.getResults()))
    return std::nullopt;
  if (Block *other = branch.elseBlock())
    if (!llvm::hasSingleElement(*other) ||
        !llvm::equal(other->getTerminator()->getOperands(),
                     loop.getRegionIterArgs()))
      return std::nullopt;
  TestedLoop tested(loop, branch, forall);
  if (!tested.collectTests()) {
    LDBG() << "loop at " << loop.getLoc()
           << ": its tests need what the parallel loop computes";
    return std::nullopt;
  }
  if (!tested.findLength()) {
    LDBG() << "loop at " << loop.getLoc() << ": no bound on its tiles is known";
    return std::nullopt;
  }
  if (!tested.slice.areRepeated({tested.tensor, loop.getLowerBound(),
                                 loop.getUpperBound(), loop.getStep()})) {
    LDBG() << "loop at " << loop.getLoc()
           << ": its tests differ between repetitions of the parallel loop";
    return std::nullopt;
  }
  return tested;
}

/// Emits the work on one tile of one item of the parallel loop: the tile counts
/// those before it that are accepted, which is its place in the list.
/// `arguments` are the numbers of the item and of the tile, the list and the
/// counts.
void TestedLoop::emitEntry(OpBuilder &builder, Location loc,
                           ValueRange arguments) {
  ValueRange item = arguments.drop_back(3);
  Value number = arguments[item.size()];
  ValueRange outs = arguments.take_back(2);
  IndexMath math(builder, loc);
  IRMapping mapping;
  slice.mapItem(math, item.take_front(slice.getDims().size()), mapping);
  SmallVector<Operation *> ofTile;
  for (Operation *op : slice.getOps())
    if (loop->isAncestor(op->getParentOp()))
      ofTile.push_back(op);
    else
      builder.clone(*op, mapping);
  Value lower = mapping.lookupOrDefault(loop.getLowerBound()),
        upper = mapping.lookupOrDefault(loop.getUpperBound()),
        step = mapping.lookupOrDefault(loop.getStep());
  // Emits the tests of the tile at `place`: whether it is accepted, and flags.
  auto test = [&](OpBuilder &nested, Value place) {
    IRMapping ofPlace(mapping);
    ofPlace.map(loop.getInductionVar(), place);
    for (Operation *op : ofTile)
      nested.clone(*op, ofPlace);
    SmallVector<Value> results = {
        ofPlace.lookupOrDefault(Value(branch.getCondition()))};
    for (Value flag : flags)
      results.push_back(ofPlace.lookupOrDefault(flag));
    return results;
  };

  Value place =
      math.materialize(math.add(lower, math.mul(number, OpFoldResult(step))));
  Value zero = math.materialize(math.constant(0));
  auto before = scf::ForOp::create(
      builder, loc, lower, math.materialize(math.min(place, upper)), step, zero,
      [&](OpBuilder &nested, Location loc, Value earlier, ValueRange count) {
        IndexMath sum(nested, loc);
        OpFoldResult accepted = sum.select(test(nested, earlier).front(),
                                           sum.constant(1), sum.constant(0));
        scf::YieldOp::create(nested, loc,
                             sum.materialize(sum.add(count[0], accepted)));
      });
  // There may be fewer tiles than the list has room for.
  Value exists = math.materialize(math.less(place, upper), true);
  SmallVector<Type> types(flags.size() + 1, builder.getI1Type());
  auto tests = scf::IfOp::create(builder, loc, types, exists,
                                 /*withElseRegion=*/true);
  OpBuilder inThen = tests.getThenBodyBuilder(),
            inElse = tests.getElseBodyBuilder();
  scf::YieldOp::create(inThen, loc, test(inThen, place));
  IndexMath rejected(inElse, loc);
  scf::YieldOp::create(
      inElse, loc,
      SmallVector<Value>(types.size(),
                         rejected.materialize(rejected.boolean(false), true)));

  // Accepted tiles come first, in order, and the others last.
  Value accepted = tests.getResult(0), rank = before.getResult(0);
  int64_t tileDim = static_cast<int64_t>(item.size());
  OpFoldResult fromEnd =
      math.add(math.sub(OpFoldResult(number), rank), math.constant(1));
  OpFoldResult slot = math.select(accepted, rank, math.sub(room, fromEnd));
  OpFoldResult count = math.select(accepted, math.add(rank, math.constant(1)),
                                   OpFoldResult(rank));
  OpFoldResult units = place;
  if (int64_t unit = getUnit(); unit > 1)
    units = math.add(math.floorDiv(lower, math.constant(unit)), number);
  OpFoldResult entry =
      math.mul(units, math.constant(int64_t(1) << flags.size()));
  for (auto [bit, flag] : llvm::enumerate(tests.getResults().drop_front()))
    entry = math.add(entry, math.select(flag, math.constant(int64_t(1) << bit),
                                        math.constant(0)));

  SmallVector<OpFoldResult> ones(tileDim + 1, builder.getIndexAttr(1));
  SmallVector<Value> zeros(tileDim + 1, zero);
  SmallVector<SmallVector<OpFoldResult>> offsets;
  SmallVector<Value> slices;
  auto write = [&](OpFoldResult value, Value out, OpFoldResult index) {
    SmallVector<OpFoldResult> &offset =
        offsets.emplace_back(getAsOpFoldResult(item));
    offset.push_back(index);
    Value slice =
        tensor::ExtractSliceOp::create(builder, loc, out, offset, ones, ones);
    Value narrow = arith::IndexCastUIOp::create(builder, loc, getNumberType(),
                                                math.materialize(value));
    slices.push_back(
        tensor::InsertOp::create(builder, loc, narrow, slice, zeros));
  };
  write(entry, outs[0], slot);
  write(count, outs[1], number);
  auto parallel = scf::InParallelOp::create(builder, loc);
  builder.setInsertionPointToStart(parallel.getBody());
  for (auto [slice, out, offset] : llvm::zip_equal(slices, outs, offsets))
    tensor::ParallelInsertSliceOp::create(builder, loc, slice, out, offset,
                                          ones, ones);
}

/// Emits the lists of all items before the parallel loop, and before the loops
/// that repeat it.
void TestedLoop::createLists(RewriterBase &rewriter) {
  Location loc = loop.getLoc();
  rewriter.setInsertionPoint(slice.getRoot());
  IndexMath math(rewriter, loc);
  SmallVector<OpFoldResult> shape = slice.getShape(math);
  if (shape.empty())
    shape.push_back(math.constant(1));
  // Without a tile the number of accepted ones is read nevertheless.
  room = math.max(
      math.ceilDiv(tensor::getMixedSize(rewriter, loc, tensor, tensorDim),
                   getAsOpFoldResult(loop.getStep())),
      math.constant(1));
  shape.push_back(room);
  Value memory = tensor::EmptyOp::create(rewriter, loc, shape, getNumberType());
  auto made = scf::ForallOp::create(
      rewriter, loc, shape, ValueRange{memory, memory},
      /*mapping=*/std::nullopt,
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        emitEntry(builder, loc, arguments);
      });
  list = made.getResult(0);
  counts = made.getResult(1);
}

/// Returns the numbers of an item of the parallel loop in the lists.
SmallVector<Value> TestedLoop::getItem(RewriterBase &rewriter) {
  IndexMath math(rewriter, loop.getLoc());
  SmallVector<Value> item = slice.getNumber(math);
  if (item.empty())
    item.push_back(math.materialize(math.constant(0)));
  return item;
}

void TestedLoop::rewrite(RewriterBase &rewriter) {
  Location loc = loop.getLoc();
  createLists(rewriter);
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> item = getItem(rewriter);
  IndexMath math(rewriter, loc);
  item.push_back(math.materialize(math.sub(room, math.constant(1))));
  auto read = [&](OpBuilder &builder, Value numbers) -> Value {
    return arith::IndexCastUIOp::create(
        builder, loc, builder.getIndexType(),
        tensor::ExtractOp::create(builder, loc, numbers, item));
  };
  Value count = read(rewriter, counts);
  item.pop_back();
  auto listed = scf::ForOp::create(
      rewriter, loc, math.materialize(math.constant(0)), count,
      math.materialize(math.constant(1)), loop.getInitArgs(),
      [&](OpBuilder &builder, Location loc, Value number, ValueRange running) {
        item.push_back(number);
        IRMapping mapping;
        mapping.map(loop.getRegionIterArgs(), running);
        IndexMath math(builder, loc);
        Value entry = read(builder, list);
        Value place = entry;
        if (!flags.empty())
          place = arith::ShRUIOp::create(
              builder, loc, entry,
              math.materialize(math.constant(int64_t(flags.size()))));
        if (int64_t unit = getUnit(); unit > 1)
          place = math.materialize(math.mul(place, math.constant(unit)));
        mapping.map(loop.getInductionVar(), place);
        for (auto [bit, flag] : llvm::enumerate(flags)) {
          Value mask = math.materialize(math.constant(int64_t(1) << bit));
          Value isSet = arith::AndIOp::create(builder, loc, entry, mask);
          mapping.map(flag, arith::CmpIOp::create(builder, loc,
                                                  arith::CmpIPredicate::eq,
                                                  isSet, mask)
                                .getResult());
        }
        for (Operation &op : loop.getBody()->without_terminator())
          if (&op != branch && llvm::none_of(op.getResults(), [&](Value value) {
                return mapping.contains(value) || readsTensor(value, loop);
              }))
            builder.clone(op, mapping);
        for (Operation &op : branch.thenBlock()->without_terminator())
          builder.clone(op, mapping);
        SmallVector<Value> results;
        for (Value result : branch.thenYield().getResults())
          results.push_back(mapping.lookupOrDefault(result));
        scf::YieldOp::create(builder, loc, results);
      });
  SmallVector<Operation *> around;
  for (Operation *op : slice.getOps())
    if (!loop->isAncestor(op->getParentOp()))
      around.push_back(op);
  rewriter.replaceOp(loop, listed);
  // What only the tests needed.
  for (Operation *op : llvm::reverse(around))
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
}

namespace {
struct ListTiles : fovea::attn::impl::AttnListTilesBase<ListTiles> {
  using AttnListTilesBase::AttnListTilesBase;

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      auto tiles = loop->walk([&](Operation *op) {
        bool isListed = isa<OnlineAttentionOp>(op) ||
                        (isa<OnlineBackwardOp>(op) && !deterministic);
        return isListed ? WalkResult::interrupt() : WalkResult::advance();
      });
      if (tiles.wasInterrupted())
        loops.push_back(loop);
    });
    IRRewriter rewriter(&getContext());
    for (scf::ForOp loop : loops)
      if (auto forall = loop->getParentOfType<scf::ForallOp>())
        for (auto outer = dyn_cast<scf::ForOp>(forall->getParentOp()); outer;
             outer = dyn_cast<scf::ForOp>(outer->getParentOp()))
          moveLoopInvariantCode(outer);
    for (scf::ForOp loop : loops)
      if (std::optional<TestedLoop> tested = TestedLoop::get(loop)) {
        tested->rewrite(rewriter);
        ++numListed;
      }
  }
};
} // namespace
