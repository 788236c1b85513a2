//===- Indices.cpp - Arithmetic on indices --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Indices.h"

using namespace mlir;
using namespace fovea::tile;

Value Indices::constant(int64_t value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getIntegerAttr(type, value));
}

Value Indices::cast(Value number) {
  if (number.getType() == type)
    return number;
  return builder.createOrFold<arith::IndexCastUIOp>(loc, type, number);
}

std::pair<Value, Value> Indices::divide(Value a, Value b) {
  Indices narrow(builder, loc, builder.getI32Type());
  Value dividend = narrow.cast(a), divisor = narrow.cast(b);
  Value quotient = create<arith::DivUIOp>(dividend, divisor);
  Value multiple = create<arith::MulIOp>(quotient, divisor);
  return {cast(quotient), cast(create<arith::SubIOp>(dividend, multiple))};
}

Value Indices::getCommonDivisor(Value a, int64_t b) {
  Value divisor = constant(1);
  for (int64_t prime = 2; b > 1; ++prime)
    for (int64_t power = prime; b % prime == 0; power *= prime, b /= prime) {
      Value rest = create<arith::RemUIOp>(a, constant(power));
      Value isDivisor = builder.createOrFold<arith::CmpIOp>(
          loc, arith::CmpIPredicate::eq, rest, constant(0));
      Value factor = builder.createOrFold<arith::SelectOp>(
          loc, isDivisor, constant(prime), constant(1));
      divisor = create<arith::MulIOp>(divisor, factor);
    }
  return divisor;
}
