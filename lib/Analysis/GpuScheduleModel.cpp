//===- GpuScheduleModel.cpp - Time of attention on a GPU ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuScheduleModel.h"

#include "fovea/Dialect/Tile/IR/Warps.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using machine::kGroupWarps;

namespace {
/// The work of a step beside its products.
struct StepModel {
  /// Instructions per score: scale and subtract, exponential (at an eighth of
  /// the rate), maximum, sum, conversion, and the instructions between them.
  double softmaxOps;
  /// Seconds to pass the barriers and reductions of a step.
  double latency;
  /// The fraction of the shorter of products and softmax that does not overlap
  /// the longer, for one to four groups of warps.
  double exposed[4];
};
} // namespace

int64_t fovea::getResidentBlocks(const GpuFootprint &footprint,
                                 machine::TargetAttr target) {
  if (footprint.takesCore)
    return 1;
  return std::max<int64_t>(
      1, std::min({target.getSharedMemory() /
                       (footprint.sharedBytes + machine::kReservedSharedMemory),
                   target.getRegistersPerCore() /
                       (footprint.threads * footprint.registers),
                   target.getGpuArch().threadsPerCore / footprint.threads}));
}

/// Returns the queries that end a loop over keys together: those of a warp
/// group in a persistent block, whose groups each have as much to do in the end
/// (`tile-skip-rows`, `tile-swap-groups`), else those of a tile. A mask that
/// keeps less than half of the scores also says where loops begin, which groups
/// do together, as they go through tiles in a list.
static int64_t countQueriesOfLoop(const AttentionShape &shape,
                                  ScheduleAttr schedule,
                                  const GpuFootprint &footprint) {
  int64_t queries = schedule.getQueryTile();
  bool areApart =
      shape.visible >= kOneEdge && !shape.isTested &&
      schedule.getBlocks() != Blocks::Tiles && footprint.usesWgmma &&
      queries * kGroupWarps == schedule.getWarps() * tile::kGroupRows &&
      mayEndApart(schedule);
  return areApart ? tile::kGroupRows : queries;
}

double fovea::countKeyTiles(const AttentionShape &shape, ScheduleAttr schedule,
                            const GpuFootprint &footprint) {
  auto all = double(llvm::divideCeil(shape.keys, schedule.getKeyTile()));
  double kept = shape.visible * all;
  if (schedule.getOrder() != WorkOrder::LongestFirst)
    return std::ceil(kept);
  return std::min(kept +
                      double(countQueriesOfLoop(shape, schedule, footprint)) /
                          double(schedule.getKeyTile()) / 2,
                  all);
}

/// Returns the seconds of the kernels in front that compute parts of operands:
/// they read f32, and write all parts.
static double predictSplit(const AttentionShape &shape,
                           machine::TargetAttr target, int64_t parts) {
  // Seconds to start such a kernel, and to end it.
  constexpr double kLaunchLatency = 3e-6;
  constexpr double kOperands = 3;
  double rows = double(shape.batch * shape.heads * shape.queries);
  double keys = double(shape.batch * shape.kvHeads * shape.keys);
  double elements = rows * double(shape.headDim) +
                    keys * double(shape.headDim + shape.valueDim);
  return kOperands * kLaunchLatency +
         elements * double(shape.elementBytes + 2 * parts) /
             (double(target.getBandwidth()) * 1e6);
}

double fovea::predictGpuSeconds(const AttentionShape &shape,
                                machine::TargetAttr target,
                                ScheduleAttr schedule) {
  // Fitted to attention on the H200, head dims 64 to 256 at 16k: within 15% of
  // the measured times, and 7% with the maximum of earlier steps.
  constexpr StepModel kExact = {14.5, 1e-7, {1.0, 0.25, 0.2, 0.2}};
  constexpr StepModel kStale = {12.0, 1e-7, {1.0, 0.2, 0.09, 0.07}};
  constexpr StepModel kMaskedStale = {12.0, 1e-7, {1.0, 0.28, 0.13, 0.25}};
  // Of tiles in a list three groups pass by none. (Documents, 4k: 176 us with
  // two groups, 225 with three; a neighbourhood 261 and 283.)
  constexpr StepModel kTestedStale = {12.0, 1e-7, {1.0, 0.28, 0.16, 0.25}};
  bool isStale = schedule.getMaximum() == Maximum::Stale;
  bool isInTurn = schedule.getGroups() == WarpGroups::InTurn;
  const StepModel &model = !isStale ? kExact
                           : schedule.getOrder() != WorkOrder::LongestFirst
                               ? kStale
                           : shape.isTested ? kTestedStale
                                            : kMaskedStale;
  // Seconds to wait for a copy that does not run ahead, and for one of parts,
  // whose steps are long (H200: 0.1 us); to begin and end a block with the
  // exact maximum; by the number of groups of warps, to begin and end one with
  // the maximum of earlier steps, and to begin and end a tile in a persistent
  // block. (Measured at 1k and 4k.)
  constexpr double kCopyLatency = 8e-7, kPartsCopyLatency = 1e-7,
                   kBlockLatency = 4e-6;
  constexpr double kStaleBlockLatency[] = {7e-6, 7e-6, 7e-6, 9e-6};
  constexpr double kItemLatency[] = {4e-6, 4e-6, 6e-6, 6e-6};
  constexpr double kExactItemLatency = 2.6e-6;
  // Three groups take no longer than two where each query has several rows.
  // (Dealt, d = 128, 32 heads on 8, H200, us, 192x64 and 128x128 in turn: 16 of
  // 1k 251 and 273, 4 of 4k 758 and 835, 4 of 512 and 28 of one on 4k 286 and
  // 305; both take 2.4 for a tile beside its steps.)
  constexpr double kGroupedItemLatency = 4e-6;
  // The keys of a tile from which on all of that shows. (A tile of 256 queries
  // with 197 keys takes 1.8 us beside its steps on an H100, d = 64.)
  constexpr double kLatencyKeys = 512;
  // Seconds to take the number of a tile that is dealt, where tiles of keys are
  // not in a list. (128x128 of causal attention, d = 128, H100, TFLOP/s
  // persistent and dealt: 1k 508 and 488, 512 326 and 302.)
  constexpr double kDealtLatency = 5e-7;
  // Seconds to clear the flags of blocks, to write a part and to add one.
  // (Measured at 2k: shares gain 2 us at d = 128, where a last round is two
  // fifths full, and lose 4 to 9 at d = 256 and 64, where it is more.)
  constexpr double kShareLatency = 1.3e-5;
  // Seconds to start the launch that merges parts of the keys, and to end it.
  constexpr double kMergeLatency = 3e-6;
  // Registers that are left where softmax takes longer than products, without
  // which its instructions wait for each other, and the factor of the time that
  // they then take.
  constexpr int64_t kSpareRegisters = 16;
  constexpr double kCrowded = 1.05;
  // The factor of a step's time in a persistent block, by the number of groups.
  constexpr double kPersistent[] = {1.0, 1.0, 1.05, 1.02};
  // The same where three groups visit keys from the last. (ALiBi, d = 128: 406
  // us, and 431 with slopes of a tensor, where two groups take 398.)
  constexpr double kDescendingThree = 1.1;
  // Instructions to widen a number: conversions of pairs, reads and writes.
  constexpr double kWidenOps = 2.25;
  // Products of parts, and instructions to split a probability.
  constexpr double kPartProducts = 6, kSplitOps = 9;
  // The fraction that shows of the time in which memory brings what scores
  // read, or of the rest, if that takes less. (Measured with a bias in bf16:
  // 0.03 at d = 128, 0.3 at d = 64.)
  constexpr double kExposedCaptures = 0.1;
  // Instructions, and waits for them, to gather an element that could come as
  // one of a tile. (Measured with a bias in bf16 at d = 128.)
  constexpr double kGatherOps = 36;
  // The share of the peak rate that products by FMA, and by tensor cores,
  // reach.
  constexpr double kFmaEfficiency = 0.5, kMatrixEfficiency = 0.9;
  // The speed relative to main memory at which the L2 cache delivers keys and
  // values (measured on the H200 with blocks of 64 queries: 6.5 TB/s).
  constexpr double kNearSpeedup = 1.5;
  // The factor of a step's time where the blocks of a cluster wait for each
  // other. (Measured at d = 128 and 256: a burst takes up to 1% longer; where
  // it lasts, the power that copies do not take gains 2 to 3%.) Under a mask
  // these are chosen for rates that last.
  constexpr double kClusterWait = 1.005, kMaskedClusterWait = 0.995;

  GpuFootprint footprint =
      getGpuFootprint(schedule, target, shape.elementBytes, shape.headDim,
                      shape.valueDim, /*passes=*/1, shape.captures);
  double queries = double(schedule.getQueryTile()),
         keys = double(schedule.getKeyTile());
  double features = double(shape.headDim + shape.valueDim);
  double perCore = 1e9 / double(target.getCores());
  double lanes = double(target.getPeak()) * perCore / 2;

  double products = 2 * queries * keys * features;
  bool hasParts = schedule.getParts();
  if (hasParts)
    products *= kPartProducts;
  if (shape.elementBytes == 2 || hasParts) {
    double rate = double(target.getMatrixPeak()) * perCore * kMatrixEfficiency;
    // Tensor cores that have WGMMA reach half of their rate with mma.sync.
    if (!footprint.usesWgmma && target.getGpuArch().hasWarpGroups)
      rate /= 2;
    // Few columns of scores take less time than the queries and keys take to
    // come from shared memory, of 128 bytes a cycle.
    if (footprint.usesWgmma) {
      double waits = std::max(1.0, (16 + keys / 4) / (keys / 2));
      products *=
          (waits * double(shape.headDim) + double(shape.valueDim)) / features;
    }
    products /= rate;
  } else {
    products /= double(target.getPeak()) * perCore * kFmaEfficiency * 4 /
                double(shape.accumulationBytes);
  }
  double storedBytes = schedule.getWiden() ? 1 : double(shape.elementBytes);
  // Without WGMMA every warp reads all keys and values from shared memory, or
  // its share of them, at one byte per lane and cycle.
  if (!footprint.usesWgmma) {
    auto grid =
        tile::WarpGrid::get(schedule.getQueryTile(), schedule.getWarps());
    double bytes = schedule.widensInProducts() ? 1 : double(shape.elementBytes);
    products =
        std::max(products, double(grid.rows) * keys * features * bytes / lanes);
  }
  double region = queries * keys * shape.scoreOps / lanes;
  double softmaxOps = model.softmaxOps + (hasParts ? kSplitOps : 0);
  if (schedule.getCaptures() == Captures::Gathered)
    softmaxOps += kGatherOps * double(shape.captures.reads.size());
  double softmax = queries * keys * softmaxOps / lanes + region;
  double rescale = isStale ? 0 : queries * double(shape.valueDim) / lanes;
  if (hasParts)
    rescale += queries * double(shape.valueDim) / lanes;

  if (hasParts)
    storedBytes = 2 * double(schedule.getParts());
  double copies = keys * features * storedBytes /
                  double(schedule.getCluster()) * double(target.getCores()) /
                  (double(target.getBandwidth()) * 1e6 * kNearSpeedup);

  int64_t resident = getResidentBlocks(footprint, target);
  int64_t groups =
      std::clamp<int64_t>(schedule.getWarps() * resident / kGroupWarps, 1, 4);
  double exposed = model.exposed[groups - 1];
  // Two groups do not keep each other's arithmetic busy, nor do three quite,
  // unless they issue products in turn (a soft cap at d = 128, H100: 659
  // TFLOP/s, in turn 676).
  if (isStale && softmax > products && groups == 2)
    exposed *= 2;
  else if (isStale && softmax > products && groups == 3 && !isInTurn)
    exposed *= 1.35;
  double step = std::max(products, softmax) +
                std::min(products, softmax) * exposed + rescale;
  // These were measured without a score region.
  if (isStale && softmax - region > products) {
    if (schedule.getProducts() == Products::Overlapped &&
        footprint.registers + kSpareRegisters > footprint.registerLimit)
      step *= kCrowded;
    if (schedule.getBlocks() != Blocks::Tiles)
      step *= kPersistent[groups - 1];
  }
  if (schedule.getKeys() == KeyOrder::Descending && groups == 3)
    step *= kDescendingThree;
  // Threads that widen issue their instructions beside those of softmax, or in
  // front of products.
  double widening = keys * features * kWidenOps / lanes;
  if (schedule.widensInProducts())
    step += widening;
  else if (schedule.getWiden())
    step = std::max(step, softmax + widening);
  step = std::max(step, copies);
  if (schedule.getCluster() > 1)
    step *= shape.visible < 1 ? kMaskedClusterWait : kClusterWait;

  int64_t parts = schedule.countParts(shape.keys);
  double steps = countKeyTiles(shape, schedule, footprint) / double(parts);
  if (parts > 1)
    steps = std::ceil(steps);
  int64_t blocks = countQueryTiles(shape, schedule) * parts;
  // Under a mask blocks end at different times, so the last wave is not rounded
  // up to a whole one; those of parts end together, and so do blocks that each
  // have as much to do, unless they share the tiles of the last wave, which
  // those of few steps do not (`tile-share-items`).
  bool isShared = schedule.getBlocks() == Blocks::Shared &&
                  steps >= double(tile::kFewestSharedSteps);
  double waves =
      std::max(1.0, double(blocks) / double(target.getCores() * resident));
  bool endTogether = shape.visible >= 1 && !isShared;
  if (parts > 1 || (endTogether && shape.hasStaticRows))
    waves = std::ceil(waves);
  else if (endTogether)
    waves += 0.5;
  double latency = steps * model.latency;
  if (schedule.getStages() == 1)
    latency += steps * (hasParts ? kPartsCopyLatency : kCopyLatency);
  if (schedule.getBlocks() != Blocks::Tiles)
    latency +=
        (!isStale                               ? kExactItemLatency
         : shape.rowsOfQuery > 1 && groups == 3 ? kGroupedItemLatency
                                                : kItemLatency[groups - 1]) *
        std::min(1.0, steps * keys / kLatencyKeys);
  else
    latency += isStale ? kStaleBlockLatency[groups - 1] : kBlockLatency;
  if (schedule.getBlocks() == Blocks::Dealt && !shape.isTested)
    latency += kDealtLatency;
  double seconds = waves * (double(resident) * steps * step + latency);
  // What scores read comes from main memory, while blocks compute.
  double captures = double(shape.batch * shape.heads * shape.queries) *
                    double(shape.keys) * shape.visible *
                    double(shape.captures.bytes) /
                    (double(target.getBandwidth()) * 1e6);
  seconds = std::max(seconds, captures) +
            std::min(seconds, captures) * kExposedCaptures;
  if (isShared)
    seconds += kShareLatency;
  if (hasParts)
    seconds += predictSplit(shape, target, schedule.getParts());
  if (parts == 1)
    return seconds;
  double rows = double(shape.batch * shape.heads * shape.queries);
  double workspace = double(parts) * rows * double(shape.valueDim) *
                     double(shape.accumulationBytes);
  return seconds + kMergeLatency +
         2 * workspace / (double(target.getBandwidth()) * 1e6);
}
