//===- GpuFootprint.h - What a schedule takes of a GPU ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_GPUFOOTPRINT_H
#define FOVEA_ANALYSIS_GPUFOOTPRINT_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea {

/// The largest head dim of attention on a GPU: its accumulator must fit the
/// registers.
inline constexpr int64_t kLargestGpuHeadDim = 256;

/// What a block takes of a GPU that computes one tile of queries or, in the
/// backward pass, the gradients of one tile of keys.
struct GpuFootprint {
  /// Whether products are by WGMMA: sm_90a, 16-bit elements, whole warp groups
  /// with 64 queries each. Backward: with 64 keys each, or 64 keys for all and
  /// multiples of 64 features each.
  bool usesWgmma;
  /// Threads, with those that copy.
  int64_t threads;
  /// Shared memory: the queries and `stages` tiles of values, and of the keys
  /// of each pass over them, each aligned to 1024 bytes, and their barriers.
  /// Backward: keys, values, `stages` tiles of queries, of the output's
  /// gradients and of statistics of rows, the gradients of scores and, on
  /// Hopper, of queries on their way to memory; where warps share columns, what
  /// they hand each other of probabilities and gradients of scores.
  int64_t sharedBytes;
  /// 32-bit registers of a thread that computes: scores, the accumulator, the
  /// probabilities (twice by WGMMA, which works on the last ones meanwhile) and
  /// about 25 more. Backward: scores and their gradients, two accumulators, and
  /// about 33 more, by WGMMA 41; or what products that run side by side take.
  int64_t registers;
  /// The most that such a thread can have.
  int64_t registerLimit;

  bool fits(machine::TargetAttr target) const {
    return sharedBytes <= target.getFastMemory() && registers <= registerLimit;
  }
};

/// The footprint on `target` under `schedule`, which has warps, of attention
/// whose operands' elements have `elementBytes`, in `passes` passes over the
/// keys. Head dims are padded to 16.
GpuFootprint getGpuFootprint(attn::ScheduleAttr schedule,
                             machine::TargetAttr target, int64_t elementBytes,
                             int64_t headDim, int64_t valueDim,
                             int64_t passes = 1);

/// The same of the backward pass, whose rows are keys.
GpuFootprint getBackwardGpuFootprint(attn::ScheduleAttr schedule,
                                     machine::TargetAttr target,
                                     int64_t elementBytes, int64_t headDim,
                                     int64_t valueDim);

/// A product of the backward pass that `warps` warps cannot share, some its
/// rows in multiples of 16, the others its columns in multiples of 8, as its
/// rows and columns; nullopt: they can share all. Scores have the keys as rows.
std::optional<std::pair<int64_t, int64_t>>
findUnsharedProduct(attn::ScheduleAttr schedule, int64_t headDim,
                    int64_t valueDim);

} // namespace fovea

#endif // FOVEA_ANALYSIS_GPUFOOTPRINT_H
