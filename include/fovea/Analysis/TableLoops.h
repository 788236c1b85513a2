//===- TableLoops.h - Parallel loops that fill tables -----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_TABLELOOPS_H
#define FOVEA_ANALYSIS_TABLELOOPS_H

#include "fovea/Analysis/IndexMath.h"

#include <functional>

namespace fovea {

/// Returns the elements of an item, one of each table. Their place is the
/// item's own number, unless the function changes it.
using FillTablesFn = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::OpBuilder &, mlir::ValueRange item,
    llvm::SmallVectorImpl<mlir::OpFoldResult> &place)>;

/// Emits a parallel loop over items, each of which owns one element of all
/// tables, tensors of `shape` with elements of `types`. Indices become integers
/// without sign. Returns the tables.
llvm::SmallVector<mlir::Value>
fillTables(mlir::OpBuilder &builder, mlir::Location loc,
           llvm::ArrayRef<mlir::OpFoldResult> shape,
           llvm::ArrayRef<mlir::Type> types, FillTablesFn emit);

/// Elements of a table that an item owns.
struct TableRange {
  mlir::OpFoldResult first, count;
  /// What they are, or, where they differ, what `getMore` is added to for the
  /// number of each in the range.
  mlir::OpFoldResult value;
  std::function<mlir::OpFoldResult(IndexMath &, mlir::OpFoldResult number)>
      getMore = {};
};

/// Emits a parallel loop over so many items that fills tables, tensors of these
/// sizes with elements of `type`. Each item owns the elements that `emit`
/// returns, for each table, whose values are indices.
llvm::SmallVector<mlir::Value>
fillRanges(mlir::OpBuilder &builder, mlir::Location loc,
           mlir::OpFoldResult items, llvm::ArrayRef<mlir::OpFoldResult> sizes,
           mlir::Type type,
           llvm::function_ref<llvm::SmallVector<TableRange>(mlir::OpBuilder &,
                                                            mlir::Value item)>
               emit);

/// Emits the binary logarithm of the number of steps that a span takes, rounded
/// up, as an i32; 0 for none. Blocks that get items when they are free need no
/// more order than that, and take those of one sequence after those of another,
/// as far as each has as many digits.
mlir::Value countDoublings(IndexMath &math, mlir::OpFoldResult span,
                           mlir::OpFoldResult step);

/// Returns the most steps of items that are taken in any order, as each of so
/// many `blocks` gets so many of all items that they end together. Such items
/// stay with the others of their sequence, which read the same keys. (64
/// sequences of 256, 16 heads, d = 128, H200: 94 us, and 83.)
mlir::OpFoldResult countShortSteps(IndexMath &math, mlir::OpFoldResult items,
                                   int64_t blocks);

} // namespace fovea

#endif // FOVEA_ANALYSIS_TABLELOOPS_H
