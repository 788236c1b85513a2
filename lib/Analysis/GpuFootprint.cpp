//===- GpuFootprint.cpp - GPU resources that a schedule takes -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/GpuFootprint.h"

#include "fovea/Dialect/Tile/IR/SharedMemory.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"
#include "fovea/Dialect/Tile/IR/Warps.h"

#include "llvm/Support/MathExtras.h"

using namespace fovea;
using namespace fovea::attn;
using namespace fovea::tile;

/// Head dims are padded to a multiple of this number.
static constexpr int64_t kFeatures = 16;
/// Columns of a panel (128 bytes) of a tile of 16-bit elements.
static constexpr int64_t kPanel = 64;
/// Registers of a thread beside those that are counted one by one.
static constexpr int64_t kOtherRegisters = 25;
/// The same for the backward pass by mma.sync or FMA, and by WGMMA.
static constexpr int64_t kOtherBackwardRegisters = 33,
                         kOtherWgmmaBackwardRegisters = 41;
/// Tiles of what scores read that are in shared memory at once, if there are as
/// many stages.
static constexpr int64_t kCaptureStages = 2;

/// Returns the bytes of a tile in shared memory.
static int64_t getSharedBytes(int64_t rows, int64_t columns, int64_t bytes) {
  return llvm::alignTo(rows * columns * bytes, kSharedAlignment);
}

/// Returns the bytes of a step's tiles and rows of captured tensors.
static int64_t getSlotBytes(const TileReads &captures, int64_t queries,
                            int64_t keys) {
  int64_t sum = 0;
  for (const TileRead &read : captures.reads) {
    int64_t bytes = read.getElementBytes();
    int64_t mostBefore = kTensorMapAlignment / bytes - 1;
    sum += read.line ? getSharedBytes(
                           1, read.getColumns(queries, keys, mostBefore), bytes)
                     : getSharedBytes(queries, keys, bytes);
  }
  return sum;
}

/// Returns the number of threads in warps that compute, and the limit of
/// registers of each.
static GpuFootprint getThreads(ScheduleAttr schedule,
                               machine::TargetAttr target) {
  int64_t warps = schedule.getWarps();
  GpuFootprint footprint;
  // With roles, another warp group copies, and gives up the registers that it
  // does not need.
  int64_t threads = warps * machine::kWarpSize;
  int64_t copyThreads = target.getGpuArch().hasBulkCopies
                            ? machine::kGroupWarps * machine::kWarpSize
                            : 0;
  int64_t wideners = schedule.getWideners();
  footprint.threads = threads + copyThreads + wideners * machine::kWarpSize;
  int64_t registers = target.getRegistersPerCore();
  footprint.startRegisters =
      machine::getEqualShare(registers, footprint.threads);
  footprint.registerLimit =
      std::min(machine::kMostRoleRegisters, footprint.startRegisters);
  if (copyThreads)
    if (auto dealt = machine::dealRegisters(registers, warps, wideners))
      footprint.registerLimit = dealt->compute;
  footprint.takesCore = schedule.getWiden();
  return footprint;
}

GpuFootprint fovea::getGpuFootprint(ScheduleAttr schedule,
                                    machine::TargetAttr target, int64_t bytes,
                                    int64_t headDim, int64_t valueDim,
                                    int64_t passes, const TileReads &captures) {
  int64_t queries = schedule.getQueryTile(), keys = schedule.getKeyTile();
  headDim = llvm::alignTo(headDim, kFeatures);
  valueDim = llvm::alignTo(valueDim, kFeatures);

  GpuFootprint footprint = getThreads(schedule, target);
  // Parts have 16 bits each.
  int64_t parts = schedule.getParts();
  if (parts)
    bytes = 2;
  int64_t copies = parts ? parts : 1;
  // A group with more rows than an instruction takes would wait for itself.
  footprint.usesWgmma =
      bytes == 2 && !schedule.widensInProducts() &&
      queries == 16 * schedule.getWarps() &&
      WarpGrid{schedule.getWarps(), 1}.canUseWgmma(target.getGpuArch(), keys,
                                                   /*panel=*/0);
  auto getTiles = [&](int64_t stages, int64_t bytes) {
    return copies * stages *
           (passes * getSharedBytes(keys, headDim, bytes) +
            getSharedBytes(keys, valueDim, bytes));
  };
  int64_t tiles = getTiles(schedule.getStages(), bytes);
  if (schedule.getWiden())
    tiles = getTiles(schedule.getStages(), /*bytes=*/1);
  if (schedule.getWideners())
    tiles += getTiles(std::min(schedule.getStages(), kWidenedSlots), bytes);
  footprint.sharedBytes = copies * getSharedBytes(queries, headDim, bytes) +
                          tiles + kSharedAlignment;
  // Warps that share keys exchange maxima, sums and probabilities.
  auto grid = WarpGrid::get(queries, schedule.getWarps());
  if (grid.columns > 1)
    footprint.sharedBytes += 2 * getSharedBytes(queries, grid.columns, 4) +
                             getSharedBytes(queries, keys, bytes);
  bool hasCaptures =
      !captures.reads.empty() && schedule.getCaptures() == Captures::Tiled;
  if (hasCaptures)
    footprint.sharedBytes += std::min(schedule.getStages(), kCaptureStages) *
                             passes * getSlotBytes(captures, queries, keys);

  // A thread has half of the columns of a row of an instruction's result.
  constexpr int64_t kProductOperands = 30;
  int64_t columns = parts ? tile::getColumnsOfPart(valueDim) : valueDim;
  if (footprint.usesWgmma)
    footprint.productRegisters = std::max(keys, columns) / 2 + kProductOperands;

  int64_t threads = schedule.getWarps() * machine::kWarpSize;
  // Words of a thread for each element of a row of scores or outputs.
  int64_t rowWords = bytes == 8 ? 2 : 1;
  int64_t perThread = queries * rowWords;
  int64_t scores = perThread * keys, output = perThread * valueDim;
  // Probabilities as wide as scores reuse the registers of their scores; those
  // of the step before are needed until their product is complete.
  bool isOverlapped =
      footprint.usesWgmma && schedule.getProducts() == Products::Overlapped;
  int64_t probabilities =
      bytes == 2 ? copies * scores / 2 * (isOverlapped ? 2 : 1) : 0;
  // Each warp has all of its queries beside keys that it widens.
  int64_t lefts = schedule.widensInProducts()
                      ? copies * queries * headDim / 2 * grid.columns
                      : 0;
  // Products of parts have an accumulator of their own. Where it has a part of
  // the columns, most products follow the softmax, when its scores are over.
  if (parts)
    output += perThread * columns;
  if (columns < valueDim)
    scores = 0;
  footprint.registers =
      llvm::divideCeil(scores + output + probabilities + lefts, threads) +
      kOtherRegisters + (hasCaptures ? kTileReadRegisters : 0);
  return footprint;
}

GpuFootprint fovea::getBackwardGpuFootprint(ScheduleAttr schedule,
                                            machine::TargetAttr target,
                                            int64_t bytes, int64_t headDim,
                                            int64_t valueDim,
                                            int64_t queryWords,
                                            const TileReads &captures) {
  int64_t queries = schedule.getQueryTile(), keys = schedule.getKeyTile();
  headDim = llvm::alignTo(headDim, kFeatures);
  valueDim = llvm::alignTo(valueDim, kFeatures);

  // Warps without keys of their own share the columns of other warps.
  const machine::GpuArch &arch = target.getGpuArch();
  WarpGrid grid = WarpGrid::get(keys, schedule.getWarps());
  GpuFootprint footprint = getThreads(schedule, target);
  footprint.usesWgmma = bytes == 2 && keys == 16 * grid.rows &&
                        grid.canUseWgmma(arch, headDim, kPanel) &&
                        grid.canUseWgmma(arch, valueDim, kPanel);
  auto operands = [&](int64_t rows) {
    return getSharedBytes(rows, headDim, bytes) +
           getSharedBytes(rows, valueDim, bytes);
  };
  int64_t accumulatorBytes = std::max<int64_t>(bytes, 4);
  footprint.sharedBytes =
      operands(keys) + schedule.getStages() * operands(queries) +
      getSharedBytes(queries, keys, bytes) + kSharedAlignment;
  // Statistics of rows: the log-sum-exp as two numbers, and delta.
  footprint.sharedBytes +=
      getSharedBytes(schedule.getStages() * 3, queries, accumulatorBytes) +
      getSharedBytes(schedule.getStages() * queryWords, queries, 4);
  // One slot does: what is in it is read where the step begins.
  if (schedule.getCaptures() == Captures::Tiled)
    footprint.sharedBytes += getSlotBytes(captures, queries, keys);
  // Left operands where a warp does not have all columns.
  if (grid.columns > 1)
    footprint.sharedBytes += 2 * getSharedBytes(keys, queries, bytes);
  if (arch.hasBulkCopies)
    footprint.sharedBytes += getSharedBytes(queries, headDim, accumulatorBytes);

  int64_t threads = schedule.getWarps() * machine::kWarpSize;
  int64_t words = accumulatorBytes / 4;
  // Needed in every step: the sums of keys and values.
  int64_t sums = keys * (headDim + valueDim) * words;
  footprint.registers =
      llvm::divideCeil(2 * queries * keys * words + sums, threads) +
      (footprint.usesWgmma ? kOtherWgmmaBackwardRegisters
                           : kOtherBackwardRegisters);
  if (!footprint.usesWgmma)
    return footprint;
  // Products by WGMMA run side by side: while the queries' gradients are
  // summed, the products for values and keys still read 16-bit probabilities
  // and gradients of scores.
  int64_t summed =
      llvm::divideCeil(queries * keys + queries * headDim + sums, threads);
  WarpGrid queryGrid = WarpGrid::get(queries, schedule.getWarps());
  int64_t columns = headDim / queryGrid.columns;
  bool sumsByWgmma = queryGrid.canUseWgmma(arch, headDim, kPanel);
  // With mma.sync, ptxas keeps in flight the right operands of three steps, of
  // 4 registers for 16 columns, and the left operand of one step.
  int64_t others =
      sumsByWgmma ? kOtherWgmmaBackwardRegisters : 3 * columns / 4 + 4;
  footprint.registers = std::max(footprint.registers, summed + others);
  return footprint;
}

std::optional<std::pair<int64_t, int64_t>>
fovea::findUnsharedProduct(ScheduleAttr schedule, int64_t headDim,
                           int64_t valueDim) {
  int64_t queries = schedule.getQueryTile(), keys = schedule.getKeyTile();
  headDim = llvm::alignTo(headDim, kFeatures);
  valueDim = llvm::alignTo(valueDim, kFeatures);
  for (auto [rows, columns] :
       {std::pair(keys, queries), std::pair(keys, headDim),
        std::pair(keys, valueDim), std::pair(queries, headDim)}) {
    if (!WarpGrid::get(rows, schedule.getWarps()).divides(rows, columns))
      return std::pair(rows, columns);
  }
  return std::nullopt;
}
