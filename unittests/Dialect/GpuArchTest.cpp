//===- GpuArchTest.cpp - The GPUs that code can be made for ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Machine/IR/Machine.h"

#include "mlir/IR/MLIRContext.h"

#include "gtest/gtest.h"

using namespace fovea::machine;

namespace {

/// The name of the arch for a device, or the error.
std::string select(int major, int minor) {
  auto arch = GpuArch::select(major, minor);
  return arch ? (*arch)->name.str() : llvm::toString(arch.takeError());
}

/// The chip that PTX of an arch is assembled for, or the error.
std::string getChip(llvm::StringRef name, int major, int minor) {
  auto chip = GpuArch::find(name)->getAssemblyChip(major, minor);
  return chip ? *chip : llvm::toString(chip.takeError());
}

TEST(GpuArch, IsFoundByName) {
  EXPECT_EQ(GpuArch::find("sm_90a")->family, "hopper");
  EXPECT_EQ(GpuArch::find("sm_90"), nullptr);
  EXPECT_EQ(GpuArch::find("host"), nullptr);
  EXPECT_EQ(GpuArch::listNames({"host"}),
            "host, sm_80, sm_86, sm_89, sm_90a or sm_120");
}

TEST(GpuArch, IsSelectedForADevice) {
  EXPECT_EQ(select(8, 0), "sm_80");
  EXPECT_EQ(select(8, 6), "sm_86");
  EXPECT_EQ(select(8, 7), "sm_86");
  EXPECT_EQ(select(8, 9), "sm_89");
  EXPECT_EQ(select(9, 0), "sm_90a");
  // Code for Hopper runs on Hopper alone.
  EXPECT_EQ(select(10, 0), "sm_89");
  EXPECT_EQ(select(12, 1), "sm_120");
  EXPECT_EQ(select(7, 5),
            "the GPU has compute capability 7.5, and Fovea needs 8.0 or newer");
}

TEST(GpuArch, IsAssembledForADevice) {
  EXPECT_EQ(getChip("sm_80", 8, 0), "sm_80");
  EXPECT_EQ(getChip("sm_80", 9, 0), "sm_90");
  EXPECT_EQ(getChip("sm_80", 12, 0), "sm_120");
  EXPECT_EQ(getChip("sm_90a", 9, 0), "sm_90a");
  EXPECT_EQ(getChip("sm_90a", 10, 0),
            "code for sm_90a does not run on a GPU of compute capability 10.0");
  EXPECT_EQ(getChip("sm_80", 7, 5),
            "code for sm_80 does not run on a GPU of compute capability 7.5");
}

/// Every entry is a machine that the attribute's verifier takes, with as many
/// registers as the entry says.
TEST(GpuArch, HasAModel) {
  mlir::MLIRContext context;
  for (const GpuArch &arch : GpuArch::getAll()) {
    TargetAttr target = getTypicalGpu(&context, arch);
    EXPECT_TRUE(target.isGpu());
    EXPECT_EQ(&target.getGpuArch(), &arch);
    EXPECT_EQ(target.getRegistersPerCore(), arch.registersPerCore);
    EXPECT_EQ(target.getFastMemory(), arch.sharedPerBlock);
    EXPECT_LE(arch.sharedPerBlock + kReservedSharedMemory, arch.sharedPerCore);
  }
}

TEST(GpuArch, DealsOutRegisters) {
  // 168 a thread at the start, and 512 in four threads of as many groups.
  auto two = dealRegisters(65536, 8), three = dealRegisters(65536, 12);
  EXPECT_EQ(two->compute, 240);
  EXPECT_EQ(two->service, 24);
  EXPECT_EQ(three->compute, 160);
  EXPECT_EQ(three->service, 32);
  EXPECT_EQ(three->widen, 0);
  // What one group that computes leaves goes to those that serve it.
  auto one = dealRegisters(65536, 4, 4), full = dealRegisters(65536, 8, 4);
  EXPECT_EQ(one->compute, 240);
  EXPECT_EQ(one->widen, 128);
  EXPECT_EQ(one->service, 136);
  EXPECT_EQ(full->compute, 200);
  EXPECT_EQ(full->widen, 88);
  EXPECT_EQ(full->service, 24);
  EXPECT_EQ(dealRegisters(65536, 4), std::nullopt);
  EXPECT_EQ(dealRegisters(65536, 6), std::nullopt);
  EXPECT_EQ(getEqualShare(65536, 128), 255);
  EXPECT_EQ(getEqualShare(65536, 384), 168);
}

} // namespace
