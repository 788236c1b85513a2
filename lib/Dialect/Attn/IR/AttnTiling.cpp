//===- AttnTiling.cpp - Tiling of the destination-passing ops -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The iteration domain of attn.online_attention is (b, h, i, j): batch, query
// head and query are parallel, the key is a reduction that the op carries in
// its destinations. That of attn.online_backward is (b, g, m, i, j), with the
// head of keys and the query head of its group; all but the first two are
// reductions. That of attn.finalize is (b, h, i). Ops on rows, such as
// norms, rope and elementwise ops, are tiled in all dimensions but the last.
// Features are never tiled.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/Coordinates.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

using Fold = OpFoldResult;
using utils::IteratorType;

/// Returns the size of dimension `dim` of a tensor or memref.
static Fold sizeOf(OpBuilder &builder, Location loc, Value value, int64_t dim) {
  if (isa<MemRefType>(value.getType()))
    return memref::getMixedSize(builder, loc, value, dim);
  return tensor::getMixedSize(builder, loc, value, dim);
}

static SmallVector<Range> domainOf(OpBuilder &builder, ArrayRef<Fold> sizes) {
  Attribute zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  return llvm::map_to_vector(sizes,
                             [&](Fold size) { return Range{zero, size, one}; });
}

/// Returns the slice of `value` at `offsets` and `sizes`, which give its
/// leading dimensions; later dimensions are taken whole. Appends the new op to
/// `slices`.
static Value sliceOf(OpBuilder &builder, Location loc, Value value,
                     ArrayRef<Fold> offsets, ArrayRef<Fold> sizes,
                     SmallVectorImpl<Operation *> &slices) {
  int64_t rank = cast<ShapedType>(value.getType()).getRank();
  SmallVector<Fold> allOffsets(offsets), allSizes(sizes);
  for (int64_t dim = offsets.size(); dim < rank; ++dim) {
    allOffsets.push_back(builder.getIndexAttr(0));
    allSizes.push_back(sizeOf(builder, loc, value, dim));
  }
  SmallVector<Fold> strides(rank, builder.getIndexAttr(1));
  Operation *slice;
  if (isa<MemRefType>(value.getType()))
    slice = memref::SubViewOp::create(builder, loc, value, allOffsets, allSizes,
                                      strides);
  else
    slice = tensor::ExtractSliceOp::create(builder, loc, value, allOffsets,
                                           allSizes, strides);
  slices.push_back(slice);
  return slice->getResult(0);
}

/// Returns the part of `tile` (a whole tile along the features, if it has them)
/// that a consumer requested: the tile itself, or a slice of its features.
static Value sliceFeatures(OpBuilder &builder, Location loc, Value tile,
                           bool hasFeatures, ArrayRef<Fold> offsets,
                           ArrayRef<Fold> sizes) {
  auto type = cast<RankedTensorType>(tile.getType());
  std::optional<int64_t> size = getConstantIntValue(sizes.back());
  if (!hasFeatures || (isZeroInteger(offsets.back()) && size &&
                       *size == type.getShape().back()))
    return tile;
  Attribute zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  SmallVector<Fold> tileOffsets(type.getRank(), zero);
  tileOffsets.back() = offsets.back();
  SmallVector<Fold> strides(type.getRank(), one);
  return tensor::ExtractSliceOp::create(builder, loc, tile, tileOffsets,
                                        llvm::to_vector(sizes), strides);
}

/// Returns a tile of result `number` of `op`, which is tiled along (b, h, i).
template <typename OpTy>
static FailureOr<TilingResult>
resultTile(OpTy op, OpBuilder &builder, unsigned number, ArrayRef<Fold> offsets,
           ArrayRef<Fold> sizes) {
  SmallVector<Fold> domainOffsets, domainSizes;
  if (failed(op.getIterationDomainTileFromResultTile(
          builder, number, offsets, sizes, domainOffsets, domainSizes)))
    return failure();
  FailureOr<TilingResult> tiled =
      op.getTiledImplementation(builder, domainOffsets, domainSizes);
  if (failed(tiled))
    return failure();
  Value tile = tiled->tiledValues[number];
  bool hasFeatures = cast<RankedTensorType>(tile.getType()).getRank() == 4;
  Value value =
      sliceFeatures(builder, op.getLoc(), tile, hasFeatures, offsets, sizes);
  tiled->tiledValues = {value};
  return tiled;
}

/// Computes the position of a tile of the domain (b, h, i, ...) in a result [b,
/// h, i] or [b, h, i, d], whose destination is `result`.
static void resultPosition(OpBuilder &builder, Location loc, Value result,
                           ArrayRef<Fold> offsets, ArrayRef<Fold> sizes,
                           SmallVector<Fold> &resultOffsets,
                           SmallVector<Fold> &resultSizes) {
  resultOffsets = llvm::to_vector(offsets.take_front(3));
  resultSizes = llvm::to_vector(sizes.take_front(3));
  if (cast<ShapedType>(result.getType()).getRank() == 4) {
    resultOffsets.push_back(builder.getIndexAttr(0));
    resultSizes.push_back(sizeOf(builder, loc, result, 3));
  }
}

/// Adds to `result` the tile of `op`, an op on tiles of keys, whose scores
/// begin at `offsets` among those of `op`. The tile has `operands` in place of
/// those of these numbers. `rows` has the query heads and queries of `op` as
/// dimensions 1 and 2.
template <typename OpTy>
static void addTile(OpTy op, OpBuilder &builder,
                    const PerCoordinate<Fold> &offsets, Value rows,
                    ArrayRef<std::pair<unsigned, Value>> operands,
                    TilingResult &result) {
  Location loc = op.getLoc();
  // Regions and dropout still see the coordinates of the whole attention.
  SmallVector<Value> at, whole(op.getWhole());
  AffineExpr d0 = builder.getAffineDimExpr(0), d1 = builder.getAffineDimExpr(1);
  if (op.getDropout() || !op.getScore().empty() || !op.getMask().empty())
    for (Coordinate coordinate : kCoordinates) {
      Fold base = builder.getIndexAttr(0), offset = offsets[coordinate];
      if (!op.getAt().empty()) {
        Value known = op.getAt()[getScoreDim(coordinate)];
        if (isZeroInteger(offset)) {
          at.push_back(known);
          continue;
        }
        base = getAsOpFoldResult(known);
      }
      at.push_back(getValueOrCreateConstantIndexOp(
          builder, loc,
          affine::makeComposedFoldedAffineApply(builder, loc, d0 + d1,
                                                {base, offset})));
    }
  if (op.getDropout() && whole.empty())
    for (int64_t dim : {1, 2})
      whole.push_back(getValueOrCreateConstantIndexOp(
          builder, loc, sizeOf(builder, loc, rows, dim)));

  auto tile = cast<OpTy>(builder.clone(*op));
  for (auto [number, operand] : operands)
    tile->setOperand(number, operand);
  tile.getAtMutable().assign(at);
  tile.getWholeMutable().assign(whole);
  for (auto [opResult, init] :
       llvm::zip(tile->getResults(), tile.getDpsInits()))
    opResult.setType(init.getType());
  result.tiledOps = {tile};
  result.tiledValues = llvm::to_vector_of<Value>(tile->getResults());
}

//===----------------------------------------------------------------------===//
// OnlineAttentionOp
//===----------------------------------------------------------------------===//

SmallVector<IteratorType> OnlineAttentionOp::getLoopIteratorTypes() {
  return {IteratorType::parallel, IteratorType::parallel,
          IteratorType::parallel, IteratorType::reduction};
}

SmallVector<Range> OnlineAttentionOp::getIterationDomain(OpBuilder &builder) {
  return domainOf(builder, {sizeOf(builder, getLoc(), getAcc(), 0),
                            sizeOf(builder, getLoc(), getAcc(), 1),
                            sizeOf(builder, getLoc(), getAcc(), 2),
                            sizeOf(builder, getLoc(), getKey(), 2)});
}

/// Computes the KV heads that `size` query heads from `offset` on read, in
/// attention of `heads` query heads on `kvHeads`; fails where the query heads
/// are not whole groups.
static LogicalResult getKVHeads(OpBuilder &builder, Location loc, Fold offset,
                                Fold size, Fold heads, Fold kvHeads,
                                Fold &kvOffset, Fold &kvSize) {
  if (isSameSize(heads, kvHeads)) { // Groups have one head.
    kvOffset = offset;
    kvSize = size;
    return success();
  }
  if (isZeroInteger(offset) && isSameSize(size, heads)) {
    kvOffset = offset;
    kvSize = kvHeads;
    return success();
  }

  Fold group = getHeadsPerKVHead(builder, loc, heads, kvHeads);
  std::optional<int64_t> staticGroup = getConstantIntValue(group),
                         staticSize = getConstantIntValue(size);
  // With groups of unknown size, only one head at a time.
  if (staticGroup == 0 || (staticSize != 1 && (!staticGroup || !staticSize ||
                                               *staticSize % *staticGroup)))
    return failure();
  kvSize = builder.getIndexAttr(
      std::max<int64_t>(*staticSize / staticGroup.value_or(1), 1));
  if (staticGroup)
    kvOffset = affine::makeComposedFoldedAffineApply(
        builder, loc, builder.getAffineDimExpr(0).floorDiv(*staticGroup),
        {offset});
  else
    kvOffset =
        arith::DivUIOp::create(
            builder, loc, getValueOrCreateConstantIndexOp(builder, loc, offset),
            getValueOrCreateConstantIndexOp(builder, loc, group))
            .getResult();
  return success();
}

FailureOr<TilingResult> OnlineAttentionOp::getTiledImplementation(
    OpBuilder &builder, ArrayRef<Fold> offsets, ArrayRef<Fold> sizes) {
  Location loc = getLoc();
  SmallVector<Fold> domain = llvm::map_to_vector(
      getIterationDomain(builder), [](Range range) { return range.size; });
  Fold kvOffset, kvSize;
  if (failed(getKVHeads(builder, loc, offsets[1], sizes[1], domain[1],
                        sizeOf(builder, loc, getKey(), 1), kvOffset, kvSize)))
    return emitOpError("cannot be tiled by a number of heads that is neither "
                       "1, nor all, nor a multiple of those that share one KV "
                       "head");

  ArrayRef<Fold> rowOffsets = offsets.take_front(3);
  ArrayRef<Fold> rowSizes = sizes.take_front(3);
  SmallVector<Fold> kvOffsets{offsets[0], kvOffset, offsets[3]};
  SmallVector<Fold> kvSizes{sizes[0], kvSize, sizes[3]};
  auto isWhole = [&](unsigned dim) {
    return isZeroInteger(offsets[dim]) && isSameSize(sizes[dim], domain[dim]);
  };
  // A packed query has another order of dimensions, and is tiled with all its
  // rows or none.
  if (getRows() && !isWhole(2))
    return emitOpError("cannot be tiled along packed queries");
  size_t queryDims = getRows() ? 2 : 3;

  TilingResult result;
  // Tiles of only the keys leave queries and running values unchanged.
  bool allRows = isWhole(0) && isWhole(1) && isWhole(2);
  SmallVector<std::pair<unsigned, Value>> operands;
  auto slice = [&](OpOperand &operand, ArrayRef<Fold> at, ArrayRef<Fold> size) {
    operands.emplace_back(
        operand.getOperandNumber(),
        sliceOf(builder, loc, operand.get(), at, size, result.generatedSlices));
  };
  if (!allRows) {
    slice(getQueryMutable(), rowOffsets.take_front(queryDims),
          rowSizes.take_front(queryDims));
    for (OpOperand &init : getDpsInitsMutable())
      slice(init, rowOffsets, rowSizes);
  }
  slice(getKeyMutable(), kvOffsets, kvSizes);
  slice(getValueMutable(), kvOffsets, kvSizes);
  addTile(*this, builder, {offsets[0], offsets[1], offsets[2], offsets[3]},
          getAcc(), operands, result);
  return result;
}

LogicalResult OnlineAttentionOp::getResultTilePosition(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<Fold> offsets,
    ArrayRef<Fold> sizes, SmallVector<Fold> &resultOffsets,
    SmallVector<Fold> &resultSizes) {
  resultPosition(builder, getLoc(), getDpsInits()[resultNumber], offsets, sizes,
                 resultOffsets, resultSizes);
  return success();
}

LogicalResult OnlineAttentionOp::getIterationDomainTileFromResultTile(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<Fold> offsets,
    ArrayRef<Fold> sizes, SmallVectorImpl<Fold> &domainOffsets,
    SmallVectorImpl<Fold> &domainSizes) {
  domainOffsets.assign(offsets.begin(), offsets.begin() + 3);
  domainSizes.assign(sizes.begin(), sizes.begin() + 3);
  domainOffsets.push_back(builder.getIndexAttr(0));
  domainSizes.push_back(sizeOf(builder, getLoc(), getKey(), 2));
  return success();
}

FailureOr<TilingResult> OnlineAttentionOp::generateResultTileValue(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<Fold> offsets,
    ArrayRef<Fold> sizes) {
  return resultTile(*this, builder, resultNumber, offsets, sizes);
}

//===----------------------------------------------------------------------===//
// OnlineBackwardOp
//===----------------------------------------------------------------------===//

SmallVector<IteratorType> OnlineBackwardOp::getLoopIteratorTypes() {
  return {IteratorType::parallel, IteratorType::parallel,
          IteratorType::reduction, IteratorType::reduction,
          IteratorType::reduction};
}

SmallVector<Range> OnlineBackwardOp::getIterationDomain(OpBuilder &builder) {
  Location loc = getLoc();
  Fold kvHeads = sizeOf(builder, loc, getKey(), 1);
  return domainOf(
      builder,
      {sizeOf(builder, loc, getQuery(), 0), kvHeads,
       getHeadsPerKVHead(builder, loc, sizeOf(builder, loc, getQuery(), 1),
                         kvHeads),
       sizeOf(builder, loc, getQuery(), 2), sizeOf(builder, loc, getKey(), 2)});
}

namespace {
/// A tile of the iteration domain of attn.online_backward, as parts of the
/// operands.
struct BackwardTile {
  /// A part of a dimension. A part that is all of it needs no slice.
  struct Part {
    Fold offset, size;
    bool isWhole;
  };

  /// Fails where the tile has parts of several groups of heads.
  static FailureOr<BackwardTile> get(OnlineBackwardOp op, OpBuilder &builder,
                                     ArrayRef<Fold> offsets,
                                     ArrayRef<Fold> sizes);

  /// Returns the parts of the dimensions of a destination, for its first ones.
  SmallVector<Part> ofQueries() const { return {batch, head, row}; }
  SmallVector<Part> ofKeys() const { return {batch, kvHead, key}; }
  SmallVector<Part> ofResult(OnlineBackwardOp op, OpBuilder &builder,
                             unsigned number) const;
  PerCoordinate<Part> ofScores() const { return {batch, head, row, key}; }

  Part batch, head, kvHead, row, key;
};
} // namespace

FailureOr<BackwardTile> BackwardTile::get(OnlineBackwardOp op,
                                          OpBuilder &builder,
                                          ArrayRef<Fold> offsets,
                                          ArrayRef<Fold> sizes) {
  Location loc = op.getLoc();
  SmallVector<Range> domain = op.getIterationDomain(builder);
  SmallVector<Part> parts;
  for (auto [offset, size, range] : llvm::zip_equal(offsets, sizes, domain))
    parts.push_back(
        {offset, size, isZeroInteger(offset) && isSameSize(size, range.size)});
  BackwardTile tile = {parts[0], {}, parts[1], parts[3], parts[4]};
  Part group = parts[1], member = parts[2];
  Fold members = domain[2].size;
  // Products of numbers that are not constants are no affine expressions.
  auto multiply = [&](Fold a) -> Fold {
    std::optional<int64_t> left = getConstantIntValue(a),
                           right = getConstantIntValue(members);
    if (left == 0 || right == 1)
      return a;
    if (left == 1)
      return members;
    if (left && right)
      return builder.getIndexAttr(*left * *right);
    return arith::MulIOp::create(
               builder, loc, getValueOrCreateConstantIndexOp(builder, loc, a),
               getValueOrCreateConstantIndexOp(builder, loc, members))
        .getResult();
  };
  if (member.isWhole) {
    tile.head = {multiply(group.offset), multiply(group.size), group.isWhole};
    return tile;
  }
  if (getConstantIntValue(group.size) != 1)
    return failure();
  AffineExpr d0 = builder.getAffineDimExpr(0), d1 = builder.getAffineDimExpr(1);
  tile.head = {
      affine::makeComposedFoldedAffineApply(
          builder, loc, d0 + d1, {multiply(group.offset), member.offset}),
      member.size, false};
  return tile;
}

SmallVector<BackwardTile::Part> BackwardTile::ofResult(OnlineBackwardOp op,
                                                       OpBuilder &builder,
                                                       unsigned number) const {
  if (number < 3)
    return number == 0 ? ofQueries() : ofKeys();
  SmallVector<Part> parts;
  Value sum = op.getSums()[number - 3];
  for (auto [dim, axis] : llvm::enumerate(
           getCaptureAxes(op.getCaptures()[number - 3], op.getScore())))
    parts.push_back(axis ? ofScores()[*axis]
                         : Part{builder.getIndexAttr(0),
                                sizeOf(builder, op.getLoc(), sum, dim), true});
  return parts;
}

FailureOr<TilingResult> OnlineBackwardOp::getTiledImplementation(
    OpBuilder &builder, ArrayRef<Fold> offsets, ArrayRef<Fold> sizes) {
  Location loc = getLoc();
  if (getPackedQuery())
    return emitOpError("cannot be tiled along packed queries");
  FailureOr<BackwardTile> tile =
      BackwardTile::get(*this, builder, offsets, sizes);
  if (failed(tile))
    return emitOpError("cannot be tiled by parts of several groups of heads");

  TilingResult result;
  auto slice = [&](Value value, ArrayRef<BackwardTile::Part> parts) -> Value {
    if (llvm::all_of(parts, [](auto part) { return part.isWhole; }))
      return value;
    SmallVector<Fold> at, extent;
    for (const BackwardTile::Part &part : parts) {
      at.push_back(part.offset);
      extent.push_back(part.size);
    }
    return sliceOf(builder, loc, value, at, extent, result.generatedSlices);
  };
  SmallVector<std::pair<unsigned, Value>> operands;
  for (OpOperand *operand : {&getQueryMutable(), &getGradientMutable(),
                             &getLseMutable(), &getDeltaMutable()})
    operands.emplace_back(operand->getOperandNumber(),
                          slice(operand->get(), tile->ofQueries()));
  for (OpOperand *operand : {&getKeyMutable(), &getValueMutable()})
    operands.emplace_back(operand->getOperandNumber(),
                          slice(operand->get(), tile->ofKeys()));
  for (auto [number, init] : llvm::enumerate(getDpsInitsMutable()))
    operands.emplace_back(
        init.getOperandNumber(),
        slice(init.get(), tile->ofResult(*this, builder, number)));
  addTile(*this, builder,
          {tile->batch.offset, tile->head.offset, tile->row.offset,
           tile->key.offset},
          getQuery(), operands, result);
  return result;
}

LogicalResult OnlineBackwardOp::getResultTilePosition(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<Fold> offsets,
    ArrayRef<Fold> sizes, SmallVector<Fold> &resultOffsets,
    SmallVector<Fold> &resultSizes) {
  FailureOr<BackwardTile> tile =
      BackwardTile::get(*this, builder, offsets, sizes);
  if (failed(tile))
    return failure();
  resultOffsets.clear();
  resultSizes.clear();
  for (const BackwardTile::Part &part :
       tile->ofResult(*this, builder, resultNumber)) {
    resultOffsets.push_back(part.offset);
    resultSizes.push_back(part.size);
  }
  Value sum = getDpsInits()[resultNumber];
  for (int64_t dim = resultOffsets.size(),
               rank = cast<ShapedType>(sum.getType()).getRank();
       dim < rank; ++dim) {
    resultOffsets.push_back(builder.getIndexAttr(0));
    resultSizes.push_back(sizeOf(builder, getLoc(), sum, dim));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// FinalizeOp
//===----------------------------------------------------------------------===//

SmallVector<IteratorType> FinalizeOp::getLoopIteratorTypes() {
  return SmallVector<IteratorType>(3, IteratorType::parallel);
}

SmallVector<Range> FinalizeOp::getIterationDomain(OpBuilder &builder) {
  return domainOf(builder, {sizeOf(builder, getLoc(), getOutput(), 0),
                            sizeOf(builder, getLoc(), getOutput(), 1),
                            sizeOf(builder, getLoc(), getOutput(), 2)});
}

FailureOr<TilingResult>
FinalizeOp::getTiledImplementation(OpBuilder &builder, ArrayRef<Fold> offsets,
                                   ArrayRef<Fold> sizes) {
  TilingResult result;
  SmallVector<Value> operands;
  for (Value operand : getOperands()) {
    if (operand == getWhen()) {
      operands.push_back(operand);
      continue;
    }
    SmallVector<Fold> tileOffsets(offsets), tileSizes(sizes);
    if (operand == getInitLse()) {
      ArrayRef<int64_t> dims =
          getInitDims(cast<ShapedType>(operand.getType()).getRank());
      auto pick = [&](ArrayRef<Fold> all) {
        return llvm::map_to_vector(dims, [&](int64_t dim) { return all[dim]; });
      };
      tileOffsets = pick(offsets);
      tileSizes = pick(sizes);
    }
    operands.push_back(sliceOf(builder, getLoc(), operand, tileOffsets,
                               tileSizes, result.generatedSlices));
  }
  auto inits =
      ArrayRef(operands).drop_front(getOutputMutable().getOperandNumber());
  auto types = hasPureTensorSemantics()
                   ? SmallVector<Type>(ValueRange(inits).getTypes())
                   : SmallVector<Type>();
  Operation *tiled = mlir::clone(builder, *this, types, operands);
  result.tiledOps = {tiled};
  result.tiledValues = llvm::to_vector_of<Value>(tiled->getResults());
  return result;
}

LogicalResult
FinalizeOp::getResultTilePosition(OpBuilder &builder, unsigned resultNumber,
                                  ArrayRef<Fold> offsets, ArrayRef<Fold> sizes,
                                  SmallVector<Fold> &resultOffsets,
                                  SmallVector<Fold> &resultSizes) {
  resultPosition(builder, getLoc(), getDpsInits()[resultNumber], offsets, sizes,
                 resultOffsets, resultSizes);
  return success();
}

LogicalResult FinalizeOp::getIterationDomainTileFromResultTile(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<Fold> offsets,
    ArrayRef<Fold> sizes, SmallVectorImpl<Fold> &domainOffsets,
    SmallVectorImpl<Fold> &domainSizes) {
  domainOffsets.assign(offsets.begin(), offsets.begin() + 3);
  domainSizes.assign(sizes.begin(), sizes.begin() + 3);
  return success();
}

FailureOr<TilingResult>
FinalizeOp::generateResultTileValue(OpBuilder &builder, unsigned resultNumber,
                                    ArrayRef<Fold> offsets,
                                    ArrayRef<Fold> sizes) {
  return resultTile(*this, builder, resultNumber, offsets, sizes);
}

//===----------------------------------------------------------------------===//
// Ops on rows
//===----------------------------------------------------------------------===//

namespace {
/// An op of the graph whose result's rows depend on the same rows of the
/// operands that have its shape, and on other operands.
template <typename OpTy>
struct RowTiling : TilingInterface::ExternalModel<RowTiling<OpTy>, OpTy> {
  SmallVector<IteratorType> getLoopIteratorTypes(Operation *op) const {
    int64_t rank = cast<ShapedType>(op->getResult(0).getType()).getRank();
    return SmallVector<IteratorType>(rank - 1, IteratorType::parallel);
  }

  SmallVector<Range> getIterationDomain(Operation *op,
                                        OpBuilder &builder) const {
    SmallVector<Fold> sizes =
        tensor::getMixedSizes(builder, op->getLoc(), op->getOperand(0));
    return domainOf(builder, ArrayRef(sizes).drop_back());
  }

  FailureOr<TilingResult> getTiledImplementation(Operation *op,
                                                 OpBuilder &builder,
                                                 ArrayRef<Fold> offsets,
                                                 ArrayRef<Fold> sizes) const {
    Location loc = op->getLoc();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    TilingResult result;
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      auto operandType = dyn_cast<RankedTensorType>(operand.getType());
      if (operandType && operandType.getRank() == type.getRank())
        operand = sliceOf(builder, loc, operand, offsets, sizes,
                          result.generatedSlices);
      else if (isa<RopeOp>(op)) // The tables have a row for each position.
        operand = sliceOf(builder, loc, operand, offsets.back(), sizes.back(),
                          result.generatedSlices);
      operands.push_back(operand);
    }
    auto input = cast<RankedTensorType>(operands.front().getType());
    Operation *tiled =
        clone(builder, op, input.clone(type.getElementType()), operands);
    result.tiledOps = {tiled};
    result.tiledValues = {tiled->getResult(0)};
    return result;
  }

  LogicalResult getResultTilePosition(Operation *op, OpBuilder &builder,
                                      unsigned resultNumber,
                                      ArrayRef<Fold> offsets,
                                      ArrayRef<Fold> sizes,
                                      SmallVector<Fold> &resultOffsets,
                                      SmallVector<Fold> &resultSizes) const {
    resultOffsets = llvm::to_vector(offsets);
    resultSizes = llvm::to_vector(sizes);
    resultOffsets.push_back(builder.getIndexAttr(0));
    resultSizes.push_back(
        sizeOf(builder, op->getLoc(), op->getOperand(0), offsets.size()));
    return success();
  }

  LogicalResult getIterationDomainTileFromResultTile(
      Operation *op, OpBuilder &builder, unsigned resultNumber,
      ArrayRef<Fold> offsets, ArrayRef<Fold> sizes,
      SmallVectorImpl<Fold> &domainOffsets,
      SmallVectorImpl<Fold> &domainSizes) const {
    domainOffsets.assign(offsets.begin(), offsets.end() - 1);
    domainSizes.assign(sizes.begin(), sizes.end() - 1);
    return success();
  }

  /// Computes the tile of the domain from equal tiles of operands that have the
  /// result's shape; these tiles have all features.
  LogicalResult getIterationDomainTileFromOperandTiles(
      Operation *op, OpBuilder &builder, ArrayRef<unsigned> operandNumbers,
      ArrayRef<SmallVector<Fold>> allOffsets,
      ArrayRef<SmallVector<Fold>> allSizes,
      SmallVectorImpl<Fold> &domainOffsets,
      SmallVectorImpl<Fold> &domainSizes) const {
    size_t rank = cast<ShapedType>(op->getResult(0).getType()).getRank();
    auto areEqual = [](ArrayRef<Fold> a, ArrayRef<Fold> b) {
      return llvm::all_of(llvm::zip_equal(a, b), [](auto pair) {
        return isSameSize(std::get<0>(pair), std::get<1>(pair));
      });
    };
    for (auto [number, offsets, sizes] :
         llvm::zip_equal(operandNumbers, allOffsets, allSizes)) {
      Value operand = op->getOperand(number);
      if (offsets.size() != rank || !areEqual(offsets, allOffsets.front()) ||
          !areEqual(sizes, allSizes.front()) ||
          !isZeroInteger(offsets.back()) ||
          !isSameSize(sizes.back(),
                      sizeOf(builder, op->getLoc(), operand, rank - 1)))
        return failure();
    }
    domainOffsets.assign(allOffsets.front().begin(),
                         std::prev(allOffsets.front().end()));
    domainSizes.assign(allSizes.front().begin(),
                       std::prev(allSizes.front().end()));
    return success();
  }

  FailureOr<TilingResult> generateResultTileValue(Operation *op,
                                                  OpBuilder &builder,
                                                  unsigned resultNumber,
                                                  ArrayRef<Fold> offsets,
                                                  ArrayRef<Fold> sizes) const {
    FailureOr<TilingResult> tiled = getTiledImplementation(
        op, builder, offsets.drop_back(), sizes.drop_back());
    if (failed(tiled))
      return failure();
    tiled->tiledValues = {sliceFeatures(builder, op->getLoc(),
                                        tiled->tiledValues.front(),
                                        /*hasFeatures=*/true, offsets, sizes)};
    return tiled;
  }
};
} // namespace

template <typename... OpTys>
static void attachRowTiling(MLIRContext *context) {
  (OpTys::template attachInterface<RowTiling<OpTys>>(*context), ...);
}

void AttnDialect::attachTilingInterfaces() {
  attachRowTiling<ScaleOp, LayerNormOp, RMSNormOp, RopeOp, ResidualAddOp,
                  ElementwiseOp>(getContext());
}
