//===- TileWork.cpp - Parts of the keys of batches ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileWork.h"

#include "MergeParts.h"
#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/TableLoops.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// How many parts of a size a batch is expected to have.
static constexpr int64_t kUsualParts = 16;

/// Returns true if captured tensors are read at the batch.
static bool readsByBatch(Region &mask) {
  return mask
      .walk([&](tensor::ExtractOp read) {
        return coordinatesOf(mask, read.getResult()) & bitOf(Coordinate::Batch)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static Value getElement(OpBuilder &builder, Location loc, Value tensor,
                        ValueRange place) {
  return tensor::ExtractOp::create(builder, loc, tensor, place);
}

static Value getIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

SmallVector<Value> fovea::attn::sumOverBatches(
    OpBuilder &builder, Location loc, OpFoldResult batches, unsigned count,
    llvm::function_ref<SmallVector<OpFoldResult>(IndexMath &, Value batch)>
        getTerms) {
  auto body = [&](OpBuilder &nested, Location loc, Value batch,
                  ValueRange carried) {
    IndexMath math(nested, loc);
    SmallVector<Value> sums;
    for (auto [sum, term] : llvm::zip_equal(carried, getTerms(math, batch)))
      sums.push_back(
          arith::AddIOp::create(nested, loc, sum, math.materialize(term)));
    scf::YieldOp::create(nested, loc, sums);
  };
  Value zero = getIndex(builder, loc, 0);
  return scf::ForOp::create(
             builder, loc, zero,
             getValueOrCreateConstantIndexOp(builder, loc, batches),
             getIndex(builder, loc, 1), SmallVector<Value>(count, zero), body)
      .getResults();
}

/// Returns how many parts a batch of average length gets, between 1 and
/// `split`: those with which `batches` batches take the least time, where
/// `split` items run at once and each takes, beside its keys, as long as a
/// sixteenth of a batch.
static Value choosePartsOfAverage(OpBuilder &builder, Location loc,
                                  OpFoldResult batches, OpFoldResult split) {
  constexpr int64_t kBatch = 1 << 15, kItem = kBatch / 16;
  Value one = getIndex(builder, loc, 1);
  auto body = [&](OpBuilder &nested, Location loc, Value parts,
                  ValueRange best) {
    IndexMath math(nested, loc);
    OpFoldResult waves = math.ceilDiv(math.mul(batches, parts), split);
    OpFoldResult time =
        math.mul(waves, math.add(math.truncDiv(math.constant(kBatch), parts),
                                 math.constant(kItem)));
    OpFoldResult isBetter = math.less(time, best[1]);
    scf::YieldOp::create(
        nested, loc,
        ValueRange{math.materialize(math.select(isBetter, parts, best[0])),
                   math.materialize(math.min(time, best[1]))});
  };
  Value longest = getIndex(builder, loc, std::numeric_limits<int64_t>::max());
  IndexMath math(builder, loc);
  Value end = math.materialize(math.add(split, math.constant(1)));
  return scf::ForOp::create(builder, loc, one, end, one,
                            ValueRange{one, longest}, body)
      .getResult(0);
}

/// Returns the number of parts of `size` that so many keys have, at least one.
static OpFoldResult countParts(IndexMath &math, OpFoldResult keys,
                               int64_t size) {
  return math.max(math.ceilDiv(keys, math.constant(size)), math.constant(1));
}

/// Returns into how many parts the keys of all batches are split: as many as
/// `schedule` says, which are those of one tile of queries. Where neither the
/// number of batches nor that of queries is static, more tiles have so many
/// times fewer each.
static OpFoldResult getSplit(IndexMath &math, OpFoldResult batches,
                             OpFoldResult queries, ScheduleAttr schedule) {
  OpFoldResult split = math.constant(schedule.getSplit()),
               one = math.constant(1);
  if (IndexMath::constantOf(batches) || IndexMath::constantOf(queries))
    return split;
  OpFoldResult tiles =
      math.ceilDiv(queries, math.constant(schedule.getQueryTile()));
  return math.max(math.truncDiv(split, math.max(tiles, one)), one);
}

/// Returns how many parts each of `batches` gets that have as many `keys`: of
/// those that all are split into, if their number is not static.
static OpFoldResult countEqualParts(IndexMath &math, OpFoldResult batches,
                                    OpFoldResult keys, OpFoldResult split,
                                    ScheduleAttr schedule) {
  if (int64_t size = schedule.getSplitSize())
    return countParts(math, keys, size);
  if (IndexMath::constantOf(batches))
    return split;
  OpFoldResult some = math.max(batches, math.constant(1));
  return math.max(math.truncDiv(split, some), math.constant(1));
}

std::optional<WorkList> WorkList::create(RewriterBase &rewriter,
                                         OnlineAttentionOp pass,
                                         int64_t keyTile,
                                         ScheduleAttr schedule) {
  Region &mask = pass.getMask();
  Location loc = pass.getLoc();
  rewriter.setInsertionPoint(pass);
  SmallVector<OpFoldResult> sizes = getScoreSizes(rewriter, pass);
  OpFoldResult batches = sizes.front(), queries = sizes[2], keys = sizes.back();
  OpFoldResult one = rewriter.getIndexAttr(1);

  WorkList list;
  list.partSize = schedule.getSplitSize();
  if (schedule.getWarps())
    list.usualParts = list.partSize ? kUsualParts
                                    : getUsualParts(schedule.getQueryTile(),
                                                    schedule.getSplit());
  IndexMath math(rewriter, loc);
  OpFoldResult split = getSplit(math, batches, queries, schedule);
  if (IndexMath::constantOf(batches) || !readsByBatch(mask)) {
    list.each = countEqualParts(math, batches, keys, split, schedule);
    if (IndexMath::constantOf(list.each) == 1)
      return std::nullopt;
    list.size = math.mul(batches, list.each);
    return list;
  }
  OpFoldResult extra;
  if (list.partSize) {
    OpFoldResult most = countParts(math, keys, list.partSize);
    list.noPart = math.materialize(most);
    list.size = math.mul(batches, most);
  } else {
    Value average = choosePartsOfAverage(rewriter, loc, batches, split);
    // Where batches keep the machine busy as they are, an item takes at most
    // about as long as each of `split` that share all keys.
    extra = math.select(math.equal(average, math.constant(1)),
                        math.min(batches, split), math.mul(batches, average));
    list.size = math.max(math.sub(math.add(batches, extra), math.constant(1)),
                         math.constant(0));
  }
  // One batch needs no list.
  list.isOne = math.materialize(math.equal(batches, math.constant(1)),
                                /*isBoolean=*/true);
  OpFoldResult listed = math.select(list.isOne, math.constant(0), batches);

  auto getTiles = [&](OpBuilder &builder, Value batch) {
    return countKeyTiles(builder, pass, batch,
                         list.partSize ? list.partSize : keyTile);
  };

  auto emit = [&](OpBuilder &nested, Value batch) {
    IndexMath outer(nested, loc);
    // A batch's share is rounded down, from one that is too small by more than
    // floats are off, so that all shares together are less than `extra`.
    Formula f{nested, loc, nested.getF32Type()};
    auto toFloat = [&](const Formula &f, OpFoldResult index) {
      IndexMath math(f.builder, loc);
      Value integer = f.make<arith::IndexCastOp>(f.builder.getI64Type(),
                                                 math.materialize(index));
      return f.make<arith::SIToFPOp>(f.type, integer);
    };
    Value share;
    if (!list.partSize) {
      Value all = sumOverBatches(nested, loc, batches, 1,
                                 [&](IndexMath &math, Value at) {
                                   return SmallVector<OpFoldResult>{
                                       getTiles(math.getBuilder(), at)};
                                 })
                      .front();
      share = f.div(f.mul(toFloat(f, extra), 1 - 0x1p-16),
                    toFloat(f, outer.max(all, outer.constant(1))));
    }
    auto getParts = [&](IndexMath &math, Value tiles) {
      OpFoldResult one = math.constant(1);
      if (list.partSize)
        return math.max(one, tiles);
      Formula f{math.getBuilder(), loc, nested.getF32Type()};
      Value rounded = f.make<arith::FPToSIOp>(f.builder.getI64Type(),
                                              f.mul(toFloat(f, tiles), share));
      OpFoldResult more =
          f.make<arith::IndexCastOp>(f.builder.getIndexType(), rounded);
      return math.max(one, math.min(tiles, math.add(one, more)));
    };

    Value own = getTiles(nested, batch);
    SmallVector<Value> sums =
        sumOverBatches(nested, loc, batches, 2, [&](IndexMath &math, Value at) {
          Value tiles = getTiles(math.getBuilder(), at);
          OpFoldResult parts = getParts(math, tiles);
          OpFoldResult isBefore = math.logicalOr(
              math.less(own, tiles),
              math.logicalAnd(math.equal(own, tiles), math.less(at, batch)));
          return SmallVector<OpFoldResult>{
              math.select(isBefore, parts, math.constant(0)), parts};
        });
    Value first = sums[0], used = sums[1];
    Value parts = outer.materialize(getParts(outer, own));
    return SmallVector<TableRange>{
        {batch, one, first},
        {batch, one, parts},
        {batch, one, used},
        {first, parts, batch},
        {first, parts, outer.constant(0),
         [](IndexMath &, OpFoldResult number) { return number; }}};
  };
  SmallVector<Value> tables = fillRanges(
      rewriter, loc, listed, {batches, batches, batches, list.size, list.size},
      rewriter.getIndexType(), emit);
  list.first = tables[0];
  list.parts = tables[1];
  list.used = tables[2];
  list.batches = tables[3];
  list.numbers = tables[4];
  return list;
}

/// Returns `ifOne` if there is one batch, and else what `getListed` reads from
/// a list, which is not read otherwise.
static SmallVector<Value>
readUnlessOne(OpBuilder &builder, Location loc, Value isOne, ValueRange ifOne,
              llvm::function_ref<SmallVector<Value>(OpBuilder &)> getListed) {
  auto branch = scf::IfOp::create(
      builder, loc, isOne,
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, ifOne);
      },
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, getListed(nested));
      });
  return llvm::to_vector_of<Value>(branch.getResults());
}

void WorkList::addLoops(SmallVectorImpl<OpFoldResult> &upper) const {
  if (each)
    upper.push_back(each);
  else
    upper.front() = size;
}

WorkList::Item WorkList::getItem(OpBuilder &builder, Location loc,
                                 ValueRange iteration) const {
  if (each) {
    IndexMath math(builder, loc);
    OpFoldResult batch = iteration.front(), part = iteration.back();
    OpFoldResult number = math.add(math.mul(batch, each), part);
    return {number, batch, {part, each, partSize}};
  }
  Value zero = getIndex(builder, loc, 0), number = iteration.front();
  SmallVector<Value> item = readUnlessOne(
      builder, loc, isOne,
      {zero, number, getValueOrCreateConstantIndexOp(builder, loc, size)},
      [&](OpBuilder &nested) -> SmallVector<Value> {
        IndexMath math(nested, loc);
        OpFoldResult isUsed =
            math.less(number, getElement(nested, loc, used, zero));
        auto getUsed = [&](Value tensor, Value place, OpFoldResult other) {
          return math.materialize(math.select(
              isUsed, getElement(nested, loc, tensor, place), other));
        };
        Value batch = getUsed(batches, number, math.constant(0));
        // An item that there is not has the last of so many parts that it is
        // empty, or one behind all.
        OpFoldResult most = math.constant(std::numeric_limits<int32_t>::max());
        OpFoldResult none = most;
        if (partSize)
          none = noPart;
        return {batch, getUsed(numbers, number, none),
                getUsed(parts, batch, most)};
      });
  return {number, item[0], {item[1], item[2], partSize}};
}

std::pair<Value, Value> WorkList::getItems(OpBuilder &builder, Location loc,
                                           Value batch) const {
  if (each) {
    IndexMath math(builder, loc);
    return {math.materialize(math.mul(batch, each)), math.materialize(each)};
  }
  SmallVector<Value> items =
      readUnlessOne(builder, loc, isOne,
                    {getIndex(builder, loc, 0),
                     getValueOrCreateConstantIndexOp(builder, loc, size)},
                    [&](OpBuilder &nested) -> SmallVector<Value> {
                      return {getElement(nested, loc, first, batch),
                              getElement(nested, loc, parts, batch)};
                    });
  return {items[0], items[1]};
}

bool WorkList::mayBeWhole() const {
  return !each || !IndexMath::constantOf(each);
}

Value WorkList::isWhole(OpBuilder &builder, Location loc, OpFoldResult parts) {
  IndexMath math(builder, loc);
  return math.materialize(math.equal(parts, math.constant(1)),
                          /*isBoolean=*/true);
}

/// Emits row `row` of the results of which there are `parts`, outputs,
/// log-sum-exps and the rests of these, so many from `begin` on, into
/// `slices`. `usual` is as in `mergeParts`.
static SmallVector<Value> emitMergedRow(OpBuilder &builder, Location loc,
                                        ValueRange parts, ValueRange row,
                                        Value begin, Value count, int64_t usual,
                                        ValueRange slices) {
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  int64_t features =
      cast<RankedTensorType>(parts.front().getType()).getDimSize(3);
  OpFoldResult columns =
      tensor::getMixedSize(builder, loc, slices.front(), /*dim=*/0);
  SmallVector<OpFoldResult> offsets = {begin, row[1], row[2], zero},
                            extent = {count, one, one, columns},
                            strides(4, one);
  SmallVector<Value> ofRow;
  for (Value part : parts) {
    auto type = cast<RankedTensorType>(part.getType());
    size_t rank = type.getRank();
    SmallVector<int64_t> shape = {ShapedType::kDynamic};
    if (rank == 4)
      shape.push_back(features);
    ofRow.push_back(tensor::ExtractSliceOp::create(
        builder, loc, RankedTensorType::get(shape, type.getElementType()), part,
        ArrayRef(offsets).take_front(rank), ArrayRef(extent).take_front(rank),
        ArrayRef(strides).take_front(rank)));
  }
  FloatType lse;
  if (slices.size() > 1)
    lse = cast<FloatType>(getElementTypeOrSelf(slices[1]));
  MergedRow merged = mergeParts(builder, loc, {ofRow[0], ofRow[1], ofRow[2]},
                                count, usual, slices.front(), lse);
  SmallVector<Value> results = {merged.output};
  if (lse) {
    Value first = getIndex(builder, loc, 0);
    SmallVector<Value> at(3, first);
    Value number = tensor::ExtractOp::create(builder, loc, merged.lse, first);
    results.push_back(
        tensor::InsertOp::create(builder, loc, number, slices[1], at));
  }
  return results;
}

scf::ForallOp WorkList::merge(RewriterBase &rewriter, FinalizeOp root,
                              ValueRange parts, ValueRange wholes) const {
  Location loc = root.getLoc();
  OpFoldResult zero = rewriter.getIndexAttr(0), one = rewriter.getIndexAttr(1);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, root.getAcc());

  auto emitRow = [&](OpBuilder &builder, Location loc, ValueRange arguments) {
    SmallVector<Value> row(arguments.take_front(3));
    ValueRange outs = arguments.drop_front(row.size());
    SmallVector<OpFoldResult> place = {row[0], row[1], row[2], zero},
                              extent = {one, one, one, sizes[3]},
                              strides(4, one);
    auto getRank = [](Value tensor) -> size_t {
      return cast<RankedTensorType>(tensor.getType()).getRank();
    };
    // The row of each result: of the output its features alone.
    SmallVector<Value> slices;
    for (Value out : outs) {
      auto type = cast<RankedTensorType>(out.getType());
      size_t rank = getRank(out);
      SmallVector<int64_t> shape(3, 1);
      if (rank == 4)
        shape = {type.getDimSize(3)};
      slices.push_back(tensor::ExtractSliceOp::create(
          builder, loc, RankedTensorType::get(shape, type.getElementType()),
          out, ArrayRef(place).take_front(rank),
          ArrayRef(extent).take_front(rank),
          ArrayRef(strides).take_front(rank)));
    }
    auto [begin, count] = getItems(builder, loc, row[0]);
    auto emitMerged = [&, begin = begin, count = count](OpBuilder &nested) {
      return emitMergedRow(nested, loc, parts, row, begin, count, usualParts,
                           slices);
    };
    SmallVector<Value> rows;
    if (!each)
      rows = llvm::to_vector_of<Value>(
          scf::IfOp::create(
              builder, loc, isWhole(builder, loc, count),
              [&](OpBuilder &nested, Location loc) {
                scf::YieldOp::create(nested, loc, slices);
              },
              [&](OpBuilder &nested, Location loc) {
                scf::YieldOp::create(nested, loc, emitMerged(nested));
              })
              .getResults());
    else
      rows = emitMerged(builder);
    auto parallel = scf::InParallelOp::create(builder, loc);
    builder.setInsertionPointToStart(parallel.getBody());
    for (auto [value, out] : llvm::zip_equal(rows, outs))
      tensor::ParallelInsertSliceOp::create(
          builder, loc, value, out, ArrayRef(place).take_front(getRank(out)),
          ArrayRef(extent).take_front(getRank(out)),
          ArrayRef(strides).take_front(getRank(out)));
  };
  SmallVector<OpFoldResult> upper = {sizes[0], sizes[1], sizes[2]};
  if (each) {
    IndexMath math(rewriter, loc);
    upper[0] = math.select(math.equal(each, one), zero, sizes[0]);
  }
  auto forall = scf::ForallOp::create(rewriter, loc, upper, wholes,
                                      /*mapping=*/std::nullopt, emitRow);
  SmallVector<Value> results;
  for (auto [merged, result] :
       llvm::zip_equal(forall.getResults(), root->getResults())) {
    results.push_back(merged);
    if (merged.getType() != result.getType())
      results.back() =
          tensor::CastOp::create(rewriter, loc, result.getType(), merged);
  }
  rewriter.replaceOp(root, results);
  return forall;
}
