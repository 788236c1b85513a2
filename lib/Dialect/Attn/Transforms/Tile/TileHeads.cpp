//===- TileHeads.cpp - Heads of a group from the rows of a tile -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileHeads.h"

#include "TileTransposes.h"

#include "../HeadGroups.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The dimensions of a tensor of rows, and their number.
enum : int64_t { kBatch, kHead, kRow, kFeature, kRank };

namespace {
/// Ops that make [B, S, Hkv * G, D] of rows, [B, Hkv, G * S, D].
struct Ungrouping {
  int64_t heads, queries;
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
  void rewrite(RewriterBase &rewriter, const Ungrouping &heads, Value init);
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
  auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(
      expand ? getReader(expand) : nullptr);
  std::optional<Transposition> transpose =
      Transposition::get(collapse ? getReader(collapse) : nullptr);
  if (!transpose || expand.getSrcType().getRank() != kRank ||
      expand.getReassociationIndices() != getGroupsWithPair(kRank, kRow) ||
      collapse.getReassociationIndices() != getGroupsWithPair(kRank, kHead) ||
      transpose->permutation != getSwap(kRank, kHead))
    return std::nullopt;
  int64_t heads = expand.getResultType().getDimSize(kRow),
          queries = expand.getResultType().getDimSize(kRow + 1);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(queries))
    return std::nullopt;
  return Ungrouping{heads, queries, {expand, collapse, transpose->op}};
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
      !isConstantIntValue(place[kFeature], 0))
    return std::nullopt;
  bool isTile = !slice && insertion.getSourceType().getRank() == kRank;
  bool isRow = slice && written.isRow() && slice.getMixedOffsets() == place &&
               slice.getMixedSizes() == sizes &&
               slice.getType() == insertion.getSourceType();
  if (!isTile && !isRow)
    return std::nullopt;
  return written;
}

/// Returns the op that chooses how many rows are written, `all` or none; null
/// if none does.
static arith::SelectOp getChoice(OpFoldResult rows, int64_t all) {
  auto value = dyn_cast<Value>(rows);
  auto choice =
      value ? value.getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  auto isAllOrNone = [&](Value some) {
    return isConstantIntValue(some, all) || isConstantIntValue(some, 0);
  };
  return choice && isAllOrNone(choice.getTrueValue()) &&
                 isAllOrNone(choice.getFalseValue())
             ? choice
             : arith::SelectOp();
}

/// Returns true if what is written is a row, or if all rows of a head are, or
/// none, and the queries of each of a group are neighbours in a box
/// (`tile.store` with `inner`).
static bool canBeHeads(WrittenRows &written, const Ungrouping &heads) {
  if (written.isRow())
    return true;
  OpFoldResult rows = written.insertion.getMixedSizes()[kRow];
  int64_t all = heads.heads * heads.queries;
  return llvm::isPowerOf2_64(heads.queries) &&
         (isConstantIntValue(rows, all) || getChoice(rows, all));
}

void WrittenRows::rewrite(RewriterBase &rewriter, const Ungrouping &heads,
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
    OpFoldResult queries = math.constant(heads.queries),
                 ofGroup = math.truncDiv(place[kRow], queries);
    head = math.add(head, ofGroup);
    query = math.sub(place[kRow], math.mul(ofGroup, queries));
  } else {
    // A choice stays one: it says whether the tile is written at all.
    setBehind(sizes[kRow]);
    IndexMath math(rewriter, loc);
    OpFoldResult all = math.constant(heads.heads), none = math.constant(0);
    if (arith::SelectOp choice =
            getChoice(sizes[kRow], heads.heads * heads.queries)) {
      bool isAll = !isConstantIntValue(choice.getTrueValue(), 0);
      all = math.select(choice.getCondition(), isAll ? all : none,
                        isAll ? none : all);
    }
    sizes[kRow] = all;
    sizes[kHead] = rewriter.getIndexAttr(heads.queries);
    rewriter.setInsertionPoint(loop.getTerminator());
    source = toHeads(rewriter, loc, source, sizes[kRow], heads.queries);
  }
  place[kHead] = query;
  place[kRow] = head;
  if (slice) {
    auto row = tensor::ExtractSliceOp::create(rewriter, loc, slice.getType(),
                                              output, place, sizes, ones);
    if (source == slice)
      source = row;
    rewriter.replaceOp(slice, row);
  }
  rewriter.setInsertionPoint(insertion);
  rewriter.replaceOpWithNewOp<tensor::ParallelInsertSliceOp>(
      insertion, source, output, place, sizes, ones);
}

bool fovea::attn::fuseHeadsOfResult(RewriterBase &rewriter, scf::ForallOp loop,
                                    unsigned number) {
  std::optional<Ungrouping> heads = Ungrouping::get(loop.getResult(number));
  std::optional<WrittenRows> written = WrittenRows::get(loop, number);
  if (!heads || !written)
    return false;
  // What the loop adds to is written by another one, or by none.
  Value init = loop.getOutputs()[number], first = init;
  std::optional<WrittenRows> before;
  if (auto other = init.getDefiningOp<scf::ForallOp>()) {
    unsigned result = cast<OpResult>(init).getResultNumber();
    before = WrittenRows::get(other, result);
    first = other.getOutputs()[result];
    if (!before || !init.hasOneUse() || first.getDefiningOp<scf::ForallOp>() ||
        !canBeHeads(*before, *heads))
      return false;
  }
  if (!canBeHeads(*written, *heads))
    return false;
  auto type = cast<RankedTensorType>(heads->getResult().getType());
  rewriter.setInsertionPoint(before ? before->loop : loop);
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(rewriter.getContext(), type.getShape());
  if (type.isDynamicDim(kBatch))
    sizes[kBatch] =
        tensor::getMixedSize(rewriter, loop.getLoc(), first, kBatch);
  init = tensor::EmptyOp::create(rewriter, loop.getLoc(), sizes,
                                 type.getElementType());
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
  auto expand = collapse
                    ? collapse.getSrc().getDefiningOp<tensor::ExpandShapeOp>()
                    : tensor::ExpandShapeOp();
  if (!expand || expand.getSrcType().getRank() != kRank ||
      expand.getReassociationIndices() != getGroupsWithPair(kRank, kHead) ||
      collapse.getReassociationIndices() != getGroupsWithPair(kRank, kRow))
    return;
  int64_t heads = expand.getResultType().getDimSize(kRow),
          queries = expand.getResultType().getDimSize(kRow + 1);
  RankedTensorType type = slice.getType();
  SmallVector<OpFoldResult> place = slice.getMixedOffsets(),
                            sizes = slice.getMixedSizes();
  if (ShapedType::isDynamic(heads) || !llvm::isPowerOf2_64(queries) ||
      !slice.hasUnitStride() || type.getRank() != kRank ||
      type.getShape().drop_back() != ArrayRef<int64_t>{1, 1, heads * queries})
    return;
  rewriter.setInsertionPoint(slice);
  Location loc = slice.getLoc();
  IndexMath math(rewriter, loc);
  place[kHead] = math.mul(place[kHead], math.constant(heads));
  place[kRow] = math.constant(0);
  sizes[kHead] = rewriter.getIndexAttr(heads);
  sizes[kRow] = rewriter.getIndexAttr(queries);
  Value part = tensor::ExtractSliceOp::create(
      rewriter, loc, type.clone({1, heads, queries, type.getDimSize(kFeature)}),
      expand.getSrc(), place, sizes, slice.getMixedStrides());
  Value flat = tensor::CollapseShapeOp::create(
      rewriter, loc, part, getGroupsWithPair(kRank - 1, kHead));
  Value rows =
      expandShape(rewriter, loc, flat, getGroupsWithPair(kRank - 1, kBatch),
                  slice.getMixedSizes());
  Value whole = slice.getSource();
  rewriter.replaceOp(slice, rows);
  keepWhole(rewriter, loop, rows, whole);
}

void fovea::attn::fuseHeadsOfQueries(RewriterBase &rewriter,
                                     scf::ForallOp loop) {
  SmallVector<tensor::ExtractSliceOp> slices(
      loop.getBody()->getOps<tensor::ExtractSliceOp>());
  for (tensor::ExtractSliceOp slice : slices)
    fuseHeadsOfQuery(rewriter, loop, slice);
}
