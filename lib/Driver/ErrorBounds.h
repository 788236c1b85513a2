//===- ErrorBounds.h - Rounding of a function's results ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_ERRORBOUNDS_H
#define FOVEA_LIB_DRIVER_ERRORBOUNDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fovea {

/// Returns the distance from an evaluation in f64 that each result of a
/// function without calls may have: the bound of the narrowest type of the
/// values that the result is computed from. Types of values that are only read
/// or moved do not count, as those values are exact; an op of attention counts
/// with the type that it accumulates in, and weights with the type of the
/// values that they multiply.
llvm::SmallVector<double> deriveErrorBounds(mlir::func::FuncOp function);

/// Returns, for each operand of a function without calls, true if it is summed
/// over, as queries, keys and values are: a product of matrices is computed
/// from it, and no other product before that. An operand that is only added to
/// such sums does not count.
llvm::SmallVector<bool> findSummedOperands(mlir::func::FuncOp function);

/// Makes every floating-point operand an f64, which is rounded immediately to
/// its former type. `promote-to-f64` drops the rounding.
void widenOperands(mlir::func::FuncOp function);

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_ERRORBOUNDS_H
