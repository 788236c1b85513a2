//===- MathBuilder.cpp - Arithmetic for elementary functions --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MathBuilder.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace fovea;

MathBuilder::MathBuilder(OpBuilder &opBuilder, Location loc, Type type)
    : builder(loc, opBuilder), type(type),
      width(getElementTypeOrSelf(type).getIntOrFloatBitWidth()) {
  intType = builder.getIntegerType(width);
  if (auto vector = dyn_cast<VectorType>(type))
    intType = vector.clone(intType);
}

double MathBuilder::infinity() const {
  return std::numeric_limits<double>::infinity();
}

Value MathBuilder::constant(double value) {
  FloatAttr attr = builder.getFloatAttr(getElementTypeOrSelf(type), value);
  return createScalarOrSplatConstant(builder, builder.getLoc(), type,
                                     attr.getValue());
}

Value MathBuilder::constantInt(int64_t value) {
  return createScalarOrSplatConstant(builder, builder.getLoc(), intType, value);
}

Value MathBuilder::add(Value a, Value b) { return binary<arith::AddFOp>(a, b); }
Value MathBuilder::sub(Value a, Value b) { return binary<arith::SubFOp>(a, b); }
Value MathBuilder::mul(Value a, Value b) { return binary<arith::MulFOp>(a, b); }
Value MathBuilder::div(Value a, Value b) { return binary<arith::DivFOp>(a, b); }
Value MathBuilder::neg(Value a) { return arith::NegFOp::create(builder, a); }
Value MathBuilder::abs(Value a) { return math::AbsFOp::create(builder, a); }

Value MathBuilder::copySign(Value magnitude, Value sign) {
  return binary<math::CopySignOp>(magnitude, sign);
}

Value MathBuilder::mulAdd(Value a, Value b, Value c) {
  if (isa<VectorType>(type))
    return vector::FMAOp::create(builder, a, b, c);
  return add(mul(a, b), c);
}

Value MathBuilder::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder, condition, a, b);
}

Value MathBuilder::compare(arith::CmpFPredicate predicate, Value a, double b) {
  return arith::CmpFOp::create(builder, predicate, a, constant(b));
}

Value MathBuilder::isEqual(Value a, Value b) {
  return arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, a, b);
}
Value MathBuilder::both(Value a, Value b) {
  return arith::AndIOp::create(builder, a, b);
}
Value MathBuilder::sqrt(Value a) { return math::SqrtOp::create(builder, a); }
Value MathBuilder::trunc(Value a) { return math::TruncOp::create(builder, a); }

Value MathBuilder::clamp(Value x, double low, double high) {
  x = select(compare(arith::CmpFPredicate::OLT, x, low), constant(low), x);
  return select(compare(arith::CmpFPredicate::OGT, x, high), constant(high), x);
}

Value MathBuilder::polynomial(Value x, ArrayRef<double> coefficients) {
  Value result = constant(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    result = mulAdd(result, x, constant(coefficient));
  return result;
}

Value MathBuilder::addInt(Value a, Value b) {
  return binary<arith::AddIOp>(a, b);
}
Value MathBuilder::subInt(Value a, Value b) {
  return binary<arith::SubIOp>(a, b);
}
Value MathBuilder::shiftLeft(Value a, int64_t bits) {
  return binary<arith::ShLIOp>(a, constantInt(bits));
}
Value MathBuilder::shiftRightSigned(Value a, int64_t bits) {
  return binary<arith::ShRSIOp>(a, constantInt(bits));
}
Value MathBuilder::isBitSet(Value a, int64_t bit) {
  Value masked = binary<arith::AndIOp>(a, constantInt(int64_t(1) << bit));
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, masked,
                               constantInt(0));
}
Value MathBuilder::toBits(Value a) {
  return arith::BitcastOp::create(builder, intType, a);
}
Value MathBuilder::fromBits(Value a) {
  return arith::BitcastOp::create(builder, type, a);
}
Value MathBuilder::intToFloat(Value a) {
  return arith::SIToFPOp::create(builder, type, a);
}

// Adding 1.5 * 2^p, where p is the number of bits of the significand, rounds x
// to an integer, which then stands in the lowest bits.
std::pair<Value, Value> MathBuilder::round(Value x) {
  Value magic = constant(isF64() ? 0x1.8p52 : 0x1.8p23);
  Value shifted = add(x, magic);
  return {sub(shifted, magic), subInt(toBits(shifted), toBits(magic))};
}

// Scaling takes two steps: 2^n itself may be neither normal nor finite.
Value MathBuilder::scaleByPowerOfTwo(Value x, Value n) {
  Value half = shiftRightSigned(n, 1);
  for (Value part : {half, subInt(n, half)})
    x = mul(x, fromBits(shiftLeft(addInt(part, constantInt(exponentBias())),
                                  significandBits())));
  return x;
}
