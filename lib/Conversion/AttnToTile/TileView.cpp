//===- TileView.cpp - Where a tile lies in a tensor -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileView.h"

using namespace mlir;
using namespace fovea;

/// For each dimension of `expanded`, the group that it is the long dimension
/// of, or -1; none where a group has two long dimensions.
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

/// Follows `dims` through `next`: where dimension `dims[d]` became `next`.
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

/// The dimensions that a slice of rank `rank` keeps of a larger one.
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

std::optional<TileView> TileView::getTarget(Value tile) {
  TileView view;
  view.dims = getIdentity(tile);
  while (tile.hasOneUse()) {
    Operation *op = *tile.user_begin();
    if (auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(op)) {
      if (insert.getSource() != tile || !insert.hasUnitStride())
        return std::nullopt;
      follow(view.dims,
             getKept(insert.getDestType().getRank(), insert.getDroppedDims()));
      view.tensor = insert.getDest();
      view.offsets = insert.getMixedOffsets();
      view.sizes = insert.getMixedSizes();
      return view;
    }
    if (auto cast = dyn_cast<tensor::CastOp>(op)) {
      tile = cast.getDest();
    } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      auto groups = getLongGroups(collapse.getSrcType(),
                                  collapse.getReassociationIndices());
      if (!groups)
        return std::nullopt;
      follow(view.dims, *groups);
      tile = collapse.getResult();
    } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      auto groups = getLongGroups(expand.getResultType(),
                                  expand.getReassociationIndices());
      if (!groups)
        return std::nullopt;
      followBack(view.dims, *groups);
      tile = expand.getResult();
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}
