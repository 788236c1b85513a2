//===- HeadGroups.cpp - Reshapes of the heads of a group ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadGroups.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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
