//===- Dropout.cpp - Dropout of a block of weights ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreBlock.h"

#include "fovea/Conversion/Utils/Philox.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Words of one counter's result, which this many columns share.
static constexpr int64_t kWords = 4;

/// The `word`-th 32 bits of 64-bit integers.
static Value getWord(KernelBuilder &b, Value wide, int64_t word) {
  Type type = wide.getType();
  Type narrow = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    narrow = vector.clone(narrow);
  if (word)
    wide = arith::ShRUIOp::create(b, wide, b.constantInt(type, 32 * word));
  return arith::TruncIOp::create(b, narrow, wide);
}

/// The counters of column 0 of the queries from `column` on.
static std::array<Value, 4>
getCounters(ScoreBlock &block, const BlockDropout &dropout, Value column) {
  KernelBuilder &b = block.b;
  auto wide = VectorType::get({block.lanes()}, b.getI64Type());
  Value first =
      b.add(b.mul(b.add(b.mul(block.at.batch, dropout.heads), block.at.head),
                  dropout.queries),
            b.add(block.at.row, column));
  SmallVector<int64_t> order(block.lanes());
  std::iota(order.begin(), order.end(), 0);
  Value row = arith::AddIOp::create(
      b, b.splat(wide, arith::IndexCastOp::create(b, b.getI64Type(), first)),
      arith::ConstantOp::create(
          b, DenseElementsAttr::get(wide, ArrayRef<int64_t>(order))));
  Value high = arith::AddIOp::create(
      b, b.splat(wide, dropout.offset),
      arith::ShRUIOp::create(b, row, b.constantInt(wide, 32)));
  auto words = VectorType::get({block.lanes()}, b.getI32Type());
  return {b.constantInt(words, 0), getWord(b, row, 0), getWord(b, high, 0),
          getWord(b, high, 1)};
}

void fovea::attn::emitDropout(ScoreBlock &block, const BlockDropout &dropout) {
  KernelBuilder &b = block.b;
  int64_t lanes = block.lanes();
  auto words = VectorType::get({lanes}, b.getI32Type());
  double probability = dropout.probability;
  Value threshold =
      b.constantInt(words, int32_t(getDropoutThreshold(probability)));
  Value zero = b.constant(block.vector, 0.0);
  Value factor = b.constant(block.vector, 1.0 / (1.0 - probability));
  std::array<Value, 2> seed = {b.splat(words, getWord(b, dropout.seed, 0)),
                               b.splat(words, getWord(b, dropout.seed, 1))};
  Value firstKey = block.at.key;
  Value end = b.add(firstKey, block.keys);

  b.loop(b.index(0), block.rows, lanes, [&](Value column) {
    std::array<Value, 4> counter = getCounters(block, dropout, column);
    b.loop(b.floorDiv(firstKey, kWords), b.ceilDiv(end, kWords), 1,
           [&](Value quad) {
             counter[0] = b.splat(
                 words, arith::IndexCastOp::create(b, b.getI32Type(), quad));
             std::array<Value, 4> random =
                 emitPhilox(b, b.getLoc(), counter, seed);
             for (int64_t word = 0; word < kWords; ++word) {
               Value key = b.sub(b.add(b.mul(quad, kWords), word), firstKey);
               // The comparison is unsigned: a key in front of the block is
               // also beyond it.
               Value isInBlock = arith::CmpIOp::create(
                   b, arith::CmpIPredicate::ult, key, block.keys);
               b.when(isInBlock, [&] {
                 Value weight =
                     b.loadVector(block.vector, block.scores, {key, column});
                 Value keep = arith::CmpIOp::create(
                     b, arith::CmpIPredicate::uge, random[word], threshold);
                 b.store(arith::SelectOp::create(
                             b, keep, arith::MulFOp::create(b, weight, factor),
                             zero),
                         block.scores, {key, column});
               });
             }
           });
  });
}
