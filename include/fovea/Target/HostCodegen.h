//===- HostCodegen.h - From the LLVM dialect to machine code ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_HOSTCODEGEN_H
#define FOVEA_TARGET_HOSTCODEGEN_H

#include "fovea/Target/HostTarget.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace fovea {

/// Registers LLVM's code generator for this machine, which loaded code also
/// needs. May be called repeatedly, and by several threads at once.
void initializeHostCodegen();

enum class CodeKind { Assembly, Object };

struct CodegenOptions {
  HostProcessor processor;
  /// 0 to 3, as for a C compiler; from 2 on LLVM's own passes run over the code
  /// before instructions are selected.
  int optLevel = 1;
};

/// Translates a module in the LLVM dialect to machine code. For each public
/// function `f` with a C interface, the code has `_fovea_packed_f`, which takes
/// one pointer to an array of pointers: to the results, if there are any (one
/// descriptor or number, or all of them in a row), then to each operand's
/// descriptor or scalar.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
emitHostCode(mlir::ModuleOp module, const CodegenOptions &options,
             CodeKind kind);

/// Returns the name of a function's packed entry.
std::string getPackedName(llvm::StringRef function);

} // namespace fovea

#endif // FOVEA_TARGET_HOSTCODEGEN_H
