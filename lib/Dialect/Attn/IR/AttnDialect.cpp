//===- AttnDialect.cpp - The attn dialect ---------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "mlir/Transforms/RegionUtils.h"

#include <numbers>

using namespace mlir;
using namespace fovea::attn;

#include "fovea/Dialect/Attn/IR/AttnDialect.cpp.inc"

/// Parses the bare keyword of an update.
static ParseResult parseUpdate(OpAsmParser &parser, UpdateAttr &update) {
  auto value = FieldParser<Update>::parse(parser);
  if (failed(value))
    return failure();
  update = UpdateAttr::get(parser.getContext(), *value);
  return success();
}

static void printUpdate(OpAsmPrinter &printer, Operation *, UpdateAttr update) {
  printer << stringifyUpdate(update.getValue());
}

using OptionalOperand = std::optional<OpAsmParser::UnresolvedOperand>;

/// Parses `init(%output, %lse : types)` or `init(%lse : type)`, if it is there.
static ParseResult parseInit(OpAsmParser &parser, OptionalOperand &output,
                             Type &outputType, OptionalOperand &lse,
                             Type &lseType) {
  if (failed(parser.parseOptionalKeyword("init")))
    return success();
  if (parser.parseLParen() || parser.parseOperand(lse.emplace()))
    return failure();
  bool hasOutput = succeeded(parser.parseOptionalComma());
  if (hasOutput) {
    output = lse;
    if (parser.parseOperand(*lse))
      return failure();
  }
  if (parser.parseColon() ||
      (hasOutput && (parser.parseType(outputType) || parser.parseComma())) ||
      parser.parseType(lseType) || parser.parseRParen())
    return failure();
  return success();
}

static void printInit(OpAsmPrinter &printer, Operation *, Value output,
                      Type outputType, Value lse, Type lseType) {
  if (!lse)
    return;
  printer << "init(";
  if (output)
    printer << output << ", ";
  printer << lse << " : ";
  if (output)
    printer << outputType << ", ";
  printer << lseType << ")";
}

#define GET_OP_CLASSES
#include "fovea/Dialect/Attn/IR/AttnOps.cpp.inc"

namespace {
/// Ops of the dialect have the same meaning wherever they are inlined.
struct AttnInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void AttnDialect::initialize() {
  registerAttributes();
  addInterfaces<AttnInliner>();
  addOperations<
#define GET_OP_LIST
#include "fovea/Dialect/Attn/IR/AttnOps.cpp.inc"
      >();
  attachTilingInterfaces();
}

FloatType fovea::attn::getAccumulationType(Type type) {
  if (type.isF64())
    return Float64Type::get(type.getContext());
  return Float32Type::get(type.getContext());
}

SmallVector<Value> fovea::attn::getCaptures(Operation *op) {
  SetVector<Value> captures;
  getUsedValuesDefinedAbove(op->getRegions(), captures);
  return captures.takeVector();
}

void fovea::attn::eraseUnused(Operation *op) {
  // A set: an op that several others use waits once.
  SetVector<Operation *> worklist;
  worklist.insert(op);
  while (!worklist.empty()) {
    Operation *next = worklist.pop_back_val();
    if (!isOpTriviallyDead(next))
      continue;
    for (Value operand : next->getOperands())
      if (Operation *defining = operand.getDefiningOp())
        worklist.insert(defining);
    next->erase();
  }
}

bool fovea::attn::isSameSize(OpFoldResult a, OpFoldResult b) {
  if (isEqualConstantIntOrValue(a, b))
    return true;
  auto dimOf =
      [](OpFoldResult size) -> std::pair<Value, std::optional<int64_t>> {
    auto value = dyn_cast<Value>(size);
    if (!value)
      return {};
    if (auto dim = value.getDefiningOp<tensor::DimOp>())
      return {dim.getSource(), dim.getConstantIndex()};
    if (auto dim = value.getDefiningOp<memref::DimOp>())
      return {dim.getSource(), dim.getConstantIndex()};
    return {};
  };
  if (dimOf(a).second)
    return dimOf(a) == dimOf(b);
  // The same arithmetic on such sizes.
  auto left = dyn_cast<Value>(a), right = dyn_cast<Value>(b);
  Operation *first = left ? left.getDefiningOp() : nullptr,
            *second = right ? right.getDefiningOp() : nullptr;
  return first && second && isMemoryEffectFree(first) &&
         OperationEquivalence::isEquivalentTo(
             first, second,
             [](Value x, Value y) {
               return success(isSameSize(OpFoldResult(x), OpFoldResult(y)));
             },
             /*markEquivalent=*/nullptr,
             OperationEquivalence::IgnoreLocations) &&
         cast<OpResult>(left).getResultNumber() ==
             cast<OpResult>(right).getResultNumber();
}

Value fovea::attn::getShaped(Value tensor) {
  while (auto op = tensor.getDefiningOp<DestinationStyleOpInterface>())
    tensor = op.getTiedOpOperand(cast<OpResult>(tensor))->get();
  return tensor;
}

OpFoldResult fovea::attn::getHeadsPerKVHead(OpBuilder &builder, Location loc,
                                            OpFoldResult heads,
                                            OpFoldResult kvHeads) {
  std::optional<int64_t> staticHeads = getConstantIntValue(heads),
                         staticKVHeads = getConstantIntValue(kvHeads);
  if (staticKVHeads == 1)
    return heads;
  if (isSameSize(heads, kvHeads) || staticKVHeads == 0)
    return builder.getIndexAttr(1);
  if (staticHeads && staticKVHeads)
    return builder.getIndexAttr(*staticHeads / *staticKVHeads);
  // Without heads there is no group, but no division by zero either.
  Value divisor = builder.createOrFold<arith::MaxSIOp>(
      loc, getValueOrCreateConstantIndexOp(builder, loc, kvHeads),
      arith::ConstantIndexOp::create(builder, loc, 1));
  return builder.createOrFold<arith::DivUIOp>(
      loc, getValueOrCreateConstantIndexOp(builder, loc, heads), divisor);
}

double fovea::attn::getPackingFactor(FloatAttr scale, Region &score) {
  double factor = scale.getValueAsDouble();
  return score.empty() ? factor * std::numbers::log2e : factor;
}

int64_t fovea::attn::countPairParts(Type element) {
  if (element.isBF16())
    return 1;
  return element.isF16() ? 2 : 0;
}

int64_t fovea::attn::countPairParts(Type query, Type key, Type value) {
  Type element = getElementTypeOrSelf(query);
  auto fits = [&](Type operand, int64_t multiple) {
    auto type = cast<ShapedType>(operand);
    int64_t features = type.getShape().back();
    return type.getElementType() == element &&
           !ShapedType::isDynamic(features) && features > 0 &&
           features % multiple == 0;
  };
  return fits(query, 32) && fits(key, 32) && fits(value, 16)
             ? countPairParts(element)
             : 0;
}

Value fovea::attn::expandShape(OpBuilder &builder, Location loc, Value tensor,
                               ArrayRef<ReassociationIndices> groups,
                               ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape, collapsed;
  SmallVector<OpFoldResult> known(sizes);
  for (OpFoldResult &size : known) {
    std::optional<int64_t> constant = getConstantIntValue(size);
    shape.push_back(constant.value_or(ShapedType::kDynamic));
    if (constant)
      size = builder.getIndexAttr(*constant);
  }
  for (const ReassociationIndices &group : groups) {
    int64_t product = 1;
    for (int64_t dim : group)
      product =
          ShapedType::isDynamic(shape[dim]) || ShapedType::isDynamic(product)
              ? ShapedType::kDynamic
              : product * shape[dim];
    collapsed.push_back(product);
  }
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getShape() != ArrayRef(collapsed))
    tensor =
        tensor::CastOp::create(builder, loc, type.clone(collapsed), tensor);
  return tensor::ExpandShapeOp::create(builder, loc, type.clone(shape), tensor,
                                       groups, known);
}

/// Returns the accumulation type of attention on these operands.
static FloatType getTypeOfSums(ValueRange operands) {
  for (Value operand : operands)
    if (getElementTypeOrSelf(operand).isF64())
      return Float64Type::get(operand.getContext());
  return Float32Type::get(operands.front().getContext());
}

FloatType AttentionOp::getAccumulationType() {
  return getTypeOfSums({getQuery(), getKey(), getValue()});
}

FloatType AttentionBackwardOp::getAccumulationType() {
  return getTypeOfSums({getQuery(), getKey(), getValue()});
}

void AttentionOp::decompose(SmallVectorImpl<Operation *> &graph) {
  OpBuilder builder(*this);
  Location loc = getLoc();
  auto queryType = cast<RankedTensorType>(getQuery().getType());
  auto keyType = cast<RankedTensorType>(getKey().getType());
  auto scoreType =
      RankedTensorType::get({queryType.getDimSize(0), queryType.getDimSize(1),
                             queryType.getDimSize(2), keyType.getDimSize(2)},
                            getAccumulationType());
  auto add = [&](Operation *created) {
    graph.push_back(created);
    return created->getResult(0);
  };
  Value value =
      add(ScoresOp::create(builder, loc, scoreType, getQuery(), getKey()));
  if (!getScale().isExactlyValue(1.0))
    value =
        add(ScaleOp::create(builder, loc, scoreType, value, getScaleAttr()));
  if (!getScore().empty()) {
    auto modify = ModifyOp::create(builder, loc, scoreType, value);
    modify.getBody().takeBody(getScore());
    value = add(modify);
  }
  if (!getMask().empty()) {
    auto mask = MaskOp::create(builder, loc, scoreType, value);
    mask.getBody().takeBody(getMask());
    value = add(mask);
  }
  Value scores = value;
  value = add(SoftmaxOp::create(builder, loc, scoreType, value));
  if (getDropoutAttr())
    value = add(DropoutOp::create(builder, loc, scoreType, value,
                                  getDropoutAttr(), getSeed(), getOffset()));
  auto outputType = cast<RankedTensorType>(getOutput().getType());
  if (getInitLse()) {
    // The rounding comes after the states are merged.
    value = add(ValuesOp::create(builder, loc,
                                 outputType.clone(getAccumulationType()), value,
                                 getValue()));
    auto rowType = RankedTensorType::get(outputType.getShape().drop_back(),
                                         getElementTypeOrSelf(getInitLse()));
    auto lseType = getLse() ? cast<RankedTensorType>(getLse().getType())
                            : RankedTensorType();
    if (lseType && lseType.getElementType().isF64())
      rowType = lseType;
    Value lse = add(LogSumExpOp::create(builder, loc, rowType, scores));
    SmallVector<Value> merged =
        mergeStates(builder, loc, {value, lse}, {getInitOutput(), getInitLse()},
                    outputType, lseType);
    replaceAllUsesWith(merged);
    erase();
    return;
  }
  value = add(ValuesOp::create(builder, loc, outputType, value, getValue()));
  getOutput().replaceAllUsesWith(value);
  if (getLse())
    getLse().replaceAllUsesWith(
        add(LogSumExpOp::create(builder, loc, getLse().getType(), scores)));
  erase();
}

FloatType OnlineAttentionOp::getAccumulationType() {
  return cast<FloatType>(getElementTypeOrSelf(getAcc()));
}

FloatType OnlineBackwardOp::getAccumulationType() {
  return cast<FloatType>(getElementTypeOrSelf(getQueryGradient()));
}

bool OnlineAttentionOp::updatesMax() {
  return llvm::is_contained({Update::All, Update::Max, Update::MaxSum},
                            getUpdate());
}

bool OnlineAttentionOp::updatesSum() {
  return llvm::is_contained({Update::All, Update::Sum, Update::MaxSum},
                            getUpdate());
}

bool OnlineAttentionOp::updatesAcc() {
  return llvm::is_contained({Update::All, Update::Acc}, getUpdate());
}

//===----------------------------------------------------------------------===//
// Destinations and effects
//===----------------------------------------------------------------------===//

MutableOperandRange OnlineAttentionOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(), getAccMutable().getOperandNumber(),
                             3);
}

MutableOperandRange FinalizeOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(),
                             getOutputMutable().getOperandNumber(),
                             1 + (getLse() ? 1 : 0) + (getRest() ? 1 : 0));
}

MutableOperandRange OnlineBackwardOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(),
                             getQueryGradientMutable().getOperandNumber(),
                             3 + getSums().size() + (getScores() ? 2 : 0));
}

MutableOperandRange PackQueryOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(),
                             getPackedMutable().getOperandNumber(), 1);
}

void ParallelAddSliceOp::build(OpBuilder &builder, OperationState &state,
                               Value source, Value dest,
                               ArrayRef<OpFoldResult> offsets,
                               ArrayRef<OpFoldResult> sizes) {
  SmallVector<Value> dynamicOffsets, dynamicSizes;
  SmallVector<int64_t> staticOffsets, staticSizes;
  dispatchIndexOpFoldResults(offsets, dynamicOffsets, staticOffsets);
  dispatchIndexOpFoldResults(sizes, dynamicSizes, staticSizes);
  build(builder, state, source, dest, dynamicOffsets, dynamicSizes,
        staticOffsets, staticSizes);
}

MutableOperandRange ParallelAddSliceOp::getUpdatedDestinations() {
  return getDestMutable();
}

Operation *ParallelAddSliceOp::getIteratingParent() {
  return getOperation()->getParentOp()->getParentOp();
}

/// On memrefs a destination-passing op reads its operands and writes its
/// destinations; on tensors it has no effect. The op also reads everything that
/// its regions load.
static void
addEffects(DestinationStyleOpInterface op,
           SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
  for (Region &region : op->getRegions())
    region.walk(
        [&](MemoryEffectOpInterface nested) { nested.getEffects(effects); });
}

void OnlineAttentionOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, effects);
}

void FinalizeOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, effects);
}

void OnlineBackwardOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, effects);
}

void PackQueryOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, effects);
}

//===----------------------------------------------------------------------===//
// Shapes of results
//===----------------------------------------------------------------------===//

/// Returns the sizes of `type`; dynamic ones are taken from a dimension of a
/// source.
static SmallVector<OpFoldResult>
mixedSizes(OpBuilder &builder, Location loc, ShapedType type,
           ArrayRef<std::pair<Value, int64_t>> sources) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, source] : llvm::enumerate(sources)) {
    if (type.isDynamicDim(dim))
      sizes.push_back(
          tensor::getMixedSize(builder, loc, source.first, source.second));
    else
      sizes.push_back(builder.getIndexAttr(type.getDimSize(dim)));
  }
  return sizes;
}

LogicalResult ScoresOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  Value q = getQuery(), k = getKey();
  shapes.push_back(mixedSizes(builder, getLoc(), getType(),
                              {{q, 0}, {q, 1}, {q, 2}, {k, 2}}));
  return success();
}

LogicalResult ValuesOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  Value p = getProbabilities(), v = getValue();
  shapes.push_back(mixedSizes(builder, getLoc(), getType(),
                              {{p, 0}, {p, 1}, {p, 2}, {v, 3}}));
  return success();
}

LogicalResult
LogSumExpOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, getLoc(), getInput());
  sizes.pop_back();
  shapes.push_back(std::move(sizes));
  return success();
}

LogicalResult
SumQueriesOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  Value w = getWeights(), x = getInput();
  SmallVector<OpFoldResult> sizes = mixedSizes(
      builder, getLoc(), getType(), {{w, 0}, {w, 1}, {w, 3}, {x, 3}});
  if (getHeads())
    sizes[1] = getHeads();
  shapes.push_back(std::move(sizes));
  return success();
}

LogicalResult
AttentionOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  Value q = getQuery(), v = getValue();
  shapes.push_back(mixedSizes(builder, getLoc(), getOutput().getType(),
                              {{q, 0}, {q, 1}, {q, 2}, {v, 3}}));
  if (getLse())
    shapes.push_back(mixedSizes(builder, getLoc(), getLse().getType(),
                                {{q, 0}, {q, 1}, {q, 2}}));
  return success();
}

LogicalResult
AttentionBackwardOp::reifyResultShapes(OpBuilder &builder,
                                       ReifiedRankedShapedTypeDims &shapes) {
  SmallVector<Value> primals = {getQuery(), getKey(), getValue()};
  llvm::append_range(primals, getCaptures());
  for (Value primal : primals)
    shapes.push_back(tensor::getMixedSizes(builder, getLoc(), primal));
  return success();
}

LogicalResult MergeOp::reifyResultShapes(OpBuilder &builder,
                                         ReifiedRankedShapedTypeDims &shapes) {
  Value parts = getParts();
  shapes.push_back(
      mixedSizes(builder, getLoc(), getOutput().getType(),
                 {{parts, 1}, {parts, 2}, {parts, 3}, {parts, 4}}));
  if (getLse())
    shapes.push_back(mixedSizes(builder, getLoc(), getLse().getType(),
                                {{parts, 1}, {parts, 2}, {parts, 3}}));
  return success();
}

/// Returns the shapes of a destination-passing op's results, which are those of
/// its destinations.
static LogicalResult reifyFromInits(OpBuilder &builder,
                                    DestinationStyleOpInterface op,
                                    ReifiedRankedShapedTypeDims &shapes) {
  if (!op.hasPureTensorSemantics())
    return failure();
  for (Value init : op.getDpsInits())
    shapes.push_back(tensor::getMixedSizes(builder, op.getLoc(), init));
  return success();
}

LogicalResult
OnlineAttentionOp::reifyResultShapes(OpBuilder &builder,
                                     ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(builder, *this, shapes);
}

LogicalResult
FinalizeOp::reifyResultShapes(OpBuilder &builder,
                              ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(builder, *this, shapes);
}

LogicalResult
OnlineBackwardOp::reifyResultShapes(OpBuilder &builder,
                                    ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(builder, *this, shapes);
}

LogicalResult
PackQueryOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(builder, *this, shapes);
}
