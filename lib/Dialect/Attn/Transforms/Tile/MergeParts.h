//===- MergeParts.h - The sums of a row of which there are parts ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_TRANSFORMS_TILE_MERGEPARTS_H
#define FOVEA_DIALECT_ATTN_TRANSFORMS_TILE_MERGEPARTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace fovea::attn {

/// The results of a row: its output, [features], and its log-sum-exp as each
/// element of a tensor of rank 1; null if nobody asked for it.
struct MergedRow {
  mlir::Value output, lse;
};

/// The parts of a row, of one type of elements: outputs, [parts, features],
/// log-sum-exps, [parts], minus infinity without a key, and what these are
/// rounded by, [parts].
struct RowParts {
  mlir::Value outputs, lses, rests;
};

/// Returns the usual number of parts of a row of several, where tiles of so
/// many queries have up to `split` parts each: all where there are few rows,
/// since their tile is the only one then. Of more all tiles have as many parts
/// together, each a few, but far more rows are merged.
int64_t getUsualParts(int64_t queryTile, int64_t split);

/// Emits the sum of the first `count` of the parts of `row`, at least one, in
/// an order that does not depend on `count`: that of the parts, or, if `usual`
/// is not 0, the usual number of parts of a row of several, that of the sums of
/// groups of threads, which have every so many-th part each. The output, 0 of a
/// row without a key, gets the shape and type of `room`, and the log-sum-exp
/// the type `lse`.
MergedRow mergeParts(mlir::OpBuilder &builder, mlir::Location loc,
                     const RowParts &row, mlir::Value count, int64_t usual,
                     mlir::Value room, mlir::FloatType lse);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_TRANSFORMS_TILE_MERGEPARTS_H
