//===- ShortLengthsTest.cpp - Lengths that have code of their own ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/ShortLengths.h"

#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Pipelines/Pipelines.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {

class ShortLengthsTest : public ::testing::Test {
protected:
  ShortLengthsTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Returns what is found for the function of a text on a GPU.
  ShortLengths find(StringRef text, StringRef gpu = "sm_90a") {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    func::FuncOp function = *module->getOps<func::FuncOp>().begin();
    return findShortLengths(
        function, function,
        machine::getTypicalGpu(&context, *machine::GpuArch::find(gpu)), {});
  }

  /// Returns what is found for attention of 32 heads on as many of keys, where
  /// the heads of a group may be rows in code for short lengths.
  ShortLengths findOfGroups(int64_t kvHeads, int64_t headDim) {
    std::string text = llvm::formatv(R"(
func.func @f(%q: tensor<?x32x?x{1}xbf16>, %k: tensor<?x{0}x?x{1}xbf16>) -> tensor<?x32x?x{1}xbf16> {{
  %o = attn.attention %q, %k, %k scale(0.125)
    : tensor<?x32x?x{1}xbf16>, tensor<?x{0}x?x{1}xbf16>, tensor<?x{0}x?x{1}xbf16> -> tensor<?x32x?x{1}xbf16>
  return %o : tensor<?x32x?x{1}xbf16>
})",
                                     kvHeads, headDim);
    return findPacked(text);
  }

  /// Returns what is found for attention on a cache of queries that lie packed,
  /// [1, heads, tokens, 128], of as many sequences as `starts` has bounds.
  ShortLengths findOfSequences(int64_t heads, int64_t kvHeads) {
    std::string rows = R"(
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %count = arith.subi %end, %start : index)";
    std::string text = llvm::formatv(
        R"(
!all = tensor<?x{0}x?x128xbf16>
!some = tensor<1x{0}x?x128xbf16>
!keys = tensor<?x{1}x?x128xbf16>
func.func @f(%k: !keys, %starts: tensor<?xi32>, %packed: !some) -> !some {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bounds = tensor.dim %starts, %c0 : tensor<?xi32>
  %batch = arith.subi %bounds, %c1 : index
  %tokens = tensor.dim %packed, %c2 : !some
  %room = tensor.empty(%batch, %tokens) : !all
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (!all) {{
    {2}
    %slice = tensor.extract_slice %packed[0, 0, %start, 0] [1, {0}, %count, 128] [1, 1, 1, 1] : !some to !some
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %slice into %out[%b, 0, 0, 0] [1, {0}, %count, 128] [1, 1, 1, 1] : !some into !all
    }
  }
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {{
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %starts[%b] : tensor<?xi32>
      %last = arith.index_cast %n : i32 to index
      %keep = arith.cmpi slt, %j, %last : index
      attn.yield %keep : i1
    } : !all, !keys, !keys -> !all
  %results = tensor.empty(%tokens) : !some
  %back = scf.forall (%b) in (%batch) shared_outs(%out = %results) -> (!some) {{
    {2}
    %slice = tensor.extract_slice %o[%b, 0, 0, 0] [1, {0}, %count, 128] [1, 1, 1, 1] : !all to !some
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %slice into %out[0, 0, %start, 0] [1, {0}, %count, 128] [1, 1, 1, 1] : !some into !some
    }
  }
  return %back : !some
})",
        heads, kvHeads, rows);
    return findPacked(text);
  }

  /// Returns what is found for the function of a text, the heads of whose
  /// groups are rows as in usual code and in that for short lengths.
  ShortLengths findPacked(StringRef text) {
    machine::TargetAttr target =
        machine::getTypicalGpu(&context, *machine::GpuArch::find("sm_90a"));
    auto pack = [&](bool areBatches) {
      auto module = parseSourceString<ModuleOp>(text, &context);
      (*module)->setAttr(machine::kTargetAttrName, target);
      PassManager manager(&context);
      AttnPackGroupsOptions options;
      options.batches = areBatches;
      manager.addPass(createAttnPackGroups(options));
      EXPECT_TRUE(succeeded(manager.run(*module)));
      return module;
    };
    OwningOpRef<ModuleOp> usual = pack(false), forShort = pack(true);
    return findShortLengths(*usual->getOps<func::FuncOp>().begin(),
                            *forShort->getOps<func::FuncOp>().begin(), target,
                            {});
  }

  MLIRContext context;
};

/// Returns a function of attention with heads of some size, of which the first
/// operand is a number; a line may compute other queries.
static std::string write(int64_t headDim, const char *line = "",
                         const char *query = "%q", const char *regions = "",
                         const char *length = "?") {
  std::string type =
      llvm::formatv("tensor<?x16x{0}x{1}xbf16>", length, headDim);
  return llvm::formatv(R"(
func.func @f(%n: index, %k: tensor<?x16x?x{0}xbf16>, %q: {1}) -> {1} {{
  {2}
  %o = attn.attention {3}, %k, %k scale(0.125) {4}
    : {1}, tensor<?x16x?x{0}xbf16>, tensor<?x16x?x{0}xbf16> -> {1}
  return %o : {1}
})",
                       headDim, type, line, query, regions);
}

TEST_F(ShortLengthsTest, AreThoseThatLongTilesFillBadly) {
  ShortLengths lengths = find(write(128));
  ASSERT_EQ(lengths.places.size(), 1u);
  EXPECT_EQ(lengths.places[0].operand, 2u);
  EXPECT_EQ(lengths.places[0].dim, 2u);
  // Tiles of 192 queries leave an eighth idle of 1024, and nothing of 1536.
  for (int64_t length : {256, 500, 512, 961, 1024})
    EXPECT_TRUE(lengths.contain(length)) << length;
  for (int64_t length : {0, 768, 960, 1025, 1536, 2049, 4096, 1 << 20})
    EXPECT_FALSE(lengths.contain(length)) << length;
}

TEST_F(ShortLengthsTest, AreThoseOfGroupsThatTilesOfHeadsFillBadly) {
  ShortLengths lengths = findOfGroups(/*kvHeads=*/8, /*headDim=*/64);
  ASSERT_EQ(lengths.places.size(), 1u);
  EXPECT_EQ(lengths.places[0].operand, 0u);
  EXPECT_EQ(lengths.places[0].dim, 2u);
  // A tile of 256 rows has that many queries of a head, or 64 of four heads.
  for (int64_t length : {17, 64, 100, 128, 192, 320, 640})
    EXPECT_TRUE(lengths.contain(length)) << length;
  for (int64_t length : {256, 512, 768, 1024, 2048})
    EXPECT_FALSE(lengths.contain(length)) << length;
  // Where each head has keys of its own there is nothing to be rows.
  EXPECT_EQ(findOfGroups(/*kvHeads=*/32, /*headDim=*/64).steps, 0u);
}

TEST_F(ShortLengthsTest, AreTheMeanOfSequencesThatLiePacked) {
  // Tiles of groups of five, which have no shares, are those of a head.
  ShortLengths lengths = findOfSequences(/*heads=*/40, /*kvHeads=*/8);
  ASSERT_EQ(lengths.places.size(), 1u);
  EXPECT_EQ(lengths.places[0].operand, 2u);
  EXPECT_EQ(lengths.places[0].dim, 2u);
  ASSERT_TRUE(lengths.sequences);
  EXPECT_EQ(lengths.sequences->operand, 1u);
  EXPECT_EQ(lengths.sequences->dim, 0u);
  EXPECT_EQ(lengths.sequences->more, -1);
  EXPECT_TRUE(lengths.contain(32));
  EXPECT_FALSE(lengths.contain(1024));
}

TEST_F(ShortLengthsTest, AreThoseOfSequencesThatFillFewerRows) {
  // Eight rows of each query fill two tiles of 128, and one of 192, or two.
  ShortLengths lengths = findOfSequences(/*heads=*/64, /*kvHeads=*/8);
  for (int64_t length : {1, 16, 25, 32})
    EXPECT_TRUE(lengths.contain(length)) << length;
  for (int64_t length : {17, 24, 33, 48, 96, 256, 1024})
    EXPECT_FALSE(lengths.contain(length)) << length;
  // A head of its own has tiles of 192 for long sequences, too.
  EXPECT_EQ(findOfSequences(/*heads=*/16, /*kvHeads=*/16).steps, 0u);
}

TEST_F(ShortLengthsTest, AreNoneOfMoreRowsOfAQueryThanSchedulesAreFor) {
  EXPECT_EQ(find(R"(
func.func @f(%q: tensor<?x1x?x512x64xbf16>, %k: tensor<?x1x?x64xbf16>) -> tensor<?x1x?x64xbf16> {
  %rows = tensor.collapse_shape %q [[0], [1], [2, 3], [4]]
    : tensor<?x1x?x512x64xbf16> into tensor<?x1x?x64xbf16>
  %o = attn.attention %rows, %k, %k scale(0.125)
    : tensor<?x1x?x64xbf16>, tensor<?x1x?x64xbf16>, tensor<?x1x?x64xbf16> -> tensor<?x1x?x64xbf16>
  return %o : tensor<?x1x?x64xbf16>
})")
                .steps,
            0u);
}

TEST_F(ShortLengthsTest, AreFoundUnderAMask) {
  ShortLengths lengths = find(write(128, "", "%q", R"(mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  })"));
  for (int64_t length : {512, 640, 1024})
    EXPECT_TRUE(lengths.contain(length)) << length;
  for (int64_t length : {128, 256, 768, 896, 1536})
    EXPECT_FALSE(lengths.contain(length)) << length;
}

TEST_F(ShortLengthsTest, AreNoneWhereTilesAreAlike) {
  for (int64_t headDim : {64, 256})
    EXPECT_EQ(find(write(headDim)).steps, 0u) << headDim;
}

TEST_F(ShortLengthsTest, AreNoneWhereTheLengthIsKnown) {
  EXPECT_EQ(find(write(128, "", "%q", "", "1024")).steps, 0u);
}

TEST_F(ShortLengthsTest, AreNoneWhereARowAloneDecidesItsBits) {
  EXPECT_EQ(find(write(128, "", "%q", "{split_size = 512 : i64}")).steps, 0u);
}

TEST_F(ShortLengthsTest, AreNoneWithoutWarpGroups) {
  EXPECT_EQ(find(write(128), "sm_80").steps, 0u);
}

TEST_F(ShortLengthsTest, AreThoseOfATensorMadeFromAnOperand) {
  ShortLengths lengths = find(write(128, R"(
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x16x?x128xbf16>
  %l = tensor.dim %q, %c2 : tensor<?x16x?x128xbf16>
  %e = tensor.empty(%b, %l) : tensor<?x16x?x128xbf16>
  %x = linalg.copy ins(%q : tensor<?x16x?x128xbf16>)
    outs(%e : tensor<?x16x?x128xbf16>) -> tensor<?x16x?x128xbf16>)",
                                    "%x"));
  ASSERT_EQ(lengths.places.size(), 1u);
  EXPECT_EQ(lengths.places[0].operand, 2u);
}

TEST_F(ShortLengthsTest, AreNoneWhereNoOperandHasTheLength) {
  EXPECT_EQ(
      find(write(128, "%x = tensor.empty(%n, %n) : tensor<?x16x?x128xbf16>",
                 "%x"))
          .steps,
      0u);
}

} // namespace
