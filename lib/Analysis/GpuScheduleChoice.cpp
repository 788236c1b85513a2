//===- GpuScheduleChoice.cpp - Schedules of attention for a GPU -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuScheduleModel.h"
#include "ScoreGrowth.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/ElementCost.h"
#include "fovea/Analysis/MaskAnalysis.h"
#include "fovea/Analysis/PackedQueries.h"
#include "fovea/Analysis/Widening.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <numbers>

#define DEBUG_TYPE "attn-select-schedule"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using machine::kGroupWarps;

/// Registers that a thread needs to read captured tensors for each score:
/// addresses of elements, and loads that run ahead. A mask, which is applied to
/// few tiles, does without where operands of products are in shared memory.
static constexpr int64_t kCaptureRegisters = 24;
/// Features of queries and values together beyond which heads are wide: their
/// products take most of a step.
static constexpr int64_t kWide = 384;
/// Registers for the places of tiles in a list.
static constexpr int64_t kListRegisters = 8;

static FloatType getFloat(Value tensor) {
  return cast<FloatType>(getElementTypeOrSelf(tensor));
}

/// Returns the narrowest type that represents all numbers of both.
static FloatType getJoin(FloatType a, FloatType b) {
  if (a == b)
    return a;
  if (a.getWidth() == b.getWidth())
    return Float32Type::get(a.getContext());
  return a.getWidth() < b.getWidth() ? b : a;
}

template <typename OpTy>
static FloatType getJoinOfOperands(OpTy op) {
  return getJoin(getJoin(getFloat(op.getQuery()), getFloat(op.getKey())),
                 getFloat(op.getValue()));
}

FloatType fovea::getProductType(AttentionOp op) {
  return getJoinOfOperands(op);
}

FloatType fovea::getProductType(AttentionBackwardOp op) {
  FloatType type = getJoinOfOperands(op);
  bool lacksRange = type.isF16() && !getFloat(op.getGradient()).isF16();
  return lacksRange ? Float32Type::get(type.getContext()) : type;
}

/// Returns true if head dims are known, multiples of `multiple`, and up to the
/// largest that a kernel takes.
template <typename OpTy>
static bool hasHeadDims(OpTy op, int64_t multiple) {
  return llvm::all_of(
      ArrayRef<Value>{op.getQuery(), op.getValue()}, [&](Value operand) {
        int64_t dim = cast<RankedTensorType>(operand.getType()).getDimSize(3);
        return !ShapedType::isDynamic(dim) && dim >= 1 &&
               dim <= kLargestGpuHeadDim && dim % multiple == 0;
      });
}

/// Returns the reason for which no kernel takes operands of these types, or
/// nullopt.
template <typename OpTy>
static std::optional<std::string> getUnfitOperands(OpTy op) {
  if (hasHeadDims(op, /*multiple=*/8))
    return std::nullopt;
  return llvm::formatv("a head dim is no multiple of 8 up to {0}",
                       kLargestGpuHeadDim)
      .str();
}

std::optional<std::string> fovea::getUnfitReason(AttentionOp op,
                                                 machine::TargetAttr target) {
  return target.isGpu() ? getUnfitOperands(op) : std::nullopt;
}

template <typename OpTy>
static std::optional<std::string>
getHeadDimObstacle(OpTy op, machine::TargetAttr target) {
  if (!target.isGpu() || hasHeadDims(op, /*multiple=*/1))
    return std::nullopt;
  return llvm::formatv("a head dim is dynamic, 0 or above {0}",
                       kLargestGpuHeadDim)
      .str();
}

std::optional<std::string>
fovea::getScheduleObstacle(AttentionOp op, machine::TargetAttr target) {
  return getHeadDimObstacle(op, target);
}

std::optional<std::string>
fovea::getScheduleObstacle(AttentionBackwardOp op, machine::TargetAttr target) {
  return getHeadDimObstacle(op, target);
}

bool fovea::usesAny(Operation &op, const llvm::SmallDenseSet<Value> &values) {
  auto isAmong = [&](Value value) { return values.contains(value); };
  return op
      .walk([&](Operation *nested) {
        return llvm::any_of(nested->getOperands(), isAmong)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

std::optional<std::string> fovea::getUnfitReason(AttentionBackwardOp op,
                                                 machine::TargetAttr target) {
  if (!findCaptureReads(op))
    return "a captured tensor with a gradient is read in a region within the "
           "score region";
  return target.isGpu() ? getUnfitOperands(op) : std::nullopt;
}

/// Returns the multiply-adds in a thread's code of one step, for the product of
/// the probabilities (in registers) with the values, where these are scalar
/// instructions.
static int64_t getUnrolled(ScheduleAttr schedule, const AttentionShape &shape) {
  if (shape.elementBytes == 2 || schedule.getParts())
    return 0;
  return schedule.getQueryTile() * schedule.getKeyTile() * shape.valueDim /
         (schedule.getWarps() * 32);
}

/// Returns true if a group of warps has no query in any tile.
static bool hasIdleGroup(ScheduleAttr schedule, const AttentionShape &shape) {
  int64_t rows = schedule.getQueryTile() / schedule.getWarps() * kGroupWarps;
  return shape.queries <= schedule.getQueryTile() - rows;
}

/// Returns `sources` and what the region computes from them.
static llvm::SmallDenseSet<Value>
getDependents(Region &region, ArrayRef<BlockArgument> sources) {
  llvm::SmallDenseSet<Value> dependents;
  dependents.insert_range(sources);
  region.walk([&](Operation *nested) {
    if (usesAny(*nested, dependents))
      dependents.insert_range(nested->getResults());
  });
  return dependents;
}

/// Returns true if a region reads a tensor for each score, query or key, or
/// else, not `atPositions`, for each head: one number of a tile, such as a
/// slope. Reads of `tiles` do not count.
static bool readsTensor(Region &region, bool atPositions,
                        const TileReads &tiles = {}) {
  if (region.empty())
    return false;
  // The last two coordinates are those of the query and the key.
  llvm::SmallDenseSet<Value> positions =
      getDependents(region, region.getArguments().take_back(2));
  return region
      .walk([&](tensor::ExtractOp read) {
        return !tiles.contains(read) && usesAny(*read, positions) == atPositions
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns the instructions of a score region for each score: those of numbers
/// that depend on the score or on its key. What only a query needs, or a head,
/// is computed less often.
static double countScoreOps(Region &score) {
  if (score.empty())
    return 0;
  // The rate of functions is an eighth.
  constexpr double kFunctionOps = 8;
  constexpr unsigned kScore = 0, kKey = 4;
  llvm::SmallDenseSet<Value> varying = getDependents(
      score, {score.getArgument(kScore), score.getArgument(kKey)});
  double count = 0;
  score.walk([&](Operation *nested) {
    if (nested->getNumResults() != 1 ||
        !isa<FloatType>(nested->getResult(0).getType()) ||
        !varying.contains(nested->getResult(0)))
      return;
    count += isFunction(*nested) ? kFunctionOps : 1;
  });
  return count;
}

/// Returns the registers of a thread where a step with an earlier maximum may
/// start again: scores and probabilities in f32 are there beside the weights
/// that a product still reads (d = 256, 128x80: 60 bytes spilled, 817 TFLOP/s
/// where 128x64 has 831).
static int64_t getStaleRegisters(int64_t rows, int64_t keyTile,
                                 int64_t valueDim) {
  constexpr int64_t kOthers = 14;
  int64_t scores = rows * keyTile / 32;
  return 2 * scores + scores / 2 + rows * valueDim / 32 + kOthers;
}

namespace {
/// What the regions of an attention ask of a schedule.
struct RegionNeeds {
  bool scoresRead; ///< Scores read a tensor at their positions, one by one.
  bool maskReads;  ///< The mask reads a tensor at positions.
  bool hasLengths; ///< The mask reads a number of a sequence, as its length.
  Growth growth;   ///< How scores change along the keys.
};
} // namespace

static RegionNeeds getRegionNeeds(AttentionOp op, const TileReads &tiles) {
  return {readsTensor(op.getScore(), /*atPositions=*/true, tiles),
          readsTensor(op.getMask(), /*atPositions=*/true, tiles),
          readsTensor(op.getMask(), /*atPositions=*/false),
          getGrowth(op.getScore())};
}

/// Returns true if a mask leaves queries no keys behind them, as a causal one
/// does; the one in the middle tells. The last query is at the last key.
static bool endsAtQuery(Region &mask, const AttentionShape &shape) {
  if (mask.empty())
    return false;
  int64_t row = (std::min(shape.queries, shape.keys) - 1) / 2,
          end = row + 1 + std::max<int64_t>(shape.keys - shape.queries, 0);
  if (row < 0 || end >= shape.keys)
    return false;
  Builder builder(mask.getContext());
  auto span = [&](int64_t first, int64_t last) {
    return Span{builder.getIndexAttr(first), builder.getIndexAttr(last)};
  };
  MaskBox box = {span(0, 0), span(0, 0), span(row, row),
                 span(0, shape.keys - 1)};
  MaskBounds bounds = MaskEvaluator(mask, box).bounds(Coordinate::Key);
  std::optional<int64_t> upper = getConstantIntValue(bounds.upper);
  return upper && *upper <= end;
}

/// Returns the order of keys in which steps with an earlier maximum seldom
/// start again, or nullopt if neither is known to be one. Where scores grow
/// along the keys they would do so one after another (ALiBi, H200, d = 128 at
/// 4k: 717 us, with the exact maximum 533); from the last key on, the first
/// step has the largest. Where keys end at the query, scores that depend on
/// positions favour near ones.
static std::optional<KeyOrder> getStaleOrder(AttentionOp op, Growth growth,
                                             const AttentionShape &shape) {
  // Maxima that are too large for exponents to subtract, 1024 in base 2, start
  // each step again. A constant slope makes those of half of the rows so,
  // unless the first key is the query's (H200, d = 128 at 4k, scores that add
  // the distance: 463 TFLOP/s, with the exact maximum 650).
  constexpr double kLargest = 1024 * std::numbers::ln2;
  double middle = std::abs(getSlope(op.getScore())) * double(shape.keys) / 2;
  if (middle > kLargest &&
      !(growth == Growth::Up && endsAtQuery(op.getMask(), shape)))
    return std::nullopt;
  if (growth == Growth::None || growth == Growth::Down)
    return KeyOrder::Ascending;
  if (growth == Growth::Up || endsAtQuery(op.getMask(), shape))
    return KeyOrder::Descending;
  return std::nullopt;
}

/// Returns true if a tensor is gathered: its rows are few of those that a
/// kernel in front would split.
static bool isGathered(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (isa<linalg::LinalgOp>(op))
      return readsTensors(op->getRegion(0));
    if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
             tensor::ExtractSliceOp>(op))
      return false;
    tensor = op->getOperand(0);
  }
  return false;
}

/// Returns the numbers of parts that operands may have: none, or three. Fewer
/// queries than a warp group has read each key once, and splitting it takes
/// longer than that.
static SmallVector<int64_t> getPartCounts(AttentionOp op,
                                          const AttentionShape &shape,
                                          machine::TargetAttr target,
                                          int64_t passes) {
  constexpr int64_t kFewestQueries = 64;
  SmallVector<int64_t> counts = {0};
  if (shape.queries >= kFewestQueries && target.getGpuArch().hasBulkCopies &&
      target.getGpuArch().hasWarpGroups && passes == 1 &&
      getProductType(op).isF32() &&
      llvm::none_of(ArrayRef<Value>{op.getQuery(), op.getKey(), op.getValue()},
                    isGathered))
    counts.push_back(3);
  return counts;
}

/// Returns the keys of a tile that the warps of a group share, if all queries
/// of a head are the rows of one instruction: up to 64 KB of bytes; else 0.
static int64_t getSharedKeyTile(const AttentionShape &shape,
                                int64_t splitSize) {
  constexpr int64_t kRows = 16, kMostBytes = 64 << 10;
  if (shape.queries > kRows || shape.valueDim % (kRows * kGroupWarps))
    return 0;
  for (int64_t keys : {256, 128, 64})
    if (keys * (shape.headDim + shape.valueDim) <= kMostBytes &&
        splitSize % keys == 0)
      return keys;
  return 0;
}

/// Returns the stages of such tiles: 128 KB or more, which keep memory busy,
/// and other blocks from the multiprocessor. Two blocks of one, where another
/// has none, are slower than one on each (H200, 32 heads on 8, d = 128, 16 x
/// 8k: 90 us, with one 69 in two stages of 256 keys and 72 in four of 128; 64 x
/// 1k: 45, 49, 52).
static int64_t countSharedStages(const AttentionShape &shape, int64_t keys) {
  constexpr int64_t kBytes = 128 << 10;
  return llvm::divideCeil(kBytes, keys * (shape.headDim + shape.valueDim));
}

/// Lets queries see the keys of one of many sequences, as long as is usual:
/// what a mask keeps that reads tensors at positions, as ids of documents, is
/// not known, and seldom is all.
static void limitToSequences(AttentionShape &shape, Region &mask) {
  constexpr int64_t kUsualSequence = 1024;
  int64_t length = std::min(kUsualSequence, shape.keys);
  if (length > 0)
    shape.visible = estimateVisible(mask, length, length) * double(length) /
                    double(shape.keys);
}

/// Lets a batch of any number of sequences have as many queries in all, but
/// `added` in each: those that were added to caches, of which lengths tell how
/// much is used.
static void shareQueries(AttentionShape &shape, AttentionOp op, int64_t added) {
  RankedTensorType query = op.getQuery().getType();
  int64_t rows = added * shape.rowsOfQuery;
  if (!query.isDynamicDim(0) || !query.isDynamicDim(2) || shape.queries <= rows)
    return;
  shape.batch *= shape.queries / rows;
  shape.queries = rows;
}

/// Returns true if the heads of a group are rows of a batch's queries, not of
/// those of sequences that lie packed.
static bool areHeadsOfBatch(AttentionOp op) {
  return countRowsOfQuery(op) > 1 && !getPackedQueries(op);
}

/// The queries that are usually added to a cache at once.
static constexpr int64_t kUsualAdded = 1024;

/// Returns how many of them schedules are for: in code for short lengths a few
/// where the heads of a group are rows, as this is what they are rows for, with
/// or without a cache. These have the rows of two tiles: with more the model
/// takes tiles of three groups of warps, which do better where they are many,
/// and leave multiprocessors idle where they are not (H200, d = 128, 28 heads
/// on 4, 16 x 32 on 4k: 55 us by 128x128, 72 by 192x64).
static int64_t getAdded(AttentionOp op, const ScheduleOptions &options) {
  constexpr int64_t kFewRows = 256;
  bool isForShort =
      options.typicalLength && options.typicalLength < kUsualLength;
  int64_t rows = countRowsOfQuery(op);
  return isForShort && rows > 1 ? std::max<int64_t>(kFewRows / rows, 1)
                                : kUsualAdded;
}

/// Lets one sequence have so few rows, of as many keys as long caches have; of
/// twice as many where heads are rows, as more tiles share the parts of one.
static void limitToRows(AttentionShape &shape, AttentionOp op, int64_t rows) {
  constexpr int64_t kLongCache = 8192;
  RankedTensorType query = op.getQuery().getType();
  if (query.isDynamicDim(0))
    shape.batch = 1;
  if (query.isDynamicDim(2))
    shape.queries = rows;
  if (op.getKey().getType().isDynamicDim(2))
    shape.keys = areHeadsOfBatch(op) ? 2 * kLongCache : kLongCache;
}

int64_t fovea::countFewTiles(Blocks blocks, machine::TargetAttr target) {
  return (blocks == Blocks::Dealt ? 2 : 1) * target.getCores();
}

/// Returns the length of the one sequence whose tiles of so many rows are few.
static int64_t getLengthOfTiles(AttentionOp op, int64_t rows,
                                machine::TargetAttr target) {
  // The smallest ones are not dealt.
  bool isDealt = rows > tile::kGroupRows && !op.getMask().empty();
  int64_t heads = std::max<int64_t>(op.getQuery().getType().getDimSize(1), 1);
  int64_t tiles =
      countFewTiles(isDealt ? Blocks::Dealt : Blocks::Tiles, target) / heads;
  return std::max<int64_t>(tiles * rows / countRowsOfQuery(op), 1);
}

/// Returns true if blocks should get tiles when they are free, since these
/// differ in what they take: not by a window, which gives all as many keys
/// (626 TFLOP/s to 609 dealt), and not where few tiles of each head are known
/// and all but whole (d = 128, 1k: 131 us to 134), or two for each block. Wider
/// heads lose (d = 256, 16k: 1327 us to 1378; all on an H200). Code for few
/// tiles serves any number of them. A head of two
/// tiles has one that takes most of its time, and a tile that is cut less of it
/// (H100, d = 128, TFLOP/s: 256 157 to 175, 577 283 to 326). Where sequences
/// have lengths, any may differ (H200, d = 128, 16 of 1k: 156 us to 145).
static bool areTilesUneven(const AttentionShape &shape, ScheduleAttr schedule,
                           const RegionNeeds &needs, machine::TargetAttr target,
                           const ScheduleOptions &options) {
  constexpr int64_t kWidest = 256, kFewTiles = 8, kTwoTiles = 2;
  int64_t rows = schedule.getQueryTile();
  int64_t tiles = llvm::divideCeil(shape.queries, rows);
  int64_t missing = tiles * rows - shape.queries;
  bool areFew = tiles > kTwoTiles && tiles <= kFewTiles && 4 * missing <= rows;
  bool isKnown =
      areFew || (shape.hasStaticRows &&
                 countQueryTiles(shape, schedule) <= 2 * target.getCores());
  bool mayDiffer = needs.hasLengths || shape.visible >= kOneEdge ||
                   shape.isTested || needs.maskReads;
  return schedule.getOrder() == WorkOrder::LongestFirst && mayDiffer &&
         (needs.hasLengths || options.tileRows || !isKnown) &&
         shape.headDim + shape.valueDim <= kWidest;
}

/// Returns into how many parts keys of packed sequences are split where blocks
/// are dealt items of a list: those that are busy at once, of each head.
static int64_t getSplitOfList(AttentionOp op, machine::TargetAttr target) {
  constexpr int64_t kMostParts = 128;
  int64_t heads = op.getQuery().getType().getDimSize(1);
  return ShapedType::isDynamic(heads) || heads == 0
             ? 1
             : std::clamp<int64_t>(target.getCores() / heads, 1, kMostParts);
}

/// Returns the schedule with persistent blocks, if they may pay off; else null.
/// Blocks of few warps share a multiprocessor, and so do not wait for their
/// copies. Smaller tiles of keys, and the exact maximum of other scores, have
/// not been measured. If `areParts`, tiles are few, of packed sequences, and a
/// list has parts of them, without which all else is slower (H200, us: 128
/// queries of 16 heads of d = 64 on 4k keys 50 to 21).
static ScheduleAttr
getPersistent(ScheduleAttr schedule, AttentionOp op, const RegionNeeds &needs,
              const AttentionShape &shape, const GpuFootprint &footprint,
              machine::TargetAttr target, const ScheduleOptions &options,
              bool areParts) {
  constexpr int64_t kFewestWarps = 8, kFewestKeys = 64;
  bool isMeasured =
      schedule.getMaximum() == Maximum::Stale ||
      (footprint.usesWgmma && !op.getDropout() && needs.growth != Growth::None);
  // Few warps are enough where a tile has all rows. With an earlier maximum
  // they spill, and leave no registers to the blocks that merge parts.
  bool isFewWarps = schedule.getWarps() < kFewestWarps,
       hasWarps = !isFewWarps ||
                  (areParts && schedule.getQueryTile() >= shape.queries);
  if (isFewWarps)
    schedule =
        schedule.with({.maximum = Maximum::Exact, .keys = KeyOrder::Ascending});
  if (!hasWarps || (!isMeasured && !areParts) || schedule.getParts() ||
      schedule.getSplitSize() || schedule.getKeyTile() < kFewestKeys ||
      needs.scoresRead)
    return {};
  // Rings of one tile of keys would be as long as the loop over tiles of
  // queries, which runs ahead of them.
  if (shape.keys <= schedule.getKeyTile())
    return {};
  int64_t tiles = countQueryTiles(shape, schedule);
  // The result needs memory of its own on its way out, or half of it.
  int64_t output =
      schedule.getQueryTile() * shape.valueDim * shape.elementBytes / 2;
  if ((tiles <= target.getCores() && !areParts) ||
      footprint.sharedBytes + output > target.getFastMemory())
    return {};
  bool hasSequences = schedule.getOrder() == WorkOrder::LongestFirst &&
                      mayHaveSequences(op.getMask());
  bool isDealt = areParts || hasSequences ||
                 areTilesUneven(shape, schedule, needs, target, options);
  return schedule.with(
      {.queries = hasSequences ? QueryTiles::Sequences : QueryTiles::Aligned,
       .blocks = isDealt ? Blocks::Dealt : Blocks::Persistent,
       .split = areParts ? getSplitOfList(op, target) : 1});
}

/// Returns the schedule with warp groups that issue their products in turn, if
/// all have the same steps, and none gives its rows to others, as where results
/// of one tile go through shared memory, and it may be better; else null.
/// (H100: four groups at d = 64 653 TFLOP/s to 672; two at d = 128, 128x128,
/// full 762 to 818, documents 618 to 625; but ALiBi, whose keys are descending,
/// 758 to 750, and d = 256, whose softmax is short, sustained 764 to 759.)
/// Three groups have to wait for their products, as four do, and are better
/// where softmax takes longer.
static ScheduleAttr getInTurn(ScheduleAttr schedule,
                              const AttentionShape &shape,
                              const GpuFootprint &footprint) {
  constexpr int64_t kWidest = 256;
  bool areAlike =
      schedule.getOrder() == WorkOrder::Linear || !mayEndApart(schedule);
  int64_t groups = schedule.getWarps() / kGroupWarps;
  if (!footprint.usesWgmma || !areAlike || groups < 2 ||
      schedule.getMaximum() != Maximum::Stale ||
      (schedule.getKeys() == KeyOrder::Descending &&
       schedule.getProducts() != Products::Alternating) ||
      schedule.getBlocks() == Blocks::Tiles ||
      shape.headDim + shape.valueDim > kWidest)
    return {};
  return schedule.with(
      {.products = groups > 2 ? Products::Alternating : schedule.getProducts(),
       .groups = WarpGroups::InTurn});
}

/// Returns true if the last tile of keys may have less than all of a step's.
static bool mayCutTile(AttentionOp op, int64_t keyTile) {
  int64_t keys = cast<RankedTensorType>(op.getKey().getType()).getDimSize(2);
  return ShapedType::isDynamic(keys) || keys % keyTile != 0;
}

/// Returns the schedule with blocks that share the last tiles, if `persistent`
/// is one whose tiles take the same time, and are long enough; else null. Where
/// heads are wide, or softmax takes as long as products, and the last tile of
/// keys may be cut, it comes first: the loop does not ask then (any length,
/// H100: d = 256, 4k 796 TFLOP/s to 809; d = 64, 4k 638 to 655; d = 128 has the
/// same either way).
static ScheduleAttr getShared(ScheduleAttr persistent, AttentionOp op,
                              const AttentionShape &shape) {
  if (!op.getMask().empty() ||
      shape.keys <= (tile::kFewestSharedSteps - 1) * persistent.getKeyTile())
    return {};
  bool isCutFirst = op.getScore().empty() &&
                    (shape.headDim + shape.valueDim > kWide ||
                     persistent.getProducts() == Products::Alternating) &&
                    persistent.getMaximum() == Maximum::Stale &&
                    mayCutTile(op, persistent.getKeyTile());
  return persistent.with(
      {.keys = isCutFirst ? KeyOrder::Descending : persistent.getKeys(),
       .blocks = Blocks::Shared});
}

/// Returns the schedule with clusters of two blocks, if `persistent` is one
/// whose blocks can copy half of each tile of keys and values for each other;
/// else null. Where each waits for tiles of its own as well, of captured
/// tensors, both wait for the later one (a bias at d = 128: 590 TFLOP/s to
/// 563). Under a mask both visit the keys of either, which pays off where a
/// tile has many, of wide heads. (H200, d = 256, causal, burst/sustained: 16k
/// 840/704 to 841/713, 8k 813/681 to 812/681, 1k 561/487 to 549/464.)
static ScheduleAttr getClustered(ScheduleAttr persistent, AttentionOp op,
                                 const AttentionShape &shape,
                                 machine::TargetAttr target) {
  constexpr int64_t kBlocks = 2, kPanelBytes = 128;
  constexpr double kFewestMaskedKeys = 6144;
  bool isLong = shape.headDim + shape.valueDim > kWide && shape.hasStaticRows &&
                shape.visible >= kOneEdge && !shape.isTested &&
                !readsTensors(op.getMask()) &&
                shape.visible * double(shape.keys) >= kFewestMaskedKeys;
  auto isHalved = [&](int64_t features) {
    return features * shape.elementBytes % (kBlocks * kPanelBytes) == 0;
  };
  if (!target.getGpuArch().hasClusters() ||
      (!op.getMask().empty() && !isLong) || persistent.getWiden() ||
      persistent.getCaptures() == Captures::Tiled || !isHalved(shape.headDim) ||
      !isHalved(shape.valueDim))
    return {};
  return persistent.with({.cluster = kBlocks});
}

/// Appends the schedule with keys split so that parts are blocks of up to a few
/// whole waves, if tiles of queries leave half of the multiprocessors idle and
/// keys are far more than queries, whose outputs all parts write. Short parts
/// may be over before an earlier maximum pays off. If there may be any number
/// of keys (`isAnyLength`) parts may be empty.
static void appendSplits(SmallVectorImpl<ScheduleAttr> &choices,
                         ScheduleAttr schedule, const AttentionShape &shape,
                         const GpuFootprint &footprint,
                         machine::TargetAttr target, bool isAnyLength) {
  constexpr int64_t kMostWaves = 4, kMostParts = 128, kKeysPerQuery = 8,
                    kFewestKeys = 64;
  int64_t blocks = countQueryTiles(shape, schedule);
  auto steps = std::max<int64_t>(
      std::ceil(countKeyTiles(shape, schedule, footprint)), 1);
  int64_t slots = target.getCores() * getResidentBlocks(footprint, target);
  auto keys = int64_t(shape.visible * double(shape.keys));
  if (blocks < 1 || 2 * blocks > target.getCores() ||
      keys < kKeysPerQuery * shape.queries)
    return;
  int64_t most = std::clamp<int64_t>(keys / kFewestKeys, 1,
                                     isAnyLength ? kMostParts
                                                 : std::min(steps, kMostParts));
  for (int64_t wave = 1; wave <= kMostWaves; ++wave) {
    int64_t parts = std::min(wave * slots / blocks, most);
    // Fewer parts may be as long.
    if (!isAnyLength) {
      int64_t longest = llvm::divideCeil(steps, parts);
      parts = llvm::divideCeil(steps, longest);
    }
    for (Maximum maximum : {schedule.getMaximum(), Maximum::Exact}) {
      ScheduleAttr split =
          schedule.with({.maximum = maximum,
                         .keys = maximum == Maximum::Exact ? KeyOrder::Ascending
                                                           : schedule.getKeys(),
                         .blocks = Blocks::Tiles,
                         .split = parts});
      if (!llvm::is_contained(choices, split))
        choices.push_back(split);
    }
  }
}

/// Returns what regions may read as tiles.
static TileReads getTileReads(AttentionOp op, machine::TargetAttr target) {
  return target.getGpuArch().hasBulkCopies
             ? TileReads::get(op.getScore(), op.getMask())
             : TileReads();
}

/// Returns the shape by which schedules of `op` are priced, with `length` for
/// lengths that are dynamic, or so few `rows` if they are not 0, or as many
/// queries `added` to each cache.
static AttentionShape getPricedShape(AttentionOp op, machine::TargetAttr target,
                                     const TileReads &tiles,
                                     const RegionNeeds &needs, int64_t length,
                                     int64_t rows, int64_t added) {
  AttentionShape shape = target.getGpuArch().hasBulkCopies
                             ? getShapeWithLength(op, length)
                             : AttentionShape::get(op);
  shape.elementBytes = getProductType(op).getWidth() / 8;
  shape.scoreOps = countScoreOps(op.getScore());
  shape.captures = tiles;
  if (needs.maskReads)
    limitToSequences(shape, op.getMask());
  if (rows)
    limitToRows(shape, op, rows);
  else if (needs.hasLengths || added < kUsualAdded)
    shareQueries(shape, op, added);
  return shape;
}

static bool isDealt(const ScheduleChoice &choice) {
  return choice.schedule.getBlocks() == Blocks::Dealt;
}

/// Returns true if a list has parts of the tiles of packed sequences.
static bool hasPartsOfList(const ScheduleChoice &choice) {
  return isDealt(choice) && choice.schedule.getSplit() > 1;
}

double fovea::predictGpuSeconds(AttentionOp op, machine::TargetAttr target,
                                ScheduleAttr schedule, int64_t length) {
  TileReads tiles = getTileReads(op, target);
  RegionNeeds needs = getRegionNeeds(op, tiles);
  // Packed queries are added to caches that have keys already.
  bool areAdded = needs.hasLengths && getPackedQueries(op);
  AttentionShape shape =
      getPricedShape(op, target, tiles, needs, areAdded ? kUsualLength : length,
                     /*rows=*/0, areAdded ? length : kUsualAdded);
  return predictGpuSeconds(shape, target, schedule);
}

SmallVector<ScheduleChoice>
fovea::listGpuSchedules(AttentionOp op, machine::TargetAttr target,
                        const ScheduleOptions &options) {
  bool hasRoles = target.getGpuArch().hasBulkCopies;
  TileReads tiles = getTileReads(op, target);
  // What may come as tiles takes memory that products may need more.
  SmallVector<std::pair<Captures, RegionNeeds>> captureChoices;
  if (!tiles.reads.empty())
    captureChoices.emplace_back(Captures::Tiled, getRegionNeeds(op, tiles));
  captureChoices.emplace_back(Captures::Gathered,
                              getRegionNeeds(op, /*tiles=*/{}));
  Growth growth = captureChoices.front().second.growth;
  int64_t length = options.typicalLength ? options.typicalLength : kUsualLength;
  if (options.tileRows)
    length = getLengthOfTiles(op, options.tileRows, target);
  AttentionShape shape =
      getPricedShape(op, target, tiles, captureChoices.front().second, length,
                     options.typicalRows, getAdded(op, options));
  if (options.tileRows) {
    RankedTensorType query = op.getQuery().getType();
    if (query.isDynamicDim(0))
      shape.batch = 1;
    if (query.isDynamicDim(2))
      shape.queries = length * shape.rowsOfQuery;
  }
  WorkOrder order = getWorkOrder(op.getMask());
  LDBG() << "on a GPU, " << target.getName() << ": " << shape.batch << "x"
         << shape.heads << "x" << shape.queries << "x" << shape.headDim
         << " queries, " << shape.keys << " keys";

  // A few packed queries, as of a prompt, or of sequences that decode.
  bool areParts = options.typicalRows && getPackedQueries(op) &&
                  order == WorkOrder::LongestFirst && !op.getInitLse();
  // More queries have more tiles, which share the parts of one, so that there
  // are more of them than keys fill.
  bool areFewHeads = options.typicalRows && areHeadsOfBatch(op);
  std::optional<KeyOrder> keys = getStaleOrder(op, growth, shape);
  // Where softmax takes longer than products, and a mask is in its way, steps
  // with an earlier maximum gain nothing with three groups of warps (d = 64,
  // causal, H200: 440 TFLOP/s at 16k, 195 at 1k; with the exact maximum 454 and
  // 209; with four groups 532 and 228), unless a fourth has no queries, and
  // blocks may have several tiles (128: 47 to 90).
  bool isNarrowMasked =
      !op.getMask().empty() && shape.headDim + shape.valueDim <= 128;
  // Nor does a machine have work for four of them where tiles are few.
  bool mayBeStale = options.tileRows > tile::kGroupRows;
  constexpr int64_t kWideners = 4;
  int64_t widen = getWideningObstacle(op, target) ? 0 : kWideners;
  auto splitSize = static_cast<int64_t>(op.getSplitSize().value_or(0));
  // Few queries leave warps the time to widen keys themselves, each its own
  // (H200, caches with lengths, 32 heads on 8, us with a role and so: 1 x 8k
  // 12.4 and 11.2, 1 x 64k 43.9 and 39.5, 16 x 8k 78.3 and 68.9, 64 x 8k 288
  // and 250).
  int64_t sharedKeys = widen ? getSharedKeyTile(shape, splitSize) : 0;
  if (sharedKeys)
    widen = ScheduleAttr::kInProducts;
  bool hasAnyLength =
      cast<RankedTensorType>(op.getKey().getType()).isDynamicDim(2);
  SmallVector<ScheduleChoice> valid;
  // Bytes of which rings have whole rows.
  constexpr int64_t kNarrowestSwizzle = 32;
  constexpr int64_t kMostWarps = 16;
  // The fourth group of the largest tile would have no query.
  bool lacksGroup =
      shape.queries <= (kMostWarps / kGroupWarps - 1) * tile::kGroupRows;
  SmallVector<int64_t> warpCounts{8, 4};
  SmallVector<int64_t> rowCounts{16, 32};
  SmallVector<int64_t> keyTiles{128, 112, 96, 80, 64, 48, 32, 16};
  // Without roles, products of wide elements take far longer than a copy.
  SmallVector<int64_t> stageCounts{
      4, hasRoles || shape.elementBytes == 2 ? 2 : 1, 1};
  if (sharedKeys) {
    warpCounts = {kGroupWarps};
    rowCounts = {16};
    keyTiles = {sharedKeys};
    stageCounts = {countSharedStages(shape, sharedKeys)};
  } else if (hasRoles) {
    warpCounts = {kMostWarps, 12, 8, 4};
  }
  struct Group {
    int64_t warps, parts;
    Captures captures;
    RegionNeeds needs;
  };
  SmallVector<Group> groups;
  for (int64_t parts : options.exactProducts
                           ? SmallVector<int64_t>{0}
                           : getPartCounts(op, shape, target, options.passes))
    for (auto [captures, needs] : captureChoices)
      for (int64_t warps : warpCounts)
        groups.push_back({warps, parts, captures, needs});
  for (auto [warps, parts, captures, needs] : groups)
    for (int64_t rows : rowCounts)
      for (int64_t keyTile : keyTiles)
        for (int64_t stages : stageCounts) {
          if (splitSize % keyTile)
            continue;
          // Four groups have no registers for products beside softmax, but
          // keep tensor cores busy by themselves.
          bool isAlternating = warps == kMostWarps;
          auto candidate = ScheduleAttr::get(
              op.getContext(), sharedKeys ? rows : warps * rows, keyTile, order,
              warps, stages, Maximum::Exact, KeyOrder::Ascending,
              QueryTiles::Aligned, Blocks::Tiles,
              isAlternating ? Products::Alternating : Products::Overlapped,
              WarpGroups::Free, captures, /*split=*/1, splitSize, widen, parts);
          GpuFootprint footprint = getGpuFootprint(
              candidate, target, shape.elementBytes, shape.headDim,
              shape.valueDim, options.passes, shape.captures);
          // Steps with an earlier maximum are those that were measured, by
          // WGMMA; they are short enough to need copies further ahead.
          bool isStale = footprint.usesWgmma && !parts && options.passes == 1 &&
                         !op.getDropout() && keys && !splitSize &&
                         (isAlternating || !isNarrowMasked || mayBeStale ||
                          (lacksGroup && !needs.hasLengths));
          if (isStale)
            candidate =
                candidate.with({.maximum = Maximum::Stale, .keys = keys});
          else if ((stages > 2 && !sharedKeys) || isAlternating)
            continue;
          if (isStale && !isAlternating)
            footprint.registers =
                std::max(footprint.registers,
                         getStaleRegisters(rows, keyTile, shape.valueDim));
          // A third group of warps pays off where it keeps tensor cores busy.
          bool isCrowded = warps > 8 && !footprint.usesWgmma;
          if (needs.scoresRead)
            footprint.registers += kCaptureRegisters;
          else if (needs.maskReads && !footprint.usesWgmma)
            footprint.registers += kCaptureRegisters + kListRegisters;
          if (op.getDropout())
            footprint.registers += getDropoutRegisters(
                candidate.getQueryTile() * keyTile / (32 * warps));
          // A warp with more rows than one instruction takes loads more of them
          // ahead.
          if (rows > 16)
            footprint.registers += kOperandRegisters * shape.elementBytes / 2;
          StringRef objection;
          if (parts && !footprint.usesWgmma)
            objection = "has parts without WGMMA";
          else if (!footprint.fits(target))
            objection = "does not fit";
          else if (captures == Captures::Tiled &&
                   keyTile * tiles.narrowest % kNarrowestSwizzle)
            objection = "has rows of captured tensors too short for a swizzle";
          else if (isCrowded)
            objection = "has a third group of warps without WGMMA";
          else if (hasIdleGroup(candidate, shape))
            objection = "has a group of warps without a query";
          else if (areFewHeads &&
                   candidate.getQueryTile() < options.typicalRows)
            objection = "has fewer rows than code for few is for";
          else if (options.tileRows &&
                   candidate.getQueryTile() != options.tileRows)
            objection = "has other rows than code for few tiles is for";
          else if (getUnrolled(candidate, shape) > kLargestUnrolled)
            objection = "has too much code";
          if (!objection.empty()) {
            LDBG() << "  " << candidate << " " << objection << ": "
                   << footprint.sharedBytes << " bytes of shared memory, "
                   << footprint.registers << " registers";
            continue;
          }
          SmallVector<ScheduleAttr> choices = {candidate};
          ScheduleAttr persistent =
              getPersistent(candidate, op, needs, shape, footprint, target,
                            options, areParts);
          if (persistent)
            choices.push_back(persistent);
          if (persistent && !areParts) {
            if (ScheduleAttr shared = getShared(persistent, op, shape))
              choices.push_back(shared);
            for (ScheduleAttr alone :
                 llvm::to_vector(ArrayRef(choices).drop_front()))
              if (ScheduleAttr clustered =
                      getClustered(alone, op, shape, target))
                choices.push_back(clustered);
          }
          if (!splitSize && !areParts)
            appendSplits(choices, candidate, shape, footprint, target,
                         /*isAnyLength=*/(sharedKeys || areFewHeads) &&
                             hasAnyLength);
          for (ScheduleAttr choice : llvm::to_vector(choices))
            if (ScheduleAttr inTurn = getInTurn(choice, shape, footprint)) {
              if (inTurn.getProducts() == choice.getProducts())
                llvm::replace(choices, choice, inTurn);
              else
                choices.push_back(inTurn);
            }
          for (ScheduleAttr choice : choices)
            insertChoice(valid, choice,
                         predictGpuSeconds(shape, target, choice));
        }
  // Of few tiles under a mask the longest decides, which blocks that are dealt
  // others take alone (H200, d = 64, 16 heads, 2000: 26 us, 36 in order).
  if (options.tileRows && llvm::any_of(valid, isDealt))
    llvm::erase_if(
        valid, [](const ScheduleChoice &choice) { return !isDealt(choice); });
  // With parts a schedule without them is for what has none with them.
  if (areParts && llvm::any_of(valid, hasPartsOfList))
    llvm::erase_if(valid, [](const ScheduleChoice &choice) {
      return !hasPartsOfList(choice);
    });
  return valid;
}
