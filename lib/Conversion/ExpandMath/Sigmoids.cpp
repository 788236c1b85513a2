//===- Sigmoids.cpp - tanh and erf as arithmetic --------------------------===//
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
  /// From there on f rounds to 1.
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
  Value power = exp(mul(abs(x), constant(2.0)));
  Value large =
      sub(constant(1.0), div(constant(2.0), add(power, constant(1.0))));
  return select(compare(arith::CmpFPredicate::OLT, abs(x), 0.6), small,
                copySign(large, x));
}

Value MathBuilder::erf(Value x) {
  return emitRational(*this, x, {kErfP, kErfQ, 3.925});
}
