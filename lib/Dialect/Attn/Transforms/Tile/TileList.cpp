//===- TileList.cpp - Lists of the tiles that sequences have --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileList.h"

#include "../ItemSlice.h"
#include "MergeParts.h"
#include "TilePacked.h"
#include "TileParts.h"
#include "TileWork.h"

#include "fovea/Analysis/TableLoops.h"
#include "fovea/Dialect/Machine/IR/Machine.h"

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
/// The tiles of a batch: how many, the end of the keys that the last one sees,
/// and how many these are.
struct BatchTiles {
  OpFoldResult count, end, keys;
};

/// Tiles that come in the order of their sequences, as these read the same
/// keys: those that see more than `least` keys, and at most `most`.
struct KeyClass {
  OpFoldResult exists, least, most;
};

/// Sums over batches for a batch's tiles of one class: those that are in front
/// of the first one, and all. Where keys are split, the former without those
/// that have several parts, how many these are, in all and of batches in front
/// of its own, and their parts.
struct ListSums {
  OpFoldResult before, tiles, parted, partedBefore, parts, partsBefore;
};

/// What an owner has of the list: so many items from a place on, which are
/// tiles of a batch, from one tile down, with so many items each. With several,
/// they are all that the batch has of these, which are `parted` tiles. The last
/// owner has items that there are not, behind `all`.
struct OwnedItems {
  OpFoldResult isEnd, batch, tile, place, count, each, areParted, parted, all;
};

/// The loop over tiles, and what its list is made by.
class ListedLoop {
public:
  ListedLoop(scf::ForallOp loop, int64_t queryTile, int64_t split)
      : loop(loop), queryTile(queryTile), split(split), slice(loop) {}

  bool analyze();
  scf::ForallOp rewrite(RewriterBase &rewriter);

private:
  enum : unsigned { kBatch, kHead, kTile };

  /// Emits `value` of the slice for a batch, and one of its tiles.
  OpFoldResult emit(IndexMath &math, Value value, Value batch,
                    OpFoldResult tile);
  OpFoldResult countTiles(IndexMath &math);
  OpFoldResult countClasses(IndexMath &math);
  OpFoldResult countDigits(IndexMath &math, OpFoldResult keys);
  KeyClass getClass(IndexMath &math, OpFoldResult keys, OpFoldResult smaller);
  BatchTiles getTiles(IndexMath &math, Value batch);
  OpFoldResult countAbove(IndexMath &math, const BatchTiles &tiles,
                          OpFoldResult keys);
  OpFoldResult getTarget(OpBuilder &builder, OpFoldResult summed);
  std::pair<OpFoldResult, OpFoldResult>
  getParts(IndexMath &math, const BatchTiles &tiles, OpFoldResult target);
  ListSums sumForClass(OpBuilder &builder, OpFoldResult batch,
                       const KeyClass &keys, OpFoldResult target,
                       OpFoldResult summed);
  SmallVector<TableRange> getRanges(IndexMath &math, const OwnedItems &owned,
                                    const ListSums &sums);
  SmallVector<TableRange> emitOwned(OpBuilder &builder, Value owner);
  void emitTables(RewriterBase &rewriter);
  OpFoldResult emitItems(RewriterBase &rewriter);
  Value read(OpBuilder &builder, Value table, Value place);
  OpFoldResult getRow(IndexMath &math, OpFoldResult tile);
  SmallVector<Value> merge(RewriterBase &rewriter, scf::ForallOp listed);

  /// The most tiles with several parts, the most items of these, and of all.
  int64_t getMostParted() const { return split; }
  int64_t getMostParts() const { return 6 * split; }
  OpFoldResult getMostItems(IndexMath &math) {
    if (!parted)
      return size;
    OpFoldResult zero = math.constant(0);
    return math.select(math.less(zero, size),
                       math.add(size, math.constant(getMostParts())), zero);
  }

  scf::ForallOp loop;
  int64_t queryTile, split;
  /// The rows of a batch, and the keys that a tile sees.
  BatchRows rows;
  Value begin, end;
  /// What these are computed by.
  ItemSlice slice;
  /// Where keys are split.
  std::optional<PartedTiles> parted;
  /// The queries of a tile.
  int64_t queries = 0;
  /// The batches, the tiles that one may have at most, and all may have, and
  /// how many own what tables have of a batch.
  OpFoldResult batches, mostTiles, size, owners;
  /// The most keys of tiles that need no order, and the digits of their class.
  OpFoldResult shortKeys, shortDigits;
  int64_t keyTile = 0;
  /// By item, and, the same for all tiles, the numbers of items and of those
  /// tiles that have several parts.
  Value batchOf, tileOf, partOf, countOf, items, partedTiles;
  /// By tile with several parts: its first item, how many it has, its batch,
  /// and which tile of the batch it is.
  struct {
    Value first, count, batch, tile;
  } ofParted;
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
  std::optional<BatchRows> found = getRowsOfBatch(loop);
  auto keys = loop.getBody()->getOps<scf::ForOp>();
  if (!found || keys.empty())
    return false;
  rows = *found;
  resolveSizes(loop);
  scf::ForOp first = *keys.begin();
  begin = first.getLowerBound();
  end = first.getUpperBound();
  std::optional<int64_t> step = getConstantIntValue(first.getStep());
  if (!step)
    return false;
  keyTile = *step;
  queries = queryTile;
  if (split > 1)
    parted = PartedTiles::get(loop, queryTile);
  if (parted)
    queries = parted->getQueries();
  // A batch's rows are those of all its tiles.
  if (!slice.collect(rows.count) ||
      slice.getDims() != ArrayRef<int64_t>{kBatch} ||
      llvm::none_of(slice.getOps(), llvm::IsaPred<tensor::ExtractOp>) ||
      !slice.collect(begin) || !slice.collect(end) ||
      llvm::is_contained(slice.getDims(), kHead))
    return false;
  return slice.areRepeated({rows.count, begin, end});
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

/// Returns the most tiles that all batches may have: their rows, which are
/// written apart, fill them, but for the last one of each batch.
OpFoldResult ListedLoop::countTiles(IndexMath &math) {
  Value out = loop.getTiedOpOperand(cast<BlockArgument>(rows.result))->get();
  auto getSize = [&](int64_t dim) {
    return tensor::getMixedSize(math.getBuilder(), loop.getLoc(), out, dim);
  };
  OpFoldResult all = math.mul(math.mul(getSize(kBatch), getSize(rows.dim)),
                              math.constant(rows.ofQuery));
  return math.min(
      math.mul(batches, mostTiles),
      math.add(math.truncDiv(all, math.constant(queryTile)), batches));
}

/// Returns how many classes there may be from that of a batch's last tile to
/// that of its first: the last one sees at most twice as many keys as the
/// first, or twice as many as there are queries, and the smallest class is one
/// more.
OpFoldResult ListedLoop::countClasses(IndexMath &math) {
  OpFoldResult one = math.constant(1), two = math.constant(2);
  OpFoldResult twice = math.mul(mostTiles, math.constant(2 * queries));
  OpFoldResult digits = countDigits(math, twice);
  return math.select(math.less(one, mostTiles),
                     math.add(math.max(digits, one), two), one);
}

/// Emits the binary digits of the number of steps that keys take.
OpFoldResult ListedLoop::countDigits(IndexMath &math, OpFoldResult keys) {
  OpBuilder &builder = math.getBuilder();
  return arith::IndexCastUIOp::create(
             builder, math.getLoc(), builder.getIndexType(),
             countDoublings(math, keys, math.constant(keyTile)))
      .getResult();
}

/// Returns the class that is so many `smaller` than that of so many keys. Its
/// bounds are powers of two, times the keys of a step; the smallest one is all
/// that is short.
KeyClass ListedLoop::getClass(IndexMath &math, OpFoldResult keys,
                              OpFoldResult smaller) {
  OpBuilder &builder = math.getBuilder();
  OpFoldResult zero = math.constant(0), one = math.constant(1);
  OpFoldResult own = math.select(math.lessEqual(keys, shortKeys), shortDigits,
                                 countDigits(math, keys));
  OpFoldResult digits = math.sub(own, smaller),
               isShort = math.equal(digits, shortDigits);
  Value power =
      arith::ShLIOp::create(builder, math.getLoc(), math.materialize(one),
                            math.materialize(math.max(digits, zero)));
  OpFoldResult all = math.mul(power, math.constant(keyTile)),
               half = math.truncDiv(all, math.constant(2)),
               none = math.constant(std::numeric_limits<int32_t>::min());
  return {math.lessEqual(shortDigits, digits),
          math.select(isShort, none, math.max(half, shortKeys)),
          math.select(isShort, shortKeys, all)};
}

BatchTiles ListedLoop::getTiles(IndexMath &math, Value batch) {
  OpFoldResult zero = math.constant(0), one = math.constant(1);
  OpFoldResult rowsOfBatch =
      math.max(emit(math, rows.count, batch, zero), zero);
  BatchTiles tiles;
  tiles.count =
      math.min(math.ceilDiv(rowsOfBatch, math.constant(queryTile)), mostTiles);
  OpFoldResult last = math.max(math.sub(tiles.count, one), zero);
  tiles.end = emit(math, end, batch, last);
  if (parted)
    tiles.keys =
        math.max(math.min(math.sub(tiles.end, emit(math, begin, batch, last)),
                          tiles.end),
                 zero);
  return tiles;
}

/// Returns how many of the tiles see more than so many keys: tiles in front of
/// the last one see as many less as there are queries between.
OpFoldResult ListedLoop::countAbove(IndexMath &math, const BatchTiles &tiles,
                                    OpFoldResult keys) {
  OpFoldResult more = math.sub(tiles.end, keys);
  return math.max(
      math.min(math.ceilDiv(more, math.constant(queries)), tiles.count),
      math.constant(0));
}

/// Emits the most keys of a part, by the sums of so many batches: all.
OpFoldResult ListedLoop::getTarget(OpBuilder &builder, OpFoldResult summed) {
  // Shorter parts take longer to begin, to end and to be merged.
  constexpr int64_t kFewestKeys = 512;
  Location loc = loop.getLoc();
  SmallVector<Value> sums =
      sumOverBatches(builder, loc, summed, 2, [&](IndexMath &math, Value at) {
        BatchTiles tiles = getTiles(math, at);
        OpFoldResult zero = math.constant(0), one = math.constant(1);
        OpFoldResult count = countAbove(math, tiles, zero);
        // The mean of tiles between the last one and the first.
        OpFoldResult before = math.mul(math.max(math.sub(count, one), zero),
                                       math.constant(queries));
        OpFoldResult mean =
            math.sub(tiles.end, math.truncDiv(before, math.constant(2)));
        return SmallVector<OpFoldResult>{
            count, math.mul(count, math.min(mean, tiles.keys))};
      });
  IndexMath math(builder, loc);
  OpFoldResult one = math.constant(1);
  OpFoldResult count = math.max(OpFoldResult(sums[0]), one);
  // As many parts of each as are one item for each of `split`, or two: if an
  // item takes, beside its keys, as long as a sixteenth of a tile.
  constexpr int64_t kOfTile = 16;
  OpFoldResult once = math.narrowDiv(math.constant(split), count),
               twice = math.narrowDiv(math.constant(2 * split), count);
  OpFoldResult areTwoBetter =
      math.less(math.mul(once, math.add(twice, math.constant(2 * kOfTile))),
                math.mul(twice, math.constant(kOfTile)));
  OpFoldResult each = math.select(areTwoBetter, twice, once);
  OpFoldResult all = math.select(math.less(one, each), math.mul(count, each),
                                 math.min(count, math.constant(split)));
  return math.max(math.ceilDiv(OpFoldResult(sums[1]), all),
                  math.constant(kFewestKeys));
}

/// Returns how many of the tiles have several parts, and how many each: an
/// eighth more than the target is none of its own.
std::pair<OpFoldResult, OpFoldResult>
ListedLoop::getParts(IndexMath &math, const BatchTiles &tiles,
                     OpFoldResult target) {
  OpFoldResult zero = math.constant(0), one = math.constant(1);
  OpFoldResult more = math.truncDiv(target, math.constant(8)),
               limit = math.add(target, more);
  OpFoldResult several = math.select(math.less(limit, tiles.keys),
                                     countAbove(math, tiles, limit), zero);
  OpFoldResult others = math.sub(math.sub(tiles.keys, more), one);
  return {several,
          math.narrowDiv(math.max(math.add(others, target), zero), target)};
}

/// Emits the sums of so many batches, of all, for tiles of `batch` that see so
/// many keys.
ListSums ListedLoop::sumForClass(OpBuilder &builder, OpFoldResult batch,
                                 const KeyClass &keys, OpFoldResult target,
                                 OpFoldResult summed) {
  auto getTerms = [&](IndexMath &math, Value at) {
    BatchTiles tiles = getTiles(math, at);
    OpFoldResult none = math.constant(0), isInFront = math.less(at, batch);
    // So many tiles of that batch are of this class, in front, or of others.
    OpFoldResult before =
        countAbove(math, tiles, math.select(isInFront, keys.least, keys.most));
    if (!parted)
      return SmallVector<OpFoldResult>{before, tiles.count};
    // Those with several parts are in front of all others.
    auto [several, parts] = getParts(math, tiles, target);
    OpFoldResult all = math.mul(several, parts);
    return SmallVector<OpFoldResult>{math.max(math.sub(before, several), none),
                                     tiles.count,
                                     several,
                                     math.select(isInFront, several, none),
                                     all,
                                     math.select(isInFront, all, none)};
  };
  constexpr unsigned kWithoutParts = 2, kWithParts = 6;
  SmallVector<Value> sums =
      sumOverBatches(builder, loop.getLoc(), summed,
                     parted ? kWithParts : kWithoutParts, getTerms);
  if (!parted)
    return {sums[0], sums[1], {}, {}, {}, {}};
  return {sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]};
}

/// Returns which elements of the tables an owner of these items has.
SmallVector<TableRange> ListedLoop::getRanges(IndexMath &math,
                                              const OwnedItems &owned,
                                              const ListSums &sums) {
  OpFoldResult zero = math.constant(0), one = math.constant(1),
               isEnd = owned.isEnd, each = owned.each;
  auto ofTiles = [&](OpFoldResult value) {
    return math.select(isEnd, zero, value);
  };
  auto negate = [](IndexMath &inner, OpFoldResult value) {
    return inner.sub(inner.constant(0), value);
  };
  // Items that there are not have the numbers of the first one.
  auto getTile = [=](IndexMath &inner, OpFoldResult item) {
    return inner.select(isEnd, inner.constant(0), inner.narrowDiv(item, each));
  };
  auto getLess = [=](IndexMath &inner, OpFoldResult item) {
    return negate(inner, getTile(inner, item));
  };
  OpFoldResult first = owned.place, count = owned.count,
               ofEnd = math.select(isEnd, one, zero);
  SmallVector<TableRange> ranges = {
      {first, count, ofTiles(owned.batch)},
      {first, count, ofTiles(owned.tile), getLess},
      {zero, ofEnd, owned.all}};
  if (!parted)
    return ranges;
  auto getPart = [=](IndexMath &inner, OpFoldResult item) {
    return inner.sub(item, inner.mul(getTile(inner, item), each));
  };
  ranges.push_back({first, count, zero, getPart});
  ranges.push_back({first, count, each});
  ranges.push_back({zero, ofEnd, sums.parted});
  auto getItem = [=](IndexMath &inner, OpFoldResult tile) {
    return inner.mul(tile, each);
  };
  OpFoldResult before = math.select(owned.areParted, sums.partedBefore, zero),
               tiles = math.select(owned.areParted, owned.parted, zero);
  ranges.push_back({before, tiles, first, getItem});
  ranges.push_back({before, tiles, each});
  ranges.push_back({before, tiles, owned.batch});
  ranges.push_back({before, tiles, owned.tile, negate});
  return ranges;
}

/// Emits what one of the owners has of the tables: the tiles of one class of a
/// batch; or, where keys are split, those with several parts; or, the last one,
/// the numbers that are the same for all, and items that there are not: blocks
/// ask where theirs would be before they know that there is none.
SmallVector<TableRange> ListedLoop::emitOwned(OpBuilder &builder, Value owner) {
  IndexMath math(builder, loop.getLoc());
  OpFoldResult zero = math.constant(0), one = math.constant(1);
  OwnedItems owned;
  owned.isEnd = math.equal(owner, math.mul(batches, owners));
  owned.batch = math.min(math.truncDiv(owner, owners), math.sub(batches, one));
  OpFoldResult number = math.sub(owner, math.mul(owned.batch, owners));
  BatchTiles tiles = getTiles(math, math.materialize(owned.batch));
  KeyClass keys = getClass(math, tiles.end, number);
  // From the last one of the batch on, so many tiles see more, and so many with
  // those of this class.
  OpFoldResult before = countAbove(math, tiles, keys.most),
               until = math.select(keys.exists,
                                   countAbove(math, tiles, keys.least), before),
               hasTiles = math.less(before, until);
  if (parted) {
    owned.areParted = math.logicalAnd(math.equal(number, math.sub(owners, one)),
                                      math.less(zero, tiles.count));
    hasTiles = math.logicalOr(hasTiles, owned.areParted);
  }
  // Who has nothing in the list sums nothing.
  OpFoldResult summed =
      math.select(math.logicalOr(hasTiles, owned.isEnd), batches, zero);
  OpFoldResult target;
  if (parted)
    target = getTarget(builder, summed);
  ListSums sums = sumForClass(builder, owned.batch, keys, target, summed);
  owned.count = math.sub(until, before);
  owned.place = sums.before;
  owned.all = sums.tiles;
  owned.each = one;
  if (parted) {
    OpFoldResult parts;
    std::tie(owned.parted, parts) = getParts(math, tiles, target);
    owned.each = math.select(owned.areParted, parts, one);
    before = math.select(owned.areParted, zero, math.max(before, owned.parted));
    owned.count = math.select(owned.areParted, math.mul(owned.parted, parts),
                              math.max(math.sub(until, before), zero));
    owned.place = math.select(owned.areParted, sums.partsBefore,
                              math.add(sums.parts, sums.before));
    owned.all = math.add(math.sub(sums.tiles, sums.parted), sums.parts);
  }
  owned.tile = math.sub(math.sub(tiles.count, one), before);
  // Of rows that are not written apart there may be more tiles.
  OpFoldResult most = getMostItems(math);
  owned.all = math.min(owned.all, most);
  owned.place =
      math.min(math.select(owned.isEnd, owned.all, owned.place), most);
  owned.count = math.min(math.select(owned.isEnd, most, owned.count),
                         math.sub(most, owned.place));
  return getRanges(math, owned, sums);
}

/// Emits the tables.
void ListedLoop::emitTables(RewriterBase &rewriter) {
  Location loc = loop.getLoc();
  IndexMath math(rewriter, loc);
  OpFoldResult zero = math.constant(0), one = math.constant(1),
               most = getMostItems(math);
  SmallVector<OpFoldResult> sizes = {most, most, one};
  if (parted) {
    sizes.append({most, most, one});
    sizes.append(4, math.constant(getMostParted()));
  }
  owners = countClasses(math);
  if (parted)
    owners = math.add(owners, one);
  OpFoldResult all = math.select(
      math.less(zero, size), math.add(math.mul(batches, owners), one), zero);
  SmallVector<Value> tables = fillRanges(
      rewriter, loc, all, sizes, rewriter.getI32Type(),
      [&](OpBuilder &nested, Value owner) { return emitOwned(nested, owner); });
  batchOf = tables[0];
  tileOf = tables[1];
  items = tables[2];
  if (!parted)
    return;
  partOf = tables[3];
  countOf = tables[4];
  partedTiles = tables[5];
  ofParted = {tables[6], tables[7], tables[8], tables[9]};
}

Value ListedLoop::read(OpBuilder &builder, Value table, Value place) {
  Value number =
      tensor::ExtractOp::create(builder, loop.getLoc(), table, place);
  return arith::IndexCastUIOp::create(builder, loop.getLoc(),
                                      builder.getIndexType(), number);
}

/// Emits the number of items: without a tile of any batch nothing says that it
/// is 0.
OpFoldResult ListedLoop::emitItems(RewriterBase &rewriter) {
  IndexMath math(rewriter, loop.getLoc());
  OpFoldResult zero = math.constant(0);
  return math.select(
      math.less(zero, size),
      OpFoldResult(read(rewriter, items, math.materialize(zero))), zero);
}

/// Returns the first row of a tile of a batch, as a table has it. The bound
/// says that places of rows fit in 32 bits.
OpFoldResult ListedLoop::getRow(IndexMath &math, OpFoldResult tile) {
  OpFoldResult last = math.sub(mostTiles, math.constant(1));
  return math.mul(math.min(tile, last), math.constant(queryTile));
}

/// Emits the loop that merges the parts of tiles with several, behind `listed`.
/// Returns its results.
SmallVector<Value> ListedLoop::merge(RewriterBase &rewriter,
                                     scf::ForallOp listed) {
  int64_t usual = getUsualParts(queryTile, split);
  IndexMath math(rewriter, loop.getLoc());
  OpFoldResult zero = math.constant(0);
  OpFoldResult most = math.min(size, math.constant(getMostParted()));
  // All is read at once, also of what there is not, of which nothing is known.
  auto getTile = [&](IndexMath &inner, Value number) {
    OpBuilder &builder = inner.getBuilder();
    Value count = read(builder, partedTiles, inner.materialize(zero));
    Value exists =
        inner.materialize(inner.less(number, count), /*isBoolean=*/true);
    auto readIf = [&](Value table) {
      return inner.select(exists, OpFoldResult(read(builder, table, number)),
                          inner.constant(0));
    };
    return PartedTiles::Merged{exists, readIf(ofParted.first),
                               readIf(ofParted.count), readIf(ofParted.batch),
                               getRow(inner, readIf(ofParted.tile))};
  };
  unsigned numRooms = listed.getNumResults() - loop.getNumResults();
  return parted->merge(rewriter, most, listed.getResults().take_back(numRooms),
                       listed.getResults().drop_back(numRooms), usual, getTile);
}

scf::ForallOp ListedLoop::rewrite(RewriterBase &rewriter) {
  Location loc = loop.getLoc();
  rewriter.setInsertionPoint(slice.getRoot());
  IndexMath math(rewriter, loc);
  SmallVector<OpFoldResult> upper = loop.getMixedUpperBound();
  batches = upper[kBatch];
  mostTiles = math.ceilDiv(upper[kTile], math.constant(queryTile));
  size = countTiles(math);
  // What a loop around this one computes is not known in front of it.
  OpFoldResult shortSteps = math.constant(1);
  if (slice.getRoot() == loop)
    shortSteps = countShortSteps(math, math.mul(size, upper[kHead]),
                                 machine::getTargetOrDefault(loop).getCores());
  shortKeys = math.mul(shortSteps, math.constant(keyTile));
  shortDigits = math.sub(countDigits(math, shortKeys), math.constant(1));
  emitTables(rewriter);
  OpFoldResult one = math.constant(1);
  upper[kBatch] = one;
  upper[kTile] = math.min(emitItems(rewriter), getMostItems(math));

  rewriter.setInsertionPoint(loop);
  SmallVector<Value> outs(loop.getOutputs());
  if (parted)
    llvm::append_range(outs, parted->createRooms(rewriter, getMostParts()));
  auto listed = scf::ForallOp::create(
      rewriter, loc, loop.getMixedLowerBound(), upper,
      SmallVector<OpFoldResult>{one, one, one}, outs, loop.getMapping());
  listed->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  rewriter.eraseOp(listed.getTerminator());
  SmallVector<Value> results(listed.getResults());
  if (parted)
    results = merge(rewriter, listed);

  rewriter.setInsertionPointToStart(listed.getBody());
  IndexMath inside(rewriter, loc);
  Value item = listed.getInductionVar(kTile);
  Value batch = read(rewriter, batchOf, item);
  OpFoldResult row = getRow(inside, OpFoldResult(read(rewriter, tileOf, item)));
  KeyPart part;
  if (parted)
    part = {read(rewriter, partOf, item), read(rewriter, countOf, item)};
  auto arguments = llvm::to_vector_of<Value>(listed.getBody()->getArguments());
  arguments.truncate(loop.getBody()->getNumArguments());
  arguments[kBatch] = batch;
  arguments[kTile] = inside.materialize(row);
  rewriter.mergeBlocks(loop.getBody(), listed.getBody(), arguments);
  if (parted)
    parted->compute(rewriter, listed, part, item);
  rewriter.replaceOp(loop, results);
  return listed;
}

scf::ForallOp fovea::attn::listTiles(RewriterBase &rewriter, scf::ForallOp loop,
                                     int64_t queryTile, int64_t split) {
  ListedLoop listed(loop, queryTile, split);
  return listed.analyze() ? listed.rewrite(rewriter) : scf::ForallOp();
}
