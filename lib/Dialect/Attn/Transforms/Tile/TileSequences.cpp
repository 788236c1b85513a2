//===- TileSequences.cpp - Tiles of queries of one sequence ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileSequences.h"

#include "TileByMask.h"

#include "fovea/Analysis/TableLoops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
/// The loops in front of one attention.
class SequenceFinder {
public:
  SequenceFinder(RewriterBase &rewriter, OnlineAttentionOp pass, int64_t tile,
                 int64_t keyTile)
      : rewriter(rewriter), loc(pass.getLoc()), mask(pass.getMask()),
        tile(tile), keyTile(keyTile) {
    rewriter.setInsertionPoint(pass);
    sizes = getScoreSizes(rewriter, pass);
    IndexMath math(rewriter, loc);
    rows = sizes[static_cast<unsigned>(Coordinate::Row)];
    // One without a row, where there is none, so that tables have elements.
    blocks =
        math.max(math.ceilDiv(rows, math.constant(tile)), math.constant(1));
  }

  RowTiles run();

private:
  using EmitFn =
      llvm::function_ref<SmallVector<OpFoldResult>(IndexMath &, Value number)>;
  SmallVector<Value> fill(OpFoldResult size, ArrayRef<Type> types, EmitFn emit);
  OpFoldResult
  reduceMax(IndexMath &math, OpFoldResult lower, OpFoldResult upper,
            OpFoldResult init,
            llvm::function_ref<OpFoldResult(IndexMath &, Value)> getTerm);
  Span getKeys(IndexMath &math, OpFoldResult row);
  OpFoldResult isBegin(IndexMath &math, OpFoldResult row);
  Span getTile(IndexMath &math, Value begins, Value number);

  RewriterBase &rewriter;
  Location loc;
  Region &mask;
  int64_t tile, keyTile;
  SmallVector<OpFoldResult> sizes;
  OpFoldResult rows, blocks;
};
} // namespace

/// Returns `value`, which is small, as an index or as an i32, by its sign.
static Value convert(OpBuilder &builder, Location loc, Value value, Type type) {
  return builder.createOrFold<arith::IndexCastOp>(loc, type, value);
}

static OpFoldResult read(IndexMath &math, Value table, OpFoldResult place) {
  OpBuilder &builder = math.getBuilder();
  Value number = tensor::ExtractOp::create(builder, math.getLoc(), table,
                                           math.materialize(place));
  return convert(builder, math.getLoc(), number, builder.getIndexType());
}

/// Emits a parallel loop that fills tensors of `size` numbers, with what `emit`
/// returns for each place.
SmallVector<Value> SequenceFinder::fill(OpFoldResult size, ArrayRef<Type> types,
                                        EmitFn emit) {
  return fillTables(
      rewriter, loc, size, types,
      [&](OpBuilder &nested, ValueRange item, SmallVectorImpl<OpFoldResult> &) {
        IndexMath math(nested, loc);
        SmallVector<Value> numbers;
        for (OpFoldResult number : emit(math, item.front()))
          numbers.push_back(math.materialize(number));
        return numbers;
      });
}

/// Emits a loop that returns the largest of `init` and of the terms between two
/// places, which are rows or -1: in 32 bits, which a warp has an instruction
/// for.
OpFoldResult SequenceFinder::reduceMax(
    IndexMath &math, OpFoldResult lower, OpFoldResult upper, OpFoldResult init,
    llvm::function_ref<OpFoldResult(IndexMath &, Value)> getTerm) {
  OpBuilder &builder = math.getBuilder();
  Type narrow = builder.getI32Type();
  auto body = [&](OpBuilder &nested, Location loc, Value place,
                  ValueRange largest) {
    IndexMath inner(nested, loc);
    Value term =
        convert(nested, loc, inner.materialize(getTerm(inner, place)), narrow);
    Value next = arith::MaxSIOp::create(nested, loc, largest[0], term);
    scf::YieldOp::create(nested, loc, next);
  };
  Value first = convert(builder, loc, math.materialize(init), narrow);
  auto loop = scf::ForOp::create(
      builder, loc, math.materialize(lower), math.materialize(upper),
      math.materialize(math.constant(1)), first, body);
  return convert(builder, loc, loop.getResult(0), builder.getIndexType());
}

/// Returns bounds of the keys that a row of any batch and head sees, the second
/// behind the last; it is not above the first if there are none.
Span SequenceFinder::getKeys(IndexMath &math, OpFoldResult row) {
  auto all = [&](Coordinate coordinate) -> Span {
    OpFoldResult size = sizes[static_cast<unsigned>(coordinate)];
    return {math.constant(0), math.sub(size, math.constant(1))};
  };
  MaskBox box = {all(Coordinate::Batch),
                 all(Coordinate::Head),
                 {row, row},
                 all(Coordinate::Key)};
  MaskEvaluator evaluator(mask, box, math.getBuilder(), loc);
  Value at = math.materialize(row);
  evaluator.setLookup([&](Value value, IndexMath &inner) {
    IRMapping computed;
    Value x = computeAt(
        inner.getBuilder(), mask, value, [&](Coordinate) { return at; },
        computed);
    if (!x.getType().isIndex() && !x.getType().isInteger(1))
      x = arith::IndexCastOp::create(inner.getBuilder(), loc,
                                     inner.getBuilder().getIndexType(), x);
    return std::optional<Span>(Span{x, x});
  });
  MaskBounds bounds = evaluator.bounds(Coordinate::Key);
  return {bounds.lower, bounds.upper};
}

/// Returns true if a row sees keys, and the one in front of it none of them.
OpFoldResult SequenceFinder::isBegin(IndexMath &math, OpFoldResult row) {
  OpFoldResult before =
      math.max(math.sub(row, math.constant(1)), math.constant(0));
  Span own = getKeys(math, row), other = getKeys(math, before);
  OpFoldResult isApart = math.logicalOr(math.lessEqual(other.last, own.first),
                                        math.lessEqual(own.last, other.first));
  // What sees no key is apart from all.
  isApart = math.logicalOr(isApart, math.lessEqual(other.last, other.first));
  return math.logicalAnd(isApart, math.less(own.first, own.last));
}

/// Returns the first row of a tile, and the one behind its last.
Span SequenceFinder::getTile(IndexMath &math, Value begins, Value number) {
  OpFoldResult none = math.constant(-1), size = math.constant(tile),
               one = math.constant(1), two = math.constant(2);
  OpFoldResult block = math.truncDiv(number, two);
  OpFoldResult isSecond =
      math.equal(math.sub(number, math.mul(block, two)), one);
  OpFoldResult own = read(math, begins, block), next = math.add(block, one);
  OpFoldResult hasNext = math.less(next, blocks);
  OpFoldResult inNext = math.select(
      hasNext, read(math, begins, math.min(next, math.sub(blocks, one))), none);
  // The first row of all begins a sequence.
  OpFoldResult start = reduceMax(
      math, math.constant(0), block, math.constant(0),
      [&](IndexMath &inner, Value at) { return read(inner, begins, at); });
  OpFoldResult inTile =
      math.sub(start, math.mul(math.truncDiv(start, size), size));
  OpFoldResult isOwn = math.less(none, own);
  OpFoldResult first =
      math.select(isSecond, own, math.add(math.mul(block, size), inTile));
  auto limit = [&](OpFoldResult end, OpFoldResult begin) {
    return math.select(math.less(none, begin), math.min(end, begin), end);
  };
  OpFoldResult end = limit(math.min(math.add(first, size), rows), inNext);
  end = math.select(isSecond, end, limit(end, own));
  // An empty tile lies within the rows, too.
  OpFoldResult isTile = math.logicalAnd(
      math.less(first, end), math.logicalOr(isOwn, math.logicalNot(isSecond)));
  first = math.max(math.min(first, math.sub(rows, one)), math.constant(0));
  return {first, math.select(isTile, end, first)};
}

RowTiles SequenceFinder::run() {
  // Rows fit in 32 bits, and a kernel knows that numbers of these without a
  // sign are small.
  Type narrow = rewriter.getI32Type();
  // The last row of each block that begins a sequence, or -1.
  Value begins =
      fill(blocks, narrow, [&](IndexMath &math, Value block) {
        OpFoldResult none = math.constant(-1), zero = math.constant(0);
        OpFoldResult first = math.mul(block, math.constant(tile)),
                     last = math.max(math.sub(rows, math.constant(1)), zero);
        // As many steps whatever there is; without a row nothing is read.
        OpFoldResult steps =
            math.select(math.less(zero, rows), math.constant(tile), zero);
        auto getTerm = [&](IndexMath &inner, Value offset) {
          OpFoldResult row = inner.min(inner.add(first, offset), last);
          return inner.select(isBegin(inner, row), row, none);
        };
        return SmallVector<OpFoldResult>{
            reduceMax(math, zero, steps, none, getTerm)};
      }).front();
  IndexMath math(rewriter, loc);
  RowTiles tiles;
  tiles.rows = rows;
  tiles.count = math.mul(blocks, math.constant(2));
  // The rows that a group of warps owns, if groups can end a step apart.
  constexpr int64_t kRowsOfPart = 64;
  bool hasParts = tile % kRowsOfPart == 0 && keyTile <= tile - kRowsOfPart;
  tiles.parts = hasParts ? tile / kRowsOfPart : 1;
  tiles.rowsOfPart = tile / tiles.parts;
  SmallVector<Value> tables =
      fill(tiles.count, {narrow, narrow}, [&](IndexMath &inner, Value number) {
        Span rows = getTile(inner, begins, number);
        return SmallVector<OpFoldResult>{rows.first, rows.last};
      });
  tiles.firsts = tables[0];
  tiles.ends = tables[1];
  return tiles;
}

RowTiles fovea::attn::findSequenceTiles(RewriterBase &rewriter,
                                        OnlineAttentionOp pass,
                                        int64_t queryTile, int64_t keyTile) {
  return SequenceFinder(rewriter, pass, queryTile, keyTile).run();
}
