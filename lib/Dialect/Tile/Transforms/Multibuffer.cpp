//===- Multibuffer.cpp - Turns loads into rings ---------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/TensorMaps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEMULTIBUFFER
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

/// Of rings in loops.
static int64_t getStages(LaunchOp launch) {
  return launch.getStages().value_or(2);
}

namespace {

struct Multibuffer : fovea::tile::impl::TileMultibufferBase<Multibuffer> {
  using TileMultibufferBase::TileMultibufferBase;

  void runOnOperation() override {
    getOperation()->walk([&](LaunchOp launch) {
      if (getStages(launch) >= minStages)
        convert(launch);
    });
  }

private:
  void convert(LaunchOp launch);
  void convert(LoadOp load, LaunchOp launch, Value use, int64_t stages);
};

} // namespace

/// Loads into shared memory that stand in `block` itself, that TMA can make,
/// and whose tile is used in the block, or in ops nested in it, alone.
static SmallVector<LoadOp> getLoads(Block &block) {
  return llvm::filter_to_vector(block.getOps<LoadOp>(), [](LoadOp load) {
    auto tile = dyn_cast<SharedType>(load.getResult().getType());
    return tile &&
           suitsTensorMap(load.getSource().getType(), load.getDims(), tile) &&
           llvm::none_of(load->getUsers(), [](Operation *user) {
             return user->hasTrait<OpTrait::IsTerminator>();
           });
  });
}

/// Lets `loop` carry a count of its iterations, as its last value.
static scf::ForOp addCounter(RewriterBase &rewriter, scf::ForOp loop) {
  rewriter.setInsertionPoint(loop);
  Value zero = arith::ConstantIndexOp::create(rewriter, loop.getLoc(), 0);
  auto counted = *loop.replaceWithAdditionalYields(
      rewriter, zero, /*replaceInitOperandUsesInLoop=*/false,
      [](OpBuilder &builder, Location loc, ArrayRef<BlockArgument> counts) {
        Value one = arith::ConstantIndexOp::create(builder, loc, 1);
        return SmallVector<Value>{
            arith::AddIOp::create(builder, loc, counts.front(), one)};
      });
  return cast<scf::ForOp>(counted);
}

/// Lets `loop` carry how often `region` of `branch`, which stands in it, has
/// run, as its last value and the branch's last result.
static scf::ForOp addCounter(RewriterBase &rewriter, scf::ForOp loop,
                             scf::IfOp branch, Region &region) {
  Location loc = branch.getLoc();
  unsigned number = region.getRegionNumber();
  rewriter.setInsertionPoint(loop);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  loop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, zero, /*replaceInitOperandUsesInLoop=*/false,
      [](OpBuilder &, Location, ArrayRef<BlockArgument> counts) {
        return SmallVector<Value>{counts.front()};
      }));
  Value count = loop.getRegionIterArgs().back();

  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(rewriter.getIndexType());
  rewriter.setInsertionPoint(branch);
  auto counted = scf::IfOp::create(rewriter, loc, types, branch.getCondition(),
                                   /*addThenBlock=*/false,
                                   /*addElseBlock=*/false);
  for (auto [from, to] :
       llvm::zip_equal(branch->getRegions(), counted->getRegions())) {
    to.takeBody(from);
    if (to.empty()) {
      rewriter.createBlock(&to);
      scf::YieldOp::create(rewriter, loc);
    }
    Operation *yield = to.front().getTerminator();
    Value next = count;
    if (to.getRegionNumber() == number) {
      rewriter.setInsertionPoint(yield);
      Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
      next = arith::AddIOp::create(rewriter, loc, count, one);
    }
    yield->insertOperands(yield->getNumOperands(), next);
  }
  Operation *end = loop.getBody()->getTerminator();
  end->setOperand(end->getNumOperands() - 1, counted.getResults().back());
  rewriter.replaceOp(branch, counted.getResults().drop_back());
  return loop;
}

void Multibuffer::convert(LaunchOp launch) {
  int64_t stages = getStages(launch);
  IRRewriter rewriter(&getContext());
  Block &body = launch.getBody().front();
  for (LoadOp load : getLoads(body)) {
    rewriter.setInsertionPoint(load);
    Value zero = arith::ConstantIndexOp::create(rewriter, load.getLoc(), 0);
    convert(load, launch, zero, /*stages=*/1);
  }
  for (scf::ForOp loop : llvm::to_vector(body.getOps<scf::ForOp>())) {
    if (!getLoads(*loop.getBody()).empty()) {
      loop = addCounter(rewriter, loop);
      for (LoadOp load : getLoads(*loop.getBody()))
        convert(load, launch, loop.getRegionIterArgs().back(), stages);
    }
    // What a test of a tile guards.
    SmallVector<Block *> guarded;
    for (auto branch : loop.getBody()->getOps<scf::IfOp>())
      for (Region &region : branch->getRegions())
        if (!region.empty() && !getLoads(region.front()).empty())
          guarded.push_back(&region.front());
    for (Block *block : guarded) {
      loop = addCounter(rewriter, loop, cast<scf::IfOp>(block->getParentOp()),
                        *block->getParent());
      for (LoadOp load : getLoads(*block))
        convert(load, launch, loop.getRegionIterArgs().back(), stages);
    }
  }
}

void Multibuffer::convert(LoadOp load, LaunchOp launch, Value use,
                          int64_t stages) {
  OpBuilder builder(&getContext());
  Location loc = load.getLoc();
  auto tile = cast<SharedType>(load.getResult().getType());
  builder.setInsertionPointToStart(&launch.getBody().front());
  auto type = RingType::get(&getContext(), stages, tile);
  Value ring = RingOp::create(builder, loc, type);

  builder.setInsertionPoint(load);
  Value slot = AcquireOp::create(builder, loc, tile, ring, use);
  LoadAsyncOp::create(builder, loc, load.getSource(), load.getIndices(), slot,
                      ring, use, load.getDims());
  // The first and the last user in this block, or the ops around them.
  Operation *first = load, *last = load;
  for (Operation *user : load->getUsers()) {
    Operation *here = load->getBlock()->findAncestorOpInBlock(*user);
    if (first == load || here->isBeforeInBlock(first))
      first = here;
    if (last->isBeforeInBlock(here))
      last = here;
  }
  builder.setInsertionPoint(first);
  Value full = WaitOp::create(builder, loc, tile, ring, use);
  load.getResult().replaceAllUsesWith(full);
  builder.setInsertionPointAfter(last);
  ReleaseOp::create(builder, loc, ring, use);
  load.erase();
  ++numRings;
}
