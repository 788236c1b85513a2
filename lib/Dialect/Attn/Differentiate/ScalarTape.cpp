//===- ScalarTape.cpp - Derivatives of scalar programs --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Differentiate/ScalarTape.h"

#include "fovea/Analysis/Formula.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numbers>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

Value ScalarTape::widen(Value value) {
  return convertFloats(builder, loc, value,
                       getAccumulationType(value.getType()));
}

Value ScalarTape::replay(Block &block, Value value, IRMapping &mapping,
                         Substitute substitute) {
  DenseSet<Operation *> needed;
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (op)
      op = block.findAncestorOpInBlock(*op);
    if (!op || !needed.insert(op).second)
      continue;
    op->walk([&](Operation *nested) {
      llvm::append_range(worklist, nested->getOperands());
    });
  }
  for (Operation &op : block.without_terminator()) {
    if (!needed.contains(&op))
      continue;
    if (Value other = substitute ? substitute(&op) : Value()) {
      mapping.map(op.getResult(0), other);
      continue;
    }
    ops.push_back(builder.clone(op, mapping));
  }
  return mapping.lookupOrDefault(value);
}

void ScalarTape::markActive() {
  for (Operation *op : ops) {
    WalkResult found = op->walk([&](Operation *nested) {
      return llvm::any_of(nested->getOperands(),
                          [&](Value value) { return active.contains(value); })
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (!found.wasInterrupted())
      continue;
    activeOps.push_back(op);
    for (Value result : op->getResults())
      if (isa<FloatType>(result.getType()))
        active.insert(result);
  }
}

void ScalarTape::add(Value value, Value gradient) {
  if (!active.contains(value))
    return;
  FloatType type = gradientTypes.lookup(value);
  gradient = convertFloats(builder, loc, gradient,
                           type ? type : getAccumulationType(value.getType()));
  Value &sum = gradients[value];
  sum = sum ? arith::AddFOp::create(builder, loc, sum, gradient) : gradient;
}

LogicalResult ScalarTape::pull(Value result, Value cotangent) {
  markActive();
  // The bits of a number have no gradient, so a bitcast has no derivative.
  for (Operation *op : activeOps)
    if (isa<arith::BitcastOp>(op))
      return op->emitOpError("has no derivative");
  add(result, cotangent);
  for (Operation *op : llvm::reverse(activeOps)) {
    if (llvm::none_of(op->getResults(), [&](Value value) {
          return bool(gradients.lookup(value));
        }))
      continue;
    if (op->getNumResults() != 1 || op->getNumRegions() != 0)
      return op->emitOpError("has no derivative");
    if (failed(pullOp(op, gradients.lookup(op->getResult(0)))))
      return failure();
  }
  return success();
}

/// Returns the derivative of a function of one number at `x`, where its value
/// is `z`; null for other ops.
static Value getDerivative(const Formula &f, Operation *op, Value x, Value z) {
  using std::numbers::ln10;
  using std::numbers::ln2;
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return z; })
      .Case([&](math::Exp2Op) { return f.mul(z, ln2); })
      // The result plus 1 would lose a small slope.
      .Case([&](math::ExpM1Op) { return f.make<math::ExpOp>(x); })
      .Case([&](math::LogOp) { return f.div(f.number(1.0), x); })
      .Case([&](math::Log2Op) { return f.div(f.number(1 / ln2), x); })
      .Case([&](math::Log10Op) { return f.div(f.number(1 / ln10), x); })
      .Case([&](math::Log1pOp) {
        return f.div(f.number(1.0), f.add(f.number(1.0), x));
      })
      .Case([&](math::SqrtOp) { return f.div(f.number(0.5), z); })
      .Case([&](math::RsqrtOp) { return f.mul(f.mul(z, f.mul(z, z)), -0.5); })
      .Case(
          [&](math::CbrtOp) { return f.div(f.number(1.0 / 3.0), f.mul(z, z)); })
      .Case([&](math::SinOp) { return f.make<math::CosOp>(x); })
      .Case([&](math::CosOp) { return f.neg(f.make<math::SinOp>(x)); })
      .Case([&](math::TanOp) { return f.onePlus(z, z); })
      .Case([&](math::AsinOp) {
        return f.make<math::RsqrtOp>(f.oneMinusSquare(x));
      })
      .Case([&](math::AcosOp) {
        return f.neg(f.make<math::RsqrtOp>(f.oneMinusSquare(x)));
      })
      .Case([&](math::AtanOp) { return f.div(f.number(1.0), f.onePlus(x, x)); })
      .Case([&](math::SinhOp) { return f.make<math::CoshOp>(x); })
      .Case([&](math::CoshOp) { return f.make<math::SinhOp>(x); })
      .Case([&](math::TanhOp) { return f.oneMinusSquare(z); })
      .Case(
          [&](math::AsinhOp) { return f.make<math::RsqrtOp>(f.onePlus(x, x)); })
      .Case([&](math::AcoshOp) {
        Value below = f.sub(x, f.number(1.0)), above = f.add(x, f.number(1.0));
        return f.make<math::RsqrtOp>(f.mul(below, above));
      })
      .Case([&](math::AtanhOp) {
        return f.div(f.number(1.0), f.oneMinusSquare(x));
      })
      .Case<math::ErfOp, math::ErfcOp>([&](Operation *) {
        double factor = 2 * std::numbers::inv_sqrtpi;
        Value density = f.make<math::ExpOp>(f.neg(f.mul(x, x)));
        return f.mul(density, isa<math::ErfOp>(op) ? factor : -factor);
      })
      .Case([&](math::AbsFOp) {
        Value zero = f.number(0.0);
        Value negative = f.compare(arith::CmpFPredicate::OLT, x, zero);
        Value isZero = f.compare(arith::CmpFPredicate::OEQ, x, zero);
        Value sign = f.select(negative, f.number(-1.0), f.number(1.0));
        return f.select(isZero, zero, sign);
      })
      .Default([](Operation *) { return Value(); });
}

/// Returns true for ops that are constant between jumps.
static bool isStep(Operation *op) {
  return isa<math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp,
             math::TruncOp>(op);
}

LogicalResult ScalarTape::pullOp(Operation *op, Value gradient) {
  Value result = op->getResult(0);
  Formula f = {builder, loc, cast<FloatType>(gradient.getType())};
  auto operand = [&](unsigned index) {
    return f.convert(op->getOperand(index));
  };
  auto send = [&](unsigned index, auto contribution) {
    if (active.contains(op->getOperand(index)))
      add(op->getOperand(index), contribution());
  };
  // The gradient of a maximum or minimum; equal operands share it.
  auto sendToChosen = [&](arith::CmpFPredicate chosen) {
    for (unsigned index : {0u, 1u})
      send(index, [&] {
        Value self = operand(index), other = operand(1 - index);
        Value half = f.mul(gradient, 0.5);
        Value tie = f.compare(arith::CmpFPredicate::OEQ, self, other);
        Value shared = f.select(tie, half, f.number(0.0));
        return f.select(f.compare(chosen, self, other), gradient, shared);
      });
  };

  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::AddFOp) {
        send(0, [&] { return gradient; });
        send(1, [&] { return gradient; });
        return success();
      })
      .Case([&](arith::SubFOp) {
        send(0, [&] { return gradient; });
        send(1, [&] { return f.neg(gradient); });
        return success();
      })
      .Case([&](arith::MulFOp) {
        send(0, [&] { return f.mul(gradient, operand(1)); });
        send(1, [&] { return f.mul(gradient, operand(0)); });
        return success();
      })
      .Case([&](arith::DivFOp) {
        Value quotient = f.div(gradient, operand(1));
        send(0, [&] { return quotient; });
        send(1, [&] { return f.neg(f.mul(quotient, widen(result))); });
        return success();
      })
      .Case([&](arith::RemFOp) {
        // x - trunc(x / y) * y.
        send(0, [&] { return gradient; });
        send(1, [&] {
          Value times = f.make<math::TruncOp>(f.div(operand(0), operand(1)));
          return f.neg(f.mul(gradient, times));
        });
        return success();
      })
      .Case([&](arith::NegFOp) {
        send(0, [&] { return f.neg(gradient); });
        return success();
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](Operation *) {
        send(0, [&] { return gradient; });
        return success();
      })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](Operation *) {
        sendToChosen(arith::CmpFPredicate::OGT);
        return success();
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](Operation *) {
        sendToChosen(arith::CmpFPredicate::OLT);
        return success();
      })
      .Case([&](arith::SelectOp select) {
        Value condition = select.getCondition(), zero = f.number(0.0);
        send(1, [&] { return f.select(condition, gradient, zero); });
        send(2, [&] { return f.select(condition, zero, gradient); });
        return success();
      })
      .Case([&](math::FmaOp) {
        send(0, [&] { return f.mul(gradient, operand(1)); });
        send(1, [&] { return f.mul(gradient, operand(0)); });
        send(2, [&] { return gradient; });
        return success();
      })
      .Case([&](math::PowFOp) {
        Value x = operand(0), y = operand(1), zero = f.number(0.0);
        send(0, [&] {
          Value power = f.make<math::PowFOp>(x, f.sub(y, f.number(1.0)));
          // Otherwise a constant exponent of 0 would have no derivative at 0.
          Value isFlat = f.compare(arith::CmpFPredicate::OEQ, y, zero);
          Value slope = f.select(isFlat, zero, f.mul(y, power));
          return f.mul(gradient, slope);
        });
        send(1, [&] {
          Value isZero = f.compare(arith::CmpFPredicate::OEQ, x, zero);
          Value logarithm = f.make<math::LogOp>(x);
          Value slope = f.select(isZero, zero, f.mul(widen(result), logarithm));
          return f.mul(gradient, slope);
        });
        return success();
      })
      .Case([&](math::FPowIOp power) {
        send(0, [&] {
          Value exponent = power.getRhs();
          Value one = arith::ConstantOp::create(
              builder, loc, builder.getIntegerAttr(exponent.getType(), 1));
          Value less = f.make<arith::SubIOp>(exponent, one);
          Value factor = f.make<arith::SIToFPOp>(f.type, exponent);
          Value slope = f.mul(factor, f.make<math::FPowIOp>(operand(0), less));
          Value zero = arith::ConstantOp::create(
              builder, loc, builder.getIntegerAttr(exponent.getType(), 0));
          Value isFlat =
              f.make<arith::CmpIOp>(arith::CmpIPredicate::eq, exponent, zero);
          return f.mul(gradient, f.select(isFlat, f.number(0.0), slope));
        });
        return success();
      })
      .Case([&](math::Atan2Op) {
        Value y = operand(0), x = operand(1);
        Value square = f.add(f.mul(x, x), f.mul(y, y));
        Value quotient = f.div(gradient, square);
        send(0, [&] { return f.mul(quotient, x); });
        send(1, [&] { return f.neg(f.mul(quotient, y)); });
        return success();
      })
      .Case([&](math::CopySignOp) {
        // Only the sign of the second operand is read.
        send(0, [&] {
          Value one = f.number(1.0);
          Value sign = f.mul(f.make<math::CopySignOp>(one, operand(0)),
                             f.make<math::CopySignOp>(one, operand(1)));
          return f.mul(gradient, sign);
        });
        return success();
      })
      .Case([&](math::ClampFOp) {
        Value x = operand(0), low = operand(1), high = operand(2);
        Value zero = f.number(0.0);
        Value isLow = f.compare(arith::CmpFPredicate::OLT, x, low);
        Value isHigh = f.compare(arith::CmpFPredicate::OGT, x, high);
        Value inside = f.select(isLow, zero, f.select(isHigh, zero, gradient));
        send(0, [&] { return inside; });
        send(1, [&] { return f.select(isLow, gradient, zero); });
        send(2, [&] { return f.select(isHigh, gradient, zero); });
        return success();
      })
      .Default([&](Operation *) -> LogicalResult {
        if (isStep(op))
          return success();
        if (op->getNumOperands() == 1) {
          if (Value slope = getDerivative(f, op, operand(0), widen(result))) {
            add(op->getOperand(0), f.mul(gradient, slope));
            return success();
          }
        }
        return op->emitOpError("has no derivative");
      });
}
