//===- TileByMask.cpp - Loops over tiles that a mask keeps ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileByMask.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

SmallVector<OpFoldResult> fovea::attn::getScoreSizes(OpBuilder &builder,
                                                     OnlineAttentionOp pass) {
  return llvm::map_to_vector(pass.getIterationDomain(builder),
                             [](Range range) { return range.size; });
}

SmallVector<OpFoldResult> fovea::attn::getScoreSizes(OpBuilder &builder,
                                                     OnlineBackwardOp pass) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, pass.getLoc(), pass.getQuery());
  sizes.back() = tensor::getMixedSize(builder, pass.getLoc(), pass.getKey(), 2);
  return sizes;
}

SmallVector<Value> fovea::attn::insertTiles(OpBuilder &builder,
                                            Operation *tile) {
  auto destination = cast<DestinationStyleOpInterface>(tile);
  SmallVector<Value> values;
  for (auto [init, result] :
       llvm::zip_equal(destination.getDpsInits(), tile->getResults())) {
    auto slice = init.getDefiningOp<tensor::ExtractSliceOp>();
    // A slice of a tensor from further outside is a running value itself.
    if (!slice || slice->getBlock() != tile->getBlock()) {
      values.push_back(result);
      continue;
    }
    values.push_back(tensor::InsertSliceOp::create(
        builder, tile->getLoc(), result, slice.getSource(),
        slice.getMixedOffsets(), slice.getMixedSizes(),
        slice.getMixedStrides()));
  }
  return values;
}

/// Returns `size` coordinates from `first` on.
static Span spanOf(IndexMath &math, OpFoldResult first, OpFoldResult size) {
  OpFoldResult last = math.sub(math.add(first, size), math.constant(1));
  return {first, IndexMath::constantOf(size) == 1 ? first : last};
}

/// Returns the part of the score matrix that `pass` computes.
template <typename OpTy>
static MaskBox boxOf(IndexMath &math, OpTy pass, ArrayRef<OpFoldResult> sizes) {
  SmallVector<Span> spans;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    OpFoldResult first = math.constant(0);
    if (!pass.getAt().empty())
      first = getAsOpFoldResult(pass.getAt()[dim]);
    spans.push_back(spanOf(math, first, size));
  }
  return {spans[0], spans[1], spans[2], spans[3]};
}

/// Emits one tile, `size` from `place` on along dimension `dim` of the
/// iteration domain, into the body of `loop`, with the loop's running values as
/// destinations.
template <typename OpTy>
static FailureOr<SmallVector<Value>>
emitTile(RewriterBase &rewriter, OpTy pass, scf::ForOp loop, unsigned dim,
         OpFoldResult place, OpFoldResult size, const Truth &truth) {
  // Replaces only the destinations: queries of zeros may be the same tensor as
  // the initial sums.
  auto whole = cast<OpTy>(rewriter.clone(*pass.getOperation()));
  for (auto [init, value] :
       llvm::zip_equal(whole.getDpsInitsMutable(), loop.getRegionIterArgs()))
    init.set(value);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(whole);
  SmallVector<OpFoldResult> offsets, sizes;
  for (Range range : whole.getIterationDomain(rewriter)) {
    offsets.push_back(range.offset);
    sizes.push_back(range.size);
  }
  offsets[dim] = place;
  sizes[dim] = size;
  FailureOr<TilingResult> tiled =
      whole.getTiledImplementation(rewriter, offsets, sizes);
  rewriter.eraseOp(whole);
  if (failed(tiled))
    return failure();

  auto tile = cast<OpTy>(tiled->tiledOps.front());
  if (IndexMath::isTrue(truth.all)) {
    tile.getPartialMutable().clear();
    if (!tile.getMask().empty())
      rewriter.eraseBlock(&tile.getMask().front());
  } else if (!IndexMath::isFalse(truth.all)) {
    rewriter.setInsertionPoint(tile);
    IndexMath math(rewriter, pass.getLoc());
    OpFoldResult partial = math.logicalNot(truth.all);
    if (tile.getPartial())
      partial = math.logicalAnd(partial, tile.getPartial());
    tile.getPartialMutable().assign(math.materialize(partial, true));
  }
  rewriter.setInsertionPointAfter(tile);
  return insertTiles(rewriter, tile);
}

/// Returns how many of the `size` positions from `place` on are in front of
/// `end`.
static OpFoldResult countRest(OpBuilder &builder, Location loc, Value place,
                              int64_t size, OpFoldResult end) {
  MLIRContext *context = builder.getContext();
  AffineExpr d0 = getAffineDimExpr(0, context),
             s0 = getAffineSymbolExpr(0, context);
  return affine::makeComposedFoldedAffineMin(
      builder, loc,
      AffineMap::get(1, 1, {getAffineConstantExpr(size, context), s0 - d0},
                     context),
      {OpFoldResult(place), end});
}

TileSpan fovea::attn::clipTile(OpBuilder &builder, Location loc, Value place,
                               int64_t size, std::optional<OpFoldResult> first,
                               OpFoldResult end) {
  MLIRContext *context = builder.getContext();
  AffineExpr d0, s0, s1;
  bindDims(context, d0);
  bindSymbols(context, s0, s1);
  if (first && IndexMath::constantOf(*first).value_or(1) > 0) {
    OpFoldResult skipped = affine::makeComposedFoldedAffineMax(
        builder, loc,
        AffineMap::get(1, 1, {getAffineConstantExpr(0, context), s0 - d0},
                       context),
        {OpFoldResult(place), *first});
    OpFoldResult offset = affine::makeComposedFoldedAffineApply(
        builder, loc, AffineMap::get(1, 1, d0 + s0),
        {OpFoldResult(place), skipped});
    OpFoldResult left = affine::makeComposedFoldedAffineMin(
        builder, loc, AffineMap::get(1, 2, {size - s1, s0 - d0 - s1}, context),
        {OpFoldResult(place), end, skipped});
    return {offset, left};
  }
  // The last tile has the remaining keys.
  std::optional<int64_t> known = IndexMath::constantOf(end);
  if (known && *known % size == 0)
    return {place, builder.getIndexAttr(size)};
  return {place, countRest(builder, loc, place, size, end)};
}

/// Returns the number of tiles of `size` between two places.
static OpFoldResult countTiles(IndexMath &math, OpFoldResult lower,
                               OpFoldResult upper, int64_t size) {
  OpFoldResult keys = math.max(math.sub(upper, lower), math.constant(0));
  return math.ceilDiv(keys, math.constant(size));
}

/// Returns the bounds of what the mask keeps of `whole`, relative to its first
/// position along `along`.
static MaskBounds getBounds(IndexMath &math, MaskEvaluator &whole,
                            Coordinate along, OpFoldResult origin) {
  MaskBounds bounds = whole.bounds(along);
  bounds.lower = math.sub(bounds.lower, origin);
  bounds.upper = math.sub(bounds.upper, origin);
  return bounds;
}

/// Returns the first position of the tile of `size` that `place` is in.
static OpFoldResult getTileOf(IndexMath &math, OpFoldResult place,
                              int64_t size) {
  OpFoldResult step = math.constant(size);
  return math.mul(math.floorDiv(place, step), step);
}

Value fovea::attn::countKeyTiles(OpBuilder &builder, OnlineAttentionOp pass,
                                 Value batch, int64_t size) {
  Location loc = pass.getLoc();
  IndexMath math(builder, loc);
  MaskBox box = boxOf(math, pass, getScoreSizes(builder, pass));
  OpFoldResult at = math.add(box.batch.first, batch);
  box.batch = {at, at};
  MaskEvaluator whole(pass.getMask(), box, builder, loc);
  MaskBounds bounds = getBounds(math, whole, Coordinate::Key, box.key.first);
  OpFoldResult lower = getTileOf(math, bounds.lower, size);
  return math.materialize(countTiles(math, lower, bounds.upper, size));
}

std::pair<OpFoldResult, OpFoldResult>
fovea::attn::getTilesOf(IndexMath &math, const KeyPart &part,
                        OpFoldResult lower, OpFoldResult upper, int64_t size) {
  if (part.size) {
    OpFoldResult keys = math.constant(part.size);
    OpFoldResult begin = math.add(getTileOf(math, lower, part.size),
                                  math.mul(part.number, keys));
    return {math.max(begin, lower), math.min(math.add(begin, keys), upper)};
  }
  OpFoldResult step = math.constant(size);
  OpFoldResult tiles = countTiles(math, lower, upper, size);
  OpFoldResult each = math.narrowDiv(tiles, part.count);
  OpFoldResult left = math.sub(tiles, math.mul(each, part.count));
  auto getPlace = [&](OpFoldResult number) {
    OpFoldResult before =
        math.add(math.mul(each, number), math.min(number, left));
    return math.add(lower, math.mul(before, step));
  };
  return {getPlace(part.number),
          getPlace(math.add(part.number, math.constant(1)))};
}

/// Columns of captured tensors of any type in 16 bytes.
static constexpr int64_t kCaptureColumns = 16;

static bool hasCaptureTiles(OnlineAttentionOp pass) {
  ScheduleAttr schedule = pass.getScheduleAttr();
  return schedule && schedule.getCaptures() == Captures::Tiled;
}

/// Backward passes read captured tensors element by element.
static bool hasCaptureTiles(OnlineBackwardOp) { return false; }

/// Gives `pass` the ends of the keys that the parts of a tile's rows see, if
/// tables tell them apart.
static void setEnds(RewriterBase &rewriter, OnlineAttentionOp pass,
                    const MaskBox &box, const MaskTables &tables) {
  if (tables.getNumParts() == 1)
    return;
  SmallVector<Value> ends;
  IndexMath math(rewriter, pass.getLoc());
  Region &mask = pass.getMask();
  for (int64_t part = 0; part < tables.getNumParts(); ++part) {
    OpFoldResult before = math.constant(part * tables.getRowsOfPart());
    OpFoldResult begin = math.add(box.row.first, before);
    OpFoldResult hasRows = math.lessEqual(begin, box.row.last);
    MaskBox own = box;
    own.row.first = math.min(begin, box.row.last);
    own.row.last =
        math.min(math.add(begin, math.constant(tables.getRowsOfPart() - 1)),
                 box.row.last);
    MaskEvaluator evaluator(mask, own, rewriter, pass.getLoc());
    evaluator.setLookup([&](Value value, IndexMath &inner) {
      return tables.lookup(
          mask, value, inner,
          {box.batch.first, box.head.first, box.row.first, box.key.first},
          part);
    });
    OpFoldResult end = evaluator.bounds(Coordinate::Key).upper;
    ends.push_back(
        math.materialize(math.select(hasRows, end, math.constant(0))));
  }
  pass.getEndsMutable().assign(ends);
}

/// Backward passes have no tables of parts.
static void setEnds(RewriterBase &, OnlineBackwardOp, const MaskBox &,
                    const MaskTables &) {}

template <typename OpTy>
static FailureOr<MaskedLoopInfo>
tile(RewriterBase &rewriter, OpTy pass, Coordinate along, int64_t tileSize,
     const MaskTables &tables, bool cutsTiles, std::optional<KeyPart> part = {},
     bool fromFirst = false, std::optional<Span> rows = {}) {
  Location loc = pass.getLoc();
  Region &mask = pass.getMask();
  MaskedLoopInfo info;
  info.hasMask = !mask.empty();
  rewriter.setInsertionPoint(pass);
  SmallVector<OpFoldResult> sizes = getScoreSizes(rewriter, pass);
  IndexMath math(rewriter, loc);
  MaskBox box = boxOf(math, pass, sizes);
  bool isAlongKeys = along == Coordinate::Key;
  // The last dimensions of the iteration domain are queries and keys.
  unsigned dim = pass.getLoopIteratorTypes().size() - (isAlongKeys ? 1 : 2);

  // Coordinates of the whole attention; the pass may begin at a later one.
  std::unique_ptr<MaskEvaluator> whole;
  OpFoldResult origin = box[along].first;
  OpFoldResult lower = math.constant(0),
               size = sizes[static_cast<unsigned>(along)], upper = size;
  std::optional<OpFoldResult> first;
  bool isComplete = false;
  auto lookUpAt = [&](OpFoldResult row, OpFoldResult key) {
    return [&mask, &tables, &box, row, key](Value value, IndexMath &math) {
      return tables.lookup(mask, value, math,
                           {box.batch.first, box.head.first, row, key});
    };
  };
  if (info.hasMask) {
    whole = std::make_unique<MaskEvaluator>(mask, box, rewriter, loc);
    auto lookUp = lookUpAt(box.row.first, box.key.first);
    whole->setLookup([&mask, along, lookUp](
                         Value value, IndexMath &math) -> std::optional<Span> {
      if (coordinatesOf(mask, value) & bitOf(along))
        return std::nullopt;
      return lookUp(value, math);
    });
    // What tiles in the loop share is computed in front of it.
    MaskBounds bounds = getBounds(math, *whole, along, origin);
    if (rows) {
      MaskBox ofAll = box;
      ofAll.row = *rows;
      MaskEvaluator all(mask, ofAll, rewriter, loc);
      bounds = getBounds(math, all, along, origin);
    }
    info.isExact = bounds.exact;
    // What tables hold may be any number.
    lower = bounds.lower;
    if (tables.size() && !IndexMath::constantOf(lower))
      lower = math.min(lower, size);
    if (!fromFirst)
      lower = getTileOf(math, lower, tileSize);
    upper = bounds.upper;
    // Absent keys, before the first one, are not read either.
    isComplete = cutsTiles && isAlongKeys && bounds.complete;
    if (isComplete)
      first = bounds.lower;
    else if (isAlongKeys && !fromFirst && (first = whole->presentKeys().first))
      first = math.sub(*first, origin);
    // Tiles of captured tensors are copied from multiples of 16 bytes on. What
    // tables say of absent keys readers of the tile do not know.
    if (first && hasCaptureTiles(pass) && !isComplete && !tables.size())
      first = getTileOf(math, *first, kCaptureColumns);
  }

  if (info.hasMask && isAlongKeys)
    setEnds(rewriter, pass, box, tables);
  OpFoldResult begin = lower, end = upper;
  if (part)
    std::tie(begin, end) = getTilesOf(math, *part, lower, upper, tileSize);
  SmallVector<Value> inits(pass.getDpsInits());
  auto loop = scf::ForOp::create(
      rewriter, loc, math.materialize(begin), math.materialize(end),
      math.materialize(math.constant(tileSize)), inits);
  rewriter.setInsertionPointToStart(loop.getBody());
  // Keys behind the upper bound may be absent; rows behind it exist.
  Value at = loop.getInductionVar();
  auto [place, extent] =
      fromFirst ? TileSpan{at, countRest(rewriter, loc, at, tileSize, upper)}
                : clipTile(rewriter, loc, at, tileSize, first,
                           isAlongKeys ? upper : size);

  Truth truth{math.boolean(true), math.boolean(true)};
  IndexMath inner(rewriter, loc);
  if (info.hasMask && !isComplete) {
    Span span = spanOf(inner, inner.add(origin, place), extent);
    MaskEvaluator part(*whole, span, rewriter);
    part.setLookup(lookUpAt(span.first, span.first));
    truth = part.evaluate();
    if (info.isExact)
      truth.any = inner.boolean(true);
  }

  FailureOr<SmallVector<Value>> results;
  if (IndexMath::isTrue(truth.any)) {
    results = emitTile(rewriter, pass, loop, dim, place, extent, truth);
  } else {
    auto branch = scf::IfOp::create(rewriter, loc, TypeRange(ValueRange(inits)),
                                    inner.materialize(truth.any, true),
                                    /*withElseRegion=*/true);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    results = emitTile(rewriter, pass, loop, dim, place, extent, truth);
    if (succeeded(results)) {
      rewriter.setInsertionPointToEnd(branch.thenBlock());
      scf::YieldOp::create(rewriter, loc, *results);
      rewriter.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(rewriter, loc, loop.getRegionIterArgs());
      results = llvm::to_vector_of<Value>(branch.getResults());
      rewriter.setInsertionPointAfter(branch);
    }
  }
  if (failed(results))
    return failure();
  rewriter.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(rewriter, loc, *results);
  rewriter.replaceOp(pass, loop.getResults());
  return info;
}

FailureOr<MaskedLoopInfo>
fovea::attn::tileByMask(RewriterBase &rewriter, OnlineAttentionOp pass,
                        int64_t size, const MaskTables &tables, bool cutsTiles,
                        std::optional<KeyPart> part, bool fromFirst,
                        std::optional<Span> rows) {
  return tile(rewriter, pass, Coordinate::Key, size, tables, cutsTiles, part,
              fromFirst, rows);
}

FailureOr<MaskedLoopInfo>
fovea::attn::tileByMask(RewriterBase &rewriter, OnlineBackwardOp pass,
                        Coordinate along, int64_t size,
                        const MaskTables &tables, bool cutsTiles) {
  return tile(rewriter, pass, along, size, tables, cutsTiles);
}
