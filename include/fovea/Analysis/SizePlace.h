//===- SizePlace.h - Sizes of operands of functions -------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_SIZEPLACE_H
#define FOVEA_ANALYSIS_SIZEPLACE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace fovea {

/// A dimension of an operand, and what is added to it.
struct SizePlace {
  unsigned operand = 0, dim = 0;
  int64_t more = 0;

  /// Returns the operand of `function` and the dimension of it that a dimension
  /// of `tensor` is equal to, but for what is added, if there is one.
  static std::optional<SizePlace> find(mlir::func::FuncOp function,
                                       mlir::Value tensor, int64_t dim);
};

} // namespace fovea

#endif // FOVEA_ANALYSIS_SIZEPLACE_H
