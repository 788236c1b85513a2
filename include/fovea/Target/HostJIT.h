//===- HostJIT.h - Object code, loaded and linked in memory -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_HOSTJIT_H
#define FOVEA_TARGET_HOSTJIT_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace fovea {

/// One object file in memory, linked against Fovea's runtime and the C
/// library's mathematics only. Its code lives as long as this object.
class HostJIT {
public:
  static llvm::Expected<std::unique_ptr<HostJIT>>
  create(std::unique_ptr<llvm::MemoryBuffer> object);
  ~HostJIT();

  using PackedFunction = void (*)(void **);

  /// Returns the packed entry of a function (see `emitHostCode`).
  llvm::Expected<PackedFunction> lookup(llvm::StringRef function) const;

private:
  struct State;
  explicit HostJIT(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace fovea

#endif // FOVEA_TARGET_HOSTJIT_H
