//===- PositionTerm.cpp - A score's term in the key's position ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionTerm.h"

#include "Positions.h"

#include "fovea/Analysis/CaptureReads.h"

using namespace mlir;
using namespace fovea;

/// Sets the factors of `term` to those of `product`, and its position to what
/// else the product has; returns false if that is no position.
static bool factorize(PositionTerm &term, Value product, Region &score,
                      const llvm::SmallDenseSet<Value> &varying) {
  Operation *op = product.getDefiningOp();
  if (!op || op->getBlock() != &score.front())
    return false;
  if (auto negation = dyn_cast<arith::NegFOp>(op)) {
    term.sign = -term.sign;
    return factorize(term, negation.getOperand(), score, varying);
  }
  if (auto factors = dyn_cast<arith::MulFOp>(op)) {
    Value fixed = factors.getLhs(), other = factors.getRhs();
    if (varying.contains(fixed))
      std::swap(fixed, other);
    if (varying.contains(fixed))
      return false;
    term.factors.push_back(fixed);
    return factorize(term, other, score, varying);
  }
  auto conversion = dyn_cast<arith::SIToFPOp>(op);
  if (!conversion || !conversion.getType().isF32())
    return false;
  std::optional<int64_t> step =
      getPositionStep(score, conversion.getIn(), Coordinate::Key);
  if (!step || *step == 0)
    return false;
  term.position = conversion;
  term.step = *step;
  return true;
}

std::optional<PositionTerm> PositionTerm::find(Region &score) {
  if (score.empty())
    return std::nullopt;
  Block &body = score.front();
  Operation *sum = body.getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_present<arith::AddFOp, arith::SubFOp>(sum) ||
      sum->getBlock() != &body)
    return std::nullopt;
  llvm::SmallDenseSet<Value> varying =
      getDependents(body, {body.getArgument(0), body.getArguments().back()});
  Value a = sum->getOperand(0), b = sum->getOperand(1);
  PositionTerm term;
  term.rest = a;
  term.sign = isa<arith::SubFOp>(sum) ? -1.0 : 1.0;
  if (factorize(term, b, score, varying))
    return term;
  term = {};
  term.rest = b;
  if (isa<arith::AddFOp>(sum) && factorize(term, a, score, varying))
    return term;
  return std::nullopt;
}
