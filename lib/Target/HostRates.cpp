//===- HostRates.cpp - Measured rates of this machine ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small kernels run on all threads: chains of multiply-adds in registers,
// products of AMX tiles where there are some, and `a = b + factor * c` over
// arrays beyond the caches. The best of several rounds is taken, for a peak is
// what the machine can do.
//
//===----------------------------------------------------------------------===//

#include "fovea/Runtime/HostRuntime.h"
#include "fovea/Target/HostTarget.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <chrono>
#include <limits>
#include <map>
#include <mutex>

using namespace fovea;

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The number of independent chains: enough to cover latency times units, few
/// enough to stay in registers.
static constexpr int kChains = 12;
static constexpr int kSteps = 1 << 16;

namespace {
template <typename Element, int bytes>
struct VectorOf {
  typedef Element type __attribute__((vector_size(bytes)));
};
} // namespace

template <int steps = kSteps, typename Vector>
[[gnu::always_inline]] static inline void runChains(Vector *results) {
  Vector chains[kChains];
  Vector factor = {}, addend = {};
  factor += 0.999f;
  addend += 0.001f;
#pragma clang loop unroll(full)
  for (int c = 0; c < kChains; ++c)
    chains[c] = factor * float(c);
  for (int step = 0; step < steps; ++step) {
#pragma clang loop unroll(full)
    for (int c = 0; c < kChains; ++c)
      chains[c] = __builtin_elementwise_fma(chains[c], factor, addend);
  }
  Vector sum = {};
#pragma clang loop unroll(full)
  for (int c = 0; c < kChains; ++c)
    sum += chains[c];
  *results = sum;
}

// There is one copy of the kernel for each width: the attribute lets the
// compiler use the instructions, `isSupportedHere` decides whether the copy is
// called.
#if defined(__x86_64__)
template <typename Element, int steps = kSteps>
static __attribute__((target("avx512f"))) void chains64(void *results) {
  runChains<steps>(
      static_cast<typename VectorOf<Element, 64>::type *>(results));
}
template <typename Element>
static __attribute__((target("avx2,fma"))) void chains32(void *results) {
  runChains(static_cast<typename VectorOf<Element, 32>::type *>(results));
}
#endif
template <typename Element>
static void chains16(void *results) {
#if defined(__x86_64__)
  // Without FMA a multiply-add is two instructions.
  typename VectorOf<Element, 16>::type chains[kChains], factor = {},
                                                        addend = {};
  factor += Element(0.999);
  addend += Element(0.001);
  for (int c = 0; c < kChains; ++c)
    chains[c] = factor * Element(c);
  for (int step = 0; step < kSteps; ++step) {
#pragma clang loop unroll(full)
    for (int c = 0; c < kChains; ++c)
      chains[c] = chains[c] * factor + addend;
  }
  typename VectorOf<Element, 16>::type sum = {};
  for (int c = 0; c < kChains; ++c)
    sum += chains[c];
  *static_cast<typename VectorOf<Element, 16>::type *>(results) = sum;
#else
  runChains(static_cast<typename VectorOf<Element, 16>::type *>(results));
#endif
}

/// Returns the GFLOP/s of `kernel` on all threads, whose calls do `operations`
/// each.
static double measureKernel(void (*kernel)(void *), double operations) {
  int threads = runtime::getNumThreads();
  double best = 0;
  double end = now() + 0.12;
  do {
    double start = now();
    fovea_parallel_for(
        [](void *context, int64_t) {
          alignas(64) char results[64];
          (*static_cast<void (**)(void *)>(context))(results);
          // Keeps the compiler from removing the work.
          asm volatile("" : : "r"(results) : "memory");
        },
        &kernel, threads * 4);
    best = std::max(best, operations * threads * 4 / (now() - start));
  } while (now() < end);
  return best / 1e9;
}

template <typename Element>
static double measurePeak() {
  void (*kernel)(void *) = chains16<Element>;
  int bytes = 16;
#if defined(__x86_64__)
  if (isSupportedHere(HostArch::AVX512))
    kernel = chains64<Element>, bytes = 64;
  else if (isSupportedHere(HostArch::AVX2))
    kernel = chains32<Element>, bytes = 32;
#endif
  return measureKernel(kernel,
                       2.0 * kChains * kSteps * (bytes / sizeof(Element)));
}

#if defined(__x86_64__)
/// The number of products for each sum, and of sums: enough to cover a
/// product's latency.
static constexpr int kTileSteps = 1 << 10, kTileSums = 4;

/// Multiplies tiles of zeros, which takes as long as other numbers do.
static __attribute__((target("amx-tile,amx-bf16"))) void
multiplyTiles(void *results) {
  // The palette, and the shape of each tile: 16 rows of 64 bytes.
  alignas(64) unsigned char shapes[64] = {1};
  for (int tile = 0; tile < 8; ++tile) {
    shapes[16 + 2 * tile] = 64;
    shapes[48 + tile] = 16;
  }
  _tile_loadconfig(shapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int step = 0; step < kTileSteps; ++step) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
  *static_cast<int *>(results) = 0;
}
#endif

#if defined(__x86_64__)
static constexpr int kDotSteps = 1 << 12;

/// Adds up dot products of pairs in chains.
static __attribute__((target("avx512f,avx512bf16"))) void
addDotProducts(void *results) {
  __m512 chains[kChains];
  const auto ones = __m512bh(_mm512_set1_epi32(0x3F803F80));
#pragma clang loop unroll(full)
  for (int c = 0; c < kChains; ++c)
    chains[c] = _mm512_set1_ps(float(c));
  for (int step = 0; step < kDotSteps; ++step) {
#pragma clang loop unroll(full)
    for (int c = 0; c < kChains; ++c)
      chains[c] = _mm512_dpbf16_ps(chains[c], ones, ones);
  }
  __m512 sum = _mm512_setzero_ps();
#pragma clang loop unroll(full)
  for (int c = 0; c < kChains; ++c)
    sum = _mm512_add_ps(sum, chains[c]);
  _mm512_storeu_ps(results, sum);
}
#endif

bool fovea::areDotProductsFaster() {
#if defined(__x86_64__)
  constexpr double kGain = 1.5;
  constexpr int kRounds = 25;
  alignas(64) char results[64];
  auto measure = [&](void (*kernel)(void *), double &least) {
    double start = now();
    kernel(results);
    asm volatile("" : : "r"(results) : "memory");
    least = std::min(least, now() - start);
  };
  // Short runs of both in turn: whatever else this core does disturbs both
  // alike, so that all processes come to the same answer.
  double vectors = std::numeric_limits<double>::infinity(), dots = vectors;
  for (int round = 0; round < kRounds; ++round) {
    measure(chains64<float, kDotSteps>, vectors);
    measure(addDotProducts, dots);
  }
  return 2 * vectors > kGain * dots;
#else
  return false;
#endif
}

/// Returns the rate of products by AMX tiles or, where there are none, by dot
/// products; 0 where there are none, either.
static double measureMatrixPeak() {
#if defined(__x86_64__)
  if (isSupportedHere(HostArch::AMX))
    return measureKernel(multiplyTiles,
                         2.0 * 16 * 16 * 32 * kTileSums * kTileSteps);
  if (isSupportedHere(HostArch::AVX512BF16))
    return measureKernel(addDotProducts, 2.0 * 32 * kChains * kDotSteps);
#endif
  return 0;
}

static double measureBandwidth() {
  struct Arrays {
    float *a, *b, *c;
    int64_t chunk;
  };
  // 96 MB in all: beyond any last-level cache of a core's share.
  constexpr int64_t size = int64_t(8) << 20;
  constexpr int64_t chunks = 512;
  std::unique_ptr<float[]> memory(new float[3 * size]());
  Arrays arrays = {memory.get(), memory.get() + size, memory.get() + 2 * size,
                   size / chunks};
  double best = 0;
  double end = now() + 0.2;
  do {
    double start = now();
    fovea_parallel_for(
        [](void *context, int64_t item) {
          Arrays arrays = *static_cast<Arrays *>(context);
          int64_t first = item * arrays.chunk;
          for (int64_t i = first; i < first + arrays.chunk; ++i)
            arrays.a[i] = arrays.b[i] + 0.5f * arrays.c[i];
        },
        &arrays, chunks);
    // Two elements are read and one is written, and a written line is read
    // first.
    best = std::max(best, 4.0 * size * sizeof(float) / (now() - start));
  } while (now() < end);
  return best / 1e9;
}

MachineRates fovea::measureHost() {
  static std::mutex mutex;
  static std::map<int, MachineRates> known;
  std::lock_guard<std::mutex> lock(mutex);
  auto [found, inserted] = known.try_emplace(runtime::getNumThreads());
  if (inserted)
    found->second = {measureBandwidth(), measurePeak<float>(),
                     measurePeak<double>(), measureMatrixPeak(), "bf16"};
  return found->second;
}
