//===- ParallelLoops.h - scf.forall as kernels ------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_PARALLELLOOPS_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_PARALLELLOOPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fovea {

/// Replaces a bufferised parallel loop by a kernel: with a block for each
/// iteration where there is linalg in the loop's body, whose threads share each
/// op, else with a thread for each iteration.
mlir::LogicalResult convertParallelLoop(mlir::OpBuilder &builder,
                                        mlir::scf::ForallOp forall);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_PARALLELLOOPS_H
