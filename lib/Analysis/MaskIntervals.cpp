//===- MaskIntervals.cpp - Intervals of a mask region's values ------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskIntervals.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using Impl = MaskEvaluator::Impl;
using Fold = OpFoldResult;
using Wide = __int128;
using arith::CmpIPredicate;

static bool isBoolean(Value value) { return value.getType().isInteger(1); }

static bool isInteger(Value value) {
  return isa<IntegerType, IndexType>(value.getType());
}

/// Returns the least and the greatest value of a type, as signed integers.
static std::pair<int64_t, int64_t> rangeOf(Type type) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return {llvm::minIntN(std::min(width, 64u)),
          llvm::maxIntN(std::min(width, 64u))};
}

LinearForm LinearForm::negated() const {
  LinearForm result = *this;
  result.constant = -constant;
  for (auto &term : result.terms)
    term.second = -term.second;
  return result;
}

//===----------------------------------------------------------------------===//
// Three-valued logic
//===----------------------------------------------------------------------===//

Truth fovea::truthNot(IndexMath &math, const Truth &a) {
  return {math.logicalNot(a.all), math.logicalNot(a.any)};
}

Truth fovea::truthAnd(IndexMath &math, const Truth &a, const Truth &b) {
  return {math.logicalAnd(a.any, b.any), math.logicalAnd(a.all, b.all)};
}

Truth fovea::truthOr(IndexMath &math, const Truth &a, const Truth &b) {
  return {math.logicalOr(a.any, b.any), math.logicalOr(a.all, b.all)};
}

Truth fovea::truthSelect(IndexMath &math, const Truth &choice, const Truth &a,
                         const Truth &b) {
  // If the choice may be false, `b` decides.
  Fold mayBeFalse = math.logicalNot(choice.all);
  auto either = [&](Fold x, Fold y) {
    return math.logicalOr(math.logicalAnd(choice.any, x),
                          math.logicalAnd(mayBeFalse, y));
  };
  return {
      either(a.any, b.any),
      math.logicalNot(either(math.logicalNot(a.all), math.logicalNot(b.all)))};
}

//===----------------------------------------------------------------------===//
// The evaluator
//===----------------------------------------------------------------------===//

void Impl::findTabled(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !mask.isAncestor(op->getParentRegion()) || !isInteger(value))
    return;
  constexpr unsigned row = bitOf(Coordinate::Row), key = bitOf(Coordinate::Key);
  unsigned varying = coordinatesOf(value) & (row | key);
  if (varying == row || varying == key) {
    if (readsTensorAt(value, varying))
      tabled.insert(value);
    return; // Its operands have intervals.
  }
  if (varying &&
      isa<arith::ArithDialect, affine::AffineDialect, math::MathDialect>(
          op->getDialect()))
    for (Value operand : op->getOperands())
      findTabled(operand);
}

bool Impl::readsTensorAt(Value value, unsigned varying) {
  Operation *op = value.getDefiningOp();
  if (!op || !(coordinatesOf(value) & varying))
    return false;
  if (isa<tensor::ExtractOp, memref::LoadOp>(op))
    return true;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return readsTensorAt(operand, varying);
  });
}

/// Returns the constants that bound `span`.
static Span staticSpan(const IndexMath &math, const Span &span) {
  std::optional<int64_t> first = IndexMath::constantOf(span.first);
  std::optional<int64_t> last = IndexMath::constantOf(span.last);
  return {math.constant(first.value_or(0)),
          math.constant(last.value_or(kMaxPosition))};
}

Impl::Impl(Region &mask, const MaskBox &box, IndexMath math, Impl *whole)
    : mask(mask), box(box), math(math), whole(whole) {
  if (whole)
    along = whole->along;
  findTabled(yieldedValue());
  if (math.emits()) {
    MaskBox known{staticSpan(math, box.batch), staticSpan(math, box.head),
                  staticSpan(math, box.row), staticSpan(math, box.key)};
    statics = std::make_unique<Impl>(mask, known, IndexMath(mask.getContext()),
                                     /*whole=*/nullptr);
  }
}

Interval Impl::point(int64_t value) const {
  Fold constant = math.constant(value);
  return {constant, constant, value, value, math.boolean(true)};
}

Interval Impl::unknown(Type type) const {
  auto [min, max] = rangeOf(type);
  bool fits = type.isIndex() || type.getIntOrFloatBitWidth() <= 64;
  return {math.constant(min), math.constant(max), min, max, math.boolean(fits)};
}

unsigned Impl::coordinatesOf(Value value) {
  if (!mask.isAncestor(value.getParentRegion()))
    return 0;
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getParentRegion() == &mask)
    return 1u << argument.getArgNumber();
  if (auto it = coordinates.find(value); it != coordinates.end())
    return it->second;
  unsigned result = 0;
  if (Operation *op = value.getDefiningOp()) {
    SetVector<Value> uses;
    uses.insert(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), uses);
    for (Value use : uses)
      result |= coordinatesOf(use);
  }
  coordinates[value] = result;
  return result;
}

bool Impl::isUniform(Value value) {
  unsigned coordinates = coordinatesOf(value);
  for (Coordinate c : {Coordinate::Batch, Coordinate::Head, Coordinate::Row,
                       Coordinate::Key}) {
    const Span &span = box[c];
    std::optional<int64_t> first = IndexMath::constantOf(span.first);
    bool isPoint = span.first == span.last ||
                   (first && first == IndexMath::constantOf(span.last));
    if ((coordinates & bitOf(c)) && !isPoint)
      return false;
  }
  return true;
}

Value Impl::compute(Value value) {
  return computeAt(
      math.getBuilder(), mask, value,
      [&](Coordinate c) { return math.materialize(box[c].first); }, computed);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Interval Impl::integer(Value value) {
  if (whole && !dependsOn(value, along))
    return whole->integer(value);
  if (auto it = integers.find(value); it != integers.end())
    return it->second;
  Interval result = computeInteger(value);
  // The whole box contains this tile.
  if (whole)
    result.sound = whole->integer(value).sound;
  integers[value] = result;
  return result;
}

Interval Impl::computeInteger(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSignificantBits() <= 64 ? point(constant.getSExtValue())
                                               : unknown(value.getType());
  if (value.getParentRegion() == &mask && isa<BlockArgument>(value)) {
    unsigned number = cast<BlockArgument>(value).getArgNumber();
    const Span &span = box[attn::getCoordinate(number)];
    Span known = staticSpan(math, span);
    return {span.first, span.last, *IndexMath::constantOf(known.first),
            *IndexMath::constantOf(known.last), math.boolean(true)};
  }
  if (math.emits() && isUniform(value)) {
    Interval known = statics->integer(value);
    if (known.min == known.max || !IndexMath::isTrue(known.sound))
      return known;
    Fold exact = compute(value);
    if (!value.getType().isIndex())
      exact = math.getBuilder().createOrFold<arith::IndexCastOp>(
          math.getLoc(), math.getBuilder().getIndexType(), cast<Value>(exact));
    return {exact, exact, known.min, known.max, math.boolean(true)};
  }
  if (tabled.contains(value)) {
    std::optional<Span> span = lookup ? lookup(value, math) : std::nullopt;
    if (!span)
      return unknown(value.getType());
    auto [min, max] = rangeOf(value.getType());
    return {span->first, span->last, min, max, math.boolean(true)};
  }
  Operation *op = value.getDefiningOp();
  return op ? computeOp(op) : unknown(value.getType());
}

void Impl::require(Interval &result, const Interval &interval, int64_t low,
                   int64_t high) {
  if (whole)
    return;
  if (interval.min < low)
    result.sound = math.guard(
        result.sound, math.lessEqual(math.constant(low), interval.lo), false);
  if (interval.max > high)
    result.sound = math.guard(
        result.sound, math.lessEqual(interval.hi, math.constant(high)), false);
}

Interval Impl::fit(Interval ideal, Value value) {
  auto [min, max] = rangeOf(value.getType());
  if (ideal.min >= min && ideal.max <= max)
    return ideal;
  if (!math.emits()) {
    opaque.insert(value);
    return unknown(value.getType());
  }
  require(ideal, ideal, min, max);
  ideal.min = std::clamp(ideal.min, min, max);
  ideal.max = std::clamp(ideal.max, min, max);
  return ideal;
}

Interval Impl::apply(Rule rule, const Interval &a, const Interval &b) {
  IndexMath constants(mask.getContext());
  auto known = [&](const Interval &x) {
    return Ends{constants.constant(x.min), constants.constant(x.max)};
  };
  Ends bounds = rule(constants, known(a), known(b));
  int64_t min = *IndexMath::constantOf(bounds.lo);
  int64_t max = *IndexMath::constantOf(bounds.hi);
  Ends ends = rule(math, {a.lo, a.hi}, {b.lo, b.hi});
  return {ends.lo, ends.hi, min, max, bothSound(a, b)};
}

Interval Impl::arithmetic(Arithmetic kind, const Interval &a, const Interval &b,
                          Value value) {
  Wide min, max;
  switch (kind) {
  case Arithmetic::Add:
    min = Wide(a.min) + b.min, max = Wide(a.max) + b.max;
    break;
  case Arithmetic::Sub:
    min = Wide(a.min) - b.max, max = Wide(a.max) - b.min;
    break;
  case Arithmetic::Mul:
    auto products = {Wide(a.min) * b.min, Wide(a.min) * b.max,
                     Wide(a.max) * b.min, Wide(a.max) * b.max};
    min = std::min(products), max = std::max(products);
    break;
  }
  Interval result;
  result.sound = bothSound(a, b);
  // The ends themselves must not wrap.
  if (min < -2 * Wide(kSafe) || max > 2 * Wide(kSafe)) {
    if (!math.emits()) {
      opaque.insert(value);
      return unknown(value.getType());
    }
    int64_t limit = kind == Arithmetic::Mul ? (int64_t(1) << 31) - 1 : kSafe;
    require(result, a, -limit, limit);
    require(result, b, -limit, limit);
    min = std::max(min, -2 * Wide(kSafe));
    max = std::min(max, 2 * Wide(kSafe));
  }
  result.min = int64_t(min);
  result.max = int64_t(max);

  switch (kind) {
  case Arithmetic::Add:
    result.lo = math.add(a.lo, b.lo);
    result.hi = a.lo == a.hi && b.lo == b.hi ? result.lo : math.add(a.hi, b.hi);
    break;
  case Arithmetic::Sub:
    result.lo = math.sub(a.lo, b.hi);
    result.hi = a.lo == a.hi && b.lo == b.hi ? result.lo : math.sub(a.hi, b.lo);
    break;
  case Arithmetic::Mul:
    if (b.min == b.max || a.min == a.max) {
      const Interval &factor = b.min == b.max ? b : a;
      const Interval &other = b.min == b.max ? a : b;
      result.lo = math.mul(other.lo, factor.lo);
      result.hi = math.mul(other.hi, factor.lo);
      if (factor.min < 0)
        std::swap(result.lo, result.hi);
    } else if (a.min >= 0 && b.min >= 0) {
      result.lo = math.mul(a.lo, b.lo);
      result.hi = math.mul(a.hi, b.hi);
    } else {
      Fold products[] = {math.mul(a.lo, b.lo), math.mul(a.lo, b.hi),
                         math.mul(a.hi, b.lo), math.mul(a.hi, b.hi)};
      result.lo = math.min(math.min(products[0], products[1]),
                           math.min(products[2], products[3]));
      result.hi = math.max(math.max(products[0], products[1]),
                           math.max(products[2], products[3]));
    }
    break;
  }
  return fit(result, value);
}

Interval Impl::divide(Rule rule, const Interval &a, Interval divisor,
                      Value value) {
  if (divisor.max < 1 || (divisor.min < 1 && !math.emits()))
    return unknown(value.getType());
  Interval checked = divisor;
  require(checked, divisor, 1, divisor.max);
  if (divisor.min < 1) {
    bool isPoint = divisor.lo == divisor.hi;
    checked.lo = math.max(divisor.lo, math.constant(1));
    checked.hi = isPoint ? checked.lo : math.max(divisor.hi, math.constant(1));
    checked.min = 1;
  }
  return apply(rule, a, checked);
}

Interval Impl::choose(const Truth &choice, const Interval &a,
                      const Interval &b) {
  if (IndexMath::isTrue(choice.all))
    return a;
  if (IndexMath::isFalse(choice.any))
    return b;
  auto pick = [&](Fold x, Fold y, Fold between) {
    return math.select(choice.all, x, math.select(choice.any, between, y));
  };
  return {pick(a.lo, b.lo, math.min(a.lo, b.lo)),
          pick(a.hi, b.hi, math.max(a.hi, b.hi)), std::min(a.min, b.min),
          std::max(a.max, b.max), bothSound(a, b)};
}

/// Returns the rule that computes the ends by `quotient`, which grows with the
/// dividend.
template <typename Quotient>
static auto quotientRule(Quotient quotient) {
  return [=](IndexMath &math, Impl::Ends a, Impl::Ends b) -> Impl::Ends {
    if (b.lo == b.hi)
      return {quotient(math, a.lo, b.lo), quotient(math, a.hi, b.lo)};
    return {math.min(quotient(math, a.lo, b.lo), quotient(math, a.lo, b.hi)),
            math.max(quotient(math, a.hi, b.lo), quotient(math, a.hi, b.hi))};
  };
}

static Fold floorDiv(IndexMath &math, Fold a, Fold b) {
  return math.floorDiv(a, b);
}
static Fold ceilDiv(IndexMath &math, Fold a, Fold b) {
  return math.ceilDiv(a, b);
}
static Fold truncDiv(IndexMath &math, Fold a, Fold b) {
  return math.truncDiv(a, b);
}

/// Returns the rule for the remainder by a divisor of at least 1: the dividend
/// less a multiple where the whole interval has one quotient, else all possible
/// remainders.
template <typename Quotient>
static auto remainderRule(Quotient quotient, bool isFloor) {
  return [=](IndexMath &math, Impl::Ends a, Impl::Ends b) -> Impl::Ends {
    Fold zero = math.constant(0);
    Fold largest = math.sub(b.hi, math.constant(1));
    Fold lo = zero, hi = largest;
    if (!isFloor) {
      lo = math.select(math.lessEqual(zero, a.lo), zero,
                       math.sub(zero, largest));
      hi = math.select(math.lessEqual(a.hi, zero), zero, largest);
    }
    if (b.lo != b.hi)
      return {lo, hi};
    Fold first = quotient(math, a.lo, b.lo), last = quotient(math, a.hi, b.lo);
    Fold same = math.equal(first, last);
    Fold multiple = math.mul(first, b.lo);
    return {math.select(same, math.sub(a.lo, multiple), lo),
            math.select(same, math.sub(a.hi, multiple), hi)};
  };
}

Interval Impl::extension(Value operand, Type type, bool isSigned) {
  if (isBoolean(operand)) {
    Truth truth = condition(operand);
    Fold zero = math.constant(0), one = math.constant(isSigned ? -1 : 1);
    Fold whereAny = math.select(truth.any, one, zero);
    Fold whereAll = math.select(truth.all, one, zero);
    if (isSigned)
      return {whereAny, whereAll, -1, 0, math.boolean(true)};
    return {whereAll, whereAny, 0, 1, math.boolean(true)};
  }
  Interval value = integer(operand);
  if (isSigned || value.min >= 0)
    return value;
  // A negative number becomes a large one when read as unsigned.
  unsigned width = operand.getType().isIndex()
                       ? 64
                       : operand.getType().getIntOrFloatBitWidth();
  if (width >= 63)
    return unknown(type);
  int64_t largest = (int64_t(1) << width) - 1;
  Fold positive = math.lessEqual(math.constant(0), value.lo);
  return {math.select(positive, value.lo, math.constant(0)),
          math.select(positive, value.hi, math.constant(largest)), 0, largest,
          value.sound};
}

Interval Impl::bitwise(Operation *op) {
  Value value = op->getResult(0);
  Interval a = integer(op->getOperand(0)), b = integer(op->getOperand(1));
  if (isa<arith::AndIOp>(op)) {
    if (a.min == a.max)
      std::swap(a, b);
    // An `and` with 2^k - 1 is the remainder; with -2^k it is the multiple
    // below.
    if (b.min == b.max && b.min > 0 && b.min < kSafe &&
        llvm::isPowerOf2_64(b.min + 1))
      return apply(remainderRule(floorDiv, /*isFloor=*/true), a,
                   point(b.min + 1));
    if (b.min == b.max && b.min < 0 && b.min > -kSafe &&
        llvm::isPowerOf2_64(-b.min))
      return apply(
          [](IndexMath &math, Ends x, Ends y) -> Ends {
            return {math.mul(math.floorDiv(x.lo, y.lo), y.lo),
                    math.mul(math.floorDiv(x.hi, y.lo), y.lo)};
          },
          a, point(-b.min));
    if (a.min < 0 || b.min < 0)
      return unknown(value.getType());
    return apply(
        [](IndexMath &math, Ends x, Ends y) -> Ends {
          return {math.constant(0), math.min(x.hi, y.hi)};
        },
        a, b);
  }
  if (a.min < 0 || b.min < 0 || a.max > kSafe || b.max > kSafe)
    return unknown(value.getType());
  // An or, and an exclusive or, is at most the sum.
  bool isOr = isa<arith::OrIOp>(op);
  Interval result = apply(
      [=](IndexMath &math, Ends x, Ends y) -> Ends {
        return {isOr ? math.max(x.lo, y.lo) : math.constant(0),
                math.add(x.hi, y.hi)};
      },
      a, b);
  auto [min, max] = rangeOf(value.getType());
  result.hi = math.min(result.hi, math.constant(max));
  result.max = std::min(result.max, max);
  return result;
}

Interval Impl::affineExpr(AffineExpr expr, unsigned numDims,
                          ValueRange operands, Value value) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return point(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return integer(operands[dim.getPosition()]);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return integer(operands[numDims + symbol.getPosition()]);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Interval a = affineExpr(binary.getLHS(), numDims, operands, value);
  Interval b = affineExpr(binary.getRHS(), numDims, operands, value);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return arithmetic(Arithmetic::Add, a, b, value);
  case AffineExprKind::Mul:
    return arithmetic(Arithmetic::Mul, a, b, value);
  case AffineExprKind::FloorDiv:
    return divide(quotientRule(floorDiv), a, b, value);
  case AffineExprKind::CeilDiv:
    return divide(quotientRule(ceilDiv), a, b, value);
  default:
    return divide(remainderRule(floorDiv, /*isFloor=*/true), a, b, value);
  }
}

static Impl::Ends minimum(IndexMath &math, Impl::Ends a, Impl::Ends b) {
  return {math.min(a.lo, b.lo), math.min(a.hi, b.hi)};
}
static Impl::Ends maximum(IndexMath &math, Impl::Ends a, Impl::Ends b) {
  return {math.max(a.lo, b.lo), math.max(a.hi, b.hi)};
}
static Impl::Ends absolute(IndexMath &math, Impl::Ends a, Impl::Ends) {
  Fold zero = math.constant(0);
  Fold negated = math.sub(zero, a.lo);
  return {math.max(zero, math.max(a.lo, math.sub(zero, a.hi))),
          math.max(negated, a.hi)};
}

Interval Impl::affineExtremum(AffineMap map, ValueRange operands, Value value,
                              bool isMin) {
  Interval result;
  for (auto [index, expr] : llvm::enumerate(map.getResults())) {
    Interval next = affineExpr(expr, map.getNumDims(), operands, value);
    result = index == 0 ? next : apply(isMin ? minimum : maximum, result, next);
  }
  return result;
}

Interval Impl::computeOp(Operation *op) {
  Value value = op->getResult(0);
  auto operand = [&](unsigned number) {
    return integer(op->getOperand(number));
  };
  auto nonNegative = [&](unsigned number) { return operand(number).min >= 0; };
  // Unsigned operations equal signed ones on numbers that are not negative.
  bool natural = op->getNumOperands() == 2 &&
                 llvm::all_of(op->getOperands(), isInteger) &&
                 isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp,
                     arith::MinUIOp, arith::MaxUIOp>(op) &&
                 nonNegative(0) && nonNegative(1);

  return llvm::TypeSwitch<Operation *, Interval>(op)
      .Case([&](arith::AddIOp) {
        return arithmetic(Arithmetic::Add, operand(0), operand(1), value);
      })
      .Case([&](arith::SubIOp) {
        return op->getOperand(0) == op->getOperand(1)
                   ? point(0)
                   : arithmetic(Arithmetic::Sub, operand(0), operand(1), value);
      })
      .Case([&](arith::MulIOp) {
        Interval a = operand(0);
        if (op->getOperand(0) != op->getOperand(1))
          return arithmetic(Arithmetic::Mul, a, operand(1), value);
        // A square equals the square of the absolute value.
        if (a.min == std::numeric_limits<int64_t>::min())
          return arithmetic(Arithmetic::Mul, a, a, value);
        Interval magnitude = apply(absolute, a, a);
        return arithmetic(Arithmetic::Mul, magnitude, magnitude, value);
      })
      .Case([&](arith::FloorDivSIOp) {
        return divide(quotientRule(floorDiv), operand(0), operand(1), value);
      })
      .Case([&](arith::CeilDivSIOp) {
        return divide(quotientRule(ceilDiv), operand(0), operand(1), value);
      })
      .Case([&](arith::DivSIOp) {
        return divide(quotientRule(truncDiv), operand(0), operand(1), value);
      })
      .Case([&](arith::RemSIOp) {
        return divide(remainderRule(truncDiv, /*isFloor=*/false), operand(0),
                      operand(1), value);
      })
      .Case([&](arith::DivUIOp) {
        return natural ? divide(quotientRule(floorDiv), operand(0), operand(1),
                                value)
                       : unknown(value.getType());
      })
      .Case([&](arith::CeilDivUIOp) {
        return natural ? divide(quotientRule(ceilDiv), operand(0), operand(1),
                                value)
                       : unknown(value.getType());
      })
      .Case([&](arith::RemUIOp) {
        return natural ? divide(remainderRule(floorDiv, /*isFloor=*/true),
                                operand(0), operand(1), value)
                       : unknown(value.getType());
      })
      .Case([&](arith::MinSIOp) {
        return apply(minimum, operand(0), operand(1));
      })
      .Case([&](arith::MaxSIOp) {
        return apply(maximum, operand(0), operand(1));
      })
      .Case([&](arith::MinUIOp) {
        return natural ? apply(minimum, operand(0), operand(1))
                       : unknown(value.getType());
      })
      .Case([&](arith::MaxUIOp) {
        return natural ? apply(maximum, operand(0), operand(1))
                       : unknown(value.getType());
      })
      .Case<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(
          [&](auto) { return bitwise(op); })
      .Case<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>([&](auto) {
        Interval a = operand(0), shift = operand(1);
        bool isRight = !isa<arith::ShLIOp>(op);
        if (shift.min != shift.max || shift.min < 0 || shift.min > 31 ||
            (isa<arith::ShRUIOp>(op) && a.min < 0))
          return unknown(value.getType());
        Interval factor = point(int64_t(1) << shift.min);
        return isRight ? apply(quotientRule(floorDiv), a, factor)
                       : arithmetic(Arithmetic::Mul, a, factor, value);
      })
      .Case([&](math::AbsIOp) {
        Interval a = operand(0);
        if (a.min == std::numeric_limits<int64_t>::min())
          return unknown(value.getType());
        return fit(apply(absolute, a, a), value);
      })
      .Case([&](arith::SelectOp select) {
        if (!isBoolean(select.getCondition()))
          return unknown(value.getType());
        return choose(condition(select.getCondition()), operand(1), operand(2));
      })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) {
        return fit(extension(op->getOperand(0), value.getType(),
                             /*isSigned=*/false),
                   value);
      })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](auto) {
        return fit(extension(op->getOperand(0), value.getType(),
                             /*isSigned=*/true),
                   value);
      })
      .Case([&](arith::TruncIOp) { return fit(operand(0), value); })
      .Case([&](affine::AffineApplyOp apply) {
        return affineExpr(apply.getAffineMap().getResult(0),
                          apply.getAffineMap().getNumDims(),
                          apply.getMapOperands(), value);
      })
      .Case([&](affine::AffineMinOp min) {
        return affineExtremum(min.getMap(), min.getOperands(), value, true);
      })
      .Case([&](affine::AffineMaxOp max) {
        return affineExtremum(max.getMap(), max.getOperands(), value, false);
      })
      .Case<tensor::DimOp, memref::DimOp>([&](auto) {
        return Interval{math.constant(0), math.constant(kMaxPosition), 0,
                        kMaxPosition, math.boolean(true)};
      })
      .Default([&](Operation *) { return unknown(value.getType()); });
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

Truth Impl::condition(Value value) {
  if (whole && !dependsOn(value, along))
    return whole->condition(value);
  if (auto it = conditions.find(value); it != conditions.end())
    return it->second;
  Truth result = computeCondition(value);
  conditions[value] = result;
  return result;
}

Truth Impl::computeCondition(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    Fold truth = math.boolean(!constant.isZero());
    return {truth, truth};
  }
  if (math.emits() && isUniform(value)) {
    Truth known = statics->condition(value);
    if (IndexMath::isTrue(known.all) || IndexMath::isFalse(known.any))
      return known;
    Fold exact = compute(value);
    return {exact, exact};
  }
  if (tabled.contains(value) && lookup)
    if (std::optional<Span> span = lookup(value, math))
      return {span->last, span->first};

  Truth undecided{math.boolean(true), math.boolean(false)};
  Operation *op = value.getDefiningOp();
  if (!op || tabled.contains(value))
    return undecided;
  auto operand = [&](unsigned number) {
    return condition(op->getOperand(number));
  };
  return llvm::TypeSwitch<Operation *, Truth>(op)
      .Case([&](arith::CmpIOp cmp) { return compare(cmp); })
      .Case(
          [&](arith::AndIOp) { return truthAnd(math, operand(0), operand(1)); })
      .Case([&](arith::OrIOp) { return truthOr(math, operand(0), operand(1)); })
      .Case([&](arith::XOrIOp) {
        return truthSelect(math, operand(0), truthNot(math, operand(1)),
                           operand(1));
      })
      .Case([&](arith::SelectOp select) {
        if (!isBoolean(select.getCondition()))
          return undecided;
        return truthSelect(math, operand(0), operand(1), operand(2));
      })
      .Default(undecided);
}

Truth Impl::compare(arith::CmpIOp op) {
  Value lhs = op.getLhs(), rhs = op.getRhs();
  CmpIPredicate predicate = op.getPredicate();
  Truth undecided{math.boolean(true), math.boolean(false)};
  if (!isInteger(lhs))
    return undecided;
  if (isBoolean(lhs)) {
    if (predicate != CmpIPredicate::eq && predicate != CmpIPredicate::ne)
      return undecided;
    Truth a = condition(lhs), b = condition(rhs);
    Truth differ = truthSelect(math, a, truthNot(math, b), b);
    return predicate == CmpIPredicate::ne ? differ : truthNot(math, differ);
  }

  switch (predicate) {
  case CmpIPredicate::ugt:
  case CmpIPredicate::ule:
    std::swap(lhs, rhs);
    [[fallthrough]];
  case CmpIPredicate::ult:
  case CmpIPredicate::uge: {
    Truth less = compareSigned(CmpIPredicate::slt, lhs, rhs);
    Interval a = integer(lhs), b = integer(rhs);
    if (a.min < 0 || b.min < 0) {
      auto isNatural = [&](const Interval &x) {
        Fold zero = math.constant(0);
        return Truth{math.guard(x.sound, math.lessEqual(zero, x.hi), true),
                     math.guard(x.sound, math.lessEqual(zero, x.lo), false)};
      };
      // As unsigned, a negative number is larger than one that is not negative.
      Truth natural = isNatural(a);
      less = truthSelect(math, isNatural(b), truthAnd(math, natural, less),
                         truthOr(math, natural, less));
    }
    bool negate =
        predicate == CmpIPredicate::uge || predicate == CmpIPredicate::ule;
    return negate ? truthNot(math, less) : less;
  }
  default:
    return compareSigned(predicate, lhs, rhs);
  }
}

Truth Impl::compareSigned(CmpIPredicate predicate, Value lhs, Value rhs) {
  switch (predicate) {
  case CmpIPredicate::sgt:
    return compareSigned(CmpIPredicate::slt, rhs, lhs);
  case CmpIPredicate::sge:
    return compareSigned(CmpIPredicate::sle, rhs, lhs);
  case CmpIPredicate::ne:
    return truthNot(math, compareSigned(CmpIPredicate::eq, lhs, rhs));
  default:
    break;
  }
  Interval a = integer(lhs), b = integer(rhs);
  Fold sound = bothSound(a, b);
  if (std::optional<LinearForm> form = linearize(lhs, rhs);
      form && form->repeats)
    if (std::optional<Interval> difference = evaluate(*form)) {
      a = *difference;
      b = point(0);
    }

  Truth truth;
  if (predicate == CmpIPredicate::slt)
    truth = {math.less(a.lo, b.hi), math.less(a.hi, b.lo)};
  else if (predicate == CmpIPredicate::sle)
    truth = {math.lessEqual(a.lo, b.hi), math.lessEqual(a.hi, b.lo)};
  else
    truth = {
        math.logicalAnd(math.lessEqual(a.lo, b.hi), math.lessEqual(b.lo, a.hi)),
        math.logicalAnd(math.equal(a.lo, b.hi), math.equal(a.hi, b.lo))};
  return {math.guard(sound, truth.any, true),
          math.guard(sound, truth.all, false)};
}

//===----------------------------------------------------------------------===//
// Linear forms
//===----------------------------------------------------------------------===//

bool Impl::addTerms(LinearForm &form, Value value, int64_t factor) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    int64_t product;
    return constant.getSignificantBits() <= 64 &&
           !llvm::MulOverflow(constant.getSExtValue(), factor, product) &&
           !llvm::AddOverflow(form.constant, product, form.constant);
  }
  integer(value); // Decides whether it is opaque.
  Operation *op = value.getDefiningOp();
  bool isLeaf = !op || !mask.isAncestor(value.getParentRegion()) ||
                opaque.contains(value) || tabled.contains(value) ||
                (math.emits() && isUniform(value));
  if (!isLeaf) {
    if (isa<arith::AddIOp>(op))
      return addTerms(form, op->getOperand(0), factor) &&
             addTerms(form, op->getOperand(1), factor);
    if (isa<arith::SubIOp>(op)) {
      int64_t negated;
      return addTerms(form, op->getOperand(0), factor) &&
             !llvm::SubOverflow(int64_t(0), factor, negated) &&
             addTerms(form, op->getOperand(1), negated);
    }
    int64_t product;
    if (isa<arith::MulIOp>(op) &&
        matchPattern(op->getOperand(1), m_ConstantInt(&constant)) &&
        constant.getSignificantBits() <= 64 &&
        !llvm::MulOverflow(constant.getSExtValue(), factor, product))
      return addTerms(form, op->getOperand(0), product);
    bool isSame =
        isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op) ||
        (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op) &&
         integer(op->getOperand(0)).min >= 0);
    if (isSame && !isBoolean(op->getOperand(0)) && !isBoolean(value))
      return addTerms(form, op->getOperand(0), factor);
  }
  auto [it, isNew] = form.terms.insert({value, 0});
  form.repeats |= !isNew;
  return !llvm::AddOverflow(it->second, factor, it->second);
}

std::optional<LinearForm> Impl::linearize(Value lhs, Value rhs) {
  LinearForm form;
  if (!addTerms(form, lhs, 1) || (rhs && !addTerms(form, rhs, -1)))
    return std::nullopt;
  form.terms.remove_if([](const auto &term) { return term.second == 0; });
  auto isSafe = [](int64_t x) { return -kSafe <= x && x <= kSafe; };
  bool safe =
      isSafe(form.constant) && llvm::all_of(form.terms, [&](const auto &term) {
        return isSafe(term.second);
      });
  return safe ? std::optional(form) : std::nullopt;
}

std::optional<Interval> Impl::evaluate(const LinearForm &form) {
  Wide min = form.constant, max = form.constant;
  Interval result = point(form.constant);
  for (auto [value, factor] : form.terms) {
    Interval term = integer(value);
    Wide ends[] = {Wide(term.min) * factor, Wide(term.max) * factor};
    min += std::min(ends[0], ends[1]);
    max += std::max(ends[0], ends[1]);
    if (min < -Wide(kSafe) || max > Wide(kSafe))
      return std::nullopt;
    Fold scale = math.constant(factor);
    bool isPoint = result.lo == result.hi && term.lo == term.hi;
    Fold lo = factor > 0 ? term.lo : term.hi;
    Fold hi = factor > 0 ? term.hi : term.lo;
    result.lo = math.add(result.lo, math.mul(lo, scale));
    result.hi = isPoint ? result.lo : math.add(result.hi, math.mul(hi, scale));
    result.sound = math.logicalAnd(result.sound, term.sound);
  }
  result.min = int64_t(min);
  result.max = int64_t(max);
  return result;
}
