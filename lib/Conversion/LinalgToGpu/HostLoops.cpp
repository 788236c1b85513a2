//===- HostLoops.cpp - Loops of scalar ops on memory ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of elements that are read at computed places are sums at such
// places, written as loops that add one term after another (`LoopNest.h`); and
// a parallel loop of one iteration leaves behind the loops that were in it.
//
//===----------------------------------------------------------------------===//

#include "HostLoops.h"

#include "Launch.h"
#include "PointLoops.h"
#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/Memory.h"
#include "fovea/Conversion/Utils/ReproducibleSum.h"

#include "fovea/Dialect/Machine/IR/Machine.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fovea;

/// The number of iterations up to which a loop in one thread needs no remark.
static constexpr int64_t kFewIterations = 256;

bool fovea::isScalarProgram(Operation *op) {
  if (!isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp>(op))
    return false;
  auto isMemRef = [](Type type) { return isa<BaseMemRefType>(type); };
  if (llvm::any_of(op->getResultTypes(), isMemRef))
    return false;
  bool touchesMemory = false;
  WalkResult walk = op->walk([&](Operation *nested) {
    Value memref;
    if (auto load = dyn_cast<memref::LoadOp>(nested))
      memref = load.getMemref();
    else if (auto store = dyn_cast<memref::StoreOp>(nested))
      memref = store.getMemref();
    if (memref) {
      touchesMemory = true;
      return isHostBuffer(memref) ? WalkResult::interrupt()
                                  : WalkResult::advance();
    }
    bool isScalar = isMemoryEffectFree(nested) ||
                    nested->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                    nested->hasTrait<OpTrait::IsTerminator>();
    return isScalar && !isa<scf::ForallOp>(nested) ? WalkResult::advance()
                                                   : WalkResult::interrupt();
  });
  return touchesMemory && !walk.wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Sums at computed places
//===----------------------------------------------------------------------===//

namespace {

/// A nest of loops in which each iteration adds a term to an element.
struct ScatterNest {
  SmallVector<scf::ForOp> loops;
  memref::LoadOp old;
  Operation *add = nullptr;
  memref::StoreOp store;
  Value term;

  bool isFloat() const { return isa<FloatType>(term.getType()); }
};

} // namespace

/// Finds the element that the store of `nest` adds to, and the term.
static bool matchAdd(ScatterNest &nest) {
  nest.add = nest.store.getValue().getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(nest.add) ||
      nest.add->getBlock() != nest.store->getBlock() || !nest.add->hasOneUse())
    return false;
  Type type = nest.store.getValue().getType();
  if (!type.isF32() && !type.isF64() && !type.isInteger(32) &&
      !type.isInteger(64))
    return false;
  for (unsigned side : {0, 1}) {
    auto load = nest.add->getOperand(side).getDefiningOp<memref::LoadOp>();
    if (!load || !load->hasOneUse() ||
        load->getBlock() != nest.store->getBlock() ||
        load.getMemref() != nest.store.getMemref() ||
        load.getIndices() != nest.store.getIndices())
      continue;
    nest.old = load;
    nest.term = nest.add->getOperand(1 - side);
    return true;
  }
  return false;
}

/// Returns the nest whose outermost loop is `outermost`, if its iterations
/// depend on one another by sums only.
static std::optional<ScatterNest> matchScatter(scf::ForOp outermost) {
  ScatterNest nest;
  SmallVector<memref::LoadOp> loads;
  for (scf::ForOp loop = outermost; loop;) {
    if (loop->getNumResults() != 0)
      return std::nullopt;
    for (Value bound :
         {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      if (outermost.getRegion().isAncestor(bound.getParentRegion()))
        return std::nullopt;
    nest.loops.push_back(loop);
    scf::ForOp inner;
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (isMemoryEffectFree(&op))
        continue;
      if (auto load = dyn_cast<memref::LoadOp>(op)) {
        loads.push_back(load);
        continue;
      }
      if (inner || nest.store)
        return std::nullopt;
      inner = dyn_cast<scf::ForOp>(op);
      nest.store = dyn_cast<memref::StoreOp>(op);
      if (!inner && !nest.store)
        return std::nullopt;
    }
    loop = inner;
  }
  if (!nest.store || !matchAdd(nest))
    return std::nullopt;
  Value sums = getBase(nest.store.getMemref());
  for (memref::LoadOp load : loads) {
    Value base = getBase(load.getMemref());
    bool isApart =
        isDistinct(base) || base.getDefiningOp<memref::GetGlobalOp>();
    if (load != nest.old && (base == sums || !isApart))
      return std::nullopt;
  }
  return isDistinct(sums) ? std::optional(nest) : std::nullopt;
}

namespace {

/// Emits the kernels of a nest.
class ScatterEmitter {
public:
  ScatterEmitter(OpBuilder &builder, ScatterNest &nest)
      : builder(builder), nest(nest), loc(nest.store.getLoc()) {}

  /// Computes the number of terms, in front of the nest.
  void begin();
  /// Adds the terms to the elements.
  void emitAtomic();
  /// Adds the terms to integers, and the sums of these to the elements.
  LogicalResult
  emitIntegers(function_ref<LogicalResult(linalg::LinalgOp)> convert);

private:
  using AddFn = function_ref<void(OpBuilder &builder, Value term, Value memref,
                                  ValueRange place)>;

  void emitTerms(Value wanted, AddFn add);
  linalg::GenericOp emitSums(const ReproducibleSum &integers, Value sums);

  OpBuilder &builder;
  ScatterNest &nest;
  Location loc;
  SmallVector<Value> sizes;
  Value items;
};

} // namespace

void ScatterEmitter::begin() {
  builder.setInsertionPoint(nest.loops.front());
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  for (scf::ForOp loop : nest.loops) {
    AffineExpr s0, s1, s2;
    bindSymbols(builder.getContext(), s0, s1, s2);
    OpFoldResult size = affine::makeComposedFoldedAffineApply(
        builder, loc, (s1 - s0).ceilDiv(s2),
        getAsOpFoldResult(
            {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()}));
    sizes.push_back(builder.createOrFold<arith::MaxSIOp>(
        loc, getValueOrCreateConstantIndexOp(builder, loc, size), zero));
  }
  items = getProduct(builder, loc, sizes);
}

/// Emits a kernel with a thread for each term, which calls `add` with the
/// values that `wanted` has in that thread.
void ScatterEmitter::emitTerms(Value wanted, AddFn add) {
  emitUnlessEmpty(builder, loc, items, [&] {
    emitItemLaunch(
        builder, loc, items, machine::kLargestGrid,
        [&](gpu::LaunchOp, Value item, Value) {
          IRMapping mapping;
          for (auto [loop, number] : llvm::zip_equal(
                   nest.loops, delinearize(builder, loc, item, sizes))) {
            Value offset = builder.createOrFold<arith::MulIOp>(loc, number,
                                                               loop.getStep());
            mapping.map(loop.getInductionVar(),
                        builder.createOrFold<arith::AddIOp>(
                            loc, loop.getLowerBound(), offset));
          }
          for (scf::ForOp loop : nest.loops)
            for (Operation &op : loop.getBody()->without_terminator())
              if (&op != nest.old && &op != nest.add && &op != nest.store &&
                  !llvm::is_contained(nest.loops, dyn_cast<scf::ForOp>(op)))
                builder.clone(op, mapping);
          SmallVector<Value> place;
          for (Value index : nest.store.getIndices())
            place.push_back(mapping.lookupOrDefault(index));
          add(builder, mapping.lookupOrDefault(wanted),
              mapping.lookupOrDefault(nest.store.getMemref()), place);
        });
  });
}

void ScatterEmitter::emitAtomic() {
  auto kind =
      nest.isFloat() ? arith::AtomicRMWKind::addf : arith::AtomicRMWKind::addi;
  emitTerms(nest.term,
            [&](OpBuilder &body, Value term, Value memref, ValueRange place) {
              memref::AtomicRMWOp::create(body, loc, kind, term, memref, place);
            });
}

/// Adds each sum in integers to its element.
linalg::GenericOp ScatterEmitter::emitSums(const ReproducibleSum &integers,
                                           Value sums) {
  Value target = nest.store.getMemref();
  auto type = cast<MemRefType>(target.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      builder, loc, ValueRange(), target, ArrayRef<AffineMap>{identity},
      iterators, [&](OpBuilder &body, Location loc, ValueRange old) {
        SmallVector<Value> place{Value()};
        for (int64_t dim = 0; dim < type.getRank(); ++dim)
          place.push_back(linalg::IndexOp::create(body, loc, dim));
        Value sum = integers.round(
            body, loc, [&](OpBuilder &b, Location l, Value number) -> Value {
              place.front() = number;
              return memref::LoadOp::create(b, l, sums, place);
            });
        Formula exact = {body, loc, body.getF64Type()};
        Value after = exact.add(exact.convert(old.front()), sum);
        linalg::YieldOp::create(
            body, loc, convertFloats(body, loc, after, type.getElementType()));
      });
}

LogicalResult ScatterEmitter::emitIntegers(
    function_ref<LogicalResult(linalg::LinalgOp)> convert) {
  // Terms that were widened need only the integers of the narrow type.
  Value term = nest.term;
  auto widened = term.getDefiningOp<arith::ExtFOp>();
  bool isNarrow =
      term.getType().isF32() ||
      (widened &&
       getElementTypeOrSelf(widened.getIn()).getIntOrFloatBitWidth() <= 32);
  if (widened)
    term = widened.getIn();
  FloatType added = isNarrow ? Float32Type::get(builder.getContext())
                             : cast<FloatType>(builder.getF64Type());
  ReproducibleSum integers(builder, loc, added, getAsOpFoldResult(items));
  Value target = nest.store.getMemref();
  SmallVector<OpFoldResult> shape{integers.getSize()};
  llvm::append_range(shape, memref::getMixedSizes(builder, loc, target));
  SmallVector<int64_t> staticShape;
  SmallVector<Value> dynamicShape;
  dispatchIndexOpFoldResults(shape, dynamicShape, staticShape);
  auto type = MemRefType::get(staticShape, builder.getI64Type());
  Value sums = memref::AllocOp::create(builder, loc, type, dynamicShape);
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, /*width=*/64);
  auto fill = linalg::FillOp::create(builder, loc, zero, sums);
  emitTerms(term, [&](OpBuilder &body, Value value, Value, ValueRange place) {
    integers.add(body, loc, convertFloats(body, loc, value, added), sums,
                 place);
  });
  linalg::GenericOp all = emitSums(integers, sums);
  memref::DeallocOp::create(builder, loc, sums);
  remark::passed(
      loc,
      remark::RemarkOpts::name("integers").category("convert-linalg-to-gpu"))
      << "terms are added in integers, so that their order does not matter";
  return success(succeeded(convert(fill)) && succeeded(convert(all)));
}

//===----------------------------------------------------------------------===//
// One thread
//===----------------------------------------------------------------------===//

/// Returns true if `op` is known to have few iterations.
static bool isShort(Operation *op) {
  int64_t iterations = 1;
  WalkResult walk = op->walk([&](Operation *nested) {
    if (isa<scf::WhileOp>(nested))
      return WalkResult::interrupt();
    auto loop = dyn_cast<scf::ForOp>(nested);
    if (!loop)
      return WalkResult::advance();
    std::optional<APInt> trips = loop.getStaticTripCount();
    if (!trips || trips->ugt(kFewIterations))
      return WalkResult::interrupt();
    iterations *= std::max<int64_t>(trips->getSExtValue(), 1);
    return iterations > kFewIterations ? WalkResult::interrupt()
                                       : WalkResult::advance();
  });
  return !walk.wasInterrupted();
}

/// Emits `op` as a kernel of one thread. The host and later kernels read its
/// results from memory.
static void emitThread(OpBuilder &builder, Operation *op) {
  Location loc = op->getLoc();
  builder.setInsertionPoint(op);
  SmallVector<Value> results;
  for (Type type : op->getResultTypes())
    results.push_back(
        memref::AllocOp::create(builder, loc, MemRefType::get({}, type)));
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  emitItemLaunch(builder, loc, one, machine::kLargestGrid,
                 [&](gpu::LaunchOp, Value, Value) {
                   Operation *clone = builder.clone(*op);
                   for (auto [value, memory] :
                        llvm::zip_equal(clone->getResults(), results))
                     memref::StoreOp::create(builder, loc, value, memory);
                 });
  for (auto [value, memory] : llvm::zip_equal(op->getResults(), results))
    value.replaceAllUsesWith(
        memref::LoadOp::create(builder, loc, memory).getResult());
  // The memory is freed behind the last kernel that may read it.
  builder.setInsertionPoint(op->getBlock()->getTerminator());
  for (Value memory : results)
    memref::DeallocOp::create(builder, loc, memory);
  op->erase();
}

LogicalResult fovea::convertScalarProgram(
    OpBuilder &builder, Operation *op, bool deterministic,
    function_ref<LogicalResult(linalg::LinalgOp)> convert) {
  auto loop = dyn_cast<scf::ForOp>(op);
  std::optional<ScatterNest> nest =
      loop ? matchScatter(loop) : std::optional<ScatterNest>();
  if (nest) {
    ScatterEmitter emitter(builder, *nest);
    emitter.begin();
    LogicalResult result = success();
    if (deterministic && nest->isFloat())
      result = emitter.emitIntegers(convert);
    else
      emitter.emitAtomic();
    op->erase();
    return result;
  }
  if (!isShort(op))
    remark::missed(op->getLoc(), remark::RemarkOpts::name("one-thread")
                                     .category("convert-linalg-to-gpu"))
        << "its iterations may depend on one another: one thread of the GPU "
           "runs them all";
  emitThread(builder, op);
  return success();
}
