//===- ReaderCost.cpp - Whether readers pay in registers ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReaderCost.h"

#include "fovea/Analysis/ElementCost.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

// Of causal attention in bf16 (2x16x4096x128) on an H200, which takes 188.7 us:
//
//                                           in its kernel   in a second one
//   a residual                                   197.1           213.3
//   a gate, with exact functions                 230.4           218.4
//   a gate and a residual                        260.8           222.9
//   a gate, and the output itself                245.9           218.4

/// What an element of a kernel of its own costs in instructions: it moves 6
/// bytes, at 4.2 TB/s 1.4 ps, in which 132 multiprocessors with 128 lanes
/// at 1.7 GHz issue 40. The rest is for the load, and for lanes that wait.
static constexpr unsigned kInstructions = 35;
/// Tensors that are read beside the output. With a second one there are not
/// enough registers.
static constexpr unsigned kTensors = 1;
/// The registers of a thread, of at most 255, for its elements of the output
/// and of that tensor. The others are for addresses.
static constexpr int64_t kRegisters = 224;
/// What it takes to read a number of the element's row, feature or head.
static constexpr unsigned kInstructionsOfRead = 2;

namespace {
using Dims = SmallVector<unsigned>;

/// The elementwise ops that would be computed with a tile, one after another.
class ReaderCost {
public:
  ReaderCost(scf::ForallOp loop, const ThreadTile &tile, bool exactFunctions);

  std::optional<StringRef> addReader(linalg::LinalgOp op);
  /// Returns true if `op` reads numbers with rows and features.
  bool readsPlane(linalg::LinalgOp op) const {
    return llvm::any_of(op.getDpsInputs(),
                        [&](Value value) { return planes.contains(value); });
  }
  /// Returns true if `op`, a reader of what the loop or ops with it make, can
  /// be computed on elements in registers.
  bool canBeInRegisters(Operation *op) const {
    return !findRegisterObjection(op, [&](Value init) {
      return init.getDefiningOp() == loop || planes.contains(init);
    });
  }
  /// Returns the ops that read `value`, not only its sizes.
  static SetVector<Operation *> getReaders(Value value);

private:
  std::optional<StringRef> addReadersOf(Value result);
  void addOperands(linalg::LinalgOp op, ArrayRef<unsigned> loops,
                   unsigned wantedBits);
  /// Returns the loops of `op` along the dimensions `dims` of an operand.
  static Dims getLoops(linalg::LinalgOp op, OpOperand &operand,
                       ArrayRef<unsigned> dims);

  scf::ForallOp loop;
  ThreadTile tile;
  bool exactFunctions;
  /// What the loop, or an op that is computed with it, makes with rows and
  /// features, and the dimensions of it that these are.
  DenseMap<Value, Dims> planes;
  DenseSet<Value> tensors;
  /// The bits of the widest elements of `tensors`.
  unsigned tensorBits = 0;
  unsigned instructions = 0;
};
} // namespace

ReaderCost::ReaderCost(scf::ForallOp loop, const ThreadTile &tile,
                       bool exactFunctions)
    : loop(loop), tile(tile), exactFunctions(exactFunctions) {
  for (OpResult result : loop.getResults()) {
    auto insertion = insertionOf(loop, result.getResultNumber());
    if (!insertion)
      continue;
    Dims dims;
    for (auto [dim, size] : llvm::enumerate(insertion.getMixedSizes()))
      if (!isOneInteger(size))
        dims.push_back(dim);
    if (dims.size() > 1)
      planes[result] = dims;
  }
}

SetVector<Operation *> ReaderCost::getReaders(Value value) {
  SetVector<Operation *> readers;
  for (Operation *user : value.getUsers())
    if (!isa<tensor::DimOp>(user))
      readers.insert(user);
  return readers;
}

Dims ReaderCost::getLoops(linalg::LinalgOp op, OpOperand &operand,
                          ArrayRef<unsigned> dims) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  return llvm::map_to_vector(dims, [&](unsigned dim) {
    return cast<AffineDimExpr>(map.getResult(dim)).getPosition();
  });
}

/// Returns true if a kernel for rows would read `value`, or a view of it.
static bool isReadByRows(Operation *reader) {
  if (isa<LayerNormOp, RMSNormOp, RopeOp, ResidualAddOp, ElementwiseOp,
          ScaleOp>(reader))
    return true;
  if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
          reader))
    return llvm::any_of(ReaderCost::getReaders(reader->getResult(0)),
                        isReadByRows);
  auto op = dyn_cast<linalg::LinalgOp>(reader);
  return op && isElementwiseOrRowSum(op);
}

std::optional<StringRef> ReaderCost::addReader(linalg::LinalgOp op) {
  unsigned wantedBits = exactFunctions ? kAllBits : countWantedBits(op);
  instructions += countInstructions(op, wantedBits);
  Dims loops;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto plane = planes.find(operand->get());
    if (plane == planes.end())
      continue;
    // The loop would have to store it all the same.
    if (getReaders(operand->get()).size() > 1)
      return "what it reads is stored for others, too";
    loops = getLoops(op, *operand, plane->second);
  }
  addOperands(op, loops, wantedBits);
  if (tensors.size() > kTensors)
    return "with it more tensors are read than there are registers for";
  if (tensorBits && tile.elements * (tile.bits + tensorBits) / 32 > kRegisters)
    return "a thread has no registers for its elements of what it reads";
  if (instructions > kInstructions)
    return "its elements take longer than a kernel of their own";
  for (OpResult result : op->getResults()) {
    AffineMap map = op.getMatchingIndexingMap(
        op.getDpsInitOperand(result.getResultNumber()));
    Dims dims;
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (llvm::is_contained(loops, cast<AffineDimExpr>(expr).getPosition()))
        dims.push_back(dim);
    planes[result] = dims;
    if (auto objection = addReadersOf(result))
      return objection;
  }
  return std::nullopt;
}

std::optional<StringRef> ReaderCost::addReadersOf(Value result) {
  // A kernel behind the loop that reads the result would read as much instead
  // of it, so that the loop would have work and save none.
  StringRef stays = "a kernel behind it reads what it makes";
  SetVector<Operation *> readers = getReaders(result);
  if (llvm::none_of(readers, isReadByRows))
    return std::nullopt;
  if (readers.size() > 1)
    return stays;
  Operation *reader = readers.front();
  if (!canBeInRegisters(reader))
    return stays;
  return addReader(cast<linalg::LinalgOp>(reader));
}

void ReaderCost::addOperands(linalg::LinalgOp op, ArrayRef<unsigned> loops,
                             unsigned wantedBits) {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    Value value = operand->get();
    if (!isa<RankedTensorType>(value.getType()) || planes.contains(value) ||
        value.getDefiningOp() == loop)
      continue;
    AffineMap map = op.getMatchingIndexingMap(operand);
    auto producer = value.getDefiningOp<linalg::LinalgOp>();
    if (isa_and_present<linalg::FillOp>(producer))
      continue;
    if (producer && !findRegisterObjection(producer) &&
        getReaders(value).size() == 1) {
      // It is computed with its reader.
      AffineMap made = producer.getMatchingIndexingMap(
          producer.getDpsInitOperand(cast<OpResult>(value).getResultNumber()));
      Dims ofProducer;
      for (auto [from, to] :
           llvm::zip_equal(made.getResults(), map.getResults()))
        if (llvm::is_contained(loops, cast<AffineDimExpr>(to).getPosition()))
          ofProducer.push_back(cast<AffineDimExpr>(from).getPosition());
      instructions += countInstructions(producer, wantedBits);
      addOperands(producer, ofProducer, wantedBits);
    } else if (loops.size() > 1 && llvm::all_of(loops, [&](unsigned each) {
                 return map.isFunctionOfDim(each);
               })) {
      tensors.insert(value);
      tensorBits = std::max(
          tensorBits, getElementTypeOrSelf(value).getIntOrFloatBitWidth());
    } else {
      instructions += kInstructionsOfRead;
    }
  }
}

/// Returns true if `op`, which reads numbers of rows, makes one for each
/// feature.
static bool repeatsRows(linalg::LinalgOp op, scf::ForallOp loop) {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (operand->get().getDefiningOp() != loop)
      continue;
    AffineMap map = op.getMatchingIndexingMap(operand);
    for (auto [number, size] : llvm::enumerate(op.getStaticLoopRanges()))
      if (size != 1 && !map.isFunctionOfDim(number))
        return true;
  }
  return false;
}

std::optional<StringRef> fovea::attn::findCostObjection(scf::ForallOp loop,
                                                        linalg::LinalgOp reader,
                                                        const ThreadTile &tile,
                                                        bool exactFunctions) {
  ReaderCost cost(loop, tile, exactFunctions);
  if (cost.readsPlane(reader))
    return cost.addReader(reader);
  // A number of each row costs next to nothing. Repeated for all features it is
  // a part of what reads both.
  if (!repeatsRows(reader, loop))
    return std::nullopt;
  SetVector<Operation *> readers = ReaderCost::getReaders(reader->getResult(0));
  auto next = readers.size() == 1 ? dyn_cast<linalg::LinalgOp>(readers.front())
                                  : linalg::LinalgOp();
  if (!next || !cost.canBeInRegisters(next) || !cost.readsPlane(next))
    return "only memory is to have its numbers of rows for all features";
  return cost.addReader(next);
}
