//===- Ptxas.cpp - From PTX to machine code -------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/Ptxas.h"
#include "PtxasProcess.h"
#include "fovea/Target/DiskCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

using namespace fovea;

namespace fs = llvm::sys::fs;

namespace {

/// A new file in the folder for temporary files, removed at the end.
class TemporaryFile {
public:
  llvm::Error create(llvm::StringRef suffix, llvm::StringRef content = "") {
    int file;
    if (std::error_code code =
            fs::createTemporaryFile("fovea", suffix, file, path))
      return llvm::createStringError(code, "cannot create a temporary file: " +
                                               code.message());
    remover.setFile(path);
    llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
    stream << content;
    stream.close();
    std::error_code code = stream.error();
    stream.clear_error();
    if (code)
      return llvm::createStringError(code, "cannot write '" + path +
                                               "': " + code.message());
    return llvm::Error::success();
  }

  llvm::Expected<std::string> read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false);
    if (!buffer)
      return llvm::createStringError(buffer.getError(),
                                     "cannot read '" + path +
                                         "': " + buffer.getError().message());
    return (*buffer)->getBuffer().str();
  }

  llvm::StringRef getPath() const { return path; }

private:
  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};

} // namespace

/// Packs a cache entry: the length of the log, the log, the cubin.
static std::string pack(llvm::StringRef log, llvm::StringRef cubin) {
  std::string entry(8, '\0');
  llvm::support::endian::write64le(entry.data(), log.size());
  entry += log;
  entry += cubin;
  return entry;
}

static bool unpack(llvm::StringRef entry, llvm::StringRef &log,
                   llvm::StringRef &cubin) {
  if (entry.size() < 8)
    return false;
  uint64_t size = llvm::support::endian::read64le(entry.data());
  entry = entry.drop_front(8);
  if (size > entry.size())
    return false;
  log = entry.take_front(size);
  cubin = entry.drop_front(size);
  return true;
}

static llvm::Expected<unsigned> getTimeout() {
  const char *text = std::getenv("FOVEA_PTXAS_TIMEOUT");
  unsigned seconds = 600;
  if (text && *text &&
      (llvm::StringRef(text).getAsInteger(10, seconds) || seconds == 0))
    return llvm::createStringError("FOVEA_PTXAS_TIMEOUT=" + llvm::Twine(text) +
                                   ": expected a number of seconds from 1 on");
  return seconds;
}

llvm::Expected<PtxasOutput>
fovea::runPtxas(llvm::StringRef file,
                llvm::ArrayRef<llvm::StringRef> arguments) {
  auto timeout = getTimeout();
  if (!timeout)
    return timeout.takeError();
  TemporaryFile output;
  if (llvm::Error error = output.create("log"))
    return error;
  llvm::SmallVector<llvm::StringRef> words = {file};
  llvm::append_range(words, arguments);
  std::string message;
  bool failed = false;
  llvm::sys::ProcessInfo process = llvm::sys::ExecuteNoWait(
      file, words, /*Env=*/std::nullopt,
      {llvm::StringRef(""), output.getPath(), output.getPath()},
      /*MemoryLimit=*/0, &message, &failed);
  if (failed)
    return llvm::createStringError("cannot run '" + file + "': " + message);
  // Waiting with a limit would use the process's alarm, which belongs to its
  // user.
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(*timeout);
  llvm::sys::ProcessInfo ended;
  for (auto pause = std::chrono::microseconds(200);;
       pause = std::min(2 * pause, std::chrono::microseconds(1000))) {
    ended = llvm::sys::Wait(process, /*SecondsToWait=*/0, &message);
    if (ended.Pid != 0)
      break;
    if (std::chrono::steady_clock::now() >= end) {
      ::kill(process.Pid, SIGKILL);
      llvm::sys::Wait(process, /*SecondsToWait=*/std::nullopt);
      return llvm::createStringError(
          "'" + file + "' has not ended after " + llvm::Twine(*timeout) +
          " seconds, and was ended; FOVEA_PTXAS_TIMEOUT gives it another time");
    }
    std::this_thread::sleep_for(pause);
  }
  if (ended.ReturnCode < 0)
    return llvm::createStringError("cannot run '" + file + "': " + message);
  auto log = output.read();
  if (!log)
    return log.takeError();
  return PtxasOutput{ended.ReturnCode, std::move(*log)};
}

llvm::Expected<Assembly> fovea::assemble(llvm::StringRef ptx,
                                         const AssembleOptions &options,
                                         DiskCache *cache) {
  auto ptxas = findPtxas(options.chip, cache);
  if (!ptxas)
    return ptxas.takeError();
  Assembly assembly;
  assembly.assembler = "ptxas " + formatVersion(ptxas->version);
  std::string arch = "-arch=" + options.chip;
  std::string level = "-O" + std::to_string(options.optLevel);
  CacheKey key("cubin");
  key.add(FOVEA_VERSION).add(assembly.assembler).add(arch).add(level).add(ptx);
  if (cache) {
    llvm::StringRef log, cubin;
    if (auto entry = cache->lookup(key);
        entry && unpack(entry->getBuffer(), log, cubin)) {
      assembly.cubin = cubin.str();
      assembly.report = parsePtxasLog(log);
      assembly.fromCache = true;
      return assembly;
    }
  }

  TemporaryFile input, output;
  if (llvm::Error error = input.create("ptx", ptx))
    return error;
  if (llvm::Error error = output.create("cubin"))
    return error;
  llvm::SmallVector<llvm::StringRef> arguments = {
      "-v", arch, level, "-o", output.getPath(), input.getPath()};
  // Kernels at once; the code is the same.
  constexpr PtxasVersion kFirstSplit = {13, 0, 88};
  if (ptxas->version >= kFirstSplit)
    arguments.push_back("--split-compile=8");
  auto result = runPtxas(ptxas->path, arguments);
  if (!result)
    return result.takeError();
  assembly.report = parsePtxasLog(result->log);
  if (result->exitCode != 0)
    return llvm::createStringError(
        assembly.assembler + " cannot assemble the kernels for " +
        options.chip + ":\n" + llvm::StringRef(result->log).rtrim());
  auto cubin = output.read();
  if (!cubin)
    return cubin.takeError();
  assembly.cubin = std::move(*cubin);
  if (cache)
    cache->store(key, pack(result->log, assembly.cubin));
  return assembly;
}
