//===- OpenMPTest.cpp - Loops on the threads of an OpenMP runtime ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeOpenMP.h"

#include "fovea/Runtime/HostRuntime.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fovea;
using namespace fovea::runtime;
using namespace fovea::test;

namespace {

/// A loop that records how often each item runs, and on which thread.
struct Loop {
  explicit Loop(int64_t items) : counts(items) {}

  void run() { fovea_parallel_for(body, this, counts.size()); }

  static void body(void *context, int64_t item) {
    auto *loop = static_cast<Loop *>(context);
    ++loop->counts[item];
    std::lock_guard<std::mutex> lock(loop->mutex);
    loop->threads.insert(std::this_thread::get_id());
  }

  bool ranAllOnce() {
    return llvm::all_of(counts, [](auto &count) { return count == 1; });
  }

  std::vector<std::atomic<int>> counts;
  std::mutex mutex;
  std::set<std::thread::id> threads;
};

/// The runtime is loaded after this process has run loops without it.
class OpenMPTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    Loop before(50);
    setNumThreads(2);
    before.run();
    setNumThreads(0);
    EXPECT_TRUE(before.ranAllOnce());
    void *library = dlopen(FAKE_OPENMP_FILE, RTLD_NOW | RTLD_GLOBAL);
    ASSERT_TRUE(library) << dlerror();
    auto *get = reinterpret_cast<decltype(&fovea_fake_openmp)>(
        dlsym(library, "fovea_fake_openmp"));
    ASSERT_TRUE(get);
    fake = get();
  }

  void SetUp() override {
    ASSERT_TRUE(fake);
    fake->regions = 0;
    fake->maxThreads = 3;
    fake->isInRegion = false;
  }
  void TearDown() override { setNumThreads(0); }

  static FakeOpenMP *fake;
};
FakeOpenMP *OpenMPTest::fake = nullptr;

TEST_F(OpenMPTest, RunsLoops) {
  for (int64_t items : {2, 3, 100}) {
    Loop loop(items);
    fake->regions = 0;
    loop.run();
    EXPECT_TRUE(loop.ranAllOnce());
    EXPECT_EQ(fake->regions, 1);
    EXPECT_LE(loop.threads.size(), 3u);
  }
}

TEST_F(OpenMPTest, GivesTheNumberOfThreads) {
  unsetenv("FOVEA_NUM_THREADS");
  EXPECT_EQ(getNumThreads(), 3);
  fake->maxThreads = 5;
  EXPECT_EQ(getNumThreads(), 5);
  setNumThreads(2);
  EXPECT_EQ(getNumThreads(), 2);
}

TEST_F(OpenMPTest, KeepsItsTeamWhereFewerWork) {
  setNumThreads(2);
  Loop loop(1000);
  loop.run();
  EXPECT_TRUE(loop.ranAllOnce());
  EXPECT_EQ(fake->lastThreads, 3u);
  EXPECT_LE(loop.threads.size(), 2u);
  setNumThreads(8);
  Loop wide(1000);
  wide.run();
  EXPECT_TRUE(wide.ranAllOnce());
  EXPECT_EQ(fake->lastThreads, 8u);
}

TEST_F(OpenMPTest, IsNotAskedForOneThread) {
  setNumThreads(1);
  Loop loop(20);
  loop.run();
  EXPECT_TRUE(loop.ranAllOnce());
  EXPECT_EQ(fake->regions, 0);
  EXPECT_EQ(loop.threads.count(std::this_thread::get_id()), 1u);
}

TEST_F(OpenMPTest, LeavesLoopsInARegionToTheirCaller) {
  fake->isInRegion = true;
  Loop loop(20);
  loop.run();
  EXPECT_TRUE(loop.ranAllOnce());
  EXPECT_EQ(fake->regions, 0);
  EXPECT_EQ(loop.threads, std::set{std::this_thread::get_id()});
}

TEST_F(OpenMPTest, WorksForOneCallerAtATime) {
  struct Both {
    std::atomic<bool> isDone = false;
    Loop inner{100};
  } both;
  // The second loop begins and ends in the midst of the first.
  std::atomic<bool> isRunning = false;
  std::thread second([&] {
    while (!isRunning)
      std::this_thread::yield();
    both.inner.run();
    both.isDone = true;
  });
  struct Context {
    Both &both;
    std::atomic<bool> &isRunning;
  } context = {both, isRunning};
  fovea_parallel_for(
      [](void *context, int64_t) {
        auto *both = static_cast<Context *>(context);
        both->isRunning = true;
        while (!both->both.isDone)
          std::this_thread::yield();
      },
      &context, 3);
  second.join();
  EXPECT_TRUE(both.inner.ranAllOnce());
  EXPECT_EQ(fake->regions, 1);
}

TEST_F(OpenMPTest, PassesFailuresOn) {
  Invocation invocation;
  EXPECT_FALSE(invocation.run(
      [](void *) {
        fovea_parallel_for(
            [](void *, int64_t item) {
              if (item == 30)
                fail("item 30 is bad");
            },
            nullptr, 100);
      },
      nullptr));
  EXPECT_STREQ(invocation.getMessage(), "item 30 is bad");
  // And the runtime is free again.
  Loop loop(100);
  loop.run();
  EXPECT_TRUE(loop.ranAllOnce());
  EXPECT_EQ(fake->regions, 2);
}

TEST_F(OpenMPTest, IsLeftAloneInAForkedChild) {
  pid_t child = fork();
  if (child == 0) {
    setNumThreads(3);
    Loop loop(100);
    loop.run();
    _exit(loop.ranAllOnce() && fake->regions == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

} // namespace
