//===- GpuTargetTest.cpp - The GPUs that code can be made for -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/GpuTarget.h"
#include "TargetTest.h"

using namespace fovea;

namespace {

TEST(GpuTarget, HasNames) {
  EXPECT_EQ(parseGpuArch("sm_80"), GpuArch::SM80);
  EXPECT_EQ(parseGpuArch("sm_90a"), GpuArch::SM90a);
  EXPECT_EQ(parseGpuArch("sm_90"), std::nullopt);
  EXPECT_EQ(getName(GpuArch::SM90a), "sm_90a");
}

TEST(GpuTarget, IsSelectedForADevice) {
  EXPECT_EQ(take(selectGpuArch(8, 0)), GpuArch::SM80);
  EXPECT_EQ(take(selectGpuArch(8, 9)), GpuArch::SM80);
  EXPECT_EQ(take(selectGpuArch(9, 0)), GpuArch::SM90a);
  EXPECT_EQ(take(selectGpuArch(10, 0)), GpuArch::SM80);
  EXPECT_EQ(getMessage(selectGpuArch(7, 5)),
            "the GPU has compute capability 7.5, and Fovea needs 8.0 or newer");
}

TEST(GpuTarget, IsAssembledForADevice) {
  EXPECT_EQ(take(getAssemblyChip(GpuArch::SM80, 8, 0)), "sm_80");
  EXPECT_EQ(take(getAssemblyChip(GpuArch::SM80, 9, 0)), "sm_90");
  EXPECT_EQ(take(getAssemblyChip(GpuArch::SM80, 12, 0)), "sm_120");
  EXPECT_EQ(take(getAssemblyChip(GpuArch::SM90a, 9, 0)), "sm_90a");
  EXPECT_EQ(getMessage(getAssemblyChip(GpuArch::SM90a, 10, 0)),
            "code for sm_90a does not run on a GPU of compute capability 10.0");
  EXPECT_EQ(getMessage(getAssemblyChip(GpuArch::SM80, 7, 5)),
            "code for sm_80 does not run on a GPU of compute capability 7.5");
}

} // namespace
