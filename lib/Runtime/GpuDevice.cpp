//===- GpuDevice.cpp - Memory, streams and events of a device -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Runtime/GpuDevice.h"
#include "CudaContext.h"

#include "llvm/ADT/Twine.h"

using namespace fovea::cuda;

llvm::Expected<CUdeviceptr> fovea::cuda::allocateMemory(const Device &device,
                                                        int64_t bytes) {
  const Api &api = device.getDriver().getApi();
  // Allocates also inside of a capture, and then not as a part of the graph.
  RelaxedCapture relaxed(api);
  CUdeviceptr address = 0;
  CUresult result = bytes < 0
                        ? CUresult(CUDA_ERROR_OUT_OF_MEMORY)
                        : api.cuMemAlloc(&address, std::max<int64_t>(bytes, 1));
  if (result == CUDA_SUCCESS)
    return address;
  std::string what = "cannot allocate " + std::to_string(uint64_t(bytes)) +
                     " bytes on " + formatDevice(device.getInfo());
  size_t free = 0, total = 0;
  if (result == CUDA_ERROR_OUT_OF_MEMORY &&
      api.cuMemGetInfo(&free, &total) == CUDA_SUCCESS)
    what += " (" + std::to_string(free) + " of " + std::to_string(total) +
            " bytes are free)";
  return makeError(api, result, "cuMemAlloc", what);
}

//===----------------------------------------------------------------------===//
// Buffer, Stream, Event
//===----------------------------------------------------------------------===//

Buffer &Buffer::operator=(Buffer &&other) noexcept {
  std::swap(device, other.device);
  std::swap(data, other.data);
  std::swap(numBytes, other.numBytes);
  return *this;
}

Buffer::~Buffer() {
  if (device)
    device->free(data);
}

void *Buffer::release() {
  numBytes = 0;
  return std::exchange(data, nullptr);
}

Stream &Stream::operator=(Stream &&other) noexcept {
  std::swap(device, other.device);
  std::swap(handle, other.handle);
  return *this;
}

Stream::~Stream() {
  if (!handle)
    return;
  ContextScope scope(*device);
  device->getDriver().getApi().cuStreamDestroy(handle);
}

llvm::Error Stream::synchronize() { return device->synchronize(handle); }

Event &Event::operator=(Event &&other) noexcept {
  std::swap(device, other.device);
  std::swap(handle, other.handle);
  return *this;
}

Event::~Event() {
  if (!handle)
    return;
  ContextScope scope(*device);
  device->getDriver().getApi().cuEventDestroy(static_cast<CUevent>(handle));
}

llvm::Error Event::record(StreamHandle stream) {
  const Api &api = device->getDriver().getApi();
  ContextScope scope(*device);
  return check(api, api.cuEventRecord(static_cast<CUevent>(handle), stream),
               "cuEventRecord");
}

llvm::Error Event::synchronize() {
  const Api &api = device->getDriver().getApi();
  ContextScope scope(*device);
  return check(api, api.cuEventSynchronize(static_cast<CUevent>(handle)),
               "cuEventSynchronize");
}

llvm::Expected<double> Event::getMillisecondsSince(const Event &start) {
  const Api &api = device->getDriver().getApi();
  ContextScope scope(*device);
  float milliseconds = 0;
  if (llvm::Error error =
          check(api,
                api.cuEventElapsedTime(&milliseconds,
                                       static_cast<CUevent>(start.handle),
                                       static_cast<CUevent>(handle)),
                "cuEventElapsedTime"))
    return error;
  return milliseconds;
}

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

llvm::Error Device::open() {
  const Api &api = driver.getApi();
  CUdevice device;
  CUcontext primary = nullptr;
  CUresult result = api.cuDeviceGet(&device, info.ordinal);
  if (result == CUDA_SUCCESS)
    result = api.cuDevicePrimaryCtxRetain(&primary, device);
  if (llvm::Error error = check(api, result, "cuDevicePrimaryCtxRetain",
                                "cannot use " + formatDevice(info)))
    return error;
  context = primary;
  ContextScope scope(*this);
  if (llvm::Error error = scope.check())
    return error;
  auto memory = allocateMemory(*this, 128);
  if (!memory)
    return memory.takeError();
  scratch = toPointer(*memory);
  return llvm::Error::success();
}

llvm::Expected<Buffer> Device::allocate(int64_t bytes) {
  Buffer buffer;
  buffer.device = this;
  if (bytes == 0)
    return buffer;
  ContextScope scope(*this);
  if (llvm::Error error = scope.check())
    return error;
  auto memory = allocateMemory(*this, bytes);
  if (!memory)
    return memory.takeError();
  buffer.data = toPointer(*memory);
  buffer.numBytes = bytes;
  return buffer;
}

void Device::free(void *data) {
  if (!data)
    return;
  const Api &api = driver.getApi();
  ContextScope scope(*this);
  RelaxedCapture relaxed(api);
  api.cuMemFree(toAddress(data));
}

llvm::Expected<Stream> Device::createStream() {
  const Api &api = driver.getApi();
  ContextScope scope(*this);
  Stream stream;
  stream.device = this;
  if (llvm::Error error =
          check(api, api.cuStreamCreate(&stream.handle, CU_STREAM_NON_BLOCKING),
                "cuStreamCreate"))
    return error;
  return stream;
}

llvm::Expected<Event> Device::createEvent() {
  const Api &api = driver.getApi();
  ContextScope scope(*this);
  Event event;
  event.device = this;
  CUevent handle = nullptr;
  if (llvm::Error error = check(
          api, api.cuEventCreate(&handle, CU_EVENT_DEFAULT), "cuEventCreate"))
    return error;
  event.handle = handle;
  return event;
}

llvm::Error Device::copyToDevice(void *target, const void *source,
                                 int64_t bytes, StreamHandle stream) {
  if (bytes == 0)
    return llvm::Error::success();
  const Api &api = driver.getApi();
  ContextScope scope(*this);
  if (llvm::Error error = check(
          api, api.cuMemcpyHtoDAsync(toAddress(target), source, bytes, stream),
          "cuMemcpyHtoDAsync",
          "cannot copy " + llvm::Twine(bytes) + " bytes to " +
              formatDevice(info)))
    return error;
  return synchronize(stream);
}

llvm::Error Device::copyToHost(void *target, const void *source, int64_t bytes,
                               StreamHandle stream) {
  if (bytes == 0)
    return llvm::Error::success();
  const Api &api = driver.getApi();
  ContextScope scope(*this);
  if (llvm::Error error = check(
          api, api.cuMemcpyDtoHAsync(target, toAddress(source), bytes, stream),
          "cuMemcpyDtoHAsync",
          "cannot copy " + llvm::Twine(bytes) + " bytes from " +
              formatDevice(info)))
    return error;
  return synchronize(stream);
}

llvm::Error Device::synchronize(StreamHandle stream) {
  const Api &api = driver.getApi();
  ContextScope scope(*this);
  return check(api, api.cuStreamSynchronize(stream), "cuStreamSynchronize",
               "the work on " + formatDevice(info) + " failed");
}

llvm::Error Device::checkPointer(const void *pointer, const llvm::Twine &what) {
  const Api &api = driver.getApi();
  ContextScope scope(*this);
  // Host memory that CUDA knows nothing of has type 0.
  unsigned type = 0;
  unsigned managed = 0;
  int ordinal = -2;
  int attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                      CU_POINTER_ATTRIBUTE_IS_MANAGED,
                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *values[] = {&type, &managed, &ordinal};
  if (llvm::Error error = check(
          api,
          api.cuPointerGetAttributes(3, attributes, values, toAddress(pointer)),
          "cuPointerGetAttributes", what))
    return error;
  if (managed)
    return llvm::Error::success();
  if (type != CU_MEMORYTYPE_DEVICE)
    return makeInvalid(what + ": expected memory of " + formatDevice(info) +
                       ", got memory of the host");
  if (ordinal != info.ordinal)
    return makeInvalid(what + ": expected memory of " + formatDevice(info) +
                       ", got memory of device " + llvm::Twine(ordinal));
  return llvm::Error::success();
}

llvm::Error Device::checkStream(StreamHandle stream) {
  const Api &api = driver.getApi();
  ContextScope scope(*this);
  CUcontext owner = nullptr;
  if (llvm::Error error = check(api, api.cuStreamGetCtx(stream, &owner),
                                "cuStreamGetCtx", "the stream"))
    return error;
  if (owner != context)
    return makeInvalid("the stream is not one of " + formatDevice(info));
  return llvm::Error::success();
}
