//===- TileLayoutTest.cpp - The algebra of layouts, by brute force --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace mlir;
using namespace fovea::tile;

namespace {

using Coordinates = SmallVector<int64_t>;

class TileLayoutTest : public ::testing::Test {
protected:
  TileLayoutTest() { context.loadDialect<TileDialect>(); }

  LayoutAttr parse(StringRef text) {
    auto layout = dyn_cast_or_null<LayoutAttr>(parseAttribute(text, &context));
    EXPECT_TRUE(layout) << text.str();
    return layout;
  }

  SharedType getShared(ArrayRef<int64_t> shape, Type elementType,
                       int64_t swizzle) {
    return SharedType::get(&context, shape, elementType, swizzle);
  }

  MLIRContext context;
};

/// The element in a register of a thread.
Coordinates getElement(LayoutAttr layout, int64_t index, int64_t thread) {
  Coordinates element = layout.getRegisterOffset(index);
  for (auto [sum, offset] :
       llvm::zip_equal(element, layout.getThreadOffset(thread)))
    sum += offset;
  return element;
}

/// The number of threads that hold the same elements.
int64_t getReplication(LayoutAttr layout) {
  int64_t replication = 1;
  for (const Digit &digit : layout.getThreads())
    if (digit.dim == Digit::kReplicated)
      replication *= digit.size;
  return replication;
}

/// Every element of the shape has as many places as threads replicate.
void expectBijective(LayoutAttr layout) {
  std::map<std::vector<int64_t>, int64_t> places;
  for (int64_t thread = 0; thread < layout.getNumThreads(); ++thread)
    for (int64_t index = 0; index < layout.getNumRegisters(); ++index) {
      Coordinates element = getElement(layout, index, thread);
      for (auto [coordinate, size] :
           llvm::zip_equal(element, layout.getShape())) {
        ASSERT_GE(coordinate, 0);
        ASSERT_LT(coordinate, size);
      }
      ++places[std::vector<int64_t>(element.begin(), element.end())];
    }
  int64_t elements = 1;
  for (int64_t size : layout.getShape())
    elements *= size;
  EXPECT_EQ(int64_t(places.size()), elements);
  for (const auto &[element, count] : places)
    EXPECT_EQ(count, getReplication(layout));
}

//===----------------------------------------------------------------------===//
// Layouts of the instructions
//===----------------------------------------------------------------------===//

// PTX ISA 9.7.15.5.1, figure of the accumulator of wgmma m64nNk16.
TEST_F(TileLayoutTest, RowOwnedIsTheAccumulatorOfWgmma) {
  for (int64_t columns : {8, 24, 64, 128, 256})
    for (int64_t groups : {1, 2, 3}) {
      LayoutAttr layout =
          LayoutAttr::getRowOwned(&context, 64 * groups, columns, 4 * groups);
      ASSERT_EQ(layout.getNumThreads(), 128 * groups);
      ASSERT_EQ(layout.getNumRegisters(), columns / 2);
      for (int64_t thread = 0; thread < layout.getNumThreads(); ++thread)
        for (int64_t index = 0; index < columns / 2; ++index) {
          int64_t inGroup = thread % 128;
          int64_t row = thread / 128 * 64 + inGroup / 32 * 16 +
                        inGroup % 32 / 4 + (index & 2 ? 8 : 0);
          int64_t column = index / 4 * 8 + thread % 4 * 2 + (index & 1);
          EXPECT_EQ(getElement(layout, index, thread),
                    (Coordinates{row, column}));
        }
      expectBijective(layout);
    }
}

// PTX ISA 9.7.14.5.8, figures of the fragments of mma.m16n8k16.
TEST_F(TileLayoutTest, RowOwnedIsTheAccumulatorOfMmaSync) {
  LayoutAttr layout = LayoutAttr::getRowOwned(&context, 16, 8, 1);
  ASSERT_EQ(layout.getNumRegisters(), 4);
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t index = 0; index < 4; ++index) {
      int64_t groupId = lane >> 2, threadInGroup = lane % 4;
      int64_t row = index < 2 ? groupId : groupId + 8;
      int64_t column = threadInGroup * 2 + (index & 1);
      EXPECT_EQ(getElement(layout, index, lane), (Coordinates{row, column}));
    }
}

// Warps that share rows follow one another; so do the columns of each share.
TEST_F(TileLayoutTest, AccumulatorIsSharedByRowsThenColumns) {
  for (auto [rowWarps, columnWarps] : {std::pair(4, 2), std::pair(2, 3)}) {
    int64_t rows = 32 * rowWarps, columns = 24 * columnWarps;
    LayoutAttr layout = LayoutAttr::getAccumulator(&context, rows, columns,
                                                   rowWarps, columnWarps);
    LayoutAttr part = LayoutAttr::getRowOwned(&context, rows, 24, rowWarps);
    ASSERT_EQ(layout.getNumRegisters(), part.getNumRegisters());
    for (int64_t thread = 0; thread < layout.getNumThreads(); ++thread)
      for (int64_t index = 0; index < layout.getNumRegisters(); ++index) {
        int64_t threads = part.getNumThreads();
        Coordinates expected = getElement(part, index, thread % threads);
        expected[1] += thread / threads * 24;
        EXPECT_EQ(getElement(layout, index, thread), expected);
      }
    expectBijective(layout);
    SmallVector<int64_t> permutation;
    EXPECT_EQ(layout.getColumnWarps(permutation), columnWarps);
    EXPECT_TRUE(llvm::is_sorted(permutation));
  }
  SmallVector<int64_t> permutation;
  EXPECT_EQ(LayoutAttr::getBlocked(&context, {64, 64}, 128, 1)
                .getColumnWarps(permutation),
            std::nullopt);
}

TEST_F(TileLayoutTest, RowOwnedIsTheLeftOperandOfMmaSync) {
  for (int64_t warps : {1, 4}) {
    LayoutAttr layout =
        LayoutAttr::getRowOwned(&context, 16 * warps, 32, warps);
    ASSERT_EQ(layout.getNumRegisters(), 16);
    for (int64_t thread = 0; thread < 32 * warps; ++thread)
      for (int64_t index = 0; index < 16; ++index) {
        int64_t groupId = thread % 32 >> 2, threadInGroup = thread % 4;
        int64_t step = index / 8, i = index % 8;
        bool isUpper = (i >= 0 && i < 2) || (i >= 4 && i < 6);
        int64_t row = thread / 32 * 16 + (isUpper ? groupId : groupId + 8);
        int64_t column =
            threadInGroup * 2 + (i & 1) + (i >= 4 ? 8 : 0) + step * 16;
        EXPECT_EQ(getElement(layout, index, thread),
                  (Coordinates{row, column}));
      }
  }
}

TEST_F(TileLayoutTest, RowsBeyondTheWarpsAreFurtherRegisters) {
  LayoutAttr layout = LayoutAttr::getRowOwned(&context, 128, 16, 4);
  ASSERT_EQ(layout.getNumThreads(), 128);
  ASSERT_EQ(layout.getNumRegisters(), 16);
  expectBijective(layout);
  for (int64_t index = 0; index < 8; ++index) {
    Coordinates lower = getElement(layout, index, 77);
    lower[0] += 64;
    EXPECT_EQ(getElement(layout, index + 8, 77), lower);
  }
}

// A row never lives in two warps.
TEST_F(TileLayoutTest, RowsAreOwnedByWarps) {
  for (auto [rows, warps] :
       {std::pair(64, 4), std::pair(128, 4), std::pair(192, 12)}) {
    LayoutAttr layout = LayoutAttr::getRowOwned(&context, rows, 64, warps);
    std::map<int64_t, std::set<int64_t>> owners;
    for (int64_t thread = 0; thread < layout.getNumThreads(); ++thread)
      for (int64_t index = 0; index < layout.getNumRegisters(); ++index)
        owners[getElement(layout, index, thread)[0]].insert(thread / 32);
    for (const auto &[row, warpsOfRow] : owners)
      EXPECT_EQ(warpsOfRow.size(), 1u) << row;
  }
}

TEST_F(TileLayoutTest, BlockedDealsRowMajor) {
  struct Case {
    Coordinates shape;
    int64_t threads, vector;
  };
  for (const Case &test :
       {Case{{64, 64}, 128, 4}, Case{{128, 64}, 256, 8}, Case{{16, 8}, 128, 1},
        Case{{16, 8}, 256, 1}, Case{{96, 40}, 128, 8}, Case{{128}, 128, 1},
        Case{{64}, 128, 1}, Case{{256}, 32, 4}, Case{{48, 24}, 64, 2}}) {
    LayoutAttr layout =
        LayoutAttr::getBlocked(&context, test.shape, test.threads, test.vector);
    ASSERT_EQ(layout.getNumThreads(), test.threads);
    ASSERT_EQ(layout.getShape(), ArrayRef(test.shape));
    expectBijective(layout);
    // Neighbours of a vector are the first registers.
    for (int64_t index = 0; index < test.vector; ++index) {
      Coordinates element = getElement(layout, 0, 5);
      element.back() += index;
      EXPECT_EQ(getElement(layout, index, 5), element);
    }
  }
  // Consecutive threads hold consecutive vectors of a row.
  LayoutAttr layout = LayoutAttr::getBlocked(&context, {32, 64}, 128, 4);
  for (int64_t thread = 0; thread < 128; ++thread)
    EXPECT_EQ(getElement(layout, 0, thread),
              (Coordinates{thread / 16, thread % 16 * 4}));
}

//===----------------------------------------------------------------------===//
// Algebra
//===----------------------------------------------------------------------===//

class TileLayoutAlgebraTest : public TileLayoutTest {
protected:
  TileLayoutAlgebraTest()
      : layouts({
            LayoutAttr::getRowOwned(&context, 64, 32, 4),
            LayoutAttr::getRowOwned(&context, 64, 24, 2),
            LayoutAttr::getBlocked(&context, {48, 24}, 64, 2),
            LayoutAttr::getBlocked(&context, {8, 8}, 128, 1),
            parse("#tile.layout<6x10, registers = [2:1d0, 5:2d1], "
                  "threads = [3:2d0, 2:1d1, 2:r]>"),
            parse("#tile.layout<4x4, registers = [2:2d1, 2:2d0], "
                  "threads = [2:r, 2:1d0, 2:1d1]>"),
        }) {}

  SmallVector<LayoutAttr> layouts;
};

TEST_F(TileLayoutAlgebraTest, DropDimKeepsTheOtherCoordinate) {
  for (LayoutAttr layout : layouts)
    for (int64_t dim : {0, 1}) {
      LayoutAttr dropped = layout.dropDim(dim);
      expectBijective(dropped);
      ASSERT_EQ(dropped.getNumThreads(), layout.getNumThreads());
      ASSERT_EQ(dropped.getShape(), layout.getShape().slice(1 - dim, 1));
      SmallVector<int64_t> reduced = layout.getReducedRegisters(dim);
      ASSERT_EQ(int64_t(reduced.size()), layout.getNumRegisters());
      for (int64_t thread = 0; thread < layout.getNumThreads(); ++thread)
        for (int64_t index = 0; index < layout.getNumRegisters(); ++index) {
          ASSERT_LT(reduced[index], dropped.getNumRegisters());
          EXPECT_EQ(getElement(dropped, reduced[index], thread)[0],
                    getElement(layout, index, thread)[1 - dim]);
        }
    }
}

TEST_F(TileLayoutAlgebraTest, WrappedRegistersAreInTheSameThread) {
  LayoutAttr layout = LayoutAttr::getRowOwned(&context, 64, 48, 4);
  LayoutAttr part = LayoutAttr::getRowOwned(&context, 64, 8, 4);
  std::optional<SmallVector<int64_t>> wrapped =
      layout.getWrappedRegisters(part);
  ASSERT_TRUE(wrapped);
  ASSERT_EQ(int64_t(wrapped->size()), layout.getNumRegisters());
  for (int64_t thread = 0; thread < layout.getNumThreads(); ++thread)
    for (int64_t index = 0; index < layout.getNumRegisters(); ++index) {
      Coordinates element = getElement(layout, index, thread);
      element[1] %= 8;
      EXPECT_EQ(getElement(part, (*wrapped)[index], thread), element);
    }
  // Columns 0 and 4 are in different threads.
  EXPECT_FALSE(layout.getWrappedRegisters(
      parse("#tile.layout<64x4, registers = [2:1d1, 2:8d0], "
            "threads = [2:2d1, 2:r, 8:1d0, 4:16d0]>")));
  // Every register is in the same thread, but not at the same place.
  EXPECT_FALSE(part.getWrappedRegisters(
                   LayoutAttr::getRowOwned(&context, 64, 48, 4)) == wrapped);
}

TEST_F(TileLayoutAlgebraTest, DropDimOfRankOneKeepsNothing) {
  for (LayoutAttr layout : layouts) {
    LayoutAttr rows = layout.dropDim(1);
    EXPECT_EQ(rows.getReducedRegisters(0),
              SmallVector<int64_t>(rows.getNumRegisters(), 0));
  }
}

TEST_F(TileLayoutAlgebraTest, PermutationOfRegisters) {
  for (LayoutAttr layout : layouts) {
    // The same with the registers' digits in another order.
    SmallVector<Digit> turned(llvm::reverse(layout.getRegisters()));
    auto other = LayoutAttr::get(&context, layout.getShape(), turned,
                                 layout.getThreads());
    std::optional<SmallVector<int64_t>> permutation =
        layout.getPermutationFrom(other);
    ASSERT_TRUE(permutation);
    EXPECT_EQ(
        std::set<int64_t>(permutation->begin(), permutation->end()).size(),
        size_t(layout.getNumRegisters()));
    for (int64_t thread = 0; thread < layout.getNumThreads(); ++thread)
      for (int64_t index = 0; index < layout.getNumRegisters(); ++index)
        EXPECT_EQ(getElement(layout, index, thread),
                  getElement(other, (*permutation)[index], thread));
    std::optional<SmallVector<int64_t>> identity =
        layout.getPermutationFrom(layout);
    ASSERT_TRUE(identity);
    EXPECT_TRUE(llvm::equal(*identity,
                            llvm::seq<int64_t>(0, layout.getNumRegisters())));
  }
}

TEST_F(TileLayoutAlgebraTest, PermutationSeesThroughSplitDigits) {
  LayoutAttr whole =
      parse("#tile.layout<8x8, registers = [8:1d1], threads = [8:1d0, 4:r]>");
  LayoutAttr split = parse("#tile.layout<8x8, registers = [2:1d1, 4:2d1], "
                           "threads = [4:1d0, 2:4d0, 2:r, 2:r]>");
  EXPECT_TRUE(whole.getPermutationFrom(split));
  EXPECT_TRUE(split.getPermutationFrom(whole));
}

TEST_F(TileLayoutAlgebraTest, NoPermutationWhereThreadsDiffer) {
  for (LayoutAttr a : layouts)
    for (LayoutAttr b : layouts)
      EXPECT_EQ(a.getPermutationFrom(b).has_value(), a == b);
  LayoutAttr rows =
      parse("#tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>");
  LayoutAttr columns =
      parse("#tile.layout<8x8, registers = [8:1d0], threads = [8:1d1]>");
  EXPECT_FALSE(rows.getPermutationFrom(columns));
  LayoutAttr swapped =
      parse("#tile.layout<8x8, registers = [8:1d1], threads = [4:2d0, 2:1d0]>");
  EXPECT_FALSE(rows.getPermutationFrom(swapped));
}

TEST_F(TileLayoutAlgebraTest, PrintedFormIsRead) {
  for (LayoutAttr layout : layouts) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << Attribute(layout);
    EXPECT_EQ(parse(text), layout);
  }
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

// A swizzle of 16 * 2^n bytes, as an operation on the address: its bits 4 to
// 4 + n are combined with the n that stand 3 places higher (PTX ISA 5.5.7).
TEST_F(TileLayoutTest, SwizzleIsThatOfTheAddress) {
  Builder builder(&context);
  for (Type type : {Type(builder.getBF16Type()), Type(builder.getF32Type()),
                    Type(builder.getI8Type())})
    for (int64_t swizzle : {32, 64, 128})
      for (int64_t columns : {16, 40, 64, 128, 192}) {
        int64_t bytes = type.getIntOrFloatBitWidth() / 8;
        SharedType tile = getShared({24, columns}, type, swizzle);
        int64_t panelColumns = swizzle / bytes;
        int64_t panels = (columns + panelColumns - 1) / panelColumns;
        ASSERT_EQ(tile.getPanelColumns(), panelColumns);
        ASSERT_EQ(tile.getNumPanels(), panels);
        ASSERT_EQ(tile.getPanelBytes(), 24 * swizzle);
        ASSERT_EQ(tile.getSizeInBytes(), panels * 24 * swizzle);
        int64_t bits = llvm::Log2_64(swizzle / 16);
        std::set<int64_t> offsets;
        for (int64_t row = 0; row < 24; ++row)
          for (int64_t column = 0; column < columns; ++column) {
            int64_t linear = column / panelColumns * 24 * swizzle +
                             row * swizzle + column % panelColumns * bytes;
            int64_t mask = ((int64_t(1) << bits) - 1) << 4;
            int64_t expected = linear ^ ((linear >> 3) & mask);
            int64_t offset = tile.getByteOffset(row, column);
            EXPECT_EQ(offset, expected) << row << ", " << column;
            EXPECT_LE(offset + bytes, tile.getSizeInBytes());
            EXPECT_EQ(offset % bytes, 0);
            EXPECT_TRUE(offsets.insert(offset).second);
          }
      }
}

// Each run is a tile of its own.
TEST_F(TileLayoutTest, Runs) {
  Type type = Builder(&context).getBF16Type();
  for (int64_t swizzle : {32, 64, 128})
    for (int64_t runs : {8, 16, 24, 48}) {
      SharedType tile = getShared({48, 192}, type, swizzle).cloneWithRuns(runs);
      SharedType run = getShared({runs, 192}, type, swizzle);
      ASSERT_EQ(tile.getSizeInBytes(), 48 * 192 * 2);
      ASSERT_EQ(tile.getRunBytes(), run.getSizeInBytes());
      ASSERT_EQ(tile.getPanelBytes(), run.getPanelBytes());
      ASSERT_EQ(tile.isOneRun(), runs == 48);
      for (int64_t row = 0; row < 48; ++row)
        for (int64_t column = 0; column < 192; ++column)
          ASSERT_EQ(tile.getByteOffset(row, column),
                    row / runs * run.getSizeInBytes() +
                        run.getByteOffset(row % runs, column));
    }
}

TEST_F(TileLayoutTest, RowsFollowWithoutASwizzle) {
  Builder builder(&context);
  SharedType tile = getShared({5, 12}, builder.getF32Type(), 0);
  EXPECT_EQ(tile.getNumPanels(), 1);
  EXPECT_EQ(tile.getPanelColumns(), 12);
  EXPECT_EQ(tile.getSizeInBytes(), 5 * 12 * 4);
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t column = 0; column < 12; ++column)
      EXPECT_EQ(tile.getByteOffset(row, column), (row * 12 + column) * 4);
}

} // namespace
