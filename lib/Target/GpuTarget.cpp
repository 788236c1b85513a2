//===- GpuTarget.cpp - The GPUs that code can be made for -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/GpuTarget.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ErrorHandling.h"

using namespace fovea;

static std::string formatCapability(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

llvm::StringRef fovea::getName(GpuArch arch) {
  switch (arch) {
  case GpuArch::SM80:
    return "sm_80";
  case GpuArch::SM90a:
    return "sm_90a";
  }
  llvm_unreachable("unknown arch");
}

std::optional<GpuArch> fovea::parseGpuArch(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<GpuArch>>(name)
      .Case("sm_80", GpuArch::SM80)
      .Case("sm_90a", GpuArch::SM90a)
      .Default(std::nullopt);
}

llvm::Expected<GpuArch> fovea::selectGpuArch(int major, int minor) {
  if (major == 9 && minor == 0)
    return GpuArch::SM90a;
  if (major >= 8)
    return GpuArch::SM80;
  return llvm::createStringError(
      std::make_error_code(std::errc::no_such_device),
      "the GPU has compute capability " + formatCapability(major, minor) +
          ", and Fovea needs 8.0 or newer");
}

llvm::Expected<std::string> fovea::getAssemblyChip(GpuArch arch, int major,
                                                   int minor) {
  switch (arch) {
  case GpuArch::SM80:
    if (major >= 8)
      return "sm_" + std::to_string(major) + std::to_string(minor);
    break;
  case GpuArch::SM90a:
    // An `a` stands for one device alone.
    if (major == 9 && minor == 0)
      return "sm_90a";
    break;
  }
  return llvm::createStringError(
      std::make_error_code(std::errc::no_such_device),
      "code for " + getName(arch) +
          " does not run on a GPU of compute capability " +
          formatCapability(major, minor));
}
