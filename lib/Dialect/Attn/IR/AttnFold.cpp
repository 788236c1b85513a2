//===- AttnFold.cpp - Folders and canonicalisations of the attn dialect ---===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fovea::attn;

static Value yieldedValue(Region &region) {
  return cast<YieldOp>(region.front().getTerminator()).getValue();
}

/// Returns true if the region returns its first argument, the score, unchanged.
static bool isIdentity(Region &region) {
  return !region.empty() && yieldedValue(region) == region.getArgument(0);
}

/// Returns true if the mask region is the constant `keep`.
static bool isConstantMask(Region &region, bool keep) {
  return !region.empty() &&
         matchPattern(yieldedValue(region), keep ? m_One() : m_Zero());
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  return getFactor().isExactlyValue(1.0) ? getInput() : OpFoldResult();
}

namespace {
/// scale(scale(x, a), b) -> scale(x, a * b), unless a 16-bit type rounds
/// between the two steps or the product overflows.
struct MergeScales : OpRewritePattern<ScaleOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScaleOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<ScaleOp>();
    Type element = getElementTypeOrSelf(op.getType());
    if (!inner || getAccumulationType(element) != element)
      return failure();
    APFloat product = inner.getFactor() * op.getFactor();
    if (!product.isFinite())
      return failure();
    rewriter.replaceOpWithNewOp<ScaleOp>(
        op, inner.getInput(),
        rewriter.getF64FloatAttr(product.convertToDouble()));
    return success();
  }
};
} // namespace

void ScaleOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<MergeScales>(context);
}

OpFoldResult ModifyOp::fold(FoldAdaptor) {
  return isIdentity(getBody()) ? getInput() : OpFoldResult();
}

OpFoldResult MaskOp::fold(FoldAdaptor) {
  return isConstantMask(getBody(), /*keep=*/true) ? getInput() : OpFoldResult();
}

OpFoldResult DropoutOp::fold(FoldAdaptor) {
  return getProbability().isZero() ? getInput() : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Fused and online
//===----------------------------------------------------------------------===//

/// Drops regions and a dropout that have no effect.
template <typename Op>
static LogicalResult dropWithoutEffect(Op op, PatternRewriter &rewriter) {
  bool score = isIdentity(op.getScore());
  bool mask = isConstantMask(op.getMask(), /*keep=*/true);
  bool dropout = op.getDropout() && op.getDropout()->isZero();
  if (!score && !mask && !dropout)
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    if (score)
      rewriter.eraseBlock(&op.getScore().front());
    if (mask)
      rewriter.eraseBlock(&op.getMask().front());
    if constexpr (std::is_same_v<Op, OnlineAttentionOp>)
      if (mask) {
        op.getPartialMutable().clear();
        op.getEndsMutable().clear();
      }
    if (dropout) {
      op.removeDropoutAttr();
      op.getSeedMutable().clear();
      op.getOffsetMutable().clear();
    }
  });
  return success();
}

namespace {
template <typename Op>
struct DropUnusedLse : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op.getLse() || !op.getLse().use_empty())
      return failure();
    OperationState state(op.getLoc(), op->getName(), op->getOperands(),
                         op.getOutput().getType(), op->getAttrs());
    for (Region &region : op->getRegions())
      state.addRegion()->takeBody(region);
    Operation *replacement = rewriter.create(state);
    rewriter.replaceAllUsesWith(op.getOutput(), replacement->getResult(0));
    rewriter.eraseOp(op);
    return success();
  }
};

/// Folds the sum over no keys: an output of zeros, whose log-sum-exp is minus
/// infinity.
struct FillWithoutKeys : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getKey().getType().getDimSize(2) != 0 || op.getInitLse())
      return failure();
    SmallVector<Value> results;
    for (OpResult result : op->getResults()) {
      auto type = cast<RankedTensorType>(result.getType());
      auto elementType = cast<FloatType>(type.getElementType());
      APFloat value = result == op.getLse()
                          ? APFloat::getInf(elementType.getFloatSemantics(),
                                            /*Negative=*/true)
                          : APFloat::getZero(elementType.getFloatSemantics());
      Value scalar = arith::ConstantOp::create(
          rewriter, op.getLoc(), rewriter.getFloatAttr(elementType, value));
      // All sizes of the output except the last come from the query.
      SmallVector<Value> sizes;
      for (auto [dim, size] : llvm::enumerate(type.getShape())) {
        if (ShapedType::isDynamic(size)) {
          Value source = dim < 3 ? op.getQuery() : op.getValue();
          sizes.push_back(
              tensor::DimOp::create(rewriter, op.getLoc(), source, dim));
        }
      }
      results.push_back(
          tensor::SplatOp::create(rewriter, op.getLoc(), scalar, type, sizes));
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

/// Folds `partial`: with `false` the mask keeps the whole tile and is dropped;
/// `true` is what an absent `partial` means.
template <typename Op>
struct FoldPartial : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op.getPartial())
      return failure();
    bool never = matchPattern(op.getPartial(), m_Zero());
    if (!never && !matchPattern(op.getPartial(), m_One()))
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getPartialMutable().clear();
      if (!never)
        return;
      rewriter.eraseBlock(&op.getMask().front());
      if constexpr (std::is_same_v<Op, OnlineAttentionOp>)
        op.getEndsMutable().clear();
    });
    return success();
  }
};

/// Reads the source of a cast to a less static type directly. MLIR has this
/// pattern for all destination-passing ops, but there it cannot copy an empty
/// region, so this one comes first.
template <typename Op>
struct FoldCasts : OpRewritePattern<Op> {
  FoldCasts(MLIRContext *context)
      : OpRewritePattern<Op>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!tensor::hasFoldableTensorCastOperand(op))
      return failure();
    SmallVector<Type> types(op->getResultTypes());
    SmallVector<Value> operands =
        tensor::getUpdatedOperandsAfterCastOpFolding(op, types);
    OperationState state(op.getLoc(), op->getName(), operands, types,
                         op->getAttrs());
    for (Region &region : op->getRegions())
      state.addRegion()->takeBody(region);
    Operation *replacement = rewriter.create(state);
    SmallVector<Value> results;
    for (auto [result, old] :
         llvm::zip_equal(replacement->getResults(), op->getResults()))
      results.push_back(rewriter.createOrFold<tensor::CastOp>(
          op.getLoc(), old.getType(), result));
    rewriter.replaceOp(op, results);
    return success();
  }
};

/// Replaces the result for a running value that the pass does not update by the
/// value itself.
struct ForwardUnchanged : OpRewritePattern<OnlineAttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(OnlineAttentionOp op,
                                PatternRewriter &rewriter) const override {
    bool updated[] = {op.updatesAcc(), op.updatesMax(), op.updatesSum()};
    bool changed = false;
    for (auto [result, init, isUpdated] :
         llvm::zip(op.getResults(), op.getDpsInits(), updated)) {
      if (isUpdated || result.use_empty())
        continue;
      rewriter.replaceAllUsesWith(result, init);
      changed = true;
    }
    return success(changed);
  }
};
} // namespace

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<DropUnusedLse<AttentionOp>, FillWithoutKeys>(context);
  patterns.add(+[](AttentionOp op, PatternRewriter &rewriter) {
    return dropWithoutEffect(op, rewriter);
  });
}

void MergeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<DropUnusedLse<MergeOp>>(context);
}

void OnlineAttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                    MLIRContext *context) {
  patterns.add<FoldPartial<OnlineAttentionOp>, FoldCasts<OnlineAttentionOp>,
               ForwardUnchanged>(context);
  patterns.add(+[](OnlineAttentionOp op, PatternRewriter &rewriter) {
    return dropWithoutEffect(op, rewriter);
  });
}

void OnlineBackwardOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                   MLIRContext *context) {
  patterns.add<FoldPartial<OnlineBackwardOp>, FoldCasts<OnlineBackwardOp>>(
      context);
}
