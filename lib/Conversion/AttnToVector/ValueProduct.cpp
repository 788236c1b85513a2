//===- ValueProduct.cpp - Adding a block's values to the accumulator ------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

using namespace mlir;
using namespace fovea::attn;

/// Emits the value tile: `tileRows` queries times the vectors of `columns`,
/// summed over the block's keys.
static void emitTile(OnlineKernel &kernel, const Columns &columns, Value row) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  auto columnOf = [&](int64_t v) {
    return b.add(columns.column, v * shape.lanes);
  };
  auto accIndices = [&](int64_t r, int64_t v) {
    return SmallVector<Value>{kernel.batch, kernel.head, b.add(row, r),
                              columnOf(v)};
  };

  // Sums of split lines are those of even and of odd features.
  Value acc = kernel.op.getAcc();
  LineReader reader(b, kernel.value, kernel.vector);
  bool hasLines = shape.fewQueries && !kernel.valueBlock && !columns.mask &&
                  columns.vectors % reader.vectors == 0;
  SmallVector<int64_t> even, odd, low, high;
  for (int64_t lane = 0; lane < shape.lanes; ++lane) {
    even.push_back(2 * lane);
    odd.push_back(2 * lane + 1);
    low.push_back(lane / 2 + (lane % 2) * shape.lanes);
    high.push_back(low.back() + shape.lanes / 2);
  }
  auto shufflePairs = [&](MutableArrayRef<Value> vectors,
                          ArrayRef<int64_t> first, ArrayRef<int64_t> second) {
    for (size_t v = 0; v + 1 < vectors.size(); v += 2) {
      Value x = vectors[v], y = vectors[v + 1];
      vectors[v] = vector::ShuffleOp::create(b, x, y, first);
      vectors[v + 1] = vector::ShuffleOp::create(b, x, y, second);
    }
  };
  SmallVector<Value> sums;
  for (int64_t r = 0; r < shape.tileRows; ++r) {
    Value alpha;
    if (kernel.alpha)
      alpha = b.splat(kernel.vector, b.load(kernel.alpha, b.add(row, r)));
    for (int64_t v = 0; v < columns.vectors; ++v) {
      Value old = loadColumns(b, kernel.vector, acc, accIndices(r, v),
                              columns.maskOf(v));
      sums.push_back(alpha ? arith::MulFOp::create(b, old, alpha) : old);
    }
  }

  if (hasLines && reader.isSplit)
    shufflePairs(sums, even, odd);

  Type type = kernel.vector.getElementType();
  VectorType loaded =
      kernel.vector.clone(getElementTypeOrSelf(kernel.op.getValue().getType()));
  IndexRange keys = kernel.getKeys(row, shape.tileRows);
  sums =
      b.loop(keys.first, keys.end, 1, sums, [&](Value key, ValueRange carried) {
        SmallVector<Value> values;
        LineReader::Row value;
        if (!kernel.valueBlock)
          value = reader.find(kernel.batch, kernel.kvHead,
                              b.add(kernel.firstKey, key));
        auto load = [&](int64_t v) -> SmallVector<Value> {
          if (kernel.valueBlock)
            return {b.loadVector(kernel.vector, kernel.valueBlock,
                                 {key, b.index(v * shape.lanes)})};
          if (hasLines)
            return reader.load(value, columnOf(v));
          value.place.back() = columnOf(v);
          return {b.convert(loadColumns(b, loaded, kernel.value.memory,
                                        value.place, columns.maskOf(v)),
                            type)};
        };
        for (int64_t v = 0; v < columns.vectors;
             v += hasLines ? reader.vectors : 1)
          values.append(load(v));
        SmallVector<Value> next;
        for (int64_t r = 0; r < shape.tileRows; ++r) {
          Value query = b.add(row, r);
          SmallVector<Value> score = {key, query};
          if (kernel.hasFlatScores)
            score = {b.index(0), b.add(b.mul(key, shape.fewStride()), query)};
          Value weight = b.splat(kernel.vector, b.load(kernel.scores, score));
          for (int64_t v = 0; v < columns.vectors; ++v)
            next.push_back(vector::FMAOp::create(
                b, weight, values[v], carried[r * columns.vectors + v]));
        }
        return next;
      });

  if (hasLines && reader.isSplit)
    shufflePairs(sums, low, high);
  for (int64_t r = 0; r < shape.tileRows; ++r)
    for (int64_t v = 0; v < columns.vectors; ++v)
      storeColumns(b, sums[r * columns.vectors + v], acc, accIndices(r, v),
                   columns.maskOf(v));
}

static void emitColumns(OnlineKernel &kernel, const Columns &columns) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  if (kernel.valueBlock) {
    Value count = b.index(columns.vectors * shape.lanes);
    if (columns.mask)
      count =
          b.min(count, b.sub(b.dim(kernel.op.getValue(), 3), columns.column));
    b.loop(b.index(0), kernel.keys, 1, [&](Value key) {
      emitCopyRow(b, shape.lanes, kernel.op.getValue(),
                  {kernel.batch, kernel.kvHead, b.add(kernel.firstKey, key)},
                  columns.column, count, kernel.valueBlock, key);
    });
  }
  // `tileRows` divides the tile's queries: the last tile may compute rows that
  // do not exist, but none beyond the tile.
  b.loop(b.index(0), kernel.rows, shape.tileRows,
         [&](Value row) { emitTile(kernel, columns, row); });
}

void fovea::attn::emitValueProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  forColumns(b, shape.lanes, b.dim(kernel.op.getValue(), 3), shape.valueVectors,
             [&](const Columns &columns) { emitColumns(kernel, columns); });
}
