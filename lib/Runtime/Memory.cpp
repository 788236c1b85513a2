//===- Memory.cpp - Buffers of compiled code, and its failures ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "Failure.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace fovea::runtime;

namespace fovea::runtime {
/// Gives the allocation functions access to an invocation.
struct MemoryAccess {
  using Block = Invocation::Block;

  static void insert(Invocation &invocation, Block *block, uint64_t size);
  static void remove(Invocation &invocation, Block *block, uint64_t size);
  static void setMessage(Invocation &invocation, const char *message);
};
} // namespace fovea::runtime

namespace {
/// The header in front of every buffer.
struct Header {
  MemoryAccess::Block links;
  Invocation *owner;
  Block block;
  uint64_t size;
};
} // namespace

static constexpr uint64_t kAlignment = 64;

/// The size from which the system is asked whether the memory exists before it
/// is promised: Linux hands out more than there is and kills its user.
static constexpr uint64_t kLarge = uint64_t(256) << 20;

static Header *getHeader(void *pointer) {
  return reinterpret_cast<Header *>(static_cast<char *>(pointer) -
                                    sizeof(Header));
}

/// Several threads of one invocation rarely allocate: one lock serves all.
static std::mutex &getMutex() {
  static std::mutex mutex;
  return mutex;
}

#ifdef __linux__
/// Returns the first number in a file of the system, or the largest number if
/// there is none.
static uint64_t readNumber(const char *path) {
  uint64_t value = UINT64_MAX;
  if (FILE *file = std::fopen(path, "r")) {
    unsigned long long number;
    if (std::fscanf(file, "%llu", &number) == 1)
      value = number;
    std::fclose(file);
  }
  return value;
}
#endif

/// Returns the bytes of memory that can be used without taking any from others.
static uint64_t getAvailableMemory() {
  uint64_t available = UINT64_MAX;
#ifdef __linux__
  if (FILE *file = std::fopen("/proc/meminfo", "r")) {
    char line[128];
    unsigned long long kilobytes;
    while (std::fgets(line, sizeof(line), file))
      if (std::sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
        available = uint64_t(kilobytes) << 10;
    std::fclose(file);
  }
  uint64_t limit = readNumber("/sys/fs/cgroup/memory.max");
  uint64_t used = readNumber("/sys/fs/cgroup/memory.current");
  if (limit != UINT64_MAX && used != UINT64_MAX)
    available = std::min(available, limit > used ? limit - used : 0);
#endif
  return available;
}

[[noreturn]] static void failAllocation(uint64_t size) {
  char message[256];
  std::snprintf(message, sizeof(message),
                "out of memory: cannot allocate %llu bytes",
                static_cast<unsigned long long>(size));
  fail(message);
}

static void *allocate(uint64_t alignment, uint64_t size) {
  alignment = std::max(alignment, kAlignment);
  uint64_t total;
  if (__builtin_add_overflow(size, alignment + sizeof(Header), &total) ||
      total > SIZE_MAX / 2 || (size > kLarge && size > getAvailableMemory()))
    failAllocation(size);
  Block block = allocateBlock(total);
  if (!block.base)
    failAllocation(size);
  uintptr_t address = reinterpret_cast<uintptr_t>(block.base) + sizeof(Header);
  address = (address + alignment - 1) / alignment * alignment;
  void *pointer = reinterpret_cast<void *>(address);
  Invocation *owner = getThreadState().invocation;
  *getHeader(pointer) = {{}, owner, block, size};
  if (owner)
    MemoryAccess::insert(*owner, &getHeader(pointer)->links, size);
  return pointer;
}

//===----------------------------------------------------------------------===//
// Called by compiled code
//===----------------------------------------------------------------------===//

void *_mlir_memref_to_llvm_alloc(uint64_t size) {
  return allocate(kAlignment, size);
}

void *_mlir_memref_to_llvm_aligned_alloc(uint64_t alignment, uint64_t size) {
  return allocate(alignment, size);
}

void _mlir_memref_to_llvm_free(void *pointer) {
  if (!pointer)
    return;
  Header *header = getHeader(pointer);
  if (header->owner)
    MemoryAccess::remove(*header->owner, &header->links, header->size);
  freeBlock(header->block);
}

//===----------------------------------------------------------------------===//
// Invocations
//===----------------------------------------------------------------------===//

void MemoryAccess::insert(Invocation &invocation, Block *block, uint64_t size) {
  std::lock_guard<std::mutex> lock(getMutex());
  block->previous = &invocation.live;
  block->next = invocation.live.next;
  block->next->previous = block;
  invocation.live.next = block;
  invocation.liveBytes += size;
  invocation.peakBytes = std::max(invocation.peakBytes, invocation.liveBytes);
}

void MemoryAccess::remove(Invocation &invocation, Block *block, uint64_t size) {
  std::lock_guard<std::mutex> lock(getMutex());
  block->previous->next = block->next;
  block->next->previous = block->previous;
  invocation.liveBytes -= size;
}

void MemoryAccess::setMessage(Invocation &invocation, const char *message) {
  std::lock_guard<std::mutex> lock(getMutex());
  if (!invocation.message[0])
    std::snprintf(invocation.message, sizeof(invocation.message), "%s",
                  message);
}

Invocation::~Invocation() { freeAll(); }

void Invocation::freeAll() {
  while (live.next != &live)
    _mlir_memref_to_llvm_free(reinterpret_cast<char *>(live.next) +
                              sizeof(Header));
}

bool Invocation::run(void (*function)(void *), void *argument) {
  ThreadState outer = getThreadState();
  std::jmp_buf failurePoint;
  message[0] = 0;
  if (setjmp(failurePoint)) {
    getThreadState() = outer;
    freeAll();
    return false;
  }
  getThreadState() = {this, &failurePoint, outer.insideLoop};
  function(argument);
  getThreadState() = outer;
  return true;
}

bool Invocation::release(void *pointer) {
  for (Block *block = live.next; block != &live; block = block->next) {
    if (reinterpret_cast<char *>(block) + sizeof(Header) != pointer)
      continue;
    Header *header = getHeader(pointer);
    MemoryAccess::remove(*this, block, header->size);
    header->owner = nullptr;
    return true;
  }
  return false;
}

ThreadState &fovea::runtime::getThreadState() {
  static thread_local ThreadState state;
  return state;
}

void fovea::runtime::fail(const char *message) {
  ThreadState &state = getThreadState();
  if (!state.invocation) {
    std::fprintf(stderr, "fovea: %s\n", message);
    std::abort();
  }
  MemoryAccess::setMessage(*state.invocation, message);
  std::longjmp(*state.failurePoint, 1);
}
