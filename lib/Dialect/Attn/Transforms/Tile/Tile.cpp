//===- Tile.cpp - attn-tile: loops over tiles of queries and keys ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBackward.h"
#include "TileByMask.h"
#include "TileConsumers.h"
#include "TileHeads.h"
#include "TileList.h"
#include "TilePacked.h"
#include "TileParts.h"
#include "TileProducers.h"
#include "TileSequences.h"
#include "TileTransposes.h"
#include "TileWork.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Dialect/Machine/IR/GpuArch.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/ViewLikeInterfaceUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/TilingInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#define DEBUG_TYPE "attn-tile"

using namespace mlir;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNTILE
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace fovea;
using namespace fovea::attn;

/// Returns the passes over keys that `finalize` ends, each after those that
/// read it.
static SmallVector<OnlineAttentionOp> passesOf(FinalizeOp finalize) {
  SetVector<Operation *> passes;
  SmallVector<Value> work(finalize->getOperands().take_front(3));
  while (!work.empty()) {
    auto pass = work.pop_back_val().getDefiningOp<OnlineAttentionOp>();
    if (pass && passes.insert(pass))
      llvm::append_range(work, pass.getDpsInits());
  }
  SmallVector<Operation *> sorted = passes.takeVector();
  computeTopologicalSorting(sorted);
  return llvm::map_to_vector(llvm::reverse(sorted), [](Operation *op) {
    return cast<OnlineAttentionOp>(op);
  });
}

/// Returns `wanted`, at most size `dim` of `value` where that is static, so
/// that a tile that covers a static dimension is static itself.
static int64_t tileOf(int64_t wanted, Value value, int64_t dim) {
  int64_t size = cast<ShapedType>(value.getType()).getDimSize(dim);
  return ShapedType::isDynamic(size) || size == 0 ? wanted
                                                  : std::min(wanted, size);
}

/// Returns true if dimension `dim` of `value` is known to be at most `bound`.
static bool isAtMost(Value value, int64_t dim, int64_t bound) {
  FailureOr<int64_t> size = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, {value, dim}, /*stopCondition=*/nullptr,
      /*closedUB=*/true);
  return succeeded(size) && *size <= bound;
}

/// Returns true if `root` ends the work on one tile in a parallel loop: it is
/// already tiled.
static bool isTile(FinalizeOp root) {
  if (!root->getParentOfType<scf::ForallOp>())
    return false;
  return llvm::all_of(passesOf(root), [&](OnlineAttentionOp pass) {
    ScheduleAttr schedule = pass.getScheduleAttr();
    return schedule && isAtMost(pass.getAcc(), 0, 1) &&
           isAtMost(pass.getAcc(), 1, 1) &&
           isAtMost(pass.getAcc(), 2, schedule.getQueryTile()) &&
           isAtMost(pass.getKey(), 2, schedule.getKeyTile());
  });
}

/// Returns true if `pass` is a tile already.
static bool isTile(OnlineBackwardOp pass) {
  ScheduleAttr schedule = pass.getScheduleAttr();
  return schedule && pass->getParentOfType<scf::ForallOp>() &&
         isAtMost(pass.getQuery(), 0, 1) && isAtMost(pass.getQuery(), 1, 1) &&
         isAtMost(pass.getQuery(), 2, schedule.getQueryTile()) &&
         isAtMost(pass.getKey(), 2, schedule.getKeyTile());
}

//===----------------------------------------------------------------------===//
// Tiles of queries
//===----------------------------------------------------------------------===//

/// Replaces `root` by a loop over its batches, heads and tiles of queries.
static FailureOr<scf::ForallOp> tileRows(RewriterBase &rewriter,
                                         FinalizeOp root, int64_t queryTile) {
  scf::SCFTilingOptions options;
  options.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
  options.setTileSizes({rewriter.getIndexAttr(1), rewriter.getIndexAttr(1),
                        rewriter.getIndexAttr(queryTile)});
  FailureOr<scf::SCFTilingResult> tiled =
      scf::tileUsingSCF(rewriter, root, options);
  if (failed(tiled))
    return failure();
  rewriter.replaceOp(root, tiled->replacements);
  return cast<scf::ForallOp>(tiled->loops.front());
}

/// Writes the results of `tile`, the work of an iteration of `forall`, to its
/// part of the loop's results: so many rows and columns from `first` on.
static void insertResults(RewriterBase &rewriter, scf::ForallOp forall,
                          FinalizeOp tile, ArrayRef<OpFoldResult> first,
                          OpFoldResult rows, OpFoldResult columns) {
  Location loc = tile.getLoc();
  OpFoldResult one = rewriter.getIndexAttr(1);
  SmallVector<OpFoldResult> extent(first.size(), one),
      strides(first.size(), one);
  extent[extent.size() - 2] = rows;
  extent.back() = columns;
  auto outs = forall.getRegionIterArgs().take_front(tile->getNumResults());
  for (auto [number, out] : llvm::enumerate(outs)) {
    // The first one alone has features.
    unsigned dropped = number ? 1 : 0;
    auto offsets = first.drop_back(dropped);
    auto shape = ArrayRef(extent).drop_back(dropped);
    auto unit = ArrayRef(strides).drop_back(dropped);
    rewriter.setInsertionPoint(tile);
    OpOperand &init = tile.getDpsInitsMutable()[number];
    init.set(tensor::ExtractSliceOp::create(
        rewriter, loc, cast<RankedTensorType>(init.get().getType()), out,
        offsets, shape, unit));
    rewriter.setInsertionPointToEnd(forall.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(
        rewriter, loc, tile->getResult(number), out, offsets, shape, unit);
  }
}

/// Writes the results of `tile`, one of so many `parts`, to those of the
/// results of `forall` which are of parts, its first ones, from `ofPart` on,
/// or, if it is the only part, to those behind them from `ofWhole` on: so many
/// rows and columns. To the others it writes no row.
static void insertPartOrWhole(RewriterBase &rewriter, scf::ForallOp forall,
                              FinalizeOp tile, OpFoldResult parts,
                              ArrayRef<OpFoldResult> ofPart,
                              ArrayRef<OpFoldResult> ofWhole, OpFoldResult rows,
                              OpFoldResult columns) {
  Location loc = tile.getLoc();
  OpFoldResult zero = rewriter.getIndexAttr(0), one = rewriter.getIndexAttr(1);
  ValueRange results = tile->getResults();
  rewriter.setInsertionPoint(tile);
  IndexMath math(rewriter, loc);
  Value isWhole = WorkList::isWhole(rewriter, loc, parts);
  OpFoldResult rowsOfPart = math.select(isWhole, math.constant(0), rows),
               rowsOfWhole = math.select(isWhole, rows, math.constant(0));
  rewriter.setInsertionPointAfter(tile);
  for (auto [number, out] : llvm::enumerate(forall.getRegionIterArgs())) {
    bool isOfPart = number < results.size();
    ValueRange terms = results.slice(number % results.size(), 1);
    auto element = cast<FloatType>(getElementTypeOrSelf(out));
    // The log-sum-exp of a whole is rounded once, as that of merged parts.
    if (!isOfPart && terms[0] == results[1])
      terms = results.drop_front();
    Value value = addTiles(rewriter, loc, terms, element);
    auto dims = cast<RankedTensorType>(value.getType()).getRank();
    SmallVector<OpFoldResult> extent = {
        one, one, isOfPart ? rowsOfPart : rowsOfWhole, columns};
    SmallVector<OpFoldResult> origin(dims, zero), strides(dims, one);
    extent.resize(dims);
    Value some = tensor::ExtractSliceOp::create(rewriter, loc, value, origin,
                                                extent, strides);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(forall.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(
        rewriter, loc, some, out,
        (isOfPart ? ofPart : ofWhole).take_front(dims), extent, strides);
  }
}

/// Replaces `root` by a loop over its batches, heads and `tiles` of at most
/// `queryTile` queries.
static FailureOr<scf::ForallOp> tileRowsBy(RewriterBase &rewriter,
                                           FinalizeOp root, int64_t queryTile,
                                           const RowTiles &tiles) {
  Location loc = root.getLoc();
  OpFoldResult zero = rewriter.getIndexAttr(0), one = rewriter.getIndexAttr(1);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, root.getAcc());
  auto forall = scf::ForallOp::create(
      rewriter, loc, ArrayRef<OpFoldResult>{sizes[0], sizes[1], tiles.count},
      root.getDpsInits(), /*mapping=*/std::nullopt);
  rewriter.setInsertionPointToStart(forall.getBody());
  SmallVector<Value> ivs = forall.getInductionVars();
  IndexMath math(rewriter, loc);
  auto [first, end] = tiles.getTile(math, ivs[2]);
  AffineExpr s0, s1;
  bindSymbols(rewriter.getContext(), s0, s1);
  OpFoldResult rows = affine::makeComposedFoldedAffineMin(
      rewriter, loc,
      AffineMap::get(0, 2, {rewriter.getAffineConstantExpr(queryTile), s1 - s0},
                     rewriter.getContext()),
      {first, end});
  SmallVector<OpFoldResult> place = {ivs[0], ivs[1], first};
  auto whole = cast<FinalizeOp>(rewriter.clone(*root.getOperation()));
  FailureOr<TilingResult> tiled =
      whole.getTiledImplementation(rewriter, place, {one, one, rows});
  if (failed(tiled))
    return failure();
  rewriter.eraseOp(whole);
  place.push_back(zero);
  insertResults(rewriter, forall, cast<FinalizeOp>(tiled->tiledOps.front()),
                place, rows, sizes[3]);
  rewriter.replaceOp(root, forall);
  return forall;
}

/// Replaces `root` by a loop over its batches, heads, tiles of queries and
/// parts of the keys, the items of `list`, whose results are merged. Sets
/// `part` to the part of an iteration, and `merging` to the loop that merges.
static FailureOr<scf::ForallOp> tileParts(RewriterBase &rewriter,
                                          FinalizeOp root, int64_t queryTile,
                                          const WorkList &list,
                                          std::optional<KeyPart> &part,
                                          scf::ForallOp &merging) {
  Location loc = root.getLoc();
  OpFoldResult zero = rewriter.getIndexAttr(0), one = rewriter.getIndexAttr(1),
               step = rewriter.getIndexAttr(queryTile);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, root.getAcc());
  // The workspace has a dimension of items for that of batches. Two numbers
  // have room for the logarithm of a sum beside large scores.
  constexpr unsigned kNumbers = 3;
  Type accumulation = getElementTypeOrSelf(root.getAcc());
  auto makeRoom = [&](ArrayRef<OpFoldResult> shape, unsigned number,
                      Type type) -> Value {
    return tensor::EmptyOp::create(rewriter, loc,
                                   shape.drop_back(number ? 1 : 0), type);
  };
  SmallVector<OpFoldResult> shape = sizes;
  shape.front() = list.getSize();
  SmallVector<Value> outs, tiles, wholes;
  for (unsigned number = 0; number < kNumbers; ++number) {
    outs.push_back(makeRoom(shape, number, accumulation));
    tiles.push_back(makeRoom(sizes, number, accumulation));
  }
  for (auto [number, result] : llvm::enumerate(root->getResults()))
    wholes.push_back(makeRoom(sizes, number, getElementTypeOrSelf(result)));
  if (list.mayBeWhole())
    llvm::append_range(outs, wholes);
  SmallVector<OpFoldResult> upper = {sizes[0], sizes[1], sizes[2]};
  list.addLoops(upper);
  SmallVector<OpFoldResult> lower(upper.size(), zero), steps(upper.size(), one);
  steps[2] = step;
  auto forall = scf::ForallOp::create(rewriter, loc, lower, upper, steps, outs,
                                      /*mapping=*/std::nullopt);

  rewriter.setInsertionPointToStart(forall.getBody());
  SmallVector<Value> ivs = forall.getInductionVars();
  WorkList::Item item = list.getItem(rewriter, loc, ivs);
  part = item.part;
  SmallVector<OpFoldResult> place = {item.batch, ivs[1], ivs[2]},
                            ofPart = {item.number, ivs[1], ivs[2], zero};
  // The first part has the state that rows begin from.
  Value when = root.getWhen();
  if (root.getInitLse()) {
    IndexMath inside(rewriter, loc);
    OpFoldResult isFirst = inside.less(item.part.number, inside.constant(1));
    if (when)
      isFirst = inside.logicalAnd(isFirst, when);
    when = inside.materialize(isFirst, /*isBoolean=*/true);
  }
  auto whole = FinalizeOp::create(rewriter, loc, ValueRange(tiles).getTypes(),
                                  root.getAcc(), root.getMax(), root.getSum(),
                                  root.getInitLse(), when, tiles[0], tiles[1],
                                  tiles[2], root.getNatural());
  AffineExpr d0 = rewriter.getAffineDimExpr(0),
             s0 = rewriter.getAffineSymbolExpr(0);
  OpFoldResult rows = step;
  if (std::optional<int64_t> known = getConstantIntValue(sizes[2]);
      !known || *known % queryTile)
    rows = affine::makeComposedFoldedAffineMin(
        rewriter, loc,
        AffineMap::get(1, 1,
                       {rewriter.getAffineConstantExpr(queryTile), s0 - d0},
                       rewriter.getContext()),
        {ivs[2], sizes[2]});
  FailureOr<TilingResult> tiled =
      whole.getTiledImplementation(rewriter, place, {one, one, rows});
  if (failed(tiled))
    return failure();
  rewriter.eraseOp(whole);

  // The tile is written to its part of the workspace, unless it is all.
  auto tile = cast<FinalizeOp>(tiled->tiledOps.front());
  place.push_back(zero);
  if (list.mayBeWhole())
    insertPartOrWhole(rewriter, forall, tile, item.part.count, ofPart, place,
                      rows, sizes[3]);
  else
    insertResults(rewriter, forall, tile, ofPart, rows, sizes[3]);
  rewriter.setInsertionPointAfter(forall);
  ValueRange results = forall.getResults();
  merging = list.merge(rewriter, root, results.take_front(kNumbers),
                       list.mayBeWhole() ? results.drop_front(kNumbers)
                                         : ValueRange(wholes));
  return forall;
}

/// Computes `pass` per tile of `loop`, for all slices of its results there.
static FailureOr<OnlineAttentionOp>
fusePass(RewriterBase &rewriter, OnlineAttentionOp pass, scf::ForallOp loop) {
  SmallVector<tensor::ExtractSliceOp> users;
  for (Operation *user : pass->getUsers())
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
        slice && slice->getBlock() == loop.getBody())
      users.push_back(slice);
  llvm::sort(users,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  tensor::ExtractSliceOp first = users.front();
  rewriter.setInsertionPoint(first);
  FailureOr<TilingResult> tile = pass.generateResultTileValue(
      rewriter, cast<OpResult>(first.getSource()).getResultNumber(),
      first.getMixedOffsets(), first.getMixedSizes());
  if (failed(tile))
    return failure();
  auto tiled = cast<OnlineAttentionOp>(tile->tiledOps.front());
  for (tensor::ExtractSliceOp slice : users)
    rewriter.replaceOp(
        slice,
        tiled->getResult(cast<OpResult>(slice.getSource()).getResultNumber()));
  return tiled;
}

/// Returns the tiles of the initial running values of `passes`. Gives other
/// readers copies of these slices: queries may be slices of the same tensor,
/// such as zeros.
static SmallVector<tensor::ExtractSliceOp>
slicesOfRunningValues(RewriterBase &rewriter,
                      ArrayRef<OnlineAttentionOp> passes) {
  SetVector<Operation *> slices;
  for (OnlineAttentionOp pass : passes)
    for (Value init : pass.getDpsInits())
      if (auto slice = init.getDefiningOp<tensor::ExtractSliceOp>())
        slices.insert(slice);
  for (Operation *slice : slices) {
    rewriter.setInsertionPoint(slice);
    Operation *read = nullptr;
    for (OpOperand &use : llvm::make_early_inc_range(slice->getUses())) {
      auto pass = dyn_cast<OnlineAttentionOp>(use.getOwner());
      if (pass && pass.isDpsInit(&use))
        continue;
      if (!read)
        read = rewriter.clone(*slice);
      use.set(read->getResult(0));
    }
  }
  return llvm::map_to_vector(slices, [](Operation *slice) {
    return cast<tensor::ExtractSliceOp>(slice);
  });
}

/// Returns the tiles of queries that `passes` read. Tiles of keys and values
/// are not included, since many tiles of queries read them.
static SmallVector<tensor::ExtractSliceOp>
slicesOfQueries(ArrayRef<OnlineAttentionOp> passes) {
  SetVector<Operation *> slices;
  for (OnlineAttentionOp pass : passes)
    if (auto slice = pass.getQuery().getDefiningOp<tensor::ExtractSliceOp>())
      slices.insert(slice);
  return llvm::map_to_vector(slices, [](Operation *slice) {
    return cast<tensor::ExtractSliceOp>(slice);
  });
}

/// Returns the first query of the cluster of blocks that has the tile of
/// `queries` from `iv` on: blocks side by side have tiles side by side.
static Value emitFirstOfCluster(RewriterBase &rewriter, scf::ForallOp forall,
                                Value iv, int64_t queries, int64_t blocks) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(forall.getBody());
  IndexMath math(rewriter, forall.getLoc());
  // That the block's number is divided shows what does not depend on its place
  // in the cluster.
  OpFoldResult number = math.truncDiv(iv, math.constant(queries));
  OpFoldResult cluster = math.truncDiv(number, math.constant(blocks));
  return math.materialize(math.mul(cluster, math.constant(queries * blocks)));
}

/// Hands clusters of tiles of queries out from the last one, each with its
/// tiles in order: `iv` runs through the tiles, and `first` is that of its
/// cluster, which takes `step` queries.
static void reverseClusters(RewriterBase &rewriter, scf::ForallOp forall,
                            Value iv, Value first, OpFoldResult size,
                            int64_t step) {
  rewriter.setInsertionPointAfterValue(first);
  IndexMath math(rewriter, forall.getLoc());
  OpFoldResult all = math.constant(step);
  OpFoldResult last =
      math.mul(math.sub(math.ceilDiv(size, all), math.constant(1)), all);
  Value reversed = math.materialize(math.sub(last, first));
  Value own = math.materialize(math.add(reversed, math.sub(iv, first)));
  auto isBehind = [&](OpOperand &use) {
    Operation *user = forall.getBody()->findAncestorOpInBlock(*use.getOwner());
    return own.getDefiningOp()->isBeforeInBlock(user);
  };
  rewriter.replaceUsesWithIf(iv, own, isBehind);
  rewriter.replaceUsesWithIf(first, reversed, isBehind);
}

/// Hands the tiles of queries out from the last one: `iv` runs through
/// multiples of `step` below `size`.
static void reverseTiles(RewriterBase &rewriter, scf::ForallOp forall, Value iv,
                         OpFoldResult size, int64_t step) {
  rewriter.setInsertionPointToStart(forall.getBody());
  AffineExpr d0 = rewriter.getAffineDimExpr(0),
             s0 = rewriter.getAffineSymbolExpr(0);
  AffineExpr last = (s0.ceilDiv(step) - 1) * step;
  OpFoldResult reversed = affine::makeComposedFoldedAffineApply(
      rewriter, forall.getLoc(), AffineMap::get(1, 1, last - d0), {iv, size});
  Value value =
      getValueOrCreateConstantIndexOp(rewriter, forall.getLoc(), reversed);
  rewriter.replaceUsesWithIf(iv, value, [&](OpOperand &use) {
    return use.getOwner() != value.getDefiningOp();
  });
}

/// Notes in the schedules of the passes in `forall` in which order tiles are
/// handed out.
static void setOrder(scf::ForallOp forall, WorkOrder order) {
  forall.walk([&](OnlineAttentionOp pass) {
    pass.setScheduleAttr(pass.getScheduleAttr().with({.order = order}));
  });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct AttnTile final : fovea::attn::impl::AttnTileBase<AttnTile> {
  using AttnTileBase::AttnTileBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    AttnTileBase::getDependentDialects(registry);
    linalg::registerTilingInterfaceExternalModels(registry);
  }

  void runOnOperation() override {
    if (failed(prepare()))
      return signalPassFailure();
    SmallVector<FinalizeOp> roots;
    getOperation()->walk([&](FinalizeOp op) {
      if (op.hasPureTensorSemantics() && !passesOf(op).empty() && !isTile(op))
        roots.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    SmallVector<OnlineBackwardOp> gradients;
    getOperation()->walk([&](OnlineBackwardOp op) {
      if (op.hasPureTensorSemantics() && !op.getPackedQuery() && !isTile(op))
        gradients.push_back(op);
    });
    for (FinalizeOp root : roots)
      if (failed(tile(rewriter, root)))
        return signalPassFailure();
    for (OnlineBackwardOp op : gradients)
      if (failed(tile(rewriter, op)))
        return signalPassFailure();
    if (failed(cleanUp(rewriter)))
      return signalPassFailure();

    // The loaded tiles are slices of whole tensors by now.
    unsigned count = 0;
    machine::TargetAttr target = machine::getTargetOrDefault(getOperation());
    for (const TiledLoop &tiled : std::exchange(loops, {}))
      count += fuseKeyProducers(
          rewriter, tiled.loop, tiled.keyReads,
          fuseProducers ? fuseKeys.getValue() : KeyFusion::Never, target);
    numKeyProducers += count;
    if (count && failed(cleanUp(rewriter)))
      signalPassFailure();
  }

  LogicalResult prepare();
  LogicalResult tile(RewriterBase &rewriter, FinalizeOp root);
  LogicalResult tile(RewriterBase &rewriter, OnlineBackwardOp op);
  void count(const MaskedLoopInfo &info, StringRef pass);
  LogicalResult cleanUp(RewriterBase &rewriter);

  struct TiledLoop {
    scf::ForallOp loop;
    double keyReads;
  };
  SmallVector<TiledLoop> loops;
};
} // namespace

/// Moves collapsed heads behind elementwise ops on the output, and takes sizes
/// from the operands of the ops that made a tensor.
LogicalResult AttnTile::prepare() {
  RewritePatternSet patterns(&getContext());
  if (fuseConsumers)
    populateCollapseOfOutputPatterns(patterns);
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  return applyPatternsGreedily(getOperation(), std::move(patterns));
}

LogicalResult AttnTile::tile(RewriterBase &rewriter, FinalizeOp root) {
  SmallVector<OnlineAttentionOp> passes = passesOf(root);
  OnlineAttentionOp last = passes.front();
  ScheduleAttr schedule = last.getScheduleAttr();
  if (!schedule)
    return last.emitOpError("has no schedule to tile it by: run "
                            "attn-select-schedule, or write `schedule = "
                            "#attn.schedule<...>`");
  if (root.getRest())
    return root.emitOpError(
        "has a rest already, as only tiles that are parts have");
  int64_t features =
      cast<RankedTensorType>(root.getOutput().getType()).getDimSize(3);
  if (features == 0)
    return last.emitOpError("expects values to have features, but they are ")
           << last.getValue().getType() << ": run attn-fold-empty before";
  int64_t queryTile = tileOf(schedule.getQueryTile(), root.getOutput(), 2);
  int64_t keyTile = tileOf(schedule.getKeyTile(), last.getKey(), 2);

  // The passes of one attention have the same mask. Tables hold in the
  // coordinates of the whole.
  OnlineAttentionOp first = passes.back();
  rewriter.setInsertionPoint(first);
  fovea::MaskTables tables;
  std::optional<RowTiles> rowTiles;
  if (!first.getMask().empty() && first.getAt().empty()) {
    SmallVector<OpFoldResult> sizes =
        llvm::map_to_vector(first.getIterationDomain(rewriter),
                            [](Range range) { return range.size; });
    if (schedule.getQueries() == QueryTiles::Sequences &&
        mayHaveSequences(first.getMask()))
      rowTiles = findSequenceTiles(rewriter, first, queryTile, keyTile);
    tables = fovea::MaskTables(rewriter, first.getLoc(), first.getMask(), sizes,
                               queryTile, keyTile, rowTiles);
  }
  numTables += tables.size();
  double keyReads = countKeyReads(last, queryTile);
  LDBG() << "attention at " << root.getLoc() << ": tiles of " << queryTile
         << " queries and " << keyTile << " keys by " << schedule << ", "
         << passes.size() << " passes over the keys, " << tables.size()
         << " tables for the mask";

  std::optional<WorkList> list;
  if (schedule.isSplit())
    list = WorkList::create(rewriter, last, keyTile, schedule);
  rewriter.setInsertionPoint(root);
  OpFoldResult queries =
      tensor::getMixedSize(rewriter, root.getLoc(), root.getOutput(), 2);
  unsigned accBits =
      getElementTypeOrSelf(root.getAcc()).getIntOrFloatBitWidth();
  std::optional<KeyPart> part;
  scf::ForallOp merging;
  FailureOr<scf::ForallOp> rows =
      list       ? tileParts(rewriter, root, queryTile, *list, part, merging)
      : rowTiles ? tileRowsBy(rewriter, root, queryTile, *rowTiles)
                 : tileRows(rewriter, root, queryTile);
  if (failed(rows))
    return root.emitOpError("cannot be tiled");
  scf::ForallOp forall = *rows;
  if (rowTiles)
    tables.setRowTile(forall.getInductionVar(2));
  SmallVector<OnlineAttentionOp> tiledPasses;
  for (OnlineAttentionOp pass : passes) {
    FailureOr<OnlineAttentionOp> tile = fusePass(rewriter, pass, forall);
    if (failed(tile))
      return failure();
    tiledPasses.push_back(*tile);
    if (pass.use_empty())
      rewriter.eraseOp(pass);
  }
  // Passes share their tile of queries, so that its producer has one reader.
  DominanceInfo dominance(forall);
  eliminateCommonSubExpressions(rewriter, dominance, forall);
  auto isWantedProducer = [&](Operation *) -> bool { return fuseProducers; };
  fuseProducersOf(rewriter, slicesOfRunningValues(rewriter, tiledPasses),
                  forall, isWantedProducer);
  if (fuseProducers)
    fuseProducersOf(rewriter, slicesOfQueries(tiledPasses), forall,
                    isWantedProducer);
  bool isReversed = schedule.getOrder() == WorkOrder::LongestFirst && !rowTiles;
  // The blocks of a cluster copy the same keys, also those that a mask keeps of
  // the others' queries only.
  bool hasMask = !tiledPasses.front().getMask().empty();
  int64_t clusterQueries = queryTile * schedule.getCluster();
  Value firstOfCluster;
  std::optional<Span> clusterRows;
  if (schedule.getCluster() > 1 && (hasMask || isReversed))
    firstOfCluster =
        emitFirstOfCluster(rewriter, forall, forall.getInductionVar(2),
                           queryTile, schedule.getCluster());
  if (firstOfCluster && hasMask) {
    rewriter.setInsertionPointAfterValue(firstOfCluster);
    IndexMath math(rewriter, forall.getLoc());
    clusterRows =
        Span{firstOfCluster,
             math.add(firstOfCluster, math.constant(clusterQueries - 1))};
  }
  for (OnlineAttentionOp pass : tiledPasses) {
    fuseGatherOfKeys(rewriter, forall, pass.getKey());
    fuseGatherOfKeys(rewriter, forall, pass.getValue());
    StringRef name = stringifyUpdate(pass.getUpdate());
    FailureOr<MaskedLoopInfo> info =
        tileByMask(rewriter, pass, keyTile, tables,
                   /*cutsTiles=*/!schedule.getWarps(), part,
                   /*fromFirst=*/rowTiles.has_value(), clusterRows);
    if (failed(info))
      return failure();
    count(*info, name);
  }

  if (part) {
    // Other readers of the output read it after the parts are merged.
    fuseHeadsOfResults(rewriter, merging);
    fuseTransposeOfResult(rewriter, merging, 0);
  } else if (fuseConsumers && schedule.getWarps() && queryTile > 1 &&
             features > 1) {
    // Tiles of a GPU's block, of rows and features, are in registers, and so
    // are operands that only their readers have.
    ConsumerFilter filter;
    filter.registerFeatures = features;
    // A tile of fewer queries has as many registers as a whole one.
    filter.threadTile = {schedule.getQueryTile() * features /
                             (schedule.getWarps() * machine::kWarpSize),
                         accBits};
    filter.all = allConsumers;
    filter.exactFunctions = exactFunctions;
    FusedConsumers fused = fovea::attn::fuseConsumers(rewriter, forall, filter);
    forall = fused.loop;
    numConsumers += fused.count;
    fuseProducersOf(rewriter, fused.slices, forall, [](Operation *producer) {
      return !findRegisterObjection(producer);
    });
    if (fuseHeadsOfResults(rewriter, forall))
      fuseTransposeOfResult(rewriter, forall, 0);
  } else if (fuseConsumers && !schedule.getWarps()) {
    FusedConsumers fused = fovea::attn::fuseConsumers(rewriter, forall, {});
    forall = fused.loop;
    numConsumers += fused.count;
    fuseProducersOf(rewriter, fused.slices, forall, isWantedProducer);
  } else {
    fuseTransposeOfResult(rewriter, forall, 0);
  }
  fuseGathers(rewriter, forall);
  if (schedule.getWarps())
    fuseHeadsOfQueries(rewriter, forall);
  if (isReversed && schedule.getBlocks() == Blocks::Dealt)
    if (scf::ForallOp listed =
            listTiles(rewriter, forall, queryTile, schedule.getSplit())) {
      forall = listed;
      isReversed = false;
      setOrder(forall, WorkOrder::Linear);
    }
  if (isReversed && firstOfCluster)
    reverseClusters(rewriter, forall, forall.getInductionVar(2), firstOfCluster,
                    queries, clusterQueries);
  else if (isReversed)
    reverseTiles(rewriter, forall, forall.getInductionVar(2), queries,
                 queryTile);
  loops.push_back({forall, keyReads});
  ++numTiled;
  return success();
}

/// Returns true if `op` only converts floats of one tensor to another type.
static bool isRounding(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumDpsInputs() != 1 ||
      generic.getNumReductionLoops() != 0)
    return false;
  Block &body = *generic.getBody();
  return llvm::hasNItems(body, 2) &&
         isa<arith::TruncFOp, arith::ExtFOp>(body.front());
}

LogicalResult AttnTile::tile(RewriterBase &rewriter, OnlineBackwardOp op) {
  ScheduleAttr schedule = op.getScheduleAttr();
  if (!schedule)
    return op.emitOpError("has no schedule to tile it by: run "
                          "attn-select-schedule, or write `schedule = "
                          "#attn.schedule<..., gradients = <...>>`");
  LDBG() << "the backward pass at " << op.getLoc() << ": tiles by " << schedule;
  FailureOr<TiledBackward> tiled = tileBackward(rewriter, op);
  if (failed(tiled))
    return failure();
  numTables += tiled->numTables;
  count(tiled->info, "gradients");
  // The sums of a GPU's block are rounded in its registers, if each has one
  // reader.
  auto isOnlyRounding = [](Operation *reader) {
    return isRounding(reader) && reader->getOperand(0).hasOneUse();
  };
  if (schedule.getWarps())
    numConsumers +=
        fovea::attn::fuseConsumers(rewriter, tiled->items, {isOnlyRounding})
            .count;
  ++numTiled;
  return success();
}

/// Counts the loop that `pass` has become.
void AttnTile::count(const MaskedLoopInfo &info, StringRef pass) {
  if (info.hasMask)
    ++(info.isExact ? numExactBounds : numTileTests);
  LDBG() << "  " << pass << ": "
         << (!info.hasMask ? "no mask"
             : info.isExact
                 ? "the mask bounds the loop exactly"
                 : "the mask bounds the loop, and tiles in it are tested");
}

/// Merges slices of slices. A slice with strides stays a tensor of its own,
/// whose tiles are consecutive rows.
static LogicalResult mergeSlices(tensor::ExtractSliceOp slice,
                                 PatternRewriter &rewriter) {
  auto source = slice.getSource().getDefiningOp<tensor::ExtractSliceOp>();
  if (!source || !source.hasUnitStride())
    return failure();
  SmallVector<OpFoldResult> offsets, sizes, strides;
  if (failed(affine::mergeOffsetsSizesAndStrides(
          rewriter, slice.getLoc(), source, slice, source.getDroppedDims(),
          offsets, sizes, strides)))
    return failure();
  rewriter.replaceOpWithNewOp<tensor::ExtractSliceOp>(
      slice, slice.getType(), source.getSource(), offsets, sizes, strides);
  return success();
}

/// Merges slices of slices, folds sizes, and drops unused ops.
LogicalResult AttnTile::cleanUp(RewriterBase &rewriter) {
  MLIRContext *context = &getContext();
  RewritePatternSet patterns(context);
  patterns.add(mergeSlices);
  tensor::populateFoldTensorEmptyPatterns(patterns);
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  tensor::EmptyOp::getCanonicalizationPatterns(patterns, context);
  affine::AffineApplyOp::getCanonicalizationPatterns(patterns, context);
  affine::AffineMinOp::getCanonicalizationPatterns(patterns, context);
  tensor::ExtractSliceOp::getCanonicalizationPatterns(patterns, context);
  tensor::DimOp::getCanonicalizationPatterns(patterns, context);
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
    return failure();
  // Slices of slices are merged by now.
  RewritePatternSet transposes(context);
  populateSliceOfTransposePatterns(transposes);
  if (failed(applyPatternsGreedily(getOperation(), std::move(transposes))))
    return failure();
  DominanceInfo dominance(getOperation());
  eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  return success();
}
