//===- ScoreTile.cpp - A tile of scores in the whole attention ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreTile.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Conversion/Philox.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fovea;

/// Whether `region` reads tensors, so that its coordinates must be elements'.
static bool readsTensors(Region &region) {
  return region.walk([](tensor::ExtractOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

bool ScoreTile::mayLackQueries() const {
  return IndexMath::constantOf(queries) != queryTile;
}

bool ScoreTile::mayLackKeys() const {
  return IndexMath::constantOf(keys) != keyTile;
}

SmallVector<Value> ScoreTile::getPlace(OpBuilder &builder, Location loc,
                                       OpFoldResult query, OpFoldResult key,
                                       Region &region) const {
  IndexMath index(builder, loc);
  bool clamps = readsTensors(region);
  SmallVector<Value> place{at[0], at[1]};
  auto add = [&](Value first, OpFoldResult coordinate, OpFoldResult count,
                 bool mayLack) {
    if (clamps && mayLack)
      coordinate = index.min(coordinate, index.sub(count, index.constant(1)));
    place.push_back(index.materialize(index.add(first, coordinate)));
  };
  add(at[2], query, queries, mayLackQueries());
  add(at[3], key, keys, mayLackKeys());
  return place;
}

OpFoldResult ScoreTile::isKept(OpBuilder &builder, Location loc,
                               OpFoldResult query, OpFoldResult key,
                               Region &mask) const {
  IndexMath index(builder, loc);
  OpFoldResult kept = index.boolean(true);
  if (mayLackKeys())
    kept = index.less(key, keys);
  if (mask.empty())
    return kept;
  SmallVector<Value> place = getPlace(builder, loc, query, key, mask);
  return index.logicalAnd(kept, emitRegion(builder, mask, place));
}

Value ScoreTile::isUndropped(OpBuilder &builder, Location loc,
                             OpFoldResult query, OpFoldResult key,
                             double probability) const {
  IndexMath index(builder, loc);
  OpFoldResult row = index.add(at[2], query);
  OpFoldResult head = index.add(index.mul(at[0], wholeHeads), at[1]);
  row = index.add(index.mul(head, wholeQueries), row);
  return emitDropoutKeep(builder, loc, index.materialize(index.add(at[3], key)),
                         index.materialize(row), seed, offset, probability);
}
