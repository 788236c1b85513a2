//===- ScoreBlock.cpp - A block of scores, queries in the lanes -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreBlock.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Analysis/MaskAnalysis.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The bounds of masks with more operations are not recomputed within a block.
static constexpr size_t kMaxBoundedMask = 16;

bool fovea::attn::hasCheapBounds(Region &mask) {
  return !mask.empty() &&
         mask.front().getOperations().size() <= kMaxBoundedMask &&
         llvm::all_of(mask.front(), [](Operation &op) {
           return op.getNumRegions() == 0 && !isa<memref::LoadOp>(op);
         });
}

/// Returns `bounds` as indices relative to `first`, within `count`.
static IndexRange getInBlock(KernelBuilder &b, const MaskBounds &bounds,
                             Value first, Value count) {
  auto inBlock = [&](OpFoldResult index) {
    return b.sub(getValueOrCreateConstantIndexOp(b, b.getLoc(), index), first);
  };
  return {b.max(inBlock(bounds.lower), b.index(0)),
          b.min(inBlock(bounds.upper), count)};
}

/// Returns the box of the queries `row ... row + count - 1` that exist and of
/// the block's keys `keys`.
static MaskBox getBox(ScoreBlock &block, Value row, int64_t count,
                      IndexRange keys) {
  KernelBuilder &b = block.b;
  PerCoordinate<Value> at = block.at;
  Value firstRow = b.add(at.row, row);
  Value lastRow = b.min(b.add(firstRow, count - 1),
                        b.sub(b.add(at.row, block.rows), b.index(1)));
  return {
      {at.batch, at.batch},
      {at.head, at.head},
      {firstRow, lastRow},
      {b.add(at.key, keys.first), b.sub(b.add(at.key, keys.end), b.index(1))}};
}

Value ScoreBlock::keepAll(Value row, int64_t count, IndexRange keys) {
  MaskEvaluator evaluator(mask, getBox(*this, row, count, keys), b, b.getLoc());
  OpFoldResult all = evaluator.evaluate().all;
  if (auto known = dyn_cast<Value>(all))
    return known;
  return arith::ConstantOp::create(b, b.getBoolAttr(IndexMath::isTrue(all)));
}

IndexRange ScoreBlock::getKeys(Value row, int64_t count) {
  if (!boundsKeys)
    return {b.index(0), keys};
  MaskEvaluator evaluator(mask, getBox(*this, row, count, {b.index(0), keys}),
                          b, b.getLoc());
  return getInBlock(b, evaluator.bounds(Coordinate::Key), at.key, keys);
}

IndexRange ScoreBlock::getQueries(Value key, int64_t count) {
  if (!boundsKeys)
    return {b.index(0), rows};
  Value firstKey = b.add(at.key, key);
  Value lastKey =
      b.min(b.add(firstKey, count - 1), b.sub(b.add(at.key, keys), b.index(1)));
  Value lastRow = b.sub(b.add(at.row, rows), b.index(1));
  MaskBox box{{at.batch, at.batch},
              {at.head, at.head},
              {at.row, lastRow},
              {firstKey, lastKey}};
  MaskEvaluator evaluator(mask, box, b, b.getLoc());
  return getInBlock(b, evaluator.bounds(Coordinate::Row), at.row, rows);
}

void ScoreBlock::forGroups(llvm::function_ref<void(Value, IndexRange)> body) {
  b.loop(b.index(0), usedGroups, 1, [&](Value group) {
    Value column = b.mul(group, groupQueries());
    body(column, getKeys(column, groupQueries()));
  });
}

void ScoreBlock::forGroupTiles(llvm::function_ref<void(Value, Value)> body) {
  Value tileRow = at.row, tileRows = rows, tileGroups = usedGroups;
  usedGroups = b.index(1);
  b.loop(b.index(0), tileGroups, 1, [&](Value group) {
    Value first = b.mul(group, groupQueries());
    at.row = b.add(tileRow, first);
    rows = b.min(b.index(groupQueries()), b.sub(tileRows, first));
    body(group, first);
  });
  at.row = tileRow;
  rows = tileRows;
  usedGroups = tileGroups;
}

static SmallVector<Value> groupIndices(ScoreBlock &block, Value row,
                                       Value column, int64_t v) {
  SmallVector<Value> indices;
  if (row)
    indices.push_back(row);
  indices.push_back(block.b.add(column, v * block.lanes()));
  return indices;
}

SmallVector<Value> ScoreBlock::loadGroup(Value memref, Value row,
                                         Value column) {
  SmallVector<Value> vectors;
  for (int64_t v = 0; v < groupVectors; ++v)
    vectors.push_back(
        b.loadVector(vector, memref, groupIndices(*this, row, column, v)));
  return vectors;
}

void ScoreBlock::storeGroup(ValueRange vectors, Value memref, Value row,
                            Value column) {
  for (auto [v, value] : llvm::enumerate(vectors))
    b.store(value, memref, groupIndices(*this, row, column, v));
}
