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
// The lanes of as many sums as a vector has are added up together.
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea::attn;

int64_t fovea::attn::getFewQueries(OnlineAttentionOp op, int64_t lanes) {
  std::optional<int64_t> rows = getConstantIntValue(op.getRows());
  auto key = cast<MemRefType>(op.getKey().getType());
  int64_t features = key.getDimSize(3);
  bool isFew = rows && *rows >= 1 && 2 * *rows <= lanes &&
               cast<MemRefType>(op.getAcc().getType()).getDimSize(2) == lanes;
  if (!isFew || op.hasQueryPairs() || ShapedType::isDynamic(features) ||
      features % lanes != 0 || !key.isLastDimUnitStride())
    return 0;
  return *rows;
}

void fovea::attn::emitQueryRows(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  Value query = kernel.op.getQuery();
  b.loop(b.index(0), b.dim(query, 2), 1, [&](Value feature) {
    for (int64_t row = 0; row < kernel.shape.fewQueries; ++row) {
      Value place = b.index(row);
      Value element =
          b.load(query, {kernel.batch, kernel.head, feature, place});
      b.store(element, kernel.queryRows, {place, feature});
    }
  });
}

/// Returns the sums of the lanes of up to as many vectors as a vector has
/// lanes, one in each lane of the result, in order.
static Value emitLaneSums(KernelBuilder &b, VectorType type,
                          SmallVector<Value> vectors) {
  int64_t lanes = type.getNumElements();
  vectors.resize(lanes, b.constant(type, 0.0));
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

SmallVector<Value> fovea::attn::emitFewScores(OnlineKernel &kernel,
                                              Value tile) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  Value keys = kernel.op.getKey();
  auto loaded = VectorType::get(
      {shape.lanes}, cast<MemRefType>(keys.getType()).getElementType());
  Type type = kernel.vector.getElementType();
  // Keys beyond the block's last repeat it.
  Value lastKey = b.sub(kernel.keys, b.index(1));
  SmallVector<Value> places;
  for (int64_t key = 0; key < shape.tileKeys; ++key)
    places.push_back(b.add(kernel.firstKey, b.min(b.add(tile, key), lastKey)));

  SmallVector<Value> zeros(shape.tileKeys * shape.fewQueries,
                           b.constant(kernel.vector, 0.0));
  SmallVector<Value> sums = b.loop(
      b.index(0), b.dim(keys, 3), shape.lanes, zeros,
      [&](Value feature, ValueRange carried) {
        SmallVector<Value> queries, next(carried);
        for (int64_t row = 0; row < shape.fewQueries; ++row)
          queries.push_back(b.loadVector(kernel.vector, kernel.queryRows,
                                         {b.index(row), feature}));
        for (auto [number, place] : llvm::enumerate(places)) {
          Value key = b.convert(
              b.loadVector(loaded, keys,
                           {kernel.batch, kernel.kvHead, place, feature}),
              type);
          for (auto [row, query] : llvm::enumerate(queries)) {
            Value &sum = next[number * shape.fewQueries + row];
            sum = vector::FMAOp::create(b, key, query, sum);
          }
        }
        return next;
      });

  Value all = emitLaneSums(b, kernel.vector, sums);
  SmallVector<Value> scores;
  for (int64_t key = 0; key < shape.tileKeys; ++key) {
    // Rows beyond the last repeat it.
    SmallVector<int64_t> from;
    for (int64_t lane = 0; lane < shape.lanes; ++lane)
      from.push_back(key * shape.fewQueries +
                     std::min(lane, shape.fewQueries - 1));
    scores.push_back(vector::ShuffleOp::create(b, all, all, from));
  }
  return scores;
}
