//===- Exponentials.cpp - exp and exp2 as arithmetic ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// x = n * ln(2) + r with the integer n next to x / ln(2) (Cody and Waite,
// "Software Manual for the Elementary Functions", 1980: ln(2) in two parts, the
// first so short that n times it is exact), e^x = 2^n * e^r, and a minimax
// polynomial (Remez, relative error) for e^r.
//
//===----------------------------------------------------------------------===//

#include "MathBuilder.h"

#include <numbers>

using namespace mlir;
using namespace fovea;

/// e^r = 1 + r + r^2 P(r) on [-ln(2)/2, ln(2)/2]; errors 1.0e-10 and 5.3e-20.
static constexpr double kExpF32[] = {
    0.50000000808002470782,  0.16666666756401171078, 0.041666240712711107458,
    0.008333286026263549232, 0.0013948580818093911,  0.00019907571575019447657};
static constexpr double kExpF64[] = {
    0.50000000000000000438,    0.16666666666666683403,
    0.041666666666666094843,   0.0083333333333170472512,
    0.0013888888889115449383,  0.00019841269896350856741,
    0.00002480158692685429445, 2.7557234895556169904e-6,
    2.7557581745795974693e-7,  2.5112024887746774684e-8,
    2.0826636436209645846e-9};
/// 2^f = 1 + f P(f) on [-0.5, 0.5]; errors 2.6e-9 and 1.8e-17.
static constexpr double kExp2F32[] = {
    0.69314721496801212819, 0.24022652782859958835, 0.055503105510124147745,
    0.00961769297668588,    0.0013406643901730065,  0.00015594677036868657529};
static constexpr double kExp2F64[] = {
    0.69314718055994569679,   0.24022650695910098007,
    0.055504108664790389252,  0.0096181291076070019986,
    0.0013333558153441334774, 0.00015403530441572599042,
    0.00001525272738387246,   1.3215442675115585098e-6,
    1.0180648196555812362e-7, 7.0725704454692940706e-9,
    4.0779938562463537778e-10};

Value MathBuilder::exp2(Value x) {
  // Beyond these bounds the result is 0 or infinity, by scaling.
  x = isF64() ? clamp(x, -1080.0, 1025.0) : clamp(x, -152.0, 129.0);
  auto [whole, n] = round(x);
  Value f = sub(x, whole);
  Value p = polynomial(f, isF64() ? ArrayRef(kExp2F64) : ArrayRef(kExp2F32));
  return scaleByPowerOfTwo(mulAdd(f, p, number(1.0)), n);
}

Value MathBuilder::exp(Value x) {
  x = isF64() ? clamp(x, -746.0, 710.0) : clamp(x, -104.5, 89.0);
  auto [whole, n] = round(mul(x, number(std::numbers::log2e)));
  Value high = number(isF64() ? -0x1.62e42feep-1 : -0x1.62e4p-1);
  Value low =
      number(isF64() ? -1.9082149292705877e-10 : -1.4286068203094172e-6);
  Value r = mulAdd(whole, low, mulAdd(whole, high, x));
  Value p = polynomial(r, isF64() ? ArrayRef(kExpF64) : ArrayRef(kExpF32));
  Value tail = mulAdd(mul(r, r), p, r);
  return scaleByPowerOfTwo(add(tail, number(1.0)), n);
}
