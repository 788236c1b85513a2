//===- TileView.cpp - Place of a tile in a tensor -------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileView.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace fovea;

namespace {
/// The long dimensions of an expanded tensor.
struct LongDims {
  /// For each dimension the group whose long one it is, the first one of two,
  /// or -1.
  SmallVector<int64_t> groups;
  /// The first and the second long dimension of the group that has two, if
  /// there is one.
  int64_t outer = -1, inner = -1;
};
} // namespace

/// Returns the long dimensions of `expanded`; none where several groups have
/// two of them, or where the second one is dynamic.
static std::optional<LongDims>
getLongDims(RankedTensorType expanded, ArrayRef<ReassociationIndices> groups) {
  LongDims result;
  result.groups.assign(expanded.getRank(), -1);
  for (auto [number, group] : llvm::enumerate(groups)) {
    int64_t first = -1;
    for (int64_t dim : group) {
      if (expanded.getDimSize(dim) == 1)
        continue;
      if (first < 0) {
        result.groups[first = dim] = number;
      } else if (result.inner < 0 && !expanded.isDynamicDim(dim)) {
        result.outer = first;
        result.inner = dim;
      } else {
        return std::nullopt;
      }
    }
  }
  return result;
}

/// The same where no group has two long dimensions.
static std::optional<SmallVector<int64_t>>
getLongGroups(RankedTensorType expanded,
              ArrayRef<ReassociationIndices> groups) {
  std::optional<LongDims> dims = getLongDims(expanded, groups);
  if (!dims || dims->inner >= 0)
    return std::nullopt;
  return dims->groups;
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

/// Follows a view from a tensor to `expanded`, of which that is the collapsed
/// one. Returns false if not its rows alone become two dimensions.
static bool followExpanded(TileView &view, RankedTensorType expanded,
                           ArrayRef<ReassociationIndices> groups) {
  std::optional<LongDims> dims = getLongDims(expanded, groups);
  if (!dims)
    return false;
  followBack(view.dims, dims->groups);
  if (view.inner)
    return dims->inner < 0;
  if (dims->inner < 0)
    return true;
  view.innerDim = dims->inner;
  view.inner = view.used = expanded.getDimSize(dims->inner);
  return view.dims.size() > 2 && view.dims[2] == dims->outer;
}

/// Follows a view through `next`, in the direction of the view or against it.
static void followView(TileView &view, ArrayRef<int64_t> next,
                       bool isBack = false) {
  auto move = isBack ? followBack : follow;
  move(view.dims, next);
  if (!view.inner)
    return;
  SmallVector<int64_t> inner = {view.innerDim};
  move(inner, next);
  view.innerDim = inner.front();
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

SmallVector<int64_t> TileView::getDims(ArrayRef<int64_t> along) const {
  SmallVector<int64_t> result;
  for (int64_t dim : along) {
    result.push_back(getDim(dim));
    if (inner && dim == 2)
      result.push_back(innerDim);
  }
  return result;
}

/// Returns true if `slice` is the first elements of a tile along `dim`, with
/// all along its other dimensions, which are static but for the rows.
static bool isOfFirst(OffsetSizeAndStrideOpInterface slice,
                      RankedTensorType whole, int64_t dim, int64_t rows = -1) {
  if (!slice.hasUnitStride() || !slice.hasZeroOffset())
    return false;
  return llvm::all_of(llvm::enumerate(slice.getMixedSizes()), [&](auto each) {
    int64_t at = each.index();
    return at == dim || at == rows ||
           isConstantIntValue(each.value(), whole.getDimSize(at));
  });
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
      followView(view, getKept(slice.getSourceType().getRank(),
                               slice.getDroppedDims()));
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
      followView(view, *groups);
      tile = expand.getSrc();
    } else if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
      if (!followExpanded(view, collapse.getSrcType(),
                          collapse.getReassociationIndices()))
        return std::nullopt;
      tile = collapse.getSrc();
    } else if (auto transpose = dyn_cast_or_null<linalg::TransposeOp>(op)) {
      followView(view, transpose.getPermutation());
      tile = transpose.getInput();
    } else if (auto insertion = dyn_cast_or_null<tensor::InsertSliceOp>(op);
               insertion && view.inner) {
      // What lies behind the first ones along the second dimension of rows is
      // not defined.
      RankedTensorType part = insertion.getSourceType();
      if (!insertion.getDest().getDefiningOp<tensor::EmptyOp>() ||
          part.isDynamicDim(view.innerDim) ||
          insertion.getDroppedDims().any() || view.dims.size() < 3 ||
          !isOfFirst(insertion, insertion.getType(), view.innerDim,
                     view.dims[2]))
        return std::nullopt;
      view.used = part.getDimSize(view.innerDim);
      tile = insertion.getSource();
    } else {
      view.tensor = tile;
      return view;
    }
  }
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
      followView(next, getKept(insert.getDestType().getRank(),
                               insert.getDroppedDims()));
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
        slice && !slice.getDroppedDims().any()) {
      RankedTensorType whole = slice.getSourceType();
      if (next.inner && !slice.getType().isDynamicDim(next.innerDim) &&
          isOfFirst(slice, whole, next.innerDim, next.dims[2])) {
        next.used = slice.getType().getDimSize(next.innerDim);
        return addTargets(slice.getResult(), next, targets);
      }
      if (!next.inner && isOfFirst(slice, whole, next.dims[2]))
        return addTargets(slice.getResult(), next, targets);
    }
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      auto groups = getLongGroups(collapse.getSrcType(),
                                  collapse.getReassociationIndices());
      if (!groups)
        return false;
      followView(next, *groups);
      return addTargets(collapse.getResult(), next, targets);
    }
    if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
      if (transpose.getInput() != tile)
        return false;
      followView(next, transpose.getPermutation(), /*isBack=*/true);
      return addTargets(transpose->getResult(0), next, targets);
    }
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      if (!followExpanded(next, expand.getResultType(),
                          expand.getReassociationIndices()))
        return false;
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
    return IndexMath(builder, loc)
        .mul(sizes[dim], builder.getIndexAttr(std::max<int64_t>(inner, 1)));
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
