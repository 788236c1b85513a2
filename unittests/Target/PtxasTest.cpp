//===- PtxasTest.cpp - Search for and runs of ptxas -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/Ptxas.h"
#include "TargetTest.h"
#include "fovea/Target/DiskCache.h"

#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <thread>

using namespace fovea;

namespace {

/// Writes a program that reports this version of ptxas, records its calls, and
/// makes a cubin of the chip's name and the input.
std::string makeScript(llvm::StringRef version, const std::string &calls) {
  return "#!/bin/sh\n"
         "echo \"$@\" >> " +
         calls +
         "\n"
         "if [ \"$1\" = --version ]; then\n"
         "  echo 'ptxas: NVIDIA (R) Ptx optimizing assembler'\n"
         "  echo 'Cuda compilation tools, release x.y, V" +
         version.str() +
         "'\n"
         "  exit 0\n"
         "fi\n"
         "grep -q bad \"$6\" && { echo \"ptxas x.ptx, line 1; fatal   : "
         "syntax error\" >&2; exit 255; }\n"
         "echo \"ptxas info    : Compiling entry function 'k' for 'sm'\" >&2\n"
         "echo 'ptxas info    : Used 40 registers' >&2\n"
         "(echo \"$2 $3\"; cat \"$6\") > \"$5\"\n";
}

class PtxasTest : public testing::Test {
protected:
  std::string addPtxas(const llvm::Twine &file, llvm::StringRef version) {
    return folder.write(file, makeScript(version, folder.getPath("calls")),
                        /*executable=*/true);
  }

  /// Returns the number of runs of a ptxas.
  size_t countCalls() {
    auto buffer = llvm::MemoryBuffer::getFile(folder.getPath("calls"));
    return buffer ? (*buffer)->getBuffer().count('\n') : 0;
  }

  TemporaryFolder folder;
  // Nothing of this machine is used.
  ScopedVariable path{"PATH", folder.getPath("bin") + ":/bin:/usr/bin"};
  ScopedVariable ptxas{"FOVEA_PTXAS", std::nullopt};
  ScopedVariable cudaHome{"CUDA_HOME", std::nullopt};
  ScopedVariable cudaPath{"CUDA_PATH", std::nullopt};
  ScopedVariable environment{"VIRTUAL_ENV", std::nullopt};
  ScopedVariable conda{"CONDA_PREFIX", std::nullopt};
  ScopedVariable home{"HOME", folder.getPath("home")};
};

TEST_F(PtxasTest, IsTheOneThatIsNamed) {
  std::string other = addPtxas("toolkit/bin/ptxas", "13.0.88");
  std::string named = addPtxas("named", "12.6.20");
  ScopedVariable toolkit("CUDA_HOME", folder.getPath("toolkit"));
  EXPECT_EQ(take(findPtxas("sm_90a", nullptr)).path, other);
  ScopedVariable variable("FOVEA_PTXAS", named);
  Ptxas found = take(findPtxas("sm_90a", nullptr));
  EXPECT_EQ(found.path, named);
  EXPECT_EQ(formatVersion(found.version), "12.6.20");
}

TEST_F(PtxasTest, IsNoOtherThanTheOneThatIsNamed) {
  addPtxas("bin/ptxas", "13.0.88");
  ScopedVariable variable("FOVEA_PTXAS", folder.getPath("missing"));
  EXPECT_EQ(getMessage(findPtxas("sm_90a", nullptr)),
            "no ptxas is fit for sm_90a:\n  " + folder.getPath("missing") +
                ": No such file or directory");
}

TEST_F(PtxasTest, IsFoundInTheOrderOfPlaces) {
  std::string user = addPtxas("home/.local/lib/python3.9/site-packages/triton/"
                              "backends/nvidia/bin/ptxas",
                              "13.0.1");
  std::string wheel = addPtxas(
      "venv/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/ptxas", "13.0.2");
  ScopedVariable active("VIRTUAL_ENV", folder.getPath("venv"));
  auto get = [] { return take(findPtxas("sm_90a", nullptr)).path; };
  bool hasToolkit = llvm::sys::fs::exists("/usr/local/cuda/bin/ptxas");
  if (!hasToolkit)
    EXPECT_EQ(get(), wheel);
  std::string inPath = addPtxas("bin/ptxas", "13.0.3");
  EXPECT_EQ(get(), inPath);
  std::string toolkit = addPtxas("toolkit/bin/ptxas", "13.0.4");
  ScopedVariable cudaPath("CUDA_PATH", folder.getPath("toolkit"));
  EXPECT_EQ(get(), toolkit);
  std::string home = addPtxas("other/bin/ptxas", "13.0.5");
  ScopedVariable cudaHome("CUDA_HOME", folder.getPath("other"));
  EXPECT_EQ(get(), home);
}

TEST_F(PtxasTest, IsNotOneThatMiscompiles) {
  struct Case {
    const char *version;
    bool good;
  };
  for (auto [version, good] :
       {Case{"12.6.85", true}, Case{"12.8.0", false}, Case{"12.8.61", false},
        Case{"12.8.93", false}, Case{"12.9.41", false}, Case{"12.9.86", true},
        Case{"13.0.88", true}}) {
    std::string file = addPtxas(llvm::Twine("ptxas-") + version, version);
    ScopedVariable variable("FOVEA_PTXAS", file);
    EXPECT_EQ(getMessage(findPtxas("sm_90a", nullptr)),
              good ? "success"
                   : "no ptxas is fit for sm_90a:\n  " + file + " (" + version +
                         "): 12.8.0 up to 12.9.0 are known to miscompile code "
                         "for sm_90a");
    // Nothing is known against it for other targets.
    EXPECT_EQ(getMessage(findPtxas("sm_90", nullptr)), "success");
  }
}

TEST_F(PtxasTest, IsTheNextWhereTheFirstMiscompiles) {
  addPtxas("toolkit/bin/ptxas", "12.8.93");
  ScopedVariable toolkit("CUDA_HOME", folder.getPath("toolkit"));
  std::string good = addPtxas("bin/ptxas", "12.9.86");
  EXPECT_EQ(take(findPtxas("sm_90a", nullptr)).path, good);
  EXPECT_EQ(formatVersion(take(findPtxas("sm_80", nullptr)).version),
            "12.8.93");
}

TEST_F(PtxasTest, IsNotTooOld) {
  ScopedVariable variable("FOVEA_PTXAS", addPtxas("old", "11.8.89"));
  auto found = findPtxas("sm_80", nullptr);
  ASSERT_FALSE(bool(found));
  llvm::Error error = found.takeError();
  EXPECT_EQ(getMessage(std::move(error)),
            "no ptxas is fit for sm_80:\n  " + folder.getPath("old") +
                " (11.8.89): it is older than 12.0.0");
  EXPECT_TRUE(llvm::errorToErrorCode(findPtxas("sm_80", nullptr).takeError()) ==
              std::errc::no_such_file_or_directory);
}

TEST_F(PtxasTest, MustSayItsVersion) {
  ScopedVariable variable(
      "FOVEA_PTXAS",
      folder.write("mute", "#!/bin/sh\necho hello\n", /*executable=*/true));
  EXPECT_EQ(getMessage(findPtxas("sm_80", nullptr)),
            "no ptxas is fit for sm_80:\n  " + folder.getPath("mute") +
                ": it does not say its version");
}

TEST_F(PtxasTest, IsAskedForItsVersionOnce) {
  DiskCache cache(folder.getPath("cache"), 1 << 20);
  ScopedVariable variable("FOVEA_PTXAS", addPtxas("ptxas", "12.6.20"));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(formatVersion(take(findPtxas("sm_90a", &cache)).version),
              "12.6.20");
  EXPECT_EQ(countCalls(), 1u);
  // Another program under the same name is not taken for the first.
  addPtxas("ptxas", "13.0.888");
  EXPECT_EQ(formatVersion(take(findPtxas("sm_90a", &cache)).version),
            "13.0.888");
  EXPECT_EQ(countCalls(), 2u);
}

TEST_F(PtxasTest, Assembles) {
  ScopedVariable variable("FOVEA_PTXAS", addPtxas("ptxas", "12.6.20"));
  Assembly assembly = take(assemble("some PTX", {"sm_90a", 3}, nullptr));
  EXPECT_EQ(assembly.cubin, "-arch=sm_90a -O3\nsome PTX");
  EXPECT_EQ(assembly.assembler, "ptxas 12.6.20");
  ASSERT_EQ(assembly.report.kernels.size(), 1u);
  EXPECT_EQ(assembly.report.kernels[0].registers, 40);
}

TEST_F(PtxasTest, AssemblesKernelsAtOnce) {
  for (auto [version, isSplit] :
       {std::pair("12.9.86", false), std::pair("13.0.88", true)}) {
    std::string file = addPtxas(llvm::Twine("ptxas-") + version, version);
    ScopedVariable variable("FOVEA_PTXAS", file);
    take(assemble("some PTX", {"sm_90a", 3}, nullptr));
    auto calls = llvm::MemoryBuffer::getFile(folder.getPath("calls"));
    ASSERT_TRUE(bool(calls));
    EXPECT_EQ((*calls)->getBuffer().contains(" --split-compile=8\n"), isSplit)
        << version;
  }
}

TEST_F(PtxasTest, AssemblesOnce) {
  DiskCache cache(folder.getPath("cache"), 1 << 20);
  ScopedVariable variable("FOVEA_PTXAS", addPtxas("ptxas", "12.6.20"));
  auto run = [&](llvm::StringRef ptx, AssembleOptions options) {
    size_t before = countCalls();
    Assembly assembly = take(assemble(ptx, options, &cache));
    EXPECT_EQ(assembly.cubin, "-arch=" + options.chip + " -O" +
                                  std::to_string(options.optLevel) + "\n" +
                                  ptx.str());
    EXPECT_EQ(assembly.report.kernels.size(), 1u);
    EXPECT_EQ(assembly.fromCache, countCalls() == before);
    return assembly.fromCache;
  };
  EXPECT_FALSE(run("a", {"sm_90a", 3}));
  EXPECT_TRUE(run("a", {"sm_90a", 3}));
  EXPECT_FALSE(run("b", {"sm_90a", 3}));
  EXPECT_FALSE(run("a", {"sm_90", 3}));
  EXPECT_FALSE(run("a", {"sm_90a", 1}));
  EXPECT_TRUE(run("b", {"sm_90a", 3}));
  addPtxas("ptxas", "13.0.88");
  EXPECT_FALSE(run("a", {"sm_90a", 3}));
  EXPECT_TRUE(run("a", {"sm_90a", 3}));
}

TEST_F(PtxasTest, AssemblesInThreads) {
  DiskCache cache(folder.getPath("cache"), 1 << 20);
  ScopedVariable variable("FOVEA_PTXAS", addPtxas("ptxas", "12.6.20"));
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 5; ++i) {
        std::string ptx = std::to_string((thread + i) % 3);
        auto assembly = assemble(ptx, {"sm_90a", 3}, &cache);
        good += take(std::move(assembly)).cubin == "-arch=sm_90a -O3\n" + ptx;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, 40);
}

TEST_F(PtxasTest, SaysWhyItFails) {
  DiskCache cache(folder.getPath("cache"), 1 << 20);
  ScopedVariable variable("FOVEA_PTXAS", addPtxas("ptxas", "12.6.20"));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(getMessage(assemble("bad", {"sm_80", 3}, &cache)),
              "ptxas 12.6.20 cannot assemble the kernels for sm_80:\n"
              "ptxas x.ptx, line 1; fatal   : syntax error");
}

TEST_F(PtxasTest, MayCrash) {
  ScopedVariable variable(
      "FOVEA_PTXAS", folder.write("ptxas",
                                  "#!/bin/sh\n"
                                  "[ \"$1\" = --version ] && echo ', V13.0.88' "
                                  "&& exit\nkill -SEGV $$\n",
                                  /*executable=*/true));
  std::string message = getMessage(assemble("x", {"sm_80", 3}, nullptr));
  EXPECT_EQ(message.find("cannot run '" + folder.getPath("ptxas") + "': "), 0u)
      << message;
}

TEST(RealPtxas, AssemblesRealCode) {
  auto ptxas = findPtxas("sm_90a", nullptr);
  if (!ptxas)
    GTEST_SKIP() << "needs ptxas: " << llvm::toString(ptxas.takeError());
  Assembly assembly = take(assemble(R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) .reqntid 128 .minnctapersm 1 {
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  .shared .align 16 .b8 s[128];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, s;
  bar.sync 0;
  st.global.u32 [%rd1], %r1;
  setmaxnreg.inc.sync.aligned.u32 160;
  ret;
})",
                                    {"sm_90a", 3}, nullptr));
  EXPECT_EQ(llvm::StringRef(assembly.cubin).take_front(4), "\177ELF");
  ASSERT_EQ(assembly.report.kernels.size(), 1u);
  EXPECT_EQ(assembly.report.kernels[0].name, "k");
  EXPECT_GT(assembly.report.kernels[0].registers, 0);
  EXPECT_GE(assembly.report.kernels[0].staticSharedBytes, 128);
  EXPECT_EQ(assembly.report.kernels[0].barriers, 1);
  EXPECT_TRUE(getSlowdowns(assembly).empty());
}

TEST(RealPtxas, FindsSlowdowns) {
  if (auto ptxas = findPtxas("sm_90a", nullptr); !ptxas)
    GTEST_SKIP() << "needs ptxas: " << llvm::toString(ptxas.takeError());
  // An accumulator is read before the wait.
  Assembly assembly = take(assemble(R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 a, .param .u64 b) .reqntid 128 {
  .reg .f32 %f<4>;
  .reg .b64 %d<3>;
  ld.param.u64 %d0, [p];
  ld.param.u64 %d1, [a];
  ld.param.u64 %d2, [b];
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
      {%f0, %f1, %f2, %f3}, %d1, %d2, 0, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  add.f32 %f0, %f0, %f0;
  wgmma.wait_group.sync.aligned 0;
  st.global.f32 [%d0], %f0;
  st.global.f32 [%d0+4], %f1;
  ret;
})",
                                    {"sm_90a", 3}, nullptr));
  auto slowdowns = getSlowdowns(assembly);
  ASSERT_EQ(slowdowns.size(), 1u);
  EXPECT_NE(slowdowns[0].find(": C75"), std::string::npos) << slowdowns[0];
  EXPECT_EQ(llvm::StringRef(assembly.cubin).take_front(4), "\177ELF");
  EXPECT_EQ(assembly.report.diagnostics[0].kernel, "k");
}

} // namespace
