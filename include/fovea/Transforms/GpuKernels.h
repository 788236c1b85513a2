//===- GpuKernels.h - The kernels of a compiled module ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After `gpu-outline-kernels` the device's code is one `gpu.module @kernels`
// inside of the host's module, from then on through all levels. Its kernels, in
// the order in which they are in it, are the module's list of kernels: compiled
// host code names a kernel by its index in that list.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TRANSFORMS_GPUKERNELS_H
#define FOVEA_TRANSFORMS_GPUKERNELS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace fovea {

/// Name of the `gpu.module` with all kernels.
inline constexpr llvm::StringLiteral kKernelModule = "kernels";

/// An attribute of launches and kernels whose memref operands, where one of
/// them is written, are in memory apart.
inline constexpr llvm::StringLiteral kDistinctMemory = "fovea.distinct_memory";

/// An attribute of kernels whose threads wait for the kernels in front by
/// themselves, so that blocks may start before.
inline constexpr llvm::StringLiteral kStartsEarly = "fovea.starts_early";

/// The module with the kernels of `module`, or null if it has none.
mlir::gpu::GPUModuleOp getKernelModule(mlir::ModuleOp module);

/// The names of the kernels, as in the code for the device: `gpu.func`s or
/// `llvm.func`s.
llvm::SmallVector<llvm::StringRef>
getKernelNames(mlir::gpu::GPUModuleOp kernels);

} // namespace fovea

#endif // FOVEA_TRANSFORMS_GPUKERNELS_H
