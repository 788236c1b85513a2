//===- Persist.cpp - Several programs in one block ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "Indices.h"

#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#define DEBUG_TYPE "tile-persist"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEPERSIST
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

namespace {

struct Persist : fovea::tile::impl::TilePersistBase<Persist> {
  void runOnOperation() override {
    SmallVector<LaunchOp> launches;
    getOperation()->walk([&](LaunchOp launch) {
      if (launch.getPersistent())
        launches.push_back(launch);
    });
    for (LaunchOp launch : launches) {
      persist(launch);
      ++numPersistent;
    }
  }

private:
  void persist(LaunchOp launch);
};

} // namespace

void Persist::persist(LaunchOp launch) {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  Indices host(builder, loc);
  SmallVector<Value> sizes(launch.getGrid());
  bool isSnaked = *launch.getPersistent() == ItemOrder::Snaked;

  int64_t cores = machine::getGpuOrDefault(launch).getCores();
  Value rows = host.constant(1);
  for (Value size : ArrayRef(sizes).drop_front())
    rows = host.create<arith::MulIOp>(rows, size);
  Value items = host.create<arith::MulIOp>(sizes.front(), rows);
  // Rows of programs that run at the same time share what they read by as many
  // blocks. A round of the blocks takes about this many programs of each row of
  // a group; the rounds of a group have to be even in number, for only two
  // rounds, there and back, give all blocks as much to do. The last group has
  // what is left, from half to one and a half of the others: rounds of fewer
  // rows would be too few to make up for what differs in a part of a round.
  constexpr int64_t kSharing = 4;
  Value group, lastGroup;
  if (isSnaked) {
    if (cores > kSharing)
      cores = cores / kSharing * kSharing;
    Value least = host.create<arith::DivUIOp>(
        host.constant(2 * cores),
        host.getCommonDivisor(sizes.front(), 2 * cores));
    Value wanted = host.constant(std::max<int64_t>(cores / kSharing, 1));
    Value half = host.create<arith::DivUIOp>(least, host.constant(2));
    Value times = host.create<arith::DivUIOp>(
        host.create<arith::AddIOp>(wanted, half), least);
    group = host.create<arith::MulIOp>(
        least, host.create<arith::MaxUIOp>(times, host.constant(1)));
    Value groups = host.create<arith::DivUIOp>(
        host.create<arith::AddIOp>(
            rows, host.create<arith::DivUIOp>(group, host.constant(2))),
        group);
    lastGroup = host.create<arith::SubIOp>(
        host.create<arith::MaxUIOp>(groups, host.constant(1)),
        host.constant(1));
  }
  Value blocks = host.create<arith::MinUIOp>(items, host.constant(cores));
  LDBG() << "launch at " << loc << ": at most " << cores << " blocks, "
         << (isSnaked ? "there and back" : "in linear order");

  auto result = LaunchOp::create(builder, loc, launch.getResultTypes(), blocks,
                                 launch.getInputs(), launch.getOutputs(),
                                 launch.getWarpsAttr(), launch.getStagesAttr(),
                                 launch.getKernelAttr());
  result.setAlternating(launch.getAlternating());
  Region &body = result.getBody();
  body.takeBody(launch.getBody());
  Block &program = body.front();
  SmallVector<Operation *> ops;
  for (Operation &op : program.without_terminator())
    ops.push_back(&op);
  Value block = body.insertArgument(0u, builder.getIndexType(), loc);

  builder.setInsertionPointToStart(&program);
  Indices device(builder, loc);
  scf::ForOp loop;
  Value item;
  if (isSnaked) {
    // In every other round blocks take items in the opposite order: who had the
    // longest has the shortest next.
    Value back = device.create<arith::SubIOp>(
        device.create<arith::SubIOp>(blocks, device.constant(1)), block);
    auto isEven = [&](Value round) -> Value {
      Value odd = device.create<arith::AndIOp>(round, device.constant(1));
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, odd,
                                   device.constant(0));
    };
    auto getPlace = [&](Value round) -> Value {
      return arith::SelectOp::create(builder, loc, isEven(round), block, back);
    };
    auto [full, rest] = device.divide(items, blocks);
    Value isInLast = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, getPlace(full), rest);
    Value rounds = device.create<arith::AddIOp>(
        full, arith::SelectOp::create(builder, loc, isInLast,
                                      device.constant(1), device.constant(0)));
    loop = scf::ForOp::create(builder, loc, device.constant(0), rounds,
                              device.constant(1));
    builder.setInsertionPointToStart(loop.getBody());
    item = device.create<arith::AddIOp>(
        device.create<arith::MulIOp>(loop.getInductionVar(), blocks),
        getPlace(loop.getInductionVar()));
  } else {
    loop = scf::ForOp::create(builder, loc, block, items, blocks);
    builder.setInsertionPointToStart(loop.getBody());
    item = loop.getInductionVar();
  }

  auto isOne = [](Value size) { return matchPattern(size, m_One()); };
  SmallVector<Value> ids;
  ArrayRef<Value> left = sizes;
  Value rest = item;
  if (isSnaked) {
    // Programs of a group: the first of each of its rows, then the second, ...
    Value ofGroup = device.create<arith::MulIOp>(group, sizes.front());
    Value number = device.create<arith::MinUIOp>(
        device.divide(item, ofGroup).first, lastGroup);
    Value inGroup = device.create<arith::SubIOp>(
        item, device.create<arith::MulIOp>(number, ofGroup));
    Value first = device.create<arith::MulIOp>(number, group);
    Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         number, lastGroup);
    Value members = arith::SelectOp::create(
        builder, loc, isLast, device.create<arith::SubIOp>(rows, first), group);
    auto [x, member] = device.divide(inGroup, members);
    ids.push_back(x);
    rest = device.create<arith::AddIOp>(first, member);
    left = left.drop_front();
  }
  for (; !left.empty(); left = left.drop_front()) {
    if (isOne(left.front())) {
      ids.push_back(device.constant(0));
    } else if (llvm::all_of(left.drop_front(), isOne)) {
      ids.push_back(rest);
    } else {
      auto [quotient, remainder] = device.divide(rest, left.front());
      ids.push_back(remainder);
      rest = quotient;
    }
  }
  for (Value id : ids) {
    body.getArgument(1).replaceAllUsesWith(id);
    body.eraseArgument(1);
  }
  for (Operation *op : ops)
    op->moveBefore(loop.getBody()->getTerminator());
  launch->replaceAllUsesWith(result.getResults());
  launch.erase();
}
