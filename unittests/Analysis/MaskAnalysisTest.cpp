//===- MaskAnalysisTest.cpp - Tiles of masks, against brute force ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/MaskAnalysis.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "MaskInterpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace fovea;

namespace {

/// Sizes of an attention and of its tiles.
struct Sizes {
  int64_t batches, heads, rows, keys, rowTile, keyTile;
};

/// Counts of visiting the tiles by the analysis.
struct Visits {
  int64_t visited = 0;    ///< Tiles that are visited,
  int64_t empty = 0;      ///< and have nothing kept;
  int64_t masked = 0;     ///< tiles with mask code,
  int64_t maskedFull = 0; ///< and everything kept.
  bool exact = false;
};

/// The analysis of a mask region, emitted once for all sizes and executed by
/// the interpreter, beside the region itself.
class MaskUnderTest {
public:
  /// Visits blocks of rows and their tiles of keys if `along` is the key,
  /// blocks of keys and their tiles of rows if it is the row.
  MaskUnderTest(Region &mask, MaskInterpreter &machine, Coordinate along)
      : mask(mask), machine(machine), along(along),
        across(along == Coordinate::Key ? Coordinate::Row : Coordinate::Key) {
    OpBuilder builder(mask.getContext());
    Type index = builder.getIndexType();
    Location loc = builder.getUnknownLoc();
    auto argument = [&](Type type) { return block.addArgument(type, loc); };
    batch = argument(index), head = argument(index);
    firstOfBlock = argument(index), lastOfBlock = argument(index);
    lastAlong = argument(index);
    firstOfTile = argument(index), lastOfTile = argument(index);
    for (auto [value, coordinates] : tabledValues(mask)) {
      Type type = value.getType().isInteger(1) ? value.getType() : index;
      Value min = argument(type), max = argument(type);
      tables.push_back({value, coordinates, min, max});
    }
    auto lookup = [&](Coordinate varying) {
      return [=, this](Value value, IndexMath &) -> std::optional<Span> {
        for (const Table &table : tables)
          if (table.value == value && (table.coordinates & bitOf(varying)))
            return Span{table.min, table.max};
        return std::nullopt;
      };
    };

    builder.setInsertionPointToEnd(&block);
    IndexMath constants(mask.getContext());
    Span fixed = {firstOfBlock, lastOfBlock};
    Span whole = {constants.constant(0), lastAlong};
    bool cutsKeys = along == Coordinate::Key;
    MaskBox box{{batch, batch},
                {head, head},
                cutsKeys ? fixed : whole,
                cutsKeys ? whole : fixed};
    MaskEvaluator evaluator(mask, box, builder, loc);
    evaluator.setLookup(lookup(across));
    bounds = evaluator.bounds(along);
    blockOps = std::distance(block.begin(), block.end());
    MaskEvaluator tile(evaluator, {firstOfTile, lastOfTile}, builder);
    tile.setLookup(lookup(along));
    truth = tile.evaluate();
  }

  /// Evaluates the region itself.
  bool keeps(int64_t b, int64_t h, int64_t i, int64_t j) {
    return valueAt(mask.front().getTerminator()->getOperand(0), b, h, i, j);
  }

  /// Visits the tiles of all blocks as the analysis says, and compares.
  Visits check(const Sizes &sizes) {
    Visits visits;
    visits.exact = bounds.exact;
    int64_t step = getTile(sizes, across);
    for (int64_t b = 0; b < sizes.batches; ++b)
      for (int64_t h = 0; h < sizes.heads; ++h)
        for (int64_t i = 0; i < getSize(sizes, across); i += step)
          checkBlock(sizes, b, h, i, visits);
    return visits;
  }

  std::string print() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    for (Operation &op : mask.front())
      stream << "  " << op << "\n";
    return text;
  }

private:
  struct Table {
    Value value;
    unsigned coordinates;
    Value min, max;
  };

  int64_t valueAt(Value value, int64_t b, int64_t h, int64_t i, int64_t j) {
    int64_t point[] = {b, h, i, j};
    for (auto [argument, number] : llvm::zip(mask.getArguments(), point))
      machine.set(argument, number);
    for (Operation &op : mask.front().without_terminator())
      machine.run(op);
    return machine.get(value);
  }

  static int64_t getSize(const Sizes &sizes, Coordinate coordinate) {
    return coordinate == Coordinate::Row ? sizes.rows : sizes.keys;
  }
  static int64_t getTile(const Sizes &sizes, Coordinate coordinate) {
    return coordinate == Coordinate::Row ? sizes.rowTile : sizes.keyTile;
  }

  /// Fills the tables that depend on the row or on the key.
  void fillTables(Coordinate varying, int64_t b, int64_t h, int64_t first,
                  int64_t last) {
    for (const Table &table : tables) {
      if (!(table.coordinates & bitOf(varying)))
        continue;
      bool isRow = varying == Coordinate::Row;
      int64_t min = INT64_MAX, max = INT64_MIN;
      for (int64_t x = first; x <= last; ++x) {
        int64_t v = valueAt(table.value, b, h, isRow ? x : 0, isRow ? 0 : x);
        min = std::min(min, v);
        max = std::max(max, v);
      }
      machine.set(table.min, min);
      machine.set(table.max, max);
    }
  }

  void checkBlock(const Sizes &sizes, int64_t b, int64_t h, int64_t first,
                  Visits &visits) {
    int64_t size = getSize(sizes, along), step = getTile(sizes, along);
    int64_t last =
        std::min(first + getTile(sizes, across), getSize(sizes, across)) - 1;
    fillTables(across, b, h, first, last);
    for (auto [value, number] : {std::pair(batch, b),
                                 {head, h},
                                 {firstOfBlock, first},
                                 {lastOfBlock, last},
                                 {lastAlong, size - 1}})
      machine.set(value, number);
    auto tileOps = std::next(block.begin(), blockOps);
    for (Operation &op : llvm::make_range(block.begin(), tileOps))
      machine.run(op);
    int64_t lower = machine.get(bounds.lower);
    int64_t upper = machine.get(bounds.upper);

    std::vector<int64_t> kept(size);
    for (int64_t i = first; i <= last; ++i)
      for (int64_t j = 0; j < size; ++j) {
        bool cutsKeys = along == Coordinate::Key;
        bool keep = keeps(b, h, cutsKeys ? i : j, cutsKeys ? j : i);
        kept[j] += keep;
        if (keep) {
          ASSERT_LE(lower, j) << "across " << i << "\n" << print();
          ASSERT_GT(upper, j) << "across " << i << "\n" << print();
        }
      }
    ASSERT_GE(lower, 0);
    ASSERT_LE(upper, size);

    for (int64_t start = lower / step * step; start < upper; start += step) {
      int64_t end = std::min(start + step, upper);
      fillTables(along, b, h, start, std::min(start + step, size) - 1);
      machine.set(firstOfTile, start);
      machine.set(lastOfTile, end - 1);
      for (Operation &op : llvm::make_range(tileOps, block.end()))
        machine.run(op);
      int64_t count =
          std::accumulate(kept.begin() + start, kept.begin() + end, int64_t(0));
      bool isFull = count == (end - start) * (last - first + 1);
      bool any = machine.get(truth.any), all = machine.get(truth.all);
      if (!any)
        ASSERT_EQ(count, 0) << "across " << first << " along " << start << "\n"
                            << print();
      if (all)
        ASSERT_TRUE(isFull) << "across " << first << " along " << start << "\n"
                            << print();
      // An exact loop tests no tile.
      if (bounds.exact || any) {
        ++visits.visited;
        visits.empty += count == 0;
        visits.masked += !all;
        visits.maskedFull += isFull && !all;
      }
    }
  }

  Region &mask;
  MaskInterpreter &machine;
  Block block;
  Coordinate along, across;
  Value batch, head, firstOfBlock, lastOfBlock, lastAlong, firstOfTile,
      lastOfTile;
  std::vector<Table> tables;
  MaskBounds bounds;
  Truth truth;
  int64_t blockOps = 0;
};

class MaskAnalysisTest : public ::testing::Test {
protected:
  MaskAnalysisTest() {
    context.loadDialect<attn::AttnDialect, affine::AffineDialect,
                        arith::ArithDialect, func::FuncDialect,
                        math::MathDialect, tensor::TensorDialect>();
  }

  /// Parses a function of `arguments`, after the scores, with a mask of `body`.
  Region &parse(StringRef arguments, StringRef body) {
    std::string text =
        ("func.func @f(%x: tensor<?x?x?x?xf32>" + arguments +
         ") -> tensor<?x?x?x?xf32> {\n  %y = attn.mask %x {\n"
         "  ^bb0(%b: index, %h: index, %i: index, %j: index):\n" +
         body +
         "  } : tensor<?x?x?x?xf32>\n  return %y : "
         "tensor<?x?x?x?xf32>\n}\n")
            .str();
    module = parseSourceString<ModuleOp>(text, &context);
    function = *module->getOps<func::FuncOp>().begin();
    return (*function.getOps<attn::MaskOp>().begin()).getBody();
  }

  Value argument(unsigned number) { return function.getArgument(number + 1); }

  /// Checks `mask` at sizes that divide and sizes that do not.
  Visits checkAll(Region &mask, Coordinate along = Coordinate::Key) {
    MaskUnderTest test(mask, machine, along);
    Visits sum;
    for (Sizes sizes : {Sizes{2, 2, 24, 24, 8, 8}, Sizes{2, 2, 13, 29, 4, 8},
                        Sizes{2, 2, 29, 13, 8, 4}, Sizes{2, 2, 1, 30, 4, 7},
                        Sizes{2, 2, 30, 1, 7, 4}}) {
      Visits visits = test.check(sizes);
      sum.visited += visits.visited;
      sum.empty += visits.empty;
      sum.masked += visits.masked;
      sum.maskedFull += visits.maskedFull;
      sum.exact = visits.exact;
    }
    return sum;
  }

  /// Every visited tile has something kept, and mask code is where it is
  /// needed. `exact`: true if bounds of keys are exact; those of rows may
  /// differ.
  void expectTight(Region &mask, bool exact) {
    for (Coordinate along : {Coordinate::Key, Coordinate::Row}) {
      Visits visits = checkAll(mask, along);
      EXPECT_GT(visits.visited, 0);
      EXPECT_EQ(visits.empty, 0);
      EXPECT_EQ(visits.maskedFull, 0);
      if (along == Coordinate::Key)
        EXPECT_EQ(visits.exact, exact);
    }
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  MaskInterpreter machine;
};

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

//===----------------------------------------------------------------------===//
// Random masks
//===----------------------------------------------------------------------===//

/// Builds random mask regions of the ops that the analysis knows, and some that
/// it does not.
class RandomMask {
public:
  RandomMask(Region &mask, func::FuncOp function, unsigned seed)
      : random(seed), mask(mask), function(function),
        builder(OpBuilder::atBlockBegin(&mask.front())),
        loc(builder.getUnknownLoc()) {}

  Value condition(int depth) {
    if (depth == 0 || pick(5) == 0)
      return leaf();
    switch (pick(8)) {
    case 0:
    case 1:
      return arith::AndIOp::create(builder, loc, condition(depth - 1),
                                   condition(depth - 1));
    case 2:
    case 3:
      return arith::OrIOp::create(builder, loc, condition(depth - 1),
                                  condition(depth - 1));
    case 4: {
      Value truth =
          arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
      return arith::XOrIOp::create(builder, loc, condition(depth - 1), truth);
    }
    case 5:
      return arith::XOrIOp::create(builder, loc, condition(depth - 1),
                                   condition(depth - 1));
    case 6:
      return arith::SelectOp::create(builder, loc, condition(depth - 1),
                                     condition(depth - 1),
                                     condition(depth - 1));
    default:
      return compare(condition(depth - 1), condition(depth - 1), 2);
    }
  }

private:
  unsigned pick(unsigned count) { return random() % count; }

  Type type() {
    Type types[] = {builder.getIndexType(), builder.getIndexType(),
                    builder.getI64Type(), builder.getI32Type(),
                    builder.getIntegerType(8)};
    return types[pick(5)];
  }

  Value compare(Value a, Value b, unsigned predicates = 10) {
    auto predicate = static_cast<arith::CmpIPredicate>(pick(predicates));
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }

  Value leaf() {
    if (pick(12) == 0)
      return tensor::ExtractOp::create(
          builder, loc, function.getArgument(4),
          ValueRange{mask.getArgument(0), mask.getArgument(2 + pick(2))});
    Type kind = type();
    return compare(integer(kind, pick(4)), integer(kind, pick(3)));
  }

  Value constant(Type kind) {
    int64_t choices[] = {0,  1,  2,         3,         4,       7,  -1,
                         12, -5, INT64_MAX, INT64_MIN, 1 << 20, 100};
    unsigned width = kind.isIndex() ? 64 : kind.getIntOrFloatBitWidth();
    llvm::APInt value(width, uint64_t(choices[pick(13)]), /*isSigned=*/true,
                      /*implicitTrunc=*/true);
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(kind, value));
  }

  Value divisor(Type kind) {
    int64_t choices[] = {1, 2, 3, 4, 7, -2};
    Value value = arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(kind, choices[pick(6)]));
    if (pick(4) != 0)
      return value;
    Value one = arith::ConstantOp::create(builder, loc,
                                          builder.getIntegerAttr(kind, 1));
    return arith::MaxSIOp::create(builder, loc, cast(captured(), kind), one);
  }

  Value captured() { return function.getArgument(1 + pick(2)); }

  Value cast(Value value, Type kind) {
    Type from = value.getType();
    if (from == kind)
      return value;
    if (from.isIndex() || kind.isIndex()) {
      if (pick(4) == 0)
        return arith::IndexCastUIOp::create(builder, loc, kind, value);
      return arith::IndexCastOp::create(builder, loc, kind, value);
    }
    if (from.getIntOrFloatBitWidth() > kind.getIntOrFloatBitWidth())
      return arith::TruncIOp::create(builder, loc, kind, value);
    if (pick(3) == 0)
      return arith::ExtUIOp::create(builder, loc, kind, value);
    return arith::ExtSIOp::create(builder, loc, kind, value);
  }

  Value atom(Type kind) {
    switch (pick(12)) {
    case 0:
    case 1:
      return constant(kind);
    case 2:
      return cast(captured(), kind);
    case 3: {
      Value id = tensor::ExtractOp::create(
          builder, loc, function.getArgument(3),
          ValueRange{mask.getArgument(0), mask.getArgument(2 + pick(2))});
      return cast(id, kind);
    }
    case 4:
      return cast(mask.getArgument(pick(2)), kind);
    case 5:
      if (!kind.isInteger(1))
        return cast(toInteger(leaf()), kind);
      [[fallthrough]];
    default:
      return cast(mask.getArgument(2 + pick(2)), kind);
    }
  }

  Value toInteger(Value boolean) {
    if (pick(2))
      return arith::ExtUIOp::create(builder, loc, builder.getI32Type(),
                                    boolean);
    return arith::ExtSIOp::create(builder, loc, builder.getI32Type(), boolean);
  }

  Value integer(Type kind, int depth) {
    if (depth == 0)
      return atom(kind);
    auto a = [&] { return integer(kind, depth - 1); };
    switch (pick(25)) {
    case 0:
    case 1:
    case 2:
      return arith::AddIOp::create(builder, loc, a(), a());
    case 3:
    case 4:
    case 5:
      return arith::SubIOp::create(builder, loc, a(), a());
    case 6:
    case 7:
      return arith::MulIOp::create(builder, loc, a(), a());
    case 8:
      return arith::FloorDivSIOp::create(builder, loc, a(), divisor(kind));
    case 9:
      return arith::CeilDivSIOp::create(builder, loc, a(), divisor(kind));
    case 10:
      return arith::DivSIOp::create(builder, loc, a(), divisor(kind));
    case 11:
      return arith::DivUIOp::create(builder, loc, a(), divisor(kind));
    case 12:
      return arith::RemSIOp::create(builder, loc, a(), divisor(kind));
    case 13:
      return arith::RemUIOp::create(builder, loc, a(), divisor(kind));
    case 14:
      return arith::MinSIOp::create(builder, loc, a(), a());
    case 15:
      return arith::MaxSIOp::create(builder, loc, a(), a());
    case 16:
      return arith::MinUIOp::create(builder, loc, a(), a());
    case 17:
      return arith::AndIOp::create(builder, loc, a(), a());
    case 18:
      return arith::OrIOp::create(builder, loc, a(), a());
    case 19:
      return arith::XOrIOp::create(builder, loc, a(), a());
    case 20: {
      Value shift = arith::ConstantOp::create(
          builder, loc, builder.getIntegerAttr(kind, pick(5)));
      if (pick(2))
        return arith::ShRSIOp::create(builder, loc, a(), shift);
      return arith::ShLIOp::create(builder, loc, a(), shift);
    }
    case 21:
      return math::AbsIOp::create(builder, loc, a());
    case 22: {
      Value x = a(), y = a();
      return arith::SelectOp::create(builder, loc, compare(x, y), x, y);
    }
    case 23: {
      if (!kind.isIndex())
        return arith::CeilDivUIOp::create(builder, loc, a(), divisor(kind));
      AffineExpr d0 = builder.getAffineDimExpr(0),
                 d1 = builder.getAffineDimExpr(1);
      AffineExpr exprs[] = {d0 - d1 * 2, (d0 + 3).floorDiv(4) + d1, d0 % 5 - d1,
                            (d0 - d1).ceilDiv(3)};
      // Affine arithmetic does not wrap: small operands only.
      Value operands[] = {mask.getArgument(2 + pick(2)),
                          mask.getArgument(2 + pick(2))};
      if (pick(2))
        return affine::AffineApplyOp::create(
            builder, loc, AffineMap::get(2, 0, exprs[pick(4)]), operands);
      AffineMap map = AffineMap::get(2, 0, {exprs[pick(4)], exprs[pick(4)]},
                                     builder.getContext());
      return affine::AffineMinOp::create(builder, loc, map, operands);
    }
    default:
      return arith::SelectOp::create(builder, loc, leaf(), a(), a());
    }
  }

  std::mt19937 random;
  Region &mask;
  func::FuncOp function;
  OpBuilder builder;
  Location loc;
};

class RandomMasks : public MaskAnalysisTest,
                    public ::testing::WithParamInterface<unsigned> {};

TEST_P(RandomMasks, AgreeWithBruteForce) {
  int64_t tiles = 0, decided = 0;
  for (unsigned round = 0; round < 15; ++round) {
    unsigned seed = GetParam() * 100 + round;
    Region &mask = parse(
        ", %s: index, %t: i64, %ids: tensor<2x20xi16>, %pad: tensor<2x20xi1>",
        "%keep = arith.constant true\nattn.yield %keep : i1\n");
    Value keep = RandomMask(mask, function, seed).condition(3);
    mask.front().getTerminator()->setOperand(0, keep);

    std::mt19937 random(seed);
    auto pick = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    MaskInterpreter::Tensor ids{{2, 20}, {}}, pad{{2, 20}, {}};
    int64_t id = pick(-2, 3);
    for (int64_t i = 0; i < 40; ++i) {
      id = pick(0, 3) ? id : pick(-2, 3);
      ids.data.push_back(id);
      pad.data.push_back(i % 20 < 8 || pick(0, 1));
    }
    int64_t scalars[] = {pick(-3, 30), 7, INT64_MAX, INT64_MIN, -1};
    machine = MaskInterpreter();
    machine.set(argument(0), scalars[pick(0, 4)]);
    machine.set(argument(1), scalars[pick(0, 4)]);
    machine.set(argument(2), ids);
    machine.set(argument(3), pad);

    for (Coordinate along : {Coordinate::Key, Coordinate::Row}) {
      MaskUnderTest test(mask, machine, along);
      Sizes sizes{2, 1, pick(1, 20), pick(1, 20), pick(1, 9), pick(1, 9)};
      Visits visits = test.check(sizes);
      if (HasFatalFailure()) {
        ADD_FAILURE() << "seed " << seed;
        return;
      }
      tiles += sizes.batches * llvm::divideCeil(sizes.rows, sizes.rowTile) *
               llvm::divideCeil(sizes.keys, sizes.keyTile);
      decided -= visits.masked;
    }
  }
  decided += tiles;
  // The analysis must also decide something.
  EXPECT_GT(decided, tiles / 20);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMasks, ::testing::Range(0u, 20u));

} // namespace
