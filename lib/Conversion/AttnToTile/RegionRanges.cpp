//===- RegionRanges.cpp - Ranges of a region's integers -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegionRanges.h"

#include "fovea/Support/MaxPosition.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea;

RegionRanges::RegionRanges(Block &block) {
  for (Value coordinate : block.getArguments().take_back(4))
    ranges.try_emplace(
        coordinate, ConstantIntRanges::fromSigned(APInt(64, 0),
                                                  APInt(64, kMaxPosition - 1)));
  for (Operation &op : block.without_terminator()) {
    auto inferred = dyn_cast<InferIntRangeInterface>(op);
    if (!inferred)
      continue;
    auto operands = llvm::map_to_vector(op.getOperands(), [&](Value operand) {
      if (!operand.getType().isIntOrIndex())
        return IntegerValueRange();
      std::optional<ConstantIntRanges> range = get(operand);
      return range ? IntegerValueRange(*range)
                   : IntegerValueRange::getMaxRange(operand);
    });
    inferred.inferResultRangesFromOptional(
        operands, [&](Value result, const IntegerValueRange &range) {
          if (!range.isUninitialized())
            ranges.try_emplace(result, range.getValue());
        });
  }
}

std::optional<ConstantIntRanges> RegionRanges::get(Value value) const {
  auto found = ranges.find(value);
  if (found != ranges.end())
    return found->second;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return ConstantIntRanges::constant(constant);
  return std::nullopt;
}

bool RegionRanges::fits(Value value, unsigned bits) const {
  std::optional<ConstantIntRanges> range = get(value);
  return range && range->smin().isSignedIntN(bits) &&
         range->smax().isSignedIntN(bits);
}

bool RegionRanges::isNonNegative(Value value) const {
  std::optional<ConstantIntRanges> range = get(value);
  return range && range->smin().isNonNegative();
}
