//===- OwnRows.cpp - Rows that warp groups own ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OwnRows.h"

#include "UnwrittenMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fovea::tile;

std::optional<StringRef> fovea::tile::findSharedRows(RoleOp role,
                                                     int64_t rows) {
  if (static_cast<int64_t>(role.getWarps()) < 2 * kGroupWarps)
    return "has one warp group";
  if (rows != kWarpRows * static_cast<int64_t>(role.getWarps()))
    return "has not 16 rows for each warp";
  std::optional<StringRef> reason;
  role.walk([&](Operation *op) {
    // Of a tile of its shape, a fragment's threads read their own rows.
    auto read = dyn_cast<FromSharedOp>(op);
    if (isa<ToSharedOp, TakeTurnOp, PassTurnOp>(op) ||
        (read &&
         (read.getResult().getType().getRank() == 1 || read.getTransposed())))
      reason = "exchanges rows among its groups";
    // Without a ring all threads copy a tile, and meet before they read it.
    auto load = dyn_cast<LoadOp>(op);
    if (load && isa<SharedType>(load.getResult().getType()))
      reason = "copies tiles that its groups share";
    auto product = dyn_cast<MmaOp>(op);
    if (product && product.getKind() != MmaKind::Wgmma)
      reason = "has other products than wgmma";
    if (isa<MapOp>(op) && !onlyReads(op))
      reason = "writes memory in a map";
    auto number = dyn_cast<OfRowsOp>(op);
    if (number && static_cast<int64_t>(number.getRows()) != rows)
      reason = "has numbers for other rows";
    for (Type type : op->getResultTypes())
      if (auto fragment = dyn_cast<FragmentType>(type);
          fragment && fragment.getShape().front() != rows)
        reason = "has fragments of other rows";
  });
  return reason;
}

void fovea::tile::moveRows(OpBuilder &builder, Operation *op,
                           MutableOperandRange indices, ArrayRef<int64_t> dims,
                           Value distance) {
  Location loc = op->getLoc();
  if (int64_t inner = getInnerRows(op))
    distance = arith::DivSIOp::create(
        builder, loc, distance,
        arith::ConstantIndexOp::create(builder, loc, inner));
  OpOperand &first = indices[dims.front()];
  first.set(arith::AddIOp::create(builder, loc, first.get(), distance));
}
