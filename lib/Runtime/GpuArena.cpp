//===- GpuArena.cpp - Memory for temporaries, in a stream's order ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuArena.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace fovea::cuda;

namespace {
constexpr int64_t kAlignment = 512;
/// The unit of the driver's allocations.
constexpr int64_t kPage = 2 << 20;
} // namespace

//===----------------------------------------------------------------------===//
// Arena
//===----------------------------------------------------------------------===//

Arena::~Arena() {
  const Api &api = device.getDriver().getApi();
  ContextScope scope(device);
  RelaxedCapture relaxed(api);
  for (Chunk &chunk : chunks)
    api.cuMemFree(chunk.base);
}

void *Arena::take(int64_t bytes) {
  Chunk *bestChunk = nullptr;
  Block *best = nullptr;
  for (Chunk &chunk : chunks) {
    for (Block &block : chunk.blocks) {
      if (block.used || block.bytes < bytes ||
          (best && best->bytes <= block.bytes))
        continue;
      bestChunk = &chunk;
      best = &block;
    }
  }
  if (!best)
    return nullptr;
  int64_t offset = best->offset;
  Block rest = {offset + bytes, best->bytes - bytes, false};
  *best = {offset, bytes, true};
  usedBytes += bytes;
  peakBytes = std::max(peakBytes, usedBytes);
  if (rest.bytes) {
    auto &blocks = bestChunk->blocks;
    blocks.insert(blocks.begin() + (best - blocks.data()) + 1, rest);
  }
  return toPointer(bestChunk->base + offset);
}

llvm::Expected<void *> Arena::allocate(int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX / 2)
    return allocateMemory(device, bytes).takeError();
  bytes = llvm::alignTo(bytes, kAlignment);
  if (void *pointer = take(bytes))
    return pointer;
  // A graph keeps the memory that it was captured with.
  if (!key.capture)
    shrink();
  // The chunk leaves room, so that lengths that grow from call to call do not
  // come here each time.
  int64_t room = llvm::alignTo(bytes + bytes / 4, kPage);
  auto base = allocateMemory(device, room);
  if (!base) {
    llvm::consumeError(base.takeError());
    room = bytes;
    base = allocateMemory(device, room);
    if (!base)
      return base.takeError();
  }
  chunks.push_back({*base, {{0, room, false}}});
  return take(bytes);
}

void Arena::free(void *pointer) {
  CUdeviceptr address = toAddress(pointer);
  for (Chunk &chunk : chunks) {
    auto &blocks = chunk.blocks;
    int64_t size = blocks.back().offset + blocks.back().bytes;
    if (address < chunk.base || address >= chunk.base + size)
      continue;
    auto block = llvm::find_if(blocks, [&](const Block &block) {
      return chunk.base + block.offset == address;
    });
    if (block == blocks.end())
      return;
    block->used = false;
    usedBytes -= block->bytes;
    if (auto next = std::next(block); next != blocks.end() && !next->used) {
      block->bytes += next->bytes;
      blocks.erase(next);
    }
    if (block != blocks.begin() && !std::prev(block)->used) {
      std::prev(block)->bytes += block->bytes;
      blocks.erase(block);
    }
    return;
  }
}

void Arena::freeAll() {
  for (Chunk &chunk : chunks) {
    Block last = chunk.blocks.back();
    chunk.blocks.front() = {0, last.offset + last.bytes, false};
    chunk.blocks.resize(1);
  }
  usedBytes = peakBytes = 0;
}

bool Arena::shrink() {
  const Api &api = device.getDriver().getApi();
  RelaxedCapture relaxed(api);
  size_t before = chunks.size();
  llvm::erase_if(chunks, [&](Chunk &chunk) {
    if (chunk.blocks.size() > 1 || chunk.blocks[0].used)
      return false;
    api.cuMemFree(chunk.base);
    return true;
  });
  return chunks.size() != before;
}

//===----------------------------------------------------------------------===//
// ArenaPool
//===----------------------------------------------------------------------===//

Arena &ArenaPool::acquire(ArenaKey key) {
  std::lock_guard<std::mutex> lock(mutex);
  Arena *oldest = nullptr;
  size_t idle = 0;
  for (std::unique_ptr<Arena> &arena : arenas) {
    if (arena->busy)
      continue;
    if (arena->key == key) {
      arena->busy = true;
      arena->lastUse = ++clock;
      return *arena;
    }
    if (arena->key.capture)
      continue;
    ++idle;
    if (!oldest || arena->lastUse < oldest->lastUse)
      oldest = arena.get();
  }
  if (idle >= kMaxIdle)
    llvm::erase_if(arenas, [&](std::unique_ptr<Arena> &arena) {
      return arena.get() == oldest;
    });
  arenas.push_back(std::make_unique<Arena>(device, key));
  Arena &arena = *arenas.back();
  arena.busy = true;
  arena.lastUse = ++clock;
  return arena;
}

void ArenaPool::release(Arena &arena) {
  arena.freeAll();
  std::lock_guard<std::mutex> lock(mutex);
  arena.busy = false;
}

llvm::Expected<void *> ArenaPool::allocate(Arena &arena, int64_t bytes) {
  auto memory = arena.allocate(bytes);
  if (memory)
    return memory;
  bool more = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (std::unique_ptr<Arena> &other : arenas)
      if (!other->busy && !other->key.capture)
        more |= other->shrink();
  }
  if (!more)
    return memory;
  llvm::consumeError(memory.takeError());
  return arena.allocate(bytes);
}

void ArenaPool::forgetCapture(uint64_t capture) {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::erase_if(arenas, [&](std::unique_ptr<Arena> &arena) {
    return arena->key.capture == capture && !arena->busy;
  });
}
