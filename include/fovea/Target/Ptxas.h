//===- Ptxas.h - From PTX to machine code -----------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVIDIA's assembler is a program that may or may not be installed. Where there
// is none the driver can compile the PTX when it is loaded (`cuda::Image`).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_PTXAS_H
#define FOVEA_TARGET_PTXAS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <compare>
#include <string>

namespace fovea {

class DiskCache;

//===----------------------------------------------------------------------===//
// What ptxas says
//===----------------------------------------------------------------------===//

/// What a kernel needs of the device.
struct KernelResources {
  std::string name;
  /// Per thread.
  int registers = 0;
  /// Stack, per thread: spills, and arrays that are not in registers.
  int stackBytes = 0;
  int spillStoreBytes = 0;
  int spillLoadBytes = 0;
  /// Per block, without dynamic shared memory.
  int staticSharedBytes = 0;
  int barriers = 0;
};

struct PtxasDiagnostic {
  enum class Severity { Info, Warning, Error };
  Severity severity;
  /// Such as `C7510`; empty if there is none.
  std::string code;
  /// The kernel that it names, if any.
  std::string kernel;
  std::string message;

  /// True for what makes a kernel slower than it was written to be, though it
  /// stays right: WGMMA is serialised (C7510 to C7519), or register budgets are
  /// ignored (C7507, C7508).
  bool isSlowdown() const;
};

struct PtxasReport {
  llvm::SmallVector<KernelResources, 2> kernels;
  llvm::SmallVector<PtxasDiagnostic, 0> diagnostics;
};

/// Reads what `ptxas -v` writes.
PtxasReport parsePtxasLog(llvm::StringRef log);

//===----------------------------------------------------------------------===//
// Which ptxas
//===----------------------------------------------------------------------===//

/// Such as 13.0.88.
struct PtxasVersion {
  int major = 0;
  int minor = 0;
  int build = 0;

  auto operator<=>(const PtxasVersion &) const = default;
};

std::string formatVersion(PtxasVersion version);

struct Ptxas {
  std::string path;
  PtxasVersion version;
};

/// The first ptxas that is fit to assemble for `chip`, in this order: the one
/// that the environment variable FOVEA_PTXAS names, and then no other; of the
/// toolkit in CUDA_HOME or CUDA_PATH; on PATH; in /usr/local/cuda; in a Python
/// package (nvidia-cuda-nvcc, triton) of the environment that Fovea is
/// installed in, is active, or whose Python is on PATH.
///
/// Fit is one of CUDA 12.0 or newer, and for sm_90a not one of 12.8.0 up to
/// 12.9.0, which are known to miscompile kernels with several roles. The error
/// says what was found and why it will not do; its code is
/// `no_such_file_or_directory`, and the driver can be tried instead.
///
/// `cache`, if there is one, remembers versions.
llvm::Expected<Ptxas> findPtxas(llvm::StringRef chip, DiskCache *cache);

//===----------------------------------------------------------------------===//
// Assembling
//===----------------------------------------------------------------------===//

struct AssembleOptions {
  /// Such as `sm_90a`, see `getAssemblyChip`.
  std::string chip;
  /// 0 to 3.
  int optLevel = 3;
};

struct Assembly {
  std::string cubin;
  PtxasReport report;
  /// Such as `ptxas 13.0.88`.
  std::string assembler;
  bool fromCache = false;
};

/// Assembles PTX, or takes the result from `cache`, if there is one. Slowdowns
/// do not make it fail.
llvm::Expected<Assembly>
assemble(llvm::StringRef ptx, const AssembleOptions &options, DiskCache *cache);

/// A remark for each kernel that the assembler made slower than it was written
/// to be, with what it says of it first.
llvm::SmallVector<std::string, 0> getSlowdowns(const Assembly &assembly);

} // namespace fovea

#endif // FOVEA_TARGET_PTXAS_H
