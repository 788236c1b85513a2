//===- GroupBlocks.cpp - tile-group-blocks --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dependence.h"
#include "SharedAdds.h"

#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Dialect/Tile/Transforms/Passes.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#define DEBUG_TYPE "tile-group-blocks"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEGROUPBLOCKS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

/// The share of the L2 cache for what the blocks of a group add to; what they
/// read takes as much.
static constexpr int64_t kCacheShare = 3;

/// Returns an addition that blocks which differ in the first dimension of the
/// grid share, in a loop whose length differs between them; null if there is
/// none, or if the number of heads, which are the second dimension, is not
/// known.
static StoreOp findUnequalAdd(LaunchOp launch) {
  if (launch.getGrid().size() != 3 || !getConstantIntValue(launch.getGrid()[1]))
    return {};
  BlockArgument block = launch.getBlockIds().front();
  StoreOp found;
  launch.walk([&](StoreOp store) {
    SmallVector<scf::ForOp> loops = getLoops(store);
    bool isUnequal = store.getAdd() && !loops.empty() &&
                     getSharedDims(launch, store) == ArrayRef<unsigned>{0} &&
                     (dependsOn(loops.back().getLowerBound(), block) ||
                      dependsOn(loops.back().getUpperBound(), block));
    if (!isUnequal)
      return WalkResult::advance();
    found = store;
    return WalkResult::interrupt();
  });
  return found;
}

/// Emits the number of heads whose blocks start together: the largest divisor
/// of the number of heads with which their sums fit in their share of the
/// cache. Of the query heads that one head of keys has, a block adds to one at
/// a time.
static Value countTogether(OpBuilder &builder, LaunchOp launch, StoreOp store,
                           int64_t cache) {
  Location loc = launch.getLoc();
  int64_t heads = *getConstantIntValue(launch.getGrid()[1]);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value sums =
      launch.getTiedOperand(cast<BlockArgument>(store.getTarget())).get();
  auto type = cast<RankedTensorType>(sums.getType());
  Value bytes = constant(type.getElementTypeBitWidth() / 8);
  for (int64_t dim : store.getDims())
    bytes = arith::MulIOp::create(
        builder, loc, bytes, tensor::DimOp::create(builder, loc, sums, dim));
  Value group = constant(1);
  for (int64_t divisor = 2; divisor <= heads; ++divisor) {
    if (heads % divisor != 0)
      continue;
    Value fits =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule, bytes,
                              constant(cache / kCacheShare / divisor));
    group =
        arith::SelectOp::create(builder, loc, fits, constant(divisor), group);
  }
  return group;
}

/// Replaces the grid of `launch`, of tiles, heads and batches, by one of the
/// heads of a group, tiles, and the groups of all batches.
static void groupBlocks(LaunchOp launch, Value group) {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  SmallVector<Value> grid(launch.getGrid());
  Value groups = arith::DivUIOp::create(builder, loc, grid[1], group);
  Value all = arith::MulIOp::create(builder, loc, grid[2], groups);
  launch.getGridMutable().assign({group, grid[0], all});
  Block &body = launch.getBody().front();
  SmallVector<Value> places;
  for (unsigned dim = 0; dim < grid.size(); ++dim)
    places.push_back(body.insertArgument(dim, builder.getIndexType(), loc));
  builder.setInsertionPointToStart(&body);
  Value number = arith::RemUIOp::create(builder, loc, places[2], groups);
  Value first = arith::MulIOp::create(builder, loc, number, group);
  Value head = arith::AddIOp::create(builder, loc, first, places[0]);
  Value batch = arith::DivUIOp::create(builder, loc, places[2], groups);
  for (Value id : {places[1], head, batch}) {
    body.getArgument(grid.size()).replaceAllUsesWith(id);
    body.eraseArgument(grid.size());
  }
}

namespace {
struct GroupBlocks : fovea::tile::impl::TileGroupBlocksBase<GroupBlocks> {
  void runOnOperation() override {
    int64_t cache = machine::getGpuOrDefault(getOperation()).getNearMemory();
    SmallVector<std::pair<LaunchOp, StoreOp>> unequal;
    getOperation()->walk([&](LaunchOp launch) {
      if (StoreOp store = findUnequalAdd(launch))
        unequal.emplace_back(launch, store);
    });
    for (auto [launch, store] : unequal) {
      if (!isa<RankedTensorType>(launch.getOutputs().front().getType())) {
        launch.emitOpError("expected tensors: tile-group-blocks runs before "
                           "bufferization");
        return signalPassFailure();
      }
      LDBG() << "launch at " << launch.getLoc() << ": heads start together";
      OpBuilder builder(launch);
      groupBlocks(launch, countTogether(builder, launch, store, cache));
      ++numGrouped;
    }
  }
};
} // namespace
