//===- FuseMask.cpp - Scale and masks of a score --------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FuseRegions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace fovea::attn::fuse {

/// The exponential of a score this low is 0 beside any score that occurs.
static constexpr double kMasked = -1.0e4;

namespace {
/// Moves selections of masked constants out of a score.
class MaskSplitter {
public:
  MaskSplitter(ScalarGraph &graph, Value product, bool allowFinite)
      : graph(graph), allowFinite(allowFinite) {
    tainted = graph.dependents(
        [&](BlockArgument argument) { return argument == product; });
  }

  Value keep() const { return condition; }
  bool hasFinite() const { return sawFinite; }

  /// Returns `score` without its masks, which are collected. `factor` is the
  /// positive constant by which the score is multiplied before the softmax.
  Value split(Value score, double factor = 1.0) {
    Operation *op = score.getDefiningOp();
    if (!op || !tainted.contains(score))
      return score;
    if (isa<arith::ExtFOp, arith::TruncFOp>(op))
      return rebuild(op, 0, split(op->getOperand(0), factor));
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      if (tainted.contains(select.getCondition()))
        return score;
      if (isMasked(select.getFalseValue(), factor)) {
        require(select.getCondition());
        return split(select.getTrueValue(), factor);
      }
      if (isMasked(select.getTrueValue(), factor)) {
        require(negate(select.getCondition()));
        return split(select.getFalseValue(), factor);
      }
      return score;
    }
    if (isa<arith::AddFOp>(op)) {
      bool isLeft = tainted.contains(op->getOperand(0));
      if (isLeft && tainted.contains(op->getOperand(1)))
        return score;
      Value inner = split(op->getOperand(!isLeft), factor);
      Value term = splitTerm(op->getOperand(isLeft), factor);
      if (!term)
        return inner;
      SmallVector<Value> operands = {inner, term};
      if (!isLeft)
        std::swap(operands[0], operands[1]);
      return recreate(op, operands);
    }
    if (isa<arith::SubFOp>(op) && !tainted.contains(op->getOperand(1)))
      return rebuild(op, 0, split(op->getOperand(0), factor));
    if (isa<arith::MulFOp, arith::DivFOp>(op)) {
      for (unsigned side : {0, 1}) {
        std::optional<double> other =
            getConstantFloat(op->getOperand(1 - side));
        if (!other || !(*other > 0.0) || !std::isfinite(*other) ||
            (side == 1 && isa<arith::DivFOp>(op)))
          continue;
        double inner =
            isa<arith::MulFOp>(op) ? factor * *other : factor / *other;
        return rebuild(op, side, split(op->getOperand(side), inner));
      }
    }
    return score;
  }

private:
  /// Returns an added term that does not depend on the product, without its
  /// masks, or null if nothing is left.
  Value splitTerm(Value term, double factor) {
    Operation *op = term.getDefiningOp();
    if (!op)
      return term;
    if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
      Value inner = splitTerm(op->getOperand(0), factor);
      return inner ? rebuild(op, 0, inner) : nullptr;
    }
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      if (isMasked(select.getFalseValue(), factor)) {
        require(select.getCondition());
        return dropZero(splitTerm(select.getTrueValue(), factor));
      }
      if (isMasked(select.getTrueValue(), factor)) {
        require(negate(select.getCondition()));
        return dropZero(splitTerm(select.getFalseValue(), factor));
      }
      return term;
    }
    if (isa<arith::AddFOp>(op)) {
      Value lhs = splitTerm(op->getOperand(0), factor);
      Value rhs = splitTerm(op->getOperand(1), factor);
      if (!lhs || !rhs)
        return lhs ? lhs : rhs;
      return recreate(op, {lhs, rhs});
    }
    if (isa<arith::MulFOp>(op))
      for (unsigned side : {0, 1})
        if (std::optional<double> constant =
                getConstantFloat(op->getOperand(1 - side)))
          if (Value dropped = getIndicator(op->getOperand(side), *constant);
              dropped && isFiniteMask(-std::abs(*constant) * factor)) {
            require(negate(dropped));
            return nullptr;
          }
    return term;
  }

  /// Returns the condition under which `indicator * constant` is the negative
  /// constant and not 0. `indicator` is a condition as a number, one less it,
  /// or it less one.
  Value getIndicator(Value indicator, double constant) {
    auto asCondition = [](Value number) -> Value {
      auto cast = stripCasts(number).getDefiningOp<arith::UIToFPOp>();
      return cast && cast.getIn().getType().isInteger(1) ? cast.getIn()
                                                         : nullptr;
    };
    if (Value condition = asCondition(indicator))
      return constant < 0 ? condition : nullptr;
    auto difference = stripCasts(indicator).getDefiningOp<arith::SubFOp>();
    if (!difference)
      return nullptr;
    Value condition;
    if (constant < 0 && getConstantFloat(difference.getLhs()) == 1.0)
      condition = asCondition(difference.getRhs());
    else if (constant > 0 && getConstantFloat(difference.getRhs()) == 1.0)
      condition = asCondition(difference.getLhs());
    return condition ? negate(condition) : nullptr;
  }

  static Value dropZero(Value term) {
    if (!term || getConstantFloat(stripCasts(term)) == 0.0)
      return nullptr;
    return term;
  }

  bool isMasked(Value constant, double factor) {
    std::optional<double> value = getConstantFloat(stripCasts(constant));
    if (!value)
      return false;
    return (std::isinf(*value) && *value < 0) || isFiniteMask(*value * factor);
  }

  bool isFiniteMask(double value) {
    if (!(value <= kMasked))
      return false;
    sawFinite = true;
    return allowFinite;
  }

  void require(Value keep) {
    condition =
        condition ? graph.create<arith::AndIOp>(keep.getLoc(), condition, keep)
                  : keep;
  }

  Value negate(Value value) {
    Location loc = value.getLoc();
    Operation *op = value.getDefiningOp();
    if (auto cmp = dyn_cast_or_null<arith::CmpIOp>(op))
      return graph.create<arith::CmpIOp>(
          loc, arith::invertPredicate(cmp.getPredicate()), cmp.getLhs(),
          cmp.getRhs());
    if (isa_and_nonnull<arith::XOrIOp>(op) &&
        matchPattern(op->getOperand(1), m_One()))
      return op->getOperand(0);
    Value one =
        graph.createConstant(loc, BoolAttr::get(value.getContext(), true));
    return graph.create<arith::XOrIOp>(loc, value, one);
  }

  Value recreate(Operation *op, ArrayRef<Value> operands) {
    if (llvm::equal(op->getOperands(), operands))
      return op->getResult(0);
    Value result = graph.createLike(op, operands, op->getResult(0).getType());
    tainted.insert(result);
    return result;
  }

  Value rebuild(Operation *op, unsigned index, Value operand) {
    SmallVector<Value> operands(op->getOperands());
    operands[index] = operand;
    return recreate(op, operands);
  }

  ScalarGraph &graph;
  bool allowFinite;
  bool sawFinite = false;
  DenseSet<Value> tainted;
  Value condition;
};

//===----------------------------------------------------------------------===//
// A key that every row keeps
//===----------------------------------------------------------------------===//

/// Stands for infinity in both directions: it is beyond every position.
constexpr int64_t kFar = int64_t(1) << 40;

/// `slope * row + [low, high]`.
struct Range {
  int64_t slope, low, high;

  Range operator-() const { return {-slope, -high, -low}; }

  Range operator+(const Range &other) const {
    return {slope + other.slope, add(low, other.low, -kFar),
            add(high, other.high, kFar)};
  }

private:
  static int64_t add(int64_t lhs, int64_t rhs, int64_t infinity) {
    if (lhs == infinity || rhs == infinity)
      return infinity;
    return std::clamp(lhs + rhs, -kFar, kFar);
  }
};

constexpr Range kAnything = {0, -kFar, kFar};

/// Evaluates conditions at one key of every row: the first key, or the one at
/// the row's own position.
class Witness {
public:
  Witness(ScalarGraph &graph, const Layout &layout, bool isDiagonal)
      : graph(graph), layout(layout), isDiagonal(isDiagonal) {
    int64_t rows = graph.getAxes().size(layout[2]);
    lastRow = ShapedType::isDynamic(rows)
                  ? kFar
                  : std::clamp<int64_t>(rows - 1, 0, kFar);
  }

  std::optional<bool> evaluate(Value condition) {
    APInt constant;
    if (matchPattern(condition, m_ConstantInt(&constant)))
      return !constant.isZero();
    Operation *op = condition.getDefiningOp();
    if (!op || !condition.getType().isInteger(1))
      return std::nullopt;
    if (auto cmp = dyn_cast<arith::CmpIOp>(op))
      return compare(cmp);
    if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op))
      return std::nullopt;
    std::optional<bool> lhs = evaluate(op->getOperand(0));
    std::optional<bool> rhs = evaluate(op->getOperand(1));
    if (isa<arith::AndIOp>(op) && (lhs == false || rhs == false))
      return false;
    if (isa<arith::OrIOp>(op) && (lhs == true || rhs == true))
      return true;
    if (!lhs || !rhs)
      return std::nullopt;
    if (isa<arith::AndIOp>(op))
      return *lhs && *rhs;
    return isa<arith::OrIOp>(op) ? *lhs || *rhs : *lhs != *rhs;
  }

private:
  Range get(Value value) {
    if (const Axes *index = graph.lookupIndex(value))
      return getIndex(*index);
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant))) {
      if (constant.getSignificantBits() > 32)
        return kAnything;
      int64_t number = constant.getSExtValue();
      return {0, number, number};
    }
    Operation *op = value.getDefiningOp();
    if (!op)
      return kAnything;
    // Positions are far below the limit of an i32.
    bool isWide = value.getType().isIndex() ||
                  value.getType().getIntOrFloatBitWidth() >= 32;
    if (isWide &&
        isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
            arith::TruncIOp>(op) &&
        !op->getOperand(0).getType().isInteger(1))
      return get(op->getOperand(0));
    if (isWide && isa<arith::AddIOp>(op))
      return get(op->getOperand(0)) + get(op->getOperand(1));
    if (isWide && isa<arith::SubIOp>(op))
      return get(op->getOperand(0)) + -get(op->getOperand(1));
    return kAnything;
  }

  Range getIndex(const Axes &index) {
    if (index == layout[2])
      return {1, 0, 0};
    bool isKey = llvm::any_of(
        index, [&](Axis axis) { return llvm::is_contained(layout[3], axis); });
    if (index == layout[3])
      return {isDiagonal, 0, 0};
    if (isKey)
      return kAnything;
    int64_t size = graph.getAxes().size(index);
    return {0, 0, ShapedType::isDynamic(size) ? kFar : std::min(size, kFar)};
  }

  std::optional<bool> compare(arith::CmpIOp cmp) {
    Range lhs = get(cmp.getLhs()), rhs = get(cmp.getRhs());
    // The unsigned order equals the signed one where both sides are positions.
    auto isPosition = [](const Range &range) {
      return range.slope >= 0 && range.low >= 0;
    };
    using Predicate = arith::CmpIPredicate;
    Predicate predicate = cmp.getPredicate();
    bool isUnsigned = predicate >= Predicate::ult;
    if (isUnsigned && !(isPosition(lhs) && isPosition(rhs)))
      return std::nullopt;
    Range difference = lhs + -rhs;
    if (std::abs(difference.slope) > (1 << 20))
      return std::nullopt;
    bool isFar = lastRow == kFar && difference.slope != 0;
    int64_t end = isFar ? 0 : difference.slope * lastRow;
    Range rows = {0, std::min<int64_t>(end, 0), std::max<int64_t>(end, 0)};
    if (isFar && difference.slope < 0)
      rows.low = -kFar;
    if (isFar && difference.slope > 0)
      rows.high = kFar;
    auto [slope, low, high] = Range{0, difference.low, difference.high} + rows;
    auto decide = [](bool always, bool never) -> std::optional<bool> {
      if (always)
        return true;
      return never ? std::optional(false) : std::nullopt;
    };
    switch (predicate) {
    case Predicate::eq:
      return decide(low == 0 && high == 0, low > 0 || high < 0);
    case Predicate::ne:
      return decide(low > 0 || high < 0, low == 0 && high == 0);
    case Predicate::slt:
    case Predicate::ult:
      return decide(high < 0, low >= 0);
    case Predicate::sle:
    case Predicate::ule:
      return decide(high <= 0, low > 0);
    case Predicate::sgt:
    case Predicate::ugt:
      return decide(low > 0, high <= 0);
    case Predicate::sge:
    case Predicate::uge:
      return decide(low >= 0, high < 0);
    }
    return std::nullopt;
  }

  ScalarGraph &graph;
  const Layout &layout;
  bool isDiagonal;
  int64_t lastRow;
};
} // namespace

bool keepsSomeKey(ScalarGraph &graph, Value keep, const Layout &layout) {
  AxisTable &axes = graph.getAxes();
  int64_t rows = axes.size(layout[2]), keys = axes.size(layout[3]);
  if (ShapedType::isDynamic(keys) || keys == 0)
    return false;
  if (Witness(graph, layout, /*isDiagonal=*/false).evaluate(keep) == true)
    return true;
  return !ShapedType::isDynamic(rows) && rows <= keys &&
         Witness(graph, layout, /*isDiagonal=*/true).evaluate(keep) == true;
}

//===----------------------------------------------------------------------===//
// The whole score
//===----------------------------------------------------------------------===//

/// Moves constant factors of only `product` into `score.scale`.
static void takeScale(ScalarGraph &graph, Value product, Score &score) {
  score.base = product;
  DenseSet<Value> used;
  SmallVector<Value> worklist = {score.value};
  DenseMap<Value, SmallVector<Operation *>> users;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!used.insert(value).second || !op ||
        op->getBlock() != &graph.getBlock())
      continue;
    for (OpOperand &operand : op->getOpOperands()) {
      users[operand.get()].push_back(op);
      worklist.push_back(operand.get());
    }
  }
  while (score.base != score.value && users[score.base].size() == 1) {
    Operation *op = users[score.base].front();
    double factor = 1.0;
    if (isa<arith::MulFOp, arith::DivFOp>(op)) {
      bool isLeft = op->getOperand(0) == score.base;
      std::optional<double> other = getConstantFloat(op->getOperand(isLeft));
      if (!other || (isa<arith::DivFOp>(op) && (!isLeft || *other == 0.0)))
        return;
      factor = isa<arith::MulFOp>(op) ? *other : 1.0 / *other;
    } else if (isa<arith::NegFOp>(op)) {
      factor = -1.0;
    } else if (!isa<arith::ExtFOp, arith::TruncFOp>(op)) {
      return;
    }
    if (!std::isfinite(score.scale * factor))
      return;
    score.scale *= factor;
    score.base = op->getResult(0);
  }
}

Score takeApart(ScalarGraph &graph, Value value, Value product,
                const Layout &layout) {
  Score score;
  MaskSplitter all(graph, product, /*allowFinite=*/true);
  score.value = all.split(value);
  score.keep = all.keep();
  if (all.hasFinite() && !keepsSomeKey(graph, score.keep, layout)) {
    // If a finite constant masks a whole row, its values are averaged; in a
    // mask region the row would give zeros.
    MaskSplitter infinite(graph, product, /*allowFinite=*/false);
    score.value = infinite.split(value);
    score.keep = infinite.keep();
    score.hasFiniteMask = true;
  }
  takeScale(graph, product, score);
  return score;
}

} // namespace fovea::attn::fuse
