//===- Math.cpp - Functions of the interpreter ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <bit>
#include <cmath>

using namespace mlir;
using namespace fovea;
using namespace fovea::interpreter;

template <double (*compute)(double)>
static Status unary(Fiber &fiber, const Instruction &op) {
  return fiber.setFloat(op, compute(fiber.getFloat(op, 0)));
}

template <double (*compute)(double, double)>
static Status binary(Fiber &fiber, const Instruction &op) {
  return fiber.setFloat(op,
                        compute(fiber.getFloat(op, 0), fiber.getFloat(op, 1)));
}

template <double (*compute)(double, double, double)>
static Status ternary(Fiber &fiber, const Instruction &op) {
  return fiber.setFloat(op,
                        compute(fiber.getFloat(op, 0), fiber.getFloat(op, 1),
                                fiber.getFloat(op, 2)));
}

template <bool (*test)(double)>
static Status predicate(Fiber &fiber, const Instruction &op) {
  return fiber.setInt(op, -int64_t(test(fiber.getFloat(op, 0))));
}

template <int64_t (*compute)(uint64_t bits, unsigned width)>
static Status bits(Fiber &fiber, const Instruction &op) {
  return fiber.setInt(
      op, op.format.wrap(compute(op.format.getUnsigned(fiber.getInt(op, 0)),
                                 op.format.width)));
}

static Status absoluteInt(Fiber &fiber, const Instruction &op) {
  int64_t value = fiber.getInt(op, 0);
  return fiber.setInt(op,
                      value < 0 ? op.format.wrap(0 - uint64_t(value)) : value);
}

static Status floatToThePowerOfInt(Fiber &fiber, const Instruction &op) {
  return fiber.setFloat(op, std::pow(fiber.getFloat(op, 0),
                                     static_cast<double>(fiber.getInt(op, 1))));
}

static Status intToThePowerOfInt(Fiber &fiber, const Instruction &op) {
  int64_t base = fiber.getInt(op, 0), exponent = fiber.getInt(op, 1);
  if (exponent < 0)
    return fiber.setInt(op, base == 1    ? 1
                            : base == -1 ? 1 - 2 * (exponent & 1)
                                         : 0);
  uint64_t power = 1;
  for (uint64_t square = base; exponent; exponent >>= 1, square *= square)
    if (exponent & 1)
      power *= square;
  return fiber.setInt(op, op.format.wrap(power));
}

/// A GPU's approximation has 11 correct bits.
static Status tanh(Fiber &fiber, const Instruction &op) {
  double value = std::tanh(fiber.getFloat(op, 0));
  auto flags = cast<math::TanhOp>(op.op).getFastmath();
  if (bitEnumContainsAll(flags, arith::FastMathFlags::afn)) {
    int exponent;
    double significand = std::frexp(value, &exponent);
    value = std::ldexp(std::nearbyint(significand * 0x1p11), exponent - 11);
  }
  return fiber.setFloat(op, value);
}

void interpreter::addMathHandlers(llvm::StringMap<Handler> &handlers) {
  using F = double;
  using U = uint64_t;
  auto add = [&](StringRef name, Handler handler) {
    handlers[("math." + name).str()] = handler;
  };
  add("absf", unary<[](F x) { return std::fabs(x); }>);
  add("acos", unary<[](F x) { return std::acos(x); }>);
  add("acosh", unary<[](F x) { return std::acosh(x); }>);
  add("asin", unary<[](F x) { return std::asin(x); }>);
  add("asinh", unary<[](F x) { return std::asinh(x); }>);
  add("atan", unary<[](F x) { return std::atan(x); }>);
  add("atanh", unary<[](F x) { return std::atanh(x); }>);
  add("cbrt", unary<[](F x) { return std::cbrt(x); }>);
  add("ceil", unary<[](F x) { return std::ceil(x); }>);
  add("cos", unary<[](F x) { return std::cos(x); }>);
  add("cosh", unary<[](F x) { return std::cosh(x); }>);
  add("erf", unary<[](F x) { return std::erf(x); }>);
  add("erfc", unary<[](F x) { return std::erfc(x); }>);
  add("exp", unary<[](F x) { return std::exp(x); }>);
  add("exp2", unary<[](F x) { return std::exp2(x); }>);
  add("expm1", unary<[](F x) { return std::expm1(x); }>);
  add("floor", unary<[](F x) { return std::floor(x); }>);
  add("log", unary<[](F x) { return std::log(x); }>);
  add("log10", unary<[](F x) { return std::log10(x); }>);
  add("log1p", unary<[](F x) { return std::log1p(x); }>);
  add("log2", unary<[](F x) { return std::log2(x); }>);
  add("round", unary<[](F x) { return std::round(x); }>);
  add("roundeven", unary<[](F x) { return std::nearbyint(x); }>);
  add("rsqrt", unary<[](F x) { return 1 / std::sqrt(x); }>);
  add("sin", unary<[](F x) { return std::sin(x); }>);
  add("sinh", unary<[](F x) { return std::sinh(x); }>);
  add("sqrt", unary<[](F x) { return std::sqrt(x); }>);
  add("tan", unary<[](F x) { return std::tan(x); }>);
  add("tanh", tanh);
  add("trunc", unary<[](F x) { return std::trunc(x); }>);
  add("atan2", binary<[](F x, F y) { return std::atan2(x, y); }>);
  add("copysign", binary<[](F x, F y) { return std::copysign(x, y); }>);
  add("powf", binary<[](F x, F y) { return std::pow(x, y); }>);
  add("fma", ternary<[](F x, F y, F z) { return std::fma(x, y, z); }>);
  add("clampf", ternary<[](F x, F low, F high) {
        return std::fmin(std::fmax(x, low), high);
      }>);
  add("isfinite", predicate<[](F x) { return bool(std::isfinite(x)); }>);
  add("isinf", predicate<[](F x) { return bool(std::isinf(x)); }>);
  add("isnan", predicate<[](F x) { return bool(std::isnan(x)); }>);
  add("absi", absoluteInt);
  add("ctlz", bits<[](U x, unsigned width) -> int64_t {
        return std::countl_zero(x) - 64 + int64_t(width);
      }>);
  add("cttz", bits<[](U x, unsigned width) -> int64_t {
        return std::min<int64_t>(std::countr_zero(x), width);
      }>);
  add("ctpop", bits<[](U x, unsigned) -> int64_t { return std::popcount(x); }>);
  add("fpowi", floatToThePowerOfInt);
  add("ipowi", intToThePowerOfInt);
}
