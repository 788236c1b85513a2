//===- RingTest.cpp - Roles, rings and products in flight -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Simulation.h"

using namespace fovea;

namespace {

class RingTest : public SimulationTest {
protected:
  /// Runs a producer and a consumer of `n` tiles of %I, at most 6, whose
  /// bodies have the loop's index %u. The consumer's state is %acc, 16x16.
  void runRoles(const std::string &load, const std::string &compute,
                uint64_t seed) {
    std::string text = R"(
!m = memref<?x16xf16, strided<[?, 1], offset: ?>>
!o = memref<?x16xf32, strided<[?, 1], offset: ?>>
!tile = !tile.shared<16x16xf16>
!ring = !tile.ring<2 x !tile>
!f = !tile.fragment<16x16xf32>
!h = !tile.fragment<16x16xf16>
!token = !tile.token<!f>
func.func @f(%i: memref<?x16xf16>, %n: index) -> memref<?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %o = memref.alloc(%c16) : memref<?x16xf32>
  %map = tile.tensor_map %i dims [0, 1] : memref<?x16xf16> -> !tile.tensor_map<2 x !tile>
  tile.launch grid(%c1) warps 4 ins(%i : memref<?x16xf16>) outs(%o : memref<?x16xf32>) {
  ^bb0(%b: index, %I: !m, %O: !o):
    %ring = tile.ring : !ring
    %other = tile.ring : !ring
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        scf.for %u = %c0 to %n step %c1 {
          %row = arith.muli %u, %c16 : index
          )" + load + R"(
        }
      }
      tile.role "compute" warps 4 registers 240 {
        %ones = tile.fill %one : !h
        %acc0 = tile.fill %zero : !f
        %sum = scf.for %u = %c0 to %n step %c1 iter_args(%acc = %acc0) -> !f {
          )" + compute +
                       R"(
        }
        tile.store %sum, %O[%c0, %c0] dims [0, 1] : !f, !o
      }
    }
  }
  return %o : memref<?x16xf32>
})";
    constexpr int64_t kTiles = 6;
    std::vector<uint16_t> input;
    for (int64_t i = 0; i < kTiles * 16 * 16; ++i)
      input.push_back(i % 3 ? 0x3c00 : 0);
    llvm::SmallVector<int64_t> shape = {kTiles * 16, 16}, strides = {16, 1};
    SimulationOptions options;
    options.seed = seed;
    results =
        run(text, {{input.data(), shape, strides}, {&kTiles, {}, {}}}, options);
    if (results.empty())
      return;
    // The sum of each column, in all rows.
    for (int64_t column = 0; column < 16; ++column) {
      float sum = 0, actual;
      for (int64_t row = 0; row < kTiles * 16; ++row)
        sum += (row * 16 + column) % 3 != 0;
      std::memcpy(&actual, results[0].data.data() + column * sizeof(float),
                  sizeof(float));
      EXPECT_EQ(actual, sum);
    }
  }

  /// Expects an error for every seed, and the same one: it does not depend on
  /// luck.
  void expectError(const std::string &load, const std::string &compute,
                   const std::string &message) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      runRoles(load, compute, seed);
      EXPECT_EQ(errors.substr(0, message.size()), message)
          << errors << ", seed " << seed;
    }
  }

  llvm::SmallVector<SimulationResult> results;
};

const std::string kAcquire = "%slot = tile.acquire %ring[%u] : !ring\n";
const std::string kLoad =
    "tile.load_async %I[%row, %c0] dims [0, 1] into %slot signals %ring[%u] : "
    "!m, !ring\n";
const std::string kWait = "%k = tile.wait %ring[%u] : !ring\n";
const std::string kRelease = "tile.release %ring[%u] : !ring\n";
const std::string kMma =
    "%next = tile.mma %ones, %k into %acc : !h, !tile, !f -> !f\n";
const std::string kIssue =
    "%t = tile.mma_async wgmma %ones, %k into %acc : !h, !tile, !f -> "
    "!token\n";
const std::string kWaitMma = "%next = tile.wait_mma %t : !token\n";
const std::string kYield = "scf.yield %next : !f\n";
const std::string kStage =
    "%tile = tile.to_shared %next : !f -> !tile.shared<16x16xf32>\n"
    "tile.store_async %tile, %O[%c0, %c0] dims [0, 1] : "
    "!tile.shared<16x16xf32>, !o\n";

TEST_F(RingTest, RunsInAnyOrder) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    runRoles(kAcquire + kLoad, kWait + kMma + kRelease + kYield, seed);
    ASSERT_EQ(errors, "") << "seed " << seed;
    runRoles(kAcquire + kLoad, kWait + kIssue + kWaitMma + kRelease + kYield,
             seed);
    ASSERT_EQ(errors, "") << "seed " << seed;
  }
}

TEST_F(RingTest, CopiesByTensorMaps) {
  auto copyAlong = [](const char *dims) {
    return kAcquire + "tile.load_async %map[%row, %c0] dims " + dims +
           " into %slot signals %ring[%u] : !tile.tensor_map<2 x !tile>, "
           "!ring\n";
  };
  for (uint64_t seed = 0; seed < 10; ++seed) {
    runRoles(copyAlong("[0, 1]"), kWait + kMma + kRelease + kYield, seed);
    ASSERT_EQ(errors, "") << "seed " << seed;
  }
  expectError(copyAlong("[1, 0]"), kWait + kMma + kRelease + kYield,
              "'tile.load_async' op copies along dimensions 1, 0 by a tensor "
              "map of 0, 1");
}

TEST_F(RingTest, TensorMapsWantAlignedRows) {
  run(R"(
func.func @f(%m: memref<4x4xf16>) {
  %map = tile.tensor_map %m dims [0, 1] : memref<4x4xf16> -> !tile.tensor_map<2 x !tile.shared<16x16xf16>>
  return
})",
      {{std::vector<uint16_t>(16).data(), {4, 4}, {4, 1}}});
  EXPECT_EQ(errors, "'tile.tensor_map' op expected a stride of dimension 0 "
                    "that is a multiple of 16 bytes, got 8");
  run(R"(
func.func @f(%m: memref<4x16xf16>) {
  %s = memref.subview %m[0, 4] [4, 8] [1, 1] : memref<4x16xf16> to memref<4x8xf16, strided<[16, 1], offset: 4>>
  %map = tile.tensor_map %s dims [0, 1] : memref<4x8xf16, strided<[16, 1], offset: 4>> -> !tile.tensor_map<2 x !tile.shared<16x16xf16>>
  return
})",
      {{std::vector<uint16_t>(64).data(), {4, 16}, {16, 1}}});
  EXPECT_EQ(errors, "'tile.tensor_map' op expected a tensor that starts at a "
                    "multiple of 16 bytes, got 8");
}

TEST_F(RingTest, CopyThatSignalsAnotherUse) {
  // The slot of another use.
  expectError(kAcquire + "%next = arith.addi %u, %c1 : index\n"
                         "tile.load_async %I[%row, %c0] dims [0, 1] into %slot "
                         "signals %ring[%next] : !m, !ring\n",
              kWait + kMma + kRelease + kYield,
              "'tile.load_async' op signals use 1 of the ring, but its slot is "
              "that of use 0");
}

TEST_F(RingTest, SlotOfAnotherRing) {
  expectError("%slot = tile.acquire %other[%u] : !ring\n" + kLoad,
              kWait + kMma + kRelease + kYield,
              "'tile.load_async' op signals use 0 of the ring, but its slot is "
              "another ring's");
}

TEST_F(RingTest, SlotFilledTwice) {
  expectError(kAcquire + kLoad + kLoad, kWait + kMma + kRelease + kYield,
              "'tile.load_async' op fills use 0 of the ring, which is filled "
              "already");
}

TEST_F(RingTest, AcquireOutOfOrder) {
  expectError("%use = arith.muli %u, %c2 : index\n"
              "%slot = tile.acquire %ring[%use] : !ring\n"
              "tile.load_async %I[%row, %c0] dims [0, 1] into %slot signals "
              "%ring[%use] : !m, !ring\n",
              kWait + kMma + kRelease + kYield,
              "'tile.acquire' op acquires use 2 of the ring, expected 1: uses "
              "count from 0");
}

TEST_F(RingTest, MissingWait) {
  // The tile that is acquired is not the one to read.
  expectError(kAcquire + kLoad,
              "%k = tile.acquire %other[%u] : !ring\n" + kMma + kYield,
              "'tile.mma' op reads use 0 of a ring before it was waited for");
}

TEST_F(RingTest, WaitForTheWrongUse) {
  expectError(kAcquire + kLoad,
              "%k = tile.wait %ring[%c0] : !ring\n" + kMma +
                  "tile.release %ring[%c0] : !ring\n" + kYield,
              "'tile.wait' op waits for use 0 of the ring, expected 1: uses "
              "count from 0");
}

TEST_F(RingTest, ReadAfterItsRelease) {
  expectError(kAcquire + kLoad, kWait + kRelease + kMma + kYield,
              "'tile.mma' op reads use 0 of a ring after its release");
}

TEST_F(RingTest, MissingRelease) {
  expectError(kAcquire + kLoad, kWait + kMma + kYield,
              "'tile.acquire' op waits for ever: for use 0 of its ring to be "
              "released, so that use 2 may begin | in block (0) of this "
              "launch, role \"load\"");
}

TEST_F(RingTest, ReleaseOfTheWrongUse) {
  expectError(kAcquire + kLoad,
              kWait + kMma + "tile.release %ring[%c0] : !ring\n" + kYield,
              "'tile.release' op releases use 0 of the ring, which this role "
              "has released already");
  expectError(kAcquire + kLoad,
              "%k = tile.wait %ring[%u] : !ring\n"
              "%use = arith.addi %u, %c1 : index\n" +
                  kMma + "tile.release %ring[%use] : !ring\n" + kYield,
              "'tile.release' op releases use 1 of the ring, which this role "
              "has not waited for");
}

TEST_F(RingTest, ReleaseWhileAProductReads) {
  expectError(kAcquire + kLoad, kWait + kIssue + kRelease + kWaitMma + kYield,
              "'tile.release' op releases use 0 of the ring while it is read");
}

TEST_F(RingTest, TooManyPending) {
  expectError(kAcquire + kLoad,
              kWait + kIssue + "%next = tile.wait_mma %t pending 1 : !token\n" +
                  kRelease + kYield,
              "'tile.wait_mma' op leaves 1 products in flight, but only 0 were "
              "issued after the one that it is for, which so may be among "
              "them");
}

TEST_F(RingTest, PendingCoversWhatCameBefore) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    runRoles(kAcquire + kLoad,
             kWait + kIssue +
                 "%s = tile.mma_async wgmma %ones, %k : !h, !tile -> !token\n"
                 "%next = tile.wait_mma %t pending 1 : !token\n"
                 "%unused = tile.wait_mma %s : !token\n" +
                 kRelease + kYield,
             seed);
    EXPECT_EQ(errors, "");
  }
}

TEST_F(RingTest, AccumulatorInFlight) {
  expectError(kAcquire + kLoad,
              "%own = tile.map ins(%acc : !f) {\n"
              "^bb0(%x: f32, %row: index, %column: index):\n"
              "  tile.yield %x : f32\n"
              "} -> !f\n" +
                  kWait +
                  "%t = tile.mma_async wgmma %ones, %k into %own : !h, !tile, "
                  "!f -> !token\n"
                  "%bad = tile.map ins(%own : !f) {\n"
                  "^bb0(%x: f32, %row: index, %column: index):\n"
                  "  tile.yield %x : f32\n"
                  "} -> !f\n" +
                  kWaitMma + kRelease + kYield,
              "'tile.map' op reads an accumulator while a product adds to it");
}

TEST_F(RingTest, ProductNeverWaitedFor) {
  expectError(kAcquire + kLoad,
              kWait + kMma + kRelease +
                  "%c = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !tile\n"
                  "%last = arith.subi %n, %c1 : index\n"
                  "%is = arith.cmpi eq, %u, %last : index\n"
                  "scf.if %is {\n"
                  "  %t = tile.mma_async wgmma %ones, %c : !h, !tile -> "
                  "!token\n}\n" +
                  kYield,
              "'tile.mma_async' op is never waited for");
}

TEST_F(RingTest, TileLoadedAnewWhileAProductReads) {
  expectError(kAcquire + kLoad,
              kWait + kMma + kRelease +
                  "%c = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !tile\n"
                  "%t = tile.mma_async wgmma %ones, %c : !h, !tile -> "
                  "!token\n" +
                  kYield,
              "'tile.load' op overwrites a tile while it is read");
}

TEST_F(RingTest, ValidRowsBeyondTheMemref) {
  expectError(
      kAcquire + kLoad,
      kWait + kMma + kRelease +
          "%tile = tile.to_shared %next : !f -> !tile.shared<16x16xf32>\n"
          "tile.store_async %tile, %O[%c1, %c0] dims [0, 1] valid(%c16) : "
          "!tile.shared<16x16xf32>, !o\n"
          "tile.wait_stores\n" +
          kYield,
      "'tile.store_async' op has 16 valid rows from row 1 on, beyond the "
      "memref's 16");
}

TEST_F(RingTest, StoreNeverWaitedFor) {
  expectError(kAcquire + kLoad,
              kWait + kMma + kRelease +
                  "%last = arith.subi %n, %c1 : index\n"
                  "%is = arith.cmpi eq, %u, %last : index\n"
                  "scf.if %is {\n" +
                  kStage + "}\n" + kYield,
              "'tile.store_async' op is never waited for");
}

TEST_F(RingTest, TileWrittenAnewWhileAStoreReads) {
  expectError(kAcquire + kLoad,
              kWait + kMma + kStage + "tile.wait_stores pending 1\n" +
                  kRelease + kYield,
              "'tile.to_shared' op overwrites a tile while it is read");
}

TEST_F(RingTest, StoresInAnyOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    runRoles(kAcquire + kLoad,
             kWait + kMma + kStage + "tile.wait_stores\n" + kRelease + kYield,
             seed);
    EXPECT_EQ(errors, "");
  }
}

TEST_F(RingTest, MemoryReusedBeforeUsesAreOver) {
  expectError(kAcquire + kLoad,
              kWait + kMma +
                  "%tile = tile.to_shared %ones reuses %ring : !h, !ring -> "
                  "!tile\n" +
                  kRelease + kYield,
              "'tile.to_shared' op reuses the memory of a ring of which use 0 "
              "is not over");
}

TEST_F(RingTest, AcquireAfterMemoryWasReused) {
  // The third use of %ring begins after the first was released.
  expectError(kAcquire + kLoad +
                  "%is = arith.cmpi eq, %u, %c2 : index\n"
                  "scf.if %is {\n"
                  "  %odd = tile.acquire %other[%c0] : !ring\n}\n",
              kWait + kMma +
                  "%tile = tile.to_shared %ones reuses %other : !h, !ring -> "
                  "!tile\n" +
                  kRelease + kYield,
              "'tile.acquire' op acquires a slot of a ring whose memory is in "
              "use otherwise");
}

TEST_F(RingTest, CopyThatNobodyWaitsFor) {
  expectError(kAcquire + kLoad +
                  "%odd = tile.acquire %other[%u] : !ring\n"
                  "tile.load_async %I[%row, %c0] dims [0, 1] into %odd "
                  "signals %other[%u] : !m, !ring\n",
              kWait + kMma + kRelease + kYield,
              "'tile.acquire' op waits for ever: for use 0 of its ring to be "
              "released, so that use 2 may begin");
}

TEST_F(RingTest, SlotThatNothingIsCopiedTo) {
  expectError(kAcquire + kLoad +
                  "%is = arith.cmpi eq, %u, %c0 : index\n"
                  "scf.if %is {\n"
                  "  %odd = tile.acquire %other[%u] : !ring\n}\n",
              kWait + kMma + kRelease + kYield,
              "'tile.acquire' op gives use 0 of the ring, which nothing is "
              "copied to");
}

TEST_F(RingTest, Deadlock) {
  // Each role waits for the other before it gives what the other waits for.
  expectError("%x = tile.wait %other[%u] : !ring\n" + kAcquire + kLoad +
                  "tile.release %other[%u] : !ring\n",
              kWait + kMma + kRelease +
                  "%odd = tile.acquire %other[%u] : !ring\n"
                  "tile.load_async %I[%c0, %c0] dims [0, 1] into %odd "
                  "signals %other[%u] : !m, !ring\n" +
                  kYield,
              "'tile.wait' op waits for ever: for use 0 of its ring to be "
              "full | in block (0) of this launch, role \"load\"");
  EXPECT_NE(errors.find("role \"compute\" waits here: for use 0 of its ring "
                        "to be full"),
            std::string::npos)
      << errors;
}

TEST_F(RingTest, WaitInAMap) {
  expectError(kAcquire + kLoad,
              "%bad = tile.map ins(%acc : !f) {\n"
              "^bb0(%x: f32, %row: index, %column: index):\n"
              "  %k = tile.wait %other[%c0] : !ring\n"
              "  tile.yield %x : f32\n"
              "} -> !f\n" +
                  kWait + kMma + kRelease + kYield,
              "'tile.wait' op waits for use 0 of its ring to be full; expected "
              "no such wait in a function, a map or scf.forall");
}

TEST_F(RingTest, TwoRolesFillOneRing) {
  expectError(kAcquire + kLoad,
              kWait + kMma + kRelease +
                  "%odd = tile.acquire %ring[%u] : !ring\n" + kYield,
              "'tile.acquire' op acquires a slot of a ring that another role "
              "fills");
}

TEST_F(RingTest, FragmentsInASingleRole) {
  runRoles(kAcquire + kLoad +
               "%f = tile.fill %zero : !f\n"
               "tile.store %f, %O[%c0, %c0] dims [0, 1] : !f, !o\n",
           kWait + kMma + kRelease + kYield, 0);
  EXPECT_EQ(errors, "'tile.fill' op is on fragments, in a role that one thread "
                    "runs");
}

} // namespace
