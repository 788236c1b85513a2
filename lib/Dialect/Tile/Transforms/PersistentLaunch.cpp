//===- PersistentLaunch.cpp - Blocks that run programs in turn ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PersistentLaunch.h"

#include "Indices.h"

#include "fovea/Dialect/Machine/IR/Machine.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea::tile;

PersistentLaunch::PersistentLaunch(OpBuilder &builder, LaunchOp launch,
                                   Value blocks, ValueRange added)
    : launch(launch), numAdded(added.size()) {
  Location loc = launch.getLoc();
  SmallVector<Value> outputs(launch.getOutputs());
  llvm::append_range(outputs, added);
  SmallVector<Type> types(launch.getResultTypes());
  if (!types.empty())
    llvm::append_range(types, added.getTypes());
  result = LaunchOp::create(builder, loc, types, blocks, launch.getInputs(),
                            outputs, launch.getWarpsAttr(),
                            launch.getStagesAttr(), launch.getKernelAttr());
  result.setAlternating(launch.getAlternating());
  result.setInTurn(launch.getInTurn());
  result.setCluster(launch.getCluster());
  Region &body = result.getBody();
  body.takeBody(launch.getBody());
  for (Operation &op : body.front().without_terminator())
    ops.push_back(&op);
  block = body.insertArgument(0u, builder.getIndexType(), loc);
  for (Value output : added)
    body.addArgument(
        LaunchOp::getArgumentType(cast<ShapedType>(output.getType())), loc);
  builder.setInsertionPointToStart(&body.front());
}

void PersistentLaunch::wrap(scf::ForOp loop, ArrayRef<Value> ids) {
  Region &body = result.getBody();
  for (Value id : ids) {
    body.getArgument(1).replaceAllUsesWith(id);
    body.eraseArgument(1);
  }
  for (Operation *op : ops)
    op->moveBefore(loop.getBody()->getTerminator());
  launch->replaceAllUsesWith(
      result.getResults().take_front(launch.getNumResults()));
  launch.erase();
}

Value fovea::tile::getNumPrograms(OpBuilder &builder, Location loc,
                                  ValueRange sizes) {
  Indices index(builder, loc);
  Value count = index.constant(1);
  for (Value size : sizes)
    count = index.create<arith::MulIOp>(count, size);
  return count;
}

SmallVector<Value> fovea::tile::getIds(OpBuilder &builder, Location loc,
                                       Value number, ArrayRef<Value> sizes) {
  Indices index(builder, loc);
  auto isOne = [](Value size) { return matchPattern(size, m_One()); };
  SmallVector<Value> ids;
  for (; !sizes.empty(); sizes = sizes.drop_front()) {
    if (isOne(sizes.front())) {
      ids.push_back(index.constant(0));
    } else if (llvm::all_of(sizes.drop_front(), isOne)) {
      ids.push_back(number);
    } else {
      auto [quotient, remainder] = index.divide(number, sizes.front());
      ids.push_back(remainder);
      number = quotient;
    }
  }
  return ids;
}

int64_t fovea::tile::getNumResident(LaunchOp launch) {
  int64_t cores = machine::getGpuOrDefault(launch).getCores();
  return std::max<int64_t>(cores / launch.getBlocksOfCluster(), 1);
}

void fovea::tile::removeCombineParts(LaunchOp launch) {
  launch.walk([](CombinePartsOp combine) {
    combine.replaceAllUsesWith(combine.getValues());
    combine.erase();
  });
}
