//===- Regions.cpp - Score and mask regions on a block of scores ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneRegion.h"
#include "ScoreBlock.h"

#include "mlir/IR/IRMapping.h"

#include <limits>

using namespace mlir;
using namespace fovea::attn;

namespace {

/// A region's block arguments: `(score?, b, h, i, j)`.
struct Arguments {
  Value score;
  PerCoordinate<Value> at;

  explicit Arguments(Region &region) {
    ValueRange all = region.getArguments();
    if (all.size() == 5) {
      score = all.front();
      all = all.drop_front();
    }
    at = {all[0], all[1], all[2], all[3]};
  }
};

/// Combines a score and the region's result; scalars or vectors.
using Combine = llvm::function_ref<Value(Value score, Value yielded)>;

} // namespace

/// Returns the coordinates of the `v`-th vector of queries from `column` on.
static LaneRegion::Queries getQueries(ScoreBlock &block, Value column,
                                      int64_t v) {
  KernelBuilder &b = block.b;
  int64_t lanes = block.lanes();
  auto type = VectorType::get({lanes}, b.getIndexType());
  SmallVector<int64_t> order(lanes);
  std::iota(order.begin(), order.end(), 0);
  Value iota = arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, ArrayRef<int64_t>(order)));

  LaneRegion::Queries queries;
  Value row = b.add(column, v * lanes);
  queries.first = b.add(block.at.row, row);
  Value end = b.sub(b.add(block.at.row, block.rows), b.index(1));
  queries.last = b.min(b.add(queries.first, lanes - 1), end);
  queries.coordinates = arith::MinSIOp::create(
      b, arith::AddIOp::create(b, b.splat(type, queries.first), iota),
      b.splat(type, end));
  queries.mask =
      vector::CreateMaskOp::create(b, VectorType::get({lanes}, b.getI1Type()),
                                   ValueRange{b.sub(block.rows, row)});
  return queries;
}

/// Recomputes the block's maxima from the scores as they are now.
static void emitBlockMax(ScoreBlock &block) {
  KernelBuilder &b = block.b;
  SmallVector<Value> lowest(
      block.groupVectors,
      b.constant(block.vector, -std::numeric_limits<double>::infinity()));
  block.forGroups([&](Value column, IndexRange keys) {
    SmallVector<Value> maxima = b.loop(
        keys.first, keys.end, 1, lowest, [&](Value key, ValueRange carried) {
          SmallVector<Value> next = block.loadGroup(block.scores, key, column);
          for (auto [score, maximum] : llvm::zip(next, carried))
            score = b.maxOrSecond(score, maximum);
          return next;
        });
    block.storeGroup(maxima, block.blockMax, Value(), column);
  });
}

/// Applies any region, one score after another.
static void emitPerElement(ScoreBlock &block, Region &region, Value target,
                           Combine combine) {
  KernelBuilder &b = block.b;
  Arguments arguments(region);
  b.loop(b.index(0), block.keys, 1, [&](Value key) {
    b.loop(b.index(0), block.rows, 1, [&](Value row) {
      Value score = b.load(block.scores, {key, row});
      IRMapping mapping;
      if (arguments.score)
        mapping.map(arguments.score, score);
      mapping.map(arguments.at.batch, block.at.batch);
      mapping.map(arguments.at.head, block.at.head);
      mapping.map(arguments.at.row, b.add(block.at.row, row));
      mapping.map(arguments.at.key, b.add(block.at.key, key));
      for (Operation &op : region.front().without_terminator())
        b.clone(op, mapping);
      Value yielded = mapping.lookupOrDefault(
          region.front().getTerminator()->getOperand(0));
      b.store(combine(score, yielded), target, {key, row});
    });
  });
  if (block.blockMax)
    emitBlockMax(block);
}

static void emitInLanes(ScoreBlock &block, Region &region, Value target,
                        Combine combine, int64_t maskKeys) {
  KernelBuilder &b = block.b;
  Arguments arguments(region);
  int64_t groupVectors = block.groupVectors;
  SmallVector<Value> inits;
  if (block.blockMax)
    inits.assign(
        groupVectors,
        b.constant(block.vector, -std::numeric_limits<double>::infinity()));

  block.forGroups([&](Value column, IndexRange keys) {
    LaneRegion lanes(b, region, block.lanes(), groupVectors);
    lanes.bindUniform(arguments.at.batch, block.at.batch);
    lanes.bindUniform(arguments.at.head, block.at.head);
    SmallVector<LaneRegion::Queries> queries;
    for (int64_t v = 0; v < groupVectors; ++v)
      queries.push_back(getQueries(block, column, v));
    lanes.bindQueries(arguments.at.row, queries);
    lanes.emitBound();

    auto emitRow = [&](Value key, ValueRange carried, bool isKept) {
      SmallVector<Value> scores = block.loadGroup(block.scores, key, column);
      if (!isKept) {
        lanes.bindUniform(arguments.at.key, b.add(block.at.key, key));
        if (arguments.score)
          lanes.bindLanes(arguments.score, scores);
        lanes.emitBound();
        for (auto [score, yielded] : llvm::zip(scores, lanes.getYielded()))
          score = combine(score, yielded);
        block.storeGroup(scores, target, key, column);
      }
      SmallVector<Value> next(carried);
      for (auto [maximum, score] : llvm::zip(next, scores))
        maximum = b.maxOrSecond(score, maximum);
      return next;
    };
    auto emitRows = [&](IndexRange range, ValueRange carried, bool isKept) {
      if (isKept && carried.empty())
        return SmallVector<Value>();
      return b.loop(range.first, range.end, 1, carried,
                    [&](Value key, ValueRange inner) {
                      return emitRow(key, inner, isKept);
                    });
    };
    if (!maskKeys) {
      block.storeGroup(emitRows(keys, inits, /*isKept=*/false), block.blockMax,
                       Value(), column);
      return;
    }
    SmallVector<Value> maxima = b.loop(
        keys.first, keys.end, maskKeys, inits,
        [&](Value first, ValueRange carried) {
          IndexRange range = {first, b.min(b.add(first, maskKeys), keys.end)};
          auto choice = scf::IfOp::create(
              b, TypeRange(carried),
              block.keepAll(column, block.groupQueries(), range),
              /*withElseRegion=*/true);
          for (bool isKept : {true, false}) {
            OpBuilder::InsertionGuard guard(b);
            b.setInsertionPointToStart(isKept ? choice.thenBlock()
                                              : choice.elseBlock());
            SmallVector<Value> next = emitRows(range, carried, isKept);
            b.setInsertionPointToEnd(isKept ? choice.thenBlock()
                                            : choice.elseBlock());
            if (!carried.empty())
              scf::YieldOp::create(b, next);
          }
          return SmallVector<Value>(choice.getResults());
        });
    block.storeGroup(maxima, block.blockMax, Value(), column);
  });
}

static void emitRegion(ScoreBlock &block, Region &region, Value target,
                       Combine combine, int64_t maskKeys = 0) {
  Arguments arguments(region);
  SmallVector<Value> varying = {arguments.at.row};
  if (arguments.score)
    varying.push_back(arguments.score);
  if (LaneRegion::isVectorizable(region, varying))
    emitInLanes(block, region, target, combine, maskKeys);
  else
    emitPerElement(block, region, target, combine);
}

void fovea::attn::emitScoreRegion(ScoreBlock &block, Region &score) {
  emitRegion(block, score, block.scores,
             [](Value, Value yielded) { return yielded; });
}

void fovea::attn::emitDerivative(ScoreBlock &block, Region &derivative,
                                 Value target) {
  emitRegion(block, derivative, target,
             [](Value, Value yielded) { return yielded; });
}

void fovea::attn::emitMaskRegion(ScoreBlock &block) {
  KernelBuilder &b = block.b;
  emitRegion(
      block, block.mask, block.scores,
      [&](Value score, Value keep) -> Value {
        Value masked = b.constant(score.getType(),
                                  -std::numeric_limits<double>::infinity());
        return arith::SelectOp::create(b, keep, score, masked);
      },
      block.maskKeys);
}
