//===- ScheduleModel.cpp - Time of attention under a schedule -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/ScheduleModel.h"

#include "fovea/Analysis/MaskAnalysis.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// What a dynamic size is taken to be.
static constexpr int64_t kTypicalHeads = 16;
static constexpr int64_t kTypicalLength = 1024;
static constexpr int64_t kTypicalHeadDim = 64;

AttentionShape AttentionShape::get(AttentionOp op) {
  auto size = [](Value value, int64_t dim, int64_t typical) {
    int64_t size = cast<ShapedType>(value.getType()).getDimSize(dim);
    return ShapedType::isDynamic(size) ? typical : size;
  };
  auto bytes = [](Type type) -> int64_t {
    return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
  };
  AttentionShape shape;
  shape.batch = size(op.getQuery(), 0, 1);
  shape.heads = size(op.getQuery(), 1, kTypicalHeads);
  shape.queries = size(op.getQuery(), 2, kTypicalLength);
  shape.keys = size(op.getKey(), 2, kTypicalLength);
  shape.headDim = size(op.getQuery(), 3, kTypicalHeadDim);
  shape.valueDim = size(op.getValue(), 3, kTypicalHeadDim);
  shape.elementBytes = bytes(getElementTypeOrSelf(op.getKey()));
  shape.accumulationBytes = bytes(op.getAccumulationType());
  shape.visible = estimateVisible(op.getMask(), shape.queries, shape.keys);
  return shape;
}

double fovea::estimateVisible(Region &mask, int64_t queries, int64_t keys) {
  // Blocks of rows as tall as a usual tile, at most this many of them.
  constexpr int64_t kRows = 48, kSamples = 64;
  if (mask.empty() || queries <= 0 || keys <= 0)
    return 1.0;
  Builder builder(mask.getContext());
  auto span = [&](int64_t first, int64_t last) {
    return Span{builder.getIndexAttr(first), builder.getIndexAttr(last)};
  };
  int64_t blocks = llvm::divideCeil(queries, kRows);
  int64_t step = llvm::divideCeil(blocks, kSamples);
  double kept = 0, visited = 0;
  for (int64_t block = 0; block < blocks; block += step) {
    int64_t first = block * kRows;
    int64_t last = std::min(first + kRows, queries) - 1;
    MaskEvaluator evaluator(
        mask, {span(0, 0), span(0, 0), span(first, last), span(0, keys - 1)});
    KeyBounds bounds = evaluator.keyBounds();
    auto lower = getConstantIntValue(bounds.lower);
    auto upper = getConstantIntValue(bounds.upper);
    kept += lower && upper ? double(std::max<int64_t>(*upper - *lower, 0))
                           : double(keys);
    visited += double(keys);
  }
  return kept / visited;
}

/// The part of the multiply-add rate that a product reaches whose tile is
/// `vectors` vectors of queries wide: three share a broadcast best.
static double productEfficiency(int64_t vectors) {
  if (vectors % 3 == 0)
    return 0.95;
  return vectors % 2 == 0 ? 0.9 : 0.75;
}

double fovea::predictSeconds(const AttentionShape &shape, TargetAttr target,
                             int64_t queryTile, int64_t keyTile) {
  // Multiply-adds on vectors per cycle.
  constexpr double kProductRate = 2.0;
  // Cycles per vector of scores: exponential, running sum, load and store.
  constexpr double kSoftmaxCycles = 9.0;
  // Cycles per vector widened from 16 bit: load, convert, store.
  constexpr double kWidenCycles = 3.0;
  // Cycles per vector of a tile's queries and outputs: pack, finalise.
  constexpr double kItemCycles = 4.0;
  // Cycles to enter and leave a tile's loops.
  constexpr double kTileCycles = 100.0;
  // Bytes per cycle from the near memory; half of it hides under arithmetic.
  constexpr double kNearRate = 64.0;
  // What each doubling beyond the fast memory costs the products.
  constexpr double kFastMemoryMiss = 0.05;
  // What values cost that do not fit in it.
  constexpr double kConflictMiss = 1.09;

  double lanes =
      double(target.getVectorBytes()) / double(shape.accumulationBytes);
  double features = double(shape.headDim + shape.valueDim);
  double queries = double(queryTile), keys = double(keyTile);
  // The loop over keys ends where the mask does: its last tile is shorter.
  double visible = shape.visible * double(shape.keys) / keys;
  double keyTiles = std::ceil(visible);

  double products = queries * keys * features / lanes / kProductRate /
                    productEfficiency(int64_t(std::ceil(queries / lanes)));
  double resident =
      queries * (keys + features) * double(shape.accumulationBytes);
  products *=
      1.0 +
      kFastMemoryMiss *
          std::log2(std::max(1.0, resident / double(target.getFastMemory())));
  // Values are read in place a few vectors of each row at a time: rows that are
  // longer leave most of the fast memory's sets unused, and the block's values
  // push each other out.
  bool isInPlace = shape.elementBytes == shape.accumulationBytes;
  if (isInPlace && keys * double(shape.valueDim * shape.elementBytes) >=
                       double(target.getFastMemory()))
    products *= kConflictMiss;
  double softmax = queries * keys / lanes * kSoftmaxCycles;
  double rescale = queries * double(shape.valueDim) / lanes;
  double fetch = keys * features * double(shape.elementBytes) / kNearRate;
  double widen = shape.elementBytes < shape.accumulationBytes
                     ? keys * features / lanes * kWidenCycles
                     : 0.0;
  double item = visible * (products + softmax + fetch + widen) +
                keyTiles * (rescale + kTileCycles) +
                queries * features / lanes * kItemCycles;

  int64_t items = shape.batch * shape.heads *
                  int64_t(llvm::divideCeil(shape.queries, queryTile));
  double rounds = double(llvm::divideCeil(items, target.getCores()));
  // The peak counts two operations for each lane of each multiply-add.
  double cyclesPerSecond =
      double(target.getPeak()) * 1e9 /
      (double(target.getCores()) * double(target.getVectorBytes()) / 4.0 * 2.0 *
       kProductRate);
  return rounds * item / cyclesPerSecond;
}

ScheduleAttr fovea::selectSchedule(AttentionOp op, TargetAttr target) {
  AttentionShape shape = AttentionShape::get(op);
  WorkOrder order =
      op.getMask().empty() ? WorkOrder::Linear : WorkOrder::LongestFirst;
  int64_t lanes = target.getVectorBytes() / shape.accumulationBytes;

  ScheduleAttr best;
  double bestSeconds = 0;
  for (int64_t vectors : {1, 2, 3, 6}) {
    for (int64_t keyTile : {16, 32, 64, 128}) {
      auto candidate =
          ScheduleAttr::get(op.getContext(), lanes * vectors, keyTile, order,
                            /*warps=*/0, /*stages=*/0);
      if (getTileBytes(candidate, op.getAccumulationType(), shape.headDim,
                       shape.valueDim) > target.getNearMemory())
        continue;
      double seconds =
          predictSeconds(shape, target, candidate.getQueryTile(), keyTile);
      if (best && seconds >= bestSeconds)
        continue;
      best = candidate;
      bestSeconds = seconds;
    }
  }
  return best;
}
