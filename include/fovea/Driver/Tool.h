//===- Tool.h - Code common to the command line tools -----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_TOOL_H
#define FOVEA_DRIVER_TOOL_H

#include "fovea/Driver/Program.h"
#include "llvm/Support/CommandLine.h"

namespace fovea {

/// The options of every tool that compiles a file.
struct CompileFlags {
  explicit CompileFlags(llvm::cl::OptionCategory &category);

  llvm::cl::opt<std::string> input;
  llvm::cl::opt<std::string> target;
  llvm::cl::opt<std::string> strategy;
  llvm::cl::opt<std::string> arch;
  llvm::cl::opt<std::string> cpu;
  llvm::cl::opt<unsigned> optLevel;
  llvm::cl::opt<bool> deterministic;
  llvm::cl::opt<bool> exactFunctions;
  llvm::cl::opt<int64_t> typicalLength;

  /// Returns the options by value; an error names the flag that is wrong.
  llvm::Expected<CompileOptions> getOptions() const;

  /// Reads and parses the input.
  llvm::Expected<std::unique_ptr<Program>> parseInput() const;
};

/// Reads and parses a file, where `-` is standard input.
llvm::Expected<std::unique_ptr<Program>> parseFile(const std::string &input);

/// Parses a command line; the user sees options of `category` only.
void parseCommandLine(int argc, char **argv, llvm::cl::OptionCategory &category,
                      llvm::StringRef overview);

/// Marks a scope in which compiled code runs: a fault there is more likely the
/// graph's, or its operands', than the tool's, and the message of a crash says
/// so.
class CompiledCodeScope {
public:
  CompiledCodeScope();
  ~CompiledCodeScope();
  CompiledCodeScope(const CompiledCodeScope &) = delete;
  CompiledCodeScope &operator=(const CompiledCodeScope &) = delete;
};

/// Prints remarks as the tool's, a line each.
void reportRemarks(llvm::StringRef tool, llvm::ArrayRef<std::string> remarks);

/// Prints an error as the tool's and returns the exit status.
int reportError(llvm::StringRef tool, llvm::Error error);

} // namespace fovea

#endif // FOVEA_DRIVER_TOOL_H
