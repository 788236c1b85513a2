//===- CaptureReads.cpp - Reads of captured tensors -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/CaptureReads.h"

#include "GpuScheduleModel.h"

#include "fovea/Analysis/IntegerSum.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

std::optional<SmallVector<Coordinate>>
fovea::getIndexingCoordinates(tensor::ExtractOp read) {
  SmallVector<Coordinate> coordinates;
  for (std::optional<Coordinate> coordinate :
       getIndexCoordinates(read, *read->getParentRegion())) {
    if (!coordinate || llvm::is_contained(coordinates, *coordinate))
      return std::nullopt;
    coordinates.push_back(*coordinate);
  }
  return coordinates;
}

bool fovea::readsTensors(Region &region) {
  return region.walk([](tensor::ExtractOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

bool fovea::isIndexedByPair(tensor::ExtractOp read) {
  auto coordinates = getIndexCoordinates(read, *read->getParentRegion());
  return llvm::is_contained(coordinates, Coordinate::Row) &&
         llvm::is_contained(coordinates, Coordinate::Key);
}

llvm::SmallDenseSet<Value> fovea::getDependents(Block &body, ValueRange seeds) {
  llvm::SmallDenseSet<Value> dependents(seeds.begin(), seeds.end());
  for (Operation &op : body.without_terminator())
    if (usesAny(op, dependents))
      dependents.insert_range(op.getResults());
  return dependents;
}

/// Returns the bytes of an element that TMA copies and threads read as they
/// are: of a number of 16 or 32 bits, a boolean or an integer of 8 bits; 0 for
/// others.
static int64_t getTileElementBytes(Type type) {
  if (type.isIndex())
    return 0;
  unsigned bits = type.getIntOrFloatBitWidth();
  bool isNarrow = isa<IntegerType>(type) && (bits == 1 || bits == 8);
  return isNarrow || bits == 16 || bits == 32 ? llvm::divideCeil(bits, 8) : 0;
}

int64_t TileRead::getElementBytes() const {
  return getTileElementBytes(op->getResult(0).getType());
}

bool TileRead::mayHaveWholeUnits() const {
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  int64_t columns = type.getShape().back();
  return ShapedType::isDynamic(columns) ||
         columns * getElementBytes() % tile::kTensorMapAlignment == 0;
}

int64_t TileRead::getColumns(int64_t queries, int64_t keys,
                             int64_t before) const {
  // Boxes begin at multiples of 128 bytes of shared memory.
  constexpr int64_t kBoxBytes = 128;
  int64_t bytes = getElementBytes();
  int64_t columns = before + tile::getLineColumns(line->steps, {queries, keys});
  int64_t boxes = llvm::divideCeil(columns, tile::kLargestBox);
  int64_t unit = (boxes > 1 ? kBoxBytes : tile::kTensorMapAlignment) / bytes;
  return boxes * llvm::alignTo(llvm::divideCeil(columns, boxes), unit);
}

/// Adds `factor` times an index to `sum`. Sums in 32 bits are taken for exact:
/// an index that wraps lies outside of the tensor.
static void addToLine(LineIndex &sum, Value value, int64_t factor, Value query,
                      Value key) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    sum.constant += factor * constant.getSExtValue();
    return;
  }
  if (value == query || value == key) {
    sum.steps[value == key] += factor;
    return;
  }
  Operation *op = value.getDefiningOp();
  bool isInside = op && op->getBlock() == query.getParentBlock();
  if (isInside && isa<arith::AddIOp, arith::SubIOp>(op)) {
    addToLine(sum, op->getOperand(0), factor, query, key);
    addToLine(sum, op->getOperand(1), isa<arith::SubIOp>(op) ? -factor : factor,
              query, key);
    return;
  }
  if (isInside && isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
                      arith::ExtUIOp, arith::TruncIOp>(op)) {
    constexpr unsigned kPositionBits = 32;
    auto isWide = [](Type type) {
      return type.isIndex() || type.getIntOrFloatBitWidth() >= kPositionBits;
    };
    if (isWide(op->getOperand(0).getType()) && isWide(value.getType())) {
      addToLine(sum, op->getOperand(0), factor, query, key);
      return;
    }
  }
  sum.terms.emplace_back(value, factor);
}

/// Returns `index` as that of numbers in a row, if they are those of distances,
/// sums of positions, queries or keys.
static std::optional<LineIndex>
getLineIndex(Value index, Value query, Value key,
             const llvm::SmallDenseSet<Value> &varying) {
  // So far from positions no index of a tensor lies.
  constexpr int64_t kMostDistance = int64_t(1) << 30;
  LineIndex line;
  addToLine(line, index, /*factor=*/1, query, key);
  bool isLine =
      std::abs(line.constant) < kMostDistance &&
      line.steps != std::array<int64_t, 2>{0, 0} &&
      std::abs(line.steps[0]) <= 1 && std::abs(line.steps[1]) <= 1 &&
      llvm::none_of(
          line.terms, [&](auto term) { return varying.contains(term.first); });
  return isLine ? std::optional(line) : std::nullopt;
}

SmallVector<TileRead> fovea::findTileReads(Region &region) {
  constexpr int64_t kLargestRank = 5;
  SmallVector<TileRead> reads;
  if (region.empty())
    return reads;
  Block &body = region.front();
  // The arguments are the score, in a score region, and batch, head, query and
  // key.
  auto arguments = body.getArguments();
  Value query = arguments.take_back(2).front(), key = arguments.back();
  SmallVector<Value> seeds = {query, key};
  bool isScore = arguments.size() > std::size(kCoordinates);
  if (isScore)
    seeds.push_back(arguments.front());
  llvm::SmallDenseSet<Value> varying = getDependents(body, seeds);
  auto varies = [&](Value index) { return varying.contains(index); };
  for (auto op : body.getOps<tensor::ExtractOp>()) {
    TileRead read = {op, std::nullopt};
    OperandRange indices = op.getIndices();
    if (indices.size() < 2 || indices.size() > kLargestRank ||
        !read.getElementBytes())
      continue;
    if (indices.take_back(2)[0] == query && indices.back() == key) {
      if (read.mayHaveWholeUnits() &&
          llvm::none_of(indices.drop_back(2), varies))
        reads.push_back(read);
      continue;
    }
    // A mask is applied to few tiles, but would be copied for all.
    if (!isScore || llvm::any_of(indices.drop_back(), varies))
      continue;
    read.line = getLineIndex(indices.back(), query, key, varying);
    if (read.line)
      reads.push_back(read);
  }
  return reads;
}

SmallVector<tensor::ExtractOp> fovea::findQueryReads(Region &mask) {
  SmallVector<tensor::ExtractOp> reads;
  if (mask.empty())
    return reads;
  Block &body = mask.front();
  ValueRange place = body.getArguments().take_back(4);
  llvm::SmallDenseSet<Value> ofQueries = getDependents(body, place[2]),
                             ofKeys = getDependents(body, place[3]);
  for (auto op : body.getOps<tensor::ExtractOp>()) {
    Value element = op.getResult();
    Type type = element.getType();
    bool hasWords = type.isInteger(64) ||
                    (type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 32);
    if (hasWords && ofQueries.contains(element) && !ofKeys.contains(element))
      reads.push_back(op);
  }
  return reads;
}

int64_t fovea::countQueryWords(Region &mask) {
  int64_t words = 0;
  for (tensor::ExtractOp read : findQueryReads(mask))
    words += read.getType().getIntOrFloatBitWidth() / 32;
  return words;
}

TileReads TileReads::get(Region &score, Region &mask) {
  TileReads result;
  result.reads = findTileReads(score);
  llvm::append_range(result.reads, findTileReads(mask));
  for (const TileRead &read : result.reads) {
    if (read.line)
      continue;
    int64_t bytes = read.getElementBytes();
    result.bytes += bytes;
    result.narrowest =
        result.narrowest ? std::min(result.narrowest, bytes) : bytes;
  }
  return result;
}

bool TileReads::contains(tensor::ExtractOp op) const {
  return llvm::any_of(reads,
                      [&](const TileRead &read) { return read.op == op; });
}

namespace {
/// Computes by how much values of a score region grow if query and key both
/// grow by 1, from any position.
class Growth {
public:
  explicit Growth(Block &body);

  /// Returns nullopt if the growth is not known.
  std::optional<int64_t> get(Value value) const;

private:
  std::optional<int64_t> find(Operation &op) const;

  Block &body;
  llvm::DenseMap<Value, int64_t> known;
};
} // namespace

Growth::Growth(Block &body) : body(body) {
  // Batch and head do not change; the score's change is unknown.
  for (unsigned number : {1, 2})
    known[body.getArgument(number)] = 0;
  for (unsigned number : {3, 4})
    known[body.getArgument(number)] = 1;
  for (Operation &op : body.without_terminator())
    if (std::optional<int64_t> growth = find(op))
      for (Value result : op.getResults())
        known[result] = *growth;
}

std::optional<int64_t> Growth::get(Value value) const {
  if (value.getParentBlock() != &body)
    return 0;
  auto found = known.find(value);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int64_t> Growth::find(Operation &op) const {
  if (op.getNumRegions())
    return std::nullopt;
  SmallVector<int64_t> operands;
  for (Value operand : op.getOperands()) {
    std::optional<int64_t> growth = get(operand);
    if (!growth)
      return std::nullopt;
    operands.push_back(*growth);
  }
  if (isa<arith::AddIOp>(op))
    return operands[0] + operands[1];
  if (isa<arith::SubIOp>(op))
    return operands[0] - operands[1];
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::TruncIOp>(op)) {
    // Positions fit 32 bits; in narrower types they wrap.
    Type type = op.getResult(0).getType();
    bool wraps = !type.isIndex() && type.getIntOrFloatBitWidth() < 32;
    return wraps && operands[0] != 0 ? std::nullopt
                                     : std::optional(operands[0]);
  }
  if (llvm::all_of(operands, [](int64_t growth) { return growth == 0; }))
    return 0;
  return std::nullopt;
}

llvm::SmallDenseSet<Value> fovea::getValuesOfDistance(Region &score) {
  Block &body = score.front();
  Growth growth(body);
  llvm::SmallDenseSet<Value> values =
      getDependents(body, {body.getArgument(3), body.getArgument(4)});
  for (Value value : llvm::to_vector(values))
    if (growth.get(value) != 0)
      values.erase(value);
  return values;
}

/// Returns the sizes of the scores: batches, heads, queries, keys.
static SmallVector<int64_t> getScoreSizes(AttentionBackwardOp op) {
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto key = cast<RankedTensorType>(op.getKey().getType());
  return {query.getDimSize(0), query.getDimSize(1), query.getDimSize(2),
          key.getDimSize(2)};
}

SmallVector<Coordinate> fovea::getSharingCoordinates(tensor::ExtractOp read,
                                                     ArrayRef<int64_t> sizes) {
  auto indices = getIndexCoordinates(read, *read->getParentRegion());
  SmallVector<Coordinate> sharing;
  for (Coordinate coordinate : kCoordinates)
    if (sizes[getScoreDim(coordinate)] != 1 &&
        !llvm::is_contained(indices, coordinate))
      sharing.push_back(coordinate);
  return sharing;
}

std::optional<SmallVector<CaptureRead>>
fovea::findCaptureReads(ValueRange captures, Region &score,
                        ArrayRef<int64_t> sizes) {
  SmallVector<CaptureRead> reads;
  if (captures.empty())
    return reads;
  Block &body = score.front();
  Growth growth(body);
  WalkResult walked = body.walk([&](tensor::ExtractOp read) {
    if (!llvm::is_contained(captures, read.getTensor()))
      return WalkResult::advance();
    if (read->getBlock() != &body)
      return WalkResult::interrupt();
    bool isByDistance = llvm::all_of(
        read.getIndices(), [&](Value index) { return growth.get(index) == 0; });
    reads.push_back({read, CaptureSum::InMemory, isByDistance});
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return std::nullopt;

  // The arguments are the score and the query, then the key.
  llvm::SmallDenseSet<Value> ofQueries =
      getDependents(body, {body.getArgument(0), body.getArgument(3)});
  llvm::SmallDenseSet<Value> ofKeys = getDependents(body, body.getArgument(4));
  for (CaptureRead &read : reads) {
    OperandRange indices = read.op.getIndices();
    auto dependsOn = [&](const llvm::SmallDenseSet<Value> &values) {
      return llvm::any_of(indices, [&](Value v) { return values.contains(v); });
    };
    bool isOnly = llvm::count_if(reads, [&](CaptureRead other) {
                    return other.op.getTensor() == read.op.getTensor();
                  }) == 1;
    if (!dependsOn(ofQueries) &&
        (!dependsOn(ofKeys) || getIndexingCoordinates(read.op)))
      read.sum = CaptureSum::OverQueries;
    else if (isOnly && getSharingCoordinates(read.op, sizes).empty())
      read.sum = CaptureSum::Own;
  }
  return reads;
}

std::optional<SmallVector<CaptureRead>>
fovea::findCaptureReads(AttentionBackwardOp op) {
  return findCaptureReads(op.getCaptures(), op.getScore(), getScoreSizes(op));
}

bool fovea::canSumCaptures(AttentionBackwardOp op, ScheduleAttr schedule) {
  std::optional<SmallVector<CaptureRead>> reads = findCaptureReads(op);
  bool sums = reads && llvm::any_of(*reads, [](CaptureRead read) {
                return read.sum == CaptureSum::OverQueries;
              });
  return !sums || schedule.getKeyTile() % (16 * schedule.getWarps()) == 0;
}

//===----------------------------------------------------------------------===//
// Choice of sums
//===----------------------------------------------------------------------===//

/// Returns true if a dimension of `tensor` is indexed by each of `coordinates`
/// unchanged.
static bool hasAxes(Value tensor, Region &score,
                    ArrayRef<Coordinate> coordinates) {
  SmallVector<std::optional<Coordinate>> axes = getCaptureAxes(tensor, score);
  return llvm::all_of(coordinates, [&](Coordinate coordinate) {
    return llvm::is_contained(axes, std::optional(coordinate));
  });
}

FloatType fovea::getCaptureSumType(AttentionBackwardOp op, size_t number) {
  auto exact = FloatType(Float64Type::get(op.getContext()));
  FloatType accumulation = op.getAccumulationType();
  Value capture = op.getCaptures()[number];
  ScheduleAttr schedule = op.getScheduleAttr();
  // A tensor that both query and key index may be as large as all scores.
  bool isLarge =
      hasAxes(capture, op.getScore(), {Coordinate::Row, Coordinate::Key});
  if (!schedule.getWarps())
    return isLarge ? accumulation : exact;
  std::optional<SmallVector<CaptureRead>> reads = findCaptureReads(op);
  bool isExact = getProductType(op).getWidth() >= 32;
  FloatType type = accumulation;
  for (auto [read, sum] :
       llvm::zip_equal(*reads, schedule.getGradients().getCaptures())) {
    if (read.op.getTensor() != capture)
      continue;
    if (sum == CaptureSum::Own)
      return cast<FloatType>(
          getElementTypeOrSelf(op.getCaptureGradients()[number]));
    if (sum == CaptureSum::OverQueries || sumsIntegers(sum) ||
        (isExact && !isIndexedByPair(read.op)))
      type = exact;
  }
  return type;
}

/// Returns the number of a type's elements, if it is static.
static std::optional<int64_t> getNumElements(Type type) {
  auto shaped = cast<ShapedType>(type);
  return shaped.hasStaticShape() ? std::optional(shaped.getNumElements())
                                 : std::nullopt;
}

/// Returns the largest number of scores that may add to one element of
/// `capture` by `reads`; nullopt if it is not known.
static std::optional<int64_t> getNumTerms(AttentionBackwardOp op,
                                          ArrayRef<CaptureRead> reads) {
  SmallVector<int64_t> sizes = getScoreSizes(op);
  int64_t terms = 0;
  for (const CaptureRead &read : reads) {
    int64_t ofRead = 1;
    for (Coordinate coordinate : getSharingCoordinates(read.op, sizes)) {
      int64_t size = sizes[getScoreDim(coordinate)];
      if (ShapedType::isDynamic(size))
        return std::nullopt;
      ofRead *= size;
    }
    terms += ofRead;
  }
  return terms;
}

GradientsAttr fovea::selectGpuGradients(AttentionBackwardOp op,
                                        bool deterministic,
                                        SmallVectorImpl<std::string> &remarks) {
  SmallVector<CaptureRead> reads = *findCaptureReads(op);
  SmallVector<int64_t> sizes = getScoreSizes(op);
  // f32 sums of few terms are as exact as 16-bit operands are.
  bool isRounded = getProductType(op).getWidth() == 16;
  for (CaptureRead &read : reads)
    if (read.sum == CaptureSum::InMemory && read.isByDistance && isRounded)
      read.sum = CaptureSum::Diagonals;
  SmallVector<Coordinate> parallel = {Coordinate::Batch, Coordinate::Head,
                                      Coordinate::Key};
  auto isShared = [](const CaptureRead &read) {
    return read.sum == CaptureSum::InMemory || sumsDiagonals(read.sum);
  };
  for (auto [number, capture] : llvm::enumerate(op.getCaptures())) {
    if (!deterministic)
      break;
    SmallVector<CaptureRead *> shared;
    SmallVector<CaptureRead> ofCapture;
    for (CaptureRead &read : reads)
      if (read.op.getTensor() == capture && isShared(read)) {
        shared.push_back(&read);
        ofCapture.push_back(read);
      }
    if (shared.empty())
      continue;
    // Integers, where these take no more memory than the sums of the queries'
    // gradients do, or where there is no other way. If scores of one batch and
    // head share no elements, successive launches, for the scores that do, add
    // in a fixed order: a launch adds to an element once, or in the thread that
    // has the same score of other heads.
    bool canTakeTurns =
        shared.size() == 1 &&
        llvm::all_of(getSharingCoordinates(shared.front()->op, sizes),
                     [](Coordinate coordinate) {
                       return coordinate == Coordinate::Batch ||
                              coordinate == Coordinate::Head;
                     });
    std::optional<int64_t> elements = getNumElements(capture.getType()),
                           ofQueries = getNumElements(op.getQuery().getType()),
                           terms = getNumTerms(op, ofCapture), bytes;
    if (elements && terms)
      bytes =
          *elements * 8 * IntegerSum(op.getAccumulationType()).getSize(*terms);
    std::string memory =
        bytes
            ? llvm::formatv("{0} MiB", llvm::divideCeil(*bytes, 1 << 20)).str()
            : "memory of unknown size";
    bool isSmall =
        bytes && ofQueries &&
        *bytes <= *ofQueries * op.getAccumulationType().getWidth() / 8;
    std::string text = llvm::formatv("captured tensor {0}: ", number);
    if (canTakeTurns && !isSmall) {
      for (Coordinate coordinate :
           getSharingCoordinates(shared.front()->op, sizes))
        llvm::erase(parallel, coordinate);
      text += "launches in turn add to its gradient, for integers would take " +
              memory;
    } else {
      for (CaptureRead *read : shared)
        read->sum = sumsDiagonals(read->sum) ? CaptureSum::DiagonalIntegers
                                             : CaptureSum::Integers;
      text += "its gradient is added up in integers, which take " + memory;
    }
    remarks.push_back(text);
  }
  return GradientsAttr::get(
      op.getContext(), parallel, /*items=*/1, /*shares=*/1,
      llvm::map_to_vector(reads, [](CaptureRead read) { return read.sum; }));
}

GradientsAttr fovea::selectHostGradients(AttentionBackwardOp op,
                                         machine::TargetAttr target) {
  // The number of work items for each core; some take longer than others.
  constexpr int64_t kItemsPerCore = 2;
  // A tensor as large as the scores of a head exists only once: work items that
  // would add to the same element become one.
  auto isSplit = [&](Coordinate coordinate) {
    return llvm::all_of(op.getCaptures(), [&](Value capture) {
      return !hasAxes(capture, op.getScore(),
                      {Coordinate::Row, Coordinate::Key}) ||
             hasAxes(capture, op.getScore(), coordinate);
    });
  };
  SmallVector<Coordinate> parallel;
  for (Coordinate coordinate : {Coordinate::Batch, Coordinate::Head})
    if (isSplit(coordinate))
      parallel.push_back(coordinate);
  int64_t cores = target.getCores();
  return GradientsAttr::get(
      op.getContext(), parallel, cores > 1 ? kItemsPerCore * cores : 1,
      /*shares=*/1,
      SmallVector<CaptureSum>(findCaptureReads(op)->size(),
                              CaptureSum::ByTile));
}
