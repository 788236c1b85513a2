//===- Powers.cpp - Powers, roots and hyperbolic functions ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computed in f64, by exponentials and logarithms. e^x - 1 = (u - 1) x / log(u)
// with the rounded u = e^x, whose error cancels (Kahan).
//
//===----------------------------------------------------------------------===//

#include "MathBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace fovea;

Value MathBuilder::pow(Value x, Value y) {
  Value power = exp2(mul(y, log2(abs(x))));
  // A negative number has whole powers only; the odd ones are negative.
  Value half = mul(y, number(0.5));
  Value isWhole = isEqual(y, trunc(y));
  Value isOdd = both(
      isWhole, compare(arith::CmpFPredicate::ONE, sub(half, trunc(half)), 0.0));
  Value isNegative = both(compare(arith::CmpFPredicate::OLT, x, 0.0),
                          compare(arith::CmpFPredicate::OGT, x, -infinity()));
  power = select(isOdd, copySign(power, x), power);
  power = select(
      isNegative,
      select(isWhole, power, number(std::numeric_limits<double>::quiet_NaN())),
      power);
  // This holds also where the other operand is not a number.
  power =
      select(compare(arith::CmpFPredicate::OEQ, x, 1.0), number(1.0), power);
  return select(compare(arith::CmpFPredicate::OEQ, y, 0.0), number(1.0), power);
}

Value MathBuilder::cbrt(Value x) {
  Value a = abs(x);
  Value third = number(1.0 / 3.0);
  Value root = exp2(mul(log2(a), third));
  // One step of Newton's method.
  Value error = sub(root, div(a, mul(root, root)));
  Value result = sub(root, mul(error, third));
  Value isFinite = both(compare(arith::CmpFPredicate::OGT, a, 0.0),
                        compare(arith::CmpFPredicate::OLT, a, infinity()));
  return copySign(select(isFinite, result, a), x);
}

Value MathBuilder::rem(Value x, Value y) {
  // Long division, 52 bits of the quotient at a time. A step that subtracts
  // once too often adds the divisor back; both operations are exact, as the
  // remainder is a multiple of the divisor's last bit.
  constexpr int64_t kBits = 52, kSteps = 6;
  Value rest = abs(x), divisor = abs(y);
  auto isLess = [&](Value a, Value b) -> Value {
    return compare(arith::CmpFPredicate::OLT, a, b);
  };
  for (int64_t step = kSteps; step-- > 0;) {
    Value scaled = mul(divisor, number(std::ldexp(1.0, kBits * step)));
    Value count = trunc(div(rest, scaled));
    Value next = make<math::FmaOp>(neg(count), scaled, rest);
    next = select(compare(arith::CmpFPredicate::OLT, next, 0.0),
                  add(next, scaled), next);
    // Comparisons with NaN are false, so that it is passed on.
    rest = select(isLess(rest, scaled), rest, next);
  }
  return copySign(rest, x);
}

Value MathBuilder::expm1(Value x) {
  Value u = exp(x);
  Value rest = sub(u, number(1.0));
  Value result = div(mul(rest, x), log(u));
  result =
      select(compare(arith::CmpFPredicate::OGT, abs(x), 40.0), rest, result);
  return select(compare(arith::CmpFPredicate::OEQ, rest, 0.0), x, result);
}

Value MathBuilder::sinh(Value x) {
  Value a = abs(x);
  Value e = expm1(a);
  Value small = mul(number(0.5), add(e, div(e, add(e, number(1.0)))));
  Value large = exp(sub(a, number(std::numbers::ln2)));
  return copySign(
      select(compare(arith::CmpFPredicate::OGT, a, 40.0), large, small), x);
}

Value MathBuilder::cosh(Value x) {
  Value half = exp(sub(abs(x), number(std::numbers::ln2)));
  return add(half, div(number(0.25), half));
}

Value MathBuilder::asinh(Value x) {
  Value one = number(1.0);
  Value a = abs(x);
  Value z = mul(a, a);
  Value small = log1p(add(a, div(z, add(one, sqrt(add(z, one))))));
  Value large = add(log(a), number(std::numbers::ln2));
  return copySign(
      select(compare(arith::CmpFPredicate::OGT, a, 1e150), large, small), x);
}

Value MathBuilder::acosh(Value x) {
  Value t = sub(x, number(1.0));
  Value small = log1p(add(t, sqrt(mul(t, add(t, number(2.0))))));
  Value large = add(log(x), number(std::numbers::ln2));
  return select(compare(arith::CmpFPredicate::OGT, x, 1e150), large, small);
}

Value MathBuilder::atanh(Value x) {
  Value a = abs(x);
  Value quotient = div(add(a, a), sub(number(1.0), a));
  return copySign(mul(number(0.5), log1p(quotient)), x);
}
