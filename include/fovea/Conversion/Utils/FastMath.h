//===- FastMath.h - What may be inexact in computing floats -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_CONVERSION_UTILS_FASTMATH_H
#define FOVEA_CONVERSION_UTILS_FASTMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fovea {

/// Adds `flags` to those of `op`, an op on floats that has some.
void addFastMath(mlir::Operation *op, mlir::arith::FastMathFlags flags);

} // namespace fovea

#endif // FOVEA_CONVERSION_UTILS_FASTMATH_H
