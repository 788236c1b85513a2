//===- Output.cpp - Writing of files that a user names --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Output.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fovea;

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace {
/// The file that a name leads to.
struct Target {
  enum Kind {
    /// The file does not exist yet.
    New,
    /// A regular file that may be replaced.
    Replaced,
    /// Anything that must stay the file that it is.
    Kept,
    StandardOutput,
    StandardError
  };
  Kind kind = New;
  /// The path without links.
  std::string path;
  /// The status of an existing file.
  struct stat status = {};

  bool isSameFile(const Target &other) const {
    if (kind == New || other.kind == New)
      return kind == other.kind && path == other.path;
    return S_ISREG(status.st_mode) && status.st_dev == other.status.st_dev &&
           status.st_ino == other.status.st_ino;
  }
};
} // namespace

static std::error_code getLastError() {
  return std::error_code(errno, std::generic_category());
}

static llvm::Error fail(llvm::StringRef name, std::error_code code) {
  return llvm::createStringError(code, "cannot write '" + name +
                                           "': " + code.message());
}

/// Returns true if `status` is of the file that a stream of this process has
/// open.
static bool isStream(const struct stat &status, int stream) {
  struct stat other;
  return !::fstat(stream, &other) && status.st_dev == other.st_dev &&
         status.st_ino == other.st_ino;
}

static llvm::Expected<Target> findTarget(llvm::StringRef name) {
  Target target;
  if (name == "-") {
    target.kind = Target::StandardOutput;
    return target;
  }
  // Links are followed one after the other, for the last one may lead to a file
  // that does not exist yet.
  constexpr int kMostLinks = 40;
  llvm::SmallString<128> current = name;
  bool isOpenFile = false;
  for (int links = 0;; ++links) {
    struct stat link;
    if (::lstat(current.c_str(), &link) || !S_ISLNK(link.st_mode))
      break;
    if (links == kMostLinks)
      return fail(
          name, std::make_error_code(std::errc::too_many_symbolic_link_levels));
    llvm::SmallString<128> next, folder;
    next.resize_for_overwrite(4096);
    ssize_t length = ::readlink(current.c_str(), next.data(), next.size());
    if (length < 0)
      return fail(name, getLastError());
    next.truncate(size_t(length));
    // A link that the kernel made to an open file: its text is a description.
    if (!fs::real_path(path::parent_path(current), folder) &&
        folder.starts_with("/proc/")) {
      isOpenFile = true;
      break;
    }
    if (path::is_relative(next))
      path::make_absolute(path::parent_path(current), next);
    current = next;
  }
  llvm::SmallString<128> folder;
  llvm::StringRef parent = path::parent_path(current);
  if (std::error_code code =
          fs::real_path(parent.empty() ? "." : parent, folder))
    return fail(name, code);
  target.path = current.str().str();
  if (::stat(current.c_str(), &target.status)) {
    if (errno != ENOENT)
      return fail(name, getLastError());
    path::append(folder, path::filename(current));
    target.path = folder.str().str();
    return target;
  }
  if (S_ISDIR(target.status.st_mode))
    return fail(name, std::make_error_code(std::errc::is_a_directory));
  if (isStream(target.status, STDOUT_FILENO))
    target.kind = Target::StandardOutput;
  else if (isStream(target.status, STDERR_FILENO))
    target.kind = Target::StandardError;
  else if (S_ISREG(target.status.st_mode) && !isOpenFile &&
           target.status.st_nlink == 1 && target.status.st_uid == ::geteuid() &&
           target.status.st_gid == ::getegid() &&
           !::access(folder.c_str(), W_OK))
    target.kind = Target::Replaced;
  else
    target.kind = Target::Kept;
  return target;
}

/// Ends a stream to a file and returns the error of any of its writes.
static std::error_code finish(llvm::raw_fd_ostream &stream) {
  stream.flush();
  std::error_code code = stream.error();
  stream.clear_error();
  return code;
}

/// Writes a new file next to the target, and gives it the target's name.
static std::error_code
replace(const Target &target,
        llvm::function_ref<void(llvm::raw_ostream &)> write) {
  auto temporary = fs::TempFile::create(target.path + ".tmp%%%%%%%%",
                                        fs::all_read | fs::all_write);
  if (!temporary)
    return llvm::errorToErrorCode(temporary.takeError());
  std::error_code code;
  if (target.kind == Target::Replaced &&
      ::fchmod(temporary->FD, target.status.st_mode & 07777))
    code = getLastError();
  if (!code) {
    llvm::raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
    write(stream);
    code = finish(stream);
  }
  if (code) {
    llvm::consumeError(temporary->discard());
    return code;
  }
  return llvm::errorToErrorCode(temporary->keep(target.path));
}

static std::error_code
writeInto(const Target &target,
          llvm::function_ref<void(llvm::raw_ostream &)> write) {
  int file =
      ::open(target.path.c_str(), O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC);
  if (file < 0)
    return getLastError();
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
  write(stream);
  return finish(stream);
}

static std::error_code
writeTo(int file, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  llvm::outs().flush();
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/false);
  write(stream);
  return finish(stream);
}

/// Returns an error if writing cannot be expected to succeed.
static llvm::Error checkTarget(llvm::StringRef name, const Target &target) {
  std::string needed = target.path;
  if (target.kind == Target::New)
    needed = path::parent_path(target.path).str();
  else if (target.kind != Target::Replaced && target.kind != Target::Kept)
    return llvm::Error::success();
  if (::access(needed.c_str(), W_OK))
    return fail(name, getLastError());
  return llvm::Error::success();
}

llvm::Error
fovea::writeOutput(llvm::StringRef name,
                   llvm::function_ref<void(llvm::raw_ostream &)> write) {
  auto target = findTarget(name);
  if (!target)
    return target.takeError();
  if (llvm::Error error = checkTarget(name, *target))
    return error;
  auto code = [&] {
    switch (target->kind) {
    case Target::New:
    case Target::Replaced:
      return replace(*target, write);
    case Target::Kept:
      return writeInto(*target, write);
    case Target::StandardOutput:
      return writeTo(STDOUT_FILENO, write);
    case Target::StandardError:
      return writeTo(STDERR_FILENO, write);
    }
    llvm_unreachable("unknown target");
  }();
  return code ? fail(name, code) : llvm::Error::success();
}

llvm::Error fovea::checkOutputs(llvm::ArrayRef<std::string> paths) {
  llvm::SmallVector<Target> targets;
  for (const std::string &name : paths) {
    auto target = findTarget(name);
    if (!target)
      return target.takeError();
    if (llvm::Error error = checkTarget(name, *target))
      return error;
    for (auto [other, earlier] : llvm::zip(paths, targets))
      if (target->isSameFile(earlier))
        return llvm::createStringError(
            "'" + other + "' and '" + name +
            "' are one file; expected another name for each output");
    targets.push_back(std::move(*target));
  }
  return llvm::Error::success();
}
