//===- IndexRange.cpp - Range of an index in a region ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexRange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea;

void IndexRanges::setExtent(Value coordinate, Value extent) {
  Value last = builder.createOrFold<arith::SubIOp>(coordinate.getLoc(), extent,
                                                   constant(1));
  given[coordinate] = IndexRange{constant(0), last};
}

Value IndexRanges::constant(int64_t value) {
  return arith::ConstantIndexOp::create(builder, region.getLoc(), value);
}

std::optional<IndexRange> IndexRanges::get(Value value) {
  if (auto found = given.find(value); found != given.end())
    return found->second;
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  std::optional<IndexRange> range = compute(value);
  known[value] = range;
  return range;
}

bool IndexRanges::assume(arith::CmpIPredicate predicate, Value left,
                         Value right) {
  std::optional<IndexRange> a = get(left), b = get(right);
  // Constants, and values from outside, are what they are.
  if (!a || !b || matchPattern(left, m_Constant()) ||
      !region.isAncestor(left.getParentRegion()))
    return false;
  Location loc = left.getLoc();
  auto atMost = [&](Value bound) {
    a->high = builder.createOrFold<arith::MinSIOp>(loc, a->high, bound);
  };
  auto atLeast = [&](Value bound) {
    a->low = builder.createOrFold<arith::MaxSIOp>(loc, a->low, bound);
  };
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    atMost(builder.createOrFold<arith::SubIOp>(loc, b->high, constant(1)));
    break;
  case arith::CmpIPredicate::sle:
    atMost(b->high);
    break;
  case arith::CmpIPredicate::sgt:
    atLeast(builder.createOrFold<arith::AddIOp>(loc, b->low, constant(1)));
    break;
  case arith::CmpIPredicate::sge:
    atLeast(b->low);
    break;
  case arith::CmpIPredicate::eq:
    atMost(b->high);
    atLeast(b->low);
    break;
  default:
    return false;
  }
  given[left] = *a;
  known.clear();
  return true;
}

bool IndexRanges::assume(Value condition, bool holds) {
  Operation *op = condition.getDefiningOp();
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op)) {
    arith::CmpIPredicate predicate = compare.getPredicate();
    if (!holds)
      predicate = arith::invertPredicate(predicate);
    bool narrows = assume(predicate, compare.getLhs(), compare.getRhs());
    switch (predicate) {
    case arith::CmpIPredicate::slt:
      predicate = arith::CmpIPredicate::sgt;
      break;
    case arith::CmpIPredicate::sle:
      predicate = arith::CmpIPredicate::sge;
      break;
    case arith::CmpIPredicate::sgt:
      predicate = arith::CmpIPredicate::slt;
      break;
    case arith::CmpIPredicate::sge:
      predicate = arith::CmpIPredicate::sle;
      break;
    default:
      break;
    }
    return assume(predicate, compare.getRhs(), compare.getLhs()) || narrows;
  }
  bool narrows = false;
  if (holds ? isa_and_nonnull<arith::AndIOp>(op)
            : isa_and_nonnull<arith::OrIOp>(op))
    for (Value part : op->getOperands())
      narrows |= assume(part, holds);
  return narrows;
}

/// Every side of a select is bounded anew for its condition, and in it every
/// side of those that it is computed from. Those beyond this depth are bounded
/// without their conditions.
static constexpr unsigned kMaxDepth = 6;

std::optional<IndexRange> IndexRanges::computeSelect(arith::SelectOp select) {
  // Each side is chosen only where the condition says so.
  auto getSide = [&](Value side, bool holds) {
    IndexRanges ranges(builder, region);
    ranges.given = given;
    ranges.depth = depth + 1;
    if (depth < kMaxDepth && ranges.assume(select.getCondition(), holds))
      return ranges.get(side);
    return get(side);
  };
  std::optional<IndexRange> a = getSide(select.getTrueValue(), true),
                            b = getSide(select.getFalseValue(), false);
  if (!a || !b)
    return std::nullopt;
  // A side that is never chosen has no range.
  Location loc = select.getLoc();
  auto isEmpty = [&](const IndexRange &range) {
    return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::sgt,
                                               range.low, range.high);
  };
  auto choose = [&](Value condition, Value x, Value y) {
    return builder.createOrFold<arith::SelectOp>(loc, condition, x, y);
  };
  Value noA = isEmpty(*a), noB = isEmpty(*b);
  IndexRange first = {choose(noA, b->low, a->low),
                      choose(noA, b->high, a->high)};
  IndexRange second = {choose(noB, a->low, b->low),
                       choose(noB, a->high, b->high)};
  return IndexRange{
      builder.createOrFold<arith::MinSIOp>(loc, first.low, second.low),
      builder.createOrFold<arith::MaxSIOp>(loc, first.high, second.high)};
}

std::optional<IndexRange> IndexRanges::computeSum(Value a, Value b) {
  for (auto [left, right] : {std::pair(a, b), std::pair(b, a)})
    if (auto difference = left.getDefiningOp<arith::SubIOp>();
        difference && difference.getRhs() == right)
      return get(difference.getLhs());
  return std::nullopt;
}

std::optional<IndexRange> IndexRanges::computeAbsolute(Value value) {
  std::optional<IndexRange> range = get(value);
  if (!range)
    return std::nullopt;
  Location loc = value.getLoc();
  auto negate = [&](Value bound) {
    return builder.createOrFold<arith::SubIOp>(loc, constant(0), bound);
  };
  auto largest = [&](Value x, Value y) {
    return builder.createOrFold<arith::MaxSIOp>(loc, x, y);
  };
  return IndexRange{
      largest(constant(0), largest(range->low, negate(range->high))),
      largest(range->high, negate(range->low))};
}

std::optional<IndexRange> IndexRanges::compute(Value value) {
  Location loc = value.getLoc();
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 64) {
    Value bound = constant(number.getSExtValue());
    return IndexRange{bound, bound};
  }
  if (!region.isAncestor(value.getParentRegion())) {
    if (!value.getType().isIntOrIndex())
      return std::nullopt;
    if (!value.getType().isIndex())
      value = builder.createOrFold<arith::IndexCastOp>(
          loc, builder.getIndexType(), value);
    return IndexRange{value, value};
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;

  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!index || region.isAncestor(dim.getSource().getParentRegion()))
      return std::nullopt;
    Value size =
        builder.createOrFold<tensor::DimOp>(loc, dim.getSource(), *index);
    return IndexRange{size, size};
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return get(op->getOperand(0));
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return computeSelect(select);
  if (isa<math::AbsIOp>(op))
    return computeAbsolute(op->getOperand(0));
  if (op->getNumOperands() != 2)
    return std::nullopt;
  auto a = get(op->getOperand(0)), b = get(op->getOperand(1));
  APInt divisor;
  bool positive = matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) &&
                  divisor.isStrictlyPositive();
  // A remainder is below its divisor, whatever the dividend.
  if (isa<arith::RemUIOp>(op) && positive)
    return IndexRange{constant(0), constant(divisor.getSExtValue() - 1)};
  if (!a || !b)
    return std::nullopt;
  auto apply = [&]<typename Op>(Value x, Value y) {
    return builder.createOrFold<Op>(loc, x, y);
  };
  if (isa<arith::AddIOp>(op))
    return IndexRange{apply.operator()<arith::AddIOp>(a->low, b->low),
                      apply.operator()<arith::AddIOp>(a->high, b->high)};
  if (isa<arith::SubIOp>(op))
    return IndexRange{apply.operator()<arith::SubIOp>(a->low, b->high),
                      apply.operator()<arith::SubIOp>(a->high, b->low)};
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op)) {
    bool isMax = isa<arith::MaxSIOp>(op);
    auto pick = [&](Value x, Value y) {
      return isMax ? apply.operator()<arith::MaxSIOp>(x, y)
                   : apply.operator()<arith::MinSIOp>(x, y);
    };
    IndexRange range = {pick(a->low, b->low), pick(a->high, b->high)};
    // Of two numbers the larger is at least half of their sum.
    if (auto sum = computeSum(op->getOperand(0), op->getOperand(1))) {
      Value bound = isMax
                        ? apply.operator()<arith::AddIOp>(sum->low, constant(1))
                        : sum->high;
      bound = apply.operator()<arith::ShRSIOp>(bound, constant(1));
      (isMax ? range.low : range.high) =
          pick(isMax ? range.low : range.high, bound);
    }
    return range;
  }
  // These are monotone in the left operand.
  if (isa<arith::MulIOp>(op) && positive)
    return IndexRange{apply.operator()<arith::MulIOp>(a->low, b->low),
                      apply.operator()<arith::MulIOp>(a->high, b->high)};
  if (isa<arith::DivSIOp>(op) && positive)
    return IndexRange{apply.operator()<arith::DivSIOp>(a->low, b->low),
                      apply.operator()<arith::DivSIOp>(a->high, b->high)};
  if (isa<arith::FloorDivSIOp>(op) && positive)
    return IndexRange{apply.operator()<arith::FloorDivSIOp>(a->low, b->low),
                      apply.operator()<arith::FloorDivSIOp>(a->high, b->high)};
  return std::nullopt;
}
