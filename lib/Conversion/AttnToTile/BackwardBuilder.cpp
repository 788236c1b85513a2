//===- BackwardBuilder.cpp - Attention's backward pass as a launch --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BackwardBuilder.h"

#include "BlockId.h"
#include "FragmentMath.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/Differentiate/Formula.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;
using namespace fovea::tile;

/// The inner sizes of products are multiples of this number.
static constexpr int64_t kProductMultiple = 16;

LogicalResult BackwardBuilder::fail(const Twine &why) {
  reason = why.str();
  return failure();
}

LogicalResult BackwardBuilder::run() {
  if (failed(checkSizes()))
    return failure();
  Operation *before = op->getPrevNode();
  rewriter.setInsertionPoint(op);
  createStatistics();
  FailureOr<Values> results;
  {
    // A score without a derivative is reported where it is written out.
    ScopedDiagnosticHandler silence(rewriter.getContext(),
                                    [](Diagnostic &) { return success(); });
    planSharedSums();
    results = emitLaunches();
  }
  if (failed(results)) {
    while (op->getPrevNode() != before)
      rewriter.eraseOp(op->getPrevNode());
    return failure();
  }
  rewriter.setInsertionPoint(op);
  results->front() = roundQueryGradient(results->front());
  Values sums(ArrayRef(*results).drop_front(3));
  results->truncate(3);
  for (auto [capture, gradient] :
       llvm::zip_equal(op.getCaptures(), op.getCaptureGradients()))
    results->push_back(sumReads(capture, sums, gradient.getType()));
  for (const std::string &text : remarks)
    remark::passed(
        loc,
        remark::RemarkOpts::name("captures").category("convert-attn-to-tile"))
        << text;
  rewriter.replaceOp(op, *results);
  return success();
}

//===----------------------------------------------------------------------===//
// Around the launch
//===----------------------------------------------------------------------===//

LogicalResult BackwardBuilder::checkSizes() {
  ScheduleAttr schedule = op.getScheduleAttr();
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto value = cast<RankedTensorType>(op.getValue().getType());
  sizes.element = cast<FloatType>(query.getElementType());
  sizes.accumulation = op.getAccumulationType();
  if (failed(findReads()))
    return failure();
  for (Value operand : {op.getKey(), op.getValue(), op.getGradient()})
    if (getElementTypeOrSelf(operand) != sizes.element)
      return fail("its operands have different element types");
  for (int64_t dim : {query.getDimSize(3), value.getDimSize(3)})
    if (ShapedType::isDynamic(dim) || dim < 1)
      return fail("a head dim is not known");
  sizes.queries = schedule.getQueryTile();
  sizes.keys = schedule.getKeyTile();
  sizes.headDim = llvm::alignTo(query.getDimSize(3), kProductMultiple);
  sizes.valueDim = llvm::alignTo(value.getDimSize(3), kProductMultiple);
  return success();
}

/// Creates minus the log-sum-exp, its rounding error and minus delta of every
/// query, up to whole tiles. For a query without a key and for one that does
/// not exist these are minus infinity, so that their probabilities are 0, and
/// 0.
void BackwardBuilder::createStatistics() {
  querySizes = tensor::getMixedSizes(rewriter, loc, op.getQuery());
  keySizes = tensor::getMixedSizes(rewriter, loc, op.getKey());
  IndexMath index(rewriter, loc);
  auto heads = IndexMath::constantOf(querySizes[1]);
  auto kvHeads = IndexMath::constantOf(keySizes[1]);
  group = heads && kvHeads && *kvHeads
              ? index.constant(*heads / *kvHeads)
              : index.floorDiv(querySizes[1],
                               index.max(keySizes[1], index.constant(1)));
  OpFoldResult tile = index.constant(sizes.queries);
  SmallVector<OpFoldResult> padded{
      querySizes[0], querySizes[1],
      index.mul(index.ceilDiv(querySizes[2], tile), tile)};
  ScoreUnit unit = ScoreUnit::get(op.getScale(), op.getScore());
  bool isFused = isFusedBackward(unit, sizes);
  // In f64, the log-sum-exp needs no second number.
  bool hasRest = !isFused && !sizes.accumulation.isF64();
  double factor = isFused ? std::numbers::log2e : 1.0 / unit.unit;
  SmallVector<Value> inits;
  for (int i = 0; i < (hasRest ? 3 : 2); ++i)
    inits.push_back(
        tensor::EmptyOp::create(rewriter, loc, padded, sizes.accumulation));
  SmallVector<AffineMap> maps(inits.size(), rewriter.getMultiDimIdentityMap(3));
  SmallVector<utils::IteratorType> iterators(3, utils::IteratorType::parallel);
  OpFoldResult queries = querySizes[2];
  auto statistics = linalg::GenericOp::create(
      rewriter, loc, ValueRange(inits).getTypes(), ValueRange(), inits, maps,
      iterators, [&](OpBuilder &body, Location loc, ValueRange) {
        IndexMath index(body, loc);
        Formula f = {body, loc, sizes.accumulation};
        Formula exact = {body, loc, body.getF64Type()};
        SmallVector<Value> at;
        for (int64_t dim = 0; dim < 3; ++dim)
          at.push_back(linalg::IndexOp::create(body, loc, dim));
        OpFoldResult exists = index.less(at[2], queries);
        at[2] = index.materialize(
            index.min(at[2], index.sub(queries, index.constant(1))));
        Value lse = exact.convert(
            exact.make<tensor::ExtractOp>(op.getLse(), ValueRange(at)));
        Value delta = f.make<tensor::ExtractOp>(op.getDelta(), ValueRange(at));
        double infinity = std::numeric_limits<double>::infinity();
        // Unordered: a row of NaN has gradients of NaN.
        Value hasKeys = index.materialize(
            index.logicalAnd(exists,
                             exact.compare(arith::CmpFPredicate::UNE, lse,
                                           exact.number(-infinity))),
            /*isBoolean=*/true);
        Value scaled = exact.mul(lse, -factor);
        Value rounded = f.convert(scaled);
        SmallVector<Value> results{
            f.select(hasKeys, rounded, f.number(-infinity))};
        if (hasRest) {
          Value rest = exact.mul(exact.sub(scaled, exact.convert(rounded)),
                                 unit.getBase2());
          results.push_back(f.select(hasKeys, f.convert(rest), f.number(0.0)));
        }
        results.push_back(f.neg(delta));
        if (!IndexMath::isTrue(exists))
          results.back() =
              f.select(index.materialize(exists, /*isBoolean=*/true),
                       results.back(), f.number(0.0));
        linalg::YieldOp::create(body, loc, results);
      });
  shift = statistics.getResult(0);
  if (hasRest)
    rest = statistics.getResult(1);
  negatedDelta = statistics->getResults().back();
}

/// The tensors that `regions` read elements of.
static SetVector<Value> getTensorsRead(MutableArrayRef<Region> regions) {
  SetVector<Value> tensors;
  for (Region &region : regions)
    region.walk([&](tensor::ExtractOp op) { tensors.insert(op.getTensor()); });
  return tensors;
}

/// A tensor for a result, of another element type.
Value BackwardBuilder::createResult(Value result, Value like,
                                    FloatType element) {
  auto type = cast<RankedTensorType>(result.getType()).clone(element);
  SmallVector<Value> dynamic;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      dynamic.push_back(tensor::DimOp::create(rewriter, loc, like, dim));
  return tensor::EmptyOp::create(rewriter, loc, type, dynamic);
}

/// Creates a launch that reads the op's operands, and continues in its program.
void BackwardBuilder::createLaunch(ArrayRef<OpFoldResult> grid,
                                   ValueRange outputs) {
  SetVector<Value> inputs;
  for (Value input :
       {Value(op.getQuery()), Value(op.getKey()), Value(op.getValue()),
        Value(op.getGradient()), shift, rest, negatedDelta})
    if (input)
      inputs.insert(input);
  inputs.insert_range(tables.getTensors());
  inputs.insert_range(getTensorsRead(op->getRegions()));

  IndexMath index(rewriter, loc);
  SmallVector<Value> blocks;
  for (OpFoldResult size : grid)
    blocks.push_back(index.materialize(size));
  ScheduleAttr schedule = op.getScheduleAttr();
  launch = LaunchOp::create(rewriter, loc, outputs.getTypes(), blocks,
                            inputs.getArrayRef(), outputs,
                            rewriter.getI64IntegerAttr(schedule.getWarps()),
                            rewriter.getI64IntegerAttr(schedule.getStages()),
                            rewriter.getStringAttr("attention_backward"));
  launch.createProgram(rewriter);
  for (OpOperand &operand : launch.getInputsMutable())
    memrefs[operand.get()] = launch.getTiedArgument(operand);
}

/// Makes ops that compute with tensors in the launch, as regions and the mask
/// analysis do, read memrefs; sizes are found outside.
LogicalResult BackwardBuilder::readInLaunch() {
  SmallVector<Operation *> reads;
  launch.walk([&](Operation *nested) {
    if (nested != launch &&
        llvm::any_of(nested->getOperandTypes(), llvm::IsaPred<TensorType>))
      reads.push_back(nested);
  });
  for (Operation *read : reads) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(read)) {
      if (Value memref = getMemRef(extract.getTensor())) {
        rewriter.setInsertionPoint(read);
        rewriter.replaceOpWithNewOp<memref::LoadOp>(read, memref,
                                                    extract.getIndices());
        continue;
      }
    }
    auto dim = dyn_cast<tensor::DimOp>(read);
    if (!dim || !dim.getConstantIndex())
      return fail("'" + read->getName().getStringRef() +
                  "' is computed for each score");
    rewriter.setInsertionPoint(launch);
    Value size = tensor::DimOp::create(rewriter, loc, dim.getSource(),
                                       *dim.getConstantIndex());
    rewriter.replaceOp(read, size);
  }
  return success();
}

/// Returns the scaled sums in the element type of the result.
Value BackwardBuilder::roundQueryGradient(Value sums) {
  auto type = cast<RankedTensorType>(op.getQueryGradient().getType());
  Value init = tensor::EmptyOp::create(
      rewriter, loc, tensor::getMixedSizes(rewriter, loc, sums),
      type.getElementType());
  SmallVector<AffineMap> maps(2, rewriter.getMultiDimIdentityMap(4));
  SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
  auto rounded = linalg::GenericOp::create(
      rewriter, loc, init.getType(), sums, init, maps, iterators,
      [&](OpBuilder &body, Location loc, ValueRange in) {
        Formula f = {body, loc, sizes.accumulation};
        Value scaled = f.mul(in[0], op.getScale().convertToDouble());
        linalg::YieldOp::create(
            body, loc,
            convertFloats(body, loc, scaled,
                          cast<FloatType>(type.getElementType())));
      });
  return rounded.getResult(0);
}

//===----------------------------------------------------------------------===//
// In the launch
//===----------------------------------------------------------------------===//

Value BackwardBuilder::load(Value tensor, ValueRange indices, int64_t rows,
                            int64_t columns, ValueRange present) {
  auto type = SharedType::get(rewriter.getContext(), {rows, columns},
                              sizes.element, /*swizzle=*/0);
  return LoadOp::create(rewriter, loc, type, getMemRef(tensor), indices,
                        ArrayRef<int64_t>{2, 3}, present);
}

Value BackwardBuilder::loadStatistic(Value tensor, ValueRange indices) {
  auto type = FragmentType::get(rewriter.getContext(), {sizes.queries},
                                sizes.accumulation, LayoutAttr());
  return LoadOp::create(rewriter, loc, type, getMemRef(tensor), indices,
                        ArrayRef<int64_t>{2});
}

/// Stores `sum` times `factor` in the element type of `output`.
void BackwardBuilder::store(Value sum, OpOperand &output, double factor,
                            ValueRange indices) {
  auto type = cast<FragmentType>(sum.getType());
  auto element = cast<FloatType>(getElementTypeOrSelf(output.get()));
  Value rounded =
      FragmentMath(rewriter, loc)
          .map(type.cloneWith(element), sum, {},
               [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
                 Formula f = {body, loc, sizes.accumulation};
                 Value scaled =
                     factor == 1.0 ? elements[0] : f.mul(elements[0], factor);
                 return convertFloats(body, loc, scaled, element);
               });
  StoreOp::create(rewriter, loc, rounded, launch.getTiedArgument(output),
                  indices, /*valid=*/Value(), ArrayRef<int64_t>{2, 3});
}

Value BackwardBuilder::fill(ArrayRef<int64_t> shape) {
  return FragmentMath(rewriter, loc)
      .fill(FragmentType::get(rewriter.getContext(), shape, sizes.accumulation,
                              LayoutAttr()),
            0.0);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Returns the number of rows of a tile of `size` at `first` that are before
/// `end`.
static OpFoldResult getCount(IndexMath &index, Value first, OpFoldResult end,
                             int64_t size) {
  OpFoldResult tile = index.constant(size);
  auto known = IndexMath::constantOf(end);
  if (known && *known % size == 0)
    return tile;
  return index.min(tile, index.sub(end, OpFoldResult(first)));
}

/// Emits the launch, or loops of launches, and all results.
FailureOr<BackwardBuilder::Values> BackwardBuilder::emitLaunches() {
  if (!op.getMask().empty())
    tables =
        MaskTables(rewriter, loc, op.getMask(),
                   {querySizes[0], querySizes[1], querySizes[2], keySizes[2]},
                   sizes.queries, sizes.keys);
  IndexMath before(rewriter, loc);
  // Sums that blocks add to start at zero.
  Formula f = {rewriter, loc, sizes.accumulation};
  Value queryGradient =
      createResult(op.getQueryGradient(), op.getQuery(), sizes.accumulation);
  SmallVector<Value> outputs{
      linalg::FillOp::create(rewriter, loc, f.number(0.0), queryGradient)
          .getResult(0)};
  for (auto [result, like] :
       {std::pair<Value, Value>(op.getKeyGradient(), op.getKey()),
        {op.getValueGradient(), op.getValue()}})
    outputs.push_back(createResult(
        result, like, cast<FloatType>(getElementTypeOrSelf(result))));
  // A number for each key, in whole tiles, of each query head.
  OpFoldResult tile = before.constant(sizes.keys);
  SmallVector<OpFoldResult> padded{
      querySizes[0], querySizes[1],
      before.mul(before.ceilDiv(keySizes[2], tile), tile)};
  for (size_t number = 0; number < reads.size(); ++number)
    outputs.push_back(
        tensor::EmptyOp::create(rewriter, loc, padded, sizes.accumulation));
  createScatteredSums(outputs);

  SmallVector<scf::ForOp> loops;
  Block block;
  for (auto [dim, place] :
       {std::pair<unsigned, Value *>(0, &block.batch), {1, &block.kvHead}}) {
    if (!takesTurns[dim])
      continue;
    IndexMath index(rewriter, loc);
    loops.push_back(
        scf::ForOp::create(rewriter, loc, index.materialize(index.constant(0)),
                           index.materialize(keySizes[dim]),
                           index.materialize(index.constant(1)), outputs));
    *place = loops.back().getInductionVar();
    outputs.assign(loops.back().getRegionIterArgs().begin(),
                   loops.back().getRegionIterArgs().end());
    rewriter.setInsertionPointToStart(loops.back().getBody());
  }
  FailureOr<Values> results = emitLaunch(outputs, block);
  if (failed(results))
    return failure();
  rewriter.setInsertionPointAfter(launch);
  for (scf::ForOp loop : llvm::reverse(loops)) {
    scf::YieldOp::create(rewriter, loc, *results);
    results = Values(loop.getResults());
    rewriter.setInsertionPointAfter(loop);
  }
  return results;
}

/// Emits one launch for all batches and heads of keys or, where `block` names
/// one, for that one only.
FailureOr<BackwardBuilder::Values>
BackwardBuilder::emitLaunch(ValueRange outputs, Block block) {
  IndexMath before(rewriter, loc);
  OpFoldResult one = before.constant(1);
  createLaunch({before.ceilDiv(keySizes[2], before.constant(sizes.keys)),
                block.kvHead ? one : keySizes[1],
                block.batch ? one : keySizes[0]},
               outputs);
  tieScatteredSums();

  IndexMath index(rewriter, loc);
  if (!block.kvHead)
    block.kvHead = index.materialize(getBlockId(index, launch, 1));
  if (!block.batch)
    block.batch = index.materialize(getBlockId(index, launch, 2));
  block.first = index.materialize(
      index.mul(getBlockId(index, launch, 0), index.constant(sizes.keys)));
  block.count = getCount(index, block.first, keySizes[2], sizes.keys);
  Value zero = index.materialize(index.constant(0));
  SmallVector<Value> place{block.batch, block.kvHead, block.first, zero};
  Values present = findPresentRows(block);
  block.key = load(op.getKey(), place, sizes.keys, sizes.headDim, present);
  block.value = load(op.getValue(), place, sizes.keys, sizes.valueDim, present);
  SmallVector<Value> sums{fill({sizes.keys, sizes.headDim}),
                          fill({sizes.keys, sizes.valueDim})};

  auto emitTile = [&](Value at, const Truth &truth,
                      ValueRange sums) -> FailureOr<Values> {
    BackwardStep step = makeStep(block, at, truth);
    BackwardGradients soFar = {Value(), sums[0], sums[1],
                               Values(sums.drop_front(2))};
    FailureOr<BackwardGradients> gradients =
        emitBackwardStep(rewriter, sizes, step, soFar);
    if (failed(gradients))
      return fail("its score region has no derivative");
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    StoreOp::create(rewriter, loc, gradients->query,
                    launch.getTiedArgument(launch.getOutputsMutable()[0]),
                    ValueRange{block.batch, block.head, at, zero},
                    /*valid=*/Value(), ArrayRef<int64_t>{2, 3},
                    /*add=*/true);
    Values next{gradients->key, gradients->value};
    llvm::append_range(next, gradients->reads);
    return next;
  };
  auto stored = launch.getOutputsMutable();
  FailureOr<Values> results =
      emitHeads(block, sums, [&](ValueRange sums) -> FailureOr<Values> {
        SmallVector<Value> all(sums);
        for (size_t read = 0; read < reads.size(); ++read)
          all.push_back(fill(sizes.keys));
        FailureOr<Values> next = emitTiles(block, all, emitTile);
        if (failed(next))
          return failure();
        for (auto [read, sum] : llvm::enumerate(ArrayRef(*next).drop_front(2)))
          StoreOp::create(rewriter, loc, sum,
                          launch.getTiedArgument(stored[3 + read]),
                          ValueRange{block.batch, block.head, block.first},
                          /*valid=*/Value(), ArrayRef<int64_t>{2},
                          /*add=*/false);
        next->truncate(2);
        return next;
      });
  if (failed(results))
    return failure();
  store((*results)[0], stored[1], op.getScale().convertToDouble(), place);
  store((*results)[1], stored[2], 1.0, place);
  ReturnOp::create(rewriter, loc);
  if (failed(readInLaunch()))
    return failure();
  return Values(launch.getResults());
}

/// The loop over the query heads of a head of keys.
FailureOr<BackwardBuilder::Values> BackwardBuilder::emitHeads(
    Block &block, ValueRange sums,
    llvm::function_ref<FailureOr<Values>(ValueRange)> emit) {
  IndexMath index(rewriter, loc);
  OpFoldResult first = index.mul(OpFoldResult(block.kvHead), group);
  if (IndexMath::constantOf(group) == 1) {
    block.head = index.materialize(first);
    return emit(sums);
  }
  auto loop = scf::ForOp::create(
      rewriter, loc, index.materialize(index.constant(0)),
      index.materialize(group), index.materialize(index.constant(1)), sums);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  IndexMath inner(rewriter, loc);
  block.head =
      inner.materialize(inner.add(first, OpFoldResult(loop.getInductionVar())));
  FailureOr<Values> results = emit(loop.getRegionIterArgs());
  if (failed(results))
    return failure();
  scf::YieldOp::create(rewriter, loc, *results);
  return Values(loop.getResults());
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// `size` coordinates from `first` on.
static Span getSpan(IndexMath &index, OpFoldResult first, OpFoldResult size) {
  return {first, index.sub(index.add(first, size), index.constant(1))};
}

BackwardBuilder::Values BackwardBuilder::findPresentRows(const Block &block) {
  Region &mask = op.getMask();
  if (mask.empty())
    return {};
  IndexMath index(rewriter, loc);
  OpFoldResult zero = index.constant(0);
  MaskBox box = {
      {block.batch, block.batch},
      getSpan(index, index.mul(OpFoldResult(block.kvHead), group), group),
      getSpan(index, zero, querySizes[2]),
      getSpan(index, zero, keySizes[2])};
  if (IndexMath::constantOf(group) == 1)
    box.head.last = box.head.first;
  PresentKeys keys = MaskEvaluator(mask, box, rewriter, loc).presentKeys();
  keys = dropWholeEnd(index, keys, keySizes[2]);
  return getPresentRows(index, keys, block.first, sizes.keys);
}

FailureOr<BackwardBuilder::Values>
BackwardBuilder::emitTiles(const Block &block, ValueRange sums, TileFn emit) {
  Region &mask = op.getMask();
  OpFoldResult end = querySizes[2];
  IndexMath index(rewriter, loc);
  OpFoldResult tile = index.constant(sizes.queries);
  OpFoldResult lower = index.constant(0), upper = end;
  std::unique_ptr<MaskEvaluator> evaluator;
  bool isExact = true;
  // Returns values at the block's own keys, or at the rows of a tile at `at`.
  auto lookUp = [&](Coordinate varying, OpFoldResult at) {
    return [this, &mask, &block, varying,
            at](Value value, IndexMath &math) -> std::optional<Span> {
      if (!(coordinatesOf(mask, value) & bitOf(varying)))
        return std::nullopt;
      return tables.lookup(mask, value, math,
                           {block.batch, block.head, at, at});
    };
  };
  if (!mask.empty()) {
    MaskBox box = {{block.batch, block.batch},
                   {block.head, block.head},
                   getSpan(index, lower, end),
                   getSpan(index, block.first, block.count)};
    evaluator = std::make_unique<MaskEvaluator>(mask, box, rewriter, loc);
    evaluator->setLookup(lookUp(Coordinate::Key, block.first));
    MaskBounds bounds = evaluator->bounds(Coordinate::Row);
    isExact = bounds.exact;
    lower = index.mul(index.floorDiv(bounds.lower, tile), tile);
    upper = bounds.upper;
  }

  auto loop = scf::ForOp::create(rewriter, loc, index.materialize(lower),
                                 index.materialize(upper),
                                 index.materialize(tile), sums);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  Value at = loop.getInductionVar();
  IndexMath inner(rewriter, loc);
  Truth truth{inner.boolean(true), inner.boolean(true)};
  if (evaluator) {
    OpFoldResult count = getCount(inner, at, end, sizes.queries);
    MaskEvaluator part(*evaluator, getSpan(inner, at, count), rewriter);
    part.setLookup(lookUp(Coordinate::Row, at));
    truth = part.evaluate();
    if (isExact)
      truth.any = inner.boolean(true);
  }
  ValueRange carried = loop.getRegionIterArgs();
  FailureOr<Values> results;
  if (IndexMath::isTrue(truth.any)) {
    results = emit(at, truth, carried);
  } else {
    auto branch =
        scf::IfOp::create(rewriter, loc, carried.getTypes(),
                          inner.materialize(truth.any, /*isBoolean=*/true),
                          /*withElseRegion=*/true);
    rewriter.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(rewriter, loc, carried);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    results = emit(at, truth, carried);
    if (succeeded(results)) {
      scf::YieldOp::create(rewriter, loc, *results);
      results = Values(branch.getResults());
    }
    rewriter.setInsertionPointAfter(branch);
  }
  if (failed(results))
    return failure();
  scf::YieldOp::create(rewriter, loc, *results);
  return Values(loop.getResults());
}

BackwardStep BackwardBuilder::makeStep(const Block &block, Value at,
                                       const Truth &truth) {
  IndexMath index(rewriter, loc);
  BackwardStep step;
  step.op = op;
  step.reads = reads;
  step.scattered = scattered;
  ScoreTile &tile = step.tile;
  tile.at = {block.batch, block.head, at, block.first};
  tile.queryTile = sizes.queries;
  tile.keyTile = sizes.keys;
  tile.queries = getCount(index, at, querySizes[2], sizes.queries);
  tile.keys = block.count;
  tile.emitRegion = [](OpBuilder &builder, Region &region,
                       ValueRange arguments) {
    IRMapping mapping;
    mlir::Block &body = region.front();
    mapping.map(body.getArguments(), arguments);
    for (Operation &nested : body.without_terminator())
      builder.clone(nested, mapping);
    return mapping.lookupOrDefault(body.getTerminator()->getOperand(0));
  };
  if (op.getDropout()) {
    tile.wholeHeads = index.materialize(querySizes[1]);
    tile.wholeQueries = index.materialize(querySizes[2]);
    tile.seed = op.getSeed();
    tile.offset = op.getOffset();
  }
  step.partial =
      op.getMask().empty() ? index.boolean(false) : index.logicalNot(truth.all);
  Value zero = index.materialize(index.constant(0));
  SmallVector<Value> place{block.batch, block.head, at, zero};
  ValueRange rows = ValueRange(place).drop_back();
  step.key = block.key;
  step.value = block.value;
  step.query = load(op.getQuery(), place, sizes.queries, sizes.headDim);
  step.gradient = load(op.getGradient(), place, sizes.queries, sizes.valueDim);
  step.shift = loadStatistic(shift, rows);
  if (rest)
    step.rest = loadStatistic(rest, rows);
  step.negatedDelta = loadStatistic(negatedDelta, rows);
  return step;
}
