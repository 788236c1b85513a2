//===- OnlineStep.cpp - Softmax on fragments ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineStep.h"

#include "fovea/Analysis/Formula.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::tile;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Maxima up to this number, in base 2, are subtracted from multiples of scores
/// that were not rounded before: the rounding error of the maximum is at most
/// 2^-14, less than that of 16-bit probabilities.
static constexpr double kLargestFused = 1024.0;

/// What a term adds from the first key of a tile to the last is up to this
/// number, in base 2: its sum at a thread's first key, from which others
/// follow, then adds at most 2^-17 to the error of an exponent.
static constexpr double kLargestTerm = 256.0;

/// The columns of an accumulator after which a thread's columns repeat.
static constexpr int64_t kThreadColumns = 8;

/// A step starts again where a part of its sum, relative to the maximum of
/// earlier steps, exceeds this number, so much for each of its terms, and so
/// much of the same part of the sum of those steps. A key that is much of its
/// row is then 1, which is not rounded, and others may exceed the maximum.
/// `docs/performance.md` has the errors and how often steps start again.
static constexpr double kMostGrowth = 4.0, kGrowthOfTerm = 0.25,
                        kGrowthOfSum = 0.5;

/// The largest part of a step's sum that does not start again: f16 holds it,
/// and what grows from step to step stays far from infinity.
static constexpr double kLargestPart = 0x1p15;

static Value createConstant(OpBuilder &builder, Location loc, Type type,
                            double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getFloatAttr(type, value));
}

Value fovea::emitExactSum(OpBuilder &body, Location loc, Value x, Value y,
                          double sign) {
  Value factor = createConstant(body, loc, x.getType(), sign);
  return math::FmaOp::create(body, loc, y, factor, x);
}

/// Computes an element of `type` from those of `inputs`, of the same shape, and
/// that of its row in `rows`.
static Value mapRows(FragmentMath &math, FragmentType type, ValueRange inputs,
                     ValueRange rows, FragmentMath::Body body) {
  if (type.getRank() != 1)
    return math.map(type, inputs, rows, body);
  SmallVector<Value> all(inputs);
  llvm::append_range(all, rows);
  return math.map(type, all, {}, body);
}

static Value isEqualTo(OpBuilder &builder, Location loc, Value value,
                       double constant) {
  return arith::CmpFOp::create(
      builder, loc, arith::CmpFPredicate::OEQ, value,
      createConstant(builder, loc, value.getType(), constant));
}

//===----------------------------------------------------------------------===//
// Running values
//===----------------------------------------------------------------------===//

namespace {
/// What a step is computed from that starts again.
struct Exponents {
  /// One number for each score, whose registers they take.
  Value numbers;
  /// True if these are scores, else they are exponents relative to the maximum
  /// of earlier steps.
  Value areScores;
};

/// A step relative to the maximum of earlier steps.
struct StaleStep {
  Exponents exponents;
  Value probabilities;
  /// True if that maximum cannot be subtracted from scores without an error, or
  /// is minus infinity.
  Value isLargeMax;
};

/// A step that started again.
struct Restart {
  Value max;
  /// The factor by which sums so far shrink.
  Value alpha;
  Value probabilities;
};

/// Emits the softmax of a step's scores, and what it updates.
class StepEmitter : StepScores {
public:
  using StepScores::StepScores;

  RunningValues emit(Value query, RunningValues running);

private:
  Value subtracted(Value max);
  Value getShift(Value subtracted);
  Value exponentials(Value scores, Value subtracted);
  Value exactExponentials(Value scores, Value subtracted, Value factor = {});
  std::pair<Value, Value> subtractLarge(Value numbers, Value subtracted,
                                        Value shift, Value isLarge);
  Value fusedExponentials(Value scores, Value subtracted);
  Value shiftedExponentials(Value scores, Value shift, Value factor = {});
  Value tiltedExponentials(Value scores, Value max);
  Exponents exponents(Value scores, Value max, Value isLarge);
  Value shrinkage(Value max, Value subtracted);
  Value shrinkageOfRestart(Value max, Value subtracted);
  Value scaled(Value fragment, Value factors);
  /// Returns the running values without the new accumulator; sets `left`, the
  /// operand of its product.
  RunningValues emitStale(Value scores, RunningValues running, Value &left);
  RunningValues emitExact(Value scores, RunningValues running, Value &left);
  Value hasLargeShift(Value shift, bool withTerm = true);
  Value isLowest(Value max);
  Value isLargeMax(Value max);
  RunningValues restartWhole(const StaleStep &stale, RunningValues running,
                             Value &left);
  RunningValues restartBeside(const StaleStep &stale, RunningValues running,
                              Value &left);
  Value mustRestart(const StaleStep &stale, Value stepSums, Value sums);
  Restart restart(const StaleStep &stale, Value before, bool isBeside);
  Value hasOutgrown(Value stepSums, Value sums);
  Value added(Value a, Value b);
  Value addTo(Value sums, Value probabilities);
  Value getStepSums(Value probabilities);
  Value maximum(Value scores, Value max);
  bool drops() {
    return op.getDropout() && op.getDropout()->convertToDouble() > 0;
  }
  Value weights(Value probabilities);
};
} // namespace

/// Returns the maximum to subtract: 0 where it is minus infinity, so that
/// masked scores give 0 and not NaN.
Value StepEmitter::subtracted(Value max) {
  return math.map(
      sizes.getRows(), max, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        return arith::SelectOp::create(
            body, loc, isEqualTo(body, loc, elements[0], -kInfinity),
            constant(body, 0.0), elements[0]);
      });
}

/// Returns exponentials of scores minus `subtracted`, which has one element for
/// each row.
Value StepEmitter::exponentials(Value scores, Value subtracted) {
  return isFused() ? fusedExponentials(scores, subtracted)
                   : exactExponentials(scores, subtracted);
}

/// Returns the same. The difference comes first: it is exact where it matters,
/// however large both are. `factor` turns it into base 2, if that of scores
/// does not.
Value StepEmitter::exactExponentials(Value scores, Value subtracted,
                                     Value factor) {
  return math.map(
      sizes.getScores(), scores, subtracted,
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value difference =
            emitExactSum(body, loc, elements[0], elements[1], /*sign=*/-1.0);
        Value exponent = arith::MulFOp::create(body, loc, difference,
                                               factor ? factor : base2(body));
        return math::Exp2Op::create(body, loc, exponent);
      });
}

/// Returns what is added to scores in base 2 to subtract a maximum.
Value StepEmitter::getShift(Value subtracted) {
  return math.map(
      sizes.getRows(), subtracted, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        return arith::MulFOp::create(body, loc, elements[0],
                                     base2(body, /*sign=*/-1.0));
      });
}

/// Returns exponentials of scores to which a maximum's shift is added in base
/// 2, into which `factor` turns them, if that of scores does not.
Value StepEmitter::shiftedExponentials(Value scores, Value shift,
                                       Value factor) {
  return math.map(
      sizes.getScores(), scores, shift,
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value exponent = math::FmaOp::create(
            body, loc, elements[0], factor ? factor : base2(body), elements[1]);
        return math::Exp2Op::create(body, loc, exponent);
      });
}

/// Returns exponentials of scores, of which the term is added here, minus a
/// maximum for each row. What is added to a score is another multiply-add, of
/// the position of its key. By `reassoc` that of a thread's first key may be
/// multiplied for all of them: with slopes for which this is inexact, steps
/// start again. A loop that carries the maximum has no registers for its shift
/// as well.
Value StepEmitter::tiltedExponentials(Value scores, Value max) {
  return math.map(
      sizes.getScores(), scores, {max, slopes},
      [&](OpBuilder &body, ValueRange elements,
          ValueRange coordinates) -> Value {
        Value shift = arith::MulFOp::create(body, loc, elements[1],
                                            base2(body, /*sign=*/-1.0));
        Value slope =
            arith::MulFOp::create(body, loc, elements[2], base2(body));
        Value position = emitScore(body, step.tile, constant(body, 0.0),
                                   coordinates, term->position);
        Value added = math::FmaOp::create(body, loc, slope, position, shift,
                                          arith::FastMathFlags::reassoc);
        Value factor = heldUnit.emitProduct(body, loc, sizes.accumulation,
                                            heldUnit.getBase2());
        Value exponent =
            math::FmaOp::create(body, loc, elements[0], factor, added);
        return math::Exp2Op::create(body, loc, exponent);
      });
}

/// Returns true if a maximum's shift is too large, or unknown, to be added to
/// scores that were not rounded, or what a term that they are without changes
/// by within a tile.
Value StepEmitter::hasLargeShift(Value shift, bool withTerm) {
  SmallVector<Value> inputs = {shift};
  withTerm &= term.has_value();
  if (withTerm)
    inputs.push_back(slopes);
  return math.any(
      sizes.getRows(), inputs,
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Formula f = {body, loc, sizes.accumulation};
        auto isLarge = [&](Value number, double most) {
          return f.compare(arith::CmpFPredicate::UGT,
                           f.make<math::AbsFOp>(number), most);
        };
        Value isLargeShift = isLarge(elements[0], kLargestFused);
        if (!withTerm)
          return isLargeShift;
        double reach =
            std::abs(double(term->step)) * double(sizes.keys) * unit.getBase2();
        return f.make<arith::OrIOp>(isLargeShift,
                                    isLarge(elements[1], kLargestTerm / reach));
      });
}

/// Returns true if a maximum is minus infinity.
Value StepEmitter::isLowest(Value max) {
  return math.any(
      sizes.getRows(), max,
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        return isEqualTo(body, loc, elements[0], -kInfinity);
      });
}

/// Returns numbers, and what is added in base 2 to subtract `subtracted` from
/// them: `shift`, or zero in warps where it is large, which subtract before.
std::pair<Value, Value> StepEmitter::subtractLarge(Value numbers,
                                                   Value subtracted,
                                                   Value shift, Value isLarge) {
  FragmentType rows = sizes.getRows();
  auto branch = scf::IfOp::create(builder, loc,
                                  TypeRange{numbers.getType(), rows}, isLarge,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, ValueRange{numbers, shift});
  builder.setInsertionPointToStart(branch.thenBlock());
  Value differences =
      math.map(sizes.getScores(), numbers, subtracted,
               [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
                 return emitExactSum(body, loc, elements[0], elements[1],
                                     /*sign=*/-1.0);
               });
  scf::YieldOp::create(builder, loc,
                       ValueRange{differences, math.fill(rows, 0.0)});
  return {branch.getResult(0), branch.getResult(1)};
}

/// Returns the exponentials by one multiply-add a score.
Value StepEmitter::fusedExponentials(Value scores, Value subtracted) {
  Value shift = getShift(subtracted);
  auto [numbers, added] =
      subtractLarge(scores, subtracted, shift, hasLargeShift(shift));
  return shiftedExponentials(numbers, added);
}

/// Returns the factor by which the sums so far shrink: 1 where the maximum
/// stays.
Value StepEmitter::shrinkage(Value max, Value subtracted) {
  return math.map(
      sizes.getRows(), {max, subtracted}, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value difference =
            arith::SubFOp::create(body, loc, elements[0], elements[1]);
        Value exponent =
            arith::MulFOp::create(body, loc, difference, base2(body));
        return math::Exp2Op::create(body, loc, exponent);
      });
}

/// Returns the same, so that it folds to 0 where nothing came before, as in a
/// first step: so do the sums and the accumulator that are multiplied by it.
Value StepEmitter::shrinkageOfRestart(Value max, Value subtracted) {
  return math.map(
      sizes.getRows(), {max, shrinkage(max, subtracted)}, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        return arith::SelectOp::create(
            body, loc, isEqualTo(body, loc, elements[0], -kInfinity),
            constant(body, 0.0), elements[1]);
      });
}

/// Returns the fragment times a factor for each row.
Value StepEmitter::scaled(Value fragment, Value factors) {
  return mapRows(
      math, cast<FragmentType>(fragment.getType()), fragment, factors,
      [&](OpBuilder &body, ValueRange elements, ValueRange) {
        return arith::MulFOp::create(body, loc, elements[0], elements[1])
            .getResult();
      });
}

/// Returns probabilities as the left operand of the product with values.
Value StepEmitter::weights(Value probabilities) {
  if (!drops() && sizes.element == sizes.accumulation)
    return probabilities;
  return math.map(
      sizes.getWeights(), probabilities, {},
      [&](OpBuilder &body, ValueRange elements,
          ValueRange coordinates) -> Value {
        Value weight = elements[0];
        if (drops()) {
          double probability = op.getDropout()->convertToDouble();
          Value kept = step.tile.isUndropped(body, loc, coordinates[0],
                                             coordinates[1], probability);
          Value scaled = arith::MulFOp::create(
              body, loc, weight, constant(body, 1.0 / (1.0 - probability)));
          weight = arith::SelectOp::create(body, loc, kept, scaled,
                                           constant(body, 0.0));
        }
        return convertFloats(body, loc, weight, sizes.element);
      });
}

/// Returns the maximum of each row with `max`.
Value StepEmitter::maximum(Value scores, Value max) {
  if (sizes.keyWarps > 1) {
    Value least = math.fill(sizes.getSums(), -kInfinity);
    Value parts = ReduceOp::create(builder, loc, least.getType(),
                                   Reduction::Max, scores, least, /*dim=*/1,
                                   /*neighbors=*/true);
    scores = exchangeParts(builder, loc, parts);
  }
  return math.reduce(Reduction::Max, scores, max);
}

RunningValues StepEmitter::emitExact(Value scores, RunningValues running,
                                     Value &left) {
  RunningValues next = running;
  if (op.updatesMax()) {
    next.max = maximum(scores, running.max);
    if (!op.updatesSum() && !op.updatesAcc())
      return next;
  }
  Value subtracted = this->subtracted(next.max);
  Value probabilities = exponentials(scores, subtracted);
  Value alpha;
  if (op.updatesMax())
    alpha = shrinkage(running.max, subtracted);
  if (op.updatesSum())
    next.sum =
        addTo(alpha ? scaled(running.sum, alpha) : running.sum, probabilities);
  if (op.updatesAcc()) {
    if (alpha)
      next.acc = scaled(running.acc, alpha);
    left = weights(probabilities);
  }
  return next;
}

/// Returns true if a probability may have outgrown the maximum of earlier steps
/// by more than their `sums` allow: so has a part of the step's sums then.
Value StepEmitter::hasOutgrown(Value stepSums, Value sums) {
  bool hasParts = sizes.getSums() != sizes.getRows();
  int64_t terms = sizes.keys / (hasParts ? kRowThreads : 1);
  double constant = kMostGrowth + kGrowthOfTerm * double(terms);
  return math.any(
      sizes.getSums(), {stepSums, sums},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Formula f = {body, loc, sizes.accumulation};
        Value grown = f.make<math::FmaOp>(elements[1], f.number(kGrowthOfSum),
                                          f.number(constant));
        Value isMost =
            f.compare(arith::CmpFPredicate::OLT, grown, kLargestPart);
        Value most = f.select(isMost, grown, f.number(kLargestPart));
        return arith::CmpFOp::create(body, loc, arith::CmpFPredicate::UGT,
                                     elements[0], most);
      });
}

Value StepEmitter::added(Value a, Value b) {
  return math.map(
      sizes.getSums(), {a, b}, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        return arith::AddFOp::create(body, loc, elements[0], elements[1]);
      });
}

/// Returns true if a maximum is too large to be subtracted from scores that
/// were not rounded, or minus infinity.
Value StepEmitter::isLargeMax(Value max) {
  Value isLarge = hasLargeShift(getShift(max));
  if (!unit.factor)
    return isLarge;
  // In the first step this is known, so that it has no other exponentials; the
  // product of minus infinity with an operand is not.
  return arith::OrIOp::create(builder, loc, isLowest(max), isLarge);
}

Value StepEmitter::mustRestart(const StaleStep &stale, Value stepSums,
                               Value sums) {
  return arith::OrIOp::create(builder, loc, stale.isLargeMax,
                              hasOutgrown(stepSums, sums));
}

/// Returns exponents relative to a maximum, or scores where it is large, so
/// that behind this multiply-add scores need no registers. An exponent is
/// rounded: where scores outgrow the maximum by 2^k in base 2, a step that
/// starts again from exponents has errors of 2^(k - 24), and k is up to 7
/// unless probabilities are infinite.
Exponents StepEmitter::exponents(Value scores, Value max, Value isLarge) {
  Formula f = {builder, loc, sizes.accumulation};
  Value factor = f.select(isLarge, f.number(1.0), base2(builder));
  Value shift =
      math.map(sizes.getRows(), getShift(max), {},
               [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
                 Formula f = {body, loc, sizes.accumulation};
                 return f.select(isLarge, f.number(-0.0), elements[0]);
               });
  Value numbers = math.map(
      sizes.getScores(), scores, shift,
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        return math::FmaOp::create(body, loc, elements[0], factor, elements[1]);
      });
  return {numbers, isLarge};
}

/// Subtracts the maximum of earlier steps. Probabilities that are too large
/// tell that scores have outgrown it; then the step is relative to its own
/// maximum. Nothing else needs the maximum in each step, nor sums and
/// accumulators rescaled.
RunningValues StepEmitter::emitStale(Value scores, RunningValues running,
                                     Value &left) {
  bool isAlternating =
      op.getScheduleAttr().getProducts() == Products::Alternating;
  StaleStep stale;
  stale.isLargeMax = isLargeMax(running.max);
  // Beside a product the softmax has time, and starts again from scores.
  if (isAlternating && isFused() && !term) {
    stale.exponents = exponents(scores, running.max, stale.isLargeMax);
    stale.probabilities = math.map(
        sizes.getScores(), stale.exponents.numbers, {},
        [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
          return math::Exp2Op::create(body, loc, elements[0]);
        });
  } else {
    stale.exponents = {scores,
                       arith::ConstantIntOp::create(builder, loc, 1, 1)};
    stale.probabilities =
        term        ? tiltedExponentials(scores, running.max)
        : isFused() ? shiftedExponentials(scores, getShift(running.max))
                    : exactExponentials(scores, running.max);
  }
  return isAlternating ? restartWhole(stale, running, left)
                       : restartBeside(stale, running, left);
}

/// Computes a step relative to its own maximum, by one multiply-add a score
/// unless a product runs beside it: then a branch that subtracts large maxima
/// has no registers (156 bytes spilled where keys are two tiles, d = 128).
Restart StepEmitter::restart(const StaleStep &stale, Value before,
                             bool isBeside) {
  auto [numbers, areScores] = stale.exponents;
  auto mapRow = [&](ValueRange rows,
                    llvm::function_ref<Value(Formula &, ValueRange)> body) {
    return math.map(
        sizes.getRows(), rows, {},
        [&](OpBuilder &builder, ValueRange elements, ValueRange) -> Value {
          Formula f = {builder, loc, sizes.accumulation};
          return body(f, elements);
        });
  };
  numbers = whole(numbers);
  Value least = mapRow(before, [&](Formula &f, ValueRange rows) {
    return f.select(areScores, rows[0], f.number(0.0));
  });
  Value most = math.reduce(Reduction::Max, numbers, least);
  Restart restart;
  restart.max = mapRow({most, before}, [&](Formula &f, ValueRange rows) {
    Value inverse = f.div(f.number(1.0), base2(f.builder));
    Value sum = f.make<math::FmaOp>(rows[0], inverse, rows[1]);
    return f.select(areScores, rows[0], sum);
  });
  Value subtracted = this->subtracted(restart.max);
  restart.alpha = shrinkageOfRestart(before, subtracted);
  Value shift = mapRow({subtracted, before}, [&](Formula &f, ValueRange rows) {
    Value growth = f.mul(f.sub(rows[0], rows[1]), base2(f.builder));
    return f.select(areScores, rows[0], growth);
  });
  Formula f = {builder, loc, sizes.accumulation};
  Value factor = f.select(areScores, base2(builder), f.number(1.0));
  if (isBeside || !isFused()) {
    restart.probabilities = exactExponentials(numbers, shift, factor);
    return restart;
  }
  Value added = mapRow(shift, [&](Formula &f, ValueRange rows) {
    return f.mul(f.neg(rows[0]), factor);
  });
  // The next step asks the same of this maximum.
  Value isLarge = hasLargeShift(getShift(restart.max), /*withTerm=*/false);
  std::tie(numbers, added) = subtractLarge(numbers, shift, added, isLarge);
  restart.probabilities = shiftedExponentials(numbers, added, factor);
  return restart;
}

/// Starts the whole step again under one branch. Weights are rounded before, so
/// that their f32 needs no registers: while products run beside the softmax,
/// they would have registers of their own.
RunningValues StepEmitter::restartWhole(const StaleStep &stale,
                                        RunningValues running, Value &left) {
  Value stepSums = getStepSums(stale.probabilities);
  Value rounded = weights(stale.probabilities);
  auto branch = scf::IfOp::create(
      builder, loc,
      TypeRange{running.acc.getType(), running.max.getType(),
                stepSums.getType(), stepSums.getType(), rounded.getType()},
      mustRestart(stale, stepSums, running.sum), /*withElseRegion=*/true);
  // Added in front of the branch, the sums would be copied in each step.
  Value sums = added(branch.getResult(2), branch.getResult(3));
  left = branch.getResult(4);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(
      builder, loc,
      ValueRange{running.acc, running.max, running.sum, stepSums, rounded});
  builder.setInsertionPointToStart(branch.thenBlock());
  auto [max, alpha, again] = restart(stale, running.max, /*isBeside=*/false);
  scf::YieldOp::create(builder, loc,
                       ValueRange{scaled(running.acc, alpha), max,
                                  scaled(running.sum, alpha),
                                  getStepSums(again), weights(again)});
  return {branch.getResult(0), branch.getResult(1), sums};
}

/// Adds probabilities to sums. A thread adds two parts of a row, neither of
/// which waits for the other, and then these.
Value StepEmitter::addTo(Value sums, Value probabilities) {
  if (sizes.getSums() == sizes.getRows())
    return math.reduce(Reduction::Add, probabilities, sums);
  if (sizes.keyWarps > 1)
    return ReduceOp::create(builder, loc, sums.getType(), Reduction::Add,
                            probabilities, sums, /*dim=*/1,
                            /*neighbors=*/true);
  auto parts =
      FragmentType::get(builder.getContext(), {sizes.queries, kThreadColumns},
                        sizes.accumulation, LayoutAttr());
  Value added =
      math.reduce(Reduction::Add, probabilities, math.fill(parts, -0.0));
  return ReduceOp::create(builder, loc, sums.getType(), Reduction::Add, added,
                          sums, /*dim=*/1, /*neighbors=*/true);
}

/// Returns the sums of a step alone.
Value StepEmitter::getStepSums(Value probabilities) {
  return addTo(math.fill(sizes.getSums(), -0.0), probabilities);
}

/// Starts again under two branches: the accumulator has one of its own, so that
/// the product which it comes from is waited for behind the softmax.
RunningValues StepEmitter::restartBeside(const StaleStep &stale,
                                         RunningValues running, Value &left) {
  FragmentType sumType = sizes.getSums();
  Value stepSums = getStepSums(stale.probabilities);
  Value sums = added(running.sum, stepSums);
  Value restarts = mustRestart(stale, stepSums, running.sum);
  auto step =
      scf::IfOp::create(builder, loc,
                        TypeRange{stale.probabilities.getType(), sumType,
                                  sizes.getRows(), sizes.getRows()},
                        restarts, /*withElseRegion=*/true);
  // Next to the first branch the second one would be merged with it.
  left = weights(step.getResult(0));
  auto acc = scf::IfOp::create(builder, loc, TypeRange{running.acc.getType()},
                               restarts, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(step.elseBlock());
  scf::YieldOp::create(builder, loc,
                       ValueRange{stale.probabilities, sums, running.max,
                                  math.fill(sizes.getRows(), 1.0)});
  builder.setInsertionPointToStart(step.thenBlock());
  auto [max, alpha, again] = restart(stale, running.max, /*isBeside=*/true);
  Value all = addTo(scaled(running.sum, alpha), again);
  scf::YieldOp::create(builder, loc, ValueRange{again, all, max, alpha});
  builder.setInsertionPointToStart(acc.thenBlock());
  scf::YieldOp::create(builder, loc, scaled(running.acc, step.getResult(3)));
  builder.setInsertionPointToStart(acc.elseBlock());
  scf::YieldOp::create(builder, loc, running.acc);
  return {acc.getResult(0), step.getResult(2), step.getResult(1)};
}

RunningValues StepEmitter::emit(Value query, RunningValues running) {
  Value scores = this->scores(query), left;
  RunningValues next = isStale() ? emitStale(scores, running, left)
                                 : emitExact(scores, running, left);
  if (op.updatesAcc()) {
    Value values = step.loadValues(builder);
    next.acc = multiply(sizes.getOutput(), left, values, next.acc,
                        /*transposeB=*/false);
  }
  return next;
}

RunningValues fovea::emitOnlineStep(OpBuilder &builder, const TileSizes &sizes,
                                    const KeyStep &step, Value query,
                                    RunningValues running) {
  return StepEmitter(builder, sizes, step).emit(query, running);
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

RunningValues fovea::emitCombinedParts(OpBuilder &builder, Location loc,
                                       const TileSizes &sizes,
                                       RunningValues running, ScoreUnit unit) {
  SmallVector<Value> whole = {running.acc, running.max, running.sum};
  auto combine =
      CombinePartsOp::create(builder, loc, ValueRange(whole).getTypes(), whole);
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&combine.getBody());
  for (int part = 0; part < 2; ++part)
    for (Value value : whole)
      body->addArgument(value.getType(), loc);
  auto getPart = [&](unsigned number) -> RunningValues {
    auto values = body->getArguments().drop_front(number * whole.size());
    return {values[0], values[1], values[2]};
  };
  RunningValues first = getPart(0), second = getPart(1);

  FragmentMath math(builder, loc);
  Value max =
      math.map(sizes.getRows(), {first.max, second.max}, {},
               [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
                 Formula f = {body, loc, sizes.accumulation};
                 return f.make<arith::MaxNumFOp>(elements[0], elements[1]);
               });
  // A part without a key, whose maximum is minus infinity, has the factor 0,
  // also where neither has one.
  auto getFactors = [&](Value maxOfPart) {
    return math.map(
        sizes.getRows(), {maxOfPart, max}, {},
        [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
          Formula f = {body, loc, sizes.accumulation};
          Value base2 =
              unit.emitProduct(body, loc, sizes.accumulation, unit.getBase2());
          Value factor = f.make<math::Exp2Op>(
              f.mul(f.sub(elements[0], elements[1]), base2));
          Value isEmpty = f.isEqual(elements[0], f.number(-kInfinity));
          return f.select(isEmpty, f.number(0.0), factor);
        });
  };
  SmallVector<Value> factors = {getFactors(first.max), getFactors(second.max)};
  auto add = [&](Value a, Value b) {
    return mapRows(
        math, cast<FragmentType>(a.getType()), {a, b}, factors,
        [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
          Formula f = {body, loc, sizes.accumulation};
          return f.make<math::FmaOp>(elements[0], elements[2],
                                     f.mul(elements[1], elements[3]));
        });
  };
  Value acc = add(first.acc, second.acc), sum = add(first.sum, second.sum);
  tile::YieldOp::create(builder, loc, ValueRange{acc, max, sum});
  return {combine.getResult(0), combine.getResult(1), combine.getResult(2)};
}

Value fovea::exchangeParts(OpBuilder &builder, Location loc, Value parts) {
  auto type = cast<FragmentType>(parts.getType());
  auto tile = SharedType::get(builder.getContext(), type.getShape(),
                              type.getElementType(), /*swizzle=*/0);
  return FromSharedOp::create(builder, loc, type,
                              ToSharedOp::create(builder, loc, tile, parts));
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Returns the unit of maxima as two numbers of type `type`, the nearest one
/// and what is left: one alone would be rounded.
static std::pair<Value, Value> emitUnit(OpBuilder &body, Location loc,
                                        ScoreUnit unit, FloatType type) {
  Formula f = {body, loc, type}, wide = {body, loc, body.getF64Type()};
  Value exact = unit.emitProduct(body, loc, body.getF64Type(), unit.unit);
  Value nearest = f.convert(exact);
  Value left = f.convert(wide.sub(exact, wide.convert(nearest)));
  return {nearest, left};
}

Value fovea::emitWholeSum(OpBuilder &builder, Location loc,
                          const TileSizes &sizes, RunningValues running,
                          ScoreUnit unit, Value init) {
  FragmentMath math(builder, loc);
  Value sum = running.sum;
  if (sizes.getSums() != sizes.getRows())
    sum = math.reduce(Reduction::Add, sum, math.fill(sizes.getRows(), 0.0));
  if (!init)
    return sum;
  return math.map(
      sizes.getRows(), {sum, running.max, init}, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Formula f = {body, loc, sizes.accumulation};
        // Without a state there is nothing to add, also to a row without keys.
        Value score = f.convert(elements[2]);
        Value isAbsent = f.isEqual(score, f.number(-kInfinity));
        auto [nearest, left] = emitUnit(body, loc, unit, sizes.accumulation);
        Value minusMax = f.neg(elements[1]);
        Value rounded = f.make<math::FmaOp>(minusMax, nearest, score);
        Value exact = f.make<math::FmaOp>(minusMax, left, rounded);
        Type initType = elements[2].getType();
        if (initType != sizes.accumulation) {
          Formula wide = {body, loc, initType};
          exact = f.add(exact,
                        f.convert(wide.sub(elements[2], wide.convert(score))));
        }
        // What is left of infinite numbers is NaN.
        Value isInfinite =
            f.isEqual(f.make<math::AbsFOp>(rounded), f.number(kInfinity));
        Value difference = f.select(isInfinite, rounded, exact);
        Value weight =
            f.make<math::Exp2Op>(f.mul(difference, std::numbers::log2e));
        return f.add(elements[0], f.select(isAbsent, f.number(0.0), weight));
      });
}

Value fovea::emitOutput(OpBuilder &builder, Location loc,
                        const TileSizes &sizes, Value acc, Value sum,
                        FloatType type) {
  FragmentMath math(builder, loc);
  auto constant = [&](OpBuilder &body, double value) {
    return createConstant(body, loc, sizes.accumulation, value);
  };
  // The sum is 0 only in rows without a key; otherwise it is finite.
  Value inverse = math.map(
      sizes.getRows(), sum, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value quotient =
            arith::DivFOp::create(body, loc, constant(body, 1.0), elements[0]);
        return arith::SelectOp::create(body, loc,
                                       isEqualTo(body, loc, elements[0], 0.0),
                                       constant(body, 0.0), quotient);
      });
  // Rows without a key have numbers only where values are infinite or NaN, but
  // then an accumulator of these: a warp that has such a row clears it.
  auto isEmpty = [&](OpBuilder &body, Value inverse) {
    return isEqualTo(body, loc, inverse, 0.0);
  };
  Value hasEmpty =
      math.any(sizes.getRows(), inverse,
               [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
                 return isEmpty(body, elements[0]);
               });
  auto clear = [&] {
    return math.map(
        sizes.getOutput(), acc, inverse,
        [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
          return arith::SelectOp::create(body, loc, isEmpty(body, elements[1]),
                                         constant(body, 0.0), elements[0]);
        });
  };
  Value cleared =
      math.choose(hasEmpty, sizes.getOutput(), clear, [&] { return acc; });
  auto result = FragmentType::get(
      builder.getContext(), sizes.getOutput().getShape(), type, LayoutAttr());
  return math.map(
      result, cleared, inverse,
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value output =
            arith::MulFOp::create(body, loc, elements[0], elements[1]);
        return convertFloats(body, loc, output, type);
      });
}

Value fovea::emitLogSumExp(OpBuilder &builder, Location loc,
                           const TileSizes &sizes, Value max, Value sum,
                           ScoreUnit unit, Value init, FloatType type) {
  SmallVector<Value> inputs = {max, sum};
  if (init)
    inputs.push_back(init);
  return FragmentMath(builder, loc)
      .map(sizes.getRows().cloneWith(type), inputs, {},
           [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
             Formula f = {body, loc, type};
             Value log = math::Log2Op::create(body, loc, elements[1]);
             Value lse = f.make<math::FmaOp>(
                 f.convert(elements[0]),
                 unit.emitProduct(body, loc, type, unit.unit),
                 f.mul(f.convert(log), std::numbers::ln2));
             lse = f.select(isEqualTo(body, loc, elements[1], 0.0),
                            f.number(-kInfinity), lse);
             if (!init)
               return lse;
             return f.select(isEqualTo(body, loc, elements[1], kInfinity),
                             f.convert(elements[2]), lse);
           });
}

Value fovea::emitLogSumExpRest(OpBuilder &builder, Location loc,
                               const TileSizes &sizes, Value max, Value sum,
                               ScoreUnit unit, Value lse) {
  return FragmentMath(builder, loc)
      .map(sizes.getRows(), {max, sum, lse}, {},
           [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
             Formula f = {body, loc, sizes.accumulation};
             auto [nearest, left] =
                 emitUnit(body, loc, unit, sizes.accumulation);
             Value log =
                 f.mul(f.make<math::Log2Op>(elements[1]), std::numbers::ln2);
             Value ofMax =
                 f.make<math::FmaOp>(elements[0], nearest, f.neg(elements[2]));
             Value rest =
                 f.add(ofMax, f.make<math::FmaOp>(elements[0], left, log));
             for (Value infinite :
                  {f.make<math::AbsFOp>(elements[2]), elements[1]})
               rest = f.select(f.isEqual(infinite, f.number(kInfinity)),
                               f.number(0.0), rest);
             return rest;
           });
}
