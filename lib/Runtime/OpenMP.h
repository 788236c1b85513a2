//===- OpenMP.h - The OpenMP runtime of this process ------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads of an OpenMP runtime spin for milliseconds after a parallel region.
// Threads of our own would have to share cores with them, so loops run on
// OpenMP's threads where the process has such a runtime.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_RUNTIME_OPENMP_H
#define FOVEA_LIB_RUNTIME_OPENMP_H

namespace fovea::runtime {

/// The entry points of an OpenMP runtime that are used: those of GCC's, which
/// LLVM's and Intel's also have.
struct OpenMP {
  /// `GOMP_parallel`: calls `body(context)` on the calling thread and on
  /// others, `threads` in all or fewer, and returns when all calls have
  /// returned.
  void (*runTeam)(void (*body)(void *), void *context, unsigned threads,
                  unsigned flags);
  /// Returns the number of threads of a region that the calling thread starts.
  int (*getMaxThreads)();
  /// Nonzero in a region of more than one thread.
  int (*isInRegion)();

  /// Returns the runtime whose names this library sees. A runtime that is
  /// loaded later is found from then on; looking costs some 100 ns until there
  /// is one, and nothing after that. Null if there is none, and in a forked
  /// process, in which GCC's runtime would wait for its parent's threads.
  static const OpenMP *find();
};

} // namespace fovea::runtime

#endif // FOVEA_LIB_RUNTIME_OPENMP_H
