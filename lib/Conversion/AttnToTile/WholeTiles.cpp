//===- WholeTiles.cpp - Tiles that are known to be whole ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WholeTiles.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numeric>

using namespace mlir;

static int64_t getKnownDivisor(OpFoldResult value);

/// Returns a number that divides all results of `map` on `operands`.
static int64_t getKnownDivisor(AffineMap map, ValueRange operands) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> dims, symbols;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    bool isDim = index < map.getNumDims();
    AffineExpr place =
        isDim ? getAffineDimExpr(index, context)
              : getAffineSymbolExpr(index - map.getNumDims(), context);
    (isDim ? dims : symbols).push_back(place * getKnownDivisor(operand));
  }
  int64_t divisor = 0;
  for (AffineExpr result : map.getResults())
    divisor = std::gcd(
        divisor,
        result.replaceDimsAndSymbols(dims, symbols).getLargestKnownDivisor());
  return divisor;
}

/// Returns a number that divides the values of a loop's induction variable.
static int64_t getKnownDivisor(BlockArgument value) {
  auto loop = dyn_cast<LoopLikeOpInterface>(value.getOwner()->getParentOp());
  if (!loop)
    return 1;
  auto ivs = loop.getLoopInductionVars();
  auto begins = loop.getLoopLowerBounds(), steps = loop.getLoopSteps();
  if (!ivs || !begins || !steps)
    return 1;
  for (auto [iv, begin, step] : llvm::zip_equal(*ivs, *begins, *steps))
    if (iv == value)
      return std::gcd(getKnownDivisor(begin), getKnownDivisor(step));
  return 1;
}

/// Returns a number that divides `value`; 0 for 0.
static int64_t getKnownDivisor(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::abs(*constant);
  auto dynamic = cast<Value>(value);
  if (auto argument = dyn_cast<BlockArgument>(dynamic))
    return getKnownDivisor(argument);
  Operation *op = dynamic.getDefiningOp();
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    return getKnownDivisor(apply.getAffineMap(), apply.getMapOperands());
  if (auto min = dyn_cast<affine::AffineMinOp>(op))
    return getKnownDivisor(min.getAffineMap(), min.getMapOperands());
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::gcd(getKnownDivisor(op->getOperand(0)),
                    getKnownDivisor(op->getOperand(1)));
  if (isa<arith::MulIOp>(op))
    return getKnownDivisor(op->getOperand(0)) *
           getKnownDivisor(op->getOperand(1));
  return 1;
}

/// Returns the step of the loop whose tiles have the size `op`, if it divides
/// both of the loop's ends.
static std::optional<int64_t> getWholeSize(affine::AffineMinOp op) {
  auto loop = op->getParentOfType<scf::ForOp>();
  std::optional<int64_t> step =
      loop ? getConstantIntValue(loop.getStep()) : std::nullopt;
  AffineMap map = op.getAffineMap();
  if (!step || map.getNumResults() != 2)
    return std::nullopt;
  MLIRContext *context = op.getContext();
  AffineExpr end, iv;
  for (auto [index, operand] : llvm::enumerate(op.getMapOperands())) {
    AffineExpr place =
        index < map.getNumDims()
            ? getAffineDimExpr(index, context)
            : getAffineSymbolExpr(index - map.getNumDims(), context);
    if (operand == loop.getUpperBound())
      end = place;
    if (operand == loop.getInductionVar())
      iv = place;
  }
  if (!end)
    if (std::optional<int64_t> constant =
            getConstantIntValue(loop.getUpperBound()))
      end = getAffineConstantExpr(*constant, context);
  if (!end || !iv)
    return std::nullopt;
  auto isLeft = [&](AffineExpr expr) {
    return simplifyAffineExpr(expr - (end - iv), map.getNumDims(),
                              map.getNumSymbols()) == 0;
  };
  bool isSize = (map.getResult(0) == *step && isLeft(map.getResult(1))) ||
                (map.getResult(1) == *step && isLeft(map.getResult(0)));
  auto divides = [&](Value value) {
    return getKnownDivisor(OpFoldResult(value)) % *step == 0;
  };
  if (!isSize || !divides(loop.getLowerBound()) ||
      !divides(loop.getUpperBound()))
    return std::nullopt;
  return step;
}

void fovea::replaceWholeSizes(IRRewriter &rewriter, Operation *root) {
  root->walk([&](affine::AffineMinOp op) {
    std::optional<int64_t> size = getWholeSize(op);
    if (!size)
      return;
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithNewOp<arith::ConstantIndexOp>(op, *size);
  });
}
