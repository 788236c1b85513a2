//===- ScoreGrowth.cpp - How scores change along the keys -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreGrowth.h"
#include "GpuScheduleModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea;

/// The arguments of a score region that are the first and the last position.
static constexpr unsigned kBatch = 1, kKey = 4;

/// Returns true if the score region turns the position of a key into a float,
/// as ALiBi does.
static bool usesKeyPositions(Region &score) {
  llvm::SmallDenseSet<Value> positions{score.getArgument(kKey)};
  for (Operation &nested : score.front()) {
    // What a tensor holds at a position need not grow.
    if (isa<tensor::ExtractOp>(nested) || !usesAny(nested, positions))
      continue;
    if (isa<arith::SIToFPOp, arith::UIToFPOp>(nested))
      return true;
    positions.insert_range(nested.getResults());
  }
  return false;
}

namespace {
/// Finds how numbers of a score region change with the position of the key.
class GrowthAnalysis {
public:
  explicit GrowthAnalysis(Region &score);
  Growth get(Value value) { return find(value).growth; }
  double getSlope(Value value) { return find(value).slope.value_or(0); }

private:
  /// How a number changes, and its sign: 1, -1, or 0 if it may be any; by how
  /// much from one key to the next, and what it is, if these are constants.
  struct Trend {
    Growth growth = Growth::None;
    int sign = 0;
    std::optional<double> slope = 0.0, constant = {};
  };
  Trend find(Value value);
  Trend compute(Operation &op);
  static Trend negate(Trend trend);
  static Trend add(Trend a, Trend b);
  static Trend multiply(Trend a, Trend b);

  llvm::SmallDenseMap<Value, Trend> trends;
};
} // namespace

GrowthAnalysis::GrowthAnalysis(Region &score) {
  for (unsigned number = kBatch; number <= kKey; ++number)
    trends[score.getArgument(number)] = {
        number == kKey ? Growth::Up : Growth::None, /*sign=*/1,
        /*slope=*/number == kKey ? 1.0 : 0.0};
  for (Operation &op : score.front().without_terminator())
    if (op.getNumResults() == 1)
      trends[op.getResult(0)] = compute(op);
}

GrowthAnalysis::Trend GrowthAnalysis::find(Value value) {
  APFloat number(0.0);
  APInt integer;
  if (matchPattern(value, m_ConstantFloat(&number)))
    return {Growth::None, number.isNegative() ? -1 : 1, 0.0,
            number.convertToDouble()};
  if (matchPattern(value, m_ConstantInt(&integer)))
    return {Growth::None, integer.isNegative() ? -1 : 1, 0.0,
            double(integer.getSExtValue())};
  return trends.lookup(value);
}

GrowthAnalysis::Trend GrowthAnalysis::negate(Trend trend) {
  return multiply(trend, {Growth::None, -1, 0.0, -1.0});
}

GrowthAnalysis::Trend GrowthAnalysis::add(Trend a, Trend b) {
  int sign = a.sign == b.sign ? a.sign : 0;
  std::optional<double> slope;
  if (a.slope && b.slope)
    slope = *a.slope + *b.slope;
  if (a.growth == Growth::None || a.growth == b.growth)
    return {b.growth, sign, slope};
  return {b.growth == Growth::None ? a.growth : Growth::Unknown, sign, slope};
}

GrowthAnalysis::Trend GrowthAnalysis::multiply(Trend a, Trend b) {
  if (a.growth == Growth::None)
    std::swap(a, b);
  int sign = a.sign * b.sign;
  if (a.growth == Growth::None)
    return {Growth::None, sign};
  std::optional<double> slope;
  if (a.slope && b.constant)
    slope = *a.slope * *b.constant;
  if (b.growth != Growth::None || b.sign == 0)
    return {Growth::Unknown, sign, slope};
  if (b.sign > 0 || a.growth == Growth::Unknown)
    return {a.growth, sign, slope};
  return {a.growth == Growth::Up ? Growth::Down : Growth::Up, sign, slope};
}

GrowthAnalysis::Trend GrowthAnalysis::compute(Operation &op) {
  auto operand = [&](unsigned number) { return find(op.getOperand(number)); };
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp, arith::SIToFPOp,
          arith::ExtFOp, arith::TruncFOp, math::TanhOp>(op))
    return operand(0);
  if (isa<math::ExpOp, math::Exp2Op>(op))
    return {operand(0).growth, 1, std::nullopt};
  if (isa<arith::NegFOp>(op))
    return negate(operand(0));
  if (isa<arith::AddIOp, arith::AddFOp>(op))
    return add(operand(0), operand(1));
  if (isa<arith::SubIOp, arith::SubFOp>(op))
    return add(operand(0), negate(operand(1)));
  if (isa<arith::MulIOp, arith::MulFOp>(op))
    return multiply(operand(0), operand(1));
  // The inverse of a number has its sign.
  if (isa<arith::DivFOp>(op) && operand(1).growth == Growth::None)
    return multiply(operand(0),
                    {Growth::None, operand(1).sign, 0.0, std::nullopt});
  // What a tensor holds at a position need not grow.
  if (isa<tensor::ExtractOp>(op))
    return {};
  bool isSame = op.getNumRegions() == 0 &&
                llvm::all_of(op.getOperands(), [&](Value value) {
                  return find(value).growth == Growth::None;
                });
  return {isSame ? Growth::None : Growth::Unknown, 0,
          isSame ? std::optional(0.0) : std::nullopt};
}

Growth fovea::getGrowth(Region &score) {
  if (score.empty() || !usesKeyPositions(score))
    return Growth::None;
  return GrowthAnalysis(score).get(
      score.front().getTerminator()->getOperand(0));
}

double fovea::getSlope(Region &score) {
  if (score.empty())
    return 0;
  return GrowthAnalysis(score).getSlope(
      score.front().getTerminator()->getOperand(0));
}
