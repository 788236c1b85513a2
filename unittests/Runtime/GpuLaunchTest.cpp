//===- GpuLaunchTest.cpp - Functions that compiled host code calls --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuTest.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

using namespace fovea::cuda;

// Counts this thread's allocations, for the warm path.
static thread_local int numHostAllocations = 0;

void *operator new(size_t size) {
  ++numHostAllocations;
  if (void *pointer = std::malloc(size ? size : 1))
    return pointer;
  std::abort();
}
void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return operator new(size);
}
void operator delete(void *pointer) noexcept { std::free(pointer); }
void operator delete(void *pointer, size_t) noexcept { std::free(pointer); }

namespace {

class GpuLaunch : public GpuTest {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    module = load({"first", "second"});
  }

  std::string run(llvm::function_ref<void()> body,
                  llvm::MutableArrayRef<ResultBuffer> results = {},
                  StreamHandle stream = nullptr) {
    LaunchContext context(*module, stream, results);
    return getMessage(context.run(body));
  }

  std::unique_ptr<Module> module;
};

TEST_F(GpuLaunch, LaunchesByNumber) {
  Stream stream = take(open().createStream());
  EXPECT_EQ(run(
                [] {
                  fovea_gpu_launch(1, 2, 3, 4, 128, 2, 1, 100000, nullptr);
                  fovea_gpu_launch(0, 1, 1, 1, 32, 1, 1, 0, nullptr);
                },
                {}, stream.get()),
            "success");
  ASSERT_EQ(getFakeCuda().launches.size(), 2u);
  const FakeCuda::Launch &launch = getFakeCuda().launches[0];
  EXPECT_EQ(launch.kernel, "second");
  EXPECT_EQ(launch.grid[0] * 100 + launch.grid[1] * 10 + launch.grid[2], 234u);
  EXPECT_EQ(launch.block[0], 128u);
  EXPECT_EQ(launch.block[1], 2u);
  EXPECT_EQ(launch.sharedBytes, 100000u);
  EXPECT_EQ(launch.stream, stream.get());
  EXPECT_FALSE(launch.startsEarly);
  EXPECT_EQ(getFakeCuda().launches[1].kernel, "first");
}

TEST_F(GpuLaunch, StartsEarlyUnlessTheDriverCannotCaptureThat) {
  for (int version : {12020, 12030}) {
    module.reset();
    driver.reset();
    resetFakeCuda();
    getFakeCuda().driverVersion = version;
    module = load({"first", "second"});
    EXPECT_EQ(
        run([] { fovea_gpu_launch_early(1, 2, 1, 1, 128, 1, 1, 64, nullptr); }),
        "success");
    ASSERT_EQ(getFakeCuda().launches.size(), 1u);
    EXPECT_EQ(getFakeCuda().launches[0].startsEarly, version == 12030);
  }
}

TEST_F(GpuLaunch, StartsEarlyUnlessTheUserSaysNot) {
  for (std::string text : {"0", "1", "off"}) {
    module.reset();
    driver.reset();
    resetFakeCuda();
    setenv("FOVEA_EARLY_START", text.c_str(), 1);
    auto loaded = Driver::load(FAKE_CUDA_FILE);
    unsetenv("FOVEA_EARLY_START");
    if (text == "off") {
      EXPECT_EQ(getMessage(loaded.takeError()),
                "FOVEA_EARLY_START is 'off', expected 0 or 1");
      continue;
    }
    driver = take(std::move(loaded));
    module = load({"first", "second"});
    EXPECT_EQ(
        run([] { fovea_gpu_launch_early(1, 2, 1, 1, 128, 1, 1, 64, nullptr); }),
        "success");
    ASSERT_EQ(getFakeCuda().launches.size(), 1u);
    EXPECT_EQ(getFakeCuda().launches[0].startsEarly, text == "1");
  }
}

TEST_F(GpuLaunch, LaunchesNothingForAnEmptyGrid) {
  EXPECT_EQ(run([] {
              fovea_gpu_launch(0, 0, 1, 1, 32, 1, 1, 0, nullptr);
              fovea_gpu_launch(0, 1, 1, 0, 32, 1, 1, 0, nullptr);
            }),
            "success");
  EXPECT_TRUE(getFakeCuda().launches.empty());
}

TEST_F(GpuLaunch, ChecksTheKernel) {
  EXPECT_EQ(run([] { fovea_gpu_launch(2, 1, 1, 1, 32, 1, 1, 0, nullptr); }),
            "no kernel 2: the module has 2");
  EXPECT_EQ(run([] { fovea_gpu_launch(-1, 1, 1, 1, 32, 1, 1, 0, nullptr); }),
            "no kernel -1: the module has 2");
}

TEST_F(GpuLaunch, ChecksTheGrid) {
  EXPECT_EQ(run([] {
              fovea_gpu_launch(0, int64_t(1) << 31, 1, 1, 32, 1, 1, 0, nullptr);
            }),
            "kernel 'first': a grid of 2147483648 x 1 x 1 blocks of 32 x 1 x 1 "
            "threads exceeds the limits of 2147483647 x 65535 x 65535 and "
            "1024 x 1024 x 64");
  for (int64_t size : {int64_t(65536), int64_t(-1), int64_t(1) << 32}) {
    EXPECT_NE(
        run([&] { fovea_gpu_launch(0, 1, size, 1, 32, 1, 1, 0, nullptr); }),
        "success");
    EXPECT_NE(
        run([&] { fovea_gpu_launch(0, 1, 1, 1, size, 1, 1, 0, nullptr); }),
        "success");
  }
  EXPECT_NE(run([] { fovea_gpu_launch(0, 1, 1, 1, 0, 1, 1, 0, nullptr); }),
            "success");
  EXPECT_TRUE(getFakeCuda().launches.empty());
}

TEST_F(GpuLaunch, ChecksSharedMemory) {
  EXPECT_EQ(
      run([] { fovea_gpu_launch(0, 1, 1, 1, 32, 1, 1, 232448, nullptr); }),
      "kernel 'first': 232448 bytes of shared memory per block, of which there "
      "are 231424 on Fake GPU (device 0, compute capability 9.0)");
  EXPECT_NE(run([] { fovea_gpu_launch(0, 1, 1, 1, 32, 1, 1, -1, nullptr); }),
            "success");
}

TEST_F(GpuLaunch, SaysWhatFailed) {
  getFakeCuda().launchResult = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_EQ(
      run([] { fovea_gpu_launch(1, 7, 1, 1, 128, 1, 1, 64, nullptr); }),
      "kernel 'second' (grid 7 x 1 x 1, block 128 x 1 x 1, 64 bytes of "
      "shared memory): cuLaunchKernelEx: CUDA_ERROR_LAUNCH_FAILED (as the "
      "test wants it)");
}

TEST_F(GpuLaunch, KeepsTheFirstFailureAndStops) {
  char memory = 1;
  EXPECT_EQ(run([&] {
              EXPECT_NE(fovea_gpu_allocate(100), nullptr);
              fovea_gpu_launch(5, 1, 1, 1, 32, 1, 1, 0, nullptr);
              fovea_gpu_launch(0, 1, 1, 1, 32, 1, 1, 0, nullptr);
              fovea_gpu_launch(9, 1, 1, 1, 32, 1, 1, 0, nullptr);
              EXPECT_EQ(fovea_gpu_allocate(100), nullptr);
              EXPECT_EQ(fovea_gpu_result(0, 100), nullptr);
              fovea_gpu_zero(&memory, 1);
              fovea_gpu_free(nullptr);
            }),
            "no kernel 5: the module has 2");
  EXPECT_TRUE(getFakeCuda().launches.empty());
  EXPECT_EQ(memory, 1);
  // The next call starts anew.
  EXPECT_EQ(run([] { fovea_gpu_launch(0, 1, 1, 1, 32, 1, 1, 0, nullptr); }),
            "success");
}

TEST_F(GpuLaunch, FillsWithZeros) {
  Buffer buffer = take(open().allocate(8));
  std::memset(buffer.getData(), 7, 8);
  EXPECT_EQ(run([&] {
              fovea_gpu_zero(buffer.getData(), 4);
              fovea_gpu_zero(nullptr, 0);
            }),
            "success");
  EXPECT_EQ(std::memcmp(buffer.getData(), "\0\0\0\0\7\7\7\7", 8), 0);
}

TEST_F(GpuLaunch, ReadsMemory) {
  Buffer buffer = take(open().allocate(8));
  std::memset(buffer.getData(), 7, 8);
  char read[] = {1, 2, 3};
  EXPECT_EQ(run([&] { fovea_gpu_read(read, buffer.getData(), 2); }), "success");
  EXPECT_EQ(std::memcmp(read, "\7\7\3", 3), 0);
  // After a failure there are zeros, which make loops short.
  EXPECT_EQ(run([&] {
              fovea_gpu_launch(5, 1, 1, 1, 32, 1, 1, 0, nullptr);
              fovea_gpu_read(read, buffer.getData(), 2);
            }),
            "no kernel 5: the module has 2");
  EXPECT_EQ(std::memcmp(read, "\0\0\3", 3), 0);
}

TEST_F(GpuLaunch, WritesResultsWhereTheCallerWants) {
  Buffer buffer = take(open().allocate(64));
  ResultBuffer results[] = {{buffer.getData(), 64}, {}, {}};
  EXPECT_EQ(run(
                [&] {
                  EXPECT_EQ(fovea_gpu_result(0, 60), buffer.getData());
                  EXPECT_NE(fovea_gpu_result(1, 100), nullptr);
                  EXPECT_EQ(fovea_gpu_result(2, 0), nullptr);
                },
                results),
            "success");
  EXPECT_FALSE(results[0].allocated);
  EXPECT_TRUE(results[1].allocated);
  EXPECT_EQ(results[1].bytes, 100);
  EXPECT_FALSE(results[2].allocated);
  open().free(results[1].data);
}

TEST_F(GpuLaunch, ReplacesMemoryOfAnotherSizeThanGuessed) {
  Buffer buffer = take(open().allocate(64));
  for (int64_t bytes : {64, 32, 128, 0}) {
    ResultBuffer results[] = {
        {buffer.getData(), bytes == 64 ? 64 : 48, /*isGuess=*/true}};
    void *data = nullptr;
    EXPECT_EQ(run([&] { data = fovea_gpu_result(0, bytes); }, results),
              "success");
    EXPECT_EQ(results[0].data, data);
    EXPECT_EQ(results[0].bytes, bytes);
    EXPECT_EQ(results[0].allocated, bytes == 32 || bytes == 128);
    EXPECT_EQ(data == buffer.getData(), bytes == 64);
    EXPECT_EQ(data == nullptr, bytes == 0);
    if (results[0].allocated)
      open().free(data);
  }
}

TEST_F(GpuLaunch, ChecksResults) {
  Buffer buffer = take(open().allocate(64));
  size_t before = getFakeCuda().liveBytes;
  ResultBuffer results[] = {{}, {buffer.getData(), 64}};
  EXPECT_EQ(run(
                [] {
                  EXPECT_NE(fovea_gpu_result(0, 100), nullptr);
                  EXPECT_EQ(fovea_gpu_result(1, 65), nullptr);
                },
                results),
            "result 1: expected a buffer of 65 bytes, got 64");
  ResultBuffer misaligned[] = {{static_cast<char *>(buffer.getData()) + 8, 56}};
  EXPECT_EQ(run([] { EXPECT_EQ(fovea_gpu_result(0, 8), nullptr); }, misaligned)
                .find("result 0: expected a buffer at a multiple of 16 bytes, "
                      "got 0x"),
            0U);
  // Memory that had been allocated is freed again.
  EXPECT_EQ(results[0].data, nullptr);
  EXPECT_EQ(getFakeCuda().liveBytes, before);
  EXPECT_EQ(run([] { fovea_gpu_result(2, 1); }, results),
            "no result 2: the call has 2");
  EXPECT_NE(run([] { fovea_gpu_result(0, int64_t(1) << 40); }, results)
                .find("cannot allocate 1099511627776 bytes on Fake GPU"),
            std::string::npos);
}

TEST_F(GpuLaunch, MayBeNested) {
  EXPECT_EQ(run([&] {
              EXPECT_NE(run([] {
                          fovea_gpu_launch(9, 1, 1, 1, 1, 1, 1, 0, nullptr);
                        }),
                        "success");
              fovea_gpu_launch(0, 1, 1, 1, 32, 1, 1, 0, nullptr);
            }),
            "success");
  EXPECT_EQ(getFakeCuda().launches.size(), 1u);
}

TEST_F(GpuLaunch, NeedsAContext) {
  EXPECT_DEATH(fovea_gpu_allocate(1),
               "fovea: fovea_gpu_allocate is called outside of a launch");
}

/// Calls as generated code does: two kernels, a temporary, three maps, one
/// result.
void callTwoKernels(void *operand) {
  alignas(64) char maps[3][128];
  int64_t sizes[] = {64, 1000, 16, 2}, strides[] = {2048, 128, 2048000},
          box[] = {64, 128, 1, 1};
  void *result = fovea_gpu_result(0, 4096);
  void *temporary = fovea_gpu_allocate(100000);
  void *bases[] = {operand, temporary, result};
  for (int i = 0; i < 3; ++i)
    fovea_gpu_tensor_map(maps[i], bases[i], int64_t(ElementKind::F16), 4, sizes,
                         strides, box, 128);
  void *arguments[] = {maps[0], maps[1], maps[2]};
  fovea_gpu_zero(temporary, 64);
  fovea_gpu_launch(0, 132, 1, 1, 384, 1, 1, 200000, arguments);
  fovea_gpu_launch(1, 132, 1, 1, 384, 1, 1, 200000, arguments);
  fovea_gpu_free(temporary);
}

/// A map that begins where the memory for empty ones does, as one with rows in
/// front of its tensor may, is as large as it says.
TEST_F(GpuLaunch, MapsAreEmptyBySizeNotByAddress) {
  void *scratch = open().getScratch();
  int64_t strides[] = {128}, box[] = {64, 64};
  auto encode = [&](int64_t rows) {
    return run([&] {
      alignas(64) char map[128];
      int64_t sizes[] = {64, rows};
      fovea_gpu_tensor_map(map, scratch, int64_t(ElementKind::F16), 2, sizes,
                           strides, box, 128);
    });
  };
  EXPECT_EQ(encode(23), "success");
  EXPECT_EQ(getFakeCuda().tensorMaps.back().sizes,
            (std::vector<uint64_t>{64, 23}));
  EXPECT_EQ(encode(0), "success");
  EXPECT_EQ(getFakeCuda().tensorMaps.back().sizes,
            (std::vector<uint64_t>{1, 1}));
}

TEST_F(GpuLaunch, AllocatesNothingOnceWarm) {
  Buffer operand = take(open().allocate(4096));
  Buffer result = take(open().allocate(4096));
  Stream stream = take(open().createStream());
  auto call = [&] {
    ResultBuffer results[] = {{result.getData(), result.getNumBytes()}};
    LaunchContext context(*module, stream.get(), results);
    llvm::Error error = context.run([&] { callTwoKernels(operand.getData()); });
    if (error)
      FAIL() << llvm::toString(std::move(error));
  };
  call();
  call();
  int onDevice = getFakeCuda().numAllocations;
  size_t maps = getFakeCuda().tensorMaps.size();
  // The context of the device is current, as in a program that uses it.
  CUcontext context = static_cast<CUcontext>(open().getContext());
  driver->getApi().cuCtxPushCurrent(context);
  call();
  numHostAllocations = 0;
  auto start = std::chrono::steady_clock::now();
  constexpr int calls = 1000;
  for (int i = 0; i < calls; ++i)
    call();
  double microseconds = std::chrono::duration<double, std::micro>(
                            std::chrono::steady_clock::now() - start)
                            .count();
  // The fake driver's record of a launch is in reserved memory, and its names
  // are short.
  EXPECT_EQ(numHostAllocations, 0);
  EXPECT_EQ(getFakeCuda().numAllocations, onDevice);
  EXPECT_EQ(getFakeCuda().tensorMaps.size(), maps);
  RecordProperty("microseconds_per_call", std::to_string(microseconds / calls));
  driver->getApi().cuCtxPopCurrent(&context);
}

} // namespace
