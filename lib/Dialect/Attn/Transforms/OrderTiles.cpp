//===- OrderTiles.cpp - attn-order-tiles ----------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Persistent blocks are dealt tiles of queries from the longest to the
// shortest, and blocks of the backward pass begin with the tiles of keys that
// most queries see. Which are long is known under a causal mask; where tensors
// decide it, as where sequences begin, the tiles are sorted in front. Where
// tensors also decide which tiles have queries, those that have none come last,
// and the loop ends in front of them.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "ItemSlice.h"

#include "fovea/Analysis/TableLoops.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

#define DEBUG_TYPE "attn-order-tiles"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNORDERTILES
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
/// A parallel loop over batches, heads and tiles of queries, each of which has
/// a loop over tiles of keys; in the backward pass it is the other way round.
class OrderedLoop {
public:
  OrderedLoop(scf::ForallOp items, scf::ForOp keys, ScheduleAttr schedule,
              bool isBackward)
      : items(items), keys(keys), schedule(schedule), isBackward(isBackward),
        slice(items) {}

  /// Returns the reason for which the tiles stay in order, or nullopt.
  std::optional<StringRef> analyze();

  void rewrite(RewriterBase &rewriter);

  Location getLoc() { return items.getLoc(); }

private:
  /// The dimension of the tiles of queries.
  static constexpr int64_t kTileDim = 2;

  SmallVector<Value> createTables(
      RewriterBase &rewriter, unsigned count,
      llvm::function_ref<std::pair<SmallVector<OpFoldResult>, OpFoldResult>(
          IndexMath &, ValueRange item)>
          emit);
  bool readsAtTile();
  SmallVector<Value> findSizes();
  void endAt(RewriterBase &rewriter, OpFoldResult count);

  scf::ForallOp items;
  scf::ForOp keys;
  ScheduleAttr schedule;
  bool isBackward;
  /// What the bounds of the loop over keys, and `sizes`, are computed by.
  ItemSlice slice;
  /// The sizes of results that tensors decide: a tile is used if none is zero.
  SmallVector<Value> sizes;
  /// Where the tiles are among the dimensions of tables.
  size_t tileAt = 0;
};
} // namespace

/// Returns true if the slice reads a tensor by the tile's number.
bool OrderedLoop::readsAtTile() {
  SmallPtrSet<Operation *, 16> ofTile;
  for (Operation *op : slice.getOps()) {
    bool dependsOnTile = llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand == items.getInductionVar(kTileDim) ||
             ofTile.contains(operand.getDefiningOp());
    });
    if (dependsOnTile && isa<tensor::ExtractOp>(op))
      return true;
    if (dependsOnTile)
      ofTile.insert(op);
  }
  return false;
}

std::optional<StringRef> OrderedLoop::analyze() {
  SmallVector<Value> needed = {keys.getLowerBound(), keys.getUpperBound(),
                               keys.getStep()};
  if (items.getRank() <= kTileDim ||
      !llvm::all_of(needed, [&](Value value) { return slice.collect(value); }))
    return "has bounds of keys that the parallel loop computes";
  if (!readsAtTile())
    return "has bounds of keys that no tensor decides for each tile";
  sizes = findSizes();
  llvm::append_range(needed, sizes);
  if (!slice.areRepeated(needed))
    return "has bounds of keys that differ between its repetitions";
  ArrayRef<int64_t> dims = slice.getDims();
  tileAt = llvm::find(dims, kTileDim) - dims.begin();
  // One number for all: more dimensions would have one each.
  if (dims.size() > 1 || !isConstantIntValue(items.getMixedStep()[kTileDim], 1))
    sizes.clear();
  return std::nullopt;
}

/// Returns the sizes of the loop's results that are read from tensors, and adds
/// what they are computed by to the slice.
SmallVector<Value> OrderedLoop::findSizes() {
  SetVector<Value> found;
  for (Operation &op : items.getTerminator().getYieldingOps()) {
    auto insert = cast<tensor::ParallelInsertSliceOp>(op);
    for (Value size : insert.getSizes()) {
      ItemSlice own(items);
      if (own.collect(size) &&
          llvm::any_of(own.getOps(), llvm::IsaPred<tensor::ExtractOp>))
        found.insert(size);
    }
  }
  for (Value size : found)
    slice.collect(size);
  return found.takeVector();
}

/// Emits a loop in front over the items that the bounds tell apart, which
/// writes numbers to `count` tables for each. `emit` returns the numbers, and
/// the tile in whose place they are.
SmallVector<Value> OrderedLoop::createTables(
    RewriterBase &rewriter, unsigned count,
    llvm::function_ref<std::pair<SmallVector<OpFoldResult>, OpFoldResult>(
        IndexMath &, ValueRange item)>
        emit) {
  Location loc = items.getLoc();
  IndexMath math(rewriter, loc);
  SmallVector<OpFoldResult> shape = slice.getShape(math);
  // A kernel knows that numbers of 32 bits without a sign are small.
  Type type = rewriter.getI32Type();
  auto fill = [&](OpBuilder &builder, ValueRange item,
                  SmallVectorImpl<OpFoldResult> &place) {
    IndexMath inner(builder, loc);
    auto [numbers, tile] = emit(inner, item);
    place[tileAt] = tile;
    return llvm::map_to_vector(numbers, [&](OpFoldResult number) {
      return inner.materialize(number);
    });
  };
  return fillTables(rewriter, loc, shape, SmallVector<Type>(count, type), fill);
}

/// Returns half of the number of steps that a span of keys takes: tiles of
/// about as many stay neighbours, which read the same keys. (Sequences of 1k, d
/// = 128, H200: 151.5 us by steps, 146.6 by pairs of them, 185 by eights.)
static OpFoldResult countPairs(IndexMath &math, OpFoldResult span,
                               OpFoldResult step) {
  return math.ceilDiv(span, math.mul(step, math.constant(2)));
}

static Value read(IndexMath &math, Value table, ValueRange place) {
  OpBuilder &builder = math.getBuilder();
  Location loc = math.getLoc();
  return arith::IndexCastUIOp::create(
      builder, loc, builder.getIndexType(),
      tensor::ExtractOp::create(builder, loc, table, place));
}

/// Lets the loop over tiles end at `count`, or where it ended if that is
/// sooner.
void OrderedLoop::endAt(RewriterBase &rewriter, OpFoldResult count) {
  rewriter.setInsertionPoint(items);
  IndexMath math(rewriter, items.getLoc());
  SmallVector<OpFoldResult> upper = items.getMixedUpperBound();
  upper[kTileDim] = math.min(
      math.add(items.getMixedLowerBound()[kTileDim], count), upper[kTileDim]);
  auto shorter = scf::ForallOp::create(
      rewriter, items.getLoc(), items.getMixedLowerBound(), upper,
      items.getMixedStep(), items.getOutputs(), items.getMapping());
  rewriter.eraseOp(shorter.getTerminator());
  rewriter.inlineBlockBefore(items.getBody(), shorter.getBody(),
                             shorter.getBody()->end(),
                             shorter.getBody()->getArguments());
  rewriter.replaceOp(items, shorter);
}

void OrderedLoop::rewrite(RewriterBase &rewriter) {
  Location loc = items.getLoc();
  rewriter.setInsertionPoint(slice.getRoot());
  IndexMath front(rewriter, loc);
  OpFoldResult shortSteps =
      countShortSteps(front, slice.countItems(front),
                      machine::getTargetOrDefault(items).getCores());
  auto emitLength = [&](IndexMath &math, ValueRange item) {
    OpFoldResult tile = item[tileAt];
    IRMapping mapping;
    slice.mapItem(math, item, mapping);
    for (Operation *op : slice.getOps())
      math.getBuilder().clone(*op, mapping);
    OpFoldResult span = math.sub(mapping.lookupOrDefault(keys.getUpperBound()),
                                 mapping.lookupOrDefault(keys.getLowerBound())),
                 step = mapping.lookupOrDefault(keys.getStep());
    span = math.max(span, math.constant(0));
    if (schedule.getBlocks() != Blocks::Dealt)
      return std::pair(SmallVector{countPairs(math, span, step)}, tile);
    OpFoldResult length =
        arith::IndexCastUIOp::create(math.getBuilder(), loc,
                                     math.getBuilder().getIndexType(),
                                     countDoublings(math, span, step))
            .getResult();
    OpFoldResult isShort = math.lessEqual(span, math.mul(shortSteps, step));
    length = math.select(isShort, math.constant(0), length);
    if (sizes.empty())
      return std::pair(SmallVector{length}, tile);
    // Those that are not used come last.
    OpFoldResult isUsed = math.boolean(true);
    for (Value size : sizes)
      isUsed = math.logicalAnd(
          isUsed, math.less(math.constant(0), mapping.lookupOrDefault(size)));
    length = math.select(isUsed, math.add(length, math.constant(1)),
                         math.constant(0));
    return std::pair(SmallVector{length}, tile);
  };
  Value lengths = createTables(rewriter, 1, emitLength).front();

  // The place of a tile is the number of those that come before it: among equal
  // ones the tiles in front or, where these were not reversed, those behind,
  // which have more keys. Tiles of keys in front have more queries. Each place
  // has the number of those that are used.
  bool counts = !sizes.empty();
  bool isReversed =
      isBackward || schedule.getQueries() != QueryTiles::Sequences;
  auto emitPlace = [&](IndexMath &math, ValueRange item) {
    OpBuilder &builder = math.getBuilder();
    Value own = read(math, lengths, item), tile = item[tileAt],
          zero = math.materialize(math.constant(0)),
          one = math.materialize(math.constant(1)),
          count = math.materialize(slice.getShape(math)[tileAt]);
    // In 32 bits, which warps have an instruction for.
    Type narrow = builder.getI32Type();
    SmallVector<Value> zeros(
        counts ? 2 : 1, arith::ConstantIntOp::create(builder, loc, narrow, 0));
    auto sums = scf::ForOp::create(
        builder, loc, zero, count, one, zeros,
        [&](OpBuilder &nested, Location loc, Value other, ValueRange sums) {
          IndexMath inner(nested, loc);
          SmallVector<Value> place(item);
          place[tileAt] = other;
          OpFoldResult length = read(inner, lengths, place);
          SmallVector<OpFoldResult> terms = {inner.logicalOr(
              inner.less(own, length),
              inner.logicalAnd(inner.equal(own, length),
                               isReversed ? inner.less(other, tile)
                                          : inner.less(tile, other)))};
          if (counts)
            terms.push_back(inner.less(inner.constant(0), length));
          SmallVector<Value> next;
          for (auto [sum, isCounted] : llvm::zip_equal(sums, terms)) {
            Value term = arith::ExtUIOp::create(
                nested, loc, narrow,
                inner.materialize(isCounted, /*isBoolean=*/true));
            next.push_back(arith::AddIOp::create(nested, loc, sum, term));
          }
          scf::YieldOp::create(nested, loc, next);
        });
    auto widen = [&](Value sum) -> OpFoldResult {
      return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                          sum)
          .getResult();
    };
    SmallVector<OpFoldResult> numbers = {tile};
    if (counts)
      numbers.push_back(widen(sums.getResult(1)));
    return std::pair(numbers, widen(sums.getResult(0)));
  };
  SmallVector<Value> tables = createTables(rewriter, counts ? 2 : 1, emitPlace);
  Value order = tables[0];
  OpFoldResult used;
  if (counts) {
    IndexMath math(rewriter, loc);
    used = read(math, tables[1], math.materialize(math.constant(0)));
  }

  rewriter.setInsertionPointToStart(items.getBody());
  IndexMath math(rewriter, loc);
  Value iv = items.getInductionVar(kTileDim);
  Value tile = read(math, order, slice.getNumber(math));
  Value ordered = math.materialize(
      math.add(items.getMixedLowerBound()[kTileDim],
               math.mul(tile, OpFoldResult(items.getMixedStep()[kTileDim]))));
  SmallPtrSet<Operation *, 8> own;
  for (Operation &op : *items.getBody()) {
    own.insert(&op);
    if (&op == ordered.getDefiningOp())
      break;
  }
  rewriter.replaceUsesWithIf(iv, ordered, [&](OpOperand &use) {
    return !own.contains(use.getOwner());
  });
  if (used)
    endAt(rewriter, used);
}

namespace {
struct OrderTiles : fovea::attn::impl::AttnOrderTilesBase<OrderTiles> {
  using AttnOrderTilesBase::AttnOrderTilesBase;

  void runOnOperation() override {
    SmallVector<OrderedLoop> loops;
    getOperation()->walk([&](scf::ForallOp items) {
      for (auto keys : items.getBody()->getOps<scf::ForOp>()) {
        ScheduleAttr schedule;
        keys->walk(
            [&](OnlineAttentionOp pass) { schedule = pass.getScheduleAttr(); });
        if (!schedule || schedule.getOrder() != WorkOrder::LongestFirst ||
            schedule.getBlocks() == Blocks::Tiles)
          continue;
        loops.emplace_back(items, keys, schedule, /*isBackward=*/false);
        break;
      }
    });
    // Blocks that take turns to add begin in the order of their tiles.
    if (!deterministic)
      getOperation()->walk([&](OnlineBackwardOp step) {
        auto items = step->getParentOfType<scf::ForallOp>();
        auto queries = step->getParentOfType<scf::ForOp>();
        ScheduleAttr schedule = step.getScheduleAttr();
        if (items && queries && items->isAncestor(queries) && schedule &&
            schedule.getOrder() == WorkOrder::LongestFirst)
          loops.emplace_back(items, queries, schedule, /*isBackward=*/true);
      });
    IRRewriter rewriter(&getContext());
    for (OrderedLoop &loop : loops) {
      if (std::optional<StringRef> reason = loop.analyze()) {
        LDBG() << "parallel loop at " << loop.getLoc() << " stays: it "
               << *reason;
        continue;
      }
      loop.rewrite(rewriter);
      ++numOrdered;
    }
  }
};
} // namespace
