//===- SizePlace.cpp - Sizes of operands of functions ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/SizePlace.h"

#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace fovea;

std::optional<SizePlace> SizePlace::find(func::FuncOp function, Value tensor,
                                         int64_t dim) {
  auto isOperand = [&](Value value) {
    return llvm::is_contained(function.getArguments(), value);
  };
  AffineMap map;
  ValueDimList operands;
  if (failed(ValueBoundsConstraintSet::computeBound(
          map, operands, presburger::BoundType::EQ, {tensor, dim},
          [&](Value value, std::optional<int64_t>, ValueBoundsConstraintSet &) {
            return isOperand(value);
          })))
    return std::nullopt;
  if (operands.size() != 1 || !operands[0].second ||
      !isOperand(operands[0].first))
    return std::nullopt;
  AffineExpr size = map.getResult(0);
  int64_t more = 0;
  if (auto sum = dyn_cast<AffineBinaryOpExpr>(size);
      sum && sum.getKind() == AffineExprKind::Add)
    if (auto constant = dyn_cast<AffineConstantExpr>(sum.getRHS())) {
      more = constant.getValue();
      size = sum.getLHS();
    }
  if (!isa<AffineDimExpr, AffineSymbolExpr>(size))
    return std::nullopt;
  return SizePlace{cast<BlockArgument>(operands[0].first).getArgNumber(),
                   unsigned(*operands[0].second), more};
}
