//===- OnlineStep.cpp - Softmax on fragments ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineStep.h"

#include "FragmentMath.h"

#include "fovea/Analysis/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::tile;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

FragmentType TileSizes::getScores() const {
  return FragmentType::get(accumulation.getContext(), {queries, keys},
                           accumulation, LayoutAttr());
}

FragmentType TileSizes::getOutput() const {
  return FragmentType::get(accumulation.getContext(), {queries, valueDim},
                           accumulation, LayoutAttr());
}

FragmentType TileSizes::getRows() const {
  return FragmentType::get(accumulation.getContext(), {queries}, accumulation,
                           LayoutAttr());
}

static Value createConstant(OpBuilder &builder, Location loc, Type type,
                            double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getFloatAttr(type, value));
}

static Value isEqualTo(OpBuilder &builder, Location loc, Value value,
                       double constant) {
  return arith::CmpFOp::create(
      builder, loc, arith::CmpFPredicate::OEQ, value,
      createConstant(builder, loc, value.getType(), constant));
}

static Value convertFloat(OpBuilder &builder, Location loc, Value value,
                          FloatType type) {
  unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getWidth();
  if (value.getType() == type)
    return value;
  if (from < to)
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

namespace {
class StepEmitter {
public:
  StepEmitter(OpBuilder &builder, const TileSizes &sizes, const KeyStep &step)
      : builder(builder), op(step.op), loc(op.getLoc()), math(builder, loc),
        sizes(sizes), step(step) {
    factor = op.getScale().convertToDouble();
    // Without a score region the maximum is that of the products, if the
    // factor keeps their order: multiplying is left to the exponential.
    isRaw = op.getScore().empty() && float(factor * std::numbers::log2e) > 0;
  }

  RunningValues emit(Value query, RunningValues running);

private:
  Value scores(Value query);
  Value modified(Value products);
  Value masked(Value scores);
  Value weights(Value probabilities);

  OpBuilder &builder;
  OnlineAttentionOp op;
  Location loc;
  FragmentMath math;
  const TileSizes &sizes;
  const KeyStep &step;
  double factor;
  bool isRaw;
};
} // namespace

Value StepEmitter::scores(Value query) {
  Value keys = step.loadKeys(builder);
  Value products =
      MmaOp::create(builder, loc, sizes.getScores(), query, keys,
                    /*acc=*/Value(), /*transposeB=*/true, MmaKindAttr());
  return masked(modified(products));
}

Value StepEmitter::modified(Value products) {
  if (isRaw)
    return products;
  Region &region = op.getScore();
  return math.map(sizes.getScores(), products, {},
                  [&](OpBuilder &body, ValueRange elements,
                      ValueRange coordinates) -> Value {
                    auto times = [&](Value value, double by) -> Value {
                      if (by == 1.0)
                        return value;
                      return arith::MulFOp::create(
                          body, loc, value,
                          createConstant(body, loc, value.getType(), by));
                    };
                    if (region.empty())
                      return times(elements[0], factor * std::numbers::log2e);
                    SmallVector<Value> arguments{times(elements[0], factor)};
                    arguments.append(step.tile.getPlace(
                        body, loc, coordinates[0], coordinates[1], region));
                    return times(step.tile.emitRegion(body, region, arguments),
                                 std::numbers::log2e);
                  });
}

Value StepEmitter::masked(Value scores) {
  IndexMath index(builder, loc);
  OpFoldResult needed = index.logicalOr(
      step.partial, index.less(step.tile.keys, index.constant(sizes.keys)));
  return math.mapIf(
      needed, scores,
      [&](OpBuilder &body, ValueRange elements,
          ValueRange coordinates) -> Value {
        Value lowest =
            createConstant(body, loc, sizes.accumulation, -kInfinity);
        OpFoldResult kept = step.tile.isKept(body, loc, coordinates[0],
                                             coordinates[1], op.getMask());
        Value condition =
            IndexMath(body, loc).materialize(kept, /*isBoolean=*/true);
        return arith::SelectOp::create(body, loc, condition, elements[0],
                                       lowest);
      });
}

//===----------------------------------------------------------------------===//
// Running values
//===----------------------------------------------------------------------===//

/// Probabilities as the left operand of the product with values.
Value StepEmitter::weights(Value probabilities) {
  bool drops = op.getDropout() && op.getDropout()->convertToDouble() > 0;
  if (!drops && sizes.element == sizes.accumulation)
    return probabilities;
  auto type =
      FragmentType::get(builder.getContext(), {sizes.queries, sizes.keys},
                        sizes.element, LayoutAttr());
  return math.map(type, probabilities, {},
                  [&](OpBuilder &body, ValueRange elements,
                      ValueRange coordinates) -> Value {
                    Value weight = elements[0];
                    if (drops) {
                      double probability = op.getDropout()->convertToDouble();
                      Value kept =
                          step.tile.isUndropped(body, loc, coordinates[0],
                                                coordinates[1], probability);
                      Value scaled = arith::MulFOp::create(
                          body, loc, weight,
                          createConstant(body, loc, sizes.accumulation,
                                         1.0 / (1.0 - probability)));
                      weight = arith::SelectOp::create(
                          body, loc, kept, scaled,
                          createConstant(body, loc, sizes.accumulation, 0.0));
                    }
                    return convertFloat(body, loc, weight, sizes.element);
                  });
}

RunningValues StepEmitter::emit(Value query, RunningValues running) {
  FragmentType rows = sizes.getRows();
  Value scores = this->scores(query);
  double toBase2 = factor * std::numbers::log2e;

  RunningValues next = running;
  if (op.updatesMax()) {
    if (isRaw) {
      Value largest =
          math.reduce(Reduction::Max, scores, math.fill(rows, -kInfinity));
      next.max = math.map(
          rows, {running.max, largest}, {},
          [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
            Value scaled = arith::MulFOp::create(
                body, loc, elements[1],
                createConstant(body, loc, sizes.accumulation, toBase2));
            return arith::MaxNumFOp::create(body, loc, elements[0], scaled);
          });
    } else {
      next.max = math.reduce(Reduction::Max, scores, running.max);
    }
    if (!op.updatesSum() && !op.updatesAcc())
      return next;
  }

  // The maximum to subtract, negated; 0 where it is minus infinity, so that
  // what is masked gives 0 and not NaN.
  Value shift = math.map(
      rows, next.max, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value negated = arith::NegFOp::create(body, loc, elements[0]);
        return arith::SelectOp::create(
            body, loc, isEqualTo(body, loc, elements[0], -kInfinity),
            createConstant(body, loc, sizes.accumulation, 0.0), negated);
      });
  Value probabilities = math.map(
      sizes.getScores(), scores, shift,
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value exponent;
        if (isRaw)
          exponent = math::FmaOp::create(
              body, loc, elements[0],
              createConstant(body, loc, sizes.accumulation, toBase2),
              elements[1]);
        else
          exponent = arith::AddFOp::create(body, loc, elements[0], elements[1]);
        return math::Exp2Op::create(body, loc, exponent);
      });

  // What the sums so far shrink by.
  Value alpha;
  if (op.updatesMax())
    alpha = math.map(
        rows, {running.max, shift}, {},
        [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
          return math::Exp2Op::create(
              body, loc,
              arith::AddFOp::create(body, loc, elements[0], elements[1]));
        });
  auto times = [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
    return arith::MulFOp::create(body, loc, elements[0], elements[1]);
  };
  if (op.updatesSum()) {
    Value sum = running.sum;
    if (alpha)
      sum = math.map(rows, {sum, alpha}, {}, times);
    next.sum = math.reduce(Reduction::Add, probabilities, sum);
  }
  if (op.updatesAcc()) {
    Value acc = running.acc;
    if (alpha)
      acc = math.map(sizes.getOutput(), acc, alpha, times);
    Value left = weights(probabilities);
    Value values = step.loadValues(builder);
    next.acc = MmaOp::create(builder, loc, sizes.getOutput(), left, values, acc,
                             /*transposeB=*/false, MmaKindAttr());
  }
  return next;
}

RunningValues fovea::emitOnlineStep(OpBuilder &builder, const TileSizes &sizes,
                                    const KeyStep &step, Value query,
                                    RunningValues running) {
  return StepEmitter(builder, sizes, step).emit(query, running);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Whether no kept key changed a row with this maximum and sum.
static Value isUntouched(OpBuilder &body, Location loc, Value max, Value sum) {
  return arith::OrIOp::create(body, loc, isEqualTo(body, loc, max, -kInfinity),
                              isEqualTo(body, loc, sum, 0.0));
}

Value fovea::emitOutput(OpBuilder &builder, Location loc,
                        const TileSizes &sizes, RunningValues running,
                        FloatType type) {
  FragmentMath math(builder, loc);
  auto zero = [&](OpBuilder &body) {
    return createConstant(body, loc, sizes.accumulation, 0.0);
  };
  // 0 in untouched rows alone: the sum is finite.
  Value inverse = math.map(
      sizes.getRows(), {running.max, running.sum}, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value one = createConstant(body, loc, sizes.accumulation, 1.0);
        Value quotient = arith::DivFOp::create(body, loc, one, elements[1]);
        return arith::SelectOp::create(
            body, loc, isUntouched(body, loc, elements[0], elements[1]),
            zero(body), quotient);
      });
  auto result = FragmentType::get(
      builder.getContext(), sizes.getOutput().getShape(), type, LayoutAttr());
  return math.map(
      result, running.acc, inverse,
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value product =
            arith::MulFOp::create(body, loc, elements[0], elements[1]);
        Value output = arith::SelectOp::create(
            body, loc, isEqualTo(body, loc, elements[1], 0.0), zero(body),
            product);
        return convertFloat(body, loc, output, type);
      });
}

Value fovea::emitLogSumExp(OpBuilder &builder, Location loc,
                           const TileSizes &sizes, RunningValues running) {
  constexpr double kLn2 = 0.6931471805599453;
  FragmentMath math(builder, loc);
  return math.map(
      sizes.getRows(), {running.max, running.sum}, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Value log = math::Log2Op::create(body, loc, elements[1]);
        Value total = arith::AddFOp::create(body, loc, elements[0], log);
        Value lse = arith::MulFOp::create(
            body, loc, total,
            createConstant(body, loc, sizes.accumulation, kLn2));
        return arith::SelectOp::create(
            body, loc, isUntouched(body, loc, elements[0], elements[1]),
            createConstant(body, loc, sizes.accumulation, -kInfinity), lse);
      });
}
