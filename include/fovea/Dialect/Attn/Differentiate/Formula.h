//===- Formula.h - Formulas as ops ------------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_DIFFERENTIATE_FORMULA_H
#define FOVEA_DIALECT_ATTN_DIFFERENTIATE_FORMULA_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

namespace fovea::attn::differentiate {

/// Converts `value`, a scalar or a tensor, to floats of another type.
inline mlir::Value convertFloats(mlir::OpBuilder &builder, mlir::Location loc,
                                 mlir::Value value, mlir::FloatType to) {
  auto from = mlir::cast<mlir::FloatType>(mlir::getElementTypeOrSelf(value));
  if (from == to)
    return value;
  auto shaped = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  mlir::Type type = shaped ? mlir::Type(shaped.clone(to)) : mlir::Type(to);
  if (from.getWidth() < to.getWidth())
    return mlir::arith::ExtFOp::create(builder, loc, type, value);
  if (from.getWidth() > to.getWidth())
    return mlir::arith::TruncFOp::create(builder, loc, type, value);
  // Neither f16 nor bf16 contains the other: convert through f32.
  return convertFloats(builder, loc,
                       convertFloats(builder, loc, value, builder.getF32Type()),
                       to);
}

/// Writes formulas as ops on scalars of one type.
struct Formula {
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::FloatType type;

  template <typename Op, typename... Args>
  mlir::Value make(Args... args) const {
    return Op::create(builder, loc, args...);
  }
  mlir::Value number(double value) const {
    return make<mlir::arith::ConstantOp>(builder.getFloatAttr(type, value));
  }
  mlir::Value convert(mlir::Value value) const {
    return convertFloats(builder, loc, value, type);
  }

  mlir::Value add(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::AddFOp>(a, b);
  }
  mlir::Value sub(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::SubFOp>(a, b);
  }
  mlir::Value mul(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::MulFOp>(a, b);
  }
  mlir::Value mul(mlir::Value a, double b) const { return mul(a, number(b)); }
  mlir::Value div(mlir::Value a, mlir::Value b) const {
    return make<mlir::arith::DivFOp>(a, b);
  }
  mlir::Value neg(mlir::Value a) const { return make<mlir::arith::NegFOp>(a); }
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value a,
                      mlir::Value b) const {
    return make<mlir::arith::CmpFOp>(predicate, a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value a,
                     mlir::Value b) const {
    return make<mlir::arith::SelectOp>(condition, a, b);
  }
  /// Returns 1 + a * b.
  mlir::Value onePlus(mlir::Value a, mlir::Value b) const {
    return add(number(1.0), mul(a, b));
  }
  /// Returns 1 - a^2, without cancellation where a is near 1.
  mlir::Value oneMinusSquare(mlir::Value a) const {
    return mul(sub(number(1.0), a), add(number(1.0), a));
  }
};

} // namespace fovea::attn::differentiate

#endif // FOVEA_DIALECT_ATTN_DIFFERENTIATE_FORMULA_H
