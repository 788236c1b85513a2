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
  bool isSame = operands.size() == 1 && operands[0].second &&
                isOperand(operands[0].first) &&
                isa<AffineDimExpr, AffineSymbolExpr>(map.getResult(0));
  if (!isSame)
    return std::nullopt;
  return SizePlace{cast<BlockArgument>(operands[0].first).getArgNumber(),
                   unsigned(*operands[0].second)};
}
