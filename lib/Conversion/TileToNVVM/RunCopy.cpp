//===- RunCopy.cpp - Copies of rows that a region places ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunCopy.h"

#include "Access.h"
#include "Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea::tile;

SmallVector<Value> fovea::tile::emitPlace(OpBuilder &builder, Region &place,
                                          Value row) {
  Block &body = place.front();
  IRMapping mapping;
  mapping.map(body.getArgument(0), row);
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(
      cast<YieldOp>(body.getTerminator()).getValues(),
      [&](Value index) { return mapping.lookupOrDefault(index); });
}

KeptRows::KeptRows(OpBuilder &builder, Location loc, SharedType tile,
                   ValueRange bounds)
    : first(getI32(builder, loc, 0)),
      end(getI32(builder, loc, tile.getShape().front())), count(end) {
  Value isNone = arith::ConstantIntOp::create(builder, loc, 0, 1);
  isEmpty = isCut = isNone;
  if (bounds.empty())
    return;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value all =
      arith::ConstantIndexOp::create(builder, loc, tile.getShape().front());
  auto clamp = [&](Value bound) -> Value {
    bound = arith::MaxSIOp::create(builder, loc, bound, zero);
    bound = arith::MinSIOp::create(builder, loc, bound, all);
    return arith::IndexCastOp::create(builder, loc, builder.getI32Type(),
                                      bound);
  };
  first = clamp(bounds[0]);
  end = clamp(bounds[1]);
  isEmpty = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, end,
                                  first);
  Value left = arith::SubIOp::create(builder, loc, end, first);
  Value isPart = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                       left, count);
  isCut = arith::SelectOp::create(builder, loc, isEmpty, isNone, isPart);
}

namespace {

/// Units of a thread that are copied without a loop.
constexpr int64_t kMostUnrolled = 16;

/// Copies a tile whose rows a region places, by all threads that run an op.
/// Each warp copies rows that follow one another in the tile: a thread finds
/// the place of one of them, so that reads of tables take their time together,
/// and others ask it for the place.
class RunCopy {
public:
  RunCopy(RewriterBase &rewriter, Operation *op, SharedType type, Value address,
          Value memref, Region &place, int64_t runs, int64_t dim,
          ValueRange rows, Value full, llvm::function_ref<void()> acquire);

  void start();

private:
  void copyUnits();
  /// Copies `count` rows of the tile from `first` on, whose addresses the lanes
  /// have.
  void copyRows(Value lane, Value first, Value rowAddress, int64_t count);
  void copyElements();
  /// Returns the addresses of rows, as `getRowAddress` does; without a row that
  /// is left, addresses of which nothing is read.
  SmallVector<Value> getRowAddresses(ArrayRef<Value> rows);
  /// Returns the address of the first element of a row, an i64; of any row that
  /// is left instead of one that is not.
  Value getRowAddress(OpBuilder &builder, Value row);
  /// Returns the bytes of a unit at `column` that a row has; null: all.
  Value getColumnBytes(Value column);
  /// Returns true if a row is left; null: all are.
  Value isLeft(Value row);

  Value getI64(int64_t value) {
    return arith::ConstantIntOp::create(rewriter, loc, value, 64);
  }
  Value add(Value a, Value b) {
    return arith::AddIOp::create(rewriter, loc, a, b);
  }
  Value scale(Value a, int64_t factor) {
    return arith::MulIOp::create(rewriter, loc, a,
                                 getI32(rewriter, loc, factor));
  }
  Value divide(Value a, int64_t b) {
    return arith::DivUIOp::create(rewriter, loc, a, getI32(rewriter, loc, b));
  }
  Value remainder(Value a, int64_t b) {
    return arith::RemUIOp::create(rewriter, loc, a, getI32(rewriter, loc, b));
  }
  Value toPointer(Value row, Value column) {
    Value offset =
        arith::ExtUIOp::create(rewriter, loc, rewriter.getI64Type(),
                               scale(column, type.getElementBytes()));
    return LLVM::IntToPtrOp::create(
        rewriter, loc,
        LLVM::LLVMPointerType::get(rewriter.getContext(), kGlobalSpace),
        add(row, offset));
  }

  RewriterBase &rewriter;
  Location loc;
  SharedType type;
  Value address;
  Region &place;
  int64_t runs, dim;
  bool isBounded;
  KeptRows rows;
  Value full;
  int64_t threads;
  Value thread;
  /// Waits until the slot may be written.
  llvm::function_ref<void()> acquire;
  /// The columns that the source has.
  int64_t columns;
  /// The source's first element, and bytes along each dimension; i64.
  Value base;
  SmallVector<Value> strides;
};

} // namespace

RunCopy::RunCopy(RewriterBase &rewriter, Operation *op, SharedType type,
                 Value address, Value memref, Region &place, int64_t runs,
                 int64_t dim, ValueRange bounds, Value full,
                 llvm::function_ref<void()> acquire)
    : rewriter(rewriter), loc(op->getLoc()), type(type), address(address),
      place(place), runs(runs), dim(dim), isBounded(!bounds.empty()),
      rows(rewriter, loc, type, bounds), full(full), threads(getNumThreads(op)),
      thread(getThread(rewriter, op)), acquire(acquire) {
  auto source = cast<MemRefType>(memref.getType());
  columns = source.getShape().back();
  auto metadata =
      memref::ExtractStridedMetadataOp::create(rewriter, loc, memref);
  auto toBytes = [&](Value elements) -> Value {
    Value wide = arith::IndexCastOp::create(rewriter, loc,
                                            rewriter.getI64Type(), elements);
    return arith::MulIOp::create(rewriter, loc, wide,
                                 getI64(type.getElementBytes()));
  };
  Value pointer =
      memref::ExtractAlignedPointerAsIndexOp::create(rewriter, loc, memref);
  base = add(
      arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(), pointer),
      toBytes(metadata.getOffset()));
  for (Value stride : metadata.getStrides().drop_back())
    strides.push_back(toBytes(stride));
}

Value RunCopy::getRowAddress(OpBuilder &builder, Value row) {
  if (isBounded) {
    Value last =
        arith::SubIOp::create(builder, loc, rows.end, getI32(builder, loc, 1));
    row = arith::MaxSIOp::create(builder, loc, row, rows.first);
    row = arith::MinSIOp::create(builder, loc, row, last);
  }
  Value first = row, step;
  if (runs > 1) {
    step = remainder(row, runs);
    first = arith::SubIOp::create(builder, loc, row, step);
  }
  Value index =
      arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), first);
  Value at = base;
  for (auto [number, index] :
       llvm::enumerate(emitPlace(builder, place, index))) {
    Value wide =
        arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
    if (step && static_cast<int64_t>(number) == dim)
      wide = add(wide, arith::ExtUIOp::create(builder, loc,
                                              builder.getI64Type(), step));
    at = add(at, arith::MulIOp::create(builder, loc, wide, strides[number]));
  }
  return at;
}

Value RunCopy::isLeft(Value row) {
  if (!isBounded)
    return {};
  Value isFrom = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::sge,
                                       row, rows.first);
  Value isBelow = arith::CmpIOp::create(
      rewriter, loc, arith::CmpIPredicate::slt, row, rows.end);
  return arith::AndIOp::create(rewriter, loc, isFrom, isBelow);
}

Value RunCopy::getColumnBytes(Value column) {
  if (columns >= type.getShape().back())
    return {};
  Value left = arith::SubIOp::create(rewriter, loc,
                                     getI32(rewriter, loc, columns), column);
  left = scale(left, type.getElementBytes());
  left = arith::MaxSIOp::create(rewriter, loc, left, getI32(rewriter, loc, 0));
  return arith::MinSIOp::create(rewriter, loc, left,
                                getI32(rewriter, loc, kCopyBytes));
}

void RunCopy::start() {
  if (type.getShape().back() * type.getElementBytes() % kCopyBytes)
    return copyElements();
  Value bits = base;
  for (Value stride : strides)
    bits = arith::OrIOp::create(rewriter, loc, bits, stride);
  Value low =
      arith::AndIOp::create(rewriter, loc, bits, getI64(kCopyBytes - 1));
  Value isAligned = arith::CmpIOp::create(
      rewriter, loc, arith::CmpIPredicate::eq, low, getI64(0));
  auto branch =
      scf::IfOp::create(rewriter, loc, isAligned, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  copyUnits();
  rewriter.setInsertionPointToStart(branch.elseBlock());
  copyElements();
}

SmallVector<Value> RunCopy::getRowAddresses(ArrayRef<Value> rowNumbers) {
  auto compute = [&] {
    return llvm::map_to_vector(
        rowNumbers, [&](Value row) { return getRowAddress(rewriter, row); });
  };
  if (!isBounded)
    return compute();
  SmallVector<Type> types(rowNumbers.size(), rewriter.getI64Type());
  auto branch = scf::IfOp::create(rewriter, loc, types, rows.isEmpty,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(rewriter, loc, SmallVector<Value>(types.size(), base));
  rewriter.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(rewriter, loc, compute());
  return llvm::to_vector(ValueRange(branch.getResults()));
}

void RunCopy::copyUnits() {
  int64_t numRows = type.getShape().front();
  int64_t warpRows = llvm::divideCeil(numRows, threads / kWarpSize);
  Value lane = remainder(thread, kWarpSize);
  Value first = scale(divide(thread, kWarpSize), warpRows);
  auto constant = [&](int64_t value) { return getI32(rewriter, loc, value); };
  SmallVector<Value> rowNumbers;
  for (int64_t row = 0; row < warpRows; row += kWarpSize) {
    Value own = add(lane, constant(row));
    if (warpRows % kWarpSize)
      own = arith::MinSIOp::create(rewriter, loc, own, constant(warpRows - 1));
    own = add(first, own);
    if (numRows % warpRows)
      own = arith::MinSIOp::create(rewriter, loc, own, constant(numRows - 1));
    rowNumbers.push_back(own);
  }
  SmallVector<Value> addresses = getRowAddresses(rowNumbers);
  acquire();
  for (auto [index, rowAddress] : llvm::enumerate(addresses)) {
    int64_t before = static_cast<int64_t>(index) * kWarpSize;
    copyRows(lane, add(first, constant(before)), rowAddress,
             std::min<int64_t>(warpRows - before, kWarpSize));
  }
  if (full)
    NVVM::CpAsyncMBarrierArriveOp::create(
        rewriter, loc, toSharedPointer(rewriter, loc, full), /*noinc=*/true);
}

void RunCopy::copyRows(Value lane, Value first, Value rowAddress,
                       int64_t count) {
  int64_t unitColumns = kCopyBytes / type.getElementBytes();
  int64_t rowUnits = type.getShape().back() / unitColumns;
  int64_t units = count * rowUnits;
  int64_t unrolled =
      std::min<int64_t>(llvm::divideCeil(units, kWarpSize), kMostUnrolled);
  int64_t step = unrolled * kWarpSize;
  auto constant = [&](int64_t value) { return getI32(rewriter, loc, value); };
  auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(units),
                                 constant(step));
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  Value begin = add(loop.getInductionVar(), lane);
  int64_t numRows = type.getShape().front();
  int64_t allRows =
      llvm::divideCeil(numRows, threads / kWarpSize) * (threads / kWarpSize);
  for (int64_t unit = 0; unit < step; unit += kWarpSize) {
    Value number = add(begin, constant(unit));
    Value fromFirst = divide(number, rowUnits);
    Value row = add(first, fromFirst);
    Value column = scale(remainder(number, rowUnits), unitColumns);
    // All lanes take part.
    Value from =
        shuffle(rewriter, loc, rowAddress, NVVM::ShflKind::idx, fromFirst);
    OpBuilder::InsertionGuard inner(rewriter);
    Value exists;
    auto require = [&](Value value, int64_t end) {
      Value isBelow = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::ult, value, constant(end));
      exists = exists ? arith::AndIOp::create(rewriter, loc, exists, isBelow)
                      : isBelow;
    };
    if (units % step)
      require(number, units);
    if (allRows > numRows)
      require(row, numRows);
    if (exists) {
      auto branch =
          scf::IfOp::create(rewriter, loc, exists, /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    Value bytes = getColumnBytes(column);
    if (Value left = isLeft(row))
      bytes = arith::SelectOp::create(rewriter, loc, left,
                                      bytes ? bytes : constant(kCopyBytes),
                                      constant(0));
    SharedAccess target(rewriter, loc, type, address, row,
                        {column, ~uint64_t(0)});
    NVVM::CpAsyncOp::create(rewriter, loc, target.getPointer(0, 0),
                            toPointer(from, column), kCopyBytes,
                            NVVM::LoadCacheModifierKind::CG, bytes);
  }
}

void RunCopy::copyElements() {
  acquire();
  auto [numRows, numColumns] =
      std::pair(type.getShape()[0], type.getShape()[1]);
  auto loop = scf::ForOp::create(rewriter, loc, thread,
                                 getI32(rewriter, loc, numRows * numColumns),
                                 getI32(rewriter, loc, threads));
  if (full)
    emitArrive(rewriter, loc, full);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  Value row = divide(loop.getInductionVar(), numColumns);
  Value column = remainder(loop.getInductionVar(), numColumns);
  Value exists = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt,
                                       column, getI32(rewriter, loc, columns));
  if (Value left = isLeft(row))
    exists = arith::AndIOp::create(rewriter, loc, exists, left);
  Type elementType = type.getElementType();
  auto branch = scf::IfOp::create(rewriter, loc, elementType, exists,
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard inner(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    Value pointer = toPointer(getRowAddress(rewriter, row), column);
    Value element = LLVM::LoadOp::create(rewriter, loc, elementType, pointer);
    scf::YieldOp::create(rewriter, loc, element);
    rewriter.setInsertionPointToStart(branch.elseBlock());
    Value zero = arith::ConstantOp::create(rewriter, loc,
                                           rewriter.getZeroAttr(elementType));
    scf::YieldOp::create(rewriter, loc, zero);
  }
  SharedAccess target(rewriter, loc, type, address, row,
                      {column, ~uint64_t(0)});
  LLVM::StoreOp::create(rewriter, loc, branch.getResult(0),
                        target.getPointer(0, 0));
}

template <typename OpTy>
void fovea::tile::emitRunCopy(RewriterBase &rewriter, OpTy op, SharedType type,
                              Value address, Value full,
                              llvm::function_ref<void()> acquire) {
  RunCopy(rewriter, op, type, address, op.getSource(), op.getPlace(),
          static_cast<int64_t>(*op.getRuns()), op.getDims().front(),
          op.getRows(), full, acquire)
      .start();
}

template void fovea::tile::emitRunCopy(RewriterBase &, LoadOp, SharedType,
                                       Value, Value,
                                       llvm::function_ref<void()>);
template void fovea::tile::emitRunCopy(RewriterBase &, LoadAsyncOp, SharedType,
                                       Value, Value,
                                       llvm::function_ref<void()>);
