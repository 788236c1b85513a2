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
using attn::getScoreDim;

bool fovea::isPartial(Operation &op) {
  auto result = op.walk([](Operation *nested) {
    if (isa<tensor::ExtractOp, arith::FPToSIOp, arith::FPToUIOp>(nested))
      return WalkResult::interrupt();
    bool dividesOrShifts =
        isa<arith::DivSIOp, arith::DivUIOp, arith::CeilDivSIOp,
            arith::CeilDivUIOp, arith::FloorDivSIOp, arith::RemSIOp,
            arith::RemUIOp, arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(
            nested);
    if (dividesOrShifts && !matchPattern(nested->getOperand(1), m_Constant()))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return result.wasInterrupted();
}

bool ScoreTile::mayLackQueries() const {
  return IndexMath::constantOf(queries) != queryTile;
}

bool ScoreTile::mayLackKeys() const {
  return IndexMath::constantOf(keys) != keyTile;
}

SmallVector<TileRead> ScoreTile::getTileReads(Region &region) const {
  SmallVector<TileRead> reads;
  llvm::copy_if(tileReads, std::back_inserter(reads),
                [&](const TileRead &read) {
                  return read.op->getParentRegion() == &region;
                });
  return reads;
}

/// Returns true if `region` has an op that depends on `coordinate` and whose
/// result exists for some operands only. What is read for the whole tile
/// exists.
static bool clamps(Region &region, Coordinate coordinate,
                   ArrayRef<TileRead> tileReads) {
  if (region.empty())
    return false;
  Block &block = region.front();
  // The coordinates come last.
  Value argument = block.getArguments().take_back(4)[getScoreDim(coordinate)];
  llvm::SmallDenseSet<Value> dependents = getDependents(block, argument);
  return llvm::any_of(block.without_terminator(), [&](Operation &op) {
    bool isRead = llvm::any_of(
        tileReads, [&](const TileRead &read) { return read.op == &op; });
    return !isRead && isPartial(op) &&
           llvm::any_of(op.getResults(), [&](Value result) {
             return dependents.contains(result);
           });
  });
}

std::optional<ScoreTile> ScoreTile::getWhole(Region &region) const {
  if (!mayLackKeys() || region.empty())
    return std::nullopt;
  ScoreTile whole = *this;
  whole.keys = IndexMath(region.getContext()).constant(keyTile);
  return whole;
}

ScoreTile ScoreTile::getFirst(OpBuilder &builder, Location loc) const {
  IndexMath index(builder, loc);
  ScoreTile first = *this;
  first.at.key = index.materialize(index.constant(0));
  first.keys = index.constant(keyTile);
  return first;
}

SmallVector<Value> ScoreTile::getPlace(OpBuilder &builder, Location loc,
                                       OpFoldResult query,
                                       OpFoldResult key) const {
  IndexMath index(builder, loc);
  return {at.batch, at.head, index.materialize(index.add(at.row, query)),
          index.materialize(index.add(at.key, key))};
}

/// Returns `first` plus `coordinate`, which is clamped to the last of `count`.
/// All of these are computed in 32 bits, which is half of the instructions.
static Value clamp(OpBuilder &builder, Location loc, Value first,
                   OpFoldResult coordinate, OpFoldResult count) {
  IndexMath index(builder, loc);
  auto narrow = [&](OpFoldResult value) -> Value {
    return arith::IndexCastOp::create(builder, loc, builder.getI32Type(),
                                      index.materialize(value));
  };
  Value last = narrow(index.sub(count, index.constant(1)));
  Value clamped =
      arith::MinSIOp::create(builder, loc, narrow(coordinate), last);
  Value sum = arith::AddIOp::create(builder, loc, narrow(first), clamped);
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                      sum);
}

SmallVector<Value> ScoreTile::getExisting(OpBuilder &builder, Location loc,
                                          OpFoldResult query, OpFoldResult key,
                                          Region &region) const {
  bool clampsQueries =
           mayLackQueries() && clamps(region, Coordinate::Row, tileReads),
       clampsKeys = mayLackKeys() && clamps(region, Coordinate::Key, tileReads);
  if (!clampsQueries && !clampsKeys)
    return {};
  SmallVector<Value> place = getPlace(builder, loc, query, key);
  if (clampsQueries)
    place[2] = clamp(builder, loc, at.row, query, queries);
  if (clampsKeys)
    place[3] = clamp(builder, loc, at.key, key, keys);
  return place;
}

OpFoldResult ScoreTile::isKept(OpBuilder &builder, Location loc,
                               OpFoldResult query, OpFoldResult key,
                               Region &mask, ValueRange read) const {
  IndexMath index(builder, loc);
  OpFoldResult kept = index.boolean(true);
  if (mayLackKeys())
    kept = index.less(key, keys);
  if (mask.empty())
    return kept;
  return index.logicalAnd(
      kept, emit(builder, loc, query, key, mask, read, /*value=*/{}));
}

Value ScoreTile::emit(OpBuilder &builder, Location loc, OpFoldResult query,
                      OpFoldResult key, Region &mask, ValueRange read,
                      Value value) const {
  SmallVector<Value> place = getPlace(builder, loc, query, key),
                     existing = getExisting(builder, loc, query, key, mask);
  IRMapping known;
  for (auto [tile, element] : llvm::zip_equal(getTileReads(mask), read))
    known.map(tile.op->getResult(0), element);
  return emitRegion(builder, mask, place, existing, value, known);
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
