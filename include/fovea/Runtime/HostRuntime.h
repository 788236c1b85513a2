//===- HostRuntime.h - Host functions for compiled code ---------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that compiled code calls, and the means by which a caller of
// compiled code bounds one call: its threads, its memory, its failures. This
// library depends on neither LLVM nor MLIR, so that an object file that
// `fovea-compile` wrote needs only this library.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_HOSTRUNTIME_H
#define FOVEA_RUNTIME_HOSTRUNTIME_H

#include <csetjmp>
#include <cstdint>

//===----------------------------------------------------------------------===//
// Functions called by compiled code
//===----------------------------------------------------------------------===//

extern "C" {

/// Calls `body(context, item)` once for each item in [0, items), in any order,
/// on the caller and other threads, and returns when all calls have returned.
/// Items are handed out one by one. May be called from several threads at once;
/// a call from within a body, or from within a parallel region of OpenMP, runs
/// on the calling thread only.
///
/// The other threads are those of the process's OpenMP runtime if it has one
/// and none of them works for another caller, else a pool of this library.
void fovea_parallel_for(void (*body)(void *context, int64_t item),
                        void *context, int64_t items);

/// Returns memory of at least `size` bytes, aligned to 64 bytes. Inside of
/// `Invocation::run` the memory belongs to the invocation, and the invocation
/// fails if there is no memory; elsewhere the process then ends with a message.
void *_mlir_memref_to_llvm_alloc(uint64_t size);

/// The same, aligned to `alignment` bytes (a power of two) or 64, whichever is
/// more.
void *_mlir_memref_to_llvm_aligned_alloc(uint64_t alignment, uint64_t size);

/// Frees what the two functions above returned; null is allowed.
void _mlir_memref_to_llvm_free(void *pointer);

/// Fail where an index is not within dimension `dim` of a tensor, of size
/// `size`; and where an integer division has no result. `width` is that of its
/// type if it is signed, else 0; operands are sign-extended. `site` names the
/// op and its place. Code that `instrument-accesses` has instrumented calls
/// them.
void fovea_check_index(const char *site, int64_t index, int64_t size,
                       int64_t dim);
void fovea_check_divisor(const char *site, int64_t dividend, int64_t divisor,
                         int64_t width);

/// Asks the system to let this process use AMX tiles; fails where it may not.
/// Functions whose code has tiles begin with it.
void fovea_use_matrix_tiles();

} // extern "C"

namespace fovea::runtime {

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// Returns the number of threads, including the caller, that work on a parallel
/// loop: the number set last; else that of the environment variable
/// FOVEA_NUM_THREADS; else, where the process has an OpenMP runtime, as many as
/// it gives the calling thread (`omp_get_max_threads`); else one for each core
/// that the process may run on.
///
/// An OpenMP runtime is one that `dlsym` finds `GOMP_parallel` in: GCC's,
/// LLVM's or Intel's, linked with the program or loaded for all to see
/// (RTLD_GLOBAL), as PyTorch does, before or after this library. Forked
/// processes have none.
int getNumThreads();

/// Returns the text of FOVEA_NUM_THREADS if it is no number of threads, and is
/// therefore ignored; otherwise null.
const char *getThreadsError();

/// Sets the number of threads, from the next parallel loop on. Less than 1
/// means the default.
void setNumThreads(int threads);

//===----------------------------------------------------------------------===//
// Matrix tiles
//===----------------------------------------------------------------------===//

/// Asks the system to let this process use AMX tiles. Returns true if it may:
/// the processor has them, and the system knows them.
bool requestMatrixTiles();

//===----------------------------------------------------------------------===//
// Invocations
//===----------------------------------------------------------------------===//

/// One call of compiled code: the memory that it allocates, and its failure.
class Invocation {
public:
  Invocation() = default;
  Invocation(const Invocation &) = delete;
  Invocation &operator=(const Invocation &) = delete;

  /// Frees the live buffers.
  ~Invocation();

  /// Calls `function(argument)`. Returns true if the function returned. If it
  /// failed, everything it allocated is freed, and `getMessage` gives the
  /// reason. `function` must not hold anything that a destructor has to
  /// release.
  bool run(void (*function)(void *), void *argument);

  /// Returns the reason why the call failed.
  const char *getMessage() const { return message; }

  /// Returns the largest number of bytes that were live at one time.
  uint64_t getPeakBytes() const { return peakBytes; }

  /// Takes a live buffer out of the invocation: the caller frees it, with
  /// `_mlir_memref_to_llvm_free`. Returns false if the pointer is not that of a
  /// live buffer.
  bool release(void *pointer);

private:
  friend struct MemoryAccess;

  /// Live blocks, in a ring around this one.
  struct Block {
    Block *previous;
    Block *next;
  };

  void freeAll();

  Block live = {&live, &live};
  uint64_t liveBytes = 0;
  uint64_t peakBytes = 0;
  char message[256] = "";
};

/// Ends the current invocation with a message, which is copied (at most 255
/// bytes of it). Outside of an invocation the process ends.
[[noreturn]] void fail(const char *message);

} // namespace fovea::runtime

#endif // FOVEA_RUNTIME_HOSTRUNTIME_H
