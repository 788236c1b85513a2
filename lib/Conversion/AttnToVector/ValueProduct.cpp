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

  Value acc = kernel.op.getAcc();
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

  Type type = kernel.vector.getElementType();
  VectorType loaded =
      kernel.vector.clone(getElementTypeOrSelf(kernel.op.getValue().getType()));
  IndexRange keys = kernel.getKeys(row, shape.tileRows);
  sums =
      b.loop(keys.first, keys.end, 1, sums, [&](Value key, ValueRange carried) {
        SmallVector<Value> values;
        for (int64_t v = 0; v < columns.vectors; ++v) {
          if (kernel.valueBlock)
            values.push_back(b.loadVector(kernel.vector, kernel.valueBlock,
                                          {key, b.index(v * shape.lanes)}));
          else
            values.push_back(b.convert(
                loadColumns(b, loaded, kernel.op.getValue(),
                            {kernel.batch, kernel.kvHead,
                             b.add(kernel.firstKey, key), columnOf(v)},
                            columns.maskOf(v)),
                type));
        }
        SmallVector<Value> next;
        for (int64_t r = 0; r < shape.tileRows; ++r) {
          Value weight = b.splat(kernel.vector,
                                 b.load(kernel.scores, {key, b.add(row, r)}));
          for (int64_t v = 0; v < columns.vectors; ++v)
            next.push_back(vector::FMAOp::create(
                b, weight, values[v], carried[r * columns.vectors + v]));
        }
        return next;
      });

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
