//===- ScheduleModel.cpp - Time of attention under a schedule -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/ScheduleModel.h"

#include "llvm/Support/MathExtras.h"

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
  // Which part a mask leaves is the mask analysis's to say; half of the scores
  // is causal masking, the most frequent one.
  shape.visible = op.getMask().empty() ? 1.0 : 0.5;
  return shape;
}

double fovea::predictSeconds(const AttentionShape &shape, TargetAttr target,
                             int64_t queryTile, int64_t keyTile) {
  // Vector operations per cycle: two multiply-adds, or one load and its use.
  constexpr double kProductRate = 2.0, kVectorRate = 1.0;
  // Per vector of scores: exponential, running sum, load and store.
  constexpr double kSoftmaxCycles = 9.0;
  // Per vector: load, convert, store.
  constexpr double kWidenCycles = 2.0;
  // What missing the fast memory costs the products.
  constexpr double kFastMemoryMiss = 1.08;

  double lanes =
      double(target.getVectorBytes()) / double(shape.accumulationBytes);
  double features = double(shape.headDim + shape.valueDim);
  double keyTiles =
      std::max(1.0, shape.visible * double(shape.keys) / double(keyTile));

  double products = double(queryTile) * keyTile * features / lanes /
                    kProductRate;
  int64_t tileBytes =
      (queryTile * keyTile + (queryTile + keyTile) * int64_t(features)) *
      shape.accumulationBytes;
  if (tileBytes > target.getFastMemory())
    products *= kFastMemoryMiss;
  double softmax = double(queryTile) * keyTile / lanes * kSoftmaxCycles;
  double rescale = double(queryTile) * shape.valueDim / lanes / kVectorRate;
  double widen = shape.elementBytes < shape.accumulationBytes
                     ? keyTile * features / lanes * kWidenCycles
                     : 0.0;
  double item = keyTiles * (products + softmax + rescale + widen) +
                // Packing the queries, finalising the outputs.
                double(queryTile) * features / lanes * 4.0;

  int64_t items = shape.batch * shape.heads *
                  int64_t(llvm::divideCeil(shape.queries, queryTile));
  double rounds = double(llvm::divideCeil(items, target.getCores()));
  double cyclesPerSecond = double(target.getPeak()) * 1e9 /
                           (double(target.getCores()) * lanes * 4.0);
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
      auto candidate = ScheduleAttr::get(op.getContext(), lanes * vectors,
                                         keyTile, order);
      if (getTileBytes(candidate, op.getAccumulationType(), shape.headDim,
                       shape.valueDim) > target.getNearMemory() &&
          best)
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
