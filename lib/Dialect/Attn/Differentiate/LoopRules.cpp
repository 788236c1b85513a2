//===- LoopRules.cpp - Gradients of scalar programs in loops --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops of linalg, attn.modify and attn.elementwise have the same form here:
// loops around a block of scalar ops. Every iteration reads one element of each
// operand, and any elements of captured tensors. The same kind of sum is built
// for each of these: over the loops that do not select the element.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Differentiate/Backward.h"

#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/Differentiate/ScalarTape.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

namespace {
/// Loops around a block of scalar ops, one value of which is differentiated.
struct LoopProgram {
  Operation *op;
  LoopNest nest;
  Block *body;
  /// For each input, the argument of the body that is its element.
  SmallVector<Value> elements;
  /// The arguments of the body that are the indices of loops 0, 1, ...
  SmallVector<Value> indices;
  /// The value, and the position of its element in the op's result.
  Value value;
  AffineMap resultMap;
  /// The gradient of the op's result; the last input of the nests built.
  Value cotangent;
  /// Computes the cotangent of `value` from an element's cotangent, where they
  /// differ: from the element, the replayed value and more inputs.
  std::function<Value(OpBuilder &, Location, Value, Value, ValueRange)> weigh;
  SmallVector<Value> weighInputs;
  SmallVector<AffineMap> weighMaps;
};

/// An operand that a program reads and whose gradient is requested: an input, a
/// captured tensor at one place of the body, or a captured number.
struct Variable {
  std::optional<unsigned> input;
  tensor::ExtractOp extract;
  Value number;
};
} // namespace

/// Replays the program in an iteration of other loops and pulls the cotangent
/// back to `variable`. Afterwards `mapping` gives the replayed values of the
/// body.
static Value emitGradient(LoopProgram &program, const Variable &variable,
                          OpBuilder &b, Location l, IndexFn index,
                          ValueRange elements, IRMapping &mapping) {
  unsigned count = program.elements.size();
  mapping.map(program.elements, elements.take_front(count));
  for (auto [loop, argument] : llvm::enumerate(program.indices))
    if (!argument.use_empty())
      mapping.map(argument, index(loop));
  ScalarTape tape(b, l);
  auto substitute = [&](Operation *op) -> Value {
    auto indexOp = dyn_cast<linalg::IndexOp>(op);
    return indexOp ? index(indexOp.getDim()) : Value();
  };
  tensor::ExtractOp extract = variable.extract;
  if (extract)
    for (Value at : extract.getIndices())
      tape.replay(*program.body, at, mapping, substitute);
  Value value = tape.replay(*program.body, program.value, mapping, substitute);
  Value leaf = variable.number;
  if (variable.input)
    leaf = elements[*variable.input];
  else if (extract)
    leaf = mapping.lookupOrDefault(extract.getResult());
  Value cotangent = tape.widen(elements[count]);
  // In an f64 graph, the terms of a narrower variable are not rounded.
  FloatType type = getAccumulationType(leaf.getType());
  if (cotangent.getType().isF64())
    type = cast<FloatType>(cotangent.getType());
  tape.addVariable(leaf, type);
  if (program.weigh)
    cotangent =
        program.weigh(b, l, cotangent, value, elements.drop_front(count + 1));
  if (failed(tape.pull(value, cotangent)))
    return Value();
  Value gradient = tape.getGradient(leaf);
  auto number = [&](Type wanted) -> Value {
    return arith::ConstantOp::create(
        b, l, b.getFloatAttr(cast<FloatType>(wanted), 0.0));
  };
  // A masked score has no gradient, though its derivative may be NaN.
  if (gradient && gradient != cotangent && isa<ModifyOp>(program.op)) {
    Value isMasked =
        arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, cotangent,
                              number(cotangent.getType()));
    return arith::SelectOp::create(b, l, isMasked, number(gradient.getType()),
                                   gradient);
  }
  return gradient ? gradient : number(type);
}

/// Returns the nest in which gradients are summed: the program's inputs, the
/// cotangent, and the inputs that weigh it.
static LoopNest makeNest(const LoopProgram &program) {
  LoopNest nest = program.nest;
  nest.addInput(program.cotangent, program.resultMap);
  for (auto [input, map] :
       llvm::zip_equal(program.weighInputs, program.weighMaps))
    nest.addInput(input, map);
  return nest;
}

//===----------------------------------------------------------------------===//
// Places of reads
//===----------------------------------------------------------------------===//

namespace {
/// The index of one dimension of a variable: a loop, a constant, or neither.
struct Place {
  std::optional<unsigned> loop;
  std::optional<int64_t> constant;
};
} // namespace

/// Returns true if every dimension is indexed by a loop of its own or by a
/// constant.
static bool isDirect(ArrayRef<Place> places) {
  llvm::SmallDenseSet<unsigned> seen;
  return llvm::all_of(places, [&](const Place &place) {
    return place.loop ? seen.insert(*place.loop).second
                      : place.constant.has_value();
  });
}

static SmallVector<Place> placesOf(AffineMap map) {
  return llvm::map_to_vector(map.getResults(), [](AffineExpr expr) {
    Place place;
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      place.loop = dim.getPosition();
    else if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      place.constant = constant.getValue();
    return place;
  });
}

static SmallVector<Place> placesOf(const LoopProgram &program,
                                   tensor::ExtractOp extract) {
  return llvm::map_to_vector(extract.getIndices(), [&](Value index) {
    Place place;
    APInt value;
    if (auto found = llvm::find(program.indices, index);
        found != program.indices.end())
      place.loop = found - program.indices.begin();
    else if (auto op = index.getDefiningOp<linalg::IndexOp>())
      place.loop = op.getDim();
    else if (matchPattern(index, m_ConstantInt(&value)))
      place.constant = value.getSExtValue();
    return place;
  });
}

/// Inserts `part`, with a dimension for each loop in `places`, at its position
/// in zeros of the shape of `whole`.
static Value placeInto(OpBuilder &builder, Location loc, Value part,
                       const LoopNest &nest, ArrayRef<Place> places,
                       Value whole) {
  auto type = cast<RankedTensorType>(whole.getType());
  bool covers = true;
  for (auto [dim, place] : llvm::enumerate(places)) {
    std::optional<int64_t> size =
        place.loop ? getConstantIntValue(nest.sizes[*place.loop]) : 1;
    covers &= size && !type.isDynamicDim(dim) && type.getDimSize(dim) == *size;
  }
  if (covers && llvm::all_of(places, [](const Place &place) {
        return place.loop.has_value();
      }))
    return part;
  SmallVector<OpFoldResult> offsets, sizes;
  for (const Place &place : places) {
    offsets.push_back(builder.getIndexAttr(place.constant.value_or(0)));
    sizes.push_back(place.loop ? nest.sizes[*place.loop]
                               : OpFoldResult(builder.getIndexAttr(1)));
  }
  SmallVector<OpFoldResult> strides(places.size(), builder.getIndexAttr(1));
  auto element = cast<FloatType>(getElementTypeOrSelf(part));
  Value zeros = buildZeros(builder, loc, whole, element);
  return tensor::InsertSliceOp::create(builder, loc, part, zeros, offsets,
                                       sizes, strides);
}

/// Does the same for a linalg operand that the loops cover completely:
/// dimensions without a loop have one element.
static Value restoreUnitDims(OpBuilder &builder, Location loc, Value part,
                             ArrayRef<Place> places, Value whole) {
  if (llvm::all_of(places,
                   [](const Place &place) { return place.loop.has_value(); }))
    return part;
  // One group for each dimension of the part, and the unit dimensions near it.
  SmallVector<ReassociationIndices> groups;
  bool hasLoop = true;
  for (auto [dim, place] : llvm::enumerate(places)) {
    if (groups.empty() || (place.loop && hasLoop)) {
      groups.push_back({});
      hasLoop = false;
    }
    groups.back().push_back(dim);
    hasLoop |= place.loop.has_value();
  }
  if (cast<RankedTensorType>(part.getType()).getRank() == 0)
    groups.clear();
  auto type = cast<RankedTensorType>(whole.getType());
  return tensor::ExpandShapeOp::create(
      builder, loc, type.clone(getElementTypeOrSelf(part)), part, groups,
      tensor::getMixedSizes(builder, loc, whole));
}

/// Returns true if the loops cover a linalg operand that is read at `places`.
static bool coversOperand(ArrayRef<Place> places, Value operand) {
  auto type = cast<RankedTensorType>(operand.getType());
  for (auto [dim, place] : llvm::enumerate(places))
    if (!place.loop && type.getDimSize(dim) != 1)
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

static SmallVector<unsigned> loopsOf(ArrayRef<Place> places) {
  SmallVector<unsigned> loops;
  for (const Place &place : places)
    if (place.loop)
      loops.push_back(*place.loop);
  return loops;
}

/// Adds the gradient that the program sends to one of its variables.
static LogicalResult pullVariable(Backward &backward, LoopProgram &program,
                                  const Variable &variable, Value target) {
  OpBuilder &builder = backward.builder;
  Location loc = program.op->getLoc();
  LoopNest nest = makeNest(program);
  FloatType element = backward.getGradientType(target);
  // An element that many queries and keys read gets a sum of many terms of both
  // signs, which may nearly cancel.
  FloatType exact = builder.getF64Type();
  auto term = [&](OpBuilder &b, Location l, IndexFn index,
                  ValueRange elements) {
    IRMapping mapping;
    return emitGradient(program, variable, b, l, index, elements, mapping);
  };
  if (!isa<TensorType>(target.getType())) {
    Value sum = buildSum(builder, loc, nest, {}, exact, term);
    if (!sum)
      return failure();
    backward.add(loc, target,
                 tensor::ExtractOp::create(builder, loc, sum, ValueRange()));
    return success();
  }

  SmallVector<Place> places =
      variable.extract ? placesOf(program, variable.extract)
                       : placesOf(program.nest.maps[*variable.input]);
  bool isSum =
      isDirect(places) && (variable.extract || coversOperand(places, target));
  Value gradient;
  if (isSum) {
    SmallVector<unsigned> outer = loopsOf(places);
    bool isLong = variable.extract && outer.size() + 2 <= nest.getNumLoops();
    gradient =
        buildSum(builder, loc, nest, outer, isLong ? exact : element, term);
    if (!gradient)
      return failure();
    gradient = variable.extract
                   ? placeInto(builder, loc, gradient, nest, places, target)
                   : restoreUnitDims(builder, loc, gradient, places, target);
  } else {
    gradient = buildScatter(
        builder, loc, nest, target, exact,
        [&](OpBuilder &b, Location l, IndexFn index, ValueRange elements,
            SmallVectorImpl<Value> &place) {
          IRMapping mapping;
          Value value =
              emitGradient(program, variable, b, l, index, elements, mapping);
          if (tensor::ExtractOp extract = variable.extract) {
            for (Value at : extract.getIndices())
              place.push_back(mapping.lookupOrDefault(at));
            return value;
          }
          AffineMap map = program.nest.maps[*variable.input];
          SmallVector<OpFoldResult> loops;
          for (unsigned loop = 0; loop < nest.getNumLoops(); ++loop)
            loops.push_back(index(loop));
          for (unsigned dim = 0; dim < map.getNumResults(); ++dim)
            place.push_back(affine::makeComposedAffineApply(
                b, l, map.getSubMap({dim}), loops));
          return value;
        });
    if (!gradient)
      return failure();
  }
  backward.add(loc, target, gradient);
  return success();
}

/// Sends the program's cotangent to all operands that it reads.
static LogicalResult pullProgram(Backward &backward, LoopProgram &program) {
  for (auto [number, input] : llvm::enumerate(program.nest.inputs))
    if (backward.isVaried(input) && !program.elements[number].use_empty()) {
      Variable variable;
      variable.input = number;
      if (failed(pullVariable(backward, program, variable, input)))
        return failure();
    }
  SmallVector<tensor::ExtractOp> extracts;
  SetVector<Value> numbers;
  program.body->walk([&](Operation *op) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op);
        extract && backward.isVaried(extract.getTensor()))
      extracts.push_back(extract);
    for (Value operand : op->getOperands())
      if (backward.isVaried(operand) && isa<FloatType>(operand.getType()))
        numbers.insert(operand);
  });
  for (tensor::ExtractOp extract : extracts) {
    Variable variable;
    variable.extract = extract;
    if (failed(pullVariable(backward, program, variable, extract.getTensor())))
      return failure();
  }
  for (Value number : numbers) {
    Variable variable;
    variable.number = number;
    if (failed(pullVariable(backward, program, variable, number)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// attn
//===----------------------------------------------------------------------===//

/// Returns the program of an op each of whose result elements is a function of
/// the same element of each operand.
static LoopProgram makeElementwise(Backward &backward, Operation *op) {
  OpBuilder &builder = backward.builder;
  LoopProgram program;
  program.op = op;
  Block &body = op->getRegion(0).front();
  Value first = op->getOperand(0);
  program.nest.sizes = tensor::getMixedSizes(builder, op->getLoc(), first);
  AffineMap identity = mapAll(builder, program.nest.getNumLoops());
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    program.nest.addInput(operand, identity);
    program.elements.push_back(body.getArgument(number));
  }
  for (Value index : body.getArguments().drop_front(op->getNumOperands()))
    program.indices.push_back(index);
  program.body = &body;
  program.value = cast<YieldOp>(body.getTerminator()).getValue();
  program.resultMap = identity;
  program.cotangent = backward.lookup(op->getResult(0));
  return program;
}

//===----------------------------------------------------------------------===//
// linalg
//===----------------------------------------------------------------------===//

/// Returns the value that `value` combines with `accumulator` by `Op...`, or
/// null.
template <typename... Ops>
static Value matchCombiner(Value value, Value accumulator) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<Ops...>(op))
    return Value();
  if (op->getOperand(0) == accumulator)
    return op->getOperand(1);
  return op->getOperand(1) == accumulator ? op->getOperand(0) : Value();
}

/// Sends the gradient of a maximum or minimum to the places where it is
/// attained, which may be several.
static void weighByTies(Backward &backward, LoopProgram &program,
                        Value result) {
  OpBuilder &builder = backward.builder;
  Location loc = program.op->getLoc();
  auto element = cast<FloatType>(getElementTypeOrSelf(result));
  auto isAttained = [](OpBuilder &b, Location l, Value value,
                       Value extreme) -> Value {
    return arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, value,
                                 extreme);
  };
  LoopNest nest = program.nest;
  nest.addInput(result, program.resultMap);
  SmallVector<unsigned> outer;
  for (AffineExpr expr : program.resultMap.getResults())
    outer.push_back(cast<AffineDimExpr>(expr).getPosition());
  Value count = buildSum(
      builder, loc, nest, outer, getAccumulationType(element),
      [&](OpBuilder &b, Location l, IndexFn index,
          ValueRange elements) -> Value {
        IRMapping mapping;
        mapping.map(program.elements, elements.drop_back());
        ScalarTape tape(b, l);
        Value value = tape.replay(
            *program.body, program.value, mapping, [&](Operation *op) {
              auto indexOp = dyn_cast<linalg::IndexOp>(op);
              return indexOp ? index(indexOp.getDim()) : Value();
            });
        Type type = getAccumulationType(element);
        Value one = arith::ConstantOp::create(b, l, b.getFloatAttr(type, 1.0));
        Value zero = arith::ConstantOp::create(b, l, b.getFloatAttr(type, 0.0));
        return arith::SelectOp::create(
            b, l, isAttained(b, l, value, elements.back()), one, zero);
      });
  program.weighInputs = {result, count};
  program.weighMaps = {program.resultMap, program.resultMap};
  program.weigh = [=](OpBuilder &b, Location l, Value cotangent, Value value,
                      ValueRange more) -> Value {
    Value share = arith::DivFOp::create(b, l, cotangent, more[1]);
    Value zero = arith::ConstantOp::create(
        b, l, b.getFloatAttr(cotangent.getType(), 0.0));
    return arith::SelectOp::create(b, l, isAttained(b, l, value, more[0]),
                                   share, zero);
  };
}

/// Sends the gradient of one result of a linalg op.
static LogicalResult pullResult(Backward &backward, linalg::LinalgOp op,
                                unsigned number) {
  OpBuilder &builder = backward.builder;
  Value cotangent = backward.lookup(op->getResult(number));
  if (!cotangent)
    return success();
  Block *body = op.getBlock();
  OpOperand *init = op.getDpsInitOperand(number);
  Value accumulator = op.getMatchingBlockArgument(init);

  LoopProgram program;
  program.op = op;
  program.body = body;
  for (Range range : op.createLoopRanges(builder, op.getLoc()))
    program.nest.sizes.push_back(range.size);
  program.resultMap = op.getMatchingIndexingMap(init);
  program.cotangent = cotangent;
  program.value = body->getTerminator()->getOperand(number);
  bool sums = op.getNumReductionLoops() > 0;
  for (OpOperand &operand : op->getOpOperands()) {
    if (sums && op.isDpsInit(&operand))
      continue;
    program.nest.addInput(operand.get(), op.getMatchingIndexingMap(&operand));
    program.elements.push_back(op.getMatchingBlockArgument(&operand));
  }
  if (!program.resultMap.isProjectedPermutation())
    return op.emitOpError("has no derivative: its result is not written "
                          "element by element, but by ")
           << AffineMapAttr::get(program.resultMap);
  if (!sums)
    return pullProgram(backward, program);

  Value value = program.value;
  if (Value term = matchCombiner<arith::AddFOp>(value, accumulator)) {
    program.value = term;
    backward.add(op.getLoc(), init->get(), cotangent);
  } else if (Value term = matchCombiner<arith::MaximumFOp, arith::MaxNumFOp,
                                        arith::MinimumFOp, arith::MinNumFOp>(
                 value, accumulator)) {
    if (backward.isVaried(init->get()))
      return op.emitOpError("has no derivative: a maximum or minimum starts "
                            "from what depends on operands");
    program.value = term;
    weighByTies(backward, program, op->getResult(number));
  } else {
    return op.emitOpError("has no derivative: its reduction is not a sum, a "
                          "maximum or a minimum");
  }
  // The summed value must not depend on the sum.
  SmallVector<Value> worklist = {program.value};
  DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (llvm::is_contained(op.getRegionOutputArgs(), next))
      return op.emitOpError("has no derivative: what it adds depends on the "
                            "sum so far");
    if (Operation *defining = next.getDefiningOp();
        defining && seen.insert(next).second)
      llvm::append_range(worklist, defining->getOperands());
  }
  return pullProgram(backward, program);
}

std::optional<LogicalResult> differentiate::pullLoops(Backward &backward,
                                                      Operation *op) {
  if (isa<ModifyOp, ElementwiseOp>(op)) {
    LoopProgram program = makeElementwise(backward, op);
    return pullProgram(backward, program);
  }
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || !linalgOp.hasPureTensorSemantics())
    return std::nullopt;
  for (unsigned number = 0; number < op->getNumResults(); ++number)
    if (failed(pullResult(backward, linalgOp, number)))
      return failure();
  return success();
}
