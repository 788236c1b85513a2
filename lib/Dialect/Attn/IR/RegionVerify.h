//===- RegionVerify.h - What regions of attn may hold -----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_IR_REGIONVERIFY_H
#define FOVEA_LIB_DIALECT_ATTN_IR_REGIONVERIFY_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// The region has arguments of types `arguments`, yields `result` and holds
/// operations on numbers only. `name` is how the op's syntax calls it.
llvm::LogicalResult verifyRegion(mlir::Operation *op, llvm::StringRef name,
                                 mlir::Region &region,
                                 llvm::ArrayRef<mlir::Type> arguments,
                                 mlir::Type result);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_IR_REGIONVERIFY_H
