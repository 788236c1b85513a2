//===- GpuTarget.h - The GPUs that code can be made for ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_GPUTARGET_H
#define FOVEA_TARGET_GPUTARGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace fovea {

/// Which instructions kernels may use.
enum class GpuArch {
  /// mma.sync and cp.async: Ampere and everything since.
  SM80,
  /// WGMMA and TMA: Hopper alone.
  SM90a,
};

/// `sm_80` or `sm_90a`, as NVIDIA's tools and LLVM call it.
llvm::StringRef getName(GpuArch arch);

/// The arch with this name, or none.
std::optional<GpuArch> parseGpuArch(llvm::StringRef name);

/// The best arch for a device of this compute capability; an error if there is
/// none.
llvm::Expected<GpuArch> selectGpuArch(int major, int minor);

/// What to assemble PTX of `arch` for, so that a device of this compute
/// capability runs it: machine code of sm_80 is no code for later devices, but
/// its PTX is. An error if the device cannot run code of `arch`.
llvm::Expected<std::string> getAssemblyChip(GpuArch arch, int major, int minor);

} // namespace fovea

#endif // FOVEA_TARGET_GPUTARGET_H
