//===- InputsTest.cpp - Sizes, random data, numbers -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Inputs.h"

#include "gtest/gtest.h"

using namespace fovea;

namespace {

Signature makeSignature() {
  Signature function;
  function.name = "f";
  function.operands.push_back({"q", DType::F32, {2, -1, 16}});
  function.operands.push_back({"k", DType::F32, {-1, -1}});
  function.operands.push_back({"seed", DType::I64, {}, /*scalar=*/true});
  return function;
}

std::string getError(std::vector<std::string> requests) {
  auto shapes = resolveShapes(makeSignature(), requests);
  return shapes ? "" : llvm::toString(shapes.takeError());
}

TEST(ResolveShapes, TakesNamesNumbersAndOneForAll) {
  auto shapes = resolveShapes(makeSignature(), {"q:2x8x16", "32"});
  ASSERT_TRUE(bool(shapes));
  EXPECT_EQ((*shapes)[0], (llvm::SmallVector<int64_t, 4>{2, 8, 16}));
  EXPECT_EQ((*shapes)[1], (llvm::SmallVector<int64_t, 4>{32, 32}));
  EXPECT_TRUE((*shapes)[2].empty());
  auto partly = resolveShapes(makeSignature(), {"0:_x0x?", "%k:3x5"});
  ASSERT_TRUE(bool(partly));
  EXPECT_EQ((*partly)[0], (llvm::SmallVector<int64_t, 4>{2, 0, 16}));
  EXPECT_EQ((*partly)[1], (llvm::SmallVector<int64_t, 4>{3, 5}));
}

TEST(ResolveShapes, SaysWhatIsWrong) {
  EXPECT_EQ(getError({}),
            "operand 0 (%q) of @f is f32 tensor of shape 2x?x16: give its "
            "sizes, such as --dims=q:2x128x16, or --dims=128 for every dynamic "
            "size");
  EXPECT_EQ(getError({"z:1"}), "--dims=z:1: @f has no operand 'z'; expected a "
                               "name or a number below 3");
  EXPECT_EQ(getError({"q:2x8"}), "--dims=q:2x8: operand 0 (%q) of @f is f32 "
                                 "tensor of shape 2x?x16, got 2 sizes");
  EXPECT_EQ(getError({"q:3x8x16"}),
            "--dims=q:3x8x16: operand 0 (%q) of @f is f32 tensor of shape "
            "2x?x16, got size 3 for dimension 0");
  EXPECT_EQ(getError({"q:2x-8x16"}),
            "--dims=q:2x-8x16: expected a size of at least 0, got '-8'");
  EXPECT_EQ(getError({"-1"}), "--dims=-1: expected a size, or OPERAND:SIZES "
                              "such as 0:2x16x1024x64");
  EXPECT_EQ(getError({"q:2x?x16"}),
            "--dims=q:2x?x16: expected a size of at least 0, got '?'");
}

TEST(MakeRandom, IsReproducibleAndPlausible) {
  auto a = makeRandom(DType::F32, {1000}, 1, 0, {});
  auto b = makeRandom(DType::F32, {1000}, 1, 0, {});
  auto c = makeRandom(DType::F32, {1000}, 1, 1, {});
  ASSERT_TRUE(a && b && c);
  double sum = 0, squares = 0;
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(a->read(i), b->read(i));
    equal += a->read(i) == c->read(i);
    sum += a->read(i);
    squares += a->read(i) * a->read(i);
  }
  EXPECT_LT(equal, 2);
  EXPECT_NEAR(sum / 1000, 0, 0.15);
  EXPECT_NEAR(squares / 1000, 1, 0.2);
}

TEST(MakeRandom, KeepsIntegersInTheirRange) {
  auto integers = makeRandom(DType::I32, {500}, 1, 0, {-2, 3});
  ASSERT_TRUE(bool(integers));
  std::vector<int> counts(6);
  for (int i = 0; i < 500; ++i) {
    int value = int(integers->read(i));
    ASSERT_TRUE(value >= -2 && value <= 3);
    ++counts[value + 2];
  }
  for (int count : counts)
    EXPECT_GT(count, 40);
  auto overflow = makeRandom(DType::F64, {int64_t(1) << 62, 4}, 1, 0, {});
  EXPECT_EQ(llvm::toString(overflow.takeError()),
            "the shape 4611686018427387904x4 overflows");
}

TEST(ParseNumber, ChecksKindAndRange) {
  EXPECT_EQ(cantFail(parseNumber(DType::I64, "-9223372036854775808")).read(0),
            -0x1p63);
  EXPECT_EQ(cantFail(parseNumber(DType::F32, "0.5")).read(0), 0.5);
  EXPECT_EQ(llvm::toString(parseNumber(DType::I64, "0.5").takeError()),
            "expected a number of type i64, got '0.5'");
  EXPECT_EQ(llvm::toString(parseNumber(DType::I8, "256").takeError()),
            "the number 256 does not fit i8");
  EXPECT_EQ(llvm::toString(parseNumber(DType::Bool, "-1").takeError()),
            "the number -1 does not fit i1");
}

} // namespace
