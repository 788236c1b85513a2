//===- Signature.h - Functions as callers see them --------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_SIGNATURE_H
#define FOVEA_LIB_DRIVER_SIGNATURE_H

#include "fovea/Driver/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fovea {

/// Describes a function of a text, which has the names of its operands.
Signature describe(mlir::func::FuncOp function, llvm::StringRef text);

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_SIGNATURE_H
