//===- Multiples.cpp - Integers that are multiples of a number ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Support/Multiples.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;
using namespace fovea;

Value fovea::getOperand(AffineExpr expr, AffineMap map, ValueRange operands) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return operands[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return operands[map.getNumDims() + symbol.getPosition()];
  return {};
}

bool Multiples::contains(AffineExpr expr, AffineMap map,
                         ValueRange operands) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() % number == 0;
  if (Value operand = getOperand(expr, map, operands))
    return contains(operand);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  bool left = contains(binary.getLHS(), map, operands),
       right = contains(binary.getRHS(), map, operands);
  switch (expr.getKind()) {
  case AffineExprKind::Mul:
    return left || right;
  case AffineExprKind::Add:
  case AffineExprKind::Mod:
    return left && right;
  default:
    return false;
  }
}

bool Multiples::contains(OpFoldResult value) const {
  std::optional<int64_t> constant = getConstantIntValue(value);
  return constant ? *constant % number == 0 : contains(cast<Value>(value));
}

bool Multiples::contains(Value value) const {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return contains(constant);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (region && argument.getOwner()->getParent() == region)
      return true;
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForallOp>(parent)) {
      unsigned dim = argument.getArgNumber();
      return dim < loop.getRank() && contains(loop.getMixedLowerBound()[dim]) &&
             contains(loop.getMixedStep()[dim]);
    }
    auto loop = dyn_cast<scf::ForOp>(parent);
    return loop && argument == loop.getInductionVar() &&
           contains(loop.getLowerBound()) &&
           (contains(loop.getStep()) || loop.getStaticTripCount() == 1);
  }
  Operation *op = value.getDefiningOp();
  auto containsAll = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value each) { return contains(each); });
  };
  if (isa<arith::MulIOp>(op))
    return contains(op->getOperand(0)) || contains(op->getOperand(1));
  // Low bits that are zero stay so.
  if (isa<arith::AndIOp>(op) && llvm::isPowerOf2_64(number))
    return contains(op->getOperand(0)) || contains(op->getOperand(1));
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return containsAll({select.getTrueValue(), select.getFalseValue()});
  if (isa<arith::AddIOp, arith::SubIOp, arith::RemUIOp, arith::RemSIOp,
          arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp,
          arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp>(op))
    return containsAll(op->getOperands());
  if (auto size = dyn_cast<tensor::DimOp>(op)) {
    // What is written to a tensor is as large as it.
    Value tensor = size.getSource();
    while (auto writer = tensor.getDefiningOp<DestinationStyleOpInterface>())
      tensor = writer.getTiedOpOperand(cast<OpResult>(tensor))->get();
    auto room = tensor.getDefiningOp<tensor::EmptyOp>();
    std::optional<int64_t> dim = size.getConstantIndex();
    return room && dim && *dim < room.getType().getRank() &&
           contains(room.getMixedSizes()[*dim]);
  }
  auto containsResults = [&](AffineMap map) {
    return llvm::all_of(map.getResults(), [&](AffineExpr expr) {
      return contains(expr, map, op->getOperands());
    });
  };
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    return containsResults(apply.getAffineMap());
  if (auto min = dyn_cast<affine::AffineMinOp>(op))
    return containsResults(min.getAffineMap());
  if (auto max = dyn_cast<affine::AffineMaxOp>(op))
    return containsResults(max.getAffineMap());
  ValueRange choices = getChoices ? getChoices(op) : ValueRange();
  return !choices.empty() && containsAll(choices);
}
