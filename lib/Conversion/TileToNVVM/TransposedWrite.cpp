//===- TransposedWrite.cpp - Fragments as columns of a tile ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransposedWrite.h"

#include "Access.h"
#include "InlinePtx.h"
#include "PackPairs.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea::tile;

/// Rows and columns of a matrix that is transposed at once.
static constexpr int64_t kMatrix = 8;

TransposedWrite::TransposedWrite(OpBuilder &builder, ToSharedOp op,
                                 Value address)
    : builder(builder), op(op), loc(op.getLoc()),
      type(op.getResult().getType()),
      layout(op.getValue().getType().getLayout()), address(address) {
  if (type.getElementBytes() != 2 || type.getPanelColumns() % kMatrix)
    return;
  std::optional<int64_t> found = layout.getColumnWarps(permutation);
  if (!found)
    return;
  columnWarps = *found;
  rowWarps = layout.getNumThreads() / kWarpSize / columnWarps;
  groups = layout.getShape()[1] / columnWarps / kMatrix;
  blocks = layout.getShape()[0] / (2 * kMatrix * rowWarps);
}

Value TransposedWrite::add(Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}

Value TransposedWrite::getLaneBits(int64_t bit, int64_t bits, int64_t factor) {
  Value place = arith::ShRUIOp::create(builder, loc, getLane(builder, op),
                                       getI32(builder, loc, bit));
  place = arith::AndIOp::create(builder, loc, place,
                                getI32(builder, loc, (1 << bits) - 1));
  return arith::MulIOp::create(builder, loc, place,
                               getI32(builder, loc, factor));
}

Value TransposedWrite::getWarpRow() {
  Value warp =
      arith::DivUIOp::create(builder, loc, getThread(builder, op),
                             getI32(builder, loc, kWarpSize * rowWarps));
  return arith::MulIOp::create(builder, loc, warp,
                               getI32(builder, loc, kMatrix * groups));
}

Value TransposedWrite::getWarpColumn() {
  Value warp = arith::DivUIOp::create(builder, loc, getThread(builder, op),
                                      getI32(builder, loc, kWarpSize));
  warp = arith::RemUIOp::create(builder, loc, warp,
                                getI32(builder, loc, rowWarps));
  return arith::MulIOp::create(builder, loc, warp,
                               getI32(builder, loc, 2 * kMatrix));
}

Value TransposedWrite::getPair(ValueRange registers, int64_t block,
                               int64_t group, int64_t half) {
  int64_t index = 2 * (half + 2 * (group + groups * block));
  return packPair(builder, loc, registers[permutation[index]],
                  registers[permutation[index + 1]]);
}

void TransposedWrite::store(ValueRange registers) {
  if (!rowWarps)
    storeElements(registers);
  else if (getGpuArch(op).hasMatrixStores())
    storeMatrices(registers);
  else
    moveMatrices(registers);
}

void TransposedWrite::storeMatrices(ValueRange registers) {
  // Lane `8 * m + r` has the address of row `r` of matrix `m`: the upper and
  // the lower eight rows of a group of columns, then those of the next one.
  Value row =
      add(getWarpRow(), add(getLaneBits(0, 3, 1), getLaneBits(4, 1, kMatrix)));
  Value column = add(getWarpColumn(), getLaneBits(3, 1, kMatrix));
  uint64_t columnBits = llvm::isPowerOf2_64(rowWarps)
                            ? (2 * rowWarps - 1) * kMatrix
                            : ~uint64_t(0);
  SharedAccess access(builder, loc, type, address, row, {column, columnBits});
  auto shape =
      NVVM::LdStMatrixShapeAttr::get(op.getContext(), kMatrix, kMatrix);
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t group = 0; group < groups; group += 2) {
      SmallVector<Value> pairs;
      for (int64_t next = group; next < std::min(group + 2, groups); ++next)
        for (int64_t half : {0, 1})
          pairs.push_back(getPair(registers, block, next, half));
      // The lanes beyond two matrices give addresses that are not used.
      Value pointer =
          access.getPointer(group * kMatrix, block * 2 * kMatrix * rowWarps);
      NVVM::StMatrixOp::create(builder, loc, pointer, pairs,
                               NVVM::MMALayout::col, shape,
                               NVVM::LdStMatrixEltType::B16);
    }
}

void TransposedWrite::moveMatrices(ValueRange registers) {
  // A lane gets two neighbours of row `lane / 4` of each matrix.
  Value row = add(getWarpRow(), getLaneBits(2, 3, 1));
  Value column = add(getWarpColumn(), getLaneBits(0, 2, 2));
  uint64_t columnBits = llvm::isPowerOf2_64(rowWarps)
                            ? (rowWarps - 1) * 2 * kMatrix | (kMatrix - 2)
                            : ~uint64_t(0);
  SharedAccess access(builder, loc, type, address, row, {column, columnBits});
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t half : {0, 1}) {
        Value moved = emitPtx(builder, loc,
                              "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;",
                              getPair(registers, block, group, half),
                              builder.getI32Type())
                          .front();
        Value pointer = access.getPointer(
            group * kMatrix, (block * 2 * rowWarps + half) * kMatrix);
        LLVM::StoreOp::create(builder, loc, moved, pointer, /*alignment=*/4);
      }
}

void TransposedWrite::storeElements(ValueRange registers) {
  SharedAccess access(builder, loc, type, address,
                      getThreadCoordinate(builder, op, layout, 1),
                      getThreadPart(builder, op, layout, 0));
  for (auto [index, value] : llvm::enumerate(registers)) {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    LLVM::StoreOp::create(builder, loc, value,
                          access.getPointer(place[1], place[0]));
  }
}
