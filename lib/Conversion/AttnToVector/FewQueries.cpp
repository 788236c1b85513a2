//===- FewQueries.cpp - Scores of a few queries ---------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A few queries, as in decoding, leave most lanes of their vector empty. Their
// products with keys have features in lanes instead: each vector of a key is
// read once, converted in a register, and multiplied with that of each query.
// The lanes of as many sums as a vector has are added up together: their scores
// are lanes of one vector, which the softmax takes as it is where no region
// wants them apart.
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

#include "fovea/Analysis/ScheduleModel.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace fovea::attn;

int64_t fovea::attn::getFewQueries(OnlineAttentionOp op, int64_t lanes) {
  std::optional<int64_t> rows = getConstantIntValue(op.getRows());
  auto key = cast<MemRefType>(op.getKey().getType());
  int64_t features = key.getDimSize(3);
  bool isFew = rows && *rows >= 1 && hasFewQueries(*rows, lanes) &&
               cast<MemRefType>(op.getAcc().getType()).getDimSize(2) == lanes;
  if (!isFew || op.hasQueryPairs() || ShapedType::isDynamic(features) ||
      features % lanes != 0 || !key.isLastDimUnitStride())
    return 0;
  return *rows;
}

LineReader::LineReader(KernelBuilder &b, const OperandRows &operand,
                       VectorType vector)
    : b(b), operand(operand), vector(vector) {
  constexpr int64_t kLineBytes = 64, kBytesAhead = 16384;
  auto type = cast<MemRefType>(operand.memory.getType());
  int64_t features = type.getDimSize(3), lanes = vector.getNumElements(),
          bytes = std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1);
  vectors = std::max<int64_t>(kLineBytes / (lanes * bytes), 1);
  if (ShapedType::isDynamic(features) || features % (vectors * lanes) != 0)
    vectors = 1;
  isSplit = vectors == 2 && type.isLastDimUnitStride() &&
            type.getElementType().isBF16() && vector.getElementType().isF32();
  rowsAhead = ShapedType::isDynamic(features)
                  ? 0
                  : llvm::divideCeil(kBytesAhead, features * bytes);
}

LineReader::Row LineReader::find(Value batch, Value head, Value key) {
  auto getPlace = [&](Value row) -> SmallVector<Value> {
    if (operand.rows)
      row = b.load(operand.rows, row);
    return {batch, head, row, Value()};
  };
  Row row = {getPlace(key), {}};
  if (!rowsAhead)
    return row;
  Value ahead = b.add(key, rowsAhead);
  if (operand.rows)
    ahead = b.min(ahead, b.sub(b.dim(operand.rows, 0), b.index(1)));
  row.ahead = getPlace(ahead);
  return row;
}

SmallVector<Value> LineReader::load(const Row &row, Value feature) {
  SmallVector<Value> place = row.place;
  place.back() = feature;
  if (!row.ahead.empty()) {
    // Rows of a head that are far apart fill few sets of the nearest cache:
    // they wait in the next one.
    SmallVector<Value> ahead = row.ahead;
    ahead.back() = feature;
    memref::PrefetchOp::create(b, operand.memory, ahead, /*isWrite=*/false,
                               /*localityHint=*/2, /*isDataCache=*/true);
  }
  Type element = getElementTypeOrSelf(operand.memory.getType());
  int64_t lanes = vector.getNumElements();
  if (!isSplit) {
    SmallVector<Value> parts;
    for (int64_t v = 0; v < vectors; ++v) {
      place.back() = b.add(feature, v * lanes);
      parts.push_back(
          b.convert(b.loadVector(vector.clone(element), operand.memory, place),
                    vector.getElementType()));
    }
    return parts;
  }
  auto words = vector.clone(b.getI32Type());
  Value pairs = vector::BitCastOp::create(
      b, words,
      b.loadVector(VectorType::get({2 * lanes}, element), operand.memory,
                   place));
  Value even = arith::ShLIOp::create(b, pairs, b.constantInt(words, 16)),
        odd = arith::AndIOp::create(b, pairs, b.constantInt(words, -0x10000));
  return {arith::BitcastOp::create(b, vector, even),
          arith::BitcastOp::create(b, vector, odd)};
}

void fovea::attn::emitQueryRows(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  Value query = kernel.op.getQuery();
  int64_t lanes = kernel.shape.lanes;
  auto copy = [&](Value feature, Value target) {
    for (int64_t row = 0; row < kernel.shape.fewQueries; ++row) {
      Value place = b.index(row);
      Value element =
          b.load(query, {kernel.batch, kernel.head, feature, place});
      b.store(element, kernel.queryRows, {place, target});
    }
  };
  Value features = b.dim(query, 2), zero = b.index(0);
  if (!LineReader(b, kernel.key, kernel.vector).isSplit) {
    b.loop(zero, features, 1, [&](Value feature) { copy(feature, feature); });
    return;
  }
  b.loop(zero, features, 2 * lanes, [&](Value line) {
    b.loop(zero, b.index(lanes), 1, [&](Value lane) {
      for (int64_t odd : {0, 1})
        copy(b.add(b.add(line, b.mul(lane, 2)), odd),
             b.add(b.add(line, lane), odd * lanes));
    });
  });
}

/// Returns the sums of the lanes of as many vectors as a vector has lanes, one
/// in each lane of the result, in order.
static Value emitLaneSums(KernelBuilder &b, VectorType type,
                          SmallVector<Value> vectors) {
  int64_t lanes = type.getNumElements();
  // A step puts parts of two vectors into one. In the first, lanes 2 k and
  // 2 k + 1 are those of one sum each; then four lanes are of two sums, ...
  for (int64_t width = 1; width < lanes; width *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool isSecond = lane & width;
      int64_t from = (lane & ~width) + (isSecond ? lanes : 0);
      low.push_back(from);
      high.push_back(from + width);
    }
    SmallVector<Value> next;
    for (size_t i = 0; i < vectors.size(); i += 2)
      next.push_back(arith::AddFOp::create(
          b, vector::ShuffleOp::create(b, vectors[i], vectors[i + 1], low),
          vector::ShuffleOp::create(b, vectors[i], vectors[i + 1], high)));
    vectors = std::move(next);
  }
  return vectors.front();
}

/// Returns the products of few queries and of the tile's keys, in lanes `key *
/// fewStride + query`.
static Value emitFewProducts(OnlineKernel &kernel, Value tile) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  LineReader reader(b, kernel.key, kernel.vector);
  // Keys beyond the block's last repeat it.
  Value lastKey = b.sub(kernel.keys, b.index(1));
  SmallVector<LineReader::Row> rows;
  for (int64_t key = 0; key < shape.tileKeys; ++key)
    rows.push_back(
        reader.find(kernel.batch, kernel.kvHead,
                    b.add(kernel.firstKey, b.min(b.add(tile, key), lastKey))));

  SmallVector<Value> zeros(shape.tileKeys * shape.fewQueries,
                           b.constant(kernel.vector, 0.0));
  SmallVector<Value> sums = b.loop(
      b.index(0), b.dim(kernel.key.memory, 3), reader.vectors * shape.lanes,
      zeros, [&](Value feature, ValueRange carried) {
        SmallVector<Value> queries, next(carried);
        for (int64_t row = 0; row < shape.fewQueries; ++row)
          for (int64_t v = 0; v < reader.vectors; ++v)
            queries.push_back(
                b.loadVector(kernel.vector, kernel.queryRows,
                             {b.index(row), b.add(feature, v * shape.lanes)}));
        for (auto [number, key] : llvm::enumerate(rows)) {
          SmallVector<Value> parts = reader.load(key, feature);
          for (int64_t row = 0; row < shape.fewQueries; ++row) {
            Value &sum = next[number * shape.fewQueries + row];
            for (auto [v, part] : llvm::enumerate(parts))
              sum = vector::FMAOp::create(
                  b, part, queries[row * reader.vectors + v], sum);
          }
        }
        return next;
      });

  SmallVector<Value> lanes(shape.lanes, b.constant(kernel.vector, 0.0));
  for (int64_t key = 0; key < shape.tileKeys; ++key)
    for (int64_t row = 0; row < shape.fewQueries; ++row)
      lanes[key * shape.fewStride() + row] = sums[key * shape.fewQueries + row];
  return emitLaneSums(b, kernel.vector, std::move(lanes));
}

SmallVector<Value> fovea::attn::emitFewScores(OnlineKernel &kernel,
                                              Value tile) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  Value all = emitFewProducts(kernel, tile);
  SmallVector<Value> scores;
  for (int64_t key = 0; key < shape.tileKeys; ++key) {
    // Rows beyond the last repeat it.
    SmallVector<int64_t> from;
    for (int64_t lane = 0; lane < shape.lanes; ++lane)
      from.push_back(key * shape.fewStride() +
                     std::min(lane, shape.fewQueries - 1));
    scores.push_back(vector::ShuffleOp::create(b, all, all, from));
  }
  return scores;
}

//===----------------------------------------------------------------------===//
// Keys in lanes
//===----------------------------------------------------------------------===//

bool fovea::attn::hasFlatScores(OnlineAttentionOp op, const TileShape &shape) {
  return shape.fewQueries && op.getScore().empty() && op.getMask().empty() &&
         !op.getDropout();
}

/// Combines the lanes of each query in `vector`, and returns the results in the
/// lanes of queries; those beyond the last repeat it.
static Value emitFewResults(OnlineKernel &kernel, Value vector,
                            llvm::function_ref<Value(Value, Value)> combine) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  SmallVector<int64_t> from(shape.lanes);
  for (int64_t keys = shape.tileKeys / 2; keys > 0; keys /= 2) {
    for (auto [lane, place] : llvm::enumerate(from))
      place = (int64_t(lane) + keys * shape.fewStride()) % shape.lanes;
    vector =
        combine(vector, vector::ShuffleOp::create(b, vector, vector, from));
  }
  for (auto [lane, place] : llvm::enumerate(from))
    place = std::min(int64_t(lane), shape.fewQueries - 1);
  return vector::ShuffleOp::create(b, vector, vector, from);
}

void fovea::attn::emitFlatScores(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  emitQueryRows(kernel);
  Value lowest =
      b.constant(kernel.vector, -std::numeric_limits<double>::infinity());
  // Lanes without a query, and those of keys beyond the block's last, have no
  // weight.
  auto isLane = VectorType::get({shape.lanes}, b.getI1Type());
  SmallVector<bool> isQuery;
  for (int64_t lane = 0; lane < shape.lanes; ++lane)
    isQuery.push_back(lane % shape.fewStride() < shape.fewQueries);
  Value isUsed = arith::ConstantOp::create(
      b, DenseElementsAttr::get(isLane, ArrayRef<bool>(isQuery)));
  SmallVector<Value> inits;
  if (kernel.op.updatesMax())
    inits.push_back(lowest);
  SmallVector<Value> maxima =
      b.loop(b.index(0), kernel.keys, shape.tileKeys, inits,
             [&](Value tile, ValueRange carried) {
               Value count = b.mul(b.sub(kernel.keys, tile), shape.fewStride());
               Value exists = vector::CreateMaskOp::create(
                   b, isLane, ValueRange{b.min(count, b.index(shape.lanes))});
               exists = arith::AndIOp::create(b, exists, isUsed);
               Value products = emitFewProducts(kernel, tile);
               Value scores =
                   arith::SelectOp::create(b, exists, products, lowest);
               b.store(scores, kernel.scores,
                       {b.index(0), b.mul(tile, shape.fewStride())});
               SmallVector<Value> next;
               for (Value maximum : carried)
                 next.push_back(b.maxOrSecond(scores, maximum));
               return next;
             });
  for (Value maximum : maxima)
    b.store(
        emitFewResults(kernel, maximum,
                       [&](Value x, Value y) { return b.maxOrSecond(x, y); }),
        kernel.blockMax, b.index(0));
}

void fovea::attn::emitFlatSoftmax(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  Value zero = b.index(0);
  GroupSoftmax softmax(kernel, zero);
  if (!softmax.needsWeights())
    return;
  SmallVector<int64_t> from;
  for (int64_t lane = 0; lane < shape.lanes; ++lane)
    from.push_back(lane % shape.fewStride());
  Value shift = vector::ShuffleOp::create(b, softmax.getShift(0),
                                          softmax.getShift(0), from);
  Value sums = b.loop(
      zero, kernel.keys, shape.tileKeys, b.constant(kernel.vector, 0.0),
      [&](Value tile, ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> place = {zero, b.mul(tile, shape.fewStride())};
        Value weights = softmax.emitWeights(
            b.loadVector(kernel.vector, kernel.scores, place), shift);
        if (kernel.op.updatesAcc())
          b.store(weights, kernel.scores, place);
        return {arith::AddFOp::create(b, carried[0], weights)};
      })[0];
  if (!kernel.op.updatesSum())
    return;
  Value added = emitFewResults(kernel, sums, [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(b, x, y);
  });
  softmax.storeSums(
      arith::AddFOp::create(b, softmax.getSums()[0], added).getResult());
}
