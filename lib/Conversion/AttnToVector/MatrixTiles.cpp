//===- MatrixTiles.cpp - Products of a block by AMX tiles -----------------===//
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
//   scores   [key][query]:     keys as they lie, times queries in pairs of
//                              features
//   values   [query][feature]: weights with a query's in a row, times values in
//                              pairs of keys
//
// Both operands of both products are in scratch, in whole tiles.
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

#include "mlir/Dialect/AMX/AMXDialect.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Rows of a tile, and columns of one of sums.
static constexpr int64_t kSide = 16;
/// Numbers in bf16 in a row of a tile.
static constexpr int64_t kDepth = 32;
/// Tiles of sums that are live at once: of the eight tiles there are, two hold
/// operands.
static constexpr int64_t kSums = 4;

namespace {
/// Products of tiles, and conversions to and from what they read.
struct Tiles {
  explicit Tiles(OnlineKernel &kernel)
      : kernel(kernel), b(kernel.b),
        narrow(getElementTypeOrSelf(kernel.op.getKey().getType())),
        sums(amx::TileType::get({kSide, kSide}, b.getF32Type())),
        operand(amx::TileType::get({kSide, kDepth}, narrow)),
        words(VectorType::get({kSide}, b.getI32Type())),
        line(VectorType::get({kDepth}, narrow)) {}

  Value load(amx::TileType type, Value memref, ValueRange indices) const {
    return amx::TileLoadOp::create(b, type, memref, indices);
  }
  void store(Value tile, Value memref, ValueRange indices) const {
    amx::TileStoreOp::create(b, memref, indices, tile);
  }
  Value multiply(Value left, Value right, Value sum) const {
    return amx::TileMulFOp::create(b, sums, left, right, sum);
  }

  /// Returns, for vectors in bf16, words with an element of `low` in the lower
  /// half and one of `high` in the upper half.
  Value interleave(Value low, Value high) const;

  /// Returns the keys of a block that its products add up: those that some
  /// query may keep, in whole steps.
  IndexRange getWhole(IndexRange keys) const {
    return {b.roundDown(keys.first, getStep()),
            b.mul(b.ceilDiv(keys.end, getStep()), getStep())};
  }
  /// Returns the keys that a product of values adds up before its sums go to
  /// memory: two tiles, where all blocks have them.
  int64_t getStep() const {
    return kernel.shape.blockKeys % (2 * kDepth) == 0 ? 2 * kDepth : kDepth;
  }

  OnlineKernel &kernel;
  KernelBuilder &b;
  Type narrow;
  amx::TileType sums, operand;
  VectorType words, line;
};
} // namespace

Value Tiles::interleave(Value low, Value high) const {
  auto getWords = [&](Value vector) -> Value {
    auto bits = VectorType::get({kSide}, b.getI16Type());
    return arith::ExtUIOp::create(b, words,
                                  arith::BitcastOp::create(b, bits, vector));
  };
  Value shifted =
      arith::ShLIOp::create(b, getWords(high), b.constantInt(words, 16));
  return arith::OrIOp::create(b, getWords(low), shifted);
}

void fovea::attn::allocateMatrixScratch(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  OnlineAttentionOp op = kernel.op;
  Type narrow = getElementTypeOrSelf(op.getKey().getType());
  int64_t keys = llvm::alignTo(kernel.shape.blockKeys, 2 * kDepth);
  auto sizeOf = [](Value operand, int64_t dim) {
    return cast<MemRefType>(operand.getType()).getDimSize(dim);
  };
  kernel.keyBlock =
      allocateScratch(b, op, {keys, sizeOf(op.getKey(), 3)}, narrow);
  if (!op.updatesAcc())
    return;
  kernel.weights = allocateScratch(b, op, {kernel.shape.queries, keys}, narrow);
  kernel.valueBlock =
      allocateScratch(b, op, {keys / 2, 2 * sizeOf(op.getValue(), 3)}, narrow);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

void fovea::attn::emitMatrixScoreProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  OnlineAttentionOp op = kernel.op;
  Tiles tiles(kernel);
  int64_t vectors = kernel.shape.groupVectors;
  int64_t features = cast<MemRefType>(op.getKey().getType()).getDimSize(3);
  b.loop(b.index(0), kernel.keys, 1, [&](Value row) {
    emitCopyRow(b, kDepth, op.getKey(),
                {kernel.batch, kernel.kvHead, b.add(kernel.firstKey, row)},
                b.index(0), b.index(features), kernel.keyBlock, row);
  });

  // A region has yet to change the scores: their maximum is taken after it.
  SmallVector<Value> inits;
  if (op.updatesMax() && op.getScore().empty())
    inits.assign(vectors, b.constant(kernel.vector,
                                     -std::numeric_limits<double>::infinity()));
  Value factor = b.constant(kernel.vector,
                            getPackingFactor(op.getScaleAttr(), op.getScore()));
  kernel.forGroups([&](Value column, IndexRange keys) {
    // Rows of keys beyond the block's last are whatever the scratch holds:
    // their scores are not read.
    Value first = b.roundDown(keys.first, kSide);
    b.loop(first, keys.end, kSide, [&](Value key) {
      SmallVector<Value> sums;
      for (int64_t v = 0; v < vectors; ++v)
        sums.push_back(amx::TileZeroOp::create(b, tiles.sums));
      for (int64_t feature = 0; feature < features; feature += kDepth) {
        Value left =
            tiles.load(tiles.operand, kernel.keyBlock, {key, b.index(feature)});
        for (auto [v, sum] : llvm::enumerate(sums)) {
          Value pair = b.mul(b.add(column, v * kSide), 2);
          Value right = tiles.load(
              tiles.operand, op.getQuery(),
              {kernel.batch, kernel.head, b.index(feature / 2), pair});
          sum = tiles.multiply(left, right, sum);
        }
      }
      for (auto [v, sum] : llvm::enumerate(sums))
        tiles.store(sum, kernel.scores, {key, b.add(column, v * kSide)});
    });
    SmallVector<Value> maxima = b.loop(
        keys.first, keys.end, 1, inits, [&](Value key, ValueRange carried) {
          SmallVector<Value> scores =
              kernel.loadGroup(kernel.scores, key, column);
          for (Value &score : scores)
            score = arith::MulFOp::create(b, score, factor);
          kernel.storeGroup(scores, kernel.scores, key, column);
          SmallVector<Value> next(carried);
          for (auto [maximum, score] : llvm::zip(next, scores))
            maximum = b.maxOrSecond(score, maximum);
          return next;
        });
    kernel.storeGroup(maxima, kernel.blockMax, Value(), column);
  });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Writes the block's values in pairs of keys. Values that no query keeps
/// become zeros.
static void emitValuePairs(const Tiles &tiles) {
  OnlineKernel &kernel = tiles.kernel;
  KernelBuilder &b = tiles.b;
  Value operand = kernel.op.getValue();
  int64_t features = cast<MemRefType>(operand.getType()).getDimSize(3);
  bool isContiguous = isReadableAs(operand, tiles.narrow);
  auto vector = VectorType::get({kSide}, tiles.narrow);
  IndexRange kept = kernel.getKeys(b.index(0), kernel.shape.queries);
  Value last = b.sub(kernel.keys, b.index(1));
  IndexRange whole = tiles.getWhole(kept);
  b.loop(whole.first, whole.end, 2, [&](Value key) {
    b.loop(b.index(0), b.index(features), kSide, [&](Value feature) {
      SmallVector<Value> rows;
      for (int64_t odd : {0, 1}) {
        Value at = b.add(key, odd);
        Value row = b.add(kernel.firstKey, b.min(b.max(at, kept.first), last));
        SmallVector<Value> place = {kernel.batch, kernel.kvHead, row, feature};
        Value loaded;
        if (isContiguous) {
          loaded = b.loadVector(vector, operand, place);
        } else {
          SmallVector<Value> elements;
          for (int64_t lane = 0; lane < kSide; ++lane) {
            place.back() = b.add(feature, lane);
            elements.push_back(b.load(operand, place));
          }
          loaded = vector::FromElementsOp::create(b, vector, elements);
        }
        Value isKept = arith::AndIOp::create(
            b,
            arith::CmpIOp::create(b, arith::CmpIPredicate::sge, at, kept.first),
            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, at, kept.end));
        rows.push_back(arith::SelectOp::create(b, isKept, loaded,
                                               b.constant(vector, 0.0)));
      }
      Value pairs = tiles.interleave(rows[0], rows[1]);
      b.store(vector::BitCastOp::create(b, tiles.line, pairs),
              kernel.valueBlock, {b.floorDiv(key, 2), b.mul(feature, 2)});
    });
  });
}

/// Writes the weights of one group's queries, those of a query in a row.
static void emitWeightRows(const Tiles &tiles, Value column, IndexRange keys) {
  OnlineKernel &kernel = tiles.kernel;
  KernelBuilder &b = tiles.b;
  // A group that keeps no key of the block may have its bounds outside of it.
  keys.first = b.min(keys.first, kernel.keys);
  keys.end = b.max(keys.end, keys.first);
  IndexRange whole = tiles.getWhole(keys);
  SmallVector<Value> zeros(kernel.shape.groupVectors,
                           b.constant(kernel.vector, 0.0));
  for (auto [first, end] :
       {std::pair(whole.first, keys.first), std::pair(keys.end, whole.end)})
    b.loop(first, end, 1, [&](Value key) {
      kernel.storeGroup(zeros, kernel.scores, key, column);
    });
  b.loop(whole.first, whole.end, kDepth, [&](Value key) {
    b.loop(
        column, b.add(column, kernel.groupQueries()), kSide, [&](Value query) {
          SmallVector<Value> pairs;
          for (int64_t pair = 0; pair < kSide; ++pair) {
            SmallVector<Value> rows;
            for (int64_t odd : {0, 1})
              rows.push_back(
                  b.convert(b.loadVector(kernel.vector, kernel.scores,
                                         {b.add(key, 2 * pair + odd), query}),
                            tiles.narrow));
            pairs.push_back(tiles.interleave(rows[0], rows[1]));
          }
          for (auto [row, weights] :
               llvm::enumerate(emitTranspose(b, std::move(pairs))))
            b.store(vector::BitCastOp::create(b, tiles.line, weights),
                    kernel.weights, {b.add(query, row), key});
        });
  });
}

/// Adds the products of 16 queries, from `row` on, to the accumulator.
static void emitAccumulatorRows(const Tiles &tiles, Value row) {
  OnlineKernel &kernel = tiles.kernel;
  KernelBuilder &b = tiles.b;
  Value acc = kernel.op.getAcc();
  int64_t features = cast<MemRefType>(acc.getType()).getDimSize(3);
  auto getPlace = [&](Value query, Value feature) {
    return SmallVector<Value>{kernel.batch, kernel.head, query, feature};
  };
  if (kernel.alpha)
    b.loop(row, b.add(row, kSide), 1, [&](Value query) {
      Value alpha = b.splat(kernel.vector, b.load(kernel.alpha, query));
      b.loop(b.index(0), b.index(features), kSide, [&](Value feature) {
        SmallVector<Value> place = getPlace(query, feature);
        Value old = b.loadVector(kernel.vector, acc, place);
        b.store(arith::MulFOp::create(b, old, alpha), acc, place);
      });
    });

  IndexRange keys = tiles.getWhole(kernel.getKeys(row, kSide));
  for (int64_t first = 0; first < features; first += kSums * kSide) {
    int64_t count = std::min(kSums, (features - first) / kSide);
    b.loop(keys.first, keys.end, tiles.getStep(), [&](Value key) {
      SmallVector<Value> sums;
      for (int64_t c = 0; c < count; ++c)
        sums.push_back(tiles.load(tiles.sums, acc,
                                  getPlace(row, b.index(first + c * kSide))));
      for (int64_t k = 0; k < tiles.getStep(); k += kDepth) {
        Value at = b.add(key, k);
        Value left = tiles.load(tiles.operand, kernel.weights, {row, at});
        for (auto [c, sum] : llvm::enumerate(sums)) {
          Value right = tiles.load(
              tiles.operand, kernel.valueBlock,
              {b.floorDiv(at, 2), b.index(2 * (first + int64_t(c) * kSide))});
          sum = tiles.multiply(left, right, sum);
        }
      }
      for (auto [c, sum] : llvm::enumerate(sums))
        tiles.store(sum, acc,
                    getPlace(row, b.index(first + int64_t(c) * kSide)));
    });
  }
}

void fovea::attn::emitMatrixValueProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  Tiles tiles(kernel);
  emitValuePairs(tiles);
  kernel.forGroups([&](Value column, IndexRange keys) {
    emitWeightRows(tiles, column, keys);
    Value end = b.min(b.add(column, kernel.groupQueries()), kernel.rows);
    b.loop(column, end, kSide,
           [&](Value row) { emitAccumulatorRows(tiles, row); });
  });
}
