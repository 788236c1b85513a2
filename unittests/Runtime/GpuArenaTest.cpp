//===- GpuArenaTest.cpp - Memory for temporaries --------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuTest.h"

#include <atomic>
#include <random>
#include <thread>

using namespace fovea::cuda;

namespace {

class GpuArena : public GpuTest {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    module = load({"kernel"});
  }

  /// Makes a call that allocates one temporary; returns its address.
  void *allocate(int64_t bytes, StreamHandle stream) {
    void *pointer = nullptr;
    LaunchContext context(*module, stream, {});
    std::string message =
        getMessage(context.run([&] { pointer = fovea_gpu_allocate(bytes); }));
    EXPECT_EQ(message, "success");
    return pointer;
  }

  std::unique_ptr<Module> module;
};

TEST_F(GpuArena, GivesFreedMemoryOutAgain) {
  LaunchContext context(*module, nullptr, {});
  EXPECT_EQ(getMessage(context.run([] {
              void *a = fovea_gpu_allocate(1000);
              void *b = fovea_gpu_allocate(1000);
              void *c = fovea_gpu_allocate(1000);
              EXPECT_EQ(uintptr_t(b) % 512, 0u);
              EXPECT_EQ(uintptr_t(b) - uintptr_t(a), 1024u);
              EXPECT_EQ(uintptr_t(c) - uintptr_t(b), 1024u);
              fovea_gpu_free(b);
              EXPECT_EQ(fovea_gpu_allocate(512), b);
              fovea_gpu_free(a);
              fovea_gpu_free(b);
              // Neighbours have become one.
              EXPECT_EQ(fovea_gpu_allocate(2048), a);
              EXPECT_EQ(fovea_gpu_allocate(0), nullptr);
              fovea_gpu_free(nullptr);
            })),
            "success");
  EXPECT_EQ(context.getTemporaryBytes(), 3 * 1024);
}

TEST_F(GpuArena, KeepsLiveTemporariesApart) {
  std::mt19937 random(7);
  for (int call = 0; call < 20; ++call) {
    LaunchContext context(*module, nullptr, {});
    EXPECT_EQ(
        getMessage(context.run([&] {
          std::map<char *, int64_t> live;
          for (int step = 0; step < 300; ++step) {
            if (live.size() < 20 && random() % 3) {
              int64_t bytes = 1 + random() % 100000;
              auto *pointer = static_cast<char *>(fovea_gpu_allocate(bytes));
              ASSERT_NE(pointer, nullptr);
              auto next = live.upper_bound(pointer);
              ASSERT_TRUE(next == live.end() || pointer + bytes <= next->first);
              if (next != live.begin()) {
                auto before = std::prev(next);
                ASSERT_LE(before->first + before->second, pointer);
              }
              live[pointer] = bytes;
            } else if (!live.empty()) {
              auto victim = std::next(live.begin(), random() % live.size());
              fovea_gpu_free(victim->first);
              live.erase(victim);
            }
          }
        })),
        "success");
  }
}

TEST_F(GpuArena, IsOfOneStream) {
  Stream a = take(open().createStream());
  Stream b = take(open().createStream());
  void *inA = allocate(1000, a.get());
  void *inB = allocate(1000, b.get());
  EXPECT_NE(inA, inB);
  EXPECT_EQ(allocate(1000, a.get()), inA);
  EXPECT_EQ(allocate(1000, b.get()), inB);
}

TEST_F(GpuArena, IsNotInheritedByAStreamWithTheSameHandle) {
  Stream stream = take(open().createStream());
  void *before = allocate(1000, stream.get());
  // Its work may still be running when a new stream gets its handle.
  getFakeCuda().streams[stream.get()].id = 1000;
  EXPECT_NE(allocate(1000, stream.get()), before);
}

TEST_F(GpuArena, IsUsedByOneCallAtATime) {
  LaunchContext outer(*module, nullptr, {});
  EXPECT_EQ(getMessage(outer.run([&] {
              void *mine = fovea_gpu_allocate(1000);
              EXPECT_NE(allocate(1000, nullptr), mine);
            })),
            "success");
}

TEST_F(GpuArena, GrowsByReplacingWhatIsFree) {
  size_t before = getFakeCuda().liveBytes;
  for (int64_t megabytes = 1; megabytes <= 24; ++megabytes)
    allocate(megabytes << 20, nullptr);
  // The last one and some room, not all of them.
  EXPECT_LE(getFakeCuda().liveBytes - before, size_t(33) << 20);
  // Room for lengths to come.
  EXPECT_LE(getFakeCuda().numAllocations, 14);
}

TEST_F(GpuArena, TakesWhatThereIs) {
  size_t free = getFakeCuda().getFreeBytes();
  // There is no room for more than that.
  EXPECT_NE(allocate(int64_t(free) - 4096, nullptr), nullptr);
}

TEST_F(GpuArena, TakesWhatOthersDoNotUse) {
  Stream other = take(open().createStream());
  allocate(40 << 20, other.get());
  EXPECT_NE(allocate(40 << 20, nullptr), nullptr);
  LaunchContext context(*module, nullptr, {});
  EXPECT_EQ(getMessage(context.run([] {
              fovea_gpu_allocate(100 << 20);
            })).find("cannot allocate 104857600 bytes on Fake GPU"),
            0u);
  LaunchContext next(*module, nullptr, {});
  EXPECT_EQ(getMessage(next.run([] {
              EXPECT_EQ(fovea_gpu_allocate(INT64_MAX), nullptr);
            })).find("cannot allocate 9223372036854775807 bytes"),
            0u);
}

TEST_F(GpuArena, ForgetsStreamsOfLongAgo) {
  std::vector<Stream> streams;
  for (int i = 0; i < 30; ++i) {
    streams.push_back(take(open().createStream()));
    allocate(1 << 20, streams.back().get());
  }
  EXPECT_LE(getFakeCuda().liveBytes, size_t(20) << 20);
}

TEST_F(GpuArena, OfACaptureIsOfItsGraphAlone) {
  Stream stream = take(open().createStream());
  void *eager = allocate(1000, stream.get());
  getFakeCuda().streams[stream.get()].capture = 5;
  void *captured = allocate(1000, stream.get());
  EXPECT_NE(captured, eager);
  EXPECT_EQ(allocate(1000, stream.get()), captured);
  // More than there was; what the graph knows stays.
  void *larger = allocate(8 << 20, stream.get());
  EXPECT_TRUE(getFakeCuda().memory.count(CUdeviceptr(captured)));
  getFakeCuda().streams[stream.get()].capture = 6;
  void *second = allocate(1000, stream.get());
  getFakeCuda().streams[stream.get()].capture = 0;
  EXPECT_EQ(allocate(1000, stream.get()), eager);
  for (void *pointer : {captured, larger})
    EXPECT_NE(second, pointer);
  // Allocating must not end the capture.
  EXPECT_EQ(getFakeCuda().numForbidden, 0);
  // Many streams and a lack of memory do not take it away.
  for (int i = 0; i < 30; ++i) {
    Stream other = take(open().createStream());
    allocate(1 << 20, other.get());
  }
  allocate(48 << 20, nullptr);
  EXPECT_TRUE(getFakeCuda().memory.count(CUdeviceptr(captured)));
  // Its graph does, and no other's.
  destroyFakeGraph(5);
  allocate(1000, nullptr);
  for (void *pointer : {captured, larger})
    EXPECT_FALSE(getFakeCuda().memory.count(CUdeviceptr(pointer)));
  EXPECT_TRUE(getFakeCuda().memory.count(CUdeviceptr(second)));
}

TEST_F(GpuArena, ResultsOfACaptureMayBeNew) {
  Stream stream = take(open().createStream());
  getFakeCuda().streams[stream.get()].capture = 5;
  ResultBuffer results[1];
  LaunchContext context(*module, stream.get(), results);
  EXPECT_EQ(getMessage(context.run([] { fovea_gpu_result(0, 100); })),
            "success");
  EXPECT_EQ(getFakeCuda().numForbidden, 0);
  open().free(results[0].data);
}

TEST_F(GpuArena, ServesThreadsOnOneStream) {
  std::mutex mutex;
  std::map<void *, int> users;
  std::atomic<bool> shared = false;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&] {
      for (int call = 0; call < 300; ++call) {
        LaunchContext context(*module, nullptr, {});
        llvm::Error error = context.run([&] {
          void *pointer = fovea_gpu_allocate(1000);
          {
            std::lock_guard<std::mutex> lock(mutex);
            shared = shared || users[pointer]++ > 0;
          }
          fovea_gpu_launch(0, 1, 1, 1, 32, 1, 1, 0, nullptr);
          std::lock_guard<std::mutex> lock(mutex);
          --users[pointer];
        });
        EXPECT_FALSE(bool(error));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_FALSE(shared);
  EXPECT_LE(users.size(), 8u);
  EXPECT_EQ(getFakeCuda().launches.size(), 2400u);
}

TEST_F(GpuArena, GoesWithItsModule) {
  size_t before = getFakeCuda().liveBytes;
  Stream stream = take(open().createStream());
  allocate(1000, stream.get());
  EXPECT_GT(getFakeCuda().liveBytes, before);
  module.reset();
  EXPECT_EQ(getFakeCuda().liveBytes, before);
}

} // namespace
