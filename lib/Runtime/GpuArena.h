//===- GpuArena.h - Memory for temporaries, in a stream's order -*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Temporaries of calls on one stream share memory without waiting: what a call
// enqueues runs after what was enqueued before it, so memory may be given out
// again as soon as the host has freed it. An arena is that memory for one
// stream, used by one call at a time; it grows to what calls need and keeps it.
//
// A graph runs later and on any stream, so calls that are captured have arenas
// of their own, one for each capture and stream, which nobody else gets and
// which live as long as the graph.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_RUNTIME_GPUARENA_H
#define FOVEA_LIB_RUNTIME_GPUARENA_H

#include "CudaContext.h"

#include <vector>

namespace fovea::cuda {

/// The user of an arena.
struct ArenaKey {
  /// A number that a process never uses twice, as it may use a stream's handle;
  /// in a capture, the handle.
  uint64_t stream = 0;
  /// Zero outside of a capture.
  uint64_t capture = 0;

  bool operator==(const ArenaKey &) const = default;
};

/// Memory of one stream.
class Arena {
public:
  Arena(const Device &device, ArenaKey key) : device(device), key(key) {}
  ~Arena();

  /// Returns memory aligned to 512 bytes; `bytes` is not 0.
  llvm::Expected<void *> allocate(int64_t bytes);

  /// Frees what `allocate` returned.
  void free(void *pointer);

  void freeAll();

  /// Returns the most that was in use at one time since the arena was acquired,
  /// in bytes.
  int64_t getPeakBytes() const { return peakBytes; }

  /// Returns unused memory to the driver, which waits for the kernels that may
  /// use it. True if there was any.
  bool shrink();

private:
  friend class ArenaPool;

  /// Neighbours within a chunk, in order, used or free.
  struct Block {
    int64_t offset;
    int64_t bytes;
    bool used;
  };
  struct Chunk {
    CUdeviceptr base;
    std::vector<Block> blocks;
  };

  /// Takes the smallest free block that is large enough, split; null if there
  /// is none.
  void *take(int64_t bytes);

  const Device &device;
  const ArenaKey key;
  bool busy = false;
  int64_t usedBytes = 0;
  int64_t peakBytes = 0;
  /// The pool's clock at the last use.
  uint64_t lastUse = 0;
  std::vector<Chunk> chunks;
};

/// The arenas of a module.
class ArenaPool {
public:
  explicit ArenaPool(const Device &device) : device(device) {}

  /// Returns an arena for one call on a stream; the caller gives it back.
  Arena &acquire(ArenaKey key);
  void release(Arena &arena);

  /// Allocates memory of an acquired arena. If the device has no more, arenas
  /// that are not in use return theirs.
  llvm::Expected<void *> allocate(Arena &arena, int64_t bytes);

  /// Frees the arenas of a capture whose graph is gone.
  void forgetCapture(uint64_t capture);

private:
  /// The number of streams that keep their memory while others are used.
  static constexpr size_t kMaxIdle = 8;

  const Device &device;
  std::mutex mutex;
  uint64_t clock = 0;
  std::vector<std::unique_ptr<Arena>> arenas;
};

} // namespace fovea::cuda

#endif // FOVEA_LIB_RUNTIME_GPUARENA_H
