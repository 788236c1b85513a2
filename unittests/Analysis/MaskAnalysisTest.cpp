//===- MaskAnalysisTest.cpp - Tiles of named masks, against brute force ---===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskTest.h"

#include <random>

using namespace mlir;
using namespace fovea;

namespace {

//===----------------------------------------------------------------------===//
// Named masks
//===----------------------------------------------------------------------===//

constexpr StringLiteral kCausal = R"(
    %causal = arith.cmpi sge, %i, %j : index
)";

TEST_F(MaskAnalysisTest, Everything) {
  Region &mask = parse("", R"(
    %keep = arith.constant true
    attn.yield %keep : i1
)");
  expectTight(mask, /*exact=*/true);
  EXPECT_EQ(checkAll(mask).masked, 0);
}

TEST_F(MaskAnalysisTest, Causal) {
  expectTight(parse("", (kCausal + "attn.yield %causal : i1\n").str()),
              /*exact=*/true);
}

TEST_F(MaskAnalysisTest, CausalInNarrowIntegers) {
  expectTight(parse("", R"(
    %p = arith.index_cast %i : index to i32
    %q = arith.index_cast %j : index to i32
    %d = arith.subi %q, %p : i32
    %zero = arith.constant 0 : i32
    %keep = arith.cmpi sle, %d, %zero : i32
    attn.yield %keep : i1
)"),
              /*exact=*/true);
}

TEST_F(MaskAnalysisTest, CausalAtAnOffset) {
  Region &mask = parse(", %offset: index", R"(
    %p = arith.addi %i, %offset : index
    %keep = arith.cmpi sge, %p, %j : index
    attn.yield %keep : i1
)");
  for (int64_t offset : {0, 1, 5, 16, 29}) {
    machine.set(argument(0), offset);
    expectTight(mask, /*exact=*/true);
  }
}

TEST_F(MaskAnalysisTest, CausalAtAnyOffset) {
  Region &mask = parse(", %offset: i64", R"(
    %p = arith.index_cast %i : index to i64
    %q = arith.index_cast %j : index to i64
    %r = arith.addi %p, %offset : i64
    %keep = arith.cmpi sge, %r, %q : i64
    attn.yield %keep : i1
)");
  for (int64_t offset : {-40, -7, 0, 11}) {
    machine.set(argument(0), offset);
    Visits visits = checkAll(mask);
    EXPECT_EQ(visits.empty, 0);
    EXPECT_EQ(visits.maskedFull, 0);
    EXPECT_TRUE(visits.exact);
  }
  // The sum wraps: no row keeps a key, or every row keeps all. The analysis
  // must not be wrong.
  for (int64_t offset : {INT64_MAX, INT64_MAX - 3, INT64_MIN, INT64_MIN + 5}) {
    machine.set(argument(0), offset);
    checkAll(mask);
  }
}

TEST_F(MaskAnalysisTest, SlidingWindow) {
  for (int64_t width : {1, 3, 8, 20, 100}) {
    std::string body = (kCausal + R"(
    %d = arith.subi %i, %j : index
    %w = arith.constant )" +
                        Twine(width) + R"( : index
    %near = arith.cmpi slt, %d, %w : index
    %keep = arith.andi %causal, %near : i1
    attn.yield %keep : i1
)")
                           .str();
    expectTight(parse("", body), /*exact=*/true);
  }
}

TEST_F(MaskAnalysisTest, WindowOfCapturedWidth) {
  Region &mask = parse(", %w: i64", R"(
    %d = arith.subi %i, %j : index
    %e = arith.index_cast %d : index to i64
    %keep = arith.cmpi ult, %e, %w : i64
    attn.yield %keep : i1
)");
  // The width may be negative, that is, enormous: the key is not bounded.
  for (int64_t width : {int64_t(1), int64_t(9), int64_t(100), INT64_MAX}) {
    machine.set(argument(0), width);
    Visits visits = checkAll(mask);
    EXPECT_EQ(visits.empty, 0);
    EXPECT_EQ(visits.maskedFull, 0);
  }
  for (int64_t width : {int64_t(0), int64_t(-1), INT64_MIN}) {
    machine.set(argument(0), width);
    checkAll(mask);
  }
}

TEST_F(MaskAnalysisTest, WindowToBothSides) {
  expectTight(parse("", R"(
    %d = arith.subi %i, %j : index
    %a = math.absi %d : index
    %w = arith.constant 5 : index
    %keep = arith.cmpi sle, %a, %w : index
    attn.yield %keep : i1
)"),
              /*exact=*/true);
}

TEST_F(MaskAnalysisTest, Prefix) {
  Region &mask = parse(", %prefix: index", (kCausal + R"(
    %early = arith.cmpi slt, %j, %prefix : index
    %keep = arith.ori %causal, %early : i1
    attn.yield %keep : i1
)")
                                               .str());
  for (int64_t prefix : {0, 1, 7, 16, 40}) {
    machine.set(argument(0), prefix);
    expectTight(mask, /*exact=*/true);
  }
}

TEST_F(MaskAnalysisTest, SinksAndWindow) {
  // There is a gap between the two, which only a test of each tile can leave
  // out.
  expectTight(parse("", (kCausal + R"(
    %d = arith.subi %i, %j : index
    %w = arith.constant 4 : index
    %near = arith.cmpi slt, %d, %w : index
    %two = arith.constant 2 : index
    %sink = arith.cmpi slt, %j, %two : index
    %seen = arith.ori %near, %sink : i1
    %keep = arith.andi %causal, %seen : i1
    attn.yield %keep : i1
)")
                            .str()),
              /*exact=*/false);
}

TEST_F(MaskAnalysisTest, BlocksOfTokens) {
  expectTight(parse("", R"(
    %c6 = arith.constant 6 : index
    %p = arith.divui %i, %c6 : index
    %q = arith.floordivsi %j, %c6 : index
    %keep = arith.cmpi sge, %p, %q : index
    attn.yield %keep : i1
)"),
              /*exact=*/true);
}

TEST_F(MaskAnalysisTest, Lengths) {
  Region &mask = parse(", %lengths: tensor<2xi32>", R"(
    %n = tensor.extract %lengths[%b] : tensor<2xi32>
    %m = arith.index_cast %n : i32 to index
    %keep = arith.cmpi slt, %j, %m : index
    attn.yield %keep : i1
)");
  machine.set(argument(0), MaskInterpreter::Tensor{{2}, {5, 23}});
  expectTight(mask, /*exact=*/true);
  machine.set(argument(0), MaskInterpreter::Tensor{{2}, {0, INT32_MAX}});
  expectTight(mask, /*exact=*/true);
  machine.set(argument(0), MaskInterpreter::Tensor{{2}, {-4, 1}});
  expectTight(mask, /*exact=*/true);
}

TEST_F(MaskAnalysisTest, Complete) {
  // A length keeps all keys in front, of any rows; a diagonal and a window do
  // so of one row.
  Region &length = parse(", %n: index", R"(
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
)");
  machine.set(argument(0), 9);
  EXPECT_TRUE(checkAll(length).complete);

  std::string window = (kCausal + R"(
    %d = arith.subi %i, %j : index
    %w = arith.constant 5 : index
    %near = arith.cmpi slt, %d, %w : index
    %keep = arith.andi %causal, %near : i1
    attn.yield %keep : i1
)")
                           .str();
  Region &mask = parse("", window);
  EXPECT_FALSE(checkAll(mask).complete);
  EXPECT_TRUE(checkAll(mask, Coordinate::Key, /*isPoint=*/true).complete);
  EXPECT_FALSE(checkAll(mask, Coordinate::Row).complete);

  // Documents of the key are known by tables only, and alternatives that leave
  // a gap by their hull.
  for (StringRef body : {R"(
    %kept = tensor.extract %t[%b, %j] : tensor<2x30xi1>
    attn.yield %kept : i1
)",
                         R"(
    %c5 = arith.constant 5 : index
    %c9 = arith.constant 9 : index
    %early = arith.cmpi slt, %j, %c5 : index
    %late = arith.cmpi sge, %j, %c9 : index
    %keep = arith.ori %early, %late : i1
    attn.yield %keep : i1
)"}) {
    Region &gaps = parse(", %t: tensor<2x30xi1>", body);
    machine.set(argument(0),
                MaskInterpreter::Tensor{{2, 30}, std::vector<int64_t>(60, 1)});
    EXPECT_FALSE(checkAll(gaps, Coordinate::Key, /*isPoint=*/true).complete);
  }
}

TEST_F(MaskAnalysisTest, CausalAndLengths) {
  Region &mask = parse(", %lengths: tensor<2xi64>", (kCausal + R"(
    %n = tensor.extract %lengths[%b] : tensor<2xi64>
    %m = arith.index_cast %n : i64 to index
    %inside = arith.cmpi slt, %j, %m : index
    %keep = arith.andi %causal, %inside : i1
    attn.yield %keep : i1
)")
                                                        .str());
  machine.set(argument(0), MaskInterpreter::Tensor{{2}, {9, 30}});
  expectTight(mask, /*exact=*/true);
}

/// Documents of random lengths, in order, for two batches of 30 positions.
MaskInterpreter::Tensor documents(unsigned seed) {
  std::mt19937 random(seed);
  MaskInterpreter::Tensor ids{{2, 30}, {}};
  for (int64_t b = 0; b < 2; ++b) {
    int64_t id = int64_t(random() % 7) - 3;
    for (int64_t i = 0; i < 30; ++i) {
      id += random() % 6 == 0 ? 1 + random() % 3 : 0;
      ids.data.push_back(id);
    }
  }
  return ids;
}

constexpr StringLiteral kDocuments = R"(
    %p = tensor.extract %ids[%b, %i] : tensor<2x30xi32>
    %q = tensor.extract %ids[%b, %j] : tensor<2x30xi32>
    %same = arith.cmpi eq, %p, %q : i32
)";

TEST_F(MaskAnalysisTest, Documents) {
  Region &mask = parse(", %ids: tensor<2x30xi32>",
                       (kDocuments + "attn.yield %same : i1\n").str());
  for (unsigned seed = 0; seed < 20; ++seed) {
    machine.set(argument(0), documents(seed));
    expectTight(mask, /*exact=*/false);
  }
}

TEST_F(MaskAnalysisTest, CausalDocuments) {
  Region &mask = parse(", %ids: tensor<2x30xi32>", (kDocuments + kCausal + R"(
    %keep = arith.andi %same, %causal : i1
    attn.yield %keep : i1
)")
                                                       .str());
  for (unsigned seed = 0; seed < 20; ++seed) {
    machine.set(argument(0), documents(seed));
    // A tile that ends at the diagonal may be full while its block in the
    // table, which goes on, is not. So mask code may run where it is not
    // needed.
    Visits visits = checkAll(mask);
    EXPECT_GT(visits.visited, 0);
    EXPECT_EQ(visits.empty, 0);
  }
}

TEST_F(MaskAnalysisTest, PaddingMask) {
  Region &mask = parse(", %pad: tensor<2x30xi1>", R"(
    %keep = tensor.extract %pad[%b, %j] : tensor<2x30xi1>
    attn.yield %keep : i1
)");
  std::mt19937 random(1);
  MaskInterpreter::Tensor pad{{2, 30}, {}};
  for (int64_t i = 0; i < 60; ++i)
    pad.data.push_back(i % 30 < 12 ? 1 : i % 30 < 20 ? random() % 2 : 0);
  machine.set(argument(0), pad);
  expectTight(mask, /*exact=*/false);
}

//===----------------------------------------------------------------------===//
// Boxes of constants
//===----------------------------------------------------------------------===//

TEST_F(MaskAnalysisTest, ClassifiesConstants) {
  Region &mask = parse("", (kCausal + "attn.yield %causal : i1\n").str());
  IndexMath math(&context);
  auto span = [&](int64_t first, int64_t last) {
    return Span{math.constant(first), math.constant(last)};
  };
  auto classify = [&](Span row, Span key) {
    MaskBox box{span(0, 1), span(0, 1), row, key};
    return MaskEvaluator(mask, box).classify();
  };
  EXPECT_EQ(classify(span(0, 9), span(10, 19)), TileKind::Empty);
  EXPECT_EQ(classify(span(10, 19), span(0, 10)), TileKind::Full);
  EXPECT_EQ(classify(span(10, 19), span(0, 11)), TileKind::Partial);
  EXPECT_EQ(classify(span(0, 9), span(9, 19)), TileKind::Partial);
  MaskBox box{span(0, 0), span(0, 0), span(8, 15), span(0, 99)};
  MaskBounds bounds = MaskEvaluator(mask, box).bounds(Coordinate::Key);
  EXPECT_EQ(IndexMath::constantOf(bounds.lower), 0);
  EXPECT_EQ(IndexMath::constantOf(bounds.upper), 16);
  box = {span(0, 0), span(0, 0), span(0, 99), span(8, 15)};
  bounds = MaskEvaluator(mask, box).bounds(Coordinate::Row);
  EXPECT_EQ(IndexMath::constantOf(bounds.lower), 8);
  EXPECT_EQ(IndexMath::constantOf(bounds.upper), 100);
  EXPECT_TRUE(bounds.exact);
}

//===----------------------------------------------------------------------===//
// Keys that are present
//===----------------------------------------------------------------------===//

TEST_F(MaskAnalysisTest, PresentKeys) {
  IndexMath math(&context);
  auto span = [&](int64_t first, int64_t last) {
    return Span{math.constant(first), math.constant(last)};
  };
  // Bounds by constants are known without IR.
  auto present = [&](StringRef body) {
    MaskBox box{span(0, 0), span(0, 0), span(0, 9), span(0, 99)};
    return MaskEvaluator(parse(", %n: index, %t: tensor<2x30xi1>", body), box)
        .presentKeys();
  };
  PresentKeys keys = present(R"(
    %c5 = arith.constant 5 : index
    %c80 = arith.constant 80 : index
    %causal = arith.cmpi sge, %i, %j : index
    %before = arith.cmpi slt, %j, %c80 : index
    %after = arith.cmpi sge, %j, %c5 : index
    %both = arith.andi %before, %after : i1
    %keep = arith.andi %causal, %both : i1
    attn.yield %keep : i1
)");
  ASSERT_TRUE(keys.first && keys.end);
  EXPECT_EQ(IndexMath::constantOf(*keys.first), 5);
  EXPECT_EQ(IndexMath::constantOf(*keys.end), 80);

  // Also where a table says what a tensor and the bounds keep together.
  keys = present(R"(
    %c5 = arith.constant 5 : index
    %c80 = arith.constant 80 : index
    %kept = tensor.extract %t[%b, %j] : tensor<2x30xi1>
    %before = arith.cmpi slt, %j, %c80 : index
    %both = arith.andi %before, %kept : i1
    %after = arith.cmpi sge, %j, %c5 : index
    %keep = arith.andi %both, %after : i1
    attn.yield %keep : i1
)");
  ASSERT_TRUE(keys.first && keys.end);
  EXPECT_EQ(IndexMath::constantOf(*keys.first), 5);
  EXPECT_EQ(IndexMath::constantOf(*keys.end), 80);

  // A diagonal and a window that follow from sizes, an alternative, a tensor.
  for (StringRef body : {R"(
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
)",
                         R"(
    %d = arith.subi %i, %j : index
    %c5 = arith.constant 5 : index
    %causal = arith.cmpi sge, %i, %j : index
    %near = arith.cmpi sle, %d, %c5 : index
    %keep = arith.andi %causal, %near : i1
    attn.yield %keep : i1
)",
                         R"(
    %c5 = arith.constant 5 : index
    %before = arith.cmpi slt, %j, %c5 : index
    %causal = arith.cmpi sge, %i, %j : index
    %keep = arith.ori %before, %causal : i1
    attn.yield %keep : i1
)",
                         R"(
    %keep = tensor.extract %t[%b, %j] : tensor<2x30xi1>
    attn.yield %keep : i1
)"}) {
    keys = present(body);
    EXPECT_FALSE(keys.first || keys.end) << body.str();
  }

  // A captured position bounds the keys that the last row sees.
  Region &mask = parse(", %n: index", R"(
    %last = arith.addi %i, %n : index
    %keep = arith.cmpi sge, %last, %j : index
    attn.yield %keep : i1
)");
  Block block;
  OpBuilder builder(&context);
  builder.setInsertionPointToEnd(&block);
  MaskBox box{span(0, 0), span(0, 0), span(0, 9), span(0, 99)};
  keys =
      MaskEvaluator(mask, box, builder, builder.getUnknownLoc()).presentKeys();
  ASSERT_TRUE(keys.end);
  EXPECT_FALSE(keys.first);
  machine.set(argument(0), 30);
  for (Operation &op : block)
    machine.run(op);
  EXPECT_EQ(machine.get(*keys.end), 40);
}

TEST_F(MaskAnalysisTest, PresentKeysByTables) {
  IndexMath math(&context);
  auto span = [&](int64_t first, int64_t last) {
    return Span{math.constant(first), math.constant(last)};
  };
  MaskBox box{span(0, 0), span(0, 0), span(0, 9), span(0, 99)};
  // What is read at the row bounds the key; so does a constant.
  Region &positions = parse(", %t: tensor<2x10xindex>", R"(
    %c80 = arith.constant 80 : index
    %last = tensor.extract %t[%b, %i] : tensor<2x10xindex>
    %before = arith.cmpi slt, %j, %c80 : index
    %seen = arith.cmpi sle, %j, %last : index
    %keep = arith.andi %before, %seen : i1
    attn.yield %keep : i1
)");
  PresentKeys keys = MaskEvaluator(positions, box).presentKeys();
  ASSERT_TRUE(keys.end);
  EXPECT_EQ(IndexMath::constantOf(*keys.end), 80);
  EXPECT_TRUE(keys.missesTables);

  MaskEvaluator evaluator(positions, box);
  evaluator.setLookup([&](Value, IndexMath &) { return span(3, 30); });
  keys = evaluator.presentKeys();
  ASSERT_TRUE(keys.end);
  EXPECT_EQ(IndexMath::constantOf(*keys.end), 31);
  EXPECT_FALSE(keys.missesTables);

  // What is read at the key, too, or is no bound of it.
  for (StringRef body : {R"(
    %of_row = tensor.extract %t[%b, %i] : tensor<2x10xindex>
    %of_key = tensor.extract %t[%b, %j] : tensor<2x10xindex>
    %keep = arith.cmpi eq, %of_row, %of_key : index
    attn.yield %keep : i1
)",
                         R"(
    %c5 = arith.constant 5 : index
    %of_row = tensor.extract %t[%b, %i] : tensor<2x10xindex>
    %is_kept = arith.cmpi slt, %of_row, %c5 : index
    %causal = arith.cmpi sge, %i, %j : index
    %keep = arith.andi %is_kept, %causal : i1
    attn.yield %keep : i1
)"})
    EXPECT_FALSE(MaskEvaluator(parse(", %t: tensor<2x10xindex>", body), box)
                     .presentKeys()
                     .missesTables)
        << body.str();
}

} // namespace
