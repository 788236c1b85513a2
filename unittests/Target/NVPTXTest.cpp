//===- NVPTXTest.cpp - From LLVM IR to PTX --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/NVPTX.h"
#include "TargetTest.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

using namespace fovea;

namespace {

llvm::Expected<std::string> compile(llvm::StringRef text,
                                    const PTXOptions &options = {}) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(text, diagnostic, context);
  if (!module) {
    diagnostic.print("test", llvm::errs());
    std::abort();
  }
  return compileToPTX(*module, options);
}

bool contains(llvm::StringRef text, llvm::StringRef part) {
  if (text.contains(part))
    return true;
  llvm::errs() << text;
  return false;
}

/// Scales by a value that takes a way over the stack.
constexpr llvm::StringLiteral kScale = R"(
define ptx_kernel void @scale(ptr addrspace(1) %p, float %s) #0 {
  %slot = alloca float, addrspace(5)
  store float %s, ptr addrspace(5) %slot
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %q = getelementptr float, ptr addrspace(1) %p, i32 %i
  %x = load float, ptr addrspace(1) %q
  %t = load float, ptr addrspace(5) %slot
  %y = fmul float %x, %t
  store float %y, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
attributes #0 = { "nvvm.reqntid"="128" "denormal-fp-math-f32"="preserve-sign,preserve-sign" }
)";

TEST(NVPTX, CompilesForTheArch) {
  std::string ptx = take(compile(kScale));
  EXPECT_TRUE(contains(ptx, ".version 8.0\n.target sm_90a\n"));
  EXPECT_TRUE(contains(ptx, ".visible .entry scale("));
  EXPECT_TRUE(contains(ptx, ".reqntid 128"));
  // Without `.rn` ptxas may fuse it with a sum.
  EXPECT_TRUE(contains(ptx, "mul.ftz.f32"));
  PTXOptions options;
  options.arch = GpuArch::SM80;
  options.ptxVersion = 83;
  EXPECT_TRUE(contains(take(compile(kScale, options)),
                       ".version 8.3\n.target sm_80\n"));
}

TEST(NVPTX, OptimisesAsAsked) {
  PTXOptions options;
  for (int level : {0, 1, 2, 3}) {
    options.optLevel = level;
    EXPECT_EQ(llvm::StringRef(take(compile(kScale, options)))
                  .contains("__local_depot"),
              level == 0)
        << level;
  }
}

TEST(NVPTX, NamesWhatIsDefinedNowhere) {
  EXPECT_EQ(getMessage(compile(R"(
    declare float @__nv_expf(float)
    define ptx_kernel void @kernel(ptr addrspace(1) %p) {
      %x = load float, ptr addrspace(1) %p
      %y = call float @__nv_expf(float %x)
      store float %y, ptr addrspace(1) %p
      ret void
    })")),
            "kernels call '__nv_expf', which is defined nowhere");
}

TEST(NVPTX, CollectsErrors) {
  std::string message = getMessage(compile(R"(
    define ptx_kernel void @kernel() {
      call void asm sideeffect "mov.u32 $0, 1;", "{no_such_register}"(i32 0)
      ret void
    })"));
  EXPECT_EQ(message.find("LLVM cannot translate the kernels to PTX: "), 0u)
      << message;
}

TEST(NVPTX, RefusesBrokenIR) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(
      "define ptx_kernel void @kernel() {\n  ret void\n}", diagnostic, context);
  module->getFunction("kernel")->front().getTerminator()->eraseFromParent();
  EXPECT_EQ(getMessage(compileToPTX(*module, {}))
                .find("the kernels' LLVM IR is broken: "),
            0u);
}

} // namespace
