//===- TensorMapTest.cpp - TMA descriptors --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuTest.h"

using namespace fovea::cuda;

namespace {

/// The arguments of a map that is right, to be changed.
struct Arguments {
  void *base = reinterpret_cast<void *>(uintptr_t(0x10000));
  ElementKind kind = ElementKind::BF16;
  std::vector<int64_t> sizes = {128, 1000, 16};
  std::vector<int64_t> strides = {4096, 256};
  std::vector<int64_t> box = {64, 128, 1};
  int64_t swizzle = 128;
  int64_t rank = 3;
};

class TensorMap : public GpuTest {
protected:
  std::string encode(const Arguments &arguments) {
    if (!module)
      module = load({"kernel"});
    LaunchContext context(*module, nullptr, {});
    return getMessage(context.run([&] {
      fovea_gpu_tensor_map(map.opaque, arguments.base, int64_t(arguments.kind),
                           arguments.rank, arguments.sizes.data(),
                           arguments.strides.data(), arguments.box.data(),
                           arguments.swizzle);
    }));
  }

  std::unique_ptr<Module> module;
  CUtensorMap map = {};
};

TEST_F(TensorMap, PassesEverythingOn) {
  Arguments arguments;
  arguments.base = reinterpret_cast<void *>(uintptr_t(0x20000));
  EXPECT_EQ(encode(arguments), "success");
  ASSERT_EQ(getFakeCuda().tensorMaps.size(), 1u);
  const FakeCuda::TensorMap &encoded = getFakeCuda().tensorMaps[0];
  EXPECT_EQ(encoded.type, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(encoded.base, arguments.base);
  EXPECT_EQ(encoded.sizes, (std::vector<uint64_t>{128, 1000, 16}));
  EXPECT_EQ(encoded.strides, (std::vector<uint64_t>{4096, 256}));
  EXPECT_EQ(encoded.box, (std::vector<uint32_t>{64, 128, 1}));
  EXPECT_EQ(encoded.swizzle, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(map.opaque[0], 0x20000u);
}

TEST_F(TensorMap, IsRememberedByItsArguments) {
  Arguments arguments;
  arguments.base = reinterpret_cast<void *>(uintptr_t(0x30000));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(encode(arguments), "success");
  EXPECT_EQ(getFakeCuda().tensorMaps.size(), 1u);
  EXPECT_EQ(map.opaque[0], 0x30000u);
  arguments.sizes[1] = 1001;
  EXPECT_EQ(encode(arguments), "success");
  EXPECT_EQ(getFakeCuda().tensorMaps.size(), 2u);
  arguments.strides[1] = 512;
  EXPECT_EQ(encode(arguments), "success");
  EXPECT_EQ(getFakeCuda().tensorMaps.size(), 3u);
  arguments.base = reinterpret_cast<void *>(uintptr_t(0x31000));
  EXPECT_EQ(encode(arguments), "success");
  EXPECT_EQ(getFakeCuda().tensorMaps.size(), 4u);
  EXPECT_EQ(map.opaque[0], 0x31000u);
  // A refused map is not remembered.
  arguments.base = reinterpret_cast<void *>(uintptr_t(0x31008));
  EXPECT_NE(encode(arguments), "success");
  EXPECT_NE(encode(arguments), "success");
}

TEST_F(TensorMap, DoesNotPushOutOthersOfItsLaunch) {
  Arguments arguments;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 32; ++i) {
      arguments.base = reinterpret_cast<void *>(uintptr_t(0x100000 + 4096 * i));
      EXPECT_EQ(encode(arguments), "success");
      EXPECT_EQ(map.opaque[0], uint64_t(0x100000 + 4096 * i));
    }
  EXPECT_EQ(getFakeCuda().tensorMaps.size(), 32u);
}

TEST_F(TensorMap, OfAnEmptyTensorHasAnAddress) {
  Arguments arguments;
  arguments.base = nullptr;
  arguments.sizes[1] = 0;
  // No stride of it is looked at.
  arguments.strides = {7, -3};
  EXPECT_EQ(encode(arguments), "success");
  const FakeCuda::TensorMap &encoded = getFakeCuda().tensorMaps.back();
  EXPECT_EQ(encoded.sizes, (std::vector<uint64_t>{1, 1, 1}));
  EXPECT_EQ(encoded.base, open().getScratch());
}

TEST_F(TensorMap, DoesNotLookAtStridesOfOne) {
  Arguments arguments;
  arguments.sizes = {128, 1, 1};
  arguments.strides = {7, -3};
  EXPECT_EQ(encode(arguments), "success");
}

TEST_F(TensorMap, ChecksRankAndElementKind) { // T1
  Arguments arguments;
  arguments.rank = 0;
  EXPECT_EQ(encode(arguments), "tensor map: the rank 0 is not one of 1 to 5");
  arguments.rank = 6;
  EXPECT_EQ(encode(arguments), "tensor map: the rank 6 is not one of 1 to 5");
  arguments = {};
  arguments.kind = ElementKind(42);
  EXPECT_EQ(encode(arguments), "tensor map: no element kind 42");
}

TEST_F(TensorMap, ChecksTheAddress) { // T2
  Arguments arguments;
  arguments.base = reinterpret_cast<void *>(uintptr_t(0x10008));
  EXPECT_EQ(encode(arguments),
            "tensor map: the address 0x10008 is not a multiple of 16");
}

TEST_F(TensorMap, ChecksSizes) { // T3
  Arguments arguments;
  arguments.sizes[1] = (int64_t(1) << 32) + 1;
  EXPECT_EQ(encode(arguments), "tensor map: dimension 1: the size 4294967297 "
                               "is not one of 0 to 2^32");
  arguments.sizes[1] = int64_t(1) << 32;
  EXPECT_EQ(encode(arguments), "success");
  arguments.sizes[1] = -1;
  EXPECT_EQ(encode(arguments),
            "tensor map: dimension 1: the size -1 is not one of 0 to 2^32");
}

TEST_F(TensorMap, ChecksStrides) { // T4
  Arguments arguments;
  for (int64_t stride : {int64_t(40), int64_t(-16), int64_t(1) << 40}) {
    arguments.strides[1] = stride;
    EXPECT_EQ(encode(arguments),
              "tensor map: dimension 2: the stride of " +
                  std::to_string(stride) +
                  " bytes is not a multiple of 16 below 2^40");
  }
}

TEST_F(TensorMap, ChecksTheBox) { // T5
  Arguments arguments;
  arguments.box[1] = 257;
  EXPECT_EQ(encode(arguments),
            "tensor map: dimension 1: the box size 257 is not one of 1 to 256");
  arguments.box[1] = 0;
  EXPECT_EQ(encode(arguments),
            "tensor map: dimension 1: the box size 0 is not one of 1 to 256");
}

TEST_F(TensorMap, ChecksTheRowsOfTheBox) { // T6
  Arguments arguments;
  arguments.box[0] = 128;
  EXPECT_EQ(encode(arguments),
            "tensor map: the box's rows of 256 bytes are longer than the "
            "swizzle of 128 bytes");
  arguments.box[0] = 12;
  arguments.swizzle = 0;
  EXPECT_EQ(encode(arguments),
            "tensor map: the box's rows of 24 bytes are not a multiple of 16");
  arguments.box[0] = 128;
  EXPECT_EQ(encode(arguments), "success");
}

TEST_F(TensorMap, ChecksTheSwizzle) { // T7
  Arguments arguments;
  arguments.swizzle = 256;
  EXPECT_EQ(encode(arguments),
            "tensor map: the swizzle of 256 bytes is not 0, 32, 64 or 128");
}

} // namespace
