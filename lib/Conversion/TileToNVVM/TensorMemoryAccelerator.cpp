//===- TensorMemoryAccelerator.cpp - Copies by TMA ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InlinePtx.h"
#include "Patterns.h"
#include "Rings.h"
#include "Roles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace fovea::tile;

namespace {

/// Starts the copy of each panel of the tile by the one thread of the role.
struct LoadAsyncLowering : OpConversionPattern<LoadAsyncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadAsyncOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto map = dyn_cast<TensorMapType>(op.getSource().getType());
    if (!map)
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    RingUse use(builder, op.getRing().getType(), adaptor.getRing(),
                adaptor.getUse().front());
    // The map's innermost dimension comes first.
    SmallVector<Value> coordinates;
    for (ValueRange index : llvm::reverse(adaptor.getIndices()))
      coordinates.push_back(arith::IndexCastOp::create(
          builder, builder.getI32Type(), index.front()));
    emitInOneThread(rewriter, op, [&](OpBuilder &nested) {
      ImplicitLocOpBuilder one(op.getLoc(), nested);
      emitCopies(one, map, adaptor.getSource().front(), coordinates,
                 adaptor.getSlot().front(), use.full);
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void emitCopies(ImplicitLocOpBuilder &builder, TensorMapType map,
                         Value descriptor, ArrayRef<Value> coordinates,
                         Value slot, Value full) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(builder, value, 32);
    };
    Location loc = builder.getLoc();
    SharedType tile = map.getTile();
    emitPtx(builder, loc,
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
            {full, constant(tile.getSizeInBytes())});
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "cp.async.bulk.tensor." << map.getRank()
       << "d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {";
    llvm::interleaveComma(llvm::seq<int64_t>(0, map.getRank()), os,
                          [&](int64_t dim) { os << "$" << 3 + dim; });
    os << "}], [$2];";
    for (int64_t panel = 0; panel < tile.getNumPanels(); ++panel) {
      SmallVector<Value> operands = {
          arith::AddIOp::create(builder, slot,
                                constant(panel * tile.getPanelBytes())),
          descriptor, full};
      llvm::append_range(operands, coordinates);
      operands[3] =
          arith::AddIOp::create(builder, coordinates.front(),
                                constant(panel * tile.getPanelColumns()));
      emitPtx(builder, loc, text, operands);
    }
  }
};

} // namespace

void fovea::tile::populateTensorMemoryAcceleratorPatterns(
    const TileTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<LoadAsyncLowering>(converter, patterns.getContext());
}
