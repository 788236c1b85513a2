//===- GpuFootprint.cpp - What a schedule takes of a GPU ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/GpuFootprint.h"

#include "llvm/Support/MathExtras.h"

using namespace fovea::attn;

GpuFootprint fovea::attn::getGpuFootprint(ScheduleAttr schedule,
                                          TargetAttr target, int64_t bytes,
                                          int64_t headDim, int64_t valueDim) {
  constexpr int64_t kAlignment = 1024, kFeatures = 16, kWarpGroup = 4;
  constexpr int64_t kFileRegisters = 65536, kLoadRegisters = 24;
  constexpr int64_t kOtherRegisters = 25, kLargestBudget = 240;
  int64_t queries = schedule.getQueryTile(), keys = schedule.getKeyTile();
  int64_t warps = schedule.getWarps();
  headDim = llvm::alignTo(headDim, kFeatures);
  valueDim = llvm::alignTo(valueDim, kFeatures);
  bool isHopper = target.getArch() == "hopper";

  GpuFootprint footprint;
  footprint.usesWgmma = isHopper && bytes == 2 && warps % kWarpGroup == 0 &&
                        queries == 16 * warps;
  auto tileBytes = [&](int64_t rows, int64_t columns) -> int64_t {
    return llvm::alignTo(rows * columns * bytes, kAlignment);
  };
  footprint.sharedBytes = tileBytes(queries, headDim) +
                          schedule.getStages() * (tileBytes(keys, headDim) +
                                                  tileBytes(keys, valueDim)) +
                          kAlignment;

  // On Hopper a warp group more copies, and gives up what it does not need.
  int64_t threads = warps * 32;
  int64_t copyThreads = isHopper ? kWarpGroup * 32 : 0;
  footprint.threads = threads + copyThreads;
  footprint.registerLimit = std::min(
      kLargestBudget,
      int64_t(llvm::alignDown(
          (kFileRegisters - copyThreads * kLoadRegisters) / threads, 8)));
  // Words of a thread for each element of a row of scores or outputs.
  int64_t rowWords = bytes == 8 ? 2 : 1;
  int64_t perThread = queries * rowWords;
  int64_t scores = perThread * keys, output = perThread * valueDim;
  // Wide probabilities take the place of their scores.
  int64_t probabilities =
      bytes == 2 ? scores / 2 * (footprint.usesWgmma ? 2 : 1) : 0;
  footprint.registers =
      llvm::divideCeil(scores + output + probabilities, threads) +
      kOtherRegisters;
  return footprint;
}
