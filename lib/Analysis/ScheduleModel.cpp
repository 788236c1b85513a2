//===- ScheduleModel.cpp - Time of attention under a schedule -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuScheduleModel.h"

#include "fovea/Analysis/MaskAnalysis.h"
#include "fovea/Analysis/PackedQueries.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

#define DEBUG_TYPE "attn-select-schedule"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The values assumed for dynamic sizes.
static constexpr int64_t kTypicalHeads = 16;
static constexpr int64_t kTypicalLength = 1024;
static constexpr int64_t kTypicalHeadDim = 64;

/// Returns true if a mask may empty tiles between its bounds of the keys.
static bool isTested(Region &mask, int64_t queries, int64_t keys) {
  if (mask.empty() || queries <= 0 || keys <= 0)
    return false;
  Builder builder(mask.getContext());
  OpFoldResult zero = builder.getIndexAttr(0);
  MaskEvaluator evaluator(mask, {{zero, zero},
                                 {zero, zero},
                                 {zero, builder.getIndexAttr(queries - 1)},
                                 {zero, builder.getIndexAttr(keys - 1)}});
  return !evaluator.bounds(Coordinate::Key).exact;
}

template <typename OpTy>
static AttentionShape getShape(OpTy op) {
  auto size = [](Value value, int64_t dim, int64_t typical) {
    int64_t size = cast<ShapedType>(value.getType()).getDimSize(dim);
    return ShapedType::isDynamic(size) ? typical : size;
  };
  auto bytes = [](Type type) -> int64_t {
    return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
  };
  AttentionShape shape;
  shape.batch = size(op.getQuery(), 0, 1);
  shape.heads = size(op.getQuery(), 1, kTypicalHeads);
  shape.kvHeads = size(op.getKey(), 1, shape.heads);
  if constexpr (std::is_same_v<OpTy, AttentionOp>)
    shape.rowsOfQuery = countRowsOfQuery(op);
  shape.queries = size(op.getQuery(), 2, kTypicalLength * shape.rowsOfQuery);
  shape.keys = size(op.getKey(), 2, kTypicalLength);
  shape.hasStaticRows = !llvm::is_contained(
      cast<ShapedType>(op.getQuery().getType()).getShape().drop_back(),
      ShapedType::kDynamic);
  shape.headDim = size(op.getQuery(), 3, kTypicalHeadDim);
  shape.valueDim = size(op.getValue(), 3, kTypicalHeadDim);
  shape.elementBytes = bytes(getElementTypeOrSelf(op.getKey()));
  shape.accumulationBytes = bytes(op.getAccumulationType());
  shape.pairParts = countPairParts(
      op.getQuery().getType(), op.getKey().getType(), op.getValue().getType());
  shape.visible = estimateVisible(op.getMask(), shape.queries, shape.keys);
  shape.isTested = isTested(op.getMask(), shape.queries, shape.keys);
  return shape;
}

AttentionShape AttentionShape::get(AttentionOp op) { return getShape(op); }

AttentionShape AttentionShape::get(OnlineAttentionOp op) {
  return getShape(op);
}

AttentionShape AttentionShape::get(AttentionBackwardOp op) {
  return getShape(op);
}

int64_t fovea::countPairProducts(int64_t parts, machine::TargetAttr target) {
  if (parts == 1 && target.multipliesPairs())
    return 1;
  // The product of the lesser parts is too small to count.
  constexpr int64_t kProducts = 3;
  return parts == 2 && target.hasMatrixTiles() &&
                 target.getMatrixPeak() > kProducts * target.getPeak()
             ? kProducts
             : 0;
}

double fovea::estimateVisible(Region &mask, int64_t queries, int64_t keys) {
  // Blocks of rows as tall as a usual tile, and the largest number of them; of
  // those that a sample stands for it is in the middle.
  constexpr int64_t kRows = 48, kSamples = 64;
  if (mask.empty() || queries <= 0 || keys <= 0)
    return 1.0;
  Builder builder(mask.getContext());
  auto span = [&](int64_t first, int64_t last) {
    return Span{builder.getIndexAttr(first), builder.getIndexAttr(last)};
  };
  int64_t blocks = llvm::divideCeil(queries, kRows);
  int64_t step = llvm::divideCeil(blocks, kSamples);
  double kept = 0, visited = 0;
  for (int64_t block = step / 2; block < blocks; block += step) {
    int64_t first = block * kRows;
    int64_t last = std::min(first + kRows, queries) - 1;
    MaskEvaluator evaluator(
        mask, {span(0, 0), span(0, 0), span(first, last), span(0, keys - 1)});
    MaskBounds bounds = evaluator.bounds(Coordinate::Key);
    auto lower = getConstantIntValue(bounds.lower);
    auto upper = getConstantIntValue(bounds.upper);
    kept += lower && upper ? double(std::max<int64_t>(*upper - *lower, 0))
                           : double(keys);
    visited += double(keys);
  }
  return kept / visited;
}

/// Returns the share of the multiply-add rate that a product reaches whose tile
/// is `vectors` vectors of queries wide: three vectors share a broadcast best.
static double productEfficiency(int64_t vectors) {
  if (vectors % 3 == 0)
    return 0.95;
  return vectors % 2 == 0 ? 0.9 : 0.75;
}

double fovea::predictSeconds(const AttentionShape &shape,
                             machine::TargetAttr target,
                             ScheduleAttr schedule) {
  if (target.isGpu() && schedule.getWarps())
    return predictGpuSeconds(shape, target, schedule);
  int64_t queryTile = schedule.getQueryTile(), keyTile = schedule.getKeyTile();
  // Multiply-adds on vectors per cycle.
  constexpr double kProductRate = 2.0;
  // Cycles per vector of scores: exponential, running sum, load and store.
  constexpr double kSoftmaxCycles = 9.0;
  // With matrix tiles: the share of their rate that two products reach between
  // loads and stores of tiles (assumed), and cycles per vector of scores for
  // the factor and the maximum, and for weights in bf16, transposed.
  // Sums of values are loaded and stored with each block of keys: cycles per
  // vector (measured).
  constexpr double kMatrixEfficiency = 0.5, kMatrixCycles = 9.0,
                   kTileSumCycles = 6.0;
  // Cycles per vector widened from 16 bit: load, convert, store.
  constexpr double kWidenCycles = 3.0;
  // Cycles per vector of a tile's queries and outputs: pack, finalise.
  constexpr double kItemCycles = 4.0;
  // Cycles to enter and leave a tile's loops.
  constexpr double kTileCycles = 100.0;
  // Bytes per cycle from the near memory; half of it hides under arithmetic.
  constexpr double kNearRate = 64.0;
  // The cost to products of each doubling beyond the fast memory.
  constexpr double kFastMemoryMiss = 0.05;
  // The cost of values that do not fit in the fast memory.
  constexpr double kConflictMiss = 1.09;

  double lanes =
      double(target.getVectorBytes()) / double(shape.accumulationBytes);
  double features = double(shape.headDim + shape.valueDim);
  double queries = double(queryTile), keys = double(keyTile);
  // The loop over keys ends where the mask does, so its last tile is shorter.
  double visible = shape.visible * double(shape.keys) / keys;
  double keyTiles = std::ceil(visible);

  double products = queries * keys * features / lanes / kProductRate /
                    productEfficiency(int64_t(std::ceil(queries / lanes)));
  double resident =
      queries * (keys + features) * double(shape.accumulationBytes);
  products *=
      1.0 +
      kFastMemoryMiss *
          std::log2(std::max(1.0, resident / double(target.getFastMemory())));
  // Values are read in place a few vectors of each row at a time: longer rows
  // leave most of the fast memory's sets unused, and the block's values push
  // each other out. A few queries read them once.
  bool isInPlace = shape.elementBytes == shape.accumulationBytes &&
                   !hasFewQueries(shape.queries, int64_t(lanes));
  if (isInPlace && keys * double(shape.valueDim * shape.elementBytes) >=
                       double(target.getFastMemory()))
    products *= kConflictMiss;
  double softmax = queries * keys / lanes * kSoftmaxCycles;
  // The peak counts two operations for each lane of each multiply-add.
  double cyclesPerSecond =
      double(target.getPeak()) * 1e9 /
      (double(target.getCores()) * double(target.getVectorBytes()) / 4.0 * 2.0 *
       kProductRate);
  double rescale = queries * double(shape.valueDim) / lanes;
  // Of a tile of queries that is not full, the groups that exist count.
  double tiles = std::ceil(double(shape.queries) / queries);
  int64_t pairProducts = countPairProducts(shape.pairParts, target);
  if (pairProducts) {
    double operations = 2.0 * queries * keys * features * double(pairProducts);
    products = operations * double(target.getCores()) * cyclesPerSecond /
               (double(target.getMatrixPeak()) * 1e9 * kMatrixEfficiency);
    softmax = queries * keys / lanes * (kSoftmaxCycles + kMatrixCycles);
    rescale *= kTileSumCycles;
    constexpr double kGroup = 32.0;
    tiles = std::min(tiles, std::ceil(double(shape.queries) / kGroup) * kGroup /
                                queries);
  }
  double fetch = keys * features * double(shape.elementBytes) / kNearRate;
  double widen = shape.elementBytes < shape.accumulationBytes
                     ? keys * features / lanes * kWidenCycles
                     : 0.0;
  double item = visible * (products + softmax + fetch + widen) +
                keyTiles * (rescale + kTileCycles) +
                queries * features / lanes * kItemCycles;

  double items = double(shape.batch * shape.heads) * tiles;
  double rounds = std::ceil(items / double(target.getCores()));
  return rounds * item / cyclesPerSecond;
}

/// Returns the operations of one evaluation of a scalar region.
static double countOperations(Region &region) {
  double count = 0;
  region.walk([&](Operation *op) {
    if (isa<math::MathDialect>(op->getDialect()))
      count += 12;
    else if (isa<arith::DivFOp, arith::RemFOp>(op))
      count += 4;
    else if (isa<tensor::ExtractOp>(op))
      count += 8;
    else if (isa<arith::ArithDialect>(op->getDialect()) &&
             !op->hasTrait<OpTrait::ConstantLike>())
      count += 1;
  });
  return count;
}

/// Returns true if neighbours in an input of `op` are not neighbours in its
/// result.
static bool isTransposing(linalg::LinalgOp op) {
  AffineMap output = op.getIndexingMapsArray().back();
  return llvm::any_of(op.getIndexingMapsArray(), [&](AffineMap input) {
    return input.getNumResults() == op.getNumLoops() &&
           input.getResults().back() != output.getResults().back();
  });
}

void KeyProducer::add(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  double elements = 1;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    bool isFirst = dim == 0, isLast = int64_t(dim) + 1 == type.getRank();
    int64_t typical = isFirst                             ? 1
                      : isLast                            ? kTypicalHeadDim
                      : dim + 2 == size_t(type.getRank()) ? kTypicalLength
                                                          : kTypicalHeads;
    elements *= double(ShapedType::isDynamic(size) ? typical : size);
  }
  // A load and a store each, and the operations of a norm, which sweeps a row
  // several times.
  double each = 2.0 + TypeSwitch<Operation *, double>(op)
                          .Case([](LayerNormOp) { return 16.0; })
                          .Case([](RMSNormOp) { return 10.0; })
                          .Case([](RopeOp) { return 8.0; })
                          .Case([](linalg::LinalgOp generic) {
                            return (isTransposing(generic) ? 16.0 : 0.0) +
                                   countOperations(generic->getRegion(0));
                          })
                          .Case([](ElementwiseOp elementwise) {
                            return countOperations(elementwise.getBody());
                          })
                          .Default([](Operation *) { return 1.0; });
  if (operations == 0)
    bytes =
        elements * double(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  operations += each * elements;
}

double fovea::predictGainInLoads(const KeyProducer &producer,
                                 machine::TargetAttr target) {
  // The time of a kernel's start and end, where all cores meet.
  constexpr double kKernelSeconds = 5e-6;
  // The bandwidth of near memories relative to main memory.
  constexpr double kNearBandwidth = 8.0;
  // One operation on a vector each cycle, against the peak's two multiply-adds.
  double operationsPerSecond = double(target.getPeak()) * 1e9 / 4.0;
  double bandwidth = double(target.getBandwidth()) * 1e6;
  if (producer.bytes <= double(target.getNearMemory() * target.getCores()))
    bandwidth *= kNearBandwidth;
  return kKernelSeconds + 2.0 * producer.bytes / bandwidth -
         (producer.reads - 1.0) * producer.operations / operationsPerSecond;
}

void fovea::insertChoice(SmallVectorImpl<ScheduleChoice> &choices,
                         ScheduleAttr schedule, double seconds) {
  auto *place = llvm::find_if(choices, [&](const ScheduleChoice &other) {
    return seconds < *other.seconds;
  });
  LDBG() << "  " << schedule << ": "
         << llvm::formatv("{0:F1} us", seconds * 1e6)
         << (place == choices.begin() ? ", the best so far" : "");
  choices.insert(place, {schedule, seconds});
}

/// Returns a host's schedules of the backward pass, that with the largest
/// number of queries first for which all data that the tiles of keys read
/// repeatedly fits into three quarters of a core's near memory. Keys and their
/// sums pass through the rest, once for each tile of queries.
static SmallVector<ScheduleChoice>
listHostSchedules(AttentionBackwardOp op, machine::TargetAttr target) {
  constexpr int64_t kCandidates[] = {192, 96, 48}, kKeys = 192;
  AttentionShape shape = AttentionShape::get(op);
  // Both operands, packed and unpacked; the gradient; two blocks of scores, and
  // four times the tile's own where captured tensors have gradients.
  int64_t scores = op.getCaptures().empty() ? kKeys / 2 : 5 * kKeys;
  int64_t bytes = shape.accumulationBytes *
                  (3 * shape.headDim + 2 * shape.valueDim + scores);
  SmallVector<ScheduleChoice> valid;
  for (int64_t queries : kCandidates) {
    LDBG() << queries << " queries: " << queries * bytes
           << " bytes are read again and again, of a near memory of "
           << target.getNearMemory();
    // The fewest queries do in any case.
    if (queries * bytes <= target.getNearMemory() / 4 * 3 ||
        queries == kCandidates[2])
      valid.push_back({ScheduleAttr::get(op.getContext(), queries, kKeys,
                                         getWorkOrder(op.getMask())),
                       std::nullopt});
  }
  return valid;
}

SmallVector<ScheduleChoice> fovea::listSchedules(AttentionBackwardOp op,
                                                 machine::TargetAttr target) {
  if (getUnfitReason(op, target))
    return {};
  return target.isGpu() ? listGpuSchedules(op, target)
                        : listHostSchedules(op, target);
}

ScheduleAttr fovea::selectSchedule(AttentionBackwardOp op,
                                   machine::TargetAttr target) {
  SmallVector<ScheduleChoice> choices = listSchedules(op, target);
  return choices.empty() ? ScheduleAttr() : choices.front().schedule;
}

GradientsAttr fovea::selectGradients(AttentionBackwardOp op,
                                     ScheduleAttr schedule,
                                     machine::TargetAttr target,
                                     bool deterministic,
                                     SmallVectorImpl<std::string> &remarks) {
  if (!schedule.getWarps())
    return selectHostGradients(op, target);
  GradientsAttr gradients = selectGpuGradients(op, deterministic, remarks);
  if (!target.isGpu() || !gradients.isParallel(Coordinate::Head))
    return gradients;
  return gradients.withShares(selectShares(op, target, schedule));
}

/// Returns a host's schedule with keys split among cores that tiles of queries
/// leave idle.
static ScheduleAttr splitForCores(ScheduleAttr schedule,
                                  const AttentionShape &shape,
                                  machine::TargetAttr target) {
  // A part's state, which is merged, is small beside as many keys.
  constexpr int64_t kFewestKeys = 128, kMostParts = 128;
  int64_t items = countQueryTiles(shape, schedule);
  if (items < 1 || items >= target.getCores())
    return schedule;
  auto keys = int64_t(shape.visible * double(shape.keys));
  int64_t parts =
      std::min<int64_t>({int64_t(llvm::divideCeil(target.getCores(), items)),
                         keys / kFewestKeys, kMostParts});
  if (parts < 2)
    return schedule;
  LDBG() << items << " tiles of queries for " << target.getCores()
         << " cores: keys are split into " << parts << " parts";
  return schedule.with({.split = parts});
}

SmallVector<ScheduleChoice>
fovea::listSchedules(AttentionOp op, machine::TargetAttr target,
                     const ScheduleOptions &options) {
  if (getUnfitReason(op, target))
    return {};
  if (target.isGpu())
    return listGpuSchedules(op, target, options);
  AttentionShape shape = AttentionShape::get(op);
  WorkOrder order = getWorkOrder(op.getMask());
  int64_t lanes = target.getVectorBytes() / shape.accumulationBytes;

  auto splitSize = static_cast<int64_t>(op.getSplitSize().value_or(0));
  SmallVector<ScheduleChoice> valid;
  LDBG() << "on a host, " << target.getName() << ": " << shape.batch << "x"
         << shape.heads << "x" << shape.queries << "x" << shape.headDim
         << " queries, " << shape.keys << " keys, "
         << llvm::formatv("{0:P0} of the scores kept", shape.visible);
  SmallVector<int64_t> queryVectors = {1, 2, 3, 6},
                       keyTiles = {16, 32, 64, 128};
  // Units for pairs take as long to read a block's operands as to multiply.
  if (countPairProducts(shape.pairParts, target)) {
    queryVectors.append({12, 24});
    keyTiles.push_back(256);
  }
  // A few queries ask for rows ahead of those that they read, within a tile.
  if (hasFewQueries(shape.queries, lanes))
    keyTiles.push_back(512);
  for (int64_t vectors : queryVectors) {
    for (int64_t keyTile : keyTiles) {
      if (splitSize % keyTile)
        continue;
      auto candidate =
          ScheduleAttr::get(op.getContext(), lanes * vectors, keyTile, order)
              .with({.splitSize = splitSize});
      int64_t bytes = getTileBytes(candidate, op.getAccumulationType(),
                                   shape.headDim, shape.valueDim);
      if (bytes > target.getNearMemory()) {
        LDBG() << "  " << candidate.getQueryTile() << "x" << keyTile
               << ": its tile of " << bytes << " bytes exceeds the near memory";
        continue;
      }
      insertChoice(valid,
                   splitSize ? candidate
                             : splitForCores(candidate, shape, target),
                   predictSeconds(shape, target, candidate));
    }
  }
  return valid;
}

ScheduleAttr fovea::selectSchedule(AttentionOp op, machine::TargetAttr target,
                                   const ScheduleOptions &options) {
  SmallVector<ScheduleChoice> choices = listSchedules(op, target, options);
  return choices.empty() ? ScheduleAttr() : choices.front().schedule;
}

SmallVector<Operation *> fovea::findUnscheduled(Operation *root) {
  SmallVector<Operation *> found;
  root->walk([&](Operation *op) {
    auto attention = dyn_cast<AttentionOp>(op);
    auto backward = dyn_cast<AttentionBackwardOp>(op);
    if ((attention && !attention.getSchedule()) ||
        (backward && backward.getLse() && !backward.getSchedule()))
      found.push_back(op);
  });
  return found;
}
