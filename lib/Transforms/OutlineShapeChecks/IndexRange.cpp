//===- IndexRange.cpp - Range of an index in a region ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexRange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea;

void IndexRanges::setExtent(Value coordinate, Value extent) {
  Value last = builder.createOrFold<arith::SubIOp>(coordinate.getLoc(), extent,
                                                   constant(1));
  known[coordinate] = IndexRange{constant(0), last};
}

Value IndexRanges::constant(int64_t value) {
  return arith::ConstantIndexOp::create(builder, region.getLoc(), value);
}

std::optional<IndexRange> IndexRanges::get(Value value) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  std::optional<IndexRange> range = compute(value);
  known[value] = range;
  return range;
}

std::optional<IndexRange> IndexRanges::compute(Value value) {
  Location loc = value.getLoc();
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 64) {
    Value bound = constant(number.getSExtValue());
    return IndexRange{bound, bound};
  }
  if (!region.isAncestor(value.getParentRegion())) {
    if (!value.getType().isIntOrIndex())
      return std::nullopt;
    if (!value.getType().isIndex())
      value = builder.createOrFold<arith::IndexCastOp>(
          loc, builder.getIndexType(), value);
    return IndexRange{value, value};
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;

  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!index || region.isAncestor(dim.getSource().getParentRegion()))
      return std::nullopt;
    Value size =
        builder.createOrFold<tensor::DimOp>(loc, dim.getSource(), *index);
    return IndexRange{size, size};
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return get(op->getOperand(0));
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    auto a = get(select.getTrueValue()), b = get(select.getFalseValue());
    if (!a || !b)
      return std::nullopt;
    return IndexRange{
        builder.createOrFold<arith::MinSIOp>(loc, a->low, b->low),
        builder.createOrFold<arith::MaxSIOp>(loc, a->high, b->high)};
  }
  if (op->getNumOperands() != 2)
    return std::nullopt;
  auto a = get(op->getOperand(0)), b = get(op->getOperand(1));
  APInt divisor;
  bool positive = matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) &&
                  divisor.isStrictlyPositive();
  // A remainder is below its divisor, whatever the dividend.
  if (isa<arith::RemUIOp>(op) && positive)
    return IndexRange{constant(0), constant(divisor.getSExtValue() - 1)};
  if (!a || !b)
    return std::nullopt;
  auto apply = [&]<typename Op>(Value x, Value y) {
    return builder.createOrFold<Op>(loc, x, y);
  };
  if (isa<arith::AddIOp>(op))
    return IndexRange{apply.operator()<arith::AddIOp>(a->low, b->low),
                      apply.operator()<arith::AddIOp>(a->high, b->high)};
  if (isa<arith::SubIOp>(op))
    return IndexRange{apply.operator()<arith::SubIOp>(a->low, b->high),
                      apply.operator()<arith::SubIOp>(a->high, b->low)};
  if (isa<arith::MinSIOp>(op))
    return IndexRange{apply.operator()<arith::MinSIOp>(a->low, b->low),
                      apply.operator()<arith::MinSIOp>(a->high, b->high)};
  if (isa<arith::MaxSIOp>(op))
    return IndexRange{apply.operator()<arith::MaxSIOp>(a->low, b->low),
                      apply.operator()<arith::MaxSIOp>(a->high, b->high)};
  // These are monotone in the left operand.
  if (isa<arith::MulIOp>(op) && positive)
    return IndexRange{apply.operator()<arith::MulIOp>(a->low, b->low),
                      apply.operator()<arith::MulIOp>(a->high, b->high)};
  if (isa<arith::DivSIOp>(op) && positive)
    return IndexRange{apply.operator()<arith::DivSIOp>(a->low, b->low),
                      apply.operator()<arith::DivSIOp>(a->high, b->high)};
  if (isa<arith::FloorDivSIOp>(op) && positive)
    return IndexRange{apply.operator()<arith::FloorDivSIOp>(a->low, b->low),
                      apply.operator()<arith::FloorDivSIOp>(a->high, b->high)};
  return std::nullopt;
}
