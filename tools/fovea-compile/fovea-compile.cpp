//===- fovea-compile.cpp - Compiles a graph to any level ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Output.h"
#include "fovea/Driver/Tool.h"
#include "fovea/Support/PhaseTiming.h"
#include "fovea/Target/DiskCache.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace fovea;
namespace cl = llvm::cl;

static cl::OptionCategory category("fovea-compile options");
static CompileFlags flags(category);
static cl::opt<std::string> emit(
    "emit",
    cl::desc("What to write: attn (the graph), fused (attention with its "
             "schedule), tiled (loops over tiles), llvm (default: the LLVM "
             "dialect); for the host also asm, obj; for a GPU tile "
             "(programs of thread blocks), gpu, nvvm, ptx, cubin"),
    cl::value_desc("level"), cl::init("llvm"), cl::cat(category));
static cl::opt<bool> printResources(
    "print-resources",
    cl::desc("Print what each kernel needs, from ptxas, and what it is "
             "started for, to standard error"),
    cl::cat(category));
static cl::opt<bool> timePhases(
    "time",
    cl::desc("Print how long each phase and pass takes, to standard error, in "
             "a process that has compiled the same before. The assembler runs "
             "again where FOVEA_CACHE_DIR is empty"),
    cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("File to write (default: -)"),
                                   cl::value_desc("file"), cl::init("-"),
                                   cl::cat(category));

/// Prints a launch: `computes attn.values of line 16: 256 blocks of 128
/// threads`.
static void print(const KernelLaunch &launch) {
  auto show = [](std::optional<int64_t> number, const char *otherwise) {
    return number ? std::to_string(*number) : otherwise;
  };
  llvm::errs() << "  "
               << (launch.isCopy   ? "copies for "
                   : launch.isFill ? "fills for "
                                   : "computes ")
               << (launch.op.empty() ? "part of the graph" : launch.op.c_str());
  if (launch.line)
    llvm::errs() << " of line " << launch.line;
  llvm::errs() << ": " << show(launch.blocks, "(by the sizes)") << " blocks of "
               << show(launch.threads, "(by the sizes)") << " threads, "
               << show(launch.dynamicSharedBytes, "(by the sizes)")
               << " bytes of dynamic shared memory"
               << (launch.isInLoop ? ", in a loop" : "")
               << (launch.isConditional ? ", if a condition holds" : "")
               << '\n';
}

/// Prints each kernel where it is first started.
static void print(const PtxasReport &report,
                  llvm::ArrayRef<KernelLaunch> launches) {
  llvm::StringSet<> done;
  auto printOnce = [&](const KernelResources &kernel) {
    if (!done.insert(kernel.name).second)
      return;
    llvm::errs() << kernel.name << ": " << kernel.registers << " registers, "
                 << kernel.stackBytes << " bytes of stack, "
                 << kernel.spillStoreBytes << " spilled, "
                 << kernel.staticSharedBytes << " of static shared memory, "
                 << kernel.barriers << " barriers\n";
    for (const KernelLaunch &launch : launches)
      if (launch.kernel == kernel.name)
        print(launch);
  };
  for (const KernelLaunch &launch : launches)
    for (const KernelResources &kernel : report.kernels)
      if (launch.kernel == kernel.name)
        printOnce(kernel);
  // Prints the kernels that nothing starts, if the text is no graph.
  llvm::for_each(report.kernels, printOnce);
}

/// Generates code that nobody gets, so that this process has done it before.
static llvm::Error warmUp(const Program &program,
                          const CompileOptions &options) {
  if (options.gpu)
    return program.emitPTX(options).takeError();
  return program.emit(CodeKind::Object, options).takeError();
}

/// Returns the output that `--emit` requests, from a program.
static llvm::Expected<std::string> emitFrom(const Program &program,
                                            const CompileOptions &options,
                                            std::optional<Level> level) {
  if (printResources || emit == "cubin") {
    auto assembly = program.assemble(options);
    if (!assembly)
      return assembly.takeError();
    reportRemarks("fovea-compile", getSlowdowns(*assembly));
    if (printResources) {
      auto launches = program.findLaunches(options);
      if (!launches)
        return launches.takeError();
      print(assembly->report, *launches);
    }
    if (emit == "cubin")
      return std::move(assembly->cubin);
  }
  if (level)
    return program.print(*level, options);
  if (emit == "ptx") {
    auto code = program.emitPTX(options);
    if (!code)
      return code.takeError();
    return std::move(code->ptx);
  }
  auto code = program.emit(
      emit == "asm" ? CodeKind::Assembly : CodeKind::Object, options);
  if (!code)
    return code.takeError();
  return (*code)->getBuffer().str();
}

/// Returns the output that `--emit` requests.
static llvm::Expected<std::string> compile() {
  auto options = flags.getOptions();
  if (!options)
    return options.takeError();
  auto level = parseLevel(emit, *options);
  if (!level)
    return llvm::createStringError("--emit=" + emit + ": " +
                                   llvm::toString(level.takeError()));
  if (printResources && !options->gpu)
    return llvm::createStringError(
        "--print-resources: the host has no kernels; expected --target=gpu, " +
        machine::GpuArch::listNames());
  if (llvm::Error error = checkOutputs({output}))
    return error;
  auto program = flags.parseInput();
  if (!program)
    return program.takeError();
  mlir::DefaultTimingManager timing;
  timing.setEnabled(timePhases);
  mlir::TimingScope whole;
  if (timePhases) {
    if (llvm::Error error = warmUp(**program, *options))
      return error;
    whole = timing.getRootScope();
    options->timing = &whole;
    mlir::TimingScope phase = timePhase(&whole, "Parsing");
    program = Program::parse((*program)->getText(), "<again>");
    if (!program)
      return program.takeError();
  }
  auto text = emitFrom(**program, *options, *level);
  reportRemarks("fovea-compile", (*program)->takeRemarks());
  return text;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  parseCommandLine(
      argc, argv, category,
      "Compiles a graph of attention, and shows any level of it\n");
  auto text = compile();
  reportRemarks("fovea-compile", DiskCache::get().takeRemarks());
  if (!text)
    return reportError("fovea-compile", text.takeError());
  if (llvm::Error error = writeOutput(
          output, [&](llvm::raw_ostream &stream) { stream << *text; }))
    return reportError("fovea-compile", std::move(error));
  return 0;
}
