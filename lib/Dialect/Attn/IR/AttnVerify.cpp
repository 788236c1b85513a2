//===- AttnVerify.cpp - Verifiers of the attn dialect ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verify.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

LogicalResult fovea::attn::verifySame(Operation *op, StringRef what,
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

LogicalResult fovea::attn::verifySameShape(Operation *op, StringRef name0,
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

LogicalResult fovea::attn::verifyRank(Operation *op, StringRef name,
                                      Value value, int64_t rank) {
  auto type = cast<ShapedType>(value.getType());
  if (type.getRank() == rank)
    return success();
  return op->emitOpError() << "expects " << name << " to have rank " << rank
                           << ", but it is " << type;
}

LogicalResult fovea::attn::verifyElementType(Operation *op, StringRef name,
                                             Value value, Type expected) {
  Type type = getElementTypeOrSelf(value);
  if (type == expected)
    return success();
  return op->emitOpError() << "expects " << name << " to have element type "
                           << expected << ", but it is " << value.getType();
}

LogicalResult fovea::attn::verifyLogSumExp(Operation *op, Value lse,
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

LogicalResult fovea::attn::verifyAttentionOperands(Operation *op, Value query,
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

//===----------------------------------------------------------------------===//
// Regions and attributes
//===----------------------------------------------------------------------===//

SmallVector<Type> fovea::attn::withCoordinates(MLIRContext *context,
                                               ArrayRef<Type> extra) {
  SmallVector<Type> types(extra);
  types.append(4, IndexType::get(context));
  return types;
}

LogicalResult fovea::attn::verifyScoreAndMask(Operation *op, Region &score,
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

LogicalResult fovea::attn::verifyDropout(Operation *op,
                                         std::optional<APFloat> probability,
                                         Value seed, Value offset) {
  if (probability.has_value() != bool(seed) || bool(seed) != bool(offset))
    return op->emitOpError("expects a dropout probability, a seed and an "
                           "offset together, or none of them");
  if (probability)
    return verifyProbability(op, *probability);
  return success();
}

LogicalResult fovea::attn::verifyFinite(Operation *op, StringRef name,
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

static LogicalResult verifySchedules(Operation *op, Attribute attribute) {
  auto schedules = dyn_cast<ArrayAttr>(attribute);
  if (!schedules ||
      !llvm::all_of(schedules, llvm::IsaPred<ScheduleAttr, UnitAttr>))
    return op->emitOpError()
           << "expects '" << kSchedulesAttrName
           << "' to be an array of #attn.schedule or unit, but it is "
           << attribute;
  if (!isa<ModuleOp>(op))
    return op->emitOpError()
           << "expects '" << kSchedulesAttrName << "' only on a module";
  return success();
}

LogicalResult AttnDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() == kJointAttrName)
    return verifyJoint(op, attribute.getValue());
  if (attribute.getName() == kSchedulesAttrName)
    return verifySchedules(op, attribute.getValue());
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
  if (auto size = static_cast<int64_t>(getSplitSize().value_or(64));
      size < 64 || size % 64)
    return emitOpError("expects split_size to be a positive multiple of 64, "
                       "but it is ")
           << size;
  if (getSplitSize() && getSchedule() &&
      getSchedule()->getSplitSize() != static_cast<int64_t>(*getSplitSize()))
    return emitOpError("expects a schedule with split = fixed(")
           << static_cast<int64_t>(*getSplitSize()) << "), but it is "
           << *getSchedule();
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
  if (getSchedule() && getSchedule()->isSplit())
    return emitOpError("expects a schedule that does not split the keys, but "
                       "it is ")
           << *getSchedule();
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
