//===- BackwardBuilder.cpp - Attention's backward pass as a launch --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BackwardBuilder.h"

#include "FragmentMath.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/Transforms/Formula.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;
using namespace fovea::tile;

/// Inner sizes of products are multiples of it.
static constexpr int64_t kProductMultiple = 16;

struct BackwardBuilder::KeyBlock {
  Value batch, kvHead, firstKey;
  /// Keys that exist.
  OpFoldResult keys;
  Value key, value;
};

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
  createLaunch();
  LogicalResult result = success();
  {
    // A score without a derivative is reported where it is written out.
    ScopedDiagnosticHandler silence(rewriter.getContext(),
                                    [](Diagnostic &) { return success(); });
    result = emitBlock();
  }
  if (failed(result) || failed(readInLaunch())) {
    while (op->getPrevNode() != before)
      rewriter.eraseOp(op->getPrevNode());
    return failure();
  }
  rewriter.setInsertionPoint(op);
  Value query = roundQueryGradient(launch.getResult(0));
  rewriter.replaceOp(op, {query, launch.getResult(1), launch.getResult(2)});
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
  if (!op.getAt().empty())
    return fail("it is a tile of a whole");
  if (!op.getCaptures().empty())
    return fail("captured tensors have gradients");
  for (Value operand : {op.getKey(), op.getValue(), op.getGradient()})
    if (getElementTypeOrSelf(operand) != sizes.element)
      return fail("its operands have different element types");
  if (!sizes.accumulation.isF32())
    return fail("its sums are not f32");
  for (int64_t dim : {query.getDimSize(3), value.getDimSize(3)})
    if (ShapedType::isDynamic(dim) || dim < 1)
      return fail("a head dim is not known");
  sizes.queries = schedule.getQueryTile();
  sizes.keys = schedule.getKeyTile();
  sizes.headDim = llvm::alignTo(query.getDimSize(3), kProductMultiple);
  sizes.valueDim = llvm::alignTo(value.getDimSize(3), kProductMultiple);
  return success();
}

/// Minus the log-sum-exp in base 2 and minus delta of every query, up to whole
/// tiles: a query without a key and one that does not exist have minus
/// infinity, so that their probabilities are 0, and 0.
void BackwardBuilder::createStatistics() {
  querySizes = tensor::getMixedSizes(rewriter, loc, op.getQuery());
  keySizes = tensor::getMixedSizes(rewriter, loc, op.getKey());
  IndexMath index(rewriter, loc);
  OpFoldResult tile = index.constant(sizes.queries);
  SmallVector<OpFoldResult> padded{
      querySizes[0], querySizes[1],
      index.mul(index.ceilDiv(querySizes[2], tile), tile)};
  SmallVector<Value> inits;
  for (int i = 0; i < 2; ++i)
    inits.push_back(
        tensor::EmptyOp::create(rewriter, loc, padded, sizes.accumulation));
  SmallVector<AffineMap> maps(2, rewriter.getMultiDimIdentityMap(3));
  SmallVector<utils::IteratorType> iterators(3, utils::IteratorType::parallel);
  OpFoldResult queries = querySizes[2];
  auto statistics = linalg::GenericOp::create(
      rewriter, loc, ValueRange(inits).getTypes(), ValueRange(), inits, maps,
      iterators, [&](OpBuilder &body, Location loc, ValueRange) {
        IndexMath index(body, loc);
        Formula f = {body, loc, sizes.accumulation};
        SmallVector<Value> at;
        for (int64_t dim = 0; dim < 3; ++dim)
          at.push_back(linalg::IndexOp::create(body, loc, dim));
        OpFoldResult exists = index.less(at[2], queries);
        at[2] = index.materialize(
            index.min(at[2], index.sub(queries, index.constant(1))));
        Value lse = f.make<tensor::ExtractOp>(op.getLse(), ValueRange(at));
        Value delta = f.make<tensor::ExtractOp>(op.getDelta(), ValueRange(at));
        Value lowest = f.number(-std::numeric_limits<double>::infinity());
        OpFoldResult hasKeys = index.logicalAnd(
            exists, f.compare(arith::CmpFPredicate::ONE, lse, lowest));
        Value shift = f.select(index.materialize(hasKeys, /*isBoolean=*/true),
                               f.mul(lse, -std::numbers::log2e), lowest);
        Value negated = f.neg(delta);
        if (!IndexMath::isTrue(exists))
          negated = f.select(index.materialize(exists, /*isBoolean=*/true),
                             negated, f.number(0.0));
        linalg::YieldOp::create(body, loc, ValueRange{shift, negated});
      });
  shift = statistics.getResult(0);
  negatedDelta = statistics.getResult(1);
}

/// The tensors that `regions` read elements of.
static SetVector<Value> getTensorsRead(MutableArrayRef<Region> regions) {
  SetVector<Value> tensors;
  for (Region &region : regions)
    region.walk([&](tensor::ExtractOp op) { tensors.insert(op.getTensor()); });
  return tensors;
}

void BackwardBuilder::createLaunch() {
  IndexMath index(rewriter, loc);
  if (!op.getMask().empty())
    tables =
        MaskTables(rewriter, loc, op.getMask(),
                   {querySizes[0], querySizes[1], querySizes[2], keySizes[2]},
                   sizes.queries, sizes.keys);
  auto heads = IndexMath::constantOf(querySizes[1]);
  auto kvHeads = IndexMath::constantOf(keySizes[1]);
  group = heads && kvHeads && *kvHeads
              ? index.constant(*heads / *kvHeads)
              : index.floorDiv(querySizes[1],
                               index.max(keySizes[1], index.constant(1)));

  SetVector<Value> inputs;
  for (Value input :
       {Value(op.getQuery()), Value(op.getKey()), Value(op.getValue()),
        Value(op.getGradient()), shift, negatedDelta})
    inputs.insert(input);
  inputs.insert_range(tables.getTensors());
  inputs.insert_range(getTensorsRead(op->getRegions()));

  // Sums that blocks add to begin with zeros.
  SmallVector<Value> outputs;
  for (auto [result, like] :
       {std::pair(op.getQueryGradient(), op.getQuery()),
        std::pair(op.getKeyGradient(), op.getKey()),
        std::pair(op.getValueGradient(), op.getValue())}) {
    auto type = cast<RankedTensorType>(result.getType());
    if (outputs.empty())
      type = type.clone(sizes.accumulation);
    SmallVector<Value> dynamic;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        dynamic.push_back(tensor::DimOp::create(rewriter, loc, like, dim));
    outputs.push_back(tensor::EmptyOp::create(rewriter, loc, type, dynamic));
  }
  Formula f = {rewriter, loc, sizes.accumulation};
  outputs[0] = linalg::FillOp::create(rewriter, loc, f.number(0.0), outputs[0])
                   .getResult(0);

  SmallVector<Value> grid{
      index.materialize(index.ceilDiv(keySizes[2], index.constant(sizes.keys))),
      index.materialize(keySizes[1]), index.materialize(keySizes[0])};
  ScheduleAttr schedule = op.getScheduleAttr();
  launch = LaunchOp::create(rewriter, loc, ValueRange(outputs).getTypes(), grid,
                            inputs.getArrayRef(), outputs,
                            rewriter.getI64IntegerAttr(schedule.getWarps()),
                            rewriter.getI64IntegerAttr(schedule.getStages()),
                            rewriter.getStringAttr("attention_backward"));
  Block *program = rewriter.createBlock(&launch.getBody());
  for (Value operand : launch->getOperands()) {
    Type type = operand.getType();
    if (auto shaped = dyn_cast<ShapedType>(type))
      type = LaunchOp::getArgumentType(shaped);
    program->addArgument(type, loc);
  }
  for (OpOperand &operand : launch.getInputsMutable())
    memrefs[operand.get()] = launch.getTiedArgument(operand);
}

/// What computes with tensors in the launch, as regions and the mask analysis
/// do, reads memrefs; sizes are found outside.
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

/// The scaled sums in the elements of the result.
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
                            int64_t columns) {
  auto type = SharedType::get(rewriter.getContext(), {rows, columns},
                              sizes.element, /*swizzle=*/0);
  return LoadOp::create(rewriter, loc, type, getMemRef(tensor), indices,
                        ArrayRef<int64_t>{2, 3});
}

Value BackwardBuilder::loadStatistic(Value tensor, ValueRange indices) {
  auto type = FragmentType::get(rewriter.getContext(), {sizes.queries},
                                sizes.accumulation, LayoutAttr());
  return LoadOp::create(rewriter, loc, type, getMemRef(tensor), indices,
                        ArrayRef<int64_t>{2});
}

/// Stores `sum` times `factor` in the elements of `output`.
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

/// The coordinates of one position, and of all from 0 on.
static Span getPoint(Value at) { return {at, at}; }
static Span getSpan(IndexMath &index, OpFoldResult first, OpFoldResult size) {
  return {first, index.sub(index.add(first, size), index.constant(1))};
}

LogicalResult BackwardBuilder::emitBlock() {
  auto ids = launch.getBlockIds();
  IndexMath index(rewriter, loc);
  KeyBlock block;
  block.kvHead = ids[1];
  block.batch = ids[2];
  OpFoldResult tile = index.constant(sizes.keys);
  block.firstKey = index.materialize(index.mul(OpFoldResult(ids[0]), tile));
  auto keys = IndexMath::constantOf(keySizes[2]);
  block.keys = keys && *keys % sizes.keys == 0
                   ? tile
                   : index.min(tile, index.sub(keySizes[2], block.firstKey));
  Value zero = index.materialize(index.constant(0));
  SmallVector<Value> place{block.batch, block.kvHead, block.firstKey, zero};
  block.key = load(op.getKey(), place, sizes.keys, sizes.headDim);
  block.value = load(op.getValue(), place, sizes.keys, sizes.valueDim);

  FragmentMath math(rewriter, loc);
  SmallVector<Value> sums;
  for (int64_t dim : {sizes.headDim, sizes.valueDim})
    sums.push_back(
        math.fill(FragmentType::get(rewriter.getContext(), {sizes.keys, dim},
                                    sizes.accumulation, LayoutAttr()),
                  0.0));
  FailureOr<SmallVector<Value>> results = emitHeads(block, sums);
  if (failed(results))
    return failure();
  auto outputs = launch.getOutputsMutable();
  store((*results)[0], outputs[1], op.getScale().convertToDouble(), place);
  store((*results)[1], outputs[2], 1.0, place);
  ReturnOp::create(rewriter, loc);
  return success();
}

FailureOr<SmallVector<Value>> BackwardBuilder::emitHeads(KeyBlock &block,
                                                         ValueRange sums) {
  IndexMath index(rewriter, loc);
  OpFoldResult first = index.mul(OpFoldResult(block.kvHead), group);
  if (IndexMath::constantOf(group) == 1)
    return emitQueries(block, index.materialize(first), sums);
  auto loop = scf::ForOp::create(
      rewriter, loc, index.materialize(index.constant(0)),
      index.materialize(group), index.materialize(index.constant(1)), sums);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  IndexMath inner(rewriter, loc);
  Value head =
      inner.materialize(inner.add(first, OpFoldResult(loop.getInductionVar())));
  FailureOr<SmallVector<Value>> results =
      emitQueries(block, head, loop.getRegionIterArgs());
  if (failed(results))
    return failure();
  scf::YieldOp::create(rewriter, loc, *results);
  return SmallVector<Value>(loop.getResults());
}

FailureOr<SmallVector<Value>>
BackwardBuilder::emitQueries(KeyBlock &block, Value head, ValueRange sums) {
  Region &mask = op.getMask();
  IndexMath index(rewriter, loc);
  OpFoldResult tile = index.constant(sizes.queries);
  OpFoldResult lower = index.constant(0), upper = querySizes[2];
  std::unique_ptr<MaskEvaluator> evaluator;
  bool isExact = true;
  auto lookUp = [&](Coordinate along, OpFoldResult row) {
    return [this, &mask, &block, head, along,
            row](Value value, IndexMath &math) -> std::optional<Span> {
      if (!(coordinatesOf(mask, value) & bitOf(along)))
        return std::nullopt;
      return tables.lookup(mask, value, math,
                           {block.batch, head, row, block.firstKey});
    };
  };
  if (!mask.empty()) {
    MaskBox box = {getPoint(block.batch), getPoint(head),
                   getSpan(index, lower, upper),
                   getSpan(index, block.firstKey, block.keys)};
    evaluator = std::make_unique<MaskEvaluator>(mask, box, rewriter, loc);
    evaluator->setLookup(lookUp(Coordinate::Key, OpFoldResult()));
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
  Value row = loop.getInductionVar();
  IndexMath inner(rewriter, loc);
  Truth truth{inner.boolean(true), inner.boolean(true)};
  if (evaluator) {
    OpFoldResult rows =
        inner.min(tile, inner.sub(querySizes[2], OpFoldResult(row)));
    MaskEvaluator part(*evaluator, getSpan(inner, row, rows), rewriter);
    part.setLookup(lookUp(Coordinate::Row, row));
    truth = part.evaluate();
    if (isExact)
      truth.any = inner.boolean(true);
  }
  ValueRange carried = loop.getRegionIterArgs();
  FailureOr<SmallVector<Value>> results;
  if (IndexMath::isTrue(truth.any)) {
    results = emitTile(block, head, row, truth, carried);
  } else {
    auto branch =
        scf::IfOp::create(rewriter, loc, carried.getTypes(),
                          inner.materialize(truth.any, /*isBoolean=*/true),
                          /*withElseRegion=*/true);
    rewriter.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(rewriter, loc, carried);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    results = emitTile(block, head, row, truth, carried);
    if (succeeded(results)) {
      scf::YieldOp::create(rewriter, loc, *results);
      results = SmallVector<Value>(branch.getResults());
    }
    rewriter.setInsertionPointAfter(branch);
  }
  if (failed(results))
    return failure();
  scf::YieldOp::create(rewriter, loc, *results);
  return SmallVector<Value>(loop.getResults());
}

FailureOr<SmallVector<Value>> BackwardBuilder::emitTile(KeyBlock &block,
                                                        Value head, Value row,
                                                        const Truth &truth,
                                                        ValueRange sums) {
  IndexMath index(rewriter, loc);
  Value zero = index.materialize(index.constant(0));
  SmallVector<Value> place{block.batch, head, row, zero};
  ValueRange rowPlace = ValueRange(place).drop_back();

  BackwardStep step;
  step.op = op;
  step.tile.at = {block.batch, head, row, block.firstKey};
  step.tile.queryTile = sizes.queries;
  step.tile.keyTile = sizes.keys;
  OpFoldResult tile = index.constant(sizes.queries);
  auto queries = IndexMath::constantOf(querySizes[2]);
  step.tile.queries =
      queries && *queries % sizes.queries == 0
          ? tile
          : index.min(tile, index.sub(querySizes[2], OpFoldResult(row)));
  step.tile.keys = block.keys;
  step.tile.emitRegion = [&](OpBuilder &builder, Region &region,
                             ValueRange arguments) {
    IRMapping mapping;
    Block &body = region.front();
    mapping.map(body.getArguments(), arguments);
    for (Operation &nested : body.without_terminator())
      builder.clone(nested, mapping);
    return mapping.lookupOrDefault(body.getTerminator()->getOperand(0));
  };
  if (op.getDropout()) {
    step.tile.wholeHeads = index.materialize(querySizes[1]);
    step.tile.wholeQueries = index.materialize(querySizes[2]);
    step.tile.seed = op.getSeed();
    step.tile.offset = op.getOffset();
  }
  step.partial =
      op.getMask().empty() ? index.boolean(false) : index.logicalNot(truth.all);
  step.key = block.key;
  step.value = block.value;
  step.query = load(op.getQuery(), place, sizes.queries, sizes.headDim);
  step.gradient = load(op.getGradient(), place, sizes.queries, sizes.valueDim);
  step.shift = loadStatistic(shift, rowPlace);
  step.negatedDelta = loadStatistic(negatedDelta, rowPlace);
  FailureOr<BackwardGradients> gradients =
      emitBackwardStep(rewriter, sizes, step, sums[0], sums[1]);
  if (failed(gradients))
    return fail("its score region has no derivative");
  StoreOp::create(rewriter, loc, gradients->query,
                  launch.getTiedArgument(launch.getOutputsMutable()[0]), place,
                  /*valid=*/Value(), ArrayRef<int64_t>{2, 3}, /*add=*/true);
  return SmallVector<Value>{gradients->key, gradients->value};
}
