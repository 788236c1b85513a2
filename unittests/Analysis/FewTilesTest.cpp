//===- FewTilesTest.cpp - Calls with few tiles of queries -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/FewTiles.h"

#include "fovea/Pipelines/Pipelines.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace fovea;

namespace {

class FewTilesTest : public ::testing::Test {
protected:
  FewTilesTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Returns what is found for attention of queries of this shape, causal or
  /// not, on an H200.
  FewTilesOfCodes find(StringRef shape, bool isCausal,
                       StringRef attributes = "") {
    StringRef mask = R"(mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  })";
    std::string text = llvm::formatv(R"(
!t = tensor<{0}xbf16>
func.func @f(%unused: f32, %q: !t, %k: !t) -> !t {{
  %o = attn.attention %q, %k, %k scale(0.125) {1} {2} : !t, !t, !t -> !t
  return %o : !t
})",
                                     shape, isCausal ? mask : "", attributes);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    return findFewTiles(
        *module->getOps<func::FuncOp>().begin(),
        machine::getTypicalGpu(&context, *machine::GpuArch::find("sm_90a")),
        {});
  }

  MLIRContext context;
};

TEST_F(FewTilesTest, HaveOneOrTwoForEachMultiprocessor) {
  FewTilesOfCodes causal = find("?x16x?x64", /*isCausal=*/true);
  EXPECT_EQ(causal[0].tile, 64);
  EXPECT_EQ(causal[0].mostTiles, 132 / 16);
  EXPECT_EQ(causal[1].tile, 128);
  EXPECT_EQ(causal[1].mostTiles, 2 * 132 / 16);
  ASSERT_TRUE(causal[0].batch);
  EXPECT_EQ(causal[0].batch->operand, 1u);
  EXPECT_EQ(causal[0].batch->dim, 0u);
  EXPECT_EQ(causal[0].queries.operand, 1u);
  EXPECT_EQ(causal[0].queries.dim, 2u);
  ASSERT_TRUE(causal[0].keys);
  EXPECT_EQ(causal[0].keys->operand, 2u);
  EXPECT_EQ(causal[0].keys->dim, 2u);
  // Tiles that take the same time need a multiprocessor each.
  FewTilesOfCodes full = find("?x16x?x64", /*isCausal=*/false);
  EXPECT_EQ(full[1].mostTiles, 132 / 16);
}

TEST_F(FewTilesTest, MayBeOfOneBatch) {
  FewTilesOfCodes codes = find("1x16x?x64", /*isCausal=*/true);
  EXPECT_FALSE(codes[0].batch);
  EXPECT_EQ(codes[0].mostTiles, 132 / 16);
}

TEST_F(FewTilesTest, AreSmallerThanUsualOnes) {
  // What is usual has tiles of 128 at d = 256.
  FewTilesOfCodes codes = find("?x16x?x256", /*isCausal=*/false);
  EXPECT_EQ(codes[0].tile, 64);
  EXPECT_GT(codes[0].mostTiles, 0);
  EXPECT_EQ(codes[1].mostTiles, 0);
}

TEST_F(FewTilesTest, AreNotFoundWhereSizesDoNotTell) {
  for (StringRef shape : {"?x?x?x64", "2x16x?x64", "?x16x1024x64"})
    for (const FewTiles &few : find(shape, /*isCausal=*/true))
      EXPECT_EQ(few.mostTiles, 0) << shape.str();
  for (const FewTiles &few :
       find("?x16x?x64", /*isCausal=*/false,
            "{schedule = #attn.schedule<tile = 256x64, order = linear, "
            "warps = 16, stages = 2>}"))
    EXPECT_EQ(few.mostTiles, 0);
}

TEST(FewTiles, ContainCallsByTheirTiles) {
  FewTiles few;
  few.tile = 64;
  EXPECT_FALSE(few.contain(1, 64, 64));
  few.mostTiles = 8;
  EXPECT_TRUE(few.contain(1, 512, 512));
  EXPECT_FALSE(few.contain(1, 513, 513));
  EXPECT_TRUE(few.contain(4, 65, 65));
  EXPECT_FALSE(few.contain(5, 65, 65));
  // Nor a cache's keys, nor what is no size.
  EXPECT_TRUE(few.contain(1, 512, 1024));
  EXPECT_FALSE(few.contain(1, 512, 1025));
  EXPECT_FALSE(few.contain(0, 512, 512));
  EXPECT_FALSE(few.contain(1, 0, 0));
  EXPECT_FALSE(few.contain(1, -1, -1));
  EXPECT_FALSE(few.contain(1, 512, -1));
  EXPECT_FALSE(few.contain(1, 512, std::nullopt));
}

} // namespace
