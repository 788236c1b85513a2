//===- CaptureReads.cpp - Destinations of gradients of captures -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/CaptureReads.h"

#include "GpuScheduleModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Returns the number of the coordinate, counted after the score, that `index`
/// is in the score region `body`.
static std::optional<unsigned> getCoordinate(Block &body, Value index) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument || argument.getOwner() != &body || !argument.getArgNumber())
    return std::nullopt;
  return argument.getArgNumber() - 1;
}

std::optional<SmallVector<unsigned>>
fovea::getIndexingCoordinates(tensor::ExtractOp read) {
  SmallVector<unsigned> coordinates;
  for (Value index : read.getIndices()) {
    std::optional<unsigned> coordinate =
        getCoordinate(*read->getBlock(), index);
    if (!coordinate || llvm::is_contained(coordinates, *coordinate))
      return std::nullopt;
    coordinates.push_back(*coordinate);
  }
  return coordinates;
}

llvm::SmallDenseSet<Value> fovea::getDependents(Block &body, ValueRange seeds) {
  llvm::SmallDenseSet<Value> dependents(seeds.begin(), seeds.end());
  for (Operation &op : body.without_terminator())
    if (usesAny(op, dependents))
      dependents.insert_range(op.getResults());
  return dependents;
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

SmallVector<unsigned> fovea::getSharingCoordinates(AttentionBackwardOp op,
                                                   tensor::ExtractOp read) {
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto key = cast<RankedTensorType>(op.getKey().getType());
  ArrayRef<BlockArgument> coordinates =
      op.getScore().getArguments().drop_front();
  int64_t sizes[] = {query.getDimSize(0), query.getDimSize(1),
                     query.getDimSize(2), key.getDimSize(2)};
  SmallVector<unsigned> sharing;
  for (auto [number, size] : llvm::enumerate(sizes))
    if (size != 1 &&
        !llvm::is_contained(read.getIndices(), coordinates[number]))
      sharing.push_back(number);
  return sharing;
}

std::optional<SmallVector<CaptureRead>>
fovea::findCaptureReads(AttentionBackwardOp op) {
  SmallVector<CaptureRead> reads;
  if (op.getCaptures().empty())
    return reads;
  Block &body = op.getScore().front();
  Growth growth(body);
  WalkResult walked = body.walk([&](tensor::ExtractOp read) {
    if (!llvm::is_contained(op.getCaptures(), read.getTensor()))
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
    else if (isOnly && getSharingCoordinates(op, read.op).empty())
      read.sum = CaptureSum::None;
  }
  return reads;
}

bool fovea::canSumCaptures(AttentionBackwardOp op, ScheduleAttr schedule) {
  std::optional<SmallVector<CaptureRead>> reads = findCaptureReads(op);
  bool sums = reads && llvm::any_of(*reads, [](CaptureRead read) {
                return read.sum == CaptureSum::OverQueries;
              });
  return !sums || schedule.getKeyTile() % (16 * schedule.getWarps()) == 0;
}
