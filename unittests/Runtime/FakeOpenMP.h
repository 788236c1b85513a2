//===- FakeOpenMP.h - An OpenMP runtime for tests ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_UNITTESTS_RUNTIME_FAKEOPENMP_H
#define FOVEA_UNITTESTS_RUNTIME_FAKEOPENMP_H

#include <atomic>

namespace fovea::test {

/// Records of the library's calls, and its answers.
struct FakeOpenMP {
  std::atomic<int> regions = 0;
  std::atomic<unsigned> lastThreads = 0;
  std::atomic<int> maxThreads = 3;
  std::atomic<bool> isInRegion = false;
};

} // namespace fovea::test

/// Of the library.
extern "C" fovea::test::FakeOpenMP *fovea_fake_openmp();

#endif // FOVEA_UNITTESTS_RUNTIME_FAKEOPENMP_H
