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
#include "llvm/Support/Regex.h"
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
  options.arch = machine::GpuArch::find("sm_120");
  EXPECT_TRUE(contains(take(compile(kScale, options)),
                       ".version 8.7\n.target sm_120\n"));
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

/// Code that LLVM computes in f16 although the program computes it in f32, and
/// code that the program computes in f16.
constexpr llvm::StringLiteral kHalves = R"(
define ptx_kernel void @halves(ptr addrspace(1) %p, ptr addrspace(1) %q) #0 {
  %x = load half, ptr addrspace(1) %p
  %w = fpext half %x to float
  %m = fmul float %w, 1.250000e-01
  %r = fptrunc float %m to half
  store half %r, ptr addrspace(1) %p
  %v = load <2 x half>, ptr addrspace(1) %q
  %a = fadd <2 x half> %v, splat (half 1.0)
  %b = fneg <2 x half> %a
  %i = call <2 x half> @llvm.maxnum.v2f16(<2 x half> %b, <2 x half> %v)
  %c = fcmp olt <2 x half> %i, %v
  %d = select <2 x i1> %c, <2 x half> %a, <2 x half> %i
  store <2 x half> %d, ptr addrspace(1) %q
  ret void
}
declare <2 x half> @llvm.maxnum.v2f16(<2 x half>, <2 x half>)
)";

TEST(NVPTX, KeepsDenormalHalves) {
  std::string flush = (kHalves + R"(
    attributes #0 = {"denormal-fp-math-f32"="preserve-sign,preserve-sign"})")
                          .str();
  PTXOptions options;
  for (int level : {0, 1, 2, 3}) {
    options.optLevel = level;
    std::string ptx = take(compile(flush, options));
    EXPECT_TRUE(contains(ptx, ".ftz.f32")) << level;
    EXPECT_TRUE(contains(ptx, "cvt.rn.f16")) << level;
    for (llvm::StringRef narrow : {".ftz.f16", ".f16x2\t"}) {
      EXPECT_FALSE(llvm::StringRef(ptx).contains(narrow)) << level << "\n"
                                                          << ptx;
    }
  }
  // Where nothing is flushed, f16 has instructions of its own.
  options.optLevel = 1;
  std::string ptx =
      take(compile((kHalves + "attributes #0 = {nounwind}").str(), options));
  EXPECT_TRUE(contains(ptx, "mul.f16"));
  EXPECT_FALSE(llvm::StringRef(ptx).contains(".ftz")) << ptx;
}

// ptxas fuses a high half of a product with a 64-bit subtraction and loses the
// borrow, but no product that has an addend.
TEST(NVPTX, AddsToHighHalvesOfProducts) {
  PTXOptions options;
  for (int level : {0, 1, 2, 3}) {
    options.optLevel = level;
    std::string text = take(compile(R"(
      define ptx_kernel void @kernel(ptr addrspace(1) %p, i32 %x, i32 %y) {
        %sixth = udiv i32 %x, 6
        %wide = zext i32 %sixth to i64
        %other = zext i32 %y to i64
        %difference = sub i64 %wide, %other
        store i64 %difference, ptr addrspace(1) %p
        %next = getelementptr i64, ptr addrspace(1) %p, i32 1
        %seventh = sdiv i32 %x, 7
        %signed = sext i32 %seventh to i64
        %second = sub i64 %signed, %other
        store i64 %second, ptr addrspace(1) %next
        %last = getelementptr i64, ptr addrspace(1) %p, i32 2
        %large = udiv i64 %difference, 10
        store i64 %large, ptr addrspace(1) %last
        ret void
      })",
                                    options));
    llvm::StringRef ptx = text;
    EXPECT_TRUE(llvm::Regex("\tmad\\.hi\\.u32 \t%r[0-9]+, %r[0-9]+, "
                            "-?[0-9]+, 0;\n")
                    .match(ptx))
        << level << "\n"
        << text;
    EXPECT_TRUE(contains(ptx, "\tmad.hi.s32 \t")) << level;
    EXPECT_FALSE(ptx.contains("mul.hi.u32")) << level << "\n" << text;
    EXPECT_FALSE(ptx.contains("mul.hi.s32")) << level << "\n" << text;
    EXPECT_TRUE(contains(ptx, "\tmul.hi.u64 \t")) << level;
  }
}

// A comparison joins its result with another condition in one instruction:
// conditions that are no comparisons, or have other uses, come first.
TEST(NVPTX, JoinsComparisons) {
  llvm::StringRef text = R"(
    define ptx_kernel void @kernel(ptr addrspace(1) %p, i32 %x, i32 %y, i64 %z,
                                   i64 %w, float %f) {
      %less = icmp slt i32 %x, %y
      %few = icmp ult i32 %x, 17
      %same = icmp eq i64 %z, %w
      %positive = fcmp ogt float %f, 0.0
      %first = and i1 %less, %positive
      %second = and i1 %few, %same
      %all = and i1 %first, %second
      %chosen = select i1 %all, float %f, float 1.0
      store float %chosen, ptr addrspace(1) %p
      %next = getelementptr float, ptr addrspace(1) %p, i32 1
      %other = icmp eq i64 %w, %z
      %least = icmp slt i32 %y, 9
      %either = or i1 %least, %other
      %joined = select i1 %either, float %f, float 2.0
      store float %joined, ptr addrspace(1) %next
      %last = getelementptr float, ptr addrspace(1) %p, i32 2
      %large = icmp sge i32 %y, -3
      %alone = select i1 %large, float %f, float 3.0
      store float %alone, ptr addrspace(1) %last
      %end = getelementptr float, ptr addrspace(1) %p, i32 3
      %odd = icmp sgt i64 %z, 40
      %pair = and i1 %positive, %odd
      %shared = select i1 %pair, float %f, float 4.0
      store float %shared, ptr addrspace(1) %end
      ret void
    })";
  std::string ptx = take(compile(text));
  auto matches = [&](llvm::StringRef regex) {
    if (llvm::Regex(regex).match(ptx))
      return true;
    llvm::errs() << ptx;
    return false;
  };
  EXPECT_TRUE(matches("setp\\.gt\\.f32 \t(%p[0-9]+)"));
  EXPECT_TRUE(matches("setp\\.(lt|gt)\\.and\\.s32 "));
  EXPECT_TRUE(
      matches("setp\\.lt\\.and\\.u32 (%p[0-9]+), (%r[0-9]+), 17, %p[0-9]+;"));
  EXPECT_TRUE(matches("setp\\.eq\\.and\\.s64 "));
  EXPECT_TRUE(matches("setp\\.(eq|lt|gt)\\.or\\.s(32|64) "));
  EXPECT_FALSE(llvm::StringRef(ptx).contains("and.pred")) << ptx;
  EXPECT_FALSE(llvm::StringRef(ptx).contains("or.pred")) << ptx;
  // One select for each result, but two, as LLVM has it, for the pair with a
  // condition that others share; a comparison alone stays.
  EXPECT_EQ(llvm::StringRef(ptx).count("selp.f32"), 5u) << ptx;
  EXPECT_TRUE(matches("setp\\.(gt|ge|lt|le)\\.s32 "));
  // Without optimizations LLVM's form is left.
  PTXOptions options;
  options.optLevel = 0;
  EXPECT_FALSE(llvm::StringRef(take(compile(text, options))).contains(".and."));
}

// ptxas unrolls a loop whose iterations are known, folds comparisons of its
// counter, and may lose one that is joined with a condition.
TEST(NVPTX, KeepsComparisonsThatMayBecomeConstants) {
  auto compileLoop = [](llvm::StringRef end) {
    return take(compile((R"(
      define ptx_kernel void @kernel(ptr addrspace(1) %p, i32 %n) {
      entry:
        br label %loop
      loop:
        %i = phi i32 [ 0, %entry ], [ %next, %loop ]
        %any = phi i1 [ false, %entry ], [ %or, %loop ]
        %place = getelementptr i32, ptr addrspace(1) %p, i32 %i
        %x = load i32, ptr addrspace(1) %place
        %b = trunc i32 %x to i1
        %odd = and i32 %i, 1
        %even = icmp eq i32 %odd, 0
        %both = and i1 %even, %b
        %or = or i1 %any, %both
        %next = add i32 %i, 1
        %more = icmp slt i32 %next, )" +
                         end + R"(
        br i1 %more, label %loop, label %end
      end:
        %z = zext i1 %or to i32
        store i32 %z, ptr addrspace(1) %p
        ret void
      })")
                            .str()));
  };
  EXPECT_FALSE(llvm::StringRef(compileLoop("6")).contains(".and.s32"));
  EXPECT_TRUE(llvm::StringRef(compileLoop("%n")).contains("setp.eq.and.s32"));
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
