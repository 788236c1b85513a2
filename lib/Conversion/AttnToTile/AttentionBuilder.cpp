//===- AttentionBuilder.cpp - Tiled attention as one launch ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBuilder.h"
#include "FragmentMath.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"
#include "fovea/Dialect/Tile/IR/Warps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/ControlFlowSinkUtils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::tile;

/// The largest head dim whose accumulator fits the registers.
static constexpr int64_t kLargestHeadDim = 256;

/// The most queries of a tile that are read into registers, and their largest
/// head dim: where these leave half of a thread's rows empty, there are
/// registers.
static constexpr int64_t kMostReadQueries = 8, kLargestReadDim = 128;

/// A bound of dimension 2 of `tile`, as a multiple of `multiple`.
static std::optional<int64_t> getPaddedBound(Value tile, int64_t multiple) {
  FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, {tile, /*dim=*/2},
      /*stopCondition=*/nullptr, /*closedUB=*/true);
  if (failed(bound))
    return std::nullopt;
  return llvm::alignTo(std::max<int64_t>(*bound, 1), multiple);
}

LogicalResult AttentionBuilder::checkSizes() {
  int64_t results = 0;
  forall.walk([&](Operation *op) {
    if (auto pass = dyn_cast<OnlineAttentionOp>(op))
      passes.push_back(pass);
    if (auto finalize = dyn_cast<FinalizeOp>(op)) {
      end = finalize;
      ++results;
    }
  });
  if (passes.empty() || results != 1)
    return fail("its loop is not one attention");
  OnlineAttentionOp first = passes.front();
  ScheduleAttr schedule = first.getScheduleAttr();
  if (!schedule || !schedule.getWarps())
    return fail("its schedule has no warps");

  auto query = cast<RankedTensorType>(first.getQuery().getType());
  auto value = cast<RankedTensorType>(first.getValue().getType());
  int64_t headDim = query.getDimSize(3), valueDim = value.getDimSize(3);
  sizes.element = cast<FloatType>(query.getElementType());
  sizes.accumulation = first.getAccumulationType();
  sizes.keys = sizes.queries = 0;
  auto grid = tile::WarpGrid::get(schedule.getQueryTile(), schedule.getWarps());
  sizes.keyWarps = grid.columns;
  for (OnlineAttentionOp pass : passes) {
    for (Value operand : {pass.getQuery(), pass.getKey(), pass.getValue()}) {
      if (getElementTypeOrSelf(operand) != sizes.element)
        return fail("queries, keys and values have different element types");
      auto view = TileView::getSource(operand, forall.getRegion());
      if (view && isOutside(view->tensor))
        continue;
      Operation *producer = view ? view->tensor.getDefiningOp() : nullptr;
      if (!producer)
        return fail("an operand is no tile of a tensor");
      return fail("'" + producer->getName().getStringRef() +
                  "' is computed within the loop");
    }
    if (pass.getRows())
      return fail("its queries are packed");
    std::optional<int64_t> queries =
        getPaddedBound(pass.getQuery(), kProductMultiple * grid.rows);
    std::optional<int64_t> keys =
        getPaddedBound(pass.getKey(), kProductMultiple * grid.columns);
    if (!keys || !queries)
      return fail("a tile has no known bound");
    sizes.queries = std::max(sizes.queries, *queries);
    sizes.keys = std::max(sizes.keys, *keys);
  }
  for (int64_t dim : {headDim, valueDim})
    if (ShapedType::isDynamic(dim) || dim > kLargestHeadDim || dim < 1)
      return fail("a head dim is dynamic or above " + Twine(kLargestHeadDim));
  sizes.headDim = llvm::alignTo(headDim, kProductMultiple);
  sizes.valueDim = llvm::alignTo(valueDim, kProductMultiple);
  return success();
}

/// Returns true if the rows of a tile are the rows from `first` on of its
/// tensor.
static bool isPartOfWhole(const TileView &view, OpFoldResult first) {
  int64_t dim = view.dims[2];
  if (dim < 0 || view.offsets.empty())
    return dim >= 0 && isZeroInteger(first);
  return isEqualConstantIntOrValue(view.offsets[dim], first);
}

void AttentionBuilder::findPresentKeys(OnlineAttentionOp pass) {
  Region &mask = pass.getMask();
  if (mask.empty() || !pass.updatesAcc())
    return;
  std::optional<TileView> query =
      TileView::getSource(pass.getQuery(), forall.getRegion());
  std::optional<TileView> key =
      TileView::getSource(pass.getKey(), forall.getRegion());
  SmallVector<OpFoldResult> at(4, rewriter.getIndexAttr(0));
  if (!pass.getAt().empty())
    at = getAsOpFoldResult(pass.getAt());

  // Emitted before the loops, for all queries and keys, if the tensors are the
  // whole, or the op says what that is; else for those of each tile.
  bool saysWhole = !pass.getWhole().empty();
  bool isWhole =
      (saysWhole || isPartOfWhole(*query, at[2])) && isPartOfWhole(*key, at[3]);
  SetVector<Value> used(pass.getWhole().begin(), pass.getWhole().end());
  getUsedValuesDefinedAbove(mask, used);
  for (OpFoldResult coordinate : ArrayRef(at).take_front(2))
    if (auto value = dyn_cast<Value>(coordinate))
      used.insert(value);
  Operation *place = pass;
  auto isBefore = [](Operation *loop) {
    return [loop](Value value) {
      return !loop->isAncestor(value.getParentBlock()->getParentOp());
    };
  };
  while (isWhole && place->getParentOp() != forall &&
         llvm::all_of(used, isBefore(place->getParentOp())))
    place = place->getParentOp();

  emitted.emplace_back(place, place->getPrevNode());
  rewriter.setInsertionPoint(place);
  IndexMath index(rewriter, loc);
  auto getSize = [&](const TileView &view) {
    return view.getRowCount(rewriter, loc, isWhole);
  };
  auto getSpan = [&](OpFoldResult first, OpFoldResult size) -> Span {
    if (isWhole)
      first = index.constant(0);
    OpFoldResult end = index.add(first, size);
    return {first, index.sub(end, index.constant(1))};
  };
  OpFoldResult queries = isWhole && saysWhole
                             ? getAsOpFoldResult(pass.getWhole()[1])
                             : getSize(*query);
  MaskBox box = {{at[0], at[0]},
                 {at[1], at[1]},
                 getSpan(at[2], queries),
                 getSpan(at[3], getSize(*key))};
  PresentKeys keys = MaskEvaluator(mask, box, rewriter, loc).presentKeys();
  if (keys.missesTables) {
    // The tile's own keys end where tables say.
    if (place != pass)
      emitted.emplace_back(pass, pass->getPrevNode());
    rewriter.setInsertionPoint(pass);
    index = IndexMath(rewriter, loc);
    OpFoldResult count = key->getRowCount(rewriter, loc, /*ofWhole=*/false);
    keys = {std::nullopt, index.add(at[3], count)};
  }
  if (isWhole)
    keys = dropWholeEnd(index, keys, getSize(*key));
  present[pass] = keys;
}

/// Returns the op that gathers the elements of `tensor`, if any.
static Operation *findGather(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  while (isa_and_present<tensor::CastOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp, tensor::ExtractSliceOp,
                         linalg::TransposeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || generic.getBody()->getOps<tensor::ExtractOp>().empty())
    return nullptr;
  return op;
}

void AttentionBuilder::findRowMaps() {
  DenseSet<Value> seen;
  ScheduleAttr schedule = passes.front().getScheduleAttr();
  wideners = schedule.getWideners();
  for (OnlineAttentionOp pass : passes)
    for (Value operand : {pass.getQuery(), pass.getKey(), pass.getValue()}) {
      auto view = TileView::getSource(operand, forall.getRegion());
      int64_t rank = cast<RankedTensorType>(view->tensor.getType()).getRank();
      if (!seen.insert(view->tensor).second || view->getDim(2) < 0 ||
          view->getDim(3) != rank - 1)
        continue;
      bool widens = schedule.getWiden() && operand != pass.getQuery();
      if (std::optional<RowMap> map = RowMap::get(view->tensor, forall, widens))
        rowMaps.insert({view->tensor, std::move(*map)});
      else if (Operation *gather = findGather(view->tensor))
        remark::missed(
            gather->getLoc(),
            remark::RemarkOpts::name("gather").category("convert-attn-to-tile"))
            << "what is gathered is written before attention reads it: loads "
               "gather only whole rows of one tensor, which nothing else reads";
    }
  if (!schedule.getWiden())
    return;
  auto isWidened = [&](Value operand) {
    auto view = TileView::getSource(operand, forall.getRegion());
    return getWidenedType(view->tensor) != nullptr;
  };
  bool areKeysWidened = llvm::all_of(
      passes, [&](OnlineAttentionOp pass) { return isWidened(pass.getKey()); });
  bool areAllWidened =
      areKeysWidened && llvm::all_of(passes, [&](OnlineAttentionOp pass) {
        return isWidened(pass.getValue());
      });
  bool areFew =
      sizes.headDim <= kLargestReadDim &&
      llvm::all_of(passes, [](OnlineAttentionOp pass) {
        int64_t queries =
            cast<RankedTensorType>(pass.getQuery().getType()).getDimSize(2);
        return !ShapedType::isDynamic(queries) && queries <= kMostReadQueries;
      });
  // Products that widen keys have queries in registers.
  readsQueries =
      schedule.widensInProducts() ? areKeysWidened : areFew && areAllWidened;
  // Bytes become f16 by one instruction, of two numbers, and bf16 by four.
  if (readsQueries && areAllWidened && sizes.element.isBF16())
    sizes.element = Float16Type::get(sizes.element.getContext());
}

LogicalResult AttentionBuilder::run() {
  if (failed(checkSizes()))
    return failure();
  for (OnlineAttentionOp pass : passes)
    findPresentKeys(pass);
  findSums();
  findRowMaps();
  Operation *before = forall->getPrevNode();
  SmallVector<Value> inputs = getTensorsRead().takeVector();
  rewriter.setInsertionPoint(forall);
  createLaunch(passes.front().getScheduleAttr(), "attention", inputs,
               forall.getOutputs());
  for (auto [argument, operand] :
       llvm::zip_equal(forall.getRegionIterArgs(), launch.getOutputsMutable()))
    memrefs[argument] = launch.getTiedArgument(operand);
  if (succeeded(convertBlock(*forall.getBody())) && succeeded(checkStores())) {
    if (choice && storesIfChosen == stores)
      moveIntoChoice();
    else if (choice)
      joinChoices();
    ReturnOp::create(rewriter, loc);
    rewriter.replaceOp(forall, launch);
    return success();
  }
  while (forall->getPrevNode() != before)
    rewriter.eraseOp(forall->getPrevNode());
  for (auto [place, before] : llvm::reverse(emitted))
    while (place->getPrevNode() != before)
      rewriter.eraseOp(place->getPrevNode());
  return failure();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Returns true if only elementwise ops read what is filled: they have the
/// number itself.
static bool isElementOf(linalg::FillOp op) {
  return llvm::all_of(op->getUsers(), llvm::IsaPred<linalg::LinalgOp>);
}

/// Returns true if `op` is a transposition by which rows of several heads
/// become those of a tile, or back, or gives them places in one.
static bool isView(Operation &op) {
  auto insertion = dyn_cast<tensor::InsertSliceOp>(op);
  bool isOfPlaces =
      insertion && insertion.getDest().getDefiningOp<tensor::EmptyOp>();
  if (!isOfPlaces && !isa<linalg::TransposeOp>(op))
    return false;
  return llvm::all_of(
      op.getUsers(),
      llvm::IsaPred<tensor::CollapseShapeOp, tensor::ParallelInsertSliceOp,
                    linalg::TransposeOp>);
}

LogicalResult AttentionBuilder::convertOp(Operation &op) {
  // Views are converted where their readers are.
  if (isa<tensor::EmptyOp, tensor::ExtractSliceOp, tensor::ExpandShapeOp,
          tensor::CollapseShapeOp, tensor::CastOp>(op) ||
      isView(op))
    return success();
  if (auto fill = dyn_cast<linalg::FillOp>(op); fill && !isElementOf(fill))
    return convertFill(fill);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return convertFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return convertIf(branch);
  if (auto pass = dyn_cast<OnlineAttentionOp>(op))
    return convertOnline(pass);
  if (auto finalize = dyn_cast<FinalizeOp>(op)) {
    lastBeforeEnd = &rewriter.getInsertionBlock()->back();
    return convertFinalize(finalize);
  }
  if (auto elementwise = dyn_cast<linalg::LinalgOp>(op))
    return convertElementwise(elementwise);
  return success(succeeded(cloneScalar(rewriter, op, mapping)));
}

void AttentionBuilder::findSums() {
  auto unite = [&](ValueRange as, ValueRange bs) {
    for (auto [a, b] : llvm::zip_equal(as, bs))
      if (isa<TensorType>(a.getType()))
        sums.unionSets(a, b);
  };
  forall.walk([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      unite(loop.getResults(), loop.getInitArgs());
      unite(loop.getResults(), loop.getRegionIterArgs());
      unite(loop.getResults(), loop.getYieldedValues());
    } else if (auto branch = dyn_cast<scf::IfOp>(op);
               branch && branch.getNumResults()) {
      unite(branch.getResults(), branch.thenYield().getResults());
      unite(branch.getResults(), branch.elseYield().getResults());
    } else if (auto pass = dyn_cast<OnlineAttentionOp>(op)) {
      unite(pass.getSum(), passes.front().getSum());
      unite(pass.getSum(), pass.getResult(2));
    }
  });
}

FragmentType AttentionBuilder::getRunningType(Value value) {
  if (cast<RankedTensorType>(value.getType()).getRank() == 4)
    return sizes.getOutput();
  return sums.isEquivalent(value, passes.front().getSum()) ? sizes.getSums()
                                                           : sizes.getRows();
}

LogicalResult AttentionBuilder::convertFill(linalg::FillOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getResultTypes().front());
  if (!type || type.getElementType() != sizes.accumulation ||
      (type.getRank() != 3 && type.getRank() != 4))
    return fail("a tensor is filled that is no running value");
  Value filled =
      FillOp::create(rewriter, op.getLoc(), getRunningType(op.getResult(0)),
                     mapping.lookupOrDefault(op.getInputs().front()));
  mapping.map(op.getResult(0), filled);
  return success();
}

Value AttentionBuilder::getRunningValue(Value value) {
  auto fill = value.getDefiningOp<linalg::FillOp>();
  if (fill && isOutside(value) && !mapping.contains(value) &&
      failed(convertFill(fill)))
    return value;
  return mapping.lookupOrDefault(value);
}

LogicalResult AttentionBuilder::convertYield(Operation *terminator) {
  SmallVector<Value> values;
  for (Value value : terminator->getOperands()) {
    Value mapped = mapping.lookupOrDefault(value);
    if (isa<TensorType>(mapped.getType()))
      return fail("a loop carries a tensor that is no running value");
    values.push_back(mapped);
  }
  scf::YieldOp::create(rewriter, terminator->getLoc(), values);
  return success();
}

LogicalResult AttentionBuilder::convertFor(scf::ForOp op) {
  if (op->getParentOp() == forall && failed(loadInit(/*isEnd=*/false)))
    return failure();
  SmallVector<Value> inits;
  for (Value init : op.getInitArgs()) {
    inits.push_back(getRunningValue(init));
    if (isa<TensorType>(inits.back().getType()))
      return fail("a running value does not begin as a linalg.fill");
  }
  // The least position is 0: without this bound none is known. Loops of other
  // branches may have the same end.
  Value end = op.getUpperBound(), whole = mapping.lookupOrDefault(end);
  llvm::scope_exit restore([&] { mapping.map(end, whole); });
  if (!getConstantIntValue(end) && !end.getDefiningOp<tensor::DimOp>()) {
    IndexMath index(rewriter, loc);
    mapping.map(end, index.materialize(index.max(whole, index.constant(0))));
  }
  FailureOr<Value> bound = getBound(op);
  if (failed(bound))
    return failure();
  Value ends = isDescending() ? getEnds(op) : Value();
  FailureOr<Value> begin = ends ? bound : getBegin(op);
  if (failed(begin))
    return failure();
  scf::ForOp loop = createLoop(op, inits);
  loop.setLowerBound(*begin);
  if (!ends)
    loop.setUpperBound(*bound);
  mapping.map(op.getRegionIterArgs(), loop.getRegionIterArgs());
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToEnd(loop.getBody());
  if (ends)
    mapping.map(
        op.getInductionVar(),
        arith::SubIOp::create(rewriter, loc, ends, loop.getInductionVar())
            .getResult());
  llvm::SaveAndRestore order(isLastFirst, ends != nullptr);
  if (failed(convertBlock(*op.getBody())))
    return failure();
  mapping.map(op.getResults(), loop.getResults());
  return convertYield(op.getBody()->getTerminator());
}

LogicalResult AttentionBuilder::convertIf(scf::IfOp op) {
  // The types of running values follow from what a branch yields.
  SmallVector<Type> types;
  for (Value result : op.getResults()) {
    auto tensor = dyn_cast<RankedTensorType>(result.getType());
    if (tensor && tensor.getRank() != 3 && tensor.getRank() != 4)
      return fail("a branch yields a tensor that is no running value");
    types.push_back(tensor ? Type(getRunningType(result)) : result.getType());
  }
  auto branch = scf::IfOp::create(rewriter, op.getLoc(), types,
                                  mapping.lookupOrDefault(op.getCondition()),
                                  /*addThenBlock=*/true,
                                  /*addElseBlock=*/bool(op.elseBlock()));
  for (auto [from, to] :
       llvm::zip_equal(op->getRegions(), branch->getRegions())) {
    if (from.empty())
      continue;
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(&to.front());
    if (failed(convertBlock(from.front())) ||
        failed(convertYield(from.front().getTerminator())))
      return failure();
  }
  mapping.map(op.getResults(), branch.getResults());
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

FailureOr<RunningValues>
AttentionBuilder::getRunningValues(Value acc, Value max, Value sum) {
  RunningValues running{getRunningValue(acc), getRunningValue(max),
                        getRunningValue(sum)};
  for (Value value : {running.acc, running.max, running.sum})
    if (!isa<FragmentType>(value.getType()))
      return fail("a running value does not begin as a linalg.fill");
  return running;
}

/// Returns true if a tile that has fewer than `size` keys, of which it has
/// `keys`, is the last one: its first key is where tiles of that size begin.
/// Where keys in front of it may be absent, a tile may begin behind them.
static bool isCutAtEnd(OpFoldResult keys, int64_t size) {
  auto value = dyn_cast<Value>(keys);
  auto least = value ? value.getDefiningOp<affine::AffineMinOp>() : nullptr;
  return least &&
         llvm::is_contained(least.getMap().getResults(),
                            getAffineConstantExpr(size, value.getContext()));
}

LogicalResult AttentionBuilder::convertOnline(OnlineAttentionOp op) {
  FailureOr<RunningValues> running =
      getRunningValues(op.getAcc(), op.getMax(), op.getSum());
  if (failed(running))
    return failure();
  FailureOr<Value> query =
      loadAhead(op.getQuery(), sizes.queries, sizes.headDim);
  FailureOr<TileView> queryView = getOperandView(op.getQuery());
  FailureOr<TileView> keyView = getOperandView(op.getKey());
  FailureOr<TileView> valueView = getOperandView(op.getValue());
  if (failed(query) || failed(queryView) || failed(keyView) ||
      failed(valueView))
    return failure();

  KeyStep step;
  step.op = op;
  for (const TileView &bytes : {*keyView, *valueView})
    if (FloatType from = getWidenedType(bytes.tensor))
      step.from = from;
  bool testsRows = readsRows(op.getMask());
  FailureOr<Value> partial = Value();
  if (op.getPartial() && !testsRows && failed(partial = getPartial(op)))
    return failure();
  step.tile = getScoreTile(op, *queryView, *keyView);
  step.isLastFirst = isLastFirst && isCutAtEnd(step.tile.keys, sizes.keys);
  if (*partial)
    step.tile.partial = *partial;
  // Absent keys may be anything, but may also be nowhere. Absent values, which
  // a masked probability, 0, is multiplied by, become zeros.
  SmallVector<Value> rows =
      getPresentRows(present.lookup(op), step.tile.at.key);
  step.loadKeys = [&](OpBuilder &builder) {
    return loadTile(builder, *keyView, sizes.keys, sizes.headDim, rows,
                    /*wholeRuns=*/true);
  };
  step.loadValues = [&](OpBuilder &builder) {
    return loadTile(builder, *valueView, sizes.keys, sizes.valueDim, rows);
  };
  if (op.getScheduleAttr().getCaptures() == Captures::Tiled)
    step.tile.tileReads =
        getTileReads(op, TileReads::get(op.getScore(), op.getMask()).reads,
                     step.tile.at.key);
  step.loadCapture = [&](OpBuilder &builder, const TileRead &read) {
    return loadCapture(builder, read, step.tile);
  };
  // Many rows of a tile see all keys of a step where others do not.
  if (testsRows)
    step.arePartial = [&](OpBuilder &builder) {
      return emitArePartial(builder, op, step.tile);
    };
  Value left = *query;
  if (readsQueries)
    std::tie(left, step.factors) = readQuery(*query);
  RunningValues next = emitOnlineStep(rewriter, sizes, step, left, *running);
  mapping.map(op.getResults(), ValueRange{next.acc, next.max, next.sum});
  return success(reason.empty());
}

std::pair<Value, Value> AttentionBuilder::readQuery(Value tile) {
  auto [entry, isNew] = readQueries.try_emplace(tile);
  if (!isNew)
    return entry->second;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointAfterValue(tile);
  auto shared = cast<SharedType>(tile.getType());
  auto stored = FragmentType::get(rewriter.getContext(), shared.getShape(),
                                  shared.getElementType(), LayoutAttr());
  Value query = FromSharedOp::create(rewriter, loc, stored, tile);
  if (shared.getElementType() == sizes.element)
    return entry->second = {query, Value()};

  FragmentMath math(rewriter, loc);
  FragmentType rows = sizes.getRows();
  Value numbers =
      math.map(stored.cloneWith(sizes.accumulation), query, {},
               [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
                 Value wide =
                     convertFloats(body, loc, elements[0], sizes.accumulation);
                 return math::AbsFOp::create(body, loc, wide);
               });
  Value largest = math.reduce(Reduction::Max, numbers, math.fill(rows, 0.0));
  // In bits of f32: powers of two by which a row's largest number becomes one
  // from 2^13 to 2^14, and back. Zero, and what is no finite number, may keep
  // any.
  constexpr int64_t kMantissa = 23, kBias = 127, kLargest = kBias + 13;
  auto getPowers = [&](bool isInverse) {
    return math.map(
        rows, largest, {},
        [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
          Type type = body.getI32Type();
          auto constant = [&](int64_t exponent) -> Value {
            return arith::ConstantIntOp::create(body, loc,
                                                exponent << kMantissa, 32);
          };
          Value bits = arith::BitcastOp::create(body, loc, type, elements[0]);
          Value exponent = arith::AndIOp::create(
              body, loc, bits, constant((1 << (31 - kMantissa)) - 1));
          exponent = arith::MaxSIOp::create(body, loc, exponent,
                                            constant(kLargest - kBias + 1));
          exponent = arith::MinSIOp::create(body, loc, exponent,
                                            constant(2 * kBias - 1));
          Value power =
              isInverse ? arith::SubIOp::create(body, loc, exponent,
                                                constant(kLargest - kBias))
                        : arith::SubIOp::create(
                              body, loc, constant(kLargest + kBias), exponent);
          return arith::BitcastOp::create(body, loc, sizes.accumulation, power);
        });
  };
  Value narrow = math.map(
      stored.cloneWith(sizes.element), query, getPowers(/*isInverse=*/false),
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value wide = convertFloats(body, loc, elements[0], sizes.accumulation);
        Value scaled = arith::MulFOp::create(body, loc, wide, elements[1]);
        return convertFloats(body, loc, scaled, sizes.element);
      });
  return entry->second = {narrow, getPowers(/*isInverse=*/true)};
}

LogicalResult AttentionBuilder::loadInit(bool isEnd) {
  Value tile = end.getInitLse();
  if (!tile || init)
    return success();
  std::optional<TileView> view = TileView::getSource(tile, forall.getRegion());
  Value memref = view ? getMemRef(view->tensor) : Value();
  if (!memref)
    return fail("the state that rows begin from is no tile of a tensor");
  SmallVector<Value> needed;
  for (OpFoldResult offset : view->offsets)
    if (auto value = dyn_cast<Value>(offset))
      needed.push_back(value);
  if (Value when = end.getWhen())
    needed.push_back(when);
  auto isKnown = [&](Value value) {
    return isOutside(value) || mapping.contains(value);
  };
  if (!isEnd && !llvm::all_of(needed, isKnown))
    return success();

  auto element = cast<FloatType>(getElementTypeOrSelf(tile));
  FragmentType type = sizes.getRows().cloneWith(element);
  SmallVector<Value> indices = getIndices(rewriter, *view);
  auto load = [&](OpBuilder &builder, ValueRange at) -> Value {
    Value value = memref::LoadOp::create(builder, loc, memref, at);
    if (!end.getWhen())
      return value;
    Formula f = {builder, loc, element};
    return f.select(mapping.lookupOrDefault(end.getWhen()), value,
                    f.number(-std::numeric_limits<double>::infinity()));
  };
  int64_t rank = cast<RankedTensorType>(tile.getType()).getRank();
  if (rank == 1) {
    init = FillOp::create(rewriter, loc, type, load(rewriter, indices));
    return success();
  }
  int64_t rowDim = view->getDim(rank - 1);
  if (rowDim < 0)
    return fail("the state's rows do not run along a dimension of it");
  Value size = getSize(view->tensor, rowDim);
  init = FragmentMath(rewriter, loc)
             .map(type, {}, {},
                  [&](OpBuilder &builder, ValueRange, ValueRange coordinates) {
                    // Rows behind the last repeat it.
                    IndexMath index(builder, loc);
                    SmallVector<Value> at(indices);
                    at[rowDim] = index.materialize(
                        index.min(index.add(at[rowDim], coordinates[0]),
                                  index.sub(size, index.constant(1))));
                    return load(builder, at);
                  });
  return success();
}

LogicalResult AttentionBuilder::convertFinalize(FinalizeOp op) {
  FailureOr<RunningValues> running =
      getRunningValues(op.getAcc(), op.getMax(), op.getSum());
  if (failed(running) || failed(loadInit(/*isEnd=*/true)))
    return failure();
  OnlineAttentionOp pass = passes.front();
  ScoreUnit unit = ScoreUnit::get(pass);
  if (launch.getPersistent() == ItemOrder::Shared && passes.size() == 1)
    *running = emitCombinedParts(rewriter, op.getLoc(), sizes, *running, unit);
  if (sizes.keyWarps > 1)
    running->sum = exchangeParts(rewriter, op.getLoc(), running->sum);
  Value sum = emitWholeSum(rewriter, op.getLoc(), sizes, *running, unit, init);
  auto type = cast<FloatType>(getElementTypeOrSelf(op.getOutput()));
  Value output =
      emitOutput(rewriter, op.getLoc(), sizes, running->acc, sum, type);
  if (failed(storeTile(output, op.getResult(0), {2, 3})))
    return failure();
  if (!op.getLse())
    return success();
  Value lse =
      emitLogSumExp(rewriter, op.getLoc(), sizes, running->max, sum, unit, init,
                    cast<FloatType>(getElementTypeOrSelf(op.getLse())));
  if (failed(storeTile(lse, op.getResult(1), {2})))
    return failure();
  if (!op.getRest())
    return success();
  Value rest = emitLogSumExpRest(rewriter, op.getLoc(), sizes, running->max,
                                 sum, unit, lse);
  return storeTile(rest, op.getResult(2), {2});
}

void AttentionBuilder::moveIntoChoice() {
  SmallVector<Operation *> behind;
  for (Operation *op = choice->getNextNode(); op; op = op->getNextNode())
    behind.push_back(op);
  for (Region &region : choice->getRegions()) {
    OpBuilder builder(region.front().getTerminator());
    IRMapping values;
    for (Operation *op : behind) {
      auto other = dyn_cast<scf::IfOp>(op);
      if (!other || other.getCondition() != choice.getCondition()) {
        builder.clone(*op, values);
        continue;
      }
      Region &same = other->getRegion(region.getRegionNumber());
      for (Operation &nested : same.front().without_terminator())
        builder.clone(nested, values);
    }
  }
  for (Operation *op : llvm::reverse(behind))
    rewriter.eraseOp(op);
}

void AttentionBuilder::joinChoices() {
  SmallVector<scf::IfOp> branches;
  for (auto branch : choice->getBlock()->getOps<scf::IfOp>())
    if (branch.getCondition() == choice.getCondition() &&
        !branch->isBeforeInBlock(choice))
      branches.push_back(branch);
  scf::IfOp last = branches.pop_back_val();
  for (Region &region : last->getRegions()) {
    Operation *first = &region.front().front();
    for (scf::IfOp branch : branches) {
      Block &other = branch->getRegion(region.getRegionNumber()).front();
      for (Operation &op :
           llvm::make_early_inc_range(other.without_terminator()))
        rewriter.moveOpBefore(&op, first);
    }
  }
  for (scf::IfOp branch : branches)
    rewriter.eraseOp(branch);
  DominanceInfo dominance(last->getParentOp());
  controlFlowSink(
      last->getRegions(), dominance,
      [](Operation *op, Region *) { return isMemoryEffectFree(op); },
      [&](Operation *op, Region *region) {
        rewriter.moveOpBefore(op, &region->front().front());
      });
}

LogicalResult AttentionBuilder::checkStores() {
  auto insertions = forall.getTerminator().getYieldingOps();
  if (stores == std::distance(insertions.begin(), insertions.end()))
    return success();
  return fail("a result of the loop is not made of the output");
}

/// Returns a condition, and what it is where `size` is not zero; null if `size`
/// is not chosen so. Sets `size` to what it is then.
static std::pair<Value, bool> takeCondition(OpFoldResult &size) {
  auto value = dyn_cast<Value>(size);
  auto select =
      value ? value.getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  if (!select)
    return {};
  Value choices[] = {select.getFalseValue(), select.getTrueValue()};
  for (bool isZeroIf : {false, true})
    if (isConstantIntValue(choices[isZeroIf], 0)) {
      size = getAsOpFoldResult(choices[!isZeroIf]);
      return {select.getCondition(), !isZeroIf};
    }
  return {};
}

/// Returns true if only loops read the tensor that `view` is in, a result of a
/// loop whose memory begins at a multiple of what a vector has, and so each row
/// of the tile.
static bool hasAlignedRows(const TileView &view, scf::ForallOp loop) {
  constexpr int64_t kBytes = 16;
  auto argument = dyn_cast<BlockArgument>(view.tensor);
  auto type = cast<RankedTensorType>(view.tensor.getType());
  if (!argument || argument.getOwner() != loop.getBody() ||
      view.offsets.empty() || type.isDynamicDim(type.getRank() - 1))
    return false;
  OpOperand *out = loop.getTiedOpOperand(argument);
  int64_t bytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
  auto isRead = [](Operation *user) {
    return isa<tensor::ExtractSliceOp>(user) &&
           user->getParentOfType<scf::ForallOp>();
  };
  return out->get().getDefiningOp<tensor::EmptyOp>() && bytes % kBytes == 0 &&
         isConstantIntValue(view.offsets.back(), 0) &&
         llvm::all_of(loop.getTiedOpResult(out).getUsers(), isRead);
}

LogicalResult AttentionBuilder::storeTile(Value fragment, Value tile,
                                          ArrayRef<int64_t> tileDims) {
  fragments[tile] = {fragment, llvm::to_vector(tileDims)};
  std::optional<std::vector<TileView>> views = TileView::getTargets(tile);
  if (!views)
    return fail("a result is not inserted into a result of the loop as it is");
  for (TileView &view : *views) {
    Value memref = getMemRef(view.tensor);
    if (!memref)
      return fail("a result is inserted into no result of the loop");
    SmallVector<int64_t> dims = view.getDims(tileDims);
    if (llvm::is_contained(dims, -1))
      return fail("a result's rows do not run along a dimension of it");
    auto isKnown = [&](OpFoldResult place) {
      auto value = dyn_cast<Value>(place);
      return !value || isOutside(value) || mapping.contains(value);
    };
    if (!llvm::all_of(view.offsets, isKnown))
      return fail("what says where a result is stored is computed behind it");
    int64_t rows = tileDims.front();
    OpBuilder::InsertionGuard guard(rewriter);
    if (int64_t dim = view.dims[rows]; dim >= 0 && !view.sizes.empty())
      if (auto [condition, when] = takeCondition(view.sizes[dim]); condition) {
        if (!isKnown(condition))
          return fail("what decides whether a result is stored is computed "
                      "behind it");
        auto branch =
            scf::IfOp::create(rewriter, loc, mapping.lookupOrDefault(condition),
                              /*withElseRegion=*/true);
        rewriter.setInsertionPointToStart(when ? branch.thenBlock()
                                               : branch.elseBlock());
        if (!choice)
          choice = branch;
        ++storesIfChosen;
      }
    // The store itself stops at the memref's end.
    Value valid;
    if (!view.isClipped(rows, sizes.queries)) {
      if (view.dims[rows] >= 0 && !view.sizes.empty() &&
          !isKnown(view.sizes[view.dims[rows]]))
        return fail("what says how much of a result is stored is computed "
                    "behind it");
      valid = getValueOrCreateConstantIndexOp(rewriter, loc,
                                              getTileSize(view, rows));
    }
    auto store = StoreOp::create(rewriter, loc, fragment, memref,
                                 getIndices(rewriter, view), valid, dims);
    if (view.inner)
      store.setInner(view.inner);
    if (view.used < view.inner)
      store.setUsed(view.used);
    store.setAligned(tileDims.size() > 1 && hasAlignedRows(view, forall));
    ++stores;
  }
  return success();
}
