//===- BackwardBuilder.cpp - Attention's backward pass as a launch --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BackwardBuilder.h"

#include "FragmentMath.h"

#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/Differentiate/ScalarTape.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::tile;

/// The numbers of the op's destinations.
enum Sum : unsigned { OfQueries, OfKeys, OfValues, OfCaptures };

/// Returns true if a block has all of sum `number` in registers.
static bool isInRegisters(unsigned number) {
  return number == OfKeys || number == OfValues;
}

LogicalResult BackwardBuilder::run() {
  if (failed(findLoops()))
    return failure();
  Operation *root = outer.empty() ? forall.getOperation() : outer.back();
  Operation *before = root->getPrevNode();
  rewriter.setInsertionPoint(root);
  FailureOr<Values> results = failure();
  if (succeeded(findOperands()) && succeeded(findOutputs()) &&
      succeeded(findReads())) {
    followSums();
    findPresentKeys();
    findMaskReads();
    rewriter.setInsertionPoint(root);
    results = emit();
  }
  if (succeeded(results)) {
    rewriter.replaceOp(root, *results);
    return success();
  }
  while (root->getPrevNode() != before)
    rewriter.eraseOp(root->getPrevNode());
  return failure();
}

//===----------------------------------------------------------------------===//
// The loop to convert
//===----------------------------------------------------------------------===//

/// Finds the loops around the parallel one, which must only repeat it: sums are
/// completed behind them.
LogicalResult BackwardBuilder::findLoops() {
  Operation *inner = forall;
  while (auto loop = dyn_cast<scf::ForOp>(inner->getParentOp())) {
    Operation *yield = loop.getBody()->getTerminator();
    auto isOther = [&](Operation &each) {
      return &each != inner && &each != yield &&
             !(isMemoryEffectFree(&each) && each.getNumRegions() == 0);
    };
    if (llvm::any_of(*loop.getBody(), isOther) ||
        !llvm::all_of(yield->getOperands(), [&](Value value) {
          return value.getDefiningOp() == inner;
        }))
      return fail("a loop around its tiles does more than repeat them");
    outer.push_back(loop);
    inner = loop;
  }
  return success();
}

LogicalResult BackwardBuilder::findOperands() {
  ScheduleAttr schedule = op.getScheduleAttr();
  if (!schedule || !schedule.getWarps() || !schedule.getGradients())
    return fail("its schedule has no warps or no gradients");
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto value = cast<RankedTensorType>(op.getValue().getType());
  sizes.element = cast<FloatType>(query.getElementType());
  sizes.accumulation = op.getAccumulationType();
  for (Value operand :
       {op.getQuery(), op.getGradient(), op.getKey(), op.getValue()}) {
    if (getElementTypeOrSelf(operand) != sizes.element)
      return fail("its operands have different element types");
    auto view = TileView::getSource(operand, forall.getRegion());
    if (!view || !isOutside(view->tensor))
      return fail("an operand is no tile of a tensor");
  }
  for (Value statistic : {op.getLse(), op.getDelta()}) {
    auto view = TileView::getSource(statistic, forall.getRegion());
    if (!view || !isOutside(view->tensor) ||
        view->dims != ArrayRef<int64_t>{0, 1, 2})
      return fail("a statistic is no tile of a tensor");
    if (view->offsets.empty())
      view->offsets.assign(3, rewriter.getIndexAttr(0));
    statisticViews.push_back(*view);
  }
  scoreSizes = tensor::getMixedSizes(rewriter, loc, statisticViews[0].tensor);
  auto keys = TileView::getSource(op.getKey(), forall.getRegion());
  if (keys->getDim(2) < 0)
    return fail("an operand's rows do not run along a dimension of it");
  scoreSizes.push_back(
      tensor::getMixedSize(rewriter, loc, keys->tensor, keys->getDim(2)));
  for (int64_t dim : {query.getDimSize(3), value.getDimSize(3)})
    if (ShapedType::isDynamic(dim) || dim < 1)
      return fail("a head dim is not known");
  sizes.queries = schedule.getQueryTile();
  sizes.keys = schedule.getKeyTile();
  sizes.headDim = llvm::alignTo(query.getDimSize(3), kProductMultiple);
  sizes.valueDim = llvm::alignTo(value.getDimSize(3), kProductMultiple);
  return success();
}

/// Finds which sums the loop's results are, and where they are inserted.
LogicalResult BackwardBuilder::findOutputs() {
  outputs.resize(op->getNumResults());
  for (Operation &each : forall.getTerminator().getYieldingOps()) {
    Value source = each.getOperand(0);
    auto destination =
        cast<ParallelCombiningOpInterface>(each).getUpdatedDestinations();
    auto argument = cast<BlockArgument>(destination[0].get());
    // Reshapes stand between a tile and its place where the loop's result was
    // transposed.
    while (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                           tensor::CastOp>(source.getDefiningOp()))
      source = source.getDefiningOp()->getOperand(0);
    Output output = {argument.getArgNumber() - unsigned(forall.getRank()), {}};
    if (isa<tensor::ParallelInsertSliceOp>(each))
      output.view = TileView::getTarget(source);
    // A gradient may be rounded more than once: to the type of its operand, and
    // to that of what the operand was made of.
    while (auto generic = source.getDefiningOp<linalg::GenericOp>())
      source = generic.getDpsInputs().front();
    std::optional<unsigned> number = getSum(source);
    if (!number)
      return fail("a result of the loop is no sum of the backward pass");
    if (isInRegisters(*number) && (!output.view || output.view->getDim(2) < 0 ||
                                   output.view->getDim(3) < 0))
      return fail("gradients of keys or values are not inserted as they are");
    outputs[*number] = output;
  }
  if (!outputs[OfQueries])
    return fail("gradients of queries are no result of the loop");
  return success();
}

/// Returns the block of `branch` that contains the step; the other has none.
Block *BackwardBuilder::getBlockOfStep(scf::IfOp branch) {
  return branch.getThenRegion().isAncestor(op->getParentRegion())
             ? branch.thenBlock()
             : branch.elseBlock();
}

/// Returns the number of the destination whose running value `value` is.
std::optional<unsigned> BackwardBuilder::getSum(Value value) {
  while (true) {
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      return std::nullopt;
    Operation *owner = result.getOwner();
    if (owner == op)
      return result.getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(owner))
      value = loop.getYieldedValues()[result.getResultNumber()];
    else if (auto branch = dyn_cast<scf::IfOp>(owner))
      value = getBlockOfStep(branch)->getTerminator()->getOperand(
          result.getResultNumber());
    else if (auto insert = dyn_cast<tensor::InsertSliceOp>(owner))
      value = insert.getSource();
    else
      return std::nullopt;
  }
}

/// Finds the numbers of the sums that loops and branches carry.
void BackwardBuilder::followSums() {
  forall.walk([&](Operation *nested) {
    if (!isa<scf::ForOp, scf::IfOp>(nested))
      return;
    for (OpResult result : nested->getResults())
      if (std::optional<unsigned> number = getSum(result))
        carried[result] = *number;
  });
}

/// Computes, in front of the loops over tiles, which keys are present for any
/// of the queries.
void BackwardBuilder::findPresentKeys() {
  Region &mask = op.getMask();
  if (mask.empty() || op.getAt().empty())
    return;
  Operation *place =
      forall.getBody()->findAncestorOpInBlock(*op.getOperation());
  auto isBefore = [&](Value value) {
    return isOutside(value) ||
           (value.getParentBlock() == place->getBlock() &&
            (isa<BlockArgument>(value) ||
             value.getDefiningOp()->isBeforeInBlock(place)));
  };
  rewriter.setInsertionPoint(place);
  // Values that the mask reads may be computed in the loops, where they were
  // needed first.
  IRMapping ahead;
  std::function<bool(Value)> compute = [&](Value value) {
    if (isBefore(value) || ahead.contains(value))
      return true;
    Operation *producer = value.getDefiningOp();
    if (!producer || !isMemoryEffectFree(producer) ||
        producer->getNumRegions() != 0 ||
        !llvm::all_of(producer->getOperands(), compute))
      return false;
    rewriter.clone(*producer, ahead);
    return true;
  };
  SetVector<Value> used;
  getUsedValuesDefinedAbove(mask, used);
  if (!llvm::all_of(used, compute))
    return;
  // A copy of the op has the mask with these values.
  auto copy = cast<OnlineBackwardOp>(rewriter.clone(*op, ahead));
  IndexMath index(rewriter, loc);
  auto getAll = [&](OpFoldResult size) -> Span {
    return {index.constant(0), index.sub(size, index.constant(1))};
  };
  auto getPoint = [&](Coordinate coordinate) -> Span {
    unsigned dim = getScoreDim(coordinate);
    Value value = op.getAt()[dim];
    // A loop over the heads of a group: keys that any head keeps are present.
    if (!isBefore(value))
      return getAll(scoreSizes[dim]);
    return {value, value};
  };
  MaskBox box = {getPoint(Coordinate::Batch), getPoint(Coordinate::Head),
                 getAll(scoreSizes[2]), getAll(scoreSizes[3])};
  present = dropWholeEnd(
      index, MaskEvaluator(copy.getMask(), box, rewriter, loc).presentKeys(),
      scoreSizes[3]);
  rewriter.eraseOp(copy);
}

/// Finds the reads of the mask that are made for all queries in front of the
/// loops: a column of scores has a query, and its thread would wait for memory.
void BackwardBuilder::findMaskReads() {
  if (op.getMask().empty() || op.getAt().empty())
    return;
  // The tile's place in the whole is that in the tensors.
  for (auto [at, offset] :
       llvm::zip(op.getAt(), statisticViews.front().offsets))
    if (!ValueBoundsConstraintSet::areEqual(at, offset).value_or(false))
      return;
  Operation *root = outer.empty() ? forall.getOperation() : outer.back();
  SetVector<Value> used;
  getUsedValuesDefinedAbove(op.getMask(), used);
  if (llvm::any_of(used, [&](Value value) {
        return root->isAncestor(value.getParentBlock()->getParentOp());
      }))
    return;
  maskReads = findQueryReads(op.getMask());
}

//===----------------------------------------------------------------------===//
// Around the launch
//===----------------------------------------------------------------------===//

/// Returns the types of the words of 32 bits that a number is brought in.
static SmallVector<Type> getWords(Type type) {
  if (!type.isInteger(64))
    return {type};
  return SmallVector<Type>(2, IntegerType::get(type.getContext(), 32));
}

/// Returns the words of a number, the low one first.
static SmallVector<Value> divideIntoWords(OpBuilder &builder, Location loc,
                                          Value number) {
  if (!number.getType().isInteger(64))
    return {number};
  Type word = builder.getI32Type();
  Value bits = arith::ConstantIntOp::create(builder, loc, number.getType(), 32);
  Value high = arith::ShRUIOp::create(builder, loc, number, bits);
  return {arith::TruncIOp::create(builder, loc, word, number),
          arith::TruncIOp::create(builder, loc, word, high)};
}

/// Creates minus the log-sum-exp, its rounding error and minus delta of every
/// query, up to whole tiles, and what the mask reads. For a query without a key
/// and for one that does not exist the former are minus infinity, so that their
/// probabilities are 0, and 0.
void BackwardBuilder::createStatistics() {
  IndexMath index(rewriter, loc);
  OpFoldResult tile = index.constant(sizes.queries);
  SmallVector<OpFoldResult> padded{
      scoreSizes[0], scoreSizes[1],
      index.mul(index.ceilDiv(scoreSizes[2], tile), tile)};
  // Without keys there is nothing that a mask may read.
  if (!maskReads.empty())
    padded[2] = index.select(index.equal(scoreSizes[3], index.constant(0)),
                             index.constant(0), padded[2]);
  ScoreUnit unit = ScoreUnit::get(op.getScale(), op.getScore());
  bool isFused = isFusedBackward(unit, sizes);
  // In f64, the log-sum-exp needs no second number.
  bool hasRest = !isFused && !sizes.accumulation.isF64();
  double factor = isFused ? std::numbers::log2e : 1.0 / unit.unit;
  SmallVector<Value> inits;
  for (int i = 0; i < (hasRest ? 3 : 2); ++i)
    inits.push_back(
        tensor::EmptyOp::create(rewriter, loc, padded, sizes.accumulation));
  size_t numStatistics = inits.size();
  for (tensor::ExtractOp read : maskReads)
    for (Type word : getWords(read.getType()))
      inits.push_back(tensor::EmptyOp::create(rewriter, loc, padded, word));
  SmallVector<AffineMap> maps(inits.size(), rewriter.getMultiDimIdentityMap(3));
  SmallVector<utils::IteratorType> iterators(3, utils::IteratorType::parallel);
  OpFoldResult queries = scoreSizes[2];
  Value lse = statisticViews[0].tensor, delta = statisticViews[1].tensor;
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
        Value sum =
            exact.convert(exact.make<tensor::ExtractOp>(lse, ValueRange(at)));
        Value rowDelta = f.make<tensor::ExtractOp>(delta, ValueRange(at));
        double infinity = std::numeric_limits<double>::infinity();
        // Unordered: a row of NaN has gradients of NaN.
        Value hasKeys = index.materialize(
            index.logicalAnd(exists,
                             exact.compare(arith::CmpFPredicate::UNE, sum,
                                           exact.number(-infinity))),
            /*isBoolean=*/true);
        Value scaled = exact.mul(sum, -factor);
        Value rounded = f.convert(scaled);
        SmallVector<Value> results{
            f.select(hasKeys, rounded, f.number(-infinity))};
        if (hasRest) {
          Value rest = exact.mul(exact.sub(scaled, exact.convert(rounded)),
                                 unit.getBase2());
          results.push_back(f.select(hasKeys, f.convert(rest), f.number(0.0)));
        }
        results.push_back(f.neg(rowDelta));
        if (!IndexMath::isTrue(exists))
          results.back() =
              f.select(index.materialize(exists, /*isBoolean=*/true),
                       results.back(), f.number(0.0));
        IRMapping ofMask;
        differentiate::ScalarTape tape(body, loc);
        for (tensor::ExtractOp read : maskReads) {
          Block &block = *read->getBlock();
          ofMask.map(block.getArguments().drop_back(), ValueRange(at));
          Value number = tape.replay(block, read.getResult(), ofMask);
          llvm::append_range(results, divideIntoWords(body, loc, number));
        }
        linalg::YieldOp::create(body, loc, results);
      });
  shift = statistics.getResult(0);
  if (hasRest)
    rest = statistics.getResult(1);
  negatedDelta = statistics.getResult(numStatistics - 1);
  llvm::append_range(maskWords,
                     statistics.getResults().drop_front(numStatistics));
}

/// Returns the tensors that the launch writes: one for each result of the loop
/// that has all of a sum, then one for each sum over queries, and one for each
/// captured tensor whose gradient goes to memory.
BackwardBuilder::Values BackwardBuilder::createOutputs() {
  Values results;
  auto getInit = [&](unsigned number) {
    Value init = forall.getOutputs()[outputs[number]->result];
    for (scf::ForOp loop : outer)
      init = loop.getTiedLoopInit(cast<BlockArgument>(init))->get();
    return init;
  };
  for (unsigned number : {OfQueries, OfKeys, OfValues}) {
    places.push_back(results.size());
    if (outputs[number])
      results.push_back(getInit(number));
  }
  // A number for each key, in whole tiles, of each query head.
  IndexMath index(rewriter, loc);
  OpFoldResult tile = index.constant(sizes.keys);
  SmallVector<OpFoldResult> padded{
      scoreSizes[0], scoreSizes[1],
      index.mul(index.ceilDiv(scoreSizes[3], tile), tile)};
  firstRead = results.size();
  for (size_t number = 0; number < reads.size(); ++number)
    results.push_back(
        tensor::EmptyOp::create(rewriter, loc, padded, sizes.accumulation));
  createScatteredSums(
      results, [&](size_t capture) { return getInit(OfCaptures + capture); });
  return results;
}

/// Emits everything that replaces the loops; returns their results.
FailureOr<BackwardBuilder::Values> BackwardBuilder::emit() {
  createStatistics();
  planIntegers();
  Values running = createOutputs();
  SmallVector<scf::ForOp> loops;
  for (scf::ForOp loop : llvm::reverse(outer)) {
    loops.push_back(scf::ForOp::create(
        rewriter, loc, mapping.lookupOrDefault(loop.getLowerBound()),
        mapping.lookupOrDefault(loop.getUpperBound()),
        mapping.lookupOrDefault(loop.getStep()), running));
    mapping.map(loop.getInductionVar(), loops.back().getInductionVar());
    running.assign(loops.back().getRegionIterArgs().begin(),
                   loops.back().getRegionIterArgs().end());
    rewriter.setInsertionPointToStart(loops.back().getBody());
    for (Operation &each : loop.getBody()->without_terminator())
      if (each.getNumRegions() == 0)
        rewriter.clone(each, mapping);
  }
  if (failed(emitLaunch(running)))
    return failure();
  rewriter.setInsertionPointAfter(launch);
  Values results(launch.getResults());
  for (scf::ForOp loop : llvm::reverse(loops)) {
    scf::YieldOp::create(rewriter, loc, results);
    results = Values(loop.getResults());
    rewriter.setInsertionPointAfter(loop);
  }
  return finish(results);
}

/// Returns the results of the loops from those of the launch.
BackwardBuilder::Values BackwardBuilder::finish(ValueRange results) {
  Values ofForall(forall.getNumResults());
  auto set = [&](unsigned number, Value value) {
    ofForall[outputs[number]->result] = value;
  };
  set(OfQueries, scaleQueryGradient(results[places[OfQueries]]));
  for (unsigned number : {OfKeys, OfValues})
    if (outputs[number])
      set(number, results[places[number]]);
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    if (auto output = outputs[OfCaptures + number])
      set(OfCaptures + number,
          sumReads(capture, results.drop_front(firstRead),
                   forall.getResult(output->result).getType()));
  for (scf::ForOp loop : outer) {
    Values ofLoop;
    for (Value yielded : loop.getBody()->getTerminator()->getOperands())
      ofLoop.push_back(ofForall[cast<OpResult>(yielded).getResultNumber()]);
    ofForall = ofLoop;
  }
  return ofForall;
}

/// Returns the sums times the scale.
Value BackwardBuilder::scaleQueryGradient(Value sums) {
  double scale = op.getScale().convertToDouble();
  if (scale == 1.0)
    return sums;
  Value init = tensor::EmptyOp::create(
      rewriter, loc, tensor::getMixedSizes(rewriter, loc, sums),
      sizes.accumulation);
  SmallVector<AffineMap> maps(2, rewriter.getMultiDimIdentityMap(4));
  SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
  auto scaled = linalg::GenericOp::create(
      rewriter, loc, init.getType(), sums, init, maps, iterators,
      [&](OpBuilder &body, Location loc, ValueRange in) {
        Formula f = {body, loc, sizes.accumulation};
        linalg::YieldOp::create(body, loc, f.mul(in[0], scale));
      });
  return scaled.getResult(0);
}

//===----------------------------------------------------------------------===//
// In the launch
//===----------------------------------------------------------------------===//

Value BackwardBuilder::loadStatistic(Value tensor, ValueRange indices) {
  auto type = FragmentType::get(rewriter.getContext(), {sizes.queries},
                                sizes.accumulation, LayoutAttr());
  return LoadOp::create(rewriter, loc, type, getMemRef(tensor), indices,
                        ArrayRef<int64_t>{2});
}

/// Stores `sum` times `factor` in the element type of `output`.
void BackwardBuilder::store(Value sum, Value memref, double factor,
                            const TileView &view) {
  auto type = cast<FragmentType>(sum.getType());
  auto element = cast<FloatType>(getElementTypeOrSelf(memref));
  Value rounded =
      FragmentMath(rewriter, loc)
          .map(type.cloneWith(element), sum, {},
               [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
                 Formula f = {body, loc, sizes.accumulation};
                 Value scaled =
                     factor == 1.0 ? elements[0] : f.mul(elements[0], factor);
                 return convertFloats(body, loc, scaled, element);
               });
  StoreOp::create(rewriter, loc, rounded, memref, getIndices(rewriter, view),
                  /*valid=*/Value(),
                  ArrayRef<int64_t>{view.getDim(2), view.getDim(3)});
}

Value BackwardBuilder::fill(ArrayRef<int64_t> shape) {
  return FragmentMath(rewriter, loc)
      .fill(FragmentType::get(rewriter.getContext(), shape, sizes.accumulation,
                              LayoutAttr()),
            0.0);
}

/// Emits the launch, which writes to `running`.
LogicalResult BackwardBuilder::emitLaunch(ValueRange running) {
  SetVector<Value> inputs;
  for (Value operand :
       {op.getQuery(), op.getKey(), op.getValue(), op.getGradient()})
    inputs.insert(TileView::getSource(operand, forall.getRegion())->tensor);
  for (Value statistic : {shift, rest, negatedDelta})
    if (statistic)
      inputs.insert(statistic);
  inputs.insert_range(maskWords);
  forall.walk([&](tensor::ExtractOp read) {
    if (isOutside(read.getTensor()))
      inputs.insert(read.getTensor());
  });
  createLaunch(op.getScheduleAttr(), "attention_backward", inputs.getArrayRef(),
               running);
  tieScatteredSums();
  if (failed(convertBlock(*forall.getBody())))
    return failure();
  for (auto [number, factor] :
       {std::pair<unsigned, double>(OfKeys, op.getScale().convertToDouble()),
        {OfValues, 1.0}})
    if (outputs[number])
      store(sums[number], getOutput(places[number]), factor,
            *outputs[number]->view);
  ReturnOp::create(rewriter, loc);
  return readInLaunch();
}

/// Makes the derivatives of regions, which read tensors, read memrefs; sizes
/// are found outside.
LogicalResult BackwardBuilder::readInLaunch() {
  SmallVector<Operation *> readers;
  launch.walk([&](Operation *nested) {
    if (nested != launch &&
        llvm::any_of(nested->getOperandTypes(), llvm::IsaPred<TensorType>))
      readers.push_back(nested);
  });
  for (Operation *reader : readers) {
    rewriter.setInsertionPoint(reader);
    if (auto read = dyn_cast<tensor::ExtractOp>(reader)) {
      if (Value memref = getMemRef(read.getTensor())) {
        rewriter.replaceOpWithNewOp<memref::LoadOp>(reader, memref,
                                                    read.getIndices());
        continue;
      }
    }
    auto dim = dyn_cast<tensor::DimOp>(reader);
    if (!dim || !dim.getConstantIndex())
      return fail("'" + reader->getName().getStringRef() +
                  "' is computed for each score");
    rewriter.replaceOp(reader,
                       getSize(dim.getSource(), *dim.getConstantIndex()));
  }
  return success();
}

LogicalResult BackwardBuilder::convertOp(Operation &each) {
  // Views are converted where their readers are; the sums of a block begin at
  // zero, in registers or in memory.
  if (isa<tensor::EmptyOp, tensor::ExtractSliceOp, tensor::InsertSliceOp,
          tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
          linalg::FillOp, linalg::GenericOp>(each))
    return success();
  if (auto loop = dyn_cast<scf::ForOp>(each))
    return convertFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(each); branch && branch->isAncestor(op))
    return convertIf(branch);
  if (&each == op.getOperation())
    return convertStep();
  return success(succeeded(cloneScalar(rewriter, each, mapping)));
}

/// Returns the sums in registers, at their places in the lists of values that
/// loops and branches carry.
static SmallVector<unsigned>
getSumsInRegisters(Operation *carrier,
                   const llvm::DenseMap<Value, unsigned> &carried) {
  SmallVector<unsigned> numbers;
  for (OpResult result : carrier->getResults()) {
    auto found = carried.find(result);
    if (found != carried.end() && isInRegisters(found->second))
      numbers.push_back(found->second);
  }
  return numbers;
}

LogicalResult BackwardBuilder::convertFor(scf::ForOp loop) {
  if (!loop->isAncestor(op))
    return fail("a loop of it does not contain its step");
  bool isInnermost = op->getParentOfType<scf::ForOp>() == loop;
  SmallVector<unsigned> numbers = getSumsInRegisters(loop, carried);
  Values inits;
  for (unsigned number : numbers)
    inits.push_back(getSumSoFar(number));
  if (isInnermost)
    for (size_t read = 0; read < reads.size(); ++read)
      inits.push_back(fill(sizes.keys));
  scf::ForOp converted = createLoop(loop, inits);
  setSums(numbers, converted.getRegionIterArgs());
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(converted.getBody());
    if (failed(convertBlock(*loop.getBody())))
      return failure();
    scf::YieldOp::create(rewriter, loc, getSums(numbers, isInnermost));
  }
  setSums(numbers, converted.getResults());
  if (isInnermost)
    storeReads();
  return success();
}

LogicalResult BackwardBuilder::convertIf(scf::IfOp branch) {
  SmallVector<unsigned> numbers = getSumsInRegisters(branch, carried);
  Values before = getSums(numbers, /*withReads=*/true);
  auto converted =
      scf::IfOp::create(rewriter, loc, ValueRange(before).getTypes(),
                        mapping.lookupOrDefault(branch.getCondition()),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(rewriter);
    Block *from = getBlockOfStep(branch);
    bool isThen = from == branch.thenBlock();
    Block *to = isThen ? converted.thenBlock() : converted.elseBlock(),
          *other = isThen ? converted.elseBlock() : converted.thenBlock();
    for (Block *block : {to, other})
      if (!block->empty())
        rewriter.eraseOp(block->getTerminator());
    rewriter.setInsertionPointToEnd(other);
    scf::YieldOp::create(rewriter, loc, before);
    rewriter.setInsertionPointToEnd(to);
    if (failed(convertBlock(*from)))
      return failure();
    scf::YieldOp::create(rewriter, loc, getSums(numbers, /*withReads=*/true));
  }
  setSums(numbers, converted.getResults());
  return success();
}

/// Returns a sum in registers, which begins at zero.
Value BackwardBuilder::getSumSoFar(unsigned number) {
  if (!sums[number])
    sums[number] =
        fill({sizes.keys, number == OfKeys ? sizes.headDim : sizes.valueDim});
  return sums[number];
}

BackwardBuilder::Values BackwardBuilder::getSums(ArrayRef<unsigned> numbers,
                                                 bool withReads) {
  Values values;
  for (unsigned number : numbers)
    values.push_back(getSumSoFar(number));
  if (withReads)
    llvm::append_range(values, readSums);
  return values;
}

/// Continues with `values`: the sums `numbers`, and those of reads if there are
/// more.
void BackwardBuilder::setSums(ArrayRef<unsigned> numbers, ValueRange values) {
  for (auto [number, value] : llvm::zip(numbers, values))
    sums[number] = value;
  values = values.drop_front(numbers.size());
  if (!values.empty())
    readSums.assign(values.begin(), values.end());
}

/// Stores what a block has summed over the queries of one head.
void BackwardBuilder::storeReads() {
  for (auto [number, sum] : llvm::enumerate(readSums))
    StoreOp::create(rewriter, loc, sum, getOutput(firstRead + number),
                    ValueRange{getCoordinate(Coordinate::Batch),
                               getCoordinate(Coordinate::Head),
                               getCoordinate(Coordinate::Key)},
                    /*valid=*/Value(), ArrayRef<int64_t>{2},
                    /*add=*/false);
  readSums.clear();
}

Value BackwardBuilder::getCoordinate(Coordinate coordinate) {
  return mapping.lookupOrDefault(op.getAt()[getScoreDim(coordinate)]);
}

/// Moves a read in front of what uses it first. A loop of one step becomes
/// none, and then the order stays: delta and the scores are not in registers
/// together.
static void moveToFirstUse(Operation *read) {
  Operation *first = nullptr;
  for (Operation *user : read->getUsers()) {
    Operation *here = read->getBlock()->findAncestorOpInBlock(*user);
    if (!first || here->isBeforeInBlock(first))
      first = here;
  }
  read->moveBefore(first);
}

LogicalResult BackwardBuilder::convertStep() {
  TileView queryView = *TileView::getSource(op.getQuery(), forall.getRegion()),
           keyView = *TileView::getSource(op.getKey(), forall.getRegion());
  for (Value operand :
       {op.getQuery(), op.getGradient(), op.getKey(), op.getValue()})
    if (failed(getOperandView(operand)))
      return failure();
  BackwardStep step;
  step.op = op;
  step.reads = reads;
  step.scattered = scattered;
  step.tile = getScoreTile(op, queryView, keyView);

  // Absent rows, which a masked probability, 0, is multiplied by, become zeros.
  auto getPresent = [&] { return getPresentRows(present, step.tile.at.key); };
  FailureOr<Value> key =
      loadAhead(op.getKey(), sizes.keys, sizes.headDim, getPresent);
  FailureOr<Value> value =
      loadAhead(op.getValue(), sizes.keys, sizes.valueDim, getPresent);
  if (failed(key) || failed(value))
    return failure();
  step.key = *key;
  step.value = *value;
  step.query = loadTile(rewriter, queryView, sizes.queries, sizes.headDim);
  step.gradient = loadTile(
      rewriter, *TileView::getSource(op.getGradient(), forall.getRegion()),
      sizes.queries, sizes.valueDim);
  Values rows;
  for (OpFoldResult offset : statisticViews.front().offsets)
    rows.push_back(
        getValueOrCreateConstantIndexOp(rewriter, loc, getMapped(offset)));
  step.shift = loadStatistic(shift, rows);
  if (rest)
    step.rest = loadStatistic(rest, rows);
  step.negatedDelta = loadStatistic(negatedDelta, rows);
  for (tensor::ExtractOp read : maskReads)
    step.tile.tileReads.push_back({read, /*line=*/std::nullopt});
  for (Value words : maskWords) {
    auto type = SharedType::get(rewriter.getContext(), {1, sizes.queries},
                                getElementTypeOrSelf(words), /*swizzle=*/0);
    step.maskWords.push_back(LoadOp::create(
        rewriter, loc, type, getMemRef(words), rows, ArrayRef<int64_t>{1, 2}));
  }

  if (op.getScheduleAttr().getCaptures() == Captures::Tiled)
    for (auto [region, captures] :
         {std::pair(&op.getScore(), &step.scoreCaptures),
          {&op.getMask(), &step.maskCaptures}})
      for (const TileRead &read :
           getTileReads(op, findTileReads(*region), step.tile.at.key)) {
        captures->push_back(loadCapture(rewriter, read, step.tile));
        if (!captures->back().tile)
          return failure();
        step.tile.tileReads.push_back(read);
      }

  bool isLoop = bool(op->getParentOfType<scf::ForOp>());
  if (!isLoop)
    for (size_t read = 0; read < reads.size(); ++read)
      readSums.push_back(fill(sizes.keys));
  BackwardGradients soFar = {Value(), getSumSoFar(OfKeys),
                             getSumSoFar(OfValues), readSums};
  FailureOr<BackwardGradients> next =
      emitBackwardStep(rewriter, sizes, step, soFar);
  if (failed(next) || !reason.empty())
    return failure();
  moveToFirstUse(step.negatedDelta.getDefiningOp());
  sums[OfKeys] = next->key;
  sums[OfValues] = next->value;
  readSums = next->reads;
  rows.push_back(arith::ConstantIndexOp::create(rewriter, loc, 0));
  StoreOp::create(rewriter, loc, next->query, getOutput(places[OfQueries]),
                  rows, /*valid=*/Value(), ArrayRef<int64_t>{2, 3},
                  /*add=*/true);
  if (!isLoop)
    storeReads();
  return success();
}
