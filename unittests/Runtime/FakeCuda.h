//===- FakeCuda.h - A CUDA driver for tests ---------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library that looks like libcuda.so.1: it executes calls in host memory,
// except for running kernels, records them, and fails on demand.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_UNITTESTS_RUNTIME_FAKECUDA_H
#define FOVEA_UNITTESTS_RUNTIME_FAKECUDA_H

#include "CudaApi.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace fovea::cuda {

struct FakeCuda {
  static constexpr uint64_t kInvalidCapture = UINT64_MAX;

  struct Launch {
    std::string kernel;
    unsigned grid[3];
    unsigned block[3];
    unsigned sharedBytes;
    CUstream stream;
    /// The kernel may start before earlier work on the stream is done.
    bool startsEarly;
  };
  struct TensorMap {
    int type;
    void *base;
    std::vector<uint64_t> sizes, strides;
    std::vector<uint32_t> box;
    int swizzle;
  };
  struct UserObject {
    void *data;
    CUhostFn destroy;
    unsigned count;
  };
  struct StreamState {
    unsigned long long id;
    /// The number of the capture that it is a part of, or `kInvalidCapture`.
    uint64_t capture = 0;
    CUcontext context = nullptr;
  };

  // Properties to report. The environment variable FAKE_CUDA may say
  // `no-device`, `old-driver` or `less-memory` from the start, or `faster`,
  // with which each time is less than the one before.
  int driverVersion = 13000;
  int numDevices = 2;
  int major = 9;
  int minor = 0;
  size_t memoryBytes = size_t(64) << 20;
  /// The name of a kernel that modules lack.
  std::string missingKernel;
  float milliseconds = 1.5F, speedup = 0;

  // Answers to give.
  CUresult initResult = CUDA_SUCCESS;
  CUresult cubinResult = CUDA_SUCCESS;
  CUresult ptxResult = CUDA_SUCCESS;
  std::string compileLog;
  CUresult launchResult = CUDA_SUCCESS;
  CUresult synchronizeResult = CUDA_SUCCESS;
  CUresult userObjectResult = CUDA_SUCCESS;
  CUresult retainResult = CUDA_SUCCESS;

  // Records of calls.
  std::vector<std::string> images;
  std::map<std::string, int> dynamicSharedBytes;
  std::vector<Launch> launches;
  std::vector<TensorMap> tensorMaps;
  int numAllocations = 0;
  int numSynchronizations = 0;
  /// Calls while a stream was captured that end the capture, in the mode of the
  /// thread.
  int numForbidden = 0;
  size_t liveBytes = 0;
  int liveModules = 0;

  std::map<CUdeviceptr, size_t> memory;
  std::map<CUstream, StreamState> streams;
  /// What graphs keep, by the numbers of the captures that made them.
  std::map<uint64_t, std::vector<CUuserObject>> graphs;
  /// Those that nothing refers to; their destructors are called later.
  std::vector<CUuserObject> unreferenced;
  int liveUserObjects = 0;
  unsigned long long nextStream = 1;

  /// Returns the bytes that are left to allocate.
  size_t getFreeBytes() const { return memoryBytes - liveBytes; }
};

/// Restores the state at the time when the library is loaded.
void resetFakeCuda();
FakeCuda &getFakeCuda();

/// Makes a stream a part of a capture, or of none if that is 0.
void setFakeCapture(CUstream stream, uint64_t capture);

/// Destroys the graph of a capture and all that was made from it, and calls
/// destructors as the driver's thread does.
void destroyFakeGraph(uint64_t capture);

} // namespace fovea::cuda

#endif // FOVEA_UNITTESTS_RUNTIME_FAKECUDA_H
