//===- OnlineVerify.cpp - Verifiers of ops on tiles and running values ----===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verify.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Computes the number of features and of queries of `packed`, which has pairs
/// of features next to each other, whole tiles of a matrix unit, for each part
/// of numbers of the element type of `source`.
static LogicalResult splitPairs(Operation *op, Value packed, Value source,
                                int64_t &features, int64_t &queries) {
  int64_t parts = std::max<int64_t>(
      countPairParts(getElementTypeOrSelf(source.getType())), 1);
  int64_t pairs = sizeOf(packed, 2), columns = sizeOf(packed, 3);
  if (ShapedType::isDynamic(pairs) || ShapedType::isDynamic(columns) ||
      pairs % (16 * parts) != 0 || columns % 32 != 0)
    return op->emitOpError("expects packed pairs to have a static multiple of ")
           << 16 * parts
           << " pairs of features and of 16 queries, but they are "
           << packed.getType();
  features = 2 * pairs / parts;
  queries = columns / 2;
  return success();
}

/// Checks the position of a tile in the whole: each list of operands is
/// complete or absent.
static LogicalResult verifyPlace(Operation *op, ValueRange at,
                                 ValueRange whole) {
  if (!at.empty() && at.size() != 4)
    return op->emitOpError()
           << "expects 4 coordinates in `at`, but got " << at.size();
  if (!whole.empty() && whole.size() != 2)
    return op->emitOpError()
           << "expects 2 sizes in `whole`, but got " << whole.size();
  return success();
}

/// Checks that the op works on tensors, with one result for each destination,
/// of its type, or on memrefs, with no result.
static LogicalResult verifyDestinations(DestinationStyleOpInterface op) {
  bool tensors = false, memrefs = false;
  for (Value operand : op->getOperands()) {
    tensors |= isa<TensorType>(operand.getType());
    memrefs |= isa<MemRefType>(operand.getType());
  }
  if (tensors && memrefs)
    return op->emitOpError("expects all operands to be tensors or all to be "
                           "memrefs, but both occur");
  unsigned results = tensors ? op.getNumDpsInits() : 0;
  if (op->getNumResults() != results)
    return op->emitOpError() << "expects " << results << " results, but has "
                             << op->getNumResults();
  for (auto [init, result] : llvm::zip(op.getDpsInits(), op->getResults()))
    if (init.getType() != result.getType())
      return op->emitOpError()
             << "expects a result to have its destination's type "
             << init.getType() << ", but it is " << result.getType();
  return success();
}

/// Checks `acc: [B, H, Q, Dv]`, `max` and `sum`: `[B, H, Q]`, of one float
/// type.
static LogicalResult verifyRunningValues(Operation *op, Value acc, Value max,
                                         Value sum) {
  if (failed(verifyRank(op, "acc", acc, 4)) ||
      failed(verifyRank(op, "max", max, 3)) ||
      failed(verifyRank(op, "sum", sum, 3)))
    return failure();
  Type accumulation = getElementTypeOrSelf(acc);
  if (!accumulation.isF32() && !accumulation.isF64())
    return op->emitOpError()
           << "expects acc to have element type f32 or f64, but it is "
           << acc.getType();
  if (failed(verifyElementType(op, "max", max, accumulation)) ||
      failed(verifyElementType(op, "sum", sum, accumulation)))
    return failure();
  StringRef names[] = {"batch size", "number of heads", "number of queries"};
  for (auto [dim, name] : llvm::enumerate(names))
    if (failed(verifySame(op, name,
                          {{"acc", sizeOf(acc, dim)},
                           {"max", sizeOf(max, dim)},
                           {"sum", sizeOf(sum, dim)}})))
      return failure();
  return success();
}

/// Checks that a tile of the schedule has parts of as many rows for all ends.
static LogicalResult verifyEnds(OnlineAttentionOp op) {
  auto parts = static_cast<int64_t>(op.getEnds().size());
  if (parts == 0)
    return success();
  if (op.getMask().empty() || !op.getScheduleAttr())
    return op.emitOpError(
        "expects `ends` only with a mask region and a schedule");
  int64_t rows = op.getScheduleAttr().getQueryTile();
  if (rows % parts != 0)
    return op.emitOpError("expects a number of `ends` that divides the ")
           << rows << " queries of a tile, but it is " << parts;
  return success();
}

LogicalResult OnlineAttentionOp::verify() {
  Value q = getQuery(), v = getValue(), acc = getAcc();
  for (auto [name, value] : {std::pair<StringRef, Value>{"query", q},
                             {"key", getKey()},
                             {"value", v}}) {
    if (failed(verifyRank(*this, name, value, 4)))
      return failure();
    if (!isa<FloatType>(getElementTypeOrSelf(value)))
      return emitOpError() << "expects " << name
                           << " to have a float element type, but it is "
                           << value.getType();
  }
  bool packed = bool(getRows());
  int64_t headDim = sizeOf(q, packed ? 2 : 3), rows = sizeOf(q, packed ? 3 : 2);
  if (hasQueryPairs()) {
    if (!countPairParts(getElementTypeOrSelf(getKey())))
      return emitOpError(
                 "expects keys of queries that are packed in pairs to be "
                 "in bf16 or f16, but they are ")
             << getKey().getType();
    if (failed(verifyElementType(*this, "value", v,
                                 getElementTypeOrSelf(getKey()))) ||
        failed(splitPairs(*this, q, getKey(), headDim, rows)))
      return failure();
  }
  if (failed(verifyDestinations(*this)) ||
      failed(verifyRunningValues(*this, acc, getMax(), getSum())) ||
      failed(verifyAttentionOperands(*this, q, headDim, getKey(), v)) ||
      failed(verifySame(*this, "batch size",
                        {{"query", sizeOf(q, 0)}, {"acc", sizeOf(acc, 0)}})) ||
      failed(verifySame(*this, "number of heads",
                        {{"query", sizeOf(q, 1)}, {"acc", sizeOf(acc, 1)}})) ||
      failed(verifySame(*this, "number of queries",
                        {{"query", rows}, {"acc", sizeOf(acc, 2)}})) ||
      failed(verifySame(*this, "value dim",
                        {{"value", sizeOf(v, 3)}, {"acc", sizeOf(acc, 3)}})))
    return failure();
  Type accumulation = getAccumulationType();
  if (packed) {
    if (!hasQueryPairs() &&
        failed(verifyElementType(*this, "a packed query", q, accumulation)))
      return failure();
    if (ShapedType::isDynamic(sizeOf(q, 3)))
      return emitOpError("expects a packed query to have a static number of "
                         "queries, but it is ")
             << q.getType();
  }
  if (failed(verifyPlace(*this, getAt(), getWhole())))
    return failure();
  if (getPartial() && getMask().empty())
    return emitOpError("expects `partial` only with a mask region");
  if (failed(verifyEnds(*this)))
    return failure();
  if (failed(verifyFinite(*this, "scale", getScale())) ||
      failed(verifyDropout(*this, getDropout(), getSeed(), getOffset())))
    return failure();
  return verifyScoreAndMask(*this, getScore(), getMask(), accumulation);
}

/// Checks the score region, its derivative and the mask region.
static LogicalResult verifyRegionsOf(OnlineBackwardOp op, Type accumulation) {
  bool isDerived = op.getPackedQuery() && !op.getScore().empty();
  if (op.getDerivative().empty() == isDerived)
    return op.emitOpError("expects a derivative if packed queries have a score "
                          "region, and only then, but has ")
           << (isDerived ? "none" : "one");
  if (isDerived &&
      failed(verifyRegion(op, "derivative", op.getDerivative(),
                          withCoordinates(op.getContext(), accumulation),
                          accumulation)))
    return failure();
  if (op.getPartial() && op.getMask().empty())
    return op.emitOpError("expects `partial` only with a mask region");
  return verifyScoreAndMask(op, op.getScore(), op.getMask(), accumulation);
}

/// Checks the packed operands, and the blocks of scores, which have their
/// columns.
static LogicalResult verifyPacked(OnlineBackwardOp op) {
  Value query = op.getPackedQuery(), gradient = op.getPackedGradient();
  if (!query)
    return op.getScores()
               ? op.emitOpError("expects scores only with packed queries")
               : success();
  if (!op.getCaptures().empty())
    return op.emitOpError("expects captures only without packed queries");
  int64_t groups = sizeOf(query, 1), columns = sizeOf(query, 3),
          features = sizeOf(query, 2), valueFeatures = sizeOf(gradient, 2),
          gradientColumns = sizeOf(gradient, 3);
  if (ShapedType::isDynamic(groups) || ShapedType::isDynamic(columns))
    return op.emitOpError("expects a packed query to have a static number of "
                          "queries, but it is ")
           << query.getType();
  if (op.hasQueryPairs()) {
    if (failed(verifyElementType(op, "a packed gradient", gradient,
                                 getElementTypeOrSelf(query))))
      return failure();
    Type element = getElementTypeOrSelf(op.getQuery());
    if (!countPairParts(element))
      return op.emitOpError("expects a query that is packed in pairs to be in "
                            "bf16 or f16, but it is ")
             << op.getQuery().getType();
    for (auto [name, value] :
         {std::pair<StringRef, Value>{"gradient", op.getGradient()},
          {"key", op.getKey()},
          {"value", op.getValue()}})
      if (failed(verifyElementType(op, name, value, element)))
        return failure();
    if (failed(splitPairs(op, query, op.getQuery(), features, columns)) ||
        failed(splitPairs(op, gradient, op.getGradient(), valueFeatures,
                          gradientColumns)))
      return failure();
    // Queries, too, are added up in pairs.
    if (columns % 32 != 0)
      return op.emitOpError("expects groups of packed pairs to have a multiple "
                            "of 32 queries, but they have ")
             << columns;
  }
  if (failed(verifySame(
          op, "head dim",
          {{"key", sizeOf(op.getKey(), 3)}, {"a packed query", features}})) ||
      failed(verifySame(op, "value dim",
                        {{"value", sizeOf(op.getValue(), 3)},
                         {"a packed gradient", valueFeatures}})) ||
      failed(verifySame(op, "number of groups",
                        {{"a packed query", groups},
                         {"a packed gradient", sizeOf(gradient, 1)}})) ||
      failed(verifySame(op, "packed number of queries",
                        {{"a packed query", columns},
                         {"a packed gradient", gradientColumns}})))
    return failure();
  if (!op.getScores())
    return success();
  for (Value scores : {op.getScores(), op.getScoreGradient()})
    if (failed(verifySame(op, "number of keys",
                          {{"key", sizeOf(op.getKey(), 2)},
                           {"scores", sizeOf(scores, 2)}})) ||
        failed(verifySame(op, "packed number of queries",
                          {{"a packed query", groups * columns},
                           {"scores", sizeOf(scores, 3)}})))
      return failure();
  return success();
}

/// Checks that each captured tensor has a sum of its gradient.
static LogicalResult verifySums(OnlineBackwardOp op) {
  if (op.getCaptures().size() != op.getSums().size())
    return op.emitOpError()
           << "expects a sum for each of " << op.getCaptures().size()
           << " captures, but has " << op.getSums().size();
  for (auto [number, capture, sum] :
       llvm::enumerate(op.getCaptures(), op.getSums())) {
    auto type = cast<RankedTensorType>(capture.getType()),
         sumType = cast<RankedTensorType>(sum.getType());
    if (type.getRank() != sumType.getRank() ||
        !isa<FloatType>(type.getElementType()) ||
        !isa<FloatType>(sumType.getElementType()))
      return op.emitOpError()
             << "expects capture " << number
             << " and its sum to be tensors of floats of one rank, but got "
             << type << " and " << sumType;
  }
  return success();
}

LogicalResult OnlineBackwardOp::verify() {
  Value q = getQuery(), g = getGradient(), k = getKey(), v = getValue();
  if (failed(verifyDestinations(*this)))
    return failure();
  Type accumulation = getElementTypeOrSelf(getQueryGradient());
  if (!accumulation.isF32() && !accumulation.isF64())
    return emitOpError("expects the query's gradient to have element type f32 "
                       "or f64, but it is ")
           << getQueryGradient().getType();
  struct Operand {
    StringRef name;
    Value value;
    int64_t rank;
    bool isWide;
  };
  SmallVector<Operand> operands = {
      {"query", q, 4, false},
      {"gradient", g, 4, false},
      {"key", k, 4, false},
      {"value", v, 4, false},
      {"lse", getLse(), 3, false},
      {"delta", getDelta(), 3, true},
      {"the query's gradient", getQueryGradient(), 4, true},
      {"the key's gradient", getKeyGradient(), 4, true},
      {"the value's gradient", getValueGradient(), 4, true}};
  bool isPacked = bool(getPackedQuery());
  if (isPacked) {
    bool isWide = !hasQueryPairs();
    operands.push_back({"a packed query", getPackedQuery(), 4, isWide});
    operands.push_back({"a packed gradient", getPackedGradient(), 4, isWide});
  }
  if (getScores()) {
    operands.push_back({"scores", getScores(), 4, true});
    operands.push_back({"the scores' gradient", getScoreGradient(), 4, true});
  }
  for (const Operand &operand : operands) {
    if (failed(verifyRank(*this, operand.name, operand.value, operand.rank)))
      return failure();
    if (operand.isWide &&
        failed(verifyElementType(*this, operand.name, operand.value,
                                 accumulation)))
      return failure();
    if (!isPacked)
      continue;
    bool hasGroups = operand.value == getPackedQuery() ||
                     operand.value == getPackedGradient();
    if (sizeOf(operand.value, 0) != 1 ||
        (!hasGroups && sizeOf(operand.value, 1) != 1))
      return emitOpError() << "expects one head, but " << operand.name << " is "
                           << operand.value.getType();
  }
  if (failed(verifyLogSumExp(*this, getLse(), accumulation)) ||
      failed(verifyAttentionOperands(*this, q, sizeOf(q, 3), k, v)))
    return failure();
  StringRef names[] = {"batch size", "number of heads", "number of queries"};
  for (auto [dim, name] : llvm::enumerate(names))
    if (failed(verifySame(
            *this, name,
            {{"query", sizeOf(q, dim)},
             {"gradient", sizeOf(g, dim)},
             {"lse", sizeOf(getLse(), dim)},
             {"delta", sizeOf(getDelta(), dim)},
             {"the query's gradient", sizeOf(getQueryGradient(), dim)}})))
      return failure();
  if (failed(
          verifySame(*this, "value dim",
                     {{"gradient", sizeOf(g, 3)}, {"value", sizeOf(v, 3)}})) ||
      failed(verifySame(
          *this, "head dim",
          {{"query", sizeOf(q, 3)},
           {"the query's gradient", sizeOf(getQueryGradient(), 3)}})))
    return failure();
  for (auto [operand, name, value, sum] :
       {std::tuple("key", "the key's gradient", k, Value(getKeyGradient())),
        {"value", "the value's gradient", v, Value(getValueGradient())}})
    if (failed(verifySameShape(*this, operand, value, name, sum)))
      return failure();
  if (failed(verifyPacked(*this)) || failed(verifySums(*this)) ||
      failed(verifyPlace(*this, getAt(), getWhole())) ||
      failed(verifyFinite(*this, "scale", getScale())) ||
      failed(verifyDropout(*this, getDropout(), getSeed(), getOffset())))
    return failure();
  return verifyRegionsOf(*this, accumulation);
}

LogicalResult ParallelAddSliceOp::verify() {
  if (!isa<InParallelOpInterface>((*this)->getParentOp()))
    return emitOpError("expects to be in the terminator of a parallel loop");
  auto source = cast<RankedTensorType>(getSource().getType()),
       dest = cast<RankedTensorType>(getDest().getType());
  if (getStaticOffsets().size() != size_t(dest.getRank()) ||
      getStaticSizes().size() != size_t(dest.getRank()))
    return emitOpError()
           << "expects an offset and a size for each dimension of " << dest;
  auto slice = RankedTensorType::get(getStaticSizes(), dest.getElementType());
  if (!isa<FloatType>(dest.getElementType()) || source != slice)
    return emitOpError() << "expects to add floats of type " << slice
                         << ", but they are " << source;
  return success();
}

LogicalResult FinalizeOp::verify() {
  Value acc = getAcc(), output = getOutput(), lse = getLse();
  if (failed(verifyDestinations(*this)) ||
      failed(verifyRunningValues(*this, acc, getMax(), getSum())) ||
      failed(verifyRank(*this, "output", output, 4)) ||
      failed(verifySameShape(*this, "acc", acc, "output", output)))
    return failure();
  if (!isa<FloatType>(getElementTypeOrSelf(output)))
    return emitOpError("expects output to have a float element type, but it "
                       "is ")
           << output.getType();
  if (getWhen() && !getInitLse())
    return emitOpError("expects `when` only beside `init`");
  if (getInitLse() && failed(verifyInitLse(*this, output, getInitLse(),
                                           getElementTypeOrSelf(acc))))
    return failure();
  if (!lse) {
    if (getRest())
      return emitOpError("expects `rest` only beside `lse`");
    return success();
  }
  if (failed(verifyRank(*this, "lse", lse, 3)) ||
      failed(verifyLogSumExp(*this, lse, getElementTypeOrSelf(acc))) ||
      failed(verifySameShape(*this, "max", getMax(), "lse", lse)))
    return failure();
  Value rest = getRest();
  if (!rest)
    return success();
  Type accumulation = getElementTypeOrSelf(acc);
  if (failed(verifyRank(*this, "rest", rest, 3)) ||
      failed(
          verifyElementType(*this, "lse beside a rest", lse, accumulation)) ||
      failed(verifyElementType(*this, "rest", rest, accumulation)))
    return failure();
  return verifySameShape(*this, "lse", lse, "rest", rest);
}

LogicalResult PackQueryOp::verify() {
  Value query = getQuery(), packed = getPacked();
  if (failed(verifyDestinations(*this)) ||
      failed(verifyRank(*this, "query", query, 4)) ||
      failed(verifyRank(*this, "packed", packed, 4)))
    return failure();
  int64_t features = sizeOf(packed, 2), columns = sizeOf(packed, 3);
  if (makesPairs() &&
      failed(splitPairs(*this, packed, query, features, columns)))
    return failure();
  if (failed(verifySame(
          *this, "batch size",
          {{"query", sizeOf(query, 0)}, {"packed", sizeOf(packed, 0)}})) ||
      failed(verifySame(
          *this, "number of heads",
          {{"query", sizeOf(query, 1)}, {"packed", sizeOf(packed, 1)}})) ||
      failed(verifySame(*this, "head dim",
                        {{"query", sizeOf(query, 3)}, {"packed", features}})))
    return failure();
  Type element = getElementTypeOrSelf(query);
  if (!isa<FloatType>(element))
    return emitOpError("expects query to have a float element type, but it "
                       "is ")
           << query.getType();
  Type packedElement = getElementTypeOrSelf(packed);
  if (makesPairs()) {
    if (!countPairParts(element))
      return emitOpError(
                 "expects a query that is packed in pairs to be in bf16 "
                 "or f16, but it is ")
             << query.getType();
    if (!getFactor().isExactlyValue(1.0))
      return emitOpError("expects no factor for pairs, but it is ")
             << getFactor().convertToDouble();
  } else if (!packedElement.isF64() &&
             failed(
                 verifyElementType(*this, "packed", packed,
                                   fovea::attn::getAccumulationType(element))))
    return failure();
  int64_t queries = sizeOf(query, 2);
  if (ShapedType::isDynamic(columns))
    return emitOpError("expects packed to have a static number of columns, "
                       "but it is ")
           << packed.getType();
  if (!ShapedType::isDynamic(queries) && (queries < 1 || queries > columns))
    return emitOpError() << "expects between 1 and " << columns
                         << " queries, the columns of packed, but got "
                         << queries;
  return verifyFinite(*this, "factor", getFactor());
}
