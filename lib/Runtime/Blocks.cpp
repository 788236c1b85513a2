//===- Blocks.cpp - Memory from the system --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"

#include <cstdlib>
#include <mutex>

#ifdef __linux__
#include <sys/mman.h>
#endif

using namespace fovea::runtime;

/// The sizes of blocks that are kept. Malloc keeps smaller ones, for each
/// thread, whose caches they are in.
static constexpr uint64_t kLeastKept = uint64_t(128) << 10;
static constexpr uint64_t kMostKept = uint64_t(32) << 20;

/// The most that is kept, in bytes (glibc's malloc keeps as much at the top of
/// its heap, depending on earlier frees) and in blocks.
static constexpr uint64_t kMostBytes = uint64_t(64) << 20;
static constexpr int kMostBlocks = 64;

static constexpr uint64_t kHugePage = uint64_t(2) << 20;

/// Blocks from this size on consist of huge pages.
static constexpr uint64_t kLeastMapped = 2 * kHugePage;

/// AddressSanitizer tracks malloc's memory only.
#if defined(__SANITIZE_ADDRESS__)
static constexpr bool kUsesMallocAlone = true;
#elif defined(__has_feature)
static constexpr bool kUsesMallocAlone = __has_feature(address_sanitizer);
#else
static constexpr bool kUsesMallocAlone = false;
#endif

#ifdef __linux__
static bool isMapped(uint64_t bytes) {
  return !kUsesMallocAlone && bytes >= kLeastMapped;
}

/// Returns memory in huge pages, where the system has them.
static Block mapBlock(uint64_t bytes) {
  bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void *mapped = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return {};
  char *first = static_cast<char *>(mapped);
  uint64_t unused = -reinterpret_cast<uintptr_t>(first) % kHugePage;
  if (unused)
    munmap(first, unused);
  char *base = first + unused;
  munmap(base + bytes, kHugePage - unused);
  madvise(base, bytes, MADV_HUGEPAGE);
  return {base, bytes};
}
#endif

/// Returns the memory to the system.
static void release(Block block) {
#ifdef __linux__
  if (isMapped(block.bytes)) {
    munmap(block.base, block.bytes);
    return;
  }
#endif
  std::free(block.base);
}

namespace {
/// Freed blocks, the first freed first. No operation waits for another thread,
/// which a forked process may not have: an operation that would have to wait
/// does without kept blocks.
class KeptBlocks {
public:
  /// Takes the smallest block of at least `bytes` bytes that is not much
  /// larger, the one freed last if there are several; or none.
  Block take(uint64_t bytes);

  void keep(Block block);

private:
  void remove(int index);

  std::mutex mutex;
  Block blocks[kMostBlocks];
  int count = 0;
  uint64_t heldBytes = 0;
};
} // namespace

void KeptBlocks::remove(int index) {
  heldBytes -= blocks[index].bytes;
  --count;
  for (int i = index; i < count; ++i)
    blocks[i] = blocks[i + 1];
}

Block KeptBlocks::take(uint64_t bytes) {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock)
    return {};
  int best = -1;
  for (int i = 0; i < count; ++i)
    if (blocks[i].bytes >= bytes && blocks[i].bytes <= bytes + bytes / 4 &&
        (best < 0 || blocks[i].bytes <= blocks[best].bytes))
      best = i;
  if (best < 0)
    return {};
  Block block = blocks[best];
  remove(best);
  return block;
}

void KeptBlocks::keep(Block block) {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock)
    return release(block);
  while (count == kMostBlocks ||
         (count && heldBytes + block.bytes > kMostBytes)) {
    release(blocks[0]);
    remove(0);
  }
  blocks[count++] = block;
  heldBytes += block.bytes;
}

/// The list is never destroyed: results may be freed at any time, also at the
/// process's end.
static KeptBlocks &getKeptBlocks() {
  static auto *blocks = new KeptBlocks;
  return *blocks;
}

static bool isKept(uint64_t bytes) {
  return !kUsesMallocAlone && bytes >= kLeastKept && bytes <= kMostKept;
}

Block fovea::runtime::allocateBlock(uint64_t bytes) {
  if (isKept(bytes))
    if (Block block = getKeptBlocks().take(bytes); block.base)
      return block;
#ifdef __linux__
  if (isMapped(bytes))
    return mapBlock(bytes);
#endif
  return {std::malloc(bytes), bytes};
}

void fovea::runtime::freeBlock(Block block) {
  if (isKept(block.bytes))
    getKeptBlocks().keep(block);
  else
    release(block);
}
