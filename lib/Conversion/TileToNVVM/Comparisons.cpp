//===- Comparisons.cpp - Comparisons of coordinates -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comparisons.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea::tile;

/// The largest distance of the two sides of a comparison that is represented.
/// Larger distances are clamped to this one, which compares alike while
/// coordinates add less.
static constexpr int64_t kFarthest = int64_t(1) << 29;

namespace {

/// Splits values of a map's body into sums of coordinates and of shared values.
class Sums {
public:
  Sums(Block &body, ArrayRef<BlockArgument> coordinates)
      : body(body), coordinates(coordinates) {}

  /// Returns true if all elements share `value`.
  bool isShared(Value value) const;

  /// Returns the factor of each coordinate in `value`; nullopt if it is no such
  /// sum.
  std::optional<SmallVector<int64_t, 2>> getCoefficients(Value value) const;

  /// Returns true if no part of a sum is so large that coordinates could make
  /// the sum wrap.
  bool isNarrow(Value value) const;

  /// Emits, by `builder`, the rest of a sum without its coordinates; null if
  /// nothing is left.
  Value createRest(OpBuilder &builder, Value value);

private:
  Value clone(OpBuilder &builder, Value value);

  Block &body;
  ArrayRef<BlockArgument> coordinates;
  IRMapping mapping;
};

} // namespace

bool Sums::isShared(Value value) const {
  if (value.getParentBlock() != &body)
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isShared(operand); });
}

std::optional<SmallVector<int64_t, 2>>
Sums::getCoefficients(Value value) const {
  SmallVector<int64_t, 2> result(coordinates.size());
  if (isShared(value))
    return result;
  if (const auto *place = llvm::find(coordinates, value);
      place != coordinates.end()) {
    result[place - coordinates.begin()] = 1;
    return result;
  }
  Operation *op = value.getDefiningOp();
  if (!isa_and_present<arith::AddIOp, arith::SubIOp>(op))
    return std::nullopt;
  auto a = getCoefficients(op->getOperand(0));
  auto b = getCoefficients(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  for (auto [sum, left, right] : llvm::zip_equal(result, *a, *b))
    sum = isa<arith::AddIOp>(op) ? left + right : left - right;
  return result;
}

static int64_t countBits(Value value);

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
    return a + 1;
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
  if (isa<gpu::BlockIdOp, gpu::ThreadIdOp>(op))
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
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return 1 + countMost(op->getOperands());
  if (isa<arith::MulIOp>(op))
    return countBits(op->getOperand(0)) + countBits(op->getOperand(1));
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
    return countBits(op->getOperand(0));
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op))
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

bool Sums::isNarrow(Value value) const {
  if (isShared(value))
    return countBits(value) < 62;
  Operation *op = value.getDefiningOp();
  return !op || llvm::all_of(op->getOperands(),
                             [&](Value operand) { return isNarrow(operand); });
}

Value Sums::clone(OpBuilder &builder, Value value) {
  if (value.getParentBlock() != &body || mapping.contains(value))
    return mapping.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    clone(builder, operand);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

Value Sums::createRest(OpBuilder &builder, Value value) {
  if (isShared(value))
    return clone(builder, value);
  if (llvm::is_contained(coordinates, value))
    return nullptr;
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

static bool isUnsigned(arith::CmpIPredicate predicate) {
  using arith::CmpIPredicate;
  return predicate == CmpIPredicate::ult || predicate == CmpIPredicate::ule ||
         predicate == CmpIPredicate::ugt || predicate == CmpIPredicate::uge;
}

/// Returns `a - b` as an i32, no further from 0 than `kFarthest`; a null
/// operand is 0.
static Value createDifference(OpBuilder &builder, Location loc, Value a,
                              Value b) {
  Type wide = builder.getI64Type();
  auto widen = [&](Value value) -> Value {
    if (!value)
      return arith::ConstantIntOp::create(builder, loc, 0, 64);
    return arith::IndexCastOp::create(builder, loc, wide, value);
  };
  Value difference =
      LLVM::SSubSat::create(builder, loc, wide, widen(a), widen(b));
  difference = arith::MinSIOp::create(
      builder, loc, difference,
      arith::ConstantIntOp::create(builder, loc, kFarthest, 64));
  difference = arith::MaxSIOp::create(
      builder, loc, difference,
      arith::ConstantIntOp::create(builder, loc, -kFarthest, 64));
  return arith::TruncIOp::create(builder, loc, builder.getI32Type(),
                                 difference);
}

CoordinateComparisons::CoordinateComparisons(
    OpBuilder &builder, MapOp map, ArrayRef<BlockArgument> coordinates) {
  LayoutAttr layout = map.getResult().getType().getLayout();
  Block &body = map.getBody().front();
  Location loc = map.getLoc();
  Sums sums(body, coordinates);
  for (auto op : body.getOps<arith::CmpIOp>()) {
    if (!op.getLhs().getType().isIndex() || isUnsigned(op.getPredicate()))
      continue;
    auto a = sums.getCoefficients(op.getLhs());
    auto b = sums.getCoefficients(op.getRhs());
    if (!a || !b)
      continue;
    Comparison comparison;
    int64_t farthest = 0;
    for (auto [left, right, size] :
         llvm::zip_equal(*a, *b, layout.getShape())) {
      comparison.coefficients.push_back(left - right);
      farthest += std::abs(left - right) * size;
    }
    if (farthest == 0 || farthest >= kFarthest)
      continue;
    // A side that all elements share may be anything.
    if (llvm::any_of(ValueRange{op.getLhs(), op.getRhs()}, [&](Value side) {
          return !sums.isShared(side) && !sums.isNarrow(side);
        }))
      continue;
    Value left = sums.createRest(builder, op.getLhs());
    Value right = sums.createRest(builder, op.getRhs());
    comparison.difference = createDifference(builder, loc, left, right);
    for (auto [dim, coefficient] : llvm::enumerate(comparison.coefficients)) {
      if (!coefficient)
        continue;
      Value first = getThreadCoordinate(builder, map, layout, dim);
      if (coefficient != 1)
        first = arith::MulIOp::create(builder, loc, first,
                                      getI32(builder, loc, coefficient));
      comparison.difference =
          arith::AddIOp::create(builder, loc, comparison.difference, first);
    }
    comparisons.try_emplace(op, comparison);
  }
}

Value CoordinateComparisons::create(OpBuilder &builder, Operation &op,
                                    ArrayRef<int64_t> offset) const {
  auto found = comparisons.find(&op);
  if (found == comparisons.end())
    return nullptr;
  const Comparison &comparison = found->second;
  int64_t bound = 0;
  for (auto [coefficient, distance] :
       llvm::zip_equal(comparison.coefficients, offset))
    bound -= coefficient * distance;
  return arith::CmpIOp::create(
      builder, op.getLoc(), cast<arith::CmpIOp>(op).getPredicate(),
      comparison.difference, getI32(builder, op.getLoc(), bound));
}
