//===- KernelBuilder.cpp - Builder of loops, indices and vectors ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"

#include "fovea/Analysis/Formula.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace fovea::attn;

static constexpr arith::IntegerOverflowFlags kNoWrap =
    arith::IntegerOverflowFlags::nsw;

Value KernelBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}

Value KernelBuilder::add(Value a, Value b) {
  return fold<arith::AddIOp>(a, b, kNoWrap);
}

Value KernelBuilder::sub(Value a, Value b) {
  return fold<arith::SubIOp>(a, b, kNoWrap);
}

Value KernelBuilder::mul(Value a, Value b) {
  return fold<arith::MulIOp>(a, b, kNoWrap);
}

Value KernelBuilder::min(Value a, Value b) {
  return fold<arith::MinSIOp>(a, b);
}

Value KernelBuilder::max(Value a, Value b) {
  return fold<arith::MaxSIOp>(a, b);
}

// Sizes are not negative: unsigned division is a shift for powers of two.
Value KernelBuilder::floorDiv(Value a, int64_t b) {
  return fold<arith::DivUIOp>(a, index(b));
}

Value KernelBuilder::ceilDiv(Value a, int64_t b) {
  return floorDiv(add(a, b - 1), b);
}

Value KernelBuilder::dim(Value memref, int64_t dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return index(type.getDimSize(dim));
  return memref::DimOp::create(*this, memref, dim);
}

SmallVector<Value> KernelBuilder::loop(Value lower, Value upper, int64_t step,
                                       ValueRange inits, LoopBody body) {
  std::optional<int64_t> lo = getConstantIntValue(lower);
  std::optional<int64_t> hi = getConstantIntValue(upper);
  if (lo && hi && *hi <= *lo)
    return SmallVector<Value>(inits);
  if (lo && hi && *hi - *lo <= step)
    return body(lower, inits);
  auto loop = scf::ForOp::create(*this, lower, upper, index(step), inits);
  OpBuilder::InsertionGuard guard(*this);
  // Without carried values the builder has already placed the terminator.
  if (inits.empty())
    setInsertionPoint(loop.getBody()->getTerminator());
  else
    setInsertionPointToEnd(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!inits.empty())
    scf::YieldOp::create(*this, next);
  return SmallVector<Value>(loop.getResults());
}

void KernelBuilder::loop(Value lower, Value upper, int64_t step,
                         llvm::function_ref<void(Value)> body) {
  loop(lower, upper, step, {}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

void KernelBuilder::when(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPoint(branch.thenYield());
  body();
}

Value KernelBuilder::constant(Type type, double value) {
  FloatAttr attr = getFloatAttr(getElementTypeOrSelf(type), value);
  return createScalarOrSplatConstant(*this, getLoc(), type, attr.getValue());
}

Value KernelBuilder::constantInt(Type type, int64_t value) {
  return createScalarOrSplatConstant(*this, getLoc(), type, value);
}

Value KernelBuilder::splat(VectorType type, Value scalar) {
  if (scalar.getType() == type)
    return scalar;
  return vector::BroadcastOp::create(*this, type, scalar);
}

Value KernelBuilder::convert(Value value, Type element) {
  return fovea::convertFloats(*this, getLoc(), value, element);
}

Value KernelBuilder::maxOrSecond(Value a, Value b) {
  Value greater = arith::CmpFOp::create(*this, arith::CmpFPredicate::OGT, a, b);
  return arith::SelectOp::create(*this, greater, a, b);
}

Value KernelBuilder::load(Value memref, ValueRange indices) {
  return memref::LoadOp::create(*this, memref, indices);
}

Value KernelBuilder::loadVector(VectorType type, Value memref,
                                ValueRange indices) {
  return vector::LoadOp::create(*this, type, memref, indices);
}

void KernelBuilder::store(Value value, Value memref, ValueRange indices) {
  if (isa<VectorType>(value.getType()))
    vector::StoreOp::create(*this, value, memref, indices);
  else
    memref::StoreOp::create(*this, value, memref, indices);
}
