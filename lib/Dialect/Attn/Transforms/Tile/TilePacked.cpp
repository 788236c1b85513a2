//===- TilePacked.cpp - Tiles of sequences that lie packed ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TilePacked.h"

#include "ReaderCost.h"
#include "TileHeads.h"
#include "TileTransposes.h"

#include "../HeadGroups.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/SameOp.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The dimensions of tensors of attention: [B, H, rows], and features, if there
/// are any.
enum : unsigned { kBatch, kHead, kRow };

namespace {
/// Ops that make rows of one head of the queries of a group's heads, or back:
/// row r is query r / places of head r mod places, if there is one
/// (`attn-pack-groups`).
struct HeadRows {
  /// What they are made of, how many heads these are, and the rows of a query;
  /// 1 and no ops: nothing is made.
  Value source;
  int64_t group = 1, places = 1;
  SmallVector<Operation *> ops;

  static HeadRows get(Value tensor, bool isToRows);
};

/// Where the rows of one batch are, of several that lie packed.
struct PackedRows {
  SmallVector<OpFoldResult> offsets;
  OpFoldResult count;
};

/// A loop over batches that copies the first rows of each from padded tensors,
/// or to one.
class RowCopies {
public:
  static std::optional<RowCopies> get(scf::ForallOp loop, bool isToPadded);

  scf::ForallOp getLoop() { return loop; }
  unsigned size() const { return slices.size(); }
  /// Returns the padded tensor that rows are copied from, or what they are
  /// copied to.
  Value getSource(unsigned number) { return slices[number].getSource(); }
  OpOperand &getInit(unsigned number) {
    return *loop.getTiedOpOperand(
        cast<BlockArgument>(insertions[number].getDest()));
  }
  OpResult getResult(unsigned number) {
    return loop.getTiedOpResult(&getInit(number));
  }

  /// Returns true if the loop runs over the batches of `other`.
  bool hasBatchesOf(scf::ForallOp other);
  /// Emits where the rows of a batch are in the packed tensors, of ops that
  /// are not there already.
  SmallVector<PackedRows> emitRows(OpBuilder &builder, Value batch);
  /// Makes what says where rows are available in front of `op`, an op of the
  /// same block.
  LogicalResult moveDefinitions(RewriterBase &rewriter, Operation *op);

private:
  RowCopies(scf::ForallOp loop, bool isToPadded)
      : loop(loop), isToPadded(isToPadded) {}

  bool add(tensor::ParallelInsertSliceOp insertion);

  scf::ForallOp loop;
  bool isToPadded;
  SmallVector<tensor::ExtractSliceOp> slices;
  SmallVector<tensor::ParallelInsertSliceOp> insertions;
};
} // namespace

//===----------------------------------------------------------------------===//
// Rows of heads
//===----------------------------------------------------------------------===//

HeadRows HeadRows::get(Value tensor, bool isToRows) {
  HeadRows none = {tensor, 1, 1, {}};
  auto collapse = tensor.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse)
    return none;
  SmallVector<Operation *> ops = {collapse};
  Value split = collapse.getSrc();
  auto slice = split.getDefiningOp<tensor::ExtractSliceOp>();
  if (slice && !isToRows && dropsPlaces(slice, kRow)) {
    ops.push_back(slice);
    split = slice.getSource();
  }
  std::optional<Transposition> transpose =
      Transposition::get(split.getDefiningOp());
  if (!transpose)
    return none;
  ops.push_back(transpose->op);
  split = transpose->input;
  if (Value heads = isToRows ? getHeadsOfPlaces(split, kRow) : Value()) {
    ops.push_back(split.getDefiningOp());
    split = heads;
  }
  auto expand = split.getDefiningOp<tensor::ExpandShapeOp>();
  int64_t rank = expand ? expand.getSrcType().getRank() : 0;
  if (rank <= kRow || expand.getResultType().getRank() != rank + 1 ||
      transpose->permutation != getSwap(rank + 1, kRow))
    return none;
  ops.push_back(expand);
  // Heads are in front of queries, and places behind them.
  RankedTensorType ofRows =
      isToRows ? collapse.getSrcType() : expand.getResultType();
  RankedTensorType ofHeads =
      isToRows ? expand.getResultType() : collapse.getSrcType();
  int64_t from = isToRows ? kHead : kRow, to = isToRows ? kRow : kHead;
  int64_t group = ofHeads.getDimSize(kRow),
          places = ofRows.getDimSize(kRow + 1);
  if (ShapedType::isDynamic(group) || ShapedType::isDynamic(places) ||
      group < 2 ||
      expand.getReassociationIndices() != getGroupsWithPair(rank, from) ||
      collapse.getReassociationIndices() != getGroupsWithPair(rank, to))
    return none;
  return {expand.getSrc(), group, places, llvm::to_vector(llvm::reverse(ops))};
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Returns true if a slice is one batch, with all heads and features.
static bool isOfBatch(OffsetSizeAndStrideOpInterface slice,
                      RankedTensorType type, Value batch) {
  for (auto [dim, offset, size] :
       llvm::enumerate(slice.getMixedOffsets(), slice.getMixedSizes())) {
    if (dim == kBatch
            ? offset != OpFoldResult(batch) || !isConstantIntValue(size, 1)
            : !isConstantIntValue(offset, 0))
      return false;
    if (dim != kBatch && dim != kRow &&
        !isConstantIntValue(size, type.getDimSize(dim)))
      return false;
  }
  return true;
}

bool RowCopies::add(tensor::ParallelInsertSliceOp insertion) {
  auto slice = insertion.getSource().getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || !slice->hasOneUse() ||
      slice.getSourceType().getRank() <= kRow || slice.getDroppedDims().any() ||
      insertion.getDroppedDims().any() || !slice.hasUnitStride() ||
      !insertion.hasUnitStride() ||
      slice.getMixedSizes() != insertion.getMixedSizes())
    return false;
  Value batch = loop.getInductionVar(0);
  if (isToPadded ? !isOfBatch(insertion, insertion.getDestType(), batch)
                 : !isOfBatch(slice, slice.getSourceType(), batch))
    return false;
  slices.push_back(slice);
  insertions.push_back(insertion);
  return slices.front().getMixedSizes()[kRow] == slice.getMixedSizes()[kRow];
}

std::optional<RowCopies> RowCopies::get(scf::ForallOp loop, bool isToPadded) {
  if (loop.getRank() != 1 || !loop.isNormalized() || !loop.getNumResults())
    return std::nullopt;
  RowCopies copies(loop, isToPadded);
  for (Operation &op : loop.getTerminator().getYieldingOps()) {
    auto insertion = dyn_cast<tensor::ParallelInsertSliceOp>(op);
    if (!insertion || !copies.add(insertion))
      return std::nullopt;
  }
  if (copies.size() != loop.getNumResults())
    return std::nullopt;
  // What else is in the loop says where the rows are.
  for (Operation &op : loop.getBody()->without_terminator())
    if (op.getNumRegions() || !isPure(&op))
      return std::nullopt;
  return copies;
}

bool RowCopies::hasBatchesOf(scf::ForallOp other) {
  OpFoldResult own = loop.getMixedUpperBound().front(),
               batches = other.getMixedUpperBound()[kBatch];
  if (own == batches)
    return true;
  FailureOr<bool> areEqual = ValueBoundsConstraintSet::areEqual(own, batches);
  return succeeded(areEqual) && *areEqual;
}

SmallVector<PackedRows> RowCopies::emitRows(OpBuilder &builder, Value batch) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(0), batch);
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (llvm::is_contained(slices, &op))
      continue;
    Operation *clone = builder.clone(op, mapping);
    Operation *same =
        findSame(*clone, *clone->getBlock(), clone->getIterator());
    if (!same)
      continue;
    for (auto [result, other] :
         llvm::zip_equal(op.getResults(), same->getResults()))
      mapping.map(result, other);
    clone->erase();
  }
  auto lookup = [&](OpFoldResult value) -> OpFoldResult {
    if (auto known = dyn_cast<Value>(value))
      return mapping.lookupOrDefault(known);
    return value;
  };
  SmallVector<PackedRows> rows;
  for (auto [slice, insertion] : llvm::zip_equal(slices, insertions)) {
    PackedRows &of = rows.emplace_back();
    SmallVector<OpFoldResult> offsets =
        isToPadded ? slice.getMixedOffsets() : insertion.getMixedOffsets();
    of.offsets = llvm::map_to_vector(offsets, lookup);
    of.count = lookup(slice.getMixedSizes()[kRow]);
  }
  return rows;
}

LogicalResult RowCopies::moveDefinitions(RewriterBase &rewriter,
                                         Operation *op) {
  SetVector<Value> needed;
  getUsedValuesDefinedAbove(loop.getRegion(), needed);
  needed.insert_range(loop.getOutputs());
  needed.insert_range(loop.getDynamicUpperBound());
  // What is copied from is not read any more.
  for (tensor::ExtractSliceOp slice : slices)
    needed.remove(slice.getSource());
  return moveValueDefinitions(rewriter, needed.getArrayRef(), op);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Returns the insertion of a result of `loop` that is read once, if what an
/// iteration writes of it is rows of one batch and head; else null.
static tensor::ParallelInsertSliceOp getTile(scf::ForallOp loop,
                                             OpResult result) {
  unsigned number = result.getResultNumber();
  tensor::ParallelInsertSliceOp insertion = insertionOf(loop, number);
  if (!result.hasOneUse() || !insertion || insertion.getDroppedDims().any() ||
      !insertion.hasUnitStride())
    return {};
  // The tile itself may be computed in what it is then written to.
  for (Operation *user : loop.getRegionIterArgs()[number].getUsers())
    if (user != insertion && !isa<tensor::ExtractSliceOp>(user))
      return {};
  for (auto [dim, size] : llvm::enumerate(insertion.getMixedSizes()))
    if (dim != kRow &&
        !isConstantIntValue(
            size, dim < kRow ? 1 : insertion.getDestType().getDimSize(dim)))
      return {};
  return insertion;
}

/// Replaces slices of `out`, in which tiles are computed, by tensors of their
/// own.
static void giveOwnTiles(RewriterBase &rewriter, Value out) {
  for (Operation *user : llvm::make_early_inc_range(out.getUsers())) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!slice)
      continue;
    rewriter.setInsertionPoint(slice);
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(slice, slice.getType(),
                                                 slice.getSizes());
  }
}

/// Lets `loop` write a result to `init` instead.
static void replaceInit(RewriterBase &rewriter, scf::ForallOp loop,
                        OpResult result, Value init) {
  OpOperand *out = loop.getTiedOpOperand(result);
  rewriter.modifyOpInPlace(loop, [&] {
    out->set(init);
    loop.getTiedBlockArgument(out).setType(init.getType());
    result.setType(init.getType());
  });
}

/// Returns what is made of `result`, by heads again, if nothing else is.
static Value followHeads(Value result) {
  constexpr int kMostOps = 4;
  Value heads = result;
  for (int number = 0; number < kMostOps && heads.hasOneUse(); ++number) {
    Operation *reader = *heads.user_begin();
    if (reader->getNumResults() != 1)
      return result;
    heads = reader->getResult(0);
    HeadRows rows = HeadRows::get(heads, /*isToRows=*/false);
    if (rows.group > 1 && rows.source == result)
      return heads;
  }
  return result;
}

/// Returns the loop that copies results of `loop`.
static std::optional<RowCopies> findScatter(scf::ForallOp loop) {
  for (Value result : loop.getResults())
    for (Operation *user : followHeads(result).getUsers())
      if (auto copies = dyn_cast<scf::ForallOp>(user->getParentOp());
          copies && copies != loop && copies->getBlock() == loop->getBlock())
        if (auto scatter = RowCopies::get(copies, /*isToPadded=*/false))
          return scatter;
  return std::nullopt;
}

/// Emits the number of rows of a tile which has at most `most`, from `first`
/// on, of a batch with `all`: an op of which bounds are known.
static affine::AffineMinOp createCount(OpBuilder &builder, Location loc,
                                       OpFoldResult most, OpFoldResult all,
                                       OpFoldResult first) {
  AffineExpr s0, s1, s2;
  bindSymbols(builder.getContext(), s0, s1, s2);
  IndexMath math(builder, loc);
  Value operands[] = {math.materialize(most),
                      math.materialize(math.max(all, first)),
                      math.materialize(first)};
  return affine::AffineMinOp::create(
      builder, loc, AffineMap::get(0, 3, {s0, s1 - s2}, builder.getContext()),
      operands);
}

/// Returns how many rows a batch has of which `count` is such a number, and
/// the first one of the tile; else nulls.
static std::pair<Value, Value> getAllAndFirst(OpFoldResult count) {
  auto value = dyn_cast<Value>(count);
  auto op = value ? value.getDefiningOp<affine::AffineMinOp>()
                  : affine::AffineMinOp();
  if (!op || op.getNumOperands() != 3)
    return {};
  auto end = op.getOperand(1).getDefiningOp<arith::MaxSIOp>();
  Value first = op.getOperand(2);
  if (!end || end.getRhs() != first)
    return {};
  return {end.getLhs(), first};
}

/// Returns the place behind the ops of `body` that say where `tile` is written.
static Block::iterator getEndOf(Block &body,
                                tensor::ParallelInsertSliceOp tile) {
  Block::iterator end = body.begin();
  SmallVector<Value> values(tile.getOffsets());
  llvm::append_range(values, tile.getSizes());
  for (Value value : values)
    if (Operation *op = value.getDefiningOp();
        op && op->getBlock() == &body && !op->isBeforeInBlock(&*end))
      end = std::next(op->getIterator());
  return end;
}

/// Returns true if nothing in front of that place reads the number of rows.
static bool readsRowsBehind(scf::ForallOp loop,
                            tensor::ParallelInsertSliceOp tile) {
  Block &body = *loop.getBody();
  auto rows = dyn_cast<Value>(tile.getMixedSizes()[kRow]);
  Block::iterator end = getEndOf(body, tile);
  return !rows || llvm::all_of(rows.getUsers(), [&](Operation *user) {
    Operation *op = body.findAncestorOpInBlock(*user);
    return !op || !op->isBeforeInBlock(&*end);
  });
}

/// Lets `tile` be inserted where its batch has rows: the first `count` of them,
/// which are the queries of heads.
static void insertWhereRowsLie(RewriterBase &rewriter,
                               tensor::ParallelInsertSliceOp tile,
                               const PackedRows &rows, Value count,
                               const HeadRows &ofHeads) {
  Location loc = tile.getLoc();
  IndexMath math(rewriter, loc);
  OpFoldResult heads = math.constant(ofHeads.group),
               ofQuery = math.constant(ofHeads.places);
  SmallVector<OpFoldResult> sizes = tile.getMixedSizes(),
                            strides = tile.getMixedStrides(),
                            place = tile.getMixedOffsets(),
                            offsets = rows.offsets;
  offsets[kHead] = math.add(offsets[kHead], math.mul(place[kHead], heads));
  offsets[kRow] = math.add(offsets[kRow], math.truncDiv(place[kRow], ofQuery));
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(tile->getParentOp());
  Value some = tile.getSource();
  if (sizes[kRow] != OpFoldResult(count)) {
    sizes[kRow] = count;
    SmallVector<OpFoldResult> zeros(sizes.size(), rewriter.getIndexAttr(0));
    some = tensor::ExtractSliceOp::create(rewriter, loc, some, zeros, sizes,
                                          strides);
  }
  if (ofHeads.group > 1) {
    sizes[kHead] = heads;
    sizes[kRow] = IndexMath(rewriter, loc).truncDiv(count, ofQuery);
    some = splitRows(rewriter, loc, some, sizes[kRow], ofHeads.places);
    some = dropPlaces(rewriter, loc, some, kRow, ofHeads.group);
    some = swapWithNext(rewriter, loc, some, kHead);
  }
  rewriter.setInsertionPoint(tile);
  rewriter.replaceOpWithNewOp<tensor::ParallelInsertSliceOp>(
      tile, some, tile.getDest(), offsets, sizes, strides);
}

/// Returns true if nothing else reads any result of `loop`: its tiles then have
/// no rows but those that are copied.
static bool readsAlone(RowCopies &scatter, scf::ForallOp loop) {
  unsigned used = llvm::count_if(
      loop.getResults(), [](OpResult result) { return !result.use_empty(); });
  return used == scatter.size();
}

bool fovea::attn::fuseScatter(RewriterBase &rewriter, scf::ForallOp loop) {
  std::optional<RowCopies> scatter = findScatter(loop);
  if (!scatter || !scatter->hasBatchesOf(loop) || !readsAlone(*scatter, loop))
    return false;
  SmallVector<tensor::ParallelInsertSliceOp> tiles;
  SmallVector<HeadRows> heads;
  for (unsigned number : llvm::seq(scatter->size())) {
    heads.push_back(
        HeadRows::get(scatter->getSource(number), /*isToRows=*/false));
    auto result = dyn_cast<OpResult>(heads.back().source);
    if (!result || result.getOwner() != loop ||
        heads.back().group != heads.front().group ||
        heads.back().places != heads.front().places ||
        !llvm::all_of(heads.back().ops,
                      [](Operation *op) { return op->hasOneUse(); }))
      return false;
    tiles.push_back(getTile(loop, result));
    if (!tiles.back() || tiles.back().getMixedSizes()[kRow] !=
                             tiles.front().getMixedSizes()[kRow])
      return false;
  }
  // A tile begins with the first head of a query.
  int64_t ofQuery = heads.front().places;
  std::optional<int64_t> step = getConstantIntValue(loop.getMixedStep()[kRow]);
  if ((ofQuery > 1 && (!step || *step % ofQuery)) ||
      !readsRowsBehind(loop, tiles.front()) ||
      failed(scatter->moveDefinitions(rewriter, loop)))
    return false;
  Location loc = loop.getLoc();
  for (tensor::ParallelInsertSliceOp tile : tiles)
    giveOwnTiles(rewriter, tile.getDest());

  // How many rows the tile has, behind what says which it may have.
  Block &body = *loop.getBody();
  rewriter.setInsertionPoint(&body, getEndOf(body, tiles.front()));
  SmallVector<OpFoldResult> place = tiles.front().getMixedOffsets();
  IndexMath math(rewriter, loc);
  SmallVector<PackedRows> rows =
      scatter->emitRows(rewriter, math.materialize(place[kBatch]));
  OpFoldResult most = tiles.front().getMixedSizes()[kRow];
  auto count = createCount(rewriter, loc, most,
                           math.mul(rows.front().count, math.constant(ofQuery)),
                           place[kRow]);
  if (auto known = dyn_cast<Value>(most))
    rewriter.replaceUsesWithIf(known, count, [&](OpOperand &use) {
      return loop->isProperAncestor(use.getOwner()) && use.getOwner() != count;
    });

  for (auto [tile, of] : llvm::zip_equal(tiles, rows))
    insertWhereRowsLie(rewriter, tile, of, count, heads.front());
  Value hasRows =
      math.materialize(math.less(math.constant(0), count.getResult()),
                       /*isBoolean=*/true);
  for (auto keys : body.getOps<scf::ForOp>()) {
    rewriter.setInsertionPoint(keys);
    keys.setUpperBound(arith::SelectOp::create(
        rewriter, loc, hasRows, keys.getUpperBound(), keys.getLowerBound()));
  }

  for (unsigned number : llvm::seq(scatter->size())) {
    auto result = cast<OpResult>(heads[number].source);
    replaceInit(rewriter, loop, result, scatter->getInit(number).get());
    rewriter.replaceAllUsesWith(scatter->getResult(number), result);
  }
  rewriter.eraseOp(scatter->getLoop());
  for (const HeadRows &each : heads)
    for (Operation *op : llvm::reverse(each.ops))
      rewriter.eraseOp(op);
  return true;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Returns the loop that copies the first rows of each batch of `loop` to
/// `padded`, and nothing else; null if it is none.
static std::optional<RowCopies> findGather(scf::ForallOp loop, Value padded) {
  auto copies = padded.getDefiningOp<scf::ForallOp>();
  std::optional<RowCopies> gather =
      copies ? RowCopies::get(copies, /*isToPadded=*/true) : std::nullopt;
  if (!gather || gather->size() != 1 || !gather->hasBatchesOf(loop))
    return std::nullopt;
  return gather;
}

static void eraseIfUnused(RewriterBase &rewriter, RowCopies &gather) {
  if (gather.getLoop().use_empty())
    rewriter.eraseOp(gather.getLoop());
}

/// Lets `slice`, in `loop`, be one of what rows were copied from.
static void fuseGather(RewriterBase &rewriter, scf::ForallOp loop,
                       tensor::ExtractSliceOp slice) {
  HeadRows heads = HeadRows::get(slice.getSource(), /*isToRows=*/true);
  std::optional<RowCopies> gather = findGather(loop, heads.source);
  if (!gather || !slice.hasUnitStride())
    return;
  SmallVector<OpFoldResult> place = slice.getMixedOffsets(),
                            sizes = slice.getMixedSizes();
  auto batch = dyn_cast<Value>(place[kBatch]);
  if (!batch || !isConstantIntValue(sizes[kBatch], 1))
    return;
  auto [all, first] = getAllAndFirst(sizes[kRow]);
  if (!all || place[kRow] != OpFoldResult(first) ||
      (heads.group > 1 && !isConstantIntValue(sizes[kHead], 1)))
    return;
  if (heads.group > 1) {
    auto product = all.getDefiningOp<arith::MulIOp>();
    if (!product || !isConstantIntValue(product.getRhs(), heads.places))
      return;
    all = product.getLhs();
  }
  rewriter.setInsertionPoint(slice);
  PackedRows rows = gather->emitRows(rewriter, batch).front();
  if (rows.count != OpFoldResult(all))
    return;
  IndexMath math(rewriter, slice.getLoc());
  SmallVector<OpFoldResult> offsets = rows.offsets;
  OpFoldResult group = math.constant(heads.group),
               ofQuery = math.constant(heads.places), count = sizes[kRow];
  place[kHead] = math.mul(place[kHead], group);
  place[kRow] = math.truncDiv(place[kRow], ofQuery);
  for (size_t dim = kHead; dim < offsets.size(); ++dim)
    offsets[dim] = math.add(offsets[dim], place[dim]);
  RankedTensorType type = slice.getType();
  if (heads.group > 1) {
    sizes[kHead] = group;
    sizes[kRow] = math.truncDiv(count, ofQuery);
    SmallVector<int64_t> shape(type.getShape());
    shape[kHead] = heads.group;
    shape[kRow] = ShapedType::kDynamic;
    type = type.clone(shape);
  }
  Value rowsOfTile = tensor::ExtractSliceOp::create(
      rewriter, slice.getLoc(), type, gather->getSource(0), offsets, sizes,
      slice.getMixedStrides());
  if (heads.group > 1) {
    Location loc = slice.getLoc();
    rowsOfTile = makePlaces(rewriter, loc, rowsOfTile, kHead, heads.places);
    rowsOfTile = swapWithNext(rewriter, loc, rowsOfTile, kHead);
    rowsOfTile = joinRows(rewriter, loc, rowsOfTile, slice.getType(), count);
  }
  Value whole = slice.getSource();
  rewriter.replaceOp(slice, rowsOfTile);
  keepWhole(rewriter, loop, rowsOfTile, whole);
  for (Operation *op : llvm::reverse(heads.ops))
    if (op->use_empty())
      rewriter.eraseOp(op);
  eraseIfUnused(rewriter, *gather);
}

void fovea::attn::fuseGathers(RewriterBase &rewriter, scf::ForallOp loop) {
  SmallVector<tensor::ExtractSliceOp> slices(
      loop.getBody()->getOps<tensor::ExtractSliceOp>());
  for (tensor::ExtractSliceOp slice : slices)
    fuseGather(rewriter, loop, slice);
}

void fovea::attn::fuseGatherOfKeys(RewriterBase &rewriter, scf::ForallOp loop,
                                   Value keys) {
  auto slice = keys.getDefiningOp<tensor::ExtractSliceOp>();
  std::optional<RowCopies> gather =
      slice ? findGather(loop, slice.getSource()) : std::nullopt;
  if (!gather || !slice.hasUnitStride() || slice.getDroppedDims().any())
    return;
  SmallVector<OpFoldResult> place = slice.getMixedOffsets(),
                            sizes = slice.getMixedSizes();
  auto batch = dyn_cast<Value>(place[kBatch]);
  if (!batch || !isConstantIntValue(sizes[kBatch], 1) ||
      !isConstantIntValue(place[kRow], 0))
    return;
  rewriter.setInsertionPoint(slice);
  PackedRows rows = gather->emitRows(rewriter, batch).front();
  IndexMath math(rewriter, slice.getLoc());
  SmallVector<OpFoldResult> offsets = rows.offsets;
  for (size_t dim = kHead; dim < offsets.size(); ++dim)
    offsets[dim] = math.add(offsets[dim], place[dim]);
  sizes[kRow] = rows.count;
  SmallVector<int64_t> shape(slice.getType().getShape());
  shape[kRow] = ShapedType::kDynamic;
  rewriter.replaceOpWithNewOp<tensor::ExtractSliceOp>(
      slice, slice.getType().clone(shape), gather->getSource(0), offsets, sizes,
      slice.getMixedStrides());
  eraseIfUnused(rewriter, *gather);
}

std::optional<BatchRows> fovea::attn::getRowsOfBatch(scf::ForallOp loop) {
  std::optional<BatchRows> found;
  for (Operation &op : loop.getTerminator().getYieldingOps()) {
    auto insertion = dyn_cast<tensor::ParallelInsertSliceOp>(op);
    if (!insertion)
      return std::nullopt;
    std::optional<BatchRows> own;
    for (auto [dim, known] : llvm::enumerate(insertion.getMixedSizes())) {
      auto size = dyn_cast<Value>(known);
      if (!size)
        continue;
      std::optional<int64_t> ofQuery = 1;
      // Those of the queries of a group's heads are as many times more.
      if (auto quotient = size.getDefiningOp<arith::DivSIOp>()) {
        ofQuery = getConstantIntValue(quotient.getRhs());
        size = quotient.getLhs();
      }
      if (Value rows = getAllAndFirst(size).first; rows && ofQuery)
        own = {rows, *ofQuery, insertion.getDest(), int64_t(dim)};
    }
    if (!own || (found && own->count != found->count))
      return std::nullopt;
    found = own;
  }
  return found;
}
