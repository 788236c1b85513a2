//===- Sigmoids.cpp - tanh, erf and erfc as arithmetic --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MathBuilder.h"

using namespace mlir;
using namespace fovea;

/// f(x) = x P(x^2) / Q(x^2) for f32, by minimax rational functions (linearised
/// least squares with Lawson's weights, relative error).
struct Rational {
  ArrayRef<double> numerator, denominator;
  /// From this argument on, f rounds to 1.
  double bound;
};

static constexpr double kTanhP[] = {
    0.999999993392,    0.130840709839,    0.0031040233176,   1.11549827303e-5,
    -2.02277847773e-8, 5.27907731197e-11, -8.49132902854e-14};
static constexpr double kTanhQ[] = {1.0, 0.46417398114, 0.0244954481596,
                                    0.000254624135847};
static constexpr double kErfP[] = {1.1283791458915,     0.19057800813614,
                                   0.052766972373774,   0.0037718147520377,
                                   0.00028481702230535, 2.0460136272526e-6};
static constexpr double kErfQ[] = {1.0,
                                   0.50222809610682,
                                   0.11417599432059,
                                   0.014981724405616,
                                   0.0011636613838384,
                                   3.8046254999916e-5};

/// tanh(x) = x + x z P(z), z = x^2, for f64 and |x| < 0.6; error 4.4e-21.
static constexpr double kTanhF64[] = {
    -0.33333333333333333022,     0.13333333333333264356,
    -0.053968253968200464851,    0.021869488534062978583,
    -0.0088632354815782602876,   0.0035921273179598586051,
    -0.0014558271480170018325,   0.00058997656274037028156,
    -0.00023887605659525951,     0.000096023683953206928935,
    -0.000037079914512860525617, 0.000012234734615933456546,
    -2.4600504594031145415e-6};

static Value emitRational(MathBuilder &b, Value x, const Rational &f) {
  x = b.clamp(x, -f.bound, f.bound);
  Value z = b.mul(x, x);
  Value quotient = b.div(b.mul(x, b.polynomial(z, f.numerator)),
                         b.polynomial(z, f.denominator));
  return b.clamp(quotient, -1.0, 1.0);
}

Value MathBuilder::tanh(Value x) {
  if (!isF64())
    return emitRational(*this, x, {kTanhP, kTanhQ, 9.0});
  Value z = mul(x, x);
  Value small = mulAdd(mul(x, z), polynomial(z, kTanhF64), x);
  // tanh|x| = 1 - 2 / (e^(2|x|) + 1), also where that is infinite.
  Value power = exp(mul(abs(x), number(2.0)));
  Value large = sub(number(1.0), div(number(2.0), add(power, number(1.0))));
  return select(compare(arith::CmpFPredicate::OLT, abs(x), 0.6), small,
                copySign(large, x));
}

/// erf(x) = x P(x^2) for f64 and |x| < 0.5; error 4.3e-18.
static constexpr double kErfF64[] = {
    1.1283791670955125696,     -0.37612638903183473544,
    0.11283791670925353147,    -0.026866170632887929351,
    0.0052239773730214700169,  -0.00085482977536749668828,
    0.00012053335124353740746, -0.000014845849259707869768,
    1.4725865480556743912e-6};
/// erfc(x) = t exp(-x^2 + P(t - 0.4375)), t = 2 / (2 + x), for f64 and x in
/// [0.5, 28]; error 1.4e-18.
static constexpr double kErfcF64[] = {
    -0.75504582672149876221,  1.3173933695348409806,   0.25535660549589278683,
    -0.32534922143581303223,  -0.23713285062177975921, 0.21674008061061507705,
    0.23263252404788041392,   -0.23221304262386428301, -0.23214805255575878095,
    0.31626948335237084602,   0.19939901311384965597,  -0.45560342403728494577,
    -0.077777831516381111815, 0.60772890755016717353,  -0.19471819678799607124,
    -0.65625063908130851673,  0.61855094777979652503,  0.41477840841933498594,
    -1.0202426336427226043,   0.2146856893829788822,   1.0440717365144997937,
    -0.89236705650737639339,  -0.5270150860159742488,  0.81002791141944674509};

/// Returns erfc(a) for `a` in [0.5, 28], and an approximation for other
/// arguments.
static Value emitErfcTail(MathBuilder &b, Value a) {
  a = b.clamp(a, 0.5, 28.0);
  Value two = b.number(2.0);
  Value t = b.div(two, b.add(two, a));
  Value p = b.polynomial(b.sub(t, b.number(0.4375)), kErfcF64);
  return b.mul(t, b.exp(b.sub(p, b.mul(a, a))));
}

Value MathBuilder::erf(Value x) {
  if (!isF64())
    return emitRational(*this, x, {kErfP, kErfQ, 3.925});
  Value small = mul(x, polynomial(mul(x, x), kErfF64));
  Value tail = emitErfcTail(*this, abs(x));
  Value large = copySign(sub(number(1.0), tail), x);
  // This does not hold for NaN, which the first select keeps.
  return select(compare(arith::CmpFPredicate::OGE, abs(x), 0.5), large, small);
}

Value MathBuilder::erfc(Value x) {
  Value one = number(1.0);
  Value near = sub(one, mul(x, polynomial(mul(x, x), kErfF64)));
  Value tail = emitErfcTail(*this, abs(x));
  Value isNegative = compare(arith::CmpFPredicate::OLT, x, 0.0);
  Value far = select(isNegative, sub(number(2.0), tail), tail);
  return select(compare(arith::CmpFPredicate::OGE, abs(x), 0.5), far, near);
}
