//===- HeadGroups.h - Reshapes of the heads of a group ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Queries of the heads of a group become rows of one head by reshapes that
// divide a dimension in two and join two others, with a transposition in
// between: whole tensors (attn-pack-groups), and then their tiles (attn-tile).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_HEADGROUPS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_HEADGROUPS_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Builders.h"

namespace fovea::attn {

/// Returns a group of dimensions for each dimension of a tensor of `rank`, two
/// in the place of dimension `pair`.
llvm::SmallVector<mlir::ReassociationIndices> getGroupsWithPair(int64_t rank,
                                                                int64_t pair);

/// Returns the permutation of the dimensions of a tensor of `rank` that swaps
/// dimension `dim` and the next one.
llvm::SmallVector<int64_t> getSwap(int64_t rank, int64_t dim);

/// Returns `tensor` with dimension `dim` and the next one swapped.
mlir::Value swapWithNext(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value tensor, int64_t dim);

/// Returns `heads`, whose dimension `dim` they are, with so many places along
/// it, of which those behind them hold anything.
mlir::Value makePlaces(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value heads, int64_t dim, int64_t places);

/// Returns true if `slice` keeps the first places of a tensor along `dim`, and
/// all along the others.
bool dropsPlaces(mlir::tensor::ExtractSliceOp slice, int64_t dim);

/// Returns the first `heads` places of `tensor` along dimension `dim`.
mlir::Value dropPlaces(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value tensor, int64_t dim, int64_t heads);

/// Returns the heads of which `makePlaces` has made `places` along `dim`; null
/// if it has not.
mlir::Value getHeadsOfPlaces(mlir::Value places, int64_t dim);

/// Returns `rows`, of one head of a tile, [1, 1, outer * inner, ...], as [1,
/// outer, inner, ...].
mlir::Value splitRows(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value rows, mlir::OpFoldResult outer,
                      int64_t inner);

/// Returns `split`, [1, outer, inner, ...], as rows of one head of `type`, [1,
/// 1, outer * inner, ...]: so many `rows`.
mlir::Value joinRows(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value split, mlir::RankedTensorType type,
                     mlir::OpFoldResult rows);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_HEADGROUPS_H
