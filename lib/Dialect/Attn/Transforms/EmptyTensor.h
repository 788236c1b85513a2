//===- EmptyTensor.h - Uninitialised tensors of a type ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_EMPTYTENSOR_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_EMPTYTENSOR_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace fovea::attn {

/// Returns an uninitialised tensor of `type`, with dynamic sizes from the first
/// `sizes`, which may know those of the type more exactly.
mlir::Value emptyOf(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::RankedTensorType type,
                    llvm::ArrayRef<mlir::OpFoldResult> sizes);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_EMPTYTENSOR_H
