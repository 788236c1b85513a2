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

/// Bytes that one instruction copies at most.
constexpr int64_t kCopyBytes = 16;
/// Units of a thread whose places are computed before their copies start, so
/// that reads of tables take their time together: in a role that has registers
/// for more, and elsewhere.
constexpr int64_t kMostUnitsAtOnce = 8, kUnitsAtOnce = 4;

/// Copies a tile whose rows a region places, by all threads that run an op.
class RunCopy {
public:
  RunCopy(RewriterBase &rewriter, Operation *op, SharedType type, Value address,
          Value memref, Region &place, int64_t runs, int64_t dim,
          ValueRange rows, Value full);

  void start();

private:
  void copyUnits();
  void copyElements();
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
  int64_t unitsAtOnce = kUnitsAtOnce;
  /// The columns that the source has.
  int64_t columns;
  /// The source's first element, and bytes along each dimension; i64.
  Value base;
  SmallVector<Value> strides;
};

} // namespace

RunCopy::RunCopy(RewriterBase &rewriter, Operation *op, SharedType type,
                 Value address, Value memref, Region &place, int64_t runs,
                 int64_t dim, ValueRange bounds, Value full)
    : rewriter(rewriter), loc(op->getLoc()), type(type), address(address),
      place(place), runs(runs), dim(dim), isBounded(!bounds.empty()),
      rows(rewriter, loc, type, bounds), full(full), threads(getNumThreads(op)),
      thread(getThread(rewriter, op)) {
  auto role = op->getParentOfType<RoleOp>();
  constexpr int64_t kManyRegisters = 96;
  if (role && (!role.getRegisters() ||
               static_cast<int64_t>(*role.getRegisters()) >= kManyRegisters))
    unitsAtOnce = kMostUnitsAtOnce;
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

void RunCopy::copyUnits() {
  int64_t unitColumns = kCopyBytes / type.getElementBytes();
  int64_t rowUnits = type.getShape().back() / unitColumns;
  int64_t units = type.getShape().front() * rowUnits;
  int64_t atOnce = std::min(
      unitsAtOnce, static_cast<int64_t>(llvm::divideCeil(units, threads)));
  int64_t step = atOnce * threads;
  auto loop =
      scf::ForOp::create(rewriter, loc, thread, getI32(rewriter, loc, units),
                         getI32(rewriter, loc, step));
  if (full)
    NVVM::CpAsyncMBarrierArriveOp::create(
        rewriter, loc, toSharedPointer(rewriter, loc, full), /*noinc=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());

  SmallVector<Value> numbers, rowNumbers;
  for (int64_t unit = 0; unit < atOnce; ++unit) {
    numbers.push_back(
        add(loop.getInductionVar(), getI32(rewriter, loc, unit * threads)));
    rowNumbers.push_back(divide(numbers.back(), rowUnits));
  }
  // Where no row is left, there are no places.
  auto getAddresses = [&] {
    SmallVector<Value> addresses;
    for (Value row : rowNumbers) {
      // Units beyond the end are not copied.
      if (units % step)
        row = arith::MinSIOp::create(
            rewriter, loc, row,
            getI32(rewriter, loc, type.getShape().front() - 1));
      addresses.push_back(getRowAddress(rewriter, row));
    }
    return addresses;
  };
  SmallVector<Value> addresses;
  if (isBounded) {
    SmallVector<Type> types(atOnce, rewriter.getI64Type());
    auto branch = scf::IfOp::create(rewriter, loc, types, rows.isEmpty,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard inner(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(rewriter, loc, SmallVector<Value>(atOnce, base));
    rewriter.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(rewriter, loc, getAddresses());
    addresses = llvm::to_vector(ValueRange(branch.getResults()));
  } else {
    addresses = getAddresses();
  }

  for (auto [number, row, rowAddress] :
       llvm::zip_equal(numbers, rowNumbers, addresses)) {
    OpBuilder::InsertionGuard inner(rewriter);
    if (units % step) {
      Value isUnit =
          arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult,
                                number, getI32(rewriter, loc, units));
      auto branch =
          scf::IfOp::create(rewriter, loc, isUnit, /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    Value column = scale(remainder(number, rowUnits), unitColumns);
    Value bytes = getColumnBytes(column);
    if (Value left = isLeft(row))
      bytes = arith::SelectOp::create(rewriter, loc, left,
                                      bytes ? bytes
                                            : getI32(rewriter, loc, kCopyBytes),
                                      getI32(rewriter, loc, 0));
    SharedAccess target(rewriter, loc, type, address, row,
                        {column, ~uint64_t(0)});
    NVVM::CpAsyncOp::create(rewriter, loc, target.getPointer(0, 0),
                            toPointer(rowAddress, column), kCopyBytes,
                            NVVM::LoadCacheModifierKind::CG, bytes);
  }
}

void RunCopy::copyElements() {
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
                              Value address, Value full) {
  RunCopy(rewriter, op, type, address, op.getSource(), op.getPlace(),
          static_cast<int64_t>(*op.getRuns()), op.getDims().front(),
          op.getRows(), full)
      .start();
}

template void fovea::tile::emitRunCopy(RewriterBase &, LoadOp, SharedType,
                                       Value, Value);
template void fovea::tile::emitRunCopy(RewriterBase &, LoadAsyncOp, SharedType,
                                       Value, Value);
