//===- TargetTest.h - Helpers for tests of Target ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_UNITTESTS_TARGET_TARGETTEST_H
#define FOVEA_UNITTESTS_TARGET_TARGETTEST_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <optional>

namespace fovea {

/// Returns the message of an error, or `success`.
template <typename T>
std::string getMessage(llvm::Expected<T> value) {
  return value ? "success" : llvm::toString(value.takeError());
}
inline std::string getMessage(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : "success";
}

template <typename T>
T take(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  llvm::errs() << llvm::toString(value.takeError()) << "\n";
  std::abort();
}

/// A folder that is removed at the end.
class TemporaryFolder {
public:
  TemporaryFolder() {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("fovea-test", path));
  }
  ~TemporaryFolder() { llvm::sys::fs::remove_directories(path); }

  std::string getPath(const llvm::Twine &name = "") const {
    llvm::SmallString<128> result(path);
    llvm::sys::path::append(result, name);
    return result.str().str();
  }

  /// Writes a file and returns its path.
  std::string write(const llvm::Twine &name, llvm::StringRef content,
                    bool executable = false) const {
    std::string file = getPath(name);
    llvm::sys::fs::create_directories(llvm::sys::path::parent_path(file));
    std::error_code code;
    {
      llvm::raw_fd_ostream stream(file, code);
      stream << content;
    }
    EXPECT_FALSE(code);
    if (executable)
      llvm::sys::fs::setPermissions(file, llvm::sys::fs::owner_all);
    return file;
  }

private:
  llvm::SmallString<128> path;
};

/// Sets an environment variable, or removes it, while this object lives.
class ScopedVariable {
public:
  ScopedVariable(const char *name, std::optional<std::string> value)
      : name(name) {
    if (const char *old = std::getenv(name))
      previous = old;
    set(value);
  }
  ScopedVariable(const ScopedVariable &) = delete;
  ScopedVariable &operator=(const ScopedVariable &) = delete;
  ~ScopedVariable() { set(previous); }

private:
  void set(const std::optional<std::string> &value) {
    if (value)
      setenv(name, value->c_str(), 1);
    else
      unsetenv(name);
  }

  const char *name;
  std::optional<std::string> previous;
};

} // namespace fovea

#endif // FOVEA_UNITTESTS_TARGET_TARGETTEST_H
