//===- DebugLog.cpp - Log of a pass's decisions and reasons ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Support/DebugLog.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

using namespace fovea;
namespace cl = llvm::cl;

// With NDEBUG these are macros that do nothing; the packaged library defines
// the functions.
#undef isCurrentDebugType
#undef setCurrentDebugTypes
namespace llvm {
bool isCurrentDebugType(const char *type, int level);
void setCurrentDebugTypes(const char **types, unsigned count);
} // namespace llvm

bool fovea::isLogged(const char *type) {
  return llvm::DebugFlag && llvm::isCurrentDebugType(type, 1);
}

LogLine::~LogLine() {
  std::string lines;
  for (llvm::StringRef line : llvm::split(text, '\n'))
    lines += ("[" + llvm::Twine(type) + "] " + line + "\n").str();
  llvm::dbgs() << lines;
}

/// Takes the value of --debug-only.
static void setTypes(const std::string &value) {
  llvm::SmallVector<std::string> names;
  for (llvm::StringRef name : llvm::split(value, ','))
    if (!name.empty())
      names.push_back(name.str());
  llvm::SmallVector<const char *> types;
  for (const std::string &name : names)
    types.push_back(name.c_str());
  llvm::setCurrentDebugTypes(types.data(), types.size());
  llvm::DebugFlag = true;
}

void fovea::registerDebugOptions(cl::OptionCategory *category) {
  // An LLVM with assertions has these options already.
  if (cl::getRegisteredOptions().contains("debug-only"))
    return;
  static cl::opt<bool, /*ExternalStorage=*/true> debug(
      "debug", cl::desc("Print what passes decide, and why"),
      cl::location(llvm::DebugFlag));
  static cl::opt<std::string> debugOnly(
      "debug-only", cl::desc("Print what these passes decide, and why"),
      cl::value_desc("pass[,pass]"),
      cl::callback([](const std::string &value) { setTypes(value); }));
  if (category) {
    debug.addCategory(*category);
    debugOnly.addCategory(*category);
  }
}
