//===- TileCalls.cpp - Calls by their tiles of queries --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/TileCalls.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

AttentionOp fovea::findAttentionOfAnyLength(func::FuncOp function) {
  SmallVector<AttentionOp> ops;
  function.walk([&](AttentionOp op) { ops.push_back(op); });
  if (ops.size() != 1)
    return {};
  AttentionOp op = ops.front();
  RankedTensorType query = op.getQuery().getType();
  // With parts of fixed sizes a row has the same bits whatever the lengths.
  if (op.getSchedule() || op.getSplitSize() || query.isDynamicDim(1) ||
      !query.isDynamicDim(2))
    return {};
  return op;
}
