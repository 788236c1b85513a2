//===- MaskTest.h - Masks under test, beside brute force --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_UNITTESTS_ANALYSIS_MASKTEST_H
#define FOVEA_UNITTESTS_ANALYSIS_MASKTEST_H

#include "MaskInterpreter.h"

#include "fovea/Analysis/MaskAnalysis.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace fovea {

using namespace mlir;

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
  bool exact = false, complete = false;
};

/// The analysis of a mask region, emitted once for all sizes and executed by
/// the interpreter, beside the region itself.
class MaskUnderTest {
public:
  /// Visits blocks of rows and their tiles of keys if `along` is the key,
  /// blocks of keys and their tiles of rows if it is the row. With `isPoint` a
  /// block is one row, or key, whatever its size.
  MaskUnderTest(Region &mask, MaskInterpreter &machine, Coordinate along,
                bool isPoint = false)
      : mask(mask), machine(machine), along(along),
        across(along == Coordinate::Key ? Coordinate::Row : Coordinate::Key),
        isPoint(isPoint) {
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
    Span fixed = {firstOfBlock, isPoint ? firstOfBlock : lastOfBlock};
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
    visits.complete = bounds.complete;
    int64_t step = isPoint ? 1 : getTile(sizes, across);
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
    int64_t tile = isPoint ? 1 : getTile(sizes, across);
    int64_t last = std::min(first + tile, getSize(sizes, across)) - 1;
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
    for (int64_t j = lower; bounds.complete && j < upper; ++j)
      ASSERT_EQ(kept[j], last - first + 1) << "at " << j << "\n" << print();

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
  bool isPoint;
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
  Visits checkAll(Region &mask, Coordinate along = Coordinate::Key,
                  bool isPoint = false) {
    MaskUnderTest test(mask, machine, along, isPoint);
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
      sum.complete = visits.complete;
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

} // namespace fovea

#endif // FOVEA_UNITTESTS_ANALYSIS_MASKTEST_H
