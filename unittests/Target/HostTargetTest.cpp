//===- HostTargetTest.cpp - Tests of the host's machine -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/HostTarget.h"

#include "gtest/gtest.h"

using namespace fovea;

TEST(HostTarget, DotProductsAreAnArchOfTheirOwn) {
  HostProcessor processor = getHostProcessor(HostArch::AVX512BF16);
  EXPECT_EQ(processor.cpu, "x86-64-v4");
  EXPECT_EQ(processor.features, "+avx512bf16");
  processor = getHostProcessor(HostArch::AVX512BF16, "skylake-avx512");
  EXPECT_EQ(processor.cpu, "skylake-avx512");
  EXPECT_EQ(processor.features, "+avx512bf16");
  EXPECT_EQ(getHostProcessor(HostArch::AVX512, "znver4").features, "");

  mlir::MLIRContext context;
  machine::TargetAttr target = detectHost(&context, HostArch::AVX512BF16);
  EXPECT_TRUE(target.hasDotProducts());
  EXPECT_TRUE(target.hasAVX512());
  EXPECT_FALSE(target.hasMatrixTiles());
  EXPECT_GT(target.getMatrixPeak(), 0);
  EXPECT_EQ(detectHost(&context, HostArch::AVX512).getMatrixPeak(), 0);
}

TEST(HostTarget, NativeProductsOfPairsAreThoseThatAreFast) {
  HostArch native = resolveArch(HostArch::Native);
  EXPECT_TRUE(isSupportedHere(native));
  // Code for a processor that is named uses none that it was not asked for.
  HostArch named = resolveArch(HostArch::Native, "znver4");
  EXPECT_NE(named, HostArch::AMX);
  EXPECT_NE(named, HostArch::AVX512BF16);
  EXPECT_EQ(resolveArch(HostArch::AVX512BF16, "znver4"), HostArch::AVX512BF16);
  if (native == HostArch::AVX512BF16) {
    EXPECT_TRUE(isSupportedHere(HostArch::AVX512));
    EXPECT_TRUE(areDotProductsFaster());
  }
  if (native == HostArch::AVX512 && isSupportedHere(HostArch::AVX512BF16)) {
    EXPECT_FALSE(areDotProductsFaster());
    EXPECT_GT(measureHost().peakMatrix, 0);
    EXPECT_LT(measureHost().peakMatrix, 1.5 * measureHost().peakF32);
  }
}
