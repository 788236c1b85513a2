//===- TransposedWrite.cpp - Fragments as columns of a tile ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransposedWrite.h"

#include "Access.h"
#include "InlinePtx.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace fovea::tile;

TransposedWrite::TransposedWrite(OpBuilder &builder, ToSharedOp op,
                                 Value address)
    : builder(builder), op(op), loc(op.getLoc()),
      type(op.getResult().getType()), address(address),
      matrices(builder, op, op.getValue().getType().getLayout(), type) {}

void TransposedWrite::store(ValueRange registers) {
  if (!matrices)
    storeElements(registers);
  else if (getGpuArch(op).hasMatrixStores())
    matrices.store(registers, address, /*transposed=*/true);
  else
    moveMatrices(registers);
}

void TransposedWrite::moveMatrices(ValueRange registers) {
  constexpr int64_t kSize = WarpMatrices::kSize;
  // A lane gets two neighbours of row `lane / 4` of each matrix.
  auto add = [&](Value a, Value b) -> Value {
    return arith::AddIOp::create(builder, loc, a, b);
  };
  Value row =
      add(matrices.getFirstColumn(), matrices.getLaneBits(2, 3, /*factor=*/1));
  Value column =
      add(matrices.getFirstRow(), matrices.getLaneBits(0, 2, /*factor=*/2));
  SharedAccess access(builder, loc, type, address, row,
                      {column, matrices.getRowBits(kSize - 2)});
  for (int64_t block = 0; block < matrices.getBlocks(); ++block)
    for (int64_t group = 0; group < matrices.getGroups(); ++group)
      for (int64_t half : {0, 1}) {
        Value moved = emitPtx(builder, loc,
                              "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;",
                              matrices.getPair(registers, block, group, half),
                              builder.getI32Type())
                          .front();
        Value pointer = access.getPointer(
            group * kSize, block * matrices.getBlockRows() + half * kSize);
        LLVM::StoreOp::create(builder, loc, moved, pointer, /*alignment=*/4);
      }
}

void TransposedWrite::storeElements(ValueRange registers) {
  LayoutAttr layout = op.getValue().getType().getLayout();
  SharedAccess access(builder, loc, type, address,
                      getThreadCoordinate(builder, op, layout, 1),
                      getThreadPart(builder, op, layout, 0));
  for (auto [index, value] : llvm::enumerate(registers)) {
    SmallVector<int64_t> place = layout.getRegisterOffset(index);
    LLVM::StoreOp::create(builder, loc, value,
                          access.getPointer(place[1], place[0]));
  }
}
