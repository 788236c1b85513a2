//===- TileScatter.cpp - Rows of results that belong elsewhere ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileScatter.h"

#include "ReaderCost.h"

#include "fovea/Analysis/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
/// The dimensions of results: [B, H, rows], and features, if there are any.
enum : unsigned { kBatch, kHead, kRow };

/// A copy of the first rows that each batch of a result of the loop has.
struct RowCopy {
  tensor::ExtractSliceOp rows;
  tensor::ParallelInsertSliceOp insertion;
  unsigned getResult() {
    return cast<OpResult>(rows.getSource()).getResultNumber();
  }
};

class ScatterFuser {
public:
  ScatterFuser(RewriterBase &rewriter, scf::ForallOp loop)
      : rewriter(rewriter), loop(loop) {}

  bool match();
  scf::ForallOp rewrite();

private:
  bool matchCopy(tensor::ParallelInsertSliceOp insertion);
  bool matchTile(unsigned result);
  OpOperand *getInit(RowCopy &copy) {
    return copies.getTiedOpOperand(
        cast<BlockArgument>(copy.insertion.getDest()));
  }

  RewriterBase &rewriter;
  scf::ForallOp loop;
  /// The loop over batches that copies rows.
  scf::ForallOp copies;
  SmallVector<RowCopy> rows;
};
} // namespace

/// Returns true if `sizes` are those of all that `type` has behind its rows.
static bool coverFeatures(ArrayRef<OpFoldResult> sizes, RankedTensorType type) {
  return llvm::all_of(
      llvm::drop_begin(llvm::enumerate(sizes), kRow + 1), [&](auto size) {
        return isConstantIntValue(size.value(), type.getDimSize(size.index()));
      });
}

static bool areZero(ArrayRef<OpFoldResult> offsets) {
  return llvm::all_of(offsets, [](OpFoldResult offset) {
    return isConstantIntValue(offset, 0);
  });
}

bool ScatterFuser::matchCopy(tensor::ParallelInsertSliceOp insertion) {
  auto slice = insertion.getSource().getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || slice.getSource().getDefiningOp() != loop ||
      !slice->hasOneUse())
    return false;
  RankedTensorType type = slice.getSourceType();
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets(),
                            sizes = slice.getMixedSizes();
  if (type.getRank() <= kRow || slice.getDroppedDims().any() ||
      insertion.getDroppedDims().any() || !slice.hasUnitStride() ||
      !insertion.hasUnitStride() || sizes != insertion.getMixedSizes())
    return false;
  bool isOfBatch =
      offsets[kBatch] == OpFoldResult(copies.getInductionVars().front()) &&
      areZero(ArrayRef(offsets).drop_front()) &&
      isConstantIntValue(sizes[kBatch], 1) &&
      isConstantIntValue(sizes[kHead], type.getDimSize(kHead)) &&
      coverFeatures(sizes, type);
  if (!isOfBatch)
    return false;
  rows.push_back({slice, insertion});
  return true;
}

/// Returns true if a result is only what the copies read, and what an iteration
/// writes of it is rows of one batch and head.
bool ScatterFuser::matchTile(unsigned result) {
  tensor::ParallelInsertSliceOp insertion = insertionOf(loop, result);
  if (!loop.getResult(result).hasOneUse() || !insertion ||
      insertion.getDroppedDims().any() || !insertion.hasUnitStride())
    return false;
  // The tile itself may be computed in what it is then written to.
  for (Operation *user : loop.getRegionIterArgs()[result].getUsers())
    if (user != insertion && !isa<tensor::ExtractSliceOp, tensor::DimOp>(user))
      return false;
  SmallVector<OpFoldResult> sizes = insertion.getMixedSizes();
  return isConstantIntValue(sizes[kBatch], 1) &&
         isConstantIntValue(sizes[kHead], 1) &&
         coverFeatures(sizes, insertion.getDestType());
}

bool ScatterFuser::match() {
  for (Operation *user : loop->getUsers())
    if (auto other = dyn_cast<scf::ForallOp>(user->getParentOp());
        other && isa<tensor::ExtractSliceOp>(user))
      copies = other;
  if (!copies || copies == loop || copies->getBlock() != loop->getBlock() ||
      copies.getRank() != 1 || !copies.isNormalized())
    return false;
  for (Operation &op : copies.getTerminator().getYieldingOps()) {
    auto insertion = dyn_cast<tensor::ParallelInsertSliceOp>(op);
    if (!insertion || !matchCopy(insertion))
      return false;
  }
  // What else is in the loop says where the rows are.
  for (Operation &op : copies.getBody()->without_terminator())
    if (op.getNumRegions() || !isPure(&op))
      return false;
  if (rows.size() != copies.getNumResults() || rows.empty())
    return false;
  for (RowCopy &copy : rows)
    if (!matchTile(copy.getResult()))
      return false;

  // What the copies need has to be there in front of the loop.
  llvm::SetVector<Value> needed;
  getUsedValuesDefinedAbove(copies.getRegion(), needed);
  needed.insert_range(copies.getOutputs());
  needed.insert_range(copies.getDynamicUpperBound());
  needed.remove_if([&](Value value) { return value.getDefiningOp() == loop; });
  return succeeded(moveValueDefinitions(rewriter, needed.getArrayRef(), loop));
}

/// Replaces slices of `out`, in which tiles are computed, by tensors of their
/// own, of which some rows are inserted then.
static void giveOwnTiles(RewriterBase &rewriter, Value out) {
  for (Operation *user : llvm::make_early_inc_range(out.getUsers())) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!slice)
      continue;
    rewriter.setInsertionPoint(slice);
    RankedTensorType type = slice.getType();
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(slice, type, slice.getSizes());
  }
}

scf::ForallOp ScatterFuser::rewrite() {
  Location loc = loop.getLoc();
  SmallVector<Value> inits = llvm::to_vector_of<Value>(loop.getOutputs());
  SmallVector<unsigned> results;
  SmallVector<tensor::ParallelInsertSliceOp> tiles;
  for (RowCopy &copy : rows) {
    unsigned result = copy.getResult();
    results.push_back(result);
    tiles.push_back(insertionOf(loop, result));
    inits[result] = getInit(copy)->get();
  }
  rewriter.setInsertionPoint(loop);
  auto whole = scf::ForallOp::create(
      rewriter, loc, loop.getMixedLowerBound(), loop.getMixedUpperBound(),
      loop.getMixedStep(), inits, loop.getMapping());
  whole->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  rewriter.eraseOp(whole.getTerminator());
  rewriter.mergeBlocks(loop.getBody(), whole.getBody(),
                       whole.getBody()->getArguments());
  for (unsigned result : results)
    giveOwnTiles(rewriter, whole.getRegionIterArgs()[result]);

  // Where the rows of the tile's batch belong, in front of all that takes long.
  Block::iterator first = llvm::find_if(
      *whole.getBody(), [](Operation &op) { return op.getNumRegions() != 0; });
  rewriter.setInsertionPoint(whole.getBody(), first);
  IndexMath math(rewriter, loc);
  IRMapping ofTile;
  OpFoldResult batch = tiles.front().getMixedOffsets()[kBatch];
  ofTile.map(copies.getInductionVar(0), math.materialize(batch));
  for (Operation &op : copies.getBody()->without_terminator())
    if (!isa<tensor::ExtractSliceOp>(op))
      rewriter.clone(op, ofTile);
  auto lookup = [&](OpFoldResult value) -> OpFoldResult {
    if (auto known = dyn_cast<Value>(value))
      return ofTile.lookupOrDefault(known);
    return value;
  };
  OpFoldResult most = math.constant(0);
  for (auto [copy, tile, result] : llvm::zip_equal(rows, tiles, results)) {
    SmallVector<OpFoldResult> place = tile.getMixedOffsets(),
                              sizes = tile.getMixedSizes(), offsets,
                              zeros(sizes.size(), math.constant(0)),
                              strides = tile.getMixedStrides();
    OpFoldResult left =
        math.sub(lookup(copy.rows.getMixedSizes()[kRow]), place[kRow]);
    sizes[kRow] = math.max(math.min(sizes[kRow], left), math.constant(0));
    most = math.max(most, sizes[kRow]);
    for (auto [dim, offset] :
         llvm::enumerate(copy.insertion.getMixedOffsets())) {
      offsets.push_back(lookup(offset));
      if (dim == kHead || dim == kRow)
        offsets.back() = math.add(offsets.back(), place[dim]);
    }
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(whole.getTerminator());
    Value some = tensor::ExtractSliceOp::create(rewriter, loc, tile.getSource(),
                                                zeros, sizes, strides);
    rewriter.setInsertionPoint(tile);
    rewriter.replaceOpWithNewOp<tensor::ParallelInsertSliceOp>(
        tile, some, whole.getRegionIterArgs()[result], offsets, sizes, strides);
  }
  Value hasRows =
      math.materialize(math.less(math.constant(0), most), /*isBoolean=*/true);
  for (auto keys : whole.getBody()->getOps<scf::ForOp>()) {
    rewriter.setInsertionPoint(keys);
    keys.setUpperBound(arith::SelectOp::create(
        rewriter, loc, hasRows, keys.getUpperBound(), keys.getLowerBound()));
  }

  for (auto [copy, result] : llvm::zip_equal(rows, results))
    rewriter.replaceAllUsesWith(copies.getTiedOpResult(getInit(copy)),
                                whole.getResult(result));
  rewriter.eraseOp(copies);
  for (auto [result, other] :
       llvm::zip_equal(loop.getResults(), whole.getResults()))
    rewriter.replaceAllUsesWith(result, other);
  rewriter.eraseOp(loop);
  return whole;
}

scf::ForallOp fovea::attn::fuseScatter(RewriterBase &rewriter,
                                       scf::ForallOp loop) {
  ScatterFuser fuser(rewriter, loop);
  return fuser.match() ? fuser.rewrite() : scf::ForallOp();
}
