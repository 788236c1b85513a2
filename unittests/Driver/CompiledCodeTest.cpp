//===- CompiledCodeTest.cpp - Results of a compilation --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledCode.h"

#include "fovea/Runtime/HostRuntime.h"

#include "gtest/gtest.h"

using namespace fovea;

namespace {

CompiledCode makeCode() {
  CompiledCode code;
  CompiledCode::Function &first = code.functions.emplace_back();
  first.signature.name = "attend";
  first.signature.operands = {{"q", DType::BF16, {2, -1, 64}, /*scalar=*/false},
                              {"", DType::I64, {}, /*scalar=*/true}};
  first.signature.operands[0].writable = true;
  first.signature.results = {{"", DType::F32, {-1}, /*scalar=*/false}};
  first.messages = {"{0} is not {1}", ""};
  first.otherSizes.shortLengths.places = {{0, 1}};
  first.otherSizes.shortLengths.sequences = {2, 0, -1};
  first.otherSizes.shortLengths.add(2048);
  first.otherSizes.fewTiles[1] = {
      {std::nullopt, {4, 1}, SizePlace{5, 2}, 32, 6}};
  first.otherSizes.fewRows[0] = {{std::nullopt, {3, 2}, std::nullopt, 16, 9}};
  first.otherSizes.fewRows[1] = {
      {SizePlace{1, 0}, {1, 2}, SizePlace{2, 3}, 64, 5}, 70};
  first.testsOperands = true;
  CompiledCode::Function &second = code.functions.emplace_back();
  second.signature.name = "other";
  second.signature.obstacle = "no tensor";
  code.object =
      llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef("\x7f"
                                                           "ELF\0code",
                                                           9));
  code.device = {"PTX", {"attend_0", "attend_1"}};
  code.remarks = {"not fused"};
  return code;
}

TEST(CompiledCode, IsReadAsItWasWritten) {
  std::string bytes = serialize(makeCode());
  std::optional<CompiledCode> code = deserialize(bytes);
  ASSERT_TRUE(code);
  EXPECT_EQ(serialize(*code), bytes);
  ASSERT_EQ(code->functions.size(), 2u);
  const CompiledCode::Function &first = code->functions[0];
  EXPECT_EQ(first.signature.name, "attend");
  ASSERT_EQ(first.signature.operands.size(), 2u);
  EXPECT_EQ(first.signature.operands[0].name, "q");
  EXPECT_EQ(formatType(first.signature.operands[0]),
            "bf16 tensor of shape 2x?x64");
  EXPECT_TRUE(first.signature.operands[0].writable);
  EXPECT_FALSE(first.signature.operands[1].writable);
  EXPECT_EQ(formatType(first.signature.operands[1]), "i64 number");
  ASSERT_EQ(first.signature.results.size(), 1u);
  EXPECT_EQ(formatType(first.signature.results[0]), "f32 tensor of shape ?");
  ASSERT_EQ(first.messages.size(), 2u);
  EXPECT_EQ(first.messages[0], "{0} is not {1}");
  ASSERT_EQ(first.otherSizes.shortLengths.places.size(), 1u);
  EXPECT_EQ(first.otherSizes.shortLengths.places[0].operand, 0u);
  EXPECT_EQ(first.otherSizes.shortLengths.places[0].dim, 1u);
  ASSERT_TRUE(first.otherSizes.shortLengths.sequences);
  EXPECT_EQ(first.otherSizes.shortLengths.sequences->operand, 2u);
  EXPECT_EQ(first.otherSizes.shortLengths.sequences->more, -1);
  EXPECT_FALSE(code->functions[1].otherSizes.shortLengths.sequences);
  EXPECT_TRUE(first.otherSizes.shortLengths.contain(2048));
  EXPECT_FALSE(first.otherSizes.shortLengths.contain(1984));
  EXPECT_EQ(code->functions[1].otherSizes.shortLengths.steps, 0u);
  EXPECT_EQ(first.otherSizes.fewTiles[1].queries.operand, 4u);
  ASSERT_TRUE(first.otherSizes.fewTiles[1].keys);
  EXPECT_EQ(first.otherSizes.fewTiles[1].keys->dim, 2u);
  EXPECT_EQ(first.otherSizes.fewTiles[1].tile, 32);
  EXPECT_EQ(first.otherSizes.fewTiles[1].mostTiles, 6);
  // Packed queries have no batch.
  EXPECT_FALSE(first.otherSizes.fewRows[0].batch);
  EXPECT_EQ(first.otherSizes.fewRows[0].queries.operand, 3u);
  EXPECT_EQ(first.otherSizes.fewRows[0].queries.dim, 2u);
  EXPECT_FALSE(first.otherSizes.fewRows[0].keys);
  EXPECT_EQ(first.otherSizes.fewRows[0].tile, 16);
  EXPECT_EQ(first.otherSizes.fewRows[0].mostTiles, 9);
  ASSERT_TRUE(first.otherSizes.fewRows[1].batch);
  EXPECT_EQ(first.otherSizes.fewRows[1].batch->operand, 1u);
  EXPECT_EQ(first.otherSizes.fewRows[1].batch->dim, 0u);
  EXPECT_EQ(first.otherSizes.fewRows[1].queries.dim, 2u);
  ASSERT_TRUE(first.otherSizes.fewRows[1].keys);
  EXPECT_EQ(first.otherSizes.fewRows[1].keys->operand, 2u);
  EXPECT_EQ(first.otherSizes.fewRows[1].keys->dim, 3u);
  EXPECT_EQ(first.otherSizes.fewRows[1].tile, 64);
  EXPECT_EQ(first.otherSizes.fewRows[1].mostTiles, 5);
  EXPECT_EQ(first.otherSizes.fewRows[1].mostQueries, 70);
  EXPECT_FALSE(code->functions[1].otherSizes.fewRows[1].batch);
  EXPECT_FALSE(code->functions[1].otherSizes.fewRows[1].keys);
  EXPECT_EQ(code->functions[1].otherSizes.fewRows[1].mostTiles, 0);
  EXPECT_TRUE(first.testsOperands);
  EXPECT_FALSE(code->functions[1].testsOperands);
  EXPECT_EQ(code->functions[1].signature.obstacle, "no tensor");
  EXPECT_EQ(code->object->getBufferSize(), 9u);
  EXPECT_EQ(code->device.ptx, "PTX");
  EXPECT_EQ(code->device.kernels,
            (std::vector<std::string>{"attend_0", "attend_1"}));
  ASSERT_EQ(code->remarks.size(), 1u);
}

TEST(OtherSizes, AreChosenByTheMeanOfSequences) {
  OtherSizes sizes;
  sizes.shortLengths.places = {{0, 1}};
  sizes.shortLengths.sequences = {1, 0, -1};
  sizes.shortLengths.add(64);
  auto choose = [&](int64_t tokens, int64_t bounds) {
    std::vector<int64_t> shapes[] = {{1, tokens}, {bounds}};
    return sizes.choose(
        2, [&](size_t operand) { return llvm::ArrayRef(shapes[operand]); });
  };
  EXPECT_EQ(choose(512, 9), OtherSizes::kShort);
  EXPECT_FALSE(choose(513, 9));
  EXPECT_EQ(choose(64, 2), OtherSizes::kShort);
  EXPECT_FALSE(choose(65, 2));
  EXPECT_FALSE(choose(0, 9));
  // Bounds of no sequence.
  EXPECT_EQ(choose(64, 1), OtherSizes::kShort);
  EXPECT_EQ(choose(64, 0), OtherSizes::kShort);
}

TEST(CompiledCode, RejectsWhatIsSomethingElse) {
  std::string bytes = serialize(makeCode());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(deserialize(llvm::StringRef(bytes).take_front(size))) << size;
  EXPECT_FALSE(deserialize(bytes + "x"));
  // Lengths beyond the end and element types that do not exist.
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = '\xff';
    if (std::optional<CompiledCode> code = deserialize(changed))
      for (const CompiledCode::Function &function : code->functions)
        for (const ValueType &type : function.signature.operands)
          EXPECT_LE(int(type.type), int(DType::I64)) << at;
  }
}

TEST(CompiledCode, IsNamedByAllThatItFollowsFrom) {
  auto hash = [](llvm::StringRef text, const CompileOptions &options) {
    return getCodeKey(text, options).getHash();
  };
  CompileOptions options;
  auto plain = hash("text", options);
  EXPECT_EQ(hash("text", CompileOptions()), plain);
  EXPECT_NE(hash("text ", options), plain);
  options.strategy = Strategy::Unfused;
  EXPECT_NE(hash("text", options), plain);
  options = {};
  options.gpu = machine::GpuArch::find("sm_80");
  auto ampere = hash("text", options);
  EXPECT_NE(ampere, plain);
  options.gpu = machine::GpuArch::find("sm_90a");
  EXPECT_NE(hash("text", options), ampere);
  options = {};
  options.arch = HostArch::Generic;
  EXPECT_NE(hash("text", options), plain);
  options = {};
  options.cpu = "x86-64";
  EXPECT_NE(hash("text", options), plain);
  options = {};
  options.typicalLength = 1024;
  auto ofLength = hash("text", options);
  EXPECT_NE(ofLength, plain);
  options = {};
  options.typicalRows = 1024;
  EXPECT_NE(hash("text", options), plain);
  EXPECT_NE(hash("text", options), ofLength);
  options = {};
  options.optLevel = 2;
  EXPECT_NE(hash("text", options), plain);
  options = {};
  options.schedules =
      ScheduleList{"#attn.schedule<tile = 8x8, order = linear>"};
  EXPECT_NE(hash("text", options), plain);
  options.schedules->clear();
  EXPECT_EQ(hash("text", options), plain);
  // The schedule depends on the threads.
  int threads = runtime::getNumThreads();
  runtime::setNumThreads(threads + 1);
  EXPECT_NE(hash("text", {}), plain);
  runtime::setNumThreads(threads);
  EXPECT_EQ(hash("text", {}), plain);
}

} // namespace
