//===- Launch.h - Kernels with one thread per work item ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_LAUNCH_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_LAUNCH_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace fovea {

/// What a kernel's body is built with: the work item, and the number of the
/// thread among all of the grid.
using ItemBuilder = llvm::function_ref<void(
    mlir::OpBuilder &builder, mlir::Value item, mlir::Value thread)>;

/// Threads of a block of these kernels.
inline constexpr int64_t kItemBlock = 256;

/// Emits `body` in an `scf.if`, unless it is known that `items` is not 0.
void emitUnlessEmpty(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value items, llvm::function_ref<void()> body);

/// Emits a kernel that does `items` work items, one a thread or, where there
/// are more than threads in `largestGrid` blocks, one after another.
mlir::gpu::LaunchOp emitItemLaunch(mlir::OpBuilder &builder, mlir::Location loc,
                                   mlir::Value items, int64_t largestGrid,
                                   ItemBuilder body);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_LAUNCH_H
