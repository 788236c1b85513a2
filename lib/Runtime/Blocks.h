//===- Blocks.h - Memory from the system ------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A page that is touched for the first time costs microseconds, more than a
// short call computes with it; and malloc returns a call's memory to the system
// whenever its last buffer is freed. So some freed blocks are kept for the next
// call. Large blocks, which are not kept, consist of huge pages.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_RUNTIME_BLOCKS_H
#define FOVEA_LIB_RUNTIME_BLOCKS_H

#include <cstdint>

namespace fovea::runtime {

struct Block {
  /// Null if memory is short.
  void *base = nullptr;
  uint64_t bytes = 0;
};

/// Allocates at least `bytes` bytes, not cleared, aligned as malloc aligns.
Block allocateBlock(uint64_t bytes);

void freeBlock(Block block);

} // namespace fovea::runtime

#endif // FOVEA_LIB_RUNTIME_BLOCKS_H
