//===- BatchTables.h - Tables that batches fill -----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Items of work are listed by loops over batches, each of which finds out where
// its own belong by sums over all batches.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_BATCHTABLES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_BATCHTABLES_H

#include "fovea/Analysis/IndexMath.h"

namespace fovea::attn {

/// Emits `count` sums of the terms that `getTerms` returns for each batch, as a
/// loop that the threads of a block can share.
llvm::SmallVector<mlir::Value> sumOverBatches(
    mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult batches,
    unsigned count,
    llvm::function_ref<llvm::SmallVector<mlir::OpFoldResult>(IndexMath &,
                                                             mlir::Value batch)>
        getTerms);

/// Elements of a tensor that an iteration owns.
struct OwnElements {
  mlir::OpFoldResult first, count;
  /// The first one, an index that is not negative, and what each other one is
  /// more than the one in front: 0, 1 or -1.
  mlir::Value value;
  int64_t step = 0;
};

/// Emits a loop over `batches` that fills tensors of these sizes, of indices or
/// integers. Each iteration owns the elements that `emit` returns, for each
/// tensor.
llvm::SmallVector<mlir::Value> fillByBatches(
    mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult batches,
    llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Type element,
    llvm::function_ref<llvm::SmallVector<OwnElements>(mlir::OpBuilder &,
                                                      mlir::Value batch)>
        emit);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_BATCHTABLES_H
