//===- DivideGroups.cpp - attn-divide-groups ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Query head h reads head h div G of the keys. With P copies of each of these,
// one after another, it reads copy h div (G div P), which is one of the same
// head, so that nothing else has to change.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

#define DEBUG_TYPE "attn-divide-groups"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNDIVIDEGROUPS
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The dimensions of [B, Hkv, P, Sk, D] whose copies of a head lie one after
/// another in [B, Hkv * P, Sk, D].
static const SmallVector<ReassociationIndices> kCopies = {
    {0}, {1, 2}, {3}, {4}};

/// Returns the sizes of `heads`, [B, Hkv, Sk, D], with those of its copies.
static SmallVector<OpFoldResult> getSizesOfCopies(OpBuilder &builder,
                                                  Value heads, int64_t shares) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, heads.getLoc(), heads);
  sizes.insert(sizes.begin() + 2, builder.getIndexAttr(shares));
  return sizes;
}

/// Returns each head of keys or values `shares` times.
static Value repeat(OpBuilder &builder, Location loc, Value heads,
                    int64_t shares) {
  Value empty = tensor::EmptyOp::create(
      builder, loc, getSizesOfCopies(builder, heads, shares),
      getElementTypeOrSelf(heads));
  Value copies = linalg::BroadcastOp::create(builder, loc, heads, empty,
                                             builder.getDenseI64ArrayAttr({2}))
                     ->getResult(0);
  return tensor::CollapseShapeOp::create(builder, loc, copies, kCopies);
}

/// Returns, in the type of `gradient`, the sum of the gradients of the copies
/// of `heads`. Features are the last loop, for neighbouring threads to read
/// neighbours.
static Value addCopies(OpBuilder &builder, Location loc, Value ofCopies,
                       Value heads, int64_t shares, Value gradient) {
  using utils::IteratorType;
  Value copies = expandShape(builder, loc, ofCopies, kCopies,
                             getSizesOfCopies(builder, heads, shares));
  Value zeros = differentiate::buildZeros(
      builder, loc, heads, cast<FloatType>(getElementTypeOrSelf(ofCopies)));
  AffineMap maps[] = {differentiate::mapTo(builder, 5, {0, 1, 3, 2, 4}),
                      differentiate::mapTo(builder, 5, {0, 1, 2, 4})};
  IteratorType iterators[] = {IteratorType::parallel, IteratorType::parallel,
                              IteratorType::parallel, IteratorType::reduction,
                              IteratorType::parallel};
  auto sum = linalg::GenericOp::create(
      builder, loc, zeros.getType(), copies, zeros, maps, iterators,
      [](OpBuilder &body, Location loc, ValueRange in) {
        Value added = arith::AddFOp::create(body, loc, in[1], in[0]);
        linalg::YieldOp::create(body, loc, added);
      });
  return differentiate::castTensor(builder, loc, sum.getResult(0),
                                   gradient.getType());
}

static void divide(RewriterBase &rewriter, AttentionBackwardOp op) {
  Location loc = op.getLoc();
  ScheduleAttr schedule = op.getScheduleAttr();
  GradientsAttr gradients = schedule.getGradients();
  int64_t shares = gradients.getShares();
  LDBG() << "the backward pass at " << loc << ": " << shares
         << " shares of the heads of a group";
  rewriter.setInsertionPoint(op);
  Value heads[] = {op.getKey(), op.getValue()};
  auto divided = cast<AttentionBackwardOp>(rewriter.clone(*op));
  divided.setScheduleAttr(schedule.with(
      {.gradients = GradientsAttr::get(
           op.getContext(), gradients.getParallel(), gradients.getItems(),
           /*shares=*/1, gradients.getCaptures())}));
  rewriter.setInsertionPoint(divided);
  divided.getKeyMutable().set(repeat(rewriter, loc, heads[0], shares));
  divided.getValueMutable().set(repeat(rewriter, loc, heads[1], shares));
  SmallVector<Value> results(divided.getResults());
  rewriter.setInsertionPointAfter(divided);
  for (unsigned number : {1, 2}) {
    auto copies = cast<RankedTensorType>(divided->getOperand(number).getType());
    results[number].setType(copies.clone(op.getAccumulationType()));
    results[number] =
        addCopies(rewriter, loc, results[number], heads[number - 1], shares,
                  op->getResult(number));
  }
  rewriter.replaceOp(op, results);
}

namespace {
struct DivideGroups : fovea::attn::impl::AttnDivideGroupsBase<DivideGroups> {
  using AttnDivideGroupsBase::AttnDivideGroupsBase;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    WalkResult result = getOperation()->walk([&](AttentionBackwardOp op) {
      ScheduleAttr schedule = op.getScheduleAttr();
      if (!schedule || !schedule.getGradients() ||
          schedule.getGradients().getShares() == 1)
        return WalkResult::advance();
      if (failed(verifySchedule(op)))
        return WalkResult::interrupt();
      divide(rewriter, op);
      ++numDivided;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
