//===- Memory.cpp - Memory that memrefs are in ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace fovea;

Value fovea::getBase(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

bool fovea::isHostBuffer(Value memref) {
  return getBase(memref).getDefiningOp<memref::AllocaOp>() != nullptr;
}

bool fovea::isOperand(Value memref) {
  auto argument = dyn_cast<BlockArgument>(getBase(memref));
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

bool fovea::isDistinct(Value base) {
  return base.getDefiningOp<memref::AllocOp>() || isOperand(base);
}
