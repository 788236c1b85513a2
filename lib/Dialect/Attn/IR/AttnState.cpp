//===- AttnState.cpp - States that attention starts from ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state is an output and its log-sum-exp: all that attention to some keys
// contributes to attention to more keys.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace fovea::attn;

ArrayRef<int64_t> fovea::attn::getInitDims(int64_t rank) {
  static constexpr int64_t ofHead[] = {1}, ofRow[] = {1, 2},
                           ofAll[] = {0, 1, 2};
  return rank == 1   ? ArrayRef<int64_t>(ofHead)
         : rank == 2 ? ArrayRef<int64_t>(ofRow)
                     : ArrayRef<int64_t>(ofAll);
}

LogicalResult fovea::attn::verifyInitLse(Operation *op, Value rows, Value lse,
                                         Type accumulation) {
  auto type = cast<ShapedType>(lse.getType());
  if (type.getRank() < 1 || type.getRank() > 3)
    return op->emitOpError("expects the initial log-sum-exp to have rank 1, 2 "
                           "or 3, but it is ")
           << type;
  Type element = type.getElementType();
  if (element != accumulation && !element.isF64())
    return op->emitOpError("expects the initial log-sum-exp to have element "
                           "type ")
           << accumulation << (accumulation.isF64() ? "" : " or f64")
           << ", but it is " << type;
  auto rowType = cast<ShapedType>(rows.getType());
  static constexpr StringLiteral names[] = {"batch size", "number of heads",
                                            "number of queries"};
  for (auto [dim, row] : llvm::enumerate(getInitDims(type.getRank()))) {
    int64_t size = type.getDimSize(dim), wanted = rowType.getDimSize(row);
    if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(wanted) &&
        size != wanted)
      return op->emitOpError("expects the initial log-sum-exp to have the ")
             << names[row] << " of the output, " << wanted << ", but it is "
             << type;
  }
  return success();
}

namespace {
/// The weights of two states in their sum, and its log-sum-exp.
struct Weights {
  Value first, second, lse;
};

/// Arithmetic on floats.
struct Scalars {
  OpBuilder &builder;
  Location loc;

  template <typename Op, typename... Args>
  Value make(Args &&...args) const {
    return Op::create(builder, loc, std::forward<Args>(args)...);
  }
  Value number(Type type, double value) const {
    return make<arith::ConstantOp>(
        builder.getFloatAttr(cast<FloatType>(type), value));
  }
  Value isEqual(Value a, Value b) const {
    return make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, a, b);
  }
  Value convert(Value value, Type to) const {
    unsigned from = value.getType().getIntOrFloatBitWidth(),
             bits = to.getIntOrFloatBitWidth();
    if (value.getType() == to)
      return value;
    return from < bits ? make<arith::ExtFOp>(to, value)
                       : make<arith::TruncFOp>(to, value);
  }
};
} // namespace

/// Returns the weights of states with these log-sum-exps. Where neither has a
/// key, weights are 0 and the log-sum-exp is minus infinity.
static Weights getWeights(const Scalars &s, Value first, Value second) {
  Type type = first.getType();
  Value zero = s.number(type, 0.0);
  Value none = s.number(type, -std::numeric_limits<double>::infinity());
  Value largest = s.make<arith::MaxNumFOp>(first, second);
  Value isEmpty = s.isEqual(largest, none);
  // Of the difference of infinities, the exponential would be NaN.
  Value shift = s.make<arith::SelectOp>(isEmpty, zero, largest);
  auto getPart = [&](Value lse) {
    return s.make<math::ExpOp>(s.make<arith::SubFOp>(lse, shift));
  };
  Value a = getPart(first), b = getPart(second);
  Value sum = s.make<arith::AddFOp>(a, b);
  Value lse = s.make<arith::AddFOp>(largest, s.make<math::LogOp>(sum));
  auto getShare = [&](Value part) {
    return s.make<arith::SelectOp>(isEmpty, zero,
                                   s.make<arith::DivFOp>(part, sum));
  };
  return {getShare(a), getShare(b),
          s.make<arith::SelectOp>(isEmpty, none, lse)};
}

/// Returns `weight * value`; 0 where the weight is 0, whatever the value.
static Value getProduct(const Scalars &s, Value weight, Value value) {
  Value zero = s.number(weight.getType(), 0.0);
  return s.make<arith::SelectOp>(s.isEqual(weight, zero), zero,
                                 s.make<arith::MulFOp>(weight, value));
}

SmallVector<Value> fovea::attn::mergeStates(OpBuilder &builder, Location loc,
                                            State state, State init,
                                            RankedTensorType outputType,
                                            RankedTensorType lseType) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, loc, state.output);
  MLIRContext *context = builder.getContext();
  auto wide = cast<FloatType>(getElementTypeOrSelf(state.lse));
  if (getElementTypeOrSelf(init.lse).isF64())
    wide = builder.getF64Type();
  Type accumulation = getElementTypeOrSelf(state.output);
  auto initType = cast<RankedTensorType>(init.lse.getType());
  auto emit = [&](unsigned rank, ValueRange inputs, Type element,
                  RankedTensorType type,
                  function_ref<Value(const Scalars &, ValueRange)> body) {
    AffineMap rows =
        AffineMap::getMultiDimIdentityMap(rank, context).getMajorSubMap(3);
    SmallVector<AffineExpr> initDims;
    for (int64_t dim : getInitDims(initType.getRank()))
      initDims.push_back(builder.getAffineDimExpr(dim));
    SmallVector<AffineMap> maps = {rows,
                                   AffineMap::get(rank, 0, initDims, context)};
    maps.resize(inputs.size() + 1,
                AffineMap::getMultiDimIdentityMap(rank, context));
    Value empty = tensor::EmptyOp::create(
        builder, loc, ArrayRef(sizes).take_front(rank), element);
    Value result = linalg::GenericOp::create(
                       builder, loc, empty.getType(), inputs, empty, maps,
                       SmallVector<utils::IteratorType>(
                           rank, utils::IteratorType::parallel),
                       [&](OpBuilder &b, Location l, ValueRange in) {
                         linalg::YieldOp::create(b, l, body(Scalars{b, l}, in));
                       })
                       .getResult(0);
    return builder.createOrFold<tensor::CastOp>(loc, type, result);
  };
  auto findWeights = [&](const Scalars &s, ValueRange in) {
    return getWeights(s, s.convert(in[0], wide), s.convert(in[1], wide));
  };
  SmallVector<Value> inputs = {state.lse, init.lse, state.output};
  if (init.output)
    inputs.push_back(init.output);
  SmallVector<Value> results = {
      emit(4, inputs, outputType.getElementType(), outputType,
           [&](const Scalars &s, ValueRange in) {
             Weights weights = findWeights(s, in);
             Value sum =
                 getProduct(s, s.convert(weights.first, accumulation), in[2]);
             if (init.output)
               sum = s.make<arith::AddFOp>(
                   sum, getProduct(s, s.convert(weights.second, accumulation),
                                   s.convert(in[3], accumulation)));
             return s.convert(sum, outputType.getElementType());
           })};
  if (lseType)
    results.push_back(emit(
        3, ArrayRef(inputs).take_front(2), lseType.getElementType(), lseType,
        [&](const Scalars &s, ValueRange in) {
          return s.convert(findWeights(s, in).lse, lseType.getElementType());
        }));
  return results;
}
