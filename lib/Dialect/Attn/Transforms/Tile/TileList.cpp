//===- TileList.cpp - Lists of the tiles that sequences have --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileList.h"

#include "../ItemSlice.h"
#include "TilePacked.h"
#include "TileWork.h"

#include "fovea/Analysis/TableLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
/// The loop over tiles, and what its list is made by.
class ListedLoop {
public:
  ListedLoop(scf::ForallOp loop, int64_t queryTile)
      : loop(loop), queryTile(queryTile), slice(loop) {}

  bool analyze();
  scf::ForallOp rewrite(RewriterBase &rewriter);

private:
  enum : unsigned { kBatch, kHead, kTile };

  /// Emits `value` of the slice for a batch, and one of its tiles.
  OpFoldResult emit(IndexMath &math, Value value, Value batch,
                    OpFoldResult tile);
  std::pair<OpFoldResult, OpFoldResult> getPowers(IndexMath &math,
                                                  OpFoldResult keys);
  OpFoldResult countTiles(IndexMath &math, Value batch);
  OpFoldResult getEnd(IndexMath &math, Value batch, OpFoldResult tiles);
  SmallVector<Value> emitTables(RewriterBase &rewriter, OpFoldResult size);

  scf::ForallOp loop;
  int64_t queryTile;
  /// The rows of a batch, and the end of the keys that a tile sees.
  Value rows, end;
  /// What these are computed by.
  ItemSlice slice;
  /// The batches, and the tiles that one may have at most.
  OpFoldResult batches, mostTiles;
  int64_t keyTile = 0;
};
} // namespace

/// Takes sizes from the operands of the ops that made a tensor, so that they
/// can be computed in front of the loop.
static void resolveSizes(scf::ForallOp loop) {
  MLIRContext *context = loop.getContext();
  RewritePatternSet patterns(context);
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  tensor::DimOp::getCanonicalizationPatterns(patterns, context);
  SmallVector<Operation *> sizes;
  loop.walk([&](tensor::DimOp size) { sizes.push_back(size); });
  (void)applyOpPatternsGreedily(sizes, std::move(patterns));
}

bool ListedLoop::analyze() {
  if (loop.getRank() != kTile + 1 ||
      !isEqualConstantIntOrValueArray(
          loop.getMixedStep(),
          getAsIndexOpFoldResult(loop.getContext(), {1, 1, queryTile})) ||
      !llvm::all_of(loop.getMixedLowerBound(), isZeroInteger))
    return false;
  rows = getRowsOfBatch(loop);
  auto keys = loop.getBody()->getOps<scf::ForOp>();
  if (!rows || keys.empty())
    return false;
  resolveSizes(loop);
  scf::ForOp first = *keys.begin();
  end = first.getUpperBound();
  std::optional<int64_t> step = getConstantIntValue(first.getStep());
  if (!step)
    return false;
  keyTile = *step;
  // A batch's rows are those of all its tiles.
  if (!slice.collect(rows) || slice.getDims() != ArrayRef<int64_t>{kBatch} ||
      llvm::none_of(slice.getOps(), llvm::IsaPred<tensor::ExtractOp>) ||
      !slice.collect(end) || llvm::is_contained(slice.getDims(), kHead))
    return false;
  return slice.areRepeated({rows, end});
}

OpFoldResult ListedLoop::emit(IndexMath &math, Value value, Value batch,
                              OpFoldResult tile) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(kBatch), batch);
  mapping.map(loop.getInductionVar(kTile),
              math.materialize(math.mul(tile, math.constant(queryTile))));
  for (Operation *op : slice.getOps())
    math.getBuilder().clone(*op, mapping);
  return mapping.lookupOrDefault(value);
}

/// Returns the powers of two, times the keys of a step, between which so many
/// keys are: more than the first, and at most the second. Tiles between the
/// same ones stay with those of their sequence, which read the same keys.
std::pair<OpFoldResult, OpFoldResult> ListedLoop::getPowers(IndexMath &math,
                                                            OpFoldResult keys) {
  OpBuilder &builder = math.getBuilder();
  Location loc = math.getLoc();
  OpFoldResult one = math.constant(1), step = math.constant(keyTile);
  Value power = arith::ShLIOp::create(
      builder, loc, arith::ConstantIntOp::create(builder, loc, 1, 32),
      countDoublings(math, keys, step));
  OpFoldResult all =
      arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), power)
          .getResult();
  // One step and none are alike.
  OpFoldResult half =
      math.select(math.less(one, all), math.truncDiv(all, math.constant(2)),
                  math.constant(std::numeric_limits<int32_t>::min()));
  return {math.mul(half, step), math.mul(all, step)};
}

OpFoldResult ListedLoop::countTiles(IndexMath &math, Value batch) {
  OpFoldResult count =
      math.max(emit(math, rows, batch, math.constant(0)), math.constant(0));
  return math.min(math.ceilDiv(count, math.constant(queryTile)), mostTiles);
}

/// Returns the end of the keys that the last of the tiles sees.
OpFoldResult ListedLoop::getEnd(IndexMath &math, Value batch,
                                OpFoldResult tiles) {
  OpFoldResult last =
      math.max(math.sub(tiles, math.constant(1)), math.constant(0));
  return emit(math, end, batch, last);
}

/// Emits for each item its batch, its tile, and how many items there are: all
/// tiles of all batches have a place, and those that there are not the last
/// ones.
SmallVector<Value> ListedLoop::emitTables(RewriterBase &rewriter,
                                          OpFoldResult size) {
  Location loc = loop.getLoc();
  auto emit = [&](OpBuilder &nested, ValueRange item,
                  SmallVectorImpl<OpFoldResult> &place) {
    IndexMath math(nested, loc);
    OpFoldResult one = math.constant(1), queries = math.constant(queryTile);
    Value batch = math.materialize(math.truncDiv(item.front(), mostTiles));
    OpFoldResult tile = math.sub(item.front(), math.mul(batch, mostTiles)),
                 tiles = countTiles(math, batch);
    // Tiles in front of a last one see as many keys less as they are in front
    // of it, but for other masks than causal ones.
    OpFoldResult behind = math.sub(math.sub(tiles, one), tile),
                 keys = math.sub(getEnd(math, batch, tiles),
                                 math.mul(behind, queries));
    auto [least, greatest] = getPowers(math, keys);
    SmallVector<Value> sums = sumOverBatches(
        nested, loc, batches, 3,
        [&, least = least, greatest = greatest](IndexMath &inner, Value at) {
          OpFoldResult others = countTiles(inner, at), none = inner.constant(0),
                       isInFront = inner.less(at, batch);
          // So many tiles of that batch see more keys than that.
          OpFoldResult limit = inner.select(isInFront, least, greatest);
          OpFoldResult more = inner.sub(getEnd(inner, at, others), limit);
          OpFoldResult before =
              inner.max(inner.min(inner.ceilDiv(more, queries), others), none);
          return SmallVector<OpFoldResult>{
              inner.select(inner.equal(at, batch), behind, before), others,
              inner.select(isInFront, inner.sub(mostTiles, others), none)};
        });
    OpFoldResult missing =
        math.add(math.add(sums[1], sums[2]), math.sub(tile, tiles));
    place.front() = math.select(math.less(tile, tiles), sums[0], missing);
    return SmallVector<Value>{batch, math.materialize(tile), sums[1]};
  };
  return fillTables(rewriter, loc, size,
                    SmallVector<Type>(3, rewriter.getI32Type()), emit);
}

scf::ForallOp ListedLoop::rewrite(RewriterBase &rewriter) {
  Location loc = loop.getLoc();
  rewriter.setInsertionPoint(slice.getRoot());
  IndexMath math(rewriter, loc);
  SmallVector<OpFoldResult> upper = loop.getMixedUpperBound();
  batches = upper[kBatch];
  mostTiles = math.ceilDiv(upper[kTile], math.constant(queryTile));
  OpFoldResult size = math.mul(batches, mostTiles), zero = math.constant(0);
  SmallVector<Value> tables = emitTables(rewriter, size);
  auto read = [&](Value table, Value place) -> Value {
    Value number = tensor::ExtractOp::create(rewriter, loc, table, place);
    return arith::IndexCastUIOp::create(rewriter, loc, rewriter.getIndexType(),
                                        number);
  };
  // Without a tile of any batch nothing says that there is none.
  OpFoldResult count =
      math.select(math.less(zero, size),
                  OpFoldResult(read(tables[2], math.materialize(zero))), zero);

  rewriter.setInsertionPoint(loop);
  OpFoldResult one = math.constant(1), last = math.sub(mostTiles, one);
  upper[kBatch] = one;
  upper[kTile] = math.min(count, size);
  auto listed =
      scf::ForallOp::create(rewriter, loc, loop.getMixedLowerBound(), upper,
                            SmallVector<OpFoldResult>{one, one, one},
                            loop.getOutputs(), loop.getMapping());
  listed->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  rewriter.eraseOp(listed.getTerminator());
  rewriter.setInsertionPointToStart(listed.getBody());
  IndexMath inside(rewriter, loc);
  Value item = listed.getInductionVar(kTile);
  Value batch = read(tables[0], item);
  // The bound says that places of rows fit in 32 bits.
  OpFoldResult tile = inside.min(OpFoldResult(read(tables[1], item)), last);
  SmallVector<Value> arguments(listed.getBody()->getArguments());
  arguments[kBatch] = batch;
  arguments[kTile] =
      inside.materialize(inside.mul(tile, inside.constant(queryTile)));
  rewriter.mergeBlocks(loop.getBody(), listed.getBody(), arguments);
  rewriter.replaceOp(loop, listed);
  return listed;
}

scf::ForallOp fovea::attn::listTiles(RewriterBase &rewriter, scf::ForallOp loop,
                                     int64_t queryTile) {
  ListedLoop listed(loop, queryTile);
  return listed.analyze() ? listed.rewrite(rewriter) : scf::ForallOp();
}
