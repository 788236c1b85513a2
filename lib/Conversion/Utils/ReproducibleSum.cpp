//===- ReproducibleSum.cpp - Exact sums of floats, in any order -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Conversion/Utils/ReproducibleSum.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Analysis/IntegerSum.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace fovea;

namespace {
/// Emits arithmetic on scalars as ops.
struct Arithmetic {
  OpBuilder &builder;
  Location loc;

  template <typename Op, typename... Args>
  Value make(Args... args) const {
    return Op::create(builder, loc, args...);
  }
  Value integer(Type type, int64_t value) const {
    return make<arith::ConstantOp>(builder.getIntegerAttr(type, value));
  }
  Value number(double value) const {
    return make<arith::ConstantOp>(builder.getF64FloatAttr(value));
  }
  Value is(arith::CmpIPredicate predicate, Value a, int64_t b) const {
    return make<arith::CmpIOp>(predicate, a, integer(a.getType(), b));
  }
};
} // namespace

/// Returns 2^`exponent`, an i64 within the range of normal numbers.
static Value exp2(const Arithmetic &a, Value exponent) {
  Type wide = exponent.getType();
  Value biased = a.make<arith::AddIOp>(exponent, a.integer(wide, 1023));
  Value bits = a.make<arith::ShLIOp>(biased, a.integer(wide, 52));
  return a.make<arith::BitcastOp>(a.builder.getF64Type(), bits);
}

/// Returns `value` without its last `bits`, as an integer without a sign: if
/// one of these bits is set, so is the result's last bit.
static Value dropBits(const Arithmetic &a, Value value, Value bits) {
  Type wide = value.getType();
  Value one = a.integer(wide, 1);
  Value mask = a.make<arith::SubIOp>(a.make<arith::ShLIOp>(one, bits), one);
  Value dropped = a.make<arith::AndIOp>(value, mask);
  Value isInexact =
      a.make<arith::ExtUIOp>(wide, a.is(arith::CmpIPredicate::ne, dropped, 0));
  return a.make<arith::OrIOp>(a.make<arith::ShRUIOp>(value, bits), isInexact);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

ReproducibleSum::ReproducibleSum(OpBuilder &builder, Location loc,
                                 FloatType type, OpFoldResult terms)
    : type(type) {
  assert((type.isF32() || type.isF64()) && "no other type has sums");
  IndexMath index(builder, loc);
  IntegerSum fields(type);
  logWidth = index.constant(0);
  width = index.constant(1);
  for (int64_t log = 1; log <= fields.getLargestLog(); ++log) {
    OpFoldResult fits =
        index.lessEqual(terms, index.constant(fields.getMostTerms(log)));
    logWidth = index.select(fits, index.constant(log), logWidth);
    width = index.select(fits, index.constant(int64_t(1) << log), width);
  }
  numFinite = index.ceilDiv(index.constant(fields.getNumExponents()), width);
  size = index.add(numFinite, index.constant(IntegerSum::kNumSpecial));
}

Value ReproducibleSum::getInteger(OpBuilder &builder, Location loc,
                                  OpFoldResult index, Type integer) const {
  Arithmetic a = {builder, loc};
  if (auto known = IndexMath::constantOf(index))
    return a.integer(integer, *known);
  return a.make<arith::IndexCastUIOp>(integer, cast<Value>(index));
}

void ReproducibleSum::add(OpBuilder &builder, Location loc, Value term,
                          Value sums, ValueRange place) const {
  Arithmetic a = {builder, loc};
  IntegerSum fields(type);
  Type bitsType = builder.getIntegerType(fields.width);
  Type wide = builder.getI64Type();
  auto constant = [&](int64_t value) { return a.integer(bitsType, value); };
  auto select = [&](Value condition, Value yes, Value no) {
    return a.make<arith::SelectOp>(condition, yes, no);
  };

  Value bits = a.make<arith::BitcastOp>(bitsType, term);
  Value field = a.make<arith::AndIOp>(
      a.make<arith::ShRUIOp>(bits, constant(fields.fractionBits)),
      constant(fields.largestExponent));
  Value fraction = a.make<arith::AndIOp>(
      bits, constant((int64_t(1) << fields.fractionBits) - 1));
  Value isNegative = a.is(arith::CmpIPredicate::slt, bits, 0);
  Value isSpecial =
      a.is(arith::CmpIPredicate::eq, field, fields.largestExponent);
  Value special = getInteger(builder, loc, numFinite, bitsType);
  Value ofNaN = a.make<arith::AddIOp>(special, constant(2));
  Value ofInfinity = a.make<arith::AddIOp>(
      special, a.make<arith::ExtUIOp>(bitsType, isNegative));
  special =
      select(a.is(arith::CmpIPredicate::ne, fraction, 0), ofNaN, ofInfinity);

  Value hidden = a.make<arith::MinUIOp>(field, constant(1));
  Value exponent = a.make<arith::SubIOp>(field, hidden);
  Value mantissa = a.make<arith::OrIOp>(
      fraction, a.make<arith::ShLIOp>(hidden, constant(fields.fractionBits)));
  Value log = getInteger(builder, loc, logWidth, bitsType);
  Value offsets = a.make<arith::SubIOp>(a.make<arith::ShLIOp>(constant(1), log),
                                        constant(1));
  Value one = a.integer(wide, 1), zero = a.integer(wide, 0);
  for (int64_t number = 0; number < fields.pieces; ++number) {
    int64_t first = number * fields.pieceBits;
    Value piece = mantissa, at = exponent;
    if (fields.pieces > 1) {
      piece = a.make<arith::AndIOp>(
          a.make<arith::ShRUIOp>(mantissa, constant(first)),
          constant((int64_t(1) << fields.pieceBits) - 1));
      at = a.make<arith::AddIOp>(exponent, constant(first));
    }
    Value offset = a.make<arith::AndIOp>(at, offsets);
    if (bitsType != wide) {
      piece = a.make<arith::ExtUIOp>(wide, piece);
      offset = a.make<arith::ExtUIOp>(wide, offset);
    }
    Value shifted = a.make<arith::ShLIOp>(piece, offset);
    Value value =
        select(isNegative, a.make<arith::SubIOp>(zero, shifted), shifted);
    value = select(isSpecial, one, value);
    Value integer = select(isSpecial, special, a.make<arith::ShRUIOp>(at, log));
    SmallVector<Value> indices{
        a.make<arith::IndexCastUIOp>(builder.getIndexType(), integer)};
    llvm::append_range(indices, place);
    memref::AtomicRMWOp::create(builder, loc, arith::AtomicRMWKind::addi, value,
                                sums, indices);
  }
}

//===----------------------------------------------------------------------===//
// The sum
//===----------------------------------------------------------------------===//

Value ReproducibleSum::round(OpBuilder &builder, Location loc,
                             ReadFn read) const {
  Arithmetic a = {builder, loc};
  IndexMath index(builder, loc);
  Type wide = builder.getI64Type();
  Value zero = a.integer(wide, 0), unit = a.integer(wide, 1);
  Value digitBits = getInteger(builder, loc, width, wide);
  Value none = index.materialize(index.constant(0));
  Value step = index.materialize(index.constant(1));
  Value end = index.materialize(numFinite);

  // The carry of the last integer gives the sum's sign.
  auto carries = scf::ForOp::create(
      builder, loc, none, end, step, zero,
      [&](OpBuilder &body, Location loc, Value number, ValueRange carried) {
        Arithmetic b = {body, loc};
        Value sum = b.make<arith::AddIOp>(read(body, loc, number), carried[0]);
        Value carry = b.make<arith::ShRSIOp>(sum, digitBits);
        scf::YieldOp::create(body, loc, carry);
      });
  Value isNegative = a.is(arith::CmpIPredicate::slt, carries.getResult(0), 0);

  // The magnitude's digits, from the lowest. The last 64 bits move up with
  // every digit; their last bit stands for everything below. The bits kept are
  // those that the uppermost nonzero digit begins, and the number of that
  // digit. The digits of the last integer's carry follow those of the integers.
  Value top = a.make<arith::SubIOp>(a.integer(wide, 64), digitBits);
  Value mask =
      a.make<arith::SubIOp>(a.make<arith::ShLIOp>(unit, digitBits), unit);
  OpFoldResult numDigits = index.add(
      numFinite, index.ceilDiv(index.constant(63), OpFoldResult(width)));
  auto digits = scf::ForOp::create(
      builder, loc, none, index.materialize(numDigits), step,
      ValueRange{zero, zero, zero, zero},
      [&](OpBuilder &body, Location loc, Value number, ValueRange carried) {
        Arithmetic b = {body, loc};
        IndexMath inner(body, loc);
        Value exists = inner.materialize(inner.less(number, numFinite),
                                         /*isBoolean=*/true);
        Value existing = inner.materialize(
            inner.min(number, inner.sub(numFinite, inner.constant(1))));
        Value value = read(body, loc, existing);
        value = b.make<arith::SelectOp>(exists, value, zero);
        Value negated = b.make<arith::SubIOp>(zero, value);
        value = b.make<arith::SelectOp>(isNegative, negated, value);
        Value sum = b.make<arith::AddIOp>(value, carried[0]);
        Value carry = b.make<arith::ShRSIOp>(sum, digitBits);
        Value digit = b.make<arith::AndIOp>(sum, mask);
        Value last = b.make<arith::OrIOp>(b.make<arith::ShLIOp>(digit, top),
                                          dropBits(b, carried[1], digitBits));
        Value isUpper = b.is(arith::CmpIPredicate::ne, digit, 0);
        Value upper = b.make<arith::SelectOp>(isUpper, last, carried[2]);
        Value place = b.make<arith::SelectOp>(
            isUpper, b.make<arith::IndexCastUIOp>(wide, number), carried[3]);
        scf::YieldOp::create(body, loc, ValueRange{carry, last, upper, place});
      });

  // For f32 terms, an f64 holds the bits that are left without rounding.
  int64_t numDropped = type.isF64() ? 1 : 11;
  Value magnitude =
      dropBits(a, digits.getResult(2), a.integer(wide, numDropped));
  Value after = a.make<arith::AddIOp>(digits.getResult(3), unit);
  int64_t lowest = IntegerSum(type).getLowestExponent() - 64 + numDropped;
  Value exponent = a.make<arith::AddIOp>(
      a.make<arith::MulIOp>(after, digitBits), a.integer(wide, lowest));
  // Scaling takes two steps, each with a factor that is a normal number.
  Value half = a.make<arith::ShRSIOp>(exponent, unit);
  Value result = a.make<arith::SIToFPOp>(Type(builder.getF64Type()), magnitude);
  result = a.make<arith::MulFOp>(result, exp2(a, half));
  result = a.make<arith::MulFOp>(
      result, exp2(a, a.make<arith::SubIOp>(exponent, half)));
  result = a.make<arith::SelectOp>(isNegative, a.make<arith::NegFOp>(result),
                                   result);

  auto occurs = [&](int64_t kind) {
    OpFoldResult number = index.add(numFinite, index.constant(kind));
    return a.is(arith::CmpIPredicate::ne,
                read(builder, loc, index.materialize(number)), 0);
  };
  double infinity = std::numeric_limits<double>::infinity();
  Value isInfinite = occurs(0), isMinusInfinite = occurs(1);
  Value isNaN = a.make<arith::OrIOp>(
      occurs(2), a.make<arith::AndIOp>(isInfinite, isMinusInfinite));
  result = a.make<arith::SelectOp>(isInfinite, a.number(infinity), result);
  result =
      a.make<arith::SelectOp>(isMinusInfinite, a.number(-infinity), result);
  return a.make<arith::SelectOp>(
      isNaN, a.number(std::numeric_limits<double>::quiet_NaN()), result);
}
