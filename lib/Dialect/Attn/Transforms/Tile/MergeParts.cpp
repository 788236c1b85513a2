//===- MergeParts.cpp - The sums of a row of which there are parts --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call of decoding waits for this, for a few parts of a few rows. What takes
// time are waits, for memory and of threads for each other, and instructions,
// which are not in the cache yet. So each feature finds weights itself, by few
// instructions, and reads many parts before it needs the first.
//
//===----------------------------------------------------------------------===//

#include "MergeParts.h"

#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/IndexMath.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>
#include <numbers>
#include <optional>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The parts that are read at once: all of a row of few, else so many.
static constexpr int64_t kFewParts = 4, kManyParts = 16;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {

/// Some parts of a row, as seen by a feature: the largest log-sum-exp, the sum
/// of the weights relative to it, and that of the weighted outputs.
struct Sums {
  Value largest, weights, output;

  static Sums get(ValueRange values) {
    return {values[0], values[1], values[2]};
  }
  SmallVector<Value> getValues() const { return {largest, weights, output}; }
};

/// Adds up parts of a row for one feature.
class PartsOfRow {
public:
  PartsOfRow(Location loc, Value outputs, Value lses, Value count,
             Value feature)
      : loc(loc), outputs(outputs), lses(lses), count(count), feature(feature),
        type(cast<FloatType>(getElementTypeOrSelf(outputs))),
        wide(cast<FloatType>(getElementTypeOrSelf(lses))) {}

  Sums add(OpBuilder &builder);

private:
  Sums addSome(OpBuilder &builder, Value first, int64_t terms,
               std::optional<Sums> before);
  Sums addMany(OpBuilder &builder);
  Value getIndex(OpBuilder &builder, int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  Location loc;
  Value outputs, lses, count, feature;
  FloatType type, wide;
};

} // namespace

/// Adds so many parts from `first` on, or as many as there are, to those
/// `before`.
Sums PartsOfRow::addSome(OpBuilder &builder, Value first, int64_t terms,
                         std::optional<Sums> before) {
  IndexMath math(builder, loc);
  Formula f{builder, loc, type}, exact{builder, loc, wide};
  Value lowest = exact.number(-kInfinity);
  OpFoldResult last = math.sub(count, math.constant(1));
  SmallVector<Value> ownLses, ownOutputs;
  for (int64_t term = 0; term < terms; ++term) {
    OpFoldResult number = math.add(first, math.constant(term));
    Value part = math.materialize(math.min(number, last));
    Value lse = tensor::ExtractOp::create(builder, loc, lses, part);
    Value exists = math.materialize(math.less(number, count),
                                    /*isBoolean=*/true);
    ownLses.push_back(exact.select(exists, lse, lowest));
    ownOutputs.push_back(tensor::ExtractOp::create(builder, loc, outputs,
                                                   ValueRange{part, feature}));
  }

  // In pairs, since each waits for the other.
  SmallVector<Value> most = ownLses;
  if (before)
    most.push_back(before->largest);
  while (most.size() > 1) {
    SmallVector<Value> rest;
    for (size_t at = 0; at + 1 < most.size(); at += 2) {
      Value isMore =
          exact.compare(arith::CmpFPredicate::OGT, most[at + 1], most[at]);
      rest.push_back(exact.select(isMore, most[at + 1], most[at]));
    }
    if (most.size() % 2)
      rest.push_back(most.back());
    most = std::move(rest);
  }
  Sums sums = {most.front(), f.number(0), f.number(0)};
  auto getWeight = [&](Value lse) {
    // Where no part has had a key, the difference is NaN.
    Value isEmpty = exact.isEqual(lse, lowest);
    Value exponent =
        f.mul(f.convert(exact.sub(lse, sums.largest)), std::numbers::log2e);
    Value weight = f.make<math::Exp2Op>(exponent, arith::FastMathFlags::afn);
    return f.select(isEmpty, f.number(0), weight);
  };
  if (before) {
    Value weight = getWeight(before->largest);
    sums.weights = f.mul(before->weights, weight);
    sums.output = f.mul(before->output, weight);
  }
  for (auto [lse, output] : llvm::zip_equal(ownLses, ownOutputs)) {
    Value weight = getWeight(lse);
    // The output of a part without a key may be anything.
    Value product = f.select(f.isEqual(weight, f.number(0)), f.number(0),
                             f.mul(weight, output));
    sums.weights = f.add(sums.weights, weight);
    sums.output = f.add(sums.output, product);
  }
  return sums;
}

/// Adds more than a few parts. No loop is in the way of the first ones.
Sums PartsOfRow::addMany(OpBuilder &builder) {
  Sums first = addSome(builder, getIndex(builder, 0), kManyParts, std::nullopt);
  Value step = getIndex(builder, kManyParts);
  auto rest = scf::ForOp::create(
      builder, loc, step, count, step, first.getValues(),
      [&](OpBuilder &nested, Location, Value at, ValueRange carried) {
        Sums sums = addSome(nested, at, kManyParts, Sums::get(carried));
        scf::YieldOp::create(nested, loc, sums.getValues());
      });
  return Sums::get(rest.getResults());
}

Sums PartsOfRow::add(OpBuilder &builder) {
  IndexMath math(builder, loc);
  Value areFew = math.materialize(
      math.lessEqual(count, math.constant(kFewParts)), /*isBoolean=*/true);
  auto branch = scf::IfOp::create(
      builder, loc, areFew,
      [&](OpBuilder &nested, Location) {
        Sums sums =
            addSome(nested, getIndex(nested, 0), kFewParts, std::nullopt);
        scf::YieldOp::create(nested, loc, sums.getValues());
      },
      [&](OpBuilder &nested, Location) {
        scf::YieldOp::create(nested, loc, addMany(nested).getValues());
      });
  return Sums::get(branch.getResults());
}

MergedRow fovea::attn::mergeParts(OpBuilder &builder, Location loc,
                                  Value outputs, Value lses, Value count,
                                  Value room, FloatType lse) {
  SmallVector<Value> rooms = {room};
  OpFoldResult features = tensor::getMixedSize(builder, loc, room, /*dim=*/0);
  if (lse)
    rooms.push_back(
        tensor::EmptyOp::create(builder, loc, ArrayRef(features), lse));
  SmallVector<AffineMap> maps(rooms.size(), builder.getMultiDimIdentityMap(1));
  auto body = [&](OpBuilder &nested, Location, ValueRange) {
    Value feature = linalg::IndexOp::create(nested, loc, 0);
    Sums sums = PartsOfRow(loc, outputs, lses, count, feature).add(nested);
    Formula f{nested, loc, sums.weights.getType()},
        exact{nested, loc, sums.largest.getType()};
    Value isEmpty = f.isEqual(sums.weights, f.number(0));
    Value output =
        f.select(isEmpty, f.number(0), f.div(sums.output, sums.weights));
    SmallVector<Value> results = {
        convertFloats(nested, loc, output, getElementTypeOrSelf(room))};
    if (lse) {
      Value logarithm = exact.convert(f.make<math::LogOp>(sums.weights));
      Value all = exact.select(isEmpty, exact.number(-kInfinity),
                               exact.add(sums.largest, logarithm));
      results.push_back(convertFloats(nested, loc, all, lse));
    }
    linalg::YieldOp::create(nested, loc, results);
  };
  auto merged = linalg::GenericOp::create(
      builder, loc, ValueRange(rooms).getTypes(), ValueRange(), rooms, maps,
      utils::IteratorType::parallel, body);
  return {merged.getResult(0), lse ? merged.getResult(1) : Value()};
}
