//===- MergeParts.cpp - The sums of a row of which there are parts --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call of decoding waits for this, for a few parts of a few rows. What takes
// time are waits for memory and the instructions of a thread, which has no
// other to wait beside. So each thread finds weights itself, by few
// instructions, and reads many parts before it needs the first; and groups of
// threads share the parts.
//
//===----------------------------------------------------------------------===//

#include "MergeParts.h"

#include "fovea/Analysis/Formula.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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

/// The parts that are read at once: all of few, else so many.
static constexpr int64_t kFewParts = 4, kManyParts = 16;

/// The features of a thread where threads share the parts, the most threads of
/// a row, and how many parts all of them may read at once. With these the block
/// fits beside one of the launch in front, whose end it waits for.
static constexpr int64_t kFeaturesOfThread = 4, kMostThreads = 256,
                         kPartsOfThreads = 2048;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {

/// Some parts of a row, as seen by a few features: the largest log-sum-exp, or
/// the lowest number without a key, and what it is rounded by; the sum of the
/// weights relative to both, null for that of one part, 1; and the sums of the
/// weighted outputs.
struct Sums {
  Value largest, rest, weights;
  SmallVector<Value> outputs;

  static Sums get(ValueRange values) {
    return {values[0], values[1], values[2],
            llvm::to_vector_of<Value>(values.drop_front(3))};
  }
  SmallVector<Value> getValues() const {
    SmallVector<Value> values = {largest, rest, weights};
    llvm::append_range(values, outputs);
    return values;
  }
};

/// The parts of a row that are added up: every `stride`-th from `first`, an
/// i32, on, and how many are read at once. Their order, and which are added
/// together, does not depend on how many more there are, so that a row's bits
/// do not.
struct Selection {
  Value first;
  int64_t stride, atOnce;
};

/// Emits sums for a few features of a row, whose number is given where there
/// are several.
class FeatureSums {
public:
  FeatureSums(OpBuilder &builder, Location loc, Type type, ValueRange row,
              ValueRange features)
      : builder(builder), loc(loc), f{builder, loc, type}, ofRow(row),
        features(features) {}

  Sums addAll(ArrayRef<Sums> parts);
  /// Adds up the selected ones of the first `count`, i32, parts of `row`.
  Sums addRow(const RowParts &row, Value count, const Selection &selection);

private:
  FeatureSums inside(OpBuilder &nested) const {
    return FeatureSums(nested, loc, f.type, ofRow, features);
  }
  Sums addSome(const RowParts &row, Value count, const Selection &selection,
               std::optional<Sums> before = std::nullopt);
  Value number(int64_t value) const {
    return arith::ConstantIntOp::create(builder, loc, value, /*width=*/32);
  }

  OpBuilder &builder;
  Location loc;
  Formula f;
  ValueRange ofRow, features;
};

} // namespace

/// Adds up all of `parts`. One part alone, beside others without a key, has the
/// weight 1, so that nothing of it is rounded.
Sums FeatureSums::addAll(ArrayRef<Sums> parts) {
  // In pairs, since each waits for the other. A difference to minus infinity
  // would be NaN.
  const llvm::fltSemantics &semantics =
      cast<FloatType>(f.type).getFloatSemantics();
  Value lowest = f.make<arith::ConstantOp>(builder.getFloatAttr(
      f.type, APFloat::getLargest(semantics, /*Negative=*/true)));
  SmallVector<std::pair<Value, Value>> maxima = {{lowest, f.number(0)}};
  for (const Sums &part : parts)
    maxima.emplace_back(part.largest, part.rest);
  while (maxima.size() > 1) {
    SmallVector<std::pair<Value, Value>> left;
    for (size_t at = 0; at + 1 < maxima.size(); at += 2) {
      auto [a, restOfA] = maxima[at];
      auto [b, restOfB] = maxima[at + 1];
      Value isMore = f.compare(arith::CmpFPredicate::OGT, b, a);
      left.emplace_back(f.select(isMore, b, a),
                        f.select(isMore, restOfB, restOfA));
    }
    if (maxima.size() % 2)
      left.push_back(maxima.back());
    maxima = std::move(left);
  }

  Sums all = {maxima.front().first, maxima.front().second, Value(),
              SmallVector<Value>(features.size())};
  auto addTo = [&](Value &sum, Value term) {
    sum = sum ? f.add(sum, term) : term;
  };
  for (const Sums &part : parts) {
    Value exponent =
        f.add(f.sub(part.largest, all.largest), f.sub(part.rest, all.rest));
    Value weight = f.make<math::Exp2Op>(f.mul(exponent, std::numbers::log2e),
                                        arith::FastMathFlags::afn);
    for (auto [sum, output] : llvm::zip_equal(all.outputs, part.outputs))
      addTo(sum, f.mul(weight, output));
    addTo(all.weights, part.weights ? f.mul(weight, part.weights) : weight);
  }
  return all;
}

/// Adds those of the selected parts of `row` that are read at once, as far as
/// there are so many of `count`, to those `before`.
Sums FeatureSums::addSome(const RowParts &row, Value count,
                          const Selection &selection,
                          std::optional<Sums> before) {
  Value last = f.make<arith::SubIOp>(count, number(1));
  SmallVector<Sums> parts;
  if (before)
    parts.push_back(*before);
  for (int64_t term = 0; term < selection.atOnce; ++term) {
    Value place =
        f.make<arith::AddIOp>(selection.first, number(term * selection.stride));
    Value exists =
        f.make<arith::CmpIOp>(arith::CmpIPredicate::slt, place, count);
    Value nearest = f.make<arith::MinSIOp>(place, last);
    Value part = f.make<arith::IndexCastOp>(builder.getIndexType(), nearest);
    auto get = [&](Value tensor, ValueRange feature) -> Value {
      SmallVector<Value> place = {part};
      llvm::append_range(place, ofRow);
      llvm::append_range(place, feature);
      return f.make<tensor::ExtractOp>(tensor, place);
    };
    Value lse = get(row.lses, {});
    Sums read = {f.select(exists, lse, f.number(-kInfinity)),
                 get(row.rests, {}),
                 {},
                 {}};
    // What is read again may be infinite.
    for (Value feature : features)
      read.outputs.push_back(
          f.select(exists, get(row.outputs, feature), f.number(0)));
    parts.push_back(std::move(read));
  }
  return addAll(parts);
}

Sums FeatureSums::addRow(const RowParts &row, Value count,
                         const Selection &selection) {
  Selection few = selection;
  few.atOnce = kFewParts;
  Value areFew = f.make<arith::CmpIOp>(arith::CmpIPredicate::sle, count,
                                       number(few.atOnce * few.stride));
  auto branch = scf::IfOp::create(
      builder, loc, areFew,
      [&](OpBuilder &nested, Location) {
        Sums all = inside(nested).addSome(row, count, few);
        scf::YieldOp::create(nested, loc, all.getValues());
      },
      [&](OpBuilder &nested, Location) {
        // No loop is in the way of the first ones.
        FeatureSums sums = inside(nested);
        Sums begin = sums.addSome(row, count, selection);
        Value step = sums.number(selection.atOnce * selection.stride);
        Value next = sums.f.make<arith::AddIOp>(selection.first, step);
        auto rest = scf::ForOp::create(
            nested, loc, next, count, step, begin.getValues(),
            [&](OpBuilder &inner, Location, Value at, ValueRange carried) {
              Selection some = selection;
              some.first = at;
              Sums more =
                  inside(inner).addSome(row, count, some, Sums::get(carried));
              scf::YieldOp::create(inner, loc, more.getValues());
            });
        scf::YieldOp::create(nested, loc, rest.getResults());
      });
  return Sums::get(branch.getResults());
}

/// Emits an op of one loop for each dimension of `rooms`, whose elements
/// `emit` returns.
static SmallVector<Value>
emitPoints(OpBuilder &builder, Location loc, ValueRange rooms,
           llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange point)>
               emit) {
  unsigned rank = cast<RankedTensorType>(rooms[0].getType()).getRank();
  SmallVector<AffineMap> maps(rooms.size(),
                              builder.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  auto body = [&](OpBuilder &nested, Location, ValueRange) {
    SmallVector<Value> point;
    for (unsigned dim = 0; dim < rank; ++dim)
      point.push_back(linalg::IndexOp::create(nested, loc, dim));
    linalg::YieldOp::create(nested, loc, emit(nested, point));
  };
  return llvm::to_vector_of<Value>(
      linalg::GenericOp::create(builder, loc, rooms.getTypes(), ValueRange(),
                                rooms, maps, loops, body)
          .getResults());
}

namespace {
/// The sums of groups of the parts of a row, or of each of several, [groups,
/// threads] each.
struct GroupSums {
  int64_t count;
  /// The threads of a group. Features of a thread are so far apart.
  int64_t threads;
  Sums sums;
};
} // namespace

/// Emits the sums of the `count` parts of `row`, usually at most so many, by
/// groups of threads, which have a few parts each. `shape` is that of the
/// outputs, [features] of one row or [rows, features].
static GroupSums addGroups(OpBuilder &builder, Location loc,
                           const RowParts &row, Value count, int64_t usual,
                           ArrayRef<int64_t> shape) {
  int64_t features = shape.back(), perThread = kFeaturesOfThread;
  ArrayRef<int64_t> rows = shape.drop_back();
  while (features % perThread)
    perThread /= 2;
  GroupSums groups;
  groups.threads = features / perThread;
  int64_t ofGroup = groups.threads * llvm::product_of(rows);
  int64_t most = std::min<int64_t>(kMostThreads / ofGroup,
                                   llvm::divideCeil(usual, kFewParts));
  groups.count = llvm::bit_floor<uint64_t>(std::max<int64_t>(most, 1));
  // Where a block has several rows, more blocks have room.
  int64_t atOnce = rows.empty()
                       ? std::clamp(kPartsOfThreads / (groups.count * ofGroup),
                                    kFewParts, kManyParts)
                       : kFewParts;
  auto type = cast<FloatType>(getElementTypeOrSelf(row.outputs));
  SmallVector<int64_t> points(rows);
  llvm::append_range(points, ArrayRef{groups.count, groups.threads});
  Value room = tensor::EmptyOp::create(builder, loc, points, type);
  auto emit = [&](OpBuilder &nested, ValueRange point) {
    Formula f = {nested, loc, type};
    Value thread = point.back(), number = point.drop_back().back();
    Value group = f.make<arith::IndexCastOp>(nested.getI32Type(), number);
    SmallVector<Value> ofThread = {thread};
    for (int64_t more = 1; more < perThread; ++more)
      ofThread.push_back(f.make<arith::AddIOp>(
          thread, f.make<arith::ConstantIndexOp>(more * groups.threads)));
    return FeatureSums(nested, loc, type, point.drop_back(2), ofThread)
        .addRow(row, count, {group, groups.count, atOnce})
        .getValues();
  };
  groups.sums = Sums::get(
      emitPoints(builder, loc, SmallVector<Value>(3 + perThread, room), emit));
  return groups;
}

/// Emits the sum of `groups` at `point`, a feature, or a row and a feature.
static Sums addGroupsOf(OpBuilder &builder, Location loc,
                        const GroupSums &groups, ValueRange point) {
  ValueRange row = point.drop_back();
  Value feature = point.back();
  auto type = cast<FloatType>(getElementTypeOrSelf(groups.sums.largest));
  Formula f = {builder, loc, type};
  auto number = [&](int64_t value) -> Value {
    return f.make<arith::ConstantIndexOp>(value);
  };
  Value thread = f.make<arith::RemUIOp>(feature, number(groups.threads));
  SmallVector<Sums> parts;
  for (int64_t group = 0; group < groups.count; ++group) {
    auto get = [&](Value tensor) -> Value {
      SmallVector<Value> place(row);
      llvm::append_range(place, ValueRange{number(group), thread});
      return f.make<tensor::ExtractOp>(tensor, place);
    };
    Value output;
    for (auto [more, outputs] : llvm::enumerate(groups.sums.outputs)) {
      Value own = get(outputs);
      Value isBefore = f.make<arith::CmpIOp>(arith::CmpIPredicate::ult, feature,
                                             number(more * groups.threads));
      output = output ? f.select(isBefore, output, own) : own;
    }
    parts.push_back({get(groups.sums.largest),
                     get(groups.sums.rest),
                     get(groups.sums.weights),
                     {output}});
  }
  return FeatureSums(builder, loc, type, row, feature).addAll(parts);
}

MergedRow fovea::attn::mergeParts(OpBuilder &builder, Location loc,
                                  const RowParts &row, Value count,
                                  int64_t usual, Value room, FloatType lse) {
  auto shape = cast<RankedTensorType>(room.getType());
  count = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), count);
  std::optional<GroupSums> groups;
  if (usual && shape.hasStaticShape())
    groups = addGroups(builder, loc, row, count, usual, shape.getShape());
  SmallVector<Value> rooms = {room};
  if (lse)
    rooms.push_back(tensor::EmptyOp::create(
        builder, loc, tensor::getMixedSizes(builder, loc, room), lse));
  auto type = cast<FloatType>(getElementTypeOrSelf(row.outputs));
  auto emit = [&](OpBuilder &nested, ValueRange point) {
    Formula f = {nested, loc, type};
    Sums sums;
    if (groups) {
      sums = addGroupsOf(nested, loc, *groups, point);
    } else {
      Value zero = f.make<arith::ConstantIntOp>(0, /*width=*/32);
      sums =
          FeatureSums(nested, loc, type, point.drop_back(), point.take_back())
              .addRow(row, count, {zero, /*stride=*/1, kManyParts});
    }
    Value isEmpty = f.isEqual(sums.weights, f.number(0));
    Value output =
        f.select(isEmpty, f.number(0), f.div(sums.outputs[0], sums.weights));
    SmallVector<Value> results = {
        convertFloats(nested, loc, output, getElementTypeOrSelf(room))};
    if (lse) {
      Formula wide = {nested, loc, lse};
      Value more = f.add(sums.rest, f.make<math::LogOp>(sums.weights));
      Value all = wide.add(wide.convert(sums.largest), wide.convert(more));
      results.push_back(wide.select(isEmpty, wide.number(-kInfinity), all));
    }
    return results;
  };
  SmallVector<Value> merged = emitPoints(builder, loc, rooms, emit);
  return {merged[0], lse ? merged[1] : Value()};
}
