//===- ScheduleVerify.cpp - Check that a schedule fits op and machine -----===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/GpuFootprint.h"
#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Analysis/Widening.h"
#include "fovea/Dialect/Tile/IR/Warps.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Checks that each warp has whole rows of products of the tile; in the
/// backward pass, where accumulators are as wide as a head, warps may share
/// their columns.
static LogicalResult verifyWarps(Operation *op, ScheduleAttr schedule,
                                 int64_t headDim, int64_t valueDim) {
  if (!schedule.getWarps())
    return success();
  int64_t warps = schedule.getWarps();
  if (!isa<AttentionBackwardOp>(op)) {
    if (schedule.getQueryTile() % (16 * warps) == 0)
      return success();
    // Warps share keys where products widen them.
    auto grid = tile::WarpGrid::get(schedule.getQueryTile(), warps);
    int64_t columns = 16 * grid.columns;
    if (schedule.widensInProducts() &&
        schedule.getQueryTile() % (16 * grid.rows) == 0) {
      if (schedule.getMaximum() != Maximum::Exact)
        return op->emitOpError()
               << "has a schedule of which " << grid.columns
               << " warps share keys, which have the exact maximum, but it is "
               << stringifyEnum(schedule.getMaximum());
      if (schedule.getKeyTile() % columns == 0 &&
          (ShapedType::isDynamic(valueDim) || valueDim % columns == 0))
        return success();
      return op->emitOpError() << "has a schedule of which " << grid.columns
                               << " warps share keys, and features of values, "
                                  "by multiples of 16, but there are "
                               << schedule.getKeyTile() << " and " << valueDim;
    }
    return op->emitOpError()
           << "has a schedule whose tile must have a multiple of 16 queries "
              "for each of "
           << warps << " warps, but has " << schedule.getQueryTile();
  }
  // Dynamic dims cannot be checked.
  auto product = findUnsharedProduct(
      schedule, ShapedType::isDynamic(headDim) ? 0 : headDim,
      ShapedType::isDynamic(valueDim) ? 0 : valueDim);
  if (!product)
    return success();
  return op->emitOpError()
         << "has a schedule whose products " << warps
         << " warps must share, by multiples of 16 rows and of 8 columns, but "
            "one has "
         << product->first << "x" << product->second;
}

/// Checks that the GPU has the shared memory and registers that a tile takes.
static LogicalResult verifyGpuSchedule(Operation *op, ScheduleAttr schedule,
                                       machine::TargetAttr target, Type element,
                                       int64_t headDim, int64_t valueDim,
                                       Region &score, Region &mask,
                                       int64_t passes) {
  if (!schedule.getWarps())
    return op->emitOpError()
           << "has a schedule without warps and stages, which \""
           << target.getName() << "\" needs";
  if (schedule.getParts() && !element.isF32())
    return op->emitOpError() << "has a schedule with parts, which operands of "
                                "f32 have, but these are "
                             << element;
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  GpuFootprint footprint =
      isa<AttentionBackwardOp>(op)
          ? getBackwardGpuFootprint(schedule, target, bytes, headDim, valueDim,
                                    countQueryWords(mask),
                                    TileReads::get(score, mask))
          : getGpuFootprint(schedule, target, bytes, headDim, valueDim, passes,
                            TileReads::get(score, mask));
  if (schedule.getParts() && !footprint.usesWgmma)
    return op->emitOpError()
           << "has a schedule with parts, which are multiplied by WGMMA: "
              "expects a target that has it, and 16 queries for each warp of "
              "groups of 4, but has "
           << schedule.getQueryTile() << " queries for " << schedule.getWarps()
           << " warps on \"" << target.getName() << "\"";
  if (footprint.fits(target))
    return success();
  InFlightDiagnostic error =
      op->emitOpError()
      << "has a schedule that does not fit the target: a tile of "
      << schedule.getQueryTile() << "x" << schedule.getKeyTile() << " by "
      << schedule.getWarps() << " warps in " << schedule.getStages()
      << " stages";
  if (passes > 1)
    error << " of each of " << passes << " passes";
  error << " needs ";
  if (footprint.sharedBytes > target.getFastMemory())
    return error << footprint.sharedBytes
                 << " bytes of shared memory, but a block on \""
                 << target.getName() << "\" has " << target.getFastMemory();
  if (footprint.registers > footprint.registerLimit)
    return error << footprint.registers << " registers a thread, but there are "
                 << footprint.registerLimit;
  return error << footprint.productRegisters
               << " registers a thread for a product, but each starts with "
               << footprint.startRegisters;
}

/// Checks that the working set of one tile on a host fits the target's near
/// memory.
static LogicalResult verifyHostSchedule(Operation *op, ScheduleAttr schedule,
                                        machine::TargetAttr target,
                                        Type accumulation, int64_t headDim,
                                        int64_t valueDim) {
  int64_t bytes = getTileBytes(schedule, accumulation, headDim, valueDim);
  if (bytes <= target.getNearMemory())
    return success();
  return op->emitOpError() << "has a schedule that does not fit the target: a "
                           << "tile of " << schedule.getQueryTile() << "x"
                           << schedule.getKeyTile() << " needs " << bytes
                           << " bytes, but a core of \"" << target.getName()
                           << "\" has " << target.getNearMemory();
}

static int64_t getSize(Value tensor, int64_t dim) {
  return cast<ShapedType>(tensor.getType()).getDimSize(dim);
}

/// Checks that the query heads of a head of keys can be divided into shares.
static LogicalResult verifyShares(AttentionBackwardOp op, int64_t shares) {
  if (shares == 1)
    return success();
  int64_t heads = getSize(op.getQuery(), 1), kvHeads = getSize(op.getKey(), 1);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(kvHeads))
    return op.emitOpError() << "has a schedule with " << shares
                            << " shares of heads whose number is not static";
  if (kvHeads && heads / kvHeads % shares == 0)
    return success();
  return op.emitOpError() << "has a schedule with " << shares << " shares of "
                          << heads << " heads on " << kvHeads
                          << ": expects them to divide the heads of a group";
}

/// Checks that each read of a captured tensor can be added up as `gradients`
/// says.
static LogicalResult verifyGradients(AttentionBackwardOp op) {
  ScheduleAttr schedule = op.getScheduleAttr();
  GradientsAttr gradients = schedule.getGradients();
  std::optional<SmallVector<CaptureRead>> reads = findCaptureReads(op);
  if (!reads)
    return op.emitOpError("has a schedule, but reads a captured tensor that "
                          "has a gradient in a region within its score region");
  if (!gradients)
    return op.emitOpError("has a schedule without gradients");
  if (failed(verifyShares(op, gradients.getShares())))
    return failure();
  if (gradients.getCaptures().size() != reads->size())
    return op.emitOpError()
           << "has a schedule for " << gradients.getCaptures().size()
           << " reads of captured tensors with gradients, but has "
           << reads->size();
  for (auto [read, sum] : llvm::zip_equal(*reads, gradients.getCaptures())) {
    bool isPossible = sumsDiagonals(sum)
                          ? read.isByDistance
                          : sum == read.sum || (sum != CaptureSum::Own &&
                                                sum != CaptureSum::OverQueries);
    if (!isPossible) {
      InFlightDiagnostic error = op.emitOpError()
                                 << "has a schedule that adds up gradients by "
                                 << stringifyEnum(sum)
                                 << ", which the indices of a read rule out";
      error.attachNote(read.op.getLoc()) << "the read";
      return error;
    }
    if (sum == CaptureSum::OverQueries && !canSumCaptures(op, schedule))
      return op.emitOpError()
             << "has a schedule whose " << schedule.getWarps()
             << " warps share queries that gradients of captured tensors "
                "are added up over: expects a multiple of 16 keys for each "
                "warp, but has "
             << schedule.getKeyTile();
  }
  return success();
}

/// Checks a host's schedule of the backward pass, whose queries are packed.
static LogicalResult verifyPackedQueries(AttentionBackwardOp op,
                                         ScheduleAttr schedule) {
  constexpr int64_t kMostQueries = 1024;
  if (schedule.getQueryTile() <= kMostQueries)
    return success();
  return op.emitOpError() << "has a schedule with " << schedule.getQueryTile()
                          << " queries in a tile, but a host packs at most "
                          << kMostQueries;
}

/// Checks that the blocks of a cluster, which have tiles of queries side by
/// side, can read the same keys: those that a mask keeps of any of them follow
/// from the place of their cluster, but not if it reads tensors.
template <typename OpTy>
static LogicalResult verifyCluster(OpTy op) {
  int64_t blocks = op.getScheduleAttr().getCluster();
  if (blocks == 1)
    return success();
  machine::TargetAttr target = machine::getTarget(op);
  if (target && target.isGpu() && !target.getGpuArch().hasClusters())
    return op->emitOpError()
           << "has a schedule with clusters of " << blocks
           << " blocks, which \"" << target.getName() << "\" does not have";
  if (readsTensors(op.getMask()))
    return op->emitOpError() << "has a schedule with clusters of " << blocks
                             << " blocks, which read the same keys, but a mask "
                                "that reads tensors tells these apart";
  return success();
}

template <typename OpTy>
static LogicalResult verify(OpTy op, int64_t passes = 1) {
  ScheduleAttr schedule = op.getScheduleAttr();
  int64_t headDim = getSize(op.getKey(), 3),
          valueDim = getSize(op.getValue(), 3);
  if (failed(verifyWarps(op, schedule, headDim, valueDim)) ||
      failed(verifyCluster(op)))
    return failure();
  machine::TargetAttr target = machine::getTarget(op);
  if (!target || ShapedType::isDynamic(headDim) ||
      ShapedType::isDynamic(valueDim))
    return success();
  if (target.isGpu())
    return verifyGpuSchedule(op, schedule, target,
                             getElementTypeOrSelf(op.getKey()), headDim,
                             valueDim, op.getScore(), op.getMask(), passes);
  return verifyHostSchedule(op, schedule, target, op.getAccumulationType(),
                            headDim, valueDim);
}

LogicalResult fovea::verifySchedule(AttentionOp op, int64_t passes) {
  machine::TargetAttr target = machine::getTarget(op);
  if (op.getScheduleAttr().getWiden() && target)
    if (std::optional<std::string> obstacle = getWideningObstacle(op, target))
      return op.emitOpError("has a schedule that widens keys and values, but ")
             << *obstacle;
  return verify(op, passes);
}

LogicalResult fovea::verifySchedule(OnlineAttentionOp op) { return verify(op); }

LogicalResult fovea::verifySchedule(AttentionBackwardOp op) {
  ScheduleAttr schedule = op.getScheduleAttr();
  if (failed(verifyGradients(op)))
    return failure();
  machine::TargetAttr target = machine::getTarget(op);
  if (!schedule.getWarps() && !(target && target.isGpu()))
    return verifyPackedQueries(op, schedule);
  return verify(op);
}

int64_t fovea::getTileBytes(ScheduleAttr schedule, Type accumulation,
                            int64_t headDim, int64_t valueDim) {
  int64_t queries = schedule.getQueryTile(), keys = schedule.getKeyTile();
  // Queries, accumulator, keys, values and scores, and two row statistics.
  int64_t elements = queries * (headDim + valueDim + 2) +
                     keys * (headDim + valueDim) + queries * keys;
  return elements * (accumulation.getIntOrFloatBitWidth() / 8);
}
