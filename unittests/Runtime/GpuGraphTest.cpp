//===- GpuGraphTest.cpp - Graphs that captured launches -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuModule.h"
#include "GpuTest.h"

#include <optional>
#include <thread>

using namespace fovea::cuda;

namespace {

class GpuGraph : public GpuTest {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    stream.emplace(take(open().createStream()));
    liveBytes = getFakeCuda().liveBytes;
    module = load({"kernel"});
  }

  /// Makes a call with a launch and a temporary.
  static std::string call(const Module &module, StreamHandle stream,
                          uint64_t capture = 0) {
    setFakeCapture(stream, capture);
    LaunchContext context(module, stream, {});
    std::string message = getMessage(context.run([] {
      fovea_gpu_launch(0, 1, 1, 1, 32, 1, 1, 0, nullptr);
      fovea_gpu_allocate(1000);
    }));
    setFakeCapture(stream, 0);
    return message;
  }
  std::string call(uint64_t capture = 0) {
    return call(*module, stream->get(), capture);
  }

  static bool hasMemory(int64_t before) {
    return int64_t(getFakeCuda().liveBytes) > before;
  }

  std::optional<Stream> stream;
  int64_t liveBytes = 0;
  std::unique_ptr<Module> module;
};

TEST_F(GpuGraph, KeepsWhatItLaunches) {
  EXPECT_EQ(call(5), "success");
  module.reset();
  EXPECT_EQ(getFakeCuda().liveModules, 1);
  EXPECT_TRUE(hasMemory(liveBytes));
  // Calls of others do not free it.
  module = load({"kernel"});
  EXPECT_EQ(call(), "success");
  module.reset();
  EXPECT_EQ(getFakeCuda().liveModules, 1);
  EXPECT_TRUE(hasMemory(liveBytes));
  // The driver's thread does not, either.
  destroyFakeGraph(5);
  EXPECT_EQ(getFakeCuda().liveModules, 1);
  stream.reset();
  driver.reset();
  EXPECT_EQ(getFakeCuda().liveModules, 0);
}

TEST_F(GpuGraph, FreesWhatItKeptInTheNextCall) {
  // Destroyed at the end, by which time nobody needs it.
  std::unique_ptr<Module> other = load({"kernel"}), loaded;
  for (int next = 0; next < 4; ++next) {
    module = load({"kernel"});
    EXPECT_EQ(call(5), "success");
    module.reset();
    destroyFakeGraph(5);
    int before = getFakeCuda().liveModules;
    if (next == 0)
      loaded = load({"kernel"});
    else if (next == 1)
      loaded.reset();
    else
      call(*other, stream->get(), next == 2 ? 6 : 0);
    EXPECT_EQ(getFakeCuda().liveModules, before - 1 + (next == 0) - (next == 1))
        << next;
  }
  destroyFakeGraph(6);
  other.reset();
  EXPECT_EQ(getFakeCuda().liveModules, 0);
  EXPECT_FALSE(hasMemory(liveBytes));
  EXPECT_EQ(getFakeCuda().liveUserObjects, 0);
  EXPECT_EQ(getFakeCuda().numForbidden, 0);
}

/// Calls that were not captured may still be running.
TEST_F(GpuGraph, IsWaitedForOutsideOfCapturesOnly) {
  std::unique_ptr<Module> other = load({"kernel"});
  EXPECT_EQ(call(), "success");
  EXPECT_EQ(call(5), "success");
  module.reset();
  destroyFakeGraph(5);
  // Each of these may be a part of a capture.
  load({"kernel"}).reset();
  EXPECT_EQ(call(*other, stream->get(), 6), "success");
  EXPECT_EQ(getFakeCuda().liveModules, 2);
  EXPECT_EQ(getFakeCuda().numSynchronizations, 0);
  EXPECT_EQ(call(*other, stream->get()), "success");
  EXPECT_EQ(getFakeCuda().liveModules, 1);
  EXPECT_EQ(getFakeCuda().numSynchronizations, 1);
  EXPECT_EQ(getFakeCuda().numForbidden, 0);
}

TEST_F(GpuGraph, ThatIsGoneKeepsNothing) {
  EXPECT_EQ(call(), "success");
  EXPECT_EQ(call(5), "success");
  destroyFakeGraph(5);
  module.reset();
  EXPECT_EQ(getFakeCuda().liveModules, 0);
  EXPECT_EQ(getFakeCuda().numSynchronizations, 1);
  EXPECT_FALSE(hasMemory(liveBytes));
}

TEST_F(GpuGraph, RefersToAModuleOnce) {
  EXPECT_EQ(call(), "success");
  EXPECT_EQ(getFakeCuda().liveUserObjects, 0);
  Stream other = take(open().createStream());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(call(5), "success");
    EXPECT_EQ(call(*module, other.get(), 5), "success");
  }
  EXPECT_EQ(getFakeCuda().graphs[5].size(), 1U);
  EXPECT_EQ(call(6), "success");
  EXPECT_EQ(getFakeCuda().graphs[6].size(), 1U);
  std::unique_ptr<Module> second = load({"kernel"});
  EXPECT_EQ(call(*second, other.get(), 5), "success");
  EXPECT_EQ(getFakeCuda().graphs[5].size(), 2U);
  // The last graph frees it.
  module.reset();
  for (uint64_t graph : {5, 6}) {
    EXPECT_EQ(getFakeCuda().liveModules, 2);
    destroyFakeGraph(graph);
    EXPECT_EQ(call(*second, other.get()), "success");
  }
  EXPECT_EQ(getFakeCuda().liveModules, 1);
}

TEST_F(GpuGraph, KeepsAModuleThatIsDestroyedInTheCapture) {
  EXPECT_EQ(call(), "success");
  EXPECT_EQ(call(5), "success");
  setFakeCapture(stream->get(), 5);
  module.reset();
  EXPECT_EQ(getFakeCuda().liveModules, 1);
  EXPECT_EQ(getFakeCuda().numForbidden, 0);
}

TEST_F(GpuGraph, OfAnInvalidCaptureIsNotThere) {
  EXPECT_EQ(call(FakeCuda::kInvalidCapture),
            "kernel 'kernel' (grid 1 x 1 x 1, block 32 x 1 x 1, 0 bytes of "
            "shared memory): cuLaunchKernelEx: error 901");
  EXPECT_EQ(getFakeCuda().liveUserObjects, 0);
}

TEST_F(GpuGraph, SaysWhyItCannotKeepAModule) {
  getFakeCuda().userObjectResult = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(call(5), "the graph cannot keep the kernels that it launches: "
                     "cuUserObjectCreate: CUDA_ERROR_OUT_OF_MEMORY (as the "
                     "test wants it)");
  getFakeCuda().userObjectResult = CUDA_SUCCESS;
  getFakeCuda().retainResult = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(call(5), "the graph cannot keep the kernels that it launches: "
                     "cuGraphRetainUserObject: CUDA_ERROR_OUT_OF_MEMORY (as "
                     "the test wants it)");
  EXPECT_TRUE(getFakeCuda().launches.empty());
  EXPECT_EQ(getFakeCuda().liveUserObjects, 0);
  // That reference, which no graph took, is not the next one.
  getFakeCuda().retainResult = CUDA_SUCCESS;
  EXPECT_EQ(call(5), "success");
  size_t before = getFakeCuda().liveBytes;
  destroyFakeGraph(6);
  load({"kernel"}).reset();
  module.reset();
  EXPECT_EQ(getFakeCuda().liveModules, 1);
  EXPECT_EQ(getFakeCuda().liveBytes, before);
}

TEST_F(GpuGraph, KeepsModulesOfAllDevices) {
  Stream other = take(open(1).createStream());
  std::unique_ptr<Module> second =
      take(Module::load(open(1), {"cubin", "PTX"}, {"kernel"}));
  EXPECT_EQ(call(*second, other.get()), "success");
  EXPECT_EQ(call(*second, other.get(), 5), "success");
  second.reset();
  destroyFakeGraph(5);
  EXPECT_EQ(getFakeCuda().liveModules, 2);
  EXPECT_EQ(call(), "success");
  EXPECT_EQ(getFakeCuda().liveModules, 1);
}

TEST_F(GpuGraph, MayBelongToAnyThread) {
  constexpr int numThreads = 8, numGraphs = 100;
  std::vector<Stream> streams;
  for (int thread = 0; thread < numThreads; ++thread)
    streams.push_back(take(open().createStream()));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < numThreads; ++thread)
    threads.emplace_back([&, thread] {
      StreamHandle stream = streams[thread].get();
      uint64_t first = 1 + thread * numGraphs;
      for (uint64_t graph = first; graph < first + numGraphs; ++graph) {
        std::unique_ptr<Module> own = load({"kernel"});
        EXPECT_EQ(call(*own, stream, graph), "success");
        EXPECT_EQ(call(*module, stream, graph), "success");
      }
      for (uint64_t graph = first; graph < first + numGraphs; ++graph) {
        destroyFakeGraph(graph);
        if (graph % 8 == 0)
          EXPECT_EQ(call(*module, stream), "success");
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(call(), "success");
  EXPECT_EQ(getFakeCuda().liveModules, 1);
  EXPECT_EQ(getFakeCuda().liveUserObjects, 0);
}

TEST_F(GpuGraph, LosesNoReferences) {
  std::shared_ptr<LoadedModule> loaded = module->getLoaded().shared_from_this();
  DroppedReferences &dropped = driver->getDropped();
  constexpr int numThreads = 4;
  std::atomic<int> numReady = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < numThreads; ++thread)
    threads.emplace_back([&] {
      ++numReady;
      while (numReady < numThreads)
        std::this_thread::yield();
      for (int i = 0; i < 50000; ++i) {
        dropped.add(*new GraphReference{loaded, /*capture=*/1});
        if (i % 1000 == 0)
          dropped.collect(/*mayWait=*/false);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  dropped.collect(/*mayWait=*/false);
  EXPECT_EQ(loaded.use_count(), 2);
}

} // namespace
