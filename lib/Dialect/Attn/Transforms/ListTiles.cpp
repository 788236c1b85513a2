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

#include "fovea/Analysis/TableLoops.h"
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
  struct ItemTests;
  Value countChunks(RewriterBase &rewriter, ArrayRef<OpFoldResult> items);
  void emitEntry(OpBuilder &builder, Location loc, ValueRange arguments,
                 Value chunkCounts);

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
  /// The most chunks of tiles of an item, and the tiles of these.
  OpFoldResult chunks, room;
};

/// The tiles that are counted together: as many as a warp has lanes.
constexpr int64_t kChunk = 32;

/// The tests of the tiles of one item of the parallel loop.
struct TestedLoop::ItemTests {
  ItemTests(TestedLoop &tested, IndexMath &math, ValueRange item);

  /// Returns the number, in its item, of tile `tile` of a chunk.
  static OpFoldResult getNumber(IndexMath &math, OpFoldResult chunk,
                                OpFoldResult tile) {
    return math.add(math.mul(chunk, math.constant(kChunk)), tile);
  }
  /// Returns the place of the item's tile `number`.
  OpFoldResult getPlace(IndexMath &math, OpFoldResult number) const {
    return math.add(lower, math.mul(number, step));
  }
  /// Returns how many tiles the item has from chunk `chunk` on, at most
  /// `limit`; none or less behind the last one.
  OpFoldResult countTiles(IndexMath &math, Value chunk,
                          OpFoldResult limit) const;
  /// Emits the tests of the tile at `place`: whether it is accepted, and flags.
  SmallVector<Value> test(OpBuilder &builder, Value place) const;
  /// Emits the number, of 32 bits, of accepted ones of a chunk's tiles below
  /// `end`.
  Value count(OpBuilder &builder, Location loc, OpFoldResult chunk,
              OpFoldResult end) const;

  TestedLoop &tested;
  SmallVector<Operation *> ofTile;
  IRMapping mapping;
  OpFoldResult lower, upper, step;
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
  // The opposite of a comparison with what is read is one where it is used.
  for (auto test :
       llvm::make_early_inc_range(branch.thenBlock()->getOps<arith::CmpIOp>()))
    if (llvm::all_of(test->getOperands(),
                     [&](Value operand) {
                       return operand.getParentBlock() != branch.thenBlock();
                     }) &&
        llvm::any_of(test->getOperands(),
                     [&](Value operand) { return readsTensor(operand, loop); }))
      test->moveBefore(branch);
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

/// Emits the sum of the terms, of 32 bits, of the numbers below `end`.
static Value
sumUp(OpBuilder &builder, Location loc, OpFoldResult end,
      llvm::function_ref<Value(OpBuilder &builder, Value number)> term) {
  IndexMath math(builder, loc);
  auto sum = scf::ForOp::create(
      builder, loc, math.materialize(math.constant(0)), math.materialize(end),
      math.materialize(math.constant(1)),
      arith::ConstantIntOp::create(builder, loc, 0, /*width=*/32).getResult(),
      [&](OpBuilder &nested, Location loc, Value number, ValueRange sum) {
        Value added = term(nested, number);
        scf::YieldOp::create(
            nested, loc,
            arith::AddIOp::create(nested, loc, sum[0], added).getResult());
      });
  return sum.getResult(0);
}

TestedLoop::ItemTests::ItemTests(TestedLoop &tested, IndexMath &math,
                                 ValueRange item)
    : tested(tested) {
  tested.slice.mapItem(math, item.take_front(tested.slice.getDims().size()),
                       mapping);
  for (Operation *op : tested.slice.getOps())
    if (tested.loop->isAncestor(op->getParentOp()))
      ofTile.push_back(op);
    else
      math.getBuilder().clone(*op, mapping);
  auto find = [&](Value value) {
    return getAsOpFoldResult(mapping.lookupOrDefault(value));
  };
  lower = find(tested.loop.getLowerBound());
  upper = find(tested.loop.getUpperBound());
  step = find(tested.loop.getStep());
}

OpFoldResult TestedLoop::ItemTests::countTiles(IndexMath &math, Value chunk,
                                               OpFoldResult limit) const {
  OpFoldResult tiles = math.ceilDiv(math.sub(upper, lower), step);
  OpFoldResult others = math.sub(tiles, math.mul(chunk, math.constant(kChunk)));
  MLIRContext *context = chunk.getContext();
  return affine::makeComposedFoldedAffineMin(
      math.getBuilder(), math.getLoc(),
      AffineMap::getMultiDimIdentityMap(2, context), {others, limit});
}

SmallVector<Value> TestedLoop::ItemTests::test(OpBuilder &builder,
                                               Value place) const {
  IRMapping ofPlace(mapping);
  ofPlace.map(tested.loop.getInductionVar(), place);
  for (Operation *op : ofTile)
    builder.clone(*op, ofPlace);
  SmallVector<Value> results = {
      ofPlace.lookupOrDefault(Value(tested.branch.getCondition()))};
  for (Value flag : tested.flags)
    results.push_back(ofPlace.lookupOrDefault(flag));
  return results;
}

Value TestedLoop::ItemTests::count(OpBuilder &builder, Location loc,
                                   OpFoldResult chunk, OpFoldResult end) const {
  return sumUp(builder, loc, end, [&](OpBuilder &nested, Value tile) {
    IndexMath math(nested, loc);
    Value place =
        math.materialize(getPlace(math, getNumber(math, chunk, tile)));
    return arith::ExtUIOp::create(nested, loc, nested.getI32Type(),
                                  test(nested, place).front());
  });
}

/// Emits how many tiles of each chunk of each item are accepted.
Value TestedLoop::countChunks(RewriterBase &rewriter,
                              ArrayRef<OpFoldResult> items) {
  Location loc = loop.getLoc();
  SmallVector<OpFoldResult> shape(items);
  shape.push_back(chunks);
  auto count = [&](OpBuilder &builder, ValueRange place,
                   SmallVectorImpl<OpFoldResult> &) -> SmallVector<Value> {
    Value chunk = place.back();
    IndexMath math(builder, loc);
    ItemTests tests(*this, math, place.drop_back());
    return {tests.count(builder, loc, chunk,
                        tests.countTiles(math, chunk, math.constant(kChunk)))};
  };
  return fillTables(rewriter, loc, shape, {rewriter.getI32Type()}, count)
      .front();
}

/// Emits the work on one tile of one item of the parallel loop: the tile counts
/// those before it that are accepted, which is its place in the list: whole
/// chunks by their counts, unless there is but one, and those of its own.
/// `arguments` are the numbers of the item, the chunk and the tile in it, the
/// list and the counts.
void TestedLoop::emitEntry(OpBuilder &builder, Location loc,
                           ValueRange arguments, Value chunkCounts) {
  ValueRange outs = arguments.take_back(2);
  Value ofChunk = arguments.drop_back(2).back();
  Value chunk = arguments.drop_back(3).back();
  ValueRange item = arguments.drop_back(4);
  IndexMath math(builder, loc);
  ItemTests tests(*this, math, item);
  Value zero = math.materialize(math.constant(0));
  Value before =
      tests.count(builder, loc, chunk, tests.countTiles(math, chunk, ofChunk));
  if (chunkCounts)
    before = arith::AddIOp::create(
        builder, loc, before,
        sumUp(builder, loc, chunk, [&](OpBuilder &nested, Value other) {
          SmallVector<Value> place(item);
          place.push_back(other);
          return tensor::ExtractOp::create(nested, loc, chunkCounts, place);
        }));
  OpFoldResult rank =
      arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), before)
          .getResult();
  OpFoldResult number = ItemTests::getNumber(math, chunk, ofChunk);
  Value place = math.materialize(tests.getPlace(math, number));
  // There may be fewer tiles than the list has room for.
  Value exists = math.materialize(math.less(place, tests.upper), true);
  SmallVector<Type> types(flags.size() + 1, builder.getI1Type());
  auto tested = scf::IfOp::create(builder, loc, types, exists,
                                  /*withElseRegion=*/true);
  OpBuilder inThen = tested.getThenBodyBuilder(),
            inElse = tested.getElseBodyBuilder();
  scf::YieldOp::create(inThen, loc, tests.test(inThen, place));
  IndexMath rejected(inElse, loc);
  scf::YieldOp::create(
      inElse, loc,
      SmallVector<Value>(types.size(),
                         rejected.materialize(rejected.boolean(false), true)));

  // Accepted tiles come first, in order, and the others last.
  Value accepted = tested.getResult(0);
  int64_t tileDim = static_cast<int64_t>(item.size());
  OpFoldResult fromEnd = math.add(math.sub(number, rank), math.constant(1));
  OpFoldResult slot = math.select(accepted, rank, math.sub(room, fromEnd));
  OpFoldResult count =
      math.select(accepted, math.add(rank, math.constant(1)), rank);
  OpFoldResult units = place;
  if (int64_t unit = getUnit(); unit > 1)
    units = math.add(math.floorDiv(tests.lower, math.constant(unit)), number);
  OpFoldResult entry =
      math.mul(units, math.constant(int64_t(1) << flags.size()));
  for (auto [bit, flag] : llvm::enumerate(tested.getResults().drop_front()))
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
  SmallVector<OpFoldResult> items = slice.getShape(math);
  if (items.empty())
    items.push_back(math.constant(1));
  // Without a tile the number of accepted ones is read nevertheless.
  OpFoldResult chunkSize = math.constant(kChunk);
  OpFoldResult tiles =
      math.ceilDiv(tensor::getMixedSize(rewriter, loc, tensor, tensorDim),
                   getAsOpFoldResult(loop.getStep()));
  chunks = math.max(math.ceilDiv(tiles, chunkSize), math.constant(1));
  room = math.mul(chunks, chunkSize);
  Value chunkCounts;
  if (IndexMath::constantOf(chunks) != 1)
    chunkCounts = countChunks(rewriter, items);
  SmallVector<OpFoldResult> shape(items), entries(items);
  shape.push_back(room);
  entries.append({chunks, chunkSize});
  Value memory = tensor::EmptyOp::create(rewriter, loc, shape, getNumberType());
  auto made = scf::ForallOp::create(
      rewriter, loc, entries, ValueRange{memory, memory},
      /*mapping=*/std::nullopt,
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        emitEntry(builder, loc, arguments, chunkCounts);
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
