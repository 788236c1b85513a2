//===- TextChecks.h - Checks beyond parser and verifier ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_TEXTCHECKS_H
#define FOVEA_LIB_DRIVER_TEXTCHECKS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace fovea {

/// Returns an error if brackets nest deeper than any graph needs. The parser
/// recurs with them, and so does most code that works on the ops.
llvm::Error checkNesting(llvm::StringRef text, llvm::StringRef name);

/// Emits an error where an integer is divided by a constant 0.
mlir::LogicalResult checkDivisions(mlir::ModuleOp module);

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_TEXTCHECKS_H
