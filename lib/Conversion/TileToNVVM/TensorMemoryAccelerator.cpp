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
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fovea::tile;

/// Returns the place of a tile in TMA's order: the innermost dimension first.
static SmallVector<Value> getCoordinates(ImplicitLocOpBuilder &builder,
                                         ArrayRef<ValueRange> indices) {
  SmallVector<Value> coordinates;
  for (ValueRange index : llvm::reverse(indices))
    coordinates.push_back(arith::IndexCastOp::create(
        builder, builder.getI32Type(), index.front()));
  return coordinates;
}

/// The number of panel copies beyond which they are a loop: ptxas readies the
/// operands of all copies in uniform registers, and beyond these in the few
/// registers of a role that copies (head dim 240, of 15 panels: 4 bytes
/// spilled).
static constexpr int64_t kMostCopies = 8;

/// Emits `text` for each panel of `tile`: with the panel's address as $0, the
/// descriptor as $1, `others`, and then the panel's coordinates, whose names
/// replace `@` in the text.
static void emitPanels(ImplicitLocOpBuilder &builder, TensorMapType map,
                       SharedType tile, StringRef text, Value address,
                       Value descriptor, ValueRange others,
                       ArrayRef<Value> coordinates) {
  auto [before, after] = text.split('@');
  std::string whole = before.str();
  llvm::raw_string_ostream os(whole);
  unsigned column = 2 + others.size();
  llvm::interleaveComma(llvm::seq<int64_t>(0, map.getRank()), os,
                        [&](int64_t dim) { os << "$" << column + dim; });
  os << after;
  auto emit = [&](int64_t byte, int64_t distance, StringRef text) {
    auto move = [&](Value value, int64_t by) -> Value {
      return arith::AddIOp::create(
          builder, value, arith::ConstantIntOp::create(builder, by, 32));
    };
    SmallVector<Value> operands = {move(address, byte), descriptor};
    llvm::append_range(operands, others);
    operands.push_back(move(coordinates.front(), distance));
    llvm::append_range(operands, coordinates.drop_front());
    emitPtx(builder, builder.getLoc(), text, operands);
  };
  int64_t panels = tile.getNumPanels();
  if (panels <= kMostCopies) {
    for (int64_t panel = 0; panel < panels; ++panel)
      emit(panel * tile.getPanelBytes(), panel * tile.getPanelColumns(), whole);
    return;
  }
  // The loop is written in PTX, where ptxas can be kept from unrolling it.
  std::string copy = StringRef(whole).str();
  auto rename = [&](const std::string &operand, StringRef name) {
    copy.replace(copy.find(operand), operand.size(), name);
  };
  rename("$0", "address");
  rename("$" + std::to_string(column), "column");
  emit(0, 0,
       llvm::formatv("{{\n.reg .pred more;\n.reg .b32 address, column, end;\n"
                     "mov.b32 address, $0;\nmov.b32 column, ${0};\n"
                     "add.s32 end, column, {1};\n"
                     "COPY:\n.pragma \"nounroll\";\n{2}\n"
                     "add.s32 address, address, {3};\n"
                     "add.s32 column, column, {4};\n"
                     "setp.lt.s32 more, column, end;\n"
                     "@more bra COPY;\n}",
                     column, panels * tile.getPanelColumns(), copy,
                     tile.getPanelBytes(), tile.getPanelColumns())
           .str());
}

/// Writes zeros to rows `first` to below `end` of the tile at `address`. A
/// swizzle only permutes the bytes of a row.
static void emitZeroRows(ImplicitLocOpBuilder &builder, SharedType tile,
                         Value address, Value first, Value end) {
  constexpr int64_t kUnitBytes = 16;
  Location loc = builder.getLoc();
  int64_t rowBytes = tile.getPanelColumns() * tile.getElementBytes();
  auto loop = scf::ForOp::create(builder, first, end, getI32(builder, loc, 1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value offset = arith::MulIOp::create(builder, loop.getInductionVar(),
                                       getI32(builder, loc, rowBytes));
  Value row = arith::AddIOp::create(builder, address, offset);
  auto unit = VectorType::get(kUnitBytes / 4, builder.getI32Type());
  Value zeros = arith::ConstantOp::create(builder, builder.getZeroAttr(unit));
  for (int64_t panel = 0; panel < tile.getNumPanels(); ++panel)
    for (int64_t byte = 0; byte < rowBytes; byte += kUnitBytes)
      LLVM::StoreOp::create(
          builder, zeros,
          toSharedPointer(builder, loc, row,
                          panel * tile.getPanelBytes() + byte),
          kUnitBytes);
}

namespace {

/// The rows of a tile that a copy does not leave out, i32s from 0 to their
/// number.
struct KeptRows {
  KeptRows(ImplicitLocOpBuilder &builder, SharedType tile, ValueRange bounds)
      : count(getI32(builder, builder.getLoc(), tile.getShape().front())) {
    Value zero = arith::ConstantIndexOp::create(builder, 0);
    Value all =
        arith::ConstantIndexOp::create(builder, tile.getShape().front());
    auto clamp = [&](Value bound) -> Value {
      bound = arith::MaxSIOp::create(builder, bound, zero);
      bound = arith::MinSIOp::create(builder, bound, all);
      return arith::IndexCastOp::create(builder, builder.getI32Type(), bound);
    };
    first = clamp(bounds[0]);
    end = clamp(bounds[1]);
    isEmpty =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::sle, end, first);
    Value left = arith::SubIOp::create(builder, end, first);
    Value isPart =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, left, count);
    Value isNone = arith::ConstantIntOp::create(builder, 0, 1);
    isCut = arith::SelectOp::create(builder, isEmpty, isNone, isPart);
  }

  Value first, end, count;
  /// Conditions: the copy leaves out all rows; it leaves out some but not all.
  Value isEmpty, isCut;
};

/// Starts the copy of each panel of the tile by one thread. Where the op leaves
/// out some rows of the tile, the thread waits for the copy at a barrier of its
/// own, writes the zeros, and then arrives at the slot's.
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
      SharedType tile = map.getTile();
      std::optional<KeptRows> rows;
      Value barrier = use.full, state;
      Value bytes = getI32(one, op.getLoc(), tile.getSizeInBytes());
      if (op.getRows().empty()) {
        emitPtx(one, op.getLoc(),
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
                {barrier, bytes});
      } else {
        rows.emplace(one, tile, op.getRows());
        // The coordinates of an empty tile are put before the tensor: TMA gives
        // zeros.
        Value &row = coordinates[map.getRank() - 1 - op.getDims().front()];
        row = arith::SelectOp::create(
            one, rows->isEmpty,
            getI32(one, op.getLoc(), -tile.getShape().front()), row);
        barrier = arith::SelectOp::create(
            one, rows->isCut,
            getCutBarrier(one, op.getRing().getType(), adaptor.getRing()),
            barrier);
        state =
            emitPtx(one, op.getLoc(),
                    "mbarrier.arrive.expect_tx.shared::cta.b64 $0, [$1], $2;",
                    {barrier, bytes}, one.getI64Type())
                .front();
      }
      std::string text =
          llvm::formatv("cp.async.bulk.tensor.{0}d.shared::cluster.global."
                        "mbarrier::complete_tx::bytes [$0], [$1, {{@}], [$2];",
                        map.getRank());
      emitPanels(one, map, tile, text, adaptor.getSlot().front(),
                 adaptor.getSource().front(), barrier, coordinates);
      if (rows)
        emitZeros(one, *rows, tile, adaptor.getSlot().front(), barrier, state,
                  use.full);
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Completes the copy of a tile that is cut: waits for the phase of `barrier`
  /// that `state` belongs to, then writes zeros to the other rows.
  static void emitZeros(ImplicitLocOpBuilder &builder, const KeptRows &rows,
                        SharedType tile, Value slot, Value barrier, Value state,
                        Value full) {
    Location loc = builder.getLoc();
    auto branch =
        scf::IfOp::create(builder, rows.isCut, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    emitPtx(builder, loc,
            "{\n.reg .pred done;\n"
            "WAIT:\n"
            "mbarrier.try_wait.shared::cta.b64 done, [$0], $1;\n"
            "@done bra DONE;\n"
            "bra WAIT;\n"
            "DONE:\n}",
            {barrier, state});
    emitZeroRows(builder, tile, slot, getI32(builder, loc, 0), rows.first);
    emitZeroRows(builder, tile, slot, rows.end, rows.count);
    emitPtx(builder, loc, "fence.proxy.async.shared::cta;");
    emitArrive(builder, loc, full);
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
