//===- Positions.cpp - Sums of coordinates as floats ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Positions.h"

#include "fovea/Support/MaxPosition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;

namespace {
struct Bounds {
  int64_t low, high;
};

/// Coordinates, constants, and sums, differences, constant multiples and casts
/// of these.
class PositionSums {
public:
  explicit PositionSums(Region &region) : region(region) {}

  /// Returns the numbers that `value` may be; nullopt if it is no such sum, or
  /// does not fit in its type.
  std::optional<Bounds> getBounds(Value value);

  /// Returns what is added to `value`, which has bounds, where `coordinate`
  /// grows by 1.
  int64_t getStep(Value value, BlockArgument coordinate);

  /// Returns `value`, which has a range, as an index.
  Value getIndex(OpBuilder &builder, Value value);

private:
  std::optional<Bounds> computeBounds(Value value);

  Region &region;
};
} // namespace

static bool isCast(Operation *op) {
  return isa<arith::IndexCastOp, arith::TruncIOp, arith::ExtSIOp>(op);
}

std::optional<Bounds> PositionSums::getBounds(Value value) {
  std::optional<Bounds> bounds = computeBounds(value);
  // An index has 64 bits; no operand of a sum of this many is near their end.
  auto type = dyn_cast<IntegerType>(value.getType());
  int64_t bits = std::min<int64_t>(type ? type.getWidth() : 64, 62);
  if (!bounds || !llvm::isIntN(bits, bounds->low) ||
      !llvm::isIntN(bits, bounds->high))
    return std::nullopt;
  return bounds;
}

std::optional<Bounds> PositionSums::computeBounds(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != &region.front() || !value.getType().isIndex())
      return std::nullopt;
    return Bounds{0, kMaxPosition - 1};
  }
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    if (!constant.isSignedIntN(31))
      return std::nullopt;
    return Bounds{constant.getSExtValue(), constant.getSExtValue()};
  }
  Operation *op = value.getDefiningOp();
  if (isCast(op))
    return getBounds(op->getOperand(0));
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  auto a = getBounds(op->getOperand(0)), b = getBounds(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return Bounds{a->low + b->low, a->high + b->high};
  if (isa<arith::SubIOp>(op))
    return Bounds{a->low - b->high, a->high - b->low};
  if (a->low == a->high)
    std::swap(a, b);
  int64_t factor = b->low, low, high;
  if (factor != b->high || llvm::MulOverflow(a->low, factor, low) ||
      llvm::MulOverflow(a->high, factor, high))
    return std::nullopt;
  return Bounds{std::min(low, high), std::max(low, high)};
}

int64_t PositionSums::getStep(Value value, BlockArgument coordinate) {
  if (isa<BlockArgument>(value) || matchPattern(value, m_Constant()))
    return value == coordinate ? 1 : 0;
  Operation *op = value.getDefiningOp();
  if (isCast(op))
    return getStep(op->getOperand(0), coordinate);
  int64_t a = getStep(op->getOperand(0), coordinate);
  int64_t b = getStep(op->getOperand(1), coordinate);
  if (isa<arith::AddIOp>(op))
    return a + b;
  if (isa<arith::SubIOp>(op))
    return a - b;
  // One of the two operands has only one value.
  Bounds left = *getBounds(op->getOperand(0));
  return left.low == left.high ? left.low * b
                               : getBounds(op->getOperand(1))->low * a;
}

Value PositionSums::getIndex(OpBuilder &builder, Value value) {
  if (value.getType().isIndex())
    return value;
  Location loc = value.getLoc();
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return arith::ConstantIndexOp::create(builder, loc,
                                          constant.getSExtValue());
  Operation *op = value.getDefiningOp();
  if (isCast(op))
    return getIndex(builder, op->getOperand(0));
  Value a = getIndex(builder, op->getOperand(0));
  Value b = getIndex(builder, op->getOperand(1));
  if (isa<arith::AddIOp>(op))
    return arith::AddIOp::create(builder, loc, a, b);
  if (isa<arith::SubIOp>(op))
    return arith::SubIOp::create(builder, loc, a, b);
  return arith::MulIOp::create(builder, loc, a, b);
}

std::optional<int64_t> fovea::getPositionStep(Region &region, Value value,
                                              attn::Coordinate coordinate) {
  PositionSums sums(region);
  if (!sums.getBounds(value))
    return std::nullopt;
  // The coordinates come last.
  return sums.getStep(value, region.front().getArguments().take_back(
                                 4)[getScoreDim(coordinate)]);
}

void fovea::convertPositionsWhole(IRRewriter &rewriter, Region &region) {
  PositionSums sums(region);
  SmallVector<Operation *> conversions;
  region.walk([&](Operation *op) {
    if (isa<arith::SIToFPOp, arith::UIToFPOp>(op) &&
        (op->getResult(0).getType().isF32() ||
         op->getResult(0).getType().isF64()))
      conversions.push_back(op);
  });
  for (Operation *op : conversions) {
    std::optional<Bounds> bounds = sums.getBounds(op->getOperand(0));
    if (!bounds || (isa<arith::UIToFPOp>(op) && bounds->low < 0))
      continue;
    rewriter.setInsertionPoint(op);
    Value index = sums.getIndex(rewriter, op->getOperand(0));
    Value wide = arith::IndexCastOp::create(rewriter, op->getLoc(),
                                            rewriter.getI64Type(), index);
    rewriter.replaceOpWithNewOp<arith::SIToFPOp>(op, op->getResult(0).getType(),
                                                 wide);
  }
}
