//===- FormulaTest.cpp - Formulas and conversions -------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Formula.h"

#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace fovea;

namespace {

class FormulaTest : public ::testing::Test {
protected:
  FormulaTest() : builder(&context), loc(builder.getUnknownLoc()) {
    context.loadDialect<arith::ArithDialect>();
    builder.setInsertionPointToEnd(&block);
  }

  Value argument(Type type) { return block.addArgument(type, loc); }

  /// Returns the names of the ops so far.
  std::vector<std::string> getOps() {
    std::vector<std::string> names;
    for (Operation &op : block)
      names.push_back(op.getName().getStringRef().str());
    return names;
  }

  using Names = std::vector<std::string>;

  MLIRContext context;
  Block block;
  OpBuilder builder;
  Location loc;
};

TEST_F(FormulaTest, ConvertsFloatsOnce) {
  Value narrow = argument(builder.getBF16Type());
  EXPECT_EQ(convertFloats(builder, loc, narrow, builder.getBF16Type()), narrow);
  EXPECT_EQ(getOps(), Names());
  Value wide = convertFloats(builder, loc, narrow, builder.getF64Type());
  EXPECT_TRUE(wide.getType().isF64());
  EXPECT_TRUE(convertFloats(builder, loc, wide, builder.getF32Type())
                  .getType()
                  .isF32());
  EXPECT_EQ(getOps(), Names({"arith.extf", "arith.truncf"}));
}

TEST_F(FormulaTest, ConvertsTypesOfOneWidthThroughF32) {
  auto type = VectorType::get({4}, builder.getF16Type());
  Value result =
      convertFloats(builder, loc, argument(type), builder.getBF16Type());
  EXPECT_EQ(result.getType(), VectorType::get({4}, builder.getBF16Type()));
  EXPECT_EQ(getOps(), Names({"arith.extf", "arith.truncf"}));
  EXPECT_EQ(block.front().getResult(0).getType(),
            VectorType::get({4}, builder.getF32Type()));
  EXPECT_TRUE(verify(&block.front()).succeeded());
  EXPECT_TRUE(verify(&block.back()).succeeded());
}

TEST_F(FormulaTest, WritesScalarsAndVectors) {
  auto vector = VectorType::get({4}, builder.getF32Type());
  for (Type type : {Type(builder.getF32Type()), Type(vector)}) {
    block.clear();
    Formula f = {builder, loc, type};
    Value x = argument(type);
    Value product = f.mul(x, 0.5);
    EXPECT_EQ(product.getType(), type);
    EXPECT_EQ(f.select(f.isEqual(x, product), x, product).getType(), type);
    EXPECT_EQ(getOps(), Names({"arith.constant", "arith.mulf", "arith.cmpf",
                               "arith.select"}));
    for (Operation &op : block)
      EXPECT_TRUE(verify(&op).succeeded());
  }
}

} // namespace
