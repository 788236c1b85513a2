//===- HostLoops.h - Loops of scalar ops on memory --------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_HOSTLOOPS_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_HOSTLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fovea {

/// Returns true if `op` is a loop or a condition of scalar ops that read or
/// write the GPU's memory, without anything that only the host can do.
bool isScalarProgram(mlir::Operation *op);

/// Turns such an `op` into kernels. Loops that add terms at computed places
/// become a kernel with a thread for each term, which adds atomically or, where
/// results must not depend on the order, in integers (`ReproducibleSum.h`);
/// `convert` is called for ops over these integers. Everything else becomes a
/// kernel of one thread, whose results are in memory.
llvm::LogicalResult convertScalarProgram(
    mlir::OpBuilder &builder, mlir::Operation *op, bool deterministic,
    llvm::function_ref<llvm::LogicalResult(mlir::linalg::LinalgOp)> convert);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_HOSTLOOPS_H
