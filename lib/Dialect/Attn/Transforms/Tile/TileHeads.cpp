//===- TileHeads.cpp - Heads of a group from the rows of a tile -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileHeads.h"

#include "TileTransposes.h"

#include "../EmptyTensor.h"
#include "../HeadGroups.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/Multiples.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The dimensions of a tensor of rows, and their number.
enum : int64_t { kBatch, kHead, kRow, kFeature, kRank };

namespace {
/// The heads of a group that are rows, and the queries of each: one head after
/// another, or one query, of which there may be any number. A query then has
/// `places` for heads, of which the first ones have one.
struct GroupRows {
  int64_t heads = 1, queries = 1;
  bool isByQueries = false;
  int64_t places = 1;

  int64_t getAll() const { return heads * queries; }
  /// Returns true if there are places without a head.
  bool hasEmpty() const { return places > heads; }
  /// The rows that are neighbours in the memory of a head, or of a query.
  int64_t getInner() const { return isByQueries ? places : queries; }
  /// Returns true if a tile from `first` on, of so many `rows`, is a box of
  /// memory (`tile.load` and `tile.store` with `inner`): of whole queries, or
  /// of all rows of a head.
  bool isBox(OpFoldResult first, OpFoldResult rows) const;
};

/// Ops that make [B, S, Hkv * G, D] of rows, [B, Hkv, G * S, D], which are one
/// head after another; or [B, Hkv * G, S, ...] of those by queries.
struct Ungrouping : GroupRows {
  SmallVector<Operation *> ops;

  static std::optional<Ungrouping> get(Value rows);

  Value getResult() const { return ops.back()->getResult(0); }
};

/// What a loop writes of a result of rows.
struct WrittenRows {
  scf::ForallOp loop;
  unsigned number;
  /// The slice of the destination, if there is one, and its insertion.
  tensor::ExtractSliceOp slice;
  tensor::ParallelInsertSliceOp insertion;

  /// Returns none if it is neither a row nor a tile of a head.
  static std::optional<WrittenRows> get(scf::ForallOp loop, unsigned number);

  bool isRow() {
    return slice && isConstantIntValue(slice.getMixedSizes()[kRow], 1);
  }
  void rewrite(RewriterBase &rewriter, const GroupRows &heads, Value init);
};
} // namespace

/// Returns the only op that reads `value`, if it has one result, else null.
static Operation *getReader(Value value) {
  if (!value.hasOneUse())
    return nullptr;
  Operation *reader = *value.user_begin();
  return reader->getNumResults() == 1 ? reader : nullptr;
}

std::optional<Ungrouping> Ungrouping::get(Value rows) {
  auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(getReader(rows));
  int64_t rank = expand ? expand.getSrcType().getRank() : 0;
  if (rank <= kRow ||
      expand.getReassociationIndices() != getGroupsWithPair(rank, kRow))
    return std::nullopt;
  Ungrouping result;
  result.ops = {expand};
  result.heads = expand.getResultType().getDimSize(kRow);
  result.queries = expand.getResultType().getDimSize(kRow + 1);
  Operation *reader = getReader(expand);
  std::optional<Transposition> swap = Transposition::get(reader);
  result.isByQueries = swap && swap->permutation == getSwap(rank + 1, kRow);
  if (result.isByQueries) {
    std::swap(result.heads, result.queries);
    result.ops.push_back(reader);
    reader = getReader(reader->getResult(0));
  }
  result.places = result.heads;
  if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(reader);
      slice && result.isByQueries) {
    if (!dropsPlaces(slice, kRow))
      return std::nullopt;
    result.heads = slice.getType().getDimSize(kRow);
    result.ops.push_back(slice);
    reader = getReader(slice);
  }
  auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(reader);
  if (!collapse ||
      collapse.getReassociationIndices() != getGroupsWithPair(rank, kHead) ||
      ShapedType::isDynamic(result.heads))
    return std::nullopt;
  result.ops.push_back(collapse);
  if (result.isByQueries)
    return result;
  std::optional<Transposition> transpose =
      Transposition::get(getReader(collapse));
  if (!transpose || transpose->permutation != getSwap(kRank, kHead) ||
      ShapedType::isDynamic(result.queries))
    return std::nullopt;
  result.ops.push_back(transpose->op);
  return result;
}

std::optional<WrittenRows> WrittenRows::get(scf::ForallOp loop,
                                            unsigned number) {
  WrittenRows written = {loop, number, {}, {}};
  for (Operation *user : loop.getRegionIterArgs()[number].getUsers()) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    auto insertion = dyn_cast<tensor::ParallelInsertSliceOp>(user);
    if (slice && !written.slice)
      written.slice = slice;
    else if (insertion && !written.insertion)
      written.insertion = insertion;
    else
      return std::nullopt;
  }
  auto [slice, insertion] = std::pair(written.slice, written.insertion);
  if (!insertion)
    return std::nullopt;
  SmallVector<OpFoldResult> sizes = insertion.getMixedSizes(),
                            place = insertion.getMixedOffsets();
  if (!insertion.hasUnitStride() || !isConstantIntValue(sizes[kBatch], 1) ||
      !isConstantIntValue(sizes[kHead], 1) ||
      (place.size() > kFeature && !isConstantIntValue(place[kFeature], 0)))
    return std::nullopt;
  bool isSame = !slice || (slice.getMixedOffsets() == place &&
                           slice.getMixedSizes() == sizes &&
                           slice.getType() == insertion.getSourceType());
  // Of a tile's slice no values are read where there were none.
  bool isTile =
      insertion.getSourceType().getRank() == int64_t(place.size()) &&
      (!slice || loop.getOutputs()[number].getDefiningOp<tensor::EmptyOp>());
  if (!isSame || (!isTile && !written.isRow()))
    return std::nullopt;
  return written;
}

/// Returns the op that chooses whether `rows` are written, or none; null if
/// they always are.
static arith::SelectOp getChoice(OpFoldResult rows) {
  auto value = dyn_cast<Value>(rows);
  auto choice =
      value ? value.getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  return choice && (isConstantIntValue(choice.getTrueValue(), 0) ||
                    isConstantIntValue(choice.getFalseValue(), 0))
             ? choice
             : arith::SelectOp();
}

/// Returns how many rows are written, if any are.
static OpFoldResult getRowsIfAny(OpFoldResult rows) {
  arith::SelectOp choice = getChoice(rows);
  if (!choice)
    return rows;
  return getAsOpFoldResult(isConstantIntValue(choice.getTrueValue(), 0)
                               ? choice.getFalseValue()
                               : choice.getTrueValue());
}

bool GroupRows::isBox(OpFoldResult first, OpFoldResult rows) const {
  if (ShapedType::isDynamic(getInner()) || !llvm::isPowerOf2_64(getInner()))
    return false;
  if (!isByQueries)
    return isConstantIntValue(rows, getAll());
  // The rows of one query run along one dimension, of which a tile has all.
  if (hasEmpty() && isConstantIntValue(rows, places))
    return false;
  Multiples ofPlaces(places);
  return ofPlaces.contains(first) && ofPlaces.contains(rows);
}

/// Returns true if what is written is a row, or a tile that is a box.
static bool canBeHeads(WrittenRows &written, const GroupRows &heads) {
  return written.isRow() ||
         heads.isBox(written.insertion.getMixedOffsets()[kRow],
                     getRowsIfAny(written.insertion.getMixedSizes()[kRow]));
}

void WrittenRows::rewrite(RewriterBase &rewriter, const GroupRows &heads,
                          Value init) {
  Location loc = loop.getLoc();
  BlockArgument output = loop.getRegionIterArgs()[number];
  rewriter.modifyOpInPlace(loop, [&] {
    loop.getOutputsMutable()[number].assign(init);
    output.setType(init.getType());
    loop.getResult(number).setType(init.getType());
  });
  SmallVector<OpFoldResult> place = insertion.getMixedOffsets(),
                            sizes = insertion.getMixedSizes(),
                            ones = insertion.getMixedStrides();
  // What says where rows are comes behind what has said so alone.
  auto setBehind = [&](OpFoldResult known) {
    if (auto value = dyn_cast<Value>(known))
      rewriter.setInsertionPointAfterValue(value);
    else
      rewriter.setInsertionPointToStart(loop.getBody());
  };
  setBehind(place[kHead]);
  IndexMath atHead(rewriter, loc);
  OpFoldResult head = atHead.mul(place[kHead], atHead.constant(heads.heads)),
               query = rewriter.getIndexAttr(0);
  Value source = insertion.getSource();
  if (isRow()) {
    rewriter.setInsertionPoint(slice);
    IndexMath math(rewriter, loc);
    OpFoldResult inner = math.constant(heads.getInner()),
                 outer = math.truncDiv(place[kRow], inner),
                 rest = math.sub(place[kRow], math.mul(outer, inner));
    head = math.add(head, heads.isByQueries ? rest : outer);
    query = heads.isByQueries ? outer : rest;
  } else {
    if (heads.isByQueries) {
      setBehind(place[kRow]);
      IndexMath math(rewriter, loc);
      query = math.truncDiv(place[kRow], math.constant(heads.places));
    }
    // A choice stays one: it says whether the tile is written at all.
    setBehind(sizes[kRow]);
    IndexMath math(rewriter, loc);
    auto countOuter = [&](OpFoldResult rows) {
      return math.truncDiv(rows, math.constant(heads.getInner()));
    };
    arith::SelectOp choice = getChoice(sizes[kRow]);
    OpFoldResult outer =
        choice
            ? math.select(choice.getCondition(),
                          countOuter(getAsOpFoldResult(choice.getTrueValue())),
                          countOuter(getAsOpFoldResult(choice.getFalseValue())))
            : countOuter(sizes[kRow]);
    rewriter.setInsertionPoint(loop.getTerminator());
    int64_t inner = heads.getInner();
    source = splitRows(rewriter, loc, source, outer, inner);
    if (heads.isByQueries)
      source = dropPlaces(rewriter, loc, source, kRow, inner = heads.heads);
    source = swapWithNext(rewriter, loc, source, kHead);
    sizes[kHead] = rewriter.getIndexAttr(inner);
    sizes[kRow] = outer;
  }
  if (!heads.isByQueries)
    std::swap(head, query);
  place[kHead] = head;
  place[kRow] = query;
  if (slice && isRow()) {
    auto row = tensor::ExtractSliceOp::create(rewriter, loc, slice.getType(),
                                              output, place, sizes, ones);
    if (source == slice)
      source = row;
    rewriter.replaceOp(slice, row);
  } else if (slice) {
    // A tile was computed in it.
    rewriter.setInsertionPoint(slice);
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(slice, slice.getType(),
                                                 slice.getSizes());
  }
  rewriter.setInsertionPoint(insertion);
  rewriter.replaceOpWithNewOp<tensor::ParallelInsertSliceOp>(
      insertion, source, output, place, sizes, ones);
}

/// Returns the rows that an iteration of `loop` writes of all of its results,
/// if these are single ones of queries that have `places` for `heads`, and the
/// iterations are theirs: those of places without a head need not run then.
static Value getOnlyRow(scf::ForallOp loop, int64_t heads, int64_t places) {
  Value row;
  for (unsigned number : llvm::seq(loop.getNumResults())) {
    std::optional<Ungrouping> own = Ungrouping::get(loop.getResult(number));
    std::optional<WrittenRows> written = WrittenRows::get(loop, number);
    if (!own || !written || !written->isRow() || own->heads != heads ||
        own->places != places)
      return {};
    auto place = dyn_cast_if_present<BlockArgument>(
        dyn_cast<Value>(written->insertion.getMixedOffsets()[kRow]));
    if (!place || (row && row != place) || !loop.isNormalized() ||
        !llvm::is_contained(loop.getInductionVars(), place))
      return {};
    OpFoldResult end = loop.getMixedUpperBound()[place.getArgNumber()];
    Value all = loop.getOutputs()[number];
    if (!ValueBoundsConstraintSet::areEqual(end, {all, kRow}).value_or(false))
      return {};
    row = place;
  }
  return row;
}

/// Leaves out the iterations of `loop`, each of a `row`, of places without a
/// head.
static void skipPlaces(RewriterBase &rewriter, scf::ForallOp loop, Value row,
                       int64_t heads, int64_t places) {
  unsigned dim = cast<BlockArgument>(row).getArgNumber();
  rewriter.setInsertionPoint(loop);
  SmallVector<OpFoldResult> upper = loop.getMixedUpperBound();
  AffineExpr rows = rewriter.getAffineSymbolExpr(0);
  upper[dim] = affine::makeComposedFoldedAffineApply(
      rewriter, loop.getLoc(), rows.floorDiv(places) * heads, {upper[dim]});
  SmallVector<Value> bounds;
  SmallVector<int64_t> known;
  dispatchIndexOpFoldResults(upper, bounds, known);
  rewriter.modifyOpInPlace(loop, [&] {
    loop.getDynamicUpperBoundMutable().assign(bounds);
    loop.setStaticUpperBound(known);
  });
  rewriter.setInsertionPointToStart(loop.getBody());
  IndexMath math(rewriter, loop.getLoc());
  OpFoldResult query = math.truncDiv(row, math.constant(heads)),
               member = math.sub(row, math.mul(query, math.constant(heads)));
  Value place = math.materialize(
      math.add(math.mul(query, math.constant(places)), member));
  rewriter.replaceUsesWithIf(row, place, [&](OpOperand &use) {
    Operation *user = loop.getBody()->findAncestorOpInBlock(*use.getOwner());
    return place.getDefiningOp()->isBeforeInBlock(user);
  });
}

/// Does so for one result of `loop`.
static bool fuseHeadsOfResult(RewriterBase &rewriter, scf::ForallOp loop,
                              unsigned number, Value onlyRow) {
  std::optional<Ungrouping> heads = Ungrouping::get(loop.getResult(number));
  if (!heads)
    return false;
  std::optional<WrittenRows> written = WrittenRows::get(loop, number);
  if (!written || (written->isRow() && heads->hasEmpty() && !onlyRow))
    return false;
  // What the loop adds to is written by another one, or by none.
  Value init = loop.getOutputs()[number], first = init;
  std::optional<WrittenRows> before;
  if (auto other = init.getDefiningOp<scf::ForallOp>()) {
    unsigned result = cast<OpResult>(init).getResultNumber();
    before = WrittenRows::get(other, result);
    first = other.getOutputs()[result];
    if (!before || !init.hasOneUse() || first.getDefiningOp<scf::ForallOp>() ||
        (before->isRow() && heads->hasEmpty()) || !canBeHeads(*before, *heads))
      return false;
  }
  if (!canBeHeads(*written, *heads))
    return false;
  auto type = cast<RankedTensorType>(heads->getResult().getType());
  rewriter.setInsertionPoint(before ? before->loop : loop);
  IndexMath math(rewriter, loop.getLoc());
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loop.getLoc(), first);
  OpFoldResult all = math.mul(sizes[kHead], math.constant(heads->heads));
  if (heads->isByQueries) {
    AffineExpr rows = rewriter.getAffineSymbolExpr(0);
    sizes[kRow] = affine::makeComposedFoldedAffineApply(
        rewriter, loop.getLoc(), rows.floorDiv(heads->places), {sizes[kRow]});
    sizes[kHead] = all;
  } else {
    sizes[kRow] = all;
  }
  init = emptyOf(rewriter, loop.getLoc(), type, sizes);
  if (before) {
    before->rewrite(rewriter, *heads, init);
    init = before->loop.getResult(before->number);
  }
  Value result = loop.getResult(number);
  SmallVector<Operation *> ops = heads->ops;
  rewriter.replaceAllUsesWith(heads->getResult(), result);
  written->rewrite(rewriter, *heads, init);
  for (Operation *op : llvm::reverse(ops))
    rewriter.eraseOp(op);
  return true;
}

bool fovea::attn::fuseHeadsOfResults(RewriterBase &rewriter,
                                     scf::ForallOp loop) {
  Value onlyRow;
  std::optional<Ungrouping> first =
      loop.getNumResults() ? Ungrouping::get(loop.getResult(0)) : std::nullopt;
  if (first && first->hasEmpty())
    onlyRow = getOnlyRow(loop, first->heads, first->places);
  bool isChanged = false;
  for (unsigned number : llvm::seq(loop.getNumResults()))
    isChanged |= fuseHeadsOfResult(rewriter, loop, number, onlyRow);
  if (isChanged && onlyRow)
    skipPlaces(rewriter, loop, onlyRow, first->heads, first->places);
  return isChanged;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

void fovea::attn::keepWhole(RewriterBase &rewriter, scf::ForallOp loop,
                            Value rows, Value whole) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop);
  for (OpOperand &use : rows.getUses()) {
    auto pass = dyn_cast<OnlineAttentionOp>(use.getOwner());
    if (!pass || pass.getQuery() != rows || pass.getMask().empty() ||
        !pass.getWhole().empty())
      continue;
    SmallVector<Value> sizes;
    for (unsigned dim : {kHead, kRow})
      sizes.push_back(getValueOrCreateConstantIndexOp(
          rewriter, loop.getLoc(),
          tensor::getMixedSize(rewriter, loop.getLoc(), whole, dim)));
    rewriter.modifyOpInPlace(pass,
                             [&] { pass.getWholeMutable().assign(sizes); });
  }
}

/// Lets `slice`, in `loop`, be one of the queries that it has rows of.
static void fuseHeadsOfQuery(RewriterBase &rewriter, scf::ForallOp loop,
                             tensor::ExtractSliceOp slice) {
  auto collapse = slice.getSource().getDefiningOp<tensor::CollapseShapeOp>();
  Value split = collapse ? collapse.getSrc() : Value();
  std::optional<Transposition> swap =
      Transposition::get(split ? split.getDefiningOp() : nullptr);
  if (swap && swap->permutation == getSwap(kRank + 1, kRow))
    split = swap->input;
  else
    swap.reset();
  int64_t places = 0;
  if (Value of = swap ? getHeadsOfPlaces(split, kRow) : Value()) {
    places = cast<RankedTensorType>(split.getType()).getDimSize(kRow);
    split = of;
  }
  auto expand = split ? split.getDefiningOp<tensor::ExpandShapeOp>() : nullptr;
  RankedTensorType type = slice.getType();
  if (!expand || expand.getSrcType().getRank() != kRank ||
      type.getRank() != kRank ||
      expand.getReassociationIndices() != getGroupsWithPair(kRank, kHead) ||
      collapse.getReassociationIndices() != getGroupsWithPair(kRank, kRow))
    return;
  GroupRows heads = {expand.getResultType().getDimSize(kRow),
                     expand.getResultType().getDimSize(kRow + 1),
                     swap.has_value(), places};
  if (!places)
    heads.places = heads.heads;
  SmallVector<OpFoldResult> place = slice.getMixedOffsets(),
                            sizes = slice.getMixedSizes();
  OpFoldResult rows = sizes[kRow];
  if (ShapedType::isDynamic(heads.heads) || !slice.hasUnitStride() ||
      !isConstantIntValue(sizes[kBatch], 1) ||
      !isConstantIntValue(sizes[kHead], 1) || !heads.isBox(place[kRow], rows))
    return;
  rewriter.setInsertionPoint(slice);
  Location loc = slice.getLoc();
  IndexMath math(rewriter, loc);
  OpFoldResult group = math.constant(heads.heads);
  place[kHead] = math.mul(place[kHead], group);
  sizes[kHead] = group;
  // Of heads one after another a tile has all queries.
  if (heads.isByQueries) {
    OpFoldResult each = math.constant(heads.places);
    place[kRow] = math.truncDiv(place[kRow], each);
    sizes[kRow] = math.truncDiv(rows, each);
  } else {
    place[kRow] = math.constant(0);
    sizes[kRow] = math.constant(heads.queries);
  }
  // The heads of a query may be neighbours as they come.
  Value queries = expand.getSrc();
  std::optional<Transposition> before =
      Transposition::get(queries.getDefiningOp());
  bool areNeighbours = heads.isByQueries && before &&
                       before->permutation == getSwap(kRank, kHead);
  if (areNeighbours) {
    queries = before->input;
    std::swap(place[kHead], place[kRow]);
    std::swap(sizes[kHead], sizes[kRow]);
  }
  Value part = tensor::ExtractSliceOp::create(rewriter, loc, queries, place,
                                              sizes, slice.getMixedStrides());
  if (heads.isByQueries) {
    part = makePlaces(rewriter, loc, part, areNeighbours ? kRow : kHead,
                      heads.places);
    if (!areNeighbours)
      part = swapWithNext(rewriter, loc, part, kHead);
  }
  Value joined = joinRows(rewriter, loc, part, type, rows);
  Value whole = slice.getSource();
  rewriter.replaceOp(slice, joined);
  keepWhole(rewriter, loop, joined, whole);
}

void fovea::attn::fuseHeadsOfQueries(RewriterBase &rewriter,
                                     scf::ForallOp loop) {
  SmallVector<tensor::ExtractSliceOp> slices(
      loop.getBody()->getOps<tensor::ExtractSliceOp>());
  for (tensor::ExtractSliceOp slice : slices)
    if (llvm::all_of(slice->getUses(), [](OpOperand &use) {
          auto op = dyn_cast<OnlineAttentionOp>(use.getOwner());
          return op && &use == &op.getQueryMutable();
        }))
      fuseHeadsOfQuery(rewriter, loop, slice);
}
