//===- NVPTX.h - From LLVM IR to PTX ----------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_NVPTX_H
#define FOVEA_TARGET_NVPTX_H

#include "fovea/Dialect/Machine/IR/GpuArch.h"

namespace llvm {
class Module;
} // namespace llvm

namespace mlir {
class TimingScope;
} // namespace mlir

namespace fovea {

struct PTXOptions {
  const machine::GpuArch *arch = machine::GpuArch::find("sm_90a");
  /// 0: code as it is; 1: passes that help ptxas (scalars instead of stack
  /// slots, no common subexpressions, simple instructions); 2, 3: LLVM's own
  /// pipelines.
  int optLevel = 1;
  /// The timer that the times of the phases are parts of, if any.
  mlir::TimingScope *timing = nullptr;
};

/// Sets the module's triple and data layout, optimises it and translates it to
/// PTX. Kernels have the calling convention `ptx_kernel`; attributes say how
/// they treat denormal numbers. An error names functions that a kernel calls
/// and the module does not define, and constructs that LLVM cannot translate.
llvm::Expected<std::string> compileToPTX(llvm::Module &module,
                                         const PTXOptions &options);

} // namespace fovea

#endif // FOVEA_TARGET_NVPTX_H
