//===- CudaApi.h - The part of the CUDA driver's ABI in use -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions are declared here and looked up at run time, so that building
// needs no CUDA and one binary runs with and without a GPU. Names are the
// driver's; a function's symbol carries the suffix of the declared version.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_RUNTIME_CUDAAPI_H
#define FOVEA_LIB_RUNTIME_CUDAAPI_H

#include <cstddef>
#include <cstdint>

namespace fovea::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = void *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUuserObject = struct CUuserObject_st *;
using CUhostFn = void (*)(void *data);

struct alignas(128) CUtensorMap {
  uint64_t opaque[16];
};

struct CUlaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    int programmaticStreamSerializationAllowed;
  } value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};

enum : CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_FAILED = 719,
};

enum : int {
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,

  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,

  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,

  CU_JIT_INFO_LOG_BUFFER = 3,
  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_JIT_LOG_VERBOSE = 12,

  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DEFAULT = 0,

  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,

  CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1,
  CU_GRAPH_USER_OBJECT_MOVE = 1,

  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  CU_MEMORYTYPE_DEVICE = 2,

  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
  CU_TENSOR_MAP_DATA_TYPE_INT32 = 3,
  CU_TENSOR_MAP_DATA_TYPE_INT64 = 5,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
  CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_32B = 1,
  CU_TENSOR_MAP_SWIZZLE_64B = 2,
  CU_TENSOR_MAP_SWIZZLE_128B = 3,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
};

// The functions that the oldest driver has, for a clear message about older
// drivers.
#define FOVEA_CUDA_BASE_FUNCTIONS(F)                                           \
  F(cuInit, , (unsigned flags))                                                \
  F(cuDriverGetVersion, , (int *version))                                      \
  F(cuGetErrorName, , (CUresult error, const char **name))                     \
  F(cuGetErrorString, , (CUresult error, const char **text))

#define FOVEA_CUDA_FUNCTIONS(F)                                                \
  F(cuDeviceGet, , (CUdevice * device, int ordinal))                           \
  F(cuDeviceGetCount, , (int *count))                                          \
  F(cuDeviceGetName, , (char *name, int length, CUdevice device))              \
  F(cuDeviceGetAttribute, , (int *value, int attribute, CUdevice device))      \
  F(cuDeviceTotalMem, _v2, (size_t *bytes, CUdevice device))                   \
  F(cuDevicePrimaryCtxRetain, , (CUcontext * context, CUdevice device))        \
  F(cuCtxGetCurrent, , (CUcontext * context))                                  \
  F(cuCtxPushCurrent, _v2, (CUcontext context))                                \
  F(cuCtxPopCurrent, _v2, (CUcontext * context))                               \
  F(cuCtxSynchronize, , ())                                                    \
  F(cuModuleLoadDataEx, ,                                                      \
    (CUmodule * module, const void *image, unsigned count, int *options,       \
     void **values))                                                           \
  F(cuModuleUnload, , (CUmodule module))                                       \
  F(cuModuleGetFunction, ,                                                     \
    (CUfunction * function, CUmodule module, const char *name))                \
  F(cuFuncGetAttribute, , (int *value, int attribute, CUfunction function))    \
  F(cuFuncSetAttribute, , (CUfunction function, int attribute, int value))     \
  F(cuLaunchKernelEx, ,                                                        \
    (const CUlaunchConfig *config, CUfunction function, void **arguments,      \
     void **extra))                                                            \
  F(cuStreamCreate, , (CUstream * stream, unsigned flags))                     \
  F(cuStreamDestroy, _v2, (CUstream stream))                                   \
  F(cuStreamSynchronize, , (CUstream stream))                                  \
  F(cuStreamGetId, , (CUstream stream, unsigned long long *id))                \
  F(cuStreamGetCtx, , (CUstream stream, CUcontext * context))                  \
  F(cuStreamGetCaptureInfo, _v2,                                               \
    (CUstream stream, int *status, uint64_t *id, CUgraph *graph,               \
     const void **dependencies, size_t *numDependencies))                      \
  F(cuThreadExchangeStreamCaptureMode, , (int *mode))                          \
  F(cuUserObjectCreate, ,                                                      \
    (CUuserObject * object, void *data, CUhostFn destroy, unsigned count,      \
     unsigned flags))                                                          \
  F(cuUserObjectRelease, , (CUuserObject object, unsigned count))              \
  F(cuGraphRetainUserObject, ,                                                 \
    (CUgraph graph, CUuserObject object, unsigned count, unsigned flags))      \
  F(cuEventCreate, , (CUevent * event, unsigned flags))                        \
  F(cuEventRecord, , (CUevent event, CUstream stream))                         \
  F(cuEventSynchronize, , (CUevent event))                                     \
  F(cuEventElapsedTime, , (float *milliseconds, CUevent start, CUevent end))   \
  F(cuEventDestroy, _v2, (CUevent event))                                      \
  F(cuMemAlloc, _v2, (CUdeviceptr * pointer, size_t bytes))                    \
  F(cuMemFree, _v2, (CUdeviceptr pointer))                                     \
  F(cuMemGetInfo, _v2, (size_t *free, size_t *total))                          \
  F(cuMemcpyHtoDAsync, _v2,                                                    \
    (CUdeviceptr target, const void *source, size_t bytes, CUstream stream))   \
  F(cuMemcpyDtoHAsync, _v2,                                                    \
    (void *target, CUdeviceptr source, size_t bytes, CUstream stream))         \
  F(cuMemsetD8Async, ,                                                         \
    (CUdeviceptr target, unsigned char value, size_t bytes, CUstream stream))  \
  F(cuPointerGetAttributes, ,                                                  \
    (unsigned count, int *attributes, void **values, CUdeviceptr pointer))     \
  F(cuTensorMapEncodeTiled, ,                                                  \
    (CUtensorMap * map, int type, uint32_t rank, void *base,                   \
     const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,      \
     const uint32_t *elementStrides, int interleave, int swizzle,              \
     int promotion, int fill))

/// The driver's functions.
struct Api {
#define FOVEA_DECLARE(name, suffix, parameters) CUresult(*name) parameters;
  FOVEA_CUDA_BASE_FUNCTIONS(FOVEA_DECLARE)
  FOVEA_CUDA_FUNCTIONS(FOVEA_DECLARE)
#undef FOVEA_DECLARE
};

} // namespace fovea::cuda

#endif // FOVEA_LIB_RUNTIME_CUDAAPI_H
