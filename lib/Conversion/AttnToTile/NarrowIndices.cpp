//===- NarrowIndices.cpp - Indices of regions in 32 bits ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NarrowIndices.h"

#include "RegionRanges.h"

#include "fovea/Analysis/CaptureReads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fovea;
using arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// Comparisons with extremes
//===----------------------------------------------------------------------===//

/// Returns true for `<` and `<=`, false for `>` and `>=`, of signed numbers.
static std::optional<bool> isLess(CmpIPredicate predicate) {
  switch (predicate) {
  case CmpIPredicate::slt:
  case CmpIPredicate::sle:
    return true;
  case CmpIPredicate::sgt:
  case CmpIPredicate::sge:
    return false;
  default:
    return std::nullopt;
  }
}

static CmpIPredicate swapSides(CmpIPredicate predicate) {
  switch (predicate) {
  case CmpIPredicate::slt:
    return CmpIPredicate::sgt;
  case CmpIPredicate::sle:
    return CmpIPredicate::sge;
  case CmpIPredicate::sgt:
    return CmpIPredicate::slt;
  default:
    return CmpIPredicate::sle;
  }
}

/// Writes `max(a, b) < c` as `a < c and b < c`, and so on.
static void splitExtremes(RewriterBase &rewriter, Block &block) {
  SmallVector<arith::CmpIOp> comparisons(block.getOps<arith::CmpIOp>());
  while (!comparisons.empty()) {
    arith::CmpIOp op = comparisons.pop_back_val();
    std::optional<bool> less = isLess(op.getPredicate());
    if (!less)
      continue;
    CmpIPredicate predicate = op.getPredicate();
    Value other = op.getRhs();
    auto getExtreme = [](Value value) -> Operation * {
      Operation *extreme = value.getDefiningOp();
      return isa_and_present<arith::MaxSIOp, arith::MinSIOp>(extreme) ? extreme
                                                                      : nullptr;
    };
    Operation *extreme = getExtreme(op.getLhs());
    if (!extreme) {
      extreme = getExtreme(op.getRhs());
      other = op.getLhs();
      predicate = swapSides(predicate);
      less = !*less;
    }
    if (!extreme)
      continue;
    rewriter.setInsertionPoint(op);
    SmallVector<Value> parts;
    for (Value side : extreme->getOperands()) {
      auto part =
          arith::CmpIOp::create(rewriter, op.getLoc(), predicate, side, other);
      comparisons.push_back(part);
      parts.push_back(part);
    }
    if (isa<arith::MaxSIOp>(extreme) == *less)
      rewriter.replaceOpWithNewOp<arith::AndIOp>(op, parts[0], parts[1]);
    else
      rewriter.replaceOpWithNewOp<arith::OrIOp>(op, parts[0], parts[1]);
  }
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

namespace {
class IndexNarrower {
public:
  IndexNarrower(RewriterBase &rewriter, Block &block);

  void run();

private:
  /// A sum of values that depend on the query, and of those that depend on the
  /// key; values that depend on neither are with the former.
  struct Side {
    SmallVector<std::pair<Value, bool>> terms; ///< True: subtracted.
    int64_t constant = 0;
  };

  bool fits(Value value) const { return ranges.fits(value); }
  bool isNonNegative(Value value) const { return ranges.isNonNegative(value); }
  bool isSum(Value value) const;
  bool narrowsOp(Operation *op) const;
  Value narrow(Value value);
  Value createNarrow(Value value);
  Value createNarrowOp(Operation *op);
  void narrowComparison(arith::CmpIOp op);
  void narrowOperands(Operation *op);
  bool collect(Value value, bool isNegated, Side &ofQuery, Side &ofKey) const;
  int64_t getReach(const Side &side) const;
  void compareRemainders(arith::CmpIOp op);
  Value createSum(Operation *user, const Side &side, bool isNegated);

  RewriterBase &rewriter;
  Block &block;
  /// Values that depend on the query or on the key.
  llvm::SmallDenseSet<Value> ofQueries, ofKeys;
  RegionRanges ranges;
  llvm::DenseMap<Value, Value> narrowed;
};
} // namespace

/// Returns true for types that take two registers.
static bool isWide(Type type) { return type.isIndex() || type.isInteger(64); }

/// Returns true for types whose numbers that fit 32 bits are computed in these.
static bool isNarrowable(Type type) {
  return isWide(type) || type.isInteger(32);
}

IndexNarrower::IndexNarrower(RewriterBase &rewriter, Block &block)
    : rewriter(rewriter), block(block), ranges(block) {
  // The coordinates come last: batch, head, query, key.
  ValueRange coordinates = block.getArguments().take_back(4);
  ofQueries = getDependents(block, coordinates[2]);
  ofKeys = getDependents(block, coordinates[3]);
}

/// Returns true for sums of coordinates and of values that all elements share.
bool IndexNarrower::isSum(Value value) const {
  if (!ofQueries.contains(value) && !ofKeys.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return isSum(op->getOperand(0)) && isSum(op->getOperand(1));
  auto product = dyn_cast<arith::MulIOp>(op);
  return product && matchPattern(product.getRhs(), m_Constant()) &&
         isSum(product.getLhs());
}

/// Returns true if `op` takes unsigned numbers.
static bool isUnsigned(Operation *op) {
  return isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp, arith::ShRUIOp,
             arith::MinUIOp, arith::MaxUIOp>(op);
}

/// Returns true if the result of `op` in 32 bits is that in 64.
bool IndexNarrower::narrowsOp(Operation *op) const {
  if (op->getBlock() != &block || op->getNumResults() != 1 ||
      !isWide(op->getResult(0).getType()) || !fits(op->getResult(0)))
    return false;
  auto areNarrow = [&](ValueRange operands) {
    return llvm::all_of(operands, [&](Value operand) {
      return fits(operand) && (!isUnsigned(op) || isNonNegative(operand));
    });
  };
  if (isa<arith::SelectOp>(op))
    return areNarrow(op->getOperands().drop_front());
  if (isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op)) {
    std::optional<ConstantIntRanges> amount = ranges.get(op->getOperand(1));
    return amount && amount->umax().ult(32) && areNarrow(op->getOperands());
  }
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivSIOp,
             arith::DivUIOp, arith::CeilDivSIOp, arith::CeilDivUIOp,
             arith::FloorDivSIOp, arith::RemSIOp, arith::RemUIOp,
             arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp,
             arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) &&
         areNarrow(op->getOperands());
}

/// Returns `value`, which fits, as an i32.
Value IndexNarrower::narrow(Value value) {
  if (Value known = narrowed.lookup(value))
    return known;
  Value result = createNarrow(value);
  narrowed[value] = result;
  return result;
}

Value IndexNarrower::createNarrow(Value value) {
  Location loc = value.getLoc();
  Type type = rewriter.getI32Type();
  if (value.getType() == type)
    return value;
  auto insertBehind = [&] {
    if (value.getParentBlock() == &block)
      rewriter.setInsertionPointAfterValue(value);
    else
      rewriter.setInsertionPointToStart(&block);
  };
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    rewriter.setInsertionPointToStart(&block);
    return arith::ConstantIntOp::create(rewriter, loc, type,
                                        constant.getSExtValue());
  }
  Operation *op = value.getDefiningOp();
  if (op && narrowsOp(op))
    return createNarrowOp(op);
  if (isa_and_present<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
                      arith::ExtUIOp>(op)) {
    Value source = op->getOperand(0);
    unsigned width = ConstantIntRanges::getStorageBitwidth(source.getType());
    bool isSame = isa<arith::IndexCastOp, arith::ExtSIOp>(op) || width == 64;
    if (width == 64 && fits(source))
      return narrow(source);
    if (width == 32 && (isSame || isNonNegative(source)))
      return source;
    if (width < 32) {
      insertBehind();
      if (isSame)
        return arith::ExtSIOp::create(rewriter, loc, type, source);
      return arith::ExtUIOp::create(rewriter, loc, type, source);
    }
  }
  insertBehind();
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(rewriter, loc, type, value);
  return arith::TruncIOp::create(rewriter, loc, type, value);
}

/// Creates the signed or, for numbers without a sign, the unsigned form.
template <typename Signed, typename Unsigned>
static Value createDivision(OpBuilder &builder, Location loc, ValueRange values,
                            bool hasSign) {
  if (hasSign)
    return Signed::create(builder, loc, values[0], values[1]);
  return Unsigned::create(builder, loc, values[0], values[1]);
}

Value IndexNarrower::createNarrowOp(Operation *op) {
  SmallVector<Value> operands;
  bool hasSign = false;
  for (Value operand : op->getOperands()) {
    bool isCondition = operand.getType().isInteger(1);
    hasSign |= !isCondition && !isNonNegative(operand);
    operands.push_back(isCondition ? operand : narrow(operand));
  }
  rewriter.setInsertionPoint(op);
  Location loc = op->getLoc();
  if (isa<arith::DivSIOp>(op))
    return createDivision<arith::DivSIOp, arith::DivUIOp>(rewriter, loc,
                                                          operands, hasSign);
  if (isa<arith::FloorDivSIOp>(op))
    return createDivision<arith::FloorDivSIOp, arith::DivUIOp>(
        rewriter, loc, operands, hasSign);
  if (isa<arith::CeilDivSIOp>(op))
    return createDivision<arith::CeilDivSIOp, arith::CeilDivUIOp>(
        rewriter, loc, operands, hasSign);
  if (isa<arith::RemSIOp>(op))
    return createDivision<arith::RemSIOp, arith::RemUIOp>(rewriter, loc,
                                                          operands, hasSign);
  // Neither operands nor results wrap.
  auto flags = arith::IntegerOverflowFlags::nsw;
  if (isa<arith::AddIOp>(op))
    return arith::AddIOp::create(rewriter, loc, operands[0], operands[1],
                                 flags);
  if (isa<arith::SubIOp>(op))
    return arith::SubIOp::create(rewriter, loc, operands[0], operands[1],
                                 flags);
  if (isa<arith::MulIOp>(op))
    return arith::MulIOp::create(rewriter, loc, operands[0], operands[1],
                                 flags);
  OperationState state(loc, op->getName().getStringRef(), operands,
                       rewriter.getI32Type());
  return rewriter.create(state)->getResult(0);
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

/// Adds the terms of a sum to the two sides. Returns false if one depends on
/// the query and the key.
bool IndexNarrower::collect(Value value, bool isNegated, Side &ofQuery,
                            Side &ofKey) const {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    ofQuery.constant += (isNegated ? -1 : 1) * constant.getSExtValue();
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (isa_and_present<arith::AddIOp, arith::SubIOp>(op) && narrowsOp(op))
    return collect(op->getOperand(0), isNegated, ofQuery, ofKey) &&
           collect(op->getOperand(1), isNegated != isa<arith::SubIOp>(op),
                   ofQuery, ofKey);
  bool isOfKey = ofKeys.contains(value);
  if (isOfKey && ofQueries.contains(value))
    return false;
  (isOfKey ? ofKey : ofQuery).terms.emplace_back(value, isNegated);
  return true;
}

/// Returns a bound on the magnitude of sums of some of the terms.
int64_t IndexNarrower::getReach(const Side &side) const {
  int64_t reach = std::abs(side.constant);
  for (auto [value, isNegated] : side.terms) {
    std::optional<ConstantIntRanges> range = ranges.get(value);
    reach += std::max(std::abs(range->smin().getSExtValue()),
                      std::abs(range->smax().getSExtValue()));
  }
  return reach;
}

/// Creates a sum in front of `user`.
Value IndexNarrower::createSum(Operation *user, const Side &side,
                               bool isNegated) {
  Location loc = user->getLoc();
  Type type = rewriter.getI32Type();
  int64_t constant = isNegated ? -side.constant : side.constant;
  auto flags = arith::IntegerOverflowFlags::nsw;
  Value sum;
  // Terms that are added come first, so that there is one to subtract from.
  for (bool isSubtracted : {false, true}) {
    for (auto [term, isNegative] : side.terms) {
      if ((isNegative != isNegated) != isSubtracted)
        continue;
      Value value = narrow(term);
      rewriter.setInsertionPoint(user);
      if (isSubtracted && !sum)
        sum = arith::ConstantIntOp::create(rewriter, loc, type,
                                           std::exchange(constant, 0));
      if (isSubtracted)
        sum = arith::SubIOp::create(rewriter, loc, sum, value, flags);
      else if (sum)
        sum = arith::AddIOp::create(rewriter, loc, sum, value, flags);
      else
        sum = value;
    }
  }
  rewriter.setInsertionPoint(user);
  if (sum && !constant)
    return sum;
  Value rest = arith::ConstantIntOp::create(rewriter, loc, type, constant);
  return sum ? arith::AddIOp::create(rewriter, loc, sum, rest, flags)
                   .getResult()
             : rest;
}

/// A number and its divisor.
using Division = std::pair<Value, int64_t>;

/// Returns `x` and `n` if `value` is 0 where `n` divides `x`, and nowhere else.
static std::optional<Division> getRemainder(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    // The remainder with the sign of the divisor: r < 0 ? r + n : r.
    Value remainder = select.getFalseValue();
    auto sum = select.getTrueValue().getDefiningOp<arith::AddIOp>();
    auto isNegative = select.getCondition().getDefiningOp<arith::CmpIOp>();
    std::optional<Division> division = getRemainder(remainder);
    APInt added;
    if (!sum || !isNegative || !division || sum.getLhs() != remainder ||
        !matchPattern(sum.getRhs(), m_ConstantInt(&added)) ||
        added.getSExtValue() != division->second ||
        isNegative.getPredicate() != CmpIPredicate::slt ||
        isNegative.getLhs() != remainder ||
        !matchPattern(isNegative.getRhs(), m_Zero()))
      return std::nullopt;
    return division;
  }
  APInt divisor;
  if (!isa_and_present<arith::RemSIOp, arith::RemUIOp, arith::AndIOp>(op) ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)))
    return std::nullopt;
  if (isa<arith::AndIOp>(op))
    ++divisor;
  if (!divisor.isStrictlyPositive() ||
      (!isa<arith::RemSIOp>(op) && !divisor.isPowerOf2()))
    return std::nullopt;
  return Division(op->getOperand(0), divisor.getSExtValue());
}

/// Rewrites the question whether a number divides a difference: both terms have
/// the same remainder then.
void IndexNarrower::compareRemainders(arith::CmpIOp op) {
  CmpIPredicate predicate = op.getPredicate();
  if (predicate != CmpIPredicate::eq && predicate != CmpIPredicate::ne)
    return;
  std::optional<Division> division = getRemainder(op.getLhs());
  if (!division || !matchPattern(op.getRhs(), m_Zero()) ||
      !isNarrowable(op.getRhs().getType()) || !fits(division->first))
    return;
  auto [dividend, divisor] = *division;
  Side ofQuery, ofKey;
  constexpr int64_t kEnd = int64_t(1) << 31;
  if (divisor >= kEnd ||
      !collect(dividend, /*isNegated=*/false, ofQuery, ofKey) ||
      getReach(ofQuery) >= kEnd || getReach(ofKey) >= kEnd)
    return;
  auto isCount = [&](const Side &side, bool isNegated) {
    return (isNegated ? -side.constant : side.constant) >= 0 &&
           llvm::all_of(side.terms, [&](auto term) {
             return term.second == isNegated && isNonNegative(term.first);
           });
  };
  bool isPower = llvm::isPowerOf2_64(divisor);
  if (!isPower && (!isCount(ofQuery, false) || !isCount(ofKey, true)))
    return;
  Location loc = op.getLoc();
  auto createRemainder = [&](const Side &side, bool isNegated) -> Value {
    Value sum = createSum(op, side, isNegated);
    Value number = arith::ConstantIntOp::create(
        rewriter, loc, rewriter.getI32Type(), isPower ? divisor - 1 : divisor);
    if (isPower)
      return arith::AndIOp::create(rewriter, loc, sum, number);
    return arith::RemUIOp::create(rewriter, loc, sum, number);
  };
  Value left = createRemainder(ofQuery, /*isNegated=*/false),
        right = createRemainder(ofKey, /*isNegated=*/true);
  rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, predicate, left, right);
}

void IndexNarrower::narrowComparison(arith::CmpIOp op) {
  Value lhs = op.getLhs(), rhs = op.getRhs();
  if (!isNarrowable(lhs.getType()) || !fits(lhs) || !fits(rhs) ||
      (isSum(lhs) && isSum(rhs)))
    return;
  CmpIPredicate predicate = op.getPredicate();
  bool isTranslated = isLess(predicate) || predicate == CmpIPredicate::eq ||
                      predicate == CmpIPredicate::ne;
  Side ofQuery, ofKey;
  constexpr int64_t kEnd = int64_t(1) << 31;
  Value left, right;
  if (isTranslated && collect(lhs, /*isNegated=*/false, ofQuery, ofKey) &&
      collect(rhs, /*isNegated=*/true, ofQuery, ofKey) &&
      getReach(ofQuery) < kEnd && getReach(ofKey) < kEnd) {
    // The side of the keys, of which there are more, has few subtractions.
    auto isAdded = [](const auto &term) { return !term.second; };
    bool isKeyLeft =
        2 * llvm::count_if(ofKey.terms, isAdded) > int64_t(ofKey.terms.size());
    left = createSum(op, isKeyLeft ? ofKey : ofQuery, /*isNegated=*/false);
    right = createSum(op, isKeyLeft ? ofQuery : ofKey, /*isNegated=*/true);
  } else {
    // Numbers without a sign have the same order as those of 64 bits that they
    // are extended to by their signs.
    left = narrow(lhs);
    right = narrow(rhs);
  }
  rewriter.setInsertionPoint(op);
  rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, predicate, left, right);
}

/// Computes in 32 bits what `op` needs in more.
void IndexNarrower::narrowOperands(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    Operation *source = value.getDefiningOp();
    if (!source || !narrowsOp(source) || isSum(value))
      continue;
    Value narrow = this->narrow(value), wide;
    rewriter.setInsertionPoint(op);
    Location loc = op->getLoc();
    Type type = value.getType();
    bool hasSign = !isNonNegative(value);
    if (type.isIndex() && hasSign)
      wide = arith::IndexCastOp::create(rewriter, loc, type, narrow);
    else if (type.isIndex())
      wide = arith::IndexCastUIOp::create(rewriter, loc, type, narrow);
    else if (hasSign)
      wide = arith::ExtSIOp::create(rewriter, loc, type, narrow);
    else
      wide = arith::ExtUIOp::create(rewriter, loc, type, narrow);
    rewriter.modifyOpInPlace(op, [&] { operand.set(wide); });
  }
}

void IndexNarrower::run() {
  // These have comparisons in them.
  for (auto op : llvm::make_early_inc_range(block.getOps<arith::CmpIOp>()))
    compareRemainders(op);
  SmallVector<Operation *> ops = llvm::map_to_vector(
      block.without_terminator(), [](Operation &op) { return &op; });
  for (Operation *op : ops) {
    if (auto comparison = dyn_cast<arith::CmpIOp>(op))
      narrowComparison(comparison);
    else if (!narrowsOp(op))
      narrowOperands(op);
  }
}

void fovea::narrowIndices(RewriterBase &rewriter, Region &region) {
  if (region.empty())
    return;
  OpBuilder::InsertionGuard guard(rewriter);
  Block &block = region.front();
  splitExtremes(rewriter, block);
  IndexNarrower(rewriter, block).run();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      rewriter.eraseOp(&op);
}
