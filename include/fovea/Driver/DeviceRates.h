//===- DeviceRates.h - Measured rates of this machine's GPU -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_DEVICERATES_H
#define FOVEA_DRIVER_DEVICERATES_H

#include "fovea/Dialect/Machine/IR/GpuArch.h"
#include "fovea/Target/HostTarget.h"

namespace fovea {

/// Measures the rates that code for `arch` reaches on this machine's GPU, by
/// kernels that Fovea compiles: a copy beyond the caches, chains of
/// multiply-adds in registers, and products of tiles of bf16 that stay in
/// shared memory. Takes a few seconds once; the disk cache keeps the numbers
/// for the device, its driver and this build.
llvm::Expected<MachineRates> measureDevice(const machine::GpuArch &arch);

} // namespace fovea

#endif // FOVEA_DRIVER_DEVICERATES_H
