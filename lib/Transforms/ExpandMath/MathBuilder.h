//===- MathBuilder.h - Elementary functions as arithmetic -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TRANSFORMS_EXPANDMATH_MATHBUILDER_H
#define FOVEA_LIB_TRANSFORMS_EXPANDMATH_MATHBUILDER_H

#include "fovea/Analysis/Formula.h"

namespace fovea {

/// Builds elementary functions on one type: f32, f64, or a vector of either.
class MathBuilder : public Formula {
public:
  /// Quotients have `flags`.
  MathBuilder(
      mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
      mlir::arith::FastMathFlags flags = mlir::arith::FastMathFlags::none);

  bool isF64() const { return width == 64; }
  /// Returns the bits of the significand, without the leading one.
  int64_t significandBits() const { return isF64() ? 52 : 23; }
  int64_t exponentBias() const { return isF64() ? 1023 : 127; }
  double infinity() const;

  Value div(Value a, Value b) const {
    return make<mlir::arith::DivFOp>(a, b, flags);
  }
  Value constantInt(int64_t value);
  Value abs(Value a);
  Value copySign(Value magnitude, Value sign);
  /// Returns `a * b + c`, rounded once where the target has such an
  /// instruction.
  Value mulAdd(Value a, Value b, Value c);
  /// Returns the conjunction of two conditions.
  Value both(Value a, Value b);
  Value sqrt(Value a);
  Value trunc(Value a);
  /// Returns the value in `[low, high]` next to x; NaN for NaN.
  Value clamp(Value x, double low, double high);
  /// Returns `sum of coefficients[k] * x^k`, by Horner's rule.
  Value polynomial(Value x, llvm::ArrayRef<double> coefficients);

  Value addInt(Value a, Value b);
  Value subInt(Value a, Value b);
  Value shiftLeft(Value a, int64_t bits);
  Value shiftRightSigned(Value a, int64_t bits);
  Value isBitSet(Value a, int64_t bit);
  Value toBits(Value a);
  Value fromBits(Value a);
  Value intToFloat(Value a);

  /// Returns the integer next to x, for `|x| < 2^21`, as a float and as an
  /// integer.
  std::pair<Value, Value> round(Value x);
  /// Returns `x * 2^n`, for results of all magnitudes, with `|n| <= 2^(exponent
  /// bits)`.
  Value scaleByPowerOfTwo(Value x, Value n);

  // The functions, for all arguments. The largest errors, in units in the last
  // place, are measured.

  Value exp2(Value x);  ///< 1.5
  Value exp(Value x);   ///< 1
  Value log(Value x);   ///< 1
  Value log2(Value x);  ///< 2
  Value log10(Value x); ///< 2.5
  Value log1p(Value x); ///< 2
  Value tanh(Value x);  ///< 6; f64: 1.5
  Value erf(Value x);   ///< 6.5; f64: 3

  // The functions that are computed in f64 only, for f32 also.

  /// Defined for arguments of at most 2^33.
  Value sin(Value x);
  Value cos(Value x);
  Value tan(Value x);
  Value asin(Value x);
  Value acos(Value x);
  Value atan(Value x);
  Value atan2(Value y, Value x);
  Value sinh(Value x);
  Value cosh(Value x);
  Value asinh(Value x);
  Value acosh(Value x);
  Value atanh(Value x);
  Value expm1(Value x);
  Value cbrt(Value x);
  Value pow(Value x, Value y);
  Value erfc(Value x);
  /// Returns the remainder of a division truncated to an integer, without an
  /// error, for quotients of at most 2^312.
  Value rem(Value x, Value y);

private:
  struct Angle;
  Angle reduceAngle(Value x);
  Value finishSin(const Angle &angle, int64_t shift);
  struct Logarithm;
  Logarithm decompose(Value x);
  Value finishLog(Value x, Value result);

  mlir::Type intType;
  int64_t width;
  mlir::arith::FastMathFlags flags;
};

} // namespace fovea

#endif // FOVEA_LIB_TRANSFORMS_EXPANDMATH_MATHBUILDER_H
