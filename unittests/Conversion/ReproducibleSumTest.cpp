//===- ReproducibleSumTest.cpp - Sums in integers against exact ones ------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks add a term each, and a loop after them rounds the sum, in the
// interpreter. The expected result is summed in an integer of thousands of
// bits.
//
//===----------------------------------------------------------------------===//

#include "fovea/Conversion/Utils/ReproducibleSum.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Interpreter/Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace mlir;
using namespace fovea;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kBits = 4096;
/// The value of an exact sum's last bit is 2 to the power of minus this.
constexpr int64_t kPoint = 1074;

/// Returns the float of `precision` bits next to an exact sum, ties to even,
/// whose last bit is not below 2^`lowest`.
double roundExact(APInt sum, int64_t precision, int64_t lowest) {
  bool isNegative = sum.isNegative();
  APInt magnitude = sum.abs();
  int64_t dropped = std::max<int64_t>(
      int64_t(magnitude.getActiveBits()) - precision, lowest + kPoint);
  APInt kept = magnitude.lshr(dropped);
  if (dropped > 0) {
    APInt rest = magnitude - kept.shl(dropped);
    APInt half = APInt::getOneBitSet(kBits, dropped - 1);
    if (rest.ugt(half) || (rest == half && kept[0]))
      ++kept;
  }
  double value = std::ldexp(double(kept.getZExtValue()), int(dropped - kPoint));
  return isNegative ? -value : value;
}

class ReproducibleSumTest : public ::testing::Test {
protected:
  ReproducibleSumTest() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        memref::MemRefDialect, scf::SCFDialect,
                        tile::TileDialect>();
  }

  /// Returns the sum of floats, each of which a block adds, in integers for up
  /// to `terms`, a number that the program knows, or finds in an operand.
  template <typename Float>
  double sum(const std::vector<Float> &values, int64_t terms,
             bool isKnown = true) {
    std::string text = llvm::formatv(
        R"(
func.func @sum(%x: memref<?x{0}, strided<[1], offset: ?>>, %terms: index) -> memref<1xf64> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c300 = arith.constant 300 : index
  %none = arith.constant 0 : i64
  %zero = arith.constant 0.0 : f64
  %sums = memref.alloc() : memref<300x2xi64>
  scf.for %i = %c0 to %c300 step %c1 {{
    memref.store %none, %sums[%i, %c0] : memref<300x2xi64>
    memref.store %none, %sums[%i, %c1] : memref<300x2xi64>
  }
  %n = memref.dim %x, %c0 : memref<?x{0}, strided<[1], offset: ?>>
  tile.launch grid(%n) warps 4 ins(%x : memref<?x{0}, strided<[1], offset: ?>>) outs(%sums : memref<300x2xi64>) {{
  ^bb0(%b: index, %X: memref<?x{0}, strided<[1], offset: ?>>, %S: memref<300x2xi64, strided<[?, 1], offset: ?>>):
    %term = memref.load %X[%b] : memref<?x{0}, strided<[1], offset: ?>>
    %old = memref.atomic_rmw addi %none, %S[%c0, %c1]
        : (i64, memref<300x2xi64, strided<[?, 1], offset: ?>>) -> i64
    tile.return
  }
  %result = memref.alloc() : memref<1xf64>
  memref.store %zero, %result[%c0] : memref<1xf64>
  return %result : memref<1xf64>
})",
        sizeof(Float) == 4 ? "f32" : "f64");
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << text;
      return NAN;
    }
    auto function = *module->getOps<func::FuncOp>().begin();
    OpBuilder builder(&context);
    Location loc = function.getLoc();
    builder.setInsertionPointToStart(&function.front());
    OpFoldResult bound = builder.getIndexAttr(terms);
    if (!isKnown)
      bound = function.getArgument(1);
    FloatType type = sizeof(Float) == 4 ? FloatType(builder.getF32Type())
                                        : FloatType(builder.getF64Type());
    ReproducibleSum integers(builder, loc, type, bound);
    function.walk([&](memref::AtomicRMWOp op) {
      builder.setInsertionPoint(op);
      auto load = cast<memref::LoadOp>(op->getPrevNode());
      integers.add(builder, loc, load, op.getMemref(), op.getIndices().back());
      op.erase();
    });
    Operation *store = function.front().getTerminator()->getPrevNode();
    Value sums = (*function.getOps<tile::LaunchOp>().begin()).getOutputs()[0];
    builder.setInsertionPoint(store);
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    store->setOperand(
        0, integers.round(builder, loc,
                          [&](OpBuilder &b, Location l, Value number) {
                            return memref::LoadOp::create(
                                b, l, sums, ValueRange{number, one});
                          }));
    EXPECT_TRUE(succeeded(verify(*module)));

    int64_t shape[] = {int64_t(values.size())}, strides[] = {1};
    SimulationOperand operands[] = {{values.data(), shape, strides},
                                    {&terms, {}, {}}};
    auto results = simulate(function, operands, {});
    if (failed(results))
      return NAN;
    double result;
    std::memcpy(&result, results->front().data.data(), sizeof(result));
    return result;
  }

  template <typename Float>
  static APInt sumExactly(ArrayRef<Float> values) {
    APInt total(kBits, 0);
    for (Float value : values) {
      int exponent;
      double mantissa = std::frexp(std::fabs(double(value)), &exponent);
      // 53 bits, of which the last ones of small numbers are 0.
      APInt term(kBits, uint64_t(std::ldexp(mantissa, 53)));
      int64_t shift = exponent - 53 + kPoint;
      term = shift < 0 ? term.lshr(-shift) : term.shl(shift);
      total += value < 0 ? -term : term;
    }
    return total;
  }

  MLIRContext context;
};

/// Returns numbers of all exponents, or of few, or subnormal ones.
float getFloat(std::mt19937_64 &random, int kind) {
  uint32_t bits = uint32_t(random());
  if (kind == 1)
    bits = (bits & 0x83ffffff) | 0x3c000000;
  if (kind == 2)
    bits &= 0x807fffff;
  float value = llvm::bit_cast<float>(bits);
  return std::isfinite(value) ? value : 1.0f;
}

TEST_F(ReproducibleSumTest, RoundsExactSumsOnce) {
  std::mt19937_64 random(1);
  // 16, 8, 4, 2 exponents for an integer, and one.
  for (int64_t log : {10, 23, 24, 31, 35, 37})
    for (int kind = 0; kind < 3; ++kind) {
      std::vector<float> values;
      for (int i = 0; i < 40; ++i)
        values.push_back(getFloat(random, kind));
      for (int i = 0; i < 20; i += 2)
        values.push_back(-values[i]);
      double expected = roundExact(sumExactly<float>(values), 24, -149);
      EXPECT_EQ(float(sum(values, int64_t(1) << log)), float(expected))
          << log << " " << kind;
      EXPECT_EQ(float(sum(values, int64_t(1) << log, /*isKnown=*/false)),
                float(expected))
          << log << " " << kind;
    }
}

TEST_F(ReproducibleSumTest, RoundsToEven) {
  using Values = std::vector<float>;
  float big = 16777216, tiny = 1e-45f;
  EXPECT_EQ(float(sum(Values{big, 1}, 2)), big);
  EXPECT_EQ(float(sum(Values{big, 1, tiny}, 3)), big + 2);
  EXPECT_EQ(float(sum(Values{big, 3, -tiny}, 3)), big + 2);
  EXPECT_EQ(float(sum(Values{-big, -1, -tiny}, 3)), -big - 2);
}

TEST_F(ReproducibleSumTest, KeepsWhatCancellationLeaves) {
  using Values = std::vector<float>;
  EXPECT_EQ(float(sum(Values{3e38f, 1e-45f, -3e38f}, 3)), 1e-45f);
  EXPECT_EQ(float(sum(Values{1e30f, 1, -1e30f, -1e-30f}, 4)), 1);
  double none = sum(Values{1e30f, -1e30f, -0.0f}, 3);
  EXPECT_EQ(none, 0);
  EXPECT_FALSE(std::signbit(none));
  EXPECT_EQ(sum(Values{}, 0), 0);
}

TEST_F(ReproducibleSumTest, GoesBeyondTheLargestFloat) {
  std::vector<float> values(100, std::numeric_limits<float>::max());
  EXPECT_EQ(float(sum(values, 100)), INFINITY);
  values.insert(values.end(), 99, -std::numeric_limits<float>::max());
  EXPECT_EQ(float(sum(values, 200)), std::numeric_limits<float>::max());
}

TEST_F(ReproducibleSumTest, AddsInfinitiesAsFloatsAre) {
  using Values = std::vector<float>;
  EXPECT_EQ(sum(Values{1, INFINITY, 3, INFINITY}, 4), kInfinity);
  EXPECT_EQ(sum(Values{1, -INFINITY, 3e38f}, 3), -kInfinity);
  EXPECT_TRUE(std::isnan(sum(Values{-INFINITY, INFINITY}, 2)));
  EXPECT_TRUE(std::isnan(sum(Values{1, NAN}, 2)));
  EXPECT_TRUE(std::isnan(sum(Values{-NAN, INFINITY}, 2)));
  EXPECT_EQ(sum(std::vector<double>{kInfinity, 1}, 2), kInfinity);
  EXPECT_TRUE(std::isnan(sum(std::vector<double>{NAN, 1}, 2)));
}

TEST_F(ReproducibleSumTest, AddsDoubles) {
  std::mt19937_64 random(2);
  for (int64_t log : {10, 34, 37})
    for (bool areNear : {false, true}) {
      std::vector<double> values;
      for (int i = 0; i < 40; ++i) {
        uint64_t bits = random();
        // Other numbers are around 1.
        if (areNear)
          bits = (bits & 0x800fffffffffffff) | ((1000 + random() % 50) << 52);
        double value = llvm::bit_cast<double>(bits);
        values.push_back(std::isfinite(value) ? value : 1.0);
      }
      for (int i = 0; i < 20; i += 2)
        values.push_back(-values[i]);
      EXPECT_EQ(sum(values, int64_t(1) << log),
                roundExact(sumExactly<double>(values), 53, -1074))
          << log;
    }
  EXPECT_EQ(sum(std::vector<double>{5e-324, 1e308, -1e308}, 3), 5e-324);
}

TEST_F(ReproducibleSumTest, TakesAsManyIntegersAsTermsNeed) {
  OpBuilder builder(&context);
  auto getSize = [&](FloatType type, int64_t terms) {
    ReproducibleSum integers(builder, builder.getUnknownLoc(), type,
                             builder.getIndexAttr(terms));
    return getConstantIntValue(integers.getSize());
  };
  EXPECT_EQ(getSize(builder.getF32Type(), int64_t(1) << 23), 19);
  EXPECT_EQ(getSize(builder.getF32Type(), int64_t(1) << 31), 35);
  EXPECT_EQ(getSize(builder.getF32Type(), int64_t(1) << 35), 67);
  EXPECT_EQ(getSize(builder.getF32Type(), int64_t(1) << 37), 130);
  EXPECT_EQ(getSize(builder.getF64Type(), int64_t(1) << 37), 264);
}

} // namespace
