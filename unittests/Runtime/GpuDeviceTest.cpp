//===- GpuDeviceTest.cpp - Drivers, devices, modules ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuTest.h"

#include <cstdlib>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

using namespace fovea::cuda;

namespace {

//===----------------------------------------------------------------------===//
// Driver
//===----------------------------------------------------------------------===//

class GpuDriver : public GpuTest {};

TEST_F(GpuDriver, SaysThatThereIsNone) {
  auto driver = Driver::load("libno-such-driver.so.1");
  ASSERT_FALSE(bool(driver));
  llvm::Error error = driver.takeError();
  EXPECT_TRUE(llvm::errorToErrorCode(std::move(error)) ==
              std::errc::no_such_device);
  EXPECT_EQ(getMessage(Driver::load("libno-such-driver.so.1"))
                .find("no NVIDIA driver: libno-such-driver.so.1: "),
            0u);
}

TEST_F(GpuDriver, RefusesAnotherLibrary) {
  EXPECT_EQ(getMessage(Driver::load("libm.so.6")),
            "'libm.so.6' is no NVIDIA driver: it has no cuInit");
}

TEST_F(GpuDriver, SaysThatThereIsNoDevice) {
  getFakeCuda().initResult = CUDA_ERROR_NO_DEVICE;
  EXPECT_EQ(getMessage(Driver::load(FAKE_CUDA_FILE)),
            "no GPU: cuInit: CUDA_ERROR_NO_DEVICE (as the test wants it)");
  getFakeCuda().initResult = CUDA_SUCCESS;
  getFakeCuda().numDevices = 0;
  EXPECT_EQ(getMessage(Driver::load(FAKE_CUDA_FILE)),
            "no GPU: the NVIDIA driver has no device");
}

TEST_F(GpuDriver, NamesUnknownErrorsByTheirNumber) {
  getFakeCuda().initResult = 12345;
  EXPECT_EQ(getMessage(Driver::load(FAKE_CUDA_FILE)),
            "no GPU: cuInit: error 12345");
}

TEST_F(GpuDriver, RefusesAnOldOne) {
  getFakeCuda().driverVersion = 11040;
  EXPECT_EQ(getMessage(Driver::load(FAKE_CUDA_FILE)),
            "the NVIDIA driver is too old: it supports CUDA 11.4, and Fovea "
            "needs 12.0 or newer");
}

TEST_F(GpuDriver, KnowsItsDevices) {
  Device &device = open();
  EXPECT_EQ(driver->getVersion(), 13000);
  EXPECT_EQ(formatCudaVersion(driver->getVersion()), "13.0");
  ASSERT_EQ(driver->getDevices().size(), 2u);
  EXPECT_EQ(driver->getDevices()[1].ordinal, 1);
  EXPECT_EQ(formatDevice(device.getInfo()),
            "Fake GPU (device 0, compute capability 9.0)");
  EXPECT_EQ(device.getInfo().numMultiprocessors, 132);
  EXPECT_EQ(device.getInfo().sharedBytesPerBlock, 232448);
  EXPECT_EQ(device.getInfo().memoryBytes, 64 << 20);
  EXPECT_EQ(&open(), &device);
  EXPECT_EQ(getMessage(driver->open(2)),
            "no GPU 2: the number of devices is 2");
  EXPECT_EQ(getMessage(driver->open(-1)),
            "no GPU -1: the number of devices is 2");
}

TEST_F(GpuDriver, OfTheProcessIsNotForForkedOnes) {
  setenv("FOVEA_CUDA_DRIVER", FAKE_CUDA_FILE, 1);
  ASSERT_TRUE(bool(Driver::get()));
  pid_t child = fork();
  if (child == 0) {
    std::string message = getMessage(Driver::get());
    _exit(message.find("forked") == std::string::npos);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

class GpuDevice : public GpuTest {};

TEST_F(GpuDevice, CopiesThereAndBack) {
  Device &device = open();
  size_t before = getFakeCuda().liveBytes;
  {
    Buffer buffer = take(device.allocate(16));
    EXPECT_EQ(buffer.getNumBytes(), 16);
    char back[16] = "";
    EXPECT_FALSE(
        bool(device.copyToDevice(buffer.getData(), "attention, please", 16)));
    EXPECT_FALSE(bool(device.copyToHost(back, buffer.getData(), 16)));
    EXPECT_EQ(std::string(back, 16), "attention, pleas");
    Buffer moved = std::move(buffer);
    // A buffer that was moved from is empty.
    EXPECT_EQ(buffer.getData(), nullptr); // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(getFakeCuda().liveBytes, before + 16);
    EXPECT_EQ(take(device.allocate(0)).getData(), nullptr);
  }
  EXPECT_EQ(getFakeCuda().liveBytes, before);
}

TEST_F(GpuDevice, GivesBuffersAway) {
  Device &device = open();
  size_t before = getFakeCuda().liveBytes;
  void *data = take(device.allocate(100)).release();
  EXPECT_EQ(getFakeCuda().liveBytes, before + 100);
  device.free(data);
  device.free(nullptr);
  EXPECT_EQ(getFakeCuda().liveBytes, before);
}

TEST_F(GpuDevice, SaysHowMuchMemoryIsMissing) {
  auto buffer = open().allocate(1 << 30);
  ASSERT_FALSE(bool(buffer));
  llvm::Error error = buffer.takeError();
  EXPECT_EQ(getMessage(std::move(error)),
            "cannot allocate 1073741824 bytes on Fake GPU (device 0, compute "
            "capability 9.0) (67108736 of 67108864 bytes are free): "
            "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (as the test wants it)");
  EXPECT_TRUE(llvm::errorToErrorCode(open().allocate(1 << 30).takeError()) ==
              std::errc::not_enough_memory);
  EXPECT_TRUE(llvm::errorToErrorCode(open().allocate(-1).takeError()) ==
              std::errc::not_enough_memory);
}

TEST_F(GpuDevice, TellsItsMemoryFromOthers) {
  Device &device = open();
  Buffer buffer = take(device.allocate(64));
  char host[4];
  EXPECT_FALSE(bool(device.checkPointer(buffer.getData(), "operand 0")));
  EXPECT_FALSE(bool(device.checkPointer(
      static_cast<char *>(buffer.getData()) + 63, "operand 0")));
  EXPECT_EQ(getMessage(device.checkPointer(host, "operand 0 (%q)")),
            "operand 0 (%q): expected memory of Fake GPU (device 0, compute "
            "capability 9.0), got memory of the host");
  EXPECT_EQ(getMessage(open(1).checkPointer(buffer.getData(), "operand 1")),
            "operand 1: expected memory of Fake GPU (device 1, compute "
            "capability 9.0), got memory of device 0");
}

TEST_F(GpuDevice, TellsItsStreamsFromOthers) {
  Stream stream = take(open().createStream());
  EXPECT_FALSE(bool(open().checkStream(stream.get())));
  EXPECT_EQ(getMessage(open(1).checkStream(stream.get())),
            "the stream is not one of Fake GPU (device 1, compute capability "
            "9.0)");
}

TEST_F(GpuDevice, MeasuresTime) {
  Device &device = open();
  Stream stream = take(device.createStream());
  Event start = take(device.createEvent());
  Event end = take(device.createEvent());
  EXPECT_FALSE(bool(start.record(stream.get())));
  EXPECT_FALSE(bool(end.record(stream.get())));
  EXPECT_FALSE(bool(end.synchronize()));
  EXPECT_EQ(take(end.getMillisecondsSince(start)), 1.5);
}

TEST_F(GpuDevice, TellsWhatKernelsDidWrong) {
  Stream stream = take(open().createStream());
  EXPECT_FALSE(bool(stream.synchronize()));
  getFakeCuda().synchronizeResult = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_EQ(getMessage(stream.synchronize()),
            "the work on Fake GPU (device 0, compute capability 9.0) failed: "
            "cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (as the test wants "
            "it)");
}

TEST_F(GpuDevice, TellsHowToFindAnIndexOutOfBounds) {
  Stream stream = take(open().createStream());
  getFakeCuda().synchronizeResult = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(getMessage(stream.synchronize()),
            "the work on Fake GPU (device 0, compute capability 9.0) failed: "
            "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (as the test "
            "wants it); if operands decide where the graph reads, an index may "
            "be out of bounds: --check-bounds, in Python check_bounds=True, "
            "names the op");
}

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

class GpuModule : public GpuTest {};

TEST_F(GpuModule, LoadsKernels) {
  auto module = load({"first", "second"});
  EXPECT_EQ(getFakeCuda().images, std::vector<std::string>{"cubin"});
  EXPECT_FALSE(module->isCompiledByDriver());
  ASSERT_EQ(module->getKernels().size(), 2u);
  const Kernel &kernel = module->getKernels()[1];
  EXPECT_EQ(kernel.name, "second");
  EXPECT_EQ(kernel.attributes.registers, 168);
  EXPECT_EQ(kernel.attributes.localBytes, 16);
  EXPECT_EQ(kernel.attributes.staticSharedBytes, 1024);
  EXPECT_EQ(kernel.attributes.maxThreadsPerBlock, 384);
  // A kernel may ask for everything that the device has.
  EXPECT_EQ(kernel.maxDynamicSharedBytes, 232448 - 1024);
  EXPECT_EQ(getFakeCuda().dynamicSharedBytes["first"], 232448 - 1024);
  EXPECT_EQ(getFakeCuda().liveModules, 1);
  module.reset();
  EXPECT_EQ(getFakeCuda().liveModules, 0);
}

TEST_F(GpuModule, MayHaveNoKernels) {
  auto module = take(Module::load(open(), {}, {}));
  EXPECT_TRUE(getFakeCuda().images.empty());
  // A function without kernels still has results.
  ResultBuffer results[1];
  LaunchContext context(*module, nullptr, results);
  EXPECT_EQ(getMessage(context.run(
                [] { fovea_gpu_zero(fovea_gpu_result(0, 100), 100); })),
            "success");
  open().free(results[0].data);
}

TEST_F(GpuModule, NamesAMissingKernel) {
  getFakeCuda().missingKernel = "second";
  EXPECT_EQ(
      getMessage(Module::load(open(), {"cubin", ""}, {"first", "second"})),
      "kernel 'second': cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (as "
      "the test wants it)");
  EXPECT_EQ(getFakeCuda().liveModules, 0);
}

TEST_F(GpuModule, LetsTheDriverCompile) {
  getFakeCuda().compileLog = "info: used 168 registers";
  // The text need not end with a zero.
  auto module = take(Module::load(
      open(), {"", llvm::StringRef("PTX 1234").take_front(5)}, {"first"}));
  EXPECT_EQ(getFakeCuda().images, std::vector<std::string>{"PTX 1"});
  EXPECT_TRUE(module->isCompiledByDriver());
  EXPECT_EQ(module->getCompileLog(), "info: used 168 registers");
}

TEST_F(GpuModule, LetsTheDriverCompileWhereItRefusesTheCubin) {
  getFakeCuda().cubinResult = CUDA_ERROR_NO_BINARY_FOR_GPU;
  auto module = load({"first"});
  EXPECT_EQ(getFakeCuda().images, (std::vector<std::string>{"cubin", "PTX"}));
  EXPECT_TRUE(module->isCompiledByDriver());
}

TEST_F(GpuModule, SaysWhyItCannotBeLoaded) {
  getFakeCuda().cubinResult = CUDA_ERROR_INVALID_IMAGE;
  EXPECT_EQ(getMessage(Module::load(open(), {"cubin", ""}, {"first"})),
            "cannot load the kernels on Fake GPU (device 0, compute capability "
            "9.0): cuModuleLoadDataEx: CUDA_ERROR_INVALID_IMAGE (as the test "
            "wants it)");
  getFakeCuda().ptxResult = CUDA_ERROR_INVALID_PTX;
  getFakeCuda().compileLog = "line 7: syntax error\n";
  EXPECT_EQ(getMessage(Module::load(open(), {"cubin", "PTX"}, {"first"})),
            "the driver cannot compile the kernels for Fake GPU (device 0, "
            "compute capability 9.0): line 7: syntax error: "
            "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (as the test wants "
            "it)");
  // The form of the code is not wrong here.
  getFakeCuda().cubinResult = CUDA_ERROR_OUT_OF_MEMORY;
  getFakeCuda().images.clear();
  EXPECT_NE(getMessage(Module::load(open(), {"cubin", "PTX"}, {"first"}))
                .find("CUDA_ERROR_OUT_OF_MEMORY"),
            std::string::npos);
  EXPECT_EQ(getFakeCuda().images, std::vector<std::string>{"cubin"});
}

TEST_F(GpuModule, IsNotCompiledByADriverThatMiscompiles) {
  llvm::StringRef hopper = "PTX\n.target sm_90a\n";
  for (int version : {12080, 12090}) {
    resetFakeCuda();
    driver.reset();
    getFakeCuda().driverVersion = version;
    EXPECT_EQ(getMessage(Module::load(open(), {"", hopper}, {"first"})),
              "the compiler of this driver (CUDA " +
                  formatCudaVersion(version) +
                  ") is known to miscompile code for sm_90a: install ptxas "
                  "12.9.1 or newer, or a driver for CUDA 13.0 or newer");
    // Code made by ptxas is not affected, and simpler code is not either.
    EXPECT_TRUE(bool(Module::load(open(), {"cubin", hopper}, {"first"})));
    EXPECT_TRUE(
        bool(Module::load(open(), {"", "PTX\n.target sm_80\n"}, {"first"})));
  }
  for (int version : {12060, 13000}) {
    resetFakeCuda();
    driver.reset();
    getFakeCuda().driverVersion = version;
    EXPECT_TRUE(bool(Module::load(open(), {"", hopper}, {"first"})));
  }
}

} // namespace
