//===- GpuDevice.h - NVIDIA GPUs through the CUDA driver --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver is loaded when it is first needed, never linked, so that this code
// runs where there is no GPU and says so. Every error names the attempt and the
// driver's reason. Error codes: `no_such_device` where there is no usable GPU,
// `not_enough_memory`, `invalid_argument` where the caller is to blame,
// `io_error` for all else that the driver refuses.
//
// Devices live as long as their driver, and the process's driver forever, as
// CUDA's own state does; all other objects, and graphs that captured launches,
// must be destroyed before it. All functions may be called from several threads
// at once. Pointers to device memory are void pointers that the host must not
// follow.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_GPUDEVICE_H
#define FOVEA_RUNTIME_GPUDEVICE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace fovea::cuda {

struct Api;
class Device;
class DroppedReferences;
class LoadedModule;

/// A CUstream; null is the legacy default stream.
using StreamHandle = void *;

/// Properties of a device that are known without using it.
struct DeviceInfo {
  int ordinal = 0;
  std::string name;
  /// Compute capability, such as 9 and 0.
  int major = 0;
  int minor = 0;
  int numMultiprocessors = 0;
  int clockKHz = 0;
  int64_t memoryBytes = 0;
  int64_t level2Bytes = 0;
  /// The most dynamic and static shared memory that a block can ask for.
  int64_t sharedBytesPerBlock = 0;
  int64_t sharedBytesPerMultiprocessor = 0;
};

/// Formats `NVIDIA H200 (device 0, compute capability 9.0)`.
std::string formatDevice(const DeviceInfo &info);

/// Formats `12.8` for 12080.
std::string formatCudaVersion(int version);

/// The CUDA driver.
class Driver {
public:
  /// The oldest usable version, as `getVersion` returns it.
  static constexpr int kOldestVersion = 12000;

  /// Returns the driver of this process: libcuda.so.1, or the library that the
  /// environment variable FOVEA_CUDA_DRIVER names. It is looked for once. An
  /// error where there is none, it is too old, or there is no device.
  static llvm::Expected<Driver &> get();

  /// Loads a separate driver, for tests.
  static llvm::Expected<std::unique_ptr<Driver>> load(const std::string &path);
  ~Driver();

  /// Returns the CUDA version that the driver supports, such as 12080.
  int getVersion() const { return version; }

  /// Returns true if kernels may start before those in front of them have
  /// ended: unless the environment variable FOVEA_EARLY_START is 0, or the
  /// driver cannot capture such launches.
  bool startsEarly() const { return earlyStart; }

  llvm::ArrayRef<DeviceInfo> getDevices() const { return infos; }

  /// Opens the device with this number, with its primary context (which PyTorch
  /// and others also use) retained.
  llvm::Expected<Device &> open(int ordinal = 0);

  const Api &getApi() const { return *api; }
  DroppedReferences &getDropped() const { return *dropped; }

private:
  Driver();
  llvm::Error initialize(const std::string &path);

  std::unique_ptr<Api> api;
  int version = 0;
  bool earlyStart = false;
  llvm::SmallVector<DeviceInfo, 1> infos;
  std::mutex mutex;
  llvm::SmallVector<std::unique_ptr<Device>, 1> devices;
  /// Last: what it frees uses devices.
  std::unique_ptr<DroppedReferences> dropped;
};

/// Memory on a device.
class Buffer {
public:
  Buffer() = default;
  Buffer(Buffer &&other) noexcept { *this = std::move(other); }
  Buffer &operator=(Buffer &&other) noexcept;
  ~Buffer();

  /// Null if it has no bytes.
  void *getData() const { return data; }
  int64_t getNumBytes() const { return numBytes; }

  /// The caller frees the memory, by `Device::free`.
  void *release();

private:
  friend class Device;
  Device *device = nullptr;
  void *data = nullptr;
  int64_t numBytes = 0;
};

/// A stream that does not wait for the legacy default stream.
class Stream {
public:
  Stream(Stream &&other) noexcept { *this = std::move(other); }
  Stream &operator=(Stream &&other) noexcept;
  ~Stream();

  StreamHandle get() const { return handle; }

  /// Waits for all work on the stream. Reports kernels that failed.
  llvm::Error synchronize();

private:
  friend class Device;
  Stream() = default;
  Device *device = nullptr;
  StreamHandle handle = nullptr;
};

/// A point in a stream, for timing.
class Event {
public:
  Event(Event &&other) noexcept { *this = std::move(other); }
  Event &operator=(Event &&other) noexcept;
  ~Event();

  llvm::Error record(StreamHandle stream);
  llvm::Error synchronize();

  /// Returns the milliseconds from `start` to this event; both must have
  /// happened.
  llvm::Expected<double> getMillisecondsSince(const Event &start);

private:
  friend class Device;
  Event() = default;
  Device *device = nullptr;
  void *handle = nullptr;
};

class Device {
public:
  const DeviceInfo &getInfo() const { return info; }
  Driver &getDriver() const { return driver; }

  llvm::Expected<Buffer> allocate(int64_t bytes);

  /// Frees the memory of a released buffer; null is allowed. Waits for kernels
  /// that may use it.
  void free(void *data);

  llvm::Expected<Stream> createStream();
  llvm::Expected<Event> createEvent();

  /// Copies between host and device, after all work on the stream; the copy is
  /// complete on return.
  llvm::Error copyToDevice(void *target, const void *source, int64_t bytes,
                           StreamHandle stream = nullptr);
  llvm::Error copyToHost(void *target, const void *source, int64_t bytes,
                         StreamHandle stream = nullptr);

  llvm::Error synchronize(StreamHandle stream);

  /// Returns an error unless `pointer`, called `what` in the message, is memory
  /// of this device (or managed memory). Takes some 100 ns.
  llvm::Error checkPointer(const void *pointer, const llvm::Twine &what);

  /// Returns an error unless the stream is one of this device's primary
  /// context.
  llvm::Error checkStream(StreamHandle stream);

  /// Returns the primary context, a CUcontext.
  void *getContext() const { return context; }

  /// Returns 128 bytes of device memory that hold nobody's data.
  void *getScratch() const { return scratch; }

private:
  friend class Driver;
  Device(Driver &driver, const DeviceInfo &info) : driver(driver), info(info) {}
  llvm::Error open();

  Driver &driver;
  const DeviceInfo &info;
  void *context = nullptr;
  void *scratch = nullptr;
};

/// The resources that a kernel needs, as the driver counts them.
struct KernelAttributes {
  /// Per thread.
  int registers = 0;
  /// Per thread: spills and arrays.
  int localBytes = 0;
  int staticSharedBytes = 0;
  int maxThreadsPerBlock = 0;
};

/// One entry of a loaded module.
struct Kernel {
  std::string name;
  /// A CUfunction.
  void *function = nullptr;
  /// The most dynamic shared memory that a launch may ask for, in bytes.
  int64_t maxDynamicSharedBytes = 0;
  KernelAttributes attributes;
};

/// Code for a device, in one or both forms, not necessarily null-terminated.
struct Image {
  /// Machine code.
  llvm::StringRef cubin;
  /// Compiled by the driver if there is no cubin, or if the driver refuses it
  /// (because it is older than the assembler, or the device is another one).
  llvm::StringRef ptx;
};

/// Kernels on a device, ready to launch, and the memory that their launches
/// reuse.
class Module {
public:
  /// Loads the kernels with these names, in this order; without names, the code
  /// is not looked at. Kernels may use all of the device's shared memory. PTX
  /// of sm_90a is not given to the compiler of a driver of CUDA 12.8 or 12.9,
  /// which is known to miscompile it.
  static llvm::Expected<std::unique_ptr<Module>>
  load(Device &device, const Image &image, llvm::ArrayRef<std::string> kernels);

  /// Waits for the device and frees kernels and memory, unless a graph that
  /// captured launches exists, which keeps both. Once the last such graph is
  /// gone, later calls free them: at the latest a launch that is not captured.
  ~Module();

  Device &getDevice() const { return device; }
  llvm::ArrayRef<Kernel> getKernels() const { return kernels; }

  /// True if the driver compiled the PTX; then its log, as of `ptxas -v`.
  bool isCompiledByDriver() const { return compiledByDriver; }
  llvm::StringRef getCompileLog() const { return compileLog; }

  LoadedModule &getLoaded() const { return *loaded; }

private:
  explicit Module(Device &device);
  llvm::Error loadImage(const Image &image);
  llvm::Error loadKernel(const std::string &name);

  Device &device;
  std::shared_ptr<LoadedModule> loaded;
  llvm::SmallVector<Kernel, 0> kernels;
  bool compiledByDriver = false;
  std::string compileLog;
};

} // namespace fovea::cuda

#endif // FOVEA_RUNTIME_GPUDEVICE_H
