//===- OnlineSoftmax.cpp - attn-online-softmax: to running values ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmptyTensor.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNONLINESOFTMAX
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace fovea::attn;

/// Returns a tensor of `type` filled with `value`.
static Value filledWith(OpBuilder &builder, Location loc, RankedTensorType type,
                        ArrayRef<OpFoldResult> sizes, double value) {
  auto element = cast<FloatType>(type.getElementType());
  Value constant = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(element, value));
  Value empty = emptyOf(builder, loc, type, sizes);
  return linalg::FillOp::create(builder, loc, constant, empty).getResult(0);
}

/// Returns the running values that each of `passes` passes over the keys
/// updates.
static ArrayRef<Update> updatesOf(int passes) {
  static constexpr Update one[] = {Update::All};
  static constexpr Update two[] = {Update::MaxSum, Update::Acc};
  static constexpr Update three[] = {Update::Max, Update::Sum, Update::Acc};
  return passes == 1   ? ArrayRef<Update>(one)
         : passes == 2 ? ArrayRef<Update>(two)
                       : ArrayRef<Update>(three);
}

static void toRunningValues(RewriterBase &rewriter, AttentionOp op,
                            int passes) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  ReifiedRankedShapedTypeDims shapes;
  LogicalResult reified = op.reifyResultShapes(rewriter, shapes);
  assert(succeeded(reified) && "attention knows its shapes");
  (void)reified;
  ArrayRef<OpFoldResult> sizes = shapes.front();
  bool hasRegion = !op.getScore().empty();

  auto outputType = cast<RankedTensorType>(op.getOutput().getType());
  FloatType accumulation = op.getAccumulationType();
  auto accType = RankedTensorType::get(outputType.getShape(), accumulation);
  auto rowType =
      RankedTensorType::get(outputType.getShape().drop_back(), accumulation);
  double minusInfinity = -std::numeric_limits<double>::infinity();
  // In the order of the op's destinations: accumulator, maximum, sum.
  SmallVector<Value> running = {
      filledWith(rewriter, loc, accType, sizes, 0.0),
      filledWith(rewriter, loc, rowType, sizes, minusInfinity),
      filledWith(rewriter, loc, rowType, sizes, 0.0)};

  for (Update update : updatesOf(passes)) {
    bool updatesAcc = update == Update::All || update == Update::Acc;
    bool drops = updatesAcc && op.getDropout();
    auto pass = OnlineAttentionOp::create(
        rewriter, loc, ValueRange(running).getTypes(), op.getQuery(),
        op.getKey(), op.getValue(), running[0], running[1], running[2],
        /*at=*/ValueRange(), /*whole=*/ValueRange(), /*rows=*/Value(),
        /*partial=*/Value(), /*ends=*/ValueRange(), op.getScaleAttr(),
        UpdateAttr::get(op.getContext(), update),
        drops ? op.getDropoutAttr() : FloatAttr(),
        drops ? op.getSeed() : Value(), drops ? op.getOffset() : Value(),
        op.getScheduleAttr());
    rewriter.cloneRegionBefore(op.getScore(), pass.getScore(),
                               pass.getScore().end());
    rewriter.cloneRegionBefore(op.getMask(), pass.getMask(),
                               pass.getMask().end());
    // Running values that a pass does not update bypass it.
    bool updated[] = {pass.updatesAcc(), pass.updatesMax(), pass.updatesSum()};
    for (auto [value, result, isUpdated] :
         llvm::zip(running, pass.getResults(), updated))
      if (isUpdated)
        value = result;
  }

  auto lseType = op.getLse() ? cast<RankedTensorType>(op.getLse().getType())
                             : RankedTensorType();
  // A state with an output is merged by what reads the result.
  bool merges = op.getInitOutput() != nullptr;
  SmallVector<Value> inits = {
      emptyOf(rewriter, loc, merges ? accType : outputType, sizes)};
  if (lseType || merges)
    inits.push_back(
        emptyOf(rewriter, loc, lseType ? lseType : rowType, sizes.drop_back()));
  auto finalize = FinalizeOp::create(
      rewriter, loc, ValueRange(inits).getTypes(), running[0], running[1],
      running[2], merges ? Value() : op.getInitLse(), /*when=*/Value(),
      inits[0], inits.size() == 2 ? inits[1] : Value(), /*rest=*/Value(),
      /*natural=*/hasRegion);
  if (!merges)
    return rewriter.replaceOp(op, finalize);
  rewriter.replaceOp(
      op, mergeStates(
              rewriter, loc, {finalize->getResult(0), finalize->getResult(1)},
              {op.getInitOutput(), op.getInitLse()}, outputType, lseType));
}

/// Replaces the backward pass by additions to sums that begin at zero, and
/// their rounding.
static void toRunningSums(RewriterBase &rewriter, AttentionBackwardOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  FloatType accumulation = op.getAccumulationType();
  SmallVector<Value> sums;
  for (Value primal : {op.getQuery(), op.getKey(), op.getValue()})
    sums.push_back(
        differentiate::buildZeros(rewriter, loc, primal, accumulation));
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    sums.push_back(differentiate::buildZeros(
        rewriter, loc, capture, fovea::getCaptureSumType(op, number)));
  auto pass = OnlineBackwardOp::create(
      rewriter, loc, ValueRange(sums).getTypes(), op.getQuery(),
      op.getGradient(), op.getKey(), op.getValue(), op.getLse(), op.getDelta(),
      /*packedQuery=*/Value(), /*packedGradient=*/Value(), op.getCaptures(),
      sums[0], sums[1], sums[2], ArrayRef(sums).drop_front(3),
      /*scores=*/Value(), /*scoreGradient=*/Value(), /*at=*/ValueRange(),
      /*whole=*/ValueRange(), /*partial=*/Value(), op.getScaleAttr(),
      op.getDropoutAttr(), op.getSeed(), op.getOffset(), op.getScheduleAttr());
  rewriter.cloneRegionBefore(op.getScore(), pass.getScore(),
                             pass.getScore().end());
  rewriter.cloneRegionBefore(op.getMask(), pass.getMask(),
                             pass.getMask().end());
  SmallVector<Value> results;
  for (auto [sum, wanted] : llvm::zip_equal(pass.getResults(), op.getResults()))
    results.push_back(
        differentiate::castTensor(rewriter, loc, sum, wanted.getType()));
  rewriter.replaceOp(op, results);
}

namespace {
struct AttnOnlineSoftmax final
    : fovea::attn::impl::AttnOnlineSoftmaxBase<AttnOnlineSoftmax> {
  using AttnOnlineSoftmaxBase::AttnOnlineSoftmaxBase;

  void runOnOperation() override {
    if (passes < 1 || passes > 3) {
      getOperation()->emitError()
          << "attn-online-softmax: expects option 'passes' to be 1, 2 or 3, "
             "but it is "
          << passes.getValue();
      return signalPassFailure();
    }
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](AttentionOp op) {
      if (scheduledOnly && !op.getSchedule())
        return;
      toRunningValues(rewriter, op, passes);
      ++numRewritten;
    });
    getOperation()->walk([&](AttentionBackwardOp op) {
      if (!op.getSchedule())
        return;
      toRunningSums(rewriter, op);
      ++numRewritten;
    });
  }
};
} // namespace
