//===- Comparisons.cpp - Comparisons of coordinates -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comparisons.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace fovea::tile;

/// The largest distance of the two sides of a comparison that is represented.
/// Larger distances are clamped to this one, which compares alike while
/// coordinates add less.
static constexpr int64_t kFarthest = int64_t(1) << 29;

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

/// Returns true if `op` compares the column of an element, in 32 bits, with an
/// operand that its row has.
static bool comparesColumnWithRow(arith::CmpIOp op, MapOp map) {
  auto column = op.getLhs().getDefiningOp<arith::IndexCastOp>();
  auto limit = dyn_cast<BlockArgument>(op.getRhs());
  // Arguments are those of elements, rows and columns, and then the
  // coordinates.
  Block *body = &map.getBody().front();
  if (map.getResult().getType().getRank() != 2 || !column ||
      !op.getLhs().getType().isInteger(32) || !limit ||
      limit.getOwner() != body || column.getIn() != body->getArguments().back())
    return false;
  unsigned first = map.getInputs().size(), number = limit.getArgNumber();
  return number >= first && number < first + map.getRows().size();
}

CoordinateComparisons::CoordinateComparisons(
    OpBuilder &builder, MapOp map, ArrayRef<BlockArgument> coordinates) {
  LayoutAttr layout = map.getResult().getType().getLayout();
  Block &body = map.getBody().front();
  Location loc = map.getLoc();
  CoordinateSums sums(body, coordinates);
  for (auto op : body.getOps<arith::CmpIOp>()) {
    if (comparesColumnWithRow(op, map)) {
      firstColumns[op] = getThreadCoordinate(builder, map, layout, 1);
      continue;
    }
    if (!op.getLhs().getType().isIndex() || isUnsigned(op.getPredicate()))
      continue;
    auto a = sums.getCoefficients(op.getLhs());
    auto b = sums.getCoefficients(op.getRhs());
    if (!a || !b)
      continue;
    Comparison comparison;
    for (auto [left, right] : llvm::zip_equal(*a, *b))
      comparison.coefficients.push_back(left - right);
    int64_t farthest =
        CoordinateSums::getReach(comparison.coefficients, layout.getShape());
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
                                    ArrayRef<int64_t> offset,
                                    const IRMapping &element) {
  Location loc = op.getLoc();
  if (Value first = firstColumns.lookup(&op)) {
    auto comparison = cast<arith::CmpIOp>(op);
    Value limit = element.lookup(comparison.getRhs());
    Value &distance = distances[limit];
    if (!distance)
      distance =
          LLVM::SSubSat::create(builder, loc, limit.getType(), limit, first);
    return arith::CmpIOp::create(builder, loc, comparison.getPredicate(),
                                 getI32(builder, loc, offset[1]), distance);
  }
  auto found = comparisons.find(&op);
  if (found == comparisons.end())
    return nullptr;
  const Comparison &comparison = found->second;
  int64_t bound = -CoordinateSums::evaluate(comparison.coefficients, offset);
  return arith::CmpIOp::create(
      builder, loc, cast<arith::CmpIOp>(op).getPredicate(),
      comparison.difference, getI32(builder, loc, bound));
}
