//===- Turns.cpp - Blocks that add in a fixed order -----------------------===//
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

/// Whether threads of the program add by themselves, and not TMA for them.
static bool areAddedByThreads(Operation *op) {
  return getProgram(op)
      ->walk([](StoreOp store) {
        return store.getAdd() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether TMA stores for the program.
static bool areStoredByTma(Operation *op) {
  return getProgram(op)
      ->walk([](StoreAsyncOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

namespace {

struct TakeTurnLowering final : OpConversionPattern<TakeTurnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TakeTurnOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    bool byGroups = areStoredByGroups(op), byThreads = areAddedByThreads(op);
    if (byThreads) {
      // What all threads have added is there before one of them says so.
      NVVM::MembarOp::create(rewriter, loc, NVVM::MemScopeKind::GPU);
      emitBarrier(rewriter, op);
    }
    Value slot = getI32(rewriter, loc, 0);
    if (byGroups)
      slot = arith::DivUIOp::create(
          rewriter, loc, getThread(rewriter, op),
          getI32(rewriter, loc, kGroupWarps * kWarpSize));
    auto emit = [&](OpBuilder &builder) { emitTurn(builder, op, slot); };
    if (byGroups)
      emitInEachGroup(rewriter, op, emit);
    else
      emitInOneThread(rewriter, op, emit);
    if (byThreads)
      emitBarrier(rewriter, op);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void emitTurn(OpBuilder &builder, TakeTurnOp op, Value slot);
};

} // namespace

/// By one thread: waits, then says that what it had stored is complete.
void TakeTurnLowering::emitTurn(OpBuilder &builder, TakeTurnOp op, Value slot) {
  Location loc = op.getLoc();
  int64_t last = op.getIndices().size();
  auto getNumber = [&](ValueRange indices) -> Value {
    SmallVector<Value> all(indices);
    all.push_back(arith::ConstantIndexOp::create(builder, loc, 0));
    GlobalAccess access(builder, loc, op.getTurns(), all, {last},
                        {TakeTurnOp::kSlots});
    return LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(),
                                    access.getPointer(slot));
  };
  auto constant = [&](int64_t value) { return getI32(builder, loc, value); };
  Value position = constant(0), here = constant(TakeTurnOp::kEnd), past = here;
  if (op.getPosition()) {
    position = arith::IndexCastOp::create(builder, loc, builder.getI32Type(),
                                          op.getPosition());
    here = arith::AddIOp::create(builder, loc, position, constant(1));
    past = arith::AddIOp::create(builder, loc, position, constant(2));
  }

  SmallVector<Value> next(op.getIndices());
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  next.back() = arith::AddIOp::create(builder, loc, next.back(), one);
  Value count = memref::DimOp::create(builder, loc, op.getTurns(), last - 1);
  Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                       next.back(), count);
  auto branch =
      scf::IfOp::create(builder, loc, exists, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    emitPtx(builder, loc,
            "{\n.reg .pred early;\n.reg .s32 number;\n"
            "WAIT:\n"
            "ld.acquire.gpu.global.s32 number, [$0];\n"
            "setp.lt.s32 early, number, $1;\n"
            "@early bra WAIT;\n}",
            {getNumber(next), past});
  }
  if (areStoredByTma(op))
    emitPtx(builder, loc,
            "cp.async.bulk.wait_group 0;\nfence.proxy.async.global;");
  emitPtx(builder, loc, "st.release.gpu.global.s32 [$0], $1;",
          {getNumber(op.getIndices()), here});
}

void fovea::tile::populateTurnPatterns(const TileTypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<TakeTurnLowering>(converter, patterns.getContext());
}
