//===- Turns.cpp - Turns of blocks, and of warp groups --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "InlinePtx.h"
#include "Roles.h"

using namespace mlir;
using namespace fovea::tile;

/// Returns true if threads of the program add, and not TMA for them.
static bool areAddedByThreads(Operation *op) {
  return getProgram(op)
      ->walk([](StoreOp store) {
        return store.getAdd() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns true if TMA stores for the program.
static bool areStoredByTma(Operation *op) {
  return getProgram(op)
      ->walk([](StoreAsyncOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Returns the address of the number of a block, an i64.
static Value getNumber(OpBuilder &builder, Location loc,
                       TypedValue<MemRefType> turns, ValueRange indices) {
  GlobalAccess access(builder, loc, turns, indices,
                      {static_cast<int64_t>(indices.size()) - 1}, {1});
  return LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(),
                                  access.getPointer(getI32(builder, loc, 0)));
}

static Value toI32(OpBuilder &builder, Location loc, Value index) {
  return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), index);
}

/// Waits, in one thread, until the block before this one is past a position.
static void emitWait(OpBuilder &builder, TakeTurnOp op) {
  Location loc = op.getLoc();
  Value position = toI32(builder, loc, op.getPosition());
  SmallVector<Value> before(op.getIndices());
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt,
                                       before.back(), zero);
  before.back() = arith::SubIOp::create(builder, loc, before.back(), one);
  scf::IfOp::create(builder, loc, exists, [&](OpBuilder &nested, Location) {
    emitPtx(nested, loc,
            "{\n.reg .pred early;\n.reg .s32 number;\n"
            "WAIT:\n"
            "ld.acquire.gpu.global.s32 number, [$0];\n"
            "setp.le.s32 early, number, $1;\n"
            "@early bra WAIT;\n}",
            {getNumber(nested, loc, op.getTurns(), before), position});
    // The additions of TMA come after the number that the thread saw.
    if (areStoredByTma(op))
      emitPtx(nested, loc, "fence.proxy.async.global;");
    scf::YieldOp::create(nested, loc);
  });
}

/// The threads that meet where a turn goes from one warp group to the next.
static constexpr int32_t kTurnThreads = 2 * kGroupWarps * kWarpSize;
/// The named barriers of a block (PTX ISA 9.7.13.1).
static constexpr int64_t kNamedBarriers = 16;

/// Returns the number of warp groups of a role.
static int64_t countGroups(RoleOp role) {
  return role.getWarps() / kGroupWarps;
}

/// Returns the named barrier of a role's first warp group. Groups have the last
/// of the block's, each its own, roles the first.
static int64_t getFirstBarrier(RoleOp role) {
  int64_t first = kNamedBarriers;
  for (auto other : role->getBlock()->getOps<RoleOp>()) {
    bool hasTurns =
        other->walk([](TakeGroupTurnOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    if (hasTurns || other == role)
      first -= countGroups(other);
    if (other == role)
      break;
  }
  return first;
}

namespace {

struct TakeTurnLowering final : OpConversionPattern<TakeTurnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TakeTurnOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    emitInOneThread(rewriter, op,
                    [&](OpBuilder &builder) { emitWait(builder, op); });
    if (areAddedByThreads(op))
      emitBarrier(rewriter, op);
    rewriter.eraseOp(op);
    return success();
  }
};

struct PassTurnLowering final : OpConversionPattern<PassTurnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PassTurnOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    // The threads' additions come before the release by the thread that they
    // meet.
    if (areAddedByThreads(op))
      emitBarrier(rewriter, op);
    emitInOneThread(rewriter, op, [&](OpBuilder &builder) {
      // The wait makes the writes of TMA visible to all proxies.
      if (areStoredByTma(op))
        emitPtx(builder, loc, "cp.async.bulk.wait_group 0;");
      emitPtx(builder, loc, "st.release.gpu.global.s32 [$0], $1;",
              {getNumber(builder, loc, op.getTurns(), op.getIndices()),
               toI32(builder, loc, op.getPosition())});
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct TakeGroupTurnLowering final : WarpPattern<TakeGroupTurnOp> {
  using WarpPattern::WarpPattern;

  LogicalResult
  matchAndRewrite(TakeGroupTurnOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto role = op->getParentOfType<RoleOp>();
    Value own =
        arith::AddIOp::create(rewriter, loc, warps.getGroup(rewriter, op),
                              getI32(rewriter, loc, getFirstBarrier(role)));
    NVVM::BarrierOp::create(rewriter, loc, TypeRange{}, own,
                            getI32(rewriter, loc, kTurnThreads),
                            NVVM::BarrierReductionAttr{}, Value{});
    rewriter.eraseOp(op);
    return success();
  }
};

struct PassGroupTurnLowering final : WarpPattern<PassGroupTurnOp> {
  using WarpPattern::WarpPattern;

  LogicalResult
  matchAndRewrite(PassGroupTurnOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto role = op->getParentOfType<RoleOp>();
    Value group = warps.getGroup(rewriter, op);
    Value isLast =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, group,
                              getI32(rewriter, loc, countGroups(role) - 1));
    int64_t first = getFirstBarrier(role);
    Value behind = arith::AddIOp::create(rewriter, loc, group,
                                         getI32(rewriter, loc, first + 1));
    Value next = arith::SelectOp::create(rewriter, loc, isLast,
                                         getI32(rewriter, loc, first), behind);
    emitPtx(rewriter, loc, "bar.arrive $0, $1;",
            {next, getI32(rewriter, loc, kTurnThreads)});
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void fovea::tile::populateTurnPatterns(const TileTypeConverter &converter,
                                       RewritePatternSet &patterns,
                                       const WarpNumbers &warps) {
  patterns.add<TakeTurnLowering, PassTurnLowering>(converter,
                                                   patterns.getContext());
  patterns.add<TakeGroupTurnLowering, PassGroupTurnLowering>(
      converter, patterns.getContext(), warps);
}
