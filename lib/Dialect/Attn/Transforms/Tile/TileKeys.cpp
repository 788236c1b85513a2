//===- TileKeys.cpp - The loop over tiles of keys -------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileKeys.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

static SmallVector<OpFoldResult> domainOf(OpBuilder &builder,
                                          OnlineAttentionOp pass) {
  return llvm::map_to_vector(pass.getIterationDomain(builder),
                             [](Range range) { return range.size; });
}

/// Returns `size` coordinates from `first` on.
static Span spanOf(IndexMath &math, OpFoldResult first, OpFoldResult size) {
  OpFoldResult last = math.sub(math.add(first, size), math.constant(1));
  return {first, IndexMath::constantOf(size) == 1 ? first : last};
}

/// Returns the part of the score matrix that `pass` computes.
static MaskBox boxOf(IndexMath &math, OnlineAttentionOp pass,
                     ArrayRef<OpFoldResult> sizes) {
  SmallVector<Span> spans;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    OpFoldResult first = math.constant(0);
    if (!pass.getAt().empty())
      first = getAsOpFoldResult(pass.getAt()[dim]);
    spans.push_back(spanOf(math, first, size));
  }
  return {spans[0], spans[1], spans[2], spans[3]};
}

/// Emits one tile of keys, `size` from `key` on, into the body of `loop`, with
/// the loop's running values as destinations.
static FailureOr<SmallVector<Value>>
emitTile(RewriterBase &rewriter, OnlineAttentionOp pass, scf::ForOp loop,
         OpFoldResult key, OpFoldResult size, const Truth &truth) {
  // Replaces only the destinations: queries of zeros may be the same tensor as
  // the initial sums.
  auto whole = cast<OnlineAttentionOp>(rewriter.clone(*pass.getOperation()));
  whole.getDpsInitsMutable().assign(loop.getRegionIterArgs());
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(whole);
  Attribute zero = rewriter.getIndexAttr(0);
  SmallVector<OpFoldResult> offsets{zero, zero, zero, key};
  SmallVector<OpFoldResult> sizes = domainOf(rewriter, whole);
  sizes[3] = size;
  FailureOr<TilingResult> tiled =
      whole.getTiledImplementation(rewriter, offsets, sizes);
  rewriter.eraseOp(whole);
  if (failed(tiled))
    return failure();

  auto tile = cast<OnlineAttentionOp>(tiled->tiledOps.front());
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
  return tiled->tiledValues;
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
  OpFoldResult left = affine::makeComposedFoldedAffineMin(
      builder, loc,
      AffineMap::get(1, 1, {getAffineConstantExpr(size, context), s0 - d0},
                     context),
      {OpFoldResult(place), end});
  return {place, left};
}

FailureOr<KeyLoopInfo> fovea::attn::tileKeys(RewriterBase &rewriter,
                                             OnlineAttentionOp pass,
                                             int64_t keyTile,
                                             const MaskTables &tables) {
  Location loc = pass.getLoc();
  Region &mask = pass.getMask();
  KeyLoopInfo info;
  info.hasMask = !mask.empty();
  rewriter.setInsertionPoint(pass);
  SmallVector<OpFoldResult> sizes = domainOf(rewriter, pass);
  IndexMath math(rewriter, loc);
  MaskBox box = boxOf(math, pass, sizes);

  // Coordinates of the whole attention; the pass may begin at a later key.
  std::unique_ptr<MaskEvaluator> rows;
  OpFoldResult origin = box.key.first;
  OpFoldResult lower = math.constant(0), upper = sizes[3];
  std::optional<OpFoldResult> present;
  if (info.hasMask) {
    rows = std::make_unique<MaskEvaluator>(mask, box, rewriter, loc);
    rows->setLookup([&](Value value, IndexMath &math) -> std::optional<Span> {
      if (coordinatesOf(mask, value) & bitOf(Coordinate::Key))
        return std::nullopt;
      return tables.lookup(
          mask, value, math,
          {box.batch.first, box.head.first, box.row.first, OpFoldResult()});
    });
    MaskBounds bounds = rows->bounds(Coordinate::Key);
    info.isExact = bounds.exact;
    OpFoldResult step = math.constant(keyTile);
    lower = math.mul(math.floorDiv(math.sub(bounds.lower, origin), step), step);
    upper = math.sub(bounds.upper, origin);
    // Absent keys before the first one are not read either.
    if ((present = rows->presentKeys().first))
      present = math.sub(*present, origin);
  }

  SmallVector<Value> inits(pass.getDpsInits());
  auto loop = scf::ForOp::create(
      rewriter, loc, math.materialize(lower), math.materialize(upper),
      math.materialize(math.constant(keyTile)), inits);
  rewriter.setInsertionPointToStart(loop.getBody());
  auto [key, size] =
      clipTile(rewriter, loc, loop.getInductionVar(), keyTile, present, upper);

  Truth truth{math.boolean(true), math.boolean(true)};
  IndexMath inner(rewriter, loc);
  if (info.hasMask) {
    Span keys = spanOf(inner, inner.add(origin, key), size);
    MaskEvaluator tile(*rows, keys, rewriter);
    tile.setLookup([&](Value value, IndexMath &math) {
      return tables.lookup(
          mask, value, math,
          {box.batch.first, box.head.first, OpFoldResult(), keys.first});
    });
    truth = tile.evaluate();
    if (info.isExact)
      truth.any = inner.boolean(true);
  }

  FailureOr<SmallVector<Value>> results;
  if (IndexMath::isTrue(truth.any)) {
    results = emitTile(rewriter, pass, loop, key, size, truth);
  } else {
    auto branch = scf::IfOp::create(rewriter, loc, TypeRange(ValueRange(inits)),
                                    inner.materialize(truth.any, true),
                                    /*withElseRegion=*/true);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    results = emitTile(rewriter, pass, loop, key, size, truth);
    if (succeeded(results)) {
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
