//===- Launch.h - Kernels by work items -------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_LAUNCH_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_LAUNCH_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace fovea {

/// A function that builds a kernel's body for the work item `item`. `worker` is
/// the number of the thread, or block, among all of the grid.
using ItemBuilder = llvm::function_ref<void(
    mlir::gpu::LaunchOp launch, mlir::Value item, mlir::Value worker)>;

/// The threads of a block of these kernels.
inline constexpr int64_t kItemBlock = 256;

/// Emits `body` in an `scf.if`, unless it is known that `items` is not 0.
void emitUnlessEmpty(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value items, llvm::function_ref<void()> body);

/// Emits a kernel that does `items` work items, one a thread or, where there
/// are more than threads in `largestGrid` blocks, one after another.
mlir::gpu::LaunchOp emitItemLaunch(mlir::OpBuilder &builder, mlir::Location loc,
                                   mlir::Value items, int64_t largestGrid,
                                   ItemBuilder body);

/// Emits a kernel that does `items` work items, one a block of `threads`
/// threads or, where there are more than `largestGrid`, one after another.
mlir::gpu::LaunchOp emitBlockLaunch(mlir::OpBuilder &builder,
                                    mlir::Location loc, mlir::Value items,
                                    int64_t largestGrid, int64_t threads,
                                    ItemBuilder body);

/// The same with one item for every `group` threads, at most a warp, of blocks
/// of `threads` threads; `worker` is the number of the thread in its group.
mlir::gpu::LaunchOp emitGroupLaunch(mlir::OpBuilder &builder,
                                    mlir::Location loc, mlir::Value items,
                                    int64_t largestGrid, int64_t threads,
                                    int64_t group, ItemBuilder body);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_LAUNCH_H
