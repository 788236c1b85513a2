//===- MaskInterpreter.h - Integer IR, one value at a time ------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executes scalar integer ops as `arith` defines them, with wrapping: the mask
// analysis is compared with it.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_UNITTESTS_ANALYSIS_MASKINTERPRETER_H
#define FOVEA_UNITTESTS_ANALYSIS_MASKINTERPRETER_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/APInt.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <vector>

namespace fovea {

class MaskInterpreter {
public:
  struct Tensor {
    std::vector<int64_t> shape, data;
  };

  /// Booleans are 0 and 1; other integers are sign-extended.
  void set(mlir::Value value, int64_t number) { numbers[value] = number; }
  void set(mlir::Value value, Tensor tensor) { tensors[value] = tensor; }

  int64_t get(mlir::OpFoldResult value) {
    if (auto attr = mlir::dyn_cast<mlir::Attribute>(value))
      return normal(mlir::cast<mlir::IntegerAttr>(attr).getValue());
    return get(mlir::cast<mlir::Value>(value));
  }
  int64_t get(mlir::Value value) {
    auto it = numbers.find(value);
    if (it == numbers.end())
      llvm::report_fatal_error(llvm::Twine("no value: ") + describe(value));
    return it->second;
  }

  void run(mlir::Operation &op) {
    if (op.getNumResults() == 1)
      numbers[op.getResult(0)] = compute(&op);
  }

private:
  static std::string describe(mlir::Value value) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    value.print(stream);
    return text;
  }
  static unsigned widthOf(mlir::Type type) {
    return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  }
  static int64_t normal(const llvm::APInt &value) {
    return value.getBitWidth() == 1 ? int64_t(value.getZExtValue())
                                    : value.getSExtValue();
  }

  int64_t affineExpr(mlir::AffineExpr expr, mlir::AffineMap map,
                     mlir::ValueRange operands) {
    if (auto constant = mlir::dyn_cast<mlir::AffineConstantExpr>(expr))
      return constant.getValue();
    if (auto dim = mlir::dyn_cast<mlir::AffineDimExpr>(expr))
      return get(operands[dim.getPosition()]);
    if (auto symbol = mlir::dyn_cast<mlir::AffineSymbolExpr>(expr))
      return get(operands[map.getNumDims() + symbol.getPosition()]);
    auto binary = mlir::cast<mlir::AffineBinaryOpExpr>(expr);
    int64_t a = affineExpr(binary.getLHS(), map, operands);
    int64_t b = affineExpr(binary.getRHS(), map, operands);
    switch (binary.getKind()) {
    case mlir::AffineExprKind::Add:
      return a + b;
    case mlir::AffineExprKind::Mul:
      return a * b;
    case mlir::AffineExprKind::FloorDiv:
      return llvm::divideFloorSigned(a, b);
    case mlir::AffineExprKind::CeilDiv:
      return llvm::divideCeilSigned(a, b);
    default:
      return a - b * llvm::divideFloorSigned(a, b);
    }
  }

  int64_t compute(mlir::Operation *op) {
    using namespace mlir;
    Type type = op->getResult(0).getType();
    llvm::APInt constant;
    if (matchPattern(op, m_ConstantInt(&constant)))
      return normal(constant);
    if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
      return affineExpr(apply.getAffineMap().getResult(0), apply.getAffineMap(),
                        apply.getMapOperands());
    if (isa<affine::AffineMinOp, affine::AffineMaxOp>(op)) {
      bool isMin = isa<affine::AffineMinOp>(op);
      AffineMap map = isMin ? cast<affine::AffineMinOp>(op).getMap()
                            : cast<affine::AffineMaxOp>(op).getMap();
      std::optional<int64_t> result;
      for (AffineExpr expr : map.getResults()) {
        int64_t next = affineExpr(expr, map, op->getOperands());
        result = !result ? next
                 : isMin ? std::min(*result, next)
                         : std::max(*result, next);
      }
      return *result;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      const Tensor &tensor = tensors.at(extract.getTensor());
      int64_t place = 0;
      for (auto [size, index] : llvm::zip(tensor.shape, extract.getIndices())) {
        int64_t at = get(index);
        if (at < 0 || at >= size)
          llvm::report_fatal_error("index out of bounds");
        place = place * size + at;
      }
      return tensor.data[place];
    }
    if (auto select = dyn_cast<arith::SelectOp>(op))
      return get(select.getCondition()) ? get(select.getTrueValue())
                                        : get(select.getFalseValue());

    auto operand = [&](unsigned number) {
      Value value = op->getOperand(number);
      return llvm::APInt(widthOf(value.getType()), uint64_t(get(value)),
                         /*isSigned=*/true, /*implicitTrunc=*/true);
    };
    unsigned width = widthOf(type);
    llvm::APInt a = operand(0);
    if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
      return normal(a.sextOrTrunc(width));
    if (isa<arith::IndexCastUIOp, arith::ExtUIOp>(op))
      return normal(a.zextOrTrunc(width));
    if (isa<math::AbsIOp>(op))
      return normal(a.abs());
    llvm::APInt b = operand(1);
    using Rounding = llvm::APInt::Rounding;
    if (auto cmp = dyn_cast<arith::CmpIOp>(op))
      return arith::applyCmpPredicate(cmp.getPredicate(), a, b);
    return llvm::TypeSwitch<Operation *, int64_t>(op)
        .Case([&](arith::AddIOp) { return normal(a + b); })
        .Case([&](arith::SubIOp) { return normal(a - b); })
        .Case([&](arith::MulIOp) { return normal(a * b); })
        .Case([&](arith::DivSIOp) { return normal(a.sdiv(b)); })
        .Case([&](arith::DivUIOp) { return normal(a.udiv(b)); })
        .Case([&](arith::RemSIOp) { return normal(a.srem(b)); })
        .Case([&](arith::RemUIOp) { return normal(a.urem(b)); })
        .Case([&](arith::FloorDivSIOp) {
          return normal(llvm::APIntOps::RoundingSDiv(a, b, Rounding::DOWN));
        })
        .Case([&](arith::CeilDivSIOp) {
          return normal(llvm::APIntOps::RoundingSDiv(a, b, Rounding::UP));
        })
        .Case([&](arith::CeilDivUIOp) {
          return normal(llvm::APIntOps::RoundingUDiv(a, b, Rounding::UP));
        })
        .Case([&](arith::MinSIOp) { return normal(a.slt(b) ? a : b); })
        .Case([&](arith::MaxSIOp) { return normal(a.slt(b) ? b : a); })
        .Case([&](arith::MinUIOp) { return normal(a.ult(b) ? a : b); })
        .Case([&](arith::MaxUIOp) { return normal(a.ult(b) ? b : a); })
        .Case([&](arith::AndIOp) { return normal(a & b); })
        .Case([&](arith::OrIOp) { return normal(a | b); })
        .Case([&](arith::XOrIOp) { return normal(a ^ b); })
        .Case([&](arith::ShLIOp) { return normal(a.shl(b)); })
        .Case([&](arith::ShRSIOp) { return normal(a.ashr(b)); })
        .Case([&](arith::ShRUIOp) { return normal(a.lshr(b)); })
        .Default([&](Operation *unknown) -> int64_t {
          llvm::report_fatal_error(llvm::Twine("cannot interpret ") +
                                   unknown->getName().getStringRef());
        });
  }

  llvm::DenseMap<mlir::Value, int64_t> numbers;
  llvm::DenseMap<mlir::Value, Tensor> tensors;
};

} // namespace fovea

#endif // FOVEA_UNITTESTS_ANALYSIS_MASKINTERPRETER_H
