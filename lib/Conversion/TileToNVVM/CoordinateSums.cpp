//===- CoordinateSums.cpp - Sums of coordinates ---------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CoordinateSums.h"

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea::tile;

int64_t CoordinateSums::evaluate(ArrayRef<int64_t> coefficients,
                                 ArrayRef<int64_t> coordinates) {
  int64_t sum = 0;
  for (auto [coefficient, coordinate] :
       llvm::zip_equal(coefficients, coordinates))
    sum += coefficient * coordinate;
  return sum;
}

int64_t CoordinateSums::getReach(ArrayRef<int64_t> coefficients,
                                 ArrayRef<int64_t> shape) {
  SmallVector<int64_t> magnitudes = llvm::map_to_vector(
      coefficients, [](int64_t coefficient) { return std::abs(coefficient); });
  return evaluate(magnitudes, shape);
}

bool CoordinateSums::isShared(Value value) const {
  if (value.getParentBlock() != &body)
    return true;
  Operation *op = value.getDefiningOp();
  // What is read is not written meanwhile.
  return op && op->getNumRegions() == 0 &&
         (isMemoryEffectFree(op) || isa<memref::LoadOp>(op)) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isShared(operand); });
}

/// The largest magnitude of a coordinate's factor, and of a constant that is
/// one.
static constexpr int64_t kLargestFactor = (int64_t(1) << 30) - 1;

/// Returns the constant factor of a product and its other operand.
static std::optional<std::pair<int64_t, Value>> getConstantFactor(Value value) {
  auto op = value.getDefiningOp<arith::MulIOp>();
  if (!op)
    return std::nullopt;
  for (auto [constant, other] : {std::pair(op.getRhs(), op.getLhs()),
                                 std::pair(op.getLhs(), op.getRhs())})
    if (APInt factor; matchPattern(constant, m_ConstantInt(&factor)) &&
                      factor.abs().ule(kLargestFactor))
      return std::pair(factor.getSExtValue(), other);
  return std::nullopt;
}

std::optional<CoordinateSums::Coefficients>
CoordinateSums::getCoefficients(Value value) const {
  Coefficients result(coordinates.size());
  if (isShared(value))
    return result;
  if (const auto *place = llvm::find(coordinates, value);
      place != coordinates.end()) {
    result[place - coordinates.begin()] = 1;
    return result;
  }
  if (auto product = getConstantFactor(value)) {
    auto factors = getCoefficients(product->second);
    if (!factors)
      return std::nullopt;
    for (auto [scaled, factor] : llvm::zip_equal(result, *factors))
      scaled = factor * product->first;
  } else {
    Operation *op = value.getDefiningOp();
    if (!isa_and_present<arith::AddIOp, arith::SubIOp>(op))
      return std::nullopt;
    auto a = getCoefficients(op->getOperand(0));
    auto b = getCoefficients(op->getOperand(1));
    if (!a || !b)
      return std::nullopt;
    for (auto [sum, left, right] : llvm::zip_equal(result, *a, *b))
      sum = isa<arith::AddIOp>(op) ? left + right : left - right;
  }
  if (llvm::any_of(result, [](int64_t factor) {
        return std::abs(factor) > kLargestFactor;
      }))
    return std::nullopt;
  return result;
}

static int64_t countBits(Value value);

/// Returns the bits of a quotient, however it is rounded, of a number of `bits`
/// and a divisor that is a constant of the value `divisor`.
static int64_t countQuotientBits(int64_t bits, uint64_t divisor) {
  return std::max<int64_t>(bits - llvm::Log2_64(divisor), 0) + 1;
}

/// Returns the bits of the magnitude of an expression of these values.
static int64_t countBits(AffineExpr expr, ArrayRef<int64_t> operands,
                         unsigned numDims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return APInt(64, constant.getValue(), /*isSigned=*/true)
        .abs()
        .getActiveBits();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return operands[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return operands[numDims + symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t a = countBits(binary.getLHS(), operands, numDims);
  int64_t b = countBits(binary.getRHS(), operands, numDims);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return 1 + std::max(a, b);
  case AffineExprKind::Mul:
    return a + b;
  case AffineExprKind::Mod:
    return b;
  default:
    // A quotient, rounded down or up.
    auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    return countQuotientBits(a, divisor ? divisor.getValue() : 1);
  }
}

static int64_t countBits(AffineMap map, ValueRange operands) {
  SmallVector<int64_t> bits;
  for (Value operand : operands)
    bits.push_back(countBits(operand));
  int64_t most = 0;
  for (AffineExpr expr : map.getResults())
    most = std::max(most, countBits(expr, bits, map.getNumDims()));
  return most;
}

/// Returns the bits of the magnitude of `value`; 64 where nothing is known of
/// it.
static int64_t countBits(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.abs().getActiveBits();
  // These are places in grids and loops, sizes, and arguments of the function.
  Operation *op = value.getDefiningOp();
  if (!op || isa<memref::DimOp>(op))
    return 48;
  if (isa<gpu::BlockIdOp, gpu::ClusterBlockIdOp, gpu::ClusterIdOp,
          gpu::ThreadIdOp, GroupOp>(op))
    return 32;
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    return countBits(apply.getAffineMap(), apply.getMapOperands());
  if (auto least = dyn_cast<affine::AffineMinOp>(op))
    return countBits(least.getAffineMap(), least.getMapOperands());
  auto countMost = [](ValueRange values) {
    int64_t most = 0;
    for (Value value : values)
      most = std::max(most, countBits(value));
    return most;
  };
  if (isa<arith::SubIOp>(op) && matchPattern(op->getOperand(0), m_Zero()))
    return countBits(op->getOperand(1));
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return 1 + countMost(op->getOperands());
  if (isa<arith::MulIOp>(op))
    return countBits(op->getOperand(0)) + countBits(op->getOperand(1));
  if (isa<arith::RemSIOp, arith::RemUIOp, arith::ShRUIOp>(op))
    return countBits(op->getOperand(0));
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp>(op)) {
    bool hasDivisor =
        matchPattern(op->getOperand(1), m_ConstantInt(&constant)) &&
        constant.isStrictlyPositive();
    return countQuotientBits(countBits(op->getOperand(0)),
                             hasDivisor ? constant.getZExtValue() : 1);
  }
  if (isa<arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>(op))
    return countMost(op->getOperands());
  if (isa<arith::SelectOp>(op))
    return countMost(op->getOperands().drop_front());
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp>(op)) {
    Type from = op->getOperand(0).getType();
    return from.isIndex() ? countBits(op->getOperand(0))
                          : int64_t(from.getIntOrFloatBitWidth());
  }
  return 64;
}

bool CoordinateSums::isNarrow(Value value) { return countBits(value) < 62; }

Value CoordinateSums::clone(OpBuilder &builder, Value value) {
  if (value.getParentBlock() != &body || mapping.contains(value))
    return mapping.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    clone(builder, operand);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

Value CoordinateSums::createRest(OpBuilder &builder, Value value) {
  if (isShared(value))
    return clone(builder, value);
  if (llvm::is_contained(coordinates, value))
    return nullptr;
  if (auto product = getConstantFactor(value)) {
    Value rest = createRest(builder, product->second);
    if (!rest)
      return nullptr;
    return arith::MulIOp::create(builder, value.getLoc(), rest,
                                 arith::ConstantIndexOp::create(
                                     builder, value.getLoc(), product->first));
  }
  Operation *op = value.getDefiningOp();
  Value a = createRest(builder, op->getOperand(0));
  Value b = createRest(builder, op->getOperand(1));
  if (!b)
    return a;
  if (isa<arith::AddIOp>(op))
    return a ? arith::AddIOp::create(builder, op->getLoc(), a, b) : b;
  if (!a)
    a = arith::ConstantIndexOp::create(builder, op->getLoc(), 0);
  return arith::SubIOp::create(builder, op->getLoc(), a, b);
}
