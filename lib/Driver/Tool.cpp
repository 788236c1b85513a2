//===- Tool.cpp - Code common to the command line tools -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Tool.h"
#include "fovea/Support/DebugLog.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"

using namespace fovea;
namespace cl = llvm::cl;

/// The text lives as long as the flag that refers to it.
static llvm::StringRef getTargetHelp() {
  static const std::string text =
      "Machine to compile for: host (default); gpu: what suits the GPU here; " +
      machine::GpuArch::listNames();
  return text;
}

static llvm::StringRef getStrategyHelp() {
  static const std::string text =
      "How attention is computed (default: fused): " +
      getStrategyChoices().describe();
  return text;
}

static llvm::StringRef getArchHelp() {
  static const std::string text = "Instructions to use (default: native): " +
                                  getHostArchChoices().describe();
  return text;
}

CompileFlags::CompileFlags(cl::OptionCategory &category)
    : input(cl::Positional, cl::desc("IN.mlir"), cl::init("-"),
            cl::cat(category)),
      target("target", cl::desc(getTargetHelp()), cl::value_desc("name"),
             cl::init("host"), cl::cat(category)),
      strategy("strategy", cl::desc(getStrategyHelp()), cl::value_desc("name"),
               cl::init("fused"), cl::cat(category)),
      arch("arch", cl::desc(getArchHelp()), cl::value_desc("name"),
           cl::init("native"), cl::cat(category)),
      cpu("cpu", cl::desc("Processor to generate code for, by LLVM's name"),
          cl::value_desc("name"), cl::cat(category)),
      optLevel("opt-level",
               cl::desc("Effort of code generation: 0, 1 (default), or 2 and 3 "
                        "with LLVM's own passes"),
               cl::value_desc("0-3"), cl::init(1), cl::cat(category)),
      deterministic(
          "deterministic",
          cl::desc("Compute the same bits in every run, on a GPU too, "
                   "where blocks then take turns to add gradients of "
                   "queries, and add those of captured tensors in integers"),
          cl::cat(category)),
      exactFunctions(
          "exact-functions",
          cl::desc("Never use a GPU's approximate tanh in scores, nor a "
                   "host's shorter powers of two for 16-bit types; otherwise "
                   "bf16 does, with relative errors of 2^-11 and 2^-13, and "
                   "f16 the powers, with 2^-18. Nor approximate what a GPU's "
                   "kernel makes of attention's output in 16 bits, nor "
                   "multiply f32 as three parts in bf16 on tensor cores"),
          cl::cat(category)),
      typicalLength(
          "typical-length",
          cl::desc("Lengths that a GPU's dynamic ones are taken for where "
                   "schedules are chosen; code serves all lengths in any case "
                   "(default: 4096; fovea-run then has code for short lengths "
                   "beside it, which the first call that it serves compiles)"),
          cl::value_desc("length"), cl::init(0), cl::cat(category)) {}

llvm::Expected<CompileOptions> CompileFlags::getOptions() const {
  CompileOptions options;
  auto gpu = parseTarget(target);
  if (!gpu)
    return llvm::createStringError("--target=" + target + ": " +
                                   llvm::toString(gpu.takeError()));
  options.gpu = *gpu;
  auto parsedStrategy = getStrategyChoices().parse(strategy);
  if (!parsedStrategy)
    return llvm::createStringError("--strategy=" + strategy + ": " +
                                   llvm::toString(parsedStrategy.takeError()));
  options.strategy = *parsedStrategy;
  auto parsedArch = getHostArchChoices().parse(arch);
  if (!parsedArch)
    return llvm::createStringError("--arch=" + arch + ": " +
                                   llvm::toString(parsedArch.takeError()));
  options.arch = *parsedArch;
  options.cpu = cpu;
  if (optLevel > 3)
    return llvm::createStringError("--opt-level=" + llvm::Twine(optLevel) +
                                   ": expected 0 to 3");
  options.optLevel = int(optLevel);
  options.deterministic = deterministic;
  options.exactFunctions = exactFunctions;
  if (typicalLength < 0 ||
      (typicalLength.getNumOccurrences() && !typicalLength))
    return llvm::createStringError(
        "--typical-length=" + llvm::Twine(typicalLength.getValue()) +
        ": expected 1 or more");
  options.typicalLength = typicalLength;
  return options;
}

llvm::Expected<std::unique_ptr<Program>> CompileFlags::parseInput() const {
  return parseFile(input);
}

llvm::Expected<std::unique_ptr<Program>>
fovea::parseFile(const std::string &input) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError("cannot read '" + input +
                                   "': " + buffer.getError().message());
  return Program::parse((*buffer)->getBuffer(),
                        input == "-" ? "<stdin>" : llvm::StringRef(input));
}

static constexpr char kBugReport[] =
    "This is a bug in Fovea; please report it with the command and its "
    "input.\n";

CompiledCodeScope::CompiledCodeScope() {
  llvm::setBugReportMsg(
      "The compiled graph crashed. Either its operands lead to an index out of "
      "bounds or a\ndivision by 0: run it with --check-bounds, which names the "
      "op. Or, if that finds\nnothing, this is a bug in Fovea; please report "
      "it with the command and its input.\n");
}

CompiledCodeScope::~CompiledCodeScope() { llvm::setBugReportMsg(kBugReport); }

void fovea::parseCommandLine(int argc, char **argv,
                             cl::OptionCategory &category,
                             llvm::StringRef overview) {
  llvm::setBugReportMsg(kBugReport);
  registerDebugOptions(&category);
  cl::HideUnrelatedOptions(category);
  cl::SetVersionPrinter([](llvm::raw_ostream &stream) {
    stream << "Fovea " FOVEA_VERSION " on LLVM " LLVM_VERSION_STRING "\n";
  });
  cl::ParseCommandLineOptions(argc, argv, overview);
}

void fovea::reportRemarks(llvm::StringRef tool,
                          llvm::ArrayRef<std::string> remarks) {
  for (const std::string &remark : remarks)
    llvm::errs() << tool << ": remark: " << remark << '\n';
}

int fovea::reportError(llvm::StringRef tool, llvm::Error error) {
  llvm::errs() << tool << ": " << llvm::toString(std::move(error)) << '\n';
  return 1;
}
