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

/// Returns the dimensions of [B, Hkv, P, Sk, D] for each of [B, Hkv * P, Sk,
/// D], where copies of a head lie one after another.
static SmallVector<ReassociationIndices> getCopyDims() {
  return {{0}, {1, 2}, {3}, {4}};
}

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
  return tensor::CollapseShapeOp::create(builder, loc, copies, getCopyDims());
}

/// Returns, as a `type`, the sum of the gradients of the copies of `heads`.
/// Features are the last loop, for neighbouring threads to read neighbours.
static Value addCopies(OpBuilder &builder, Location loc, Value ofCopies,
                       Value heads, int64_t shares, Type type) {
  using utils::IteratorType;
  Value copies = expandShape(builder, loc, ofCopies, getCopyDims(),
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
  return differentiate::castTensor(builder, loc, sum.getResult(0), type);
}

static void divide(RewriterBase &rewriter, AttentionBackwardOp op) {
  Location loc = op.getLoc();
  ScheduleAttr schedule = op.getScheduleAttr();
  GradientsAttr gradients = schedule.getGradients();
  int64_t shares = gradients.getShares();
  LDBG() << "the backward pass at " << loc << ": " << shares
         << " shares of the heads of a group";
  rewriter.setInsertionPoint(op);
  auto divided = cast<AttentionBackwardOp>(rewriter.clone(*op));
  divided.setScheduleAttr(
      schedule.with({.gradients = gradients.withShares(1)}));
  SmallVector<Value> results(divided.getResults());
  // Keys, and values, which have the numbers of their gradients.
  for (unsigned number : {1, 2}) {
    Value heads = op->getOperand(number);
    rewriter.setInsertionPoint(divided);
    Value copies = repeat(rewriter, loc, heads, shares);
    divided->setOperand(number, copies);
    results[number].setType(cast<RankedTensorType>(copies.getType())
                                .clone(op.getAccumulationType()));
    rewriter.setInsertionPoint(op);
    results[number] = addCopies(rewriter, loc, results[number], heads, shares,
                                op->getResult(number).getType());
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
