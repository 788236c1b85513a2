//===- WgmmaOperandTest.cpp - Matrix descriptors against the layout -------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The elements that the hardware reads by a descriptor, restated from the
// canonical layouts of PTX ISA 9.7.15.5.1, must be where the tile's type puts
// them.
//
//===----------------------------------------------------------------------===//

#include "WgmmaOperand.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace fovea::tile;

namespace {

/// Reads the fields of a descriptor and computes addresses as the hardware
/// does.
struct Reader {
  explicit Reader(uint64_t descriptor, bool isKMajor)
      : start((descriptor & 0x3fff) << 4),
        leading((descriptor >> 16 & 0x3fff) << 4),
        stride((descriptor >> 32 & 0x3fff) << 4), isKMajor(isKMajor) {
    const int64_t swizzles[] = {0, 128, 64, 32};
    swizzle = swizzles[descriptor >> 62];
  }

  /// Returns the byte address of the element at (`outer`, `k`) of one
  /// instruction.
  int64_t getAddress(int64_t outer, int64_t k) const {
    int64_t address = start;
    if (isKMajor) {
      // 8 rows of the swizzle's length (16 bytes without one), then the next
      // 8; units of 16 bytes along K are neighbours, or `leading` apart.
      int64_t rowBytes = swizzle ? swizzle : 16;
      address += outer % 8 * rowBytes + outer / 8 * stride + k % 8 * 2 +
                 k / 8 * (swizzle ? 16 : leading);
    } else if (swizzle) {
      int64_t columns = swizzle / 2;
      address += outer % columns * 2 + outer / columns * leading +
                 k % 8 * swizzle + k / 8 * stride;
    } else {
      address +=
          outer % 8 * 2 + outer / 8 * stride + k % 8 * 16 + k / 8 * leading;
    }
    // The swizzle works on bits of the address.
    switch (swizzle) {
    case 128:
      return address ^ (address >> 7 & 7) << 4;
    case 64:
      return address ^ (address >> 7 & 3) << 4;
    case 32:
      return address ^ (address >> 7 & 1) << 4;
    }
    return address;
  }

  int64_t start, leading, stride, swizzle;
  bool isKMajor;
};

class WgmmaOperandTest : public testing::Test {
protected:
  WgmmaOperandTest() { context.loadDialect<TileDialect>(); }

  SharedType getTile(int64_t rows, int64_t columns, int64_t swizzle) {
    return SharedType::get(&context, {rows, columns},
                           Builder(&context).getBF16Type(), swizzle);
  }

  FailureOr<WgmmaOperand> getOperand(SharedType tile, bool isKMajor) {
    return WgmmaOperand::get(
        tile, isKMajor, [&] { return emitError(UnknownLoc::get(&context)); });
  }

  /// Checks every element that instructions on `outerSize` of the outer
  /// dimension, starting at each multiple of it, read: of a tile in runs each
  /// has every so many groups of 8.
  void check(SharedType tile, bool isKMajor, int64_t outerSize) {
    // Descriptors have 14 bits of address / 16, as in the kernel.
    constexpr int64_t base = 3 * 1024;
    FailureOr<WgmmaOperand> operand = getOperand(tile, isKMajor);
    ASSERT_TRUE(succeeded(operand));
    int64_t parts = operand->getNumInterleaved();
    for (int64_t first = 0; first < operand->getOuterSize(); first += outerSize)
      for (int64_t part = 0; part < parts; ++part)
        for (int64_t step = 0; step < operand->getNumSteps(); ++step) {
          uint64_t start = base + operand->getStart(first + part * 8, step);
          ASSERT_EQ(start % 16, 0u);
          Reader reader(operand->getDescriptor() + (start >> 4), isKMajor);
          for (int64_t outer = 0; outer < outerSize / parts; ++outer)
            for (int64_t k = 0; k < WgmmaOperand::kStep; ++k) {
              int64_t place =
                  first + (outer / 8 * parts + part) * 8 + outer % 8;
              int64_t inner = step * WgmmaOperand::kStep + k;
              int64_t row = isKMajor ? place : inner;
              int64_t column = isKMajor ? inner : place;
              ASSERT_EQ(reader.getAddress(outer, k),
                        base + tile.getByteOffset(row, column))
                  << "row " << row << ", column " << column << ", swizzle "
                  << tile.getSwizzle() << ", runs of " << tile.getRuns()
                  << ", K-major " << isKMajor;
            }
        }
  }

  MLIRContext context;
};

// A, and B of Q K^T: rows are queries or keys, columns the head dimension.
TEST_F(WgmmaOperandTest, KMajor) {
  for (int64_t swizzle : {32, 64, 128})
    for (int64_t columns = 16; columns <= 256; columns += 16) {
      for (int64_t rows : {8, 16, 40, 64, 80, 128, 176, 256})
        check(getTile(rows, columns, swizzle), /*isKMajor=*/true, rows);
      for (int64_t rows : {64, 128, 192, 256})
        check(getTile(rows, columns, swizzle), /*isKMajor=*/true, 64);
    }
}

// B of P V: rows are keys, columns the head dimension.
TEST_F(WgmmaOperandTest, OuterMajor) {
  for (int64_t rows : {16, 48, 64, 128, 176}) {
    for (int64_t swizzle : {32, 64, 128})
      for (int64_t columns = 8; columns <= 256; columns += 8)
        check(getTile(rows, columns, swizzle), /*isKMajor=*/false, columns);
    check(getTile(rows, 8, 0), /*isKMajor=*/false, 8);
  }
}

TEST_F(WgmmaOperandTest, Runs) {
  for (int64_t swizzle : {32, 64, 128})
    for (int64_t columns : {64, 128, 192})
      for (int64_t rows : {48, 96, 192})
        for (int64_t runs : {8, 16, 24, 48}) {
          SharedType tile = getTile(rows, columns, swizzle).cloneWithRuns(runs);
          check(tile, /*isKMajor=*/true, rows);
          if (runs != 24)
            check(tile, /*isKMajor=*/false, columns);
        }
}

TEST_F(WgmmaOperandTest, Errors) {
  std::string message;
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  EXPECT_TRUE(failed(getOperand(getTile(64, 64, 0), true)));
  EXPECT_NE(message.find("expected an operand with a swizzle"),
            std::string::npos);
  EXPECT_TRUE(failed(getOperand(getTile(64, 72, 128), true)));
  EXPECT_NE(message.find("got 72 and 64"), std::string::npos);
  EXPECT_TRUE(failed(getOperand(getTile(24, 64, 128), false)));
  EXPECT_NE(message.find("got 24 and 64"), std::string::npos);
  EXPECT_TRUE(
      failed(getOperand(getTile(48, 64, 128).cloneWithRuns(24), false)));
  EXPECT_NE(message.find("expected runs of 8 rows or of a multiple of 16"),
            std::string::npos);
}

} // namespace
