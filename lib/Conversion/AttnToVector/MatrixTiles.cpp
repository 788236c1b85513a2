//===- MatrixTiles.cpp - Products of a block by AMX tiles -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of attention:
//
//   scores   [key][query]:     keys as they lie, times queries in pairs of
//                              features
//   values   [query][feature]: weights with a query's in a row, times values in
//                              pairs of keys
//
// Keys are read where they lie, unless there are fewer than a tile has or their
// features lie apart; queries come packed. Values of a block are packed in
// scratch once for all queries; then one group of queries after the other takes
// all steps of the block, so that its scores stay in the fast memory from step
// to step.
//
//===----------------------------------------------------------------------===//

#include "MatrixTiles.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

static constexpr int64_t kSide = Tiles::kSide, kDepth = Tiles::kDepth;
/// Vectors of a row of values that are packed by one piece of code.
static constexpr int64_t kMaxVectors = 8;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

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

Value Tiles::getRows(Value operand, ValueRange place, Value rows,
                     Value scratch) const {
  auto type = cast<MemRefType>(operand.getType());
  int64_t features = type.getDimSize(3);
  auto copy = [&] {
    b.loop(b.index(0), rows, 1, [&](Value row) {
      emitCopyRow(b, kDepth, operand,
                  {place[0], place[1], b.add(place[2], row)}, b.index(0),
                  b.index(features), scratch, row);
    });
  };
  if (!type.isLastDimUnitStride()) {
    copy();
    return scratch;
  }

  Value isShort =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, rows, b.index(kSide));
  b.when(isShort, copy);
  return selectRows(isShort, scratch, operand, place, rows);
}

Value Tiles::selectRows(Value isScratch, Value scratch, Value operand,
                        ValueRange place, Value rows) const {
  auto type = cast<MemRefType>(operand.getType());
  int64_t features = type.getDimSize(3);
  Builder attributes(b.getContext());
  auto getIndex = [&](int64_t value) -> OpFoldResult {
    return attributes.getIndexAttr(value);
  };
  SmallVector<OpFoldResult> offsets = {place[0], place[1], place[2],
                                       getIndex(0)},
                            sizes = {getIndex(1), getIndex(1), rows,
                                     getIndex(features)},
                            strides(4, getIndex(1));
  auto matrix = MemRefType::get(
      {ShapedType::kDynamic, features}, type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic,
                             {ShapedType::kDynamic, 1}));
  auto view = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, features}, type, offsets, sizes, strides));
  Value own =
      memref::SubViewOp::create(b, view, operand, offsets, sizes, strides);
  return arith::SelectOp::create(b, isScratch,
                                 b.fold<memref::CastOp>(matrix, scratch),
                                 b.fold<memref::CastOp>(matrix, own));
}

void Tiles::multiplyKeys(
    Value left, int64_t features,
    llvm::function_ref<Value(int64_t feature, int64_t v)> getRight,
    Value result, Value column, IndexRange keys) const {
  // The last tile of many ends with the block's last key, and computes results
  // of the tile before again. Of fewer keys than a tile has, rows beyond the
  // last are whatever the scratch holds: their results are not read.
  Value first = b.roundDown(keys.first, kSide);
  Value last = b.max(b.sub(block.keys, b.index(kSide)), b.index(0));
  b.loop(first, keys.end, kSide, [&](Value begin) {
    Value key = b.min(begin, last);
    SmallVector<Value> results;
    for (int64_t v = 0; v < block.groupVectors; ++v)
      results.push_back(amx::TileZeroOp::create(b, sums));
    for (int64_t feature = 0; feature < features; feature += kDepth) {
      Value rows = load(operand, left, {key, b.index(feature)});
      for (auto [v, sum] : llvm::enumerate(results))
        sum = multiply(rows, getRight(feature, v), sum);
    }
    for (auto [v, sum] : llvm::enumerate(results))
      store(sum, result, {key, b.add(column, v * kSide)});
  });
}

void Tiles::packPairs(Value operand, ValueRange place, IndexRange rows,
                      Value count, Pairing pairing, Value target) const {
  int64_t features = cast<MemRefType>(operand.getType()).getDimSize(3);
  bool isContiguous = isReadableAs(operand, narrow);
  auto vector = VectorType::get({kSide}, narrow);
  auto loadRow = [&](Value row, Value feature) -> Value {
    SmallVector<Value> from = {place[0], place[1], b.add(place[2], row),
                               feature};
    if (isContiguous)
      return b.loadVector(vector, operand, from);
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < kSide; ++lane) {
      from.back() = b.add(feature, lane);
      elements.push_back(b.load(operand, from));
    }
    return vector::FromElementsOp::create(b, vector, elements);
  };
  // Rows that are joined lie in units of their own.
  int64_t unit = pairing == Pairing::Neighbours ? 2 : kDepth;
  auto emitPairs = [&](Value first, Value end, int64_t vectors,
                       llvm::function_ref<Value(Value, Value)> getRow) {
    b.loop(first, end, unit, [&](Value begin) {
      b.loop(b.index(0), b.index(unit / 2), 1, [&](Value pair) {
        Value row = b.add(begin, pair);
        b.loop(
            b.index(0), b.index(features), vectors * kSide, [&](Value start) {
              for (int64_t v = 0; v < vectors; ++v) {
                Value feature = b.add(start, v * kSide);
                Value pairs = interleave(getRow(row, feature),
                                         getRow(b.add(row, unit / 2), feature));
                b.store(vector::BitCastOp::create(b, line, pairs), target,
                        {b.add(b.floorDiv(begin, 2), pair), b.mul(feature, 2)});
              }
            });
      });
    });
  };

  IndexRange whole = getWhole(rows);
  // The units of which all rows are wanted.
  IndexRange inner = {b.mul(b.ceilDiv(rows.first, unit), unit), Value()};
  inner.end = b.max(b.roundDown(rows.end, unit), inner.first);
  auto loadWanted = [&](Value row, Value feature) -> Value {
    Value isWanted = arith::AndIOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, row, rows.first),
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, rows.end));
    Value existing = b.min(b.max(row, rows.first), b.sub(count, b.index(1)));
    return arith::SelectOp::create(b, isWanted, loadRow(existing, feature),
                                   b.constant(vector, 0.0));
  };
  int64_t vectors = features / kSide;
  emitPairs(whole.first, b.min(inner.first, whole.end), 1, loadWanted);
  emitPairs(inner.first, inner.end,
            isContiguous && vectors <= kMaxVectors ? vectors : 1, loadRow);
  emitPairs(inner.end, whole.end, 1, loadWanted);
}

void Tiles::transpose(Value source, Value column, int64_t columns,
                      IndexRange keys, Value target, Value row) const {
  b.loop(keys.first, keys.end, kDepth, [&](Value key) {
    b.loop(b.index(0), b.index(columns), kSide, [&](Value part) {
      SmallVector<Value> pairs;
      for (int64_t pair = 0; pair < kSide; ++pair) {
        SmallVector<Value> rows;
        for (int64_t odd : {0, 1})
          rows.push_back(
              b.loadVector(block.vector, source,
                           {b.add(key, 2 * pair + odd), b.add(column, part)}));
        pairs.push_back(narrowPairs(rows[0], rows[1]));
      }
      Value first = b.add(row, part);
      for (auto [r, words] :
           llvm::enumerate(emitTranspose(b, std::move(pairs))))
        b.store(vector::BitCastOp::create(b, line, words), target,
                {b.add(first, r), key});
    });
  });
}

void Tiles::addProducts(Value left, Value row, Value right, IndexRange depth,
                        Value target, ValueRange place,
                        int64_t features) const {
  for (int64_t first = 0; first < features; first += kSums * kSide) {
    int64_t count = std::min(kSums, (features - first) / kSide);
    auto getPlace = [&](int64_t c) {
      SmallVector<Value> indices(place);
      indices.push_back(b.index(first + c * kSide));
      return indices;
    };
    SmallVector<Value> results;
    for (int64_t c = 0; c < count; ++c)
      results.push_back(load(sums, target, getPlace(c)));
    results = b.loop(depth.first, depth.end, kDepth, results,
                     [&](Value k, ValueRange carried) {
                       Value rows = load(operand, left, {row, k});
                       SmallVector<Value> next(carried);
                       for (auto [c, sum] : llvm::enumerate(next)) {
                         Value pairs =
                             load(operand, right,
                                  {b.floorDiv(k, 2),
                                   b.index(2 * (first + int64_t(c) * kSide))});
                         sum = multiply(rows, pairs, sum);
                       }
                       return next;
                     });
    for (auto [c, sum] : llvm::enumerate(results))
      store(sum, target, getPlace(c));
  }
}

//===----------------------------------------------------------------------===//
// The forward pass
//===----------------------------------------------------------------------===//

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

void fovea::attn::emitMatrixScoreProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  OnlineAttentionOp op = kernel.op;
  Tiles tiles(kernel, getElementTypeOrSelf(op.getKey().getType()));
  // A region has yet to change the scores: their maximum is taken after it.
  SmallVector<Value> inits;
  if (op.updatesMax() && op.getScore().empty())
    inits.assign(
        kernel.shape.groupVectors,
        b.constant(kernel.vector, -std::numeric_limits<double>::infinity()));
  // The softmax takes a positive factor: it keeps the order of scores.
  double number = getPackingFactor(op.getScaleAttr(), op.getScore());
  Value factor = b.constant(kernel.vector, number);
  kernel.factor = op.getScore().empty() && number > 0 ? factor : Value();
  kernel.forGroups([&](Value column, IndexRange keys) {
    auto getRight = [&](int64_t feature, int64_t v) {
      Value query = b.add(kernel.firstQuery, b.add(column, v * kSide));
      return tiles.load(
          tiles.operand, op.getQuery(),
          {kernel.batch, kernel.head, b.index(feature / 2), b.mul(query, 2)});
    };
    tiles.multiplyKeys(kernel.keyBlock,
                       cast<MemRefType>(op.getKey().getType()).getDimSize(3),
                       getRight, kernel.scores, column, keys);
    if (kernel.factor && inits.empty())
      return;
    SmallVector<Value> maxima = b.loop(
        keys.first, keys.end, 1, inits, [&](Value key, ValueRange carried) {
          SmallVector<Value> scores =
              kernel.loadGroup(kernel.scores, key, column);
          if (!kernel.factor) {
            for (Value &score : scores)
              score = arith::MulFOp::create(b, score, factor);
            kernel.storeGroup(scores, kernel.scores, key, column);
          }
          SmallVector<Value> next(carried);
          for (auto [maximum, score] : llvm::zip(next, scores))
            maximum = b.maxOrSecond(score, maximum);
          return next;
        });
    kernel.storeGroup(maxima, kernel.blockMax, Value(), column);
  });
}

/// Writes the weights of one group's queries, those of a query in a row.
static void emitWeightRows(OnlineKernel &kernel, const Tiles &tiles,
                           Value column) {
  KernelBuilder &b = kernel.b;
  IndexRange keys = tiles.getKept(column, kernel.groupQueries());
  IndexRange whole = tiles.getWhole(keys);
  SmallVector<Value> zeros(kernel.shape.groupVectors,
                           b.constant(kernel.vector, 0.0));
  for (auto [first, end] :
       {std::pair(whole.first, keys.first), std::pair(keys.end, whole.end)})
    b.loop(first, end, 1, [&](Value key) {
      kernel.storeGroup(zeros, kernel.scores, key, column);
    });
  tiles.transpose(kernel.scores, column, kernel.groupQueries(), whole,
                  kernel.weights, column);
}

/// Multiplies 16 queries of the accumulator, from `row` on, by their factors,
/// where one of these is not 1: the maxima of most blocks are not new.
static void emitRescaledRows(OnlineKernel &kernel, Value row) {
  KernelBuilder &b = kernel.b;
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

void fovea::attn::emitMatrixValueProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  Value acc = kernel.op.getAcc();
  Tiles tiles(kernel, getElementTypeOrSelf(kernel.op.getKey().getType()));
  kernel.forGroups([&](Value column, IndexRange) {
    emitWeightRows(kernel, tiles, column);
    Value end = b.min(b.add(column, kernel.groupQueries()), kernel.rows);
    b.loop(column, end, kSide, [&](Value row) {
      if (kernel.alpha)
        emitRescaledRows(kernel, row);
      IndexRange keys = tiles.getWhole(tiles.getKept(row, kSide));
      tiles.addProducts(
          kernel.weights, row, kernel.valueBlock, keys, acc,
          {kernel.batch, kernel.head, b.add(kernel.firstQuery, row)},
          cast<MemRefType>(acc.getType()).getDimSize(3));
    });
  });
}

void fovea::attn::emitMatrixBlock(OnlineKernel &kernel,
                                  llvm::function_ref<void()> emitGroup) {
  KernelBuilder &b = kernel.b;
  Value scratch = kernel.keyBlock;
  Tiles tiles(kernel, getElementTypeOrSelf(kernel.op.getKey().getType()));
  Value place[] = {kernel.batch, kernel.kvHead, kernel.firstKey};
  kernel.keyBlock =
      tiles.getRows(kernel.op.getKey(), place, kernel.keys, scratch);
  // Values that no query keeps become zeros.
  if (kernel.op.updatesAcc())
    tiles.packPairs(kernel.op.getValue(), place,
                    tiles.getKept(b.index(0), kernel.shape.queries),
                    kernel.keys, Tiles::Pairing::Neighbours, kernel.valueBlock);

  kernel.forGroupTiles([&](Value, Value first) {
    kernel.firstQuery = first;
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
}
