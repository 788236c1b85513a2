//===- DiskCache.h - Compiled code, kept from run to run --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_DISKCACHE_H
#define FOVEA_TARGET_DISKCACHE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

namespace fovea {

/// The name of an entry, made of everything that its content follows from.
class CacheKey {
public:
  /// `kind` names the kind of content: "cubin", "program", ...
  explicit CacheKey(llvm::StringRef kind) { add(kind); }

  CacheKey &add(llvm::StringRef text);
  CacheKey &add(int64_t number);

  std::array<uint8_t, 32> getHash() const;

private:
  llvm::SHA256 hash;
};

/// Returns a text that changes with every build of Fovea and of LLVM. Belongs
/// into the key of content that follows from more than the other parts of the
/// key and the compiler's version.
const std::string &getBuildIdentity();

/// Returns a text that changes with every source of Fovea and version of LLVM,
/// and is the same in the tools and the library of one build. Belongs into the
/// key of content that one of them writes for the others.
llvm::StringRef getSourceIdentity();

/// A folder of entries. Entries are written in one step and checked when read,
/// so threads and processes may share a folder; a damaged entry counts as
/// missing. If nothing can be kept, everything works, but slower. All functions
/// may be called from several threads at once.
class DiskCache {
public:
  /// Returns the cache in the folder that the environment variable
  /// FOVEA_CACHE_DIR names (none if that is empty), else in `fovea` in
  /// XDG_CACHE_HOME or ~/.cache; at most 1 GiB.
  static DiskCache &get();

  /// An empty folder name makes a cache that keeps nothing. `maxBytes` bounds
  /// all entries together.
  DiskCache(std::string folder, uint64_t maxBytes);

  llvm::StringRef getFolder() const { return folder; }

  /// Returns the content of an entry, at an address that is a multiple of 8, or
  /// null.
  std::unique_ptr<llvm::MemoryBuffer> lookup(const CacheKey &key);

  void store(const CacheKey &key, llvm::StringRef content);

  /// Removes an entry. Returns true if there was one.
  bool remove(const CacheKey &key);

  /// Removes entries that nobody read for a month and, if all together exceed
  /// the bound, those that were not read for the longest time. `store` calls
  /// this now and then; it does nothing within `interval` of the last time.
  void prune(std::chrono::seconds interval = std::chrono::seconds(0)) const;

  /// Returns problems, each once: why nothing can be kept, which entries were
  /// damaged.
  llvm::SmallVector<std::string, 0> takeRemarks();

private:
  std::string getPath(llvm::ArrayRef<uint8_t> hash) const;
  llvm::Error write(llvm::StringRef path, llvm::ArrayRef<uint8_t> hash,
                    llvm::StringRef content) const;

  const std::string folder;
  const uint64_t maxBytes;
  std::mutex mutex;
  bool writable = true;
  llvm::SmallVector<std::string, 0> remarks;
};

} // namespace fovea

#endif // FOVEA_TARGET_DISKCACHE_H
