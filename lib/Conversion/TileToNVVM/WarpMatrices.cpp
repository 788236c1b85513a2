//===- WarpMatrices.cpp - Fragments as matrices of warps ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpMatrices.h"

#include "Access.h"
#include "PackPairs.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea::tile;

WarpMatrices::WarpMatrices(OpBuilder &builder, Operation *op, LayoutAttr layout,
                           SharedType tile)
    : builder(builder), op(op), loc(op->getLoc()), tile(tile) {
  if (tile.getElementBytes() != 2 || tile.getPanelColumns() % kSize)
    return;
  std::optional<int64_t> found = layout.getColumnWarps(permutation);
  if (!found)
    return;
  columnWarps = *found;
  rowWarps = layout.getNumThreads() / kWarpSize / columnWarps;
  groups = layout.getShape()[1] / columnWarps / kSize;
  blocks = layout.getShape()[0] / getBlockRows();
}

Value WarpMatrices::add(Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}

Value WarpMatrices::getLaneBits(int64_t bit, int64_t bits, int64_t factor) {
  Value place = arith::ShRUIOp::create(builder, loc, getLane(builder, op),
                                       getI32(builder, loc, bit));
  place = arith::AndIOp::create(builder, loc, place,
                                getI32(builder, loc, (1 << bits) - 1));
  return arith::MulIOp::create(builder, loc, place,
                               getI32(builder, loc, factor));
}

Value WarpMatrices::getFirstColumn() {
  Value warp =
      arith::DivUIOp::create(builder, loc, getThread(builder, op),
                             getI32(builder, loc, kWarpSize * rowWarps));
  return arith::MulIOp::create(builder, loc, warp,
                               getI32(builder, loc, kSize * groups));
}

Value WarpMatrices::getFirstRow() {
  Value warp = arith::DivUIOp::create(builder, loc, getThread(builder, op),
                                      getI32(builder, loc, kWarpSize));
  warp = arith::RemUIOp::create(builder, loc, warp,
                                getI32(builder, loc, rowWarps));
  return arith::MulIOp::create(builder, loc, warp,
                               getI32(builder, loc, 2 * kSize));
}

Value WarpMatrices::getPair(ValueRange registers, int64_t block, int64_t group,
                            int64_t half) {
  return packPair(builder, loc,
                  registers[getRegister(block, group, half, /*part=*/0)],
                  registers[getRegister(block, group, half, /*part=*/1)]);
}

uint64_t WarpMatrices::getBits(int64_t count, int64_t distance,
                               uint64_t ofLane) {
  if (count > 1 &&
      (!llvm::isPowerOf2_64(count) || !llvm::isPowerOf2_64(distance)))
    return ~uint64_t(0);
  return (count - 1) * distance | ofLane;
}

SharedAccess WarpMatrices::getAccess(Value address, bool transposed) {
  Value inMatrix = getLaneBits(0, 3, 1);
  Value half = getLaneBits(3, 1, kSize), next = getLaneBits(4, 1, kSize);
  Value firstRow = getFirstRow(), firstColumn = getFirstColumn();
  Value row =
      add(transposed ? add(firstColumn, next) : add(firstRow, half), inMatrix);
  ThreadPart inRow =
      transposed ? ThreadPart{add(firstRow, half), getRowBits(kSize)}
                 : ThreadPart{add(firstColumn, next),
                              getBits(columnWarps, kSize * groups, kSize)};
  return {builder, loc, tile, address, row, inRow};
}

void WarpMatrices::store(ValueRange registers, Value address, bool transposed,
                         int64_t column) {
  SharedAccess access = getAccess(address, transposed);
  auto shape = NVVM::LdStMatrixShapeAttr::get(op->getContext(), kSize, kSize);
  int64_t begin = column / kSize;
  int64_t end = transposed
                    ? groups
                    : std::min(groups, begin + tile.getShape()[1] / kSize);
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t group = begin; group < end; group += 2) {
      SmallVector<Value> pairs;
      for (int64_t number = group; number < std::min(group + 2, end); ++number)
        for (int64_t part : {0, 1})
          pairs.push_back(getPair(registers, block, number, part));
      int64_t along = block * getBlockRows(), across = (group - begin) * kSize;
      // The lanes beyond two matrices give addresses that are not used.
      Value pointer = transposed ? access.getPointer(across, along)
                                 : access.getPointer(along, across);
      NVVM::StMatrixOp::create(builder, loc, pointer, pairs,
                               transposed ? NVVM::MMALayout::col
                                          : NVVM::MMALayout::row,
                               shape, NVVM::LdStMatrixEltType::B16);
    }
}

SmallVector<Value> WarpMatrices::loadTransposed(Value address) {
  SharedAccess access = getAccess(address, /*transposed=*/true);
  auto pairType = VectorType::get(2, tile.getElementType());
  SmallVector<Value> registers(permutation.size());
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t group = 0; group < groups; group += 2) {
      int64_t count = 2 * std::min<int64_t>(2, groups - group);
      Value pointer = access.getPointer(group * kSize, block * getBlockRows());
      SmallVector<Value> words =
          loadMatrices(builder, loc, pointer, count, /*transposed=*/true);
      for (auto [number, word] : llvm::enumerate(words)) {
        Value pair = LLVM::BitcastOp::create(builder, loc, pairType, word);
        for (int64_t part : {0, 1})
          registers[getRegister(block, group + number / 2, number % 2, part)] =
              LLVM::ExtractElementOp::create(builder, loc, pair,
                                             getI32(builder, loc, part));
      }
    }
  return registers;
}

SmallVector<Value> fovea::tile::loadMatrices(OpBuilder &builder, Location loc,
                                             Value pointer, int64_t count,
                                             bool transposed) {
  constexpr int64_t kSize = WarpMatrices::kSize;
  Type word = builder.getI32Type();
  // One matrix is a number, not a struct of one.
  Type type = count == 1
                  ? word
                  : Type(LLVM::LLVMStructType::getLiteral(
                        builder.getContext(), SmallVector<Type>(count, word)));
  Value matrices = NVVM::LdMatrixOp::create(
      builder, loc, type, pointer, count,
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(builder.getContext(), kSize, kSize),
      NVVM::LdStMatrixEltType::B16);
  if (count == 1)
    return {matrices};
  SmallVector<Value> words;
  for (int64_t index = 0; index < count; ++index)
    words.push_back(
        LLVM::ExtractValueOp::create(builder, loc, matrices, index));
  return words;
}
