//===- DiskCache.cpp - Compiled code, kept from run to run ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/DiskCache.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

#include <dlfcn.h>

using namespace fovea;

namespace fs = llvm::sys::fs;

namespace {
/// In front of an entry's content.
struct Header {
  char magic[8];
  uint8_t hash[32];
  uint64_t bytes;
  uint64_t checksum;
};
} // namespace

static constexpr char kMagic[8] = {'F', 'O', 'V', 'E', 'A', '0', '0', '1'};

/// The prefix of names that LLVM's pruning handles.
static constexpr llvm::StringLiteral kPrefix = "llvmcache-";

static constexpr auto kPruneInterval = std::chrono::minutes(10);
static constexpr auto kExpiration = std::chrono::hours(30 * 24);
/// The precision of the time of the last use.
static constexpr auto kTouchInterval = std::chrono::hours(1);

static std::string getDefaultFolder() {
  if (auto folder = llvm::sys::Process::GetEnv("FOVEA_CACHE_DIR"))
    return *folder;
  llvm::SmallString<128> folder;
  if (!llvm::sys::path::cache_directory(folder))
    return "";
  llvm::sys::path::append(folder, "fovea");
  return folder.str().str();
}

//===----------------------------------------------------------------------===//
// CacheKey
//===----------------------------------------------------------------------===//

CacheKey &CacheKey::add(llvm::StringRef text) {
  add(int64_t(text.size()));
  hash.update(text);
  return *this;
}

CacheKey &CacheKey::add(int64_t number) {
  hash.update(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(&number),
                             sizeof(number)));
  return *this;
}

std::array<uint8_t, 32> CacheKey::getHash() const {
  return llvm::SHA256(hash).final();
}

const std::string &fovea::getBuildIdentity() {
  static const std::string identity = [] {
    std::string text = "Fovea " FOVEA_VERSION " LLVM " LLVM_VERSION_STRING;
    // Finds the file of the library or of the program, whose name may lack its
    // folder.
    Dl_info info;
    fs::file_status status;
    llvm::StringRef file = "/proc/self/exe";
    if (dladdr(kMagic, &info) && info.dli_fname &&
        llvm::StringRef(info.dli_fname).contains('/'))
      file = info.dli_fname;
    if (!fs::status(file, status))
      text += " " + std::to_string(status.getSize()) + " " +
              std::to_string(
                  status.getLastModificationTime().time_since_epoch().count());
    return text;
  }();
  return identity;
}

//===----------------------------------------------------------------------===//
// DiskCache
//===----------------------------------------------------------------------===//

DiskCache &DiskCache::get() {
  // The cache is never destroyed: threads may be compiling until the very end.
  static DiskCache &cache =
      *new DiskCache(getDefaultFolder(), uint64_t(1) << 30);
  return cache;
}

DiskCache::DiskCache(std::string folder, uint64_t maxBytes)
    : folder(std::move(folder)), maxBytes(maxBytes) {}

std::string DiskCache::getPath(llvm::ArrayRef<uint8_t> hash) const {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path,
                          kPrefix + llvm::toHex(hash, /*LowerCase=*/true));
  return path.str().str();
}

std::unique_ptr<llvm::MemoryBuffer> DiskCache::lookup(const CacheKey &key) {
  if (folder.empty())
    return nullptr;
  std::array<uint8_t, 32> hash = key.getHash();
  std::string path = getPath(hash);
  auto file = fs::openNativeFileForRead(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return nullptr;
  }
  llvm::scope_exit close([&] { fs::closeFile(*file); });
  auto reject = [&]() -> std::unique_ptr<llvm::MemoryBuffer> {
    std::lock_guard<std::mutex> lock(mutex);
    remarks.push_back("'" + path +
                      "' is damaged: what it kept is compiled again");
    return nullptr;
  };
  fs::file_status status;
  if (fs::status(*file, status) || status.getSize() < sizeof(Header))
    return reject();
  // The content is copied: a mapped file would end the process if someone
  // truncated it.
  size_t bytes = status.getSize() - sizeof(Header);
  auto content = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(
      bytes, path, llvm::Align(8));
  Header header;
  auto read = [&](void *target, size_t size) {
    auto *next = static_cast<char *>(target);
    while (size > 0) {
      auto count = fs::readNativeFile(*file, llvm::MutableArrayRef(next, size));
      if (!count) {
        llvm::consumeError(count.takeError());
        return false;
      }
      if (*count == 0)
        return false;
      next += *count;
      size -= *count;
    }
    return true;
  };
  if (!content || !read(&header, sizeof(header)) ||
      !read(content->getBufferStart(), bytes) ||
      std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      std::memcmp(header.hash, hash.data(), hash.size()) != 0 ||
      header.bytes != bytes ||
      header.checksum !=
          llvm::xxh3_64bits(llvm::StringRef(content->getBufferStart(), bytes)))
    return reject();
  auto now = std::chrono::system_clock::now();
  if (now - status.getLastAccessedTime() > kTouchInterval)
    (void)fs::setLastAccessAndModificationTime(
        *file, now, status.getLastModificationTime());
  return content;
}

llvm::Error DiskCache::write(llvm::StringRef path, llvm::ArrayRef<uint8_t> hash,
                             llvm::StringRef content) const {
  // Code that belongs to another user must not be run.
  if (std::error_code code = fs::create_directories(
          folder, /*IgnoreExisting=*/true, fs::owner_all))
    return llvm::errorCodeToError(code);
  int file;
  llvm::SmallString<128> temporary;
  if (std::error_code code = fs::createUniqueFile(
          folder + "/" + kPrefix + "%%%%%%%%%%%%.tmp", file, temporary,
          fs::OF_None, fs::owner_read | fs::owner_write))
    return llvm::errorCodeToError(code);
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  llvm::copy(hash, header.hash);
  header.bytes = content.size();
  header.checksum = llvm::xxh3_64bits(content);
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
  stream.write(reinterpret_cast<const char *>(&header), sizeof(header));
  stream << content;
  stream.close();
  std::error_code code = stream.error();
  stream.clear_error();
  if (!code)
    code = fs::rename(temporary, path);
  if (!code)
    return llvm::Error::success();
  fs::remove(temporary);
  return llvm::errorCodeToError(code);
}

void DiskCache::store(const CacheKey &key, llvm::StringRef content) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (folder.empty() || !writable)
      return;
  }
  std::array<uint8_t, 32> hash = key.getHash();
  if (llvm::Error error = write(getPath(hash), hash, content)) {
    std::string reason = llvm::toString(std::move(error));
    std::lock_guard<std::mutex> lock(mutex);
    if (std::exchange(writable, false))
      remarks.push_back("compiled code is not kept: cannot write to '" +
                        folder + "': " + reason);
    return;
  }
  prune(kPruneInterval);
}

bool DiskCache::remove(const CacheKey &key) {
  return !folder.empty() && !fs::remove(getPath(key.getHash()),
                                        /*IgnoreNonExisting=*/false);
}

void DiskCache::prune(std::chrono::seconds interval) const {
  if (folder.empty())
    return;
  llvm::CachePruningPolicy policy;
  policy.Interval = interval;
  policy.Expiration = kExpiration;
  policy.MaxSizeBytes = maxBytes;
  llvm::pruneCache(folder, policy);
}

llvm::SmallVector<std::string, 0> DiskCache::takeRemarks() {
  std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(remarks, {});
}
