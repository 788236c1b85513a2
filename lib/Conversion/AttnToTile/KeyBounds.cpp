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

using namespace mlir;
using namespace fovea;
using arith::CmpIPredicate;

namespace {
/// What of a mask's region depends on the key, and how.
class KeyTerms {
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
} // namespace

/// Returns the operand of a conversion between types of integers.
static Value getConverted(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_present<arith::IndexCastOp, arith::IndexCastUIOp,
                         arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op)
             ? op->getOperand(0)
             : Value();
}

bool KeyTerms::isKey(Value value) const {
  // A position fits in all types that are wide enough to count keys.
  while (Value source = getConverted(value)) {
    if (!value.getType().isIndex() &&
        value.getType().getIntOrFloatBitWidth() < 32)
      return false;
    value = source;
  }
  return value == key;
}

/// Returns the bits of an integer or an index.
static unsigned getWidth(Value value) {
  Type type = value.getType();
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

/// Returns true if a sum that depends on the key may have wrapped: the analysis
/// of ranges then knows nothing of it.
bool KeyTerms::mayWrap(Value sum) const {
  return !ranges.fits(sum, 32) ||
         (getWidth(sum) <= 32 &&
          *ranges.get(sum) == ConstantIntRanges::maxRange(getWidth(sum)));
}

/// Numbers of which three make a sum that does not wrap.
static constexpr unsigned kSumBits = 62;

bool KeyTerms::isWide(Value value) const {
  return getWidth(value) >= kSumBits && !ranges.fits(value, kSumBits);
}

std::optional<int64_t> KeyTerms::getFactor(Value value) const {
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

std::optional<KeyBounds> KeyBounds::get(Region &mask) {
  if (mask.empty())
    return std::nullopt;
  Block &block = mask.front();
  KeyTerms terms(block);
  SmallVector<Value> conditions;
  collect(block.getTerminator()->getOperand(0), conditions);
  KeyBounds found;
  auto getBound = [&](Value condition) -> std::optional<Bound> {
    auto comparison = condition.getDefiningOp<arith::CmpIOp>();
    if (!comparison)
      return std::nullopt;
    Value keys = comparison.getLhs(), other = comparison.getRhs();
    CmpIPredicate predicate = comparison.getPredicate();
    bool isLess =
        predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sle;
    bool isInclusive =
        predicate == CmpIPredicate::sle || predicate == CmpIPredicate::sge;
    if (!isLess && predicate != CmpIPredicate::sgt &&
        predicate != CmpIPredicate::sge)
      return std::nullopt;
    if (!terms.dependsOnKey(keys)) {
      std::swap(keys, other);
      isLess = !isLess;
    }
    std::optional<int64_t> factor = terms.getFactor(keys);
    if (terms.dependsOnKey(other) || !factor || std::abs(*factor) != 1)
      return std::nullopt;
    bool isNegated = *factor < 0;
    return Bound{keys,
                 other,
                 isNegated,
                 /*isEnd=*/isLess != isNegated,
                 isInclusive,
                 terms.isKey(keys),
                 terms.isWide(other)};
  };
  for (Value condition : conditions) {
    if (!terms.dependsOnKey(condition))
      found.conditions.push_back(condition);
    else if (std::optional<Bound> bound = getBound(condition))
      found.bounds.push_back(*bound);
    else
      found.rest.push_back(condition);
  }
  // A comparison of sums of coordinates needs no number for each row.
  auto isEnd = [](const Bound &bound) { return bound.isEnd; };
  size_t ends = llvm::count_if(found.bounds, isEnd),
         firsts = found.bounds.size() - ends;
  ends += found.conditions.size();
  if (found.bounds.empty() || (ends < 2 && firsts < 2))
    return std::nullopt;
  return found;
}

bool KeyBounds::hasFirst() const {
  return llvm::any_of(bounds, [](const Bound &bound) { return !bound.isEnd; });
}

OpFoldResult KeyBounds::emit(IndexMath &math, const Bound &bound,
                             Emitter emit) const {
  auto emitIndex = [&](Value value) -> OpFoldResult {
    Value emitted = emit(value);
    if (emitted.getType().isIndex())
      return emitted;
    return arith::IndexCastOp::create(math.getBuilder(), math.getLoc(),
                                      math.getBuilder().getIndexType(), emitted)
        .getResult();
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
  // An end is not kept, and a first key is.
  if (bound.isInclusive == bound.isEnd)
    limit = math.add(limit, math.constant(1));
  return limit;
}

OpFoldResult KeyBounds::emitFirst(IndexMath &math, Emitter emit) const {
  std::optional<OpFoldResult> first;
  for (const Bound &bound : bounds) {
    if (bound.isEnd)
      continue;
    OpFoldResult next = this->emit(math, bound, emit);
    first = first ? math.max(*first, next) : next;
  }
  return *first;
}

OpFoldResult KeyBounds::emitEnd(IndexMath &math, Emitter emit) const {
  OpFoldResult end = math.constant(kMaxPosition);
  bool isFirst = true;
  for (const Bound &bound : bounds) {
    if (!bound.isEnd)
      continue;
    OpFoldResult next = this->emit(math, bound, emit);
    end = std::exchange(isFirst, false) ? next : math.min(end, next);
  }
  for (Value condition : conditions)
    end = math.select(emit(condition), end, math.constant(0));
  return end;
}
