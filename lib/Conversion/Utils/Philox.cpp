//===- Philox.cpp - Philox-4x32-10 as arith operations --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Conversion/Utils/Philox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

#include <cmath>

using namespace mlir;

namespace fovea {

std::array<Value, 4> emitPhilox(OpBuilder &builder, Location loc,
                                const std::array<Value, 4> &counter,
                                const std::array<Value, 2> &key) {
  constexpr int64_t multipliers[2] = {0xD2511F53, 0xCD9E8D57};
  constexpr int64_t keySteps[2] = {0x9E3779B9, 0xBB67AE85};
  Type type = counter[0].getType();
  Value multiplier0 =
      createScalarOrSplatConstant(builder, loc, type, multipliers[0]);
  Value multiplier1 =
      createScalarOrSplatConstant(builder, loc, type, multipliers[1]);
  Value step0 = createScalarOrSplatConstant(builder, loc, type, keySteps[0]);
  Value step1 = createScalarOrSplatConstant(builder, loc, type, keySteps[1]);

  std::array<Value, 4> words = counter;
  Value key0 = key[0], key1 = key[1];
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key0 = arith::AddIOp::create(builder, loc, key0, step0);
      key1 = arith::AddIOp::create(builder, loc, key1, step1);
    }
    auto product0 =
        arith::MulUIExtendedOp::create(builder, loc, words[0], multiplier0);
    auto product1 =
        arith::MulUIExtendedOp::create(builder, loc, words[2], multiplier1);
    Value left =
        arith::XOrIOp::create(builder, loc, product1.getHigh(), words[1]);
    Value right =
        arith::XOrIOp::create(builder, loc, product0.getHigh(), words[3]);
    words = {arith::XOrIOp::create(builder, loc, left, key0), product1.getLow(),
             arith::XOrIOp::create(builder, loc, right, key1),
             product0.getLow()};
  }
  return words;
}

uint32_t getDropoutThreshold(double probability) {
  return static_cast<uint32_t>(std::floor(std::ldexp(probability, 32)));
}

Value emitDropoutKeep(OpBuilder &builder, Location loc, Value column, Value row,
                      Value seed, Value offset, double probability) {
  Type i32 = builder.getI32Type();
  Type i64 = builder.getI64Type();
  auto low = [&](Value value) -> Value {
    return arith::TruncIOp::create(builder, loc, i32, value);
  };
  auto high = [&](Value value) -> Value {
    Value shift = createScalarOrSplatConstant(builder, loc, i64, 32);
    return low(arith::ShRUIOp::create(builder, loc, value, shift));
  };
  Value column32 = arith::IndexCastOp::create(builder, loc, i32, column);
  Value row64 = arith::IndexCastOp::create(builder, loc, i64, row);

  // The upper half of the counter is the offset plus the carry of a row number
  // beyond 32 bits.
  Value carry = arith::ShRUIOp::create(
      builder, loc, row64, createScalarOrSplatConstant(builder, loc, i64, 32));
  Value upper = arith::AddIOp::create(builder, loc, offset, carry);
  Value group =
      arith::ShRUIOp::create(builder, loc, column32,
                             createScalarOrSplatConstant(builder, loc, i32, 2));
  std::array<Value, 4> words =
      emitPhilox(builder, loc, {group, low(row64), low(upper), high(upper)},
                 {low(seed), high(seed)});

  Value lane =
      arith::AndIOp::create(builder, loc, column32,
                            createScalarOrSplatConstant(builder, loc, i32, 3));
  Value random = words[3];
  for (uint64_t word = 0; word < 3; ++word) {
    Value isWord = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, lane,
        createScalarOrSplatConstant(builder, loc, i32, word));
    random = arith::SelectOp::create(builder, loc, isWord, words[word], random);
  }
  Value threshold = createScalarOrSplatConstant(
      builder, loc, i32, getDropoutThreshold(probability));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, random,
                               threshold);
}

} // namespace fovea
