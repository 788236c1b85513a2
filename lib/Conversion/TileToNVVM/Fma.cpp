//===- Fma.cpp - Products by scalar fused multiply-adds ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Products.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace fovea::tile;

namespace {

/// The place of an element of A: a register of the lane whose bits along A's
/// inner dimension are `code`.
struct RegisterPlace {
  int64_t index;
  int64_t code;
};

/// Emits one product. A thread computes its elements of the result; elements of
/// A that other threads of the warp hold come by shuffles.
class Fma {
public:
  Fma(ConversionPatternRewriter &rewriter, MmaOp op)
      : rewriter(rewriter), op(op), loc(op.getLoc()),
        shape(getProductShape(op)),
        layout(op.getResult().getType().getLayout()),
        accumulatorType(op.getResult().getType().getElementType()) {}

  LogicalResult emit(MmaAdaptor adaptor);

private:
  /// Finds the places of A's elements in registers. Fails, with an error, where
  /// a thread's rows are not in its warp.
  LogicalResult prepareRegisters(ValueRange a);
  void prepareShared(Value a, Value b, Value inner);

  /// Chooses the number of products along the inner dimension that are added at
  /// once.
  int64_t chooseStep();

  /// Elements from `inner` of the thread's row with constant `row`.
  SmallVector<Value> getA(int64_t row, int64_t inner);
  /// Elements from `inner` of the thread's columns: first those of the first
  /// column.
  SmallVector<Value> getB(int64_t inner);
  SmallVector<Value> loadVector(Value pointer, int64_t count);

  /// Adds the products of `step` elements from `inner`.
  void multiply(int64_t inner, MutableArrayRef<Value> accumulator);

  Value extend(Value value) {
    if (value.getType() == accumulatorType)
      return value;
    return arith::ExtFOp::create(rewriter, loc, accumulatorType, value);
  }

  ConversionPatternRewriter &rewriter;
  MmaOp op;
  Location loc;
  ProductShape shape;
  LayoutAttr layout;
  Type accumulatorType;
  int64_t step = 1;
  /// The constants of the thread's rows and columns.
  SmallVector<int64_t> rows, columns;
  /// A in registers: the place of each element, by row and column; the lane
  /// without the bits that a code sets; and these bits.
  SmallVector<Value> aRegisters;
  DenseMap<std::pair<int64_t, int64_t>, RegisterPlace> aPlaces;
  Value rowLane;
  int64_t codeBits = 0;
  /// The operands in shared memory.
  std::optional<SharedAccess> aShared, bShared;
};

} // namespace

LogicalResult Fma::prepareRegisters(ValueRange a) {
  auto type = cast<FragmentType>(op.getA().getType());
  LayoutAttr from = type.getLayout();
  for (int64_t thread = 0, e = from.getNumThreads(); thread < e; ++thread)
    if (from.getThreadOffset(thread)[0] != layout.getThreadOffset(thread)[0])
      return op.emitOpError("by fma expected a left operand whose rows lie as "
                            "the result's, got ")
             << type;
  // The numbers that lanes add along A's columns, by the bits of their number.
  DenseMap<int64_t, int64_t> codes = {{0, 0}};
  int64_t weight = 1;
  for (const Digit &digit : from.getThreads()) {
    if (digit.dim == 1) {
      if (!llvm::isPowerOf2_64(weight) || !llvm::isPowerOf2_64(digit.size) ||
          weight * digit.size > kWarpSize)
        return op.emitOpError("by fma expected a left operand whose rows lie "
                              "in one warp each, got ")
               << type;
      codeBits |= weight * (digit.size - 1);
      DenseMap<int64_t, int64_t> more;
      for (auto [offset, code] : codes)
        for (int64_t place = 0; place < digit.size; ++place)
          more[offset + place * digit.stride] = code + place * weight;
      codes = std::move(more);
    }
    weight *= digit.size;
  }
  for (int64_t index = 0, e = from.getNumRegisters(); index < e; ++index) {
    SmallVector<int64_t> offset = from.getRegisterOffset(index);
    for (auto [column, code] : codes)
      aPlaces[{offset[0], offset[1] + column}] = {index, code};
  }
  llvm::append_range(aRegisters, a);
  rowLane =
      arith::AndIOp::create(rewriter, loc, getLane(rewriter, op),
                            getI32(rewriter, loc, (kWarpSize - 1) & ~codeBits));
  return success();
}

void Fma::prepareShared(Value a, Value b, Value inner) {
  auto moveAlong = [&](SharedType type, Value address, int64_t bytes) {
    Value distance = arith::MulIOp::create(rewriter, loc, inner,
                                           getI32(rewriter, loc, bytes));
    return arith::AddIOp::create(rewriter, loc, address, distance).getResult();
  };
  Value row = getThreadCoordinate(rewriter, op, layout, 0);
  ThreadPart column = getThreadPart(rewriter, op, layout, 1);
  ThreadPart none = {getI32(rewriter, loc, 0), 0};
  if (auto type = dyn_cast<SharedType>(op.getA().getType())) {
    if (inner)
      a = moveAlong(type, a, type.getElementBytes());
    aShared.emplace(rewriter, loc, type, a, row, none);
  }
  SharedType type = op.getB().getType();
  if (inner)
    b = moveAlong(type, b,
                  op.getTransposeB()
                      ? type.getElementBytes()
                      : type.getPanelColumns() * type.getElementBytes());
  if (op.getTransposeB())
    bShared.emplace(rewriter, loc, type, b, column.value, none);
  else
    bShared.emplace(rewriter, loc, type, b, none.value, column);
}

int64_t Fma::chooseStep() {
  // As many elements as 16 bytes of a row hold, where rows are read along the
  // inner dimension.
  SharedType b = op.getB().getType();
  if (!isa<SharedType>(op.getA().getType()) && !op.getTransposeB())
    return 1;
  auto [low, high] = op.getInnerRange();
  return std::gcd(16 / b.getElementBytes(), std::gcd(low, high));
}

SmallVector<Value> Fma::loadVector(Value pointer, int64_t count) {
  Type type = op.getB().getType().getElementType();
  if (count == 1)
    return {LLVM::LoadOp::create(rewriter, loc, type, pointer)};
  Value vector =
      LLVM::LoadOp::create(rewriter, loc, VectorType::get(count, type), pointer,
                           count * op.getB().getType().getElementBytes());
  SmallVector<Value> values;
  for (int64_t index = 0; index < count; ++index)
    values.push_back(LLVM::ExtractElementOp::create(
        rewriter, loc, vector, getI32(rewriter, loc, index)));
  return values;
}

SmallVector<Value> Fma::getA(int64_t row, int64_t inner) {
  if (aShared)
    return loadVector(aShared->getPointer(row, inner), step);
  SmallVector<Value> values;
  for (int64_t index = inner; index < inner + step; ++index) {
    RegisterPlace place = aPlaces.at({row, index});
    Value value = aRegisters[place.index];
    if (codeBits) {
      Value lane = arith::OrIOp::create(rewriter, loc, rowLane,
                                        getI32(rewriter, loc, place.code));
      value = shuffle(rewriter, loc, value, NVVM::ShflKind::idx, lane);
    }
    values.push_back(value);
  }
  return values;
}

SmallVector<Value> Fma::getB(int64_t inner) {
  SmallVector<Value> values;
  if (op.getTransposeB()) {
    for (int64_t column : columns)
      llvm::append_range(values,
                         loadVector(bShared->getPointer(column, inner), step));
    return values;
  }
  // Reads pairs of neighbours where the thread has both.
  bool hasPairs = columns.size() % 2 == 0 && columns[1] == columns[0] + 1 &&
                  !layout.getRegisters().empty() &&
                  layout.getRegisters()[0].dim == 1 &&
                  layout.getRegisters()[0].size % 2 == 0;
  for (int64_t index = inner; index < inner + step; ++index)
    for (size_t column = 0; column < columns.size(); column += 1 + hasPairs)
      llvm::append_range(values,
                         loadVector(bShared->getPointer(index, columns[column]),
                                    1 + hasPairs));
  // As above: by columns.
  SmallVector<Value> byColumn;
  for (size_t column = 0; column < columns.size(); ++column)
    for (int64_t index = 0; index < step; ++index)
      byColumn.push_back(values[index * columns.size() + column]);
  return byColumn;
}

void Fma::multiply(int64_t inner, MutableArrayRef<Value> accumulator) {
  DenseMap<int64_t, SmallVector<Value>> a;
  for (int64_t row : rows)
    for (Value value : getA(row, inner))
      a[row].push_back(extend(value));
  DenseMap<int64_t, SmallVector<Value>> b;
  SmallVector<Value> all = getB(inner);
  for (auto [index, column] : llvm::enumerate(columns))
    for (Value value : ArrayRef(all).slice(index * step, step))
      b[column].push_back(extend(value));
  for (auto [index, sum] : llvm::enumerate(accumulator)) {
    SmallVector<int64_t> offset = layout.getRegisterOffset(index);
    for (int64_t k = 0; k < step; ++k)
      sum = LLVM::FMAOp::create(rewriter, loc, a[offset[0]][k], b[offset[1]][k],
                                sum);
  }
}

LogicalResult Fma::emit(MmaAdaptor adaptor) {
  FailureOr<SmallVector<Value>> accumulator =
      getAccumulator(rewriter, op, adaptor.getAcc(), layout);
  if (failed(accumulator))
    return failure();
  for (int64_t index = 0, e = layout.getNumRegisters(); index < e; ++index) {
    SmallVector<int64_t> offset = layout.getRegisterOffset(index);
    if (!llvm::is_contained(rows, offset[0]))
      rows.push_back(offset[0]);
    if (!llvm::is_contained(columns, offset[1]))
      columns.push_back(offset[1]);
  }
  step = chooseStep();
  Value a = adaptor.getA().front(), b = adaptor.getB().front();
  auto aType = dyn_cast<SharedType>(op.getA().getType());
  if (!aType && failed(prepareRegisters(adaptor.getA())))
    return failure();

  // Registers have numbers: a loop can only walk over shared memory without a
  // swizzle.
  auto [low, high] = op.getInnerRange();
  if (!aType || aType.getSwizzle() || op.getB().getType().getSwizzle()) {
    prepareShared(a, b, /*inner=*/Value());
    for (int64_t inner = low; inner < high; inner += step)
      multiply(inner, *accumulator);
    replaceProduct(rewriter, op, *accumulator, layout);
    return success();
  }
  auto loop = scf::ForOp::create(rewriter, loc, getI32(rewriter, loc, low),
                                 getI32(rewriter, loc, high),
                                 getI32(rewriter, loc, step), *accumulator);
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(loop.getBody());
    prepareShared(a, b, loop.getInductionVar());
    SmallVector<Value> sums(loop.getRegionIterArgs());
    multiply(0, sums);
    scf::YieldOp::create(rewriter, loc, sums);
  }
  replaceProduct(rewriter, op, SmallVector<Value>(loop.getResults()), layout);
  return success();
}

LogicalResult fovea::tile::emitFma(ConversionPatternRewriter &rewriter,
                                   MmaOp op, MmaAdaptor adaptor) {
  return Fma(rewriter, op).emit(adaptor);
}
