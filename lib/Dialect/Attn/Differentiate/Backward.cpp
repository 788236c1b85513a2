//===- Backward.cpp - Reverse mode on ops ---------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Differentiate/Backward.h"

#include "fovea/Analysis/Formula.h"
#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

void Backward::visit(Operation *op) {
  auto isVaried = [&](Value value) { return this->isVaried(value); };
  if (llvm::none_of(op->getOperands(), isVaried) &&
      llvm::none_of(getCaptures(op), isVaried))
    return;
  for (Value result : op->getResults())
    if (isa<FloatType>(getElementTypeOrSelf(result)))
      varied.insert(result);
}

FloatType Backward::getGradientType(Value value) const {
  if (FloatType type = gradientTypes.lookup(value))
    return type;
  return cast<FloatType>(getElementTypeOrSelf(value));
}

void Backward::add(Location loc, Value value, Value gradient) {
  if (!isVaried(value))
    return;
  FloatType type = getGradientType(value);
  if (auto tensor = dyn_cast<RankedTensorType>(value.getType()))
    gradient = castTensor(builder, loc, gradient, tensor.clone(type));
  else
    gradient = convertFloats(builder, loc, gradient, type);
  Value &sum = gradients[value];
  sum = sum ? arith::AddFOp::create(builder, loc, sum, gradient) : gradient;
}

LogicalResult Backward::pull(Operation *op) {
  bool hasGradient = llvm::any_of(
      op->getResults(), [&](Value result) { return bool(lookup(result)); });
  if (!hasGradient)
    return success();
  for (auto rule : {pullGraph, pullTensor, pullLoops})
    if (std::optional<LogicalResult> result = rule(*this, op))
      return *result;
  return op->emitOpError("has no derivative");
}
