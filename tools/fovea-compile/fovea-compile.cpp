//===- fovea-compile.cpp - Compiles a graph to any level ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Tool.h"

#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace fovea;
namespace cl = llvm::cl;

static cl::OptionCategory category("fovea-compile options");
static CompileFlags flags(category);
static cl::opt<std::string>
    emit("emit",
         cl::desc("What to write: attn (the graph with fused attention), fused "
                  "(online attention with its schedule), tiled (loops over "
                  "tiles), llvm (default: the LLVM dialect), asm, obj"),
         cl::value_desc("level"), cl::init("llvm"), cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("File to write (default: -)"),
                                   cl::value_desc("file"), cl::init("-"),
                                   cl::cat(category));

/// What `--emit` asks for.
static llvm::Expected<std::string> compile() {
  auto options = flags.getOptions();
  if (!options)
    return options.takeError();
  std::optional<Level> level = parseLevel(emit);
  if (!level && emit != "asm" && emit != "obj")
    return llvm::createStringError("--emit=" + emit +
                                   ": unknown level; expected attn, fused, "
                                   "tiled, llvm, asm or obj");
  auto program = flags.parseInput();
  if (!program)
    return program.takeError();
  if (level)
    return (*program)->print(*level, *options);
  auto code = (*program)->emit(
      emit == "asm" ? CodeKind::Assembly : CodeKind::Object, *options);
  if (!code)
    return code.takeError();
  return (*code)->getBuffer().str();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  parseCommandLine(
      argc, argv, category,
      "Compiles a graph of attention, and shows any level of it\n");
  auto text = compile();
  if (!text)
    return reportError("fovea-compile", text.takeError());
  if (llvm::Error error =
          llvm::writeToOutput(output, [&](llvm::raw_ostream &stream) {
            stream << *text;
            return llvm::Error::success();
          }))
    return reportError(
        "fovea-compile",
        llvm::createStringError("cannot write '" + output +
                                "': " + llvm::toString(std::move(error))));
  return 0;
}
