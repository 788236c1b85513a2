//===- ParallelLoops.cpp - scf.forall as kernels --------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With a block for each iteration, all of its threads run the body; they share
// each op on memory and each loop that adds up integers, and there is a barrier
// behind it. All values that decide the flow of control are thus the same in
// all threads. Where a warp is enough for a body, a block has several, each
// with an iteration of its own: a multiprocessor takes no more than 32 blocks
// at a time, and each takes time to begin. Where one op of a few independent
// points is all that the body does, threads take points of all iterations.
//
//===----------------------------------------------------------------------===//

#include "ParallelLoops.h"

#include "ApartOps.h"
#include "BlockLoops.h"
#include "Launch.h"
#include "PointLoops.h"
#include "RowKernel.h"

#include "fovea/Analysis/Loops.h"
#include "fovea/Analysis/Memory.h"
#include "fovea/Dialect/Machine/IR/Machine.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fovea;

/// Bytes of the largest buffer that a thread has to itself, and of the largest
/// that all threads of a block share in shared memory.
static constexpr int64_t kThreadBuffer = 512;
static constexpr int64_t kSharedBuffer = 8 << 10;
/// Bytes of all buffers of a block in shared memory.
static constexpr int64_t kSharedTotal = 32 << 10;
/// The number of blocks of a kernel whose buffers are in memory: where threads
/// have buffers, and where blocks have them.
static constexpr int64_t kThreadBufferGrid = 128;
static constexpr int64_t kBlockBufferGrid = 1024;
/// Bytes that buffers in memory are aligned to.
static constexpr int64_t kBufferAlignment = 64;
/// The most threads of a block, and the elements that one thread should have to
/// do.
static constexpr int64_t kMostThreads = 512;
static constexpr int64_t kUsualThreads = 256;
/// The iterations of a block where each takes a warp, and the blocks of a
/// multiprocessor, which has no room for many more: iterations that have
/// nothing to do take little time then.
static constexpr int64_t kWarpsOfBlock = 4;
static constexpr int64_t kWarpBlocksOfCore = 8;
static constexpr int64_t kElementsPerThread = 4;
/// The steps of a loop that threads share, where they are not known.
static constexpr int64_t kUsualSteps = 128;
/// The most points of an iteration that are threads' items of their own.
static constexpr int64_t kMostPoints = 1024;

static int64_t getElementBytes(Type type) {
  return type.isIndex() ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

/// The bytes of a buffer of static size, else none.
static std::optional<int64_t> getStaticBytes(MemRefType type) {
  if (!type.hasStaticShape())
    return std::nullopt;
  return type.getNumElements() * getElementBytes(type.getElementType());
}

namespace {

class LoopConverter {
public:
  LoopConverter(OpBuilder &builder, scf::ForallOp forall)
      : builder(builder), forall(forall), loc(forall.getLoc()) {}

  LogicalResult convert();

private:
  /// Memory for the buffers that an allocation in the body makes.
  struct Workspace {
    memref::AllocOp alloc;
    Value memory;
    /// The bytes for each thread or block.
    Value bytes;
  };

  SmallVector<Value> getValues(ArrayRef<OpFoldResult> values) {
    return llvm::map_to_vector(values, [&](OpFoldResult value) {
      return getValueOrCreateConstantIndexOp(builder, loc, value);
    });
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  void prepareBody();
  bool readsTogether();
  int64_t chooseThreads();
  void chooseBuffers();
  bool canShareBlock() const;
  LogicalResult createWorkspaces(Value items);
  SmallVector<Value> getIndices(Value item);
  LogicalResult emitLoop(Value items);
  LogicalResult emitRowsOrBlocks(Value items);
  linalg::GenericOp findPointOp();
  void emitPoints(Value items, linalg::GenericOp op,
                  ArrayRef<OpFoldResult> bounds);
  void emitBody(gpu::LaunchOp launch, Value item, Value slot);
  void placeBuffer(gpu::LaunchOp launch, memref::AllocOp alloc,
                   memref::AllocOp original, Value slot);
  void shareBody(gpu::LaunchOp launch);
  void emitBarrier(OpBuilder &builder) const;

  OpBuilder &builder;
  scf::ForallOp forall;
  Location loc;
  /// True if each iteration has a block, or a warp of one, not a thread.
  bool isByBlocks = false, isByWarps = false;
  SmallVector<Value> lowers, steps, sizes;
  /// Allocations that become buffers of a thread, or of a block in shared
  /// memory.
  DenseSet<Operation *> onChip;
  SmallVector<Workspace> workspaces;
};

} // namespace

LogicalResult LoopConverter::convert() {
  builder.setInsertionPoint(forall);
  prepareBody();
  lowers = getValues(forall.getMixedLowerBound());
  steps = getValues(forall.getMixedStep());
  for (auto [lower, upper, step] :
       llvm::zip_equal(lowers, getValues(forall.getMixedUpperBound()), steps)) {
    AffineExpr s0, s1, s2;
    bindSymbols(builder.getContext(), s0, s1, s2);
    OpFoldResult size = affine::makeComposedFoldedAffineApply(
        builder, loc, (s1 - s0).ceilDiv(s2),
        {getAsOpFoldResult(lower), getAsOpFoldResult(upper),
         getAsOpFoldResult(step)});
    Value trips = getValueOrCreateConstantIndexOp(builder, loc, size);
    sizes.push_back(
        builder.createOrFold<arith::MaxSIOp>(loc, trips, constant(0)));
  }
  chooseBuffers();
  Value items = getProduct(builder, loc, sizes);
  LogicalResult result = success();
  emitUnlessEmpty(builder, loc, items, [&] {
    result = isByBlocks ? emitRowsOrBlocks(items) : emitLoop(items);
  });
  if (succeeded(result))
    forall.erase();
  return result;
}

/// Emits a kernel that keeps rows in registers, where possible, and another
/// kernel where that depends on sizes and addresses.
LogicalResult LoopConverter::emitRowsOrBlocks(Value items) {
  std::optional<RowPlan> plan = planRows(forall);
  if (!plan)
    return emitLoop(items);
  Value length;
  if (plan->length) {
    length = constant(*plan->length);
  } else {
    FailureOr<OpFoldResult> size = arith::reifyShapedValueDimBound(
        builder, loc, presburger::BoundType::EQ, plan->lengthSource,
        plan->lengthDim,
        [&](Value value, std::optional<int64_t>, ValueBoundsConstraintSet &) {
          return !forall.getRegion().isAncestor(value.getParentRegion());
        });
    if (failed(size))
      return emitLoop(items);
    length = getValueOrCreateConstantIndexOp(builder, loc, *size);
  }
  auto emitRows = [&] {
    emitRowKernel(builder, forall, *plan, items, length,
                  [&](Value item) { return getIndices(item); });
  };
  Value condition = emitRowCondition(builder, loc, *plan, length);
  if (!condition) {
    emitRows();
    return success();
  }
  auto branch =
      scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  emitRows();
  builder.setInsertionPointToStart(branch.elseBlock());
  // There may be few rows that are long.
  std::optional<unsigned> loop = plan->rowLoops.front();
  if (linalg::GenericOp op = loop && !plan->length ? findPointOp() : nullptr) {
    SmallVector<OpFoldResult> bounds(op.getNumLoops(), builder.getIndexAttr(1));
    bounds[*loop] = length;
    emitPoints(items, op, bounds);
    return success();
  }
  return emitLoop(items);
}

/// Returns the only op of the body that writes memory, if its points are apart;
/// else null.
linalg::GenericOp LoopConverter::findPointOp() {
  linalg::GenericOp found;
  MemoryUse loads;
  for (Operation &op : forall.getBody()->without_terminator()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (found)
        return {};
      found = generic;
    } else if (isa<memref::LoadOp>(op) ? !loads.add(&op)
                                       : op.getNumRegions() || !isPure(&op)) {
      return {};
    }
  }
  MemoryUse own;
  if (!found || found.getNumDpsInits() == 0 || found.getNumReductionLoops() ||
      !writesApart(found) || !own.add(found) ||
      llvm::any_of(loads.reads,
                   [&](Value base) { return own.writes.contains(base); }))
    return {};
  return found;
}

/// Returns bounds of the loops of `op`, none if they are not known or its
/// points are not few.
static SmallVector<OpFoldResult> findFewPoints(linalg::GenericOp op) {
  // A loop's size is that of an operand's dimension.
  Builder builder(op.getContext());
  SmallVector<OpFoldResult> bounds;
  int64_t points = 1;
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim) {
    SmallVector<std::pair<Value, unsigned>> places;
    op.mapIterationSpaceDimToAllOperandDims(dim, places);
    FailureOr<int64_t> bound = failure();
    for (auto [memref, place] : places)
      if (failed(bound) && isa<MemRefType>(memref.getType()))
        bound = ValueBoundsConstraintSet::computeConstantBound(
            presburger::BoundType::UB, {memref, int64_t(place)},
            /*stopCondition=*/nullptr, /*closedUB=*/true);
    if (failed(bound) || *bound <= 0 || *bound > kMostPoints)
      return {};
    bounds.push_back(builder.getIndexAttr(*bound));
    points *= *bound;
    if (points > kMostPoints)
      return {};
  }
  return bounds;
}

/// Emits a kernel with a thread for each point of each iteration, which has at
/// most as many as the `bounds` of its loops say.
void LoopConverter::emitPoints(Value items, linalg::GenericOp op,
                               ArrayRef<OpFoldResult> bounds) {
  SmallVector<Value> limits = getValues(bounds);
  Value points = getProduct(builder, loc, limits);
  Value all = builder.createOrFold<arith::MulIOp>(loc, items, points);
  emitItemLaunch(
      builder, loc, all, machine::kLargestGrid,
      [&](gpu::LaunchOp, Value item, Value) {
        IRMapping mapping;
        mapping.map(forall.getInductionVars(),
                    getIndices(builder.createOrFold<arith::DivUIOp>(loc, item,
                                                                    points)));
        SmallVector<Value> ivs = delinearize(
            builder, loc,
            builder.createOrFold<arith::RemUIOp>(loc, item, points), limits);
        for (Operation &other : forall.getBody()->without_terminator())
          if (&other != op)
            builder.clone(other, mapping);
        auto own = cast<linalg::GenericOp>(builder.clone(*op, mapping));
        builder.setInsertionPoint(own);
        SmallVector<Value> sizes = getLoopSizes(builder, own);
        Value isPoint;
        for (auto [iv, size, bound] : llvm::zip_equal(ivs, sizes, bounds)) {
          if (isEqualConstantIntOrValue(size, bound))
            continue;
          Value isInside = arith::CmpIOp::create(
              builder, loc, arith::CmpIPredicate::ult, iv, size);
          isPoint = isPoint
                        ? arith::AndIOp::create(builder, loc, isPoint, isInside)
                        : isInside;
        }
        if (isPoint) {
          auto branch = scf::IfOp::create(builder, loc, isPoint,
                                          /*withElseRegion=*/false);
          builder.setInsertionPoint(branch.thenBlock()->getTerminator());
        }
        emitPoint(builder, own, sizes, ivs);
        own.erase();
      });
}

/// Emits a kernel with an iteration a block or a thread.
LogicalResult LoopConverter::emitLoop(Value items) {
  if (linalg::GenericOp op = isByBlocks ? findPointOp() : nullptr)
    if (SmallVector<OpFoldResult> bounds = findFewPoints(op); !bounds.empty()) {
      emitPoints(items, op, bounds);
      return success();
    }
  if (failed(createWorkspaces(items)))
    return failure();
  auto emit = [&](gpu::LaunchOp launch, Value item, Value slot) {
    emitBody(launch, item, slot);
  };
  int64_t threads = chooseThreads(),
          cores = machine::getGpuOrDefault(forall).getCores();
  isByWarps = isByBlocks && threads == machine::kWarpSize &&
              workspaces.empty() && canShareBlock() &&
              getConstantIntValue(items).value_or(cores + 1) > cores;
  if (isByWarps)
    shareBody(emitGroupLaunch(builder, loc, items, kWarpBlocksOfCore * cores,
                              kWarpsOfBlock * machine::kWarpSize,
                              machine::kWarpSize, emit));
  else if (isByBlocks)
    shareBody(emitBlockLaunch(builder, loc, items,
                              workspaces.empty() ? machine::kLargestGrid
                                                 : kBlockBufferGrid,
                              threads, emit));
  else
    emitItemLaunch(
        builder, loc, items,
        workspaces.empty() ? machine::kLargestGrid : kThreadBufferGrid, emit);
  for (Workspace &workspace : workspaces)
    memref::DeallocOp::create(builder, loc, workspace.memory);
  return success();
}

/// Returns the neutral element of an op on integers that can be regrouped; null
/// for other ops. (That of MLIR's arith has no width for `index`.)
static TypedAttr getNeutralInteger(Operation *op) {
  using Kind = arith::AtomicRMWKind;
  std::optional<Kind> kind =
      TypeSwitch<Operation *, std::optional<Kind>>(op)
          .Case([](arith::AddIOp) { return Kind::addi; })
          .Case([](arith::AndIOp) { return Kind::andi; })
          .Case([](arith::OrIOp) { return Kind::ori; })
          .Case([](arith::MinSIOp) { return Kind::mins; })
          .Case([](arith::MaxSIOp) { return Kind::maxs; })
          .Default(std::nullopt);
  if (!kind)
    return {};
  OpBuilder builder(op->getContext());
  Type type = op->getResult(0).getType();
  auto neutral = cast<IntegerAttr>(arith::getIdentityValueAttr(
      *kind, type.isIndex() ? builder.getI64Type() : type, builder,
      op->getLoc()));
  return builder.getIntegerAttr(type, neutral.getValue());
}

/// Returns the ops that combine each iteration of `loop` with those before it,
/// one for each result, if the order of iterations makes no difference; else
/// none. The body writes no memory.
static SmallVector<Operation *> getCombiners(scf::ForOp loop) {
  auto isShared = [](Operation &op) {
    return isa<scf::YieldOp, memref::LoadOp>(op) ||
           (op.getNumRegions() == 0 && isMemoryEffectFree(&op));
  };
  SmallVector<Operation *> combiners;
  if (!llvm::all_of(*loop.getBody(), isShared))
    return combiners;
  for (auto [index, result] : llvm::enumerate(loop.getResults())) {
    SmallVector<Operation *> found;
    if (!matchReduction(loop.getRegionIterArgs(), index, found) ||
        found.size() != 1 || !getNeutralInteger(found.front()))
      return {};
    combiners.push_back(found.front());
  }
  return combiners;
}

/// Lets each thread take every so manyth iteration of a loop.
static void shareIterations(RewriterBase &rewriter, const BlockThread &thread,
                            scf::ForOp loop) {
  Location loc = loop.getLoc();
  rewriter.setInsertionPoint(loop);
  Value step = loop.getStep();
  Value first = arith::AddIOp::create(
      rewriter, loc, loop.getLowerBound(),
      arith::MulIOp::create(rewriter, loc, thread.id, step));
  Value stride = arith::MulIOp::create(rewriter, loc, thread.count, step);
  loop.setLowerBound(first);
  loop.setStep(stride);
}

/// Shares the iterations of a loop with these combiners among the threads,
/// which have to meet behind it.
static void shareReduction(RewriterBase &rewriter, const BlockThread &thread,
                           scf::ForOp loop, ArrayRef<Operation *> combiners) {
  Location loc = loop.getLoc();
  shareIterations(rewriter, thread, loop);
  SmallVector<Value> inits(loop.getInitArgs());
  for (auto [index, combiner] : llvm::enumerate(combiners)) {
    Value neutral =
        arith::ConstantOp::create(rewriter, loc, getNeutralInteger(combiner));
    loop.getInitArgsMutable()[index].set(neutral);
  }
  rewriter.setInsertionPointAfter(loop);
  // The loop's own partial results become operands of the sums' ops only.
  SmallVector<SmallVector<OpOperand *>> uses;
  SmallVector<Operation *> needed;
  SmallVector<Value> partials, neededInits;
  for (auto [init, combiner, result] :
       llvm::zip_equal(inits, combiners, loop.getResults())) {
    if (result.use_empty())
      continue;
    needed.push_back(combiner);
    neededInits.push_back(init);
    partials.push_back(result);
    uses.push_back(llvm::map_to_vector(result.getUses(),
                                       [](OpOperand &use) { return &use; }));
  }
  SmallVector<Value> totals = reduceBlock(rewriter, thread, needed, partials);
  for (auto [init, combiner, total, ofResult] :
       llvm::zip_equal(neededInits, needed, totals, uses)) {
    Value sum = combine(rewriter, combiner, init, total);
    for (OpOperand *use : ofResult)
      use->set(sum);
  }
}

/// Returns true if `copy` copies memory to itself, whatever branch was taken.
static bool isOfSame(memref::CopyOp copy) {
  Value source = copy.getSource(), target = copy.getTarget();
  auto result = dyn_cast<OpResult>(source);
  auto branch = source.getDefiningOp<scf::IfOp>();
  if (!branch)
    return source == target;
  return branch.thenYield().getOperand(result.getResultNumber()) == target &&
         branch.elseYield().getOperand(result.getResultNumber()) == target;
}

/// Returns the most iterations that `loop` has, if that is known.
static std::optional<int64_t> getMostSteps(scf::ForOp loop) {
  if (std::optional<APInt> trips = loop.getStaticTripCount())
    return trips->getSExtValue();
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  if (lower != 0 || getConstantIntValue(loop.getStep()) != 1)
    return std::nullopt;
  FailureOr<int64_t> upper = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, loop.getUpperBound(),
      /*stopCondition=*/nullptr, /*closedUB=*/true);
  if (failed(upper))
    return std::nullopt;
  return *upper;
}

/// Returns true if the body is numbers of one thread, whose loops begin at the
/// same place in all iterations: threads that have neighbours of these read the
/// same elements at a time, where those that share an iteration wait for each
/// other.
bool LoopConverter::readsTogether() {
  SmallVector<OpFoldResult> upper = forall.getMixedUpperBound();
  if (upper.empty() ||
      getConstantIntValue(upper.back()).value_or(0) < machine::kWarpSize)
    return false;
  bool hasLoop = false;
  WalkResult result = forall.getBody()->walk([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      hasLoop = true;
      if (getCombiners(loop).empty() ||
          !getConstantIntValue(loop.getLowerBound()))
        return WalkResult::interrupt();
    }
    return isa<linalg::LinalgOp, memref::AllocOp>(op) ? WalkResult::interrupt()
                                                      : WalkResult::advance();
  });
  return hasLoop && !result.wasInterrupted();
}

/// Leaves `linalg.generic` as the only op on memory that threads can share.
void LoopConverter::prepareBody() {
  IRRewriter rewriter(builder.getContext());
  SmallVector<Operation *> ops;
  forall.getBody()->walk([&](Operation *op) {
    if (isa<linalg::LinalgOp, memref::CopyOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    rewriter.setInsertionPoint(op);
    if (auto copy = dyn_cast<memref::CopyOp>(op)) {
      if (!isOfSame(copy))
        createCopy(rewriter, copy);
      rewriter.eraseOp(copy);
    } else if (!isa<linalg::GenericOp>(op)) {
      [[maybe_unused]] FailureOr<linalg::GenericOp> generic =
          linalg::generalizeNamedOp(rewriter, cast<linalg::LinalgOp>(op));
    }
  }
  isByBlocks = !ops.empty() && !readsTogether();
}

int64_t LoopConverter::chooseThreads() {
  int64_t most = 1;
  auto isOfBlock = [&](memref::LoadOp read) {
    auto buffer = read.getMemRef().getDefiningOp<memref::AllocOp>();
    return buffer && forall->isProperAncestor(buffer);
  };
  forall.getBody()->walk([&](linalg::LinalgOp op) {
    SmallVector<int64_t> sizes = op.getStaticLoopRanges();
    auto count = [&](auto &&dims) {
      int64_t elements = 1;
      for (unsigned dim : dims)
        elements *= ShapedType::isDynamic(sizes[dim])
                        ? kUsualThreads * kElementsPerThread
                        : std::max<int64_t>(sizes[dim], 1);
      return elements;
    };
    int64_t elements = count(llvm::seq<unsigned>(0, sizes.size()));
    // Threads share the terms of one point only.
    if (int64_t points = count(getPointDims(op)); points > 1)
      elements = std::min(elements, points * kElementsPerThread);
    // A point with loops or branches, or with reads of its own, takes long, but
    // for what the block has computed.
    if (llvm::any_of(*op.getBlock(), [&](Operation &inner) {
          auto read = dyn_cast<memref::LoadOp>(inner);
          return inner.getNumRegions() || (read && !isOfBlock(read));
        }))
      elements =
          std::max(elements, count(getPointDims(op)) * kElementsPerThread);
    most = std::max(most, elements);
  });
  int64_t threads = llvm::divideCeil(most, kElementsPerThread);
  // A loop waits for memory in each step.
  forall.getBody()->walk([&](scf::ForOp loop) {
    if (loop.getNumResults() == 0 || getCombiners(loop).empty())
      return;
    int64_t steps = getMostSteps(loop).value_or(kUsualSteps);
    threads = std::max(threads, std::min(steps, kUsualThreads));
  });
  threads = llvm::alignTo(threads, machine::kWarpSize);
  return std::clamp(threads, machine::kWarpSize, kMostThreads);
}

void LoopConverter::chooseBuffers() {
  int64_t total = 0;
  forall.walk([&](memref::AllocOp alloc) {
    std::optional<int64_t> bytes = getStaticBytes(alloc.getType());
    if (!bytes || *bytes > (isByBlocks ? kSharedBuffer : kThreadBuffer))
      return;
    if (isByBlocks && total + *bytes > kSharedTotal)
      return;
    total += *bytes;
    onChip.insert(alloc);
  });
}

/// Returns true if a block's shared memory has room for the buffers of several
/// iterations, which ops can access at any place.
bool LoopConverter::canShareBlock() const {
  int64_t bytes = 0;
  for (Operation *alloc : onChip) {
    bytes += *getStaticBytes(cast<memref::AllocOp>(alloc).getType());
    if (!llvm::all_of(alloc->getUsers(),
                      llvm::IsaPred<linalg::LinalgOp, memref::LoadOp,
                                    memref::StoreOp, memref::DeallocOp>))
      return false;
  }
  return bytes * kWarpsOfBlock <= kSharedTotal;
}

/// Allocates memory for the buffers of the body that are not on the chip.
LogicalResult LoopConverter::createWorkspaces(Value items) {
  SmallVector<memref::AllocOp> allocations;
  forall.walk([&](memref::AllocOp alloc) {
    if (!onChip.contains(alloc))
      allocations.push_back(alloc);
  });
  if (allocations.empty())
    return success();
  Value slots;
  if (isByBlocks) {
    slots =
        arith::MinUIOp::create(builder, loc, items, constant(kBlockBufferGrid));
  } else {
    Value blocks =
        arith::CeilDivUIOp::create(builder, loc, items, constant(kItemBlock));
    blocks = arith::MinUIOp::create(builder, loc, blocks,
                                    constant(kThreadBufferGrid));
    slots = arith::MulIOp::create(builder, loc, blocks, constant(kItemBlock));
  }
  for (memref::AllocOp alloc : allocations) {
    SmallVector<Value> bounds;
    for (auto [dim, size] : llvm::enumerate(alloc.getMixedSizes())) {
      FailureOr<OpFoldResult> bound = arith::reifyValueBound(
          builder, loc, presburger::BoundType::UB,
          ValueBoundsConstraintSet::Variable(size),
          [&](Value value, std::optional<int64_t>, ValueBoundsConstraintSet &) {
            return !forall.getRegion().isAncestor(value.getParentRegion());
          },
          /*closedUB=*/true);
      if (failed(bound))
        return alloc.emitOpError()
               << "in a parallel loop has no bound on its size in dimension "
               << dim << " that is known before the loop, which a GPU needs";
      bounds.push_back(getValueOrCreateConstantIndexOp(builder, loc, *bound));
    }
    Value bytes = arith::MulIOp::create(
        builder, loc, getProduct(builder, loc, bounds),
        constant(getElementBytes(alloc.getType().getElementType())));
    bytes = arith::CeilDivUIOp::create(builder, loc, bytes,
                                       constant(kBufferAlignment));
    bytes =
        arith::MulIOp::create(builder, loc, bytes, constant(kBufferAlignment));
    Value total = arith::MulIOp::create(builder, loc, bytes, slots);
    auto type = MemRefType::get(ShapedType::kDynamic, builder.getI8Type());
    Value memory = memref::AllocOp::create(
        builder, loc, type, total, builder.getI64IntegerAttr(kBufferAlignment));
    workspaces.push_back({alloc, memory, bytes});
  }
  return success();
}

/// The induction variables of the iteration with this number.
SmallVector<Value> LoopConverter::getIndices(Value item) {
  SmallVector<Value> indices = delinearize(builder, loc, item, sizes);
  for (auto [index, lower, step] : llvm::zip_equal(indices, lowers, steps)) {
    index = builder.createOrFold<arith::MulIOp>(loc, index, step);
    index = builder.createOrFold<arith::AddIOp>(loc, lower, index);
  }
  return indices;
}

/// Clones the body for the iteration `item` in the thread or block `slot`.
void LoopConverter::emitBody(gpu::LaunchOp launch, Value item, Value slot) {
  IRMapping mapping;
  mapping.map(forall.getInductionVars(), getIndices(item));
  // The clones of allocations are in the order of the originals.
  SmallVector<memref::AllocOp> originals;
  forall.getBody()->walk(
      [&](memref::AllocOp alloc) { originals.push_back(alloc); });
  SmallVector<Operation *> clones;
  for (Operation &op : forall.getBody()->without_terminator())
    clones.push_back(builder.clone(op, mapping));
  size_t next = 0;
  SmallVector<Operation *> dead;
  for (Operation *clone : clones)
    clone->walk([&](Operation *op) {
      if (auto alloc = dyn_cast<memref::AllocOp>(op))
        placeBuffer(launch, alloc, originals[next++], slot);
      if (isa<memref::AllocOp, memref::DeallocOp>(op))
        dead.push_back(op);
    });
  for (Operation *op : dead)
    op->erase();
}

/// Returns the element of `all`, in its first dimension, that is the thread's
/// warp's.
static Value takeWarpsOwn(OpBuilder &builder, gpu::LaunchOp launch, Value all) {
  Location loc = launch.getLoc();
  auto type = cast<MemRefType>(all.getType());
  Value lanes =
      arith::ConstantIndexOp::create(builder, loc, machine::kWarpSize);
  Value warp =
      arith::DivUIOp::create(builder, loc, launch.getThreadIds().x, lanes);
  SmallVector<OpFoldResult> place(type.getRank(), builder.getIndexAttr(0)),
      ones(type.getRank(), builder.getIndexAttr(1)),
      sizes = getAsIndexOpFoldResult(builder.getContext(), type.getShape());
  place.front() = warp;
  sizes.front() = ones.front();
  return memref::SubViewOp::create(
      builder, loc,
      memref::SubViewOp::inferRankReducedResultType(
          type.getShape().drop_front(), type, place, sizes, ones),
      all, place, sizes, ones);
}

void LoopConverter::placeBuffer(gpu::LaunchOp launch, memref::AllocOp alloc,
                                memref::AllocOp original, Value slot) {
  OpBuilder inner(alloc);
  MemRefType type = alloc.getType();
  Value buffer;
  if (!onChip.contains(original)) {
    Workspace &workspace = *llvm::find_if(
        workspaces, [&](Workspace &other) { return other.alloc == original; });
    Value offset = arith::MulIOp::create(inner, loc, slot, workspace.bytes);
    buffer = memref::ViewOp::create(inner, loc, type, workspace.memory, offset,
                                    alloc.getDynamicSizes());
  } else if (!isByBlocks) {
    inner.setInsertionPointToStart(&launch.getBody().front());
    buffer = memref::AllocaOp::create(inner, loc, type, ValueRange(),
                                      inner.getI64IntegerAttr(16));
  } else {
    auto space = gpu::AddressSpaceAttr::get(inner.getContext(),
                                            gpu::AddressSpace::Workgroup);
    SmallVector<int64_t> shape(type.getShape());
    if (isByWarps)
      shape.insert(shape.begin(), kWarpsOfBlock);
    Value shared = launch.addWorkgroupAttribution(
        MemRefType::get(shape, type.getElementType(),
                        MemRefLayoutAttrInterface(), space),
        loc);
    buffer = memref::MemorySpaceCastOp::create(
        inner, loc, MemRefType::get(shape, type.getElementType()), shared);
    if (isByWarps)
      buffer = takeWarpsOwn(inner, launch, buffer);
  }
  alloc.replaceAllUsesWith(buffer);
}

/// Returns true if the iterations of a loop do nothing but store once, each at
/// a place of its own.
static bool storesApart(scf::ForOp loop) {
  auto ops = loop.getBody()->without_terminator();
  auto stores = llvm::make_filter_range(
      ops, [](Operation &op) { return isa<memref::StoreOp>(op); });
  if (loop.getNumResults() != 0 || !llvm::hasSingleElement(stores))
    return false;
  auto store = cast<memref::StoreOp>(*stores.begin());
  return loop.isDefinedOutsideOfLoop(store.getMemRef()) &&
         llvm::is_contained(store.getIndices(), loop.getInductionVar()) &&
         llvm::all_of(ops, [&](Operation &op) {
           return &op == store ||
                  (op.getNumRegions() == 0 && isMemoryEffectFree(&op));
         });
}

/// Returns true if `next` is the first op behind `op` that has an effect.
static bool isNextEffect(Operation *op, Operation *next) {
  for (Operation *other = op->getNextNode(); other;
       other = other->getNextNode()) {
    if (other == next)
      return true;
    if (!isMemoryEffectFree(other))
      return false;
  }
  return false;
}

/// Lets the threads of an iteration meet, and see what the others have written.
void LoopConverter::emitBarrier(OpBuilder &builder) const {
  if (!isByWarps) {
    gpu::BarrierOp::create(builder, loc);
    return;
  }
  Value all = arith::ConstantIntOp::create(builder, loc, -1, /*width=*/32);
  NVVM::SyncWarpOp::create(builder, loc, all);
}

/// Shares the ops on memory in the body among the threads of the block.
void LoopConverter::shareBody(gpu::LaunchOp launch) {
  IRRewriter rewriter(launch.getContext());
  SmallVector<scf::ForallOp> loops;
  launch.walk([&](scf::ForallOp inner) { loops.push_back(inner); });
  for (scf::ForallOp inner : loops) {
    rewriter.setInsertionPoint(inner);
    [[maybe_unused]] LogicalResult converted =
        scf::forallToForLoop(rewriter, inner);
  }
  // That the number of threads is known spares loops, and the way through
  // memory.
  BlockThread thread(launch);
  thread.count = launch.getBlockSizeX();
  if (isByWarps) {
    rewriter.setInsertionPointToStart(&launch.getBody().front());
    thread.count =
        arith::ConstantIndexOp::create(rewriter, loc, machine::kWarpSize);
    thread.id = arith::RemUIOp::create(rewriter, loc, thread.id, thread.count);
  }
  SmallVector<scf::ForOp> reductions;
  launch.walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && loop.getNumResults() != 0 && !getCombiners(loop).empty())
      reductions.push_back(loop);
    // Only some threads may be in a branch.
    return isa<scf::IfOp, linalg::LinalgOp>(op) ? WalkResult::skip()
                                                : WalkResult::advance();
  });
  SmallVector<Operation *> ops;
  launch.walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    bool isWhole = isa<linalg::LinalgOp>(op) || (loop && storesApart(loop));
    if (isWhole || isa<memref::StoreOp>(op))
      ops.push_back(op);
    return isWhole ? WalkResult::skip() : WalkResult::advance();
  });
  for (scf::ForOp loop : reductions) {
    shareReduction(rewriter, thread, loop, getCombiners(loop));
    emitBarrier(rewriter);
  }
  ApartOps apart;
  for (size_t at = 0; at < ops.size(); ++at) {
    Operation *op = ops[at];
    if (auto generic = dyn_cast<linalg::LinalgOp>(op)) {
      auto next = at + 1 < ops.size() ? dyn_cast<linalg::LinalgOp>(ops[at + 1])
                                      : linalg::LinalgOp();
      bool goesOn = apart.add(generic) && next && isNextEffect(op, next) &&
                    apart.allow(next);
      rewriter.setInsertionPoint(op);
      emitBlockLoops(rewriter, thread, generic);
      if (!goesOn) {
        emitBarrier(rewriter);
        apart = ApartOps();
      }
      rewriter.eraseOp(op);
      continue;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      shareIterations(rewriter, thread, loop);
      rewriter.setInsertionPointAfter(loop);
      emitBarrier(rewriter);
      continue;
    }
    // One thread stores, with one barrier for all that nothing comes between.
    SmallVector<Operation *> stores = {op};
    while (at + 1 < ops.size() && isa<memref::StoreOp>(ops[at + 1]) &&
           isNextEffect(stores.back(), ops[at + 1]))
      stores.push_back(ops[++at]);
    rewriter.setInsertionPoint(stores.back());
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    Value isFirst = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::eq, thread.id, zero);
    auto branch = scf::IfOp::create(rewriter, loc, isFirst,
                                    /*withElseRegion=*/false);
    for (Operation *store : stores)
      store->moveBefore(branch.thenBlock()->getTerminator());
    rewriter.setInsertionPointAfter(branch);
    emitBarrier(rewriter);
  }
}

LogicalResult fovea::convertParallelLoop(OpBuilder &builder,
                                         scf::ForallOp forall) {
  return LoopConverter(builder, forall).convert();
}
