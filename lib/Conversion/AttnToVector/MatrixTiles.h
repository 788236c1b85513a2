//===- MatrixTiles.h - Products of pairs in bf16 ----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile has 16 rows of 64 bytes. A product adds, to 16 x 16 sums in f32, those
// of 16 rows of 32 numbers in bf16 and of 16 rows of 16 pairs: row p of the
// right operand has numbers 2p and 2p + 1 of each column. AMX has registers for
// tiles; with AVX512-BF16 a tile of sums is 16 vectors.
//
// A number in f16 is the sum of two parts in bf16. A matrix of such numbers is
// that of the numbers rounded, and one of the rest beside it, which lies behind
// all columns of a left operand, and behind all rows of a right one.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_MATRIXTILES_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_MATRIXTILES_H

#include "OnlineKernel.h"

#include "mlir/Dialect/AMX/AMXDialect.h"

namespace fovea::attn {

/// Returns, for vectors in f32, words with an element of `low` in the lower
/// half and one of `high` in the upper half, rounded to bf16.
mlir::Value emitNarrowPairs(KernelBuilder &b, mlir::Value low,
                            mlir::Value high);
/// Returns the same for each of `parts` parts of vectors in bf16, f16 or f32.
llvm::SmallVector<mlir::Value> emitPairParts(KernelBuilder &b, mlir::Value low,
                                             mlir::Value high, int64_t parts);
/// Loads 16 numbers of a row of an operand, whose features may lie apart.
mlir::Value emitLoadNumbers(KernelBuilder &b, mlir::Value operand,
                            mlir::ValueRange indices);

/// Products of tiles for a block of scores, and conversions to and from what
/// they read.
struct Tiles {
  using Value = mlir::Value;

  /// Rows of a tile, and columns of one of sums.
  static constexpr int64_t kSide = 16;
  /// Numbers in bf16 in a row of a tile.
  static constexpr int64_t kDepth = 32;
  /// Tiles of sums that are live at once: of the eight tiles there are, up to
  /// three hold operands.
  static constexpr int64_t kSums = 4;
  /// Few steps of products are written out: their addresses are constants.
  static constexpr int64_t kMaxSteps = 8;

  /// `parts` is the number of parts of operands. Unless products are exact to
  /// f32, that of the lesser parts, 2^-18 of the whole, is left out.
  explicit Tiles(ScoreBlock &block, int64_t parts = 1, bool isExact = false)
      : block(block), b(block.b), parts(parts), isExact(isExact),
        narrow(b.getBF16Type()),
        words(mlir::VectorType::get({kSide}, b.getI32Type())),
        line(mlir::VectorType::get({kDepth}, narrow)) {}

  /// The place of a tile's first number in a matrix.
  struct Place {
    Value matrix;
    llvm::SmallVector<Value> indices;
  };
  using GetOperand =
      llvm::function_ref<Place(int64_t tile, Value depth, int64_t part)>;

  /// Tiles of sums, `rows` of them below each other and `columns` beside, which
  /// are set to products or, where `isAdded`, added to.
  struct Product {
    int64_t rows, columns;
    IndexRange depth; ///< whole tiles
    GetOperand getLeft, getRight;
    llvm::function_ref<Place(int64_t row, int64_t column)> getSums;
    bool isAdded;
    /// Builds what else is done behind each of few steps; may be null.
    llvm::function_ref<void(int64_t step, int64_t steps)> fillStep = nullptr;
  };
  void multiply(const Product &product) const;

  /// Returns the keys of the block that queries `row ... row + count - 1` may
  /// keep; bounds of queries that keep none may lie outside of the block.
  IndexRange getKept(Value row, int64_t count) const {
    IndexRange keys = block.getKeys(row, count);
    keys.first = b.min(keys.first, block.keys);
    keys.end = b.max(keys.end, keys.first);
    return keys;
  }
  /// Returns what products add up: `range` in whole tiles.
  IndexRange getWhole(IndexRange range) const {
    return {b.roundDown(range.first, kDepth),
            b.mul(b.ceilDiv(range.end, kDepth), kDepth)};
  }

  /// Returns the matrix of `rows` rows of a `[B, H, S, D]` operand from `place`
  /// on, `(b, h, row)`, with at least 16 rows: the operand itself where that
  /// can be read as it is, or `scratch`.
  Value getRows(Value operand, mlir::ValueRange place, Value rows,
                Value scratch) const;

  /// Returns the rows that the scratch for `count` rows of an operand needs.
  static int64_t getScratchRows(KernelBuilder &b, Value operand, int64_t count);

  /// Returns that matrix of `operand`, or `scratch` where `isScratch`.
  Value selectRows(Value isScratch, Value scratch, Value operand,
                   mlir::ValueRange place, Value rows) const;

  /// Returns true if the steps of products of `features` features are few.
  static bool hasFewSteps(int64_t features) {
    return features <= kMaxSteps * kDepth;
  }
  /// Returns the tiles of keys in one step of `multiplyKeys`.
  int64_t getStepRows() const {
    return std::max<int64_t>(kSums / block.groupVectors, 1);
  }
  /// Multiplies the tiles of keys from `begin` on, of one such step or fewer.
  void multiplyStep(Value left, int64_t features, GetOperand getRight,
                    Value result, Value column, Value begin, int64_t rows,
                    llvm::function_ref<void(int64_t step, int64_t steps)>
                        fillStep = nullptr) const;

  /// Multiplies a group's queries by the block's `keys`: writes `left` times
  /// tiles of pairs to columns `column ...` of `result`, in whole tiles of
  /// keys. `readRows`, if any, is built for each row of `keys`, which is not
  /// written again; it carries `inits`.
  llvm::SmallVector<Value>
  multiplyKeys(Value left, int64_t features, GetOperand getRight, Value result,
               Value column, IndexRange keys, mlir::ValueRange inits = {},
               KernelBuilder::LoopBody readRows = nullptr) const;

  /// How rows are joined to pairs.
  enum class Pairing {
    Neighbours, ///< rows 2p and 2p + 1
    Halves,     ///< rows p and p + 16 of each 32
  };
  /// Writes pairs of rows `rows` of a `[B, H, S, D]` operand, relative to
  /// `place`, to `target: [parts rows / 2][2 D]`, in whole tiles; rows outside
  /// of `rows` become zeros. `count` rows exist.
  void packPairs(Value operand, mlir::ValueRange place, IndexRange rows,
                 Value count, Pairing pairing, Value target) const;

  /// Writes keys `keys`, which are whole tiles, of `columns` columns of
  /// `source: [key][query]` to `target: [query][parts key]`, rounded.
  void transpose(Value source, Value column, int64_t columns, IndexRange keys,
                 Value target, Value row) const;

  /// Adds the products of `rows` tiles of `left: [row][parts depth]`, from
  /// `row` on, and of pairs `right` to rows of `target`, whose first has the
  /// indices `place`. `depth` is whole tiles.
  void addProducts(Value left, Value row, int64_t rows, Value right,
                   IndexRange depth, Value target, mlir::ValueRange place,
                   int64_t features) const;

  ScoreBlock &block;
  KernelBuilder &b;
  int64_t parts;
  bool isExact;
  mlir::Type narrow;
  mlir::VectorType words, line;

private:
  void multiplyTiles(const Product &product) const;
  void multiplyVectors(const Product &product) const;
  /// Returns the two numbers at `indices` in all words of a line.
  Value loadPair(Value matrix, mlir::ValueRange indices) const;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_MATRIXTILES_H
