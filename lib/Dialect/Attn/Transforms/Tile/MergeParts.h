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

/// What the parts of a row add up to: the largest log-sum-exp, several times,
/// and for each feature the sum of the weights relative to it, and that of the
/// weighted outputs.
struct MergedRow {
  mlir::Value largest, weights, outputs;

  /// Emits the output, 0 of a row without a key, into `room`, [features].
  mlir::Value getOutput(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value room) const;

  /// Emits the log-sum-exp, a number of the type of those of parts.
  mlir::Value getLse(mlir::OpBuilder &builder, mlir::Location loc) const;
};

/// Emits the sum of `count` parts, at least one: their `outputs`, [parts,
/// features], and log-sum-exps `lses`, [parts], minus infinity without a key.
/// Parts are added in their order.
MergedRow mergeParts(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value outputs, mlir::Value lses, mlir::Value count,
                     mlir::OpFoldResult features);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_TRANSFORMS_TILE_MERGEPARTS_H
