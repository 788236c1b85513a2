//===- Formula.cpp - Formulas as ops --------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Formula.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace fovea;

Value fovea::convertFloats(OpBuilder &builder, Location loc, Value value,
                           Type to) {
  Type from = getElementTypeOrSelf(value);
  if (from == to)
    return value;
  Type type = to;
  if (auto shaped = dyn_cast<ShapedType>(value.getType()))
    type = shaped.clone(to);
  unsigned fromWidth = from.getIntOrFloatBitWidth(),
           toWidth = to.getIntOrFloatBitWidth();
  if (fromWidth < toWidth)
    return arith::ExtFOp::create(builder, loc, type, value);
  if (fromWidth > toWidth)
    return arith::TruncFOp::create(builder, loc, type, value);
  // Neither f16 nor bf16 contains the other: convert through f32.
  return convertFloats(builder, loc,
                       convertFloats(builder, loc, value, builder.getF32Type()),
                       to);
}

Value Formula::number(double value) const {
  FloatAttr attr = builder.getFloatAttr(getElementTypeOrSelf(type), value);
  return createScalarOrSplatConstant(builder, loc, type, attr.getValue());
}
