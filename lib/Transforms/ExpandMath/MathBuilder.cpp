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

MathBuilder::MathBuilder(OpBuilder &opBuilder, Location loc, Type type,
                         arith::FastMathFlags flags)
    : Formula{opBuilder, loc, type},
      width(getElementTypeOrSelf(type).getIntOrFloatBitWidth()), flags(flags) {
  intType = builder.getIntegerType(width);
  if (auto vector = dyn_cast<VectorType>(type))
    intType = vector.clone(intType);
}

double MathBuilder::infinity() const {
  return std::numeric_limits<double>::infinity();
}

Value MathBuilder::constantInt(int64_t value) {
  return createScalarOrSplatConstant(builder, loc, intType, value);
}

Value MathBuilder::abs(Value a) { return make<math::AbsFOp>(a); }

Value MathBuilder::copySign(Value magnitude, Value sign) {
  return make<math::CopySignOp>(magnitude, sign);
}

Value MathBuilder::mulAdd(Value a, Value b, Value c) {
  if (isa<VectorType>(type))
    return make<vector::FMAOp>(a, b, c);
  return add(mul(a, b), c);
}

Value MathBuilder::both(Value a, Value b) { return make<arith::AndIOp>(a, b); }
Value MathBuilder::sqrt(Value a) { return make<math::SqrtOp>(a); }
Value MathBuilder::trunc(Value a) { return make<math::TruncOp>(a); }

Value MathBuilder::clamp(Value x, double low, double high) {
  x = select(compare(arith::CmpFPredicate::OLT, x, low), number(low), x);
  return select(compare(arith::CmpFPredicate::OGT, x, high), number(high), x);
}

Value MathBuilder::polynomial(Value x, ArrayRef<double> coefficients) {
  Value result = number(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    result = mulAdd(result, x, number(coefficient));
  return result;
}

Value MathBuilder::addInt(Value a, Value b) {
  return make<arith::AddIOp>(a, b);
}
Value MathBuilder::subInt(Value a, Value b) {
  return make<arith::SubIOp>(a, b);
}
Value MathBuilder::shiftLeft(Value a, int64_t bits) {
  return make<arith::ShLIOp>(a, constantInt(bits));
}
Value MathBuilder::shiftRightSigned(Value a, int64_t bits) {
  return make<arith::ShRSIOp>(a, constantInt(bits));
}
Value MathBuilder::isBitSet(Value a, int64_t bit) {
  Value masked = make<arith::AndIOp>(a, constantInt(int64_t(1) << bit));
  return make<arith::CmpIOp>(arith::CmpIPredicate::ne, masked, constantInt(0));
}
Value MathBuilder::toBits(Value a) {
  return make<arith::BitcastOp>(intType, a);
}
Value MathBuilder::fromBits(Value a) { return make<arith::BitcastOp>(type, a); }
Value MathBuilder::intToFloat(Value a) {
  return make<arith::SIToFPOp>(type, a);
}

// Adding 1.5 * 2^p, where p is the number of bits of the significand, rounds x
// to an integer, which then stands in the lowest bits.
std::pair<Value, Value> MathBuilder::round(Value x) {
  Value magic = number(isF64() ? 0x1.8p52 : 0x1.8p23);
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
