//===- GpuHardwareTest.cpp - The runtime on a real GPU --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These tests are skipped if there is no GPU. The driver compiles the kernels.
//
//===----------------------------------------------------------------------===//

#include "GpuModule.h"
#include "GpuTest.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include <dlfcn.h>

using namespace fovea::cuda;

namespace {

/// `fill` sets n words of p to v; `add` adds q to p; `last` writes
/// a word of dynamic shared memory and reads it back.
constexpr llvm::StringLiteral kKernels = R"(
.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];

.visible .entry fill(.param .u64 p, .param .u64 n, .param .u32 v) .reqntid 128 {
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [p];
  ld.param.u64 %d1, [n];
  ld.param.u32 %r0, [v];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r1, 128, %r2;
  cvt.u64.u32 %d2, %r3;
  setp.ge.u64 %p0, %d2, %d1;
  @%p0 ret;
  shl.b64 %d3, %d2, 2;
  add.u64 %d4, %d0, %d3;
  st.global.u32 [%d4], %r0;
  ret;
}

.visible .entry add(.param .u64 p, .param .u64 q, .param .u64 n) .reqntid 128 {
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [p];
  ld.param.u64 %d5, [q];
  ld.param.u64 %d1, [n];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r1, 128, %r2;
  cvt.u64.u32 %d2, %r3;
  setp.ge.u64 %p0, %d2, %d1;
  @%p0 ret;
  shl.b64 %d3, %d2, 2;
  add.u64 %d4, %d0, %d3;
  add.u64 %d6, %d5, %d3;
  ld.global.u32 %r4, [%d4];
  ld.global.u32 %r5, [%d6];
  add.u32 %r6, %r4, %r5;
  st.global.u32 [%d4], %r6;
  ret;
}

.visible .entry last(.param .u64 p, .param .u32 at) {
  .reg .b32 %r<4>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [p];
  ld.param.u32 %r0, [at];
  mov.u32 %r1, dynamic;
  add.u32 %r1, %r1, %r0;
  st.shared.u32 [%r1], 4711;
  ld.shared.u32 %r2, [%r1];
  st.global.u32 [%d0], %r2;
  ret;
}
)";

/// Loads a box of 32 x 32 words at (16, 8) and writes it to p.
constexpr llvm::StringLiteral kTMA = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry load(.param .align 64 .b8 map[128], .param .u64 p)
    .reqntid 128 {
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %d<8>;
  .shared .align 1024 .b8 tile[4096];
  .shared .align 8 .b8 barrier[8];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mov.u32 %r2, barrier;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra issued;
  mbarrier.init.shared.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %d0, [%r2], 4096;
  mov.b64 %d1, map;
  cvta.param.u64 %d2, %d1;
  mov.u32 %r3, 16;
  mov.u32 %r4, 8;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
      [%r1], [%d2, {%r3, %r4}], [%r2];
issued:
  bar.sync 0;
waiting:
  mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
  @!%p1 bra waiting;
  ld.param.u64 %d3, [p];
  shl.b32 %r5, %r0, 2;
next:
  add.u32 %r6, %r1, %r5;
  ld.shared.u32 %r7, [%r6];
  cvt.u64.u32 %d4, %r5;
  add.u64 %d5, %d3, %d4;
  st.global.u32 [%d5], %r7;
  add.u32 %r5, %r5, 512;
  setp.lt.u32 %p2, %r5, 4096;
  @%p2 bra next;
  ret;
}
)";

class Hardware : public testing::Test {
protected:
  static void SetUpTestSuite() {
    auto loaded = Driver::load("libcuda.so.1");
    if (loaded)
      driver = loaded->release();
    else
      reason = llvm::toString(loaded.takeError());
  }

  void SetUp() override {
    if (!driver)
      GTEST_SKIP() << "needs a GPU: " << reason;
    device = &*driver->open();
  }

  std::unique_ptr<Module> load(llvm::StringRef ptx,
                               std::vector<std::string> kernels) {
    return take(Module::load(*device, {"", ptx}, kernels));
  }

  std::vector<uint32_t> read(const void *data, size_t words,
                             StreamHandle stream) {
    std::vector<uint32_t> values(words);
    EXPECT_EQ(
        getMessage(device->copyToHost(values.data(), data, words * 4, stream)),
        "success");
    return values;
  }

  /// A function of the driver that Fovea itself does not need.
  template <typename... Arguments>
  int call(const char *name, Arguments... arguments) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    auto function =
        reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    return function ? function(arguments...) : -1;
  }

  static Driver *driver;
  static std::string reason;
  Device *device = nullptr;
};
Driver *Hardware::driver = nullptr;
std::string Hardware::reason;

void launchFill(void *data, uint64_t words, uint32_t value) {
  void *arguments[] = {&data, &words, &value};
  fovea_gpu_launch(0, (words + 127) / 128, 1, 1, 128, 1, 1, 0, arguments);
}

void launchAdd(void *data, void *other, uint64_t words) {
  void *arguments[] = {&data, &other, &words};
  fovea_gpu_launch(1, (words + 127) / 128, 1, 1, 128, 1, 1, 0, arguments);
}

/// result = a + a + b, over two temporaries that share memory.
void addThree(uint64_t words, uint32_t a, uint32_t b) {
  void *result = fovea_gpu_result(0, words * 4);
  fovea_gpu_zero(result, words * 4);
  for (uint32_t value : {a, a, b}) {
    void *temporary = fovea_gpu_allocate(words * 4);
    launchFill(temporary, words, value);
    launchAdd(result, temporary, words);
    fovea_gpu_free(temporary);
  }
}

constexpr uint64_t kWords = 100003;

/// Calls `addThree` on a stream, whose result goes to `buffer`.
void runAddThree(const Module &module, Stream &stream, Buffer &buffer,
                 uint32_t a, uint32_t b) {
  ResultBuffer results[] = {{buffer.getData(), buffer.getNumBytes()}};
  LaunchContext context(module, stream.get(), results);
  EXPECT_EQ(getMessage(context.run([&] { addThree(kWords, a, b); })),
            "success");
}

TEST_F(Hardware, IsDescribed) {
  const DeviceInfo &info = device->getInfo();
  RecordProperty("device", formatDevice(info));
  EXPECT_GE(info.major, 8);
  EXPECT_GT(info.numMultiprocessors, 0);
  EXPECT_GT(info.clockKHz, 0);
  EXPECT_GT(info.level2Bytes, 0);
  EXPECT_GE(info.sharedBytesPerBlock, 99 << 10);
  EXPECT_GT(info.memoryBytes, int64_t(1) << 30);
}

TEST_F(Hardware, RunsKernelsInOrder) {
  auto module = load(kKernels, {"fill", "add"});
  EXPECT_TRUE(module->isCompiledByDriver());
  EXPECT_GT(module->getKernels()[0].attributes.registers, 0);
  Stream stream = take(device->createStream());
  for (int i = 0; i < 3; ++i) {
    ResultBuffer results[1];
    LaunchContext context(*module, stream.get(), results);
    ASSERT_EQ(getMessage(context.run([] { addThree(kWords, 20, 2); })),
              "success");
    std::vector<uint32_t> values = read(results[0].data, kWords, stream.get());
    EXPECT_EQ(llvm::count(values, 42u), int64_t(kWords));
    device->free(results[0].data);
  }
}

TEST_F(Hardware, GivesAKernelAllSharedMemory) {
  auto module = load(kKernels, {"last"});
  Buffer buffer = take(device->allocate(4));
  int64_t bytes = module->getKernels()[0].maxDynamicSharedBytes;
  EXPECT_EQ(bytes, device->getInfo().sharedBytesPerBlock);
  LaunchContext context(*module, nullptr, {});
  EXPECT_EQ(getMessage(context.run([&] {
              void *data = buffer.getData();
              uint32_t at = bytes - 4;
              void *arguments[] = {&data, &at};
              fovea_gpu_launch(0, 1, 1, 1, 1, 1, 1, bytes, arguments);
            })),
            "success");
  EXPECT_EQ(read(buffer.getData(), 1, nullptr)[0], 4711u);
}

TEST_F(Hardware, ServesThreadsAndStreams) {
  auto module = load(kKernels, {"fill", "add"});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      // Every other one on the default stream.
      Stream own = take(device->createStream());
      StreamHandle stream = thread % 2 ? own.get() : nullptr;
      Buffer buffer = take(device->allocate(kWords * 4));
      for (int i = 0; i < 20; ++i) {
        ResultBuffer results[] = {{buffer.getData(), buffer.getNumBytes()}};
        LaunchContext context(*module, stream, results);
        ASSERT_EQ(getMessage(context.run([&] { addThree(kWords, thread, i); })),
                  "success");
        std::vector<uint32_t> values = read(buffer.getData(), kWords, stream);
        EXPECT_EQ(llvm::count(values, 2u * thread + i), int64_t(kWords));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(Hardware, IsCaptured) {
  auto module = load(kKernels, {"fill", "add"});
  Stream stream = take(device->createStream());
  Stream replay = take(device->createStream());
  Buffer captured = take(device->allocate(kWords * 4));
  Buffer eager = take(device->allocate(kWords * 4));
  auto run = [&](Buffer &buffer, uint32_t a, uint32_t b) {
    runAddThree(*module, stream, buffer, a, b);
  };
  // The memory for temporaries may have been there before.
  for (bool warm : {false, true}) {
    if (warm)
      run(eager, 1, 1);
    CUcontext context = static_cast<CUcontext>(device->getContext());
    driver->getApi().cuCtxPushCurrent(context);
    void *graph = nullptr, *executable = nullptr;
    ASSERT_EQ(call("cuStreamBeginCapture_v2", stream.get(), 0), 0);
    run(captured, 3, 4);
    ASSERT_EQ(call("cuStreamEndCapture", stream.get(), &graph), 0);
    ASSERT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
    // Beside calls that are not captured.
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(call("cuGraphLaunch", executable, replay.get()), 0);
      run(eager, 5, i);
    }
    EXPECT_EQ(getMessage(replay.synchronize()), "success");
    EXPECT_EQ(read(captured.getData(), kWords, stream.get()),
              std::vector<uint32_t>(kWords, 10));
    EXPECT_EQ(read(eager.getData(), kWords, stream.get()),
              std::vector<uint32_t>(kWords, 29));
    call("cuGraphExecDestroy", executable);
    call("cuGraphDestroy", graph);
    driver->getApi().cuCtxPopCurrent(&context);
  }
}

/// A module may be destroyed while its calls are captured, and be freed while
/// those of others are.
TEST_F(Hardware, IsKeptByGraphs) {
  auto other = load(kKernels, {"fill", "add"});
  Stream stream = take(device->createStream());
  Stream replay = take(device->createStream());
  Buffer captured = take(device->allocate(kWords * 4));
  Buffer eager = take(device->allocate(kWords * 4));
  auto run = [&](const Module &module, Buffer &buffer, uint32_t a, uint32_t b) {
    runAddThree(module, stream, buffer, a, b);
  };
  CUcontext context = static_cast<CUcontext>(device->getContext());
  driver->getApi().cuCtxPushCurrent(context);
  for (bool warm : {false, true}) {
    auto module = load(kKernels, {"fill", "add"});
    std::weak_ptr<LoadedModule> loaded = module->getLoaded().weak_from_this();
    if (warm)
      run(*module, eager, 1, 1);
    void *graph = nullptr, *executable = nullptr;
    ASSERT_EQ(call("cuStreamBeginCapture_v2", stream.get(), 0), 0);
    run(*module, captured, 3, 4);
    module.reset();
    ASSERT_EQ(call("cuStreamEndCapture", stream.get(), &graph), 0);
    ASSERT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
    ASSERT_EQ(call("cuGraphDestroy", graph), 0);
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(call("cuGraphLaunch", executable, replay.get()), 0);
      run(*other, eager, 5, i);
    }
    EXPECT_EQ(getMessage(replay.synchronize()), "success");
    EXPECT_EQ(read(captured.getData(), kWords, stream.get()),
              std::vector<uint32_t>(kWords, 10));
    EXPECT_EQ(read(eager.getData(), kWords, stream.get()),
              std::vector<uint32_t>(kWords, 29));
    EXPECT_FALSE(loaded.expired());
    ASSERT_EQ(call("cuGraphExecDestroy", executable), 0);
    // The driver drops the reference some time later.
    for (int i = 0; i < 1000 && !loaded.expired(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ASSERT_EQ(call("cuStreamBeginCapture_v2", stream.get(), 0), 0);
      run(*other, captured, 3, 4);
      ASSERT_EQ(call("cuStreamEndCapture", stream.get(), &graph), 0);
      ASSERT_EQ(call("cuGraphDestroy", graph), 0);
      if (warm)
        run(*other, eager, 5, i);
    }
    EXPECT_TRUE(loaded.expired());
  }
  driver->getApi().cuCtxPopCurrent(&context);
}

TEST_F(Hardware, LoadsThroughATensorMap) {
  if (device->getInfo().major != 9)
    GTEST_SKIP() << "needs a GPU of compute capability 9.0";
  auto module = load(kTMA, {"load"});
  // 30 rows of 40 words that are 64 words apart.
  std::vector<uint32_t> data(30 * 64);
  std::iota(data.begin(), data.end(), 1);
  Buffer tensor = take(device->allocate(data.size() * 4));
  Buffer out = take(device->allocate(4096));
  ASSERT_EQ(getMessage(device->copyToDevice(tensor.getData(), data.data(),
                                            data.size() * 4)),
            "success");
  struct Case {
    int64_t rows, stride;
  };
  // As it is; one row for all; nothing.
  for (auto [rows, stride] : {Case{30, 256}, Case{30, 0}, Case{0, 256}}) {
    LaunchContext context(*module, nullptr, {});
    ASSERT_EQ(getMessage(context.run([&, rows = rows, stride = stride] {
                alignas(64) char map[128];
                int64_t sizes[] = {40, rows}, box[] = {32, 32};
                fovea_gpu_tensor_map(map, rows ? tensor.getData() : nullptr,
                                     int64_t(ElementKind::F32), 2, sizes,
                                     &stride, box, 0);
                void *target = out.getData();
                void *arguments[] = {map, &target};
                fovea_gpu_launch(0, 1, 1, 1, 128, 1, 1, 0, arguments);
              })),
              "success");
    std::vector<uint32_t> values = read(out.getData(), 1024, nullptr);
    for (int row = 0; row < 32; ++row)
      for (int column = 0; column < 32; ++column) {
        bool inside = row + 8 < rows && column + 16 < 40;
        ASSERT_EQ(values[row * 32 + column],
                  inside ? data[(row + 8) * (stride / 4) + column + 16] : 0)
            << row << ", " << column;
      }
  }
}

TEST_F(Hardware, TellsMemoryApart) {
  Buffer buffer = take(device->allocate(64));
  uint32_t host = 0;
  EXPECT_EQ(getMessage(device->checkPointer(buffer.getData(), "x")), "success");
  EXPECT_NE(getMessage(device->checkPointer(&host, "x")), "success");
  Stream stream = take(device->createStream());
  EXPECT_EQ(getMessage(device->checkStream(stream.get())), "success");
  EXPECT_EQ(getMessage(device->checkStream(nullptr)), "success");
}

TEST_F(Hardware, SaysHowMuchMemoryIsMissing) {
  std::string message = getMessage(device->allocate(int64_t(1) << 50));
  EXPECT_EQ(message.find("cannot allocate 1125899906842624 bytes on "), 0u);
  EXPECT_NE(message.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos);
}

TEST_F(Hardware, SaysWhereThePTXIsWrong) {
  std::string message = getMessage(Module::load(
      *device, {"", ".version 8.0\n.target sm_80\nnonsense\n"}, {"kernel"}));
  EXPECT_NE(message.find("line 3"), std::string::npos) << message;
  EXPECT_NE(message.find("CUDA_ERROR_INVALID_PTX"), std::string::npos);
}

TEST_F(Hardware, MeasuresTime) {
  auto module = load(kKernels, {"fill"});
  Stream stream = take(device->createStream());
  Event start = take(device->createEvent());
  Event end = take(device->createEvent());
  Buffer buffer = take(device->allocate(256 << 20));
  ASSERT_EQ(getMessage(start.record(stream.get())), "success");
  LaunchContext context(*module, stream.get(), {});
  ASSERT_EQ(getMessage(context.run(
                [&] { launchFill(buffer.getData(), 64 << 20, 1); })),
            "success");
  ASSERT_EQ(getMessage(end.record(stream.get())), "success");
  ASSERT_EQ(getMessage(end.synchronize()), "success");
  double milliseconds = take(end.getMillisecondsSince(start));
  EXPECT_GT(milliseconds, 0.01);
  EXPECT_LT(milliseconds, 1000);
}

TEST_F(Hardware, IsCalledFast) {
  auto module = load(kKernels, {"fill"});
  Stream stream = take(device->createStream());
  Buffer buffer = take(device->allocate(4096));
  CUcontext current = static_cast<CUcontext>(device->getContext());
  driver->getApi().cuCtxPushCurrent(current);
  auto run = [&] {
    ResultBuffer results[] = {{buffer.getData(), buffer.getNumBytes()}};
    LaunchContext context(*module, stream.get(), results);
    llvm::Error error = context.run([] {
      alignas(64) char map[128];
      int64_t sizes[] = {64, 1000, 16}, strides[] = {2048, 128},
              box[] = {64, 128, 1};
      void *result = fovea_gpu_result(0, 512);
      void *temporary = fovea_gpu_allocate(100000);
      for (int i = 0; i < 4; ++i)
        fovea_gpu_tensor_map(map, result, int64_t(ElementKind::F16), 3, sizes,
                             strides, box, 128);
      launchFill(result, 128, 7);
      fovea_gpu_free(temporary);
    });
    if (error)
      FAIL() << llvm::toString(std::move(error));
  };
  std::vector<double> microseconds;
  for (int batch = 0; batch < 50; ++batch) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i)
      run();
    std::chrono::duration<double, std::micro> elapsed =
        std::chrono::steady_clock::now() - start;
    microseconds.push_back(elapsed.count() / 100);
    ASSERT_EQ(getMessage(stream.synchronize()), "success");
  }
  driver->getApi().cuCtxPopCurrent(&current);
  std::sort(microseconds.begin(), microseconds.end());
  double median = microseconds[microseconds.size() / 2];
  std::printf("host time of a warm call: %.2f us\n", median);
  EXPECT_LT(median, 5);
}

// Last: a context does not survive it.
TEST_F(Hardware, TellsWhatKernelsDidWrong) {
  auto module = load(kKernels, {"fill"});
  Stream stream = take(device->createStream());
  LaunchContext context(*module, stream.get(), {});
  ASSERT_EQ(getMessage(context.run([] { launchFill(nullptr, 128, 1); })),
            "success");
  std::string message = getMessage(stream.synchronize());
  EXPECT_EQ(message.find("the work on "), 0u);
  EXPECT_NE(message.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos)
      << message;
}

} // namespace
