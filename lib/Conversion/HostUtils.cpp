//===- HostUtils.cpp - What the host's passes share -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostUtils.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

Block *fovea::getStackBlock(Operation *op) {
  Block *block = nullptr;
  for (Operation *parent = op->getParentOp(); parent;
       parent = parent->getParentOp()) {
    if (auto forall = dyn_cast<scf::ForallOp>(parent)) {
      block = forall.getBody();
    } else if (auto function = dyn_cast<FunctionOpInterface>(parent)) {
      if (!block)
        block = &function.getFunctionBody().front();
      break;
    }
  }
  return block;
}
