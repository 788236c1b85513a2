//===- MaskTables.cpp - Extremes of captured tensors by block -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/MaskTables.h"

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

/// Emits the loop over one block that finds the minimum and the maximum of
/// `value`. `point` has the batch and the head.
static scf::ForOp emitBlock(OpBuilder &builder, Location loc, Region &mask,
                            Value value, Coordinate varying,
                            SmallVector<Value> point, Value first, Value end) {
  bool isBoolean = value.getType().isInteger(1);
  Value min, max;
  if (isBoolean) {
    min = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
    max = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
  } else {
    using Limits = std::numeric_limits<int64_t>;
    min = arith::ConstantIndexOp::create(builder, loc, Limits::max());
    max = arith::ConstantIndexOp::create(builder, loc, Limits::min());
  }
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  auto body = [&](OpBuilder &nested, Location loc, Value position,
                  ValueRange extremes) {
    point[static_cast<unsigned>(varying)] = position;
    IRMapping computed;
    Value x = computeAt(
        nested, mask, value,
        [&](Coordinate c) { return point[getScoreDim(c)]; }, computed);
    Value lower, upper;
    if (isBoolean) {
      lower = arith::AndIOp::create(nested, loc, extremes[0], x);
      upper = arith::OrIOp::create(nested, loc, extremes[1], x);
    } else {
      if (!x.getType().isIndex())
        x = arith::IndexCastOp::create(nested, loc, nested.getIndexType(), x);
      lower = arith::MinSIOp::create(nested, loc, extremes[0], x);
      upper = arith::MaxSIOp::create(nested, loc, extremes[1], x);
    }
    scf::YieldOp::create(nested, loc, ValueRange{lower, upper});
  };
  return scf::ForOp::create(builder, loc, first, end, one, ValueRange{min, max},
                            body);
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

/// The same for a tile of rows; for an empty one a row of another, so that the
/// extremes are values that there are.
static std::pair<Value, Value> getRows(OpBuilder &builder, Location loc,
                                       const RowTiles &tiles, Value number) {
  IndexMath math(builder, loc);
  auto [first, end] = tiles.getTile(math, number);
  end = math.max(end, math.min(math.add(first, math.constant(1)), tiles.rows));
  return {math.materialize(first), math.materialize(end)};
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
  for (auto [value, coordinates] : tabledValues(mask)) {
    Coordinate varying = varyingOf(coordinates);
    int64_t block = varying == Coordinate::Row ? queryTile : keyTile;
    OpFoldResult length = sizes[static_cast<unsigned>(varying)];
    SmallVector<Coordinate> dimensions = dimensionsOf(coordinates);
    SmallVector<OpFoldResult> shape = llvm::map_to_vector(
        dimensions, [&](Coordinate c) { return sizes[getScoreDim(c)]; });
    AffineExpr d0 = builder.getAffineDimExpr(0);
    bool isTile = varying == Coordinate::Row && rowTiles;
    shape.back() = isTile ? rowTiles->count
                          : affine::makeComposedFoldedAffineApply(
                                builder, loc, d0.ceilDiv(block), {length});

    Type element =
        value.getType().isInteger(1) ? value.getType() : builder.getIndexType();
    SmallVector<Value> inits;
    for (int i = 0; i < 2; ++i)
      inits.push_back(tensor::EmptyOp::create(builder, loc, shape, element));
    auto fill = [&, value = value](OpBuilder &nested, Location loc,
                                   ValueRange arguments) {
      ValueRange ivs = arguments.drop_back(2);
      ValueRange outs = arguments.take_back(2);
      SmallVector<Value> point(4);
      for (auto [dimension, iv] : llvm::zip(dimensions, ivs))
        point[getScoreDim(dimension)] = iv;
      auto [first, end] =
          isTile ? getRows(nested, loc, *rowTiles, ivs.back())
                 : getBlock(nested, loc, ivs.back(), block, length);
      scf::ForOp extremes =
          emitBlock(nested, loc, mask, value, varying, point, first, end);

      // Each item owns one element of both tables.
      SmallVector<OpFoldResult> offsets = getAsOpFoldResult(ivs);
      SmallVector<OpFoldResult> ones(ivs.size(), nested.getIndexAttr(1));
      Value zero = arith::ConstantIndexOp::create(nested, loc, 0);
      SmallVector<Value> zeros(ivs.size(), zero);
      SmallVector<Value> tiles;
      for (auto [out, extreme] : llvm::zip(outs, extremes.getResults())) {
        Value slice = tensor::ExtractSliceOp::create(nested, loc, out, offsets,
                                                     ones, ones);
        tiles.push_back(
            tensor::InsertOp::create(nested, loc, extreme, slice, zeros));
      }
      auto parallel = scf::InParallelOp::create(nested, loc);
      nested.setInsertionPointToStart(parallel.getBody());
      for (auto [tile, out] : llvm::zip(tiles, outs))
        tensor::ParallelInsertSliceOp::create(nested, loc, tile, out, offsets,
                                              ones, ones);
    };
    auto forall = scf::ForallOp::create(builder, loc, shape, inits,
                                        /*mapping=*/std::nullopt, fill);
    tables.push_back(
        {forall.getResult(0), forall.getResult(1), coordinates, block});
  }
}

SmallVector<Value> MaskTables::getTensors() const {
  SmallVector<Value> tensors;
  for (const Table &table : tables)
    tensors.append({table.min, table.max});
  return tensors;
}

std::optional<Span>
MaskTables::lookup(Region &mask, Value value, IndexMath &math,
                   ArrayRef<OpFoldResult> coordinates) const {
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
  auto extract = [&](Value tensor) -> OpFoldResult {
    return tensor::ExtractOp::create(builder, math.getLoc(), tensor, indices)
        .getResult();
  };
  OpFoldResult min = extract(table.min);
  return Span{min, extract(table.max)};
}
