//===- Differences.cpp - What differs between blocks or warps -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Differences.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fovea::tile;

Differences::Differences(ValueRange sources) {
  add(sources);
  while (!toFollow.empty())
    for (OpOperand &use : toFollow.pop_back_val().getUses())
      addUse(use);
}

void Differences::add(Value value) {
  if (values.insert(value).second)
    toFollow.push_back(value);
}

/// Adds all that an op with regions gives.
void Differences::addAll(Operation *op) {
  branches.insert(op);
  add(op->getResults());
  for (Region &region : op->getRegions())
    for (Block &block : region)
      add(block.getArguments());
}

void Differences::addUse(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    unsigned controls = loop.getNumControlOperands();
    if (number < controls)
      return addAll(loop);
    add(loop.getRegionIterArg(number - controls));
    return add(loop.getResult(number - controls));
  }
  if (isa<scf::YieldOp>(op)) {
    Operation *parent = op->getParentOp();
    if (!isa<scf::ForOp, scf::IfOp>(parent))
      return addAll(parent);
    add(parent->getResult(number));
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      add(loop.getRegionIterArg(number));
    return;
  }
  if (op->getNumRegions())
    return addAll(op);
  add(op->getResults());
}

bool Differences::isRunAlike(Operation *op) const {
  while ((op = op->getParentOp()))
    if (branches.contains(op))
      return false;
  return true;
}

bool Differences::isSame(Operation *op) const {
  auto differs = [&](Value operand) { return values.contains(operand); };
  return llvm::none_of(op->getOperands(), differs) && isRunAlike(op);
}
