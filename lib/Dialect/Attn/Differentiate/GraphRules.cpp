//===- GraphRules.cpp - Gradients of the ops of the graph -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Dialect/Attn/Differentiate/Backward.h"

#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/Differentiate/ScalarTape.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

static FloatType accumulationType(ValueRange values) {
  FloatType result = getAccumulationType(getElementTypeOrSelf(values.front()));
  for (Value value : values)
    if (getElementTypeOrSelf(value).isF64())
      result = cast<FloatType>(getElementTypeOrSelf(value));
  return result;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Returns `weights^T * input` for every head of keys, with the type of `keys`.
static Value sumQueries(Backward &backward, Location loc, Value weights,
                        Value input, Value keys) {
  auto type = cast<RankedTensorType>(keys.getType());
  Value heads;
  if (type.isDynamicDim(1))
    heads = tensor::DimOp::create(backward.builder, loc, keys, 1);
  return SumQueriesOp::create(backward.builder, loc, type, weights, input,
                              heads);
}

/// Adds the product `Op` of `a` and `b`, which has the type of `value`, to the
/// gradient of `value`.
template <typename Op>
static void addProduct(Backward &backward, Location loc, Value value, Value a,
                       Value b) {
  if (backward.isVaried(value))
    backward.add(loc, value,
                 Op::create(backward.builder, loc, value.getType(), a, b));
}

static void pull(Backward &backward, ScoresOp op, Value gradient) {
  Location loc = op.getLoc();
  Value query = op.getQuery(), key = op.getKey();
  addProduct<ValuesOp>(backward, loc, query, gradient, key);
  if (backward.isVaried(key))
    backward.add(loc, key, sumQueries(backward, loc, gradient, query, key));
}

static void pull(Backward &backward, ValuesOp op, Value gradient) {
  Location loc = op.getLoc();
  Value probabilities = op.getProbabilities(), value = op.getValue();
  addProduct<ScoresOp>(backward, loc, probabilities, gradient, value);
  if (backward.isVaried(value))
    backward.add(loc, value,
                 sumQueries(backward, loc, probabilities, gradient, value));
}

static void pull(Backward &backward, SumQueriesOp op, Value gradient) {
  Location loc = op.getLoc();
  Value weights = op.getWeights(), input = op.getInput();
  addProduct<ScoresOp>(backward, loc, weights, input, gradient);
  addProduct<ValuesOp>(backward, loc, input, weights, gradient);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Returns gradients of attention's operands, without what its probabilities
/// come from.
static AttentionBackwardOp buildGradients(OpBuilder &builder, AttentionOp op,
                                          Value gradient, Value lseGradient,
                                          ValueRange captures) {
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue();
  auto gradients = AttentionBackwardOp::create(
      builder, op.getLoc(), query.getType(), key.getType(), value.getType(),
      captures.getTypes(), query, key, value, gradient,
      /*probabilities=*/Value(), /*lse=*/Value(), /*delta=*/Value(),
      lseGradient, captures, op.getScaleAttr(), op.getDropoutAttr(),
      op.getSeed(), op.getOffset(), /*schedule=*/ScheduleAttr());
  IRMapping mapping;
  op.getScore().cloneInto(&gradients.getScore(), mapping);
  op.getMask().cloneInto(&gradients.getMask(), mapping);
  return gradients;
}

/// Returns true if a part has no key, as its log-sum-exp says, and else the
/// part's share of all keys, `exp(part - all)`, in `type`.
static std::pair<Value, Value> buildShare(OpBuilder &builder, Location loc,
                                          FloatType type, Value part,
                                          Value all) {
  Formula wide = {builder, loc, builder.getF64Type()};
  Formula f = {builder, loc, type};
  part = wide.convert(part);
  all = wide.convert(all);
  // No key has minus infinity less minus infinity.
  Value isEmpty = wide.compare(arith::CmpFPredicate::OEQ, part,
                               -std::numeric_limits<double>::infinity());
  Value difference =
      wide.select(isEmpty, wide.number(0.0), wide.sub(part, all));
  return {isEmpty, f.make<math::ExpOp>(f.convert(difference))};
}

/// Adds the gradients of the state that attention starts from. With
/// `p0 = exp(lse0 - lse)` they are `do0 = p0 * do` and `dlse0 = p0 * (sum over
/// d of do * o0 - delta)`.
static void pullState(Backward &backward, AttentionOp op, Value gradient,
                      Value delta) {
  OpBuilder &builder = backward.builder;
  Location loc = op.getLoc();
  Value initOutput = op.getInitOutput(), initLse = op.getInitLse();
  FloatType type = op.getAccumulationType();
  SmallVector<unsigned> dims(
      getInitDims(cast<RankedTensorType>(initLse.getType()).getRank()));
  auto build = [&](unsigned rank, ArrayRef<unsigned> outer, Value input,
                   Value like,
                   llvm::function_ref<Value(Formula &, Value, Value)> term) {
    LoopNest nest;
    nest.sizes = tensor::getMixedSizes(builder, loc, gradient);
    nest.sizes.resize(rank);
    nest.addInput(initLse, mapTo(builder, rank, dims));
    nest.addInput(op.getLse(), mapTo(builder, rank, {0, 1, 2}));
    nest.addInput(input, mapAll(builder, rank));
    Value sum = buildSum(
        builder, loc, nest, outer, cast<FloatType>(getElementTypeOrSelf(like)),
        [&](OpBuilder &b, Location l, IndexFn, ValueRange in) -> Value {
          Formula f = {b, l, type};
          auto [isEmpty, share] = buildShare(b, l, type, in[0], in[1]);
          return f.select(isEmpty, f.number(0.0),
                          term(f, share, f.convert(in[2])));
        });
    backward.add(loc, like, castTensor(builder, loc, sum, like.getType()));
  };
  if (initOutput && backward.isVaried(initOutput))
    build(4, {0, 1, 2, 3}, gradient, initOutput,
          [](Formula &f, Value share, Value x) { return f.mul(share, x); });
  if (!backward.isVaried(initLse))
    return;
  if (initOutput) {
    auto rowType =
        cast<RankedTensorType>(op.getLse().getType()).clone(Type(type));
    Value sums =
        buildDelta(builder, loc, gradient, initOutput, Value(), rowType);
    delta = arith::SubFOp::create(builder, loc, delta, sums);
  }
  build(3, dims, delta, initLse, [](Formula &f, Value share, Value x) {
    return f.neg(f.mul(share, x));
  });
}

/// Keeps the forward pass as it is, with a log-sum-exp from which probabilities
/// are recomputed: there are none of the state.
static void pullFromState(Backward &backward, AttentionOp op, Value gradient,
                          Value lseGradient, ValueRange captures,
                          ArrayRef<Value> primals) {
  OpBuilder &builder = backward.builder;
  Location loc = op.getLoc();
  AttentionBackwardOp gradients =
      buildGradients(builder, op, gradient, /*lseGradient=*/Value(), captures);
  OpBuilder forward(op);
  auto outputType = cast<RankedTensorType>(op.getOutput().getType());
  auto rowType = RankedTensorType::get(outputType.getShape().drop_back(),
                                       op.getAccumulationType());
  // In f32 the log-sum-exp of large scores would have no room for the logarithm
  // of the sum.
  auto attention = AttentionOp::create(
      forward, loc, outputType, rowType.clone(forward.getF64Type()),
      op.getQuery(), op.getKey(), op.getValue(), op.getScaleAttr(),
      op.getDropoutAttr(), op.getSeed(), op.getOffset(), op.getInitOutput(),
      op.getInitLse(), op.getSplitSizeAttr(), op.getScheduleAttr());
  attention.getScore().takeBody(op.getScore());
  attention.getMask().takeBody(op.getMask());
  op.getOutput().replaceAllUsesWith(attention.getOutput());
  if (op.getLse())
    op.getLse().replaceAllUsesWith(
        castTensor(forward, loc, attention.getLse(), op.getLse().getType()));
  op.erase();

  // Delta is computed from the gradient that is multiplied, which a GPU rounds
  // first.
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(gradients);
  if (machine::getTargetOrDefault(gradients).isGpu())
    gradient =
        convertFloats(builder, loc, gradient, fovea::getProductType(gradients));
  Value delta = buildDelta(builder, loc, gradient, attention.getOutput(),
                           lseGradient, rowType);
  gradients.getGradientMutable().assign(gradient);
  gradients.getLseMutable().assign(attention.getLse());
  gradients.getDeltaMutable().assign(delta);
  builder.setInsertionPointAfter(gradients);
  pullState(backward, attention, gradient, delta);
  for (auto [primal, result] : llvm::zip_equal(primals, gradients.getResults()))
    backward.add(loc, primal, result);
}

/// Writes the forward pass as a graph, whose probabilities the gradients of
/// `op` are computed from.
static LogicalResult pull(Backward &backward, AttentionOp op) {
  OpBuilder &builder = backward.builder;
  Location loc = op.getLoc();
  SetVector<Value> used;
  getUsedValuesDefinedAbove(op.getScore(), used);
  SmallVector<Value> captures;
  for (Value value : used) {
    if (!backward.isVaried(value))
      continue;
    if (!isa<TensorType>(value.getType()))
      return op.emitOpError("has no derivative: its score region captures a "
                            "number that depends on operands, not a tensor");
    captures.push_back(value);
  }
  Value gradient = backward.lookup(op.getOutput());
  if (!gradient)
    gradient =
        buildZeros(builder, loc, op.getOutput(),
                   cast<FloatType>(getElementTypeOrSelf(op.getOutput())));
  Value lseGradient = op.getLse() ? backward.lookup(op.getLse()) : Value();
  if (lseGradient)
    lseGradient =
        convertFloats(builder, loc, lseGradient, op.getAccumulationType());
  SmallVector<Value> primals = {op.getQuery(), op.getKey(), op.getValue()};
  llvm::append_range(primals, captures);
  if (op.getInitLse()) {
    pullFromState(backward, op, gradient, lseGradient, captures, primals);
    return success();
  }

  AttentionBackwardOp gradients =
      buildGradients(builder, op, gradient, lseGradient, captures);
  SmallVector<Operation *> graph;
  op.decompose(graph);
  for (Operation *created : graph)
    if (auto softmax = dyn_cast<SoftmaxOp>(created))
      gradients.getProbabilitiesMutable().assign(softmax.getResult());
  for (auto [primal, result] : llvm::zip_equal(primals, gradients.getResults()))
    backward.add(loc, primal, result);
  return success();
}

/// The gradient of a part is its weight, `w[p] = exp(part_lse[p] - lse)`, times
/// that of the output, and `dpart_lse[p] = w[p] * (sum over d of do * (parts[p]
/// - o) + dlse)`.
static void pull(Backward &backward, MergeOp op) {
  OpBuilder &builder = backward.builder;
  Location loc = op.getLoc();
  Value parts = op.getParts(), partLse = op.getPartLse();
  FloatType type = accumulationType({parts, op.getOutput()});
  Value gradient = backward.lookup(op.getOutput());
  if (!gradient)
    gradient =
        buildZeros(builder, loc, op.getOutput(),
                   cast<FloatType>(getElementTypeOrSelf(op.getOutput())));
  Value lseGradient = op.getLse() ? backward.lookup(op.getLse()) : Value();
  auto outputType = cast<RankedTensorType>(op.getOutput().getType());
  auto rowType = RankedTensorType::get(outputType.getShape().drop_back(), type);
  // The op is replaced by one with a log-sum-exp in f64, from which weights are
  // computed.
  OpBuilder forward(op);
  auto merged =
      MergeOp::create(forward, loc, outputType,
                      rowType.clone(forward.getF64Type()), parts, partLse);
  op.getOutput().replaceAllUsesWith(merged.getOutput());
  if (op.getLse())
    op.getLse().replaceAllUsesWith(
        castTensor(forward, loc, merged.getLse(), op.getLse().getType()));
  op.erase();
  Value delta = buildDelta(builder, loc, gradient, merged.getOutput(),
                           lseGradient, rowType);

  // Loops: part, batch, head, query, feature.
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, parts);
  auto build = [&](Value like, ArrayRef<unsigned> outer, bool hasFeatures,
                   ArrayRef<std::pair<Value, bool>> inputs,
                   llvm::function_ref<Value(Formula &, ValueRange)> term) {
    unsigned rank = hasFeatures ? 5 : 4;
    LoopNest nest;
    nest.sizes.assign(sizes.begin(), sizes.begin() + rank);
    AffineMap rows = mapTo(builder, rank, {1, 2, 3});
    nest.addInput(partLse, mapTo(builder, rank, {0, 1, 2, 3}));
    nest.addInput(merged.getLse(), rows);
    for (auto [input, isOfPart] : inputs) {
      unsigned inputRank = cast<RankedTensorType>(input.getType()).getRank();
      SmallVector<unsigned> loops = llvm::to_vector(llvm::seq<unsigned>(
          isOfPart ? 0 : 1, inputRank + (isOfPart ? 0 : 1)));
      nest.addInput(input, mapTo(builder, rank, loops));
    }
    return buildSum(
        builder, loc, nest, outer, cast<FloatType>(getElementTypeOrSelf(like)),
        [&](OpBuilder &b, Location l, IndexFn, ValueRange in) -> Value {
          Formula f = {b, l, type};
          auto [isEmpty, share] = buildShare(b, l, type, in[0], in[1]);
          SmallVector<Value> values = {share};
          for (Value value : in.drop_front(2))
            values.push_back(f.convert(value));
          return f.select(isEmpty, f.number(0.0), term(f, values));
        });
  };
  if (backward.isVaried(parts))
    backward.add(
        loc, parts,
        build(parts, {0, 1, 2, 3, 4}, true, {{gradient, false}},
              [](Formula &f, ValueRange in) { return f.mul(in[0], in[1]); }));
  if (!backward.isVaried(partLse))
    return;
  // The sum over the features, and what does not depend on them.
  Value sums =
      build(partLse, {0, 1, 2, 3}, true, {{gradient, false}, {parts, true}},
            [](Formula &f, ValueRange in) {
              return f.mul(in[0], f.mul(in[1], in[2]));
            });
  Value rest = build(
      partLse, {0, 1, 2, 3}, false, {{delta, false}},
      [](Formula &f, ValueRange in) { return f.neg(f.mul(in[0], in[1])); });
  backward.add(loc, partLse, sums);
  backward.add(loc, partLse, rest);
}

//===----------------------------------------------------------------------===//
// Rows and masks
//===----------------------------------------------------------------------===//

/// A masked score does not depend on anything.
static void pull(Backward &backward, MaskOp op, Value gradient) {
  LoopNest nest;
  OpBuilder &builder = backward.builder;
  nest.sizes = tensor::getMixedSizes(builder, op.getLoc(), op.getInput());
  nest.addInput(gradient, mapAll(builder, 4));
  auto element = cast<FloatType>(op.getType().getElementType());
  backward.add(
      op.getLoc(), op.getInput(),
      buildSum(builder, op.getLoc(), nest, {0, 1, 2, 3}, element,
               [&](OpBuilder &b, Location l, IndexFn index,
                   ValueRange elements) -> Value {
                 Block &body = op.getBody().front();
                 IRMapping mapping;
                 for (BlockArgument argument : body.getArguments())
                   if (!argument.use_empty())
                     mapping.map(argument, index(argument.getArgNumber()));
                 ScalarTape tape(b, l);
                 Value keep = tape.replay(
                     body, cast<YieldOp>(body.getTerminator()).getValue(),
                     mapping);
                 Formula f = {b, l, element};
                 return f.select(keep, elements[0], f.number(0.0));
               }));
}

/// For `r = p * (g - sum(p * g))`: the gradient of `g` is
/// `p * (dr - sum(p * dr))`, and that of `p` is
/// `dr * (g - sum(p * g)) - g * sum(p * dr)`.
static void pull(Backward &backward, SoftmaxBackwardOp op, Value gradient) {
  OpBuilder &builder = backward.builder;
  Location loc = op.getLoc();
  Value p = op.getProbabilities(), g = op.getGradient();
  if (backward.isVaried(g))
    backward.add(
        loc, g,
        SoftmaxBackwardOp::create(builder, loc, g.getType(), p, gradient));
  if (!backward.isVaried(p))
    return;
  FloatType type = accumulationType({p, g});
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, p);
  unsigned rank = sizes.size();
  SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, rank));
  ArrayRef<unsigned> rowLoops = ArrayRef(all).drop_back();
  auto sum = [&](ValueRange inputs, ValueRange ofRows, ArrayRef<unsigned> outer,
                 FloatType element,
                 llvm::function_ref<Value(Formula &, ValueRange)> body) {
    LoopNest nest;
    nest.sizes = sizes;
    for (Value input : inputs)
      nest.addInput(input, mapAll(builder, rank));
    for (Value input : ofRows)
      nest.addInput(input, mapTo(builder, rank, rowLoops));
    return buildSum(
        builder, loc, nest, outer, element,
        [&](OpBuilder &b, Location l, IndexFn, ValueRange in) -> Value {
          Formula f = {b, l, type};
          SmallVector<Value> wide;
          for (Value value : in)
            wide.push_back(f.convert(value));
          return convertFloats(b, l, body(f, wide), element);
        });
  };
  auto product = [](Formula &f, ValueRange in) { return f.mul(in[0], in[1]); };
  Value s = sum({p, g}, {}, rowLoops, type, product);
  Value t = sum({p, gradient}, {}, rowLoops, type, product);
  backward.add(loc, p,
               sum({gradient, g}, {s, t}, all,
                   cast<FloatType>(getElementTypeOrSelf(p)),
                   [](Formula &f, ValueRange in) {
                     Value direct = f.mul(in[0], f.sub(in[1], in[2]));
                     return f.sub(direct, f.mul(in[1], in[3]));
                   }));
}

static void pull(Backward &backward, LogSumExpOp op, Value gradient) {
  OpBuilder &builder = backward.builder;
  Value input = op.getInput();
  LoopNest nest;
  nest.sizes = tensor::getMixedSizes(builder, op.getLoc(), input);
  unsigned rank = nest.getNumLoops();
  SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, rank));
  AffineMap rows = mapTo(builder, rank, ArrayRef(all).drop_back());
  nest.addInput(input, mapAll(builder, rank));
  nest.addInput(op.getResult(), rows);
  nest.addInput(gradient, rows);
  FloatType type = accumulationType({input, op.getResult()});
  backward.add(
      op.getLoc(), input,
      buildSum(
          builder, op.getLoc(), nest, all,
          cast<FloatType>(getElementTypeOrSelf(input)),
          [&](OpBuilder &b, Location l, IndexFn, ValueRange in) -> Value {
            Formula f = {b, l, type};
            Value lse = f.convert(in[1]);
            // This avoids minus infinity less minus infinity.
            Value isEmpty =
                f.compare(arith::CmpFPredicate::OEQ, lse,
                          f.number(-std::numeric_limits<double>::infinity()));
            Value shift = f.select(isEmpty, f.number(0.0), lse);
            Value p = f.make<math::ExpOp>(f.sub(f.convert(in[0]), shift));
            return convertFloats(b, l, f.mul(p, f.convert(in[2])),
                                 cast<FloatType>(getElementTypeOrSelf(input)));
          }));
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

namespace {
/// The gradients of a norm `x^ * weight + bias` of rows of `size` elements with
/// `x^ = (x - mean) * r`. With `g = gradient * weight` the gradient of `x` is
/// `r * (g - mean(g) - x^ * mean(g * x^))`; an RMS norm has only the last of
/// these means.
class NormGradient {
public:
  NormGradient(Backward &backward, Operation *op, Value input, Value weight,
               Value bias, double epsilon, Value gradient)
      : backward(backward), builder(backward.builder), loc(op->getLoc()),
        input(input), weight(weight), bias(bias), gradient(gradient),
        centred(isa<LayerNormOp>(op)), epsilon(epsilon) {
    SmallVector<Value> operands = {input};
    if (weight)
      operands.push_back(weight);
    if (bias)
      operands.push_back(bias);
    type = accumulationType(operands);
    sizes = tensor::getMixedSizes(builder, loc, input);
    rank = sizes.size();
    rowLoops = llvm::to_vector(llvm::seq<unsigned>(0, rank - 1));
    all = mapAll(builder, rank);
    rows = mapTo(builder, rank, rowLoops);
    column = mapTo(builder, rank, {rank - 1});
    Value last = getValueOrCreateConstantIndexOp(builder, loc, sizes.back());
    Value integer =
        arith::IndexCastOp::create(builder, loc, builder.getI64Type(), last);
    size = arith::SIToFPOp::create(builder, loc, type, integer);
  }

  void pull() {
    findStatistics();
    if (backward.isVaried(input))
      pullInput();
    if (weight && backward.isVaried(weight))
      backward.add(loc, weight,
                   sum({{gradient, all}, {input, all}}, true, {rank - 1},
                       weight, [&](Formula &f, ValueRange in, Value r) {
                         return f.mul(in[0], normal(f, in[1], r));
                       }));
    if (bias && backward.isVaried(bias))
      backward.add(loc, bias,
                   sum({{gradient, all}}, false, {rank - 1}, bias,
                       [](Formula &, ValueRange in, Value) { return in[0]; }));
  }

private:
  using Input = std::pair<Value, AffineMap>;
  using Body = llvm::function_ref<Value(Formula &, ValueRange, Value)>;

  /// Returns the normalised `x`, in the body of a sum with statistics.
  Value normal(Formula &f, Value x, Value r) {
    return f.mul(centred ? f.sub(x, meanOfRow) : x, r);
  }

  /// Sums over all dimensions except `outer`, with floats of the type of
  /// `like`; `body` gets widened elements and, if `statistics` is set, r.
  Value sum(ArrayRef<Input> inputs, bool statistics, ArrayRef<unsigned> outer,
            Value like, Body body) {
    LoopNest nest;
    nest.sizes = sizes;
    for (auto [value, map] : inputs)
      nest.addInput(value, map);
    if (statistics) {
      nest.addInput(deviation, rows);
      if (centred)
        nest.addInput(mean, rows);
    }
    auto element = like ? cast<FloatType>(getElementTypeOrSelf(like)) : type;
    return buildSum(builder, loc, nest, outer, element,
                    [&](OpBuilder &b, Location l, IndexFn, ValueRange in) {
                      Formula f = {b, l, type};
                      SmallVector<Value> wide;
                      for (Value value : in)
                        wide.push_back(f.convert(value));
                      Value r = statistics ? wide[inputs.size()] : Value();
                      meanOfRow = statistics && centred ? wide.back() : Value();
                      Value value = body(f, wide, r);
                      return outer.size() == rank
                                 ? convertFloats(b, l, value, element)
                                 : value;
                    });
  }

  void findStatistics() {
    if (centred) {
      Value total = sum({{input, all}}, false, rowLoops, {},
                        [](Formula &, ValueRange in, Value) { return in[0]; });
      mean = mapRows({total}, [&](Formula &f, ValueRange in) {
        return f.div(in[0], size);
      });
    }
    SmallVector<Input> inputs = {{input, all}};
    if (centred)
      inputs.push_back({mean, rows});
    Value squares =
        sum(inputs, false, rowLoops, {}, [&](Formula &f, ValueRange in, Value) {
          Value x = centred ? f.sub(in[0], in[1]) : in[0];
          return f.mul(x, x);
        });
    deviation = mapRows({squares}, [&](Formula &f, ValueRange in) {
      Value variance = f.add(f.div(in[0], size), f.number(epsilon));
      return f.div(f.number(1.0), f.make<math::SqrtOp>(variance));
    });
  }

  /// Builds a function of one number for each row.
  Value mapRows(ValueRange inputs,
                llvm::function_ref<Value(Formula &, ValueRange)> body) {
    LoopNest nest;
    nest.sizes.assign(sizes.begin(), sizes.end() - 1);
    for (Value input : inputs)
      nest.addInput(input, mapAll(builder, rank - 1));
    return buildSum(builder, loc, nest, rowLoops, type,
                    [&](OpBuilder &b, Location l, IndexFn, ValueRange in) {
                      Formula f = {b, l, type};
                      return body(f, in);
                    });
  }

  void pullInput() {
    SmallVector<Input> inputs = {{gradient, all}, {input, all}};
    if (weight)
      inputs.push_back({weight, column});
    auto weighted = [&](Formula &f, ValueRange in) {
      return weight ? f.mul(in[0], in[2]) : in[0];
    };
    Value sumOfProducts = sum(
        inputs, true, rowLoops, {}, [&](Formula &f, ValueRange in, Value r) {
          return f.mul(weighted(f, in), normal(f, in[1], r));
        });
    Value sumOfGradients;
    if (centred)
      sumOfGradients = sum(
          inputs, true, rowLoops, {},
          [&](Formula &f, ValueRange in, Value) { return weighted(f, in); });
    unsigned first = inputs.size();
    inputs.push_back({sumOfProducts, rows});
    if (centred)
      inputs.push_back({sumOfGradients, rows});
    SmallVector<unsigned> loops(rowLoops);
    loops.push_back(rank - 1);
    backward.add(loc, input,
                 sum(inputs, true, loops, input,
                     [&](Formula &f, ValueRange in, Value r) {
                       Value x = normal(f, in[1], r);
                       Value along = f.mul(x, f.div(in[first], size));
                       Value rest = f.sub(weighted(f, in), along);
                       if (centred)
                         rest = f.sub(rest, f.div(in[first + 1], size));
                       return f.mul(r, rest);
                     }));
  }

  Backward &backward;
  OpBuilder &builder;
  Location loc;
  Value input, weight, bias, gradient;
  bool centred;
  double epsilon;
  FloatType type;
  SmallVector<OpFoldResult> sizes;
  unsigned rank;
  SmallVector<unsigned> rowLoops;
  AffineMap all, rows, column;
  /// The size of a row as a number; mean and `r` of every row; the mean of the
  /// row whose elements the current sum reads.
  Value size, mean, deviation, meanOfRow;
};
} // namespace

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

/// A rotation's inverse is the rotation by the negative angle; cosines and
/// sines get `x * g` and `x turned by a right angle * g`, summed over batches,
/// heads and the two members of a pair.
static void pull(Backward &backward, RopeOp op, Value gradient) {
  OpBuilder &builder = backward.builder;
  Location loc = op.getLoc();
  Value input = op.getInput(), cos = op.getCos(), sin = op.getSin();
  if (backward.isVaried(input)) {
    Value negative = arith::NegFOp::create(builder, loc, sin);
    backward.add(loc, input,
                 RopeOp::create(builder, loc, input.getType(), gradient, cos,
                                negative, op.getInterleaved()));
  }
  if (!backward.isVaried(cos) && !backward.isVaried(sin))
    return;

  // Dimensions b, h, s, and member m and pair t in the order of memory.
  unsigned member = op.getInterleaved() ? 4 : 3, pair = 7 - member;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, input);
  sizes.resize(5);
  sizes[member] = builder.getIndexAttr(2);
  sizes[pair] = tensor::getMixedSize(builder, loc, cos, 1);
  SmallVector<ReassociationIndices> groups = {{0}, {1}, {2}, {3, 4}};
  Value x = expandShape(builder, loc, input, groups, sizes);
  Value g = expandShape(builder, loc, gradient, groups, sizes);
  SmallVector<AffineExpr> other;
  for (unsigned dim = 0; dim < 5; ++dim) {
    AffineExpr expr = builder.getAffineDimExpr(dim);
    other.push_back(dim == member ? 1 - expr : expr);
  }
  FloatType type = accumulationType({input, cos, sin});
  for (bool isSine : {false, true}) {
    Value angle = isSine ? sin : cos;
    if (!backward.isVaried(angle))
      continue;
    LoopNest nest;
    nest.sizes = sizes;
    nest.addInput(g, mapAll(builder, 5));
    nest.addInput(x, isSine ? AffineMap::get(5, 0, other, builder.getContext())
                            : mapAll(builder, 5));
    backward.add(
        loc, angle,
        buildSum(builder, loc, nest, {2, pair},
                 cast<FloatType>(getElementTypeOrSelf(angle)),
                 [&](OpBuilder &b, Location l, IndexFn index,
                     ValueRange in) -> Value {
                   Formula f = {b, l, type};
                   Value product = f.mul(f.convert(in[0]), f.convert(in[1]));
                   if (!isSine)
                     return product;
                   Value zero = arith::ConstantIndexOp::create(b, l, 0);
                   Value isFirst = arith::CmpIOp::create(
                       b, l, arith::CmpIPredicate::eq, index(member), zero);
                   return f.select(isFirst, f.neg(product), product);
                 }));
  }
}

//===----------------------------------------------------------------------===//
// The rules
//===----------------------------------------------------------------------===//

std::optional<LogicalResult> differentiate::pullGraph(Backward &backward,
                                                      Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return pull(backward, attention);
  if (auto merge = dyn_cast<MergeOp>(op)) {
    pull(backward, merge);
    return success();
  }
  if (op->getNumResults() != 1)
    return std::nullopt;
  OpBuilder &builder = backward.builder;
  Location loc = op->getLoc();
  Value gradient = backward.lookup(op->getResult(0));
  bool isKnown =
      TypeSwitch<Operation *, bool>(op)
          .Case<ScoresOp, ValuesOp, SumQueriesOp, MaskOp, LogSumExpOp,
                SoftmaxBackwardOp, RopeOp>([&](auto o) {
            pull(backward, o, gradient);
            return true;
          })
          .Case([&](ScaleOp o) {
            backward.add(loc, o.getInput(),
                         ScaleOp::create(builder, loc, gradient.getType(),
                                         gradient, o.getFactorAttr()));
            return true;
          })
          .Case([&](SoftmaxOp o) {
            backward.add(loc, o.getInput(),
                         SoftmaxBackwardOp::create(builder, loc,
                                                   o.getInput().getType(),
                                                   o.getResult(), gradient));
            return true;
          })
          .Case([&](DropoutOp o) {
            backward.add(loc, o.getInput(),
                         DropoutOp::create(builder, loc, gradient.getType(),
                                           gradient, o.getProbabilityAttr(),
                                           o.getSeed(), o.getOffset()));
            return true;
          })
          .Case([&](ResidualAddOp o) {
            backward.add(loc, o.getInput(), gradient);
            backward.add(loc, o.getResidual(), gradient);
            return true;
          })
          .Case([&](LayerNormOp o) {
            NormGradient(backward, o, o.getInput(), o.getWeight(), o.getBias(),
                         o.getEpsilon().convertToDouble(), gradient)
                .pull();
            return true;
          })
          .Case([&](RMSNormOp o) {
            NormGradient(backward, o, o.getInput(), o.getWeight(), Value(),
                         o.getEpsilon().convertToDouble(), gradient)
                .pull();
            return true;
          })
          .Default([](Operation *) { return false; });
  if (!isKnown)
    return std::nullopt;
  return success();
}
