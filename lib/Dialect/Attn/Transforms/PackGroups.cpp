//===- PackGroups.cpp - attn-pack-groups ----------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The queries of a group's heads lie one head after another, so that they are
// the rows of one head in the same memory, and dropout, which numbers rows,
// draws the same numbers.
//
// Of many queries, whose sequences lie packed and may have few each, the heads
// of one query are neighbours instead: a sequence then has the first rows, and
// tiles of both orders of memory are boxes for TMA (`tile.load` with `inner`).
// So are those of a few queries which are no power of two, as neighbours in a
// box have to be, where their results have the heads of a query as neighbours;
// and those of batches of any number of queries, in code for few, or of one
// that fills tiles of heads badly. A query of such a batch has a power of two
// of rows, of which the last ones have no head where the group has fewer.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "HeadGroups.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

#define DEBUG_TYPE "attn-pack-groups"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNPACKGROUPS
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The rows of the smallest tile of queries on a GPU.
static constexpr int64_t kGpuRows = 64;

/// The largest group whose heads are neighbours: a tile has a few queries yet.
static constexpr int64_t kLargestMany = 16;

namespace {
/// Heads that share keys, and the queries of each.
struct Group {
  /// The heads whose rows the queries of `heads` become: those of keys, or of
  /// shares of their groups.
  int64_t rowHeads, heads, queries;
  /// True if the heads of one query are neighbouring rows.
  bool isByQueries = false;
  /// The rows of a query then: one for each head, and others without one.
  int64_t places = heads;

  bool isMany() const { return ShapedType::isDynamic(queries); }

  /// Returns the group of an op whose heads are static in number; nullopt if
  /// they are not, or share nothing, or if there are no queries.
  static std::optional<Group> get(AttentionOp op) {
    ArrayRef<int64_t> query = op.getQuery().getType().getShape();
    int64_t kvHeads = op.getKey().getType().getDimSize(1);
    for (int64_t size : {kvHeads, query[1]})
      if (ShapedType::isDynamic(size) || size < 1)
        return std::nullopt;
    if (query[1] == kvHeads || query[2] == 0)
      return std::nullopt;
    return Group{kvHeads, query[1] / kvHeads, query[2]};
  }

  /// Divides the group into shares as large as neighbouring rows may be: a
  /// power of two of heads, and a few queries in a tile yet.
  void divide() {
    int64_t all = rowHeads * heads;
    places = heads = std::min(heads & -heads, kLargestMany);
    rowHeads = all / heads;
  }

  /// Gives a query as many rows as the next power of two.
  void pad() { places = llvm::PowerOf2Ceil(heads); }

  int64_t getRows() const {
    return isMany() ? ShapedType::kDynamic : places * queries;
  }
};

} // namespace

/// Returns true if `region`, of scores, reads a tensor at a head or a query:
/// where all rows of a tile have one head, it reads what it needs more simply.
static bool readsByRow(Region &region) {
  if (region.empty())
    return false;
  Block &block = region.front();
  // The coordinates come last: batch, head, query and key.
  llvm::SmallDenseSet<Value> dependents =
      getDependents(block, block.getArguments().take_back(3).drop_back());
  return llvm::any_of(
      block.getOps<tensor::ExtractOp>(), [&](tensor::ExtractOp read) {
        return llvm::any_of(read.getIndices(),
                            [&](Value at) { return dependents.contains(at); });
      });
}

/// Returns true if one loop copies each result of `op` once, and nothing else
/// reads them.
static bool areCopiedByLoop(AttentionOp op) {
  Operation *loop =
      op->use_empty() ? nullptr : (*op->user_begin())->getParentOp();
  return isa_and_nonnull<scf::ForallOp>(loop) &&
         llvm::all_of(op->getResults(), [&](Value result) {
           if (result.use_empty())
             return true;
           Operation *reader = *result.user_begin();
           return result.hasOneUse() && isa<tensor::ExtractSliceOp>(reader) &&
                  reader->getParentOp() == loop;
         });
}

/// Returns true if the heads of a query may be neighbouring rows, and those of
/// tiles of `op` are boxes for TMA then.
static bool canBeByQueries(AttentionOp op, const Group &group,
                           machine::TargetAttr target) {
  return target.isGpu() && target.getGpuArch().hasBulkCopies &&
         group.heads > 1 && llvm::isPowerOf2_64(group.places) &&
         group.places <= kLargestMany && !op.getDropout() && !op.getInitLse() &&
         !readsByRow(op.getScore()) && !readsByRow(op.getMask());
}

/// Returns true if a loop copies queries of `op` from where sequences lie
/// packed, and a loop copies its results back, so that their tiles are read and
/// written there (`attn-tile`).
static bool isOfSequences(AttentionOp op) {
  return !op.getSplitSizeAttr() &&
         op.getQuery().getDefiningOp<scf::ForallOp>() &&
         op.getQuery().hasOneUse() && areCopiedByLoop(op);
}

/// Returns the transposition of heads and queries that `op` is; null if it is
/// something else.
static linalg::TransposeOp getSwapOfHeads(Operation *op) {
  auto transpose = dyn_cast_or_null<linalg::TransposeOp>(op);
  return transpose && transpose.getPermutation() ==
                          ArrayRef(getSwap(/*rank=*/4, /*dim=*/1))
             ? transpose
             : linalg::TransposeOp();
}

/// Returns true if queries of a batch are read, and results written, where they
/// lie: what makes the queries, or reads the results, of tiles alone would not
/// find them by heads.
static bool isOfBatch(AttentionOp op) {
  Value query = op.getQuery();
  if (linalg::TransposeOp swap = getSwapOfHeads(query.getDefiningOp()))
    query = swap.getInput();
  return !op.getSplitSizeAttr() && isa<BlockArgument>(query) &&
         llvm::all_of(op->getUses(), [](OpOperand &use) {
           return use.get().hasOneUse() &&
                  (isa<func::ReturnOp>(use.getOwner()) ||
                   getSwapOfHeads(use.getOwner()));
         });
}

/// The rows of a tile of two groups of warps: others keep tensor cores less
/// busy.
static constexpr int64_t kTileRows = 128;

/// Returns the rows of the tiles of all queries, by queries, of which there is
/// a known number.
static int64_t countRows(const Group &group) {
  return group.rowHeads * llvm::alignTo(group.getRows(), kTileRows);
}

/// Returns true if tiles of whole queries have fewer rows in all, by a tenth or
/// more, than those of each head by itself: of few queries a whole tile, of
/// more what fills groups of warps.
static bool fillsTilesByQueries(const Group &group) {
  int64_t ofHeads =
      group.rowHeads * group.heads *
      std::max<int64_t>(kTileRows, llvm::alignTo(group.queries, kGpuRows));
  return 10 * countRows(group) <= 9 * ofHeads;
}

/// Returns true if one tile has all rows of a head, which are no box of heads,
/// and the only reader of the results makes heads neighbours.
static bool isBoxOfQueries(AttentionOp op, const Group &group) {
  if (llvm::isPowerOf2_64(group.queries) || group.getRows() > kGpuRows ||
      op.getLse() || !op.getOutput().hasOneUse())
    return false;
  linalg::TransposeOp reader = getSwapOfHeads(*op.getOutput().user_begin());
  return reader && reader.getInput() == op.getOutput();
}

namespace {
struct PackGroups : fovea::attn::impl::AttnPackGroupsBase<PackGroups> {
  using AttnPackGroupsBase::AttnPackGroupsBase;

  void runOnOperation() override {
    if (rows < 0) {
      getOperation()->emitError()
          << "attn-pack-groups: rows must be at least 1, or 0 for the "
             "target's, but are "
          << rows.getValue();
      return signalPassFailure();
    }
    machine::TargetAttr target = machine::getTargetOrDefault(getOperation());
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](AttentionOp op) {
      std::optional<Group> group = Group::get(op);
      int64_t bytes = op.getAccumulationType().getWidth() / 8;
      int64_t limit = rows             ? rows.getValue()
                      : target.isGpu() ? kGpuRows
                                       : target.getVectorBytes() / bytes;
      if (op.getSchedule() || !group)
        return;
      bool areFew = !group->isMany() && 2 * group->queries <= limit;
      if (!areFew)
        group = chooseNeighbours(op, *group);
      group->isByQueries = canBeByQueries(op, *group, target) &&
                           shouldBeByQueries(op, *group, areFew);
      if (!areFew && !group->isByQueries)
        return;
      LDBG() << "attention at " << op.getLoc() << ": "
             << (group->isMany() ? std::string("all")
                                 : std::to_string(group->queries))
             << " queries of " << group->heads << " heads in one, "
             << (group->isByQueries ? group->places : group->heads)
             << " rows each";
      pack(rewriter, op, *group);
      ++numPacked;
    });
  }

private:
  Group chooseNeighbours(AttentionOp op, const Group &group);

  /// Returns true if the heads of a query should be neighbouring rows where
  /// they may be.
  bool shouldBeByQueries(AttentionOp op, const Group &group, bool areFew) {
    if (areFew)
      return isBoxOfQueries(op, group);
    if (group.isMany())
      return isOfSequences(op) || (batches && isOfBatch(op));
    return isOfBatch(op) && fillsTilesByQueries(group);
  }

  static void pack(RewriterBase &rewriter, AttentionOp op, const Group &group);
};
} // namespace

/// Returns `group` as neighbouring rows: all of it, with rows that have no head
/// if need be, in code for few queries; of a known number where no more tiles
/// have them so than have the rows of shares; and of sequences that lie packed,
/// among which there may be long ones, where nearly all rows have a head. Else
/// its shares.
Group PackGroups::chooseNeighbours(AttentionOp op, const Group &group) {
  Group shares = group, padded = group;
  shares.divide();
  padded.pad();
  if (padded.places > kLargestMany)
    return shares;
  bool isOfAll = batches;
  if (!group.isMany())
    isOfAll = countRows(padded) <= countRows(shares);
  else if (isOfSequences(op))
    isOfAll |= 8 * padded.heads >= 7 * padded.places;
  return isOfAll ? padded : shares;
}

/// Returns `tensor`, [B, Hkv * G, 1, ...], as [B, Hkv, G, ...]: a view,
/// whatever the strides of its heads, as a slice without the dimension of the
/// one query joins none that may lie apart.
static Value packHeads(OpBuilder &builder, Location loc, Value tensor,
                       SmallVector<OpFoldResult> sizes, const Group &group) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<OpFoldResult> expanded(sizes);
  expanded[1] = builder.getIndexAttr(group.rowHeads);
  expanded[2] = builder.getIndexAttr(group.heads);
  SmallVector<ReassociationIndices> split = {{0}, {1, 2}, {3}};
  split.resize(rank - 1);
  int64_t query = 2;
  // Among several dimensions of size one, memrefs with dynamic strides do not
  // say which one a slice drops: the only sequence is one with its heads first.
  if (isOneInteger(sizes[0])) {
    SmallVector<ReassociationIndices> join = {{0, 1}, {2}, {3}};
    join.resize(rank - 1);
    tensor = tensor::CollapseShapeOp::create(builder, loc, tensor, join);
    sizes.erase(sizes.begin());
    split = {{0, 1, 2}, {3}};
    split.resize(rank - 2);
    --query;
  }
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + query);
  SmallVector<OpFoldResult> zeros(type.getRank(), builder.getIndexAttr(0)),
      ones(type.getRank(), builder.getIndexAttr(1));
  Value heads = tensor::ExtractSliceOp::create(builder, loc, type.clone(shape),
                                               tensor, zeros, sizes, ones);
  return expandShape(builder, loc, heads, split, expanded);
}

/// Returns `tensor` with dimension `dim` divided in two, of `outer` and `inner`
/// elements.
static Value splitDim(OpBuilder &builder, Location loc, Value tensor,
                      int64_t dim, OpFoldResult outer, OpFoldResult inner) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  sizes[dim] = outer;
  sizes.insert(sizes.begin() + dim + 1, inner);
  return expandShape(builder, loc, tensor, getGroupsWithPair(rank, dim), sizes);
}

/// Returns `divided` with dimension `dim` and the next one joined.
static Value joinDims(OpBuilder &builder, Location loc, Value divided,
                      int64_t dim) {
  int64_t rank = cast<RankedTensorType>(divided.getType()).getRank();
  return tensor::CollapseShapeOp::create(builder, loc, divided,
                                         getGroupsWithPair(rank - 1, dim));
}

/// Returns `tensor`, [B, Hkv * G, Sq, ...], as [B, Hkv, G * Sq, ...], or, by
/// queries, whose heads have `P` places, as [B, Hkv, Sq * P, ...].
static Value packRows(OpBuilder &builder, Location loc, Value tensor,
                      const Group &group) {
  auto type = cast<RankedTensorType>(tensor.getType());
  bool hasOneFeature = type.getRank() == 4 && type.getDimSize(3) == 1;
  if (group.queries == 1 && !hasOneFeature)
    return packHeads(builder, loc, tensor,
                     tensor::getMixedSizes(builder, loc, tensor), group);
  Value divided = splitDim(builder, loc, tensor, /*dim=*/1,
                           builder.getIndexAttr(group.rowHeads),
                           builder.getIndexAttr(group.heads));
  if (group.isByQueries)
    divided = swapWithNext(
        builder, loc,
        makePlaces(builder, loc, divided, /*dim=*/2, group.places), /*dim=*/2);
  return joinDims(builder, loc, divided, /*dim=*/2);
}

/// Returns `tensor`, of packed rows, as `type`, [B, Hkv * G, Sq, ...], where
/// there are so many queries.
static Value unpackRows(OpBuilder &builder, Location loc, Value tensor,
                        RankedTensorType type, const Group &group,
                        OpFoldResult queries) {
  OpFoldResult outer = builder.getIndexAttr(group.places), inner = queries;
  if (group.isByQueries)
    std::swap(outer, inner);
  Value divided = splitDim(builder, loc, tensor, /*dim=*/2, outer, inner);
  if (group.isByQueries)
    divided =
        dropPlaces(builder, loc, swapWithNext(builder, loc, divided, /*dim=*/2),
                   /*dim=*/2, group.heads);
  Value result = joinDims(builder, loc, divided, /*dim=*/1);
  return builder.createOrFold<tensor::CastOp>(loc, type, result);
}

/// Moves `from`, whose last arguments are the coordinates of a score, to `to`,
/// where scores have packed coordinates.
static void packRegion(RewriterBase &rewriter, Region &from, Region &to,
                       const Group &group) {
  if (from.empty())
    return;
  Location loc = from.getLoc();
  Block &old = from.front();
  SmallVector<Location> locs(old.getNumArguments(), loc);
  Block *block =
      rewriter.createBlock(&to, to.end(), old.getArgumentTypes(), locs);
  SmallVector<Value> arguments(block->getArguments());
  Value &head = arguments[arguments.size() - 3],
        &row = arguments[arguments.size() - 2];
  // The analysis of masks knows these quotients.
  IndexMath index(rewriter, loc);
  Value size = index.materialize(
      index.constant(group.isByQueries ? group.places : group.queries));
  Value member = rewriter.createOrFold<arith::DivUIOp>(loc, row, size);
  row = rewriter.createOrFold<arith::RemUIOp>(loc, row, size);
  if (group.isByQueries)
    std::swap(member, row);
  // Regions are asked for rows without a head, too: for those of the last one,
  // since they need not be defined for heads that the graph does not have.
  if (group.places > group.heads)
    member =
        index.materialize(index.min(member, index.constant(group.heads - 1)));
  OpFoldResult first = index.mul(head, index.constant(group.heads));
  head = index.materialize(index.add(first, member));
  rewriter.mergeBlocks(&old, block, arguments);
}

/// Returns an initial log-sum-exp of all heads as one of packed rows.
static Value packInit(OpBuilder &builder, Location loc, Value lse,
                      const Group &group) {
  auto type = cast<RankedTensorType>(lse.getType());
  if (type.getRank() == 3)
    return packRows(builder, loc, lse, group);
  if (type.getRank() == 1 && group.queries > 1) {
    // Each query has a row of its own.
    auto wide = RankedTensorType::get(
        {group.rowHeads * group.heads, group.queries}, type.getElementType());
    Value empty = tensor::EmptyOp::create(builder, loc, wide.getShape(),
                                          type.getElementType());
    lse = linalg::BroadcastOp::create(builder, loc, lse, empty,
                                      builder.getDenseI64ArrayAttr({1}))
              ->getResult(0);
    type = wide;
  }
  SmallVector<OpFoldResult> sizes = {builder.getIndexAttr(group.rowHeads),
                                     builder.getIndexAttr(group.heads)};
  SmallVector<ReassociationIndices> split = {{0, 1}};
  if (type.getRank() == 2) {
    split.push_back({2});
    sizes.push_back(builder.getIndexAttr(group.queries));
  }
  lse = expandShape(builder, loc, lse, split, sizes);
  if (type.getRank() == 1)
    return lse;
  SmallVector<ReassociationIndices> join = {{0}, {1, 2}};
  return tensor::CollapseShapeOp::create(builder, loc, lse, join);
}

void PackGroups::pack(RewriterBase &rewriter, AttentionOp op,
                      const Group &group) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  OpFoldResult queries = tensor::getMixedSize(rewriter, loc, op.getQuery(), 2);
  Value query = packRows(rewriter, loc, op.getQuery(), group);
  SmallVector<Type> types;
  for (Value result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[1] = group.rowHeads;
    shape[2] = group.getRows();
    types.push_back(type.clone(shape));
  }
  auto packed = AttentionOp::create(
      rewriter, loc, types[0], types.size() > 1 ? types[1] : Type(), query,
      op.getKey(), op.getValue(), op.getScaleAttr(), op.getDropoutAttr(),
      op.getSeed(), op.getOffset(),
      op.getInitOutput() ? packRows(rewriter, loc, op.getInitOutput(), group)
                         : Value(),
      op.getInitLse() ? packInit(rewriter, loc, op.getInitLse(), group)
                      : Value(),
      op.getSplitSizeAttr(), op.getScheduleAttr());
  packRegion(rewriter, op.getScore(), packed.getScore(), group);
  packRegion(rewriter, op.getMask(), packed.getMask(), group);
  rewriter.setInsertionPointAfter(packed);
  SmallVector<Value> results;
  for (auto [result, whole] :
       llvm::zip_equal(packed->getResults(), op->getResults()))
    results.push_back(unpackRows(rewriter, loc, result,
                                 cast<RankedTensorType>(whole.getType()), group,
                                 queries));
  rewriter.replaceOp(op, results);
}
