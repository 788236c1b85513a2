//===- FewRowsTest.cpp - Batches of few queries on many keys --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/FewRows.h"

#include "fovea/Analysis/PackedQueries.h"
#include "fovea/Analysis/ScheduleModel.h"
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

  /// Finds them where heads may be rows of batches, as codes for few have them.
  FewRowsOfCodes findAll(StringRef shape, StringRef attributes = "",
                         StringRef line = "", StringRef keys = "%k",
                         bool areRows = false) {
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
    if (areRows) {
      AttnPackGroupsOptions batches;
      batches.batches = true;
      packGroups(*module, batches);
    }
    return findFewRows(*module->getOps<func::FuncOp>().begin(), getTarget(),
                       {});
  }

  /// Makes rows of the heads of groups, for the target.
  void packGroups(ModuleOp module, AttnPackGroupsOptions options = {}) {
    module->setAttr(machine::kTargetAttrName, getTarget());
    PassManager manager(&context);
    manager.addPass(createAttnPackGroups(options));
    EXPECT_TRUE(succeeded(manager.run(module)));
  }

  /// Expects the numbers of batches and of queries to be those of operand 1.
  static void expectPlaces(const FewRows &rows) {
    ASSERT_TRUE(rows.batch);
    EXPECT_EQ(rows.batch->operand, 1u);
    EXPECT_EQ(rows.batch->dim, 0u);
    EXPECT_EQ(rows.queries.operand, 1u);
    EXPECT_EQ(rows.queries.dim, 2u);
  }

  machine::TargetAttr getTarget() {
    return machine::getTypicalGpu(&context, *machine::GpuArch::find("sm_90a"));
  }

  MLIRContext context;
};

/// Attention on caches of queries that lie packed, [1, heads, queries, 128],
/// which a loop copies to those of each sequence, as another one does the
/// results, back. As in the pipeline, the heads of a group are rows of one.
class FewPackedRowsTest : public FewRowsTest {
protected:
  /// What the tests change of the graph.
  struct Graph {
    StringRef heads = "32", keyHeads = "8", keys = "?", headDim = "128",
              attributes = "";
    bool hasMask = true;
    /// What a sequence has of the queries: the slice of them or, computed from
    /// it, its negative.
    StringRef copied = "%slice";
  };

  OwningOpRef<ModuleOp> parse(const Graph &graph) {
    StringRef mask = R"(mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %lengths[%b] : tensor<?xi32>
    %y = arith.index_cast %x : i32 to index
    %z = arith.addi %i, %y : index
    %keep = arith.cmpi sle, %j, %z : index
    attn.yield %keep : i1
  })";
    StringRef rows = R"(
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index)";
    std::string text = llvm::formatv(
        R"(
func.func @f(%lengths: tensor<?xi32>, %starts: tensor<?xi32>,
    %k: tensor<?x{1}x{2}x{7}xbf16>, %most: index,
    %packed: tensor<1x{0}x?x{7}xbf16>) -> tensor<1x{0}x?x{7}xbf16> {{
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %k, %c0 : tensor<?x{1}x{2}x{7}xbf16>
  %all = tensor.dim %packed, %c2 : tensor<1x{0}x?x{7}xbf16>
  %rows = arith.minsi %most, %all : index
  %room = tensor.empty(%batch, %rows) : tensor<?x{0}x?x{7}xbf16>
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<?x{0}x?x{7}xbf16>) {{
    {6}
    %slice = tensor.extract_slice %packed[0, 0, %start, 0] [1, {0}, %count, {7}] [1, 1, 1, 1]
      : tensor<1x{0}x?x{7}xbf16> to tensor<1x{0}x?x{7}xbf16>
    %negated = arith.negf %slice : tensor<1x{0}x?x{7}xbf16>
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice {4} into %out[%b, 0, 0, 0] [1, {0}, %count, {7}] [1, 1, 1, 1]
        : tensor<1x{0}x?x{7}xbf16> into tensor<?x{0}x?x{7}xbf16>
    }
  }
  %o = attn.attention %q, %k, %k scale(0.125) {5} {3} : tensor<?x{0}x?x{7}xbf16>, tensor<?x{1}x{2}x{7}xbf16>,
    tensor<?x{1}x{2}x{7}xbf16> -> tensor<?x{0}x?x{7}xbf16>
  %results = tensor.empty(%all) : tensor<1x{0}x?x{7}xbf16>
  %back = scf.forall (%b) in (%batch) shared_outs(%out = %results) -> (tensor<1x{0}x?x{7}xbf16>) {{
    {6}
    %slice = tensor.extract_slice %o[%b, 0, 0, 0] [1, {0}, %count, {7}] [1, 1, 1, 1]
      : tensor<?x{0}x?x{7}xbf16> to tensor<1x{0}x?x{7}xbf16>
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %slice into %out[0, 0, %start, 0] [1, {0}, %count, {7}] [1, 1, 1, 1]
        : tensor<1x{0}x?x{7}xbf16> into tensor<1x{0}x?x{7}xbf16>
    }
  }
  return %back : tensor<1x{0}x?x{7}xbf16>
})",
        graph.heads, graph.keyHeads, graph.keys, graph.attributes, graph.copied,
        graph.hasMask ? mask : "", rows, graph.headDim);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    packGroups(*module);
    return module;
  }

  FewRowsOfCodes findAll(const Graph &graph) {
    OwningOpRef<ModuleOp> module = parse(graph);
    return findFewRows(*module->getOps<func::FuncOp>().begin(), getTarget(),
                       {});
  }

  ScheduleAttr select(const Graph &graph, const ScheduleOptions &options) {
    OwningOpRef<ModuleOp> module = parse(graph);
    ScheduleAttr schedule;
    module->walk([&](AttentionOp op) {
      schedule = selectSchedule(op, getTarget(), options);
    });
    return schedule;
  }
};

TEST_F(FewRowsTest, HaveTilesOfQueriesWhoseHeadsAreRows) {
  FewRowsOfCodes codes = findAll("?x32x?", "", "", "%k", /*areRows=*/true);
  for (const FewRows &rows : codes)
    expectPlaces(rows);
  // Four heads of a group are rows of tiles of 64 and of 128.
  EXPECT_EQ(codes[0].tile, 16);
  EXPECT_EQ(codes[1].tile, 32);
  EXPECT_TRUE(codes[0].contain(1, 32, 8192));
  EXPECT_FALSE(codes[0].contain(1, 33, 8192));
  EXPECT_FALSE(codes[0].contain(2, 32, 8192));
  // Eight tiles of eight heads of keys have two parts each.
  EXPECT_TRUE(codes[1].contain(1, 256, 8192));
  EXPECT_TRUE(codes[1].contain(8, 32, 8192));
  EXPECT_FALSE(codes[1].contain(1, 257, 8192));
  EXPECT_FALSE(codes[1].contain(8, 33, 8192));
}

TEST_F(FewRowsTest, AreThoseThatLeaveMultiprocessorsIdle) {
  FewRows rows = find("?x32x?");
  expectPlaces(rows);
  ASSERT_TRUE(rows.keys);
  EXPECT_EQ(rows.keys->operand, 2u);
  EXPECT_EQ(rows.keys->dim, 2u);
  // 32 heads have 64 blocks of two tiles, of two parts each.
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
  EXPECT_TRUE(codes[0].contain(2, 64, 8192));
  // Two tiles of one sequence take longer in twice as many parts.
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

TEST_F(FewPackedRowsTest, AreThoseOfAllSequences) {
  for (const FewRows &rows : findAll({})) {
    EXPECT_FALSE(rows.batch);
    EXPECT_EQ(rows.queries.operand, 4u);
    EXPECT_EQ(rows.queries.dim, 2u);
    ASSERT_TRUE(rows.keys);
    EXPECT_EQ(rows.keys->operand, 2u);
    EXPECT_EQ(rows.keys->dim, 2u);
  }
}

TEST_F(FewPackedRowsTest, HaveCodeOfTheirOwnIfTheyAreOneTile) {
  // The rows of 16 queries, of a group of 4 heads each, are a tile of 64.
  FewRowsOfCodes codes = findAll({});
  EXPECT_EQ(codes[0].tile, 16);
  EXPECT_TRUE(codes[0].contain(1, 16, 8192));
  EXPECT_FALSE(codes[0].contain(1, 17, 8192));
  EXPECT_TRUE(codes[1].contain(1, 17, 8192));
  ScheduleAttr schedule = select({}, {.typicalRows = 64});
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule.getQueryTile(), 64);
  EXPECT_EQ(schedule.getBlocks(), Blocks::Dealt);
  EXPECT_EQ(schedule.getSplit(), 16);
  // An earlier maximum takes registers that others need.
  EXPECT_EQ(schedule.getMaximum(), Maximum::Exact);
  // Without a group a tile has 64 queries.
  EXPECT_TRUE(findAll({.keyHeads = "32"})[0].contain(1, 64, 8192));
  EXPECT_FALSE(findAll({.keyHeads = "32"})[0].contain(1, 65, 8192));
}

TEST_F(FewPackedRowsTest, HavePartsWhateverTheMaximum) {
  // Where masked steps of narrow heads have the exact maximum, too.
  Graph graph = {.heads = "16", .keyHeads = "16", .headDim = "64"};
  ScheduleAttr schedule = select(graph, {.typicalRows = 128});
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule.getMaximum(), Maximum::Exact);
  EXPECT_EQ(schedule.getBlocks(), Blocks::Dealt);
  EXPECT_EQ(schedule.getSplit(), 8);
}

TEST_F(FewPackedRowsTest, LeaveMultiprocessorsIdle) {
  // The 4 heads of a group are rows of one, of 8, each of which has 16 of the
  // 132 multiprocessors.
  FewRows rows = findAll({}).back();
  ScheduleAttr schedule = select({}, {.typicalRows = 128});
  ASSERT_TRUE(schedule);
  EXPECT_EQ(rows.tile, schedule.getQueryTile() / 4);
  EXPECT_EQ(rows.mostTiles, 16);
  EXPECT_TRUE(rows.contain(1, 1, 8192));
  EXPECT_TRUE(rows.contain(1, 16 * rows.tile, 8192));
  EXPECT_FALSE(rows.contain(1, 16 * rows.tile + 1, 8192));
  // Where no heads share keys, all are heads.
  FewRows single = findAll({.keyHeads = "32"}).back();
  EXPECT_EQ(single.mostTiles, 4);
  EXPECT_EQ(single.tile,
            select({.keyHeads = "32"}, {.typicalRows = 128}).getQueryTile());
  EXPECT_FALSE(single.batch);
}

TEST_F(FewPackedRowsTest, HaveManyKeysWhateverTheirNumber) {
  FewRows rows = findAll({}).back();
  for (int64_t queries : {int64_t(1), 16 * rows.tile}) {
    EXPECT_TRUE(rows.contain(1, queries, 2048)) << queries;
    EXPECT_FALSE(rows.contain(1, queries, 2047)) << queries;
  }
  // Unlike those of a batch.
  EXPECT_GT(16 * rows.tile * FewRows::kKeysPerQuery, 2048);
}

TEST_F(FewPackedRowsTest, HaveScheduleWithPartsOfTheirOwn) {
  ScheduleAttr few = select({}, {.typicalRows = 128});
  ASSERT_TRUE(few);
  EXPECT_EQ(few.getBlocks(), Blocks::Dealt);
  EXPECT_EQ(few.getSplit(), 16);
  ScheduleAttr general = select({}, {});
  ASSERT_TRUE(general);
  EXPECT_EQ(general.getSplit(), 1);
}

TEST_F(FewPackedRowsTest, AreNoneWithASchedule) {
  for (StringRef attributes :
       {"{schedule = #attn.schedule<tile = 64x64, order = longest_first, warps "
        "= 4, stages = 2>}",
        "{split_size = 512 : i64}"})
    for (const FewRows &rows : findAll({.attributes = attributes}))
      EXPECT_EQ(rows.mostTiles, 0) << attributes.str();
}

TEST_F(FewPackedRowsTest, AreNoneWhereHeadsKeepMultiprocessorsBusy) {
  Graph graph = {.heads = "128", .keyHeads = "128"};
  for (const FewRows &rows : findAll(graph))
    EXPECT_EQ(rows.mostTiles, 0);
}

TEST_F(FewPackedRowsTest, AreNoneWithoutAMask) {
  // No tile takes longer than others, and none are listed.
  for (const FewRows &rows : findAll({.hasMask = false}))
    EXPECT_EQ(rows.mostTiles, 0);
}

TEST_F(FewPackedRowsTest, AreThoseThatLieInAnOperand) {
  // Those that are computed in front lie nowhere.
  FewRows rows = findAll({.copied = "%negated"}).back();
  EXPECT_EQ(rows.mostTiles, 0);
}

} // namespace
