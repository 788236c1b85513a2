//===- Trigonometry.cpp - sin, cos, tan and their inverses ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All are computed in f64. x = n * pi/2 + r with the integer n next to x /
// (pi/2), pi/2 in three parts, and minimax polynomials (Remez, relative error)
// on |r| <= pi/4. An arc tangent is reduced to those of 1 / x and (x - 1) / (x
// + 1).
//
//===----------------------------------------------------------------------===//

#include "MathBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fovea;

static constexpr double kPi = 3.14159265358979323846;

/// sin(r) = r + r z P(z), cos(r) = 1 - z/2 + z^2 P(z), z = r^2; errors 1.3e-20
/// and 1.4e-18.
static constexpr double kSin[] = {
    -0.16666666666666666665,    0.00833333333333333126,
    -0.00019841269841264568477, 2.7557319218956731749e-6,
    -2.5052106100926673184e-8,  1.6058510979535350536e-10,
    -7.5854925078212397541e-13};
static constexpr double kCos[] = {
    0.041666666666666665228,    -0.0013888888888887242183,
    0.000024801587298533455014, -2.7557317152467039576e-7,
    2.0876121658871158775e-9,   -1.1380876948169716039e-11};
/// atan(u) = u + u z P(z), z = u^2, |u| <= sqrt(2) - 1; error 1.5e-18.
static constexpr double kAtan[] = {
    -0.33333333333333333188,  0.19999999999999761058,
    -0.14285714285649019329,  0.11111111104112661613,
    -0.090909087021359362959, 0.07692294904896304886,
    -0.066663987463886360688, 0.058786314603209771703,
    -0.052282847675655459027, 0.04541795450075332281,
    -0.034321082112901316403, 0.016012008547392122764};

/// The sine and cosine of the rest, and the number of quarters.
struct MathBuilder::Angle {
  Value sin, cos, quarters;
};

MathBuilder::Angle MathBuilder::reduceAngle(Value x) {
  auto [whole, n] = round(mul(x, number(2.0 / kPi)));
  Value r = x;
  // The first two parts have 33 bits.
  for (double part :
       {-0x1.921fb544p0, -0x1.0b4611a6p-34, -0x1.3198a2e037073p-69})
    r = make<math::FmaOp>(whole, number(part), r);
  Value z = mul(r, r);
  Value sin = mulAdd(mul(r, z), polynomial(z, kSin), r);
  Value cos = add(mulAdd(z, number(-0.5), number(1.0)),
                  mul(mul(z, z), polynomial(z, kCos)));
  return {sin, cos, n};
}

/// The sine of an angle and `shift` quarters.
Value MathBuilder::finishSin(const Angle &angle, int64_t shift) {
  Value quarters = addInt(angle.quarters, constantInt(shift));
  Value value = select(isBitSet(quarters, 0), angle.cos, angle.sin);
  return select(isBitSet(quarters, 1), neg(value), value);
}

Value MathBuilder::sin(Value x) { return finishSin(reduceAngle(x), 0); }
Value MathBuilder::cos(Value x) { return finishSin(reduceAngle(x), 1); }

Value MathBuilder::tan(Value x) {
  Angle angle = reduceAngle(x);
  return div(finishSin(angle, 0), finishSin(angle, 1));
}

Value MathBuilder::atan(Value x) {
  Value one = number(1.0);
  Value a = abs(x);
  Value isLarge = compare(arith::CmpFPredicate::OGT, a, 1.0);
  Value t = select(isLarge, div(one, a), a);
  Value isMiddle = compare(arith::CmpFPredicate::OGT, t, 0.41421356237309503);
  Value u =
      div(select(isMiddle, sub(t, one), t), select(isMiddle, add(t, one), one));
  Value z = mul(u, u);
  Value result = mulAdd(mul(u, z), polynomial(z, kAtan), u);
  result = select(isMiddle, add(result, number(kPi / 4)), result);
  result = select(isLarge, sub(number(kPi / 2), result), result);
  return copySign(result, x);
}

Value MathBuilder::atan2(Value y, Value x) {
  Value ratio = div(abs(y), abs(x));
  // The quotient of two zeros or two infinities does not exist.
  Value isZero = compare(arith::CmpFPredicate::OEQ, y, 0.0);
  Value isInfinite = compare(arith::CmpFPredicate::OEQ, abs(x), infinity());
  Value isBoth =
      both(isInfinite, compare(arith::CmpFPredicate::OEQ, abs(y), infinity()));
  ratio = select(both(isZero, compare(arith::CmpFPredicate::OEQ, x, 0.0)),
                 number(0.0), ratio);
  Value result = atan(select(isBoth, number(1.0), ratio));
  Value isLeft =
      compare(arith::CmpFPredicate::OLT, copySign(number(1.0), x), 0.0);
  result = select(isLeft, sub(number(kPi), result), result);
  return copySign(result, y);
}

Value MathBuilder::asin(Value x) {
  Value one = number(1.0);
  Value square = mul(sub(one, x), add(one, x));
  return atan(div(x, sqrt(square)));
}

Value MathBuilder::acos(Value x) {
  Value one = number(1.0);
  Value half = atan(sqrt(div(sub(one, x), add(one, x))));
  return mul(number(2.0), half);
}
