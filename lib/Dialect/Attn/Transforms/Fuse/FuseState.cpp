//===- FuseState.cpp - Sinks behind attention -----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sink is a score that takes part in the sum of a softmax, and has no value.
// Models write it as one more column of scores, which is dropped behind the
// softmax, or as a factor of the output, from the log-sum-exp.
//
//===----------------------------------------------------------------------===//

#include "FuseState.h"

#include "FuseSoftmax.h"
#include "fovea/Analysis/Formula.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace fovea::attn::fuse {

//===----------------------------------------------------------------------===//
// Columns of scores
//===----------------------------------------------------------------------===//

/// Returns the input of a softmax over the last of four dimensions, or null.
static Value getSoftmaxInput(Operation *op) {
  if (auto softmax = dyn_cast_or_null<SoftmaxOp>(op))
    return softmax.getInput();
  auto softmax = dyn_cast_or_null<linalg::SoftmaxOp>(op);
  return softmax && softmax.getDimension() == 3 ? softmax.getInput() : Value();
}

/// Returns true if `slice` drops only the last column of its source.
static bool dropsLastColumn(tensor::ExtractSliceOp slice, Value scores) {
  RankedTensorType type = slice.getType();
  auto scoreType = cast<RankedTensorType>(scores.getType());
  return type.getRank() == 4 && slice.hasUnitStride() &&
         llvm::all_of(slice.getMixedOffsets(), isZeroInteger) &&
         type.getShape() == scoreType.getShape() && type.hasStaticShape();
}

static bool moveSinkBehind(ValuesOp values) {
  auto slice =
      values.getProbabilities().getDefiningOp<tensor::ExtractSliceOp>();
  Operation *softmax = slice ? slice.getSource().getDefiningOp() : nullptr;
  Value input = getSoftmaxInput(softmax);
  auto concat = input ? input.getDefiningOp<tensor::ConcatOp>() : nullptr;
  if (!concat || concat.getDim() != 3 || concat.getInputs().size() != 2)
    return false;
  Value scores = concat.getInputs()[0], sink = concat.getInputs()[1];
  auto sinkType = cast<RankedTensorType>(sink.getType());
  if (sinkType.getRank() != 4 || sinkType.getDimSize(3) != 1 ||
      !dropsLastColumn(slice, scores))
    return false;

  OpBuilder builder(values);
  Location loc = values.getLoc();
  auto scoreType = cast<RankedTensorType>(scores.getType());
  auto outputType = cast<RankedTensorType>(values.getType());
  FloatType type = getAccumulationType(scoreType.getElementType());
  Value probabilities = SoftmaxOp::create(builder, loc, scoreType, scores);
  Value lse = LogSumExpOp::create(
      builder, loc,
      RankedTensorType::get(scoreType.getShape().drop_back(), type), scores);
  Value output = ValuesOp::create(builder, loc, outputType.clone(Type(type)),
                                  probabilities, values.getValue());
  AffineMap all = builder.getMultiDimIdentityMap(4);
  SmallVector<AffineExpr> first;
  for (int64_t dim = 0; dim < 3; ++dim)
    first.push_back(builder.getAffineDimExpr(dim));
  AffineMap rows = AffineMap::get(4, 0, first, builder.getContext());
  first.push_back(builder.getAffineConstantExpr(0));
  AffineMap column = AffineMap::get(4, 0, first, builder.getContext());
  Value empty = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, output),
      outputType.getElementType());
  Value scaled =
      linalg::GenericOp::create(
          builder, loc, empty.getType(), ValueRange{output, lse, sink}, empty,
          ArrayRef<AffineMap>{all, rows, column, all},
          SmallVector<utils::IteratorType>(4, utils::IteratorType::parallel),
          [&](OpBuilder &b, Location l, ValueRange in) {
            Formula f = {b, l, type};
            Value distance = f.sub(f.convert(in[2]), in[1]);
            Value sum = f.add(f.number(1.0), f.make<math::ExpOp>(distance));
            linalg::YieldOp::create(b, l,
                                    convertFloats(b, l, f.div(in[0], sum),
                                                  outputType.getElementType()));
          })
          .getResult(0);
  values.getResult().replaceAllUsesWith(
      builder.createOrFold<tensor::CastOp>(loc, outputType, scaled));
  values.erase();
  for (Operation *op : {slice.getOperation(), softmax, concat.getOperation()}) {
    if (!isOpTriviallyDead(op))
      break;
    op->erase();
  }
  return true;
}

void moveSinksBehindValues(Operation *root) {
  SmallVector<ValuesOp> all;
  root->walk([&](ValuesOp values) { all.push_back(values); });
  for (ValuesOp values : all)
    moveSinkBehind(values);
}

//===----------------------------------------------------------------------===//
// Factors of the output
//===----------------------------------------------------------------------===//

namespace {
using Dims = SmallVector<int64_t, 4>;

/// A tensor of sinks, and those of its dimensions that are rows' dimensions.
/// Others have size one.
struct Sinks {
  Value tensor = {};
  Dims dims = {};

  /// Returns the tensor without other dimensions.
  Value collapse(OpBuilder &builder, Location loc) const {
    int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
    if (int64_t(dims.size()) == rank)
      return tensor;
    SmallVector<ReassociationIndices> groups(dims.size());
    for (int64_t dim = 0; dim < rank; ++dim) {
      // A dimension of size one joins the one before it, or the first.
      int64_t before =
          llvm::count_if(dims, [&](int64_t d) { return d <= dim; });
      groups[std::max<int64_t>(before - 1, 0)].push_back(dim);
    }
    return tensor::CollapseShapeOp::create(builder, loc, tensor, groups);
  }
};

/// Matches elements of readers of an attention.
class SinkMatcher {
public:
  explicit SinkMatcher(AttentionOp attention)
      : attention(attention), graph(axes, attention.getContext()) {
    ArrayRef<int64_t> shape = attention.getOutput().getType().getShape();
    for (auto [dim, size] : llvm::enumerate(shape)) {
      place.push_back({axes.getLoop(attention, dim, size)});
      axes.keep(place.back());
    }
  }

  /// Returns the sinks by which `result`, of the output's shape, is the output
  /// scaled; none if it is something else.
  Sinks match(Value result) {
    auto [numerator, sum] =
        matchQuotient(stripCasts(graph.read(result, place)));
    if (!numerator || !isOutput(numerator))
      return {};
    auto add = stripCasts(sum).getDefiningOp<arith::AddFOp>();
    if (!add)
      return {};
    for (unsigned one : {0, 1}) {
      if (getConstantFloat(stripCasts(add->getOperand(one))) != 1.0)
        continue;
      auto exp =
          stripCasts(add->getOperand(1 - one)).getDefiningOp<math::ExpOp>();
      if (exp)
        return matchDistance(stripCasts(exp.getOperand()), false);
    }
    return {};
  }

private:
  bool isLeaf(Value scalar, Value tensor, ArrayRef<Axes> access) {
    const Leaf *leaf = graph.lookupLeaf(stripCasts(scalar));
    return leaf && leaf->tensor == tensor &&
           ArrayRef(leaf->access) == ArrayRef(axes.flatten(Access(access)));
  }

  bool isOutput(Value scalar) {
    return isLeaf(scalar, attention.getOutput(), place);
  }

  /// Matches `sink - lse`, or if it `isNegated` its negation.
  Sinks matchDistance(Value scalar, bool isNegated) {
    if (auto negation = scalar.getDefiningOp<arith::NegFOp>())
      return matchDistance(stripCasts(negation.getOperand()), !isNegated);
    auto difference = scalar.getDefiningOp<arith::SubFOp>();
    if (!difference)
      return {};
    Value sink = difference.getLhs(), lse = difference.getRhs();
    if (isNegated)
      std::swap(sink, lse);
    if (!isLeaf(lse, attention.getLse(), ArrayRef(place).drop_back()))
      return {};
    const Leaf *leaf = graph.lookupLeaf(stripCasts(sink));
    if (!leaf || leaf->tensor == attention.getOutput() ||
        leaf->tensor == attention.getLse())
      return {};
    // Dimensions of size one may be left out.
    Dims all, wide;
    for (auto [dim, size] : llvm::enumerate(
             cast<RankedTensorType>(leaf->tensor.getType()).getShape())) {
      all.push_back(dim);
      if (size != 1)
        wide.push_back(dim);
    }
    for (const Dims &dims : {all, wide})
      if (areRows(*leaf, dims))
        return Sinks{leaf->tensor, dims};
    return {};
  }

  /// Returns true if these dimensions of `leaf` are heads, heads and queries,
  /// or batches, heads and queries.
  bool areRows(const Leaf &leaf, const Dims &dims) {
    if (dims.empty() || dims.size() > 3)
      return false;
    Access rows = axes.flatten(place);
    return llvm::all_of(llvm::zip_equal(dims, getInitDims(dims.size())),
                        [&](auto pair) {
                          auto [dim, row] = pair;
                          return leaf.access[dim] == rows[row];
                        });
  }

  AttentionOp attention;
  AxisTable axes;
  ScalarGraph graph;
  Access place;
};
} // namespace

/// Returns the only user of `value`, if it makes a tensor of its shape.
static Operation *getOnlyReader(Value value) {
  Operation *user = nullptr;
  for (Operation *candidate : value.getUsers()) {
    if (user && candidate != user)
      return nullptr;
    user = candidate;
  }
  if (!user || user->getNumResults() != 1 ||
      user->getBlock() != value.getParentBlock())
    return nullptr;
  auto type = dyn_cast<RankedTensorType>(user->getResult(0).getType());
  if (!type || failed(verifyCompatibleShape(
                   type, cast<RankedTensorType>(value.getType()))))
    return nullptr;
  return user;
}

/// Returns true if nothing but `last` needs `attention`.
static bool isOnlyNeededBy(AttentionOp attention, Operation *last) {
  DenseSet<Operation *> visited = {last};
  SmallVector<Operation *> worklist(attention->getUsers());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!visited.insert(op).second)
      continue;
    if (op->getBlock() != attention->getBlock() || !wouldOpBeTriviallyDead(op))
      return false;
    llvm::append_range(worklist, op->getUsers());
  }
  return true;
}

bool raiseSinks(AttentionOp attention) {
  constexpr unsigned kMaxSteps = 8;
  if (!attention.getLse() || attention.getInitLse() || attention.getSchedule())
    return false;
  Operation *last = nullptr;
  Sinks found;
  {
    SinkMatcher matcher(attention);
    Operation *reader = getOnlyReader(attention.getOutput());
    for (unsigned step = 0; reader && !found.tensor && step < kMaxSteps;
         ++step) {
      found = matcher.match(reader->getResult(0));
      last = reader;
      reader = getOnlyReader(reader->getResult(0));
    }
  }
  auto element = found.tensor
                     ? dyn_cast<FloatType>(getElementTypeOrSelf(found.tensor))
                     : FloatType();
  if (!element || !isOnlyNeededBy(attention, last))
    return false;

  OpBuilder builder(last);
  Location loc = last->getLoc();
  FloatType accumulation = attention.getAccumulationType();
  Value sinks = found.collapse(builder, loc);
  if (element.getWidth() < accumulation.getWidth())
    sinks = convertFloats(builder, loc, sinks, accumulation);
  auto type = cast<RankedTensorType>(last->getResult(0).getType());
  auto outputType = attention.getOutput().getType();
  auto raised = AttentionOp::create(
      builder, loc, outputType.clone(type.getElementType()), Type(),
      attention.getQuery(), attention.getKey(), attention.getValue(),
      attention.getScaleAttr(), attention.getDropoutAttr(), attention.getSeed(),
      attention.getOffset(), /*initOutput=*/Value(), sinks,
      attention.getSplitSizeAttr(), /*schedule=*/ScheduleAttr());
  raised.getScore().takeBody(attention.getScore());
  raised.getMask().takeBody(attention.getMask());
  last->getResult(0).replaceAllUsesWith(
      builder.createOrFold<tensor::CastOp>(loc, type, raised.getOutput()));
  eraseUnused(last);
  return true;
}

} // namespace fovea::attn::fuse
