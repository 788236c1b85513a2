//===- OutlinedChecks.h - Functions that check operands first ---*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_SUPPORT_OUTLINEDCHECKS_H
#define FOVEA_SUPPORT_OUTLINEDCHECKS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace fovea {

/// Returns the name of the function that checks the sizes of a function's
/// operands (`outline-shape-checks`).
inline std::string getShapeCheckName(llvm::StringRef function) {
  return (function + ".shapes").str();
}

/// Returns the name of the function that tests whether a function can use its
/// operands where they are (`tile-pack-operands`).
inline std::string getAlignmentCheckName(llvm::StringRef function) {
  return (function + ".aligned").str();
}

/// Clones the ops that `value` is computed from, but for what is mapped
/// already, and returns what stands for it.
mlir::Value cloneSlice(mlir::OpBuilder &builder, mlir::Value value,
                       mlir::IRMapping &mapping);

} // namespace fovea

#endif // FOVEA_SUPPORT_OUTLINEDCHECKS_H
