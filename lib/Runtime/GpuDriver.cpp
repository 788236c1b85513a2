//===- GpuDriver.cpp - The CUDA driver and its devices --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuModule.h"

#include "llvm/ADT/Twine.h"

#include <cstdlib>

#include <dlfcn.h>
#include <unistd.h>

using namespace fovea::cuda;

/// The first driver version that can capture launches that start early.
static constexpr int kEarlyStartVersion = 12030;

static llvm::Error makeNoDevice(const llvm::Twine &message) {
  return llvm::createStringError(
      std::make_error_code(std::errc::no_such_device), message);
}

static std::error_code getCode(CUresult result) {
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return std::make_error_code(std::errc::not_enough_memory);
  case CUDA_ERROR_NO_DEVICE:
  case CUDA_ERROR_INVALID_DEVICE:
    return std::make_error_code(std::errc::no_such_device);
  default:
    return std::make_error_code(std::errc::io_error);
  }
}

llvm::Error fovea::cuda::makeError(const Api &api, CUresult result,
                                   llvm::StringRef call,
                                   const llvm::Twine &what) {
  // The driver does not know all of its errors: for unknown ones these may
  // leave a null pointer.
  const char *name = nullptr;
  const char *text = nullptr;
  api.cuGetErrorName(result, &name);
  api.cuGetErrorString(result, &text);
  std::string message = what.str();
  if (!message.empty())
    message += ": ";
  message += call.str() + ": " +
             (name ? std::string(name) : "error " + std::to_string(result));
  if (text)
    message += std::string(" (") + text + ")";
  // Kernels read at the indices that operands hold; after this error every
  // later call fails with it.
  if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
    message += "; if operands decide where the graph reads, an index may be "
               "out of bounds: --check-bounds, in Python check_bounds=True, "
               "names the op";
  return llvm::createStringError(getCode(result), message);
}

std::string fovea::cuda::formatDevice(const DeviceInfo &info) {
  return info.name + " (device " + std::to_string(info.ordinal) +
         ", compute capability " + std::to_string(info.major) + "." +
         std::to_string(info.minor) + ")";
}

std::string fovea::cuda::formatCudaVersion(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

Driver::Driver()
    : api(std::make_unique<Api>()),
      dropped(std::make_unique<DroppedReferences>()) {}
Driver::~Driver() = default;

llvm::Expected<std::unique_ptr<Driver>> Driver::load(const std::string &path) {
  std::unique_ptr<Driver> driver(new Driver);
  if (llvm::Error error = driver->initialize(path))
    return error;
  return driver;
}

llvm::Expected<Driver &> Driver::get() {
  struct Process {
    std::unique_ptr<Driver> driver;
    std::string message;
    pid_t pid = getpid();

    Process() {
      const char *path = std::getenv("FOVEA_CUDA_DRIVER");
      auto loaded = load(path && *path ? path : "libcuda.so.1");
      if (loaded)
        driver = std::move(*loaded);
      else
        message = llvm::toString(loaded.takeError());
    }
  };
  // The driver is never destroyed: threads may be calling it until the very
  // end.
  static Process &process = *new Process;
  if (!process.driver)
    return makeNoDevice(process.message);
  if (process.pid != getpid())
    return makeNoDevice("this process was forked from one that uses the GPU, "
                        "and cannot use it (start processes by spawn)");
  return *process.driver;
}

llvm::Error Driver::initialize(const std::string &path) {
  // The library is never closed, as the driver has threads of its own.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return makeNoDevice("no NVIDIA driver: " + llvm::Twine(dlerror()));
  std::string missing;
  auto lookUp = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        dlsym(library, name));
    if (!function && missing.empty())
      missing = name;
  };
#define FOVEA_LOOK_UP(name, suffix, parameters)                                \
  lookUp(api->name, #name #suffix);
  FOVEA_CUDA_BASE_FUNCTIONS(FOVEA_LOOK_UP)
  if (!missing.empty())
    return makeNoDevice("'" + path + "' is no NVIDIA driver: it has no " +
                        missing);

  // The version is checked before the other functions are looked for, which an
  // old driver does not have.
  if (api->cuDriverGetVersion(&version) == CUDA_SUCCESS &&
      version < kOldestVersion)
    return makeNoDevice("the NVIDIA driver is too old: it supports CUDA " +
                        formatCudaVersion(version) + ", and Fovea needs " +
                        formatCudaVersion(kOldestVersion) + " or newer");
  FOVEA_CUDA_FUNCTIONS(FOVEA_LOOK_UP)
#undef FOVEA_LOOK_UP
  if (!missing.empty())
    return makeNoDevice("the NVIDIA driver has no " + missing);
  llvm::StringRef early = "1";
  if (const char *text = std::getenv("FOVEA_EARLY_START"))
    early = text;
  if (early != "0" && early != "1")
    return makeInvalid("FOVEA_EARLY_START is '" + early + "', expected 0 or 1");
  earlyStart = early == "1" && version >= kEarlyStartVersion;
  if (llvm::Error error = check(*api, api->cuInit(0), "cuInit", "no GPU"))
    return makeNoDevice(llvm::toString(std::move(error)));

  int count = 0;
  if (llvm::Error error =
          check(*api, api->cuDeviceGetCount(&count), "cuDeviceGetCount"))
    return error;
  if (count == 0)
    return makeNoDevice("no GPU: the NVIDIA driver has no device");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceInfo &info = infos.emplace_back();
    info.ordinal = ordinal;
    CUdevice device;
    if (llvm::Error error =
            check(*api, api->cuDeviceGet(&device, ordinal), "cuDeviceGet",
                  "device " + llvm::Twine(ordinal)))
      return error;
    char name[256] = "";
    size_t memory = 0;
    CUresult result = api->cuDeviceGetName(name, sizeof(name), device);
    if (result == CUDA_SUCCESS)
      result = api->cuDeviceTotalMem(&memory, device);
    info.name = name;
    info.memoryBytes = int64_t(memory);
    auto query = [&](int attribute) {
      int value = 0;
      if (result == CUDA_SUCCESS)
        result = api->cuDeviceGetAttribute(&value, attribute, device);
      return value;
    };
    info.major = query(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    info.minor = query(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    info.numMultiprocessors = query(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info.clockKHz = query(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    info.level2Bytes = query(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    info.sharedBytesPerBlock =
        query(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    info.sharedBytesPerMultiprocessor =
        query(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    if (llvm::Error error = check(*api, result, "cuDeviceGetAttribute",
                                  "device " + llvm::Twine(ordinal)))
      return error;
  }
  devices.resize(count);
  return llvm::Error::success();
}

llvm::Expected<Device &> Driver::open(int ordinal) {
  if (ordinal < 0 || size_t(ordinal) >= infos.size())
    return makeNoDevice("no GPU " + llvm::Twine(ordinal) +
                        ": the number of devices is " +
                        llvm::Twine(infos.size()));
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Device> &device = devices[ordinal];
  if (!device) {
    std::unique_ptr<Device> opened(new Device(*this, infos[ordinal]));
    if (llvm::Error error = opened->open())
      return error;
    device = std::move(opened);
  }
  return *device;
}
