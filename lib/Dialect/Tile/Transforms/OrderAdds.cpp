//===- OrderAdds.cpp - Adds to the same memory in a fixed order -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dependence.h"
#include "SharedAdds.h"

#include "fovea/Dialect/Tile/Transforms/Passes.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#define DEBUG_TYPE "tile-order-adds"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEORDERADDS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {
struct OrderAdds : fovea::tile::impl::TileOrderAddsBase<OrderAdds> {
  void runOnOperation() override {
    SmallVector<LaunchOp> launches;
    getOperation()->walk([&](LaunchOp launch) { launches.push_back(launch); });
    for (LaunchOp launch : launches)
      if (failed(order(launch)))
        return signalPassFailure();
  }

private:
  LogicalResult order(LaunchOp launch);
};
} // namespace

/// The number of lanes of turns, between which iterations of the innermost loop
/// alternate.
static constexpr int64_t kLanes = 2;

namespace {
/// A launch whose blocks take turns, and one block's numbers in it.
struct OrderedLaunch {
  LaunchOp op;
  /// The numbers of all blocks, and the index of this block's number.
  Value turns;
  SmallVector<Value> place;
};
} // namespace

/// Launches the blocks of several rows of the grid together, turn by turn. Rows
/// differ in the dimensions after the first. A block then has few others of its
/// row beside it to wait for, and the data that blocks read, and add to by
/// `store`, is accessed while it is in the L2 cache. Where all of that data
/// fits there, the last block of a row comes first: under a causal mask it
/// begins last, and so each block finds the one in front of it past its
/// position. Where the data does not fit, blocks of equal length must go along
/// it together: more rows at a time, and the first block, which under such a
/// mask is the longest, first.
static OrderedLaunch addTurns(LaunchOp launch, StoreOp store) {
  constexpr int64_t kNearRows = 8, kFarRows = 16, kNearBytes = 16 << 20;
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  auto add = [&](Value a, Value b) -> Value {
    return arith::AddIOp::create(builder, loc, a, b);
  };
  auto mul = [&](Value a, Value b) -> Value {
    return arith::MulIOp::create(builder, loc, a, b);
  };
  auto sub = [&](Value a, Value b) -> Value {
    return arith::SubIOp::create(builder, loc, a, b);
  };
  auto div = [&](Value a, Value b) -> Value {
    return arith::DivUIOp::create(builder, loc, a, b);
  };
  auto rem = [&](Value a, Value b) -> Value {
    return arith::RemUIOp::create(builder, loc, a, b);
  };

  SmallVector<Value> grid(launch.getGrid());
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value rows = one;
  for (Value size : ArrayRef(grid).drop_front())
    rows = mul(rows, size);
  Value blocks = mul(rows, grid.front());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value target =
      launch.getTiedOperand(cast<BlockArgument>(store.getTarget())).get();
  auto type = cast<RankedTensorType>(target.getType());
  Value bytes = constant(type.getElementTypeBitWidth() / 8 * kNearRows);
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    bytes = mul(bytes, tensor::DimOp::create(builder, loc, target, dim));
  Value isNear = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule,
                                       bytes, mul(rows, constant(kNearBytes)));
  Value group = arith::SelectOp::create(
      builder, loc, isNear, constant(kNearRows), constant(kFarRows));
  Value ofGroup = mul(group, grid.front());
  // The dimensions are in a tensor's order: numbers of consecutive turns are
  // adjacent, lane by lane.
  SmallVector<OpFoldResult> sizes;
  for (Value size : llvm::reverse(grid))
    sizes.push_back(getAsOpFoldResult(size));
  sizes.insert(std::prev(sizes.end()), builder.getIndexAttr(kLanes));
  Value empty =
      tensor::EmptyOp::create(builder, loc, sizes, builder.getI32Type());
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
  Value turns = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);

  SmallVector<Value> outputs(launch.getOutputs());
  outputs.push_back(turns);
  SmallVector<Type> types(launch.getResultTypes());
  types.push_back(turns.getType());
  OrderedLaunch ordered;
  ordered.op = LaunchOp::create(builder, loc, types, blocks, launch.getInputs(),
                                outputs, launch.getWarpsAttr(),
                                launch.getStagesAttr(), launch.getKernelAttr());
  ordered.op.setAlternating(launch.getAlternating());
  ordered.op.setInTurn(launch.getInTurn());
  Region &body = ordered.op.getBody();
  body.takeBody(launch.getBody());
  ordered.turns = body.addArgument(
      LaunchOp::getArgumentType(cast<ShapedType>(turns.getType())), loc);
  BlockArgument number = body.insertArgument(0u, builder.getIndexType(), loc);

  builder.setInsertionPointToStart(&body.front());
  Value first = mul(div(number, ofGroup), group);
  Value inGroup = rem(number, ofGroup);
  Value members = arith::MinUIOp::create(builder, loc, group, sub(rows, first));
  Value turn = div(inGroup, members);
  Value row = add(first, rem(inGroup, members));
  Value reversed = sub(sub(grid.front(), one), turn);
  SmallVector<Value> ids{
      arith::SelectOp::create(builder, loc, isNear, reversed, turn)};
  for (Value size : ArrayRef(grid).drop_front()) {
    bool isLast = ids.size() == grid.size() - 1;
    ids.push_back(isLast ? row : rem(row, size));
    if (!isLast)
      row = div(row, size);
  }
  for (Value id : ids) {
    body.getArgument(1).replaceAllUsesWith(id);
    body.eraseArgument(1);
  }
  ordered.place.assign(ids.rbegin(), std::prev(ids.rend()));
  ordered.place.push_back(turn);
  launch->replaceAllUsesWith(ordered.op.getResults().drop_back());
  launch.erase();
  return ordered;
}

/// Returns the dimension that `store` runs along by a loop, if there is one.
static std::optional<int64_t> findDim(scf::ForOp loop, StoreOp store) {
  auto index = llvm::find(store.getIndices(), loop.getInductionVar());
  if (index == store.getIndices().end())
    return std::nullopt;
  return index.getIndex();
}

/// Returns a number that the count of one of the loops around `store` reaches
/// in no block.
static Value getEnd(OpBuilder &builder, scf::ForOp loop, StoreOp store) {
  if (std::optional<int64_t> dim = findDim(loop, store))
    return memref::DimOp::create(builder, store.getLoc(), store.getTarget(),
                                 *dim);
  return loop.getUpperBound();
}

/// Returns a number that grows with every iteration of the loops around
/// `store`, and is the same for all blocks; `innermost` is the number for the
/// innermost loop, or, if there is no loop, for the positions before and after
/// the store.
static Value getPosition(OpBuilder &builder, StoreOp store, Value innermost) {
  SmallVector<scf::ForOp> loops = getLoops(store);
  if (loops.empty())
    return innermost;
  Location loc = store.getLoc();
  Value position;
  for (scf::ForOp loop : loops) {
    Value place = loop == loops.back() ? innermost : loop.getInductionVar();
    if (position)
      place = arith::AddIOp::create(
          builder, loc,
          arith::MulIOp::create(builder, loc, position,
                                getEnd(builder, loop, store)),
          place);
    position = place;
  }
  return position;
}

/// Emits an error unless all blocks run the loops around `store`, and loops
/// whose bounds depend on the block count the same positions.
static LogicalResult verifyLoops(LaunchOp launch, StoreOp store) {
  for (scf::ForOp loop : getLoops(store)) {
    Operation *parent = loop->getParentOp();
    if (!isa<LaunchOp, scf::ForOp>(parent))
      return store
                 .emitOpError("expected the loops around it in no condition, "
                              "for blocks would wait for those that skip them")
                 .attachNote(parent->getLoc())
             << "one is in this";
    // A loop's start may depend on the block, but all blocks count the same
    // positions.
    if (!findDim(loop, store) &&
        dependsOn(loop.getUpperBound(), launch.getBlockIds().front()))
      return store
                 .emitOpError("expected its indices to run along a dimension "
                              "by each loop around it whose end is not the "
                              "same for all blocks")
                 .attachNote(loop.getLoc())
             << "not by this one";
  }
  return success();
}

/// Lets the blocks take turns at `adds`, all of which are in the same loops.
/// Iterations of the innermost loop alternate between lanes, since a block
/// needs longer to know that its adds are complete than to add.
static void takeTurns(const OrderedLaunch &launch, ArrayRef<StoreOp> adds) {
  StoreOp first = adds.front();
  Location loc = first.getLoc();
  OpBuilder builder(first);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto getIndices = [&](Value lane) {
    SmallVector<Value> indices(launch.place);
    indices.insert(std::prev(indices.end()), lane);
    return indices;
  };
  // Waits until the blocks before this one have completed all their adds in a
  // lane before `place` of the innermost loop.
  auto await = [&](Value lane, Value place) {
    Value position = arith::SubIOp::create(
        builder, loc, getPosition(builder, first, place), constant(1));
    TakeTurnOp::create(builder, loc, launch.turns, getIndices(lane), position,
                       kLanes);
  };
  auto pass = [&](Value lane, Value place) {
    PassTurnOp::create(builder, loc, launch.turns, getIndices(lane),
                       getPosition(builder, first, place), kLanes);
  };
  // The block adds nothing before the loop's first position or after its last.
  auto skip = [&](Value place) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      await(constant(lane), place);
      pass(constant(lane), place);
    }
  };

  SmallVector<scf::ForOp> loops = getLoops(first);
  // A block adds once: one turn, in one lane.
  if (loops.empty()) {
    Block &program = *cast<BlockArgument>(launch.turns).getOwner();
    builder.setInsertionPoint(program.findAncestorOpInBlock(*first));
    Value lane = constant(0), behind = constant(1);
    await(lane, behind);
    builder.setInsertionPointAfter(program.findAncestorOpInBlock(*adds.back()));
    pass(lane, behind);
    return;
  }
  scf::ForOp inner = loops.back();
  builder.setInsertionPoint(inner);
  skip(arith::MinSIOp::create(builder, loc, inner.getLowerBound(),
                              inner.getUpperBound()));
  builder.setInsertionPointAfter(inner);
  skip(getEnd(builder, inner, first));
  // A block that adds under a condition takes its turn in any case.
  builder.setInsertionPoint(inner.getBody()->findAncestorOpInBlock(*first));
  Value place = inner.getInductionVar();
  Value iteration =
      arith::DivUIOp::create(builder, loc, place, inner.getStep());
  Value lane =
      arith::RemUIOp::create(builder, loc, iteration, constant(kLanes));
  Value next = arith::AddIOp::create(builder, loc, place, constant(1));
  await(lane, next);
  builder.setInsertionPoint(inner.getBody()->getTerminator());
  pass(lane, next);
}

LogicalResult OrderAdds::order(LaunchOp launch) {
  SmallVector<StoreOp> adds;
  WalkResult walk = launch.walk([&](StoreOp store) {
    if (!store.getAdd())
      return WalkResult::advance();
    SmallVector<unsigned> shared = getSharedDims(launch, store);
    if (shared.empty())
      return WalkResult::advance();
    if (shared.size() > 1 || shared.front() != 0) {
      store.emitOpError("expected blocks that differ in dimension ")
          << shared.back() << " of the grid at other places, for turns are of "
          << "those that differ in dimension 0";
      return WalkResult::interrupt();
    }
    adds.push_back(store);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  LDBG() << "launch at " << launch.getLoc() << ": " << adds.size()
         << " sums are shared by blocks"
         << (adds.empty() ? ", so that no turns are taken" : "");
  if (adds.empty())
    return success();
  if (!isa<RankedTensorType>(launch.getOutputs().front().getType()))
    return adds.front().emitOpError(
        "expected the launch to be on tensors, to which turns can be added: "
        "run this pass before bufferization");
  SmallVector<scf::ForOp> loops = getLoops(adds.front());
  for (StoreOp store : adds)
    if (getLoops(store) != loops) {
      InFlightDiagnostic error = store.emitOpError(
          "expected all that a block adds at in the same loops, so that it "
          "can take turns");
      error.attachNote(adds.front().getLoc()) << "it adds here, too";
      return error;
    }
  if (failed(verifyLoops(launch, adds.front())))
    return failure();
  OrderedLaunch ordered = addTurns(launch, adds.front());
  takeTurns(ordered, adds);
  ++numOrdered;
  return success();
}
