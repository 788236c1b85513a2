//===- PtxasSearch.cpp - Search for a ptxas that is fit -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PtxasProcess.h"
#include "fovea/Target/DiskCache.h"
#include "fovea/Target/Ptxas.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

#include <dlfcn.h>

using namespace fovea;

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace {

constexpr PtxasVersion kOldest = {12, 0, 0};
/// Versions 12.8.0 up to 12.9.0 are unfit; 12.9.1, which is right again, is
/// build 86.
constexpr PtxasVersion kFirstBad = {12, 8, 0};
constexpr PtxasVersion kFirstGood = {12, 9, 86};

} // namespace

static std::string makePath(const llvm::Twine &folder,
                            const llvm::Twine &name) {
  llvm::SmallString<128> result;
  folder.toVector(result);
  path::append(result, name);
  return result.str().str();
}

/// Adds the folders below `prefix` where Python packages are installed.
static void addPackageFolders(llvm::StringRef prefix,
                              llvm::SmallVectorImpl<std::string> &folders) {
  std::error_code code;
  for (fs::directory_iterator entry(makePath(prefix, "lib"), code), end;
       !code && entry != end; entry.increment(code)) {
    if (!path::filename(entry->path()).starts_with("python3"))
      continue;
    for (const char *name : {"site-packages", "dist-packages"})
      if (std::string folder = makePath(entry->path(), name);
          fs::is_directory(folder))
        folders.push_back(folder);
  }
}

/// Returns the folders where Python packages with a ptxas may be.
static llvm::SmallVector<std::string> getPackageFolders() {
  llvm::SmallVector<std::string> folders;
  // The folder of Fovea's own package comes first.
  Dl_info info;
  if (dladdr(&kOldest, &info) && info.dli_fname) {
    llvm::StringRef folder = path::parent_path(info.dli_fname);
    for (; !folder.empty() && folder != "/"; folder = path::parent_path(folder))
      if (path::filename(folder) == "site-packages" ||
          path::filename(folder) == "dist-packages")
        folders.push_back(folder.str());
  }
  for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (auto prefix = llvm::sys::Process::GetEnv(variable))
      addPackageFolders(*prefix, folders);
  if (auto python = llvm::sys::findProgramByName("python3"))
    addPackageFolders(path::parent_path(path::parent_path(*python)), folders);
  llvm::SmallString<128> home;
  if (path::home_directory(home))
    addPackageFolders(makePath(home, ".local"), folders);
  return folders;
}

/// Returns every file that may be a ptxas, best first.
static llvm::SmallVector<std::string> getCandidates() {
  llvm::SmallVector<std::string> files;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto toolkit = llvm::sys::Process::GetEnv(variable);
        toolkit && !toolkit->empty())
      files.push_back(makePath(*toolkit, "bin/ptxas"));
  if (auto program = llvm::sys::findProgramByName("ptxas"))
    files.push_back(*program);
  files.push_back("/usr/local/cuda/bin/ptxas");
  for (const std::string &folder : getPackageFolders())
    for (const char *name :
         {"nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas",
          "triton/backends/nvidia/bin/ptxas"})
      files.push_back(makePath(folder, name));
  llvm::StringSet<> seen;
  llvm::erase_if(files, [&](const std::string &file) {
    return !fs::can_execute(file) || !seen.insert(file).second;
  });
  return files;
}

/// Reads `... release 13.0, V13.0.88`.
static llvm::Expected<PtxasVersion> parseVersion(llvm::StringRef text) {
  PtxasVersion version;
  llvm::StringRef rest =
      text.substr(text.find(", V")).drop_front(text.contains(", V") ? 3 : 0);
  if (!text.contains(", V") || rest.consumeInteger(10, version.major) ||
      !rest.consume_front(".") || rest.consumeInteger(10, version.minor) ||
      !rest.consume_front(".") || rest.consumeInteger(10, version.build))
    return llvm::createStringError("it does not say its version");
  return version;
}

static llvm::Expected<PtxasVersion> readVersion(llvm::StringRef file,
                                                DiskCache *cache) {
  fs::file_status status;
  if (std::error_code code = fs::status(file, status))
    return llvm::errorCodeToError(code);
  CacheKey key("ptxas-version");
  key.add(file).add(int64_t(status.getSize()));
  key.add(int64_t(status.getLastModificationTime().time_since_epoch().count()));
  if (cache)
    if (auto entry = cache->lookup(key))
      if (entry->getBufferSize() == sizeof(PtxasVersion))
        return *reinterpret_cast<const PtxasVersion *>(entry->getBufferStart());
  auto output = runPtxas(file, {"--version"});
  if (!output)
    return output.takeError();
  auto version = parseVersion(output->log);
  if (version && cache)
    cache->store(key, llvm::StringRef(reinterpret_cast<const char *>(&*version),
                                      sizeof(PtxasVersion)));
  return version;
}

/// Returns the reason why a ptxas is not fit to assemble for `chip`; empty if
/// it is fit.
static std::string getObjection(PtxasVersion version, llvm::StringRef chip) {
  if (version < kOldest)
    return "it is older than " + formatVersion(kOldest);
  if (chip == "sm_90a" && version >= kFirstBad && version < kFirstGood)
    return "12.8.0 up to 12.9.0 are known to miscompile code for sm_90a";
  return "";
}

std::string fovea::formatVersion(PtxasVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) +
         "." + std::to_string(version.build);
}

llvm::Expected<Ptxas> fovea::findPtxas(llvm::StringRef chip, DiskCache *cache) {
  llvm::SmallVector<std::string> files;
  if (auto chosen = llvm::sys::Process::GetEnv("FOVEA_PTXAS");
      chosen && !chosen->empty())
    files = {*chosen};
  else
    files = getCandidates();
  std::string objections;
  for (const std::string &file : files) {
    auto version = readVersion(file, cache);
    std::string objection;
    std::string name = "\n  " + file;
    if (version) {
      name += " (" + formatVersion(*version) + ")";
      objection = getObjection(*version, chip);
    } else {
      objection = llvm::toString(version.takeError());
    }
    if (objection.empty())
      return Ptxas{file, *version};
    objections += name + ": " + objection;
  }
  auto missing = std::make_error_code(std::errc::no_such_file_or_directory);
  if (objections.empty())
    return llvm::createStringError(
        missing, "no ptxas: set FOVEA_PTXAS, or install a CUDA toolkit or the "
                 "Python package nvidia-cuda-nvcc");
  return llvm::createStringError(missing, "no ptxas is fit for " + chip + ":" +
                                              objections);
}
