//===- DebugLog.h - Log of a pass's decisions and reasons -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's LDBG() is empty in builds with NDEBUG, as is the packaged LLVM's
// --debug-only. A person who wants to know why a schedule was chosen has such a
// build, so LDBG() is defined here again, for every build, over the same state:
// llvm::DebugFlag and llvm::setCurrentDebugTypes.
//
//   #include "fovea/Support/DebugLog.h"
//   #define DEBUG_TYPE "tile-schedule"
//   ...
//   LDBG() << "2 warpgroups: " << seconds << " s";
//
// prints "[tile-schedule] 2 warpgroups: ..." if the flag --debug-only names the
// type, or --debug is given. The streamed expressions are evaluated only then.
// DEBUG_TYPE is the name of the pass on the command line.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_SUPPORT_DEBUGLOG_H
#define FOVEA_SUPPORT_DEBUGLOG_H

// LLVM's header must be included before the definitions below.
#include "llvm/Support/DebugLog.h" // IWYU pragma: keep

#include <string>

namespace llvm::cl {
class OptionCategory;
} // namespace llvm::cl

namespace fovea {

/// Returns true if lines of this type are printed.
bool isLogged(const char *type);

/// One or several lines, each prefixed with its type. They are printed as a
/// whole, so that lines of passes that run in parallel do not mix.
class LogLine {
public:
  explicit LogLine(const char *type) : type(type), stream(text) {}
  ~LogLine();
  LogLine(const LogLine &) = delete;
  LogLine &operator=(const LogLine &) = delete;

  llvm::raw_ostream &get() { return stream; }

private:
  const char *type;
  std::string text;
  llvm::raw_string_ostream stream;
};

/// Adds --debug and --debug-only=TYPE[,TYPE] to the options of a category, or
/// to all, where LLVM has not done so.
void registerDebugOptions(llvm::cl::OptionCategory *category = nullptr);

} // namespace fovea

#undef LDBG
#define LDBG()                                                                 \
  for (bool fovea_logged = ::llvm::DebugFlag && ::fovea::isLogged(DEBUG_TYPE); \
       fovea_logged; fovea_logged = false)                                     \
  ::fovea::LogLine(DEBUG_TYPE).get()

#endif // FOVEA_SUPPORT_DEBUGLOG_H
