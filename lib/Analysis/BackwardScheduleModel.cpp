//===- BackwardScheduleModel.cpp - Time of gradients on a GPU -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuScheduleModel.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/GpuFootprint.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

#define DEBUG_TYPE "attn-select-schedule"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Seconds to begin and end a block.
static constexpr double kBlockLatency = 4e-6;

/// Returns the seconds that a block takes for one tile of queries.
static double predictStepSeconds(const AttentionShape &shape,
                                 machine::TargetAttr target,
                                 ScheduleAttr schedule,
                                 const GpuFootprint &footprint) {
  // Instructions per score: scale and subtract, exponential, difference and
  // product, two conversions, and the instructions between them.
  constexpr double kScoreOps = 18;
  // The same, and waits, to gather an element that could come as one of a tile,
  // or of a row. (Measured with a bias in bf16 and a table of distances in f32
  // at d = 128.)
  constexpr double kGatherOps = 36, kGatherLineOps = 15;
  // The share of the peak rate that products by FMA, and by tensor cores,
  // reach.
  constexpr double kFmaEfficiency = 0.5, kMatrixEfficiency = 0.85;
  // The fraction of the shorter of products and arithmetic that does not
  // overlap the longer.
  constexpr double kExposed = 0.25;
  // Seconds to pass the barriers of a step, and to wait for a copy that does
  // not run ahead.
  constexpr double kStepLatency = 2e-7, kCopyLatency = 8e-7;
  // The speed relative to main memory at which the L2 cache delivers tiles, and
  // adds up the queries' gradients (measured on the H200: 6.5 and 3.9 TB/s).
  constexpr double kNearSpeedup = 1.5, kSumSpeedup = 0.9;

  double queries = double(schedule.getQueryTile()),
         keys = double(schedule.getKeyTile());
  double headDim = double(shape.headDim), valueDim = double(shape.valueDim);
  double perCore = 1e9 / double(target.getCores());
  double lanes = double(target.getPeak()) * perCore / 2;
  double products = 2 * queries * keys * (3 * headDim + 2 * valueDim);
  if (shape.elementBytes == 2) {
    double rate = double(target.getMatrixPeak()) * perCore * kMatrixEfficiency;
    // Tensor cores that have WGMMA reach half of their rate with mma.sync.
    products /= !footprint.usesWgmma && target.getGpuArch().hasWarpGroups
                    ? rate / 2
                    : rate;
  } else {
    products /= double(target.getPeak()) * perCore * kFmaEfficiency;
  }
  double scoreOps = kScoreOps;
  if (schedule.getCaptures() == Captures::Gathered)
    for (const TileRead &read : shape.captures.reads)
      scoreOps += read.line ? kGatherLineOps : kGatherOps;
  double arithmetic = queries * keys * scoreOps / lanes;
  double bandwidth = double(target.getBandwidth()) * 1e6;
  double traffic = queries * (headDim + valueDim) * double(shape.elementBytes) /
                       (kNearSpeedup * bandwidth) +
                   queries * headDim * 4 / (kSumSpeedup * bandwidth);
  double step = std::max(products, arithmetic) +
                std::min(products, arithmetic) * kExposed;
  step = std::max(step, traffic * double(target.getCores()));
  return step + kStepLatency + (schedule.getStages() == 1 ? kCopyLatency : 0);
}

/// Returns the seconds of all blocks, each of which adds up the gradients of
/// one tile of keys.
static double predictBackwardSeconds(const AttentionShape &shape,
                                     machine::TargetAttr target,
                                     ScheduleAttr schedule,
                                     const GpuFootprint &footprint) {
  double step = predictStepSeconds(shape, target, schedule, footprint);
  int64_t kvHeads = std::max<int64_t>(shape.kvHeads, 1);
  double tiles =
      double(llvm::divideCeil(shape.queries, schedule.getQueryTile()));
  double steps =
      std::ceil(shape.visible * tiles * double(shape.heads) / double(kvHeads));
  double blocks = double(shape.batch * kvHeads) *
                  double(llvm::divideCeil(shape.keys, schedule.getKeyTile()));
  double waves = std::max(1.0, blocks / double(target.getCores()));
  return waves * (steps * step + kBlockLatency);
}

/// Returns true if a derivative of the score region, by the score or by a value
/// read from a captured tensor that has a gradient, reads the score. The score
/// is then kept beside the values computed from it. That is so unless the
/// region only multiplies the score by numbers and adds numbers, none of which
/// have gradients.
static bool keepsScores(AttentionBackwardOp op) {
  if (op.getScore().empty())
    return false;
  Block &block = op.getScore().front();
  llvm::SmallDenseSet<Value> linear = {block.getArgument(0)}, ofReads;
  for (Operation &each : block.without_terminator()) {
    auto read = dyn_cast<tensor::ExtractOp>(each);
    if (usesAny(each, ofReads) ||
        (read && llvm::is_contained(op.getCaptures(), read.getTensor())))
      ofReads.insert_range(each.getResults());
    if (!usesAny(each, linear))
      continue;
    SmallVector<bool> depends =
        llvm::map_to_vector(each.getOperands(), [&](Value value) {
          return linear.contains(value);
        });
    auto hasNumber = [&](unsigned index) {
      return !depends[index] && !ofReads.contains(each.getOperand(index));
    };
    bool isLinear =
        isa<arith::AddFOp, arith::SubFOp, arith::NegFOp>(each) ||
        (isa<arith::MulFOp>(each) && (hasNumber(0) || hasNumber(1))) ||
        (isa<arith::DivFOp>(each) && hasNumber(1));
    if (!isLinear)
      return true;
    linear.insert(each.getResult(0));
  }
  return false;
}

/// Returns true if scores read a tensor that query and key index, one that has
/// a gradient if so asked, by other reads than `tiles`.
static bool readsBias(AttentionBackwardOp op, bool hasGradient,
                      const TileReads &tiles = {}) {
  if (op.getScore().empty())
    return false;
  Block &block = op.getScore().front();
  return llvm::any_of(
      block.getOps<tensor::ExtractOp>(), [&](tensor::ExtractOp read) {
        auto isIndex = [&](unsigned argument) {
          return llvm::is_contained(read.getIndices(),
                                    block.getArgument(argument));
        };
        return isIndex(3) && isIndex(4) && !tiles.contains(read) &&
               (!hasGradient ||
                llvm::is_contained(op.getCaptures(), read.getTensor()));
      });
}

/// Returns the bytes for each score of what a derivative of the score region by
/// the score reads from `tiles`: 0 if these numbers are only added to it.
static int64_t getKeptBytes(AttentionBackwardOp op, const TileReads &tiles) {
  if (op.getScore().empty())
    return 0;
  Block &block = op.getScore().front();
  llvm::SmallDenseSet<Value> ofScore = {block.getArgument(0)}, ofTiles;
  int64_t bytes = 0;
  bool isKept = keepsScores(op);
  for (Operation &each : block.without_terminator()) {
    const TileRead *read = llvm::find_if(
        tiles.reads, [&](const TileRead &tile) { return tile.op == &each; });
    bool isRead = read != tiles.reads.end();
    if (isRead)
      bytes += read->getElementBytes();
    bool usesTiles = isRead || usesAny(each, ofTiles);
    if (!usesAny(each, ofScore)) {
      if (usesTiles)
        ofTiles.insert_range(each.getResults());
      continue;
    }
    isKept |= usesTiles && !isa<arith::AddFOp, arith::SubFOp>(each);
    ofScore.insert_range(each.getResults());
  }
  return isKept ? bytes : 0;
}

/// Returns the seconds under `schedule`; nullopt if the target has no such
/// kernel.
static std::optional<double> predictIfFits(AttentionBackwardOp op,
                                           const AttentionShape &shape,
                                           machine::TargetAttr target,
                                           ScheduleAttr schedule) {
  // Registers for the addresses of biases, and for the values read; with
  // mma.sync the registers of operands serve for these as well.
  constexpr int64_t kCaptureRegisters = 20;
  bool isTiled = schedule.getCaptures() == Captures::Tiled;
  if (findUnsharedProduct(schedule, shape.headDim, shape.valueDim) ||
      !canSumCaptures(op, schedule))
    return std::nullopt;
  int64_t threadScores = schedule.getQueryTile() * schedule.getKeyTile() /
                         (32 * schedule.getWarps());
  if (shape.elementBytes != 2 &&
      threadScores * (shape.headDim + shape.valueDim) > kLargestUnrolled)
    return std::nullopt;

  GpuFootprint footprint = getBackwardGpuFootprint(
      schedule, target, shape.elementBytes, shape.headDim, shape.valueDim,
      countQueryWords(op.getMask()), shape.captures);
  if (!footprint.usesWgmma)
    footprint.registers += kOperandRegisters;
  // Each of these takes another fragment of scores: scores, a bias, which is
  // read while products run, and the gradients of values read, which are summed
  // or sent to memory meanwhile. With fewer than 64 queries, WGMMA cannot
  // compute the queries' gradients. Losing that costs more than the spills of a
  // bias, or of a captured tensor with a gradient that has no element for each
  // score (d = 128: 5.5 and 3.9 ms with 32, 4.2 and 2.7 with 64).
  constexpr int64_t kWgmmaQueries = 64;
  int64_t fragment = threadScores * (shape.accumulationBytes / 4);
  if (keepsScores(op))
    footprint.registers += fragment;
  if (op.getDropout())
    footprint.registers += getDropoutRegisters(threadScores);
  bool maySpill = footprint.usesWgmma && !readsBias(op, /*hasGradient=*/true) &&
                  schedule.getQueryTile() <= kWgmmaQueries;
  bool readsValues = !op.getCaptures().empty() ||
                     readsBias(op, /*hasGradient=*/false,
                               isTiled ? shape.captures : TileReads());
  if (readsValues && !maySpill)
    footprint.registers +=
        fragment + (footprint.usesWgmma ? kCaptureRegisters : 0);
  else if (isTiled)
    footprint.registers +=
        kTileReadRegisters +
        (maySpill ? 0 : threadScores * getKeptBytes(op, shape.captures) / 4);
  if (!footprint.fits(target))
    return std::nullopt;
  return predictBackwardSeconds(shape, target, schedule, footprint);
}

/// Returns the seconds of the backward pass whose groups of query heads are
/// divided into `shares`, with those of what is around the launch then; `step`
/// is the seconds of one tile of queries.
static double predictSharedSeconds(const AttentionShape &shape,
                                   machine::TargetAttr target,
                                   ScheduleAttr schedule, double step,
                                   int64_t shares) {
  double items = double(shape.batch * shape.kvHeads * shares),
         cores = double(target.getCores());
  double tiles =
      double(llvm::divideCeil(shape.queries, schedule.getQueryTile()));
  double blocks =
      items * double(llvm::divideCeil(shape.keys, schedule.getKeyTile()));
  double longest = tiles * double(shape.heads / shape.kvHeads / shares) * step +
                   kBlockLatency;
  // A known number of equal blocks runs in rounds. Of others the last one ends
  // half of the longest later than all would if they ended together.
  bool isInRounds =
      shape.hasStaticRows && schedule.getOrder() == WorkOrder::Linear;
  double seconds =
      isInRounds ? std::ceil(blocks / cores) * longest
                 : std::max(longest, blocks / cores * shape.visible * longest +
                                         longest / 2);
  if (shares == 1)
    return seconds;
  // Keys and values are repeated, and sums are written and read.
  constexpr double kLaunches = 4e-6;
  double elements =
      items * double(shape.keys) * double(shape.headDim + shape.valueDim);
  return seconds + kLaunches +
         elements * double(shape.elementBytes + 2 * shape.accumulationBytes) /
             (double(target.getBandwidth()) * 1e6);
}

int64_t fovea::selectShares(AttentionBackwardOp op, machine::TargetAttr target,
                            ScheduleAttr schedule) {
  // Dynamic lengths are those of a training step, so that long ones do not pay
  // for what short ones need, and of several sequences.
  constexpr int64_t kTrainedLength = 8192, kTrainedBatch = 2;
  // How much longer than the least time may be, as sums take memory.
  constexpr double kNear = 1.05;
  auto heads = op.getQuery().getType().getDimSize(1),
       kvHeads = op.getKey().getType().getDimSize(1);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(kvHeads) ||
      kvHeads < 1 || heads <= kvHeads)
    return 1;
  AttentionShape shape = getShapeWithLength(op, kTrainedLength);
  if (op.getQuery().getType().isDynamicDim(0))
    shape.batch = kTrainedBatch;
  shape.elementBytes = getProductType(op).getWidth() / 8;
  double step = predictStepSeconds(
      shape, target, schedule,
      getBackwardGpuFootprint(schedule, target, shape.elementBytes,
                              shape.headDim, shape.valueDim));
  SmallVector<std::pair<int64_t, double>> choices;
  for (int64_t shares = 1; shares <= heads / kvHeads; ++shares)
    if (heads / kvHeads % shares == 0)
      choices.emplace_back(
          shares, predictSharedSeconds(shape, target, schedule, step, shares));
  double least = llvm::min_element(choices, llvm::less_second())->second;
  for (auto [shares, seconds] : choices)
    LDBG() << "  " << shares << " shares of a group: " << seconds * 1e6
           << " us";
  return llvm::find_if(
             choices,
             [&](auto choice) { return choice.second <= kNear * least; })
      ->first;
}

SmallVector<ScheduleChoice>
fovea::listGpuSchedules(AttentionBackwardOp op, machine::TargetAttr target) {
  // One kernel serves all lengths, and long ones take the most time.
  constexpr int64_t kLongLength = 16384;
  AttentionShape shape = getShapeWithLength(op, kLongLength);
  shape.elementBytes = getProductType(op).getWidth() / 8;
  WorkOrder order = getWorkOrder(op.getMask());
  if (target.getGpuArch().hasBulkCopies)
    shape.captures = TileReads::get(op.getScore(), op.getMask());
  SmallVector<Captures> captureChoices = {Captures::Gathered};
  if (!shape.captures.reads.empty())
    captureChoices.push_back(Captures::Tiled);
  LDBG() << "the backward pass on " << target.getName() << ": " << shape.batch
         << "x" << shape.heads << "x" << shape.queries << "x" << shape.headDim
         << " queries, " << shape.keys << " keys";
  SmallVector<ScheduleChoice> valid;
  for (int64_t warps : {8, 4})
    // Either one warp for each 16 keys, or two warps that have half of the
    // columns each.
    for (int64_t keys : {16 * warps, 8 * warps})
      for (int64_t queries : {128, 64, 32, 16})
        for (int64_t stages : {2, 1})
          for (Captures captures : captureChoices) {
            auto candidate = ScheduleAttr::get(op.getContext(), queries, keys,
                                               order, warps, stages)
                                 .with({.captures = captures});
            std::optional<double> seconds =
                predictIfFits(op, shape, target, candidate);
            if (!seconds) {
              LDBG() << "  " << candidate << ": the target has no such kernel";
              continue;
            }
            insertChoice(valid, candidate, *seconds);
          }
  return valid;
}
