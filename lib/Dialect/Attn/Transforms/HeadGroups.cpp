//===- HeadGroups.cpp - Reshapes of the heads of a group ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadGroups.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;

/// The dimensions of tiles: [B, H, rows].
enum : unsigned { kBatch, kHead, kRow };

SmallVector<ReassociationIndices> fovea::attn::getGroupsWithPair(int64_t rank,
                                                                 int64_t pair) {
  SmallVector<ReassociationIndices> groups(rank);
  int64_t next = 0;
  for (auto [dim, group] : llvm::enumerate(groups)) {
    group.push_back(next++);
    if (static_cast<int64_t>(dim) == pair)
      group.push_back(next++);
  }
  return groups;
}

SmallVector<int64_t> fovea::attn::getSwap(int64_t rank, int64_t dim) {
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(rank));
  std::swap(dims[dim], dims[dim + 1]);
  return dims;
}

Value fovea::attn::swapWithNext(OpBuilder &builder, Location loc, Value tensor,
                                int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  std::swap(sizes[dim], sizes[dim + 1]);
  Value room =
      tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  return linalg::TransposeOp::create(builder, loc, tensor, room,
                                     getSwap(type.getRank(), dim))
      ->getResult(0);
}

namespace {
/// The first elements of a tensor along one dimension, and all along others.
struct FirstElements {
  SmallVector<OpFoldResult> offsets, sizes, strides;

  FirstElements(OpBuilder &builder, SmallVector<OpFoldResult> all, int64_t dim,
                int64_t count)
      : offsets(all.size(), builder.getIndexAttr(0)), sizes(std::move(all)),
        strides(sizes.size(), builder.getIndexAttr(1)) {
    sizes[dim] = builder.getIndexAttr(count);
  }
};
} // namespace

Value fovea::attn::makePlaces(OpBuilder &builder, Location loc, Value heads,
                              int64_t dim, int64_t places) {
  auto type = cast<RankedTensorType>(heads.getType());
  int64_t count = type.getDimSize(dim);
  if (count == places)
    return heads;
  SmallVector<OpFoldResult> all = tensor::getMixedSizes(builder, loc, heads);
  all[dim] = builder.getIndexAttr(places);
  Value room =
      tensor::EmptyOp::create(builder, loc, all, type.getElementType());
  FirstElements first(builder, std::move(all), dim, count);
  return tensor::InsertSliceOp::create(builder, loc, heads, room, first.offsets,
                                       first.sizes, first.strides);
}

/// Returns true if `slice` is the first elements of `whole` along `dim`, which
/// are static in number, and all along the others, of values of `rank`
/// dimensions.
static bool areFirst(OffsetSizeAndStrideOpInterface slice, int64_t rank,
                     Value whole, int64_t dim) {
  auto type = cast<RankedTensorType>(whole.getType());
  SmallVector<OpFoldResult> sizes = slice.getMixedSizes();
  if (!slice.hasZeroOffset() || !slice.hasUnitStride() ||
      rank != type.getRank() || !getConstantIntValue(sizes[dim]) ||
      type.isDynamicDim(dim))
    return false;
  return llvm::all_of(llvm::enumerate(sizes), [&](auto each) {
    int64_t at = each.index();
    return at == dim ||
           ValueBoundsConstraintSet::areEqual(each.value(), {whole, at})
               .value_or(false);
  });
}

Value fovea::attn::getHeadsOfPlaces(Value places, int64_t dim) {
  auto insertion = places.getDefiningOp<tensor::InsertSliceOp>();
  bool areHeads = insertion &&
                  insertion.getDest().getDefiningOp<tensor::EmptyOp>() &&
                  areFirst(insertion, insertion.getSourceType().getRank(),
                           insertion.getDest(), dim);
  return areHeads ? insertion.getSource() : Value();
}

bool fovea::attn::dropsPlaces(tensor::ExtractSliceOp slice, int64_t dim) {
  return areFirst(slice, slice.getType().getRank(), slice.getSource(), dim);
}

Value fovea::attn::dropPlaces(OpBuilder &builder, Location loc, Value tensor,
                              int64_t dim, int64_t heads) {
  if (cast<RankedTensorType>(tensor.getType()).getDimSize(dim) == heads)
    return tensor;
  FirstElements first(builder, tensor::getMixedSizes(builder, loc, tensor), dim,
                      heads);
  return tensor::ExtractSliceOp::create(builder, loc, tensor, first.offsets,
                                        first.sizes, first.strides);
}

Value fovea::attn::splitRows(OpBuilder &builder, Location loc, Value rows,
                             OpFoldResult outer, int64_t inner) {
  int64_t rank = cast<RankedTensorType>(rows.getType()).getRank();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, rows);
  sizes[kHead] = outer;
  sizes[kRow] = builder.getIndexAttr(inner);
  Value flat = tensor::CollapseShapeOp::create(
      builder, loc, rows, getGroupsWithPair(rank - 1, kBatch));
  return expandShape(builder, loc, flat, getGroupsWithPair(rank - 1, kHead),
                     sizes);
}

Value fovea::attn::joinRows(OpBuilder &builder, Location loc, Value split,
                            RankedTensorType type, OpFoldResult rows) {
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, split);
  sizes[kHead] = builder.getIndexAttr(1);
  sizes[kRow] = rows;
  Value flat = tensor::CollapseShapeOp::create(
      builder, loc, split, getGroupsWithPair(rank - 1, kHead));
  return tensor::ExpandShapeOp::create(
      builder, loc, type, flat, getGroupsWithPair(rank - 1, kBatch), sizes);
}
