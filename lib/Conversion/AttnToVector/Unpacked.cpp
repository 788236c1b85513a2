//===- Unpacked.cpp - Packs the operands of attn.online_attention ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

using namespace mlir;
using namespace fovea::attn;

/// Returns rows `row ... row + count` of one head of `memref: [B, H, rows,
/// ...]`.
static Value getRows(KernelBuilder &b, Value memref, ValueRange head, Value row,
                     Value count) {
  int64_t rank = cast<MemRefType>(memref.getType()).getRank();
  SmallVector<OpFoldResult> offsets = {head[0], head[1], row};
  SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1), b.getIndexAttr(1),
                                     count};
  SmallVector<OpFoldResult> strides(rank, b.getIndexAttr(1));
  if (rank == 4) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(getAsOpFoldResult(b.dim(memref, 3)));
  }
  return memref::SubViewOp::create(b, memref, offsets, sizes, strides);
}

/// Copies all elements of `[1, 1, rows, ...]`.
static void emitCopy(KernelBuilder &b, Value from, Value to, Value rows) {
  auto type = cast<MemRefType>(from.getType());
  Value zero = b.index(0);
  b.loop(zero, rows, 1, [&](Value row) {
    if (type.getRank() == 3) {
      b.store(b.load(from, {zero, zero, row}), to, {zero, zero, row});
      return;
    }
    b.loop(zero, b.dim(from, 3), 1, [&](Value feature) {
      b.store(b.load(from, {zero, zero, row, feature}), to,
              {zero, zero, row, feature});
    });
  });
}

OnlineAttentionOp fovea::attn::packOperands(KernelBuilder &b,
                                            OnlineAttentionOp op,
                                            int64_t queries) {
  Type type = op.getAccumulationType();
  Value zero = b.index(0);
  auto scratch = [&](ArrayRef<int64_t> shape, Value dynamicSize) {
    SmallVector<Value> sizes;
    if (llvm::is_contained(shape, ShapedType::kDynamic))
      sizes.push_back(dynamicSize);
    return allocateScratch(b, op, shape, type, sizes);
  };
  auto dimOf = [](Value memref, int64_t dim) {
    return cast<MemRefType>(memref.getType()).getDimSize(dim);
  };
  Value features = b.dim(op.getQuery(), 3);
  Value valueFeatures = b.dim(op.getAcc(), 3);
  Value packed = scratch({1, 1, dimOf(op.getQuery(), 3), queries}, features);
  Value acc = scratch({1, 1, queries, dimOf(op.getAcc(), 3)}, valueFeatures);
  Value max = scratch({1, 1, queries}, Value());
  Value sum = scratch({1, 1, queries}, Value());

  SmallVector<Value, 4> at(op.getAt());
  if (at.empty())
    at.assign(4, zero);
  SmallVector<Value> whole(op.getWhole());
  Value heads = b.dim(op.getQuery(), 1), total = b.dim(op.getQuery(), 2);
  if (whole.empty())
    whole = {heads, total};
  double factor = getPackingFactor(op.getScaleAttr(), op.getScore());
  Value headsPerKVHead = getValueOrCreateConstantIndexOp(
      b, b.getLoc(),
      getHeadsPerKVHead(b, b.getLoc(), heads, b.dim(op.getKey(), 1)));

  OnlineAttentionOp inner;
  b.loop(zero, b.dim(op.getQuery(), 0), 1, [&](Value batch) {
    b.loop(zero, heads, 1, [&](Value head) {
      b.loop(zero, total, queries, [&](Value row) {
        Value rows = b.min(b.index(queries), b.sub(total, row));
        SmallVector<Value> place = {batch, head};
        SmallVector<Value> kvPlace = {
            batch, b.fold<arith::DivUIOp>(head, headsPerKVHead)};
        PackQueryOp::create(b, TypeRange(),
                            getRows(b, op.getQuery(), place, row, rows), packed,
                            b.getF64FloatAttr(factor));
        Value outer[] = {getRows(b, op.getAcc(), place, row, rows),
                         getRows(b, op.getMax(), place, row, rows),
                         getRows(b, op.getSum(), place, row, rows)};
        Value local[] = {acc, max, sum};
        for (auto [from, to] : llvm::zip(outer, local))
          emitCopy(b, from, to, rows);
        IRMapping mapping;
        inner = cast<OnlineAttentionOp>(b.clone(*op, mapping));
        inner.getQueryMutable().assign(packed);
        inner.getKeyMutable().assign(
            getRows(b, op.getKey(), kvPlace, zero, b.dim(op.getKey(), 2)));
        inner.getValueMutable().assign(
            getRows(b, op.getValue(), kvPlace, zero, b.dim(op.getValue(), 2)));
        inner.getAccMutable().assign(acc);
        inner.getMaxMutable().assign(max);
        inner.getSumMutable().assign(sum);
        inner.getAtMutable().assign({b.add(at[0], batch), b.add(at[1], head),
                                     b.add(at[2], row), at[3]});
        inner.getWholeMutable().assign(whole);
        inner.getRowsMutable().assign(rows);
        // The views above were built behind the clone, which must follow them.
        inner->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
        for (auto [from, to] : llvm::zip(local, outer))
          emitCopy(b, from, to, rows);
      });
    });
  });
  op.erase();
  return inner;
}
