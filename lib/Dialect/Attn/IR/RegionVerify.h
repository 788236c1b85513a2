//===- RegionVerify.h - Ops allowed in regions of attn ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_IR_REGIONVERIFY_H
#define FOVEA_LIB_DIALECT_ATTN_IR_REGIONVERIFY_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// Checks that the region has arguments of types `arguments`, yields `result`
/// and holds only operations on numbers. `name` is the region's name in the
/// op's syntax.
llvm::LogicalResult verifyRegion(mlir::Operation *op, llvm::StringRef name,
                                 mlir::Region &region,
                                 llvm::ArrayRef<mlir::Type> arguments,
                                 mlir::Type result);

/// Checks the log-sum-exp of a state that rows begin from; `rows` is a tensor
/// [B, H, Sq, ...].
llvm::LogicalResult verifyInitLse(mlir::Operation *op, mlir::Value rows,
                                  mlir::Value lse, mlir::Type accumulation);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_IR_REGIONVERIFY_H
