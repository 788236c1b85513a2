//===- DecomposeBackward.cpp - attn-decompose-backward --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Differentiate/DecomposeBackward.h"

#include "fovea/Analysis/Formula.h"
#include "fovea/Dialect/Attn/Differentiate/Backward.h"

#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/Differentiate/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNDECOMPOSEBACKWARD
#include "fovea/Dialect/Attn/Differentiate/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

namespace {
/// Writes one op as ops of the graph.
class Decomposition {
public:
  Decomposition(OpBuilder &builder, AttentionBackwardOp op)
      : builder(builder), op(op), loc(op.getLoc()),
        type(op.getAccumulationType()) {
    auto query = cast<RankedTensorType>(op.getQuery().getType());
    auto key = cast<RankedTensorType>(op.getKey().getType());
    scoreType = RankedTensorType::get({query.getDimSize(0), query.getDimSize(1),
                                       query.getDimSize(2), key.getDimSize(2)},
                                      type);
  }

  /// Returns the op's results; null after an error.
  SmallVector<Value> run() {
    buildScores();
    Value p = op.getProbabilities() ? op.getProbabilities() : recompute();
    Value dropped = drop(p);
    Value products = ScoresOp::create(builder, loc, scoreType, op.getGradient(),
                                      op.getValue());
    Value scoreGradient = buildScoreGradient(p, drop(products));

    // Where a key is masked, its probability is zero, and so is the gradient of
    // its score: the mask adds nothing to gradients.
    Backward backward(builder);
    backward.addVariable(scores);
    for (Value capture : op.getCaptures())
      backward.addVariable(capture);
    for (Operation *step : steps)
      backward.visit(step);
    backward.add(loc, modified, scoreGradient);
    for (Operation *step : llvm::reverse(steps))
      if (failed(backward.pull(step)))
        return {};
    // A score region that does not read its score has a derivative of zero.
    Value gradient = backward.lookup(scores);
    if (!gradient)
      gradient = castTensor(builder, loc,
                            buildZeros(builder, loc, scores, type), scoreType);
    SmallVector<Value> results = {
        ValuesOp::create(builder, loc, op.getQueryGradient().getType(),
                         gradient, op.getKey()),
        sumQueries(gradient, op.getQuery(), op.getKeyGradient()),
        sumQueries(dropped, op.getGradient(), op.getValueGradient())};
    for (auto [capture, result] :
         llvm::zip_equal(op.getCaptures(), op.getCaptureGradients())) {
      Value gradient = backward.lookup(capture);
      if (!gradient)
        gradient = buildZeros(builder, loc, capture,
                              cast<FloatType>(getElementTypeOrSelf(capture)));
      results.push_back(castTensor(builder, loc, gradient, result.getType()));
    }
    return results;
  }

private:
  void buildScores() {
    scores =
        ScoresOp::create(builder, loc, scoreType, op.getQuery(), op.getKey());
    modified = scores;
    if (!op.getScale().isExactlyValue(1.0))
      addStep(ScaleOp::create(builder, loc, scoreType, modified,
                              op.getScaleAttr()));
    if (op.getScore().empty())
      return;
    auto modify = ModifyOp::create(builder, loc, scoreType, modified);
    IRMapping mapping;
    op.getScore().cloneInto(&modify.getBody(), mapping);
    addStep(modify);
  }

  void addStep(Operation *step) {
    steps.push_back(step);
    modified = step->getResult(0);
  }

  /// Returns exp(s - lse), or 0 in a row without a key.
  Value recompute() {
    Value masked = modified;
    if (!op.getMask().empty()) {
      auto mask = MaskOp::create(builder, loc, scoreType, modified);
      IRMapping mapping;
      op.getMask().cloneInto(&mask.getBody(), mapping);
      masked = mask;
    }
    // The subtraction is in the log-sum-exp's own type, which may be wider.
    return combine({masked}, {op.getLse()}, [](Formula &f, ValueRange in) {
      Formula wide = {f.builder, f.loc, cast<FloatType>(in[1].getType())};
      Value lowest = wide.number(-std::numeric_limits<double>::infinity());
      Value isEmpty = wide.compare(arith::CmpFPredicate::OEQ, in[1], lowest);
      Value shift = wide.select(isEmpty, wide.number(0.0), in[1]);
      return f.make<math::ExpOp>(
          f.convert(wide.sub(wide.convert(in[0]), shift)));
    });
  }

  Value drop(Value value) {
    if (!op.getDropoutAttr())
      return value;
    return DropoutOp::create(builder, loc, scoreType, value,
                             op.getDropoutAttr(), op.getSeed(), op.getOffset());
  }

  /// Returns the gradient of the masked scores from that of the probabilities.
  Value buildScoreGradient(Value p, Value gradient) {
    if (Value delta = op.getDelta())
      return combine({p, gradient}, {delta}, [](Formula &f, ValueRange in) {
        // The value of an absent key may be NaN.
        Value zero = f.number(0.0);
        Value isAbsent = f.compare(arith::CmpFPredicate::OEQ, in[0], zero);
        return f.select(isAbsent, zero, f.mul(in[0], f.sub(in[1], in[2])));
      });
    Value result =
        SoftmaxBackwardOp::create(builder, loc, scoreType, p, gradient);
    if (Value lseGradient = op.getLseGradient())
      result =
          combine({result, p}, {lseGradient}, [](Formula &f, ValueRange in) {
            return f.add(in[0], f.mul(in[1], in[2]));
          });
    return result;
  }

  /// Builds an elementwise function of tensors of scores, and of one number for
  /// each row.
  Value combine(ValueRange tensors, ValueRange rows,
                llvm::function_ref<Value(Formula &, ValueRange)> body) {
    LoopNest nest;
    nest.sizes = tensor::getMixedSizes(builder, loc, scores);
    for (Value value : tensors)
      nest.addInput(value, mapAll(builder, 4));
    for (Value value : rows)
      nest.addInput(value, mapTo(builder, 4, {0, 1, 2}));
    Value result = buildSum(
        builder, loc, nest, {0, 1, 2, 3}, type,
        [&](OpBuilder &b, Location l, IndexFn, ValueRange in) -> Value {
          Formula f = {b, l, type};
          SmallVector<Value> operands;
          for (auto [number, value] : llvm::enumerate(in))
            operands.push_back(number < tensors.size() ? f.convert(value)
                                                       : Value(value));
          return body(f, operands);
        });
    return castTensor(builder, loc, result, scoreType);
  }

  Value sumQueries(Value weights, Value input, Value result) {
    auto resultType = cast<RankedTensorType>(result.getType());
    Value heads;
    if (resultType.isDynamicDim(1))
      heads = tensor::DimOp::create(builder, loc, op.getKey(), 1);
    return SumQueriesOp::create(builder, loc, resultType, weights, input,
                                heads);
  }

  OpBuilder &builder;
  AttentionBackwardOp op;
  Location loc;
  FloatType type;
  RankedTensorType scoreType;
  /// The scores without the mask: the products, and the score region's result.
  Value scores, modified;
  SmallVector<Operation *> steps;
};

} // namespace

LogicalResult fovea::attn::decomposeBackward(AttentionBackwardOp op) {
  OpBuilder builder(op);
  SmallVector<Value> results = Decomposition(builder, op).run();
  if (results.empty())
    return failure();
  op->replaceAllUsesWith(results);
  op.erase();
  return success();
}

namespace {
struct DecomposeBackward final
    : fovea::attn::impl::AttnDecomposeBackwardBase<DecomposeBackward> {
  using AttnDecomposeBackwardBase::AttnDecomposeBackwardBase;

  void runOnOperation() override {
    SmallVector<AttentionBackwardOp> ops;
    getOperation()->walk([&](AttentionBackwardOp op) {
      if (!storedOnly || op.getProbabilities())
        ops.push_back(op);
    });
    for (AttentionBackwardOp op : ops) {
      if (failed(decomposeBackward(op)))
        return signalPassFailure();
      ++numDecomposed;
    }
  }
};
} // namespace
