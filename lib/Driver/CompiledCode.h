//===- CompiledCode.h - All that a compilation yields -----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a text becomes, apart from any process and GPU, so that it can be kept
// on disk. Machine code for a GPU is not part of it but follows from its PTX
// and the assembler that is there, and is kept by itself (`assemble`).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_COMPILEDCODE_H
#define FOVEA_LIB_DRIVER_COMPILEDCODE_H

#include "fovea/Driver/Program.h"
#include "fovea/Target/DiskCache.h"

namespace fovea {

struct CompiledCode {
  struct Function {
    Signature signature;
    /// Of its checks of sizes, see `outline-shape-checks`; without messages it
    /// has no checks.
    llvm::SmallVector<std::string, 0> messages;
  };

  llvm::SmallVector<Function, 1> functions;
  /// An object file for the host.
  std::unique_ptr<llvm::MemoryBuffer> object;
  /// The kernels; none on the host.
  DeviceCode device;
  /// What was not done as well as could be, a line each.
  llvm::SmallVector<std::string, 0> remarks;
};

/// Names what a text is compiled to with these options, by this build on this
/// machine.
CacheKey getCodeKey(llvm::StringRef text, const CompileOptions &options);

/// What an earlier compilation left in the disk cache, if it did.
std::optional<CompiledCode> lookUpCode(const CacheKey &key);

/// Assembles kernels, or takes what the disk cache has.
llvm::Expected<Assembly> assembleKernels(const DeviceCode &code,
                                         llvm::StringRef chip);

/// The code as bytes.
std::string serialize(const CompiledCode &code);

/// Reads what `serialize` wrote; none if it is something else.
std::optional<CompiledCode> deserialize(llvm::StringRef bytes);

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_COMPILEDCODE_H
