//===- FuseSoftmax.cpp - Softmax as one op or as its steps ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FuseSoftmax.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <numbers>

using namespace mlir;

namespace fovea::attn::fuse {

/// Returns the divisor of `1 / x` or `x ^ -1`, or null.
static Value getReciprocal(Value factor) {
  factor = stripCasts(factor);
  if (auto division = factor.getDefiningOp<arith::DivFOp>())
    return getConstantFloat(division.getLhs()) == 1.0 ? division.getRhs()
                                                      : nullptr;
  if (auto power = factor.getDefiningOp<math::PowFOp>())
    return getConstantFloat(power.getRhs()) == -1.0 ? power.getLhs() : nullptr;
  return nullptr;
}

std::pair<Value, Value> matchQuotient(Value quotient) {
  if (auto division = quotient.getDefiningOp<arith::DivFOp>())
    return {division.getLhs(), division.getRhs()};
  if (auto product = quotient.getDefiningOp<arith::MulFOp>()) {
    if (Value denominator = getReciprocal(product.getRhs()))
      return {product.getLhs(), denominator};
    if (Value denominator = getReciprocal(product.getLhs()))
      return {product.getRhs(), denominator};
  }
  return {};
}

namespace {
/// Matches one probability.
class Matcher {
public:
  Matcher(ScalarGraph &graph, ArrayRef<Axis> keys, Softmax &result,
          std::string &why)
      : graph(graph), keys(graph.getAxes().flatten(keys)), result(result),
        why(why) {}

  /// Returns the score behind probability `p`, or null.
  Value match(Value p) {
    p = stripCasts(p);
    if (const Leaf *leaf = graph.lookupLeaf(p)) {
      if (auto softmax = leaf->tensor.getDefiningOp<SoftmaxOp>())
        return matchOp(softmax.getInput(), leaf->access,
                       leaf->access.size() - 1);
      if (auto softmax = leaf->tensor.getDefiningOp<linalg::SoftmaxOp>())
        return matchOp(softmax.getInput(), leaf->access,
                       softmax.getDimension());
    }
    if (auto select = p.getDefiningOp<arith::SelectOp>())
      return matchGuarded(select);
    auto [numerator, denominator] = matchQuotient(p);
    if (numerator)
      return match(numerator, denominator);
    if (Value score = matchLogarithm(p))
      return score;
    if (why.empty())
      why = "what is multiplied with the values is not a softmax, cast, "
            "reshaped, or dropped out, but something else";
    return nullptr;
  }

  /// Returns the score behind `exp(z) / sum exp(z)`, or null.
  Value match(Value numerator, Value denominator) {
    Value sum = getSum(denominator);
    if (!sum)
      return reject("the denominator is not a sum along the keys");
    if (stripCasts(numerator) != sum)
      return reject("the denominator is not the sum of the numerators");
    return getScore(sum);
  }

private:
  Value matchOp(Value input, Access access, unsigned dim) {
    for (auto [index, list] : llvm::enumerate(access)) {
      bool isKeys = list == keys;
      bool meets = llvm::any_of(
          list, [&](Axis axis) { return llvm::is_contained(keys, axis); });
      if (index == dim ? !isKeys : meets)
        return reject("the softmax is not over the dimension that the "
                      "contraction with values sums over");
    }
    if (dim + 1 == access.size()) {
      result.input = input;
      result.inputAccess = access;
    }
    return graph.read(input, access);
  }

  /// Matches probabilities that are 0 in rows of which every key is masked, as
  /// attention defines them.
  Value matchGuarded(arith::SelectOp select) {
    for (unsigned side : {0, 1}) {
      Value zero = select->getOperand(1 + side),
            p = select->getOperand(2 - side);
      if (getConstantFloat(stripCasts(zero)) != 0.0)
        continue;
      Value score = match(p);
      if (!score)
        return nullptr;
      if (isRowMasked(select.getCondition(), score, /*isMasked=*/side == 0))
        return score;
    }
    return reject("the probabilities are selected by a condition");
  }

  /// Returns true if `condition` holds only if all (or, without `isMasked`, if
  /// not all) keys of a row have the score minus infinity.
  bool isRowMasked(Value condition, Value score, bool isMasked) {
    if (Value inverse = getInverse(condition))
      return isRowMasked(inverse, score, !isMasked);
    if (auto cmp = condition.getDefiningOp<arith::CmpFOp>()) {
      std::optional<Reduction> max = getReduction(cmp.getLhs());
      return max && isCompareToMasked(cmp, isMasked) &&
             isa<arith::MaximumFOp, arith::MaxNumFOp>(max->combiner) &&
             isMaskedConstant(max->init) &&
             stripCasts(max->element) == stripCasts(score);
    }
    std::optional<Reduction> all = getReduction(condition);
    if (!all || !condition.getType().isInteger(1))
      return false;
    bool combines = isMasked ? isa<arith::AndIOp>(all->combiner)
                             : isa<arith::OrIOp>(all->combiner);
    APInt init;
    if (!combines || !matchPattern(all->init, m_ConstantInt(&init)) ||
        init.isZero() == isMasked)
      return false;
    Value element = all->element;
    for (Value inverse = getInverse(element); inverse;
         inverse = getInverse(element)) {
      element = inverse;
      isMasked = !isMasked;
    }
    auto cmp = element.getDefiningOp<arith::CmpFOp>();
    return cmp && isCompareToMasked(cmp, isMasked) &&
           stripCasts(cmp.getLhs()) == stripCasts(score);
  }

  static bool isMaskedConstant(Value value) {
    return getConstantFloat(stripCasts(value)) ==
           -std::numeric_limits<double>::infinity();
  }

  /// Matches `x == -inf`, or, without `isEqual`, `x != -inf` or `x > -inf`.
  static bool isCompareToMasked(arith::CmpFOp cmp, bool isEqual) {
    if (!isMaskedConstant(cmp.getRhs()))
      return false;
    using Predicate = arith::CmpFPredicate;
    switch (cmp.getPredicate()) {
    case Predicate::OEQ:
    case Predicate::UEQ:
      return isEqual;
    case Predicate::ONE:
    case Predicate::UNE:
    case Predicate::OGT:
    case Predicate::UGT:
      return !isEqual;
    default:
      return false;
    }
  }

  /// Returns the value that `condition` negates, or null.
  static Value getInverse(Value condition) {
    Operation *op = condition.getDefiningOp();
    if (isa_and_nonnull<arith::XOrIOp>(op) &&
        matchPattern(op->getOperand(1), m_One()))
      return op->getOperand(0);
    auto cmp = dyn_cast_or_null<arith::CmpIOp>(op);
    if (!cmp || !cmp.getLhs().getType().isInteger(1))
      return nullptr;
    bool isInverse = (cmp.getPredicate() == arith::CmpIPredicate::eq &&
                      matchPattern(cmp.getRhs(), m_Zero())) ||
                     (cmp.getPredicate() == arith::CmpIPredicate::ne &&
                      matchPattern(cmp.getRhs(), m_One()));
    return isInverse ? cmp.getLhs() : nullptr;
  }

  /// Matches `exp(z - log(sum exp(z)))`, or
  /// `exp(x - (m + log(sum exp(x - m))))`.
  Value matchLogarithm(Value p) {
    auto exp = p.getDefiningOp<math::ExpOp>();
    auto difference =
        exp ? stripCasts(exp.getOperand()).getDefiningOp<arith::SubFOp>()
            : nullptr;
    if (!difference)
      return nullptr;
    Value x = stripCasts(difference.getLhs());
    Value row = stripCasts(difference.getRhs());
    if (auto log = row.getDefiningOp<math::LogOp>()) {
      Value sum = getSum(log.getOperand());
      auto summed = sum ? sum.getDefiningOp<math::ExpOp>() : nullptr;
      if (summed && stripCasts(summed.getOperand()) == x)
        return getScore(sum);
      return nullptr;
    }
    auto add = row.getDefiningOp<arith::AddFOp>();
    if (!add)
      return nullptr;
    for (auto [max, other] : {std::pair(add.getLhs(), add.getRhs()),
                              std::pair(add.getRhs(), add.getLhs())}) {
      auto log = stripCasts(other).getDefiningOp<math::LogOp>();
      Value sum = log ? getSum(log.getOperand()) : nullptr;
      auto summed = sum ? sum.getDefiningOp<math::ExpOp>() : nullptr;
      auto shifted =
          summed
              ? stripCasts(summed.getOperand()).getDefiningOp<arith::SubFOp>()
              : nullptr;
      if (shifted && stripCasts(shifted.getLhs()) == x &&
          stripCasts(shifted.getRhs()) == stripCasts(max))
        return getScore(sum);
    }
    return nullptr;
  }

  /// Returns the reduction along the keys of which `scalar` is an element.
  std::optional<Reduction> getReduction(Value scalar) {
    const Leaf *leaf = graph.lookupLeaf(stripCasts(scalar));
    if (!leaf || !isReduction(leaf->tensor.getDefiningOp()))
      return std::nullopt;
    Leaf copy = *leaf;
    for (const Axes &list : copy.access)
      for (Axis axis : list)
        if (llvm::is_contained(keys, axis)) {
          reject("the softmax is not over the dimension that the contraction "
                 "with values sums over");
          return std::nullopt;
        }
    return matchReduction(graph, copy.tensor, copy.access, keys);
  }

  /// Returns the value that `denominator` sums along the keys, or null.
  Value getSum(Value denominator) {
    std::optional<Reduction> reduction = getReduction(denominator);
    if (!reduction || !isa<arith::AddFOp>(reduction->combiner) ||
        getConstantFloat(reduction->init) != 0.0)
      return nullptr;
    return stripCasts(reduction->element);
  }

  /// Returns the exponent of `exponential` without the subtracted row maximum.
  Value getScore(Value exponential) {
    Operation *op = exponential.getDefiningOp();
    if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(op))
      return reject("the numerators are not exponentials");
    DenseSet<Value> varying = graph.varying(keys);
    DenseSet<Value> reduced = graph.dependents([&](BlockArgument argument) {
      const Leaf *leaf = graph.lookupLeaf(argument);
      return leaf && isReduction(leaf->tensor.getDefiningOp());
    });
    auto isRowTerm = [&](Value value) {
      return !varying.contains(value) && reduced.contains(value);
    };
    Value score = dropRowTerms(op->getOperand(0), isRowTerm);
    if (isa<math::Exp2Op>(op))
      score = graph.create<arith::MulFOp>(
          op->getLoc(), score,
          graph.createFloat(op->getLoc(), score.getType(), std::numbers::ln2));
    return score;
  }

  /// Drops terms that are added to a whole row, which do not change the
  /// softmax.
  Value dropRowTerms(Value x, function_ref<bool(Value)> isRowTerm) {
    Operation *op = x.getDefiningOp();
    if (!op)
      return x;
    if (isa<arith::SubFOp, arith::AddFOp>(op) && isRowTerm(op->getOperand(1)))
      return dropRowTerms(op->getOperand(0), isRowTerm);
    if (isa<arith::AddFOp>(op) && isRowTerm(op->getOperand(0)))
      return dropRowTerms(op->getOperand(1), isRowTerm);
    bool isScaled = isa<arith::MulFOp, arith::DivFOp>(op) &&
                    getConstantFloat(op->getOperand(1));
    if (!isScaled && !isa<arith::ExtFOp, arith::TruncFOp>(op))
      return x;
    Value inner = dropRowTerms(op->getOperand(0), isRowTerm);
    if (inner == op->getOperand(0))
      return x;
    SmallVector<Value> operands(op->getOperands());
    operands[0] = inner;
    return graph.createLike(op, operands, x.getType());
  }

  Value reject(StringRef reason) {
    if (why.empty())
      why = reason.str();
    return nullptr;
  }

  ScalarGraph &graph;
  Axes keys;
  Softmax &result;
  std::string &why;
};
} // namespace

std::optional<Softmax> matchSoftmax(ScalarGraph &graph, Value p,
                                    ArrayRef<Axis> keys, std::string &why) {
  Softmax result;
  p = stripCasts(p);
  if (const Leaf *leaf = graph.lookupLeaf(p)) {
    if (auto dropout = leaf->tensor.getDefiningOp<DropoutOp>()) {
      result.dropout = dropout;
      result.dropoutAccess = leaf->access;
      p = graph.read(dropout.getInput(), result.dropoutAccess);
    }
  }
  result.score = Matcher(graph, keys, result, why).match(p);
  if (!result.score)
    return std::nullopt;
  return result;
}

std::optional<Softmax> matchSoftmax(ScalarGraph &graph, Value p,
                                    Value denominator, ArrayRef<Axis> keys,
                                    std::string &why) {
  Softmax result;
  result.score = Matcher(graph, keys, result, why).match(p, denominator);
  if (!result.score)
    return std::nullopt;
  return result;
}

bool isSoftmaxLike(Operation *op) {
  if (isa<SoftmaxOp, linalg::SoftmaxOp>(op))
    return true;
  if (!isReduction(op))
    return false;
  auto linalg = cast<linalg::LinalgOp>(op);
  auto isExponential = [](Operation *op) {
    return isa<math::ExpOp, math::Exp2Op>(op);
  };
  auto hasExponential = [&](Operation *op) {
    if (!op)
      return false;
    if (isExponential(op))
      return true;
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    if (structured)
      return llvm::any_of(*structured.getBlock(), [&](Operation &nested) {
        return isExponential(&nested);
      });
    auto elementwise = dyn_cast<ElementwiseOp>(op);
    return elementwise &&
           llvm::any_of(elementwise.getBody().front(), [&](Operation &nested) {
             return isExponential(&nested);
           });
  };
  bool adds = llvm::any_of(*linalg.getBlock(), [](Operation &nested) {
    return isa<arith::AddFOp>(nested);
  });
  if (!adds)
    return false;
  if (hasExponential(op))
    return true;
  return llvm::any_of(linalg.getDpsInputs(), [&](Value input) {
    Operation *def = input.getDefiningOp();
    // Looks through a cast or a view.
    for (unsigned steps = 0; def && !hasExponential(def) && steps < 4;
         ++steps) {
      if (def->getNumOperands() == 0)
        return false;
      def = def->getOperand(0).getDefiningOp();
    }
    return hasExponential(def);
  });
}

} // namespace fovea::attn::fuse
