//===- RuntimeTest.cpp - Threads, memory, failures ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Runtime/HostRuntime.h"
#include "fovea/Runtime/SmallFloats.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace fovea;
using namespace fovea::runtime;

namespace {

/// Counts how often each item of a loop runs.
struct Counts {
  std::vector<std::atomic<int>> items;
  explicit Counts(int64_t size) : items(size) {}
  static void body(void *context, int64_t item) {
    ++static_cast<Counts *>(context)->items[item];
  }
  void expectAll(int times) {
    for (auto &item : items)
      ASSERT_EQ(item.load(), times);
  }
};

class ThreadCount : public testing::TestWithParam<int> {
protected:
  void SetUp() override { setNumThreads(GetParam()); }
  void TearDown() override { setNumThreads(0); }
};
INSTANTIATE_TEST_SUITE_P(Runtime, ThreadCount, testing::Values(1, 2, 5, 16));

TEST_P(ThreadCount, RunsEveryItemOnce) {
  EXPECT_EQ(getNumThreads(), GetParam());
  for (int64_t items : {0, 1, 2, 3, 17, 1000}) {
    Counts counts(items);
    fovea_parallel_for(Counts::body, &counts, items);
    counts.expectAll(1);
  }
}

TEST_P(ThreadCount, SurvivesManyShortLoops) {
  Counts counts(7);
  for (int i = 0; i < 3000; ++i)
    fovea_parallel_for(Counts::body, &counts, 7);
  counts.expectAll(3000);
}

TEST_P(ThreadCount, MaybeCalledFromManyThreads) {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 24; ++caller)
    callers.emplace_back([] {
      Counts counts(50);
      for (int i = 0; i < 100; ++i)
        fovea_parallel_for(Counts::body, &counts, 50);
      counts.expectAll(100);
    });
  for (std::thread &caller : callers)
    caller.join();
}

TEST_P(ThreadCount, RunsNestedLoopsInline) {
  Counts counts(100);
  fovea_parallel_for(
      [](void *context, int64_t outer) {
        std::thread::id thread = std::this_thread::get_id();
        struct Inner {
          void *counts;
          int64_t outer;
          std::thread::id thread;
        } inner = {context, outer, thread};
        fovea_parallel_for(
            [](void *context, int64_t item) {
              auto *inner = static_cast<Inner *>(context);
              EXPECT_EQ(std::this_thread::get_id(), inner->thread);
              Counts::body(inner->counts, inner->outer * 10 + item);
            },
            &inner, 10);
      },
      &counts, 10);
  counts.expectAll(1);
}

TEST_P(ThreadCount, WorksInAForkedChild) {
  Counts before(10);
  fovea_parallel_for(Counts::body, &before, 10);
  pid_t child = fork();
  if (child == 0) {
    // The child has none of the parent's threads.
    Counts counts(100);
    fovea_parallel_for(Counts::body, &counts, 100);
    bool all = true;
    for (auto &item : counts.items)
      all &= item == 1;
    _exit(all ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_P(ThreadCount, FailureInALoopEndsTheInvocation) {
  Invocation invocation;
  EXPECT_FALSE(invocation.run(
      [](void *) {
        _mlir_memref_to_llvm_alloc(1000);
        fovea_parallel_for(
            [](void *, int64_t item) {
              _mlir_memref_to_llvm_alloc(100);
              if (item == 30)
                fail("item 30 is bad");
            },
            nullptr, 100);
        FAIL() << "the loop returned";
      },
      nullptr));
  EXPECT_STREQ(invocation.getMessage(), "item 30 is bad");
  // And the pool is as good as before.
  Counts counts(100);
  fovea_parallel_for(Counts::body, &counts, 100);
  counts.expectAll(1);
}

TEST(Invocation, TracksTheMostThatWasLive) {
  Invocation invocation;
  ASSERT_TRUE(invocation.run(
      [](void *) {
        void *a = _mlir_memref_to_llvm_alloc(1000);
        void *b = _mlir_memref_to_llvm_aligned_alloc(4096, 500);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 4096, 0u);
        memset(a, 1, 1000);
        memset(b, 2, 500);
        _mlir_memref_to_llvm_free(a);
        _mlir_memref_to_llvm_free(nullptr);
        _mlir_memref_to_llvm_alloc(100);
        _mlir_memref_to_llvm_free(b);
      },
      nullptr));
  EXPECT_EQ(invocation.getPeakBytes(), 1500u);
}

TEST(Invocation, GivesBuffersAway) {
  void *buffer = nullptr;
  {
    Invocation invocation;
    ASSERT_TRUE(invocation.run(
        [](void *result) {
          *static_cast<void **>(result) = _mlir_memref_to_llvm_alloc(64);
        },
        &buffer));
    EXPECT_FALSE(invocation.release(&invocation));
    EXPECT_TRUE(invocation.release(buffer));
    EXPECT_FALSE(invocation.release(buffer));
  }
  memset(buffer, 0, 64);
  _mlir_memref_to_llvm_free(buffer);
}

TEST(Invocation, FailsWhereMemoryIsShort) {
  for (uint64_t size : {UINT64_MAX, UINT64_MAX / 2, uint64_t(1) << 60}) {
    Invocation invocation;
    EXPECT_FALSE(invocation.run(
        [](void *size) {
          _mlir_memref_to_llvm_alloc(*static_cast<uint64_t *>(size));
        },
        &size));
    EXPECT_EQ(invocation.getMessage(), "out of memory: cannot allocate " +
                                           std::to_string(size) + " bytes");
  }
}

TEST(Invocation, AllocatesBlocksOfAllSizesAgainAndAgain) {
  // Some are kept when they are freed, some consist of huge pages.
  for (int round = 0; round < 3; ++round) {
    Invocation invocation;
    ASSERT_TRUE(invocation.run(
        [](void *) {
          std::vector<std::pair<char *, uint64_t>> buffers;
          for (uint64_t size = 1; size <= uint64_t(48) << 20; size *= 3) {
            auto *buffer =
                static_cast<char *>(_mlir_memref_to_llvm_alloc(size));
            EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer) % 64, 0u);
            memset(buffer, int(buffers.size()), size);
            buffers.push_back({buffer, size});
          }
          // No two buffers share memory.
          for (auto [index, buffer] : llvm::enumerate(buffers)) {
            EXPECT_EQ(buffer.first[0], char(index));
            EXPECT_EQ(buffer.first[buffer.second - 1], char(index));
          }
          for (auto [buffer, size] : buffers)
            _mlir_memref_to_llvm_free(buffer);
        },
        nullptr));
  }
}

TEST(Invocation, GetsItsMemoryBack) {
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "needs a build without AddressSanitizer, which keeps what is "
                  "freed";
#endif
  for (uint64_t size : {uint64_t(600) << 10, uint64_t(16) << 20}) {
    void *first = _mlir_memref_to_llvm_alloc(size);
    _mlir_memref_to_llvm_free(first);
    void *second = _mlir_memref_to_llvm_alloc(size - 100);
    EXPECT_EQ(first, second);
    _mlir_memref_to_llvm_free(second);
  }
}

TEST(Invocation, MayBeNested) {
  Invocation outer;
  EXPECT_TRUE(outer.run(
      [](void *) {
        Invocation inner;
        EXPECT_FALSE(inner.run([](void *) { fail("inner"); }, nullptr));
        _mlir_memref_to_llvm_alloc(10);
      },
      nullptr));
  EXPECT_EQ(outer.getPeakBytes(), 10u);
}

/// Returns the message of a check, or nothing if it passes.
static std::string runCheck(std::function<void()> check) {
  Invocation invocation;
  bool passes = invocation.run(
      [](void *check) { (*static_cast<std::function<void()> *>(check))(); },
      &check);
  return passes ? "" : invocation.getMessage();
}

TEST(Checks, Indices) {
  for (int64_t index : {0, 7})
    EXPECT_EQ(runCheck([&] { fovea_check_index("here", index, 8, 0); }), "");
  EXPECT_EQ(runCheck([] { fovea_check_index("here", 8, 8, 1); }),
            "here is out of bounds: index 8 of dimension 1, whose size is 8");
  EXPECT_EQ(runCheck([] { fovea_check_index("here", -1, 8, 0); }),
            "here is out of bounds: index -1 of dimension 0, whose size is 8");
  EXPECT_EQ(runCheck([] { fovea_check_index("here", 0, 0, 0); }),
            "here is out of bounds: index 0 of dimension 0, whose size is 0");
  // The end of a long name stays, and the whole message.
  std::string name(1000, 'x');
  name += ".mlir:3:4: 'tensor.extract'";
  std::string message =
      runCheck([&] { fovea_check_index(name.c_str(), 8, 8, 1); });
  EXPECT_EQ(message.size(), 255u);
  EXPECT_EQ(message.substr(message.find('.')),
            ".mlir:3:4: 'tensor.extract' is out of bounds: index 8 of "
            "dimension 1, whose size is 8");
}

TEST(Checks, Divisors) {
  EXPECT_EQ(runCheck([] { fovea_check_divisor("here", INT64_MIN, 1, 64); }),
            "");
  EXPECT_EQ(runCheck([] { fovea_check_divisor("here", 7, 0, 32); }),
            "here divides 7 by 0");
  EXPECT_EQ(runCheck([] { fovea_check_divisor("here", 7, 0, 0); }),
            "here divides 7 by 0");
  EXPECT_EQ(runCheck([] { fovea_check_divisor("here", INT64_MIN, -1, 64); }),
            "here divides -9223372036854775808 by -1, which overflows");
  EXPECT_EQ(runCheck([] { fovea_check_divisor("here", INT32_MIN, -1, 32); }),
            "here divides -2147483648 by -1, which overflows");
  EXPECT_EQ(runCheck([] { fovea_check_divisor("here", INT32_MIN, -1, 64); }),
            "");
  EXPECT_EQ(runCheck([] { fovea_check_divisor("here", INT32_MIN, -1, 0); }),
            "");
}

TEST(MatrixTiles, AreUsedWhereTheSystemLetsThem) {
  Invocation invocation;
  bool ran = invocation.run([](void *) { fovea_use_matrix_tiles(); }, nullptr);
  EXPECT_EQ(ran, requestMatrixTiles());
  if (!ran)
    EXPECT_STREQ(invocation.getMessage(), "the code uses AMX tiles, which this "
                                          "machine does not have");
}

TEST(SmallFloats, RoundTripAllBits) {
  for (int bits = 0; bits < 65536; ++bits) {
    double half = halfToDouble(uint16_t(bits));
    if (half == half)
      ASSERT_EQ(doubleToHalf(half), bits);
    else
      ASSERT_NE(halfToDouble(doubleToHalf(half)), half);
    double bfloat = bfloatToDouble(uint16_t(bits));
    if (bfloat == bfloat)
      ASSERT_EQ(doubleToBfloat(bfloat), bits);
  }
}

TEST(SmallFloats, RoundToNearestEvenOnce) {
  EXPECT_EQ(doubleToHalf(1 + 0x1p-11), 0x3c00);
  EXPECT_EQ(doubleToHalf(1 + 3 * 0x1p-11), 0x3c02);
  EXPECT_EQ(doubleToHalf(1 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(doubleToHalf(65519.99), 0x7bff);
  EXPECT_EQ(doubleToHalf(65520), 0x7c00);
  EXPECT_EQ(doubleToHalf(-0x1p-25), 0x8000);
  EXPECT_EQ(doubleToHalf(0x1p-25 + 0x1p-50), 0x0001);
  EXPECT_EQ(doubleToBfloat(1 + 0x1p-8), 0x3f80);
  EXPECT_EQ(doubleToBfloat(1 + 0x1p-8 + 0x1p-45), 0x3f81);
  EXPECT_EQ(doubleToBfloat(1e300), 0x7f80);
}

} // namespace
