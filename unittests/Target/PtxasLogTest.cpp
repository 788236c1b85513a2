//===- PtxasLogTest.cpp - Parsing of ptxas's output -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetTest.h"
#include "fovea/Target/Ptxas.h"

using namespace fovea;

namespace {

using Severity = PtxasDiagnostic::Severity;

TEST(PtxasLog, HasResources) {
  PtxasReport report = parsePtxasLog(R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'attend' for 'sm_90a'
ptxas info    : Function properties for attend
    488 bytes stack frame, 592 bytes spill stores, 672 bytes spill loads
ptxas info    : Used 168 registers, used 7 barriers, 488 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 312.744 ms
ptxas info    : Compiling entry function 'norm' for 'sm_90a'
ptxas info    : Function properties for norm
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 360 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 1.921 ms
ptxas info    : Function properties for helper
    16 bytes stack frame, 16 bytes spill stores, 16 bytes spill loads
)");
  EXPECT_TRUE(report.diagnostics.empty());
  ASSERT_EQ(report.kernels.size(), 2u);
  const KernelResources &attend = report.kernels[0];
  EXPECT_EQ(attend.name, "attend");
  EXPECT_EQ(attend.registers, 168);
  EXPECT_EQ(attend.stackBytes, 488);
  EXPECT_EQ(attend.spillStoreBytes, 592);
  EXPECT_EQ(attend.spillLoadBytes, 672);
  EXPECT_EQ(attend.staticSharedBytes, 1024);
  EXPECT_EQ(attend.barriers, 7);
  const KernelResources &norm = report.kernels[1];
  EXPECT_EQ(norm.name, "norm");
  EXPECT_EQ(norm.registers, 40);
  EXPECT_EQ(norm.spillStoreBytes, 0);
  EXPECT_EQ(norm.staticSharedBytes, 0);
  EXPECT_EQ(norm.barriers, 1);
}

TEST(PtxasLog, OfOldVersionsHasNoBarriers) {
  PtxasReport report = parsePtxasLog(
      R"(ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 24 registers, 2048 bytes smem, 368 bytes cmem[0]
)");
  ASSERT_EQ(report.kernels.size(), 1u);
  EXPECT_EQ(report.kernels[0].registers, 24);
  EXPECT_EQ(report.kernels[0].spillLoadBytes, 4);
  EXPECT_EQ(report.kernels[0].staticSharedBytes, 2048);
}

TEST(PtxasLog, HasSlowdowns) {
  Assembly assembly;
  assembly.assembler = "ptxas 13.0.88";
  assembly.report = parsePtxasLog(
      R"(ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function 'attend'
ptxas info    : (C7517) warpgroup.wait is injected in around line 12 by compiler to allow use of registers defined by GMMA in function 'attend'
ptxas info    : (C7519) warpgroup.arrive is injected in around line 99 by compiler to allow use of registers in GMMA in function 'back'
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
ptxas info    : (C7600) Something else in function 'other'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'attend' for 'sm_90a'
)");
  const auto &diagnostics = assembly.report.diagnostics;
  ASSERT_EQ(diagnostics.size(), 5u);
  EXPECT_EQ(diagnostics[0].code, "C7511");
  EXPECT_EQ(diagnostics[0].kernel, "attend");
  EXPECT_EQ(diagnostics[0].severity, Severity::Info);
  EXPECT_EQ(diagnostics[0].message.find("Potential Performance Loss"), 0u);
  EXPECT_EQ(diagnostics[3].kernel, "");
  // One for each kernel.
  auto remarks = getSlowdowns(assembly);
  ASSERT_EQ(remarks.size(), 3u);
  EXPECT_EQ(remarks[0],
            "kernel 'attend' is right, but slower than written: ptxas 13.0.88: "
            "C7511: Potential Performance Loss: wgmma.mma_async instructions "
            "are serialized due to insufficient register resources for the "
            "wgmma pipeline in the function 'attend'");
  EXPECT_EQ(remarks[1],
            "kernel 'back' is right, but slower than written: ptxas 13.0.88: "
            "C7519: warpgroup.arrive is injected in around line 99 by compiler "
            "to allow use of registers in GMMA in function 'back'");
  EXPECT_EQ(remarks[2],
            "kernels are right, but slower than written: ptxas 13.0.88: C7508: "
            "Potential Performance Loss: 'setmaxnreg' ignored; unable to "
            "determine register count at entry.");
}

TEST(PtxasLog, KnowsSlowdownsByTheirCodes) {
  PtxasDiagnostic diagnostic = {Severity::Info, "", "", ""};
  for (const char *code : {"C7507", "C7508", "C7510", "C7514", "C7519"}) {
    diagnostic.code = code;
    EXPECT_TRUE(diagnostic.isSlowdown()) << code;
  }
  for (const char *code : {"", "C", "C7506", "C7509", "C7520", "C75100"}) {
    diagnostic.code = code;
    EXPECT_FALSE(diagnostic.isSlowdown()) << code;
  }
  EXPECT_TRUE(getSlowdowns({}).empty());
}

TEST(PtxasLog, HasWarningsAndErrors) {
  PtxasReport report = parsePtxasLog(
      R"(ptxas warning : Registers are spilled to local memory in function 'attend', 592 bytes spill stores, 672 bytes spill loads
ptxas k.ptx, line 8; fatal   : Parsing error near 'bad': syntax error
ptxas fatal   : Ptx assembly aborted due to errors
)");
  ASSERT_EQ(report.diagnostics.size(), 3u);
  EXPECT_EQ(report.diagnostics[0].severity, Severity::Warning);
  EXPECT_EQ(report.diagnostics[0].kernel, "attend");
  EXPECT_EQ(report.diagnostics[1].severity, Severity::Error);
  EXPECT_EQ(report.diagnostics[1].message,
            "Parsing error near 'bad': syntax error");
  EXPECT_EQ(report.diagnostics[2].severity, Severity::Error);
}

TEST(PtxasLog, MayBeAnything) {
  EXPECT_TRUE(parsePtxasLog("").kernels.empty());
  EXPECT_TRUE(parsePtxasLog("ptxas\nptxas info    : Used\n    8 bytes\n'")
                  .kernels.empty());
  EXPECT_TRUE(parsePtxasLog("ptxas info    : Compiling entry function 'x")
                  .kernels.empty());
}

} // namespace
