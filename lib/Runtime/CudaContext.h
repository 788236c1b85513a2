//===- CudaContext.h - Calls of the CUDA driver -----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_RUNTIME_CUDACONTEXT_H
#define FOVEA_LIB_RUNTIME_CUDACONTEXT_H

#include "CudaApi.h"
#include "fovea/Runtime/GpuDevice.h"

namespace fovea::cuda {

/// Formats `<call>: CUDA_ERROR_... (text)`, after `what` and a colon if there
/// is one, and a remedy, if one is known.
llvm::Error makeError(const Api &api, CUresult result, llvm::StringRef call,
                      const llvm::Twine &what = "");

/// Returns success, or the error of a call.
inline llvm::Error check(const Api &api, CUresult result, llvm::StringRef call,
                         const llvm::Twine &what = "") {
  if (result == CUDA_SUCCESS)
    return llvm::Error::success();
  return makeError(api, result, call, what);
}

/// Returns an error that the caller is to blame for.
inline llvm::Error makeInvalid(const llvm::Twine &message) {
  return llvm::createStringError(
      std::make_error_code(std::errc::invalid_argument), message);
}

/// Makes a device's primary context the thread's current one, while this lives.
class ContextScope {
public:
  explicit ContextScope(const Device &device)
      : api(device.getDriver().getApi()) {
    auto context = static_cast<CUcontext>(device.getContext());
    CUcontext current = nullptr;
    if (api.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context)
      return;
    result = api.cuCtxPushCurrent(context);
    pushed = result == CUDA_SUCCESS;
  }
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;
  ~ContextScope() {
    CUcontext context;
    if (pushed)
      api.cuCtxPopCurrent(&context);
  }

  llvm::Error check() const {
    return cuda::check(api, result, "cuCtxPushCurrent");
  }

private:
  const Api &api;
  CUresult result = CUDA_SUCCESS;
  bool pushed = false;
};

/// Lets the thread allocate while a stream of the process is being captured.
/// Its allocations are not part of the graph.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const Api &api) : api(api) {
    api.cuThreadExchangeStreamCaptureMode(&mode);
  }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;
  ~RelaxedCapture() { api.cuThreadExchangeStreamCaptureMode(&mode); }

private:
  const Api &api;
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Allocates `bytes` of memory on the device whose context is current. The
/// error says how much memory the device has.
llvm::Expected<CUdeviceptr> allocateMemory(const Device &device, int64_t bytes);

inline CUdeviceptr toAddress(const void *pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}
inline void *toPointer(CUdeviceptr address) {
  return reinterpret_cast<void *>(address);
}

} // namespace fovea::cuda

#endif // FOVEA_LIB_RUNTIME_CUDACONTEXT_H
