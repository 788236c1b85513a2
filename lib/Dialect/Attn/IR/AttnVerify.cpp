//===- AttnVerify.cpp - Verifiers of the attn dialect ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegionVerify.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

namespace {
/// One dimension of an operand or result, for messages.
struct NamedSize {
  StringRef name;
  int64_t size;
};
} // namespace

static int64_t sizeOf(Value value, int64_t dim) {
  return cast<ShapedType>(value.getType()).getDimSize(dim);
}

/// Checks that static sizes among `sizes` are equal; `what` names the
/// dimension.
static LogicalResult verifySame(Operation *op, StringRef what,
                                ArrayRef<NamedSize> sizes) {
  const NamedSize *first = nullptr;
  for (const NamedSize &size : sizes) {
    if (ShapedType::isDynamic(size.size))
      continue;
    if (!first)
      first = &size;
    else if (first->size != size.size)
      return op->emitOpError()
             << "expects " << first->name << " and " << size.name
             << " to have the same " << what << ", but they have "
             << first->size << " and " << size.size;
  }
  return success();
}

static LogicalResult verifySameShape(Operation *op, StringRef name0,
                                     Value value0, StringRef name1,
                                     Value value1) {
  auto type0 = cast<ShapedType>(value0.getType());
  auto type1 = cast<ShapedType>(value1.getType());
  if (succeeded(verifyCompatibleShape(type0, type1)))
    return success();
  return op->emitOpError() << "expects " << name0 << " and " << name1
                           << " to have the same shape, but they are " << type0
                           << " and " << type1;
}

static LogicalResult verifyRank(Operation *op, StringRef name, Value value,
                                int64_t rank) {
  auto type = cast<ShapedType>(value.getType());
  if (type.getRank() == rank)
    return success();
  return op->emitOpError() << "expects " << name << " to have rank " << rank
                           << ", but it is " << type;
}

static LogicalResult verifyElementType(Operation *op, StringRef name,
                                       Value value, Type expected) {
  Type type = getElementTypeOrSelf(value);
  if (type == expected)
    return success();
  return op->emitOpError() << "expects " << name << " to have element type "
                           << expected << ", but it is " << value.getType();
}

/// Checks that a log-sum-exp has the type of sums, or one that represents large
/// maxima exactly.
static LogicalResult verifyLogSumExp(Operation *op, Value lse,
                                     Type accumulation) {
  Type type = getElementTypeOrSelf(lse);
  if (accumulation.isF64())
    return verifyElementType(op, "lse", lse, accumulation);
  if (type == accumulation || type.isF64())
    return success();
  return op->emitOpError() << "expects lse to have element type "
                           << accumulation << " or f64, but it is "
                           << lse.getType();
}

/// Checks that `heads` query heads can share `kvHeads` heads of keys and
/// values.
static LogicalResult verifyGroups(Operation *op, int64_t heads,
                                  int64_t kvHeads) {
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(kvHeads))
    return success();
  if (kvHeads == 0 ? heads == 0 : heads % kvHeads == 0)
    return success();
  return op->emitOpError()
         << "expects the number of query heads to be a multiple of the number "
            "of key and value heads, but they are "
         << heads << " and " << kvHeads;
}

/// Checks the requirements of `attn.attention` and `attn.online_attention` on
/// query, key and value; `headDim` is the query's number of features.
static LogicalResult verifyAttentionOperands(Operation *op, Value query,
                                             int64_t headDim, Value key,
                                             Value value) {
  if (failed(verifySame(op, "batch size",
                        {{"query", sizeOf(query, 0)},
                         {"key", sizeOf(key, 0)},
                         {"value", sizeOf(value, 0)}})) ||
      failed(
          verifySame(op, "number of heads",
                     {{"key", sizeOf(key, 1)}, {"value", sizeOf(value, 1)}})) ||
      failed(
          verifySame(op, "number of keys",
                     {{"key", sizeOf(key, 2)}, {"value", sizeOf(value, 2)}})) ||
      failed(verifySame(op, "head dim",
                        {{"query", headDim}, {"key", sizeOf(key, 3)}})))
    return failure();
  return verifyGroups(op, sizeOf(query, 1), sizeOf(key, 1));
}

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

//===----------------------------------------------------------------------===//
// Regions and attributes
//===----------------------------------------------------------------------===//

/// Returns `extra` arguments followed by the coordinates `(b, h, i, j)`.
static SmallVector<Type> withCoordinates(MLIRContext *context,
                                         ArrayRef<Type> extra) {
  SmallVector<Type> types(extra);
  types.append(4, IndexType::get(context));
  return types;
}

static LogicalResult verifyScoreAndMask(Operation *op, Region &score,
                                        Region &mask, Type accumulation) {
  MLIRContext *context = op->getContext();
  if (!score.empty() &&
      failed(verifyRegion(op, "score", score,
                          withCoordinates(context, accumulation),
                          accumulation)))
    return failure();
  if (!mask.empty() &&
      failed(verifyRegion(op, "mask", mask, withCoordinates(context, {}),
                          IntegerType::get(context, 1))))
    return failure();
  return success();
}

static LogicalResult verifyProbability(Operation *op, const APFloat &value) {
  double probability = value.convertToDouble();
  // The condition also rejects NaN.
  if (probability >= 0.0 && probability < 1.0)
    return success();
  return op->emitOpError()
         << "expects a dropout probability in [0, 1), but got " << probability;
}

static LogicalResult verifyDropout(Operation *op,
                                   std::optional<APFloat> probability,
                                   Value seed, Value offset) {
  if (probability.has_value() != bool(seed) || bool(seed) != bool(offset))
    return op->emitOpError("expects a dropout probability, a seed and an "
                           "offset together, or none of them");
  if (probability)
    return verifyProbability(op, *probability);
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

static LogicalResult verifyFinite(Operation *op, StringRef name,
                                  const APFloat &value) {
  if (value.isFinite())
    return success();
  return op->emitOpError() << "expects a finite " << name << ", but got "
                           << value.convertToDouble();
}

/// Checks that the operands and results of the function that was differentiated
/// are among those of the joint function.
static LogicalResult verifyJoint(Operation *op, Attribute attribute) {
  auto counts = dyn_cast<DenseI64ArrayAttr>(attribute);
  if (!counts || counts.size() != 2)
    return op->emitOpError()
           << "expects '" << kJointAttrName
           << "' to be an array of two i64, but it is " << attribute;
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitOpError()
           << "expects '" << kJointAttrName << "' only on a function";
  // Lowered functions have other operands.
  if (!isa<func::FuncOp>(op))
    return success();
  if (counts[0] < 0 || counts[0] > function.getNumArguments() ||
      counts[1] < 0 || counts[1] > function.getNumResults())
    return op->emitOpError()
           << "expects '" << kJointAttrName << "' to count some of "
           << function.getNumArguments() << " operands and "
           << function.getNumResults() << " results, but it is " << attribute;
  return success();
}

LogicalResult AttnDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() == kJointAttrName)
    return verifyJoint(op, attribute.getValue());
  return op->emitOpError() << "has the attribute " << attribute.getName()
                           << ", which the attn dialect does not know";
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

LogicalResult ScoresOp::verify() {
  Value q = getQuery(), k = getKey(), s = getResult();
  if (failed(verifySame(*this, "batch size",
                        {{"query", sizeOf(q, 0)},
                         {"key", sizeOf(k, 0)},
                         {"result", sizeOf(s, 0)}})) ||
      failed(verifySame(*this, "number of heads",
                        {{"query", sizeOf(q, 1)}, {"result", sizeOf(s, 1)}})) ||
      failed(verifySame(*this, "number of queries",
                        {{"query", sizeOf(q, 2)}, {"result", sizeOf(s, 2)}})) ||
      failed(verifySame(*this, "number of keys",
                        {{"key", sizeOf(k, 2)}, {"result", sizeOf(s, 3)}})) ||
      failed(verifySame(*this, "head dim",
                        {{"query", sizeOf(q, 3)}, {"key", sizeOf(k, 3)}})))
    return failure();
  return verifyGroups(*this, sizeOf(q, 1), sizeOf(k, 1));
}

LogicalResult ScaleOp::verify() {
  return verifyFinite(*this, "factor", getFactor());
}

LogicalResult ModifyOp::verify() {
  Type element = getElementTypeOrSelf(getInput());
  return verifyRegion(*this, "modify", getBody(),
                      withCoordinates(getContext(), element), element);
}

LogicalResult MaskOp::verify() {
  return verifyRegion(*this, "mask", getBody(),
                      withCoordinates(getContext(), {}),
                      IntegerType::get(getContext(), 1));
}

LogicalResult SoftmaxOp::verify() {
  return verifySameShape(*this, "input", getInput(), "result", getResult());
}

LogicalResult DropoutOp::verify() {
  return verifyProbability(*this, getProbability());
}

LogicalResult ValuesOp::verify() {
  Value p = getProbabilities(), v = getValue(), o = getResult();
  if (failed(verifySame(*this, "batch size",
                        {{"probabilities", sizeOf(p, 0)},
                         {"value", sizeOf(v, 0)},
                         {"result", sizeOf(o, 0)}})) ||
      failed(verifySame(
          *this, "number of heads",
          {{"probabilities", sizeOf(p, 1)}, {"result", sizeOf(o, 1)}})) ||
      failed(verifySame(
          *this, "number of queries",
          {{"probabilities", sizeOf(p, 2)}, {"result", sizeOf(o, 2)}})) ||
      failed(verifySame(
          *this, "number of keys",
          {{"probabilities", sizeOf(p, 3)}, {"value", sizeOf(v, 2)}})) ||
      failed(verifySame(*this, "value dim",
                        {{"value", sizeOf(v, 3)}, {"result", sizeOf(o, 3)}})))
    return failure();
  return verifyGroups(*this, sizeOf(p, 1), sizeOf(v, 1));
}

LogicalResult LogSumExpOp::verify() {
  auto input = cast<ShapedType>(getInput().getType());
  if (failed(verifyRank(*this, "result", getResult(), input.getRank() - 1)))
    return failure();
  for (int64_t dim = 0; dim < input.getRank() - 1; ++dim)
    if (failed(verifySame(*this, ("size of dimension " + Twine(dim)).str(),
                          {{"input", sizeOf(getInput(), dim)},
                           {"result", sizeOf(getResult(), dim)}})))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Ops for gradients
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxBackwardOp::verify() {
  if (failed(verifySameShape(*this, "probabilities", getProbabilities(),
                             "gradient", getGradient())))
    return failure();
  return verifySameShape(*this, "probabilities", getProbabilities(), "result",
                         getResult());
}

LogicalResult SumQueriesOp::verify() {
  Value w = getWeights(), x = getInput(), r = getResult();
  if (failed(verifySame(*this, "batch size",
                        {{"weights", sizeOf(w, 0)},
                         {"input", sizeOf(x, 0)},
                         {"result", sizeOf(r, 0)}})) ||
      failed(
          verifySame(*this, "number of heads",
                     {{"weights", sizeOf(w, 1)}, {"input", sizeOf(x, 1)}})) ||
      failed(
          verifySame(*this, "number of queries",
                     {{"weights", sizeOf(w, 2)}, {"input", sizeOf(x, 2)}})) ||
      failed(
          verifySame(*this, "number of keys",
                     {{"weights", sizeOf(w, 3)}, {"result", sizeOf(r, 2)}})) ||
      failed(verifySame(*this, "head dim",
                        {{"input", sizeOf(x, 3)}, {"result", sizeOf(r, 3)}})))
    return failure();
  bool dynamic = ShapedType::isDynamic(sizeOf(r, 1));
  if (dynamic != bool(getHeads()))
    return emitOpError() << "expects `heads` exactly where the result's number "
                            "of heads is dynamic, but the result is "
                         << r.getType();
  return verifyGroups(*this, sizeOf(w, 1), sizeOf(r, 1));
}

//===----------------------------------------------------------------------===//
// The work around attention
//===----------------------------------------------------------------------===//

/// Checks that a normalisation's parameter has the size of the last dimension.
static LogicalResult verifyParameter(Operation *op, StringRef name,
                                     Value parameter, Value input) {
  if (!parameter)
    return success();
  int64_t last = cast<ShapedType>(input.getType()).getRank() - 1;
  return verifySame(
      op, "size of the last dimension",
      {{"input", sizeOf(input, last)}, {name, sizeOf(parameter, 0)}});
}

static LogicalResult verifyEpsilon(Operation *op, const APFloat &epsilon) {
  if (epsilon.isFinite() && !epsilon.isNegative())
    return success();
  return op->emitOpError() << "expects a finite epsilon of at least 0, but got "
                           << epsilon.convertToDouble();
}

LogicalResult LayerNormOp::verify() {
  if (failed(verifyParameter(*this, "weight", getWeight(), getInput())) ||
      failed(verifyParameter(*this, "bias", getBias(), getInput())))
    return failure();
  return verifyEpsilon(*this, getEpsilon());
}

LogicalResult RMSNormOp::verify() {
  if (failed(verifyParameter(*this, "weight", getWeight(), getInput())))
    return failure();
  return verifyEpsilon(*this, getEpsilon());
}

LogicalResult RopeOp::verify() {
  int64_t headDim = sizeOf(getInput(), 3);
  if (!ShapedType::isDynamic(headDim) && headDim % 2 != 0)
    return emitOpError() << "expects an even head dim, but it is " << headDim;
  int64_t pairs = ShapedType::isDynamic(headDim) ? headDim : headDim / 2;
  if (failed(verifySame(*this, "number of positions",
                        {{"input", sizeOf(getInput(), 2)},
                         {"cos", sizeOf(getCos(), 0)},
                         {"sin", sizeOf(getSin(), 0)}})))
    return failure();
  return verifySame(*this, "number of pairs",
                    {{"input", pairs},
                     {"cos", sizeOf(getCos(), 1)},
                     {"sin", sizeOf(getSin(), 1)}});
}

LogicalResult ResidualAddOp::verify() {
  return verifySameShape(*this, "input", getInput(), "residual", getResidual());
}

LogicalResult ElementwiseOp::verify() {
  if (getInputs().empty())
    return emitOpError("expects at least one input");
  SmallVector<Type> arguments;
  for (Value input : getInputs()) {
    if (failed(verifySameShape(*this, "an input", input, "the result",
                               getResult())))
      return failure();
    arguments.push_back(getElementTypeOrSelf(input));
  }
  return verifyRegion(*this, "elementwise", getBody(), arguments,
                      getElementTypeOrSelf(getResult()));
}

//===----------------------------------------------------------------------===//
// Fused
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::verify() {
  Value q = getQuery(), v = getValue(), o = getOutput();
  if (failed(verifyAttentionOperands(*this, q, sizeOf(q, 3), getKey(), v)) ||
      failed(verifySame(*this, "batch size",
                        {{"query", sizeOf(q, 0)}, {"output", sizeOf(o, 0)}})) ||
      failed(verifySame(*this, "number of heads",
                        {{"query", sizeOf(q, 1)}, {"output", sizeOf(o, 1)}})) ||
      failed(verifySame(*this, "number of queries",
                        {{"query", sizeOf(q, 2)}, {"output", sizeOf(o, 2)}})) ||
      failed(verifySame(*this, "value dim",
                        {{"value", sizeOf(v, 3)}, {"output", sizeOf(o, 3)}})))
    return failure();
  Type accumulation = getAccumulationType();
  if (Value lse = getLse()) {
    if (failed(verifyLogSumExp(*this, lse, accumulation)))
      return failure();
    StringRef names[] = {"batch size", "number of heads", "number of queries"};
    for (auto [dim, name] : llvm::enumerate(names))
      if (failed(verifySame(
              *this, name,
              {{"query", sizeOf(q, dim)}, {"lse", sizeOf(lse, dim)}})))
        return failure();
  }
  if (getInitOutput() && failed(verifySameShape(*this, "the initial output",
                                                getInitOutput(), "output", o)))
    return failure();
  if (getInitLse() &&
      failed(verifyInitLse(*this, o, getInitLse(), accumulation)))
    return failure();
  if (failed(verifyFinite(*this, "scale", getScale())) ||
      failed(verifyDropout(*this, getDropout(), getSeed(), getOffset())))
    return failure();
  return verifyScoreAndMask(*this, getScore(), getMask(), accumulation);
}

LogicalResult AttentionBackwardOp::verify() {
  Value q = getQuery(), v = getValue(), g = getGradient(),
        p = getProbabilities();
  if (failed(verifyAttentionOperands(*this, q, sizeOf(q, 3), getKey(), v)))
    return failure();
  StringRef rowNames[] = {"batch size", "number of heads", "number of queries"};
  for (auto [dim, name] : llvm::enumerate(rowNames)) {
    SmallVector<NamedSize> sizes = {{"query", sizeOf(q, dim)},
                                    {"gradient", sizeOf(g, dim)}};
    for (auto [rows, value] : {std::pair<StringRef, Value>{"probabilities", p},
                               {"lse", getLse()},
                               {"delta", getDelta()},
                               {"lse_gradient", getLseGradient()}})
      if (value)
        sizes.push_back({rows, sizeOf(value, dim)});
    if (failed(verifySame(*this, name, sizes)))
      return failure();
  }
  if (failed(verifySame(*this, "value dim",
                        {{"value", sizeOf(v, 3)}, {"gradient", sizeOf(g, 3)}})))
    return failure();
  if (bool(p) == bool(getLse()))
    return emitOpError("expects either probabilities or statistics, but has ")
           << (p ? "both" : "neither");
  if (p && failed(verifySame(*this, "number of keys",
                             {{"key", sizeOf(getKey(), 2)},
                              {"probabilities", sizeOf(p, 3)}})))
    return failure();
  if (getLseGradient() && !p)
    return emitOpError("expects `lse_gradient` only with probabilities; delta "
                       "has it otherwise");
  Type accumulation = getAccumulationType();
  if (getLse() && failed(verifyLogSumExp(*this, getLse(), accumulation)))
    return failure();
  for (auto [name, value] :
       {std::pair<StringRef, Value>{"delta", getDelta()},
        std::pair<StringRef, Value>{"lse_gradient", getLseGradient()}})
    if (value && failed(verifyElementType(*this, name, value, accumulation)))
      return failure();
  if (getCaptures().size() != getCaptureGradients().size())
    return emitOpError() << "expects a result for each of "
                         << getCaptures().size() << " captures, but has "
                         << getCaptureGradients().size();
  if (!getCaptures().empty() && getScore().empty())
    return emitOpError("expects captures only with a score region");
  SmallVector<Value> primals = {q, getKey(), v};
  llvm::append_range(primals, getCaptures());
  for (auto [number, primal, result] : llvm::enumerate(primals, getResults())) {
    static constexpr StringLiteral names[] = {"query", "key", "value"};
    std::string operand = number < 3 ? names[number].str()
                                     : "capture " + std::to_string(number - 3);
    if (failed(verifySameShape(*this, operand, primal, "its gradient", result)))
      return failure();
    for (Value value : {primal, Value(result)})
      if (!isa<FloatType>(getElementTypeOrSelf(value)))
        return emitOpError()
               << "expects " << operand
               << " and its gradient to have a float element type, but got "
               << value.getType();
  }
  if (getSchedule() && p)
    return emitOpError("expects a schedule only with statistics");
  if (getSchedule() && getSchedule()->getSplit() != 1)
    return emitOpError("expects a schedule that does not split the keys, but "
                       "it has split = ")
           << getSchedule()->getSplit();
  if (failed(verifyFinite(*this, "scale", getScale())) ||
      failed(verifyDropout(*this, getDropout(), getSeed(), getOffset())))
    return failure();
  return verifyScoreAndMask(*this, getScore(), getMask(), accumulation);
}

LogicalResult MergeOp::verify() {
  StringRef names[] = {"number of parts", "batch size", "number of heads",
                       "number of queries", "head dim"};
  for (auto [dim, name] : llvm::enumerate(names)) {
    SmallVector<NamedSize> sizes = {{"parts", sizeOf(getParts(), dim)}};
    if (dim < 4)
      sizes.push_back({"part_lse", sizeOf(getPartLse(), dim)});
    if (dim > 0)
      sizes.push_back({"output", sizeOf(getOutput(), dim - 1)});
    if (dim > 0 && dim < 4 && getLse())
      sizes.push_back({"lse", sizeOf(getLse(), dim - 1)});
    if (failed(verifySame(*this, name, sizes)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Online
//===----------------------------------------------------------------------===//

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
    if (failed(splitPairs(op, query, query, features, columns)) ||
        failed(splitPairs(op, gradient, query, valueFeatures, gradientColumns)))
      return failure();
    // Queries, too, are added up in pairs.
    if (columns % 32 != 0)
      return op.emitOpError("expects groups of packed pairs to have a multiple "
                            "of 32 queries, but they have ")
             << columns;
    for (auto [name, value] :
         {std::pair<StringRef, Value>{"query", op.getQuery()},
          {"gradient", op.getGradient()},
          {"a packed gradient", gradient},
          {"key", op.getKey()},
          {"value", op.getValue()}})
      if (failed(
              verifyElementType(op, name, value, getElementTypeOrSelf(query))))
        return failure();
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
  if (!lse)
    return success();
  if (failed(verifyRank(*this, "lse", lse, 3)) ||
      failed(verifyLogSumExp(*this, lse, getElementTypeOrSelf(acc))))
    return failure();
  return verifySameShape(*this, "max", getMax(), "lse", lse);
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
