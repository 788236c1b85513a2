//===- ElementCost.cpp - What an element of an op costs -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/ElementCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

/// The machine's functions have lanes for an eighth of the threads that those
/// of sums have.
static constexpr unsigned kApproximate = 8;
/// A quotient is a product with a reciprocal, of operands that are scaled where
/// the denominator is large.
static constexpr unsigned kApproximateQuotient = kApproximate + 5;
/// Exact functions are polynomials behind a reduction of their argument, exact
/// quotients steps of Newton's method behind tests for numbers that overflow in
/// them. In attention's kernel on an H200 an exponential and a quotient
/// together were 39 instructions an element, and took as long as 56.
static constexpr unsigned kExactFunction = 28;

static unsigned countWantedBits(Value value);

unsigned fovea::countWantedBits(linalg::LinalgOp op) {
  unsigned wanted = 0;
  for (Value result : op->getResults())
    wanted = std::max(wanted, ::countWantedBits(result));
  return wanted;
}

static unsigned countWantedBits(Value value) {
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(value));
  if (!type)
    return fovea::kAllBits;
  unsigned bits = type.getFPMantissaWidth(), wanted = 0;
  if (type.getWidth() <= 16)
    return bits;
  for (Operation *user : value.getUsers()) {
    if (isa<tensor::DimOp>(user))
      continue;
    auto reader = dyn_cast<linalg::LinalgOp>(user);
    if (reader && reader.getNumReductionLoops() == 0)
      wanted = std::max(wanted, fovea::countWantedBits(reader));
    else if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                 tensor::ExtractSliceOp>(user))
      wanted = std::max(wanted, countWantedBits(user->getResult(0)));
    else
      wanted = bits;
  }
  return wanted;
}

/// Returns true if `value` is rounded to 16 bits before it is more than a
/// factor, so that an error relative to it is one relative to the result. In 1
/// - x it may be all that is left.
static bool isRoundedAsFactor(Value value) {
  if (value.getType().getIntOrFloatBitWidth() <= 16)
    return true;
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<arith::ExtFOp, arith::TruncFOp, arith::MulFOp, arith::NegFOp>(
               user) &&
           isRoundedAsFactor(user->getResult(0));
  });
}

bool fovea::mayApproximate(Operation &op, unsigned wantedBits) {
  if (op.getNumResults() != 1)
    return false;
  auto type = dyn_cast<FloatType>(op.getResult(0).getType());
  if (!type || type.getWidth() > 32)
    return false;
  // An exponential, whose argument is rounded when it is multiplied, has an
  // error of at most 2^-17, a quotient of 2^-22. That of tanh is 2^-11.
  if (isa<math::ExpOp, math::Exp2Op, arith::DivFOp>(op))
    return wantedBits <= 11;
  return isa<math::TanhOp>(op) && wantedBits <= 8 &&
         isRoundedAsFactor(op.getResult(0));
}

bool fovea::isFunction(Operation &op) {
  return isa_and_present<math::MathDialect>(op.getDialect()) &&
         !isa<math::FmaOp, math::AbsFOp, math::AbsIOp, math::CopySignOp>(op);
}

unsigned fovea::countInstructions(linalg::LinalgOp op, unsigned wantedBits) {
  unsigned count = 0;
  for (Operation &each : op.getBlock()->without_terminator()) {
    // What computes places is shared by elements.
    if (each.hasTrait<OpTrait::ConstantLike>() ||
        llvm::any_of(each.getResultTypes(), llvm::IsaPred<IndexType>))
      continue;
    bool isFunction =
        each.getDialect()->getNamespace() ==
            math::MathDialect::getDialectNamespace() &&
        !isa<math::FmaOp, math::AbsFOp, math::CopySignOp, math::FloorOp,
             math::CeilOp, math::RoundEvenOp, math::TruncOp>(each);
    if (mayApproximate(each, wantedBits))
      count += isa<arith::DivFOp>(each) ? kApproximateQuotient : kApproximate;
    else if (isFunction || isa<arith::DivFOp, arith::RemFOp>(each))
      count += kExactFunction;
    else
      ++count;
  }
  return count;
}
