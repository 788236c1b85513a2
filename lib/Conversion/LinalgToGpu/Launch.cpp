//===- Launch.cpp - Kernels by work items ---------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;

static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getSExtValue();
}

void fovea::emitUnlessEmpty(OpBuilder &builder, Location loc, Value items,
                            function_ref<void()> body) {
  if (std::optional<int64_t> constant = getConstant(items)) {
    if (*constant > 0)
      body();
    return;
  }
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value any = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                    items, zero);
  auto branch = scf::IfOp::create(builder, loc, any, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

gpu::LaunchOp fovea::emitItemLaunch(OpBuilder &builder, Location loc,
                                    Value items, int64_t largestGrid,
                                    ItemBuilder body) {
  std::optional<int64_t> count = getConstant(items);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value one = constant(1);
  bool isOne = count == 1;
  Value threads = isOne ? one : constant(kItemBlock);
  // With at most one item a thread there is no loop.
  bool isSmall = count && *count <= largestGrid * kItemBlock;
  Value blocks = one;
  if (count && !isOne) {
    blocks = constant(
        std::min<int64_t>(largestGrid, llvm::divideCeil(*count, kItemBlock)));
  } else if (!count) {
    blocks = arith::CeilDivUIOp::create(builder, loc, items, threads);
    blocks =
        arith::MinUIOp::create(builder, loc, blocks, constant(largestGrid));
  }
  auto launch =
      gpu::LaunchOp::create(builder, loc, blocks, one, one, threads, one, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&launch.getBody().front());
  auto terminator = gpu::TerminatorOp::create(builder, loc);
  builder.setInsertionPoint(terminator);
  if (isOne) {
    body(launch, constant(0), constant(0));
    return launch;
  }
  Value block = arith::MulIOp::create(builder, loc, launch.getBlockIds().x,
                                      launch.getBlockSize().x);
  Value thread =
      arith::AddIOp::create(builder, loc, block, launch.getThreadIds().x);
  if (isSmall) {
    Value isItem = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, thread, items);
    auto branch =
        scf::IfOp::create(builder, loc, isItem, /*withElseRegion=*/false);
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
    body(launch, thread, thread);
    return launch;
  }
  Value step = arith::MulIOp::create(builder, loc, launch.getGridSize().x,
                                     launch.getBlockSize().x);
  auto loop = scf::ForOp::create(builder, loc, thread, items, step);
  builder.setInsertionPointToStart(loop.getBody());
  body(launch, loop.getInductionVar(), thread);
  return launch;
}

gpu::LaunchOp fovea::emitBlockLaunch(OpBuilder &builder, Location loc,
                                     Value items, int64_t largestGrid,
                                     int64_t threads, ItemBuilder body) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  std::optional<int64_t> count = getConstant(items);
  bool isSmall = count && *count <= largestGrid;
  Value one = constant(1);
  Value blocks = items;
  if (!isSmall)
    blocks =
        builder.createOrFold<arith::MinUIOp>(loc, items, constant(largestGrid));
  auto launch = gpu::LaunchOp::create(builder, loc, blocks, one, one,
                                      constant(threads), one, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&launch.getBody().front());
  auto terminator = gpu::TerminatorOp::create(builder, loc);
  builder.setInsertionPoint(terminator);
  Value block = launch.getBlockIds().x;
  if (isSmall) {
    body(launch, block, block);
    return launch;
  }
  auto loop =
      scf::ForOp::create(builder, loc, block, items, launch.getGridSize().x);
  builder.setInsertionPointToStart(loop.getBody());
  body(launch, loop.getInductionVar(), block);
  return launch;
}

gpu::LaunchOp fovea::emitGroupLaunch(OpBuilder &builder, Location loc,
                                     Value items, int64_t largestGrid,
                                     int64_t threads, int64_t group,
                                     ItemBuilder body) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  int64_t groups = threads / group;
  Value blocks =
      builder.createOrFold<arith::CeilDivUIOp>(loc, items, constant(groups));
  blocks =
      builder.createOrFold<arith::MinUIOp>(loc, blocks, constant(largestGrid));
  Value one = constant(1);
  auto launch = gpu::LaunchOp::create(builder, loc, blocks, one, one,
                                      constant(threads), one, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&launch.getBody().front());
  auto terminator = gpu::TerminatorOp::create(builder, loc);
  builder.setInsertionPoint(terminator);
  Value size = constant(group);
  Value thread = launch.getThreadIds().x;
  Value number = arith::DivUIOp::create(builder, loc, thread, size);
  Value lane = arith::RemUIOp::create(builder, loc, thread, size);
  Value first = arith::MulIOp::create(builder, loc, launch.getBlockIds().x,
                                      constant(groups));
  first = arith::AddIOp::create(builder, loc, first, number);
  Value step = arith::MulIOp::create(builder, loc, launch.getGridSize().x,
                                     constant(groups));
  auto loop = scf::ForOp::create(builder, loc, first, items, step);
  builder.setInsertionPointToStart(loop.getBody());
  body(launch, loop.getInductionVar(), lane);
  return launch;
}
