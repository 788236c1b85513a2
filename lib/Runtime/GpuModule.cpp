//===- GpuModule.cpp - Loading of kernels ---------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuModule.h"

#include "llvm/ADT/Twine.h"

using namespace fovea::cuda;

namespace {

/// The buffer that the driver's compiler writes to.
struct Log {
  static constexpr size_t kBytes = 64 << 10;
  std::string text = std::string(kBytes, '\0');

  std::string take() { return llvm::StringRef(text.c_str()).rtrim().str(); }
};

} // namespace

/// Returns true if code that the driver refused as a cubin may be right as PTX.
static bool isWrongForm(CUresult result) {
  return result == CUDA_ERROR_INVALID_IMAGE ||
         result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

/// Returns true if the driver's compiler has the bug of ptxas 12.8.0 to 12.9.0.
/// The driver does not say which 12.9 it is.
static bool miscompiles(int driverVersion, llvm::StringRef ptx) {
  return driverVersion / 10 >= 1208 && driverVersion / 10 <= 1209 &&
         ptx.contains(".target sm_90a");
}

//===----------------------------------------------------------------------===//
// DroppedReferences
//===----------------------------------------------------------------------===//

void DroppedReferences::add(GraphReference &reference) {
  reference.next = first.load(std::memory_order_relaxed);
  while (!first.compare_exchange_weak(reference.next, &reference,
                                      std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
}

void DroppedReferences::collect(bool mayWait) {
  if (!first.load(std::memory_order_relaxed))
    return;
  GraphReference *next = first.exchange(nullptr, std::memory_order_acquire);
  while (GraphReference *reference = next) {
    next = reference->next;
    LoadedModule &module = *reference->module;
    module.forget(*reference);
    bool isLast = reference->module.use_count() == 1;
    if (isLast && module.called && !mayWait)
      add(*reference);
    else
      delete reference;
  }
}

//===----------------------------------------------------------------------===//
// LoadedModule
//===----------------------------------------------------------------------===//

LoadedModule::~LoadedModule() {
  if (!handle)
    return;
  const Api &api = device.getDriver().getApi();
  ContextScope scope(device);
  RelaxedCapture relaxed(api);
  if (called)
    api.cuCtxSynchronize();
  api.cuModuleUnload(handle);
}

/// Called on a thread of the driver.
static void dropReference(void *data) {
  auto &reference = *static_cast<GraphReference *>(data);
  reference.module->getDevice().getDriver().getDropped().add(reference);
}

llvm::Error LoadedModule::addReference(uint64_t capture, CUgraph graph) {
  const Api &api = device.getDriver().getApi();
  std::lock_guard<std::mutex> lock(mutex);
  if (references.count(capture))
    return llvm::Error::success();
  auto reference = std::make_unique<GraphReference>(
      GraphReference{shared_from_this(), capture});
  CUuserObject object = nullptr;
  llvm::StringRef what = "the graph cannot keep the kernels that it launches";
  if (llvm::Error error =
          check(api,
                api.cuUserObjectCreate(&object, reference.get(), dropReference,
                                       1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
                "cuUserObjectCreate", what))
    return error;
  const GraphReference *owned = reference.release();
  CUresult result =
      api.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (result == CUDA_SUCCESS)
    references.emplace(capture, owned);
  else
    api.cuUserObjectRelease(object, 1);
  return check(api, result, "cuGraphRetainUserObject", what);
}

void LoadedModule::forget(const GraphReference &reference) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = references.find(reference.capture);
  // No graph has taken the others.
  if (found == references.end() || found->second != &reference)
    return;
  references.erase(found);
  arenas.forgetCapture(reference.capture);
}

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

Module::Module(Device &device)
    : device(device), loaded(std::make_shared<LoadedModule>(device)) {}

Module::~Module() {
  // Graphs that are gone keep it no longer.
  device.getDriver().getDropped().collect(/*mayWait=*/false);
}

llvm::Expected<std::unique_ptr<Module>>
Module::load(Device &device, const Image &image,
             llvm::ArrayRef<std::string> kernels) {
  ContextScope scope(device);
  if (llvm::Error error = scope.check())
    return error;
  device.getDriver().getDropped().collect(/*mayWait=*/false);
  std::unique_ptr<Module> module(new Module(device));
  if (!kernels.empty())
    if (llvm::Error error = module->loadImage(image))
      return error;
  for (const std::string &name : kernels)
    if (llvm::Error error = module->loadKernel(name))
      return error;
  return module;
}

llvm::Error Module::loadImage(const Image &image) {
  const Driver &driver = device.getDriver();
  const Api &api = driver.getApi();
  CUmodule module = nullptr;
  if (!image.cubin.empty()) {
    CUresult result = api.cuModuleLoadDataEx(&module, image.cubin.data(), 0,
                                             nullptr, nullptr);
    loaded->handle = module;
    if (result == CUDA_SUCCESS)
      return llvm::Error::success();
    if (image.ptx.empty() || !isWrongForm(result))
      return makeError(api, result, "cuModuleLoadDataEx",
                       "cannot load the kernels on " +
                           formatDevice(device.getInfo()));
  }

  if (miscompiles(driver.getVersion(), image.ptx))
    return llvm::createStringError(
        std::make_error_code(std::errc::not_supported),
        "the compiler of this driver (CUDA " +
            formatCudaVersion(driver.getVersion()) +
            ") is known to miscompile code for sm_90a: install ptxas 12.9.1 or "
            "newer, or a driver for CUDA 13.0 or newer");
  Log info, errors;
  int options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                   CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                   CU_JIT_LOG_VERBOSE};
  void *values[] = {info.text.data(), reinterpret_cast<void *>(Log::kBytes),
                    errors.text.data(), reinterpret_cast<void *>(Log::kBytes),
                    reinterpret_cast<void *>(1)};
  std::string text = image.ptx.str();
  CUresult result = api.cuModuleLoadDataEx(&module, text.c_str(),
                                           std::size(options), options, values);
  loaded->handle = module;
  compiledByDriver = true;
  compileLog = info.take();
  std::string messages = errors.take();
  return check(api, result, "cuModuleLoadDataEx",
               "the driver cannot compile the kernels for " +
                   formatDevice(device.getInfo()) +
                   (messages.empty() ? "" : ": " + messages));
}

llvm::Error Module::loadKernel(const std::string &name) {
  const Api &api = device.getDriver().getApi();
  CUfunction function = nullptr;
  if (llvm::Error error = check(
          api, api.cuModuleGetFunction(&function, loaded->handle, name.c_str()),
          "cuModuleGetFunction", "kernel '" + name + "'"))
    return error;
  Kernel &kernel = kernels.emplace_back();
  kernel.name = name;
  kernel.function = function;
  CUresult result = CUDA_SUCCESS;
  auto query = [&](int attribute) {
    int value = 0;
    if (result == CUDA_SUCCESS)
      result = api.cuFuncGetAttribute(&value, attribute, function);
    return value;
  };
  kernel.attributes.registers = query(CU_FUNC_ATTRIBUTE_NUM_REGS);
  kernel.attributes.localBytes = query(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  kernel.attributes.staticSharedBytes =
      query(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  kernel.attributes.maxThreadsPerBlock =
      query(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  if (llvm::Error error =
          check(api, result, "cuFuncGetAttribute", "kernel '" + name + "'"))
    return error;
  kernel.maxDynamicSharedBytes = device.getInfo().sharedBytesPerBlock -
                                 kernel.attributes.staticSharedBytes;
  // Set once for all launches, so that a launch with more than 48 KB needs
  // nothing else.
  return check(api,
               api.cuFuncSetAttribute(
                   function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                   int(kernel.maxDynamicSharedBytes)),
               "cuFuncSetAttribute", "kernel '" + name + "'");
}
