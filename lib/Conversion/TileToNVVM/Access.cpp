//===- Access.cpp - Elements of tiles in memory ---------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea::tile;

int64_t fovea::tile::getElementBytes(MemRefType type) {
  Type element = type.getElementType();
  return element.isIndex()
             ? 8
             : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

int64_t fovea::tile::getVectorWidth(LayoutAttr layout, int64_t elementBytes) {
  ArrayRef<Digit> registers = layout.getRegisters();
  int64_t last = layout.getShape().size() - 1;
  if (registers.empty() || registers[0].dim != last || registers[0].stride != 1)
    return 1;
  return std::gcd(registers[0].size, kCopyBytes / elementBytes);
}

ThreadPart fovea::tile::getThreadPart(OpBuilder &builder, Operation *op,
                                      LayoutAttr layout, int64_t dim) {
  uint64_t bits = 0;
  for (const Digit &digit : layout.getThreads())
    if (digit.dim == dim)
      bits |=
          llvm::isPowerOf2_64(digit.size) && llvm::isPowerOf2_64(digit.stride)
              ? uint64_t(digit.size - 1) * digit.stride
              : ~uint64_t(0);
  return {getThreadCoordinate(builder, op, layout, dim), bits};
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Bytes that a swizzle moves as a whole.
static constexpr int64_t kUnitBytes = 16;

SharedAccess::SharedAccess(OpBuilder &builder, Location loc, SharedType type,
                           Value address, Value row, ThreadPart column)
    : builder(builder), loc(loc), type(type), address(address), row(row),
      column(column) {
  first = getAddress(row, column.value);
}

Value SharedAccess::add(Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}

Value SharedAccess::addConstant(Value a, int64_t b) {
  return b ? add(a, getI32(builder, loc, b)) : a;
}

Value SharedAccess::scale(Value a, int64_t factor) {
  if (factor == 1)
    return a;
  return arith::MulIOp::create(builder, loc, a, getI32(builder, loc, factor));
}

Value SharedAccess::divide(Value a, int64_t b) {
  return arith::DivUIOp::create(builder, loc, a, getI32(builder, loc, b));
}

Value SharedAccess::remainder(Value a, int64_t b) {
  return arith::RemUIOp::create(builder, loc, a, getI32(builder, loc, b));
}

Value SharedAccess::getAddress(Value row, Value column) {
  int64_t bytes = type.getElementBytes();
  Value start = address, inRun = row;
  if (!type.isOneRun()) {
    Value run = divide(row, type.getRunRows());
    start = add(start, scale(run, type.getRunBytes()));
    inRun = remainder(row, type.getRunRows());
  }
  start = add(start, scale(inRun, type.getRowBytes()));
  if (!type.getSwizzle())
    return add(start, scale(column, bytes));
  Value inRow = column;
  if (type.getNumPanels() > 1) {
    Value panel = divide(column, type.getPanelColumns());
    start = add(start, scale(panel, type.getPanelBytes()));
    inRow = remainder(column, type.getPanelColumns());
  }
  // The unit is xored with row * S / 128 mod S / 16.
  int64_t swizzle = type.getSwizzle();
  Value units = remainder(divide(row, 128 / swizzle), swizzle / kUnitBytes);
  Value swizzled = arith::XOrIOp::create(builder, loc, scale(inRow, bytes),
                                         scale(units, kUnitBytes));
  return add(start, swizzled);
}

Value SharedAccess::getPointer(int64_t rowOffset, int64_t columnOffset) {
  int64_t bytes = type.getElementBytes();
  if (!type.getSwizzle())
    return toSharedPointer(builder, loc, first,
                           (rowOffset * type.getPanelColumns() + columnOffset) *
                               bytes);
  bool isInRun = type.isOneRun() || rowOffset % type.getRunRows() == 0;
  if (rowOffset % kSwizzledRows || !isInRun ||
      (column.bits & static_cast<uint64_t>(columnOffset)))
    return toSharedPointer(builder, loc,
                           getAddress(addConstant(row, rowOffset),
                                      addConstant(column.value, columnOffset)));
  // The constants set bits that the thread leaves clear, and tiles begin at
  // multiples of a swizzled row: adding a unit is flipping its bits.
  int64_t inRow = columnOffset % type.getPanelColumns() * bytes;
  int64_t unit = inRow / kUnitBytes * kUnitBytes;
  Value &start = units[unit];
  if (!start)
    start = unit ? arith::XOrIOp::create(builder, loc, first,
                                         getI32(builder, loc, unit))
                       .getResult()
                 : first;
  return toSharedPointer(
      builder, loc, start,
      type.getByteOffset(rowOffset, columnOffset / type.getPanelColumns() *
                                        type.getPanelColumns()) +
          inRow % kUnitBytes);
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

GlobalAccess::GlobalAccess(OpBuilder &builder, Location loc, Value memref,
                           ValueRange indices, ArrayRef<int64_t> dims,
                           ArrayRef<int64_t> shape, int64_t inner, int64_t used)
    : builder(builder), loc(loc), inner(inner), used(used), shape(shape) {
  auto type = cast<MemRefType>(memref.getType());
  elementBytes = fovea::tile::getElementBytes(type);
  auto [staticStrides, staticOffset] = type.getStridesAndOffset();
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, memref);
  auto getBytes = [&](int64_t known, Value dynamic) -> Value {
    if (!ShapedType::isDynamic(known))
      return getI64(known * elementBytes);
    return arith::MulIOp::create(builder, loc, toI64(dynamic),
                                 getI64(elementBytes));
  };

  address = toI64(
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref));
  if (staticOffset != 0)
    address = arith::AddIOp::create(
        builder, loc, address, getBytes(staticOffset, metadata.getOffset()));
  SmallVector<Value> allStrides;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    allStrides.push_back(
        getBytes(staticStrides[dim], metadata.getStrides()[dim]));
    if (isConstantIntValue(index, 0))
      continue;
    Value offset =
        arith::MulIOp::create(builder, loc, toI64(index), allStrides.back());
    address = arith::AddIOp::create(builder, loc, address, offset);
  }
  auto getStride = [&](int64_t dim) {
    return staticStrides[dim] == 1 ? Value() : allStrides[dim];
  };
  SmallVector<int64_t> own(dims);
  if (inner) {
    innerStride = allStrides[own[1]];
    own.erase(own.begin() + 1);
  }
  for (auto [n, dim] : llvm::enumerate(own)) {
    strides.push_back(getStride(dim));
    // A tile that begins at 0 and is no larger than a static size is whole.
    int64_t size = type.getDimSize(dim), each = n == 0 && inner ? inner : 1;
    left.push_back(Value());
    if (isConstantIntValue(indices[dim], 0) && !ShapedType::isDynamic(size) &&
        shape[n] <= size * each)
      continue;
    Value total =
        ShapedType::isDynamic(size)
            ? metadata.getSizes()[dim]
            : arith::ConstantIndexOp::create(builder, loc, size).getResult();
    Value count = arith::SubIOp::create(builder, loc, total, indices[dim]);
    if (each > 1)
      count = arith::MulIOp::create(
          builder, loc, count,
          arith::ConstantIndexOp::create(builder, loc, each));
    limit(n, count);
  }
}

void GlobalAccess::limit(int64_t dim, Value count) {
  Value low = arith::ConstantIndexOp::create(builder, loc, 0);
  Value high = arith::ConstantIndexOp::create(builder, loc, shape[dim]);
  count = arith::MaxSIOp::create(builder, loc, count, low);
  count = arith::MinSIOp::create(builder, loc, count, high);
  count = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), count);
  left[dim] =
      left[dim]
          ? arith::MinSIOp::create(builder, loc, left[dim], count).getResult()
          : count;
}

void GlobalAccess::limitRows(ValueRange rows) {
  if (rows.empty())
    return;
  limit(0, rows[1]);
  if (isConstantIntValue(rows[0], 0))
    return;
  Value low = arith::ConstantIndexOp::create(builder, loc, 0);
  Value high = arith::ConstantIndexOp::create(builder, loc, shape[0]);
  Value first = arith::MaxSIOp::create(builder, loc, rows[0], low);
  first = arith::MinSIOp::create(builder, loc, first, high);
  firstRow =
      arith::IndexCastOp::create(builder, loc, builder.getI32Type(), first);
}

Value GlobalAccess::getLeft(int64_t dim) {
  return left[dim] ? left[dim] : getI32(builder, loc, shape[dim]);
}

Value GlobalAccess::isWithin(int64_t dim, Value place) {
  Value within;
  auto require = [&](Value condition) {
    within =
        within
            ? arith::AndIOp::create(builder, loc, within, condition).getResult()
            : condition;
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value a, Value b) {
    require(arith::CmpIOp::create(builder, loc, predicate, a, b));
  };
  if (left[dim])
    compare(arith::CmpIPredicate::slt, place, left[dim]);
  if (dim != 0)
    return within;
  if (firstRow)
    compare(arith::CmpIPredicate::sge, place, firstRow);
  if (hasUnusedRows())
    compare(arith::CmpIPredicate::ult,
            arith::RemUIOp::create(builder, loc, place,
                                   getI32(builder, loc, inner)),
            getI32(builder, loc, used));
  return within;
}

Value GlobalAccess::isAligned(int64_t bytes) {
  Value all = address;
  for (Value stride : strides)
    if (stride)
      all = arith::OrIOp::create(builder, loc, all, stride);
  if (inner)
    all = arith::OrIOp::create(builder, loc, all, innerStride);
  Value low = arith::AndIOp::create(builder, loc, all, getI64(bytes - 1));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, low,
                               getI64(0));
}

Value GlobalAccess::getPointer(ValueRange coordinates) {
  Value at = address;
  auto add = [&](Value stride, Value coordinate) {
    Value wide =
        arith::ExtUIOp::create(builder, loc, builder.getI64Type(), coordinate);
    Value offset = arith::MulIOp::create(
        builder, loc, wide, stride ? stride : getI64(elementBytes));
    at = arith::AddIOp::create(builder, loc, at, offset);
  };
  for (auto [n, each] :
       llvm::enumerate(llvm::zip_equal(strides, coordinates))) {
    auto [stride, coordinate] = each;
    if (n > 0 || !inner) {
      add(stride, coordinate);
      continue;
    }
    Value count = getI32(builder, loc, inner);
    add(stride, arith::DivUIOp::create(builder, loc, coordinate, count));
    add(innerStride, arith::RemUIOp::create(builder, loc, coordinate, count));
  }
  return LLVM::IntToPtrOp::create(
      builder, loc,
      LLVM::LLVMPointerType::get(builder.getContext(), kGlobalSpace), at);
}

Value GlobalAccess::move(Value pointer, ArrayRef<int64_t> offsets) {
  int64_t constant = 0;
  SmallVector<Value> along(strides);
  SmallVector<int64_t> distances(offsets);
  if (inner) {
    distances.front() = offsets.front() / inner;
    along.push_back(innerStride);
    distances.push_back(offsets.front() % inner);
  }
  for (auto [stride, offset] : llvm::zip_equal(along, distances)) {
    if (!stride)
      constant += offset * elementBytes;
    else if (offset)
      pointer = moveBytes(
          pointer, arith::MulIOp::create(builder, loc, stride, getI64(offset)));
  }
  return constant ? moveBytes(pointer, getI64(constant)) : pointer;
}

Value GlobalAccess::moveBytes(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(builder, loc, pointer.getType(),
                             builder.getI8Type(), pointer, ValueRange{bytes});
}

Value GlobalAccess::toI64(Value value) {
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
}

Value GlobalAccess::getI64(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 64);
}
