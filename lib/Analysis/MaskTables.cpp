//===- MaskTables.cpp - Extremes of captured tensors by block -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/MaskTables.h"

#include "fovea/Analysis/TableLoops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fovea;

/// Returns the coordinate that a tabled value depends on: the row or the key.
static Coordinate varyingOf(unsigned coordinates) {
  return coordinates & bitOf(Coordinate::Row) ? Coordinate::Row
                                              : Coordinate::Key;
}

/// Returns the coordinates that index a table: batch and head if the value
/// depends on them, and the block.
static SmallVector<Coordinate> dimensionsOf(unsigned coordinates) {
  SmallVector<Coordinate> dimensions;
  for (Coordinate c : {Coordinate::Batch, Coordinate::Head})
    if (coordinates & bitOf(c))
      dimensions.push_back(c);
  dimensions.push_back(varyingOf(coordinates));
  return dimensions;
}

Value fovea::getNarrow(Value value) {
  auto isNarrow = [](Value integer) {
    auto type = dyn_cast<IntegerType>(integer.getType());
    return type && type.getWidth() <= 32;
  };
  Operation *op = value.getDefiningOp();
  if (isa_and_present<arith::IndexCastOp, arith::ExtSIOp>(op) &&
      isNarrow(op->getOperand(0)))
    return op->getOperand(0);
  return isNarrow(value) ? value : Value();
}

/// Returns the type of the elements of the tables of `value`.
static Type getTableType(OpBuilder &builder, Value value) {
  if (value.getType().isInteger(1))
    return value.getType();
  return getNarrow(value) ? Type(builder.getI32Type()) : builder.getIndexType();
}

/// Returns the extremes of no values: those that all others replace.
static std::pair<Value, Value> getExtremesOfNone(OpBuilder &builder,
                                                 Location loc, Type type) {
  if (type.isInteger(1)) {
    Value all =
        arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
    return {all, arith::ConstantOp::create(builder, loc,
                                           builder.getBoolAttr(false))};
  }
  unsigned width = type.isIndex() ? IndexType::kInternalStorageBitWidth
                                  : type.getIntOrFloatBitWidth();
  auto constant = [&](const APInt &number) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(type, number));
  };
  return {constant(APInt::getSignedMaxValue(width)),
          constant(APInt::getSignedMinValue(width))};
}

/// Returns `value`, an integer or an index, as one of `type`, by its sign.
static Value convert(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (type.isIndex())
    return arith::IndexCastOp::create(builder, loc, type, value);
  return arith::ExtSIOp::create(builder, loc, type, value);
}

/// Returns the extremes of `extremes` and of `value` of the mask at a point.
static std::pair<Value, Value> addPoint(OpBuilder &builder, Location loc,
                                        Region &mask, Value value,
                                        ArrayRef<Value> point,
                                        std::pair<Value, Value> extremes) {
  IRMapping computed;
  Value narrow = getNarrow(value);
  Value x = computeAt(
      builder, mask, narrow ? narrow : value,
      [&](Coordinate c) { return point[getScoreDim(c)]; }, computed);
  auto [min, max] = extremes;
  if (value.getType().isInteger(1))
    return {arith::AndIOp::create(builder, loc, min, x),
            arith::OrIOp::create(builder, loc, max, x)};
  x = convert(builder, loc, x, min.getType());
  return {arith::MinSIOp::create(builder, loc, min, x),
          arith::MaxSIOp::create(builder, loc, max, x)};
}

/// Emits a loop that finds the minimum and the maximum of values in several
/// blocks. `emit` returns a point of each block in an iteration.
static SmallVector<Value> emitExtremes(
    OpBuilder &builder, Location loc, Region &mask,
    ArrayRef<TabledValue> values, Value first, Value end,
    llvm::function_ref<SmallVector<SmallVector<Value>>(OpBuilder &, Value)>
        emit,
    size_t blocks) {
  SmallVector<Value> inits;
  for (const TabledValue &tabled : values)
    for (size_t block = 0; block < blocks; ++block) {
      auto [min, max] =
          getExtremesOfNone(builder, loc, getTableType(builder, tabled.value));
      inits.append({min, max});
    }
  auto body = [&](OpBuilder &nested, Location loc, Value position,
                  ValueRange extremes) {
    SmallVector<SmallVector<Value>> points = emit(nested, position);
    SmallVector<Value> found;
    for (const TabledValue &tabled : values)
      for (ArrayRef<Value> point : points) {
        size_t at = found.size();
        auto [min, max] = addPoint(nested, loc, mask, tabled.value, point,
                                   {extremes[at], extremes[at + 1]});
        found.append({min, max});
      }
    scf::YieldOp::create(nested, loc, found);
  };
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  return llvm::to_vector_of<Value>(
      scf::ForOp::create(builder, loc, first, end, one, inits, body)
          .getResults());
}

/// Returns the first position of a block of a dimension of `length`, and the
/// one behind its last.
static std::pair<Value, Value> getBlock(OpBuilder &builder, Location loc,
                                        Value number, int64_t size,
                                        OpFoldResult length) {
  AffineExpr d0 = builder.getAffineDimExpr(0),
             s0 = builder.getAffineSymbolExpr(0);
  auto materialize = [&](OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(builder, loc, value);
  };
  Value first = materialize(affine::makeComposedFoldedAffineApply(
      builder, loc, d0 * size, {OpFoldResult(number)}));
  Value end = materialize(affine::makeComposedFoldedAffineMin(
      builder, loc,
      AffineMap::get(1, 1, {d0 * size + size, s0}, builder.getContext()),
      {OpFoldResult(number), length}));
  return {first, end};
}

std::pair<OpFoldResult, OpFoldResult> RowTiles::getTile(IndexMath &math,
                                                        Value number) const {
  OpBuilder &builder = math.getBuilder();
  auto read = [&](Value table) -> OpFoldResult {
    Value narrow =
        tensor::ExtractOp::create(builder, math.getLoc(), table, number);
    return arith::IndexCastUIOp::create(builder, math.getLoc(),
                                        builder.getIndexType(), narrow)
        .getResult();
  };
  OpFoldResult first = read(firsts);
  return {first, read(ends)};
}

MaskTables::MaskTables(OpBuilder &builder, Location loc, Region &mask,
                       ArrayRef<OpFoldResult> sizes, int64_t queryTile,
                       int64_t keyTile, std::optional<RowTiles> rowTiles) {
  if (rowTiles) {
    fillByTiles(builder, loc, mask, *rowTiles);
    return;
  }
  for (const TabledValue &tabled : tabledValues(mask)) {
    Coordinate varying = varyingOf(tabled.coordinates);
    int64_t block = varying == Coordinate::Row ? queryTile : keyTile;
    OpFoldResult length = sizes[static_cast<unsigned>(varying)];
    SmallVector<Coordinate> dimensions = dimensionsOf(tabled.coordinates);
    SmallVector<OpFoldResult> shape = llvm::map_to_vector(
        dimensions, [&](Coordinate c) { return sizes[getScoreDim(c)]; });
    shape.back() = affine::makeComposedFoldedAffineApply(
        builder, loc, builder.getAffineDimExpr(0).ceilDiv(block), {length});
    auto emit = [&](OpBuilder &nested, ValueRange item,
                    SmallVectorImpl<OpFoldResult> &) {
      SmallVector<Value> point(4);
      for (auto [dimension, iv] : llvm::zip_equal(dimensions, item))
        point[getScoreDim(dimension)] = iv;
      auto [first, end] = getBlock(nested, loc, item.back(), block, length);
      auto getPoints = [&](OpBuilder &, Value position) {
        point[static_cast<unsigned>(varying)] = position;
        return SmallVector<SmallVector<Value>>{point};
      };
      return emitExtremes(nested, loc, mask, tabled, first, end, getPoints,
                          /*blocks=*/1);
    };
    Type type = getTableType(builder, tabled.value);
    SmallVector<Value> filled =
        fillTables(builder, loc, shape, {type, type}, emit);
    tables.push_back({{{filled[0], filled[1]}}, tabled.coordinates, block});
  }
}

/// One loop fills all tables, for each item waits for memory: a step of it
/// reads all values in a row of each part. Rows of an empty part are the last
/// one of the tile, those of an empty tile one of another, so that extremes are
/// values that there are.
void MaskTables::fillByTiles(OpBuilder &builder, Location loc, Region &mask,
                             const RowTiles &rowTiles) {
  int64_t numParts = rowTiles.parts, rowsOfPart = rowTiles.rowsOfPart;
  SmallVector<TabledValue> values = tabledValues(mask);
  SmallVector<Type> types;
  for (const TabledValue &tabled : values)
    types.append(2 * numParts, getTableType(builder, tabled.value));
  auto emit = [&](OpBuilder &nested, ValueRange item,
                  SmallVectorImpl<OpFoldResult> &) {
    IndexMath math(nested, loc);
    OpFoldResult one = math.constant(1);
    auto [first, end] = rowTiles.getTile(math, item.front());
    OpFoldResult last =
        math.min(math.max(math.sub(end, one), first),
                 math.max(math.sub(rowTiles.rows, one), math.constant(0)));
    auto getPoints = [&, first = first](OpBuilder &inner, Value offset) {
      IndexMath math(inner, loc);
      SmallVector<SmallVector<Value>> points;
      for (int64_t part = 0; part < numParts; ++part) {
        OpFoldResult row =
            math.add(math.add(first, math.constant(part * rowsOfPart)), offset);
        SmallVector<Value> point(4);
        point[getScoreDim(Coordinate::Row)] =
            math.materialize(math.min(row, last));
        points.push_back(point);
      }
      return points;
    };
    // Without a row there is nothing to read.
    OpFoldResult steps =
        math.select(math.less(math.constant(0), rowTiles.rows),
                    math.constant(rowsOfPart), math.constant(0));
    return emitExtremes(nested, loc, mask, values,
                        math.materialize(math.constant(0)),
                        math.materialize(steps), getPoints, numParts);
  };
  SmallVector<Value> filled =
      fillTables(builder, loc, {rowTiles.count}, types, emit);
  ArrayRef rest(filled);
  for (const TabledValue &tabled : values) {
    Table table{{}, tabled.coordinates, rowsOfPart};
    for (int64_t part = 0; part < numParts; ++part, rest = rest.drop_front(2))
      table.parts.emplace_back(rest[0], rest[1]);
    tables.push_back(std::move(table));
  }
}

SmallVector<Value> MaskTables::getTensors() const {
  SmallVector<Value> tensors;
  for (const Table &table : tables)
    for (auto [min, max] : table.parts)
      tensors.append({min, max});
  return tensors;
}

std::optional<Span> MaskTables::lookup(Region &mask, Value value,
                                       IndexMath &math,
                                       ArrayRef<OpFoldResult> coordinates,
                                       std::optional<int64_t> part) const {
  SmallVector<TabledValue> values = tabledValues(mask);
  auto it = llvm::find_if(
      values, [&](const TabledValue &tabled) { return tabled.value == value; });
  size_t number = std::distance(values.begin(), it);
  if (number >= tables.size())
    return std::nullopt;
  const Table &table = tables[number];
  SmallVector<Value> indices;
  for (Coordinate c : dimensionsOf(table.coordinates)) {
    OpFoldResult at = coordinates[getScoreDim(c)];
    if (c == Coordinate::Row && rowTile)
      at = rowTile;
    else if (c == Coordinate::Row || c == Coordinate::Key)
      at = math.floorDiv(at, math.constant(table.block));
    indices.push_back(math.materialize(at));
  }
  OpBuilder &builder = math.getBuilder();
  bool isBoolean = value.getType().isInteger(1);
  auto extract = [&](Value tensor) -> OpFoldResult {
    Location loc = math.getLoc();
    Value element = tensor::ExtractOp::create(builder, loc, tensor, indices);
    if (isBoolean)
      return element;
    return convert(builder, loc, element, builder.getIndexType());
  };
  ArrayRef parts = table.parts;
  if (part && parts.size() > 1)
    parts = parts.slice(*part, 1);
  std::optional<Span> all;
  for (auto [min, max] : parts) {
    OpFoldResult first = extract(min), last = extract(max);
    if (!all)
      all = {first, last};
    else if (isBoolean)
      all = {math.logicalAnd(all->first, first),
             math.logicalOr(all->last, last)};
    else
      all = {math.min(all->first, first), math.max(all->last, last)};
  }
  return all;
}
