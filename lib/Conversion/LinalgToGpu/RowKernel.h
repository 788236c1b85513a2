//===- RowKernel.h - A row in the registers of a block ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_ROWKERNEL_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_ROWKERNEL_H

#include "RowPlan.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace fovea {

/// Emits, for the host, the condition that the plan holds for the sizes and
/// addresses that the loop gets; null if it always holds.
mlir::Value emitRowCondition(mlir::OpBuilder &builder, mlir::Location loc,
                             const RowPlan &plan, mlir::Value length);

/// Emits the kernel for `items` rows. `getIndices` builds the induction
/// variables of the loop for one of them.
mlir::gpu::LaunchOp emitRowKernel(
    mlir::OpBuilder &builder, mlir::scf::ForallOp forall, const RowPlan &plan,
    mlir::Value items, mlir::Value length,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value item)>
        getIndices);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_ROWKERNEL_H
