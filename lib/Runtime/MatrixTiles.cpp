//===- MatrixTiles.cpp - Permission to use AMX tiles ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Failure.h"

#include "fovea/Runtime/HostRuntime.h"

#if defined(__x86_64__) && defined(__linux__)

// The C library has this function, but no header that declares it.
extern "C" int arch_prctl(int code, unsigned long argument) noexcept;

bool fovea::runtime::requestMatrixTiles() {
  // From the kernel's asm/prctl.h: processes ask for parts of a thread's state
  // that are large; 18 is that of AMX tiles.
  constexpr int kRequestPermission = 0x1023;
  constexpr unsigned long kTileData = 18;
  return arch_prctl(kRequestPermission, kTileData) == 0;
}

#else

bool fovea::runtime::requestMatrixTiles() { return false; }

#endif

void fovea_use_matrix_tiles() {
  static const bool mayUse = fovea::runtime::requestMatrixTiles();
  if (!mayUse)
    fovea::runtime::fail(
        "the code uses AMX tiles, which this machine does not have");
}
