//===- SourceIdentity.cpp - The sources that code follows from ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/DiskCache.h"

#include "Sources.inc"

#include "llvm/Config/llvm-config.h"

llvm::StringRef fovea::getSourceIdentity() {
  return FOVEA_SOURCES " LLVM " LLVM_VERSION_STRING;
}
