//===- CompiledCode.h - Results of a compilation ----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The results of compiling a text, independent of any process and GPU, so that
// they can be kept on disk. Machine code for a GPU is not part of them: it
// follows from their PTX and the available assembler, and is kept separately
// (`assemble`).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_COMPILEDCODE_H
#define FOVEA_LIB_DRIVER_COMPILEDCODE_H

#include "OtherSizes.h"

#include "fovea/Driver/Program.h"
#include "fovea/Target/DiskCache.h"

namespace fovea {

struct CompiledCode {
  struct Function {
    Signature signature;
    /// The messages of its checks of sizes, see `outline-shape-checks`; without
    /// messages it has no checks.
    llvm::SmallVector<std::string, 0> messages;
    OtherSizes otherSizes;
    /// True if it has a test of operands, see `tile-pack-operands`.
    bool testsOperands = false;
  };

  llvm::SmallVector<Function, 1> functions;
  /// An object file for the host.
  std::unique_ptr<llvm::MemoryBuffer> object;
  /// The kernels; none on the host.
  DeviceCode device;
  /// Remarks on what could have been done better, a line each.
  llvm::SmallVector<std::string, 0> remarks;
};

/// Returns the options' schedules, or those that `keepSchedules` left in the
/// disk cache for the same text, options, machine and sources of Fovea.
std::optional<ScheduleList> lookUpSchedules(llvm::StringRef text,
                                            const CompileOptions &options);

/// Keeps schedules, which a run on this machine has found to be the fastest.
void keepSchedules(llvm::StringRef text, const CompileOptions &options,
                   const ScheduleList &schedules);

/// Removes what was kept, for all GPUs. Returns true if there was something.
bool forgetSchedules(llvm::StringRef text, const CompileOptions &options);

/// Returns the name of the code of a text with these options, by this build on
/// this machine. The schedules are those of the options, by `lookUpSchedules`.
CacheKey getCodeKey(llvm::StringRef text, const CompileOptions &options);

/// Returns the code that an earlier compilation left in the disk cache, if any.
std::optional<CompiledCode> lookUpCode(const CacheKey &key);

/// Assembles kernels, or takes the result from the disk cache.
llvm::Expected<Assembly> assembleKernels(const DeviceCode &code,
                                         llvm::StringRef chip,
                                         mlir::TimingScope *timing);

/// Returns the code as bytes.
std::string serialize(const CompiledCode &code);

/// Reads the output of `serialize`; none if the bytes are something else.
std::optional<CompiledCode> deserialize(llvm::StringRef bytes);

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_COMPILEDCODE_H
