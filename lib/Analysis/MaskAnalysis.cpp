//===- MaskAnalysis.cpp - Tiles that a mask keeps -------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The public interface of the analysis, and rule R6: bounds of keys and rows
// from solving comparisons.
//
//===----------------------------------------------------------------------===//

#include "MaskIntervals.h"

#include "fovea/Support/DebugLog.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

#define DEBUG_TYPE "mask-analysis"

using namespace mlir;
using namespace fovea;
using Impl = MaskEvaluator::Impl;
using Fold = OpFoldResult;
using arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// Keys and rows
//===----------------------------------------------------------------------===//

namespace {

/// Positions along a coordinate that may be kept: from `lower` (if set) to
/// below `upper` (if set). `exact` and `complete` are defined as in MaskBounds.
struct Extent {
  std::optional<Fold> lower, upper;
  bool exact = true;
  bool complete = false;
};

/// Solves conditions for the coordinate `along` over a box.
class Solver {
public:
  /// With `presentOnly`, a comparison of the row that does not depend on
  /// captured values may hold anywhere (rule R7).
  explicit Solver(Impl &whole, bool presentOnly = false)
      : whole(whole), presentOnly(presentOnly), along(whole.along),
        math(whole.math), first(whole.box[along].first),
        end(math.add(whole.box[along].last, math.constant(1))) {}

  /// Returns the positions where `condition` (or its opposite) may hold
  /// somewhere in the box.
  Extent solve(Value condition, bool negate);
  /// True if `missesTable` holds for one of the conditions solved.
  bool misses = false;

  Fold lowerOf(const Extent &set) const { return set.lower.value_or(first); }
  Fold upperOf(const Extent &set) const { return set.upper.value_or(end); }
  MaskBounds bounds(const Extent &set) {
    Fold lower = set.lower ? math.max(*set.lower, first) : first;
    Fold upper = set.upper ? math.min(*set.upper, end) : end;
    // An empty set stays empty when the lower bound is rounded down to a tile.
    if (set.lower)
      upper = math.select(math.less(lower, upper), upper, first);
    return {lower, upper, set.exact, set.complete};
  }

private:
  enum class Side { AtMost, AtLeast };

  bool isLeftOut(Value condition);
  bool missesTable(Operation *condition);

  Extent compare(arith::CmpIOp op, bool negate);
  Extent compareSigned(CmpIPredicate predicate, Value lhs, Value rhs);
  /// Returns the positions where `value` may be at most, or at least, some
  /// number of `bound`.
  Extent solve(Value value, Side side, Interval bound);
  /// Returns the positions where `form - bound` may be at most 0.
  Extent solve(const LinearForm &form, const Interval &bound);
  /// Returns the positions where the result of `op`, which is not linear and
  /// has values in `range`, is at most, or at least, `limit`.
  Extent undo(Operation *op, const Interval &range, Side side, Fold limit);

  Extent everything() { return {std::nullopt, std::nullopt, false}; }
  Extent allOrNothing(Truth truth) {
    bool isDecided = truth.any == truth.all;
    if (IndexMath::isTrue(truth.any))
      return {std::nullopt, std::nullopt, true, isDecided};
    return {std::nullopt, math.select(truth.any, end, first), true, isDecided};
  }
  Extent intersect(const Extent &a, const Extent &b);
  Extent unite(const Extent &a, const Extent &b);
  Extent where(Fold sound, Extent set);
  Interval plus(const Interval &a, int64_t b);
  Interval negated(const Interval &a);

  Impl &whole;
  bool presentOnly;
  Coordinate along;
  IndexMath &math;
  Fold first, end;
};
} // namespace

Extent Solver::intersect(const Extent &a, const Extent &b) {
  Extent result{a.lower, a.upper, a.exact && b.exact, a.complete && b.complete};
  if (b.lower)
    result.lower = a.lower ? math.max(*a.lower, *b.lower) : *b.lower;
  if (b.upper)
    result.upper = a.upper ? math.min(*a.upper, *b.upper) : *b.upper;
  return result;
}

Extent Solver::unite(const Extent &a, const Extent &b) {
  bool exact = a.exact && b.exact, complete = a.complete && b.complete;
  if (!a.lower && !b.lower) {
    if (!a.upper || !b.upper)
      return {std::nullopt, std::nullopt, exact, complete};
    return {std::nullopt, math.max(*a.upper, *b.upper), exact, complete};
  }
  if (!a.upper && !b.upper) {
    if (!a.lower || !b.lower)
      return {std::nullopt, std::nullopt, exact, complete};
    return {math.min(*a.lower, *b.lower), std::nullopt, exact, complete};
  }
  // The hull includes tiles between the two sets that neither keeps.
  Fold aEmpty = math.lessEqual(upperOf(a), lowerOf(a));
  Fold bEmpty = math.lessEqual(upperOf(b), lowerOf(b));
  auto pick = [&](Fold x, Fold y, Fold both) {
    return math.select(aEmpty, y, math.select(bEmpty, x, both));
  };
  return {pick(lowerOf(a), lowerOf(b), math.min(lowerOf(a), lowerOf(b))),
          pick(upperOf(a), upperOf(b), math.max(upperOf(a), upperOf(b))),
          false};
}

/// Returns `set` where its source is sound, else everything.
Extent Solver::where(Fold sound, Extent set) {
  if (IndexMath::isTrue(sound))
    return set;
  if (set.lower)
    set.lower = math.select(sound, *set.lower, first);
  if (set.upper)
    set.upper = math.select(sound, *set.upper, end);
  set.complete = false;
  return set;
}

Interval Solver::plus(const Interval &a, int64_t b) {
  return {math.add(a.lo, math.constant(b)), math.add(a.hi, math.constant(b)),
          a.min + b, a.max + b, a.sound};
}

Interval Solver::negated(const Interval &a) {
  Fold zero = math.constant(0);
  return {math.sub(zero, a.hi), math.sub(zero, a.lo), -a.max, -a.min, a.sound};
}

/// Returns true if `value`, of the mask region or of its surroundings, depends
/// on more than coordinates, sizes and constants.
static bool dependsOnCaptures(Region &mask, Value value,
                              llvm::SmallPtrSetImpl<Operation *> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return cast<BlockArgument>(value).getParentRegion() != &mask;
  if (isa<tensor::DimOp>(op) || !seen.insert(op).second)
    return false;
  SetVector<Value> uses(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), uses);
  return llvm::any_of(
      uses, [&](Value use) { return dependsOnCaptures(mask, use, seen); });
}

bool Solver::isLeftOut(Value condition) {
  llvm::SmallPtrSet<Operation *, 8> seen;
  return presentOnly && whole.dependsOn(condition, Coordinate::Row) &&
         !dependsOnCaptures(whole.mask, condition, seen);
}

/// Returns true if the condition bounds the key by a value that is read at the
/// row, and there are no tables to look it up in.
bool Solver::missesTable(Operation *condition) {
  if (!presentOnly || whole.lookup)
    return false;
  SetVector<Operation *> slice;
  (void)getBackwardSlice(condition, &slice);
  unsigned read = 0;
  for (Value value : whole.tabled)
    if (slice.contains(value.getDefiningOp()))
      read |= whole.coordinatesOf(value);
  return (read & bitOf(Coordinate::Row)) && !(read & bitOf(Coordinate::Key));
}

Extent Solver::solve(Value condition, bool negate) {
  if (!whole.dependsOn(condition, along)) {
    if (isLeftOut(condition))
      return everything();
    Truth truth = whole.condition(condition);
    if (negate)
      truth = truthNot(math, truth);
    return allOrNothing(truth);
  }
  Operation *op = condition.getDefiningOp();
  if (!op)
    return everything();
  // A table of the whole condition must not hide the bounds of its parts.
  auto operand = [&](unsigned number, bool negateIt) {
    return solve(op->getOperand(number), negateIt);
  };
  if (isa<arith::AndIOp, arith::OrIOp>(op)) {
    bool isAnd = isa<arith::AndIOp>(op) != negate;
    Extent a = operand(0, negate), b = operand(1, negate);
    return isAnd ? intersect(a, b) : unite(a, b);
  }
  if (isa<arith::XOrIOp>(op) && matchPattern(op->getOperand(1), m_One()))
    return operand(0, !negate);
  if (auto select = dyn_cast<arith::SelectOp>(op);
      select && select.getCondition().getType().isInteger(1))
    return unite(intersect(operand(0, false), operand(1, negate)),
                 intersect(operand(0, true), operand(2, negate)));
  if (auto cmp = dyn_cast<arith::CmpIOp>(op); cmp && !isLeftOut(condition)) {
    misses |= missesTable(op);
    return compare(cmp, negate);
  }
  return everything();
}

Extent Solver::compare(arith::CmpIOp op, bool negate) {
  Value lhs = op.getLhs(), rhs = op.getRhs();
  CmpIPredicate predicate = op.getPredicate();
  if (negate)
    predicate = arith::invertPredicate(predicate);
  if (lhs.getType().isInteger(1))
    return everything();

  switch (predicate) {
  case CmpIPredicate::ugt:
  case CmpIPredicate::uge:
    std::swap(lhs, rhs);
    [[fallthrough]];
  case CmpIPredicate::ult:
  case CmpIPredicate::ule: {
    bool isStrict =
        predicate == CmpIPredicate::ult || predicate == CmpIPredicate::ugt;
    CmpIPredicate isSigned = isStrict ? CmpIPredicate::slt : CmpIPredicate::sle;
    Interval a = whole.integer(lhs), b = whole.integer(rhs);
    Extent less = compareSigned(isSigned, lhs, rhs);
    if (a.min >= 0 && b.min >= 0)
      return less;
    Interval zero = whole.point(0);
    // From 0 on, if the right side is not negative,
    if (b.min >= 0)
      return where(a.sound, intersect(solve(lhs, Side::AtLeast, zero), less));
    // and, if the left side is not negative, also all negative positions.
    if (a.min >= 0)
      return where(b.sound,
                   unite(solve(rhs, Side::AtMost, whole.point(-1)), less));
    return everything();
  }
  default:
    return compareSigned(predicate, lhs, rhs);
  }
}

Extent Solver::compareSigned(CmpIPredicate predicate, Value lhs, Value rhs) {
  switch (predicate) {
  case CmpIPredicate::sgt:
    return compareSigned(CmpIPredicate::slt, rhs, lhs);
  case CmpIPredicate::sge:
    return compareSigned(CmpIPredicate::sle, rhs, lhs);
  case CmpIPredicate::eq:
    return intersect(compareSigned(CmpIPredicate::sle, lhs, rhs),
                     compareSigned(CmpIPredicate::sle, rhs, lhs));
  case CmpIPredicate::ne:
    return everything();
  default:
    break;
  }
  // lhs <= rhs - strict.
  int64_t strict = predicate == CmpIPredicate::slt;
  Interval a = whole.integer(lhs), b = whole.integer(rhs);
  Fold sound = whole.bothSound(a, b);
  auto isSafe = [](const Interval &x) {
    return x.min >= -kSafe && x.max <= kSafe;
  };
  if (isSafe(a) && isSafe(b)) {
    std::optional<LinearForm> form = whole.linearize(lhs, rhs);
    if (!form)
      return everything();
    return where(sound, solve(*form, whole.point(-strict)));
  }
  // The coordinate compared with anything.
  Value place = whole.mask.getArgument(static_cast<unsigned>(along));
  if (lhs == place && !whole.dependsOn(rhs, along)) {
    Fold last = math.min(b.hi, whole.box[along].last);
    Fold upper = strict ? b.hi : math.add(last, math.constant(1));
    return where(sound, {std::nullopt, upper, true, b.lo == b.hi});
  }
  if (rhs == place && !whole.dependsOn(lhs, along)) {
    Fold before = math.max(a.lo, math.sub(first, math.constant(1)));
    Fold lower = strict ? math.add(before, math.constant(1)) : a.lo;
    return where(sound, {lower, std::nullopt, true, a.lo == a.hi});
  }
  // One side may be anything: cut it to the range that still decides.
  auto cut = [&](const Interval &x, const Interval &to) {
    int64_t low = to.min - 2, high = to.max + 2;
    auto clamp = [&](Fold end) {
      return math.max(math.constant(low), math.min(end, math.constant(high)));
    };
    Fold lo = clamp(x.lo), hi = x.lo == x.hi ? lo : clamp(x.hi);
    return Interval{lo, hi, std::clamp(x.min, low, high),
                    std::clamp(x.max, low, high), x.sound};
  };
  if (isSafe(a) && !whole.dependsOn(rhs, along))
    return where(sound, solve(lhs, Side::AtMost, plus(cut(b, a), -strict)));
  if (isSafe(b) && !whole.dependsOn(lhs, along))
    return where(sound, solve(rhs, Side::AtLeast, plus(cut(a, b), strict)));
  return everything();
}

Extent Solver::solve(Value value, Side side, Interval bound) {
  std::optional<LinearForm> form = whole.linearize(value, Value());
  if (!form)
    return everything();
  if (side == Side::AtMost)
    return solve(*form, bound);
  return solve(form->negated(), negated(bound));
}

Extent Solver::solve(const LinearForm &form, const Interval &bound) {
  LinearForm others = form;
  Value placed;
  int64_t factor = 0;
  for (auto [value, valueFactor] : form.terms) {
    if (!whole.dependsOn(value, along))
      continue;
    if (placed)
      return everything();
    placed = value;
    factor = valueFactor;
    others.terms.erase(value);
  }
  std::optional<Interval> rest = whole.evaluate(others);
  if (!rest || bound.min < -kSafe || bound.max > kSafe)
    return everything();
  // factor * placed <= bound - rest, for the most generous point.
  Fold room = math.sub(bound.hi, rest->lo);
  bool isPoint = bound.lo == bound.hi && rest->lo == rest->hi;
  if (!placed) {
    Fold isRoom = math.lessEqual(math.constant(0), room);
    return allOrNothing({isRoom, isPoint ? isRoom : math.boolean(false)});
  }
  int64_t roomMin = bound.min - rest->max, roomMax = bound.max - rest->min;
  Side side = Side::AtMost;
  if (factor < 0) {
    side = Side::AtLeast;
    room = math.sub(math.constant(0), room);
    std::tie(roomMin, roomMax) = std::pair(-roomMax, -roomMin);
    factor = -factor;
  }
  Fold limit = side == Side::AtMost ? math.floorDiv(room, math.constant(factor))
                                    : math.ceilDiv(room, math.constant(factor));

  if (isa<BlockArgument>(placed)) {
    if (side == Side::AtMost)
      return {std::nullopt, math.add(limit, math.constant(1)), true, isPoint};
    return {limit, std::nullopt, true, isPoint};
  }

  // `limit` is cut to the range that still decides, so that multiplying it
  // cannot wrap.
  Interval range = whole.integer(placed);
  Operation *op = placed.getDefiningOp();
  if (!op || range.min < -kSafe || range.max > kSafe)
    return everything();
  if (factor != 1 || roomMin < range.min - 1 || roomMax > range.max + 1) {
    limit = math.min(math.max(limit, math.constant(range.min - 1)),
                     math.constant(range.max + 1));
  }
  Extent set = undo(op, range, side, limit);
  set.complete &= isPoint;
  return set;
}

Extent Solver::undo(Operation *op, const Interval &range, Side side,
                    Fold limit) {
  auto boundAt = [&](Fold value) {
    return Interval{value, value, range.min - 1, range.max + 1,
                    math.boolean(true)};
  };
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op)) {
    Extent a = solve(op->getOperand(0), side, boundAt(limit));
    Extent b = solve(op->getOperand(1), side, boundAt(limit));
    bool isBoth = isa<arith::MaxSIOp>(op) == (side == Side::AtMost);
    return isBoth ? intersect(a, b) : unite(a, b);
  }
  if (isa<math::AbsIOp>(op)) {
    Value operand = op->getOperand(0);
    Interval above = boundAt(limit), below = negated(above);
    if (side == Side::AtMost)
      return intersect(solve(operand, Side::AtMost, above),
                       solve(operand, Side::AtLeast, below));
    return unite(solve(operand, Side::AtLeast, above),
                 solve(operand, Side::AtMost, below));
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Value choice = select.getCondition();
    if (!choice.getType().isInteger(1))
      return everything();
    Extent a = solve(select.getTrueValue(), side, boundAt(limit));
    Extent b = solve(select.getFalseValue(), side, boundAt(limit));
    return unite(intersect(solve(choice, false), a),
                 intersect(solve(choice, true), b));
  }

  // Quotients by a constant.
  APInt divisor;
  if (op->getNumOperands() != 2 ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) ||
      divisor.getSignificantBits() > 62)
    return everything();
  int64_t step = divisor.getSExtValue();
  bool isNatural = whole.integer(op->getOperand(0)).min >= 0;
  bool isFloor = isa<arith::FloorDivSIOp>(op) ||
                 (isNatural && isa<arith::DivSIOp, arith::DivUIOp>(op));
  bool isCeil =
      isa<arith::CeilDivSIOp>(op) || (isNatural && isa<arith::CeilDivUIOp>(op));
  if ((isa<arith::ShRUIOp>(op) && isNatural) || isa<arith::ShRSIOp>(op)) {
    if (step < 0 || step > 31)
      return everything();
    step = int64_t(1) << step;
    isFloor = true;
  }
  __int128 reach =
      __int128(std::max(std::abs(range.min), std::abs(range.max)) + 2) * step;
  if (step < 1 || (!isFloor && !isCeil) || reach > kSafe)
    return everything();
  Fold scaled = math.mul(limit, math.constant(step));
  // floor(x / s) <= l where x <= l s + s - 1; ceil(x / s) >= l where
  // x >= l s - s + 1.
  if (isFloor && side == Side::AtMost)
    scaled = math.add(scaled, math.constant(step - 1));
  if (isCeil && side == Side::AtLeast)
    scaled = math.sub(scaled, math.constant(step - 1));
  Interval scaledBound{scaled, scaled, -int64_t(reach), int64_t(reach),
                       math.boolean(true)};
  return solve(op->getOperand(0), side, scaledBound);
}

//===----------------------------------------------------------------------===//
// The public face
//===----------------------------------------------------------------------===//

/// Returns an evaluator over every box.
static Impl anywhere(Region &mask) {
  IndexMath constants(mask.getContext());
  Span span{constants.constant(0), constants.constant(kMaxPosition)};
  return Impl(mask, {span, span, span, span}, constants, /*whole=*/nullptr);
}

unsigned fovea::coordinatesOf(Region &mask, Value value) {
  return anywhere(mask).coordinatesOf(value);
}

SmallVector<TabledValue> fovea::tabledValues(Region &mask) {
  Impl impl = anywhere(mask);
  return llvm::map_to_vector(impl.tabled, [&](Value value) {
    return TabledValue{value, impl.coordinatesOf(value)};
  });
}

bool fovea::mayHaveSequences(Region &mask) {
  if (mask.empty())
    return false;
  SmallVector<TabledValue> values = tabledValues(mask);
  return !values.empty() && llvm::all_of(values, [](const TabledValue &tabled) {
    return tabled.coordinates == bitOf(Coordinate::Row);
  });
}

Value fovea::computeAt(OpBuilder &builder, Region &mask, Value value,
                       llvm::function_ref<Value(Coordinate)> coordinate,
                       IRMapping &computed) {
  if (!mask.isAncestor(value.getParentRegion()))
    return value;
  if (Value known = computed.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op) {
    unsigned number = cast<BlockArgument>(value).getArgNumber();
    computed.map(value, coordinate(attn::getCoordinate(number)));
    return computed.lookup(value);
  }
  SetVector<Value> uses;
  uses.insert(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), uses);
  for (Value use : uses)
    computeAt(builder, mask, use, coordinate, computed);
  builder.clone(*op, computed);
  return computed.lookup(value);
}

MaskEvaluator::MaskEvaluator(Region &mask, const MaskBox &box)
    : impl(std::make_unique<Impl>(mask, box, IndexMath(mask.getContext()),
                                  /*whole=*/nullptr)) {}

MaskEvaluator::MaskEvaluator(Region &mask, const MaskBox &box,
                             OpBuilder builder, Location loc)
    : impl(std::make_unique<Impl>(mask, box, IndexMath(builder, loc),
                                  /*whole=*/nullptr)) {}

/// Returns `whole` with `part` as its span along a key or a row.
static MaskBox cut(const MaskBox &whole, Coordinate along, Span part) {
  MaskBox box = whole;
  (along == Coordinate::Row ? box.row : box.key) = part;
  return box;
}

MaskEvaluator::MaskEvaluator(MaskEvaluator &whole, Span part, OpBuilder builder)
    : impl(std::make_unique<Impl>(
          whole.impl->mask, cut(whole.impl->box, whole.impl->along, part),
          IndexMath(builder, whole.impl->math.getLoc()), whole.impl.get())) {}

MaskEvaluator::~MaskEvaluator() = default;

void MaskEvaluator::setLookup(Lookup lookup) {
  impl->lookup = std::move(lookup);
}

Truth MaskEvaluator::evaluate() {
  return impl->condition(impl->yieldedValue());
}

TileKind MaskEvaluator::classify() {
  Truth truth = evaluate();
  if (IndexMath::isFalse(truth.any))
    return TileKind::Empty;
  return IndexMath::isTrue(truth.all) ? TileKind::Full : TileKind::Partial;
}

MaskBounds MaskEvaluator::bounds(Coordinate along) {
  impl->along = along;
  // Computes everything that the tiles will request from the box.
  evaluate();
  Solver solver(*impl);
  MaskBounds bounds =
      solver.bounds(solver.solve(impl->yieldedValue(), /*negate=*/false));
  LDBG() << "mask at " << impl->mask.getLoc() << " along "
         << (along == Coordinate::Key ? "keys" : "rows") << ": from "
         << bounds.lower << " to " << bounds.upper
         << (bounds.exact ? ", all between" : ", with gaps that tests find");
  return bounds;
}

PresentKeys MaskEvaluator::presentKeys() {
  impl->along = Coordinate::Key;
  Solver solver(*impl, /*presentOnly=*/true);
  Extent set = solver.solve(impl->yieldedValue(), /*negate=*/false);
  return {set.lower, set.upper, solver.misses};
}
