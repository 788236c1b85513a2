//===- OpenMP.cpp - The OpenMP runtime of this process --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpenMP.h"

#ifdef __linux__

#include <atomic>
#include <mutex>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

using namespace fovea::runtime;

static std::atomic<bool> isForked = false;

/// A fork may come before the first loop, so it is watched from the start.
[[gnu::constructor]] static void watchForks() {
  pthread_atfork(nullptr, nullptr, [] { isForked = true; });
}

/// Returns the number of libraries that this process has loaded so far,
/// unloaded ones included.
static unsigned long long countLoads() {
  unsigned long long loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *loads) {
        *static_cast<unsigned long long *>(loads) = info->dlpi_adds;
        return 1;
      },
      &loads);
  return loads;
}

template <typename Function>
static bool lookUp(const char *name, Function *&function) {
  function = reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
  return function;
}

/// Keeps the library loaded that `address` is in: its threads run forever.
static void keepLoaded(void *address) {
  Dl_info info;
  if (dladdr(address, &info))
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

const OpenMP *OpenMP::find() {
  static std::atomic<const OpenMP *> found = nullptr;
  static std::atomic<unsigned long long> seenLoads = 0;
  static std::mutex mutex;
  static OpenMP runtime;
  if (isForked.load(std::memory_order_relaxed))
    return nullptr;
  if (const OpenMP *known = found.load(std::memory_order_acquire))
    return known;
  unsigned long long loads = countLoads();
  if (loads == seenLoads.load(std::memory_order_relaxed))
    return nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (!found && lookUp("GOMP_parallel", runtime.runTeam) &&
      lookUp("omp_get_max_threads", runtime.getMaxThreads) &&
      lookUp("omp_in_parallel", runtime.isInRegion)) {
    keepLoaded(reinterpret_cast<void *>(runtime.runTeam));
    found = &runtime;
  }
  seenLoads = loads;
  return found;
}

#else

const fovea::runtime::OpenMP *fovea::runtime::OpenMP::find() { return nullptr; }

#endif
