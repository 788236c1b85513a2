//===- FakeCuda.cpp - A CUDA driver for tests -----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

using namespace fovea::cuda;

#define EXPORT __attribute__((visibility("default")))

// The real driver's functions must be all of these, with these types.
extern "C" {
#define DECLARE(name, suffix, parameters)                                      \
  EXPORT CUresult name##suffix parameters;
FOVEA_CUDA_BASE_FUNCTIONS(DECLARE)
FOVEA_CUDA_FUNCTIONS(DECLARE)
#undef DECLARE
}

namespace fovea::cuda {
EXPORT void resetFakeCuda();
EXPORT FakeCuda &getFakeCuda();
EXPORT void setFakeCapture(CUstream stream, uint64_t capture);
EXPORT void destroyFakeGraph(uint64_t capture);
} // namespace fovea::cuda

namespace {

FakeCuda *create() {
  auto *fake = new FakeCuda;
  // Tests count allocations.
  fake->launches.reserve(1 << 16);
  std::string text = std::getenv("FAKE_CUDA") ? std::getenv("FAKE_CUDA") : "";
  if (text == "no-device")
    fake->initResult = CUDA_ERROR_NO_DEVICE;
  else if (text == "old-driver")
    fake->driverVersion = 11040;
  else if (text == "less-memory")
    fake->memoryBytes /= 2;
  else if (text == "faster")
    fake->speedup = 1e-4F;
  return fake;
}

FakeCuda *current = create();
std::mutex mutex;

char contexts[8];
thread_local std::vector<CUcontext> contextStack;
/// The mode is global, with which a thread starts.
thread_local int captureMode = 0;

struct Function {
  std::string name;
};
std::map<std::string, Function> functions;

CUresult requireContext() {
  return contextStack.empty() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

FakeCuda::StreamState &getStream(CUstream stream) {
  auto [found, isNew] = current->streams.try_emplace(stream);
  if (isNew)
    found->second = {current->nextStream++, 0,
                     contextStack.empty() ? nullptr : contextStack.back()};
  return found->second;
}

/// Notes a call that a capture forbids, in the relaxed mode too if it waits.
void noteUnsafe(bool waits = false) {
  for (auto &[stream, state] : current->streams)
    if (state.capture &&
        (waits || captureMode != CU_STREAM_CAPTURE_MODE_RELAXED))
      ++current->numForbidden;
}

} // namespace

void fovea::cuda::resetFakeCuda() {
  std::lock_guard<std::mutex> lock(mutex);
  delete current;
  current = create();
}

FakeCuda &fovea::cuda::getFakeCuda() { return *current; }

void fovea::cuda::setFakeCapture(CUstream stream, uint64_t capture) {
  std::lock_guard<std::mutex> lock(mutex);
  getStream(stream).capture = capture;
}

void fovea::cuda::destroyFakeGraph(uint64_t capture) {
  std::vector<CUuserObject> objects;
  {
    std::lock_guard<std::mutex> lock(mutex);
    objects = std::exchange(current->graphs[capture], {});
    current->graphs.erase(capture);
  }
  for (CUuserObject object : objects)
    cuUserObjectRelease(object, 1);
  {
    std::lock_guard<std::mutex> lock(mutex);
    objects = std::exchange(current->unreferenced, {});
  }
  for (CUuserObject object : objects) {
    auto *state = reinterpret_cast<FakeCuda::UserObject *>(object);
    state->destroy(state->data);
    delete state;
  }
}

CUresult cuInit(unsigned) { return current->initResult; }

CUresult cuDriverGetVersion(int *version) {
  *version = current->driverVersion;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  switch (error) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return CUDA_SUCCESS;
  case CUDA_ERROR_NO_DEVICE:
    *name = "CUDA_ERROR_NO_DEVICE";
    return CUDA_SUCCESS;
  case CUDA_ERROR_INVALID_IMAGE:
    *name = "CUDA_ERROR_INVALID_IMAGE";
    return CUDA_SUCCESS;
  case CUDA_ERROR_INVALID_PTX:
    *name = "CUDA_ERROR_INVALID_PTX";
    return CUDA_SUCCESS;
  case CUDA_ERROR_NOT_FOUND:
    *name = "CUDA_ERROR_NOT_FOUND";
    return CUDA_SUCCESS;
  case CUDA_ERROR_ILLEGAL_ADDRESS:
    *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
    return CUDA_SUCCESS;
  case CUDA_ERROR_LAUNCH_FAILED:
    *name = "CUDA_ERROR_LAUNCH_FAILED";
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  if (cuGetErrorName(error, text) != CUDA_SUCCESS)
    return CUDA_ERROR_INVALID_VALUE;
  *text = "as the test wants it";
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Devices and contexts
//===----------------------------------------------------------------------===//

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  *count = current->numDevices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  std::snprintf(name, length, "Fake GPU");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = current->major;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = current->minor;
    break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 132;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = 232448;
    break;
  default:
    *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
  *bytes = current->memoryBytes;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  *context = reinterpret_cast<CUcontext>(&contexts[device]);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = contextStack.empty() ? nullptr : contextStack.back();
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  contextStack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  *context = contextStack.back();
  contextStack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  std::lock_guard<std::mutex> lock(mutex);
  noteUnsafe(/*waits=*/true);
  ++current->numSynchronizations;
  return requireContext();
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            int *options, void **values) {
  std::lock_guard<std::mutex> lock(mutex);
  if (CUresult result = requireContext())
    return result;
  const char *text = static_cast<const char *>(image);
  bool isPTX = std::strncmp(text, "PTX", 3) == 0;
  current->images.push_back(isPTX ? text : "cubin");
  CUresult result = isPTX ? current->ptxResult : current->cubinResult;
  int wanted =
      result == CUDA_SUCCESS ? CU_JIT_INFO_LOG_BUFFER : CU_JIT_ERROR_LOG_BUFFER;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == wanted)
      std::strcpy(static_cast<char *>(values[i]), current->compileLog.c_str());
  if (result != CUDA_SUCCESS)
    return result;
  ++current->liveModules;
  *module = reinterpret_cast<CUmodule>(current);
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule) {
  std::lock_guard<std::mutex> lock(mutex);
  noteUnsafe();
  --current->liveModules;
  return requireContext();
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
  std::lock_guard<std::mutex> lock(mutex);
  if (name == current->missingKernel)
    return CUDA_ERROR_NOT_FOUND;
  Function &entry = functions[name];
  entry.name = name;
  *function = reinterpret_cast<CUfunction>(&entry);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction) {
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = 168;
    break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = 16;
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = 1024;
    break;
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = 384;
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  std::lock_guard<std::mutex> lock(mutex);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return CUDA_ERROR_INVALID_VALUE;
  current->dynamicSharedBytes[reinterpret_cast<Function *>(function)->name] =
      value;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                          void **, void **) {
  std::lock_guard<std::mutex> lock(mutex);
  if (CUresult result = requireContext())
    return result;
  if (current->launchResult != CUDA_SUCCESS)
    return current->launchResult;
  // CUDA_ERROR_STREAM_CAPTURE_INVALIDATED.
  if (getStream(config->hStream).capture == FakeCuda::kInvalidCapture)
    return CUresult(901);
  bool startsEarly = false;
  for (unsigned index = 0; index < config->numAttrs; ++index) {
    const CUlaunchAttribute &attribute = config->attrs[index];
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      return CUDA_ERROR_INVALID_VALUE;
    startsEarly = attribute.value.programmaticStreamSerializationAllowed != 0;
  }
  current->launches.push_back(
      {reinterpret_cast<Function *>(function)->name,
       {config->gridDimX, config->gridDimY, config->gridDimZ},
       {config->blockDimX, config->blockDimY, config->blockDimZ},
       config->sharedMemBytes,
       config->hStream,
       startsEarly});
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  std::lock_guard<std::mutex> lock(mutex);
  *stream = reinterpret_cast<CUstream>(uintptr_t(16 * current->nextStream));
  getStream(*stream);
  return requireContext();
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  current->streams.erase(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream) { return current->synchronizeResult; }

CUresult cuStreamGetId(CUstream stream, unsigned long long *id) {
  std::lock_guard<std::mutex> lock(mutex);
  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, as from driver 580, in any mode.
  if (getStream(stream).capture)
    return CUresult(900);
  *id = getStream(stream).id;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  std::lock_guard<std::mutex> lock(mutex);
  *context = getStream(stream).context;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id,
                                   CUgraph *graph, const void **, size_t *) {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t capture = getStream(stream).capture;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (capture == FakeCuda::kInvalidCapture)
    *status = 2; // CU_STREAM_CAPTURE_STATUS_INVALIDATED
  else if (capture) {
    *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    *id = capture;
    *graph = reinterpret_cast<CUgraph>(capture);
  }
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, captureMode);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectCreate(CUuserObject *object, void *data, CUhostFn destroy,
                            unsigned count, unsigned flags) {
  std::lock_guard<std::mutex> lock(mutex);
  if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  if (current->userObjectResult != CUDA_SUCCESS)
    return current->userObjectResult;
  ++current->liveUserObjects;
  *object = reinterpret_cast<CUuserObject>(
      new FakeCuda::UserObject{data, destroy, count});
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  std::lock_guard<std::mutex> lock(mutex);
  auto *state = reinterpret_cast<FakeCuda::UserObject *>(object);
  if (state->count -= count)
    return CUDA_SUCCESS;
  --current->liveUserObjects;
  current->unreferenced.push_back(object);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object,
                                 unsigned count, unsigned flags) {
  std::lock_guard<std::mutex> lock(mutex);
  if (current->retainResult != CUDA_SUCCESS)
    return current->retainResult;
  if (count != 1 || flags != CU_GRAPH_USER_OBJECT_MOVE)
    return CUDA_ERROR_INVALID_VALUE;
  current->graphs[reinterpret_cast<uint64_t>(graph)].push_back(object);
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned) {
  *event = reinterpret_cast<CUevent>(new char);
  return requireContext();
}

CUresult cuEventRecord(CUevent, CUstream) { return requireContext(); }
CUresult cuEventSynchronize(CUevent) { return current->synchronizeResult; }

CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  *milliseconds = current->milliseconds;
  current->milliseconds *= 1 - current->speedup;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  delete reinterpret_cast<char *>(event);
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  if (CUresult result = requireContext())
    return result;
  noteUnsafe();
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > current->getFreeBytes())
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *memory = nullptr;
  if (posix_memalign(&memory, 512, bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  // Results that no kernel writes are the same in every run.
  std::memset(memory, 0, bytes);
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  current->memory[*pointer] = bytes;
  current->liveBytes += bytes;
  ++current->numAllocations;
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  std::lock_guard<std::mutex> lock(mutex);
  if (CUresult result = requireContext())
    return result;
  noteUnsafe();
  auto found = current->memory.find(pointer);
  if (found == current->memory.end())
    return CUDA_ERROR_INVALID_VALUE;
  current->liveBytes -= found->second;
  current->memory.erase(found);
  std::free(reinterpret_cast<void *>(pointer));
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  std::lock_guard<std::mutex> lock(mutex);
  *free = current->getFreeBytes();
  *total = current->memoryBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source,
                              size_t bytes, CUstream) {
  std::memcpy(reinterpret_cast<void *>(target), source, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t bytes,
                              CUstream) {
  std::memcpy(target, reinterpret_cast<const void *>(source), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t bytes,
                         CUstream) {
  std::memset(reinterpret_cast<void *>(target), value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values,
                                CUdeviceptr pointer) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = current->memory.upper_bound(pointer);
  bool known = found != current->memory.begin();
  if (known) {
    --found;
    known = pointer < found->first + found->second;
  }
  for (unsigned i = 0; i < count; ++i) {
    int value = 0;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
      value = known ? CU_MEMORYTYPE_DEVICE : 0;
    else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
      value = known ? 0 : -2;
    std::memcpy(values[i], &value, sizeof(value));
  }
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, uint32_t rank,
                                void *base, const uint64_t *sizes,
                                const uint64_t *strides, const uint32_t *box,
                                const uint32_t *elementStrides, int interleave,
                                int swizzle, int promotion, int) {
  std::lock_guard<std::mutex> lock(mutex);
  if (reinterpret_cast<uintptr_t>(map) % 64)
    return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t i = 0; i < rank; ++i)
    if (sizes[i] == 0 || elementStrides[i] != 1)
      return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t i = 0; i + 1 < rank; ++i)
    if (strides[i] % 16)
      return CUDA_ERROR_INVALID_VALUE;
  current->tensorMaps.push_back({type,
                                 base,
                                 {sizes, sizes + rank},
                                 {strides, strides + rank - 1},
                                 {box, box + rank},
                                 swizzle});
  std::memset(map, 0, sizeof(*map));
  map->opaque[0] = reinterpret_cast<uintptr_t>(base);
  map->opaque[1] = sizes[0];
  return CUDA_SUCCESS;
}
