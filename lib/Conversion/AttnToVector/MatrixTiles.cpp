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
// Both operands of both products are in scratch, in whole tiles. Keys and
// values of a block are packed once for all queries; then one group of queries
// after the other takes all steps of the block, so that its scores stay in the
// fast memory from step to step.
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

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
/// Vectors of a row of values that are packed by one piece of code.
static constexpr int64_t kMaxVectors = 8;

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
  /// Returns the same for vectors in f32, which it rounds.
  Value narrowPairs(Value low, Value high) const;

  /// Returns the keys of the block that queries `row ... row + count - 1` may
  /// keep; bounds of queries that keep none may lie outside of the block.
  IndexRange getKept(Value row, int64_t count) const {
    IndexRange keys = kernel.getKeys(row, count);
    keys.first = b.min(keys.first, kernel.keys);
    keys.end = b.max(keys.end, keys.first);
    return keys;
  }
  /// Returns the keys that products add up: `keys` in whole tiles.
  IndexRange getWhole(IndexRange keys) const {
    return {b.roundDown(keys.first, kDepth),
            b.mul(b.ceilDiv(keys.end, kDepth), kDepth)};
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

Value Tiles::narrowPairs(Value low, Value high) const {
  // Half of the last place is added before the lower half is cut off. Weights
  // are far from overflow, and a NaN among them is in the sum, too. The
  // processor's own conversion takes two cycles of the unit that permutes.
  auto getRounded = [&](Value vector) -> Value {
    return arith::AddIOp::create(b, arith::BitcastOp::create(b, words, vector),
                                 b.constantInt(words, 0x8000));
  };
  Value shifted =
      arith::ShRUIOp::create(b, getRounded(low), b.constantInt(words, 16));
  // shifted | (high & upper) by VPTERNLOGD: from ops on bits LLVM would make
  // permutations of halves, which are three operations.
  Value upper = b.constantInt(words, -0x10000);
  Value table = LLVM::ConstantOp::create(b, b.getI32Type(), 0xF8);
  return LLVM::CallIntrinsicOp::create(
             b, words, b.getStringAttr("llvm.x86.avx512.pternlog.d.512"),
             ValueRange{shifted, getRounded(high), upper, table})
      .getResult(0);
}

void fovea::attn::allocateMatrixScratch(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  OnlineAttentionOp op = kernel.op;
  Type narrow = getElementTypeOrSelf(op.getKey().getType());
  int64_t keys = llvm::alignTo(kernel.shape.blockKeys, kDepth);
  auto sizeOf = [](Value operand, int64_t dim) {
    return cast<MemRefType>(operand.getType()).getDimSize(dim);
  };
  bool isReadable =
      cast<MemRefType>(op.getKey().getType()).isLastDimUnitStride();
  kernel.keyBlock = allocateScratch(
      b, op, {isReadable ? kSide : keys, sizeOf(op.getKey(), 3)}, narrow);
  if (!op.updatesAcc())
    return;
  kernel.weights =
      allocateScratch(b, op, {kernel.groupQueries(), keys}, narrow);
  kernel.valueBlock =
      allocateScratch(b, op, {keys / 2, 2 * sizeOf(op.getValue(), 3)}, narrow);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// Prepares the block's keys for products: sets `kernel.keyBlock` to a matrix
/// of at least 16 rows, which is the operand itself where that can be read as
/// it is.
static void emitKeyBlock(OnlineKernel &kernel, Value scratch) {
  KernelBuilder &b = kernel.b;
  Value operand = kernel.op.getKey();
  auto type = cast<MemRefType>(operand.getType());
  int64_t features = type.getDimSize(3);
  auto copy = [&] {
    b.loop(b.index(0), kernel.keys, 1, [&](Value row) {
      emitCopyRow(b, kDepth, operand,
                  {kernel.batch, kernel.kvHead, b.add(kernel.firstKey, row)},
                  b.index(0), b.index(features), scratch, row);
    });
  };
  if (!type.isLastDimUnitStride()) {
    copy();
    kernel.keyBlock = scratch;
    return;
  }

  Value isShort = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                        kernel.keys, b.index(kSide));
  b.when(isShort, copy);
  Builder attributes(b.getContext());
  auto getIndex = [&](int64_t value) -> OpFoldResult {
    return attributes.getIndexAttr(value);
  };
  SmallVector<OpFoldResult> offsets = {kernel.batch, kernel.kvHead,
                                       kernel.firstKey, getIndex(0)},
                            sizes = {getIndex(1), getIndex(1), kernel.keys,
                                     getIndex(features)},
                            strides(4, getIndex(1));
  auto matrix = MemRefType::get(
      {ShapedType::kDynamic, features}, type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic,
                             {ShapedType::kDynamic, 1}));
  auto rows = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, features}, type, offsets, sizes, strides));
  Value view =
      memref::SubViewOp::create(b, rows, operand, offsets, sizes, strides);
  kernel.keyBlock = arith::SelectOp::create(
      b, isShort, b.fold<memref::CastOp>(matrix, scratch),
      b.fold<memref::CastOp>(matrix, view));
}

void fovea::attn::emitMatrixScoreProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  OnlineAttentionOp op = kernel.op;
  Tiles tiles(kernel);
  int64_t vectors = kernel.shape.groupVectors;
  int64_t features = cast<MemRefType>(op.getKey().getType()).getDimSize(3);
  // A region has yet to change the scores: their maximum is taken after it.
  SmallVector<Value> inits;
  if (op.updatesMax() && op.getScore().empty())
    inits.assign(vectors, b.constant(kernel.vector,
                                     -std::numeric_limits<double>::infinity()));
  Value factor = b.constant(kernel.vector,
                            getPackingFactor(op.getScaleAttr(), op.getScore()));
  kernel.forGroups([&](Value column, IndexRange keys) {
    // The last tile of many ends with the block's last key, and computes scores
    // of the tile before again. Of fewer keys than a tile has, rows beyond the
    // last are whatever the scratch holds: their scores are not read.
    Value first = b.roundDown(keys.first, kSide);
    Value last = b.max(b.sub(kernel.keys, b.index(kSide)), b.index(0));
    b.loop(first, keys.end, kSide, [&](Value begin) {
      Value key = b.min(begin, last);
      SmallVector<Value> sums;
      for (int64_t v = 0; v < vectors; ++v)
        sums.push_back(amx::TileZeroOp::create(b, tiles.sums));
      for (int64_t feature = 0; feature < features; feature += kDepth) {
        Value left =
            tiles.load(tiles.operand, kernel.keyBlock, {key, b.index(feature)});
        for (auto [v, sum] : llvm::enumerate(sums)) {
          Value query = b.add(kernel.firstQuery, b.add(column, v * kSide));
          Value right = tiles.load(tiles.operand, op.getQuery(),
                                   {kernel.batch, kernel.head,
                                    b.index(feature / 2), b.mul(query, 2)});
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
  auto loadRow = [&](Value key, Value feature) -> Value {
    SmallVector<Value> place = {kernel.batch, kernel.kvHead,
                                b.add(kernel.firstKey, key), feature};
    if (isContiguous)
      return b.loadVector(vector, operand, place);
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < kSide; ++lane) {
      place.back() = b.add(feature, lane);
      elements.push_back(b.load(operand, place));
    }
    return vector::FromElementsOp::create(b, vector, elements);
  };
  auto emitPairs = [&](Value first, Value end, int64_t vectors,
                       llvm::function_ref<Value(Value, Value)> getRow) {
    b.loop(first, end, 2, [&](Value key) {
      b.loop(b.index(0), b.index(features), vectors * kSide, [&](Value begin) {
        for (int64_t v = 0; v < vectors; ++v) {
          Value feature = b.add(begin, v * kSide);
          Value pairs = tiles.interleave(getRow(key, feature),
                                         getRow(b.add(key, 1), feature));
          b.store(vector::BitCastOp::create(b, tiles.line, pairs),
                  kernel.valueBlock, {b.floorDiv(key, 2), b.mul(feature, 2)});
        }
      });
    });
  };

  IndexRange kept = tiles.getKept(b.index(0), kernel.shape.queries);
  IndexRange whole = tiles.getWhole(kept);
  // The pairs of which both keys are kept.
  IndexRange inner = {b.mul(b.ceilDiv(kept.first, 2), 2), Value()};
  inner.end = b.max(b.roundDown(kept.end, 2), inner.first);
  auto loadKept = [&](Value key, Value feature) -> Value {
    Value isKept = arith::AndIOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, key, kept.first),
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, key, kept.end));
    Value existing =
        b.min(b.max(key, kept.first), b.sub(kernel.keys, b.index(1)));
    return arith::SelectOp::create(b, isKept, loadRow(existing, feature),
                                   b.constant(vector, 0.0));
  };
  int64_t vectors = features / kSide;
  emitPairs(whole.first, b.min(inner.first, whole.end), 1, loadKept);
  emitPairs(inner.first, inner.end,
            isContiguous && vectors <= kMaxVectors ? vectors : 1, loadRow);
  emitPairs(inner.end, whole.end, 1, loadKept);
}

/// Writes the weights of one group's queries, those of a query in a row.
static void emitWeightRows(const Tiles &tiles, Value column) {
  OnlineKernel &kernel = tiles.kernel;
  KernelBuilder &b = tiles.b;
  IndexRange keys = tiles.getKept(column, kernel.groupQueries());
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
              rows.push_back(b.loadVector(kernel.vector, kernel.scores,
                                          {b.add(key, 2 * pair + odd), query}));
            pairs.push_back(tiles.narrowPairs(rows[0], rows[1]));
          }
          for (auto [row, weights] :
               llvm::enumerate(emitTranspose(b, std::move(pairs))))
            b.store(vector::BitCastOp::create(b, tiles.line, weights),
                    kernel.weights, {b.add(query, row), key});
        });
  });
}

/// Multiplies 16 queries of the accumulator, from `row` on, by their factors,
/// where one of these is not 1: the maxima of most blocks are not new.
static void emitRescaledRows(const Tiles &tiles, Value row) {
  OnlineKernel &kernel = tiles.kernel;
  KernelBuilder &b = tiles.b;
  Value acc = kernel.op.getAcc();
  int64_t features = cast<MemRefType>(acc.getType()).getDimSize(3);
  Value factors = b.loadVector(kernel.vector, kernel.alpha, row);
  Value differs = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factors,
                                        b.constant(kernel.vector, 1.0));
  b.when(vector::ReductionOp::create(b, vector::CombiningKind::OR, differs),
         [&] {
           b.loop(row, b.add(row, kSide), 1, [&](Value query) {
             Value alpha = b.splat(kernel.vector, b.load(kernel.alpha, query));
             b.loop(b.index(0), b.index(features), kSide, [&](Value feature) {
               SmallVector<Value> place = {kernel.batch, kernel.head,
                                           b.add(kernel.firstQuery, query),
                                           feature};
               Value old = b.loadVector(kernel.vector, acc, place);
               b.store(arith::MulFOp::create(b, old, alpha), acc, place);
             });
           });
         });
}

/// Adds the products of 16 queries, from `row` on, to the accumulator.
static void emitAccumulatorRows(const Tiles &tiles, Value row) {
  OnlineKernel &kernel = tiles.kernel;
  KernelBuilder &b = tiles.b;
  Value acc = kernel.op.getAcc();
  int64_t features = cast<MemRefType>(acc.getType()).getDimSize(3);
  if (kernel.alpha)
    emitRescaledRows(tiles, row);

  IndexRange keys = tiles.getWhole(tiles.getKept(row, kSide));
  for (int64_t first = 0; first < features; first += kSums * kSide) {
    int64_t count = std::min(kSums, (features - first) / kSide);
    auto getPlace = [&](int64_t c) {
      return SmallVector<Value>{kernel.batch, kernel.head,
                                b.add(kernel.firstQuery, row),
                                b.index(first + c * kSide)};
    };
    SmallVector<Value> sums;
    for (int64_t c = 0; c < count; ++c)
      sums.push_back(tiles.load(tiles.sums, acc, getPlace(c)));
    sums = b.loop(
        keys.first, keys.end, kDepth, sums, [&](Value key, ValueRange carried) {
          Value left = tiles.load(tiles.operand, kernel.weights, {row, key});
          SmallVector<Value> next(carried);
          for (auto [c, sum] : llvm::enumerate(next)) {
            Value right =
                tiles.load(tiles.operand, kernel.valueBlock,
                           {b.floorDiv(key, 2),
                            b.index(2 * (first + int64_t(c) * kSide))});
            sum = tiles.multiply(left, right, sum);
          }
          return next;
        });
    for (auto [c, sum] : llvm::enumerate(sums))
      tiles.store(sum, acc, getPlace(c));
  }
}

void fovea::attn::emitMatrixValueProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  Tiles tiles(kernel);
  kernel.forGroups([&](Value column, IndexRange) {
    emitWeightRows(tiles, column);
    Value end = b.min(b.add(column, kernel.groupQueries()), kernel.rows);
    b.loop(column, end, kSide,
           [&](Value row) { emitAccumulatorRows(tiles, row); });
  });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void fovea::attn::emitMatrixBlock(OnlineKernel &kernel,
                                  llvm::function_ref<void()> emitGroup) {
  KernelBuilder &b = kernel.b;
  Value scratch = kernel.keyBlock;
  emitKeyBlock(kernel, scratch);
  if (kernel.op.updatesAcc())
    emitValuePairs(Tiles(kernel));

  // A group is a tile of its own to the steps that follow.
  Value tileRow = kernel.at.row, tileRows = kernel.rows,
        tileGroups = kernel.usedGroups;
  kernel.usedGroups = b.index(1);
  b.loop(b.index(0), tileGroups, 1, [&](Value group) {
    kernel.firstQuery = b.mul(group, kernel.groupQueries());
    kernel.at.row = b.add(tileRow, kernel.firstQuery);
    kernel.rows = b.min(b.index(kernel.groupQueries()),
                        b.sub(tileRows, kernel.firstQuery));
    if (!kernel.boundsKeys)
      return emitGroup();
    // Nothing changes for queries that keep none of the keys.
    IndexRange keys = kernel.getKeys(b.index(0), kernel.groupQueries());
    b.when(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, keys.first,
                                 keys.end),
           emitGroup);
  });
  kernel.keyBlock = scratch;
  kernel.firstQuery = b.index(0);
  kernel.at.row = tileRow;
  kernel.rows = tileRows;
  kernel.usedGroups = tileGroups;
}
