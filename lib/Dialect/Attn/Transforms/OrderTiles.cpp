//===- OrderTiles.cpp - attn-order-tiles ----------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Persistent blocks are dealt tiles of queries from the longest to the
// shortest. Which are long is known under a causal mask; where tensors decide
// it, as where sequences begin, the tiles are sorted in front.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "ItemSlice.h"

#include "fovea/Dialect/Attn/IR/Attn.h"
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
/// a loop over tiles of keys.
class OrderedLoop {
public:
  OrderedLoop(scf::ForallOp items, scf::ForOp keys)
      : items(items), keys(keys), slice(items) {}

  /// Returns the reason for which the tiles stay in order, or nullopt.
  std::optional<StringRef> analyze();

  void rewrite(RewriterBase &rewriter);

private:
  /// The dimension of the tiles of queries.
  static constexpr int64_t kTileDim = 2;

  Value createTable(RewriterBase &rewriter,
                    llvm::function_ref<std::pair<OpFoldResult, OpFoldResult>(
                        IndexMath &, ValueRange item)>
                        emit);

  scf::ForallOp items;
  scf::ForOp keys;
  /// What the bounds of the loop over keys are computed by.
  ItemSlice slice;
  /// Where the tiles are among the dimensions of tables.
  size_t tileAt = 0;
};
} // namespace

std::optional<StringRef> OrderedLoop::analyze() {
  Value bounds[] = {keys.getLowerBound(), keys.getUpperBound(), keys.getStep()};
  if (items.getRank() <= kTileDim ||
      !llvm::all_of(bounds, [&](Value value) { return slice.collect(value); }))
    return "has bounds of keys that the parallel loop computes";
  ArrayRef<int64_t> dims = slice.getDims();
  if (!llvm::is_contained(dims, kTileDim) ||
      llvm::none_of(slice.getOps(), llvm::IsaPred<tensor::ExtractOp>))
    return "has bounds of keys that no tensor decides";
  if (!slice.areRepeated(bounds))
    return "has bounds of keys that differ between its repetitions";
  tileAt = llvm::find(dims, kTileDim) - dims.begin();
  return std::nullopt;
}

/// Emits a loop in front over the items that the bounds tell apart, which
/// writes a number to a table for each. `emit` returns the number, and the tile
/// in whose place it is.
Value OrderedLoop::createTable(
    RewriterBase &rewriter,
    llvm::function_ref<std::pair<OpFoldResult, OpFoldResult>(IndexMath &,
                                                             ValueRange item)>
        emit) {
  Location loc = items.getLoc();
  IndexMath math(rewriter, loc);
  SmallVector<OpFoldResult> shape = slice.getShape(math);
  // A kernel knows that numbers of 32 bits without a sign are small.
  Type type = rewriter.getI32Type();
  Value memory = tensor::EmptyOp::create(rewriter, loc, shape, type);
  auto body = [&](OpBuilder &builder, Location loc, ValueRange arguments) {
    ValueRange item = arguments.drop_back();
    Value out = arguments.back();
    IndexMath inner(builder, loc);
    auto [number, tile] = emit(inner, item);
    SmallVector<OpFoldResult> ones(item.size(), builder.getIndexAttr(1)),
        place = getAsOpFoldResult(item);
    place[tileAt] = tile;
    Value narrow = arith::IndexCastUIOp::create(builder, loc, type,
                                                inner.materialize(number));
    Value element =
        tensor::ExtractSliceOp::create(builder, loc, out, place, ones, ones);
    SmallVector<Value> zeros(item.size(), inner.materialize(inner.constant(0)));
    Value inserted =
        tensor::InsertOp::create(builder, loc, narrow, element, zeros);
    auto parallel = scf::InParallelOp::create(builder, loc);
    builder.setInsertionPointToStart(parallel.getBody());
    tensor::ParallelInsertSliceOp::create(builder, loc, inserted, out, place,
                                          ones, ones);
  };
  return scf::ForallOp::create(rewriter, loc, shape, memory,
                               /*mapping=*/std::nullopt, body)
      .getResult(0);
}

void OrderedLoop::rewrite(RewriterBase &rewriter) {
  Location loc = items.getLoc();
  rewriter.setInsertionPoint(slice.getRoot());
  Value lengths = createTable(rewriter, [&](IndexMath &math, ValueRange item) {
    IRMapping mapping;
    slice.mapItem(math, item, mapping);
    for (Operation *op : slice.getOps())
      math.getBuilder().clone(*op, mapping);
    OpFoldResult span = math.sub(mapping.lookupOrDefault(keys.getUpperBound()),
                                 mapping.lookupOrDefault(keys.getLowerBound()));
    // Tiles of about as many steps stay neighbours, which read the same keys.
    // (Sequences of 1k, d = 128, H200: 151.5 us by steps, 146.6 by pairs of
    // them, 185 by eights.)
    OpFoldResult two =
        math.mul(mapping.lookupOrDefault(keys.getStep()), math.constant(2));
    OpFoldResult pairs = math.ceilDiv(math.max(span, math.constant(0)), two);
    return std::pair(pairs, OpFoldResult(item[tileAt]));
  });

  auto read = [](IndexMath &math, Value table, ValueRange place) -> Value {
    OpBuilder &builder = math.getBuilder();
    Location loc = table.getLoc();
    return arith::IndexCastUIOp::create(
        builder, loc, builder.getIndexType(),
        tensor::ExtractOp::create(builder, loc, table, place));
  };
  // The place of a tile is the number of those that come before it.
  Value order = createTable(rewriter, [&](IndexMath &math, ValueRange item) {
    OpBuilder &builder = math.getBuilder();
    Value own = read(math, lengths, item), tile = item[tileAt],
          zero = math.materialize(math.constant(0)),
          one = math.materialize(math.constant(1)),
          count = math.materialize(slice.getShape(math)[tileAt]);
    auto before = scf::ForOp::create(
        builder, loc, zero, count, one, zero,
        [&](OpBuilder &nested, Location loc, Value other, ValueRange rank) {
          IndexMath inner(nested, loc);
          SmallVector<Value> place(item);
          place[tileAt] = other;
          Value length = read(inner, lengths, place);
          OpFoldResult isBefore =
              inner.logicalOr(inner.less(own, length),
                              inner.logicalAnd(inner.equal(own, length),
                                               inner.less(other, tile)));
          OpFoldResult next =
              inner.add(rank[0], inner.select(isBefore, inner.constant(1),
                                              inner.constant(0)));
          scf::YieldOp::create(nested, loc, inner.materialize(next));
        });
    return std::pair(OpFoldResult(tile), OpFoldResult(before.getResult(0)));
  });

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
}

namespace {
struct OrderTiles : fovea::attn::impl::AttnOrderTilesBase<OrderTiles> {
  using AttnOrderTilesBase::AttnOrderTilesBase;

  void runOnOperation() override {
    SmallVector<std::pair<scf::ForallOp, scf::ForOp>> loops;
    getOperation()->walk([&](scf::ForallOp items) {
      for (auto keys : items.getBody()->getOps<scf::ForOp>()) {
        auto walked = keys->walk([](OnlineAttentionOp pass) {
          ScheduleAttr schedule = pass.getScheduleAttr();
          bool isDealt = schedule &&
                         schedule.getOrder() == WorkOrder::LongestFirst &&
                         schedule.getBlocks() == Blocks::Persistent;
          return isDealt ? WalkResult::interrupt() : WalkResult::advance();
        });
        if (!walked.wasInterrupted())
          continue;
        loops.emplace_back(items, keys);
        break;
      }
    });
    IRRewriter rewriter(&getContext());
    for (auto [items, keys] : loops) {
      OrderedLoop loop(items, keys);
      if (std::optional<StringRef> reason = loop.analyze()) {
        LDBG() << "parallel loop at " << items.getLoc() << " stays: it "
               << *reason;
        continue;
      }
      loop.rewrite(rewriter);
      ++numOrdered;
    }
  }
};
} // namespace
