//===- KeyBounds.cpp - The keys that a mask keeps of a query --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeyBounds.h"

#include "RegionRanges.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Support/MaxPosition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace fovea;
using arith::CmpIPredicate;

/// What of a mask's region depends on the key, and how.
class KeyBounds::KeyTerms {
public:
  explicit KeyTerms(Block &block)
      : key(block.getArguments().back()), dependents(getDependents(block, key)),
        ranges(block) {}

  bool dependsOnKey(Value value) const { return dependents.contains(value); }
  /// Returns how often the key is a term of `value`, which is a sum; nullopt if
  /// it is another function of the key.
  std::optional<int64_t> getFactor(Value value) const;
  /// Returns true if `value` is the key, of any type.
  bool isKey(Value value) const;
  /// Returns true if the value may be too large for sums of it.
  bool isWide(Value value) const;

private:
  bool mayWrap(Value sum) const;

  Value key;
  llvm::SmallDenseSet<Value> dependents;
  RegionRanges ranges;
};

/// Returns the operand of a conversion between types of integers.
static Value getConverted(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_present<arith::IndexCastOp, arith::IndexCastUIOp,
                         arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op)
             ? op->getOperand(0)
             : Value();
}

bool KeyBounds::KeyTerms::isKey(Value value) const {
  // A position fits in all types that are wide enough to count keys.
  while (Value source = getConverted(value)) {
    if (ConstantIntRanges::getStorageBitwidth(value.getType()) < 32)
      return false;
    value = source;
  }
  return value == key;
}

/// Returns true if a sum that depends on the key may have wrapped: the analysis
/// of ranges then knows nothing of it.
bool KeyBounds::KeyTerms::mayWrap(Value sum) const {
  unsigned width = ConstantIntRanges::getStorageBitwidth(sum.getType());
  return !ranges.fits(sum) ||
         (width <= 32 &&
          *ranges.get(sum) == ConstantIntRanges::maxRange(width));
}

/// Numbers of which three make a sum that does not wrap.
static constexpr unsigned kSumBits = 62;

bool KeyBounds::KeyTerms::isWide(Value value) const {
  return ConstantIntRanges::getStorageBitwidth(value.getType()) >= kSumBits &&
         !ranges.fits(value, kSumBits);
}

std::optional<int64_t> KeyBounds::KeyTerms::getFactor(Value value) const {
  if (!dependsOnKey(value))
    return 0;
  if (isKey(value))
    return 1;
  Operation *op = value.getDefiningOp();
  if (!isa_and_present<arith::AddIOp, arith::SubIOp>(op) || mayWrap(value))
    return std::nullopt;
  std::optional<int64_t> a = getFactor(op->getOperand(0)),
                         b = getFactor(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  return isa<arith::AddIOp>(op) ? *a + *b : *a - *b;
}

/// Adds the conditions that must all hold for `value` to hold.
static void collect(Value value, SmallVectorImpl<Value> &conditions) {
  if (auto both = value.getDefiningOp<arith::AndIOp>()) {
    collect(both.getLhs(), conditions);
    collect(both.getRhs(), conditions);
    return;
  }
  conditions.push_back(value);
}

/// Adds the bound that `condition` is. Returns false if it is none.
bool KeyBounds::add(Value condition, const KeyTerms &terms) {
  auto comparison = condition.getDefiningOp<arith::CmpIOp>();
  if (!comparison)
    return false;
  Value keys = comparison.getLhs(), other = comparison.getRhs();
  CmpIPredicate predicate = comparison.getPredicate();
  bool isLess =
      predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sle;
  bool isInclusive =
      predicate == CmpIPredicate::sle || predicate == CmpIPredicate::sge;
  if (!isLess && predicate != CmpIPredicate::sgt &&
      predicate != CmpIPredicate::sge)
    return false;
  if (!terms.dependsOnKey(keys)) {
    std::swap(keys, other);
    isLess = !isLess;
  }
  std::optional<int64_t> factor = terms.getFactor(keys);
  if (terms.dependsOnKey(other) || !factor || std::abs(*factor) != 1)
    return false;
  bool isNegated = *factor < 0, isEnd = isLess != isNegated;
  // An end is not kept, and a first key is.
  Bound bound = {keys,
                 other,
                 isNegated,
                 terms.isKey(keys),
                 terms.isWide(other),
                 /*isBehind=*/isInclusive == isEnd};
  (isEnd ? ends : firsts).push_back(bound);
  return true;
}

std::optional<KeyBounds> KeyBounds::get(Region &mask) {
  if (mask.empty())
    return std::nullopt;
  Block &block = mask.front();
  KeyTerms terms(block);
  SmallVector<Value> all;
  collect(block.getTerminator()->getOperand(0), all);
  KeyBounds found;
  for (Value condition : all) {
    if (!terms.dependsOnKey(condition))
      found.conditions.push_back(condition);
    else if (!found.add(condition, terms))
      found.rest.push_back(condition);
  }
  // A comparison of sums of coordinates needs no number for each row.
  bool areJoined = found.ends.size() + found.conditions.size() >= 2 ||
                   found.firsts.size() >= 2;
  if (!areJoined || (found.ends.empty() && found.firsts.empty()))
    return std::nullopt;
  return found;
}

OpFoldResult KeyBounds::emitLimit(IndexMath &math, const Bound &bound,
                                  Emitter emit) {
  auto emitIndex = [&](Value value) -> OpFoldResult {
    return getValueOrCreateCastToIndexLike(math.getBuilder(), math.getLoc(),
                                           math.getBuilder().getIndexType(),
                                           emit(value));
  };
  OpFoldResult limit = emitIndex(bound.other);
  if (bound.isWide) {
    // No side with a key is as large.
    constexpr int64_t kLargest = int64_t(1) << (kSumBits - 1);
    limit = math.max(math.min(limit, math.constant(kLargest)),
                     math.constant(-kLargest));
  }
  if (!bound.isAlone) {
    OpFoldResult others = emitIndex(bound.keys);
    limit = bound.isNegated ? math.sub(others, limit) : math.sub(limit, others);
  }
  return bound.isBehind ? math.add(limit, math.constant(1)) : limit;
}

OpFoldResult KeyBounds::emitFirst(IndexMath &math, Emitter emit) const {
  OpFoldResult first = emitLimit(math, firsts.front(), emit);
  for (const Bound &bound : ArrayRef(firsts).drop_front())
    first = math.max(first, emitLimit(math, bound, emit));
  return first;
}

OpFoldResult KeyBounds::emitEnd(IndexMath &math, Emitter emit) const {
  OpFoldResult end = ends.empty() ? math.constant(kMaxPosition)
                                  : emitLimit(math, ends.front(), emit);
  for (const Bound &bound : ArrayRef(ends).drop_front(ends.empty() ? 0 : 1))
    end = math.min(end, emitLimit(math, bound, emit));
  for (Value condition : conditions)
    end = math.select(emit(condition), end, math.constant(0));
  return end;
}
