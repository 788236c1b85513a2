//===- Widen.cpp - Bytes in shared memory as numbers of 16 bits -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread reads units of 8 bytes and writes 16. Neighbouring threads have
// neighbouring units of a row, so that neither reads nor writes of a warp meet
// in a bank.
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "InlinePtx.h"
#include "Patterns.h"
#include "Rings.h"
#include "WidenBytes.h"

#include "fovea/Dialect/Tile/IR/SharedMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace fovea::tile;

/// Columns of a unit, and the units of a thread that are read before the first
/// of them is written: reads do not pass writes.
static constexpr int64_t kUnit = 8, kUnitsAtOnce = 8;

namespace {
/// Widens a tile by all threads that run an op.
class TileWidening {
public:
  TileWidening(OpBuilder &builder, Operation *op, SharedType from, Value source,
               SharedType to, Value target);

  void emit();

private:
  /// Adds the places of a thread's first units in a tile. The rows of every
  /// `period`th unit are a multiple of a swizzle's rows apart.
  void addAccesses(SmallVectorImpl<SharedAccess> &accesses, SharedType type,
                   Value address);
  Value read(int64_t unit);
  void write(int64_t unit, Value bytes);
  void emitUnits(int64_t first, int64_t count);

  Value constant(int64_t value) { return getI32(builder, loc, value); }
  int64_t getRow(int64_t unit) const {
    return unit / period * period * rowStep;
  }

  OpBuilder &builder;
  Location loc;
  SharedType from, to;
  /// Rows from one unit of a thread to the next, and threads with units.
  int64_t rowStep, threads;
  int64_t period;
  Value thread, row, column;
  SmallVector<SharedAccess, 1> reads, writes;
};
} // namespace

TileWidening::TileWidening(OpBuilder &builder, Operation *op, SharedType from,
                           Value source, SharedType to, Value target)
    : builder(builder), loc(op->getLoc()), from(from), to(to),
      thread(getThread(builder, op)) {
  int64_t rowUnits = from.getShape().back() / kUnit;
  rowStep = getNumThreads(op) / rowUnits;
  threads = rowStep * rowUnits;
  period = kSwizzledRows / std::gcd(kSwizzledRows, rowStep);
  row = arith::DivUIOp::create(builder, loc, thread, constant(rowUnits));
  column = arith::MulIOp::create(
      builder, loc,
      arith::RemUIOp::create(builder, loc, thread, constant(rowUnits)),
      constant(kUnit));
  addAccesses(reads, from, source);
  addAccesses(writes, to, target);
}

void TileWidening::addAccesses(SmallVectorImpl<SharedAccess> &accesses,
                               SharedType type, Value address) {
  for (int64_t number = 0; number < period; ++number) {
    Value first = number ? arith::AddIOp::create(builder, loc, row,
                                                 constant(number * rowStep))
                         : row;
    accesses.emplace_back(builder, loc, type, address, first,
                          ThreadPart{column, ~uint64_t(0)});
  }
}

Value TileWidening::read(int64_t unit) {
  auto type = VectorType::get(2, builder.getI32Type());
  return LLVM::LoadOp::create(builder, loc, type,
                              reads[unit % period].getPointer(getRow(unit), 0),
                              kUnit);
}

void TileWidening::write(int64_t unit, Value bytes) {
  Type word = builder.getI32Type();
  auto type = VectorType::get(4, word);
  Value numbers = LLVM::PoisonOp::create(builder, loc, type);
  for (int64_t part = 0; part < 2; ++part) {
    Value four =
        LLVM::ExtractElementOp::create(builder, loc, bytes, constant(part));
    auto [first, second] = widenBytes(builder, loc, four, to.getElementType());
    for (auto [index, pair] : llvm::enumerate(std::array{first, second}))
      numbers = LLVM::InsertElementOp::create(
          builder, loc, numbers, pair,
          constant(2 * part + static_cast<int64_t>(index)));
  }
  LLVM::StoreOp::create(builder, loc, numbers,
                        writes[unit % period].getPointer(getRow(unit), 0),
                        2 * kUnit);
}

void TileWidening::emitUnits(int64_t first, int64_t count) {
  SmallVector<Value> next;
  auto readFrom = [&](int64_t unit) {
    next.clear();
    for (int64_t end = std::min(unit + kUnitsAtOnce, first + count); unit < end;
         ++unit)
      next.push_back(read(unit));
  };
  readFrom(first);
  for (int64_t unit = first; unit < first + count; unit += kUnitsAtOnce) {
    SmallVector<Value> units = next;
    readFrom(unit + kUnitsAtOnce);
    for (auto [index, bytes] : llvm::enumerate(units))
      write(unit + static_cast<int64_t>(index), bytes);
  }
}

void TileWidening::emit() {
  OpBuilder::InsertionGuard guard(builder);
  auto emitIf = [&](Value left, int64_t right) {
    Value isHere = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, left, constant(right));
    auto branch =
        scf::IfOp::create(builder, loc, isHere, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
  };
  int64_t rows = from.getShape().front(), units = rows / rowStep;
  if (threads % kWarpSize)
    emitIf(thread, threads);
  emitUnits(0, units);
  if (rows % rowStep) {
    emitIf(row, rows % rowStep);
    emitUnits(units, 1);
  }
}

namespace {
struct ConvertWiden final : OpConversionPattern<WidenOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WidenOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value address = getSharedAddress(rewriter, op, getSharedOffset(op));
    // Threads that are behind may still read what the tile held.
    if (op->getParentOfType<LoopLikeOpInterface>())
      emitBarrier(rewriter, op);
    TileWidening(rewriter, op, op.getSource().getType(),
                 adaptor.getSource().front(), op.getResult().getType(), address)
        .emit();
    emitProxyFence(rewriter, op.getLoc());
    emitBarrier(rewriter, op);
    rewriter.replaceOp(op, address);
    return success();
  }
};

/// Widens into a slot, and signals it once for each warp.
struct ConvertWidenInto final : OpConversionPattern<WidenIntoOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WidenIntoOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    RingUse use(builder, op.getRing(), adaptor.getRing(),
                adaptor.getUse().front());
    TileWidening(rewriter, op, op.getSource().getType(),
                 adaptor.getSource().front(), op.getSlot().getType(),
                 adaptor.getSlot().front())
        .emit();
    emitProxyFence(rewriter, op.getLoc());
    emitWarpArrive(rewriter, op, use.full);
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void fovea::tile::populateWidenPatterns(const TileTypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<ConvertWiden, ConvertWidenInto>(converter,
                                               patterns.getContext());
}
