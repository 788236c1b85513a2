//===- TileBackward.cpp - attn-tile-backward ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Differentiate/LoopNest.h"
#include "Differentiate/ScalarTape.h"

#include "fovea/Analysis/MaskAnalysis.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNTILEBACKWARD
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

/// Work items for each core, of which some take longer than others.
static constexpr int64_t kItemsPerCore = 2;

/// The derivative of a score region by its score, as a region of the same
/// arguments. Fails with an error where an op has none.
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
  Value result =
      tape.replay(body, cast<YieldOp>(body.getTerminator()).getValue(), mapping,
                  [](Operation *) { return Value(); });
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
    int64_t lanes; ///< of the vectors that queries are packed for
    int64_t items; ///< work items that are wanted
  };

  Tiling(RewriterBase &rewriter, AttentionBackwardOp op, const Sizes &sizes);

  LogicalResult run();

private:
  Value value(OpFoldResult index) {
    return getValueOrCreateConstantIndexOp(rewriter, loc, index);
  }
  IndexMath math() { return IndexMath(rewriter, loc); }
  OpFoldResult findGroup();
  OpFoldResult countShares();

  Value slice(Value tensor, ArrayRef<OpFoldResult> offsets,
              ArrayRef<OpFoldResult> sizes);
  Value insert(Value part, Value tensor, ArrayRef<OpFoldResult> offsets);
  Value fillZeros(Value tensor);
  Value sumShares(Value parts, Value primal);
  SmallVector<Value>
  loop(OpFoldResult lower, OpFoldResult upper, int64_t step, ValueRange inits,
       llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body);
  SmallVector<Value> branch(Value condition, ValueRange otherwise,
                            llvm::function_ref<SmallVector<Value>()> emit);

  /// The place of a work item.
  struct Item {
    Value batch, head;
    OpFoldResult firstHead;        ///< of the group
    OpFoldResult firstRow, endRow; ///< its share of the queries
  };
  SmallVector<Value> tileItem(const Item &item, ValueRange sums);
  SmallVector<Value> tileRows(const Item &item, Value member, Value row,
                              ValueRange sums);
  /// What all tiles of keys read of a tile of queries.
  struct Rows {
    SmallVector<OpFoldResult> at;
    Value query, gradient, packedQuery, packedGradient, lse, delta;
  };
  Value pack(Value rows, double factor);
  SmallVector<Value> emitTile(const Item &item, const Rows &rows, Value key,
                              OpFoldResult keys, const Truth &truth,
                              ValueRange sums);

  RewriterBase &rewriter;
  AttentionBackwardOp op;
  Location loc;
  Sizes sizes;
  FloatType type;
  Region derivative;
  SmallVector<OpFoldResult> querySizes, keySizes, valueSizes;
  OpFoldResult one, zero, group, shares;
};
} // namespace

Tiling::Tiling(RewriterBase &rewriter, AttentionBackwardOp op,
               const Sizes &sizes)
    : rewriter(rewriter), op(op), loc(op.getLoc()), sizes(sizes),
      type(op.getAccumulationType()) {}

//===----------------------------------------------------------------------===//
// Work items
//===----------------------------------------------------------------------===//

/// Query heads of one head of keys.
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

/// Into how many shares the queries of a head are cut, so that there are enough
/// work items; at most into as many as there are tiles.
OpFoldResult Tiling::countShares() {
  if (sizes.items == 1)
    return one;
  IndexMath m = math();
  OpFoldResult heads = m.max(m.mul(querySizes[0], keySizes[1]), one);
  OpFoldResult tiles = m.ceilDiv(querySizes[2], m.constant(sizes.queryTile));
  OpFoldResult wanted = m.ceilDiv(m.constant(sizes.items), heads);
  return m.max(m.min(wanted, tiles), one);
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
  shares = countShares();
  bool isShared = getConstantIntValue(shares) != 1;

  // Each share has its own sums for keys and values.
  SmallVector<SmallVector<OpFoldResult>> shapes = {querySizes, keySizes,
                                                   valueSizes};
  if (isShared)
    for (unsigned number : {1u, 2u})
      shapes[number].insert(shapes[number].begin(), shares);
  SmallVector<Value> sums;
  for (ArrayRef<OpFoldResult> shape : shapes)
    sums.push_back(tensor::EmptyOp::create(rewriter, loc, shape, type));
  SmallVector<OpFoldResult> items = {querySizes[0], keySizes[1]};
  if (isShared)
    items.insert(items.begin(), shares);
  auto forall = scf::ForallOp::create(rewriter, loc, items, sums,
                                      /*mapping=*/std::nullopt);
  rewriter.setInsertionPoint(forall.getTerminator());
  SmallVector<Value> ivs = forall.getInductionVars();
  Item item{ivs.end()[-2], ivs.end()[-1], {}, zero, querySizes[2]};
  IndexMath m = math();
  item.firstHead = m.mul(item.head, group);
  if (isShared) {
    // The last queries first: a causal mask leaves them the most keys.
    OpFoldResult tile = m.constant(sizes.queryTile);
    OpFoldResult rows =
        m.mul(m.ceilDiv(m.ceilDiv(querySizes[2], tile), shares), tile);
    OpFoldResult place = m.sub(m.sub(shares, one), ivs.front());
    item.firstRow = m.min(m.mul(place, rows), querySizes[2]);
    item.endRow = m.min(m.add(item.firstRow, rows), querySizes[2]);
  }
  SmallVector<SmallVector<OpFoldResult>> offsets = {
      {item.batch, item.firstHead, item.firstRow, zero},
      {item.batch, item.head, zero, zero},
      {item.batch, item.head, zero, zero}};
  SmallVector<SmallVector<OpFoldResult>> parts = {
      {one, group, m.sub(item.endRow, item.firstRow), querySizes[3]},
      {one, one, keySizes[2], keySizes[3]},
      {one, one, valueSizes[2], valueSizes[3]}};
  if (isShared)
    for (unsigned number : {1u, 2u}) {
      offsets[number].insert(offsets[number].begin(), ivs.front());
      parts[number].insert(parts[number].begin(), one);
    }
  SmallVector<Value> running;
  for (auto [sum, offset, size] :
       llvm::zip_equal(forall.getRegionIterArgs(), offsets, parts))
    running.push_back(fillZeros(slice(sum, offset, size)));
  running = tileItem(item, running);
  rewriter.setInsertionPointToStart(forall.getTerminator().getBody());
  for (auto [part, sum, offset, size] :
       llvm::zip_equal(running, forall.getRegionIterArgs(), offsets, parts))
    tensor::ParallelInsertSliceOp::create(
        rewriter, loc, part, sum, offset, size,
        SmallVector<OpFoldResult>(offset.size(), one));
  rewriter.setInsertionPointAfter(forall);
  SmallVector<Value> results(forall.getResults());
  if (isShared)
    for (auto [number, primal] :
         {std::pair(1, op.getKey()), std::pair(2, op.getValue())})
      results[number] = sumShares(results[number], primal);
  for (auto [result, wanted] : llvm::zip_equal(results, op.getResults()))
    result = castTensor(rewriter, loc, result, wanted.getType());
  rewriter.replaceOp(op, results);
  return success();
}

/// All of one work item: gradients of its queries, keys and values.
SmallVector<Value> Tiling::tileItem(const Item &item, ValueRange sums) {
  return loop(zero, group, 1, sums, [&](Value member, ValueRange sums) {
    return loop(item.firstRow, item.endRow, sizes.queryTile, sums,
                [&](Value row, ValueRange sums) {
                  return tileRows(item, member, row, sums);
                });
  });
}

//===----------------------------------------------------------------------===//
// Tensors and loops
//===----------------------------------------------------------------------===//

/// A part of a tensor, in the rank of attention: leading dimensions of a longer
/// one are dropped.
Value Tiling::slice(Value tensor, ArrayRef<OpFoldResult> offsets,
                    ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(offsets.size(), one);
  size_t rank = std::min<size_t>(sizes.size(), 4);
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
  Value number = arith::ConstantOp::create(rewriter, loc,
                                           rewriter.getFloatAttr(type, 0.0));
  return linalg::FillOp::create(rewriter, loc, number, tensor).getResult(0);
}

/// The sum of `[shares, B, H, S, D]` over its first dimension, in its order.
Value Tiling::sumShares(Value parts, Value primal) {
  SmallVector<OpFoldResult> shape =
      tensor::getMixedSizes(rewriter, loc, primal);
  auto partOf = [&](OpFoldResult share) {
    SmallVector<OpFoldResult> offsets(5, zero), partSizes = shape;
    offsets.front() = share;
    partSizes.insert(partSizes.begin(), one);
    return slice(parts, offsets, partSizes);
  };
  return loop(one, shares, 1, partOf(zero),
              [&](Value share, ValueRange sums) -> SmallVector<Value> {
                AffineMap identity = mapAll(rewriter, 4);
                SmallVector<utils::IteratorType> iterators(
                    4, utils::IteratorType::parallel);
                auto add = [](OpBuilder &b, Location l, ValueRange in) {
                  Value sum = arith::AddFOp::create(b, l, in[1], in[0]);
                  linalg::YieldOp::create(b, l, sum);
                };
                return {linalg::GenericOp::create(
                            rewriter, loc, sums.front().getType(),
                            partOf(share), sums.front(),
                            ArrayRef{identity, identity}, iterators, add)
                            .getResult(0)};
              })
      .front();
}

/// A loop whose body makes new running values.
SmallVector<Value>
Tiling::loop(OpFoldResult lower, OpFoldResult upper, int64_t step,
             ValueRange inits,
             llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(rewriter, loc, value(lower), value(upper),
                                 value(rewriter.getIndexAttr(step)), inits);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> results =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(rewriter, loc, results);
  return SmallVector<Value>(loop.getResults());
}

/// What `emit` makes if `condition` holds, `otherwise` else.
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

/// Rows `[1, 1, n, D]` packed, one in a lane.
Value Tiling::pack(Value rows, double factor) {
  // A tile that covers few queries needs no more lanes.
  int64_t columns = sizes.queryTile;
  if (std::optional<int64_t> known = getConstantIntValue(querySizes[2]))
    columns = std::min(columns, std::max<int64_t>(*known, 1));
  SmallVector<OpFoldResult> shape = tensor::getMixedSizes(rewriter, loc, rows);
  shape = {one, one, shape[3],
           rewriter.getIndexAttr(llvm::alignTo(columns, sizes.lanes))};
  Value empty = tensor::EmptyOp::create(rewriter, loc, shape, type);
  return PackQueryOp::create(rewriter, loc, empty.getType(), rows, empty,
                             rewriter.getF64FloatAttr(factor))
      .getResult(0);
}

/// The size of a tile at `start`: `size`, or what is left before `end`.
static OpFoldResult clip(OpBuilder &builder, Location loc, Value start,
                         OpFoldResult end, int64_t size) {
  std::optional<int64_t> known = getConstantIntValue(end);
  if (known && *known % size == 0)
    return builder.getIndexAttr(size);
  AffineExpr d0 = builder.getAffineDimExpr(0),
             s0 = builder.getAffineSymbolExpr(0);
  AffineMap map =
      AffineMap::get(1, 1, {builder.getAffineConstantExpr(size), s0 - d0},
                     builder.getContext());
  return affine::makeComposedFoldedAffineMin(builder, loc, map,
                                             {OpFoldResult(start), end});
}

/// One tile of queries.
SmallVector<Value> Tiling::tileRows(const Item &item, Value member, Value row,
                                    ValueRange sums) {
  OpFoldResult count = clip(rewriter, loc, row, item.endRow, sizes.queryTile);
  IndexMath m = math();
  Rows rows;
  rows.at = {item.batch, m.add(item.firstHead, member), row, zero};
  ArrayRef<OpFoldResult> rowAt = ArrayRef(rows.at).drop_back();
  rows.query = slice(op.getQuery(), rows.at, {one, one, count, querySizes[3]});
  rows.gradient =
      slice(op.getGradient(), rows.at, {one, one, count, valueSizes[3]});
  rows.lse = slice(op.getLse(), rowAt, {one, one, count});
  rows.delta = slice(op.getDelta(), rowAt, {one, one, count});
  double factor = op.getScale().convertToDouble();
  if (op.getScore().empty())
    factor *= 1.4426950408889634;
  rows.packedQuery = pack(rows.query, factor);
  rows.packedGradient = pack(rows.gradient, 1.0);
  // Widened once, and not with every tile of keys.
  for (Value *operand : {&rows.query, &rows.gradient})
    *operand =
        castTensor(rewriter, loc, *operand,
                   cast<RankedTensorType>(operand->getType()).clone(type));
  SmallVector<OpFoldResult> place = {zero, member, m.sub(row, item.firstRow),
                                     zero};
  Value querySum = slice(sums[0], place, {one, one, count, querySizes[3]});

  // Keys that the mask keeps for these rows.
  OpFoldResult lower = zero, upper = keySizes[2];
  std::unique_ptr<MaskEvaluator> evaluator;
  bool isExact = true;
  if (!op.getMask().empty()) {
    auto point = [](OpFoldResult index) { return Span{index, index}; };
    MaskBox box = {point(item.batch),
                   point(rows.at[1]),
                   {row, m.sub(m.add(row, count), one)},
                   {zero, m.sub(keySizes[2], one)}};
    evaluator =
        std::make_unique<MaskEvaluator>(op.getMask(), box, rewriter, loc);
    KeyBounds bounds = evaluator->keyBounds();
    isExact = bounds.exact;
    OpFoldResult step = m.constant(sizes.keyTile);
    lower = m.mul(m.floorDiv(bounds.lower, step), step);
    upper = bounds.upper;
  }

  SmallVector<Value> results =
      loop(lower, upper, sizes.keyTile, {querySum, sums[1], sums[2]},
           [&](Value key, ValueRange sums) {
             OpFoldResult keys = clip(rewriter, loc, key, upper, sizes.keyTile);
             IndexMath m = math();
             Truth truth = {m.boolean(true), m.boolean(true)};
             if (evaluator) {
               Span span = {key, m.sub(m.add(key, keys), one)};
               truth = MaskEvaluator(*evaluator, span, rewriter).evaluate();
               if (isExact)
                 truth.any = m.boolean(true);
             }
             auto emit = [&] {
               return emitTile(item, rows, key, keys, truth, sums);
             };
             if (IndexMath::isTrue(truth.any))
               return emit();
             return branch(m.materialize(truth.any, true), sums, emit);
           });
  results[0] = insert(results[0], sums[0], place);
  return results;
}

/// One tile of scores, added to the running gradients.
SmallVector<Value> Tiling::emitTile(const Item &item, const Rows &rows,
                                    Value key, OpFoldResult keys,
                                    const Truth &truth, ValueRange sums) {
  SmallVector<OpFoldResult> keyAt = {item.batch, item.head, key, zero};
  SmallVector<OpFoldResult> place = {zero, zero, key, zero};
  SmallVector<OpFoldResult> keyTile = {one, one, keys, keySizes[3]};
  SmallVector<OpFoldResult> valueTile = {one, one, keys, valueSizes[3]};
  Value keyRows = slice(op.getKey(), keyAt, keyTile);
  Value values = slice(op.getValue(), keyAt, valueTile);
  SmallVector<Value> outs = {sums[0], slice(sums[1], place, keyTile),
                             slice(sums[2], place, valueTile)};
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
      rows.delta, outs[0], outs[1], outs[2], /*scores=*/Value(),
      /*scoreGradient=*/Value(), at, whole, partial, op.getScaleAttr(),
      op.getDropoutAttr(), op.getSeed(), op.getOffset());
  auto clone = [&](Region &from, Region &to) {
    rewriter.cloneRegionBefore(from, to, to.end());
  };
  clone(op.getScore(), tile.getScore());
  clone(derivative, tile.getDerivative());
  if (isMasked)
    clone(op.getMask(), tile.getMask());
  return {tile.getResult(0), insert(tile.getResult(1), sums[1], place),
          insert(tile.getResult(2), sums[2], place)};
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

void TileBackward::runOnOperation() {
  if (queryTile < 1 || keyTile < 1) {
    getOperation()->emitError()
        << "attn-tile-backward: expects query-tile and key-tile to be at "
           "least 1, but they are "
        << queryTile.getValue() << " and " << keyTile.getValue();
    return signalPassFailure();
  }
  SmallVector<AttentionBackwardOp> ops;
  getOperation()->walk([&](AttentionBackwardOp op) {
    if (op.getLse() && op.getAt().empty())
      ops.push_back(op);
  });
  int64_t vectorBytes = 64, items = 1;
  if (TargetAttr target = getTarget(getOperation())) {
    vectorBytes = target.getVectorBytes();
    items = target.getCores() > 1 ? kItemsPerCore * target.getCores() : 1;
  }
  IRRewriter rewriter(&getContext());
  for (AttentionBackwardOp op : ops) {
    if (!op.getCaptures().empty()) {
      std::string function;
      if (auto parent = op->getParentOfType<FunctionOpInterface>())
        function = parent.getName().str();
      remark::missed(op.getLoc(), remark::RemarkOpts::name("backward")
                                      .category(getArgument())
                                      .function(function))
          << "the backward pass is not tiled: captured tensors have gradients, "
             "which tiles do not share";
      ++numUntiled;
      continue;
    }
    int64_t lanes = std::max<int64_t>(
        1, vectorBytes * 8 / op.getAccumulationType().getWidth());
    if (failed(Tiling(rewriter, op, {queryTile, keyTile, lanes, items}).run()))
      return signalPassFailure();
    ++numTiled;
  }
}
