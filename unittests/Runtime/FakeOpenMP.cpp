//===- FakeOpenMP.cpp - An OpenMP runtime for tests -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeOpenMP.h"

#include <thread>
#include <vector>

using namespace fovea::test;

#define EXPORT __attribute__((visibility("default")))

static FakeOpenMP state;

extern "C" {

EXPORT FakeOpenMP *fovea_fake_openmp() { return &state; }

EXPORT void GOMP_parallel(void (*body)(void *), void *context, unsigned threads,
                          unsigned) {
  ++state.regions;
  state.lastThreads = threads;
  std::vector<std::thread> team;
  for (unsigned i = 1; i < threads; ++i)
    team.emplace_back(body, context);
  body(context);
  for (std::thread &thread : team)
    thread.join();
}

EXPORT int omp_get_max_threads() { return state.maxThreads; }
EXPORT int omp_in_parallel() { return state.isInRegion; }

} // extern "C"
