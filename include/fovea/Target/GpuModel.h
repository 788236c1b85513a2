//===- GpuModel.h - How large and fast GPUs are -----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_GPUMODEL_H
#define FOVEA_TARGET_GPUMODEL_H

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Target/GpuTarget.h"

namespace fovea {

/// Lanes of a warp.
inline constexpr int64_t kWarpSize = 32;
/// Threads that a block can have.
inline constexpr int64_t kLargestBlock = 1024;
/// Threads that a multiprocessor can have.
inline constexpr int64_t kThreadsPerCore = 2048;
/// Registers, of 32 bits, of a multiprocessor.
inline constexpr int64_t kRegistersPerCore = 65536;
/// Blocks that a grid can have along its first dimension.
inline constexpr int64_t kLargestGrid = (int64_t(1) << 31) - 1;
/// Shared memory that a block can have without asking for more, in bytes.
inline constexpr int64_t kDefaultSharedMemory = 48 << 10;

/// The model of the GPU that is typical of `arch`: an A100 (40 GB) for sm_80,
/// an H200 for sm_90a.
attn::TargetAttr getGpuModel(mlir::MLIRContext *context, GpuArch arch);

} // namespace fovea

#endif // FOVEA_TARGET_GPUMODEL_H
