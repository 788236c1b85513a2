//===- ValueProduct.cpp - Adds a block's values to the accumulator --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

using namespace mlir;
using namespace fovea::attn;

namespace {

/// `vectors` vectors of features from `column` on; `mask`, if there is one,
/// says which lanes of the last one exist.
struct Columns {
  Value column;
  int64_t vectors;
  Value mask;
};

} // namespace

/// The value tile: `tileRows` queries times the vectors of `columns`, summed
/// over the block's keys.
static void emitTile(OnlineKernel &kernel, const Columns &columns, Value row) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  Value zero = b.constant(kernel.vector, 0.0);
  auto isMasked = [&](int64_t v) {
    return columns.mask && v == columns.vectors - 1;
  };
  auto columnOf = [&](int64_t v) {
    return b.add(columns.column, v * shape.lanes);
  };
  auto load = [&](Value memref, ValueRange indices, bool masked) -> Value {
    if (!masked)
      return b.loadVector(kernel.vector, memref, indices);
    return vector::MaskedLoadOp::create(b, kernel.vector, memref, indices,
                                        columns.mask, zero);
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
      Value old = load(acc, accIndices(r, v), isMasked(v));
      sums.push_back(alpha ? arith::MulFOp::create(b, old, alpha) : old);
    }
  }

  OnlineKernel::Keys keys = kernel.getKeys(row, shape.tileRows);
  sums =
      b.loop(keys.first, keys.end, 1, sums, [&](Value key, ValueRange carried) {
        SmallVector<Value> values;
        for (int64_t v = 0; v < columns.vectors; ++v) {
          if (kernel.valueBlock)
            values.push_back(b.loadVector(kernel.vector, kernel.valueBlock,
                                          {key, b.index(v * shape.lanes)}));
          else
            values.push_back(load(kernel.op.getValue(),
                                  {kernel.batch, kernel.kvHead,
                                   b.add(kernel.firstKey, key), columnOf(v)},
                                  isMasked(v)));
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
    for (int64_t v = 0; v < columns.vectors; ++v) {
      Value sum = sums[r * columns.vectors + v];
      if (isMasked(v))
        vector::MaskedStoreOp::create(b, acc, accIndices(r, v), columns.mask,
                                      sum);
      else
        b.store(sum, acc, accIndices(r, v));
    }
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
  // do not exist, never beyond the tile.
  b.loop(b.index(0), kernel.rows, shape.tileRows,
         [&](Value row) { emitTile(kernel, columns, row); });
}

void fovea::attn::emitValueProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  Value features = b.dim(kernel.op.getValue(), 3);
  int64_t width = shape.valueVectors * shape.lanes;
  Value whole = b.roundDown(features, width);
  b.loop(b.index(0), whole, width, [&](Value column) {
    emitColumns(kernel, {column, shape.valueVectors, Value()});
  });

  auto maskType = VectorType::get({shape.lanes}, b.getI1Type());
  auto type = cast<MemRefType>(kernel.op.getValue().getType());
  if (type.isDynamicDim(3)) {
    b.loop(whole, features, shape.lanes, [&](Value column) {
      Value mask = vector::CreateMaskOp::create(
          b, maskType, ValueRange{b.sub(features, column)});
      emitColumns(kernel, {column, 1, mask});
    });
    return;
  }
  int64_t rest = type.getDimSize(3) % width;
  if (rest == 0)
    return;
  Value mask;
  if (int64_t odd = rest % shape.lanes)
    mask = vector::ConstantMaskOp::create(b, maskType, ArrayRef<int64_t>{odd});
  emitColumns(kernel, {whole, (rest + shape.lanes - 1) / shape.lanes, mask});
}
