//===- TileBackward.cpp - attn-tile-backward ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileCaptures.h"
#include "TileKeys.h"

#include "fovea/Analysis/MaskAnalysis.h"
#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/Differentiate/ScalarTape.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#define DEBUG_TYPE "attn-tile-backward"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNTILEBACKWARD
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

/// The number of work items for each core; some take longer than others.
static constexpr int64_t kItemsPerCore = 2;

/// Builds the derivative of a score region by its score, as a region with the
/// same arguments. Fails with an error where an op has no derivative.
static LogicalResult buildDerivative(Region &score, Region &derivative,
                                     Location loc) {
  Block &body = score.front();
  OpBuilder builder(score.getContext());
  Block *block = builder.createBlock(
      &derivative, derivative.end(), body.getArgumentTypes(),
      SmallVector<Location>(body.getNumArguments(), loc));
  IRMapping mapping;
  mapping.map(body.getArguments(), block->getArguments());
  ScalarTape tape(builder, loc);
  Value result = tape.replay(
      body, cast<YieldOp>(body.getTerminator()).getValue(), mapping);
  Value variable = block->getArgument(0);
  tape.addVariable(variable);
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(variable.getType(), value));
  };
  if (failed(tape.pull(result, number(1.0))))
    return failure();
  Value gradient = tape.getGradient(variable);
  YieldOp::create(builder, loc, gradient ? gradient : number(0.0));
  return success();
}

namespace {
/// Tiles one op: a parallel loop over batches, heads of keys and, where those
/// are few, shares of the queries; in it, one after another, the query heads of
/// the group, tiles of queries, and tiles of keys.
class Tiling {
public:
  struct Sizes {
    int64_t queryTile, keyTile;
    int64_t lanes; ///< Lanes of the vectors of packed queries.
    int64_t items; ///< The wanted number of work items.
  };

  Tiling(RewriterBase &rewriter, AttentionBackwardOp op, const Sizes &sizes,
         ArrayRef<TiledCapture> captures);

  LogicalResult run();

private:
  Value value(OpFoldResult index) {
    return getValueOrCreateConstantIndexOp(rewriter, loc, index);
  }
  IndexMath math() { return IndexMath(rewriter, loc); }
  OpFoldResult findGroup();
  OpFoldResult countShares();

  /// The levels that divide the work into items: a share, a batch, a head of
  /// keys.
  enum Level { Share, Batch, Head };

  /// Sums of one gradient.
  struct Sum {
    SmallVector<OpFoldResult> shape;
    FloatType type;
    /// The levels at which each work item has its own sums, since several items
    /// add to one element.
    SmallVector<Level> apart;
  };
  void addSums();

  /// The start of a work item, and its sizes.
  struct Item {
    OpFoldResult firstBatch, batches, firstHead, heads, firstRow, rows;
    OpFoldResult endRow;
    OpFoldResult index[3]; ///< Indices by level.
  };
  Item getItem(ValueRange ivs);
  /// The part of one sum that belongs to a work item.
  struct Part {
    SmallVector<OpFoldResult> offsets, sizes;
  };
  SmallVector<Part> getParts(const Item &item);
  Value addApart(Value parts, const Sum &sum);
  FailureOr<SmallVector<Value>> tileItem(const Item &item, ValueRange running);

  Value slice(Value tensor, ArrayRef<OpFoldResult> offsets,
              ArrayRef<OpFoldResult> sizes, size_t rank);
  Value slice(Value tensor, ArrayRef<OpFoldResult> offsets,
              ArrayRef<OpFoldResult> sizes) {
    return slice(tensor, offsets, sizes, sizes.size());
  }
  Value insert(Value part, Value tensor, ArrayRef<OpFoldResult> offsets);
  Value fillZeros(Value tensor);
  Value accumulate(Value part, Value sum);
  using Body = llvm::function_ref<SmallVector<Value>(Value, ValueRange)>;
  SmallVector<Value> loop(OpFoldResult lower, OpFoldResult upper, int64_t step,
                          ValueRange inits, Body body);
  SmallVector<Value> branch(Value condition, ValueRange otherwise,
                            llvm::function_ref<SmallVector<Value>()> emit);

  /// The values that all tiles of keys read of a tile of queries.
  struct Rows {
    Value batch, kvHead;
    SmallVector<OpFoldResult> at; ///< Coordinates in the whole; the key is 0.
    /// The position of the batch, head of keys, query head and row in the work
    /// item's sums.
    OpFoldResult batchPlace, headPlace, queryHeadPlace, rowPlace;
    OpFoldResult count;
    Value query, gradient, packedQuery, packedGradient, lse, delta;
  };
  SmallVector<Value> tileRows(const Item &item, Value batch, Value kvHead,
                              Value member, Value row, ValueRange sums);
  int64_t getColumns();
  int64_t getGroupColumns();
  Value pack(Value rows, OpFoldResult count, double factor);
  SmallVector<Value> emitTile(const Rows &rows, Value key, OpFoldResult keys,
                              const Truth &truth, ValueRange sums);
  void emitCaptures(const Rows &rows, Value key, OpFoldResult keys,
                    ValueRange at, Value scores, Value gradients,
                    MutableArrayRef<Value> sums);

  RewriterBase &rewriter;
  AttentionBackwardOp op;
  Location loc;
  Sizes sizes;
  ArrayRef<TiledCapture> captures;
  FloatType type;
  Region derivative;
  SmallVector<OpFoldResult> querySizes, keySizes, valueSizes;
  OpFoldResult one, zero, group, shares;
  /// The levels that divide the work into items.
  SmallVector<Level> levels;
  /// The sums for queries, keys, values and captures.
  SmallVector<Sum> sums;
  bool hasFailed = false;
};
} // namespace

Tiling::Tiling(RewriterBase &rewriter, AttentionBackwardOp op,
               const Sizes &sizes, ArrayRef<TiledCapture> captures)
    : rewriter(rewriter), op(op), loc(op.getLoc()), sizes(sizes),
      captures(captures), type(op.getAccumulationType()) {}

//===----------------------------------------------------------------------===//
// Work items
//===----------------------------------------------------------------------===//

/// Returns the number of query heads that share one head of keys.
OpFoldResult Tiling::findGroup() {
  auto heads = getConstantIntValue(querySizes[1]);
  auto kvHeads = getConstantIntValue(keySizes[1]);
  if (heads && kvHeads)
    return rewriter.getIndexAttr(*kvHeads ? *heads / *kvHeads : 1);
  Value divisor =
      arith::MaxSIOp::create(rewriter, loc, value(keySizes[1]), value(one));
  return arith::DivUIOp::create(rewriter, loc, value(querySizes[1]), divisor)
      .getResult();
}

/// Returns the number of shares into which the queries of a head are cut, so
/// that there are enough work items; at most the number of tiles.
OpFoldResult Tiling::countShares() {
  if (sizes.items == 1)
    return one;
  IndexMath m = math();
  OpFoldResult items = one;
  for (Level level : levels)
    items = m.mul(items, level == Batch ? querySizes[0] : keySizes[1]);
  OpFoldResult wanted = m.ceilDiv(m.constant(sizes.items), m.max(items, one));
  if (getConstantIntValue(wanted) == 1)
    return one;
  OpFoldResult tiles = m.ceilDiv(querySizes[2], m.constant(sizes.queryTile));
  return m.max(m.min(wanted, tiles), one);
}

/// Finds the levels of work items, and the sums that each item has apart.
void Tiling::addSums() {
  // A tensor as large as the scores of a head exists only once: work items that
  // would add to the same element become one.
  auto isSplit = [&](Axis axis) {
    return llvm::all_of(captures, [&](const TiledCapture &capture) {
      return !capture.isLarge() || capture.has(axis);
    });
  };
  if (isSplit(Axis::Batch))
    levels.push_back(Batch);
  if (isSplit(Axis::Head))
    levels.push_back(Head);
  shares = countShares();
  if (getConstantIntValue(shares) != 1)
    levels.insert(levels.begin(), Share);

  auto withShares = [&](bool add) {
    return add && llvm::is_contained(levels, Share) ? SmallVector<Level>{Share}
                                                    : SmallVector<Level>{};
  };
  sums = {{querySizes, type, {}},
          {keySizes, type, withShares(true)},
          {valueSizes, type, withShares(true)}};
  for (const TiledCapture &capture : captures) {
    Sum sum = {tensor::getMixedSizes(rewriter, loc, capture.tensor),
               capture.sumType,
               {}};
    for (Level level : levels)
      if (!capture.has(level == Share   ? Axis::Row
                       : level == Batch ? Axis::Batch
                                        : Axis::Head))
        sum.apart.push_back(level);
    sums.push_back(std::move(sum));
  }
}

Tiling::Item Tiling::getItem(ValueRange ivs) {
  IndexMath m = math();
  Item item = {zero, querySizes[0], zero,          keySizes[1],
               zero, querySizes[2], querySizes[2], {}};
  for (auto [level, iv] : llvm::zip_equal(levels, ivs))
    item.index[level] = iv;
  if (llvm::is_contained(levels, Batch)) {
    item.firstBatch = item.index[Batch];
    item.batches = one;
  }
  if (llvm::is_contained(levels, Head)) {
    item.firstHead = item.index[Head];
    item.heads = one;
  }
  if (llvm::is_contained(levels, Share)) {
    // The last queries first: a causal mask leaves them the most keys.
    OpFoldResult tile = m.constant(sizes.queryTile);
    OpFoldResult rows =
        m.mul(m.ceilDiv(m.ceilDiv(querySizes[2], tile), shares), tile);
    OpFoldResult place = m.sub(m.sub(shares, one), item.index[Share]);
    item.firstRow = m.min(m.mul(place, rows), querySizes[2]);
    item.endRow = m.min(m.add(item.firstRow, rows), querySizes[2]);
    item.rows = m.sub(item.endRow, item.firstRow);
  }
  return item;
}

SmallVector<Tiling::Part> Tiling::getParts(const Item &item) {
  IndexMath m = math();
  OpFoldResult firstQueryHead = m.mul(item.firstHead, group);
  OpFoldResult queryHeads = m.mul(item.heads, group);
  SmallVector<Part> parts = {
      {{item.firstBatch, firstQueryHead, item.firstRow, zero},
       {item.batches, queryHeads, item.rows, querySizes[3]}},
      {{item.firstBatch, item.firstHead, zero, zero},
       {item.batches, item.heads, keySizes[2], keySizes[3]}},
      {{item.firstBatch, item.firstHead, zero, zero},
       {item.batches, item.heads, valueSizes[2], valueSizes[3]}}};
  for (auto [capture, sum] :
       llvm::zip_equal(captures, ArrayRef(sums).drop_front(3))) {
    Part part = {SmallVector<OpFoldResult>(sum.shape.size(), zero), sum.shape};
    for (auto [dim, axis] : llvm::enumerate(capture.axes)) {
      if (axis == Axis::Key || !axis)
        continue;
      part.offsets[dim] = *axis == Axis::Batch  ? item.firstBatch
                          : *axis == Axis::Head ? firstQueryHead
                                                : item.firstRow;
      part.sizes[dim] = *axis == Axis::Batch  ? item.batches
                        : *axis == Axis::Head ? queryHeads
                                              : item.rows;
    }
    parts.push_back(std::move(part));
  }
  for (auto [part, sum] : llvm::zip_equal(parts, sums))
    for (Level level : llvm::reverse(sum.apart)) {
      part.offsets.insert(part.offsets.begin(), item.index[level]);
      part.sizes.insert(part.sizes.begin(), one);
    }
  return parts;
}

LogicalResult Tiling::run() {
  rewriter.setInsertionPoint(op);
  if (!op.getScore().empty() &&
      failed(buildDerivative(op.getScore(), derivative, loc)))
    return failure();
  querySizes = tensor::getMixedSizes(rewriter, loc, op.getQuery());
  keySizes = tensor::getMixedSizes(rewriter, loc, op.getKey());
  valueSizes = tensor::getMixedSizes(rewriter, loc, op.getValue());
  one = rewriter.getIndexAttr(1);
  zero = rewriter.getIndexAttr(0);
  group = findGroup();
  addSums();

  OpFoldResult levelSizes[] = {shares, querySizes[0], keySizes[1]};
  SmallVector<Value> outs;
  for (const Sum &sum : sums) {
    SmallVector<OpFoldResult> shape;
    for (Level level : sum.apart)
      shape.push_back(levelSizes[level]);
    llvm::append_range(shape, sum.shape);
    outs.push_back(tensor::EmptyOp::create(rewriter, loc, shape, sum.type));
  }
  SmallVector<OpFoldResult> items;
  for (Level level : levels)
    items.push_back(levelSizes[level]);
  // Without a level there is one work item.
  if (items.empty())
    items.push_back(one);
  auto forall = scf::ForallOp::create(rewriter, loc, items, outs,
                                      /*mapping=*/std::nullopt);
  rewriter.setInsertionPoint(forall.getTerminator());
  Item item =
      getItem(ValueRange(forall.getInductionVars()).take_front(levels.size()));
  SmallVector<Part> parts = getParts(item);
  SmallVector<Value> running;
  for (auto [out, part, sum] :
       llvm::zip_equal(forall.getRegionIterArgs(), parts, sums))
    running.push_back(
        fillZeros(slice(out, part.offsets, part.sizes, sum.shape.size())));
  FailureOr<SmallVector<Value>> tiled = tileItem(item, running);
  if (failed(tiled))
    return failure();
  rewriter.setInsertionPointToStart(forall.getTerminator().getBody());
  for (auto [value, out, part] :
       llvm::zip_equal(*tiled, forall.getRegionIterArgs(), parts))
    tensor::ParallelInsertSliceOp::create(
        rewriter, loc, value, out, part.offsets, part.sizes,
        SmallVector<OpFoldResult>(part.offsets.size(), one));
  rewriter.setInsertionPointAfter(forall);
  SmallVector<Value> results;
  for (auto [result, sum, wanted] :
       llvm::zip_equal(forall.getResults(), sums, op.getResults()))
    results.push_back(
        castTensor(rewriter, loc, addApart(result, sum), wanted.getType()));
  rewriter.replaceOp(op, results);
  return success();
}

/// Emits all tiles of one work item.
FailureOr<SmallVector<Value>> Tiling::tileItem(const Item &item,
                                               ValueRange running) {
  // Emits a loop where the work item has several.
  auto forLevel = [&](Level level, OpFoldResult count, ValueRange sums,
                      Body body) {
    if (llvm::is_contained(levels, level))
      return body(value(item.index[level]), sums);
    return loop(zero, count, 1, sums, body);
  };
  SmallVector<Value> results =
      forLevel(Batch, item.batches, running, [&](Value batch, ValueRange sums) {
        return forLevel(
            Head, item.heads, sums, [&](Value head, ValueRange sums) {
              return loop(
                  zero, group, 1, sums, [&](Value member, ValueRange sums) {
                    return loop(item.firstRow, item.endRow, sizes.queryTile,
                                sums, [&](Value row, ValueRange sums) {
                                  return tileRows(item, batch, head, member,
                                                  row, sums);
                                });
                  });
            });
      });
  if (hasFailed)
    return failure();
  return results;
}

/// Returns the sum of the parts that work items have apart, in the order of the
/// items.
Value Tiling::addApart(Value parts, const Sum &sum) {
  if (sum.apart.empty())
    return parts;
  OpFoldResult levelSizes[] = {shares, querySizes[0], keySizes[1]};
  IndexMath outer = math();
  OpFoldResult count = one;
  for (Level level : sum.apart)
    count = outer.mul(count, levelSizes[level]);
  size_t rank = sum.shape.size();
  // Without batches there may be no part at all.
  Value zeros =
      fillZeros(tensor::EmptyOp::create(rewriter, loc, sum.shape, sum.type));
  return loop(zero, count, 1, zeros,
              [&](Value number, ValueRange sums) -> SmallVector<Value> {
                IndexMath m = math();
                SmallVector<OpFoldResult> offsets(rank, zero), shape(sum.shape);
                OpFoldResult rest = number;
                for (Level level : llvm::reverse(sum.apart)) {
                  OpFoldResult index = rest;
                  if (level != sum.apart.front()) {
                    rest = m.floorDiv(rest, levelSizes[level]);
                    index = m.sub(index, m.mul(rest, levelSizes[level]));
                  }
                  offsets.insert(offsets.begin(), index);
                  shape.insert(shape.begin(), one);
                }
                Value part = slice(parts, offsets, shape, rank);
                return {accumulate(part, sums.front())};
              })
      .front();
}

//===----------------------------------------------------------------------===//
// Tensors and loops
//===----------------------------------------------------------------------===//

/// Returns a part of a tensor; drops leading dimensions, so that `rank` are
/// left.
Value Tiling::slice(Value tensor, ArrayRef<OpFoldResult> offsets,
                    ArrayRef<OpFoldResult> sizes, size_t rank) {
  SmallVector<OpFoldResult> strides(offsets.size(), one);
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes.take_back(rank))
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto partType = cast<RankedTensorType>(tensor.getType()).clone(shape);
  return tensor::ExtractSliceOp::create(rewriter, loc, partType, tensor,
                                        offsets, sizes, strides);
}

Value Tiling::insert(Value part, Value tensor, ArrayRef<OpFoldResult> offsets) {
  SmallVector<OpFoldResult> strides(offsets.size(), one);
  return tensor::InsertSliceOp::create(
      rewriter, loc, part, tensor, offsets,
      tensor::getMixedSizes(rewriter, loc, part), strides);
}

Value Tiling::fillZeros(Value tensor) {
  auto element = cast<FloatType>(getElementTypeOrSelf(tensor));
  Value number = arith::ConstantOp::create(rewriter, loc,
                                           rewriter.getFloatAttr(element, 0.0));
  return linalg::FillOp::create(rewriter, loc, number, tensor).getResult(0);
}

/// Returns `sum` with `part` added at its position.
Value Tiling::accumulate(Value part, Value sum) {
  unsigned rank = cast<RankedTensorType>(sum.getType()).getRank();
  AffineMap identity = mapAll(rewriter, rank);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto add = [](OpBuilder &b, Location l, ValueRange in) {
    Value added = arith::AddFOp::create(b, l, in[1], in[0]);
    linalg::YieldOp::create(b, l, added);
  };
  return linalg::GenericOp::create(rewriter, loc, sum.getType(), part, sum,
                                   ArrayRef<AffineMap>{identity, identity},
                                   iterators, add)
      .getResult(0);
}

/// Emits a loop whose body makes new running values.
SmallVector<Value> Tiling::loop(OpFoldResult lower, OpFoldResult upper,
                                int64_t step, ValueRange inits, Body body) {
  auto loop = scf::ForOp::create(rewriter, loc, value(lower), value(upper),
                                 value(rewriter.getIndexAttr(step)), inits);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> results =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(rewriter, loc, results);
  return SmallVector<Value>(loop.getResults());
}

/// Returns the values that `emit` makes if `condition` holds, else `otherwise`.
SmallVector<Value>
Tiling::branch(Value condition, ValueRange otherwise,
               llvm::function_ref<SmallVector<Value>()> emit) {
  auto branch = scf::IfOp::create(rewriter, loc, otherwise.getTypes(),
                                  condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> results = emit();
  scf::YieldOp::create(rewriter, loc, results);
  rewriter.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(rewriter, loc, otherwise);
  return SmallVector<Value>(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Returns the number of columns of packed queries. A tile that covers few
/// queries needs no more.
int64_t Tiling::getColumns() {
  int64_t columns = sizes.queryTile;
  if (std::optional<int64_t> known = getConstantIntValue(querySizes[2]))
    columns = std::min(columns, std::max<int64_t>(*known, 1));
  return llvm::alignTo(columns, sizes.lanes);
}

/// Returns the number of columns of a group of packed queries. The vectors of a
/// group share the numbers by which they are multiplied; three vectors are
/// best, if they divide all columns.
int64_t Tiling::getGroupColumns() {
  int64_t vectors = getColumns() / sizes.lanes;
  for (int64_t candidate : {3, 4, 2})
    if (vectors % candidate == 0)
      return candidate * sizes.lanes;
  return sizes.lanes;
}

/// Packs `count` rows `[1, 1, n, D]`, one in a lane, group by group.
Value Tiling::pack(Value rows, OpFoldResult count, double factor) {
  int64_t columns = getGroupColumns();
  OpFoldResult groups = rewriter.getIndexAttr(getColumns() / columns);
  OpFoldResult width = rewriter.getIndexAttr(columns);
  OpFoldResult features = tensor::getMixedSize(rewriter, loc, rows, 3);
  Value empty = tensor::EmptyOp::create(
      rewriter, loc, ArrayRef<OpFoldResult>{one, groups, features, width},
      type);
  auto packGroup = [&](Value group, ValueRange packed) -> SmallVector<Value> {
    IndexMath m = math();
    OpFoldResult first = m.mul(group, width);
    Value part = slice(rows, {zero, zero, first, zero},
                       {one, one, m.min(m.sub(count, first), width), features});
    SmallVector<OpFoldResult> place = {zero, group, zero, zero};
    Value target = slice(packed.front(), place, {one, one, features, width});
    Value result = PackQueryOp::create(rewriter, loc, target.getType(), part,
                                       target, rewriter.getF64FloatAttr(factor))
                       .getResult(0);
    return {insert(result, packed.front(), place)};
  };
  return loop(zero, math().ceilDiv(count, width), 1, empty, packGroup).front();
}

/// Emits one tile of queries.
SmallVector<Value> Tiling::tileRows(const Item &item, Value batch, Value kvHead,
                                    Value member, Value row, ValueRange sums) {
  IndexMath m = math();
  Rows rows;
  rows.batch = batch;
  rows.kvHead = kvHead;
  rows.count = clipTile(rewriter, loc, row, sizes.queryTile,
                        /*first=*/std::nullopt, item.endRow)
                   .size;
  rows.at = {batch, m.add(m.mul(kvHead, group), member), row, zero};
  rows.batchPlace =
      llvm::is_contained(levels, Batch) ? zero : OpFoldResult(batch);
  bool isHead = llvm::is_contained(levels, Head);
  rows.headPlace = isHead ? zero : OpFoldResult(kvHead);
  rows.queryHeadPlace = isHead ? OpFoldResult(member) : rows.at[1];
  rows.rowPlace = m.sub(row, item.firstRow);
  OpFoldResult count = rows.count;
  ArrayRef<OpFoldResult> rowAt = ArrayRef(rows.at).drop_back();
  rows.query = slice(op.getQuery(), rows.at, {one, one, count, querySizes[3]});
  rows.gradient =
      slice(op.getGradient(), rows.at, {one, one, count, valueSizes[3]});
  rows.lse = slice(op.getLse(), rowAt, {one, one, count});
  rows.delta = slice(op.getDelta(), rowAt, {one, one, count});
  double factor = op.getScale().convertToDouble();
  if (op.getScore().empty())
    factor *= 1.4426950408889634;
  rows.packedQuery = pack(rows.query, count, factor);
  rows.packedGradient = pack(rows.gradient, count, 1.0);
  // Widened once, and not with every tile of keys.
  for (Value *operand : {&rows.query, &rows.gradient})
    *operand =
        castTensor(rewriter, loc, *operand,
                   cast<RankedTensorType>(operand->getType()).clone(type));
  SmallVector<OpFoldResult> place = {rows.batchPlace, rows.queryHeadPlace,
                                     rows.rowPlace, zero};
  SmallVector<Value> inits(sums);
  inits[0] = slice(sums[0], place, {one, one, count, querySizes[3]});

  // Keys that the mask keeps for these rows.
  OpFoldResult lower = zero, upper = keySizes[2];
  std::unique_ptr<MaskEvaluator> evaluator;
  bool isExact = true;
  std::optional<OpFoldResult> present;
  if (!op.getMask().empty()) {
    auto point = [](OpFoldResult index) { return Span{index, index}; };
    MaskBox box = {point(batch),
                   point(rows.at[1]),
                   {row, m.sub(m.add(row, count), one)},
                   {zero, m.sub(keySizes[2], one)}};
    evaluator =
        std::make_unique<MaskEvaluator>(op.getMask(), box, rewriter, loc);
    MaskBounds bounds = evaluator->bounds(Coordinate::Key);
    isExact = bounds.exact;
    OpFoldResult step = m.constant(sizes.keyTile);
    lower = m.mul(m.floorDiv(bounds.lower, step), step);
    upper = bounds.upper;
    // Absent keys before the first one are not read either.
    present = evaluator->presentKeys().first;
  }

  SmallVector<Value> results = loop(
      lower, upper, sizes.keyTile, inits, [&](Value place, ValueRange sums) {
        auto [offset, keys] =
            clipTile(rewriter, loc, place, sizes.keyTile, present, upper);
        Value key = value(offset);
        IndexMath m = math();
        Truth truth = {m.boolean(true), m.boolean(true)};
        if (evaluator) {
          Span span = {key, m.sub(m.add(key, keys), one)};
          truth = MaskEvaluator(*evaluator, span, rewriter).evaluate();
          if (isExact)
            truth.any = m.boolean(true);
        }
        auto emit = [&, keys = keys] {
          return emitTile(rows, key, keys, truth, sums);
        };
        if (IndexMath::isTrue(truth.any))
          return emit();
        return branch(m.materialize(truth.any, true), sums, emit);
      });
  results[0] = insert(results[0], sums[0], place);
  return results;
}

/// Emits one tile of scores and adds it to the running gradients.
SmallVector<Value> Tiling::emitTile(const Rows &rows, Value key,
                                    OpFoldResult keys, const Truth &truth,
                                    ValueRange sums) {
  SmallVector<OpFoldResult> keyAt = {rows.batch, rows.kvHead, key, zero};
  SmallVector<OpFoldResult> place = {rows.batchPlace, rows.headPlace, key,
                                     zero};
  SmallVector<OpFoldResult> keyTile = {one, one, keys, keySizes[3]};
  SmallVector<OpFoldResult> valueTile = {one, one, keys, valueSizes[3]};
  Value keyRows = slice(op.getKey(), keyAt, keyTile);
  Value values = slice(op.getValue(), keyAt, valueTile);
  SmallVector<Value> outs = {sums[0], slice(sums[1], place, keyTile),
                             slice(sums[2], place, valueTile)};
  Value scores, scoreGradients;
  if (!captures.empty()) {
    SmallVector<OpFoldResult> blockSizes = {
        one, one, rewriter.getIndexAttr(sizes.keyTile),
        rewriter.getIndexAttr(getColumns())};
    SmallVector<OpFoldResult> origin(4, zero), used = blockSizes;
    used[2] = keys;
    for (Value *block : {&scores, &scoreGradients}) {
      *block = slice(tensor::EmptyOp::create(rewriter, loc, blockSizes, type),
                     origin, used);
      outs.push_back(*block);
    }
  }
  SmallVector<Value> at;
  for (OpFoldResult index : rows.at)
    at.push_back(value(index));
  at.back() = key;
  SmallVector<Value> whole = {value(querySizes[1]), value(querySizes[2])};
  bool isMasked = !IndexMath::isTrue(truth.all);
  Value partial;
  if (isMasked && !IndexMath::isFalse(truth.all)) {
    IndexMath m = math();
    partial = m.materialize(m.logicalNot(truth.all), true);
  }
  auto tile = OnlineBackwardOp::create(
      rewriter, loc, ValueRange(outs).getTypes(), rows.packedQuery,
      rows.packedGradient, rows.query, rows.gradient, keyRows, values, rows.lse,
      rows.delta, outs[0], outs[1], outs[2], scores, scoreGradients, at, whole,
      partial, op.getScaleAttr(), op.getDropoutAttr(), op.getSeed(),
      op.getOffset());
  auto clone = [&](Region &from, Region &to) {
    rewriter.cloneRegionBefore(from, to, to.end());
  };
  clone(op.getScore(), tile.getScore());
  clone(derivative, tile.getDerivative());
  if (isMasked)
    clone(op.getMask(), tile.getMask());
  SmallVector<Value> results(sums);
  results[0] = tile.getResult(0);
  results[1] = insert(tile.getResult(1), sums[1], place);
  results[2] = insert(tile.getResult(2), sums[2], place);
  if (!captures.empty())
    emitCaptures(rows, key, keys, at, tile.getResult(3), tile.getResult(4),
                 MutableArrayRef(results).drop_front(3));
  return results;
}

/// Adds the contributions of a tile's scores, `[1, 1, keys, columns]`, to the
/// gradients of captured tensors.
void Tiling::emitCaptures(const Rows &rows, Value key, OpFoldResult keys,
                          ValueRange at, Value scores, Value gradients,
                          MutableArrayRef<Value> sums) {
  SmallVector<OpFoldResult> origin(4, zero);
  auto transpose = [&](Value block) {
    Value used = slice(block, origin, {one, one, keys, rows.count});
    SmallVector<OpFoldResult> bound = {one, one,
                                       rewriter.getIndexAttr(sizes.queryTile),
                                       rewriter.getIndexAttr(sizes.keyTile)};
    Value empty = tensor::EmptyOp::create(rewriter, loc, bound, type);
    return linalg::TransposeOp::create(
               rewriter, loc, used,
               slice(empty, origin, {one, one, rows.count, keys}),
               ArrayRef<int64_t>{0, 1, 3, 2})
        ->getResult(0);
  };
  // Positions in the captured tensor, and in the work item's sum of its
  // gradient.
  SmallVector<SmallVector<OpFoldResult>> places;
  SmallVector<Value> slices;
  for (auto [capture, sum] :
       llvm::zip_equal(captures, ArrayRef(this->sums).drop_front(3))) {
    SmallVector<OpFoldResult> offsets(sum.shape.size(), zero), place = offsets,
                                                               size = sum.shape;
    for (auto [dim, axis] : llvm::enumerate(capture.axes)) {
      if (!axis)
        continue;
      offsets[dim] = at[unsigned(*axis)];
      size[dim] = one;
      switch (*axis) {
      case Axis::Batch:
        place[dim] = rows.batchPlace;
        break;
      case Axis::Head:
        place[dim] = rows.queryHeadPlace;
        break;
      case Axis::Row:
        place[dim] = rows.rowPlace;
        size[dim] = rows.count;
        break;
      case Axis::Key:
        place[dim] = key;
        size[dim] = keys;
        break;
      }
    }
    slices.push_back(slice(capture.tensor, offsets, size));
    places.push_back(std::move(place));
  }
  FailureOr<SmallVector<Value>> parts =
      buildCaptureGradients(rewriter, op, captures, slices, transpose(scores),
                            transpose(gradients), at);
  if (failed(parts)) {
    hasFailed = true;
    return;
  }
  for (auto [part, sum, place] : llvm::zip_equal(*parts, sums, places)) {
    if (!part)
      continue;
    Value old = slice(sum, place, tensor::getMixedSizes(rewriter, loc, part));
    sum = insert(accumulate(part, old), sum, place);
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct TileBackward final
    : fovea::attn::impl::AttnTileBackwardBase<TileBackward> {
  using AttnTileBackwardBase::AttnTileBackwardBase;
  void runOnOperation() override;
};
} // namespace

/// Returns the number of queries of a tile: the largest for which all data that
/// the tiles of keys read repeatedly fits into three quarters of a core's near
/// memory. Keys and their sums pass through the rest, once for each tile of
/// queries.
static int64_t chooseQueryTile(AttentionBackwardOp op, int64_t keyTile,
                               int64_t nearMemory) {
  constexpr int64_t kCandidates[] = {192, 96, 48};
  AttentionShape shape = AttentionShape::get(op);
  // Both operands, packed and unpacked; the gradient; two blocks of scores, and
  // four times the tile's own where captured tensors have gradients.
  int64_t scores = op.getCaptures().empty() ? keyTile / 2 : 5 * keyTile;
  int64_t bytes = shape.accumulationBytes *
                  (3 * shape.headDim + 2 * shape.valueDim + scores);
  for (int64_t candidate : kCandidates) {
    LDBG() << candidate << " queries: " << candidate * bytes
           << " bytes are read again and again, of a near memory of "
           << nearMemory;
    if (candidate * bytes <= nearMemory / 4 * 3)
      return candidate;
  }
  return kCandidates[2];
}

void TileBackward::runOnOperation() {
  if (queryTile < 0 || keyTile < 1) {
    getOperation()->emitError()
        << "attn-tile-backward: expects query-tile to be at least 0 and "
           "key-tile at least 1, but they are "
        << queryTile.getValue() << " and " << keyTile.getValue();
    return signalPassFailure();
  }
  SmallVector<AttentionBackwardOp> ops;
  getOperation()->walk([&](AttentionBackwardOp op) {
    if (op.getLse())
      ops.push_back(op);
  });
  int64_t vectorBytes = 64, items = 1, nearMemory = 1 << 20;
  if (machine::TargetAttr target = machine::getTarget(getOperation())) {
    vectorBytes = target.getVectorBytes();
    nearMemory = target.getNearMemory();
    items = target.getCores() > 1 ? kItemsPerCore * target.getCores() : 1;
  }
  IRRewriter rewriter(&getContext());
  for (AttentionBackwardOp op : ops) {
    std::optional<SmallVector<TiledCapture>> captures = findTiledCaptures(op);
    if (!captures) {
      std::string function;
      if (auto parent = op->getParentOfType<FunctionOpInterface>())
        function = parent.getName().str();
      remark::missed(op.getLoc(), remark::RemarkOpts::name("backward")
                                      .category(getArgument())
                                      .function(function))
          << "the backward pass is not tiled: a captured tensor with a "
             "gradient is read in a region within the score region";
      ++numUntiled;
      continue;
    }
    int64_t lanes = std::max<int64_t>(
        1, vectorBytes * 8 / op.getAccumulationType().getWidth());
    int64_t queries =
        queryTile ? queryTile : chooseQueryTile(op, keyTile, nearMemory);
    LDBG() << "the backward pass at " << op.getLoc() << ": tiles of " << queries
           << " queries and " << keyTile << " keys";
    if (failed(Tiling(rewriter, op, {queries, keyTile, lanes, items}, *captures)
                   .run()))
      return signalPassFailure();
    ++numTiled;
  }
}
