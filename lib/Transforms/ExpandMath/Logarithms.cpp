//===- Logarithms.cpp - log, log2, log10 and log1p as arithmetic ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// x = 2^e * (1 + t) with 1 + t in [sqrt(1/2), sqrt(2)). With s = t / (2 + t),
// log(1 + t) = log((1 + s) / (1 - s)) = 2 s + s R(s^2), and R by a minimax
// polynomial (Remez, absolute error). As 2 s = t - s t, the sum is computed as
// t - (t^2/2 - s (t^2/2 + R)), in which t is exact.
//
//===----------------------------------------------------------------------===//

#include "MathBuilder.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace fovea;

/// R(z) / z on [0, 0.0295]; errors of R 8.1e-10 and 1.2e-18.
static constexpr double kLogF32[] = {
    0.66666776415117865311, 0.39977536978404465365, 0.29871862316825959136};
static constexpr double kLogF64[] = {
    0.66666666666667344594, 0.39999999999414324893, 0.28571428742474351776,
    0.22222198563515918033, 0.18183564865997923768, 0.15314035834860526708,
    0.14796105583675406463};

/// log(x) = exponent * ln(2) + t - correction.
struct MathBuilder::Logarithm {
  Value exponent, t, correction;
};

MathBuilder::Logarithm MathBuilder::decompose(Value x) {
  // Subnormal numbers are scaled to normal ones first.
  double smallest = isF64() ? std::numeric_limits<double>::min()
                            : std::numeric_limits<float>::min();
  int64_t shift = significandBits() + 2;
  Value isSmall = compare(arith::CmpFPredicate::OLT, x, smallest);
  x = select(isSmall, mul(x, number(double(int64_t(1) << shift))), x);
  Value offset = select(isSmall, number(-double(shift)), number(0.0));

  Value bits = toBits(x);
  Value sqrtHalf = toBits(number(0.70710678118654752));
  Value e = shiftRightSigned(subInt(bits, sqrtHalf), significandBits());
  Value m = fromBits(subInt(bits, shiftLeft(e, significandBits())));

  Value t = sub(m, number(1.0));
  Value s = div(t, add(t, number(2.0)));
  Value z = mul(s, s);
  Value r =
      mul(z, polynomial(z, isF64() ? ArrayRef(kLogF64) : ArrayRef(kLogF32)));
  Value half = mul(mul(t, number(0.5)), t);
  Value correction = sub(half, mul(s, add(half, r)));
  return {add(intToFloat(e), offset), t, correction};
}

/// Handles the logarithm of 0, of negative numbers, of infinity and of NaN.
Value MathBuilder::finishLog(Value x, Value result) {
  result = select(compare(arith::CmpFPredicate::OEQ, x, infinity()),
                  number(infinity()), result);
  result = select(compare(arith::CmpFPredicate::OEQ, x, 0.0),
                  number(-infinity()), result);
  // The comparison is unordered: it holds for NaN also.
  return select(compare(arith::CmpFPredicate::ULT, x, 0.0),
                number(std::numeric_limits<double>::quiet_NaN()), result);
}

Value MathBuilder::log(Value x) {
  Logarithm parts = decompose(x);
  Value high = number(isF64() ? 0x1.62e42feep-1 : 0x1.62e4p-1);
  Value low = number(isF64() ? 1.9082149292705877e-10 : 1.4286068203094172e-6);
  Value small = sub(mul(parts.exponent, low), parts.correction);
  return finishLog(x, mulAdd(parts.exponent, high, add(parts.t, small)));
}

Value MathBuilder::log2(Value x) {
  Logarithm parts = decompose(x);
  Value natural = sub(parts.t, parts.correction);
  return finishLog(
      x, mulAdd(natural, number(std::numbers::log2e), parts.exponent));
}

Value MathBuilder::log10(Value x) {
  Logarithm parts = decompose(x);
  Value natural =
      mul(sub(parts.t, parts.correction), number(0.43429448190325182));
  return finishLog(
      x, mulAdd(parts.exponent, number(0.30102999566398120), natural));
}

// log(1 + x) = log(u) + d / u, where u is the rounded sum and d its rounding
// error.
Value MathBuilder::log1p(Value x) {
  Value u = add(x, number(1.0));
  Value lost = sub(x, sub(u, number(1.0)));
  Value result = log(u);
  Value isFinite = compare(arith::CmpFPredicate::OLT, abs(result), infinity());
  return select(isFinite, add(result, div(lost, u)), result);
}
