//===- Persist.cpp - Several programs in one block ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

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

/// Arithmetic on indices, of which constants are constants of the IR.
class Indices {
public:
  Indices(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  template <typename OpTy>
  Value create(Value a, Value b) {
    return builder.createOrFold<OpTy>(loc, a, b);
  }
  /// Quotient and remainder of numbers that 32 bits hold: a division of 64
  /// bits takes several times the instructions and registers.
  std::pair<Value, Value> divide(Value a, Value b) {
    Type narrow = builder.getI32Type();
    auto cast = [&](Value value) {
      return builder.createOrFold<arith::IndexCastUIOp>(loc, narrow, value);
    };
    auto widen = [&](Value value) {
      return builder.createOrFold<arith::IndexCastUIOp>(
          loc, builder.getIndexType(), value);
    };
    Value dividend = cast(a), divisor = cast(b);
    Value quotient = create<arith::DivUIOp>(dividend, divisor);
    Value multiple = create<arith::MulIOp>(quotient, divisor);
    return {widen(quotient), widen(create<arith::SubIOp>(dividend, multiple))};
  }

private:
  OpBuilder &builder;
  Location loc;
};

} // namespace

void Persist::persist(LaunchOp launch) {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  Indices host(builder, loc);
  SmallVector<Value> sizes(launch.getGrid());
  bool isPaired = *launch.getPersistent() == ItemOrder::Paired;

  // The items that blocks take one after another: programs, or pairs of them.
  Value last;
  SmallVector<Value> itemSizes = sizes;
  if (isPaired) {
    last = host.create<arith::SubIOp>(sizes.front(), host.constant(1));
    itemSizes.front() =
        host.create<arith::CeilDivUIOp>(sizes.front(), host.constant(2));
  }
  Value items = itemSizes.front();
  for (Value size : ArrayRef(itemSizes).drop_front())
    items = host.create<arith::MulIOp>(items, size);
  int64_t cores = machine::getGpuOrDefault(launch).getCores();
  Value blocks = host.create<arith::MinUIOp>(items, host.constant(cores));
  LDBG() << "launch at " << loc << ": at most " << cores << " blocks, "
         << (isPaired ? "of pairs" : "in linear order");

  auto result = LaunchOp::create(builder, loc, launch.getResultTypes(), blocks,
                                 launch.getInputs(), launch.getOutputs(),
                                 launch.getWarpsAttr(), launch.getStagesAttr(),
                                 launch.getKernelAttr());
  Region &body = result.getBody();
  body.takeBody(launch.getBody());
  Block &program = body.front();
  SmallVector<Operation *> ops;
  for (Operation &op : program.without_terminator())
    ops.push_back(&op);
  Value block = body.insertArgument(0u, builder.getIndexType(), loc);

  builder.setInsertionPointToStart(&program);
  Indices device(builder, loc);
  auto loop = scf::ForOp::create(builder, loc, block, items, blocks);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> ids;
  Value rest = loop.getInductionVar();
  auto isOne = [](Value size) { return matchPattern(size, m_One()); };
  for (ArrayRef<Value> left = itemSizes; !left.empty();
       left = left.drop_front()) {
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
  if (isPaired) {
    Value zero = device.constant(0), first = ids.front();
    Value second = device.create<arith::SubIOp>(last, first);
    Value isMiddle = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, first, second);
    Value count = arith::SelectOp::create(
        builder, loc, isMiddle, device.constant(1), device.constant(2));
    loop = scf::ForOp::create(builder, loc, zero, count, device.constant(1));
    builder.setInsertionPointToStart(loop.getBody());
    Value isFirst = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, loop.getInductionVar(), zero);
    ids.front() = arith::SelectOp::create(builder, loc, isFirst, first, second);
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
