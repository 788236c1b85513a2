//===- PackQuery.cpp - attn.pack_query as loops over vectors --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatrixTiles.h"

using namespace mlir;
using namespace fovea::attn;

/// Blocks of 1, 2, 4, ... lanes change places across the diagonal.
SmallVector<Value> fovea::attn::emitTranspose(KernelBuilder &b,
                                              SmallVector<Value> rows) {
  int64_t size = rows.size();
  for (int64_t block = 1; block < size; block *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < size; ++lane) {
      bool isHigh = lane & block;
      low.push_back(isHigh ? size + lane - block : lane);
      high.push_back(isHigh ? size + lane : lane + block);
    }
    for (int64_t row = 0; row < size; ++row) {
      if (row & block)
        continue;
      Value first = rows[row], second = rows[row + block];
      rows[row] = vector::ShuffleOp::create(b, first, second, low);
      rows[row + block] = vector::ShuffleOp::create(b, first, second, high);
    }
  }
  return rows;
}

/// Packs queries `first ...` of one head, one for each lane.
static void emitLanes(KernelBuilder &b, PackQueryOp op, int64_t lanes,
                      Value batch, Value head, Value first) {
  auto queryType = cast<MemRefType>(op.getQuery().getType());
  Type type = getElementTypeOrSelf(op.getPacked().getType());
  double factor = op.getFactor().convertToDouble();
  Value features = b.dim(op.getQuery(), 3);
  Value lastRow = b.sub(b.dim(op.getQuery(), 2), b.index(1));
  auto rowOf = [&](Value lane) { return b.min(b.add(first, lane), lastRow); };

  Value done = b.index(0);
  if (queryType.isLastDimUnitStride() && lanes > 1) {
    done = b.roundDown(features, lanes);
    auto loaded = VectorType::get({lanes}, queryType.getElementType());
    Value scale = b.constant(VectorType::get({lanes}, type), factor);
    SmallVector<Value> rows;
    for (int64_t lane = 0; lane < lanes; ++lane)
      rows.push_back(rowOf(b.index(lane)));
    b.loop(b.index(0), done, lanes, [&](Value feature) {
      SmallVector<Value> square;
      for (Value row : rows)
        square.push_back(b.convert(
            b.loadVector(loaded, op.getQuery(), {batch, head, row, feature}),
            type));
      for (auto [f, column] :
           llvm::enumerate(emitTranspose(b, std::move(square))))
        b.store(arith::MulFOp::create(b, column, scale), op.getPacked(),
                {batch, head, b.add(feature, f), first});
    });
  }
  b.loop(done, features, 1, [&](Value feature) {
    b.loop(b.index(0), b.index(lanes), 1, [&](Value lane) {
      Value value = b.convert(
          b.load(op.getQuery(), {batch, head, rowOf(lane), feature}), type);
      b.store(arith::MulFOp::create(b, value, b.constant(type, factor)),
              op.getPacked(), {batch, head, feature, b.add(first, lane)});
    });
  });
}

/// Packs pairs of features of queries `first ... first + 15` of one head: a
/// transpose of 32-bit elements.
static void emitPairs(KernelBuilder &b, PackQueryOp op, Value batch, Value head,
                      Value first) {
  constexpr int64_t kLanes = 16;
  Type type = getElementTypeOrSelf(op.getPacked().getType());
  Type source = getElementTypeOrSelf(op.getQuery().getType());
  Value features = b.dim(op.getQuery(), 3);
  Value lastRow = b.sub(b.dim(op.getQuery(), 2), b.index(1));
  auto rowOf = [&](Value lane) { return b.min(b.add(first, lane), lastRow); };
  Value column = b.mul(first, 2);
  auto line = VectorType::get({2 * kLanes}, type),
       pairs = VectorType::get({kLanes}, b.getI32Type());
  SmallVector<Value> rows;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    rows.push_back(rowOf(b.index(lane)));
  if (source != type) {
    int64_t parts = countPairParts(source);
    Value partPairs = b.floorDiv(b.dim(op.getPacked(), 2), parts);
    b.loop(b.index(0), features, 2 * kLanes, [&](Value feature) {
      SmallVector<SmallVector<Value>> squares(parts);
      for (Value row : rows) {
        auto load = [&](Value first) {
          return emitLoadNumbers(b, op.getQuery(), {batch, head, row, first});
        };
        for (auto [square, part] : llvm::zip(
                 squares, emitPairParts(b, load(feature),
                                        load(b.add(feature, kLanes)), parts)))
          square.push_back(part);
      }
      for (auto [part, square] : llvm::enumerate(squares)) {
        Value pair = b.add(b.floorDiv(feature, 2), b.mul(partPairs, part));
        for (auto [p, queries] :
             llvm::enumerate(emitTranspose(b, std::move(square))))
          b.store(vector::BitCastOp::create(b, line, queries), op.getPacked(),
                  {batch, head, b.add(pair, p), column});
      }
    });
    return;
  }
  if (cast<MemRefType>(op.getQuery().getType()).isLastDimUnitStride()) {
    b.loop(b.index(0), features, 2 * kLanes, [&](Value feature) {
      SmallVector<Value> square;
      for (Value row : rows)
        square.push_back(vector::BitCastOp::create(
            b, pairs,
            b.loadVector(line, op.getQuery(), {batch, head, row, feature})));
      Value pair = b.floorDiv(feature, 2);
      for (auto [p, queries] :
           llvm::enumerate(emitTranspose(b, std::move(square))))
        b.store(vector::BitCastOp::create(b, line, queries), op.getPacked(),
                {batch, head, b.add(pair, p), column});
    });
    return;
  }
  b.loop(b.index(0), features, 2, [&](Value feature) {
    b.loop(b.index(0), b.index(kLanes), 1, [&](Value lane) {
      for (int64_t odd : {0, 1})
        b.store(b.load(op.getQuery(),
                       {batch, head, rowOf(lane), b.add(feature, odd)}),
                op.getPacked(),
                {batch, head, b.floorDiv(feature, 2),
                 b.add(b.add(column, b.mul(lane, 2)), odd)});
    });
  });
}

void fovea::attn::emitPackQuery(KernelBuilder &b, PackQueryOp op,
                                const VectorUnit &unit) {
  auto packed = cast<MemRefType>(op.getPacked().getType());
  bool makesPairs = op.makesPairs();
  int64_t queries = packed.getDimSize(3) / (makesPairs ? 2 : 1);
  int64_t lanes =
      makesPairs ? 16 : unit.lanesDividing(packed.getElementType(), queries);
  Value zero = b.index(0);
  auto pack = [&] {
    b.loop(zero, b.dim(op.getQuery(), 0), 1, [&](Value batch) {
      b.loop(zero, b.dim(op.getQuery(), 1), 1, [&](Value head) {
        b.loop(zero, b.index(queries), lanes, [&](Value first) {
          if (makesPairs)
            emitPairs(b, op, batch, head, first);
          else
            emitLanes(b, op, lanes, batch, head, first);
        });
      });
    });
  };
  if (cast<MemRefType>(op.getQuery().getType()).isDynamicDim(2))
    b.when(b.fold<arith::CmpIOp>(arith::CmpIPredicate::sgt,
                                 b.dim(op.getQuery(), 2), zero),
           pack);
  else
    pack();
  op.erase();
}
