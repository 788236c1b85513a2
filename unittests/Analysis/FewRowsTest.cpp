//===- FewRowsTest.cpp - Batches of few queries on many keys --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/FewRows.h"

#include "fovea/Pipelines/Pipelines.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {

class FewRowsTest : public ::testing::Test {
protected:
  FewRowsTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Returns what is found for attention on caches with lengths, of queries of
  /// this shape, for the most of the few rows.
  FewRows find(StringRef shape, StringRef attributes = "", StringRef line = "",
               StringRef keys = "%k") {
    return findAll(shape, attributes, line, keys).back();
  }

  FewRowsOfCodes findAll(StringRef shape, StringRef attributes = "",
                         StringRef line = "", StringRef keys = "%k") {
    std::string text = llvm::formatv(R"(
func.func @f(%lengths: tensor<?xi32>, %q: tensor<{0}x128xbf16>,
    %k: tensor<?x8x?x128xbf16>, %n: index) -> tensor<{0}x128xbf16> {{
  {2}
  %o = attn.attention %q, {3}, {3} scale(0.125) mask {{
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %lengths[%b] : tensor<?xi32>
    %y = arith.index_cast %x : i32 to index
    %keep = arith.cmpi slt, %j, %y : index
    attn.yield %keep : i1
  } {1} : tensor<{0}x128xbf16>, tensor<?x8x?x128xbf16>,
    tensor<?x8x?x128xbf16> -> tensor<{0}x128xbf16>
  return %o : tensor<{0}x128xbf16>
})",
                                     shape, attributes, line, keys);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    return findFewRows(
        *module->getOps<func::FuncOp>().begin(),
        machine::getTypicalGpu(&context, *machine::GpuArch::find("sm_90a")),
        {});
  }

  MLIRContext context;
};

TEST_F(FewRowsTest, AreThoseThatLeaveMultiprocessorsIdle) {
  FewRows rows = find("?x32x?");
  EXPECT_EQ(rows.batch.operand, 1u);
  EXPECT_EQ(rows.batch.dim, 0u);
  EXPECT_EQ(rows.queries.operand, 1u);
  EXPECT_EQ(rows.queries.dim, 2u);
  ASSERT_TRUE(rows.keys);
  EXPECT_EQ(rows.keys->operand, 2u);
  EXPECT_EQ(rows.keys->dim, 2u);
  // 32 heads have 64 blocks of two tiles.
  EXPECT_TRUE(rows.contain(1, 17, 8192));
  EXPECT_TRUE(rows.contain(1, 2 * rows.tile, 8192));
  EXPECT_TRUE(rows.contain(2, rows.tile, 8192));
  EXPECT_FALSE(rows.contain(1, 2 * rows.tile + 1, 8192));
  EXPECT_FALSE(rows.contain(2, rows.tile + 1, 8192));
  EXPECT_FALSE(rows.contain(3, 1, 8192));
}

TEST_F(FewRowsTest, HaveCodeOfTheirOwnIfTheyAreFewer) {
  FewRowsOfCodes codes = findAll("?x32x?");
  EXPECT_EQ(codes[0].tile, 64);
  EXPECT_GT(codes[0].mostTiles, 0);
  EXPECT_TRUE(codes[0].contain(1, 64, 8192));
  // Those of two tiles take longer in twice as many parts.
  EXPECT_FALSE(codes[0].contain(1, 65, 8192));
  EXPECT_TRUE(codes[1].contain(1, 65, 8192));
}

TEST_F(FewRowsTest, HaveManyKeys) {
  FewRows rows = find("?x32x?");
  EXPECT_TRUE(rows.contain(1, 256, 2048));
  EXPECT_FALSE(rows.contain(1, 256, 2047));
  EXPECT_FALSE(rows.contain(1, 17, 2047));
  rows.mostTiles = 8;
  EXPECT_TRUE(rows.contain(1, 400, 3200));
  EXPECT_FALSE(rows.contain(1, 400, 3199));
}

TEST_F(FewRowsTest, AreNoneOfWrongOperands) {
  FewRows rows = find("?x32x?");
  for (auto [batch, queries, keys] :
       {std::tuple(-1, 64, 8192), {1, -1, 8192}, {1, 64, -1}, {0, 64, 8192}})
    EXPECT_FALSE(rows.contain(batch, queries, keys));
}

TEST_F(FewRowsTest, AreMoreOfFewerHeads) {
  EXPECT_GT(find("?x16x?").mostTiles, 1);
  EXPECT_EQ(find("?x128x?").mostTiles, 0);
}

TEST_F(FewRowsTest, MayHaveKeysOfNoOperandsSize) {
  FewRows rows = find(
      "?x32x?", "", "%p = tensor.empty(%n, %n) : tensor<?x8x?x128xbf16>", "%p");
  ASSERT_GT(rows.mostTiles, 0);
  EXPECT_FALSE(rows.keys);
  EXPECT_TRUE(rows.contain(1, 64, std::nullopt));
}

TEST_F(FewRowsTest, AreNoneWhereSizesAreKnown) {
  for (StringRef shape : {"1x32x?", "?x32x64", "?x?x?"})
    EXPECT_EQ(find(shape).mostTiles, 0) << shape.str();
}

TEST_F(FewRowsTest, AreNoneWhereARowAloneDecidesItsBits) {
  EXPECT_EQ(find("?x32x?", "{split_size = 512 : i64}").mostTiles, 0);
}

TEST_F(FewRowsTest, AreNoneWithASchedule) {
  EXPECT_EQ(find("?x32x?", "{schedule = #attn.schedule<tile = 64x64, order = "
                           "longest_first, warps = 4, stages = 2>}")
                .mostTiles,
            0);
}

} // namespace
