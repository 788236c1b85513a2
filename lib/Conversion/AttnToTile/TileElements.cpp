//===- TileElements.cpp - Elementwise ops on tiles in registers -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops that read attention's output, or its log-sum-exp, element by element,
// which `attn-tile` has moved into the loop over tiles, become maps of
// fragments. What makes their other operands in the loop becomes a part of the
// maps' regions.
//
//===----------------------------------------------------------------------===//

#include "AttentionBuilder.h"
#include "FragmentMath.h"

#include "fovea/Analysis/ElementCost.h"
#include "fovea/Analysis/IndexMath.h"
#include "fovea/Conversion/Utils/FastMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::tile;

/// What a loop of an op, or a dimension of a tile, runs along.
enum class Along { Nothing, Rows, Columns };
using Dims = SmallVector<Along>;
/// What the dimensions of a fragment are.
static constexpr Along kFragmentDims[] = {Along::Rows, Along::Columns};

namespace fovea {
/// The computation of the elements of an op's results.
class TileElements {
public:
  TileElements(AttentionBuilder &builder, linalg::LinalgOp op)
      : builder(builder), rewriter(builder.rewriter), loc(op.getLoc()), op(op),
        wantedBits(builder.exactFunctions ? kAllBits : countWantedBits(op)) {}

  bool readsFragments();
  /// Emits a map for each result, and stores it.
  LogicalResult emit();

private:
  /// Where the elements of a tile come from: a fragment, an op in the loop, or
  /// a tensor from outside.
  struct Source {
    TileView view;
    /// What the dimensions of the tensor run along.
    Dims dims;
    const AttentionBuilder::TileFragment *fragment = nullptr;
    linalg::LinalgOp producer = {};

    /// Returns what the loops of the producer run along.
    Dims getLoops();
    int64_t find(Along along) const {
      const auto *place = llvm::find(dims, along);
      return place == dims.end() ? -1 : place - dims.begin();
    }
  };

  /// Returns the fragment that stands for all of the tensor that `tile` views,
  /// and sets the view; null: there is none.
  const AttentionBuilder::TileFragment *
  getFragment(Value tile, std::optional<TileView> &view) const;
  /// Finds the loops along which the rows and the columns of the fragments that
  /// the op reads run.
  void findLoops();
  FailureOr<Source> getSource(OpOperand &operand, linalg::LinalgOp reader,
                              ArrayRef<Along> loops);
  /// Returns true for a tensor that is read as one tile of rows and columns: it
  /// is loaded ahead, where neighbours can come together. Booleans cannot: in a
  /// vector they are bits.
  static bool isPlane(const Source &source) {
    return source.find(Along::Rows) >= 0 && source.find(Along::Columns) >= 0 &&
           !getElementTypeOrSelf(source.view.tensor).isInteger(1);
  }

  /// Appends the fragments that elements of `each`, whose loops run along
  /// `loops`, are computed from. They are in the order in which `emitElement`
  /// visits them.
  LogicalResult addFragments(linalg::LinalgOp each, ArrayRef<Along> loops);
  Value loadPlane(const Source &source);

  /// Emits an element of result `number` of `each`.
  FailureOr<Value> emitElement(OpBuilder &body, linalg::LinalgOp each,
                               unsigned number, ArrayRef<Along> loops);
  FailureOr<Value> emitRead(OpBuilder &body, Source &source);
  /// Returns the place, along dimension `dim`, of an element in the tensor;
  /// that of the tensor's last where the tile ends sooner than the fragment,
  /// whose elements from there on nobody needs.
  Value getPlace(OpBuilder &body, const Source &source, int64_t dim,
                 Value first);
  OpFoldResult getCoordinate(Along along) const;
  int64_t getExtent(Along along) const {
    return along == Along::Rows ? builder.sizes.queries
                                : builder.sizes.valueDim;
  }

  AttentionBuilder &builder;
  RewriterBase &rewriter;
  Location loc;
  linalg::LinalgOp op;
  /// The significant bits that are wanted of the op's results.
  unsigned wantedBits;
  Dims loops;
  /// Fragments with rows and columns, and with rows alone.
  SmallVector<Value> planes, rows;
  /// In a map: the elements of these that are yet to be visited, and the
  /// element's coordinates.
  ValueRange elementsOfPlanes, elementsOfRows, coordinates;
};
} // namespace fovea

static Dims getDims(AffineMap map, ArrayRef<Along> loops) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return loops[cast<AffineDimExpr>(expr).getPosition()];
  });
}

/// Returns true if each loop of `op` is one of dimensions of its tiles.
static bool isElementwise(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op.getNumReductionLoops() == 0 &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
           return map.isProjectedPermutation();
         });
}

static AffineMap getResultMap(linalg::LinalgOp op, unsigned number) {
  return op.getMatchingIndexingMap(op.getDpsInitOperand(number));
}

Dims TileElements::Source::getLoops() {
  Dims loops(producer.getNumLoops(), Along::Nothing);
  unsigned number = cast<OpResult>(view.tensor).getResultNumber();
  for (auto [expr, along] :
       llvm::zip_equal(getResultMap(producer, number).getResults(), dims))
    loops[cast<AffineDimExpr>(expr).getPosition()] = along;
  return loops;
}

const AttentionBuilder::TileFragment *
TileElements::getFragment(Value tile, std::optional<TileView> &view) const {
  if (!isa<RankedTensorType>(tile.getType()))
    return nullptr;
  view = TileView::getSource(tile, builder.forall.getRegion());
  if (!view || !view->offsets.empty())
    return nullptr;
  auto entry = builder.fragments.find(view->tensor);
  return entry == builder.fragments.end() ? nullptr : &entry->second;
}

bool TileElements::readsFragments() {
  std::optional<TileView> view;
  return llvm::any_of(op.getDpsInputs(),
                      [&](Value tile) { return getFragment(tile, view); });
}

void TileElements::findLoops() {
  loops.assign(op.getNumLoops(), Along::Nothing);
  for (OpOperand *operand : op.getDpsInputOperands()) {
    std::optional<TileView> view;
    const auto *fragment = getFragment(operand->get(), view);
    if (!fragment)
      continue;
    AffineMap map = op.getMatchingIndexingMap(operand);
    for (auto [expr, dim] : llvm::zip_equal(map.getResults(), view->dims))
      for (auto [along, ofFragment] : llvm::zip(kFragmentDims, fragment->dims))
        if (dim == ofFragment)
          loops[cast<AffineDimExpr>(expr).getPosition()] = along;
  }
  // A number of each row may be repeated for all columns.
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!llvm::is_contained(loops, Along::Columns))
    for (auto [expr, size] :
         llvm::zip_equal(getResultMap(op, 0).getResults(), type.getShape())) {
      Along &along = loops[cast<AffineDimExpr>(expr).getPosition()];
      if (size != 1 && along == Along::Nothing)
        along = Along::Columns;
    }
}

FailureOr<TileElements::Source> TileElements::getSource(OpOperand &operand,
                                                        linalg::LinalgOp reader,
                                                        ArrayRef<Along> loops) {
  auto view = TileView::getSource(operand.get(), builder.forall.getRegion());
  if (!view)
    return builder.fail("an elementwise op reads a tile with strides");
  Source source{*view, {}};
  source.dims.assign(cast<RankedTensorType>(view->tensor.getType()).getRank(),
                     Along::Nothing);
  Dims dims = getDims(reader.getMatchingIndexingMap(&operand), loops);
  for (auto [dim, along] : llvm::zip_equal(view->dims, dims)) {
    if (dim >= 0)
      source.dims[dim] = along;
    else if (along != Along::Nothing)
      return builder.fail("an elementwise op reads a tile of another shape");
  }
  if (builder.isOutside(view->tensor)) {
    if (!builder.getMemRef(view->tensor))
      return builder.fail("an elementwise op reads a tensor that is gathered");
    return source;
  }
  source.fragment = getFragment(operand.get(), view);
  if (!source.fragment)
    source.producer = view->tensor.getDefiningOp<linalg::LinalgOp>();
  if (!view->offsets.empty() ||
      (!source.fragment &&
       !(source.producer && isElementwise(source.producer))))
    return builder.fail("an elementwise op reads a part of a tile, or one that "
                        "no elementwise op makes");
  if (source.fragment)
    for (auto [along, dim] : llvm::zip(kFragmentDims, source.fragment->dims))
      if (source.dims[dim] != along)
        return builder.fail("an elementwise op reads elements of other places");
  return source;
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

LogicalResult TileElements::addFragments(linalg::LinalgOp each,
                                         ArrayRef<Along> loops) {
  for (OpOperand &operand : each->getOpOperands()) {
    if (!each.payloadUsesValueFromOperand(&operand) ||
        !isa<RankedTensorType>(operand.get().getType()))
      continue;
    FailureOr<Source> source = getSource(operand, each, loops);
    if (failed(source))
      return failure();
    if (source->fragment)
      (source->fragment->dims.size() == 2 ? planes : rows)
          .push_back(source->fragment->fragment);
    else if (source->producer) {
      if (failed(addFragments(source->producer, source->getLoops())))
        return failure();
    } else if (isPlane(*source))
      planes.push_back(loadPlane(*source));
  }
  return success();
}

Value TileElements::loadPlane(const Source &source) {
  // What the first op of the output reads is loaded before the output is
  // computed, which takes as long as the load. There are no registers for more,
  // and none to load ahead of an op whose place is found later.
  OpBuilder::InsertionGuard guard(rewriter);
  Operation *last = std::exchange(builder.lastBeforeEnd, nullptr);
  if (last && llvm::all_of(source.view.offsets, [&](OpFoldResult offset) {
        auto value = dyn_cast<Value>(builder.getMapped(offset));
        Operation *producer = value ? value.getDefiningOp() : nullptr;
        return !producer || producer->getBlock() != last->getBlock() ||
               !last->isBeforeInBlock(producer);
      }))
    rewriter.setInsertionPointAfter(last);
  auto type = FragmentType::get(
      rewriter.getContext(), builder.sizes.getOutput().getShape(),
      getElementTypeOrSelf(source.view.tensor), LayoutAttr());
  return LoadOp::create(
      rewriter, loc, type, builder.getMemRef(source.view.tensor),
      builder.getIndices(rewriter, source.view),
      ArrayRef<int64_t>{source.find(Along::Rows), source.find(Along::Columns)});
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

OpFoldResult TileElements::getCoordinate(Along along) const {
  if (along == Along::Nothing)
    return rewriter.getIndexAttr(0);
  return coordinates[along == Along::Rows ? 0 : 1];
}

Value TileElements::getPlace(OpBuilder &body, const Source &source, int64_t dim,
                             Value first) {
  IndexMath index(body, loc);
  Along along = source.dims[dim];
  OpFoldResult place = index.add(first, getCoordinate(along));
  Value tensor = source.view.tensor;
  std::optional<int64_t> size =
      source.view.sizes.empty()
          ? cast<RankedTensorType>(tensor.getType()).getDimSize(dim)
          : getConstantIntValue(source.view.sizes[dim]);
  if (along != Along::Nothing && size != getExtent(along))
    place = index.min(
        place, index.sub(builder.getSize(tensor, dim), index.constant(1)));
  return index.materialize(place);
}

FailureOr<Value> TileElements::emitRead(OpBuilder &body, Source &source) {
  auto takeFirst = [](ValueRange &elements) {
    Value first = elements.front();
    elements = elements.drop_front();
    return first;
  };
  if (source.fragment)
    return takeFirst(source.fragment->dims.size() == 2 ? elementsOfPlanes
                                                       : elementsOfRows);
  if (source.producer)
    return emitElement(body, source.producer,
                       cast<OpResult>(source.view.tensor).getResultNumber(),
                       source.getLoops());
  if (isPlane(source))
    return takeFirst(elementsOfPlanes);
  SmallVector<Value> places = builder.getIndices(body, source.view);
  for (auto [dim, place] : llvm::enumerate(places))
    place = getPlace(body, source, static_cast<int64_t>(dim), place);
  return memref::LoadOp::create(body, loc,
                                builder.getMemRef(source.view.tensor), places)
      .getResult();
}

FailureOr<Value> TileElements::emitElement(OpBuilder &body,
                                           linalg::LinalgOp each,
                                           unsigned number,
                                           ArrayRef<Along> loops) {
  IRMapping values(builder.mapping);
  for (OpOperand &operand : each->getOpOperands()) {
    if (!each.payloadUsesValueFromOperand(&operand))
      continue;
    Value element = builder.mapping.lookupOrDefault(operand.get());
    if (isa<RankedTensorType>(operand.get().getType())) {
      FailureOr<Source> source = getSource(operand, each, loops);
      FailureOr<Value> read = emitRead(body, *source);
      if (failed(read))
        return failure();
      element = *read;
    }
    values.map(each.getMatchingBlockArgument(&operand), element);
  }
  for (Operation &nested : each.getBlock()->without_terminator()) {
    if (auto position = dyn_cast<linalg::IndexOp>(nested))
      values.map(position.getResult(),
                 IndexMath(body, loc).materialize(
                     getCoordinate(loops[position.getDim()])));
    else if (FailureOr<Operation *> copy =
                 builder.cloneScalar(body, nested, values);
             failed(copy))
      return failure();
    else if (mayApproximate(nested, wantedBits))
      addFastMath(*copy, arith::FastMathFlags::afn);
  }
  return values.lookupOrDefault(
      each.getBlock()->getTerminator()->getOperand(number));
}

LogicalResult TileElements::emit() {
  findLoops();
  for (OpResult result : op->getResults()) {
    planes.clear();
    rows.clear();
    if (failed(addFragments(op, loops)))
      return failure();
    unsigned number = result.getResultNumber();
    Dims dims = getDims(getResultMap(op, number), loops);
    SmallVector<int64_t> places;
    for (Along along : kFragmentDims)
      if (const auto *place = llvm::find(dims, along); place != dims.end())
        places.push_back(place - dims.begin());
    FragmentType shape = places.size() == 2 ? builder.sizes.getOutput()
                                            : builder.sizes.getRows();
    FragmentType type = shape.cloneWith(getElementTypeOrSelf(result));
    // Of a row there is one element in a map of rows.
    bool isOfRows = places.size() == 1;
    LogicalResult isEmitted = success();
    Value fragment =
        FragmentMath(rewriter, loc)
            .map(type, isOfRows ? rows : planes,
                 isOfRows ? ValueRange() : ValueRange(rows),
                 [&](OpBuilder &body, ValueRange elements,
                     ValueRange at) -> Value {
                   elementsOfPlanes = elements.take_front(planes.size());
                   elementsOfRows = elements.drop_front(planes.size());
                   coordinates = at;
                   FailureOr<Value> element =
                       emitElement(body, op, number, loops);
                   isEmitted = LogicalResult(element);
                   // Any value of the type will do: the program is thrown away.
                   if (failed(element))
                     return arith::ConstantOp::create(
                         body, loc, body.getZeroAttr(type.getElementType()));
                   return *element;
                 });
    // The graph's own numbers, not scores.
    fragment.getDefiningOp<MapOp>().setExact(true);
    if (failed(isEmitted) ||
        failed(builder.storeTile(fragment, result, places)))
      return failure();
  }
  return success();
}

LogicalResult AttentionBuilder::convertElementwise(linalg::LinalgOp op) {
  TileElements elements(*this, op);
  if (!elements.readsFragments())
    return success();
  if (!isElementwise(op))
    return fail("'" + op->getName().getStringRef() +
                "' of the output is no elementwise op");
  return elements.emit();
}
