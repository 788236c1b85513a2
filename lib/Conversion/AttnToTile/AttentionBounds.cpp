//===- AttentionBounds.cpp - Which keys rows of a tile need ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a loop over keys is for a tile of queries it may be less for some of its
// rows: where it begins and ends, and which of its steps apply the mask. Groups
// of warps, or warps, ask for their own rows.
//
//===----------------------------------------------------------------------===//

#include "AttentionBuilder.h"
#include "FragmentMath.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/IndexMath.h"
#include "fovea/Analysis/MaskTables.h"
#include "fovea/Support/SameOp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::tile;

/// The most ops that warp groups compute in each step to know whether their own
/// rows need the mask: fewer than applying it takes.
static constexpr size_t kMostOps = 32;

/// Takes what the program of `place`, an op in `forall`, has computed in front
/// of it for what `body` computes of the same values, as the length of the
/// program's sequence.
static void reuseValues(Block &body, scf::ForallOp forall, Operation *place) {
  Block &program = *forall.getBody();
  Operation *end = program.findAncestorOpInBlock(*place);
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
    if (Operation *same = findSame(op, program, end->getIterator())) {
      op.replaceAllUsesWith(same);
      op.erase();
    }
}

FailureOr<Value> AttentionBuilder::getOfRows(Operation *place, Value whole,
                                             OnlineAttentionOp pass,
                                             OfRowsFn emit,
                                             std::optional<size_t> mostOps) {
  Value mapped = mapping.lookupOrDefault(whole);
  bool hasGroups = static_cast<int64_t>(launch.getWarps()) >= 2 * kGroupWarps;
  if (pass.getAt().empty() || !hasGroups)
    return mapped;
  // Emitted in front of what is converted, and then converted like the ops
  // around it.
  OpBuilder builder(place);
  auto ofRows =
      OfRowsOp::create(builder, loc, whole.getType(), whole, sizes.queries);
  Type type = builder.getIndexType();
  Block *body =
      builder.createBlock(&ofRows.getBody(), {}, {type, type}, {loc, loc});
  auto view = TileView::getSource(pass.getQuery(), forall.getRegion());
  RowsOfTile rows = {body->getArgument(0), body->getArgument(1),
                     view->getRowCount(builder, loc, /*ofWhole=*/false)};
  Value value = IndexMath(builder, loc)
                    .materialize(emit(builder, rows),
                                 /*isBoolean=*/!whole.getType().isIndex());
  tile::YieldOp::create(builder, loc, value);
  reuseValues(*body, forall, place);
  // What lies in memory is not read again for each part of the rows.
  bool reads = readsTensors(ofRows.getBody());
  bool isLong = mostOps && body->getOperations().size() > *mostOps;
  IRMapping values(mapping);
  FailureOr<Operation *> converted = nullptr;
  if (!reads && !isLong)
    converted = cloneScalar(rewriter, *ofRows, values);
  rewriter.eraseOp(ofRows);
  if (failed(converted))
    return failure();
  return reads || isLong ? mapped : cast<OfRowsOp>(*converted).getResult();
}

MaskBox AttentionBuilder::getBox(IndexMath &index, OnlineAttentionOp pass,
                                 const RowsOfTile &rows, Span keys) {
  SmallVector<OpFoldResult> at = getAsOpFoldResult(pass.getAt());
  OpFoldResult last =
      index.min(rows.last, index.sub(rows.count, index.constant(1)));
  return {{at[0], at[0]},
          {at[1], at[1]},
          {index.add(at[2], rows.first), index.add(at[2], last)},
          keys};
}

bool AttentionBuilder::isDescending() {
  return passes.front().getScheduleAttr().getKeys() == KeyOrder::Descending;
}

/// Returns the number of steps of a loop from `lower` to `upper`.
static OpFoldResult countSteps(IndexMath &index, OpFoldResult lower,
                               OpFoldResult upper, OpFoldResult step) {
  OpFoldResult span = index.max(index.sub(upper, lower), index.constant(0));
  span = index.add(span, index.sub(step, index.constant(1)));
  return index.truncDiv(span, step);
}

/// Returns the pass of a loop over tiles of keys, if each step has one; else
/// null.
static OnlineAttentionOp getPass(scf::ForOp op) {
  auto steps = op.getOps<OnlineAttentionOp>();
  std::optional<APInt> trips = op.getStaticTripCount();
  bool hasSteps = llvm::hasSingleElement(steps) && !(trips && trips->isZero());
  OnlineAttentionOp pass = hasSteps ? *steps.begin() : OnlineAttentionOp();
  if (!pass || pass.getAt().empty() || pass.getAt()[3] != op.getInductionVar())
    return {};
  return pass;
}

FailureOr<Value> AttentionBuilder::getBegin(scf::ForOp op) {
  Value whole = op.getLowerBound();
  OnlineAttentionOp pass = getPass(op);
  if (!pass || pass.getMask().empty() || getConstantIntValue(whole))
    return mapping.lookupOrDefault(whole);
  auto emit = [&](OpBuilder &builder, const RowsOfTile &rows) {
    IndexMath index(builder, loc);
    OpFoldResult lower = whole, step = getAsOpFoldResult(op.getStep());
    Span keys = {lower, index.sub(op.getUpperBound(), index.constant(1))};
    MaskBox box = getBox(index, pass, rows, keys);
    MaskEvaluator mask(pass.getMask(), box, builder, loc);
    OpFoldResult first = mask.bounds(Coordinate::Key).lower,
                 skipped =
                     index.max(index.sub(first, lower), index.constant(0));
    return index.add(lower, index.mul(index.truncDiv(skipped, step), step));
  };
  return getOfRows(op, whole, pass, emit);
}

/// Returns the end of the keys that rows from `first` to `last` of a tile see,
/// by what is known of its parts.
static OpFoldResult getEndOf(IndexMath &index, OnlineAttentionOp pass,
                             OpFoldResult first, OpFoldResult last,
                             int64_t queries) {
  ValueRange ends = pass.getEnds();
  auto size = queries / static_cast<int64_t>(ends.size());
  OpFoldResult end = index.constant(0);
  for (auto [part, other] : llvm::enumerate(ends)) {
    auto begin = static_cast<int64_t>(part) * size;
    OpFoldResult isIn =
        index.logicalAnd(index.less(first, index.constant(begin + size)),
                         index.lessEqual(index.constant(begin), last));
    end = index.max(end, index.select(isIn, other, index.constant(0)));
  }
  return end;
}

FailureOr<Value> AttentionBuilder::getBound(scf::ForOp op) {
  Value whole = isDescending() ? op.getLowerBound() : op.getUpperBound();
  OnlineAttentionOp pass = getPass(op);
  // Programs that blocks share take the same time, whichever rows they have.
  if (!pass || pass.getScheduleAttr().getBlocks() == Blocks::Shared)
    return mapping.lookupOrDefault(whole);
  auto emit = [&](OpBuilder &builder, const RowsOfTile &rows) {
    IndexMath index(builder, loc);
    OpFoldResult lower = getAsOpFoldResult(op.getLowerBound()),
                 end = op.getUpperBound();
    if (!pass.getEnds().empty()) {
      end = getEndOf(index, pass, rows.first, rows.last, sizes.queries);
    } else if (!pass.getMask().empty()) {
      Span keys = {lower, index.sub(end, index.constant(1))};
      MaskBox box = getBox(index, pass, rows, keys);
      MaskEvaluator mask(pass.getMask(), box, builder, loc);
      end = index.max(mask.bounds(Coordinate::Key).upper, index.constant(0));
    }
    // Rows behind the last need no key.
    if (IndexMath::constantOf(rows.count) != sizes.queries)
      end = index.select(index.less(rows.first, rows.count), end, lower);
    if (!isDescending())
      return end;
    // The loop passes by the tiles from there on.
    OpFoldResult step = getAsOpFoldResult(op.getStep()),
                 all = countSteps(index, lower,
                                  getAsOpFoldResult(op.getUpperBound()), step),
                 own = countSteps(index, lower, end, step);
    return index.add(lower, index.mul(index.sub(all, own), step));
  };
  return getOfRows(op, whole, pass, emit);
}

Value AttentionBuilder::getEnds(scf::ForOp op) {
  IndexMath index(rewriter, loc);
  auto convert = [&](Value value) {
    return getAsOpFoldResult(mapping.lookupOrDefault(value));
  };
  OpFoldResult lower = convert(op.getLowerBound()),
               step = convert(op.getStep());
  OpFoldResult steps =
      countSteps(index, lower, convert(op.getUpperBound()), step);
  OpFoldResult last = index.mul(index.sub(steps, index.constant(1)), step);
  return index.materialize(index.add(index.add(lower, lower), last));
}

FailureOr<Value> AttentionBuilder::getPartial(OnlineAttentionOp op) {
  auto view = TileView::getSource(op.getKey(), forall.getRegion());
  auto emit = [&](OpBuilder &builder, const RowsOfTile &rows) {
    IndexMath index(builder, loc);
    OpFoldResult first = getAsOpFoldResult(op.getAt()[3]);
    OpFoldResult end =
        index.add(first, view->getRowCount(builder, loc, /*ofWhole=*/false));
    Span keys = {first, index.sub(end, index.constant(1))};
    MaskBox box = getBox(index, op, rows, keys);
    Truth truth = MaskEvaluator(op.getMask(), box, builder, loc).evaluate();
    OpFoldResult partial = index.logicalNot(truth.all);
    // Tables know more of what lies in memory.
    return tabledValues(op.getMask()).empty()
               ? partial
               : index.logicalAnd(op.getPartial(), partial);
  };
  return getOfRows(op, op.getPartial(), op, emit, kMostOps);
}

bool AttentionBuilder::readsRows(Region &mask) {
  return mayHaveSequences(mask) &&
         llvm::all_of(tabledValues(mask), [](const TabledValue &tabled) {
           return getNarrow(tabled.value) != nullptr;
         });
}

SmallVector<Span> AttentionBuilder::emitExtremes(OpBuilder &builder,
                                                 Region &mask,
                                                 const ScoreTile &tile) {
  FragmentMath math(builder, loc);
  Type narrow = builder.getI32Type();
  return llvm::map_to_vector(tabledValues(mask), [&](const TabledValue &each) {
    bool isBoolean = each.value.getType().isInteger(1);
    Value rows = math.map(
        sizes.getRows().cloneWith(narrow), {}, {},
        [&](OpBuilder &body, ValueRange, ValueRange coordinates) -> Value {
          OpFoldResult row = coordinates[0], key = body.getIndexAttr(0);
          Value read =
              tile.emitRegion(body, mask, tile.getPlace(body, loc, row, key),
                              tile.getExisting(body, loc, row, key, mask),
                              getNarrow(each.value), {});
          if (read.getType() == narrow)
            return read;
          if (isBoolean)
            return arith::ExtUIOp::create(body, loc, narrow, read);
          return arith::ExtSIOp::create(body, loc, narrow, read);
        });
    auto extremes = ExtremesOp::create(builder, loc, rows);
    auto convert = [&](Value extreme) -> OpFoldResult {
      if (isBoolean)
        return arith::TruncIOp::create(builder, loc, builder.getI1Type(),
                                       extreme)
            .getResult();
      return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                        extreme)
          .getResult();
    };
    return Span{convert(extremes.getLeast()), convert(extremes.getGreatest())};
  });
}

OpFoldResult AttentionBuilder::emitArePartial(OpBuilder &builder,
                                              OnlineAttentionOp op,
                                              const ScoreTile &tile) {
  Region &mask = op.getMask();
  SmallVector<TabledValue> tabled = tabledValues(mask);
  SmallVector<Span> extremes = emitExtremes(builder, mask, tile);
  auto emit = [&](OpBuilder &inner, const RowsOfTile &rows) {
    IndexMath index(inner, loc);
    OpFoldResult key = getAsOpFoldResult(op.getAt()[3]);
    Span keys = {key, index.add(key, index.constant(sizes.keys - 1))};
    MaskEvaluator evaluator(mask, getBox(index, op, rows, keys), inner, loc);
    evaluator.setLookup([&](Value value, IndexMath &) -> std::optional<Span> {
      for (auto [each, extreme] : llvm::zip_equal(tabled, extremes))
        if (each.value == value)
          return extreme;
      return std::nullopt;
    });
    return index.logicalNot(evaluator.evaluate().all);
  };
  // Emitted in front of what is converted, and then converted like the ops
  // around it.
  OpBuilder before(op);
  auto ofAll = scf::ExecuteRegionOp::create(before, loc, before.getI1Type());
  before.createBlock(&ofAll.getRegion());
  IndexMath index(before, loc);
  auto view = TileView::getSource(op.getQuery(), forall.getRegion());
  RowsOfTile rows = {index.constant(0), index.constant(sizes.queries - 1),
                     view->getRowCount(before, loc, /*ofWhole=*/false)};
  scf::YieldOp::create(
      before, loc, index.materialize(emit(before, rows), /*isBoolean=*/true));
  IRMapping values(mapping);
  FailureOr<Operation *> converted = cloneScalar(builder, *ofAll, values);
  FailureOr<Value> ofRows = failure();
  if (succeeded(converted)) {
    mapping.map(ofAll.getResult(0), (*converted)->getResult(0));
    ofRows = getOfRows(op, ofAll.getResult(0), op, emit);
    mapping.erase(ofAll.getResult(0));
  }
  rewriter.eraseOp(ofAll);
  // Any value will do for a program that is thrown away.
  if (failed(ofRows))
    return builder.getBoolAttr(true);
  return *ofRows;
}
