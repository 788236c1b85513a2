//===- RowKernel.cpp - A row in the registers of a block ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The data that the plan names is loaded first, so that many loads are under
// way at once; then op follows op, on registers. A buffer of the loop's body
// becomes a value: a vector for each of a thread's vectors of the row, or one
// scalar, which all threads know.
//
//===----------------------------------------------------------------------===//

#include "RowKernel.h"

#include "BlockLoops.h"
#include "Launch.h"
#include "fovea/Analysis/VectorPlan.h"

#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Transforms/GpuKernels.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace fovea;

/// Neighbours that share a random number's counter.
static constexpr int64_t kSharedPlaces = 4;

//===----------------------------------------------------------------------===//
// The condition
//===----------------------------------------------------------------------===//

Value fovea::emitRowCondition(OpBuilder &outer, Location loc,
                              const RowPlan &plan, Value length) {
  ImplicitLocOpBuilder builder(loc, outer);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, value);
  };
  SmallVector<Value> conditions;
  auto require = [&](arith::CmpIPredicate predicate, Value a, Value b) {
    conditions.push_back(arith::CmpIOp::create(builder, predicate, a, b));
  };
  if (!plan.length) {
    require(arith::CmpIPredicate::ule, length, constant(plan.getCapacity()));
    if (plan.vectorLength > 1)
      require(
          arith::CmpIPredicate::eq,
          arith::RemUIOp::create(builder, length, constant(plan.vectorLength)),
          constant(0));
  }
  for (auto [memref, bytes] : plan.alignments) {
    auto type = cast<MemRefType>(memref.getType());
    Type element = type.getElementType();
    int64_t elementBytes =
        element.isIndex()
            ? 8
            : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
    if (bytes <= elementBytes)
      continue;
    auto metadata = memref::ExtractStridedMetadataOp::create(builder, memref);
    // All terms, in bytes, of the address of a row.
    Value parts;
    auto add = [&](Value part) {
      parts = parts ? arith::OrIOp::create(builder, parts, part) : part;
    };
    auto addElements = [&](OpFoldResult elements) {
      std::optional<int64_t> known = getConstantIntValue(elements);
      if (known && *known * elementBytes % bytes == 0)
        return;
      add(arith::MulIOp::create(
          builder, getValueOrCreateConstantIndexOp(builder, loc, elements),
          constant(elementBytes)));
    };
    // Allocations are sufficiently aligned.
    if (!memref.getDefiningOp<memref::AllocOp>())
      add(memref::ExtractAlignedPointerAsIndexOp::create(builder, memref));
    addElements(metadata.getConstifiedMixedOffset());
    SmallVector<OpFoldResult> strides = metadata.getConstifiedMixedStrides();
    for (OpFoldResult stride : ArrayRef(strides).drop_back())
      addElements(stride);
    if (parts)
      require(arith::CmpIPredicate::eq,
              arith::AndIOp::create(builder, parts, constant(bytes - 1)),
              constant(0));
  }
  Value all;
  for (Value condition : conditions)
    all = all ? arith::AndIOp::create(builder, all, condition) : condition;
  return all;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

namespace {

class RowEmitter {
public:
  /// Where `isRow` is given and false, the row is another thread's: nothing is
  /// written.
  RowEmitter(OpBuilder &builder, scf::ForallOp forall, const RowPlan &plan,
             const BlockThread &thread, Value length, Value isRow = {})
      : builder(forall.getLoc(), builder), forall(forall), plan(plan),
        thread(thread), length(length), isRow(isRow) {}

  /// Takes the row whose induction variables are `ivs`.
  void begin(ValueRange ivs);
  /// Loads the rows that sums need.
  void preload();
  /// Brings the parts of the row that are read into the L2 cache.
  void prefetch();
  /// Emits the ops.
  void emit();

private:
  /// The vectors of a row that a thread holds.
  using RowValue = SmallVector<Value>;
  /// One vector of each operand that is read, by the body's argument.
  using Vectors = DenseMap<Value, Value>;
  /// The last clone of an op of a body, and the operands that it was made with.
  struct Clone {
    SmallVector<Value> operands;
    Operation *op = nullptr;
  };

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  }
  VectorType getVectorType(Value memref) const {
    return VectorType::get(plan.vectorLength,
                           cast<MemRefType>(memref.getType()).getElementType());
  }

  void visitStreams(
      function_ref<void(linalg::GenericOp, unsigned, OpOperand &)> visit);
  void emitOp(linalg::GenericOp op, std::optional<unsigned> loop);
  void emitUniformOp(linalg::GenericOp op);
  void emitElementwise(linalg::GenericOp op, unsigned loop);
  void emitReduction(linalg::GenericOp op, unsigned loop);
  Value loadVector(linalg::GenericOp op, unsigned loop, OpOperand &operand,
                   int64_t vector);
  Value loadScalar(linalg::GenericOp op, OpOperand &operand);
  void storeScalar(linalg::GenericOp op, OpOperand &operand, Value value);
  SmallVector<Value> getIndices(AffineMap map, std::optional<unsigned> loop,
                                Value place);
  bool isLocal(Value memref) {
    return memref.getDefiningOp<memref::AllocOp>() &&
           forall.getRegion().isAncestor(memref.getParentRegion());
  }
  /// Returns the alignment of vectors of `memref` in memory.
  llvm::Align getAlignment(Value memref) const {
    Type element = cast<MemRefType>(memref.getType()).getElementType();
    int64_t bytes = element.isIndex() ? 8 : element.getIntOrFloatBitWidth() / 8;
    return llvm::Align(
        std::min<int64_t>(kAccessBytes, plan.vectorLength * bytes));
  }
  void storeVector(linalg::GenericOp op, unsigned loop, OpOperand &output,
                   int64_t vector, Value value, ValueRange lanes);
  Access getAccess(linalg::GenericOp op, OpOperand &operand,
                   std::optional<unsigned> loop);

  IRMapping mapInvariants(linalg::GenericOp op, std::optional<unsigned> loop);
  void loadRow(linalg::GenericOp op, unsigned loop, OpOperand &operand);
  void loadSharedRow(linalg::GenericOp op, unsigned loop);
  Vectors loadVectors(linalg::GenericOp op, unsigned loop, int64_t vector);
  SmallVector<Value> emitLane(linalg::GenericOp op, unsigned loop,
                              const IRMapping &invariants,
                              const Vectors &vectors, int64_t vector,
                              int64_t lane, ValueRange outputs,
                              DenseMap<Operation *, Clone> &clones);
  /// Emits `body` for a vector of the row; where the row ends before it, the
  /// results are `otherwise`.
  SmallVector<Value> guard(int64_t vector, ValueRange otherwise,
                           function_ref<SmallVector<Value>()> body);
  Value getZeros(VectorType type) {
    return arith::ConstantOp::create(builder, builder.getZeroAttr(type));
  }

  ImplicitLocOpBuilder builder;
  scf::ForallOp forall;
  const RowPlan &plan;
  const BlockThread &thread;
  Value length, isRow;
  IRMapping mapping;
  /// The first element of each of the thread's vectors, and whether it exists.
  SmallVector<Value> places, exists;
  DenseMap<RowAccess, RowValue> rows;
  DenseMap<RowAccess, Value> scalars;
};

} // namespace

void RowEmitter::begin(ValueRange ivs) {
  mapping.map(forall.getInductionVars(), ivs);
  for (int64_t vector = 0; vector < plan.vectorsPerThread; ++vector) {
    Value number = builder.createOrFold<arith::AddIOp>(
        thread.id, constant(vector * plan.threads));
    Value place = builder.createOrFold<arith::MulIOp>(
        number, constant(plan.vectorLength));
    places.push_back(place);
    bool isSure =
        plan.length &&
        (vector + 1) * plan.threads * plan.vectorLength <= *plan.length;
    exists.push_back(isSure ? Value()
                            : arith::CmpIOp::create(builder,
                                                    arith::CmpIPredicate::ult,
                                                    place, length));
  }
  for (Operation &op : forall.getBody()->without_terminator())
    if (!isa<linalg::GenericOp, memref::AllocOp, memref::DeallocOp>(op))
      builder.clone(op, mapping);
}

void RowEmitter::emit() {
  for (auto [op, loop] : llvm::zip_equal(plan.ops, plan.rowLoops))
    emitOp(op, loop);
}

/// Visits the first operand of each access that has rows of its own to read.
void RowEmitter::visitStreams(
    function_ref<void(linalg::GenericOp, unsigned, OpOperand &)> visit) {
  DenseSet<RowAccess> seen;
  for (auto [planned, loop] : llvm::zip_equal(plan.ops, plan.rowLoops)) {
    linalg::GenericOp op = planned;
    if (!loop)
      continue;
    for (OpOperand &operand : op->getOpOperands()) {
      RowAccess access = getRowAccess(op, operand, loop);
      if (plan.streams.contains(access) && seen.insert(access).second)
        visit(op, *loop, operand);
    }
  }
}

void RowEmitter::preload() {
  visitStreams([&](linalg::GenericOp op, unsigned loop, OpOperand &operand) {
    if (plan.preloaded.contains(getRowAccess(op, operand, loop)))
      loadRow(op, loop, operand);
  });
}

/// Loads all vectors of an operand.
void RowEmitter::loadRow(linalg::GenericOp op, unsigned loop,
                         OpOperand &operand) {
  RowValue row;
  Value zeros = getZeros(getVectorType(operand.get()));
  for (int64_t vector = 0; vector < plan.vectorsPerThread; ++vector)
    row.push_back(guard(vector, zeros, [&] {
                    Value value = loadVector(op, loop, operand, vector);
                    return SmallVector<Value>{value};
                  }).front());
  rows[getRowAccess(op, operand, loop)] = row;
}

void RowEmitter::prefetch() {
  visitStreams([&](linalg::GenericOp op, unsigned loop, OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (int64_t vector = 0; vector < plan.vectorsPerThread; ++vector)
      guard(vector, {}, [&] {
        memref::PrefetchOp::create(
            builder, mapping.lookupOrDefault(operand.get()),
            getIndices(map, loop, places[vector]), /*isWrite=*/false,
            /*localityHint=*/2, /*isDataCache=*/true);
        return SmallVector<Value>();
      });
  });
}

SmallVector<Value> RowEmitter::getIndices(AffineMap map,
                                          std::optional<unsigned> loop,
                                          Value place) {
  SmallVector<OpFoldResult> ivs(map.getNumDims(), builder.getIndexAttr(0));
  if (loop)
    ivs[*loop] = place;
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return getValueOrCreateConstantIndexOp(
        builder, builder.getLoc(),
        affine::makeComposedFoldedAffineApply(
            builder, builder.getLoc(),
            AffineMap::get(map.getNumDims(), 0, expr), ivs));
  });
}

Access RowEmitter::getAccess(linalg::GenericOp op, OpOperand &operand,
                             std::optional<unsigned> loop) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type || !loop ||
      !op.getMatchingIndexingMap(&operand).isFunctionOfDim(*loop))
    return Access::Uniform;
  return isLocal(operand.get()) ||
                 plan.vectorMemory.contains(getRowAccess(op, operand, loop))
             ? Access::Contiguous
             : Access::Gather;
}

SmallVector<Value> RowEmitter::guard(int64_t vector, ValueRange otherwise,
                                     function_ref<SmallVector<Value>()> body) {
  if (!exists[vector])
    return body();
  OpBuilder::InsertionGuard insertion(builder);
  auto branch = scf::IfOp::create(builder, otherwise.getTypes(), exists[vector],
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, body());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, otherwise);
  return llvm::to_vector_of<Value>(branch.getResults());
}

/// Loads a vector of an operand's part of the row, which exists: it is in
/// registers already, or in memory.
Value RowEmitter::loadVector(linalg::GenericOp op, unsigned loop,
                             OpOperand &operand, int64_t vector) {
  Value memref = operand.get();
  auto found = rows.find(getRowAccess(op, operand, loop));
  if (found != rows.end())
    return found->second[vector];
  VectorType type = getVectorType(memref);
  // Elements that no op has written have no particular value.
  if (isLocal(memref))
    return getZeros(type);
  return vector::LoadOp::create(
      builder, type, mapping.lookupOrDefault(memref),
      getIndices(op.getMatchingIndexingMap(&operand), loop, places[vector]),
      /*nontemporal=*/false, getAlignment(memref));
}

Value RowEmitter::loadScalar(linalg::GenericOp op, OpOperand &operand) {
  Value memref = operand.get();
  if (!isa<MemRefType>(memref.getType()))
    return mapping.lookupOrDefault(memref);
  if (Value known = scalars.lookup(getRowAccess(op, operand, std::nullopt)))
    return known;
  if (isLocal(memref))
    return arith::ConstantOp::create(
        builder, builder.getZeroAttr(getElementTypeOrSelf(memref)));
  return memref::LoadOp::create(
      builder, mapping.lookupOrDefault(memref),
      getIndices(op.getMatchingIndexingMap(&operand), std::nullopt, {}));
}

void RowEmitter::storeScalar(linalg::GenericOp op, OpOperand &operand,
                             Value value) {
  Value memref = operand.get();
  scalars[getRowAccess(op, operand, std::nullopt)] = value;
  if (isLocal(memref))
    return;
  Value isFirst = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                        thread.id, constant(0));
  if (isRow)
    isFirst = arith::AndIOp::create(builder, isFirst, isRow);
  SmallVector<Value> indices =
      getIndices(op.getMatchingIndexingMap(&operand), std::nullopt, {});
  scf::IfOp::create(builder, isFirst, [&](OpBuilder &inner, Location loc) {
    memref::StoreOp::create(inner, loc, value, mapping.lookupOrDefault(memref),
                            indices);
    scf::YieldOp::create(inner, loc);
  });
}

/// Maps values that are the same for all elements of the row, and emits the ops
/// on them.
IRMapping RowEmitter::mapInvariants(linalg::GenericOp op,
                                    std::optional<unsigned> loop) {
  IRMapping values = mapping;
  DenseSet<Value> variants;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (getAccess(op, operand, loop) != Access::Uniform ||
        (loop && op.isDpsInit(&operand)))
      variants.insert(argument);
    else if (!argument.use_empty())
      values.map(argument, loadScalar(op, operand));
  }
  Value zero = constant(0);
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      if (index.getDim() == loop)
        variants.insert(index);
      else
        values.map(index.getResult(), zero);
      continue;
    }
    bool isVariant = !isPure(&inner) || inner.getNumRegions() != 0 ||
                     llvm::any_of(inner.getOperands(), [&](Value operand) {
                       return variants.contains(operand);
                     });
    if (isVariant && loop)
      variants.insert_range(inner.getResults());
    else
      builder.clone(inner, values);
  }
  return values;
}

void RowEmitter::emitOp(linalg::GenericOp op, std::optional<unsigned> loop) {
  if (!loop)
    emitUniformOp(op);
  else if (linalg::isReductionIterator(op.getIteratorTypesArray()[*loop]))
    emitReduction(op, *loop);
  else
    emitElementwise(op, *loop);
}

/// Emits an op on one element, which every thread executes.
void RowEmitter::emitUniformOp(linalg::GenericOp op) {
  IRMapping values = mapInvariants(op, std::nullopt);
  for (auto [output, value] :
       llvm::zip_equal(op.getDpsInitsMutable(),
                       op.getBody()->getTerminator()->getOperands()))
    storeScalar(op, output, values.lookupOrDefault(value));
}

/// Returns the vectors that `op` reads, by its arguments.
RowEmitter::Vectors RowEmitter::loadVectors(linalg::GenericOp op, unsigned loop,
                                            int64_t vector) {
  Vectors vectors;
  for (OpOperand &operand : op->getOpOperands())
    if (getAccess(op, operand, loop) == Access::Contiguous &&
        op.payloadUsesValueFromOperand(&operand))
      vectors[op.getMatchingBlockArgument(&operand)] =
          loadVector(op, loop, operand, vector);
  return vectors;
}

/// Emits the body for one element. Ops that have the same result as for the
/// element before, such as the random numbers that four elements share, are not
/// repeated.
SmallVector<Value> RowEmitter::emitLane(linalg::GenericOp op, unsigned loop,
                                        const IRMapping &invariants,
                                        const Vectors &vectors, int64_t vector,
                                        int64_t lane, ValueRange outputs,
                                        DenseMap<Operation *, Clone> &clones) {
  IRMapping values = invariants;
  Value place =
      builder.createOrFold<arith::AddIOp>(places[vector], constant(lane));
  bool isReduction =
      linalg::isReductionIterator(op.getIteratorTypesArray()[loop]);
  size_t nextOutput = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (op.isDpsInit(&operand) && isReduction) {
      values.map(argument, outputs[nextOutput++]);
      continue;
    }
    if (argument.use_empty())
      continue;
    switch (getAccess(op, operand, loop)) {
    case Access::Uniform:
      break;
    case Access::Contiguous:
      values.map(argument, vector::ExtractOp::create(
                               builder, vectors.lookup(argument), lane));
      break;
    case Access::Gather:
      values.map(argument, memref::LoadOp::create(
                               builder, mapping.lookupOrDefault(operand.get()),
                               getIndices(op.getMatchingIndexingMap(&operand),
                                          loop, place)));
      break;
    }
  }
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (inner.getNumResults() > 0 && values.contains(inner.getResult(0)))
      continue;
    if (isa<linalg::IndexOp>(inner)) {
      values.map(inner.getResult(0), place);
      continue;
    }
    Clone &last = clones[&inner];
    SmallVector<Value> operands =
        llvm::map_to_vector(inner.getOperands(), [&](Value operand) {
          return values.lookupOrDefault(operand);
        });
    bool isShared = plan.vectorLength % kSharedPlaces == 0 &&
                    lane % kSharedPlaces != 0 && isPlaceByFours(&inner, loop);
    bool isSame = last.op && isPure(&inner) && inner.getNumRegions() == 0 &&
                  last.operands == operands;
    if (!last.op || !(isShared || isSame)) {
      last.op = builder.clone(inner, values);
      last.operands = operands;
    }
    values.map(inner.getResults(), last.op->getResults());
  }
  return llvm::map_to_vector(
      op.getBody()->getTerminator()->getOperands(),
      [&](Value value) { return values.lookupOrDefault(value); });
}

/// Loads the vectors of weights together, before stores that they would have to
/// wait for. Vectors of several operands, or of long rows, would take too many
/// registers.
void RowEmitter::loadSharedRow(linalg::GenericOp op, unsigned loop) {
  if (plan.preloaded.empty() || plan.residentBlocks == 1)
    return;
  SmallVector<OpOperand *> left;
  for (OpOperand &operand : op->getOpOperands())
    if (getAccess(op, operand, loop) == Access::Contiguous &&
        op.payloadUsesValueFromOperand(&operand) &&
        !rows.contains(getRowAccess(op, operand, loop)) &&
        !isLocal(operand.get()))
      left.push_back(&operand);
  if (left.size() == 1)
    loadRow(op, loop, *left.front());
}

void RowEmitter::emitElementwise(linalg::GenericOp op, unsigned loop) {
  loadSharedRow(op, loop);
  IRMapping invariants = mapInvariants(op, loop);
  SmallVector<RowValue> results(op.getNumDpsInits());
  for (int64_t vector = 0; vector < plan.vectorsPerThread; ++vector) {
    SmallVector<Value> zeros;
    for (Value output : op.getDpsInits())
      zeros.push_back(getZeros(getVectorType(output)));
    SmallVector<Value> vectors = guard(vector, zeros, [&] {
      SmallVector<SmallVector<Value>> lanes(op.getNumDpsInits());
      Vectors read = loadVectors(op, loop, vector);
      DenseMap<Operation *, Clone> clones;
      for (int64_t lane = 0; lane < plan.vectorLength; ++lane)
        for (auto [lanes, value] :
             llvm::zip_equal(lanes, emitLane(op, loop, invariants, read, vector,
                                             lane, {}, clones)))
          lanes.push_back(value);
      SmallVector<Value> made;
      for (auto [index, output] : llvm::enumerate(op.getDpsInitsMutable())) {
        made.push_back(vector::FromElementsOp::create(
            builder, getVectorType(output.get()), lanes[index]));
        storeVector(op, loop, output, vector, made.back(), lanes[index]);
      }
      return made;
    });
    for (auto [row, value] : llvm::zip_equal(results, vectors))
      row.push_back(value);
  }
  for (auto [output, row] : llvm::zip_equal(op.getDpsInitsMutable(), results))
    rows[getRowAccess(op, output, loop)] = row;
}

/// Writes a vector of an output to memory, unless it is a buffer of the body.
void RowEmitter::storeVector(linalg::GenericOp op, unsigned loop,
                             OpOperand &output, int64_t vector, Value value,
                             ValueRange lanes) {
  Value memref = output.get();
  AffineMap map = op.getMatchingIndexingMap(&output);
  if (isLocal(memref))
    return;
  OpBuilder::InsertionGuard insertion(builder);
  if (isRow) {
    auto branch = scf::IfOp::create(builder, isRow, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
  }
  Value target = mapping.lookupOrDefault(memref);
  if (plan.vectorMemory.contains(getRowAccess(op, output, loop))) {
    vector::StoreOp::create(builder, value, target,
                            getIndices(map, loop, places[vector]),
                            /*nontemporal=*/false, getAlignment(memref));
    return;
  }
  for (auto [lane, element] : llvm::enumerate(lanes)) {
    Value place =
        builder.createOrFold<arith::AddIOp>(places[vector], constant(lane));
    memref::StoreOp::create(builder, element, target,
                            getIndices(map, loop, place));
  }
}

void RowEmitter::emitReduction(linalg::GenericOp op, unsigned loop) {
  IRMapping invariants = mapInvariants(op, loop);
  SmallVector<Operation *> combiners;
  SmallVector<Value> partials;
  for (unsigned index = 0; index < op.getNumDpsInits(); ++index) {
    combiners.push_back(getCombiner(op, index));
    partials.push_back(arith::ConstantOp::create(
        builder, *arith::getNeutralElement(combiners.back())));
  }
  for (int64_t vector = 0; vector < plan.vectorsPerThread; ++vector)
    partials = guard(vector, partials, [&] {
      SmallVector<Value> carried = partials;
      Vectors read = loadVectors(op, loop, vector);
      DenseMap<Operation *, Clone> clones;
      for (int64_t lane = 0; lane < plan.vectorLength; ++lane)
        carried =
            emitLane(op, loop, invariants, read, vector, lane, carried, clones);
      return carried;
    });
  // All threads read what is there before one of them, which has waited for
  // all, writes the sum.
  SmallVector<Value> before;
  for (OpOperand &output : op.getDpsInitsMutable())
    before.push_back(loadScalar(op, output));
  SmallVector<Value> totals = reduceBlock(builder, thread, combiners, partials);
  for (auto [index, output] : llvm::enumerate(op.getDpsInitsMutable()))
    storeScalar(
        op, output,
        combine(builder, combiners[index], before[index], totals[index]));
}

/// Returns the least multiple of `unit` that is not less than `number`;
/// `number` itself if it is known to be one.
static Value alignUp(OpBuilder &builder, Location loc, Value number,
                     int64_t unit) {
  std::optional<int64_t> known = getConstantIntValue(number);
  if (unit == 1 || (known && *known % unit == 0))
    return number;
  Value size = arith::ConstantIndexOp::create(builder, loc, unit);
  Value units = builder.createOrFold<arith::CeilDivUIOp>(loc, number, size);
  return builder.createOrFold<arith::MulIOp>(loc, units, size);
}

gpu::LaunchOp
fovea::emitRowKernel(OpBuilder &builder, scf::ForallOp forall,
                     const RowPlan &plan, Value items, Value length,
                     function_ref<SmallVector<Value>(Value item)> getIndices) {
  Location loc = forall.getLoc();
  // The row that begins when this one is done.
  auto prefetch = [&](const BlockThread &row, Value item) {
    Value ahead = arith::ConstantIndexOp::create(builder, loc, plan.rowsAhead);
    Value next = arith::AddIOp::create(builder, loc, item, ahead);
    Value exists = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, next, items);
    OpBuilder::InsertionGuard guard(builder);
    auto branch =
        scf::IfOp::create(builder, loc, exists, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
    RowEmitter emitter(builder, forall, plan, row, length);
    emitter.begin(getIndices(next));
    emitter.prefetch();
  };
  // Where the last rows are too few for a warp, the others of its lanes compute
  // the last row as well, and write nothing.
  Value padded = alignUp(builder, loc, items, plan.getRowsTogether());
  bool isPadded = padded != items;
  auto emit = [&](gpu::LaunchOp launch, Value item, Value thread) {
    BlockThread row(launch);
    row.id = thread;
    row.count = arith::ConstantIndexOp::create(builder, loc, plan.threads);
    Value isRow;
    if (isPadded) {
      isRow = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                    item, items);
      Value one = arith::ConstantIndexOp::create(builder, loc, 1);
      Value last = arith::SubIOp::create(builder, loc, items, one);
      item = arith::MinUIOp::create(builder, loc, item, last);
    }
    RowEmitter emitter(builder, forall, plan, row, length, isRow);
    emitter.begin(getIndices(item));
    emitter.preload();
    if (plan.rowsAhead > 0)
      prefetch(row, item);
    emitter.emit();
  };
  auto emitBlock = [&](gpu::LaunchOp launch, Value item, Value) {
    emit(launch, item, launch.getThreadIds().x);
    // The next row's sums use the same shared memory.
    gpu::BarrierOp::create(builder, loc);
  };
  gpu::LaunchOp launch =
      plan.blockThreads != plan.threads
          ? emitGroupLaunch(builder, loc, padded, machine::kLargestGrid,
                            plan.blockThreads, plan.threads, emit)
          : emitBlockLaunch(builder, loc, items, machine::kLargestGrid,
                            plan.threads, emitBlock);
  // Memory that is written is accessed through one memref, which the plan
  // ensures. Where rows are in registers, loads that go past stores would take
  // more registers.
  if (plan.preloaded.empty())
    launch->setAttr(machine::kDistinctMemoryAttrName, builder.getUnitAttr());
  if (plan.residentBlocks > 1)
    launch->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    builder.getI32IntegerAttr(plan.residentBlocks));
  return launch;
}
