//===- OrderAdds.cpp - Adds to the same memory in a fixed order -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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
      order(launch);
  }

private:
  void order(LaunchOp launch);
};
} // namespace

/// Whether `value`, in a launch, is computed from `argument`.
static bool dependsOn(Value value, BlockArgument argument) {
  if (value == argument)
    return true;
  // What a loop counts may begin where the block says, but all blocks count the
  // same places.
  Operation *op = value.getDefiningOp();
  return op && llvm::any_of(op->getOperands(), [&](Value operand) {
           return dependsOn(operand, argument);
         });
}

/// The loops around `op`, the outermost first.
static SmallVector<scf::ForOp> getLoops(Operation *op) {
  SmallVector<scf::ForOp> loops;
  for (Operation *parent = op->getParentOp(); !isa<LaunchOp>(parent);
       parent = parent->getParentOp())
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      loops.push_back(loop);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

/// The launch with numbers for turns as its last result and argument.
static LaunchOp addTurns(LaunchOp launch) {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  // As the grid, the first dimension last.
  SmallVector<OpFoldResult> sizes;
  for (Value size : llvm::reverse(launch.getGrid()))
    sizes.push_back(getAsOpFoldResult(size));
  sizes.push_back(builder.getIndexAttr(TakeTurnOp::kSlots));
  Value empty =
      tensor::EmptyOp::create(builder, loc, sizes, builder.getI32Type());
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
  Value turns = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);

  SmallVector<Value> outputs(launch.getOutputs());
  outputs.push_back(turns);
  SmallVector<Type> types(launch.getResultTypes());
  types.push_back(turns.getType());
  auto extended = LaunchOp::create(
      builder, loc, types, launch.getGrid(), launch.getInputs(), outputs,
      launch.getWarpsAttr(), launch.getStagesAttr(), launch.getKernelAttr());
  extended.getBody().takeBody(launch.getBody());
  extended.getBody().addArgument(
      LaunchOp::getArgumentType(cast<ShapedType>(turns.getType())), loc);
  launch->replaceAllUsesWith(extended.getResults().drop_back());
  launch.erase();
  return extended;
}

/// How far the program is at `store`: a number that grows with every iteration
/// of the loops around it, and is the same for all blocks.
static Value getPosition(OpBuilder &builder, StoreOp store) {
  Location loc = store.getLoc();
  Value position;
  for (scf::ForOp loop : getLoops(store)) {
    Value place = loop.getInductionVar();
    if (!position) {
      position = place;
      continue;
    }
    // No loop within counts further than the dimension that it runs along.
    Value size;
    for (auto [dim, index] : llvm::enumerate(store.getIndices()))
      if (index == place)
        size = memref::DimOp::create(builder, loc, store.getTarget(), dim);
    if (!size)
      size = loop.getUpperBound();
    position = arith::AddIOp::create(
        builder, loc, arith::MulIOp::create(builder, loc, position, size),
        place);
  }
  return position;
}

void OrderAdds::order(LaunchOp launch) {
  if (!isa<RankedTensorType>(launch.getOutputs().front().getType()))
    return;
  SmallVector<StoreOp> adds;
  launch.walk([&](StoreOp store) {
    bool isShared = llvm::none_of(store.getIndices(), [&](Value index) {
      return dependsOn(index, launch.getBlockIds().front());
    });
    if (store.getAdd() && isShared && !getLoops(store).empty())
      adds.push_back(store);
  });
  if (adds.empty())
    return;
  launch = addTurns(launch);
  Block &body = launch.getBody().front();
  BlockArgument number = launch.getBlockIds().front();
  auto builder = OpBuilder::atBlockBegin(&body);
  Location loc = launch.getLoc();
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value last =
      arith::SubIOp::create(builder, loc, launch.getGrid().front(), one);
  auto reversed = arith::SubIOp::create(builder, loc, last, number);
  number.replaceAllUsesExcept(reversed, reversed);

  SmallVector<Value> place(llvm::reverse(launch.getBlockIds().drop_front()));
  place.push_back(reversed);
  Value turns = body.getArguments().back();
  for (StoreOp store : adds) {
    builder.setInsertionPoint(store);
    TakeTurnOp::create(builder, store.getLoc(), turns, place,
                       getPosition(builder, store));
  }
  builder.setInsertionPointAfter(getLoops(adds.back()).front());
  TakeTurnOp::create(builder, loc, turns, place, /*position=*/Value());
  ++numOrdered;
}
