//===- SameOp.cpp - Ops that compute the same -----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Support/SameOp.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

Operation *fovea::findSame(Operation &op, Block &block, Block::iterator end) {
  if (op.getNumRegions() || !isPure(&op))
    return nullptr;
  auto before = llvm::make_range(block.begin(), end);
  auto same = llvm::find_if(before, [&](Operation &other) {
    return OperationEquivalence::isEquivalentTo(
        &op, &other, OperationEquivalence::exactValueMatch,
        /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
  });
  return same == before.end() ? nullptr : &*same;
}
