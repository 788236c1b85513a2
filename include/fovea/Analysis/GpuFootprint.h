//===- GpuFootprint.h - GPU resources that a schedule takes -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_GPUFOOTPRINT_H
#define FOVEA_ANALYSIS_GPUFOOTPRINT_H

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea {

/// The largest head dim of attention on a GPU: its accumulator must fit the
/// registers.
inline constexpr int64_t kLargestGpuHeadDim = 256;

/// Registers for what scores read of captured tensors, on its way from shared
/// memory, part by part.
inline constexpr int64_t kTileReadRegisters = 7;

/// The resources of a GPU taken by a block that computes one tile of queries
/// or, in the backward pass, the gradients of one tile of keys.
struct GpuFootprint {
  /// True if products use WGMMA. That needs sm_90a, 16-bit elements and whole
  /// warp groups with 64 queries each. The backward pass needs 64 keys for each
  /// group, or 64 keys for all groups and a multiple of 64 features for each.
  bool usesWgmma;
  /// Threads of the block, including those that copy and widen.
  int64_t threads;
  /// Shared memory: the queries and `stages` tiles of values, and of the keys
  /// of each pass over them, up to two tiles of what scores read, each aligned
  /// to 1024 bytes, and their barriers; tiles that a role widens as bytes, and
  /// two of what they become; what warps exchange that share keys.
  /// Backward pass: keys, values, `stages` tiles of queries, of the output's
  /// gradients and of statistics of rows, one of what scores read, the
  /// gradients of scores and, on Hopper, of queries on their way to memory;
  /// where warps share columns, also the probabilities and gradients of scores
  /// that they exchange.
  int64_t sharedBytes;
  /// 32-bit registers of a thread that computes: scores, the accumulator, the
  /// probabilities (twice with WGMMA, which still reads the previous ones), the
  /// queries beside keys that products widen, and about 25 more. Backward pass:
  /// scores and their gradients, two accumulators, and about 33 more (41 with
  /// WGMMA); or the registers of products that run side by side, if these need
  /// more.
  int64_t registers;
  /// True if a block should have a multiprocessor for itself: its roles divide
  /// all registers, or its copies alone keep memory busy.
  bool takesCore = false;
  /// The largest number of registers that such a thread can have.
  int64_t registerLimit;

  /// The registers of a thread when the block starts, before roles redistribute
  /// them, and those that an instruction of WGMMA needs for its result and
  /// operands: ptxas asks for as many from the start.
  int64_t startRegisters;
  int64_t productRegisters = 0;

  bool fits(machine::TargetAttr target) const {
    return sharedBytes <= target.getFastMemory() &&
           registers <= registerLimit && productRegisters <= startRegisters;
  }
};

/// Returns the footprint on `target` under `schedule`, which has warps, of
/// attention with `passes` passes over the keys, whose operands have elements
/// of `elementBytes`. Head dims are padded to 16. Under `captures = tiled`
/// what scores read by `captures` is in shared memory.
GpuFootprint getGpuFootprint(attn::ScheduleAttr schedule,
                             machine::TargetAttr target, int64_t elementBytes,
                             int64_t headDim, int64_t valueDim,
                             int64_t passes = 1,
                             const TileReads &captures = {});

/// Returns the footprint of the backward pass, whose rows are keys, and whose
/// mask reads `queryWords` of each query (`countQueryWords`). Under
/// `captures = tiled` what scores read by `captures` is in shared memory.
GpuFootprint getBackwardGpuFootprint(attn::ScheduleAttr schedule,
                                     machine::TargetAttr target,
                                     int64_t elementBytes, int64_t headDim,
                                     int64_t valueDim, int64_t queryWords = 0,
                                     const TileReads &captures = {});

/// Returns the rows and columns of a product of the backward pass that `warps`
/// warps cannot share, or nullopt if they can share all products. Warps divide
/// the rows in multiples of 16 and the columns in multiples of 8. The rows of
/// scores are keys here.
std::optional<std::pair<int64_t, int64_t>>
findUnsharedProduct(attn::ScheduleAttr schedule, int64_t headDim,
                    int64_t valueDim);

} // namespace fovea

#endif // FOVEA_ANALYSIS_GPUFOOTPRINT_H
