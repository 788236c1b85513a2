//===- Standalone.cpp - What wheels do not take from the C library --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function of glibc 2.36 that LLVM, built on Debian 12, calls. With an own
// one the library runs with glibc 2.34, which is the tag of its wheels.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdlib>
#include <unistd.h>

extern "C" uint32_t arc4random() {
  uint32_t value;
  // Fails only where the kernel has no random numbers at all, as glibc's does.
  if (getentropy(&value, sizeof(value)) != 0)
    std::abort();
  return value;
}
