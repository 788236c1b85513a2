//===- SmallFloats.h - f16 and bf16 by their bits ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions between small floating-point formats, given as their bits, and
// f64. A conversion to the small format rounds once, to nearest, ties to even;
// NaN stays NaN, and too large numbers become infinity.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SMALLFLOATS_H
#define FOVEA_RUNTIME_SMALLFLOATS_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace fovea {

namespace detail {

/// A 16-bit format of 1 sign bit, `exponentBits` and the rest mantissa.
template <int exponentBits>
double smallToDouble(uint16_t bits) {
  constexpr int mantissaBits = 15 - exponentBits;
  constexpr int bias = (1 << (exponentBits - 1)) - 1;
  int exponent = (bits & 0x7fff) >> mantissaBits;
  uint64_t mantissa = bits & ((1 << mantissaBits) - 1);
  uint64_t sign = uint64_t(bits >> 15) << 63;
  if (exponent == 0) {
    double magnitude = std::ldexp(double(mantissa), 1 - bias - mantissaBits);
    return std::bit_cast<double>(std::bit_cast<uint64_t>(magnitude) | sign);
  }
  uint64_t wide =
      exponent == (1 << exponentBits) - 1 ? 2047 : exponent - bias + 1023;
  return std::bit_cast<double>(sign | wide << 52 |
                               mantissa << (52 - mantissaBits));
}

template <int exponentBits>
uint16_t doubleToSmall(double value) {
  constexpr int mantissaBits = 15 - exponentBits;
  constexpr int bias = (1 << (exponentBits - 1)) - 1;
  constexpr uint16_t infinity = ((1 << exponentBits) - 1) << mantissaBits;
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint16_t sign = uint16_t(bits >> 48 & 0x8000);
  int exponent = int(bits >> 52 & 2047);
  uint64_t mantissa = bits & ((uint64_t(1) << 52) - 1);
  if (exponent == 2047)
    return sign | infinity | (mantissa ? 1 << (mantissaBits - 1) : 0);
  int result = exponent - 1023 + bias;
  if (result > (1 << exponentBits) - 2)
    return sign | infinity;
  int shift = 52 - mantissaBits;
  if (result < 1) {
    // Subnormal: the leading one becomes explicit and moves down.
    shift += 1 - result;
    result = 0;
    if (shift > 54 || exponent == 0)
      return sign;
    mantissa |= uint64_t(1) << 52;
  }
  uint64_t half = uint64_t(1) << (shift - 1);
  uint64_t rest = mantissa & ((half << 1) - 1);
  uint64_t kept = mantissa >> shift;
  kept += rest > half || (rest == half && (kept & 1));
  // A carry out of the mantissa raises the exponent, up to infinity.
  return sign | uint16_t((uint64_t(result) << mantissaBits) + kept);
}

} // namespace detail

inline double halfToDouble(uint16_t bits) {
  return detail::smallToDouble<5>(bits);
}
inline double bfloatToDouble(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}
inline uint16_t doubleToHalf(double value) {
  return detail::doubleToSmall<5>(value);
}
inline uint16_t doubleToBfloat(double value) {
  return detail::doubleToSmall<8>(value);
}

} // namespace fovea

#endif // FOVEA_RUNTIME_SMALLFLOATS_H
