//===- MergeParts.cpp - The sums of a row of which there are parts --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call of decoding waits for this, for a few parts of a few rows. What takes
// time are instructions, which are not in the cache yet, and waits: for memory,
// and of threads for each other. So a weight is computed once, not by each
// thread, and is all that a thread needs of another: each finds the largest
// log-sum-exp, and adds up the weights, itself.
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

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The parts whose weights are in memory at a time.
static constexpr int64_t kPartsAtOnce = 128;

static constexpr auto kParallel = utils::IteratorType::parallel,
                      kReduction = utils::IteratorType::reduction;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Emits a `linalg.generic`, whose elements are `getValues` of the elements of
/// `inputs` and of `inits`.
static SmallVector<Value> emitGeneric(
    OpBuilder &builder, Location loc, ValueRange inputs, ValueRange inits,
    ArrayRef<AffineMap> maps, ArrayRef<utils::IteratorType> loops,
    llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> getValues) {
  auto body = [&](OpBuilder &nested, Location loc, ValueRange arguments) {
    linalg::YieldOp::create(nested, loc, getValues(nested, arguments));
  };
  return llvm::to_vector_of<Value>(
      linalg::GenericOp::create(builder, loc, inits.getTypes(), inputs, inits,
                                maps, loops, body)
          .getResults());
}

namespace {

class PartsOfRow {
public:
  PartsOfRow(Location loc, Value outputs, Value lses, Value count,
             OpFoldResult features)
      : loc(loc), outputs(outputs), lses(lses), count(count),
        features(features), context(loc.getContext()),
        type(cast<FloatType>(getElementTypeOrSelf(outputs))),
        wide(cast<FloatType>(getElementTypeOrSelf(lses))) {}

  Value findLargest(OpBuilder &builder);
  SmallVector<Value> add(OpBuilder &builder, Value largest);

private:
  Value getWeights(OpBuilder &builder, Value first, Value largest);
  SmallVector<Value> addSome(OpBuilder &builder, Value first, Value largest,
                             ValueRange sums);
  Value getRoom(OpBuilder &builder, ArrayRef<int64_t> shape, Type element) {
    return tensor::EmptyOp::create(builder, loc, shape, element);
  }

  Location loc;
  Value outputs, lses, count;
  OpFoldResult features;
  MLIRContext *context;
  FloatType type, wide;
};

} // namespace

/// Returns the largest log-sum-exp, once for each of the parts at a time.
Value PartsOfRow::findLargest(OpBuilder &builder) {
  AffineMap whole = builder.getMultiDimIdentityMap(1);
  Value lowest =
      emitGeneric(builder, loc, {}, getRoom(builder, kPartsAtOnce, wide), whole,
                  kParallel,
                  [&](OpBuilder &body, ValueRange) -> SmallVector<Value> {
                    return {Formula{body, loc, wide}.number(-kInfinity)};
                  })
          .front();
  AffineMap ofPlace = AffineMap::get(2, 0, builder.getAffineDimExpr(0)),
            ofPart = AffineMap::get(2, 0, builder.getAffineDimExpr(1));
  return emitGeneric(builder, loc, lses, lowest, {ofPart, ofPlace},
                     {kParallel, kReduction},
                     [&](OpBuilder &body, ValueRange in) -> SmallVector<Value> {
                       Formula exact{body, loc, wide};
                       return {exact.make<arith::MaxNumFOp>(in[1], in[0])};
                     })
      .front();
}

/// Returns the weights of the parts from `first` on; behind the last one, its
/// own.
Value PartsOfRow::getWeights(OpBuilder &builder, Value first, Value largest) {
  AffineMap whole = builder.getMultiDimIdentityMap(1);
  auto getWeight = [&](OpBuilder &body, ValueRange in) -> SmallVector<Value> {
    IndexMath math(body, loc);
    Value place = linalg::IndexOp::create(body, loc, 0);
    OpFoldResult part =
        math.min(math.add(first, place), math.sub(count, math.constant(1)));
    Value lse =
        tensor::ExtractOp::create(body, loc, lses, math.materialize(part));
    Formula f{body, loc, type}, exact{body, loc, wide};
    // Where no part has had a key, the difference is NaN.
    Value isEmpty = exact.isEqual(lse, exact.number(-kInfinity));
    Value weight = f.make<math::ExpOp>(f.convert(exact.sub(lse, in[0])));
    return {f.select(isEmpty, f.number(0), weight)};
  };
  return emitGeneric(builder, loc, largest,
                     getRoom(builder, kPartsAtOnce, type), {whole, whole},
                     kParallel, getWeight)
      .front();
}

/// Adds the parts from `first` on, as many as are at a time.
SmallVector<Value> PartsOfRow::addSome(OpBuilder &builder, Value first,
                                       Value largest, ValueRange sums) {
  IndexMath math(builder, loc);
  OpFoldResult parts = math.min(math.constant(kPartsAtOnce),
                                math.sub(count, first)),
               zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  Value weights = tensor::ExtractSliceOp::create(
      builder, loc, getWeights(builder, first, largest), {zero}, {parts},
      {one});
  Value own = tensor::ExtractSliceOp::create(
      builder, loc, outputs, {first, zero}, {parts, features}, {one, one});
  AffineExpr feature = builder.getAffineDimExpr(0),
             part = builder.getAffineDimExpr(1);
  AffineMap ofFeature = AffineMap::get(2, 0, feature),
            ofPart = AffineMap::get(2, 0, part),
            ofBoth = AffineMap::get(2, 0, {part, feature}, context);
  return emitGeneric(
      builder, loc, {own, weights}, sums,
      {ofBoth, ofPart, ofFeature, ofFeature}, {kParallel, kReduction},
      [&](OpBuilder &body, ValueRange in) -> SmallVector<Value> {
        Formula f{body, loc, type};
        Value output = in[0], weight = in[1];
        Value product = f.select(f.isEqual(weight, f.number(0)), f.number(0),
                                 f.mul(weight, output));
        return {f.add(in[2], weight), f.add(in[3], product)};
      });
}

/// Returns the sums of the weights, one for each feature, and of the weighted
/// outputs.
SmallVector<Value> PartsOfRow::add(OpBuilder &builder, Value largest) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  AffineMap whole = builder.getMultiDimIdentityMap(1);
  SmallVector<Value> rooms;
  for (int sum = 0; sum < 2; ++sum)
    rooms.push_back(
        tensor::EmptyOp::create(builder, loc, ArrayRef(features), type));
  SmallVector<Value> zeros =
      emitGeneric(builder, loc, {}, rooms, {whole, whole}, kParallel,
                  [&](OpBuilder &body, ValueRange) -> SmallVector<Value> {
                    // The same number would make one a copy of the other.
                    Formula f{body, loc, type};
                    return {f.number(0), f.number(-0.0)};
                  });
  // More parts than are at a time are rare, and no loop is in the way of
  // others.
  SmallVector<Value> sums = addSome(builder, constant(0), largest, zeros);
  return scf::ForOp::create(
             builder, loc, constant(kPartsAtOnce), count,
             constant(kPartsAtOnce), sums,
             [&](OpBuilder &nested, Location, Value first, ValueRange carried) {
               scf::YieldOp::create(nested, loc,
                                    addSome(nested, first, largest, carried));
             })
      .getResults();
}

MergedRow fovea::attn::mergeParts(OpBuilder &builder, Location loc,
                                  Value outputs, Value lses, Value count,
                                  OpFoldResult features) {
  PartsOfRow parts(loc, outputs, lses, count, features);
  Value largest = parts.findLargest(builder);
  SmallVector<Value> sums = parts.add(builder, largest);
  return {largest, sums[0], sums[1]};
}

Value MergedRow::getOutput(OpBuilder &builder, Location loc, Value room) const {
  auto type = cast<RankedTensorType>(outputs.getType());
  auto element = cast<FloatType>(getElementTypeOrSelf(room));
  AffineMap whole = builder.getMultiDimIdentityMap(1);
  return emitGeneric(builder, loc, {weights, outputs}, room,
                     {whole, whole, whole}, kParallel,
                     [&](OpBuilder &body, ValueRange in) -> SmallVector<Value> {
                       Formula f{body, loc,
                                 cast<FloatType>(type.getElementType())};
                       Value isEmpty = f.isEqual(in[0], f.number(0));
                       Value output =
                           f.select(isEmpty, f.number(0), f.div(in[1], in[0]));
                       return {convertFloats(body, loc, output, element)};
                     })
      .front();
}

Value MergedRow::getLse(OpBuilder &builder, Location loc) const {
  Formula f{builder, loc, cast<FloatType>(getElementTypeOrSelf(weights))},
      exact{builder, loc, cast<FloatType>(getElementTypeOrSelf(largest))};
  Value first = arith::ConstantIndexOp::create(builder, loc, 0);
  Value sum = tensor::ExtractOp::create(builder, loc, weights, first);
  Value most = tensor::ExtractOp::create(builder, loc, largest, first);
  Value logarithm = exact.convert(f.make<math::LogOp>(sum));
  return exact.select(f.isEqual(sum, f.number(0)), exact.number(-kInfinity),
                      exact.add(most, logarithm));
}
