//===- RowPlan.cpp - Which loops are over rows, and how -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowPlan.h"

#include "../HostUtils.h"
#include "../LinalgToVector/VectorPlan.h"

#include "fovea/Target/GpuModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace fovea;

static constexpr int64_t kLongestVector = 8;
static constexpr int64_t kMostVectors = 16;
/// Threads of a block that works on a row, if that is enough.
static constexpr int64_t kRowThreads = 512;
/// Threads of a block of warps with a row each.
static constexpr int64_t kWarpBlock = 256;
/// Threads that a multiprocessor should have, to load enough at a time.
static constexpr int64_t kResidentThreads = 1024;
/// Registers that a thread needs besides the row.
static constexpr int64_t kOtherRegisters = 40;
static constexpr int64_t kMostRegisters = 255;
/// Vectors of a thread for rows of unknown length.
static constexpr int64_t kUsualVectors = 4;

/// What `memref` is a view of.
static Value getBase(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

/// Whether no other memref of the function is in the same memory, views apart.
static bool isDistinct(Value base) {
  if (base.getDefiningOp<memref::AllocOp>())
    return true;
  auto argument = dyn_cast<BlockArgument>(base);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

namespace {

class Planner {
public:
  explicit Planner(scf::ForallOp forall) : forall(forall) {}

  std::optional<RowPlan> plan() {
    if (!collectOps() || !findLength() || !checkOperands() || !choose())
      return std::nullopt;
    return result;
  }

private:
  bool isInside(Value value) {
    return forall.getRegion().isAncestor(value.getParentRegion());
  }
  bool isLocal(Value memref) {
    return isInside(memref) && memref.getDefiningOp<memref::AllocOp>();
  }

  bool collectOps();
  bool findLength();
  bool isSameLength(Value memref, int64_t dim) const;
  bool checkOperands();
  bool checkOperand(linalg::GenericOp op, std::optional<unsigned> loop,
                    OpOperand &operand);
  Value getAlignedBase(Value memref);
  bool choose();

  scf::ForallOp forall;
  RowPlan result;
  struct Use {
    Value memref;
    AffineMap map;
    bool isWrite;
  };
  /// How memory outside is used, by what it is a view of.
  llvm::MapVector<Value, SmallVector<Use>> uses;
  /// Element types of the memrefs that are accessed by vectors: those in
  /// memory, and, with a mark for those that may be kept in registers, all of
  /// them.
  llvm::SmallMapVector<Value, Type, 8> vectors, kept;
};

bool Planner::collectOps() {
  for (Operation &op : forall.getBody()->without_terminator()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (!writesApart(generic) || generic.getNumDpsInits() == 0)
        return false;
      result.ops.push_back(generic);
      continue;
    }
    bool isBuffer = isa<memref::AllocOp, memref::DeallocOp>(op);
    if (!isBuffer && !(isPure(&op) && op.getNumRegions() == 0))
      return false;
  }
  return !result.ops.empty();
}

/// Finds the loop along the row of each op, and whether all have one length.
bool Planner::findLength() {
  for (linalg::GenericOp op : result.ops) {
    std::optional<unsigned> loop;
    for (auto [dim, size] : llvm::enumerate(op.getStaticLoopRanges())) {
      if (size == 1)
        continue;
      if (loop)
        return false;
      loop = dim;
    }
    result.rowLoops.push_back(loop);
    if (!loop)
      continue;
    bool isFound = false;
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      std::optional<unsigned> place =
          map.getResultPosition(getAffineDimExpr(*loop, op.getContext()));
      if (!place || isFound)
        continue;
      isFound = true;
      if (!result.lengthSource) {
        result.lengthSource = operand.get();
        result.lengthDim = *place;
        int64_t size =
            cast<MemRefType>(operand.get().getType()).getDimSize(*place);
        if (!ShapedType::isDynamic(size))
          result.length = size;
      } else if (!isSameLength(operand.get(), *place)) {
        return false;
      }
    }
    if (!isFound)
      return false;
  }
  return result.lengthSource && result.length != 0;
}

bool Planner::isSameLength(Value memref, int64_t dim) const {
  using Variable = ValueBoundsConstraintSet::Variable;
  FailureOr<bool> same = ValueBoundsConstraintSet::areEqual(
      Variable(memref, dim), Variable(result.lengthSource, result.lengthDim));
  return succeeded(same) && *same;
}

bool Planner::checkOperands() {
  for (auto [op, loop] : llvm::zip_equal(result.ops, result.rowLoops)) {
    if (loop && linalg::isReductionIterator(op.getIteratorTypesArray()[*loop]))
      for (unsigned index = 0; index < op.getNumDpsInits(); ++index)
        if (!getCombiner(op, index))
          return false;
    for (OpOperand &operand : op->getOpOperands())
      if (!checkOperand(op, loop, operand))
        return false;
    // Bodies that read memory by themselves.
    WalkResult walk = op.getRegion().walk([&](memref::LoadOp load) {
      Value base = getBase(load.getMemref());
      if (isInside(base) || !isDistinct(base))
        return WalkResult::interrupt();
      uses[base].push_back({load.getMemref(), AffineMap(), false});
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return false;
  }
  // What is written in memory is read as it was written, by the same thread.
  for (auto &[base, list] : uses) {
    bool isWritten = llvm::any_of(list, [](Use &use) { return use.isWrite; });
    if (!isWritten)
      continue;
    for (Use &use : list)
      if (use.memref != list.front().memref || use.map != list.front().map)
        return false;
  }
  return true;
}

bool Planner::checkOperand(linalg::GenericOp op, std::optional<unsigned> loop,
                           OpOperand &operand) {
  Value memref = operand.get();
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type)
    return true;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  Access access = loop ? classifyAccess(type, map, *loop) : Access::Uniform;
  if (access == Access::Contiguous &&
      map.getResults().back() != getAffineDimExpr(*loop, op.getContext()))
    access = Access::Gather;
  if (isLocal(memref)) {
    if (access == Access::Contiguous)
      kept.insert({memref, type.getElementType()});
    return access != Access::Gather;
  }
  Value base = getBase(memref);
  if (isInside(base) || !isDistinct(base))
    return false;
  bool isWrite = op.isDpsInit(&operand);
  // The indices as a function of the place in the row.
  SmallVector<AffineExpr> dims(map.getNumDims(),
                               getAffineConstantExpr(0, op.getContext()));
  if (loop)
    dims[*loop] = getAffineDimExpr(0, op.getContext());
  AffineMap indices = map.replaceDimsAndSymbols(dims, {}, 1, 0);
  uses[base].push_back({memref, indices, isWrite});
  // Another thread would read it before it is written.
  if (isWrite && access == Access::Gather &&
      op.payloadUsesValueFromOperand(&operand))
    return false;
  if (access != Access::Contiguous || !hasVectorMemory(type.getElementType()))
    return true;
  if (Value aligned = getAlignedBase(memref)) {
    vectors.insert({memref, type.getElementType()});
    if (!isWrite)
      kept.insert({memref, type.getElementType()});
  }
  return true;
}

/// The memref outside of the loop whose alignment decides that of rows of
/// `memref`; null if rows may begin anywhere.
Value Planner::getAlignedBase(Value memref) {
  if (!isInside(memref))
    return memref;
  auto view = memref.getDefiningOp<memref::SubViewOp>();
  if (!view || isInside(view.getSource()))
    return {};
  int64_t last = view.getSourceType().getRank() - 1;
  if (view.getDroppedDims().test(last) ||
      getConstantIntValue(view.getMixedOffsets()[last]) != 0 ||
      getConstantIntValue(view.getMixedStrides()[last]) != 1)
    return {};
  return view.getSource();
}

/// Chooses vectors and threads.
bool Planner::choose() {
  auto getBytes = [](Type type) -> int64_t {
    return type.isIndex() ? 8
                          : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
  };
  int64_t smallest = kAccessBytes;
  for (auto [memref, type] : vectors)
    smallest = std::min(smallest, getBytes(type));
  int64_t length = vectors.empty() ? 1 : kAccessBytes / smallest;
  length = std::min(length, kLongestVector);
  if (result.length)
    while (length > 1 && (*result.length % length != 0 ||
                          *result.length / length < kWarpSize))
      length /= 2;
  result.vectorLength = length;
  result.vectorMemory.insert_range(llvm::make_first_range(vectors));
  for (auto [memref, type] : vectors) {
    int64_t bytes = std::min(kAccessBytes, length * getBytes(type));
    int64_t &aligned = result.alignments[getAlignedBase(memref)];
    aligned = std::max(aligned, bytes);
  }

  int64_t registers = 0;
  for (auto [memref, type] : kept)
    registers += llvm::divideCeil(length * getBytes(type), 4);
  auto fits = [&](int64_t perThread, int64_t threads) {
    int64_t most = std::min(kMostRegisters,
                            kRegistersPerCore / std::max(threads, kRowThreads));
    return perThread <= kMostVectors &&
           perThread * registers + kOtherRegisters <= most;
  };
  if (!result.length) {
    result.threads = result.blockThreads = kRowThreads;
    result.vectorsPerThread = kUsualVectors;
    while (!fits(result.vectorsPerThread, kRowThreads))
      if ((result.vectorsPerThread /= 2) == 0)
        return false;
    return true;
  }
  int64_t count = *result.length / length;
  for (int64_t most = kRowThreads; most <= kLargestBlock; most *= 2) {
    int64_t perThread = llvm::divideCeil(count, most);
    int64_t threads =
        llvm::alignTo(llvm::divideCeil(count, perThread), kWarpSize);
    if (!fits(perThread, threads))
      continue;
    result.vectorsPerThread = perThread;
    result.threads = threads;
    // Short rows: a warp for each, several in a block.
    result.blockThreads = threads == kWarpSize ? kWarpBlock : threads;
    // One block loads while another computes.
    if (perThread * registers + kOtherRegisters <=
        kRegistersPerCore / kResidentThreads)
      result.residentBlocks = kResidentThreads / result.blockThreads;
    return true;
  }
  return false;
}

} // namespace

std::optional<RowPlan> fovea::planRows(scf::ForallOp forall) {
  return Planner(forall).plan();
}
