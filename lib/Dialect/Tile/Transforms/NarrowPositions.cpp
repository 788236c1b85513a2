//===- NarrowPositions.cpp - Loops over positions in 32 bits --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A register has 32 bits: to add or compare numbers of 64 takes two
// instructions, in each step of each warp. MLIR's range analysis knows which
// numbers fit, if it is told what sizes are.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"
#include "fovea/Support/MaxPosition.h"

#include "mlir/Analysis/DataFlow/ConstantPropagationAnalysis.h"
#include "mlir/Analysis/DataFlow/DeadCodeAnalysis.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SmallBitVector.h"

#define DEBUG_TYPE "tile-narrow-positions"

namespace fovea::tile {
#define GEN_PASS_DEF_TILENARROWPOSITIONS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;
using dataflow::IntegerRangeAnalysis;
using dataflow::IntegerValueRangeLattice;

namespace {
/// Numbers in 64 bits that a role publishes for others, and that fit in 32.
struct NarrowNumbers {
  SmallVector<PublishOp> publishes;
  SmallVector<ReadNumbersOp> reads;
  llvm::SmallBitVector areNarrow;
};

struct NarrowPositions
    : fovea::tile::impl::TileNarrowPositionsBase<NarrowPositions> {
  void runOnOperation() override;
};

} // namespace

/// Returns true if programs copy tiles of `shaped`, as of attention's operands:
/// other tensors that they read, as tables of a mask, may have any size.
static bool hasTiles(Value shaped) {
  auto isTile = [](Operation *user) {
    return isa<LoadOp, LoadAsyncOp, StoreOp, StoreAsyncOp>(user);
  };
  return llvm::any_of(shaped.getUses(), [&](OpOperand &use) {
    auto launch = dyn_cast<LaunchOp>(use.getOwner());
    bool isShaped = launch && isa<ShapedType>(use.get().getType());
    return isShaped
               ? llvm::any_of(launch.getTiedArgument(use).getUsers(), isTile)
               : isTile(use.getOwner());
  });
}

/// Returns all ops that may publish the numbers, or none if that is not known.
static SmallVector<PublishOp> getPublishes(ReadNumbersOp read) {
  SmallVector<PublishOp> found;
  auto wait = read.getSource().getDefiningOp<WaitOp>();
  if (!wait)
    return found;
  for (Operation *user : wait.getRing().getUsers()) {
    auto publish = dyn_cast<PublishOp>(user);
    if (!publish)
      continue;
    if (publish.getNumbers().size() != read.getNumbers().size())
      return {};
    found.push_back(publish);
  }
  return found;
}

namespace {
/// Ranges of integers where no size of what programs copy exceeds that of
/// positions.
struct PositionRanges : IntegerRangeAnalysis {
  using IntegerRangeAnalysis::IntegerRangeAnalysis;

  LogicalResult
  visitOperation(Operation *op,
                 ArrayRef<const IntegerValueRangeLattice *> operands,
                 ArrayRef<IntegerValueRangeLattice *> results) override {
    auto join = [&](IntegerValueRangeLattice *result,
                    const IntegerValueRange &range) {
      propagateIfChanged(result, result->join(range));
    };
    if (isa<memref::DimOp, tensor::DimOp>(op) && hasTiles(op->getOperand(0))) {
      join(results.front(), ConstantIntRanges::fromSigned(
                                APInt(64, 0), APInt(64, kMaxPosition)));
      return success();
    }
    auto read = dyn_cast<ReadNumbersOp>(op);
    if (!read)
      return IntegerRangeAnalysis::visitOperation(op, operands, results);
    SmallVector<PublishOp> publishes = getPublishes(read);
    if (publishes.empty())
      setAllToEntryStates(results);
    for (PublishOp publish : publishes)
      for (auto [result, number] :
           llvm::zip_equal(results, publish.getNumbers()))
        join(
            result,
            getLatticeElementFor(getProgramPointAfter(op), number)->getValue());
    return success();
  }
};

/// Forgets what is known of values that are erased.
class StateEraser : public RewriterBase::Listener {
public:
  explicit StateEraser(DataFlowSolver &solver) : solver(solver) {}

  void notifyOperationErased(Operation *op) override {
    solver.eraseState(solver.getProgramPointAfter(op));
    for (Value result : op->getResults())
      solver.eraseState(result);
  }

private:
  DataFlowSolver &solver;
};
} // namespace

/// Expands minima and maxima of affine expressions, of which a range is not
/// narrowed.
static void expandExtremes(RewriterBase &rewriter, LaunchOp launch) {
  SmallVector<Operation *> ops;
  launch.walk([&](Operation *op) {
    if (isa<affine::AffineMinOp, affine::AffineMaxOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    rewriter.setInsertionPoint(op);
    Location loc = op->getLoc();
    bool isMin = isa<affine::AffineMinOp>(op);
    AffineMap map = isMin ? cast<affine::AffineMinOp>(op).getAffineMap()
                          : cast<affine::AffineMaxOp>(op).getAffineMap();
    auto values =
        affine::expandAffineMap(rewriter, loc, map, op->getOperands());
    if (!values)
      continue;
    Value extreme = values->front();
    for (Value value : ArrayRef(*values).drop_front())
      extreme = isMin ? arith::MinSIOp::create(rewriter, loc, extreme, value)
                            .getResult()
                      : arith::MaxSIOp::create(rewriter, loc, extreme, value);
    rewriter.replaceOp(op, extreme);
  }
}

/// Returns the loops over tiles.
static SmallVector<scf::ForOp> getLoops(LaunchOp launch) {
  SmallVector<scf::ForOp> loops;
  launch.walk([&](scf::ForOp loop) {
    std::optional<APInt> step = loop.getConstantStep();
    if (step && step->sgt(1) && loop.getInductionVar().getType().isIndex())
      loops.push_back(loop);
  });
  return loops;
}

/// Returns true if a number, and one that is `more`, fit in 32 bits.
static bool fits(DataFlowSolver &solver, Value number,
                 const APInt &more = APInt(64, 0)) {
  auto *lattice = solver.lookupState<IntegerValueRangeLattice>(number);
  if (!lattice || lattice->getValue().isUninitialized())
    return false;
  const ConstantIntRanges &range = lattice->getValue().getValue();
  return range.smin().isSignedIntN(32) && range.smax().isSignedIntN(32) &&
         (range.smax() + more).isSignedIntN(32);
}

/// Returns true if all numbers that the loop compares fit in 32 bits.
static bool isNarrow(DataFlowSolver &solver, scf::ForOp loop) {
  return fits(solver, loop.getLowerBound()) &&
         fits(solver, loop.getUpperBound(), *loop.getConstantStep());
}

/// Returns the numbers in the slots of a ring, and which of them fit, if all
/// ops that publish and read them are known.
static std::optional<NarrowNumbers> findNumbers(DataFlowSolver &solver,
                                                RingOp ring) {
  NarrowNumbers numbers;
  SmallVector<Operation *> ops;
  for (Operation *user : ring->getUsers()) {
    if (auto publish = dyn_cast<PublishOp>(user))
      numbers.publishes.push_back(publish);
    else if (auto wait = dyn_cast<WaitOp>(user))
      llvm::append_range(ops, wait->getUsers());
    else if (!isa<AcquireOp, ReleaseOp>(user))
      return std::nullopt;
  }
  for (Operation *op : ops) {
    auto read = dyn_cast<ReadNumbersOp>(op);
    if (!read)
      return std::nullopt;
    numbers.reads.push_back(read);
  }
  if (numbers.publishes.empty() || numbers.reads.empty())
    return std::nullopt;
  TypeRange types = numbers.publishes.front().getNumbers().getTypes();
  auto areAlike = [&](auto op) {
    return llvm::equal(op.getNumbers().getTypes(), types);
  };
  if (!llvm::all_of(numbers.publishes, areAlike) ||
      !llvm::all_of(numbers.reads, areAlike))
    return std::nullopt;
  numbers.areNarrow.resize(types.size());
  for (auto [place, type] : llvm::enumerate(types))
    numbers.areNarrow[place] =
        type.isInteger(64) &&
        llvm::all_of(numbers.publishes, [&, place = place](PublishOp publish) {
          return fits(solver, publish.getNumbers()[place]);
        });
  return numbers;
}

/// Publishes the numbers that fit in 32 bits.
static void narrow(RewriterBase &rewriter, NarrowNumbers &numbers) {
  Type narrow = rewriter.getI32Type(), wide = rewriter.getI64Type();
  for (PublishOp publish : numbers.publishes) {
    rewriter.setInsertionPoint(publish);
    for (unsigned place : numbers.areNarrow.set_bits()) {
      OpOperand &number = publish.getNumbersMutable()[place];
      Value half = rewriter.createOrFold<arith::TruncIOp>(publish.getLoc(),
                                                          narrow, number.get());
      rewriter.modifyOpInPlace(publish, [&] { number.set(half); });
    }
  }
  for (ReadNumbersOp read : numbers.reads) {
    rewriter.setInsertionPointAfter(read);
    for (unsigned place : numbers.areNarrow.set_bits()) {
      Value number = read.getNumbers()[place];
      number.setType(narrow);
      auto whole =
          arith::ExtSIOp::create(rewriter, read.getLoc(), wide, number);
      rewriter.replaceAllUsesExcept(number, whole, whole);
    }
  }
}

/// Lets the loop count in 32 bits.
static void narrow(RewriterBase &rewriter, scf::ForOp loop) {
  Location loc = loop.getLoc();
  rewriter.setInsertionPoint(loop);
  Type type = rewriter.getI32Type();
  auto cast = [&](Value value) {
    return rewriter.createOrFold<arith::IndexCastOp>(loc, type, value);
  };
  Value lower = cast(loop.getLowerBound()), upper = cast(loop.getUpperBound()),
        step = cast(loop.getStep());
  rewriter.modifyOpInPlace(loop, [&] {
    loop.setLowerBound(lower);
    loop.setUpperBound(upper);
    loop.setStep(step);
  });
  Value iv = loop.getInductionVar();
  iv.setType(type);
  rewriter.setInsertionPointToStart(loop.getBody());
  auto wide =
      arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(), iv);
  rewriter.replaceAllUsesExcept(iv, wide, wide);
}

void NarrowPositions::runOnOperation() {
  IRRewriter rewriter(&getContext());
  SmallVector<LaunchOp> launches;
  getOperation()->walk([&](LaunchOp launch) { launches.push_back(launch); });
  if (launches.empty())
    return;
  for (LaunchOp launch : launches)
    expandExtremes(rewriter, launch);

  DataFlowSolver solver;
  solver.load<dataflow::DeadCodeAnalysis>();
  solver.load<dataflow::SparseConstantPropagation>();
  solver.load<PositionRanges>();
  if (failed(solver.initializeAndRun(getOperation())))
    return signalPassFailure();

  SmallVector<Operation *> ops;
  SmallVector<scf::ForOp> loops;
  SmallVector<NarrowNumbers> numbers;
  for (LaunchOp launch : launches) {
    SmallVector<scf::ForOp> own = getLoops(launch);
    // Where a loop counts in 64 bits all the same, what is narrow must be
    // widened to be compared with its counter.
    if (own.empty() || !llvm::all_of(own, [&](scf::ForOp loop) {
          return isNarrow(solver, loop);
        }))
      continue;
    llvm::append_range(loops, own);
    launch.walk([&](RingOp ring) {
      if (std::optional<NarrowNumbers> found = findNumbers(solver, ring))
        numbers.push_back(std::move(*found));
    });
    launch.walk<WalkOrder::PreOrder>([&](Operation *op) {
      // What maps compare has a form of its own.
      if (isa<MapOp>(op))
        return WalkResult::skip();
      if (isa<arith::ArithDialect>(op->getDialect()))
        ops.push_back(op);
      return WalkResult::advance();
    });
  }
  LDBG() << loops.size() << " loops count in 32 bits";
  numNarrowed += loops.size();

  StateEraser eraser(solver);
  RewritePatternSet patterns(&getContext());
  arith::populateIntRangeNarrowingPatterns(patterns, solver, {32});
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  config.setListener(&eraser);
  if (failed(applyOpPatternsGreedily(ops, std::move(patterns), config)))
    return signalPassFailure();
  for (scf::ForOp loop : loops)
    narrow(rewriter, loop);
  for (NarrowNumbers &each : numbers)
    narrow(rewriter, each);
}
