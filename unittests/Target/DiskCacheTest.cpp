//===- DiskCacheTest.cpp - Compiled code, kept from run to run ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/DiskCache.h"
#include "TargetTest.h"

#include <atomic>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fovea;

namespace fs = llvm::sys::fs;

namespace {

constexpr uint64_t kLarge = uint64_t(1) << 30;

CacheKey makeKey(int64_t number) {
  CacheKey key("test");
  key.add(number);
  return key;
}

std::string read(DiskCache &cache, const CacheKey &key) {
  auto entry = cache.lookup(key);
  return entry ? entry->getBuffer().str() : "(none)";
}

std::vector<std::string> listFiles(llvm::StringRef folder) {
  std::vector<std::string> files;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code))
    if (!llvm::StringRef(entry->path()).ends_with(".timestamp"))
      files.push_back(entry->path());
  return files;
}

TEST(CacheKey, SeparatesItsParts) {
  EXPECT_EQ(CacheKey("a").add("bc").getHash(),
            CacheKey("a").add("bc").getHash());
  EXPECT_NE(CacheKey("a").add("bc").getHash(),
            CacheKey("ab").add("c").getHash());
  EXPECT_NE(CacheKey("a").add("bc").getHash(), CacheKey("abc").getHash());
  EXPECT_NE(CacheKey("a").add("").getHash(), CacheKey("a").getHash());
  EXPECT_NE(CacheKey("a").add(1).getHash(), CacheKey("a").add(2).getHash());
}

TEST(BuildIdentity, NamesVersions) {
  EXPECT_EQ(getBuildIdentity().find("Fovea "), 0u);
  EXPECT_NE(getBuildIdentity().find(" LLVM 22."), std::string::npos);
}

TEST(SourceIdentity, IsASum) {
  EXPECT_EQ(getSourceIdentity().find(" LLVM 22."), 64u);
}

TEST(DiskCache, RemovesContent) {
  TemporaryFolder folder;
  DiskCache cache(folder.getPath("cache"), kLarge);
  EXPECT_FALSE(cache.remove(makeKey(1)));
  cache.store(makeKey(1), "content");
  cache.store(makeKey(2), "other");
  EXPECT_TRUE(cache.remove(makeKey(1)));
  EXPECT_EQ(read(cache, makeKey(1)), "(none)");
  EXPECT_EQ(read(cache, makeKey(2)), "other");
  EXPECT_FALSE(DiskCache("", kLarge).remove(makeKey(1)));
  EXPECT_TRUE(cache.takeRemarks().empty());
}

TEST(DiskCache, KeepsContent) {
  TemporaryFolder folder;
  std::string content("cubin\0with a zero", 17);
  {
    DiskCache cache(folder.getPath("new/folders"), kLarge);
    EXPECT_EQ(cache.lookup(makeKey(1)), nullptr);
    cache.store(makeKey(1), content);
    cache.store(makeKey(2), "");
    EXPECT_TRUE(cache.takeRemarks().empty());
  }
  DiskCache cache(folder.getPath("new/folders"), kLarge);
  auto entry = cache.lookup(makeKey(1));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->getBuffer(), content);
  EXPECT_EQ(uintptr_t(entry->getBufferStart()) % 8, 0u);
  EXPECT_EQ(read(cache, makeKey(2)), "");
  EXPECT_EQ(read(cache, makeKey(3)), "(none)");
  cache.store(makeKey(1), "other");
  EXPECT_EQ(read(cache, makeKey(1)), "other");
  EXPECT_EQ(listFiles(folder.getPath("new/folders")).size(), 2u);
}

TEST(DiskCache, IsForItsUserAlone) {
  TemporaryFolder folder;
  DiskCache cache(folder.getPath("cache"), kLarge);
  cache.store(makeKey(1), "content");
  struct stat status;
  ASSERT_EQ(stat(folder.getPath("cache").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(listFiles(folder.getPath("cache")).front().c_str(), &status),
            0);
  EXPECT_EQ(status.st_mode & 077, 0u);
}

TEST(DiskCache, IgnoresDamagedEntries) {
  TemporaryFolder folder;
  DiskCache cache(folder.getPath(), kLarge);
  std::string content(1000, 'x');
  cache.store(makeKey(1), content);
  std::string file = listFiles(folder.getPath()).front();
  std::ifstream stream(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)),
                          std::istreambuf_iterator<char>());
  auto damage = [&](const std::string &bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  };
  for (size_t size : {size_t(0), size_t(10), size_t(55), whole.size() - 1}) {
    damage(whole.substr(0, size));
    EXPECT_EQ(read(cache, makeKey(1)), "(none)") << size;
    auto remarks = cache.takeRemarks();
    ASSERT_EQ(remarks.size(), 1u) << size;
    EXPECT_EQ(remarks[0],
              "'" + file + "' is damaged: what it kept is compiled again");
  }
  damage(whole + "more");
  EXPECT_EQ(read(cache, makeKey(1)), "(none)");
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string changed = whole;
    changed[at] ^= 1;
    damage(changed);
    EXPECT_EQ(read(cache, makeKey(1)), "(none)") << at;
  }
  // Another entry under this one's name is not taken for it.
  cache.store(makeKey(2), content);
  for (const std::string &other : listFiles(folder.getPath()))
    if (other != file)
      fs::copy_file(other, file);
  EXPECT_EQ(read(cache, makeKey(1)), "(none)");
  // And it is written again.
  cache.takeRemarks();
  cache.store(makeKey(1), content);
  EXPECT_EQ(read(cache, makeKey(1)), content);
  EXPECT_TRUE(cache.takeRemarks().empty());
}

TEST(DiskCache, SaysOnceThatNothingCanBeKept) {
  TemporaryFolder folder;
  // Not even root can make a folder in a file.
  std::string file = folder.write("file", "");
  DiskCache cache(file + "/cache", kLarge);
  EXPECT_EQ(cache.lookup(makeKey(1)), nullptr);
  EXPECT_TRUE(cache.takeRemarks().empty());
  cache.store(makeKey(1), "content");
  cache.store(makeKey(2), "content");
  auto remarks = cache.takeRemarks();
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0], "compiled code is not kept: cannot write to '" + file +
                            "/cache': Not a directory");
  EXPECT_TRUE(cache.takeRemarks().empty());
  EXPECT_EQ(cache.lookup(makeKey(1)), nullptr);
}

TEST(DiskCache, MayBeReadOnly) {
  if (geteuid() == 0)
    GTEST_SKIP() << "needs a user who is not root: nothing is read-only";
  TemporaryFolder folder;
  DiskCache(folder.getPath(), kLarge).store(makeKey(1), "content");
  ASSERT_EQ(chmod(folder.getPath().c_str(), 0500), 0);
  DiskCache cache(folder.getPath(), kLarge);
  EXPECT_EQ(read(cache, makeKey(1)), "content");
  cache.store(makeKey(2), "content");
  EXPECT_EQ(cache.takeRemarks().size(), 1u);
  EXPECT_EQ(read(cache, makeKey(1)), "content");
  chmod(folder.getPath().c_str(), 0700);
}

TEST(DiskCache, MayBeNone) {
  DiskCache cache("", kLarge);
  cache.store(makeKey(1), "content");
  EXPECT_EQ(cache.lookup(makeKey(1)), nullptr);
  EXPECT_TRUE(cache.takeRemarks().empty());
  cache.prune();
}

TEST(DiskCache, PrunesWhatWasUnusedLongest) {
  TemporaryFolder folder;
  DiskCache cache(folder.getPath(), 40000);
  for (int i = 0; i < 6; ++i) {
    cache.store(makeKey(i), std::string(10000, char('a' + i)));
    // Each is used a day after the one before.
    for (const std::string &file : listFiles(folder.getPath())) {
      fs::file_status status;
      ASSERT_FALSE(fs::status(file, status));
      timespec times[2];
      times[0] = {time(nullptr) - (10 - i) * 86400, 0};
      times[1] = times[0];
      if (status.getLastAccessedTime() >
          std::chrono::system_clock::now() - std::chrono::hours(1))
        ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
    }
  }
  // Reading counts as use.
  EXPECT_NE(read(cache, makeKey(0)), "(none)");
  cache.prune();
  EXPECT_NE(read(cache, makeKey(0)), "(none)");
  for (int i : {1, 2, 3})
    EXPECT_EQ(read(cache, makeKey(i)), "(none)") << i;
  for (int i : {4, 5})
    EXPECT_NE(read(cache, makeKey(i)), "(none)") << i;
}

TEST(DiskCache, PrunesWhatNobodyReadForAMonth) {
  TemporaryFolder folder;
  DiskCache cache(folder.getPath(), kLarge);
  cache.store(makeKey(1), "old");
  timespec times[2];
  times[0] = {time(nullptr) - 40 * 86400, 0};
  times[1] = times[0];
  ASSERT_EQ(utimensat(AT_FDCWD, listFiles(folder.getPath()).front().c_str(),
                      times, 0),
            0);
  cache.store(makeKey(2), "new");
  folder.write("not-ours", "");
  cache.prune();
  EXPECT_EQ(read(cache, makeKey(1)), "(none)");
  EXPECT_EQ(read(cache, makeKey(2)), "new");
  EXPECT_TRUE(fs::exists(folder.getPath("not-ours")));
}

/// Reads and writes the same few entries; false if one was ever wrong.
bool hammer(DiskCache &cache, int seed) {
  for (int i = 0; i < 200; ++i) {
    int number = (i * 7 + seed) % 5;
    std::string content(20000 + number, char('a' + number));
    if (auto entry = cache.lookup(makeKey(number)))
      if (entry->getBuffer() != content)
        return false;
    cache.store(makeKey(number), content);
    if (i % 50 == 0)
      cache.prune();
  }
  return cache.takeRemarks().empty();
}

TEST(DiskCache, IsSharedByThreads) {
  TemporaryFolder folder;
  DiskCache cache(folder.getPath(), kLarge);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] { good += hammer(cache, thread); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(listFiles(folder.getPath()).size(), 5u);
}

TEST(DiskCache, IsSharedByProcesses) {
  TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    pid_t pid = fork();
    if (pid == 0) {
      DiskCache cache(folder.getPath(), kLarge);
      _exit(hammer(cache, child) ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(listFiles(folder.getPath()).size(), 5u);
}

} // namespace
