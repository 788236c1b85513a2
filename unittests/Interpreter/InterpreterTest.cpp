//===- InterpreterTest.cpp - Scalars, memory and plain programs -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Simulation.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>
#include <random>
#include <set>

using namespace fovea;

namespace {

using Vector = std::vector<float>;

class InterpreterTest : public SimulationTest {
protected:
  /// Returns the value of an expression: the ops in `body` on index %n, f32
  /// result %r.
  float evaluate(const std::string &body, int64_t n = 0) {
    std::string text = "func.func @f(%n: index) -> memref<1xf32> {\n"
                       "  %zero = arith.constant 0 : index\n" +
                       body +
                       "\n  %o = memref.alloc() : memref<1xf32>\n"
                       "  memref.store %r, %o[%zero] : memref<1xf32>\n"
                       "  return %o : memref<1xf32>\n}\n";
    auto results = runFloats(text, {}, {n});
    EXPECT_EQ(errors, "") << body;
    return results.empty() ? NAN : results[0][0];
  }

  /// Returns the same for an integer expression of a type.
  int64_t evaluateInt(const std::string &body, const std::string &type) {
    return std::llround(
        evaluate(body + "\n  %f64 = arith.sitofp %i : " + type +
                 " to f64\n  %r = arith.truncf %f64 : f64 to f32"));
  }
};

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

TEST_F(InterpreterTest, FloatsAreRoundedToTheirType) {
  // 2048 + 1 in f16, 256 + 1 in bf16, 2^24 + 1 in f32.
  EXPECT_EQ(evaluate(R"(
    %a = arith.constant 2048.0 : f16
    %b = arith.constant 1.0 : f16
    %c = arith.addf %a, %b : f16
    %r = arith.extf %c : f16 to f32)"),
            2048);
  EXPECT_EQ(evaluate(R"(
    %a = arith.constant 257.0 : f32
    %b = arith.truncf %a : f32 to bf16
    %r = arith.extf %b : bf16 to f32)"),
            256);
  EXPECT_EQ(evaluate(R"(
    %a = arith.constant 16777216.0 : f32
    %b = arith.constant 1.0 : f32
    %c = arith.addf %a, %b : f32
    %r = arith.subf %c, %a : f32)"),
            0);
}

TEST_F(InterpreterTest, IntegersWrap) {
  EXPECT_EQ(evaluateInt(R"(
    %a = arith.constant 127 : i8
    %b = arith.constant 1 : i8
    %i = arith.addi %a, %b : i8)",
                        "i8"),
            -128);
  // -1 as unsigned: 255 / 2.
  EXPECT_EQ(evaluateInt(R"(
    %a = arith.constant -1 : i8
    %b = arith.constant 2 : i8
    %i = arith.divui %a, %b : i8)",
                        "i8"),
            127);
  EXPECT_EQ(evaluateInt(R"(
    %a = arith.constant -7 : i32
    %b = arith.constant 2 : i32
    %i = arith.floordivsi %a, %b : i32)",
                        "i32"),
            -4);
  EXPECT_EQ(evaluateInt(R"(
    %a = arith.constant -16 : i16
    %b = arith.constant 2 : i16
    %i = arith.shrui %a, %b : i16)",
                        "i16"),
            (65536 - 16) / 4);
}

TEST_F(InterpreterTest, ExtendedProductsHaveTwoHalves) {
  EXPECT_EQ(evaluateInt(R"(
    %a = arith.constant -1 : i32
    %b = arith.constant 16 : i32
    %low, %i = arith.mului_extended %a, %b : i32)",
                        "i32"),
            15);
  EXPECT_EQ(evaluateInt(R"(
    %a = arith.constant -1 : i32
    %b = arith.constant 16 : i32
    %low, %i = arith.mulsi_extended %a, %b : i32)",
                        "i32"),
            -1);
}

TEST_F(InterpreterTest, TruthIsOne) {
  EXPECT_EQ(evaluate(R"(
    %a = arith.cmpi eq, %zero, %zero : index
    %r = arith.uitofp %a : i1 to f32)"),
            1);
  EXPECT_EQ(evaluate(R"(
    %a = arith.cmpi ult, %zero, %n : index
    %b = arith.extui %a : i1 to i32
    %r = arith.sitofp %b : i32 to f32)",
                     -1),
            1);
  EXPECT_EQ(evaluate(R"(
    %x = arith.constant 0x7FC00000 : f32
    %a = arith.cmpf une, %x, %x : f32
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %r = arith.select %a, %one, %two : f32)"),
            1);
}

TEST_F(InterpreterTest, ControlFlow) {
  // The sum of 0 to 9, by for; the first power of two of at least 100, by
  // while.
  EXPECT_EQ(evaluate(R"(
    %c10 = arith.constant 10 : index
    %c1 = arith.constant 1 : index
    %sum = scf.for %i = %zero to %c10 step %c1 iter_args(%s = %zero) -> index {
      %t = arith.addi %s, %i : index
      scf.yield %t : index
    }
    %c100 = arith.constant 100 : index
    %power = scf.while (%p = %c1) : (index) -> index {
      %less = arith.cmpi slt, %p, %c100 : index
      scf.condition(%less) %p : index
    } do {
    ^bb0(%p: index):
      %q = arith.addi %p, %p : index
      scf.yield %q : index
    }
    %d = arith.subi %power, %sum : index
    %nonzero = arith.cmpi ne, %n, %zero : index
    %e = scf.if %nonzero -> index {
      scf.yield %d : index
    } else {
      scf.yield %zero : index
    }
    %i = arith.index_cast %e : index to i64
    %r = arith.sitofp %i : i64 to f32)",
                     1),
            128 - 45);
}

TEST_F(InterpreterTest, AffineMaps) {
  EXPECT_EQ(evaluate(R"(
    %a = affine.apply affine_map<(d0)[s0] -> ((d0 + 5) floordiv 3 * 7 + d0 mod 4 - s0)>(%n)[%n]
    %b = affine.min affine_map<(d0) -> (d0, 3)>(%n)
    %c = arith.addi %a, %b : index
    %i = arith.index_cast %c : index to i64
    %r = arith.sitofp %i : i64 to f32)",
                     10),
            35 + 2 - 10 + 3);
}

TEST_F(InterpreterTest, FaultyScalars) {
  auto expectError = [&](const char *body, const char *message) {
    runFloats(std::string("func.func @f(%n: index) {\n") + body +
                  "\n  return\n}\n",
              {}, {0});
    EXPECT_NE(errors.find(message), std::string::npos) << errors;
  };
  expectError(R"(%a = memref.alloc() : memref<4xf32>
    %c4 = arith.constant 4 : index
    %b = memref.load %a[%c4] : memref<4xf32>)",
              "'memref.load' op is out of bounds: index 4 of dimension 0 of "
              "size 4");
  expectError(R"(%a = memref.alloc() : memref<4xf32>
    memref.dealloc %a : memref<4xf32>
    %b = memref.load %a[%n] : memref<4xf32>)",
              "'memref.load' op accesses memory that was deallocated");
  expectError(R"(%a = arith.cmpi ne, %n, %n : index
    cf.assert %a, "sizes differ")",
              "'cf.assert' op fails: sizes differ");
  expectError(R"(%a = memref.alloc() : memref<4xf32>
    %b = memref.rank %a : memref<4xf32>)",
              "'memref.rank' op is not known to the interpreter");
}

TEST_F(InterpreterTest, UsesOfWhatHasNoValue) {
  auto expectError = [&](const std::string &body, const char *message) {
    runFloats("func.func @f(%n: index) {\n" + body + "\n  return\n}\n", {},
              {0});
    EXPECT_EQ(errors, std::string(message) + " | used here");
  };
  // A number computed from such a number also has no value.
  auto expectErrorAt = [&](const char *body, const char *type,
                           const char *message) {
    expectError(std::string(body) + "\n%same = arith.cmpi eq, %a, %a : " +
                    type + "\ncf.assert %same, \"no\"",
                message);
  };
  expectErrorAt("%a = arith.divsi %n, %n : index", "index",
                "'arith.divsi' op divides by 0");
  expectErrorAt(R"(%b = arith.constant -128 : i8
    %c = arith.constant -1 : i8
    %a = arith.remsi %b, %c : i8)",
                "i8", "'arith.remsi' op divides -128 by -1, which overflows");
  expectErrorAt(R"(%b = arith.constant 8 : i8
    %a = arith.shli %b, %b : i8)",
                "i8", "'arith.shli' op shifts 8 bits by 8");
  expectErrorAt(R"(%b = arith.constant 3.0e9 : f32
    %a = arith.fptosi %b : f32 to i32)",
                "i32",
                "'arith.fptosi' op converts 3.000000e+09, which 'i32' does not "
                "hold");
  const std::string division = "%a = arith.divsi %n, %n : index\n";
  expectError(division + "%m = memref.alloc() : memref<4xf32>\n"
                         "%b = memref.load %m[%a] : memref<4xf32>",
              "'arith.divsi' op divides by 0");
  expectError(division + "%m = memref.alloc() : memref<4xindex>\n"
                         "memref.store %a, %m[%n] : memref<4xindex>",
              "'arith.divsi' op divides by 0");
  expectError(division + "%c = arith.constant 1 : index\n"
                         "scf.for %i = %n to %a step %c {}",
              "'arith.divsi' op divides by 0");
  // The number goes through a select that chooses it, or has it for its
  // condition.
  expectErrorAt((division + "%t = arith.cmpi eq, %n, %n : index\n"
                            "%b = arith.select %t, %a, %n : index")
                    .c_str(),
                "index", "'arith.divsi' op divides by 0");
  expectError(division + "%t = arith.cmpi eq, %a, %n : index\n"
                         "%b = arith.select %t, %t, %t : i1\n"
                         "cf.assert %b, \"no\"",
              "'arith.divsi' op divides by 0");
}

TEST_F(InterpreterTest, WhatHasNoValueMayBeDiscarded) {
  // The number goes through a select, after arithmetic, is carried by a loop or
  // yielded by a branch; and the same ops have a value later on.
  EXPECT_EQ(evaluate(R"(
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %none = arith.constant 0.0 : f32
    %r = scf.for %i = %zero to %c3 step %c1 iter_args(%sum = %none) -> f32 {
      %a = arith.remsi %c3, %i : index
      %b = arith.addi %a, %c1 : index
      %t = arith.cmpi eq, %i, %zero : index
      %c = arith.select %t, %c1, %b : index
      %d = arith.index_cast %c : index to i32
      %e = arith.sitofp %d : i32 to f32
      %next = arith.addf %sum, %e : f32
      scf.yield %next : f32
    })"),
            1 + 1 + 2);
  EXPECT_EQ(evaluate(R"(
    %a = arith.divsi %n, %n : index
    %c1 = arith.constant 1 : index
    %x:2 = scf.for %i = %zero to %c1 step %c1 iter_args(%b = %a, %c = %c1) -> (index, index) {
      %t = arith.cmpi eq, %i, %zero : index
      %d = scf.if %t -> index {
        scf.yield %b : index
      } else {
        scf.yield %c : index
      }
      scf.yield %d, %c : index, index
    }
    %y = arith.index_cast %x#1 : index to i32
    %r = arith.sitofp %y : i32 to f32)"),
            1);
}

TEST_F(InterpreterTest, ViewsOfMemory) {
  Vector data(24);
  std::iota(data.begin(), data.end(), 0);
  auto results = runFloats(R"(
    func.func @f(%m: memref<4x6xf32>) -> (memref<2x3xf32, strided<[12, 2], offset: 7>>, memref<6x4xf32, strided<[1, 6]>>, memref<2x2x6xf32>) {
      %s = memref.subview %m[1, 1] [2, 3] [2, 2] : memref<4x6xf32> to memref<2x3xf32, strided<[12, 2], offset: 7>>
      %t = memref.transpose %m (i, j) -> (j, i) : memref<4x6xf32> to memref<6x4xf32, strided<[1, 6]>>
      %c = memref.collapse_shape %m [[0, 1]] : memref<4x6xf32> into memref<24xf32>
      %e = memref.expand_shape %c [[0, 1, 2]] output_shape [2, 2, 6] : memref<24xf32> into memref<2x2x6xf32>
      return %s, %t, %e : memref<2x3xf32, strided<[12, 2], offset: 7>>, memref<6x4xf32, strided<[1, 6]>>, memref<2x2x6xf32>
    })",
                           {{{4, 6}, data}});
  ASSERT_EQ(errors, "");
  EXPECT_EQ(results[0], (Vector{7, 9, 11, 19, 21, 23}));
  EXPECT_EQ(results[1][1], 6);
  EXPECT_EQ(results[1][4], 1);
  EXPECT_EQ(results[2], data);
}

//===----------------------------------------------------------------------===//
// Plain programs
//===----------------------------------------------------------------------===//

/// Row softmax of q k^T times v in blocks of 16 rows and 16 keys, as the tile
/// level has it before layouts; rows and keys need not be whole tiles.
constexpr const char *kAttention = R"(
!in = memref<?x16xf32, strided<[?, 1], offset: ?>>
func.func @f(%q: memref<?x16xf32>, %k: memref<?x16xf32>, %v: memref<?x16xf32>, %rows: index, %keys: index) -> memref<?x16xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %o = memref.alloc(%rows) : memref<?x16xf32>
  %tiles = arith.ceildivsi %rows, %c16 : index
  tile.launch grid(%tiles) warps 1 ins(%q, %k, %v : memref<?x16xf32>, memref<?x16xf32>, memref<?x16xf32>) outs(%o : memref<?x16xf32>) {
  ^bb0(%r: index, %Q: !in, %K: !in, %V: !in, %O: !in):
    %row = arith.muli %r, %c16 : index
    %qt = tile.load %Q[%row, %c0] dims [0, 1] : !in -> !tile.fragment<16x16xf32>
    %acc0 = tile.fill %zero : !tile.fragment<16x16xf32>
    %max0 = tile.fill %minf : !tile.fragment<16xf32>
    %sum0 = tile.fill %zero : !tile.fragment<16xf32>
    %x:3 = scf.for %j = %c0 to %keys step %c16 iter_args(%acc = %acc0, %max = %max0, %sum = %sum0) -> (!tile.fragment<16x16xf32>, !tile.fragment<16xf32>, !tile.fragment<16xf32>) {
      %kt = tile.load %K[%j, %c0] dims [0, 1] : !in -> !tile.shared<16x16xf32>
      %s = tile.mma %qt, %kt transpose_b : !tile.fragment<16x16xf32>, !tile.shared<16x16xf32> -> !tile.fragment<16x16xf32>
      %masked = tile.map ins(%s : !tile.fragment<16x16xf32>) {
      ^bb1(%e: f32, %a: index, %b: index):
        %key = arith.addi %j, %b : index
        %in = arith.cmpi slt, %key, %keys : index
        %m = arith.select %in, %e, %minf : f32
        tile.yield %m : f32
      } -> !tile.fragment<16x16xf32>
      %max1 = tile.reduce max %masked, %max dim 1 : !tile.fragment<16x16xf32> -> !tile.fragment<16xf32>
      %alpha = tile.map ins(%max, %max1 : !tile.fragment<16xf32>, !tile.fragment<16xf32>) {
      ^bb1(%e: f32, %f: f32, %a: index):
        %d = arith.subf %e, %f : f32
        %p = math.exp %d : f32
        tile.yield %p : f32
      } -> !tile.fragment<16xf32>
      %p = tile.map ins(%masked : !tile.fragment<16x16xf32>) rows(%max1 : !tile.fragment<16xf32>) {
      ^bb1(%e: f32, %f: f32, %a: index, %b: index):
        %d = arith.subf %e, %f : f32
        %p = math.exp %d : f32
        tile.yield %p : f32
      } -> !tile.fragment<16x16xf32>
      %scaled = tile.map ins(%sum, %alpha : !tile.fragment<16xf32>, !tile.fragment<16xf32>) {
      ^bb1(%e: f32, %f: f32, %a: index):
        %d = arith.mulf %e, %f : f32
        tile.yield %d : f32
      } -> !tile.fragment<16xf32>
      %sum1 = tile.reduce add %p, %scaled dim 1 : !tile.fragment<16x16xf32> -> !tile.fragment<16xf32>
      %acc1 = tile.map ins(%acc : !tile.fragment<16x16xf32>) rows(%alpha : !tile.fragment<16xf32>) {
      ^bb1(%e: f32, %f: f32, %a: index, %b: index):
        %d = arith.mulf %e, %f : f32
        tile.yield %d : f32
      } -> !tile.fragment<16x16xf32>
      %vt = tile.load %V[%j, %c0] dims [0, 1] : !in -> !tile.shared<16x16xf32>
      %acc2 = tile.mma %p, %vt into %acc1 : !tile.fragment<16x16xf32>, !tile.shared<16x16xf32>, !tile.fragment<16x16xf32> -> !tile.fragment<16x16xf32>
      scf.yield %acc2, %max1, %sum1 : !tile.fragment<16x16xf32>, !tile.fragment<16xf32>, !tile.fragment<16xf32>
    }
    %out = tile.map ins(%x#0 : !tile.fragment<16x16xf32>) rows(%x#2 : !tile.fragment<16xf32>) {
    ^bb1(%e: f32, %f: f32, %a: index, %b: index):
      %d = arith.divf %e, %f : f32
      tile.yield %d : f32
    } -> !tile.fragment<16x16xf32>
    tile.store %out, %O[%row, %c0] dims [0, 1] : !tile.fragment<16x16xf32>, !in
  }
  return %o : memref<?x16xf32>
})";

Floats makeTensor(int64_t rows, int64_t columns, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Floats tensor = {{rows, columns}, Vector(rows * columns)};
  for (float &element : tensor.data)
    element = normal(random);
  return tensor;
}

TEST_F(InterpreterTest, PlainAttention) {
  for (auto [rows, keys] :
       {std::pair(16, 16), std::pair(37, 53), std::pair(1, 1)})
    for (uint64_t seed : {0, 1, 2}) {
      Floats q = makeTensor(rows, 16, 1), k = makeTensor(keys, 16, 2),
             v = makeTensor(keys, 16, 3);
      auto results = runFloats(kAttention, {q, k, v}, {rows, keys}, {seed});
      ASSERT_EQ(errors, "");
      for (int64_t i = 0; i < rows; ++i) {
        std::vector<double> sums(17, 0);
        for (int64_t j = 0; j < keys; ++j) {
          double score = 0;
          for (int64_t d = 0; d < 16; ++d)
            score += double(q.data[i * 16 + d]) * k.data[j * 16 + d];
          double weight = std::exp(score);
          sums[16] += weight;
          for (int64_t d = 0; d < 16; ++d)
            sums[d] += weight * v.data[j * 16 + d];
        }
        for (int64_t d = 0; d < 16; ++d)
          EXPECT_NEAR(results[0][i * 16 + d], sums[d] / sums[16], 2e-6);
      }
    }
}

/// Returns a launch of `grid` blocks with `body`, on %I: ?x8 and %O: ?x8, 32
/// threads.
std::string makeLaunch(const std::string &body, const char *warps = "1") {
  return llvm::formatv(R"(
!m = memref<?x8xf32, strided<[?, 1], offset: ?>>
!t = !tile.shared<8x8xf32>
!f = !tile.fragment<8x8xf32>
func.func @f(%i: memref<?x8xf32>, %grid: index) -> memref<16x8xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %cm1 = arith.constant -1 : index
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<16x8xf32>
  %o = memref.cast %a : memref<16x8xf32> to memref<?x8xf32>
  tile.launch grid(%grid) warps {0} ins(%i : memref<?x8xf32>) outs(%o : memref<?x8xf32>) {{
  ^bb0(%b: index, %I: !m, %O: !m):
    {1}
  }
  return %a : memref<16x8xf32>
})",
                       warps, body);
}

TEST_F(InterpreterTest, LoadsGiveZerosAndStoresClip) {
  Floats ones = {{5, 8}, Vector(40, 1)};
  auto results = runFloats(makeLaunch(R"(
    %t = tile.load %I[%c2, %c1] dims [0, 1] : !m -> !f
    tile.store %t, %O[%c0, %c0] dims [0, 1] : !f, !m
    tile.store %t, %O[%c8, %c1] dims [0, 1] valid(%c1) : !f, !m)"),
                           {ones}, {1});
  ASSERT_EQ(errors, "");
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 8; ++j)
      EXPECT_EQ(results[0][i * 8 + j], i < 3 && j < 7 ? 1 : 0);
  // Only one row, columns from 1 on.
  EXPECT_TRUE(std::isnan(results[0][64]));
  EXPECT_EQ(results[0][65], 1);
  EXPECT_EQ(results[0][71], 1);
  EXPECT_TRUE(std::isnan(results[0][73]));
}

TEST_F(InterpreterTest, LoadsTranspose) {
  Floats input = makeTensor(8, 8, 1);
  auto results = runFloats(makeLaunch(R"(
    %t = tile.load %I[%c0, %c0] dims [1, 0] : !m -> !f
    tile.store %t, %O[%c0, %c0] dims [0, 1] : !f, !m)"),
                           {input}, {1});
  ASSERT_EQ(errors, "");
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 8; ++j)
      EXPECT_EQ(results[0][i * 8 + j], input.data[j * 8 + i]);
}

// Blocks add in their order, in whatever order they run.
TEST_F(InterpreterTest, AddsToWhatIsThere) {
  std::string body = R"(
    %t = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !f
    %s = tile.to_shared %t transposed : !f -> !t
    %u = tile.from_shared %s : !t -> !f
    tile.store add %u, %O[%c0, %c0] dims [0, 1] : !f, !m)";
  std::string text = makeLaunch(body);
  text.insert(text.find("  %o = "), R"(
  scf.for %x = %c0 to %c8 step %c1 {
    scf.for %y = %c0 to %c8 step %c1 {
      memref.store %zero, %a[%x, %y] : memref<16x8xf32>
    }
  }
)");
  Floats input = makeTensor(8, 8, 1);
  auto first = runFloats(text, {input}, {4});
  ASSERT_EQ(errors, "");
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 8; ++j)
      EXPECT_NEAR(first[0][i * 8 + j], 4 * input.data[j * 8 + i], 1e-6);
  for (uint64_t seed = 1; seed < 6; ++seed) {
    auto other = runFloats(text, {input}, {4}, {seed});
    EXPECT_TRUE(
        std::equal(other[0].begin(), other[0].begin() + 64, first[0].begin()));
  }
}

class FaultTest : public InterpreterTest {
protected:
  void expectError(const std::string &body, const std::string &message,
                   int64_t grid = 1, const SimulationOptions &options = {},
                   const char *warps = "1") {
    Floats ones = {{16, 8}, Vector(128, 1)};
    runFloats(makeLaunch(body, warps), {ones}, {grid}, options);
    EXPECT_EQ(errors.substr(0, message.size()), message) << errors;
  }
};

TEST_F(FaultTest, NegativeIndex) {
  expectError("%t = tile.load %I[%c0, %cm1] dims [0, 1] : !m -> !t",
              "'tile.load' op starts at index -1 of dimension 1; indices must "
              "not be negative | in block (0) of this launch");
}

TEST_F(FaultTest, ElementThatIsAddedTo) {
  expectError(R"(
    %t = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !f
    tile.store add %t, %O[%c0, %c0] dims [0, 1] : !f, !m
    tile.store %t, %O[%c0, %c0] dims [0, 1] : !f, !m)",
              "'tile.store' op writes an element of global memory that block "
              "(0) of the same launch added to");
  expectError(R"(
    %t = tile.load %O[%c0, %c0] dims [0, 1] : !m -> !f
    tile.store add %t, %O[%c0, %c0] dims [0, 1] : !f, !m)",
              "'tile.store' op adds to an element of global memory that block "
              "(0) of the same launch read");
}

TEST_F(FaultTest, ElementOfTwoBlocks) {
  expectError(R"(
    %t = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !f
    %row = arith.muli %b, %c2 : index
    tile.store %t, %O[%row, %c0] dims [0, 1] : !f, !m)",
              "'tile.store' op writes an element of global memory that block "
              "(0) of the same launch wrote | in block (1) of this launch",
              2);
  expectError(R"(
    %t = tile.load %O[%c0, %c0] dims [0, 1] : !m -> !f
    %row = arith.muli %b, %c8 : index
    tile.store %t, %O[%row, %c0] dims [0, 1] : !f, !m)",
              "'tile.load' op reads an element of global memory that block (0) "
              "of the same launch wrote",
              2);
  std::string body = R"(
    %first = arith.cmpi eq, %b, %c0 : index
    scf.if %first {
      %z = tile.fill %zero : !f
      tile.store %z, %O[%c0, %c0] dims [0, 1] : !f, !m
    } else {
      %t = tile.load %O[%c0, %c0] dims [0, 1] : !m -> !f
    })";
  // In another order of blocks, the fault is also found.
  std::set<std::string> found;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    runFloats(makeLaunch(body), {{{16, 8}, Vector(128, 1)}}, {3}, {seed});
    found.insert(errors.substr(0, errors.find(" |")));
  }
  EXPECT_EQ(found,
            (std::set<std::string>{
                "'tile.load' op reads an element of global memory that block "
                "(0) of the same launch wrote",
                "'tile.store' op writes an element of global memory that block "
                "(1) of the same launch read",
                "'tile.store' op writes an element of global memory that block "
                "(2) of the same launch read",
                "'tile.store' op writes an element of global memory that "
                "several blocks of the same launch read"}));
}

TEST_F(FaultTest, TileThatWasWrittenAnew) {
  expectError(R"(
    %z = tile.fill %zero : !f
    %none = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !t
    %last = scf.for %j = %c0 to %c2 step %c1 iter_args(%old = %none) -> !t {
      %t = tile.load %I[%j, %c0] dims [0, 1] : !m -> !t
      %again = arith.cmpi eq, %j, %c1 : index
      scf.if %again {
        %s = tile.mma %z, %old : !f, !t -> !f
      }
      scf.yield %t : !t
    })",
              "'tile.mma' op reads a tile in shared memory that was written "
              "anew since");
}

TEST_F(FaultTest, LayoutOfOtherThreads) {
  expectError(R"(
    %t = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !tile.fragment<8x8xf32, #tile.layout<8x8, registers = [], threads = [8:1d1, 8:1d0]>>)",
              "'tile.load' op is on a fragment of 64 threads, in a role of 32");
}

TEST_F(FaultTest, SharedMemoryExceeded) {
  SimulationOptions options;
  options.gpu.sharedPerBlock = 1279;
  std::string body = R"(
    %t = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !t
    %u = tile.load %I[%c8, %c0] dims [0, 1] : !m -> !t)";
  expectError(body,
              "'tile.launch' op needs 1280 bytes of shared memory a block, of "
              "at most 1279",
              1, options);
  options.gpu.sharedPerBlock = 1280;
  expectError(body, "", 1, options);
}

TEST_F(FaultTest, RegistersExceeded) {
  std::string body = R"(
    %t = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !tile.fragment<64x64xf32>
    %u = tile.load %I[%c8, %c0] dims [0, 1] : !m -> !tile.fragment<64x64xf32>
    tile.store %t, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, !m
    tile.store %u, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, !m)";
  expectError(body,
              "'tile.launch' op needs at least 256 registers a thread for its "
              "fragments, of at most 255 | live here");
  expectError(body, "", 1, {}, "2");
}

TEST_F(FaultTest, RegistersOfMapsThatAreReadByElements) {
  auto makeBody = [](llvm::StringRef end) {
    return llvm::formatv(R"(
    %t = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !tile.fragment<64x64xf32>
    %u = tile.map ins(%t : !tile.fragment<64x64xf32>) {{
    ^bb0(%x: f32, %r: index, %s: index):
      %y = arith.mulf %x, %x : f32
      tile.yield %y : f32
    } -> !tile.fragment<64x64xf32>
    %v = tile.map ins(%t, %u : !tile.fragment<64x64xf32>, !tile.fragment<64x64xf32>) {{
    ^bb0(%x: f32, %y: f32, %r: index, %s: index):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    } -> !tile.fragment<64x64xf32>
    {0}
    tile.store %v, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x64xf32>, !m)",
                         end)
        .str();
  };
  expectError(makeBody(""), "");
  expectError(makeBody("tile.store %u, %O[%c0, %c0] dims [0, 1] : "
                       "!tile.fragment<64x64xf32>, !m"),
              "'tile.launch' op needs at least 256 registers a thread for its "
              "fragments, of at most 255 | live here");
}

TEST_F(FaultTest, RegistersOfARoleExceeded) {
  auto makeBody = [](int64_t registers) {
    return llvm::formatv(R"(
    tile.roles {{
      tile.role "first" warps 4 registers 24 {{
      }
      tile.role "second" warps 4 registers {0} {{
        %t = tile.load %I[%c0, %c0] dims [0, 1] : !m -> !tile.fragment<64x128xf32>
        tile.store %t, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !m
      }
    })",
                         registers)
        .str();
  };
  expectError(makeBody(56),
              "'tile.role' op needs at least 64 registers a thread for its "
              "fragments, of at most 56 | live here");
  expectError(makeBody(64), "");
}

TEST_F(FaultTest, MoreRegistersGrantedThanThereAre) {
  expectError(R"(
    tile.roles {
      tile.role "first" warps 8 registers 240 {
      }
      tile.role "second" warps 4 registers 40 {
      }
    })",
              "'tile.launch' op grants its roles 66560 registers, of 65536");
}

TEST_F(FaultTest, TooManyThreads) {
  expectError("", "'tile.launch' op has 1056 threads a block, more than 1024",
              1, {}, "33");
}

} // namespace
