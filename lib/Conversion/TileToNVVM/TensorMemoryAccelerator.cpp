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

#include "fovea/Dialect/Tile/IR/TensorMaps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fovea::tile;

/// The place of a tile as TMA has it: the innermost dimension first.
static SmallVector<Value> getCoordinates(ImplicitLocOpBuilder &builder,
                                         ArrayRef<ValueRange> indices) {
  SmallVector<Value> coordinates;
  for (ValueRange index : llvm::reverse(indices))
    coordinates.push_back(arith::IndexCastOp::create(
        builder, builder.getI32Type(), index.front()));
  return coordinates;
}

/// Emits `text` once for each panel of `tile`: with the panel's address as $0,
/// the descriptor as $1, `others`, and then the panel's coordinates, whose
/// names replace `@` in the text.
static void emitPanels(ImplicitLocOpBuilder &builder, TensorMapType map,
                       SharedType tile, StringRef text, Value address,
                       Value descriptor, ValueRange others,
                       ArrayRef<Value> coordinates) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, value, 32);
  };
  auto [before, after] = text.split('@');
  std::string whole = before.str();
  llvm::raw_string_ostream os(whole);
  llvm::interleaveComma(
      llvm::seq<int64_t>(0, map.getRank()), os,
      [&](int64_t dim) { os << "$" << 2 + others.size() + dim; });
  os << after;
  for (int64_t panel = 0; panel < tile.getNumPanels(); ++panel) {
    SmallVector<Value> operands = {
        arith::AddIOp::create(builder, address,
                              constant(panel * tile.getPanelBytes())),
        descriptor};
    llvm::append_range(operands, others);
    operands.push_back(
        arith::AddIOp::create(builder, coordinates.front(),
                              constant(panel * tile.getPanelColumns())));
    llvm::append_range(operands, coordinates.drop_front());
    emitPtx(builder, builder.getLoc(), whole, operands);
  }
}

namespace {

/// Starts the copy of each panel of the tile by one thread.
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
    SmallVector<Value> coordinates =
        getCoordinates(builder, adaptor.getIndices());
    emitInOneThread(rewriter, op, [&](OpBuilder &nested) {
      ImplicitLocOpBuilder one(op.getLoc(), nested);
      emitPtx(
          one, op.getLoc(),
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
          {use.full, getI32(one, op.getLoc(), map.getTile().getSizeInBytes())});
      std::string text =
          llvm::formatv("cp.async.bulk.tensor.{0}d.shared::cluster.global."
                        "mbarrier::complete_tx::bytes [$0], [$1, {{@}], [$2];",
                        map.getRank());
      SharedType tile = map.getTile();
      emitPanels(one, map, tile, text, adaptor.getSlot().front(),
                 adaptor.getSource().front(), use.full, coordinates);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Starts the copy of each panel by the first thread, which also waits.
struct StoreAsyncLowering : OpConversionPattern<StoreAsyncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreAsyncOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto map = dyn_cast<TensorMapType>(op.getTarget().getType());
    if (!map)
      return op.emitOpError("expected a tensor map to copy by, got ")
             << op.getTarget().getType();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    SmallVector<Value> coordinates =
        getCoordinates(builder, adaptor.getIndices());
    SharedType tile = op.getSource().getType();
    emitInOneThread(rewriter, op, [&](OpBuilder &nested) {
      ImplicitLocOpBuilder one(op.getLoc(), nested);
      std::string text = llvm::formatv(
          "cp{0}.async.bulk.tensor.{1}d.global.shared::cta{2}.bulk_group "
          "[$1, {{@}], [$0];",
          op.getAdd() ? ".reduce" : "", map.getRank(),
          op.getAdd() ? ".add.tile" : "");
      emitPanels(one, map, tile, text, adaptor.getSource().front(),
                 adaptor.getTarget().front(), {}, coordinates);
      emitPtx(one, op.getLoc(), "cp.async.bulk.commit_group;");
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct WaitStoresLowering : OpConversionPattern<WaitStoresOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WaitStoresOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    emitInOneThread(rewriter, op, [&](OpBuilder &nested) {
      emitPtx(nested, op.getLoc(),
              "cp.async.bulk.wait_group.read " + Twine(op.getPending()) + ";");
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void fovea::tile::populateTensorMemoryAcceleratorPatterns(
    const TileTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<LoadAsyncLowering, StoreAsyncLowering, WaitStoresLowering>(
      converter, patterns.getContext());
}
