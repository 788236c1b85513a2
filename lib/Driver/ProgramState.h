//===- ProgramState.h - What Program and Executable consist of --*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DRIVER_PROGRAMSTATE_H
#define FOVEA_LIB_DRIVER_PROGRAMSTATE_H

#include "fovea/Driver/Program.h"
#include "fovea/Target/HostJIT.h"

namespace fovea {

struct Executable::State {
  llvm::SmallVector<Signature, 1> signatures;
  /// One for each signature; null where it has an obstacle.
  llvm::SmallVector<HostJIT::PackedFunction, 1> entries;
  std::unique_ptr<HostJIT> jit;
};

} // namespace fovea

#endif // FOVEA_LIB_DRIVER_PROGRAMSTATE_H
