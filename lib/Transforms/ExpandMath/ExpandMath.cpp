//===- ExpandMath.cpp - expand-math ---------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MathBuilder.h"

#include "fovea/Transforms/GpuKernels.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace fovea {
#define GEN_PASS_DEF_EXPANDMATH
#include "fovea/Transforms/Passes.h.inc"
} // namespace fovea

using namespace mlir;
using namespace fovea;

namespace {
/// An op's form as arithmetic.
struct Expansion {
  using Unary = Value (MathBuilder::*)(Value);
  using Binary = Value (MathBuilder::*)(Value, Value);

  Expansion() = default;
  Expansion(Unary unary, bool isWide = false) : unary(unary), isWide(isWide) {}
  Expansion(Binary binary) : binary(binary), isWide(true) {}

  Unary unary = nullptr;
  Binary binary = nullptr;
  /// True if it is computed in f64, whatever the type.
  bool isWide = false;

  explicit operator bool() const { return unary || binary; }
};
} // namespace

/// Returns the expansion of functions that are faster expanded than called, in
/// vectors.
static Expansion getFastExpansion(Operation *op, bool isF64) {
  return llvm::TypeSwitch<Operation *, Expansion>(op)
      .Case([](math::ExpOp) { return &MathBuilder::exp; })
      .Case([](math::Exp2Op) { return &MathBuilder::exp2; })
      .Case([](math::LogOp) { return &MathBuilder::log; })
      .Case([](math::Log2Op) { return &MathBuilder::log2; })
      .Case([](math::Log10Op) { return &MathBuilder::log10; })
      .Case([](math::Log1pOp) { return &MathBuilder::log1p; })
      .Case([](math::TanhOp) { return &MathBuilder::tanh; })
      .Case([&](math::ErfOp) {
        return isF64 ? Expansion() : Expansion(&MathBuilder::erf);
      })
      .Default([](Operation *) { return Expansion(); });
}

/// Returns the expansion of functions that are expanded where nothing can be
/// called.
static Expansion getOtherExpansion(Operation *op) {
  auto wide = [](Expansion::Unary unary) { return Expansion(unary, true); };
  return llvm::TypeSwitch<Operation *, Expansion>(op)
      .Case([&](math::SinOp) { return wide(&MathBuilder::sin); })
      .Case([&](math::CosOp) { return wide(&MathBuilder::cos); })
      .Case([&](math::TanOp) { return wide(&MathBuilder::tan); })
      .Case([&](math::AsinOp) { return wide(&MathBuilder::asin); })
      .Case([&](math::AcosOp) { return wide(&MathBuilder::acos); })
      .Case([&](math::AtanOp) { return wide(&MathBuilder::atan); })
      .Case([&](math::SinhOp) { return wide(&MathBuilder::sinh); })
      .Case([&](math::CoshOp) { return wide(&MathBuilder::cosh); })
      .Case([&](math::AsinhOp) { return wide(&MathBuilder::asinh); })
      .Case([&](math::AcoshOp) { return wide(&MathBuilder::acosh); })
      .Case([&](math::AtanhOp) { return wide(&MathBuilder::atanh); })
      .Case([&](math::ExpM1Op) { return wide(&MathBuilder::expm1); })
      .Case([&](math::CbrtOp) { return wide(&MathBuilder::cbrt); })
      .Case([&](math::ErfOp) { return wide(&MathBuilder::erf); })
      .Case([&](math::ErfcOp) { return wide(&MathBuilder::erfc); })
      .Case([](math::Atan2Op) { return &MathBuilder::atan2; })
      .Case([](math::PowFOp) { return &MathBuilder::pow; })
      .Case([](arith::RemFOp) { return &MathBuilder::rem; })
      .Default([](Operation *) { return Expansion(); });
}

bool fovea::hasExp2Instruction(Operation *op) {
  auto exp2 = dyn_cast<math::Exp2Op>(op);
  return exp2 && exp2.getType().isF32() &&
         bitEnumContainsAll(exp2.getFastmath(), arith::FastMathFlags::afn);
}

/// Returns `value` as a float, or a vector of floats, of `type`.
static Value convert(OpBuilder &builder, Location loc, Value value, Type type) {
  Type from = getElementTypeOrSelf(value), to = getElementTypeOrSelf(type);
  if (from == to)
    return value;
  if (from.isInteger())
    return arith::SIToFPOp::create(builder, loc, type, value);
  return convertFloats(builder, loc, value, to);
}

static Value expand(Operation *op, const Expansion &expansion) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Type type = op->getResult(0).getType();
  bool isF64 = expansion.isWide || getElementTypeOrSelf(type).isF64();
  Type wide = isF64 ? builder.getF64Type() : builder.getF32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    wide = vector.clone(wide);
  // What may be approximate may have approximate quotients.
  auto flags = arith::FastMathFlags::none;
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(op))
    flags = fast.getFastMathFlagsAttr().getValue() & arith::FastMathFlags::afn;
  MathBuilder math(builder, loc, wide, flags);
  SmallVector<Value> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) {
        return convert(builder, loc, operand, wide);
      });
  Value result = expansion.unary
                     ? (math.*expansion.unary)(operands[0])
                     : (math.*expansion.binary)(operands[0], operands[1]);
  return convert(builder, loc, result, type);
}

/// Rewrites a clamp as comparisons, and a power with an integer exponent as one
/// with a float exponent.
static bool rewrite(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value result;
  if (auto clamp = dyn_cast<math::ClampFOp>(op)) {
    auto bound = [&](arith::CmpFPredicate beyond, Value value, Value limit) {
      Value isBeyond =
          arith::CmpFOp::create(builder, loc, beyond, value, limit);
      return arith::SelectOp::create(builder, loc, isBeyond, limit, value)
          .getResult();
    };
    result = bound(arith::CmpFPredicate::OLT, clamp.getValue(), clamp.getMin());
    result = bound(arith::CmpFPredicate::OGT, result, clamp.getMax());
  } else if (auto power = dyn_cast<math::FPowIOp>(op)) {
    // LLVM's intrinsic has one exponent for all elements of a vector.
    Type type = power.getType();
    result = math::PowFOp::create(builder, loc, power.getLhs(),
                                  convert(builder, loc, power.getRhs(), type));
  } else {
    return false;
  }
  op->replaceAllUsesWith(ValueRange{result});
  op->erase();
  return true;
}

namespace {

struct ExpandMath : public fovea::impl::ExpandMathBase<ExpandMath> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    if (all)
      getOperation()->walk(splitSinCos);
    getOperation()->walk([&](Operation *op) { numExpanded += rewrite(op); });
    SmallVector<std::pair<Operation *, Expansion>> work;
    getOperation()->walk([&](Operation *op) {
      if (op->getNumResults() != 1)
        return;
      Type type = op->getResult(0).getType();
      Type element = getElementTypeOrSelf(type);
      if (!isa<FloatType, VectorType>(type) ||
          !(element.isF16() || element.isBF16() || element.isF32() ||
            element.isF64()) ||
          (all && hasExp2Instruction(op)))
        return;
      Expansion expansion = getFastExpansion(op, element.isF64());
      if (!expansion && all)
        expansion = getOtherExpansion(op);
      if (expansion)
        work.push_back({op, expansion});
    });

    for (auto [op, expansion] : work) {
      op->replaceAllUsesWith(ValueRange{expand(op, expansion)});
      op->erase();
      ++numExpanded;
    }
  }

  static void splitSinCos(math::SincosOp op) {
    OpBuilder builder(op);
    Value x = op.getOperand();
    Value sin = math::SinOp::create(builder, op.getLoc(), x);
    Value cos = math::CosOp::create(builder, op.getLoc(), x);
    op->replaceAllUsesWith(ValueRange{sin, cos});
    op->erase();
  }
};

} // namespace
