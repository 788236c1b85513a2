//===- Loops.cpp - Helpers shared by passes for the host ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Loops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
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

bool fovea::writesApart(linalg::LinalgOp op) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (!map.isProjectedPermutation())
      return false;
    for (unsigned dim = 0; dim < iterators.size(); ++dim)
      if (map.isFunctionOfDim(dim) !=
          linalg::isParallelIterator(iterators[dim]))
        return false;
  }
  return true;
}
