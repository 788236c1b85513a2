//===- GpuLaunch.cpp - The functions that compiled host code calls --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuModule.h"
#include "TensorMap.h"
#include "fovea/Runtime/GpuRuntime.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace fovea::cuda;

namespace {

/// The limits of CUDA.
constexpr int64_t kMaxGrid[3] = {INT32_MAX, 65535, 65535};
constexpr int64_t kMaxBlock[3] = {1024, 1024, 64};

thread_local LaunchContext *currentContext = nullptr;

} // namespace

static LaunchContext &getContext(const char *function) {
  if (!currentContext) {
    std::fprintf(stderr, "fovea: %s is called outside of a launch\n", function);
    std::abort();
  }
  return *currentContext;
}

static std::string formatSizes(const int64_t sizes[3]) {
  return std::to_string(sizes[0]) + " x " + std::to_string(sizes[1]) + " x " +
         std::to_string(sizes[2]);
}

LaunchContext::~LaunchContext() {
  if (arena)
    module.getLoaded().arenas.release(*arena);
}

llvm::Error LaunchContext::run(llvm::function_ref<void()> body) {
  ContextScope scope(module.getDevice());
  if (llvm::Error error = scope.check())
    return error;
  if (llvm::Error error = beginCall())
    return error;
  LaunchContext *outer = std::exchange(currentContext, this);
  body();
  currentContext = outer;
  if (arena) {
    temporaryBytes = arena->getPeakBytes();
    module.getLoaded().arenas.release(*std::exchange(arena, nullptr));
  }
  if (message.empty())
    return llvm::Error::success();
  for (ResultBuffer &result : results) {
    if (!result.allocated)
      continue;
    module.getDevice().free(result.data);
    result = {};
  }
  return llvm::createStringError(code, message);
}

llvm::Error LaunchContext::beginCall() {
  const Driver &driver = module.getDevice().getDriver();
  const Api &api = driver.getApi();
  LoadedModule &loaded = module.getLoaded();
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  uint64_t id = 0;
  CUgraph graph = nullptr;
  if (llvm::Error error =
          check(api,
                api.cuStreamGetCaptureInfo(stream, &status, &id, &graph,
                                           nullptr, nullptr),
                "cuStreamGetCaptureInfo"))
    return error;
  bool isCaptured = status != CU_STREAM_CAPTURE_STATUS_NONE;
  driver.getDropped().collect(/*mayWait=*/!isCaptured);
  if (!isCaptured)
    loaded.noteCall();
  // A capture that has become invalid has no graph; the driver refuses
  // launches.
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return llvm::Error::success();
  capture = id;
  return loaded.addReference(capture, graph);
}

void LaunchContext::fail(llvm::Error error) {
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    message = info.message();
    code = info.convertToErrorCode();
  });
}

void LaunchContext::launch(int64_t index, const int64_t grid[3],
                           const int64_t block[3], int64_t sharedBytes,
                           void **arguments, bool startsEarly) {
  if (!message.empty())
    return;
  llvm::ArrayRef<Kernel> kernels = module.getKernels();
  if (index < 0 || size_t(index) >= kernels.size())
    return fail(makeInvalid("no kernel " + llvm::Twine(index) +
                            ": the module has " + llvm::Twine(kernels.size())));
  const Kernel &kernel = kernels[index];
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)
    return;
  bool fits = true;
  for (int i = 0; i < 3; ++i)
    fits &= grid[i] > 0 && grid[i] <= kMaxGrid[i] && block[i] > 0 &&
            block[i] <= kMaxBlock[i];
  if (!fits)
    return fail(makeInvalid(
        "kernel '" + kernel.name + "': a grid of " + formatSizes(grid) +
        " blocks of " + formatSizes(block) + " threads exceeds the limits of " +
        formatSizes(kMaxGrid) + " and " + formatSizes(kMaxBlock)));
  if (sharedBytes < 0 || sharedBytes > kernel.maxDynamicSharedBytes)
    return fail(makeInvalid(
        "kernel '" + kernel.name + "': " + llvm::Twine(sharedBytes) +
        " bytes of shared memory per block, of which there are " +
        llvm::Twine(kernel.maxDynamicSharedBytes) + " on " +
        formatDevice(module.getDevice().getInfo())));
  const Driver &driver = module.getDevice().getDriver();
  const Api &api = driver.getApi();
  CUlaunchAttribute early = {};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {};
  config.gridDimX = unsigned(grid[0]);
  config.gridDimY = unsigned(grid[1]);
  config.gridDimZ = unsigned(grid[2]);
  config.blockDimX = unsigned(block[0]);
  config.blockDimY = unsigned(block[1]);
  config.blockDimZ = unsigned(block[2]);
  config.sharedMemBytes = unsigned(sharedBytes);
  config.hStream = stream;
  config.attrs = &early;
  config.numAttrs = startsEarly && driver.startsEarly();
  CUresult result = api.cuLaunchKernelEx(
      &config, static_cast<CUfunction>(kernel.function), arguments, nullptr);
  if (result != CUDA_SUCCESS)
    fail(makeError(api, result, "cuLaunchKernelEx",
                   "kernel '" + kernel.name + "' (grid " + formatSizes(grid) +
                       ", block " + formatSizes(block) + ", " +
                       llvm::Twine(sharedBytes) + " bytes of shared memory)"));
}

Arena *LaunchContext::acquireArena() {
  ArenaPool &arenas = module.getLoaded().arenas;
  // To ask a stream that is being captured for its number ends the capture
  // (driver 580). While it lasts, no other stream has the same handle.
  if (capture)
    return &arenas.acquire({reinterpret_cast<uintptr_t>(stream), capture});
  const Api &api = module.getDevice().getDriver().getApi();
  unsigned long long id = 0;
  if (llvm::Error error =
          check(api, api.cuStreamGetId(stream, &id), "cuStreamGetId")) {
    fail(std::move(error));
    return nullptr;
  }
  return &arenas.acquire({id, /*capture=*/0});
}

void *LaunchContext::allocate(int64_t bytes) {
  if (!message.empty() || bytes == 0)
    return nullptr;
  if (!arena && !(arena = acquireArena()))
    return nullptr;
  auto memory = module.getLoaded().arenas.allocate(*arena, bytes);
  if (memory)
    return *memory;
  fail(memory.takeError());
  return nullptr;
}

void LaunchContext::free(void *pointer) {
  if (arena && pointer)
    arena->free(pointer);
}

void *LaunchContext::getResult(int64_t index, int64_t bytes) {
  if (!message.empty())
    return nullptr;
  if (index < 0 || size_t(index) >= results.size()) {
    fail(makeInvalid("no result " + llvm::Twine(index) + ": the call has " +
                     llvm::Twine(results.size())));
    return nullptr;
  }
  ResultBuffer &result = results[index];
  if (result.isGuess && result.bytes != bytes)
    result = {};
  if (reinterpret_cast<uintptr_t>(result.data) % kResultAlignment) {
    fail(makeInvalid("result " + llvm::Twine(index) +
                     ": expected a buffer at a multiple of " +
                     llvm::Twine(kResultAlignment) + " bytes, got " +
                     llvm::formatv("{0}", result.data).str()));
    return nullptr;
  }
  if (result.data || bytes == 0) {
    if (result.bytes >= bytes)
      return result.data;
    fail(makeInvalid("result " + llvm::Twine(index) +
                     ": expected a buffer of " + llvm::Twine(bytes) +
                     " bytes, got " + llvm::Twine(result.bytes)));
    return nullptr;
  }
  auto memory = allocateMemory(module.getDevice(), bytes);
  if (!memory) {
    fail(memory.takeError());
    return nullptr;
  }
  result = {toPointer(*memory), bytes, /*isGuess=*/false, /*allocated=*/true};
  return result.data;
}

void LaunchContext::encodeTensorMap(void *map, void *base, int64_t elementKind,
                                    int64_t rank, const int64_t *sizes,
                                    const int64_t *byteStrides,
                                    const int64_t *box, int64_t swizzleBytes) {
  if (!message.empty())
    return;
  if (llvm::Error error = cuda::encodeTensorMap(
          module.getDevice(), map,
          {base, elementKind, rank, sizes, byteStrides, box, swizzleBytes}))
    fail(std::move(error));
}

void LaunchContext::zero(void *pointer, int64_t bytes) {
  if (!message.empty() || bytes == 0)
    return;
  const Api &api = module.getDevice().getDriver().getApi();
  CUresult result =
      api.cuMemsetD8Async(toAddress(pointer), 0, size_t(bytes), stream);
  if (result != CUDA_SUCCESS)
    fail(makeError(api, result, "cuMemsetD8Async",
                   "cannot fill " + llvm::Twine(bytes) + " bytes"));
}

void LaunchContext::read(void *target, const void *source, int64_t bytes) {
  std::memset(target, 0, bytes);
  if (!message.empty())
    return;
  if (llvm::Error error =
          module.getDevice().copyToHost(target, source, bytes, stream)) {
    std::memset(target, 0, bytes);
    fail(std::move(error));
  }
}

//===----------------------------------------------------------------------===//
// Called by compiled code
//===----------------------------------------------------------------------===//

void fovea_gpu_launch(int64_t kernel, int64_t gridX, int64_t gridY,
                      int64_t gridZ, int64_t blockX, int64_t blockY,
                      int64_t blockZ, int64_t sharedBytes, void **arguments) {
  const int64_t grid[3] = {gridX, gridY, gridZ};
  const int64_t block[3] = {blockX, blockY, blockZ};
  getContext("fovea_gpu_launch")
      .launch(kernel, grid, block, sharedBytes, arguments,
              /*startsEarly=*/false);
}

void fovea_gpu_launch_early(int64_t kernel, int64_t gridX, int64_t gridY,
                            int64_t gridZ, int64_t blockX, int64_t blockY,
                            int64_t blockZ, int64_t sharedBytes,
                            void **arguments) {
  const int64_t grid[3] = {gridX, gridY, gridZ};
  const int64_t block[3] = {blockX, blockY, blockZ};
  getContext("fovea_gpu_launch_early")
      .launch(kernel, grid, block, sharedBytes, arguments,
              /*startsEarly=*/true);
}

void *fovea_gpu_allocate(int64_t bytes) {
  return getContext("fovea_gpu_allocate").allocate(bytes);
}

void fovea_gpu_free(void *pointer) {
  getContext("fovea_gpu_free").free(pointer);
}

void *fovea_gpu_result(int64_t index, int64_t bytes) {
  return getContext("fovea_gpu_result").getResult(index, bytes);
}

void fovea_gpu_tensor_map(void *map, void *base, int64_t elementKind,
                          int64_t rank, const int64_t *sizes,
                          const int64_t *byteStrides, const int64_t *box,
                          int64_t swizzleBytes) {
  getContext("fovea_gpu_tensor_map")
      .encodeTensorMap(map, base, elementKind, rank, sizes, byteStrides, box,
                       swizzleBytes);
}

void fovea_gpu_zero(void *pointer, int64_t bytes) {
  getContext("fovea_gpu_zero").zero(pointer, bytes);
}

void fovea_gpu_read(void *target, const void *source, int64_t bytes) {
  getContext("fovea_gpu_read").read(target, source, bytes);
}
