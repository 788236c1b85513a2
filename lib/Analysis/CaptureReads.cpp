//===- CaptureReads.cpp - Where gradients of captures are sent ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/CaptureReads.h"

#include "GpuScheduleModel.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The number of the coordinate, behind the score, that `index` is in the score
/// region `body`.
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
  WalkResult walked = body.walk([&](tensor::ExtractOp read) {
    if (!llvm::is_contained(op.getCaptures(), read.getTensor()))
      return WalkResult::advance();
    if (read->getBlock() != &body)
      return WalkResult::interrupt();
    reads.push_back({read, CaptureSum::InMemory});
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return std::nullopt;

  // The score, the query; the key.
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
