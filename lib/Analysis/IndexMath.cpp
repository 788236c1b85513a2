//===- IndexMath.cpp - Index arithmetic on constants or IR ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/IndexMath.h"

#include "mlir/IR/Matchers.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using Fold = OpFoldResult;

static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

Fold IndexMath::constant(int64_t value) const {
  return IntegerAttr::get(IndexType::get(context), value);
}

Fold IndexMath::boolean(bool value) const {
  return BoolAttr::get(context, value);
}

std::optional<int64_t> IndexMath::constantOf(Fold value) {
  APInt constant;
  if (auto attr = dyn_cast<Attribute>(value))
    constant = cast<IntegerAttr>(attr).getValue();
  else if (!matchPattern(cast<Value>(value), m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getBitWidth() == 1 ? int64_t(constant.getZExtValue())
                                     : constant.getSExtValue();
}

Value IndexMath::materialize(Fold value, bool isBoolean) {
  if (auto existing = dyn_cast<Value>(value))
    return existing;
  int64_t constant = *constantOf(value);
  if (isBoolean)
    return arith::ConstantOp::create(*builder, *loc,
                                     builder->getBoolAttr(constant));
  return arith::ConstantIndexOp::create(*builder, *loc, constant);
}

template <typename OpTy>
Fold IndexMath::emit(Fold a, Fold b, bool isBoolean) {
  assert(builder && "only constants without a builder");
  return builder->createOrFold<OpTy>(*loc, materialize(a, isBoolean),
                                     materialize(b, isBoolean));
}

/// Returns `x` if `value` is `0 - x`, else null.
static Value negationOf(Fold value) {
  auto known = dyn_cast<Value>(value);
  auto difference = known ? known.getDefiningOp<arith::SubIOp>() : nullptr;
  bool isNegation = difference && matchPattern(difference.getLhs(), m_Zero());
  return isNegation ? difference.getRhs() : Value();
}

Fold IndexMath::add(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(wrap(uint64_t(*x) + uint64_t(*y)));
  if (x && !y)
    return add(b, a);
  if (y == 0)
    return a;
  if (Value x = negationOf(b))
    return sub(a, x);
  // (z + c) + y is z + (c + y).
  if (auto value = dyn_cast<Value>(a); y && value)
    if (auto sum = value.getDefiningOp<arith::AddIOp>())
      if (std::optional<int64_t> c = constantOf(sum.getRhs()))
        return add(sum.getLhs(), constant(wrap(uint64_t(*c) + uint64_t(*y))));
  return emit<arith::AddIOp>(a, b);
}

Fold IndexMath::sub(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(wrap(uint64_t(*x) - uint64_t(*y)));
  if (y == 0)
    return a;
  if (a == b)
    return constant(0);
  if (Value x = negationOf(b))
    return add(a, x);
  if (auto value = dyn_cast<Value>(b); x && value) {
    // 0 - (y - z) is z - y; x - (z + c) is (x - c) - z.
    if (auto difference = value.getDefiningOp<arith::SubIOp>();
        x == 0 && difference)
      return sub(Fold(difference.getRhs()), Fold(difference.getLhs()));
    if (auto sum = value.getDefiningOp<arith::AddIOp>())
      if (std::optional<int64_t> c = constantOf(sum.getRhs()))
        return sub(constant(wrap(uint64_t(*x) - uint64_t(*c))), sum.getLhs());
  }
  return y ? add(a, constant(wrap(-uint64_t(*y)))) : emit<arith::SubIOp>(a, b);
}

Fold IndexMath::mul(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(wrap(uint64_t(*x) * uint64_t(*y)));
  if (x == 0 || y == 0)
    return constant(0);
  if (x == 1)
    return b;
  if (y == 1)
    return a;
  if (x == -1 || y == -1)
    return sub(constant(0), x ? b : a);
  return emit<arith::MulIOp>(a, b);
}

Fold IndexMath::floorDiv(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(llvm::divideFloorSigned(*x, *y));
  if (y == 1)
    return a;
  return emit<arith::FloorDivSIOp>(a, b);
}

Fold IndexMath::ceilDiv(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(llvm::divideCeilSigned(*x, *y));
  if (y == 1)
    return a;
  return emit<arith::CeilDivSIOp>(a, b);
}

Fold IndexMath::truncDiv(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(*x / *y);
  return y == 1 ? a : emit<arith::DivSIOp>(a, b);
}

Fold IndexMath::narrowDiv(Fold a, Fold b) {
  if (constantOf(b))
    return truncDiv(a, b);
  auto narrow = [&](Fold number) -> Value {
    return arith::IndexCastOp::create(*builder, *loc, builder->getI32Type(),
                                      materialize(number));
  };
  Value dividend = narrow(a), divisor = narrow(b);
  Value quotient = arith::DivUIOp::create(*builder, *loc, dividend, divisor);
  return arith::IndexCastUIOp::create(*builder, *loc, builder->getIndexType(),
                                      quotient)
      .getResult();
}

Fold IndexMath::min(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(std::min(*x, *y));
  return a == b ? a : emit<arith::MinSIOp>(a, b);
}

Fold IndexMath::max(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(std::max(*x, *y));
  return a == b ? a : emit<arith::MaxSIOp>(a, b);
}

Fold IndexMath::compare(arith::CmpIPredicate predicate, Fold a, Fold b) {
  assert(builder && "only constants without a builder");
  return builder->createOrFold<arith::CmpIOp>(*loc, predicate, materialize(a),
                                              materialize(b));
}

Fold IndexMath::less(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return boolean(*x < *y);
  return a == b ? boolean(false) : compare(arith::CmpIPredicate::slt, a, b);
}

Fold IndexMath::lessEqual(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return boolean(*x <= *y);
  return a == b ? boolean(true) : compare(arith::CmpIPredicate::sle, a, b);
}

Fold IndexMath::equal(Fold a, Fold b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return boolean(*x == *y);
  return a == b ? boolean(true) : compare(arith::CmpIPredicate::eq, a, b);
}

Fold IndexMath::logicalAnd(Fold a, Fold b) {
  if (isFalse(a) || isFalse(b))
    return boolean(false);
  if (isTrue(a))
    return b;
  if (isTrue(b) || a == b)
    return a;
  return emit<arith::AndIOp>(a, b, /*isBoolean=*/true);
}

Fold IndexMath::logicalOr(Fold a, Fold b) {
  if (isTrue(a) || isTrue(b))
    return boolean(true);
  if (isFalse(a))
    return b;
  if (isFalse(b) || a == b)
    return a;
  return emit<arith::OrIOp>(a, b, /*isBoolean=*/true);
}

Fold IndexMath::logicalNot(Fold a) {
  if (std::optional<int64_t> x = constantOf(a))
    return boolean(*x == 0);
  if (auto cmp = cast<Value>(a).getDefiningOp<arith::CmpIOp>())
    return compare(arith::invertPredicate(cmp.getPredicate()), cmp.getLhs(),
                   cmp.getRhs());
  return emit<arith::XOrIOp>(a, boolean(true), /*isBoolean=*/true);
}

Fold IndexMath::select(Fold condition, Fold a, Fold b) {
  if (std::optional<int64_t> constant = constantOf(condition))
    return *constant ? a : b;
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (a == b || (x && x == y))
    return a;
  return builder->createOrFold<arith::SelectOp>(*loc, cast<Value>(condition),
                                                materialize(a), materialize(b));
}

Fold IndexMath::guard(Fold condition, Fold value, bool otherwise) {
  if (std::optional<int64_t> known = constantOf(condition))
    return *known ? value : boolean(otherwise);
  if (constantOf(value) == int64_t(otherwise))
    return value;
  return builder->createOrFold<arith::SelectOp>(
      *loc, cast<Value>(condition), materialize(value, true),
      materialize(boolean(otherwise), true));
}
