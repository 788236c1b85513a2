//===- InsertRecomputation.cpp - attn-insert-recomputation ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/CostModel.h"
#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/Differentiate/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "attn-insert-recomputation"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNINSERTRECOMPUTATION
#include "fovea/Dialect/Attn/Differentiate/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

//===----------------------------------------------------------------------===//
// The forward pass
//===----------------------------------------------------------------------===//

namespace {
/// The graph that computes the saved probabilities.
struct Forward {
  SoftmaxOp softmax;
  /// The output, and log-sum-exps of the same scores.
  ValuesOp values;
  SmallVector<LogSumExpOp> lse;
};
} // namespace

static bool isSameRegion(Region &a, Region &b) {
  return OperationEquivalence::isRegionEquivalentTo(
      &a, &b, OperationEquivalence::IgnoreLocations);
}

/// Returns the graph of `op`'s forward pass, if its probabilities come from the
/// same queries, keys, scale, regions and dropout.
static std::optional<Forward> matchForward(AttentionBackwardOp op) {
  Forward forward;
  forward.softmax = op.getProbabilities().getDefiningOp<SoftmaxOp>();
  if (!forward.softmax)
    return std::nullopt;
  Value scores = forward.softmax.getInput(), value = scores;
  if (!op.getMask().empty()) {
    auto mask = value.getDefiningOp<MaskOp>();
    if (!mask || !isSameRegion(mask.getBody(), op.getMask()))
      return std::nullopt;
    value = mask.getInput();
  }
  if (!op.getScore().empty()) {
    auto modify = value.getDefiningOp<ModifyOp>();
    if (!modify || !isSameRegion(modify.getBody(), op.getScore()))
      return std::nullopt;
    value = modify.getInput();
  }
  if (!op.getScale().isExactlyValue(1.0)) {
    auto scale = value.getDefiningOp<ScaleOp>();
    if (!scale || scale.getFactor() != op.getScale())
      return std::nullopt;
    value = scale.getInput();
  }
  auto product = value.getDefiningOp<ScoresOp>();
  if (!product || product.getQuery() != op.getQuery() ||
      product.getKey() != op.getKey())
    return std::nullopt;

  Value weights = op.getProbabilities();
  if (op.getDropoutAttr()) {
    weights = Value();
    for (Operation *user : op.getProbabilities().getUsers())
      if (auto dropout = dyn_cast<DropoutOp>(user);
          dropout && dropout.getProbabilityAttr() == op.getDropoutAttr() &&
          dropout.getSeed() == op.getSeed() &&
          dropout.getOffset() == op.getOffset())
        weights = dropout;
  }
  if (weights)
    for (Operation *user : weights.getUsers())
      if (auto values = dyn_cast<ValuesOp>(user);
          values && values.getProbabilities() == weights &&
          values.getValue() == op.getValue())
        forward.values = values;
  if (!forward.values)
    return std::nullopt;
  for (Operation *user : scores.getUsers())
    if (auto lse = dyn_cast<LogSumExpOp>(user))
      forward.lse.push_back(lse);
  return forward;
}

//===----------------------------------------------------------------------===//
// Recomputing
//===----------------------------------------------------------------------===//

/// Builds the forward pass that saves no probabilities, next to the one that
/// does.
static AttentionOp buildForward(RewriterBase &rewriter, AttentionBackwardOp op,
                                Forward &forward) {
  auto outputType = cast<RankedTensorType>(forward.values.getType());
  auto rowType = RankedTensorType::get(outputType.getShape().drop_back(),
                                       op.getAccumulationType());
  // In f32 the log-sum-exp of large scores would have no room for the logarithm
  // of the sum.
  RankedTensorType lseType = rowType.clone(rewriter.getF64Type());
  rewriter.setInsertionPoint(forward.values);
  auto attention = AttentionOp::create(
      rewriter, forward.values.getLoc(), outputType, lseType, op.getQuery(),
      op.getKey(), op.getValue(), op.getScaleAttr(), op.getDropoutAttr(),
      op.getSeed(), op.getOffset(), /*initOutput=*/Value(),
      /*initLse=*/Value(), /*split_size=*/IntegerAttr(),
      /*schedule=*/ScheduleAttr());
  rewriter.cloneRegionBefore(op.getScore(), attention.getScore(),
                             attention.getScore().end());
  rewriter.cloneRegionBefore(op.getMask(), attention.getMask(),
                             attention.getMask().end());
  return attention;
}

static void recompute(RewriterBase &rewriter, AttentionBackwardOp op,
                      Forward &forward, AttentionOp attention) {
  RankedTensorType rowType =
      cast<RankedTensorType>(attention.getLse().getType())
          .clone(op.getAccumulationType());
  rewriter.setInsertionPoint(op);
  // Delta is computed from the gradient that is multiplied, which a GPU rounds
  // first.
  Value gradient = op.getGradient();
  if (machine::getTargetOrDefault(op).isGpu())
    gradient = convertFloats(rewriter, op.getLoc(), gradient,
                             fovea::getProductType(op));
  Value delta = buildDelta(rewriter, op.getLoc(), gradient,
                           attention.getOutput(), op.getLseGradient(), rowType);
  auto gradients = AttentionBackwardOp::create(
      rewriter, op.getLoc(), op.getQueryGradient().getType(),
      op.getKeyGradient().getType(), op.getValueGradient().getType(),
      op.getCaptureGradients().getTypes(), op.getQuery(), op.getKey(),
      op.getValue(), gradient, /*probabilities=*/Value(), attention.getLse(),
      delta, /*lseGradient=*/Value(), op.getCaptures(), op.getScaleAttr(),
      op.getDropoutAttr(), op.getSeed(), op.getOffset(),
      /*schedule=*/ScheduleAttr());
  rewriter.inlineRegionBefore(op.getScore(), gradients.getScore(),
                              gradients.getScore().end());
  rewriter.inlineRegionBefore(op.getMask(), gradients.getMask(),
                              gradients.getMask().end());
  rewriter.replaceOp(op, gradients.getResults());

  rewriter.replaceAllUsesWith(forward.values, attention.getOutput());
  for (LogSumExpOp lse : forward.lse)
    if (attention->isBeforeInBlock(lse)) {
      rewriter.setInsertionPoint(lse);
      rewriter.replaceAllUsesWith(lse, castTensor(rewriter, lse.getLoc(),
                                                  attention.getLse(),
                                                  lse.getType()));
      eraseUnused(lse);
    }
  eraseUnused(forward.values);
}

//===----------------------------------------------------------------------===//
// Deciding
//===----------------------------------------------------------------------===//

namespace {
struct Decision {
  bool recomputes;
  std::string why;
};
} // namespace

static std::string formatBytes(double bytes) {
  if (bytes < 1 << 20)
    return llvm::formatv("{0:F1} KiB", bytes / (1 << 10));
  return llvm::formatv("{0:F1} MiB", bytes / (1 << 20));
}

static std::string formatTime(double seconds) {
  if (seconds < 1e-3)
    return llvm::formatv("{0:F2} us", seconds * 1e6);
  return llvm::formatv("{0:F2} ms", seconds * 1e3);
}

/// Returns the seconds of both passes by `fovea::estimateCost`: without saved
/// probabilities, and with them. Costs that both ways share are left out.
static std::pair<double, double> predict(AttentionBackwardOp op,
                                         AttentionOp attention,
                                         ScheduleAttr schedule,
                                         machine::TargetAttr target) {
  auto shape = fovea::AttentionShape::get(attention);
  shape.visible =
      fovea::estimateVisible(op.getMask(), shape.queries, shape.keys);
  double scores = double(shape.batch * shape.heads) * double(shape.queries) *
                  double(shape.keys);
  double bytes = scores * double(shape.accumulationBytes);
  double depth = 2.0 * double(shape.headDim),
         width = 2.0 * double(shape.valueDim);
  double modified = fovea::countFlops(op.getScore());
  auto kernel = [&](double flops, double passes) {
    return fovea::predictKernel(scores * flops, passes * bytes, target);
  };
  // Scores, and the steps from them to probabilities.
  double forward = kernel(depth, 1) + kernel(6 + modified, 2);
  // Gradients of values, probabilities, scores, queries and keys.
  double backward =
      2 * kernel(width, 1) + kernel(4 + modified, 3) + 2 * kernel(depth, 1);
  double saved = forward + kernel(width, 1) + backward;
  double fused = fovea::predictSeconds(shape, target, schedule);
  // On a GPU without a kernel for it, scores are in memory in either case.
  double recomputed =
      target.isGpu() ? fused + forward + backward
                     : fused + kernel(shape.visible * (3 * depth + 2 * width +
                                                       4 + 2 * modified),
                                      0);
  return {recomputed, saved};
}

/// Decides which way is faster by the model of the target.
static Decision decide(AttentionBackwardOp op, AttentionOp attention) {
  machine::TargetAttr target = machine::getTargetOrDefault(op);
  if (target.isGpu() && fovea::selectSchedule(op, target))
    return {true, "the backward pass has a kernel that keeps scores in "
                  "registers"};
  auto type = cast<RankedTensorType>(op.getProbabilities().getType());
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  if (!type.hasStaticShape() || query.isDynamicDim(3))
    return {true, "the number of scores is not known, and memory for them "
                  "grows with queries times keys"};
  ScheduleAttr schedule = fovea::selectSchedule(attention, target);
  if (!schedule)
    return {false, "no tile of the head dim fits the target"};
  auto [recomputed, saved] = predict(op, attention, schedule, target);
  double bytes =
      double(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
  return {recomputed <= saved,
          llvm::formatv("the model predicts {0} where they are recomputed, and "
                        "{1} where {2} of them are saved",
                        formatTime(recomputed), formatTime(saved),
                        formatBytes(bytes))};
}

fovea::Choices<Recomputation> fovea::attn::getRecomputationChoices() {
  static const Choice<Recomputation> all[] = {
      {Recomputation::Auto, "auto", "where that is predicted to be faster"},
      {Recomputation::Always, "always", "everywhere"},
      {Recomputation::Never, "never", "nowhere"}};
  return {"policy of recomputation", all};
}

namespace {
struct InsertRecomputation final
    : fovea::attn::impl::AttnInsertRecomputationBase<InsertRecomputation> {
  using AttnInsertRecomputationBase::AttnInsertRecomputationBase;

  void runOnOperation() override {
    SmallVector<AttentionBackwardOp> ops;
    getOperation()->walk([&](AttentionBackwardOp op) {
      if (op.getProbabilities())
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (AttentionBackwardOp op : ops) {
      std::string function;
      if (auto parent = op->getParentOfType<FunctionOpInterface>())
        function = parent.getName().str();
      auto options = remark::RemarkOpts::name("probabilities")
                         .category(getArgument())
                         .function(function);
      std::optional<Forward> forward;
      AttentionOp attention;
      Decision decision = {policy == Recomputation::Always,
                           "the policy says so"};
      if (policy != Recomputation::Never) {
        forward = matchForward(op);
        if (forward)
          attention = buildForward(rewriter, op, *forward);
        else
          decision = {false, "they are not the forward pass of the same "
                             "attention"};
      }
      if (policy == Recomputation::Auto && forward)
        decision = decide(op, attention);
      Location loc = op.getLoc();
      LDBG() << "the backward pass at " << loc << ": probabilities are "
             << (decision.recomputes ? "recomputed" : "saved") << ", because "
             << decision.why;
      if (decision.recomputes) {
        recompute(rewriter, op, *forward, attention);
        ++numRecomputed;
        remark::passed(loc, options)
            << "probabilities are recomputed, because " + decision.why;
        continue;
      }
      if (attention)
        rewriter.eraseOp(attention);
      ++numSaved;
      std::string what = "probabilities are saved, because " + decision.why;
      // A choice that was requested is not a missed optimization.
      if (policy == Recomputation::Never)
        remark::passed(loc, options) << what;
      else
        remark::missed(loc, options) << what;
    }
  }
};
} // namespace
