//===- ThreadPool.cpp - Threads behind fovea_parallel_for -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop is a `Job` on its caller's stack with an atomic counter of items. The
// caller publishes it in a slot, helps, and withdraws it; workers look through
// the slots. A worker announces itself at the slot before it reads the job, and
// the caller leaves only when it has withdrawn the job and no worker is
// announced: so the job outlives everyone who can see it, without a lock on the
// way. A worker that finds no job spins for some microseconds, so that
// successive loops of a kernel find it awake, and then sleeps.
//
//===----------------------------------------------------------------------===//

#include "Failure.h"
#include "OpenMP.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

using namespace fovea::runtime;

namespace {
struct Job {
  void (*body)(void *, int64_t);
  void *context;
  int64_t items;
  Invocation *invocation;
  std::atomic<int64_t> next = 0;
  std::atomic<bool> failed = false;
};
} // namespace

/// The number of loops that can have helpers at a time; further loops run on
/// their caller only.
static constexpr int kSlots = 16;
static constexpr int kMaxThreads = 1024;
static constexpr auto kSpinTime = std::chrono::microseconds(30);

static void pauseProcessor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns the number of threads that a text states, or 0.
static int parseThreads(const char *text) {
  char *end;
  long value = std::strtol(text, &end, 10);
  if (end == text || *end || value < 1)
    return 0;
  return std::min<long>(value, kMaxThreads);
}

/// Returns the number of threads in FOVEA_NUM_THREADS, or 0.
static int readThreads() {
  const char *text = std::getenv("FOVEA_NUM_THREADS");
  return text ? parseThreads(text) : 0;
}

const char *fovea::runtime::getThreadsError() {
  const char *text = std::getenv("FOVEA_NUM_THREADS");
  return text && *text && !parseThreads(text) ? text : nullptr;
}

static int countCores() {
#ifdef __linux__
  cpu_set_t set;
  if (!sched_getaffinity(0, sizeof(set), &set))
    return std::clamp(CPU_COUNT(&set), 1, kMaxThreads);
#endif
  return std::clamp(int(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

/// Takes items of a job until there are none left, or one has failed. An item
/// that fails continues after the `setjmp`.
static void runItems(Job &job) {
  ThreadState outer = getThreadState();
  std::jmp_buf failurePoint;
  if (setjmp(failurePoint)) {
    job.failed.store(true, std::memory_order_relaxed);
  } else {
    getThreadState() = {job.invocation,
                        job.invocation ? &failurePoint : nullptr, true};
    while (!job.failed.load(std::memory_order_relaxed)) {
      int64_t item = job.next.fetch_add(1, std::memory_order_relaxed);
      if (item >= job.items)
        break;
      job.body(job.context, item);
    }
  }
  getThreadState() = outer;
}

namespace {
class Pool {
public:
  /// Runs the job on this thread and on up to `helpers` others.
  void run(Job &job, int helpers);

private:
  struct alignas(64) Slot {
    /// Claimed by a caller, from before the job is published until no worker
    /// visits.
    std::atomic<bool> claimed = false;
    std::atomic<Job *> job = nullptr;
    /// Workers numbered below this may help.
    std::atomic<int> helpers = 0;
    /// Workers that may be looking at `job`.
    std::atomic<int> visitors = 0;
  };

  void start(int workers);
  void work(int number);
  bool help(int number);

  Slot slots[kSlots];
  /// Changes whenever a job is published; workers sleep on it.
  alignas(64) std::atomic<int> epoch = 0;
  std::atomic<int> sleepers = 0;
  std::atomic<int> workers = 0;
  std::mutex startMutex;
};
} // namespace

bool Pool::help(int number) {
  bool helped = false;
  for (Slot &slot : slots) {
    if (!slot.job.load(std::memory_order_relaxed))
      continue;
    slot.visitors.fetch_add(1);
    Job *job = slot.job.load();
    if (job && number < slot.helpers.load() &&
        job->next.load(std::memory_order_relaxed) < job->items) {
      runItems(*job);
      helped = true;
    }
    if (slot.visitors.fetch_sub(1) == 1)
      slot.visitors.notify_all();
  }
  return helped;
}

void Pool::work(int number) {
  for (;;) {
    int seen = epoch.load();
    if (help(number))
      continue;
    auto deadline = std::chrono::steady_clock::now() + kSpinTime;
    do {
      for (int i = 0; i < 16 && epoch.load(std::memory_order_relaxed) == seen;
           ++i)
        pauseProcessor();
    } while (epoch.load(std::memory_order_relaxed) == seen &&
             std::chrono::steady_clock::now() < deadline);
    if (epoch.load() != seen)
      continue;
    sleepers.fetch_add(1);
    epoch.wait(seen);
    sleepers.fetch_sub(1);
  }
}

void Pool::start(int wanted) {
  std::lock_guard<std::mutex> lock(startMutex);
  for (int number = workers.load(); number < wanted; ++number) {
    // The threads are detached: the pool lives as long as the process.
    std::thread([this, number] { work(number); }).detach();
    workers.store(number + 1);
  }
}

void Pool::run(Job &job, int helpers) {
  Slot *slot = nullptr;
  for (Slot &candidate : slots) {
    if (!candidate.claimed.exchange(true)) {
      slot = &candidate;
      break;
    }
  }
  if (!slot)
    return runItems(job);
  if (workers.load(std::memory_order_relaxed) < helpers)
    start(helpers);
  slot->helpers.store(helpers);
  slot->job.store(&job);
  epoch.fetch_add(1);
  int useful = std::min<int64_t>(helpers, job.items - 1);
  if (int asleep = sleepers.load()) {
    // The thread that `notify_one` wakes must be one that may help.
    if (useful < asleep && workers.load() == helpers)
      for (int i = 0; i < useful; ++i)
        epoch.notify_one();
    else
      epoch.notify_all();
  }
  runItems(job);
  slot->job.store(nullptr);
  while (int visitors = slot->visitors.load()) {
    for (int i = 0; i < 2000 && slot->visitors.load() == visitors; ++i)
      pauseProcessor();
    slot->visitors.wait(visitors);
  }
  slot->claimed.store(false);
}

/// The pool of this process. A forked child has none of its parent's threads,
/// so it gets a new pool; the old one is not torn down, because its state is
/// unknown.
static std::atomic<Pool *> currentPool = nullptr;

static Pool &getPool() {
  static std::once_flag once;
  std::call_once(once, [] {
    currentPool = new Pool;
#ifdef __linux__
    pthread_atfork(nullptr, nullptr, [] { currentPool = new Pool; });
#endif
  });
  return *currentPool;
}

namespace {
/// A job that OpenMP's threads run, as many as may help, in the order in which
/// they come.
struct Team {
  Job &job;
  std::atomic<int> places;
};
} // namespace

/// Runs the job on the threads of an OpenMP runtime. Returns false if there is
/// no runtime, or it works for another caller: it would give each caller
/// threads of its own.
static bool runByOpenMP(Job &job, int threads) {
  static std::atomic<bool> isBusy = false;
  const OpenMP *openMP = OpenMP::find();
  if (!openMP)
    return false;
  // The cores of a parallel region already have work.
  if (openMP->isInRegion()) {
    runItems(job);
    return true;
  }
  if (isBusy.exchange(true))
    return false;
  Team team = {job, threads};
  auto join = [](void *context) {
    auto *team = static_cast<Team *>(context);
    if (team->places.fetch_sub(1) > 0)
      runItems(team->job);
  };
  // The team has all threads, even where fewer may work: a smaller team would
  // end the others, and the next region of the program would start them again.
  openMP->runTeam(join, &team, std::max(threads, openMP->getMaxThreads()),
                  /*flags=*/0);
  isBusy = false;
  return true;
}

static std::atomic<int> chosenThreads = 0;

void fovea_parallel_for(void (*body)(void *context, int64_t item),
                        void *context, int64_t items) {
  ThreadState &state = getThreadState();
  int threads = state.insideLoop ? 1 : getNumThreads();
  if (threads == 1 || items <= 1) {
    for (int64_t item = 0; item < items; ++item)
      body(context, item);
    return;
  }
  Job job{body, context, items, state.invocation};
  if (!runByOpenMP(job, threads))
    getPool().run(job, threads - 1);
  if (job.failed)
    std::longjmp(*state.failurePoint, 1);
}

int fovea::runtime::getNumThreads() {
  if (int threads = chosenThreads.load(std::memory_order_relaxed))
    return threads;
  static const int wantedThreads = readThreads();
  if (wantedThreads)
    return wantedThreads;
  if (const OpenMP *openMP = OpenMP::find())
    return std::clamp(openMP->getMaxThreads(), 1, kMaxThreads);
  static const int cores = countCores();
  return cores;
}

void fovea::runtime::setNumThreads(int threads) {
  chosenThreads = std::clamp(threads, 0, kMaxThreads);
}
