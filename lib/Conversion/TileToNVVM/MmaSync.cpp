//===- MmaSync.cpp - Products by mma.sync --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Products.h"
#include "WarpMatrices.h"
#include "WidenBytes.h"

#include "fovea/Dialect/Tile/IR/Warps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea::tile;

/// m16n8k16 (PTX ISA 9.7.14.5.8): a warp multiplies 16 rows.
constexpr int64_t kMmaRows = 16, kMmaColumns = 8, kMmaInner = 16;
/// Rows and columns of the matrices that ldmatrix reads.
constexpr int64_t kMatrix = 8;
/// Bytes of a row of such a matrix.
constexpr int64_t kMatrixBytes = 16;

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
  /// Returns the same from B, for up to `getGroupsAtOnce` neighbouring groups
  /// of 8 columns, `count`.
  SmallVector<Value> getB(int64_t group, int64_t count, int64_t step);
  SmallVector<Value> getWidenedB(int64_t group, int64_t count, int64_t step);
  int64_t getGroupsAtOnce() { return widens() ? 4 : 2; }

  /// Bytes of B, where a matrix of ldmatrix has twice as many columns. Where K
  /// runs along the bytes, a thread has four neighbours of 16 of a step, and so
  /// of A (`LayoutAttr::getQuads`): what each step adds up is the same. Where
  /// columns do, it has every other one of four neighbours in one group of
  /// columns, and the rest in the next: so does the result.
  bool widens() { return op.getFrom().has_value(); }
  bool widensAlongInner() { return widens() && op.getTransposeB(); }
  bool widensAlongColumns() { return widens() && !op.getTransposeB(); }
  LayoutAttr getResultLayout();

  /// Returns words, of 32 bits, as `getPairType`.
  SmallVector<Value> toPairs(SmallVector<Value> words);
  /// Adds to `accumulator` in 16 of a warp's rows and a group of 8 columns.
  void multiply(ArrayRef<Value> a, ArrayRef<Value> b,
                MutableArrayRef<Value> accumulator, int64_t block,
                int64_t group);
  /// Returns the registers of an accumulator for these rows and columns.
  SmallVector<int64_t> getPlaces(int64_t block, int64_t group);

  /// Returns the executing warp's place among those that share rows or columns.
  Value getRowWarp();
  Value getColumnWarp();
  /// Returns `bits` consecutive bits of the lane's number from `bit`, times
  /// `factor`.
  Value getLaneBits(int64_t bit, int64_t bits, int64_t factor);

  Type getElementType() {
    Type a = op.getA().getType();
    if (auto fragment = dyn_cast<FragmentType>(a))
      return fragment.getElementType();
    return cast<SharedType>(a).getElementType();
  }
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
  int64_t warps = getNumThreads(op) / kWarpSize;
  SmallVector<int64_t> permutation;
  if (widensAlongColumns()) {
    // That the result is in quads is asked for below.
    columnWarps = WarpGrid::get(shape.rows, warps).columns;
  } else if (std::optional<int64_t> found =
                 result.getLayout().getColumnWarps(permutation)) {
    columnWarps = *found;
  } else {
    return op.emitOpError("by mma_sync expected a result in whole fragments of "
                          "16 rows and 8 columns a warp, got ")
           << result;
  }
  rowWarps = warps / columnWarps;
  if (widensAlongInner() && !isa<FragmentType>(op.getA().getType()))
    return op.emitOpError("by mma_sync expected a left operand in registers "
                          "beside bytes along it, got ")
           << op.getA().getType();
  if (widensAlongColumns() && (shape.rows % (kMmaRows * rowWarps) ||
                               shape.columns % (2 * kMmaColumns * columnWarps)))
    return op.emitOpError(
               "by mma_sync, of bytes, expected whole fragments of 16 "
               "rows and 16 columns a warp, got ")
           << result;
  if (shape.inner % kMmaInner)
    return op.emitOpError("by mma_sync expected multiples of ")
           << kMmaInner << " along the inner dimension, got " << shape.inner;
  for (Value operand : {op.getA(), Value(op.getB())}) {
    auto type = dyn_cast<SharedType>(operand.getType());
    // ldmatrix reads rows of 16 bytes at multiples of 16.
    if (type && type.getPanelColumns() * type.getElementBytes() % kMatrixBytes)
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
    // Four neighbours along K are one operand's pair and the next one's.
    MLIRContext *context = op.getContext();
    auto layout = widensAlongInner()
                      ? LayoutAttr::getQuads(context, shape.rows, shape.inner,
                                             rowWarps, columnWarps,
                                             /*isWhole=*/true)
                      : LayoutAttr::getRowOwned(context, shape.rows,
                                                shape.inner, rowWarps);
    FailureOr<SmallVector<Value>> registers =
        reorderRegisters(op, type, a, layout);
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

LayoutAttr MmaSync::getResultLayout() {
  if (widensAlongColumns())
    return LayoutAttr::getQuads(op.getContext(), shape.rows, shape.columns,
                                rowWarps, columnWarps, /*isWhole=*/false);
  return LayoutAttr::getAccumulator(op.getContext(), shape.rows, shape.columns,
                                    rowWarps, columnWarps);
}

void MmaSync::prepareB(Value address) {
  int64_t warpColumns = shape.columns / columnWarps;
  Value firstColumn;
  if (columnWarps > 1)
    firstColumn = arith::MulIOp::create(rewriter, loc, getColumnWarp(),
                                        getI32(rewriter, loc, warpColumns));
  if (widensAlongInner()) {
    // Matrices: 8 columns each, of one step.
    Value column = getLaneBits(0, 5, 1);
    if (firstColumn)
      column = arith::AddIOp::create(rewriter, loc, column, firstColumn);
    bShared.emplace(rewriter, loc, op.getB().getType(), address, column,
                    ThreadPart{getI32(rewriter, loc, 0), 0});
    return;
  }
  Value inMatrix = getLaneBits(0, 3, 1);
  // Those of a row of a matrix.
  int64_t columns = widens() ? kMatrixBytes : kMatrix;
  Value inner = getLaneBits(3, 1, kMatrix), column = getLaneBits(4, 1, columns);
  uint64_t columnBits = columns;
  if (firstColumn) {
    column = arith::AddIOp::create(rewriter, loc, column, firstColumn);
    columnBits = llvm::isPowerOf2_64(warpColumns) && warpColumns > columns
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

SmallVector<Value> MmaSync::toPairs(SmallVector<Value> words) {
  for (Value &word : words)
    if (getPairType() != word.getType())
      word = LLVM::BitcastOp::create(rewriter, loc, getPairType(), word);
  return words;
}

SmallVector<Value> MmaSync::getA(int64_t block, int64_t step) {
  if (aShared)
    return toPairs(loadMatrices(
        rewriter, loc,
        aShared->getPointer(block * kMmaRows * rowWarps, step * kMmaInner), 4,
        /*transposed=*/false));
  // A step is two groups of 8 columns, of 4 registers each: two neighbours of
  // the upper and two of the lower eight rows; of quads, four of each.
  int64_t first = (block * shape.inner / kMmaInner + step) * 8;
  SmallVector<Value> pairs;
  for (int64_t place :
       widensAlongInner() ? std::array{0, 4, 2, 6} : std::array{0, 2, 4, 6})
    pairs.push_back(packVector(rewriter, loc,
                               ArrayRef(aRegisters).slice(first + place, 2)));
  return toPairs(std::move(pairs));
}

SmallVector<Value> MmaSync::getWidenedB(int64_t group, int64_t count,
                                        int64_t step) {
  int64_t column = group * kMmaColumns, inner = step * kMmaInner;
  bool isTransposed = widensAlongColumns();
  Value pointer = isTransposed ? bShared->getPointer(inner, column)
                               : bShared->getPointer(column, inner);
  // A matrix has both operands of a group; of columns along bytes, one operand
  // of two groups.
  SmallVector<Value> words =
      loadMatrices(rewriter, loc, pointer, count, isTransposed);
  SmallVector<Value> operands(2 * count);
  for (auto [matrix, word] : llvm::enumerate(words)) {
    auto [first, second] =
        widenBytes(rewriter, loc, word, getElementType(), isTransposed);
    int64_t place = isTransposed ? matrix / 2 * 4 + matrix % 2 : 2 * matrix;
    operands[place] = first;
    operands[place + (isTransposed ? 2 : 1)] = second;
  }
  return toPairs(std::move(operands));
}

SmallVector<Value> MmaSync::getB(int64_t group, int64_t count, int64_t step) {
  if (widens())
    return getWidenedB(group, count, step);
  int64_t column = group * kMmaColumns, inner = step * kMmaInner;
  Value pointer = op.getTransposeB() ? bShared->getPointer(column, inner)
                                     : bShared->getPointer(inner, column);
  return toPairs(loadMatrices(rewriter, loc, pointer, 2 * count,
                              /*transposed=*/!op.getTransposeB()));
}

SmallVector<int64_t> MmaSync::getPlaces(int64_t block, int64_t group) {
  int64_t groups = shape.columns / columnWarps / kMmaColumns;
  int64_t first = (block * groups + group) * 4;
  if (!widensAlongColumns())
    return {first, first + 1, first + 2, first + 3};
  // Two groups are one of quads; each has every other column.
  first -= group % 2 * 3;
  return {first, first + 2, first + 4, first + 6};
}

void MmaSync::multiply(ArrayRef<Value> a, ArrayRef<Value> b,
                       MutableArrayRef<Value> accumulator, int64_t block,
                       int64_t group) {
  SmallVector<int64_t> places = getPlaces(block, group);
  SmallVector<Value> sums;
  for (int64_t place : places)
    sums.push_back(accumulator[place]);
  Type f32 = rewriter.getF32Type();
  NVVM::MMATypes types =
      getElementType().isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  Value result = NVVM::MmaOp::create(
      rewriter, loc,
      LLVM::LLVMStructType::getLiteral(op.getContext(),
                                       SmallVector<Type>(4, f32)),
      a, b, sums, ArrayRef<int64_t>{kMmaRows, kMmaColumns, kMmaInner},
      /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt,
      std::array{types, types},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [index, place] : llvm::enumerate(places))
    accumulator[place] =
        LLVM::ExtractValueOp::create(rewriter, loc, result, index);
}

LogicalResult MmaSync::emit(MmaAdaptor adaptor) {
  if (failed(verify()))
    return failure();
  LayoutAttr layout = getResultLayout();
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
    for (int64_t group = 0, count; group < groups; group += count) {
      count = std::min<int64_t>(getGroupsAtOnce(),
                                llvm::bit_floor<uint64_t>(groups - group));
      SmallVector<Value> b = getB(group, count, step);
      for (int64_t block = 0; block < blocks; ++block)
        for (int64_t index = 0; index < count; ++index)
          multiply(a[block], ArrayRef(b).slice(2 * index, 2), *accumulator,
                   block, group + index);
    }
  }
  replaceProduct(rewriter, op, *accumulator, layout);
  return success();
}

LogicalResult fovea::tile::emitMmaSync(ConversionPatternRewriter &rewriter,
                                       MmaOp op, MmaAdaptor adaptor) {
  return MmaSync(rewriter, op).emit(adaptor);
}
