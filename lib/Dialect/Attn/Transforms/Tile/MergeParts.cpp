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
#include "fovea/Dialect/Machine/IR/GpuArch.h"

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

/// Emits sums for a few features of a row.
class FeatureSums {
public:
  FeatureSums(OpBuilder &builder, Location loc, Type type, ValueRange features)
      : builder(builder), loc(loc), f{builder, loc, type}, features(features) {}

  Sums addAll(ArrayRef<Sums> parts);
  /// Adds up the selected ones of the first `count`, i32, parts of `row`.
  Sums addRow(const RowParts &row, Value count, const Selection &selection);

private:
  FeatureSums inside(OpBuilder &nested) const {
    return FeatureSums(nested, loc, f.type, features);
  }
  Sums addSome(const RowParts &row, Value count, const Selection &selection,
               std::optional<Sums> before = std::nullopt);
  Value number(int64_t value) const {
    return arith::ConstantIntOp::create(builder, loc, value, /*width=*/32);
  }

  OpBuilder &builder;
  Location loc;
  Formula f;
  ValueRange features;
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
  auto addAtOnce = [&](OpBuilder &nested) {
    // No loop is in the way of the first ones.
    FeatureSums sums = inside(nested);
    Sums begin = sums.addSome(row, count, selection);
    Value step = sums.number(selection.atOnce * selection.stride);
    Value next = sums.f.make<arith::AddIOp>(selection.first, step);
    return scf::ForOp::create(
               nested, loc, next, count, step, begin.getValues(),
               [&](OpBuilder &inner, Location, Value at, ValueRange carried) {
                 Selection some = selection;
                 some.first = at;
                 Sums more = inside(inner).addSome(row, count, some,
                                                   Sums::get(carried));
                 scf::YieldOp::create(inner, loc, more.getValues());
               })
        .getResults();
  };
  if (selection.atOnce <= kFewParts)
    return Sums::get(addAtOnce(builder));
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
        scf::YieldOp::create(nested, loc, addAtOnce(nested));
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
/// The threads of a row that share its parts, in groups, each with some
/// features: those of a thread are `threads` apart.
struct ThreadGroups {
  int64_t count, threads, perThread;
  /// The parts that a thread reads at once.
  int64_t atOnce;

  /// Returns those of a row of so many features and usually so many parts.
  static ThreadGroups get(int64_t features, int64_t usual);

  /// Emits the features of a thread.
  SmallVector<Value> emitFeatures(Formula &f, Value thread) const;
};

/// The sums of groups of the parts of a row, [groups, threads] each.
struct GroupSums {
  ThreadGroups groups;
  Sums sums;
};
} // namespace

ThreadGroups ThreadGroups::get(int64_t features, int64_t usual) {
  ThreadGroups groups;
  groups.perThread = kFeaturesOfThread;
  while (features % groups.perThread)
    groups.perThread /= 2;
  groups.threads = features / groups.perThread;
  // Of many rows, with usually few parts, more have room where each has a warp,
  // whose threads read few parts at once.
  if (usual <= kFewParts) {
    groups.count = std::max<int64_t>(machine::kWarpSize / groups.threads, 1);
    groups.atOnce = kFewParts;
    return groups;
  }
  int64_t most = std::min<int64_t>(kMostThreads / groups.threads,
                                   llvm::divideCeil(usual, kFewParts));
  groups.count = llvm::bit_floor<uint64_t>(std::max<int64_t>(most, 1));
  groups.atOnce = std::clamp(kPartsOfThreads / (groups.count * groups.threads),
                             kFewParts, kManyParts);
  return groups;
}

SmallVector<Value> ThreadGroups::emitFeatures(Formula &f, Value thread) const {
  SmallVector<Value> features = {thread};
  for (int64_t more = 1; more < perThread; ++more)
    features.push_back(f.make<arith::AddIOp>(
        thread, f.make<arith::ConstantIndexOp>(more * threads)));
  return features;
}

/// Emits the sums of the `count` parts of `row` by groups of threads.
static GroupSums addGroups(OpBuilder &builder, Location loc,
                           const RowParts &row, Value count,
                           const ThreadGroups &groups) {
  auto type = cast<FloatType>(getElementTypeOrSelf(row.outputs));
  Value room = tensor::EmptyOp::create(
      builder, loc, ArrayRef{groups.count, groups.threads}, type);
  auto emit = [&](OpBuilder &nested, ValueRange point) {
    Formula f = {nested, loc, type};
    Value group = f.make<arith::IndexCastOp>(nested.getI32Type(), point[0]);
    return FeatureSums(nested, loc, type, groups.emitFeatures(f, point[1]))
        .addRow(row, count, {group, groups.count, groups.atOnce})
        .getValues();
  };
  SmallVector<Value> rooms(3 + groups.perThread, room);
  return {groups, Sums::get(emitPoints(builder, loc, rooms, emit))};
}

/// Emits the sum of those of all groups for a feature.
static Sums addGroupsOf(OpBuilder &builder, Location loc,
                        const GroupSums &ofGroups, Value feature) {
  const auto &[groups, all] = ofGroups;
  auto type = cast<FloatType>(getElementTypeOrSelf(all.largest));
  Formula f = {builder, loc, type};
  auto number = [&](int64_t value) -> Value {
    return f.make<arith::ConstantIndexOp>(value);
  };
  Value thread = f.make<arith::RemUIOp>(feature, number(groups.threads));
  SmallVector<Sums> parts;
  for (int64_t group = 0; group < groups.count; ++group) {
    auto get = [&](Value tensor) -> Value {
      return f.make<tensor::ExtractOp>(tensor,
                                       ValueRange{number(group), thread});
    };
    Value output;
    for (auto [more, outputs] : llvm::enumerate(all.outputs)) {
      Value own = get(outputs);
      Value isBefore = f.make<arith::CmpIOp>(arith::CmpIPredicate::ult, feature,
                                             number(more * groups.threads));
      output = output ? f.select(isBefore, output, own) : own;
    }
    parts.push_back(
        {get(all.largest), get(all.rest), get(all.weights), {output}});
  }
  return FeatureSums(builder, loc, type, feature).addAll(parts);
}

/// Emits the results of `sums`: each output, of type `element`, and the
/// log-sum-exp, if it has a type.
static SmallVector<Value> emitResults(OpBuilder &builder, Location loc,
                                      const Sums &sums, Type element,
                                      FloatType lse) {
  Formula f = {builder, loc, cast<FloatType>(sums.weights.getType())};
  Value isEmpty = f.isEqual(sums.weights, f.number(0));
  SmallVector<Value> results;
  for (Value output : sums.outputs)
    results.push_back(convertFloats(
        builder, loc,
        f.select(isEmpty, f.number(0), f.div(output, sums.weights)), element));
  if (lse) {
    Formula wide = {builder, loc, lse};
    Value more = f.add(sums.rest, f.make<math::LogOp>(sums.weights));
    Value all = wide.add(wide.convert(sums.largest), wide.convert(more));
    results.push_back(wide.select(isEmpty, wide.number(-kInfinity), all));
  }
  return results;
}

/// Emits the results of a row whose parts one group of threads adds up: threads
/// find those of their own features.
static MergedRow mergeByThreads(OpBuilder &builder, Location loc,
                                const RowParts &row, Value count,
                                const ThreadGroups &groups, Value room,
                                FloatType lse) {
  // The first feature of each thread, the second, and so on.
  OpFoldResult one = builder.getIndexAttr(1),
               size = builder.getIndexAttr(groups.threads);
  SmallVector<tensor::ExtractSliceOp> slices;
  SmallVector<Value> rooms;
  for (int64_t number = 0; number < groups.perThread; ++number) {
    OpFoldResult first = builder.getIndexAttr(number * groups.threads);
    slices.push_back(
        tensor::ExtractSliceOp::create(builder, loc, room, first, size, one));
    rooms.push_back(slices.back());
  }
  if (lse)
    rooms.push_back(tensor::EmptyOp::create(builder, loc, groups.threads, lse));
  auto type = cast<FloatType>(getElementTypeOrSelf(row.outputs));
  auto emit = [&](OpBuilder &nested, ValueRange point) {
    Formula f = {nested, loc, type};
    Value zero = f.make<arith::ConstantIntOp>(0, /*width=*/32);
    Sums sums = FeatureSums(nested, loc, type, groups.emitFeatures(f, point[0]))
                    .addRow(row, count, {zero, /*stride=*/1, groups.atOnce});
    return emitResults(nested, loc, sums, getElementTypeOrSelf(room), lse);
  };
  SmallVector<Value> merged = emitPoints(builder, loc, rooms, emit);
  MergedRow results = {room, lse ? merged.pop_back_val() : Value()};
  for (auto [slice, value] : llvm::zip_equal(slices, merged))
    results.output = tensor::InsertSliceOp::create(
        builder, loc, value, results.output, slice.getMixedOffsets(),
        slice.getMixedSizes(), slice.getMixedStrides());
  return results;
}

int64_t fovea::attn::getUsualParts(int64_t queryTile, int64_t split) {
  constexpr int64_t kFewRows = 64;
  return queryTile <= kFewRows ? split : std::min(split, kFewParts);
}

MergedRow fovea::attn::mergeParts(OpBuilder &builder, Location loc,
                                  const RowParts &row, Value count,
                                  int64_t usual, Value room, FloatType lse) {
  auto shape = cast<RankedTensorType>(room.getType());
  count = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), count);
  std::optional<GroupSums> sumsOfGroups;
  if (usual && shape.hasStaticShape()) {
    auto groups = ThreadGroups::get(shape.getDimSize(0), usual);
    if (groups.count == 1)
      return mergeByThreads(builder, loc, row, count, groups, room, lse);
    sumsOfGroups = addGroups(builder, loc, row, count, groups);
  }
  SmallVector<Value> rooms = {room};
  if (lse)
    rooms.push_back(tensor::EmptyOp::create(
        builder, loc, tensor::getMixedSizes(builder, loc, room), lse));
  auto type = cast<FloatType>(getElementTypeOrSelf(row.outputs));
  auto emit = [&](OpBuilder &nested, ValueRange point) {
    Sums sums;
    if (sumsOfGroups) {
      sums = addGroupsOf(nested, loc, *sumsOfGroups, point[0]);
    } else {
      Value zero = arith::ConstantIntOp::create(nested, loc, 0, /*width=*/32);
      sums = FeatureSums(nested, loc, type, point)
                 .addRow(row, count, {zero, /*stride=*/1, kManyParts});
    }
    return emitResults(nested, loc, sums, shape.getElementType(), lse);
  };
  SmallVector<Value> merged = emitPoints(builder, loc, rooms, emit);
  return {merged[0], lse ? merged[1] : Value()};
}
