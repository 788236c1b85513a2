//===- PackBackward.cpp - attn-pack-queries: the backward pass ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of captured tensors are those of an elementwise op on the tile's
// scores, which reverse mode gives as ops on tensors.
//
//===----------------------------------------------------------------------===//

#include "PackQueries.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/Differentiate/Backward.h"
#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/Differentiate/ScalarTape.h"
#include "fovea/Dialect/Attn/IR/Coordinates.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

using Fold = OpFoldResult;

/// Builds the derivative of a score region by its score, as a region with the
/// same arguments. Fails with an error where an op has no derivative.
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
  Value result = tape.replay(
      body, cast<YieldOp>(body.getTerminator()).getValue(), mapping);
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
/// One op, which is replaced.
class BackwardPacking {
public:
  BackwardPacking(OnlineBackwardOp op, int64_t lanes, bool makesPairs)
      : builder(op), op(op), loc(op.getLoc()), type(op.getAccumulationType()),
        lanes(lanes), makesPairs(makesPairs), zero(builder.getIndexAttr(0)),
        one(builder.getIndexAttr(1)) {}

  LogicalResult run();

private:
  int64_t getGroupColumns() const;
  Value pack(Value rows, double factor);
  Value widen(Value rows);
  Value createBlock();
  Value transpose(Value block);

  /// The part of a captured tensor that a tile's scores read, and where its
  /// gradient is in the op's sum.
  struct Part {
    SmallVector<std::optional<Coordinate>> axes;
    SmallVector<Fold> offsets, sizes;
    Value slice, sum;
  };
  Part getPart(Value capture, Value sum);
  void cloneScore(ArrayRef<Part> parts, Region &to);
  FailureOr<SmallVector<Value>> addCaptures(Value scores, Value gradients);

  Value slice(Value tensor, ArrayRef<Fold> offsets, ArrayRef<Fold> sizes) {
    SmallVector<Fold> strides(offsets.size(), one);
    return tensor::ExtractSliceOp::create(builder, loc, tensor, offsets, sizes,
                                          strides);
  }
  Value insert(Value part, Value tensor, ArrayRef<Fold> offsets,
               ArrayRef<Fold> sizes) {
    SmallVector<Fold> strides(offsets.size(), one);
    return tensor::InsertSliceOp::create(builder, loc, part, tensor, offsets,
                                         sizes, strides);
  }
  Fold sizeOf(Value tensor, int64_t dim) {
    return getAsOpFoldResult(
        builder.createOrFold<tensor::DimOp>(loc, tensor, dim));
  }

  OpBuilder builder;
  OnlineBackwardOp op;
  Location loc;
  FloatType type;
  int64_t lanes;
  bool makesPairs; ///< pairs of features, for matrix tiles
  Fold zero, one;
  /// Columns of packed queries, and keys of blocks of scores.
  int64_t columns, boundKeys;
  Fold rows, keys;
};
} // namespace

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// Returns the number of columns of a group of packed queries. The vectors of a
/// group share the numbers by which they are multiplied; three vectors are
/// best, if they divide all columns.
int64_t BackwardPacking::getGroupColumns() const {
  int64_t vectors = columns / lanes;
  // Matrix tiles add up two vectors at a time.
  SmallVector<int64_t> candidates = {3, 4, 2};
  if (makesPairs)
    candidates = {4, 2};
  for (int64_t candidate : candidates)
    if (vectors % candidate == 0)
      return candidate * lanes;
  return lanes;
}

/// Packs `rows`, `[1, 1, n, D]`, one in a lane, group by group.
Value BackwardPacking::pack(Value rows, double factor) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(getPackingPlace(op, rows));
  int64_t groupColumns = getGroupColumns();
  Fold groups = builder.getIndexAttr(columns / groupColumns),
       width = builder.getIndexAttr(groupColumns), count = sizeOf(rows, 2),
       features = sizeOf(rows, 3);
  SmallVector<Fold> sizes = {one, groups, features, width};
  Type element = type;
  if (makesPairs) {
    int64_t parts = countPairParts(getElementTypeOrSelf(rows));
    sizes[2] = builder.getIndexAttr(*getConstantIntValue(features) / 2 * parts);
    sizes[3] = builder.getIndexAttr(2 * groupColumns);
    element = builder.getBF16Type();
    // The operands stay exact; the products take the factor.
    factor = 1.0;
  }
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, element);
  sizes[1] = one;
  IndexMath outside(builder, loc);
  auto value = [&](Fold index) {
    return getValueOrCreateConstantIndexOp(builder, loc, index);
  };
  auto loop = scf::ForOp::create(builder, loc, value(zero),
                                 value(outside.ceilDiv(count, width)),
                                 value(one), empty);
  builder.setInsertionPointToStart(loop.getBody());
  IndexMath index(builder, loc);
  Fold group = loop.getInductionVar();
  Fold first = index.mul(group, width);
  Value part =
      slice(rows, {zero, zero, first, zero},
            {one, one, index.min(index.sub(count, first), width), features});
  SmallVector<Fold> place = {zero, group, zero, zero};
  Value target = slice(loop.getRegionIterArg(0), place, sizes);
  Value packed = PackQueryOp::create(builder, loc, target.getType(), part,
                                     target, builder.getF64FloatAttr(factor))
                     .getResult(0);
  scf::YieldOp::create(builder, loc,
                       insert(packed, loop.getRegionIterArg(0), place, sizes));
  return loop.getResult(0);
}

/// Returns `rows` in the accumulation type, converted once and not with every
/// tile of keys. Matrix tiles multiply them as they are.
Value BackwardPacking::widen(Value rows) {
  if (makesPairs)
    return rows;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(getPackingPlace(op, rows));
  return castTensor(builder, loc, rows,
                    cast<RankedTensorType>(rows.getType()).clone(type));
}

//===----------------------------------------------------------------------===//
// Captured tensors
//===----------------------------------------------------------------------===//

/// Returns a destination for one number of each score, `[1, 1, keys, columns]`.
Value BackwardPacking::createBlock() {
  SmallVector<Fold> bounds = {one, one, builder.getIndexAttr(boundKeys),
                              builder.getIndexAttr(columns)},
                    used = bounds;
  used[2] = keys;
  return slice(tensor::EmptyOp::create(builder, loc, bounds, type),
               SmallVector<Fold>(4, zero), used);
}

/// Returns the scores of the queries that exist, `[1, 1, rows, keys]`.
Value BackwardPacking::transpose(Value block) {
  SmallVector<Fold> origin(4, zero);
  SmallVector<Fold> bounds = {one, one, builder.getIndexAttr(columns),
                              builder.getIndexAttr(boundKeys)};
  Value empty = tensor::EmptyOp::create(builder, loc, bounds, type);
  return linalg::TransposeOp::create(
             builder, loc, slice(block, origin, {one, one, keys, rows}),
             slice(empty, origin, {one, one, rows, keys}),
             ArrayRef<int64_t>{0, 1, 3, 2})
      ->getResult(0);
}

BackwardPacking::Part BackwardPacking::getPart(Value capture, Value sum) {
  Part part;
  part.axes = getCaptureAxes(capture, op.getScore());
  SmallVector<Fold> extents = {one, one, rows, keys};
  for (auto [dim, axis] : llvm::enumerate(part.axes)) {
    part.offsets.push_back(
        axis ? getAsOpFoldResult(op.getAt()[getScoreDim(*axis)]) : zero);
    part.sizes.push_back(axis ? extents[getScoreDim(*axis)]
                              : sizeOf(capture, dim));
  }
  part.slice = slice(capture, part.offsets, part.sizes);
  // Where the sum ends with the scores, all of it is added to.
  auto cut = sum.getDefiningOp<tensor::ExtractSliceOp>();
  bool isWhole = true;
  for (auto [dim, axis, size] : llvm::enumerate(part.axes, part.sizes))
    isWhole &=
        !axis ||
        (cut && isEqualConstantIntOrValue(cut.getMixedSizes()[dim], size));
  part.sum = isWhole ? sum
                     : slice(sum, SmallVector<Fold>(part.axes.size(), zero),
                             part.sizes);
  return part;
}

/// Copies the score region to `to`, a region of the tile's own coordinates,
/// which reads captured tensors from the tile's slices.
void BackwardPacking::cloneScore(ArrayRef<Part> parts, Region &to) {
  Block &score = op.getScore().front();
  OpBuilder::InsertionGuard guard(builder);
  Block *block =
      builder.createBlock(&to, to.end(), score.getArgumentTypes(),
                          SmallVector<Location>(score.getNumArguments(), loc));
  IRMapping mapping;
  mapping.map(score.getArgument(0), block->getArgument(0));
  for (auto [argument, own, offset] :
       llvm::zip_equal(score.getArguments().drop_front(),
                       block->getArguments().drop_front(), op.getAt()))
    mapping.map(argument,
                arith::AddIOp::create(builder, loc, own, offset).getResult());
  for (Operation &step : score) {
    auto read = dyn_cast<tensor::ExtractOp>(step);
    auto capture = read ? llvm::find(op.getCaptures(), read.getTensor())
                        : op.getCaptures().end();
    if (capture == op.getCaptures().end()) {
      builder.clone(step, mapping);
      continue;
    }
    const Part &part = parts[capture - op.getCaptures().begin()];
    SmallVector<Value> indices;
    for (auto [axis, index] : llvm::zip_equal(part.axes, read.getIndices()))
      indices.push_back(axis ? block->getArgument(1 + getScoreDim(*axis))
                             : mapping.lookupOrDefault(index));
    Value element =
        tensor::ExtractOp::create(builder, read.getLoc(), part.slice, indices);
    mapping.map(read.getResult(), element);
  }
}

/// Returns `sum` plus `part`, element by element.
static Value add(OpBuilder &builder, Location loc, Value part, Value sum) {
  unsigned rank = cast<RankedTensorType>(sum.getType()).getRank();
  AffineMap identity = mapAll(builder, rank);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto body = [](OpBuilder &b, Location l, ValueRange in) {
    Value added = arith::AddFOp::create(b, l, in[1], in[0]);
    linalg::YieldOp::create(b, l, added);
  };
  return linalg::GenericOp::create(builder, loc, sum.getType(), part, sum,
                                   ArrayRef<AffineMap>{identity, identity},
                                   iterators, body)
      .getResult(0);
}

/// Returns the sums with the contributions of the tile: `scores`, the arguments
/// of the score region, and the `gradients` of its results.
FailureOr<SmallVector<Value>> BackwardPacking::addCaptures(Value scores,
                                                           Value gradients) {
  SmallVector<Part> parts;
  for (auto [capture, sum] : llvm::zip_equal(op.getCaptures(), op.getSums()))
    parts.push_back(getPart(capture, sum));
  scores = transpose(scores);
  gradients = transpose(gradients);
  auto modify = ModifyOp::create(builder, loc, scores.getType(), scores);
  cloneScore(parts, modify.getBody());
  Backward backward(builder);
  for (const Part &part : parts) {
    backward.addVariable(part.slice);
    backward.setGradientType(part.slice,
                             cast<FloatType>(getElementTypeOrSelf(part.sum)));
  }
  backward.visit(modify);
  backward.add(loc, modify, gradients);
  if (failed(backward.pull(modify)))
    return failure();
  SmallVector<Value> sums;
  for (auto [part, sum] : llvm::zip_equal(parts, op.getSums())) {
    Value gradient = backward.lookup(part.slice);
    if (!gradient) {
      sums.push_back(sum);
      continue;
    }
    Value added = add(builder, loc, gradient, part.sum);
    sums.push_back(part.sum == sum
                       ? added
                       : insert(added, sum,
                                SmallVector<Fold>(part.axes.size(), zero),
                                part.sizes));
  }
  modify.erase();
  return sums;
}

LogicalResult BackwardPacking::run() {
  columns = llvm::alignTo(std::max<int64_t>(*getTileBound(op.getQuery()), 1),
                          makesPairs ? 2 * lanes : lanes);
  boundKeys = *getTileBound(op.getKey());
  rows = sizeOf(op.getQuery(), 2);
  keys = sizeOf(op.getKey(), 2);

  SmallVector<Value> outs = {op.getQueryGradient(), op.getKeyGradient(),
                             op.getValueGradient()};
  Value scores, gradients;
  if (!op.getCaptures().empty()) {
    scores = createBlock();
    gradients = createBlock();
    outs.append({scores, gradients});
  }
  auto packed = OnlineBackwardOp::create(
      builder, loc, ValueRange(outs).getTypes(), widen(op.getQuery()),
      widen(op.getGradient()), op.getKey(), op.getValue(), op.getLse(),
      op.getDelta(),
      pack(op.getQuery(), getPackingFactor(op.getScaleAttr(), op.getScore())),
      pack(op.getGradient(), 1.0), /*captures=*/ValueRange(), outs[0], outs[1],
      outs[2], /*sums=*/ValueRange(), scores, gradients, op.getAt(),
      op.getWhole(), op.getPartial(), op.getScaleAttr(), op.getDropoutAttr(),
      op.getSeed(), op.getOffset(), op.getScheduleAttr());
  SmallVector<Value> results(packed.getResults().take_front(3));
  if (!op.getCaptures().empty()) {
    FailureOr<SmallVector<Value>> sums =
        addCaptures(packed.getResult(3), packed.getResult(4));
    if (failed(sums))
      return failure();
    llvm::append_range(results, *sums);
  }
  packed.getScore().takeBody(op.getScore());
  packed.getMask().takeBody(op.getMask());
  if (!packed.getScore().empty() &&
      failed(buildDerivative(packed.getScore(), packed.getDerivative(), loc)))
    return failure();
  op->replaceAllUsesWith(results);
  op->erase();
  return success();
}

LogicalResult fovea::attn::packBackward(OnlineBackwardOp op, int64_t lanes,
                                        bool makesPairs) {
  return BackwardPacking(op, lanes, makesPairs).run();
}
