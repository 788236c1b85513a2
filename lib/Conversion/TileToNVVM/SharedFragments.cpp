//===- SharedFragments.cpp - Fragments in shared memory -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "InlinePtx.h"
#include "Rings.h"
#include "TransposedWrite.h"
#include "WarpMatrices.h"

#include "fovea/Dialect/Tile/IR/Proxies.h"
#include "fovea/Dialect/Tile/IR/SharedMemory.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

/// Returns true if pairs of 32 bits of an accumulator would meet in a bank: of
/// the four rows that half a warp accesses, an even row and the odd one after
/// it have the same 32 bytes of a row of 128, where the swizzle only exchanges
/// the halves of 32 bytes for them.
static bool hasConflicts(LayoutAttr layout, SharedType type) {
  SmallVector<int64_t> permutation;
  return type.getElementBytes() == 4 && type.getSwizzle() == 128 &&
         layout.getColumnWarps(permutation) &&
         layout.getRegisterOffset(layout.getNumRegisters() - 1)[1] % 32 == 25;
}

namespace {

/// Access to pairs of an accumulator by two instructions for those of columns
/// `c` and `c + kDistance`, which threads of odd rows execute in the opposite
/// order.
class CrossedPairs {
public:
  static constexpr int64_t kDistance = 16;

  CrossedPairs(OpBuilder &builder, Operation *op, LayoutAttr layout,
               SharedType type, Value address);

  /// A pointer to the pair that the thread accesses first, or second, of the
  /// two at these coordinates.
  Value getPointer(bool isSecond, int64_t row, int64_t column) {
    return accesses[isSecond].getPointer(row, column);
  }
  /// Returns `odd` in threads of odd rows, else `even`.
  Value choose(Value odd, Value even) {
    return arith::SelectOp::create(builder, loc, isOdd, odd, even);
  }

private:
  OpBuilder &builder;
  Location loc;
  Value isOdd;
  SmallVector<SharedAccess, 2> accesses;
};

} // namespace

CrossedPairs::CrossedPairs(OpBuilder &builder, Operation *op, LayoutAttr layout,
                           SharedType type, Value address)
    : builder(builder), loc(op->getLoc()) {
  Value row = getThreadCoordinate(builder, op, layout, 0);
  ThreadPart column = getThreadPart(builder, op, layout, 1);
  Value parity =
      arith::AndIOp::create(builder, loc, row, getI32(builder, loc, 1));
  isOdd = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, parity,
                                getI32(builder, loc, 0));
  Value first = arith::MulIOp::create(builder, loc, parity,
                                      getI32(builder, loc, kDistance));
  Value second = arith::SubIOp::create(builder, loc,
                                       getI32(builder, loc, kDistance), first);
  for (Value offset : {first, second}) {
    Value sum = arith::AddIOp::create(builder, loc, column.value, offset);
    accesses.emplace_back(builder, loc, type, address, row,
                          ThreadPart{sum, column.bits | kDistance});
  }
}

namespace {

/// Writes a fragment's registers to a tile in shared memory, or those of its
/// columns from `column` on, as many as the tile has.
class FragmentWrite {
public:
  FragmentWrite(OpBuilder &builder, Operation *op, FragmentType value,
                SharedType type, Value address, int64_t column = 0)
      : builder(builder), op(op), loc(op->getLoc()), layout(value.getLayout()),
        type(type), address(address), column(column) {}

  void store(ValueRange registers);

private:
  /// Returns the place of a register's element in the tile, without the
  /// thread's part; nullopt if the tile does not take it.
  std::optional<std::pair<int64_t, int64_t>> getPlace(int64_t index) const {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    int64_t inTile = place[1] - column;
    if (inTile < 0 || inTile >= type.getShape()[1])
      return std::nullopt;
    return std::pair(place[0], inTile);
  }

  void storePairs(ValueRange registers);

  OpBuilder &builder;
  Operation *op;
  Location loc;
  LayoutAttr layout;
  SharedType type;
  Value address;
  int64_t column;
};

} // namespace

void FragmentWrite::store(ValueRange registers) {
  WarpMatrices matrices(builder, op, layout, type);
  if (matrices && getGpuArch(op).hasMatrixStores() &&
      column % WarpMatrices::kSize == 0)
    return matrices.store(registers, address, /*transposed=*/false, column);
  if (hasConflicts(layout, type))
    return storePairs(registers);
  int64_t width = getVectorWidth(layout, type.getElementBytes());
  SharedAccess access(builder, loc, type, address,
                      getThreadCoordinate(builder, op, layout, 0),
                      getThreadPart(builder, op, layout, 1));
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e;
       index += width) {
    auto place = getPlace(index);
    if (!place)
      continue;
    LLVM::StoreOp::create(
        builder, loc, packVector(builder, loc, registers.slice(index, width)),
        access.getPointer(place->first, place->second),
        width * type.getElementBytes());
  }
}

void FragmentWrite::storePairs(ValueRange registers) {
  CrossedPairs pairs(builder, op, layout, type, address);
  DenseMap<std::pair<int64_t, int64_t>, int64_t> places;
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e; ++index)
    if (auto place = getPlace(index))
      places[*place] = index;
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e; index += 2) {
    auto place = getPlace(index);
    if (!place || place->second & CrossedPairs::kDistance)
      continue;
    auto [row, column] = *place;
    int64_t partner = places.at({row, column + CrossedPairs::kDistance});
    for (bool isSecond : {false, true}) {
      SmallVector<Value> pair;
      for (int64_t part : {0, 1}) {
        Value own = registers[index + part], other = registers[partner + part];
        pair.push_back(pairs.choose(/*odd=*/isSecond ? own : other,
                                    /*even=*/isSecond ? other : own));
      }
      LLVM::StoreOp::create(builder, loc, packVector(builder, loc, pair),
                            pairs.getPointer(isSecond, row, column),
                            2 * type.getElementBytes());
    }
  }
}

namespace {

struct ConvertToShared final : OpConversionPattern<ToSharedOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ToSharedOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value address = op.getRing()
                        ? adaptor.getRing().front()
                        : getSharedAddress(rewriter, op, getSharedOffset(op));
    if (op.getSlots()) {
      Value use = arith::IndexCastOp::create(
          rewriter, loc, rewriter.getI32Type(), op.getUse());
      Value slot = arith::RemUIOp::create(
          rewriter, loc, use, getI32(rewriter, loc, *op.getSlots()));
      Value offset = arith::MulIOp::create(
          rewriter, loc, slot,
          getI32(rewriter, loc, getSlotBytes(op.getResult().getType())));
      address = arith::AddIOp::create(rewriter, loc, address, offset);
    }
    // Threads that are behind may still read the slot's previous contents;
    // contents of two slots ago are not read: the threads have met since.
    if (op.getRing() ||
        (!op.getSlots() && op->getParentOfType<LoopLikeOpInterface>()))
      emitBarrier(rewriter, op);
    if (op.getTransposed())
      TransposedWrite(rewriter, op, address).store(adaptor.getValue());
    else
      FragmentWrite(rewriter, op, op.getValue().getType(),
                    op.getResult().getType(), address)
          .store(adaptor.getValue());
    if (mayBeReadByProxy(op.getResult()))
      emitProxyFence(rewriter, loc);
    emitBarrier(rewriter, op);
    rewriter.replaceOp(op, address);
    return success();
  }
};

/// Writes to a slot. Each thread signals what it has written: another warp may
/// be the next one that writes there.
struct ConvertWrite final : OpConversionPattern<WriteOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WriteOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const machine::GpuArch &arch = getGpuArch(op);
    if (!arch.hasBulkCopies)
      return op.emitOpError("expected a ring with barriers, which ")
             << arch.name << " has not";
    FragmentType value = op.getValue().getType();
    if (op.getColumn() && !value.getLayout().hasWholeRows())
      return op.emitOpError("expected warps that own whole rows, got ")
             << value;
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    RingUse use(builder, op.getRing(), adaptor.getRing(),
                adaptor.getUse().front());
    FragmentWrite(rewriter, op, value, op.getSlot().getType(),
                  adaptor.getSlot().front(),
                  static_cast<int64_t>(op.getColumn().value_or(0)))
        .store(adaptor.getValue());
    emitProxyFence(rewriter, op.getLoc());
    emitArrive(rewriter, op.getLoc(), use.full);
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertShiftRows final : OpConversionPattern<ShiftRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ShiftRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SharedType type = op.getTile().getType();
    // Rows of a panel follow one another.
    Value rowBytes =
        getI32(rewriter, loc, type.getPanelColumns() * type.getElementBytes());
    Value by = arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(),
                                          adaptor.getBy().front());
    Value bytes = arith::MulIOp::create(rewriter, loc, by, rowBytes);
    rewriter.replaceOpWithNewOp<arith::AddIOp>(op, adaptor.getTile().front(),
                                               bytes);
    return success();
  }
};

/// Reads the registers of a fragment from a tile in shared memory.
class FragmentRead {
public:
  /// `first` is the op's first column, or null.
  FragmentRead(OpBuilder &builder, FromSharedOp op, Value address, Value first)
      : builder(builder), op(op), loc(op.getLoc()),
        layout(op.getResult().getType().getLayout()),
        type(op.getSource().getType()), address(address), first(first) {}

  SmallVector<Value> load();

private:
  SmallVector<Value> loadPairs();
  SmallVector<Value> loadTransposed();
  SmallVector<Value> loadLine(ArrayRef<int64_t> steps);
  /// Returns `width` neighbours.
  SmallVector<Value> loadVector(Value pointer, int64_t width);
  SmallVector<Value> loadBooleans(Value pointer, int64_t width);

  OpBuilder &builder;
  FromSharedOp op;
  Location loc;
  LayoutAttr layout;
  SharedType type;
  Value address, first;
};

} // namespace

SmallVector<Value> FragmentRead::loadBooleans(Value pointer, int64_t width) {
  // In a vector they would be bits.
  constexpr int64_t kByte = 8, kBits = (1 << kByte) - 1;
  auto integer = builder.getIntegerType(width * kByte);
  Value bytes = LLVM::LoadOp::create(builder, loc, integer, pointer, width);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(integer, value));
  };
  SmallVector<Value> elements;
  for (int64_t part = 0; part < width; ++part) {
    Value byte = arith::AndIOp::create(builder, loc, bytes,
                                       constant(kBits << (part * kByte)));
    elements.push_back(arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ne, byte, constant(0)));
  }
  return elements;
}

SmallVector<Value> FragmentRead::loadVector(Value pointer, int64_t width) {
  Type element = type.getElementType();
  if (element.isInteger(1))
    return loadBooleans(pointer, width);
  if (width == 1)
    return {LLVM::LoadOp::create(builder, loc, element, pointer)};
  Value vector =
      LLVM::LoadOp::create(builder, loc, VectorType::get(width, element),
                           pointer, width * type.getElementBytes());
  SmallVector<Value> elements;
  for (int64_t part = 0; part < width; ++part)
    elements.push_back(LLVM::ExtractElementOp::create(
        builder, loc, vector, getI32(builder, loc, part)));
  return elements;
}

/// Reads elements at their distances from the thread's first. Those of the same
/// are one after CSE: of a table of distances a thread of WGMMA's accumulator
/// has 18 in 32 scores.
SmallVector<Value> FragmentRead::loadLine(ArrayRef<int64_t> steps) {
  Value column =
      arith::IndexCastOp::create(builder, loc, builder.getI32Type(), first);
  for (auto [dim, step] : llvm::enumerate(steps)) {
    if (step == 0)
      continue;
    Value part = arith::MulIOp::create(
        builder, loc, getThreadCoordinate(builder, op, layout, dim),
        getI32(builder, loc, step));
    column = arith::AddIOp::create(builder, loc, column, part);
  }
  int64_t bytes = type.getElementBytes();
  Value offset =
      arith::MulIOp::create(builder, loc, column, getI32(builder, loc, bytes));
  Value start = arith::AddIOp::create(builder, loc, address, offset);
  // Neighbours lie at multiples of their number if a thread's first does.
  int64_t width =
      steps[1] == 1 && steps[0] == 0 ? getVectorWidth(layout, bytes) : 1;
  APInt constant;
  bool isAligned = matchPattern(op.getFirst(), m_ConstantInt(&constant)) &&
                   constant.srem(width) == 0 &&
                   llvm::all_of(layout.getThreads(), [&](const Digit &digit) {
                     return digit.dim != 1 || digit.stride % width == 0;
                   });
  if (!isAligned)
    width = 1;
  SmallVector<Value> registers;
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e;
       index += width) {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    int64_t distance = steps[0] * place[0] + steps[1] * place[1];
    Value pointer = toSharedPointer(builder, loc, start, distance * bytes);
    llvm::append_range(registers, loadVector(pointer, width));
  }
  return registers;
}

SmallVector<Value> FragmentRead::load() {
  if (std::optional<ArrayRef<int64_t>> steps = op.getSteps())
    return loadLine(*steps);
  if (op.getTransposed())
    return loadTransposed();
  if (hasConflicts(layout, type))
    return loadPairs();
  int64_t last = layout.getShape().size() - 1;
  int64_t width = getVectorWidth(layout, type.getElementBytes());
  Value row = last ? getThreadCoordinate(builder, op, layout, 0)
                   : getI32(builder, loc, 0);
  SharedAccess access(builder, loc, type, address, row,
                      getThreadPart(builder, op, layout, last));
  SmallVector<Value> registers;
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e;
       index += width) {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    Value pointer = access.getPointer(last ? place[0] : 0, place[last]);
    llvm::append_range(registers, loadVector(pointer, width));
  }
  return registers;
}

SmallVector<Value> FragmentRead::loadTransposed() {
  if (WarpMatrices matrices(builder, op, layout, type); matrices)
    return matrices.loadTransposed(address);
  SharedAccess access(builder, loc, type, address,
                      getThreadCoordinate(builder, op, layout, 1),
                      getThreadPart(builder, op, layout, 0));
  SmallVector<Value> registers;
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e; ++index) {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    llvm::append_range(
        registers,
        loadVector(access.getPointer(place[1], place[0]), /*width=*/1));
  }
  return registers;
}

SmallVector<Value> FragmentRead::loadPairs() {
  CrossedPairs pairs(builder, op, layout, type, address);
  DenseMap<std::pair<int64_t, int64_t>, int64_t> places;
  SmallVector<Value> registers(layout.getNumRegisters());
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e; ++index) {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    places[{place[0], place[1]}] = index;
  }
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e; index += 2) {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    if (place[1] & CrossedPairs::kDistance)
      continue;
    int64_t partner = places.at({place[0], place[1] + CrossedPairs::kDistance});
    SmallVector<Value> loaded[2];
    for (bool isSecond : {false, true})
      loaded[isSecond] =
          loadVector(pairs.getPointer(isSecond, place[0], place[1]), 2);
    for (int64_t part : {0, 1}) {
      Value first = loaded[0][part], second = loaded[1][part];
      registers[index + part] = pairs.choose(/*odd=*/second, /*even=*/first);
      registers[partner + part] = pairs.choose(/*odd=*/first, /*even=*/second);
    }
  }
  return registers;
}

namespace {

struct ConvertFromShared final : OpConversionPattern<FromSharedOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FromSharedOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    // ptxas would read a row's numbers as soon as they are there, and keep them
    // in registers that spill.
    Location loc = op.getLoc();
    if (op.getResult().getType().getShape().size() == 1)
      NVVM::SyncWarpOp::create(rewriter, loc, getI32(rewriter, loc, -1));
    FragmentRead read(rewriter, op, adaptor.getSource().front(),
                      op.getFirst() ? adaptor.getFirst().front() : Value());
    rewriter.replaceOpWithMultiple(op, {read.load()});
    return success();
  }
};

} // namespace

void fovea::tile::populateSharedFragmentPatterns(
    const TileTypeConverter &converter, RewritePatternSet &patterns) {
  patterns
      .add<ConvertToShared, ConvertFromShared, ConvertShiftRows, ConvertWrite>(
          converter, patterns.getContext());
}
