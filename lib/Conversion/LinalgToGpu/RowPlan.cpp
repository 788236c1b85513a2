//===- RowPlan.cpp - Choice of loops over rows and of their plans ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowPlan.h"

#include "fovea/Analysis/Loops.h"
#include "fovea/Analysis/Memory.h"
#include "fovea/Analysis/VectorPlan.h"

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

#define DEBUG_TYPE "convert-linalg-to-gpu"

using namespace mlir;
using namespace fovea;

static constexpr int64_t kLongestVector = 8;
/// Vectors of a thread that keep enough loads under way, and leave enough
/// registers.
static constexpr int64_t kUsualVectors = 4;
static constexpr int64_t kMostVectors = 16;
/// Rows that are loaded before the first op, unless sums need more.
static constexpr int64_t kMostLoads = 2;
/// Threads of a block that has several rows, and of one for rows of unknown
/// length.
static constexpr int64_t kSharedBlock = 256;
static constexpr int64_t kDynamicBlock = 512;
/// Registers that a thread needs besides those for rows.
static constexpr int64_t kOtherRegisters = 28;
/// The threads that a multiprocessor should have room for, and may have: the
/// former keep enough loads under way, the latter leave registers for a
/// thread's arithmetic.
static constexpr int64_t kFewestThreads = 768;
static constexpr int64_t kResidentThreads = 1024;

RowAccess fovea::getRowAccess(linalg::GenericOp op, OpOperand &operand,
                              std::optional<unsigned> loop) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<AffineExpr> dims(map.getNumDims(),
                               getAffineConstantExpr(0, op.getContext()));
  if (loop)
    dims[*loop] = getAffineDimExpr(0, op.getContext());
  return {operand.get(), map.replaceDimsAndSymbols(dims, {}, 1, 0)};
}

namespace {

class Planner {
public:
  explicit Planner(scf::ForallOp forall)
      : forall(forall), gpu(machine::getGpuOrDefault(forall)) {}

  std::optional<RowPlan> plan() {
    if (!collectOps() || !findLength() || !checkOperands())
      return std::nullopt;
    chooseVectors();
    chooseLoads();
    return chooseThreads() ? std::optional(result) : std::nullopt;
  }

private:
  /// Memory or a buffer that is accessed by vectors of a row.
  struct Row {
    Type element;
    /// True for a buffer of the loop's body, which is kept in registers.
    bool isBuffer = false;
    /// True if it is in memory, and different for each row.
    bool isStream = false;
    /// The first op that reads it.
    std::optional<size_t> firstRead = std::nullopt;
  };

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
  bool checkOperand(size_t index, OpOperand &operand);
  Value getAlignedBase(Value memref);
  void chooseVectors();
  void chooseLoads();
  int64_t countRegisters(int64_t perThread) const;
  bool tryThreads(int64_t most, int64_t fewest);
  bool chooseThreads();

  scf::ForallOp forall;
  machine::TargetAttr gpu;
  RowPlan result;
  struct Use {
    RowAccess access;
    bool isWrite;
  };
  /// The uses of memory, by the memref that they are views of.
  llvm::MapVector<Value, SmallVector<Use>> uses;
  llvm::SmallMapVector<RowAccess, Row, 8> rows;
  /// The last op that is a sum, if there is one.
  std::optional<size_t> lastSum;
};

} // namespace

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

/// Finds the loop along the row of each op, and checks that all have one
/// length.
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
  for (auto [index, op] : llvm::enumerate(result.ops)) {
    std::optional<unsigned> loop = result.rowLoops[index];
    if (loop &&
        linalg::isReductionIterator(op.getIteratorTypesArray()[*loop])) {
      lastSum = index;
      for (unsigned output = 0; output < op.getNumDpsInits(); ++output)
        if (!getCombiner(op, output))
          return false;
    }
    for (OpOperand &operand : op->getOpOperands())
      if (!checkOperand(index, operand))
        return false;
    // These bodies read memory themselves.
    WalkResult walk = op.getRegion().walk([&](memref::LoadOp load) {
      Value base = getBase(load.getMemref());
      if (isInside(base) || !isDistinct(base))
        return WalkResult::interrupt();
      uses[base].push_back({{load.getMemref(), AffineMap()}, false});
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return false;
  }
  // Elements that are written must be read as they were written, by the same
  // thread.
  for (auto &[base, list] : uses) {
    bool isWritten = llvm::any_of(list, [](Use &use) { return use.isWrite; });
    if (!isWritten)
      continue;
    for (Use &use : list)
      if (use.access != list.front().access)
        return false;
  }
  return true;
}

bool Planner::checkOperand(size_t index, OpOperand &operand) {
  linalg::GenericOp op = result.ops[index];
  std::optional<unsigned> loop = result.rowLoops[index];
  Value memref = operand.get();
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type)
    return true;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  Access access = loop ? classifyAccess(type, map, *loop) : Access::Uniform;
  if (access == Access::Contiguous &&
      map.getResults().back() != getAffineDimExpr(*loop, op.getContext()))
    access = Access::Gather;
  RowAccess place = getRowAccess(op, operand, loop);
  bool isWrite = op.isDpsInit(&operand);
  if (isLocal(memref)) {
    uses[memref].push_back({place, isWrite});
    if (access == Access::Contiguous)
      rows[place] = {type.getElementType(), /*isBuffer=*/true};
    return access != Access::Gather;
  }
  Value base = getBase(memref);
  if (isInside(base) || !isDistinct(base))
    return false;
  uses[base].push_back({place, isWrite});
  // Another thread would read the element before it is written.
  if (isWrite && access == Access::Gather &&
      op.payloadUsesValueFromOperand(&operand))
    return false;
  if (access != Access::Contiguous || !hasVectorMemory(type.getElementType()))
    return true;
  if (!getAlignedBase(memref))
    return true;
  auto [row, isNew] = rows.insert({place, {type.getElementType()}});
  row->second.isStream = isInside(memref);
  if (isNew && op.payloadUsesValueFromOperand(&operand))
    row->second.firstRead = index;
  return true;
}

/// Returns the memref outside of the loop whose alignment decides the alignment
/// of rows of `memref`; null if rows may begin anywhere.
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

static int64_t getBytes(Type type) {
  return type.isIndex() ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

void Planner::chooseVectors() {
  int64_t smallest = kAccessBytes;
  for (auto &[access, row] : rows) {
    if (row.isBuffer)
      continue;
    smallest = std::min(smallest, getBytes(row.element));
    result.vectorMemory.insert(access);
  }
  int64_t length = result.vectorMemory.empty() ? 1 : kAccessBytes / smallest;
  length = std::min(length, kLongestVector);
  if (result.length)
    while (length > 1 && *result.length % length != 0)
      length /= 2;
  result.vectorLength = length;
  for (auto &[access, row] : rows) {
    if (row.isBuffer)
      continue;
    int64_t bytes = std::min(kAccessBytes, length * getBytes(row.element));
    int64_t &aligned = result.alignments[getAlignedBase(access.first)];
    aligned = std::max(aligned, bytes);
  }
}

/// Chooses the rows that are loaded first, so that many loads are under way
/// while the first sum is waited for: the rows that the sum needs and, unless
/// there are too many, all others.
void Planner::chooseLoads() {
  for (auto &[access, row] : rows)
    if (row.isStream && row.firstRead) {
      result.streams.insert(access);
      if (lastSum &&
          (*row.firstRead <= *lastSum || result.preloaded.size() < kMostLoads))
        result.preloaded.insert(access);
    }
}

/// Returns the registers that a thread needs if it has `perThread` vectors of
/// the row: those for all rows that it holds, in which the first of several ops
/// widens narrow elements, and those for one vector of each other row that it
/// reads.
int64_t Planner::countRegisters(int64_t perThread) const {
  int64_t registers = kOtherRegisters;
  for (auto &[access, row] : rows) {
    int64_t bytes = getBytes(row.element);
    if (row.isBuffer ||
        (row.firstRead && lastSum && *row.firstRead <= *lastSum))
      bytes = perThread * std::max<int64_t>(bytes, 4);
    else if (result.preloaded.contains(access))
      bytes *= perThread;
    else if (!row.firstRead)
      continue;
    registers += llvm::divideCeil(result.vectorLength * bytes, 4);
  }
  return registers;
}

/// Gives each thread at most `most` vectors of the row, if a multiprocessor has
/// registers for a row and for `fewest` threads.
bool Planner::tryThreads(int64_t most, int64_t fewest) {
  int64_t count = result.length ? *result.length / result.vectorLength
                                : kDynamicBlock * kUsualVectors;
  int64_t threads =
      llvm::alignTo(llvm::divideCeil(count, most), machine::kWarpSize);
  if (count < machine::kWarpSize)
    threads = llvm::bit_ceil<uint64_t>(count);
  if (threads > machine::kLargestBlock)
    return false;
  int64_t perThread = llvm::divideCeil(count, threads);
  int64_t registers = countRegisters(perThread);
  bool fits = registers <=
              std::min(machine::kLargestThread,
                       gpu.getRegistersPerCore() / std::max(threads, fewest));
  LDBG() << "rows at " << forall.getLoc() << ": " << threads << " threads with "
         << perThread << " vectors of " << result.vectorLength << " and "
         << registers << " registers each"
         << (fits ? "" : ", which a multiprocessor does not have");
  if (!fits)
    return false;
  result.vectorsPerThread = perThread;
  result.threads = threads;
  result.hasSum = lastSum.has_value();
  // Short rows get a warp each or less, several in a block.
  result.blockThreads = threads <= machine::kWarpSize ? kSharedBlock : threads;
  // Some blocks load while others compute.
  int64_t resident =
      std::min(kResidentThreads, gpu.getRegistersPerCore() / registers);
  if (result.isFull())
    result.residentBlocks =
        std::max<int64_t>(1, resident / result.blockThreads);
  // The blocks of all multiprocessors, which wait for sums. Warps of several
  // rows have enough loads under way.
  if (lastSum && threads >= machine::kWarpSize &&
      gpu.getGpuArch().hasPrefetch())
    result.rowsAhead = gpu.getCores() * result.residentBlocks *
                       result.blockThreads / result.threads;
  return true;
}

/// Chooses the vectors of a thread and the threads of a row.
bool Planner::chooseThreads() {
  for (int64_t most : {kUsualVectors, kUsualVectors / 2})
    if (tryThreads(most, kFewestThreads))
      return true;
  for (int64_t most = kUsualVectors; most <= kMostVectors; most *= 2)
    if (tryThreads(most, /*fewest=*/0))
      return true;
  return false;
}

std::optional<RowPlan> fovea::planRows(scf::ForallOp forall) {
  std::optional<RowPlan> plan = Planner(forall).plan();
  LDBG() << "rows at " << forall.getLoc() << ": "
         << (plan ? "in registers" : "through memory, op by op");
  return plan;
}
