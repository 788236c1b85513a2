//===- MmaSync.cpp - Products by mma.sync --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Products.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea::tile;

/// m16n8k16 (PTX ISA 9.7.14.5.8): a warp multiplies 16 rows.
constexpr int64_t kMmaRows = 16, kMmaColumns = 8, kMmaInner = 16;
/// Rows and columns of the matrices that ldmatrix reads.
constexpr int64_t kMatrix = 8;

namespace {

/// Emits one product by mma.sync.
class MmaSync {
public:
  MmaSync(ConversionPatternRewriter &rewriter, MmaOp op)
      : rewriter(rewriter), op(op), loc(op.getLoc()),
        shape(getProductShape(op)) {}

  LogicalResult emit(MmaAdaptor adaptor);

private:
  LogicalResult verify();
  LogicalResult prepareA(ValueRange a);
  void prepareB(Value address);

  /// Returns the operands of mma.sync from A in one step along K, for 16 of a
  /// warp's rows.
  SmallVector<Value> getA(int64_t block, int64_t step);
  /// Returns the same from B, for `count` neighbouring groups of 8 columns.
  SmallVector<Value> getB(int64_t group, int64_t count, int64_t step);

  /// Reads `count` matrices, one register each. Eight lanes give the addresses
  /// of one matrix's rows, by `pointer`.
  SmallVector<Value> loadMatrices(Value pointer, int64_t count,
                                  bool isTransposed);
  void multiply(ArrayRef<Value> a, ArrayRef<Value> b,
                MutableArrayRef<Value> accumulator);

  /// Returns the executing warp's place among those that share rows or columns.
  Value getRowWarp();
  Value getColumnWarp();
  /// Returns `bits` consecutive bits of the lane's number from `bit`, times
  /// `factor`.
  Value getLaneBits(int64_t bit, int64_t bits, int64_t factor);

  Type getElementType() { return op.getB().getType().getElementType(); }
  /// Returns the type of a pair of elements, as mma.sync takes it.
  Type getPairType() {
    if (getElementType().isBF16())
      return rewriter.getI32Type();
    return VectorType::get(2, getElementType());
  }

  ConversionPatternRewriter &rewriter;
  MmaOp op;
  Location loc;
  ProductShape shape;
  /// The numbers of warps that share the result's rows, and its columns.
  int64_t rowWarps = 0, columnWarps = 0;
  /// A, in registers in the row-owned order or in shared memory.
  SmallVector<Value> aRegisters;
  std::optional<SharedAccess> aShared, bShared;
};

} // namespace

LogicalResult MmaSync::verify() {
  FragmentType result = op.getResult().getType();
  SmallVector<int64_t> permutation;
  std::optional<int64_t> found = result.getLayout().getColumnWarps(permutation);
  if (!found)
    return op.emitOpError("by mma_sync expected a result in whole fragments of "
                          "16 rows and 8 columns a warp, got ")
           << result;
  columnWarps = *found;
  rowWarps = getNumThreads(op) / kWarpSize / columnWarps;
  if (shape.inner % kMmaInner)
    return op.emitOpError("by mma_sync expected multiples of ")
           << kMmaInner << " along the inner dimension, got " << shape.inner;
  for (Value operand : {op.getA(), Value(op.getB())}) {
    auto type = dyn_cast<SharedType>(operand.getType());
    // ldmatrix reads rows of 16 bytes at multiples of 16.
    if (type && type.getPanelColumns() % kMatrix)
      return op.emitOpError("by mma_sync expected rows of whole units of 16 "
                            "bytes, got ")
             << type;
  }
  return success();
}

Value MmaSync::getLaneBits(int64_t bit, int64_t bits, int64_t factor) {
  Value lane = getLane(rewriter, op);
  Value place =
      arith::ShRUIOp::create(rewriter, loc, lane, getI32(rewriter, loc, bit));
  place = arith::AndIOp::create(rewriter, loc, place,
                                getI32(rewriter, loc, (1 << bits) - 1));
  return arith::MulIOp::create(rewriter, loc, place,
                               getI32(rewriter, loc, factor));
}

Value MmaSync::getRowWarp() {
  Value warp = arith::DivUIOp::create(rewriter, loc, getThread(rewriter, op),
                                      getI32(rewriter, loc, kWarpSize));
  if (columnWarps == 1)
    return warp;
  return arith::RemUIOp::create(rewriter, loc, warp,
                                getI32(rewriter, loc, rowWarps));
}

Value MmaSync::getColumnWarp() {
  return arith::DivUIOp::create(rewriter, loc, getThread(rewriter, op),
                                getI32(rewriter, loc, kWarpSize * rowWarps));
}

LogicalResult MmaSync::prepareA(ValueRange a) {
  if (auto type = dyn_cast<FragmentType>(op.getA().getType())) {
    FailureOr<SmallVector<Value>> registers =
        reorderRegisters(op, type, a,
                         LayoutAttr::getRowOwned(op.getContext(), shape.rows,
                                                 shape.inner, rowWarps));
    if (failed(registers))
      return failure();
    aRegisters = std::move(*registers);
    return success();
  }
  // Matrices: rows 0-7 and 8-15 of columns 0-7, the same of columns 8-15.
  Value row = arith::AddIOp::create(rewriter, loc, getLaneBits(0, 3, 1),
                                    getLaneBits(3, 1, kMatrix));
  Value warp = arith::MulIOp::create(rewriter, loc, getRowWarp(),
                                     getI32(rewriter, loc, kMmaRows));
  row = arith::AddIOp::create(rewriter, loc, row, warp);
  aShared.emplace(rewriter, loc, cast<SharedType>(op.getA().getType()),
                  a.front(), row,
                  ThreadPart{getLaneBits(4, 1, kMatrix), kMatrix});
  return success();
}

void MmaSync::prepareB(Value address) {
  Value inMatrix = getLaneBits(0, 3, 1);
  Value inner = getLaneBits(3, 1, kMatrix), column = getLaneBits(4, 1, kMatrix);
  uint64_t columnBits = kMatrix;
  if (columnWarps > 1) {
    int64_t warpColumns = shape.columns / columnWarps;
    Value first = arith::MulIOp::create(rewriter, loc, getColumnWarp(),
                                        getI32(rewriter, loc, warpColumns));
    column = arith::AddIOp::create(rewriter, loc, column, first);
    columnBits = llvm::isPowerOf2_64(warpColumns) && warpColumns > kMatrix
                     ? columnBits | ~uint64_t(warpColumns - 1)
                     : ~uint64_t(0);
  }
  // Matrices: K 0-7 and 8-15 of a group of columns, the same of the next one.
  if (op.getTransposeB())
    bShared.emplace(rewriter, loc, op.getB().getType(), address,
                    arith::AddIOp::create(rewriter, loc, column, inMatrix),
                    ThreadPart{inner, kMatrix});
  else
    bShared.emplace(rewriter, loc, op.getB().getType(), address,
                    arith::AddIOp::create(rewriter, loc, inner, inMatrix),
                    ThreadPart{column, columnBits});
}

SmallVector<Value> MmaSync::loadMatrices(Value pointer, int64_t count,
                                         bool isTransposed) {
  Type i32 = rewriter.getI32Type();
  auto type = LLVM::LLVMStructType::getLiteral(op.getContext(),
                                               SmallVector<Type>(count, i32));
  Value matrices = NVVM::LdMatrixOp::create(
      rewriter, loc, type, pointer, count,
      isTransposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(op.getContext(), kMatrix, kMatrix),
      NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> registers;
  for (int64_t index = 0; index < count; ++index) {
    Value pair = LLVM::ExtractValueOp::create(rewriter, loc, matrices, index);
    if (getPairType() != i32)
      pair = LLVM::BitcastOp::create(rewriter, loc, getPairType(), pair);
    registers.push_back(pair);
  }
  return registers;
}

SmallVector<Value> MmaSync::getA(int64_t block, int64_t step) {
  if (aShared)
    return loadMatrices(
        aShared->getPointer(block * kMmaRows * rowWarps, step * kMmaInner), 4,
        /*isTransposed=*/false);
  // A step is two groups of 8 columns, of 4 registers each: two neighbours of
  // the upper and two of the lower eight rows.
  int64_t first = (block * shape.inner / kMmaInner + step) * 8;
  SmallVector<Value> pairs;
  for (int64_t pair = 0; pair < 4; ++pair) {
    Value packed = packVector(rewriter, loc,
                              ArrayRef(aRegisters).slice(first + 2 * pair, 2));
    if (getPairType() != packed.getType())
      packed = LLVM::BitcastOp::create(rewriter, loc, getPairType(), packed);
    pairs.push_back(packed);
  }
  return pairs;
}

SmallVector<Value> MmaSync::getB(int64_t group, int64_t count, int64_t step) {
  int64_t column = group * kMmaColumns, inner = step * kMmaInner;
  Value pointer = op.getTransposeB() ? bShared->getPointer(column, inner)
                                     : bShared->getPointer(inner, column);
  return loadMatrices(pointer, 2 * count,
                      /*isTransposed=*/!op.getTransposeB());
}

void MmaSync::multiply(ArrayRef<Value> a, ArrayRef<Value> b,
                       MutableArrayRef<Value> accumulator) {
  Type f32 = rewriter.getF32Type();
  NVVM::MMATypes types =
      getElementType().isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  Value result = NVVM::MmaOp::create(
      rewriter, loc,
      LLVM::LLVMStructType::getLiteral(op.getContext(),
                                       SmallVector<Type>(4, f32)),
      a, b, accumulator, ArrayRef<int64_t>{kMmaRows, kMmaColumns, kMmaInner},
      /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt,
      std::array{types, types},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [index, value] : llvm::enumerate(accumulator))
    value = LLVM::ExtractValueOp::create(rewriter, loc, result, index);
}

LogicalResult MmaSync::emit(MmaAdaptor adaptor) {
  if (failed(verify()))
    return failure();
  auto layout = LayoutAttr::getAccumulator(
      op.getContext(), shape.rows, shape.columns, rowWarps, columnWarps);
  FailureOr<SmallVector<Value>> accumulator =
      getAccumulator(rewriter, op, adaptor.getAcc(), layout);
  if (failed(accumulator) || failed(prepareA(adaptor.getA())))
    return failure();
  prepareB(adaptor.getB().front());

  int64_t groups = shape.columns / columnWarps / kMmaColumns;
  int64_t blocks = shape.rows / (kMmaRows * rowWarps);
  auto [low, high] = op.getInnerRange();
  for (int64_t step = low / kMmaInner; step < high / kMmaInner; ++step) {
    SmallVector<SmallVector<Value>> a;
    for (int64_t block = 0; block < blocks; ++block)
      a.push_back(getA(block, step));
    for (int64_t group = 0; group < groups; group += 2) {
      int64_t count = std::min<int64_t>(2, groups - group);
      SmallVector<Value> b = getB(group, count, step);
      for (int64_t block = 0; block < blocks; ++block)
        for (int64_t index = 0; index < count; ++index)
          multiply(a[block], ArrayRef(b).slice(2 * index, 2),
                   MutableArrayRef(*accumulator)
                       .slice((block * groups + group + index) * 4, 4));
    }
  }
  replaceProduct(rewriter, op, *accumulator, layout);
  return success();
}

LogicalResult fovea::tile::emitMmaSync(ConversionPatternRewriter &rewriter,
                                       MmaOp op, MmaAdaptor adaptor) {
  return MmaSync(rewriter, op).emit(adaptor);
}
