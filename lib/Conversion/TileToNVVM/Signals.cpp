//===- Signals.cpp - Warps of a block that wait for those of another ------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "InlinePtx.h"
#include "Patterns.h"
#include "Roles.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fovea::tile;

/// Returns the address of the executing warp's number, an i64.
template <typename OpTy>
static Value getFlag(OpBuilder &builder, OpTy op) {
  Location loc = op.getLoc();
  SmallVector<Value> indices(op.getIndices());
  indices.push_back(arith::ConstantIndexOp::create(builder, loc, 0));
  MemRefType flags = op.getFlags().getType();
  GlobalAccess access(builder, loc, op.getFlags(), indices,
                      {flags.getRank() - 1}, {flags.getShape().back()});
  Value warp = arith::DivUIOp::create(builder, loc, getThread(builder, op),
                                      getI32(builder, loc, kWarpSize));
  return LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(),
                                  access.getPointer(warp));
}

namespace {

struct SignalLowering final : OpConversionPattern<SignalOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SignalOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    // The threads of the warp see each other's previous writes.
    NVVM::SyncWarpOp::create(rewriter, loc, getI32(rewriter, loc, -1));
    emitInFirstLane(rewriter, op, [&](OpBuilder &builder) {
      emitPtx(builder, loc, "st.release.gpu.global.s32 [$0], 1;",
              {getFlag(builder, op)});
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct AwaitLowering final : OpConversionPattern<AwaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AwaitOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    // All threads of the warp ask, and vote: where one alone goes around a
    // loop, ptxas takes what the kernel computes from then on for numbers of
    // threads, and keeps none in uniform registers (d = 64: 11% slower).
    emitPtx(rewriter, op.getLoc(),
            "{\n.reg .pred unset;\n.reg .s32 number;\n"
            "WAIT:\n"
            "ld.acquire.gpu.global.s32 number, [$0];\n"
            "setp.eq.s32 unset, number, 0;\n"
            "vote.sync.any.pred unset, unset, 0xffffffff;\n"
            "@unset bra WAIT;\n}",
            {getFlag(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }
};

struct ClaimLowering final : OpConversionPattern<ClaimOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ClaimOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    GlobalAccess access(rewriter, loc, op.getCounter(), {zero}, {0}, {1});
    Value first = getI32(rewriter, loc, 0), one = getI32(rewriter, loc, 1);
    Value taken = LLVM::AtomicRMWOp::create(
        rewriter, loc, LLVM::AtomicBinOp::add, access.getPointer(first), one,
        LLVM::AtomicOrdering::monotonic, "device");
    rewriter.replaceOpWithNewOp<arith::IndexCastUIOp>(
        op, rewriter.getIndexType(), taken);
    return success();
  }
};

} // namespace

void fovea::tile::populateSignalPatterns(const TileTypeConverter &converter,
                                         RewritePatternSet &patterns) {
  patterns.add<SignalLowering, AwaitLowering, ClaimLowering>(
      converter, patterns.getContext());
}
