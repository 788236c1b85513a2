//===- ScoreTile.cpp - A tile of scores in the whole attention ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreTile.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Conversion/Utils/Philox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea;

/// Returns true if the result of `op` exists for some operands only.
static bool isPartial(Operation *op) {
  if (isa<tensor::ExtractOp, arith::FPToSIOp, arith::FPToUIOp>(op))
    return true;
  bool dividesOrShifts =
      isa<arith::DivSIOp, arith::DivUIOp, arith::CeilDivSIOp,
          arith::CeilDivUIOp, arith::FloorDivSIOp, arith::RemSIOp,
          arith::RemUIOp, arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op);
  return dividesOrShifts && !matchPattern(op->getOperand(1), m_Constant());
}

/// Returns true if `region` promises a value only at the coordinates of
/// elements.
static bool isPartial(Region &region) {
  return region
      .walk([](Operation *op) {
        return isPartial(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
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
  bool clamps = isPartial(region);
  SmallVector<Value> place{at.batch, at.head};
  auto add = [&](Value first, OpFoldResult coordinate, OpFoldResult count,
                 bool mayLack) {
    if (clamps && mayLack)
      coordinate = index.min(coordinate, index.sub(count, index.constant(1)));
    place.push_back(index.materialize(index.add(first, coordinate)));
  };
  add(at.row, query, queries, mayLackQueries());
  add(at.key, key, keys, mayLackKeys());
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
  return index.logicalAnd(kept, emitRegion(builder, mask, place, /*value=*/{}));
}

Value ScoreTile::isUndropped(OpBuilder &builder, Location loc,
                             OpFoldResult query, OpFoldResult key,
                             double probability) const {
  IndexMath index(builder, loc);
  OpFoldResult row = index.add(at.row, query);
  OpFoldResult head = index.add(index.mul(at.batch, wholeHeads), at.head);
  row = index.add(index.mul(head, wholeQueries), row);
  return emitDropoutKeep(builder, loc,
                         index.materialize(index.add(at.key, key)),
                         index.materialize(row), seed, offset, probability);
}

PresentKeys fovea::dropWholeEnd(IndexMath &index, PresentKeys present,
                                OpFoldResult keys) {
  if (!present.end)
    return present;
  OpFoldResult isCut = index.less(*present.end, keys);
  if (IndexMath::isFalse(isCut))
    present.end = std::nullopt;
  else
    present.end =
        index.select(isCut, *present.end, index.constant(kMaxPosition));
  return present;
}

SmallVector<Value> fovea::getPresentRows(IndexMath &index,
                                         const PresentKeys &present,
                                         OpFoldResult first, int64_t size) {
  OpFoldResult low = index.constant(0), high = index.constant(size);
  if (present.first && IndexMath::constantOf(*present.first).value_or(1) > 0)
    low = index.sub(*present.first, first);
  else if (!present.end)
    return {};
  if (present.end)
    high = index.sub(*present.end, first);
  return {index.materialize(low), index.materialize(high)};
}
