//===- TileBackward.cpp - Tiles of the backward pass ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBackward.h"

#include "fovea/Dialect/Attn/IR/Coordinates.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

using Fold = OpFoldResult;

namespace {
/// Dimensions of the iteration domain of attn.online_backward.
enum Dim { Batch, KvHead, Member, Row, Key, NumDims };

/// A part of the iteration domain.
struct Part {
  SmallVector<Fold> offsets, sizes;
};

class BackwardTiling {
public:
  BackwardTiling(RewriterBase &rewriter, OnlineBackwardOp op)
      : rewriter(rewriter), op(op), loc(op.getLoc()),
        schedule(op.getScheduleAttr()), gradients(schedule.getGradients()),
        isGpu(gradients.isParallel(Coordinate::Key)),
        zero(rewriter.getIndexAttr(0)), one(rewriter.getIndexAttr(1)) {}

  FailureOr<TiledBackward> run();

private:
  /// A level of work items: a share of the queries, a batch, a head of keys, or
  /// a tile of keys.
  struct Level {
    Dim dim;
    Fold count; ///< Its number of items.
    Value index;
  };
  /// A sum that the op adds to.
  struct Sum {
    Value init;
    Fold startsAs; ///< The number that fills `init`, or null.
    /// The levels in whose items others add to the same elements.
    SmallVector<unsigned> shared;
    bool coversAll; ///< True if the items' parts are all of it.
    /// True if items add to it in parallel. On a GPU, where an item never has
    /// all gradients of its queries at once, they are always added.
    bool isAdded;
  };

  Value value(Fold index) {
    return getValueOrCreateConstantIndexOp(rewriter, loc, index);
  }
  IndexMath math() { return IndexMath(rewriter, loc); }
  void addLevels();
  Fold countShares();
  void addSums();
  FailureOr<SmallVector<Value>> emitItems(ValueRange outs);
  SmallVector<Value> createOutputs();
  Part getPart();
  FailureOr<OnlineBackwardOp> emitItem(ValueRange outs);
  void combine(ValueRange results, ValueRange outs);
  LogicalResult tileItem(OnlineBackwardOp item);
  FailureOr<OnlineBackwardOp> emitLoop(OnlineBackwardOp pass, Dim dim,
                                       int64_t step);
  Value addParts(Value parts, const Sum &sum);

  Value slice(Value tensor, ArrayRef<Fold> offsets, ArrayRef<Fold> sizes,
              size_t rank);
  Value fill(Value scalar, Value tensor) {
    return linalg::FillOp::create(rewriter, loc, scalar, tensor).getResult(0);
  }
  Value getZero(Value tensor) {
    auto type = cast<FloatType>(getElementTypeOrSelf(tensor));
    return arith::ConstantOp::create(rewriter, loc,
                                     rewriter.getFloatAttr(type, 0.0));
  }
  /// Returns the place of `part` in the tensor that holds the parts of all
  /// items that share `sum`.
  Part getOwnPlace(const Sum &sum, Part part);

  RewriterBase &rewriter;
  OnlineBackwardOp op;
  Location loc;
  ScheduleAttr schedule;
  GradientsAttr gradients;
  bool isGpu;
  Fold zero, one;
  SmallVector<Fold> domain;
  MaskTables tables;
  MaskedLoopInfo info;
  /// Levels of the parallel loop, and of loops around it.
  SmallVector<Level> levels, outer;
  SmallVector<Sum> sums;
  /// The part of the item, and its places in the sums.
  Part item;
  SmallVector<Part> places;
  scf::ForallOp forall;
};
} // namespace

//===----------------------------------------------------------------------===//
// Work items
//===----------------------------------------------------------------------===//

/// Returns the number of shares into which the queries of a head are cut, so
/// that there are enough work items; at most the number of tiles.
Fold BackwardTiling::countShares() {
  if (gradients.getItems() == 1)
    return one;
  IndexMath m = math();
  Fold items = one;
  for (const Level &level : levels)
    items = m.mul(items, level.count);
  Fold wanted = m.ceilDiv(m.constant(gradients.getItems()), m.max(items, one));
  if (getConstantIntValue(wanted) == 1)
    return one;
  Fold tiles = m.ceilDiv(domain[Row], m.constant(schedule.getQueryTile()));
  return m.max(m.min(wanted, tiles), one);
}

void BackwardTiling::addLevels() {
  for (auto [coordinate, dim] :
       {std::pair(Coordinate::Batch, Batch), {Coordinate::Head, KvHead}}) {
    Level level = {dim, domain[dim], {}};
    if (gradients.isParallel(coordinate))
      levels.push_back(level);
    else if (isGpu)
      outer.push_back(level);
  }
  if (isGpu) {
    IndexMath m = math();
    levels.push_back(
        {Key, m.ceilDiv(domain[Key], m.constant(schedule.getKeyTile())), {}});
    return;
  }
  Fold shares = countShares();
  if (getConstantIntValue(shares) != 1)
    levels.insert(levels.begin(), {Row, shares, {}});
}

void BackwardTiling::addSums() {
  // Items of a level add to different parts of a sum if their tiles lie in
  // different parts.
  auto isCutBy = [&](unsigned number, Dim dim) {
    if (number == 0)
      return dim != Key;
    if (number < 3)
      return dim != Row;
    Coordinate coordinates[] = {Coordinate::Batch, Coordinate::Head,
                                Coordinate::Head, Coordinate::Row,
                                Coordinate::Key};
    return llvm::is_contained(
        getCaptureAxes(op.getCaptures()[number - 3], op.getScore()),
        std::optional(coordinates[dim]));
  };
  for (auto [number, init] : llvm::enumerate(op.getDpsInits())) {
    Sum sum = {init, {}, {}, /*coversAll=*/number < 3, isGpu && number == 0};
    if (auto filled = init.getDefiningOp<linalg::FillOp>())
      sum.startsAs = filled.getInputs().front();
    for (auto [place, level] : llvm::enumerate(levels))
      if (getConstantIntValue(level.count) != 1 && !isCutBy(number, level.dim))
        sum.shared.push_back(place);
    sum.isAdded |= isGpu && !sum.shared.empty();
    sums.push_back(std::move(sum));
  }
}

/// Returns the tensors that the items write: the sums or, on a host, a part for
/// each item of those that items share.
SmallVector<Value> BackwardTiling::createOutputs() {
  SmallVector<Value> outs;
  for (const Sum &sum : sums) {
    SmallVector<Fold> shape = tensor::getMixedSizes(rewriter, loc, sum.init);
    bool isApart = !isGpu && !sum.shared.empty();
    if (isApart)
      for (unsigned place : llvm::reverse(sum.shared))
        shape.insert(shape.begin(), levels[place].count);
    bool startsInItems =
        sum.coversAll && !sum.isAdded && (isApart || sum.startsAs);
    if (!isApart && !startsInItems) {
      outs.push_back(sum.init);
      continue;
    }
    Value empty = tensor::EmptyOp::create(rewriter, loc, shape,
                                          getElementTypeOrSelf(sum.init));
    outs.push_back(startsInItems ? empty : fill(getZero(empty), empty));
  }
  return outs;
}

/// Returns the part of the iteration domain that the indices of the levels
/// name.
Part BackwardTiling::getPart() {
  Part part = {SmallVector<Fold>(NumDims, zero), domain};
  IndexMath m = math();
  for (const Level &level : llvm::concat<const Level>(outer, levels)) {
    Fold &offset = part.offsets[level.dim], &size = part.sizes[level.dim];
    if (level.dim == Key) {
      // The loop's step is the tile.
      offset = level.index;
      size = clipTile(rewriter, loc, level.index, schedule.getKeyTile(),
                      /*first=*/std::nullopt, domain[Key])
                 .size;
    } else if (level.dim == Row) {
      // The last queries first: a causal mask leaves them the most keys.
      Fold tile = m.constant(schedule.getQueryTile());
      Fold rows =
          m.mul(m.ceilDiv(m.ceilDiv(domain[Row], tile), level.count), tile);
      Fold place = m.sub(m.sub(level.count, one), Fold(level.index));
      offset = m.min(m.mul(place, rows), domain[Row]);
      size = m.sub(m.min(m.add(offset, rows), domain[Row]), offset);
    } else {
      offset = level.index;
      size = one;
    }
  }
  return part;
}

Part BackwardTiling::getOwnPlace(const Sum &sum, Part part) {
  if (isGpu)
    return part;
  for (unsigned place : llvm::reverse(sum.shared)) {
    part.offsets.insert(part.offsets.begin(), levels[place].index);
    part.sizes.insert(part.sizes.begin(), one);
  }
  return part;
}

/// Emits the op of one work item, with its own parts of the sums.
FailureOr<OnlineBackwardOp> BackwardTiling::emitItem(ValueRange outs) {
  item = getPart();
  FailureOr<TilingResult> tiled =
      op.getTiledImplementation(rewriter, item.offsets, item.sizes);
  if (failed(tiled))
    return failure();
  auto pass = cast<OnlineBackwardOp>(tiled->tiledOps.front());
  rewriter.setInsertionPoint(pass);
  for (auto [number, init, sum, out] :
       llvm::enumerate(pass.getDpsInitsMutable(), sums, outs)) {
    Part place;
    if (failed(op.getResultTilePosition(rewriter, number, item.offsets,
                                        item.sizes, place.offsets,
                                        place.sizes)))
      return failure();
    Value part;
    if (sum.isAdded) {
      Value empty = tensor::EmptyOp::create(rewriter, loc, place.sizes,
                                            getElementTypeOrSelf(out));
      part = fill(getZero(empty), empty);
    } else {
      Part own = getOwnPlace(sum, place);
      part = slice(out, own.offsets, own.sizes, place.sizes.size());
      if (!sum.shared.empty() && sum.coversAll)
        part = fill(getZero(out), part);
      else if (sum.coversAll && sum.startsAs)
        part = fill(cast<Value>(sum.startsAs), part);
    }
    init.set(part);
    pass->getResult(number).setType(part.getType());
    places.push_back(std::move(place));
  }
  return pass;
}

/// Writes the results of an item, or adds them.
void BackwardTiling::combine(ValueRange results, ValueRange outs) {
  rewriter.setInsertionPointToStart(forall.getTerminator().getBody());
  for (auto [sum, result, out, place] :
       llvm::zip_equal(sums, results, outs, places)) {
    if (sum.isAdded) {
      ParallelAddSliceOp::create(rewriter, loc, result, out, place.offsets,
                                 place.sizes);
      continue;
    }
    Part own = getOwnPlace(sum, place);
    tensor::ParallelInsertSliceOp::create(
        rewriter, loc, result, out, own.offsets, own.sizes,
        SmallVector<Fold>(own.offsets.size(), one));
  }
}

/// Emits the parallel loop and returns its results.
FailureOr<SmallVector<Value>> BackwardTiling::emitItems(ValueRange outs) {
  SmallVector<Fold> lower, upper, step;
  for (const Level &level : levels) {
    lower.push_back(zero);
    upper.push_back(level.dim == Key ? domain[Key] : level.count);
    step.push_back(level.dim == Key
                       ? Fold(rewriter.getIndexAttr(schedule.getKeyTile()))
                       : one);
  }
  // Without a level there is one work item.
  if (levels.empty()) {
    lower.push_back(zero);
    upper.push_back(one);
    step.push_back(one);
  }
  // A loop that is mapped to blocks stays one where it has a single iteration,
  // which adds to a result.
  SmallVector<Attribute> blocks;
  for (size_t dim = levels.size(); isGpu && dim-- > 0;)
    blocks.push_back(gpu::GPUBlockMappingAttr::get(
        rewriter.getContext(), static_cast<gpu::MappingId>(dim)));
  forall = scf::ForallOp::create(
      rewriter, loc, lower, upper, step, outs,
      isGpu ? std::optional(rewriter.getArrayAttr(blocks)) : std::nullopt);
  for (auto [level, index] : llvm::zip(levels, forall.getInductionVars()))
    level.index = index;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(forall.getTerminator());
  FailureOr<OnlineBackwardOp> pass = emitItem(forall.getRegionIterArgs());
  if (failed(pass))
    return failure();
  combine(pass->getResults(), forall.getRegionIterArgs());
  if (failed(tileItem(*pass)))
    return failure();
  return SmallVector<Value>(forall.getResults());
}

FailureOr<TiledBackward> BackwardTiling::run() {
  rewriter.setInsertionPoint(op);
  domain = llvm::map_to_vector(op.getIterationDomain(rewriter),
                               [](Range range) { return range.size; });
  // Tables hold in the coordinates of the whole.
  if (!op.getMask().empty() && op.getAt().empty())
    tables =
        MaskTables(rewriter, loc, op.getMask(), getScoreSizes(rewriter, op),
                   schedule.getQueryTile(), schedule.getKeyTile());
  addLevels();
  addSums();

  SmallVector<Value> outs = createOutputs();
  SmallVector<scf::ForOp> loops;
  for (Level &level : outer) {
    loops.push_back(scf::ForOp::create(rewriter, loc, value(zero),
                                       value(level.count), value(one), outs));
    level.index = loops.back().getInductionVar();
    outs = llvm::to_vector_of<Value>(loops.back().getRegionIterArgs());
    rewriter.setInsertionPointToStart(loops.back().getBody());
  }
  FailureOr<SmallVector<Value>> results = emitItems(outs);
  if (failed(results))
    return failure();
  rewriter.setInsertionPointAfter(forall);
  for (scf::ForOp loop : llvm::reverse(loops)) {
    scf::YieldOp::create(rewriter, loc, *results);
    results = llvm::to_vector_of<Value>(loop.getResults());
    rewriter.setInsertionPointAfter(loop);
  }
  if (!isGpu)
    for (auto [result, sum] : llvm::zip_equal(*results, sums))
      if (!sum.shared.empty())
        result = addParts(result, sum);
  rewriter.replaceOp(op, *results);
  return TiledBackward{forall, info, tables.size()};
}

/// Returns the initial value of `sum` plus the parts that work items have
/// apart, in the order of the items.
Value BackwardTiling::addParts(Value parts, const Sum &sum) {
  SmallVector<Fold> counts;
  IndexMath outside = math();
  Fold count = one;
  for (unsigned place : sum.shared) {
    counts.push_back(levels[place].count);
    count = outside.mul(count, counts.back());
  }
  SmallVector<Fold> shape = tensor::getMixedSizes(rewriter, loc, sum.init);
  auto loop = scf::ForOp::create(rewriter, loc, value(zero), value(count),
                                 value(one), sum.init);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  IndexMath m = math();
  SmallVector<Fold> offsets(shape.size(), zero), sizes = shape;
  Fold rest = loop.getInductionVar();
  for (Fold each : llvm::reverse(counts)) {
    Fold index = rest;
    if (sizes.size() + 1 < shape.size() + counts.size()) {
      rest = m.floorDiv(rest, each);
      index = m.sub(index, m.mul(rest, each));
    }
    offsets.insert(offsets.begin(), index);
    sizes.insert(sizes.begin(), one);
  }
  Value part = slice(parts, offsets, sizes, shape.size());
  Value running = loop.getRegionIterArg(0);
  AffineMap identity = rewriter.getMultiDimIdentityMap(shape.size());
  SmallVector<utils::IteratorType> iterators(shape.size(),
                                             utils::IteratorType::parallel);
  auto add = [](OpBuilder &b, Location l, ValueRange in) {
    Value added = arith::AddFOp::create(b, l, in[1], in[0]);
    linalg::YieldOp::create(b, l, added);
  };
  auto sumOf = linalg::GenericOp::create(
      rewriter, loc, running.getType(), part, running,
      ArrayRef<AffineMap>{identity, identity}, iterators, add);
  scf::YieldOp::create(rewriter, loc, sumOf.getResults());
  return loop.getResult(0);
}

/// Returns a part of a tensor; drops leading dimensions, so that `rank` are
/// left.
Value BackwardTiling::slice(Value tensor, ArrayRef<Fold> offsets,
                            ArrayRef<Fold> sizes, size_t rank) {
  SmallVector<Fold> strides(offsets.size(), one);
  SmallVector<int64_t> shape;
  for (Fold size : sizes.take_back(rank))
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto type = cast<RankedTensorType>(tensor.getType()).clone(shape);
  return tensor::ExtractSliceOp::create(rewriter, loc, type, tensor, offsets,
                                        sizes, strides);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Cuts `pass` into a loop along `dim` in steps of `step`, whose running values
/// are the sums. Returns the op in the loop.
FailureOr<OnlineBackwardOp> BackwardTiling::emitLoop(OnlineBackwardOp pass,
                                                     Dim dim, int64_t step) {
  rewriter.setInsertionPoint(pass);
  SmallVector<Range> ranges = pass.getIterationDomain(rewriter);
  Fold end = ranges[dim].size;
  if (step == 1 && getConstantIntValue(end) == 1)
    return pass;
  auto loop = scf::ForOp::create(rewriter, loc, value(zero), value(end),
                                 value(rewriter.getIndexAttr(step)),
                                 SmallVector<Value>(pass.getDpsInits()));
  for (auto [init, running] :
       llvm::zip_equal(pass.getDpsInitsMutable(), loop.getRegionIterArgs()))
    init.set(running);
  rewriter.replaceAllUsesWith(pass.getResults(), loop.getResults());
  rewriter.moveOpBefore(pass, loop.getBody(), loop.getBody()->end());
  rewriter.setInsertionPoint(pass);
  SmallVector<Fold> offsets(NumDims, zero), sizes;
  for (Range range : pass.getIterationDomain(rewriter))
    sizes.push_back(range.size);
  offsets[dim] = loop.getInductionVar();
  sizes[dim] = step == 1 ? one
                         : clipTile(rewriter, loc, loop.getInductionVar(), step,
                                    /*first=*/std::nullopt, end)
                               .size;
  FailureOr<TilingResult> tiled =
      pass.getTiledImplementation(rewriter, offsets, sizes);
  if (failed(tiled))
    return failure();
  rewriter.eraseOp(pass);
  auto tile = cast<OnlineBackwardOp>(tiled->tiledOps.front());
  rewriter.setInsertionPointAfter(tile);
  SmallVector<Value> next = insertTiles(rewriter, tile);
  scf::YieldOp::create(rewriter, loc, next);
  return tile;
}

/// Cuts the op of a work item into tiles.
LogicalResult BackwardTiling::tileItem(OnlineBackwardOp pass) {
  SmallVector<std::pair<Dim, int64_t>> loops = {
      {Batch, 1}, {KvHead, 1}, {Member, 1}};
  if (!isGpu)
    loops.push_back({Row, schedule.getQueryTile()});
  FailureOr<OnlineBackwardOp> tile = pass;
  for (auto [dim, step] : loops) {
    tile = emitLoop(*tile, dim, step);
    if (failed(tile))
      return failure();
  }
  FailureOr<MaskedLoopInfo> masked = tileByMask(
      rewriter, *tile, isGpu ? Coordinate::Row : Coordinate::Key,
      isGpu ? schedule.getQueryTile() : schedule.getKeyTile(), tables,
      /*cutsTiles=*/!isGpu);
  if (failed(masked))
    return failure();
  info = *masked;
  return success();
}

FailureOr<TiledBackward> fovea::attn::tileBackward(RewriterBase &rewriter,
                                                   OnlineBackwardOp op) {
  return BackwardTiling(rewriter, op).run();
}
