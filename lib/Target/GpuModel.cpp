//===- GpuModel.cpp - How large and fast GPUs are -------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/GpuModel.h"

using namespace fovea;

static constexpr int64_t kWarpBytes = kWarpSize * 4;
static constexpr int64_t kWarpRegisters = kRegistersPerCore / kWarpSize;

attn::TargetAttr fovea::getGpuModel(mlir::MLIRContext *context, GpuArch arch) {
  context->loadDialect<attn::AttnDialect>();
  switch (arch) {
  case GpuArch::SM80:
    return attn::TargetAttr::get(
        context, getName(arch), "ampere", /*cores=*/108, kWarpBytes,
        kWarpRegisters, /*fastMemory=*/163 << 10, /*nearMemory=*/40 << 20,
        /*bandwidth=*/1555000, /*peak=*/19500, /*sharedMemory=*/164 << 10,
        /*matrixPeak=*/312000);
  case GpuArch::SM90a:
    return attn::TargetAttr::get(
        context, getName(arch), "hopper", /*cores=*/132, kWarpBytes,
        kWarpRegisters, /*fastMemory=*/227 << 10, /*nearMemory=*/50 << 20,
        /*bandwidth=*/4290000, /*peak=*/66900, /*sharedMemory=*/228 << 10,
        /*matrixPeak=*/989000);
  }
  llvm_unreachable("unknown arch");
}
