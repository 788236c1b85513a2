//===- ExpandMath.cpp - expand-math ---------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MathBuilder.h"

#include "fovea/Conversion/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace fovea {
#define GEN_PASS_DEF_EXPANDMATH
#include "fovea/Conversion/Passes.h.inc"
} // namespace fovea

using namespace mlir;
using namespace fovea;

using Expansion = Value (MathBuilder::*)(Value);

/// How `op` is written as arithmetic in `width` bits; null if it is not.
static Expansion getExpansion(Operation *op, unsigned width) {
  return llvm::TypeSwitch<Operation *, Expansion>(op)
      .Case([](math::ExpOp) { return &MathBuilder::exp; })
      .Case([](math::Exp2Op) { return &MathBuilder::exp2; })
      .Case([](math::LogOp) { return &MathBuilder::log; })
      .Case([](math::Log2Op) { return &MathBuilder::log2; })
      .Case([](math::Log10Op) { return &MathBuilder::log10; })
      .Case([](math::Log1pOp) { return &MathBuilder::log1p; })
      .Case([](math::TanhOp) { return &MathBuilder::tanh; })
      .Case([&](math::ErfOp) -> Expansion {
        return width == 32 ? &MathBuilder::erf : nullptr;
      })
      .Default([](Operation *) -> Expansion { return nullptr; });
}

namespace {

struct ExpandMath : public fovea::impl::ExpandMathBase<ExpandMath> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    SmallVector<std::pair<Operation *, Expansion>> work;
    getOperation()->walk([&](Operation *op) {
      if (op->getNumResults() != 1 || op->getNumOperands() != 1)
        return;
      Type type = op->getResult(0).getType();
      Type element = getElementTypeOrSelf(type);
      if (!isa<FloatType, VectorType>(type) ||
          !(element.isF16() || element.isBF16() || element.isF32() ||
            element.isF64()))
        return;
      if (Expansion expansion = getExpansion(op, element.isF64() ? 64 : 32))
        work.push_back({op, expansion});
    });

    for (auto [op, expansion] : work) {
      OpBuilder builder(op);
      Location loc = op->getLoc();
      Value operand = op->getOperand(0);
      Type type = operand.getType();
      bool isNarrow = getElementTypeOrSelf(type).getIntOrFloatBitWidth() == 16;
      Type wide = builder.getF32Type();
      if (auto vector = dyn_cast<VectorType>(type))
        wide = vector.clone(wide);
      if (isNarrow)
        operand = arith::ExtFOp::create(builder, loc, wide, operand);
      MathBuilder math(builder, loc, operand.getType());
      Value result = (math.*expansion)(operand);
      if (isNarrow)
        result = arith::TruncFOp::create(builder, loc, type, result);
      op->replaceAllUsesWith(ValueRange{result});
      op->erase();
      ++numExpanded;
    }
  }
};

} // namespace
