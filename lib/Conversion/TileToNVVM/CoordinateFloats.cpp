//===- CoordinateFloats.cpp - Coordinates as floats -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CoordinateFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fovea::tile;

/// Returns the index that `op` converts, by way of an i64; null if there is
/// none.
static Value getConvertedIndex(arith::SIToFPOp op) {
  Type type = op.getType();
  auto cast = op.getIn().getDefiningOp<arith::IndexCastOp>();
  if (!cast || !cast.getType().isInteger(64) || !(type.isF32() || type.isF64()))
    return nullptr;
  return cast.getIn();
}

CoordinateFloats::CoordinateFloats(OpBuilder &builder, MapOp map,
                                   ArrayRef<BlockArgument> coordinates) {
  LayoutAttr layout = map.getResult().getType().getLayout();
  Block &body = map.getBody().front();
  Location loc = map.getLoc();
  CoordinateSums sums(body, coordinates);
  // Differences within a tile are numbers of the type.
  constexpr int64_t kFarthest = int64_t(1) << 24;
  for (auto op : body.getOps<arith::SIToFPOp>()) {
    Value index = getConvertedIndex(op);
    if (!index || sums.isShared(index) || !sums.isNarrow(index))
      continue;
    auto coefficients = sums.getCoefficients(index);
    if (!coefficients ||
        CoordinateSums::getReach(*coefficients, layout.getShape()) >= kFarthest)
      continue;
    Value first = sums.createRest(builder, index);
    for (auto [dim, coefficient] : llvm::enumerate(*coefficients)) {
      if (!coefficient)
        continue;
      Value term = arith::IndexCastUIOp::create(
          builder, loc, builder.getIndexType(),
          getThreadCoordinate(builder, map, layout, dim));
      if (coefficient != 1)
        term = arith::MulIOp::create(
            builder, loc, term,
            arith::ConstantIndexOp::create(builder, loc, coefficient));
      first = first ? arith::AddIOp::create(builder, loc, first, term) : term;
    }
    first =
        arith::IndexCastOp::create(builder, loc, builder.getI64Type(), first);
    first = arith::SIToFPOp::create(builder, loc, op.getType(), first);
    conversions.try_emplace(op, Conversion{first, *coefficients});
  }
  findProductSums(map, coordinates);
}

void CoordinateFloats::findProductSums(MapOp map,
                                       ArrayRef<BlockArgument> coordinates) {
  if (coordinates.size() != 2 || conversions.empty())
    return;
  Block &body = map.getBody().front();
  // Values that may differ within a row.
  llvm::SmallDenseSet<Value> varying{coordinates[1]};
  size_t firstRow = map.getInputs().size(),
         firstColumn = firstRow + map.getRows().size();
  for (BlockArgument operand : body.getArguments().drop_back(2))
    if (operand.getArgNumber() < firstRow ||
        operand.getArgNumber() >= firstColumn)
      varying.insert(operand);
  auto isVarying = [&](Value value) { return varying.contains(value); };
  for (Operation &op : body.without_terminator()) {
    if (op.getNumRegions() || llvm::any_of(op.getOperands(), isVarying))
      varying.insert_range(op.getResults());
    auto sum = dyn_cast<math::FmaOp>(op);
    if (!sum || isVarying(sum.getC()) ||
        !bitEnumContainsAll(sum.getFastmath(), arith::FastMathFlags::reassoc))
      continue;
    for (auto [position, factor] :
         {std::pair(sum.getA(), sum.getB()), std::pair(sum.getB(), sum.getA())})
      if (Operation *conversion = position.getDefiningOp();
          conversions.contains(conversion) && !isVarying(factor))
        productSums.try_emplace(&op, ProductSum{conversion, factor});
  }
}

Value CoordinateFloats::createProductSum(OpBuilder &builder, Operation &op,
                                         ArrayRef<int64_t> offset,
                                         const IRMapping &mapping) const {
  auto found = productSums.find(&op);
  if (found == productSums.end())
    return nullptr;
  auto [conversion, factor] = found->second;
  Value position = create(builder, *conversion, {offset[0], 0});
  factor = mapping.lookupOrDefault(factor);
  Location loc = op.getLoc();
  // Elements of a row have the same first sum, which is then computed once.
  Value first = math::FmaOp::create(
      builder, loc, factor, position,
      mapping.lookupOrDefault(cast<math::FmaOp>(op).getC()));
  int64_t distance = offset[1] * conversions.at(conversion).coefficients[1];
  if (!distance)
    return first;
  Type type = first.getType();
  return math::FmaOp::create(
      builder, loc, factor,
      arith::ConstantOp::create(builder, loc,
                                builder.getFloatAttr(type, double(distance))),
      first);
}

Value CoordinateFloats::create(OpBuilder &builder, Operation &op,
                               ArrayRef<int64_t> offset) const {
  auto found = conversions.find(&op);
  if (found == conversions.end())
    return nullptr;
  const Conversion &conversion = found->second;
  int64_t distance = CoordinateSums::evaluate(conversion.coefficients, offset);
  if (!distance)
    return conversion.first;
  Type type = conversion.first.getType();
  return arith::AddFOp::create(
      builder, op.getLoc(), conversion.first,
      arith::ConstantOp::create(builder, op.getLoc(),
                                builder.getFloatAttr(type, double(distance))));
}
