//===- GpuArch.cpp - The GPUs that code can be made for -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Machine/IR/GpuArch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace fovea::machine;

/// Sizes come from the CUDA C++ Programming Guide, "Compute Capabilities";
/// rates come from NVIDIA's data sheets, without sparsity. Ordered by compute
/// capability.
static constexpr GpuArch kArchs[] = {
    // An A100 (40 GB).
    {.name = "sm_80",
     .family = "ampere",
     .major = 8,
     .minor = 0,
     .threadsPerCore = 2048,
     .sharedPerBlock = 163 << 10,
     .sharedPerCore = 164 << 10,
     .cores = 108,
     .level2 = 40 << 20,
     .bandwidth = 1555000,
     .peak = 19500,
     .matrixPeak = 312000},
    // An A40.
    {.name = "sm_86",
     .family = "ampere",
     .major = 8,
     .minor = 6,
     .threadsPerCore = 1536,
     .sharedPerBlock = 99 << 10,
     .sharedPerCore = 100 << 10,
     .cores = 84,
     .level2 = 6 << 20,
     .bandwidth = 696000,
     .peak = 37400,
     .matrixPeak = 149700},
    // An L40S.
    {.name = "sm_89",
     .family = "ada",
     .major = 8,
     .minor = 9,
     .threadsPerCore = 1536,
     .sharedPerBlock = 99 << 10,
     .sharedPerCore = 100 << 10,
     .cores = 142,
     .level2 = 96 << 20,
     .bandwidth = 864000,
     .peak = 91600,
     .matrixPeak = 362000},
    // An H200.
    {.name = "sm_90a",
     .family = "hopper",
     .major = 9,
     .minor = 0,
     .isExclusive = true,
     .hasWarpGroups = true,
     .hasBulkCopies = true,
     .threadsPerCore = 2048,
     .sharedPerBlock = 227 << 10,
     .sharedPerCore = 228 << 10,
     .cores = 132,
     .level2 = 50 << 20,
     .bandwidth = 4290000,
     .peak = 66900,
     .matrixPeak = 989000},
    // An RTX 5090. It has bulk copies, but roles that use them need the
    // redistribution of registers that warp groups bring.
    {.name = "sm_120",
     .family = "blackwell",
     .major = 12,
     .minor = 0,
     .ptxVersion = 87,
     .threadsPerCore = 1536,
     .sharedPerBlock = 99 << 10,
     .sharedPerCore = 100 << 10,
     .cores = 170,
     .level2 = 96 << 20,
     .bandwidth = 1792000,
     .peak = 104800,
     .matrixPeak = 209500},
};

int64_t fovea::machine::getEqualShare(int64_t registers, int64_t threads,
                                      int64_t most) {
  return std::min(most, registers / threads / 8 * 8);
}

std::optional<RoleRegisters> fovea::machine::dealRegisters(int64_t registers,
                                                           int64_t warps,
                                                           int64_t wideners) {
  int64_t groups = warps / kGroupWarps, wideGroups = wideners / kGroupWarps;
  if ((warps + wideners) % kGroupWarps || groups < 1 || groups + wideGroups < 2)
    return std::nullopt;
  // What a thread that widens needs, for several units on their way at once,
  // and the most that it uses.
  constexpr int64_t kFewestForWidening = 80, kMostForWidening = 128;
  int64_t atStart =
      getEqualShare(registers, (warps + kGroupWarps + wideners) * kWarpSize);
  int64_t pool = atStart * (groups + 1 + wideGroups);
  int64_t others = kFewestRoleRegisters + kFewestForWidening * wideGroups;
  int64_t most = std::min((pool - others) / groups / 8 * 8, kMostRoleRegisters);
  int64_t rest = pool - most * groups;
  int64_t widen = 0;
  if (wideGroups)
    widen = std::min((rest - kFewestRoleRegisters) / wideGroups / 8 * 8,
                     kMostForWidening);
  return RoleRegisters{most, rest - widen * wideGroups, widen};
}

llvm::ArrayRef<GpuArch> GpuArch::getAll() { return kArchs; }

const GpuArch *GpuArch::find(llvm::StringRef name) {
  const auto *found = llvm::find_if(
      kArchs, [&](const GpuArch &arch) { return arch.name == name; });
  return found == std::end(kArchs) ? nullptr : found;
}

static std::string formatCapability(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

/// Returns true if a device of this compute capability runs code of `arch`.
static bool runsOn(const GpuArch &arch, int major, int minor) {
  auto device = std::pair(major, minor),
       code = std::pair(arch.major, arch.minor);
  return arch.isExclusive ? device == code : device >= code;
}

llvm::Expected<const GpuArch *> GpuArch::select(int major, int minor) {
  for (const GpuArch &arch : llvm::reverse(kArchs))
    if (runsOn(arch, major, minor))
      return &arch;
  return llvm::createStringError(
      std::make_error_code(std::errc::no_such_device),
      "the GPU has compute capability " + formatCapability(major, minor) +
          ", and Fovea needs 8.0 or newer");
}

std::string GpuArch::listNames(llvm::ArrayRef<llvm::StringRef> first) {
  llvm::SmallVector<llvm::StringRef> names(first);
  for (const GpuArch &arch : kArchs)
    names.push_back(arch.name);
  llvm::StringRef last = names.pop_back_val();
  return llvm::join(names, ", ") + " or " + last.str();
}

llvm::Expected<std::string> GpuArch::getAssemblyChip(int deviceMajor,
                                                     int deviceMinor) const {
  if (!runsOn(*this, deviceMajor, deviceMinor))
    return llvm::createStringError(
        std::make_error_code(std::errc::no_such_device),
        "code for " + name + " does not run on a GPU of compute capability " +
            formatCapability(deviceMajor, deviceMinor));
  if (isExclusive)
    return name.str();
  return "sm_" + std::to_string(deviceMajor) + std::to_string(deviceMinor);
}
