//===- GpuKernels.h - Kernels of a compiled module --------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After `gpu-outline-kernels`, and from then on through all levels, the
// device's code is one `gpu.module @kernels` inside of the host's module. The
// order of the kernels in that module makes the list of kernels: compiled host
// code names a kernel by its index in that list.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TRANSFORMS_GPUKERNELS_H
#define FOVEA_TRANSFORMS_GPUKERNELS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace fovea {

/// The name of the `gpu.module` with all kernels.
inline constexpr llvm::StringLiteral kKernelModule = "kernels";

/// Returns the module with the kernels of `module`, or null if it has none.
mlir::gpu::GPUModuleOp getKernelModule(mlir::ModuleOp module);

/// Returns the names of the kernels, as in the code for the device: `gpu.func`s
/// or `llvm.func`s.
llvm::SmallVector<llvm::StringRef>
getKernelNames(mlir::gpu::GPUModuleOp kernels);

/// Returns true if GPUs have an instruction for `op`, an `exp2` that may be
/// approximate: `ex2.approx` of f32.
bool hasExp2Instruction(mlir::Operation *op);

} // namespace fovea

#endif // FOVEA_TRANSFORMS_GPUKERNELS_H
