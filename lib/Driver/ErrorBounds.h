//===- ErrorBounds.h - What rounds the results of a function ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_ERRORBOUNDS_H
#define FOVEA_LIB_DRIVER_ERRORBOUNDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fovea {

/// How far from an evaluation in f64 each result of a function without calls
/// may be: the bound of the narrowest type of what the result is computed
/// from. Types of values that are only read or moved do not count, as those
/// are exact; an op of attention counts with the type that it accumulates in.
llvm::SmallVector<double> deriveErrorBounds(mlir::func::FuncOp function);

/// The operands of a function without calls that are summed over, such as
/// queries, keys and values: those that a product of matrices is computed from,
/// and no other product before it. What is only added to such sums is not one.
llvm::SmallVector<bool> findSummedOperands(mlir::func::FuncOp function);

/// Makes every floating-point operand an f64, which is rounded at once to the
/// type that it had. `promote-to-f64` drops the rounding.
void widenOperands(mlir::func::FuncOp function);

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_ERRORBOUNDS_H
