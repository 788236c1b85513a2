//===- OutlinedChecks.cpp - Functions that check operands first -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Support/OutlinedChecks.h"

using namespace mlir;

Value fovea::cloneSlice(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    cloneSlice(builder, operand, mapping);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}
