//===- TileBackward.cpp - attn-tile-backward ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Differentiate/LoopNest.h"

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

namespace {
/// Tiles one op: a parallel loop over batches and heads of keys; in it, one
/// after another, the query heads of the group, tiles of queries, and tiles of
/// keys.
class Tiling {
public:
  Tiling(RewriterBase &rewriter, AttentionBackwardOp op, int64_t queryTile,
         int64_t keyTile)
      : rewriter(rewriter), op(op), loc(op.getLoc()), queryTile(queryTile),
        keyTile(keyTile), type(op.getAccumulationType()) {}

  void run() {
    rewriter.setInsertionPoint(op);
    querySizes = tensor::getMixedSizes(rewriter, loc, op.getQuery());
    keySizes = tensor::getMixedSizes(rewriter, loc, op.getKey());
    valueSizes = tensor::getMixedSizes(rewriter, loc, op.getValue());
    one = rewriter.getIndexAttr(1);
    zero = rewriter.getIndexAttr(0);
    group = findGroup();

    SmallVector<Value> sums;
    for (Value primal : {op.getQuery(), op.getKey(), op.getValue()})
      sums.push_back(buildZeros(rewriter, loc, primal, type));
    auto forall = scf::ForallOp::create(
        rewriter, loc, ArrayRef<OpFoldResult>{querySizes[0], keySizes[1]}, sums,
        /*mapping=*/std::nullopt);
    rewriter.setInsertionPoint(forall.getTerminator());
    Value batch = forall.getInductionVar(0), head = forall.getInductionVar(1);
    OpFoldResult firstHead = multiply(head, group);
    SmallVector<OpFoldResult> queryOffsets = {batch, firstHead, zero, zero};
    SmallVector<OpFoldResult> keyOffsets = {batch, head, zero, zero};
    SmallVector<SmallVector<OpFoldResult>> offsets = {queryOffsets, keyOffsets,
                                                      keyOffsets};
    SmallVector<SmallVector<OpFoldResult>> sizes = {
        {one, group, querySizes[2], querySizes[3]},
        {one, one, keySizes[2], keySizes[3]},
        {one, one, valueSizes[2], valueSizes[3]}};
    SmallVector<Value> parts;
    for (auto [sum, offset, size] :
         llvm::zip_equal(forall.getRegionIterArgs(), offsets, sizes))
      parts.push_back(slice(sum, offset, size));
    parts = tileGroup(batch, head, firstHead, parts);
    rewriter.setInsertionPointToStart(forall.getTerminator().getBody());
    SmallVector<OpFoldResult> strides(4, one);
    for (auto [part, sum, offset, size] :
         llvm::zip_equal(parts, forall.getRegionIterArgs(), offsets, sizes))
      tensor::ParallelInsertSliceOp::create(rewriter, loc, part, sum, offset,
                                            size, strides);
    rewriter.setInsertionPointAfter(forall);
    SmallVector<Value> results;
    for (auto [result, wanted] :
         llvm::zip_equal(forall.getResults(), op.getResults()))
      results.push_back(castTensor(rewriter, loc, result, wanted.getType()));
    rewriter.replaceOp(op, results);
  }

private:
  /// Query heads of one head of keys.
  OpFoldResult findGroup() {
    auto heads = getConstantIntValue(querySizes[1]);
    auto kvHeads = getConstantIntValue(keySizes[1]);
    if (heads && kvHeads)
      return rewriter.getIndexAttr(*kvHeads ? *heads / *kvHeads : 1);
    Value divisor =
        arith::MaxSIOp::create(rewriter, loc, value(keySizes[1]), value(one));
    return arith::DivUIOp::create(rewriter, loc, value(querySizes[1]), divisor)
        .getResult();
  }

  Value value(OpFoldResult index) {
    return getValueOrCreateConstantIndexOp(rewriter, loc, index);
  }
  OpFoldResult multiply(OpFoldResult a, OpFoldResult b) {
    return affine::makeComposedFoldedAffineApply(
        rewriter, loc,
        rewriter.getAffineSymbolExpr(0) * rewriter.getAffineSymbolExpr(1),
        {a, b});
  }
  OpFoldResult add(OpFoldResult a, OpFoldResult b) {
    return affine::makeComposedFoldedAffineApply(
        rewriter, loc,
        rewriter.getAffineSymbolExpr(0) + rewriter.getAffineSymbolExpr(1),
        {a, b});
  }

  Value slice(Value tensor, ArrayRef<OpFoldResult> offsets,
              ArrayRef<OpFoldResult> sizes) {
    SmallVector<OpFoldResult> strides(offsets.size(), one);
    return tensor::ExtractSliceOp::create(rewriter, loc, tensor, offsets, sizes,
                                          strides);
  }
  Value insert(Value part, Value tensor, ArrayRef<OpFoldResult> offsets) {
    SmallVector<OpFoldResult> strides(offsets.size(), one);
    return tensor::InsertSliceOp::create(
        rewriter, loc, part, tensor, offsets,
        tensor::getMixedSizes(rewriter, loc, part), strides);
  }

  /// `sum` with `part` added, in its place.
  Value accumulate(Value part, Value sum) {
    AffineMap identity = mapAll(rewriter, 4);
    SmallVector<utils::IteratorType> iterators(4,
                                               utils::IteratorType::parallel);
    return linalg::GenericOp::create(
               rewriter, loc, sum.getType(), part, sum,
               ArrayRef{identity, identity}, iterators,
               [](OpBuilder &b, Location l, ValueRange in) {
                 Value added = arith::AddFOp::create(b, l, in[1], in[0]);
                 linalg::YieldOp::create(b, l, added);
               })
        .getResult(0);
  }

  /// A loop whose body makes new running values.
  SmallVector<Value>
  loop(OpFoldResult lower, OpFoldResult upper, int64_t step, ValueRange inits,
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

  /// The size of a tile at `start`: `size`, or what is left before `end`.
  OpFoldResult clip(Value start, OpFoldResult end, int64_t size) {
    std::optional<int64_t> known = getConstantIntValue(end);
    if (known && *known % size == 0)
      return rewriter.getIndexAttr(size);
    AffineExpr d0 = rewriter.getAffineDimExpr(0),
               s0 = rewriter.getAffineSymbolExpr(0);
    AffineMap map =
        AffineMap::get(1, 1, {rewriter.getAffineConstantExpr(size), s0 - d0},
                       rewriter.getContext());
    return affine::makeComposedFoldedAffineMin(rewriter, loc, map,
                                               {OpFoldResult(start), end});
  }

  /// All of one head of keys: gradients of its queries, keys and values.
  SmallVector<Value> tileGroup(Value batch, Value head, OpFoldResult firstHead,
                               ValueRange parts) {
    return loop(zero, group, 1, parts, [&](Value member, ValueRange parts) {
      OpFoldResult queryHead = add(firstHead, member);
      return loop(zero, querySizes[2], queryTile, parts,
                  [&](Value row, ValueRange parts) {
                    return tileRows(batch, head, member, queryHead, row, parts);
                  });
    });
  }

  /// One tile of queries.
  SmallVector<Value> tileRows(Value batch, Value head, Value member,
                              OpFoldResult queryHead, Value row,
                              ValueRange parts) {
    OpFoldResult rows = clip(row, querySizes[2], queryTile);
    SmallVector<OpFoldResult> at = {batch, queryHead, row, zero};
    ArrayRef<OpFoldResult> rowAt = ArrayRef(at).drop_back();
    Value query = slice(op.getQuery(), at, {one, one, rows, querySizes[3]});
    Value gradient =
        slice(op.getGradient(), at, {one, one, rows, valueSizes[3]});
    Value lse = slice(op.getLse(), rowAt, {one, one, rows});
    Value delta = slice(op.getDelta(), rowAt, {one, one, rows});
    SmallVector<OpFoldResult> place = {zero, member, row, zero};
    Value queryPart = slice(parts[0], place, {one, one, rows, querySizes[3]});

    // Keys that the mask keeps for these rows.
    IndexMath math(rewriter, loc);
    OpFoldResult lower = zero, upper = keySizes[2];
    std::unique_ptr<MaskEvaluator> evaluator;
    bool isExact = true;
    if (!op.getMask().empty()) {
      auto point = [](OpFoldResult index) { return Span{index, index}; };
      Span queries = {row, math.sub(math.add(row, rows), math.constant(1))};
      Span keys = {zero, math.sub(keySizes[2], math.constant(1))};
      MaskBox box = {point(batch), point(queryHead), queries, keys};
      evaluator =
          std::make_unique<MaskEvaluator>(op.getMask(), box, rewriter, loc);
      KeyBounds bounds = evaluator->keyBounds();
      isExact = bounds.exact;
      OpFoldResult step = math.constant(keyTile);
      lower = math.mul(math.floorDiv(bounds.lower, step), step);
      upper = bounds.upper;
    }

    SmallVector<Value> sums =
        loop(lower, upper, keyTile, {queryPart, parts[1], parts[2]},
             [&](Value key, ValueRange sums) {
               OpFoldResult keys = clip(key, upper, keyTile);
               IndexMath inner(rewriter, loc);
               Truth truth = {inner.boolean(true), inner.boolean(false)};
               if (evaluator) {
                 Span span = {
                     key, inner.sub(inner.add(key, keys), inner.constant(1))};
                 MaskEvaluator tile(*evaluator, span, rewriter);
                 truth = tile.evaluate();
                 if (isExact)
                   truth.any = inner.boolean(true);
               }
               auto emit = [&] {
                 return emitTile({batch, queryHead, row, key}, keys, query,
                                 gradient, lse, delta, head, truth, sums);
               };
               if (IndexMath::isTrue(truth.any))
                 return emit();
               return branch(inner.materialize(truth.any, true), sums, emit);
             });
    SmallVector<Value> results = {insert(sums[0], parts[0], place), sums[1],
                                  sums[2]};
    return results;
  }

  /// What `emit` makes if `condition` holds, `otherwise` else.
  SmallVector<Value> branch(Value condition, ValueRange otherwise,
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

  /// One tile of scores, added to the running gradients.
  SmallVector<Value> emitTile(ArrayRef<OpFoldResult> at, OpFoldResult keys,
                              Value query, Value gradient, Value lse,
                              Value delta, Value head, const Truth &truth,
                              ValueRange sums) {
    SmallVector<OpFoldResult> keyAt = {at[0], head, at[3], zero};
    SmallVector<OpFoldResult> place = {zero, zero, at[3], zero};
    Value key = slice(op.getKey(), keyAt, {one, one, keys, keySizes[3]});
    Value values = slice(op.getValue(), keyAt, {one, one, keys, valueSizes[3]});
    Value keyPart = slice(sums[1], place, {one, one, keys, keySizes[3]});
    Value valuePart = slice(sums[2], place, {one, one, keys, valueSizes[3]});
    auto typeOf = [&](Value tensor) {
      return cast<RankedTensorType>(tensor.getType()).clone(type);
    };
    SmallVector<Value> coordinates;
    for (OpFoldResult index : at)
      coordinates.push_back(value(index));
    SmallVector<Value> whole = {value(querySizes[1]), value(querySizes[2])};
    auto tile = AttentionBackwardOp::create(
        rewriter, loc, typeOf(query), typeOf(key), typeOf(values), TypeRange(),
        query, key, values, gradient, /*probabilities=*/Value(), lse, delta,
        /*lseGradient=*/Value(), /*captures=*/ValueRange(), coordinates, whole,
        op.getScaleAttr(), op.getDropoutAttr(), op.getSeed(), op.getOffset());
    rewriter.cloneRegionBefore(op.getScore(), tile.getScore(),
                               tile.getScore().end());
    if (!IndexMath::isTrue(truth.all))
      rewriter.cloneRegionBefore(op.getMask(), tile.getMask(),
                                 tile.getMask().end());
    return {
        accumulate(tile.getQueryGradient(), sums[0]),
        insert(accumulate(tile.getKeyGradient(), keyPart), sums[1], place),
        insert(accumulate(tile.getValueGradient(), valuePart), sums[2], place)};
  }

  RewriterBase &rewriter;
  AttentionBackwardOp op;
  Location loc;
  int64_t queryTile, keyTile;
  FloatType type;
  SmallVector<OpFoldResult> querySizes, keySizes, valueSizes;
  OpFoldResult one, zero, group;
};

struct TileBackward final
    : fovea::attn::impl::AttnTileBackwardBase<TileBackward> {
  using AttnTileBackwardBase::AttnTileBackwardBase;

  void runOnOperation() override {
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
    IRRewriter rewriter(&getContext());
    for (AttentionBackwardOp op : ops) {
      StringRef why;
      if (!op.getCaptures().empty())
        why = "captured tensors have gradients, which tiles do not share";
      else if (op.getDropoutAttr())
        why = "its dropout numbers the elements of a whole tensor";
      if (!why.empty()) {
        std::string function;
        if (auto parent = op->getParentOfType<FunctionOpInterface>())
          function = parent.getName().str();
        remark::missed(op.getLoc(), remark::RemarkOpts::name("backward")
                                        .category(getArgument())
                                        .function(function))
            << "the backward pass is not tiled: " + why.str();
        ++numUntiled;
        continue;
      }
      Tiling(rewriter, op, queryTile, keyTile).run();
      ++numTiled;
    }
  }
};
} // namespace
