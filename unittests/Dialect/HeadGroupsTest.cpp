//===- HeadGroupsTest.cpp - Query heads that share keys and values --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace fovea::attn;

namespace {

class HeadGroupsTest : public ::testing::Test {
protected:
  HeadGroupsTest() : builder(&context), loc(builder.getUnknownLoc()) {
    context.loadDialect<arith::ArithDialect>();
    builder.setInsertionPointToEnd(&block);
  }

  OpFoldResult size(int64_t value) { return builder.getIndexAttr(value); }

  OpFoldResult unknown() {
    return block.addArgument(builder.getIndexType(), loc);
  }

  std::optional<int64_t> count(OpFoldResult heads, OpFoldResult kvHeads) {
    return getConstantIntValue(getHeadsPerKVHead(builder, loc, heads, kvHeads));
  }

  MLIRContext context;
  Block block;
  OpBuilder builder;
  Location loc;
};

TEST_F(HeadGroupsTest, KnowsNumbersWithoutOps) {
  EXPECT_EQ(count(size(8), size(2)), 4);
  EXPECT_EQ(count(size(8), size(8)), 1);
  EXPECT_EQ(count(size(0), size(0)), 1);
  OpFoldResult heads = unknown();
  EXPECT_EQ(count(heads, heads), 1);
  EXPECT_EQ(count(heads, size(0)), 1);
  // One KV head is that of all.
  EXPECT_EQ(getHeadsPerKVHead(builder, loc, heads, size(1)), heads);
  EXPECT_TRUE(block.empty());
}

TEST_F(HeadGroupsTest, DividesByNoZero) {
  OpFoldResult group = getHeadsPerKVHead(builder, loc, unknown(), unknown());
  auto divide = cast<Value>(group).getDefiningOp<arith::DivUIOp>();
  ASSERT_TRUE(divide);
  EXPECT_EQ(divide.getLhs(), block.getArgument(0));
  auto divisor = divide.getRhs().getDefiningOp<arith::MaxSIOp>();
  ASSERT_TRUE(divisor);
  EXPECT_EQ(divisor.getLhs(), block.getArgument(1));
  EXPECT_EQ(getConstantIntValue(divisor.getRhs()), 1);
}

} // namespace
