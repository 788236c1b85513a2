//===- Failure.h - Jumps of a failure out of compiled code ------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code has no error path, so a failure inside it jumps: to the end of
// the item that a parallel loop runs on this thread, and from the loop's end to
// the end of the invocation. Jumps pass over frames of compiled code only.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_RUNTIME_FAILURE_H
#define FOVEA_LIB_RUNTIME_FAILURE_H

#include "fovea/Runtime/HostRuntime.h"

namespace fovea::runtime {

/// A thread's knowledge of the call of compiled code that it works on.
struct ThreadState {
  /// Null outside of an invocation.
  Invocation *invocation = nullptr;
  /// The place where a failure continues; null outside of an invocation.
  std::jmp_buf *failurePoint = nullptr;
  /// True while this thread runs an item of a parallel loop.
  bool insideLoop = false;
};

ThreadState &getThreadState();

} // namespace fovea::runtime

#endif // FOVEA_LIB_RUNTIME_FAILURE_H
