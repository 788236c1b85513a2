//===- GpuVersionsTest.cpp - Which code serves a call on a GPU ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include "fovea/Driver/Program.h"
#include "fovea/Runtime/GpuRuntime.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "gtest/gtest.h"

#include <cstdlib>

using namespace fovea;

namespace {

constexpr llvm::StringLiteral kText = R"(
  !t = tensor<1x2x?x64xf16>
  !s = tensor<1x2x?x?xf32>
  func.func @attend(%q: !t, %k: !t, %v: !t) -> !t {
    %s = attn.scores %q, %k : !t, !t -> !s
    %p = attn.softmax %s : !s -> !s
    %o = attn.values %p, %v : !s, !t -> !t
    return %o : !t
  })";

/// The keys and values are constants.
constexpr llvm::StringLiteral kConstants = R"(
  !t = tensor<1x2x24x64xf16>
  func.func @attend(%q: !t) -> !t {
    %k = arith.constant dense<0.5> : !t
    %o = attn.attention %q, %k, %k scale(0.125) : !t, !t, !t -> !t
    return %o : !t
  })";

/// Batches of any number of queries, of which few have code of their own.
constexpr llvm::StringLiteral kBatches = R"(
  !q = tensor<?x32x?x128xf16>
  !k = tensor<?x8x?x128xf16>
  func.func @attend(%q: !q, %k: !k, %v: !k) -> !q {
    %o = attn.attention %q, %k, %v scale(0.125) : !q, !k, !k -> !q
    return %o : !q
  })";

/// On the driver for tests, which records launches, and compiles anything.
class GpuVersions : public testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("FOVEA_CUDA_DRIVER", FAKE_CUDA_FILE, /*overwrite=*/1);
    setenv("FOVEA_PTXAS", "none", /*overwrite=*/1);
    setenv("FOVEA_CACHE_DIR", "", /*overwrite=*/1);
  }

  void compile(const CompileOptions &options, llvm::StringRef text = kText) {
    auto compiled = Executable::compile(text, "text", options);
    ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
    executable = std::move(*compiled);
    device = executable->getDevice();
    auto memory = device->allocate(int64_t(1) << 20);
    ASSERT_TRUE(bool(memory)) << llvm::toString(memory.takeError());
    buffer = std::make_unique<cuda::Buffer>(std::move(*memory));
  }

  /// Returns the number of kernels that a call launches with keys at `offset`
  /// bytes, and rows of keys `distance` elements apart.
  size_t call(int64_t offset = 0, int64_t distance = 64) {
    constexpr int64_t kLength = 24;
    int64_t shape[] = {1, 2, kLength, 64};
    int64_t strides[] = {2 * kLength * 64, kLength * 64, 64, 1};
    int64_t apart[] = {2 * kLength * distance, kLength * distance, distance, 1};
    char *data = static_cast<char *>(buffer->getData());
    TensorView good = {DType::F16, data, shape, strides};
    TensorView keys = {DType::F16, data + offset, shape, apart};
    cuda::ResultBuffer result = {data, 2 * kLength * 64 * 2};
    llvm::SmallVector<TensorView> operands = {good, keys, good};
    operands.truncate(executable->getFunctions()[0].operands.size());
    llvm::SmallVector<int64_t> shapes;
    size_t before = cuda::getFakeCuda().launches.size();
    llvm::Error error =
        executable->launch(0, operands, nullptr, {result}, shapes);
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
    return cuda::getFakeCuda().launches.size() - before;
  }

  std::unique_ptr<Executable> executable;
  cuda::Device *device = nullptr;
  std::unique_ptr<cuda::Buffer> buffer;
};

TEST_F(GpuVersions, MisalignedOperandsAreCopied) {
  CompileOptions options;
  options.gpu = machine::GpuArch::find("sm_90a");
  compile(options);
  int modules = cuda::getFakeCuda().liveModules;
  EXPECT_EQ(call(), 1u);
  EXPECT_EQ(call(/*offset=*/16, /*distance=*/72), 1u);
  EXPECT_EQ(cuda::getFakeCuda().liveModules, modules);
  // The copy, and attention, by code that is compiled now, and kept.
  EXPECT_EQ(call(/*offset=*/2), 2u);
  EXPECT_EQ(cuda::getFakeCuda().liveModules, modules + 1);
  EXPECT_EQ(call(/*offset=*/0, /*distance=*/65), 2u);
  EXPECT_EQ(cuda::getFakeCuda().liveModules, modules + 1);
  EXPECT_EQ(call(), 1u);
}

TEST_F(GpuVersions, CodeThatCopiesServesAllCalls) {
  CompileOptions options;
  options.gpu = machine::GpuArch::find("sm_90a");
  options.copiesOperands = true;
  compile(options);
  int modules = cuda::getFakeCuda().liveModules;
  EXPECT_EQ(call(), 1u);
  EXPECT_EQ(call(/*offset=*/2), 2u);
  EXPECT_EQ(cuda::getFakeCuda().liveModules, modules);
}

TEST_F(GpuVersions, ConstantsAreReadInCallsOnly) {
  CompileOptions options;
  options.gpu = machine::GpuArch::find("sm_90a");
  compile(options, kConstants);
  EXPECT_GE(call(), 1u);
}

/// Returns the options of code for a call with this many queries.
static CompileOptions getOptionsOfCall(int64_t queries) {
  CompileOptions options;
  options.gpu = machine::GpuArch::find("sm_90a");
  options.callShapes = {
      {1, 32, queries, 128}, {1, 8, 8192, 128}, {1, 8, 8192, 128}};
  return options;
}

TEST_F(GpuVersions, CodeOfACallIsCompiledAhead) {
  int modules = cuda::getFakeCuda().liveModules;
  compile(getOptionsOfCall(/*queries=*/64), kBatches);
  EXPECT_EQ(cuda::getFakeCuda().liveModules, modules + 2);
  // The call finds it.
  CompileOptions options = getOptionsOfCall(/*queries=*/64);
  auto operands = llvm::map_to_vector(
      options.callShapes, [](llvm::ArrayRef<int64_t> shape) {
        return TensorView{DType::BF16, nullptr, shape, shape};
      });
  EXPECT_NE(&executable->getVersion(0, operands), executable.get());
  EXPECT_EQ(cuda::getFakeCuda().liveModules, modules + 2);
}

TEST_F(GpuVersions, NoOtherCodeIsCompiledAhead) {
  int modules = cuda::getFakeCuda().liveModules;
  compile(getOptionsOfCall(/*queries=*/4096), kBatches);
  EXPECT_EQ(cuda::getFakeCuda().liveModules, modules + 1);
  // Nor for operands that no call may have.
  CompileOptions wrong = getOptionsOfCall(/*queries=*/64);
  wrong.callShapes = {{1, 32}, {}, {}};
  compile(wrong, kBatches);
  EXPECT_EQ(cuda::getFakeCuda().liveModules, modules + 1);
}

TEST_F(GpuVersions, OtherGpusReadAnyAddress) {
  CompileOptions options;
  options.gpu = machine::GpuArch::find("sm_80");
  compile(options);
  int modules = cuda::getFakeCuda().liveModules;
  EXPECT_EQ(call(/*offset=*/2), 1u);
  EXPECT_EQ(cuda::getFakeCuda().liveModules, modules);
}

} // namespace
