//===- TileView.cpp - Place of a tile in a tensor -------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileView.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

using namespace mlir;
using namespace fovea;

/// Returns, for each dimension of `expanded`, the group whose long dimension it
/// is, or -1; none where a group has two long dimensions.
static std::optional<SmallVector<int64_t>>
getLongGroups(RankedTensorType expanded,
              ArrayRef<ReassociationIndices> groups) {
  SmallVector<int64_t> result(expanded.getRank(), -1);
  for (auto [number, group] : llvm::enumerate(groups)) {
    bool isTaken = false;
    for (int64_t dim : group) {
      if (expanded.getDimSize(dim) == 1)
        continue;
      if (std::exchange(isTaken, true))
        return std::nullopt;
      result[dim] = number;
    }
  }
  return result;
}

/// Follows `dims` through `next`: dimension `dims[d]` became `next[dims[d]]`.
static void follow(SmallVectorImpl<int64_t> &dims, ArrayRef<int64_t> next) {
  for (int64_t &dim : dims)
    if (dim >= 0)
      dim = next[dim];
}

/// The same against the direction of `next`.
static void followBack(SmallVectorImpl<int64_t> &dims, ArrayRef<int64_t> next) {
  for (int64_t &dim : dims) {
    const auto *place = dim < 0 ? next.end() : llvm::find(next, dim);
    dim = place == next.end() ? -1 : place - next.begin();
  }
}

/// Returns the dimensions that a slice of rank `rank` keeps of a larger one.
static SmallVector<int64_t> getKept(int64_t rank,
                                    const llvm::SmallBitVector &dropped) {
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!dropped[dim])
      kept.push_back(dim);
  return kept;
}

static SmallVector<int64_t> getIdentity(Value tile) {
  return llvm::to_vector(
      llvm::seq<int64_t>(cast<RankedTensorType>(tile.getType()).getRank()));
}

int64_t TileView::getDim(int64_t dim) const {
  if (dims[dim] >= 0)
    return dims[dim];
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  for (auto [candidate, size] : llvm::enumerate(shape))
    if (size == 1 && !llvm::is_contained(dims, int64_t(candidate)))
      return candidate;
  return -1;
}

std::optional<TileView> TileView::getSource(Value tile, Region &region) {
  TileView view;
  view.dims = getIdentity(tile);
  while (true) {
    Operation *op = tile.getDefiningOp();
    if (op && !region.isAncestor(op->getParentRegion()))
      op = nullptr;
    if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op)) {
      if (!slice.hasUnitStride())
        return std::nullopt;
      follow(view.dims,
             getKept(slice.getSourceType().getRank(), slice.getDroppedDims()));
      view.tensor = slice.getSource();
      view.offsets = slice.getMixedOffsets();
      view.sizes = slice.getMixedSizes();
      return view;
    }
    if (auto cast = dyn_cast_or_null<tensor::CastOp>(op)) {
      tile = cast.getSource();
    } else if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op)) {
      auto groups = getLongGroups(expand.getResultType(),
                                  expand.getReassociationIndices());
      if (!groups)
        return std::nullopt;
      follow(view.dims, *groups);
      tile = expand.getSrc();
    } else if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
      auto groups = getLongGroups(collapse.getSrcType(),
                                  collapse.getReassociationIndices());
      if (!groups)
        return std::nullopt;
      followBack(view.dims, *groups);
      tile = collapse.getSrc();
    } else {
      view.tensor = tile;
      return view;
    }
  }
}

/// Returns true if `slice` is the first rows of a tile, whose rows run along
/// `dim`, with all of their elements.
static bool isOfFirstRows(tensor::ExtractSliceOp slice, int64_t dim) {
  if (!slice.hasUnitStride() || !slice.hasZeroOffset() ||
      slice.getDroppedDims().any())
    return false;
  auto sizes = llvm::enumerate(slice.getMixedSizes());
  return llvm::all_of(sizes, [&](auto each) {
    return int64_t(each.index()) == dim ||
           isConstantIntValue(each.value(),
                              slice.getSourceType().getDimSize(each.index()));
  });
}

/// Appends the views through which uses of `tile`, a part of what `view` is to
/// be the view of, insert it. Returns false if there is one that is no view.
static bool addTargets(Value tile, const TileView &view,
                       std::vector<TileView> &targets) {
  return llvm::all_of(tile.getUses(), [&](OpOperand &use) {
    Operation *op = use.getOwner();
    TileView next = view;
    if (auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(op)) {
      if (insert.getSource() != tile || !insert.hasUnitStride())
        return false;
      follow(next.dims,
             getKept(insert.getDestType().getRank(), insert.getDroppedDims()));
      next.tensor = insert.getDest();
      next.offsets = insert.getMixedOffsets();
      next.sizes = insert.getMixedSizes();
      targets.push_back(std::move(next));
      return true;
    }
    if (auto cast = dyn_cast<tensor::CastOp>(op))
      return addTargets(cast.getDest(), next, targets);
    // Where they are inserted says how many rows these are.
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
        slice && isOfFirstRows(slice, next.dims[2]))
      return addTargets(slice.getResult(), next, targets);
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      auto groups = getLongGroups(collapse.getSrcType(),
                                  collapse.getReassociationIndices());
      if (!groups)
        return false;
      follow(next.dims, *groups);
      return addTargets(collapse.getResult(), next, targets);
    }
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      auto groups = getLongGroups(expand.getResultType(),
                                  expand.getReassociationIndices());
      if (!groups)
        return false;
      followBack(next.dims, *groups);
      return addTargets(expand.getResult(), next, targets);
    }
    return true;
  });
}

std::optional<std::vector<TileView>> TileView::getTargets(Value tile) {
  TileView view;
  view.dims = getIdentity(tile);
  std::vector<TileView> targets;
  if (!addTargets(tile, view, targets))
    return std::nullopt;
  return targets;
}

std::optional<TileView> TileView::getTarget(Value tile) {
  std::optional<std::vector<TileView>> targets = getTargets(tile);
  if (!tile.hasOneUse() || !targets || targets->size() != 1)
    return std::nullopt;
  return targets->front();
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

/// Returns the size of `tensor`, or of the initial value of a loop's `tensor`;
/// null: not known.
static OpFoldResult getSize(Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return Builder(tensor.getContext()).getIndexAttr(type.getDimSize(dim));
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto loop = dyn_cast<scf::ForallOp>(argument.getOwner()->getParentOp());
    if (loop && argument.getArgNumber() >= loop.getRank())
      tensor = loop.getTiedOpOperand(argument)->get();
  }
  auto empty = tensor.getDefiningOp<tensor::EmptyOp>();
  return empty ? empty.getMixedSizes()[dim] : OpFoldResult();
}

OpFoldResult TileView::getRowCount(OpBuilder &builder, Location loc,
                                   bool ofWhole) const {
  int64_t dim = dims[2];
  if (dim < 0)
    return builder.getIndexAttr(1);
  if (!ofWhole && !sizes.empty())
    return sizes[dim];
  return tensor::getMixedSize(builder, loc, attn::getShaped(tensor), dim);
}

bool TileView::isClipped(int64_t dim, int64_t extent) const {
  int64_t along = getDim(dim);
  if (along < 0 || sizes.empty())
    return false;
  OpFoldResult end = getSize(tensor, along);
  if (!end)
    return false;
  // The size is the least of its candidates: each must be the extent, or the
  // rest of the tensor from the offset on.
  MLIRContext *context = tensor.getContext();
  AffineMap candidates;
  SmallVector<Value> operands;
  if (auto min =
          dyn_cast<Value>(sizes[along])
              ? cast<Value>(sizes[along]).getDefiningOp<affine::AffineMinOp>()
              : affine::AffineMinOp()) {
    candidates = min.getMap();
    operands = llvm::to_vector(min.getOperands());
  } else {
    std::optional<int64_t> size = getConstantIntValue(sizes[along]);
    if (!size)
      return false;
    candidates = AffineMap::getConstantMap(*size, context);
  }
  unsigned numDims = candidates.getNumDims();
  auto add = [&](OpFoldResult value) -> AffineExpr {
    if (std::optional<int64_t> constant = getConstantIntValue(value))
      return getAffineConstantExpr(*constant, context);
    operands.insert(operands.begin() + numDims, cast<Value>(value));
    return getAffineDimExpr(numDims++, context);
  };
  AffineExpr offset = add(offsets[along]), size = add(end);
  return llvm::all_of(candidates.getResults(), [&](AffineExpr candidate) {
    if (candidate == getAffineConstantExpr(extent, context))
      return true;
    auto excess = AffineMap::get(numDims, candidates.getNumSymbols(),
                                 candidate + offset - size);
    SmallVector<Value> values = operands;
    affine::fullyComposeAffineMapAndOperands(&excess, &values);
    affine::canonicalizeMapAndOperands(&excess, &values);
    return simplifyAffineMap(excess).getResult(0) ==
           getAffineConstantExpr(0, context);
  });
}
