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
// Output of ptxas
//===----------------------------------------------------------------------===//

/// The resources that a kernel needs of the device.
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
  /// A code such as `C7510`; empty if there is none.
  std::string code;
  /// The kernel that it names, if any.
  std::string kernel;
  std::string message;

  /// Returns true for notes of what makes a kernel slower than it was written
  /// to be, though it remains right: WGMMA is serialised (C7510 to C7519), or
  /// register budgets are ignored (C7507, C7508).
  bool isSlowdown() const;
};

struct PtxasReport {
  llvm::SmallVector<KernelResources, 2> kernels;
  llvm::SmallVector<PtxasDiagnostic, 0> diagnostics;
};

/// Parses the output of `ptxas -v`.
PtxasReport parsePtxasLog(llvm::StringRef log);

//===----------------------------------------------------------------------===//
// Choice of a ptxas
//===----------------------------------------------------------------------===//

/// A version such as 13.0.88.
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

/// Returns the first ptxas that is fit to assemble for `chip`, in this order:
/// only the one that the environment variable FOVEA_PTXAS names, if it is set;
/// of the toolkit in CUDA_HOME or CUDA_PATH; on PATH; in /usr/local/cuda; in a
/// Python package (nvidia-cuda-nvcc, triton) of the environment that Fovea is
/// installed in, is active, or whose Python is on PATH.
///
/// A fit ptxas is of CUDA 12.0 or newer, and for sm_90a not of 12.8.0 up to
/// 12.9.0, which are known to miscompile kernels with several roles. The error
/// lists the candidates and why each is unfit; its code is
/// `no_such_file_or_directory`, and the driver can be tried instead.
///
/// `cache`, if there is one, remembers versions.
llvm::Expected<Ptxas> findPtxas(llvm::StringRef chip, DiskCache *cache);

//===----------------------------------------------------------------------===//
// Assembling
//===----------------------------------------------------------------------===//

struct AssembleOptions {
  /// A chip such as `sm_90a`, see `getAssemblyChip`.
  std::string chip;
  /// 0 to 3.
  int optLevel = 3;
};

struct Assembly {
  std::string cubin;
  PtxasReport report;
  /// An assembler such as `ptxas 13.0.88`.
  std::string assembler;
  bool fromCache = false;
};

/// Assembles PTX, or takes the result from `cache`, if there is one. Slowdowns
/// do not make it fail.
llvm::Expected<Assembly>
assemble(llvm::StringRef ptx, const AssembleOptions &options, DiskCache *cache);

/// Returns a remark for each kernel that the assembler made slower than it was
/// written to be, with the assembler's first note on it.
llvm::SmallVector<std::string, 0> getSlowdowns(const Assembly &assembly);

} // namespace fovea

#endif // FOVEA_TARGET_PTXAS_H
