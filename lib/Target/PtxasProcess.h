//===- PtxasProcess.h - Runs of ptxas ---------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_PTXASPROCESS_H
#define FOVEA_LIB_TARGET_PTXASPROCESS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace fovea {

struct PtxasOutput {
  int exitCode;
  /// The text that it wrote to standard output and standard error.
  std::string log;
};

/// Runs the program and waits for it. An error if it cannot be run, crashes, or
/// has not ended after the seconds in FOVEA_PTXAS_TIMEOUT (default: 600); it is
/// killed then.
llvm::Expected<PtxasOutput> runPtxas(llvm::StringRef file,
                                     llvm::ArrayRef<llvm::StringRef> arguments);

} // namespace fovea

#endif // FOVEA_LIB_TARGET_PTXASPROCESS_H
