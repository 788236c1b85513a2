//===- Formula.h - Formulas as ops ------------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_FORMULA_H
#define FOVEA_ANALYSIS_FORMULA_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace fovea {

/// Converts `value`, a float or a vector or tensor of floats, to floats of
/// another type.
mlir::Value convertFloats(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value value, mlir::Type to);

/// Writes formulas as ops on values of one type: a float, or a vector of
/// floats.
struct Formula {
  using Value = mlir::Value;

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type type;

  template <typename Op, typename... Args>
  Value make(Args &&...args) const {
    return Op::create(builder, loc, std::forward<Args>(args)...);
  }
  Value number(double value) const;
  Value convert(Value value) const {
    return convertFloats(builder, loc, value, mlir::getElementTypeOrSelf(type));
  }

  Value add(Value a, Value b) const { return make<mlir::arith::AddFOp>(a, b); }
  Value sub(Value a, Value b) const { return make<mlir::arith::SubFOp>(a, b); }
  Value mul(Value a, Value b) const { return make<mlir::arith::MulFOp>(a, b); }
  Value mul(Value a, double b) const { return mul(a, number(b)); }
  Value div(Value a, Value b) const { return make<mlir::arith::DivFOp>(a, b); }
  Value neg(Value a) const { return make<mlir::arith::NegFOp>(a); }
  Value compare(mlir::arith::CmpFPredicate predicate, Value a, Value b) const {
    return make<mlir::arith::CmpFOp>(predicate, a, b);
  }
  Value compare(mlir::arith::CmpFPredicate predicate, Value a, double b) const {
    return compare(predicate, a, number(b));
  }
  Value isEqual(Value a, Value b) const {
    return compare(mlir::arith::CmpFPredicate::OEQ, a, b);
  }
  Value select(Value condition, Value a, Value b) const {
    return make<mlir::arith::SelectOp>(condition, a, b);
  }
  /// Returns 1 + a * b.
  Value onePlus(Value a, Value b) const { return add(number(1.0), mul(a, b)); }
  /// Returns 1 - a^2, without cancellation where a is near 1.
  Value oneMinusSquare(Value a) const {
    return mul(sub(number(1.0), a), add(number(1.0), a));
  }
};

} // namespace fovea

#endif // FOVEA_ANALYSIS_FORMULA_H
