//===- Dependence.cpp - What is computed from what ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dependence.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace fovea;

bool tile::dependsOn(Value value, BlockArgument argument) {
  if (value == argument)
    return true;
  // What stands outside of the argument's region does not have it.
  Operation *op = value.getDefiningOp();
  return op && argument.getParentRegion()->isAncestor(op->getParentRegion()) &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return dependsOn(operand, argument);
         });
}
