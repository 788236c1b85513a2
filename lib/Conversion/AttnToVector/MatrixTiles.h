//===- MatrixTiles.h - Products by AMX tiles --------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile has 16 rows of 64 bytes. A product adds, to 16 x 16 sums in f32, those
// of 16 rows of 32 numbers in bf16 and of 16 rows of 16 pairs: row p of the
// right operand has numbers 2p and 2p + 1 of each column.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_MATRIXTILES_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_MATRIXTILES_H

#include "OnlineKernel.h"

#include "mlir/Dialect/AMX/AMXDialect.h"

namespace fovea::attn {

/// Products of tiles for a block of scores, and conversions to and from what
/// they read.
struct Tiles {
  using Value = mlir::Value;

  /// Rows of a tile, and columns of one of sums.
  static constexpr int64_t kSide = 16;
  /// Numbers in bf16 in a row of a tile.
  static constexpr int64_t kDepth = 32;
  /// Tiles of sums that are live at once: of the eight tiles there are, two
  /// hold operands.
  static constexpr int64_t kSums = 4;

  /// `narrow` is the element type of operands.
  Tiles(ScoreBlock &block, mlir::Type narrow)
      : block(block), b(block.b), narrow(narrow),
        sums(mlir::amx::TileType::get({kSide, kSide}, b.getF32Type())),
        operand(mlir::amx::TileType::get({kSide, kDepth}, narrow)),
        words(mlir::VectorType::get({kSide}, b.getI32Type())),
        line(mlir::VectorType::get({kDepth}, narrow)) {}

  Value load(mlir::amx::TileType type, Value memref,
             mlir::ValueRange indices) const {
    return mlir::amx::TileLoadOp::create(b, type, memref, indices);
  }
  void store(Value tile, Value memref, mlir::ValueRange indices) const {
    mlir::amx::TileStoreOp::create(b, memref, indices, tile);
  }
  Value multiply(Value left, Value right, Value sum) const {
    return mlir::amx::TileMulFOp::create(b, sums, left, right, sum);
  }

  /// Returns, for vectors in bf16, words with an element of `low` in the lower
  /// half and one of `high` in the upper half.
  Value interleave(Value low, Value high) const;
  /// Returns the same for vectors in f32, which it rounds.
  Value narrowPairs(Value low, Value high) const;

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

  /// Returns that matrix of `operand`, or `scratch` where `isScratch`.
  Value selectRows(Value isScratch, Value scratch, Value operand,
                   mlir::ValueRange place, Value rows) const;

  /// Multiplies a group's queries by the block's `keys`: writes `left` times
  /// the tiles that `getRight(feature, vector)` reads to columns `column ...`
  /// of `result`, in whole tiles of keys.
  void
  multiplyKeys(Value left, int64_t features,
               llvm::function_ref<Value(int64_t feature, int64_t v)> getRight,
               Value result, Value column, IndexRange keys) const;

  /// How rows are joined to pairs.
  enum class Pairing {
    Neighbours, ///< rows 2p and 2p + 1
    Halves,     ///< rows p and p + 16 of each 32
  };
  /// Writes pairs of rows `rows` of a `[B, H, S, D]` operand, relative to
  /// `place`, to `target: [rows / 2][2 D]`, in whole tiles; rows outside of
  /// `rows` become zeros. `count` rows exist.
  void packPairs(Value operand, mlir::ValueRange place, IndexRange rows,
                 Value count, Pairing pairing, Value target) const;

  /// Writes keys `keys`, which are whole tiles, of `columns` columns of
  /// `source: [key][query]` to `target: [query][key]`, rounded.
  void transpose(Value source, Value column, int64_t columns, IndexRange keys,
                 Value target, Value row) const;

  /// Adds the products of 16 rows of `left: [row][depth]` and of pairs `right`
  /// to 16 rows of `target`, whose first has the indices `place`. `depth` is
  /// whole tiles.
  void addProducts(Value left, Value row, Value right, IndexRange depth,
                   Value target, mlir::ValueRange place,
                   int64_t features) const;

  ScoreBlock &block;
  KernelBuilder &b;
  mlir::Type narrow;
  mlir::amx::TileType sums, operand;
  mlir::VectorType words, line;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_MATRIXTILES_H
