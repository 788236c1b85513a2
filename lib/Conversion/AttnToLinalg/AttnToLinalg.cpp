//===- AttnToLinalg.cpp - convert-attn-to-linalg --------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Formula.h"
#include "fovea/Conversion/Passes.h"
#include "fovea/Conversion/Utils/Philox.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_ATTNTOLINALG
#include "fovea/Conversion/Passes.h.inc"

using namespace attn;

namespace {
/// Computes an element of a result in the type of the formula.
using Body = llvm::function_ref<Value(const Formula &f, ValueRange in)>;

/// Emits the linalg ops of one graph op.
class Emitter {
public:
  Emitter(Operation *op, int64_t kernel)
      : builder(op), loc(op->getLoc()),
        kernelAttr(builder.getI64IntegerAttr(kernel)) {}

  OpBuilder builder;
  Location loc;

  SmallVector<OpFoldResult> sizes(Value tensor) {
    return tensor::getMixedSizes(builder, loc, tensor);
  }

  Value empty(ArrayRef<OpFoldResult> shape, Type element) {
    return tensor::EmptyOp::create(builder, loc, shape, element);
  }

  Value constant(Type type, double value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(type, value));
  }

  Value filled(ArrayRef<OpFoldResult> shape, FloatType element, double value) {
    auto fill = linalg::FillOp::create(builder, loc, constant(element, value),
                                       empty(shape, element));
    return tag(fill)->getResult(0);
  }

  /// `value` as an index value.
  Value index(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(builder, loc, value);
  }

  /// The size `value` as a floating-point number.
  Value sizeAsFloat(OpFoldResult value, FloatType type) {
    Value integer = arith::IndexCastOp::create(
        builder, loc, builder.getI64Type(), index(value));
    return arith::SIToFPOp::create(builder, loc, type, integer);
  }

  AffineMap identity(unsigned rank) {
    return builder.getMultiDimIdentityMap(rank);
  }

  /// The map of `rank` loops to those in `dims`.
  AffineMap project(unsigned rank, ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(rank, dims,
                                                builder.getContext());
  }

  /// A generic over `rank` loops of which the last `reductions` are reductions.
  /// The body computes in `type`; its result is converted to that of `init`.
  Value generic(unsigned rank, unsigned reductions, ValueRange inputs,
                Value init, ArrayRef<AffineMap> maps, Type type, Body body) {
    SmallVector<utils::IteratorType> iterators(rank - reductions,
                                               utils::IteratorType::parallel);
    iterators.append(reductions, utils::IteratorType::reduction);
    return generic(iterators, inputs, init, maps, type, body);
  }

  Value generic(ArrayRef<utils::IteratorType> iterators, ValueRange inputs,
                Value init, ArrayRef<AffineMap> maps, Type type, Body body) {
    auto op = linalg::GenericOp::create(
        builder, loc, init.getType(), inputs, init, maps, iterators,
        [&](OpBuilder &b, Location l, ValueRange arguments) {
          Value result = body({b, l, type}, arguments);
          linalg::YieldOp::create(
              b, l, convertFloats(b, l, result, getElementTypeOrSelf(init)));
        });
    return tag(op)->getResult(0);
  }

  /// An elementwise generic; all inputs have `init`'s shape.
  Value elementwise(ValueRange inputs, Value init, Type type, Body body) {
    unsigned rank = cast<RankedTensorType>(init.getType()).getRank();
    SmallVector<AffineMap> maps(inputs.size() + 1, identity(rank));
    return generic(rank, 0, inputs, init, maps, type, body);
  }

  /// `value`, or 0 where `weight`, of the same type, is 0.
  Value unlessZero(const Formula &f, Value weight, Value value) {
    Value zero = constant(f.type, 0.0);
    return f.select(f.isEqual(weight, zero), zero, value);
  }

  /// `tensor` rounded to `type`, if it is not of that type.
  Value rounded(Value tensor, RankedTensorType type) {
    if (tensor.getType() == type)
      return tensor;
    auto element = cast<FloatType>(type.getElementType());
    if (getElementTypeOrSelf(tensor) != element)
      tensor = elementwise(tensor, empty(sizes(tensor), element), element,
                           [](const Formula &f, ValueRange in) -> Value {
                             return f.convert(in[0]);
                           });
    return cast(tensor, type);
  }

  /// `tensor` with the static sizes of `type`.
  Value cast(Value tensor, RankedTensorType type) {
    if (tensor.getType() == type)
      return tensor;
    return tensor::CastOp::create(builder, loc, type, tensor);
  }

  template <typename T>
  static T cast(Type type) {
    return llvm::cast<T>(type);
  }
  template <typename T>
  static T cast(Value value) {
    return llvm::cast<T>(value);
  }

private:
  Operation *tag(Operation *op) {
    op->setAttr(machine::kKernelAttrName, kernelAttr);
    return op;
  }

  IntegerAttr kernelAttr;
};
} // namespace

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The accumulation type of an op over `values`.
static FloatType accumulationType(ValueRange values) {
  FloatType result = getAccumulationType(getElementTypeOrSelf(values.front()));
  for (Value value : values.drop_front()) {
    FloatType type = getAccumulationType(getElementTypeOrSelf(value));
    if (type.getWidth() > result.getWidth())
      result = type;
  }
  return result;
}

static RankedTensorType resultType(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType());
}

/// Copies the one block of `region` to the builder, with its arguments replaced
/// by `arguments`; returns the value that the block yields.
static Value inlineBody(OpBuilder &builder, Region &region,
                        ValueRange arguments) {
  IRMapping mapping;
  Block &block = region.front();
  mapping.map(block.getArguments(), arguments);
  for (Operation &op : block.without_terminator())
    builder.clone(op, mapping);
  return mapping.lookupOrDefault(block.getTerminator()->getOperand(0));
}

/// The loop indices of the generic that is being built.
static SmallVector<Value> loopIndices(const Formula &f, unsigned rank) {
  SmallVector<Value> indices;
  for (unsigned dim = 0; dim < rank; ++dim)
    indices.push_back(f.make<linalg::IndexOp>(dim));
  return indices;
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

namespace {
/// The KV head that each query head reads.
struct HeadGroups {
  /// True if every head has its own KV head.
  bool trivial;
  /// KV heads, and query heads of one KV head.
  OpFoldResult kvHeads, group;

  /// Returns true if heads are a dimension that can be split in a buffer; two
  /// unknown sizes cannot be split from one.
  bool canSplit() const {
    return getConstantIntValue(kvHeads) || getConstantIntValue(group);
  }
};
} // namespace

static HeadGroups getHeadGroups(Emitter &e, OpFoldResult heads,
                                OpFoldResult kvHeads) {
  OpFoldResult group = getHeadsPerKVHead(e.builder, e.loc, heads, kvHeads);
  return {getConstantIntValue(group) == 1, kvHeads, group};
}

/// Splits dimension 1 of the 4-D `tensor` into KV heads and their query heads.
static Value splitHeads(Emitter &e, Value tensor, const HeadGroups &groups) {
  SmallVector<OpFoldResult> sizes = e.sizes(tensor);
  sizes[1] = groups.kvHeads;
  sizes.insert(sizes.begin() + 2, groups.group);
  SmallVector<ReassociationIndices> reassociation = {{0}, {1, 2}, {3}, {4}};
  return expandShape(e.builder, e.loc, tensor, reassociation, sizes);
}

/// Returns `tensor`, which has a KV head for every `group` of `heads` heads,
/// with a copy of its KV head for each head. Used where all sizes are unknown:
/// two unknown sizes cannot be split from one in a buffer.
static Value repeatHeads(Emitter &e, Value tensor, OpFoldResult heads,
                         Value group) {
  SmallVector<OpFoldResult> sizes = e.sizes(tensor);
  sizes[1] = heads;
  Value one = e.index(e.builder.getIndexAttr(1));
  Value divisor = arith::MaxSIOp::create(e.builder, e.loc, group, one);
  Type element = getElementTypeOrSelf(tensor);
  return e.generic(4, 0, {}, e.empty(sizes, element), {e.identity(4)}, element,
                   [&](const Formula &f, ValueRange) -> Value {
                     SmallVector<Value> indices = loopIndices(f, 4);
                     indices[1] = f.make<arith::DivUIOp>(indices[1], divisor);
                     return f.make<tensor::ExtractOp>(tensor, indices);
                   });
}

/// `sum over the last loop of left[b, h, i, .] * right[b, h / G, ., .]`;
/// `transposed` says that the right side is indexed by (result column,
/// summation) and not by (summation, result column). With `skipsZeros` a left
/// element that is 0 adds nothing, whatever it is multiplied by.
static Value emitContraction(Emitter &e, Value left, Value right,
                             bool transposed, bool skipsZeros,
                             RankedTensorType type) {
  auto element = cast<FloatType>(type.getElementType());
  FloatType accumulate =
      element.isF64() ? element : accumulationType({left, right});
  HeadGroups groups = getHeadGroups(e, e.sizes(left)[1], e.sizes(right)[1]);
  OpFoldResult columns = e.sizes(right)[transposed ? 2 : 3];
  if (!groups.trivial && !groups.canSplit()) {
    right = repeatHeads(e, right, e.sizes(left)[1], e.index(groups.group));
    groups.trivial = true;
  }

  Value grouped = groups.trivial ? left : splitHeads(e, left, groups);
  SmallVector<OpFoldResult> shape = e.sizes(grouped);
  shape.back() = columns;
  // Loops: batch, KV head, (query head of it,) row, column, summation.
  unsigned rank = groups.trivial ? 5 : 6;
  unsigned row = rank - 3, column = rank - 2, sum = rank - 1;
  SmallVector<unsigned> leading = {0, 1};
  if (!groups.trivial)
    leading.push_back(2);
  SmallVector<unsigned> leftDims(leading), resultDims(leading);
  leftDims.append({row, sum});
  resultDims.append({row, column});
  SmallVector<unsigned> rightDims = {0, 1};
  rightDims.append({transposed ? column : sum, transposed ? sum : column});

  Value result =
      e.generic(rank, 1, {grouped, right}, e.filled(shape, accumulate, 0.0),
                {e.project(rank, leftDims), e.project(rank, rightDims),
                 e.project(rank, resultDims)},
                accumulate, [&](const Formula &f, ValueRange in) -> Value {
                  Value weight = f.convert(in[0]);
                  Value product = f.mul(weight, f.convert(in[1]));
                  if (skipsZeros)
                    product = e.unlessZero(f, weight, product);
                  return f.add(in[2], product);
                });
  auto groupedType = cast<RankedTensorType>(result.getType());
  result = e.rounded(result, groupedType.clone(element));
  if (!groups.trivial) {
    SmallVector<ReassociationIndices> reassociation = {{0}, {1, 2}, {3}, {4}};
    result = tensor::CollapseShapeOp::create(e.builder, e.loc, result,
                                             reassociation);
  }
  return e.cast(result, type);
}

/// `sum over h in the group of g, and i, of w[b, h, i, j] * x[b, h, i, d]`.
static Value emitSumQueries(Emitter &e, SumQueriesOp op) {
  Value weights = op.getWeights(), input = op.getInput();
  RankedTensorType type = resultType(op);
  FloatType accumulate = accumulationType({weights, input, op.getResult()});
  SmallVector<OpFoldResult> shape = e.sizes(weights);
  OpFoldResult kvHeads =
      op.getHeads() ? OpFoldResult(op.getHeads())
                    : OpFoldResult(e.builder.getIndexAttr(type.getDimSize(1)));
  HeadGroups groups = getHeadGroups(e, shape[1], kvHeads);
  SmallVector<OpFoldResult> resultShape = {shape[0], kvHeads, shape[3],
                                           e.sizes(input)[3]};
  auto multiply = [](const Formula &f, ValueRange in) -> Value {
    Value left = f.convert(in[0]);
    return f.add(in.back(), f.mul(left, f.convert(in[1])));
  };
  Value result;
  if (groups.trivial) {
    // Loops: batch, head, key, feature, query.
    result = e.generic(5, 1, {weights, input},
                       e.filled(resultShape, accumulate, 0.0),
                       {e.project(5, {0, 1, 4, 2}), e.project(5, {0, 1, 4, 3}),
                        e.project(5, {0, 1, 2, 3})},
                       accumulate, multiply);
  } else if (groups.canSplit()) {
    // Loops: batch, KV head, key, feature, query head of it, query.
    result = e.generic(
        6, 2, {splitHeads(e, weights, groups), splitHeads(e, input, groups)},
        e.filled(resultShape, accumulate, 0.0),
        {e.project(6, {0, 1, 4, 5, 2}), e.project(6, {0, 1, 4, 5, 3}),
         e.project(6, {0, 1, 2, 3})},
        accumulate, multiply);
  } else {
    // Computes the sum for every head, then the sum over the heads of one KV
    // head, each found by its index.
    SmallVector<OpFoldResult> perHead(resultShape);
    perHead[1] = shape[1];
    Value all =
        e.generic(5, 1, {weights, input}, e.filled(perHead, accumulate, 0.0),
                  {e.project(5, {0, 1, 4, 2}), e.project(5, {0, 1, 4, 3}),
                   e.project(5, {0, 1, 2, 3})},
                  accumulate, multiply);
    Value members = e.empty({groups.group}, accumulate);
    Value group = e.index(groups.group);
    result = e.generic(
        5, 1, {members}, e.filled(resultShape, accumulate, 0.0),
        {e.project(5, {4}), e.project(5, {0, 1, 2, 3})}, accumulate,
        [&](const Formula &f, ValueRange in) -> Value {
          SmallVector<Value> indices = loopIndices(f, 5);
          Value member = indices.pop_back_val();
          Value first = f.make<arith::MulIOp>(indices[1], group);
          indices[1] = f.make<arith::AddIOp>(first, member);
          return f.add(in[1], f.make<tensor::ExtractOp>(all, indices));
        });
  }
  return e.rounded(result, type);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// A reduction of the last dimension of `input` in `type`; `body` is given the
/// element in that type, the loop operands after it, and the running value.
static Value emitRowReduction(Emitter &e, Value input, ValueRange perRow,
                              FloatType type, double start, Body body) {
  SmallVector<OpFoldResult> shape = e.sizes(input);
  unsigned rank = shape.size();
  shape.pop_back();
  SmallVector<unsigned> rowDims =
      llvm::to_vector(llvm::seq<unsigned>(0, rank - 1));
  AffineMap rowMap = e.project(rank, rowDims);
  SmallVector<Value> inputs = {input};
  llvm::append_range(inputs, perRow);
  SmallVector<AffineMap> maps(inputs.size() + 1, rowMap);
  maps.front() = e.identity(rank);
  return e.generic(rank, 1, inputs, e.filled(shape, type, start), maps, type,
                   [&](const Formula &f, ValueRange in) -> Value {
                     SmallVector<Value> values(in);
                     values[0] = f.convert(values[0]);
                     return body(f, values);
                   });
}

/// An elementwise function of `input` (given in `type`), of one value a row for
/// each of `perRow`, and of one value a column for each of `perColumn`.
static Value emitRowMap(Emitter &e, Value input, ValueRange perRow,
                        ValueRange perColumn, FloatType type, Type element,
                        Body body) {
  SmallVector<OpFoldResult> shape = e.sizes(input);
  unsigned rank = shape.size();
  SmallVector<unsigned> rowDims =
      llvm::to_vector(llvm::seq<unsigned>(0, rank - 1));
  SmallVector<Value> inputs = {input};
  llvm::append_range(inputs, perRow);
  llvm::append_range(inputs, perColumn);
  SmallVector<AffineMap> maps = {e.identity(rank)};
  maps.append(perRow.size(), e.project(rank, rowDims));
  maps.append(perColumn.size(), e.project(rank, {rank - 1}));
  maps.push_back(e.identity(rank));
  return e.generic(
      rank, 0, inputs, e.empty(shape, element), maps, type,
      [&](const Formula &f, ValueRange in) -> Value {
        return body(f, llvm::map_to_vector(in.drop_back(), [&](Value value) {
                      return f.convert(value);
                    }));
      });
}

static Value emitRowSum(Emitter &e, Value input, FloatType type) {
  return emitRowReduction(e, input, {}, type, 0.0,
                          [](const Formula &f, ValueRange in) -> Value {
                            return f.add(in[1], in[0]);
                          });
}

/// The maximum of every row, with minus infinity replaced by 0, so that it can
/// be subtracted from a row that is all minus infinity.
static Value emitRowMaximum(Emitter &e, Value input, FloatType type) {
  Value maximum =
      emitRowReduction(e, input, {}, type, -kInfinity,
                       [](const Formula &f, ValueRange in) -> Value {
                         return f.make<arith::MaxNumFOp>(in[1], in[0]);
                       });
  return e.elementwise(maximum, e.empty(e.sizes(maximum), type), type,
                       [&](const Formula &f, ValueRange in) -> Value {
                         Value lowest = e.constant(type, -kInfinity);
                         Value zero = e.constant(type, 0.0);
                         return f.select(f.isEqual(in[0], lowest), zero, in[0]);
                       });
}

static Value emitRowExponentials(Emitter &e, Value input, Value maximum,
                                 FloatType type) {
  return emitRowMap(e, input, maximum, {}, type, type,
                    [](const Formula &f, ValueRange in) -> Value {
                      return f.make<math::ExpOp>(f.sub(in[0], in[1]));
                    });
}

static Value emitSoftmax(Emitter &e, SoftmaxOp op) {
  Value input = op.getInput();
  FloatType type = accumulationType({input, op.getResult()});
  Value maximum = emitRowMaximum(e, input, type);
  Value exponentials = emitRowExponentials(e, input, maximum, type);
  Value sum = emitRowSum(e, exponentials, type);
  Value result = emitRowMap(
      e, exponentials, sum, {}, type, resultType(op).getElementType(),
      [&](const Formula &f, ValueRange in) -> Value {
        Value zero = e.constant(type, 0.0);
        Value isEmpty = f.isEqual(in[1], zero);
        return f.select(isEmpty, zero, f.div(in[0], in[1]));
      });
  return e.cast(result, resultType(op));
}

/// Minus infinity for a row that is all minus infinity. The logarithm is added
/// to the maximum in the result's type, in which both may have room.
static Value emitLogSumExp(Emitter &e, LogSumExpOp op) {
  Value scores = op.getInput();
  FloatType type = accumulationType({scores});
  FloatType wide = accumulationType({scores, op.getResult()});
  Type element = resultType(op).getElementType();
  Value maximum = emitRowMaximum(e, scores, type);
  Value exponentials = emitRowExponentials(e, scores, maximum, type);
  Value sum = emitRowSum(e, exponentials, type);
  Value result = e.elementwise(
      {sum, maximum}, e.empty(e.sizes(sum), element), wide,
      [&](const Formula &f, ValueRange in) -> Value {
        Value isEmpty = f.isEqual(in[0], e.constant(type, 0.0));
        Value logarithm = f.make<math::LogOp>(f.convert(in[0]));
        Value value = f.add(logarithm, f.convert(in[1]));
        return f.select(isEmpty, e.constant(wide, -kInfinity), value);
      });
  return e.cast(result, resultType(op));
}

static Value emitSoftmaxBackward(Emitter &e, SoftmaxBackwardOp op) {
  Value p = op.getProbabilities(), g = op.getGradient();
  FloatType type = accumulationType({p, g, op.getResult()});
  SmallVector<OpFoldResult> shape = e.sizes(p);
  unsigned rank = shape.size();
  AffineMap rows =
      e.project(rank, llvm::to_vector(llvm::seq<unsigned>(0, rank - 1)));
  Value sum = e.generic(rank, 1, {p, g},
                        e.filled(ArrayRef(shape).drop_back(), type, 0.0),
                        {e.identity(rank), e.identity(rank), rows}, type,
                        [&](const Formula &f, ValueRange in) -> Value {
                          Value weight = f.convert(in[0]);
                          Value product = f.mul(weight, f.convert(in[1]));
                          return f.add(in[2], e.unlessZero(f, weight, product));
                        });
  auto element = cast<FloatType>(resultType(op).getElementType());
  Value result =
      e.generic(rank, 0, {p, g, sum}, e.empty(shape, element),
                {e.identity(rank), e.identity(rank), rows, e.identity(rank)},
                type, [&](const Formula &f, ValueRange in) -> Value {
                  Value difference = f.sub(f.convert(in[1]), in[2]);
                  Value weight = f.convert(in[0]);
                  return e.unlessZero(f, weight, f.mul(weight, difference));
                });
  return e.cast(result, resultType(op));
}

/// `1 / sqrt(sum / size + epsilon)` for every row's `sum`.
static Value emitReciprocalDeviation(Emitter &e, Value sum, Value size,
                                     double epsilon, FloatType type) {
  return e.elementwise(sum, e.empty(e.sizes(sum), type), type,
                       [&](const Formula &f, ValueRange in) -> Value {
                         Value biased = f.add(f.div(in[0], size),
                                              e.constant(type, epsilon));
                         Value root = f.make<math::SqrtOp>(biased);
                         return f.div(e.constant(type, 1.0), root);
                       });
}

/// Returns `value * weight + bias`, where weight and bias, if present, are at
/// the end of `in`.
static Value emitAffine(const Formula &f, Value value, ValueRange in,
                        bool weight, bool bias) {
  if (weight) {
    value = f.mul(value, in.front());
    in = in.drop_front();
  }
  return bias ? f.add(value, in.front()) : value;
}

static Value emitLayerNorm(Emitter &e, LayerNormOp op) {
  Value input = op.getInput();
  SmallVector<Value> perColumn;
  if (op.getWeight())
    perColumn.push_back(op.getWeight());
  if (op.getBias())
    perColumn.push_back(op.getBias());
  SmallVector<Value> operands = {input};
  llvm::append_range(operands, perColumn);
  FloatType type = accumulationType(operands);
  Value size = e.sizeAsFloat(e.sizes(input).back(), type);

  Value sum = emitRowSum(e, input, type);
  Value mean = e.elementwise(sum, e.empty(e.sizes(sum), type), type,
                             [&](const Formula &f, ValueRange in) -> Value {
                               return f.div(in[0], size);
                             });
  Value squares = emitRowReduction(
      e, input, mean, type, 0.0, [](const Formula &f, ValueRange in) -> Value {
        Value centred = f.sub(in[0], in[1]);
        return f.add(in[2], f.mul(centred, centred));
      });
  Value scale = emitReciprocalDeviation(
      e, squares, size, op.getEpsilon().convertToDouble(), type);
  Value result = emitRowMap(
      e, input, {mean, scale}, perColumn, type, resultType(op).getElementType(),
      [&](const Formula &f, ValueRange in) -> Value {
        Value normal = f.mul(f.sub(in[0], in[1]), in[2]);
        return emitAffine(f, normal, in.drop_front(3), bool(op.getWeight()),
                          bool(op.getBias()));
      });
  return e.cast(result, resultType(op));
}

static Value emitRMSNorm(Emitter &e, RMSNormOp op) {
  Value input = op.getInput();
  SmallVector<Value> perColumn;
  if (op.getWeight())
    perColumn.push_back(op.getWeight());
  SmallVector<Value> operands = {input};
  llvm::append_range(operands, perColumn);
  FloatType type = accumulationType(operands);
  Value size = e.sizeAsFloat(e.sizes(input).back(), type);
  Value squares = emitRowReduction(
      e, input, {}, type, 0.0, [](const Formula &f, ValueRange in) -> Value {
        return f.add(in[1], f.mul(in[0], in[0]));
      });
  Value scale = emitReciprocalDeviation(
      e, squares, size, op.getEpsilon().convertToDouble(), type);
  Value result = emitRowMap(
      e, input, scale, perColumn, type, resultType(op).getElementType(),
      [&](const Formula &f, ValueRange in) -> Value {
        return emitAffine(f, f.mul(in[0], in[1]), in.drop_front(2),
                          bool(op.getWeight()), false);
      });
  return e.cast(result, resultType(op));
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Reduces `values`, [P, B, H, Sq], over the parts in ascending order, in
/// `type`; `body` is given as for `emitRowReduction`.
static Value emitPartReduction(Emitter &e, Value values, ValueRange perRow,
                               FloatType type, double start, Body body) {
  // Loops: batch, head, query, part.
  AffineMap rows = e.project(4, {0, 1, 2});
  SmallVector<Value> inputs = {values};
  llvm::append_range(inputs, perRow);
  SmallVector<AffineMap> maps(inputs.size() + 1, rows);
  maps.front() = e.project(4, {3, 0, 1, 2});
  SmallVector<OpFoldResult> shape = e.sizes(values);
  return e.generic(4, 1, inputs,
                   e.filled(ArrayRef(shape).drop_front(), type, start), maps,
                   type, body);
}

/// Emits the output, and the log-sum-exp if the op has it, of all parts.
static SmallVector<Value> emitMerge(Emitter &e, MergeOp op) {
  Value parts = op.getParts(), partLse = op.getPartLse();
  auto outputType = cast<RankedTensorType>(op.getOutput().getType());
  auto wide = cast<FloatType>(getElementTypeOrSelf(partLse));
  FloatType type = accumulationType({parts, op.getOutput()});
  Value maximum =
      emitPartReduction(e, partLse, {}, wide, -kInfinity,
                        [](const Formula &f, ValueRange in) -> Value {
                          return f.make<arith::MaxNumFOp>(in[1], in[0]);
                        });
  // An exponential would be NaN where no part has a key.
  auto getWeight = [&](const Formula &f, Value lse, Value largest) {
    Value difference = f.make<arith::SubFOp>(lse, largest);
    Value weight = f.make<math::ExpOp>(f.convert(difference));
    return f.select(f.isEqual(lse, e.constant(wide, -kInfinity)),
                    e.constant(type, 0.0), weight);
  };
  Value sum =
      emitPartReduction(e, partLse, maximum, type, 0.0,
                        [&](const Formula &f, ValueRange in) -> Value {
                          return f.add(in[2], getWeight(f, in[0], in[1]));
                        });

  SmallVector<OpFoldResult> shape = e.sizes(partLse);
  std::rotate(shape.begin(), shape.begin() + 1, shape.end());
  AffineMap rows = e.project(4, {0, 1, 2});
  Value weights =
      e.generic(4, 0, {partLse, maximum, sum}, e.empty(shape, type),
                {e.project(4, {3, 0, 1, 2}), rows, rows, e.identity(4)}, type,
                [&](const Formula &f, ValueRange in) -> Value {
                  Value zero = e.constant(type, 0.0);
                  Value quotient = f.div(getWeight(f, in[0], in[1]), in[2]);
                  return f.select(f.isEqual(in[2], zero), zero, quotient);
                });

  // Loops: batch, head, query, part, feature. Features come last, so that all
  // steps are fused by rows.
  SmallVector<utils::IteratorType> loops(5, utils::IteratorType::parallel);
  loops[3] = utils::IteratorType::reduction;
  shape.back() = e.sizes(parts)[4];
  Value output =
      e.generic(loops, {parts, weights}, e.filled(shape, type, 0.0),
                {e.project(5, {3, 0, 1, 2, 4}), e.project(5, {0, 1, 2, 3}),
                 e.project(5, {0, 1, 2, 4})},
                type, [&](const Formula &f, ValueRange in) -> Value {
                  Value product = f.mul(in[1], f.convert(in[0]));
                  return f.add(in[2], e.unlessZero(f, in[1], product));
                });
  SmallVector<Value> results = {e.rounded(output, outputType)};
  if (!op.getLse())
    return results;

  auto lseType = cast<RankedTensorType>(op.getLse().getType());
  auto lseElement = cast<FloatType>(lseType.getElementType());
  FloatType widest = accumulationType({partLse, op.getLse(), sum});
  Value lse = e.elementwise(
      {sum, maximum}, e.empty(e.sizes(sum), lseElement), widest,
      [&](const Formula &f, ValueRange in) -> Value {
        Value isEmpty = f.isEqual(in[0], e.constant(type, 0.0));
        Value logarithm = f.make<math::LogOp>(in[0]);
        Value value = f.add(f.convert(logarithm), f.convert(in[1]));
        return f.select(isEmpty, e.constant(widest, -kInfinity), value);
      });
  results.push_back(e.cast(lse, lseType));
  return results;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

static Value emitScale(Emitter &e, ScaleOp op) {
  RankedTensorType resultTy = resultType(op);
  auto element = cast<FloatType>(resultTy.getElementType());
  FloatType type = getAccumulationType(element);
  return e.elementwise(op.getInput(), e.empty(e.sizes(op.getInput()), element),
                       type, [&](const Formula &f, ValueRange in) -> Value {
                         Value factor =
                             e.constant(type, op.getFactor().convertToDouble());
                         return f.mul(f.convert(in[0]), factor);
                       });
}

static Value emitModify(Emitter &e, ModifyOp op) {
  auto type = resultType(op);
  return e.elementwise(
      op.getInput(), e.empty(e.sizes(op.getInput()), type.getElementType()),
      type.getElementType(), [&](const Formula &f, ValueRange in) -> Value {
        SmallVector<Value> arguments = {in[0]};
        llvm::append_range(arguments, loopIndices(f, 4));
        return inlineBody(f.builder, op.getBody(), arguments);
      });
}

static Value emitMask(Emitter &e, MaskOp op) {
  auto element = cast<FloatType>(resultType(op).getElementType());
  return e.elementwise(
      op.getInput(), e.empty(e.sizes(op.getInput()), element), element,
      [&](const Formula &f, ValueRange in) -> Value {
        Value keep = inlineBody(f.builder, op.getBody(), loopIndices(f, 4));
        return f.select(keep, in[0], e.constant(element, -kInfinity));
      });
}

static Value emitDropout(Emitter &e, DropoutOp op) {
  Value input = op.getInput();
  auto element = cast<FloatType>(resultType(op).getElementType());
  FloatType type = getAccumulationType(element);
  double probability = op.getProbability().convertToDouble();
  SmallVector<OpFoldResult> inputSizes = e.sizes(input);
  SmallVector<Value> sizes;
  for (OpFoldResult size : ArrayRef(inputSizes).drop_back())
    sizes.push_back(e.index(size));
  unsigned rank = inputSizes.size();
  return e.elementwise(
      input, e.empty(inputSizes, element), type,
      [&](const Formula &f, ValueRange in) -> Value {
        SmallVector<Value> indices = loopIndices(f, rank);
        Value row = e.index(e.builder.getIndexAttr(0));
        for (unsigned dim = 0; dim + 1 < rank; ++dim) {
          Value above = dim == 0 ? indices[0] : Value();
          if (dim > 0) {
            Value product = f.make<arith::MulIOp>(row, sizes[dim]);
            above = f.make<arith::AddIOp>(product, indices[dim]);
          }
          row = above;
        }
        Value keep = emitDropoutKeep(f.builder, f.loc, indices.back(), row,
                                     op.getSeed(), op.getOffset(), probability);
        Value scaled = f.mul(f.convert(in[0]),
                             e.constant(type, 1.0 / (1.0 - probability)));
        return f.select(keep, scaled, e.constant(type, 0.0));
      });
}

static Value emitResidualAdd(Emitter &e, ResidualAddOp op) {
  auto element = cast<FloatType>(resultType(op).getElementType());
  FloatType type = accumulationType({op.getInput(), op.getResidual()});
  Value result = e.elementwise({op.getInput(), op.getResidual()},
                               e.empty(e.sizes(op.getInput()), element), type,
                               [](const Formula &f, ValueRange in) -> Value {
                                 Value left = f.convert(in[0]);
                                 return f.add(left, f.convert(in[1]));
                               });
  return e.cast(result, resultType(op));
}

static Value emitElementwise(Emitter &e, ElementwiseOp op) {
  RankedTensorType type = resultType(op);
  Value result = e.elementwise(
      op.getInputs(),
      e.empty(e.sizes(op.getInputs().front()), type.getElementType()),
      type.getElementType(), [&](const Formula &f, ValueRange in) -> Value {
        return inlineBody(f.builder, op.getBody(), in.drop_back());
      });
  return e.cast(result, type);
}

/// The feature dimension is viewed as the two members of a pair and the pair's
/// number, so that every access is affine: loops b, h, s and, in the order of
/// memory, member m and pair t; the pair's other member is 1 - m.
static Value emitRope(Emitter &e, RopeOp op) {
  Value input = op.getInput();
  RankedTensorType resultTy = resultType(op);
  auto element = cast<FloatType>(resultTy.getElementType());
  FloatType type = accumulationType({input, op.getCos(), op.getSin()});
  bool interleaved = op.getInterleaved();
  unsigned member = interleaved ? 4 : 3, pair = interleaved ? 3 : 4;

  SmallVector<OpFoldResult> sizes = e.sizes(input);
  OpFoldResult pairs;
  if (auto features = getConstantIntValue(sizes[3])) {
    pairs = e.builder.getIndexAttr(*features / 2);
  } else {
    Value two = e.index(e.builder.getIndexAttr(2));
    pairs = arith::DivUIOp::create(e.builder, e.loc, e.index(sizes[3]), two)
                .getResult();
  }
  sizes.resize(5);
  sizes[member] = e.builder.getIndexAttr(2);
  sizes[pair] = pairs;
  SmallVector<ReassociationIndices> reassociation = {{0}, {1}, {2}, {3, 4}};
  Value viewed = expandShape(e.builder, e.loc, input, reassociation, sizes);

  SmallVector<AffineExpr> other;
  for (unsigned dim = 0; dim < 5; ++dim) {
    AffineExpr expr = e.builder.getAffineDimExpr(dim);
    other.push_back(dim == member ? 1 - expr : expr);
  }
  AffineMap identity = e.identity(5);
  AffineMap angles = e.project(5, {2, pair});
  Value result = e.generic(
      5, 0, {viewed, viewed, op.getCos(), op.getSin()}, e.empty(sizes, element),
      {identity, AffineMap::get(5, 0, other, e.builder.getContext()), angles,
       angles, identity},
      type, [&](const Formula &f, ValueRange in) -> Value {
        SmallVector<Value> x;
        for (Value value : in.drop_back())
          x.push_back(f.convert(value));
        Value isFirst = f.make<arith::CmpIOp>(
            arith::CmpIPredicate::eq, f.make<linalg::IndexOp>(member),
            e.index(e.builder.getIndexAttr(0)));
        Value sine = f.select(isFirst, f.neg(x[3]), x[3]);
        Value product = f.mul(x[0], x[2]);
        return f.add(product, f.mul(x[1], sine));
      });
  result =
      tensor::CollapseShapeOp::create(e.builder, e.loc, result, reassociation);
  return e.cast(result, resultTy);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct AttnToLinalg final : impl::AttnToLinalgBase<AttnToLinalg> {
  using AttnToLinalgBase::AttnToLinalgBase;

  void runOnOperation() override {
    if (scope != "graph" && scope != "elementwise") {
      getOperation()->emitError("convert-attn-to-linalg: scope is `")
          << scope << "`, expected `graph` or `elementwise`";
      return signalPassFailure();
    }
    bool isGraph = scope == "graph";
    SmallVector<Operation *> graph;
    SmallVector<AttentionOp> attentions;
    int64_t kernel = 0;
    getOperation()->walk([&](Operation *op) {
      if (isa<ScaleOp, ResidualAddOp, ElementwiseOp, DropoutOp>(op))
        graph.push_back(op);
      else if (auto attention = dyn_cast<AttentionOp>(op); attention && isGraph)
        attentions.push_back(attention);
      else if (isGraph && isa<ScoresOp, ModifyOp, MaskOp, SoftmaxOp, ValuesOp,
                              LogSumExpOp, SoftmaxBackwardOp, SumQueriesOp,
                              LayerNormOp, RMSNormOp, RopeOp, MergeOp>(op))
        graph.push_back(op);
      if (auto number =
              op->getAttrOfType<IntegerAttr>(machine::kKernelAttrName))
        kernel = std::max(kernel, number.getInt() + 1);
    });
    for (AttentionOp op : attentions) {
      op.decompose(graph);
      ++numConverted;
    }
    for (Operation *op : graph) {
      Emitter emitter(op, kernel++);
      if (auto merge = dyn_cast<MergeOp>(op))
        op->replaceAllUsesWith(emitMerge(emitter, merge));
      else
        op->getResult(0).replaceAllUsesWith(emit(emitter, op));
      op->erase();
      ++numConverted;
    }
  }

  static Value emit(Emitter &e, Operation *op) {
    return TypeSwitch<Operation *, Value>(op)
        .Case([&](ScoresOp o) {
          return emitContraction(e, o.getQuery(), o.getKey(),
                                 /*transposed=*/true, /*skipsZeros=*/false,
                                 resultType(o));
        })
        .Case([&](ValuesOp o) {
          return emitContraction(e, o.getProbabilities(), o.getValue(),
                                 /*transposed=*/false, /*skipsZeros=*/true,
                                 resultType(o));
        })
        .Case([&](ScaleOp o) { return emitScale(e, o); })
        .Case([&](ModifyOp o) { return emitModify(e, o); })
        .Case([&](MaskOp o) { return emitMask(e, o); })
        .Case([&](SoftmaxOp o) { return emitSoftmax(e, o); })
        .Case([&](DropoutOp o) { return emitDropout(e, o); })
        .Case([&](LogSumExpOp o) { return emitLogSumExp(e, o); })
        .Case([&](SoftmaxBackwardOp o) { return emitSoftmaxBackward(e, o); })
        .Case([&](SumQueriesOp o) { return emitSumQueries(e, o); })
        .Case([&](LayerNormOp o) { return emitLayerNorm(e, o); })
        .Case([&](RMSNormOp o) { return emitRMSNorm(e, o); })
        .Case([&](RopeOp o) { return emitRope(e, o); })
        .Case([&](ResidualAddOp o) { return emitResidualAdd(e, o); })
        .Case([&](ElementwiseOp o) { return emitElementwise(e, o); });
  }
};
} // namespace
} // namespace fovea
