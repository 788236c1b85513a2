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

/// The results of a row: its output, [features], and its log-sum-exp, also once
/// for each feature; null if nobody asked for it.
struct MergedRow {
  mlir::Value output, lse;
};

/// Emits the sum of `count` parts of a row, at least one: their `outputs`,
/// [parts, features], and log-sum-exps `lses`, [parts], minus infinity without
/// a key. Parts are added in their order. The output, 0 of a row without a key,
/// gets the shape and type of `room`, and the log-sum-exp the type `lse`.
MergedRow mergeParts(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value outputs, mlir::Value lses, mlir::Value count,
                     mlir::Value room, mlir::FloatType lse);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_TRANSFORMS_TILE_MERGEPARTS_H
