//===- CostModelTest.cpp - Counts and choices of the models ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/CostModel.h"
#include "fovea/Analysis/ScheduleModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {

class CostModelTest : public ::testing::Test {
protected:
  CostModelTest() {
    context.loadDialect<AttnDialect, arith::ArithDialect, func::FuncDialect,
                        linalg::LinalgDialect, tensor::TensorDialect>();
  }

  func::FuncOp parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    return *module->getOps<func::FuncOp>().begin();
  }

  Cost estimate(StringRef text, ArrayRef<SmallVector<int64_t>> shapes,
                KernelForm form, int64_t passes = 1) {
    func::FuncOp function = parse(text);
    FailureOr<Cost> cost = estimateCost(
        function, shapes, machine::getTargetOrDefault(function), form, passes);
    EXPECT_TRUE(succeeded(cost));
    return succeeded(cost) ? *cost : Cost();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr StringLiteral kGraph = R"(
func.func @f(%q: tensor<2x4x?x64xf32>, %k: tensor<2x2x?x64xf32>, %v: tensor<2x2x?x32xf32>) -> tensor<2x4x?x32xf32> {
  %s = attn.scores %q, %k : tensor<2x4x?x64xf32>, tensor<2x2x?x64xf32> -> tensor<2x4x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<2x4x?x?xf32>
  %p = attn.softmax %t : tensor<2x4x?x?xf32> -> tensor<2x4x?x?xf32>
  %o = attn.values %p, %v : tensor<2x4x?x?xf32>, tensor<2x2x?x32xf32> -> tensor<2x4x?x32xf32>
  return %o : tensor<2x4x?x32xf32>
})";

constexpr StringLiteral kFused = R"(
func.func @f(%q: tensor<2x4x?x64xf32>, %k: tensor<2x2x?x64xf32>, %v: tensor<2x2x?x32xf32>) -> tensor<2x4x?x32xf32> {
  %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<2x4x?x64xf32>, tensor<2x2x?x64xf32>, tensor<2x2x?x32xf32> -> tensor<2x4x?x32xf32>
  return %o : tensor<2x4x?x32xf32>
})";

constexpr StringLiteral kSmall = R"(
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128,
    vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900,
    shared_memory = 233472, matrix_peak = 989000>} {
func.func @f(%q: tensor<2x4x?xDxf16>, %k: tensor<2x2x?xDxf16>) -> tensor<2x4x?xDxf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<2x4x?xDxf16>, tensor<2x2x?xDxf16>, tensor<2x2x?xDxf16> -> tensor<2x4x?xDxf16>
  return %o : tensor<2x4x?xDxf16>
}})";

constexpr StringLiteral kChain = R"(
func.func @f(%x: tensor<?x512xf32>, %r: tensor<?x512xf32>, %seed: i64) -> tensor<?x512xf32> {
  %n = attn.layer_norm %x epsilon(1.0e-5) : tensor<?x512xf32>
  %d = attn.dropout %n, 0.1 seed(%seed, %seed) : tensor<?x512xf32>
  %y = attn.residual_add %d, %r : tensor<?x512xf32>, tensor<?x512xf32>
  return %y : tensor<?x512xf32>
})";

constexpr StringLiteral kCausal = R"(
func.func @f(%q: tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32> -> tensor<1x4x?x64xf32>
  return %o : tensor<1x4x?x64xf32>
})";

SmallVector<SmallVector<int64_t>> attentionShapes(int64_t queries,
                                                  int64_t keys) {
  return {{2, 4, queries, 64}, {2, 2, keys, 64}, {2, 2, keys, 32}};
}

/// Returns `kSmall` with a head dim.
std::string makeSmall(int64_t dim) {
  std::string text = kSmall.str();
  for (size_t at; (at = text.find("xDx")) != std::string::npos;)
    text.replace(at + 1, 1, std::to_string(dim));
  return text;
}

TEST_F(CostModelTest, ProductsOfSmallFloatsAreForTensorCores) {
  Cost cost = estimate(makeSmall(64), {{2, 4, 100, 64}, {2, 2, 200, 64}},
                       KernelForm::Fused);
  ASSERT_EQ(cost.kernels.size(), 1u);
  EXPECT_EQ(cost.kernels[0].matrixFlops, 8.0 * 100 * 200 * 2 * (64 + 64));
  EXPECT_GT(cost.kernels[0].flops, cost.kernels[0].matrixFlops);
  EXPECT_GT(cost.kernels[0].seconds, 0);

  cost = estimate(kGraph, attentionShapes(100, 200), KernelForm::Unfused);
  for (const KernelCost &kernel : cost.kernels)
    EXPECT_EQ(kernel.matrixFlops, 0) << kernel.name;
}

TEST_F(CostModelTest, ProductsOfHostsAreByPairsOfBF16) {
  auto estimateOn = [&](StringRef arch, StringRef peak, StringRef type) {
    std::string text = "module attributes {machine.target = "
                       "#machine.target<\"host\", arch = \"" +
                       arch.str() +
                       "\", cores = 2, vector_bytes = 64, vector_registers = "
                       "32, fast_memory = 49152, near_memory = 2097152, "
                       "bandwidth = 16000, peak = 300" +
                       peak.str() + ">} {" +
                       StringRef(makeSmall(64)).split("} {").second.str();
    for (size_t at = 0; (at = text.find("xf16", at)) != std::string::npos; ++at)
      text.replace(at + 1, 3, type);
    return estimate(text, {{2, 4, 100, 64}, {2, 2, 200, 64}}, KernelForm::Fused)
        .kernels.at(0);
  };
  KernelCost tiles = estimateOn("amx", ", matrix_peak = 4000", "bf16");
  EXPECT_EQ(tiles.matrixFlops, 8.0 * 100 * 200 * 2 * (64 + 64));
  EXPECT_EQ(tiles.matrixProducts, 1);
  KernelCost parts = estimateOn("amx", ", matrix_peak = 4000", "f16");
  EXPECT_EQ(parts.matrixFlops, tiles.matrixFlops);
  EXPECT_EQ(parts.matrixProducts, 3);
  EXPECT_GT(parts.seconds, tiles.seconds);
  KernelCost dots = estimateOn("avx512_bf16", ", matrix_peak = 600", "bf16");
  EXPECT_EQ(dots.matrixFlops, tiles.matrixFlops);
  EXPECT_GT(dots.seconds, tiles.seconds);
  EXPECT_EQ(estimateOn("avx512_bf16", ", matrix_peak = 600", "f16").matrixFlops,
            0);
  KernelCost vectors = estimateOn("avx512", "", "bf16");
  EXPECT_EQ(vectors.matrixFlops, 0);
  EXPECT_LT(tiles.seconds, vectors.seconds);
}

TEST_F(CostModelTest, PartsOfKeysAreMerged) {
  Cost cost = estimate(R"(
func.func @f(%p: tensor<5x2x4x?x32xf32>, %l: tensor<5x2x4x?xf64>) -> tensor<2x4x?x32xf16> {
  %o = attn.merge %p, %l : tensor<5x2x4x?x32xf32>, tensor<5x2x4x?xf64> -> tensor<2x4x?x32xf16>
  return %o : tensor<2x4x?x32xf16>
})",
                       {{5, 2, 4, 7, 32}, {5, 2, 4, 7}}, KernelForm::Fused);
  constexpr double kRows = 2 * 4 * 7;
  ASSERT_EQ(cost.kernels.size(), 1u);
  EXPECT_EQ(cost.kernels[0].flops, 5 * kRows * (2 * 32 + 3));
  EXPECT_EQ(cost.kernels[0].bytes, 5 * kRows * (32 * 4 + 8) + kRows * 32 * 2);

  Cost whole = estimate(kFused, attentionShapes(7, 200), KernelForm::Fused);
  std::string text = kFused.str();
  text.insert(text.find("linear") + 6, ", split = 5");
  cost = estimate(text, attentionShapes(7, 200), KernelForm::Fused);
  ASSERT_EQ(whole.kernels.size(), 1u);
  ASSERT_EQ(cost.kernels.size(), 2u);
  EXPECT_EQ(cost.kernels[1].flops, 5 * kRows * (2 * 32 + 3));
  EXPECT_EQ(cost.kernels[1].bytes, 5 * kRows * (32 * 4 + 8));
  EXPECT_EQ(cost.kernels[0].bytes,
            whole.kernels[0].bytes + cost.kernels[1].bytes);
}

TEST_F(CostModelTest, WhatAttentionIsTiledWithIsPartOfIt) {
  func::FuncOp function = parse(R"(
func.func @f(%x: tensor<1x2x?x64xf32>, %y: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x64xf32>, %r: tensor<1x2x?x64xf32>) -> tensor<1x2x?x64xf32> {
  %q = attn.rms_norm %x epsilon(1.0e-6) : tensor<1x2x?x64xf32>
  %k = attn.rms_norm %y epsilon(1.0e-6) : tensor<1x2x?x64xf32>
  %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32> -> tensor<1x2x?x64xf32>
  %z = attn.residual_add %o, %r : tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>
  return %z : tensor<1x2x?x64xf32>
})");
  SmallVector<SmallVector<int64_t>> shapes(4, {1, 2, 96, 64});
  const double bytes = 2.0 * 96 * 64 * 4;
  auto estimate = [&](ArrayRef<StringRef> names) {
    llvm::DenseSet<Operation *> tiled;
    for (Operation &op : function.front())
      if (llvm::is_contained(names, op.getName().getStringRef()))
        tiled.insert(&op);
    FailureOr<Cost> cost =
        estimateCost(function, shapes, machine::getTargetOrDefault(function),
                     KernelForm::Fused, /*passes=*/1, tiled);
    EXPECT_TRUE(succeeded(cost));
    return succeeded(cost) ? *cost : Cost();
  };
  Cost apart = estimate({});
  ASSERT_EQ(apart.kernels.size(), 4u);
  EXPECT_EQ(apart.bytes(), 11 * bytes);

  Cost sum = estimate({"attn.residual_add"});
  ASSERT_EQ(sum.kernels.size(), 3u);
  EXPECT_EQ(sum.kernels[2].name, "attention+attn.residual_add");
  EXPECT_EQ(sum.kernels[2].bytes, 5 * bytes);
  EXPECT_EQ(sum.flops(), apart.flops());

  Cost together = estimate({"attn.residual_add", "attn.rms_norm"});
  ASSERT_EQ(together.kernels.size(), 1u);
  EXPECT_EQ(together.bytes(), 5 * bytes);
  // Both tiles of queries norm all keys.
  EXPECT_EQ(together.flops(), apart.flops() + apart.kernels[1].flops);
}

TEST_F(CostModelTest, WhatDoesNotFitAGpuHasItsScoresInMemory) {
  Cost cost = estimate(makeSmall(20), {{2, 4, 100, 20}, {2, 2, 200, 20}},
                       KernelForm::Fused);
  ASSERT_EQ(cost.kernels.size(), 3u);
  double count = 8.0 * 100 * 200;
  EXPECT_EQ(cost.kernels[0].name, "attention: scores");
  EXPECT_EQ(cost.kernels[0].flops, count * (2 * 20 + 1));
  EXPECT_EQ(cost.kernels[0].matrixFlops, count * 2 * 20);
  EXPECT_EQ(cost.kernels[0].bytes,
            count * 4 + 2 * (8.0 * 100 * 20 + 4.0 * 200 * 20));
  EXPECT_EQ(cost.kernels[1].bytes, 2 * count * 4);
  EXPECT_EQ(cost.kernels[2].flops, count * 2 * 20);
}

TEST_F(CostModelTest, UnfusedGraphCountsEveryKernel) {
  Cost cost = estimate(kGraph, attentionShapes(100, 200), KernelForm::Unfused);
  ASSERT_EQ(cost.kernels.size(), 4u);
  double scores = 2 * 4 * 100 * 200;
  EXPECT_EQ(cost.kernels[0].flops, scores * 2 * 64);
  EXPECT_EQ(cost.kernels[1].flops, scores);
  EXPECT_EQ(cost.kernels[2].flops, scores * 5);
  EXPECT_EQ(cost.kernels[3].flops, 2 * 4 * 100 * 32 * 2.0 * 200);
  EXPECT_EQ(cost.kernels[0].bytes,
            4 * (2 * 4 * 100 * 64 + 2 * 2 * 200 * 64 + scores));
  EXPECT_EQ(cost.kernels[2].bytes, 4 * 2 * scores);
}

TEST_F(CostModelTest, FusionMovesTheOperandsAlone) {
  Cost cost = estimate(kFused, attentionShapes(100, 200), KernelForm::Fused);
  ASSERT_EQ(cost.kernels.size(), 1u);
  EXPECT_EQ(cost.bytes(),
            4.0 * (2 * 4 * 100 * (64 + 32) + 2 * 2 * 200 * (64 + 32)));
}

TEST_F(CostModelTest, FusionMovesLessAndComputesALittleMore) {
  // The textbook's table: about the same arithmetic (the accumulator's
  // rescaling against a quotient for every score), far less traffic.
  auto shapes = attentionShapes(1024, 1024);
  Cost unfused = estimate(kGraph, shapes, KernelForm::Unfused);
  Cost fused = estimate(kFused, shapes, KernelForm::Fused);
  EXPECT_NEAR(fused.flops() / unfused.flops(), 1.0, 0.02);
  EXPECT_GT(unfused.bytes(), 9 * fused.bytes());
  EXPECT_GT(fused.intensity(), unfused.intensity());
}

TEST_F(CostModelTest, MorePassesComputeScoresAgain) {
  auto shapes = attentionShapes(512, 512);
  double one = estimate(kFused, shapes, KernelForm::Fused, 1).flops();
  double two = estimate(kFused, shapes, KernelForm::Fused, 2).flops();
  double three = estimate(kFused, shapes, KernelForm::Fused, 3).flops();
  EXPECT_LT(one, two);
  EXPECT_LT(two, three);
}

TEST_F(CostModelTest, AChainOfRowsIsOneKernel) {
  SmallVector<SmallVector<int64_t>> shapes = {{100, 512}, {100, 512}, {}};
  Cost unfused = estimate(kChain, shapes, KernelForm::Unfused);
  Cost fused = estimate(kChain, shapes, KernelForm::Fused);
  double tensor = 4 * 100 * 512;
  EXPECT_EQ(unfused.kernels.size(), 3u);
  EXPECT_EQ(unfused.bytes(), 7 * tensor);
  ASSERT_EQ(fused.kernels.size(), 1u);
  EXPECT_EQ(fused.bytes(), 3 * tensor);
  EXPECT_EQ(fused.flops(), unfused.flops());
}

TEST_F(CostModelTest, EmptyOperandsCostNothing) {
  Cost cost = estimate(kGraph, attentionShapes(0, 0), KernelForm::Unfused);
  EXPECT_EQ(cost.flops(), 0);
  EXPECT_EQ(cost.bytes(), 0);
  EXPECT_EQ(cost.intensity(), 0);
}

TEST_F(CostModelTest, CausalAttentionComputesHalf) {
  double flops =
      estimate(kCausal, {{1, 4, 4096, 64}}, KernelForm::Fused).flops();
  double full = 4.0 * 4 * 4096 * 4096 * 64;
  EXPECT_NEAR(flops / full, 0.5, 0.03);
}

class ScheduleModelTest : public CostModelTest {
protected:
  AttentionShape shape{
      /*batch=*/2,      /*heads=*/16,       /*kvHeads=*/16,
      /*queries=*/1024, /*keys=*/1024,      /*headDim=*/64,
      /*valueDim=*/64,  /*elementBytes=*/4, /*accumulationBytes=*/4};
  func::FuncOp function = parse(kFused);
  machine::TargetAttr target = machine::getTargetOrDefault(function);
  ScheduleAttr schedule =
      ScheduleAttr::get(function.getContext(), 48, 64, WorkOrder::Linear,
                        /*warps=*/0, /*stages=*/0);
};

TEST_F(ScheduleModelTest, TimeGrowsWithWork) {
  double base = predictSeconds(shape, target, schedule);
  AttentionShape longer = shape;
  longer.keys = 2048;
  EXPECT_NEAR(predictSeconds(longer, target, schedule) / base, 2.0, 0.05);
  AttentionShape causal = shape;
  causal.visible = 0.5;
  EXPECT_LT(predictSeconds(causal, target, schedule), 0.6 * base);
}

TEST_F(ScheduleModelTest, SamplesOfACausalMaskKeepHalf) {
  func::FuncOp causal = parse(kCausal);
  causal.walk([&](AttentionOp op) {
    for (int64_t length : {4096, 8192, 16384, 65536})
      EXPECT_NEAR(estimateVisible(op.getMask(), length, length), 0.5,
                  1.5 * 48 / double(length))
          << length;
  });
}

TEST_F(ScheduleModelTest, PredictsWithinReachOfThePeak) {
  double flops = 4.0 * 2 * 16 * 1024 * 1024 * 64;
  double rate = flops / predictSeconds(shape, target, schedule) / 1e9;
  EXPECT_GT(rate, 0.5 * double(target.getPeak()));
  EXPECT_LT(rate, double(target.getPeak()));
}

TEST_F(ScheduleModelTest, ChoosesATileThatFits) {
  function.walk([&](AttentionOp op) {
    ScheduleAttr schedule = selectSchedule(op, target);
    EXPECT_LE(getTileBytes(schedule, op.getAccumulationType(), 64, 32),
              target.getNearMemory());
    EXPECT_EQ(schedule.getQueryTile() % 16, 0);
    EXPECT_EQ(schedule.getOrder(), WorkOrder::Linear);
  });
}

} // namespace
