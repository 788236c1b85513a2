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

Value fovea::attn::makePlaces(OpBuilder &builder, Location loc, Value heads,
                              int64_t dim, int64_t places) {
  auto type = cast<RankedTensorType>(heads.getType());
  if (type.getDimSize(dim) == places)
    return heads;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, heads),
                            all = sizes,
                            zeros(sizes.size(), builder.getIndexAttr(0)),
                            ones(sizes.size(), builder.getIndexAttr(1));
  all[dim] = builder.getIndexAttr(places);
  Value room =
      tensor::EmptyOp::create(builder, loc, all, type.getElementType());
  return tensor::InsertSliceOp::create(builder, loc, heads, room, zeros, sizes,
                                       ones);
}

/// Returns true if sizes of a part are those of `whole`, but along `dim`.
static bool areAllBut(ArrayRef<OpFoldResult> part, Value whole, int64_t dim) {
  auto type = cast<RankedTensorType>(whole.getType());
  if (static_cast<int64_t>(part.size()) != type.getRank() ||
      !getConstantIntValue(part[dim]) || type.isDynamicDim(dim))
    return false;
  return llvm::all_of(llvm::enumerate(part), [&](auto each) {
    int64_t at = each.index();
    return at == dim ||
           ValueBoundsConstraintSet::areEqual(each.value(), {whole, at})
               .value_or(false);
  });
}

Value fovea::attn::getHeadsOfPlaces(Value places, int64_t dim) {
  auto insertion = places.getDefiningOp<tensor::InsertSliceOp>();
  bool areHeads =
      insertion && insertion.getDest().getDefiningOp<tensor::EmptyOp>() &&
      insertion.hasZeroOffset() && insertion.hasUnitStride() &&
      insertion.getSourceType().getRank() == insertion.getType().getRank() &&
      areAllBut(insertion.getMixedSizes(), insertion.getDest(), dim);
  return areHeads ? insertion.getSource() : Value();
}

bool fovea::attn::dropsPlaces(tensor::ExtractSliceOp slice, int64_t dim) {
  return slice.hasZeroOffset() && slice.hasUnitStride() &&
         slice.getType().getRank() == slice.getSourceType().getRank() &&
         areAllBut(slice.getMixedSizes(), slice.getSource(), dim);
}

Value fovea::attn::dropPlaces(OpBuilder &builder, Location loc, Value tensor,
                              int64_t dim, int64_t heads) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getDimSize(dim) == heads)
    return tensor;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor),
                            zeros(sizes.size(), builder.getIndexAttr(0)),
                            ones(sizes.size(), builder.getIndexAttr(1));
  sizes[dim] = builder.getIndexAttr(heads);
  return tensor::ExtractSliceOp::create(builder, loc, tensor, zeros, sizes,
                                        ones);
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
