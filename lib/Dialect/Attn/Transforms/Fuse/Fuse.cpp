//===- Fuse.cpp - attn-fuse: unfused attention to attn.attention ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass itself. Its parts: FuseAxes (reshapes as products of axes),
// FuseScalars (one element as a scalar graph), FuseContraction and FuseSoftmax
// (the ops to look for), FuseOperands (Q, K and V in attention's layout),
// FuseMask and FuseRegions (scale, mask and score), FusePlan (all of it put
// together).
//
//===----------------------------------------------------------------------===//

#include "FusePlan.h"
#include "FuseState.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#define DEBUG_TYPE "attn-fuse"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNFUSE
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea::attn;
using namespace fovea::attn::fuse;

/// Returns true if probabilities may pass through `op` on the way to the
/// values.
static bool isPassage(Operation *op) {
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return linalg.hasPureTensorSemantics() &&
           linalg.getNumReductionLoops() == 0;
  return isa<tensor::CastOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
             DropoutOp, ScaleOp, ModifyOp, MaskOp, ElementwiseOp,
             ResidualAddOp>(op) ||
         OpTrait::hasElementwiseMappableTraits(op);
}

/// Returns the contractions that the result of `softmax` reaches, each with the
/// input by which it is reached. For a sum of exponentials, these are the
/// contractions that the exponentials reach, since the division by the sum may
/// come afterwards. `obstacle` becomes another op that reads the result.
static SmallVector<std::pair<Operation *, unsigned>>
findContractions(Operation *softmax, Operation *&obstacle) {
  constexpr size_t kMaxVisited = 128;
  SmallVector<std::pair<Operation *, unsigned>> found;
  SetVector<Operation *> visited;
  visited.insert(softmax);
  if (auto sum = dyn_cast<linalg::LinalgOp>(softmax))
    for (Value input : sum.getDpsInputs())
      if (Operation *op = input.getDefiningOp(); op && isPassage(op))
        visited.insert(op);
  for (size_t next = 0; next < visited.size() && next < kMaxVisited; ++next) {
    for (OpOperand &use : visited[next]->getUses()) {
      Operation *user = use.getOwner();
      if (isContractionLike(user)) {
        if (use.getOperandNumber() < 2)
          found.push_back({user, use.getOperandNumber()});
      } else if (isPassage(user)) {
        visited.insert(user);
      } else if (!obstacle) {
        obstacle = user;
      }
    }
  }
  return found;
}

/// Returns true if a sum may belong to a softmax: it must sum exponentials
/// themselves, not values computed from them, as gradients do.
static bool sumsExponentials(Operation *op) {
  auto sum = dyn_cast<linalg::LinalgOp>(op);
  auto add = sum ? sum.getBlock()
                       ->getTerminator()
                       ->getOperand(0)
                       .getDefiningOp<arith::AddFOp>()
                 : arith::AddFOp();
  if (!add)
    return true;
  return llvm::all_of(add->getOperands(), [&](Value term) {
    if (auto argument = dyn_cast<BlockArgument>(term)) {
      // The term is the sum so far, or the result of an op in front.
      if (argument.getArgNumber() >= sum.getNumDpsInputs())
        return true;
      auto maker = sum.getDpsInputs()[argument.getArgNumber()]
                       .getDefiningOp<linalg::GenericOp>();
      if (!maker || maker->getNumResults() != 1)
        return true;
      term = maker.getBlock()->getTerminator()->getOperand(0);
    }
    Operation *def = term.getDefiningOp();
    while (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(def))
      def = def->getOperand(0).getDefiningOp();
    return !def || isa<math::ExpOp, math::Exp2Op>(def);
  });
}

/// Returns the op that makes the probabilities of `values` out of scores, if it
/// is elementwise; null otherwise, as for a softmax.
static Operation *findScores(ValuesOp values) {
  constexpr size_t kMaxVisited = 128;
  SetVector<Operation *> visited;
  if (Operation *op = values.getProbabilities().getDefiningOp())
    visited.insert(op);
  for (size_t next = 0; next < visited.size() && next < kMaxVisited; ++next) {
    Operation *op = visited[next];
    if (isa<ScoresOp>(op))
      return visited.front();
    if (isSoftmaxLike(op))
      return nullptr;
    if (isPassage(op))
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          visited.insert(producer);
  }
  return nullptr;
}

/// Resolves sizes of intermediate results, so that sizes alone do not keep
/// these results alive.
static void resolveSizes(Operation *root) {
  SmallVector<Operation *> dims;
  root->walk([&](tensor::DimOp op) { dims.push_back(op); });
  if (dims.empty())
    return;
  RewritePatternSet patterns(root->getContext());
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  memref::populateResolveShapedTypeResultDimsPatterns(patterns);
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  (void)applyOpPatternsGreedily(dims, std::move(patterns), config);
}

/// Lets reshapes and transposes around a fusion cancel those of the graph.
static void cancelReshapes(MLIRContext *context, ArrayRef<Operation *> ops) {
  if (ops.empty())
    return;
  RewritePatternSet patterns(context);
  tensor::CastOp::getCanonicalizationPatterns(patterns, context);
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
  linalg::TransposeOp::getCanonicalizationPatterns(patterns, context);
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  (void)applyOpPatternsGreedily(ops, std::move(patterns), config);
}

namespace {
struct AttnFuse final : fovea::attn::impl::AttnFuseBase<AttnFuse> {
  void runOnOperation() override {
    Operation *root = getOperation();
    resolveSizes(root);
    moveSinksBehindValues(root);
    SmallVector<Operation *> softmaxes;
    root->walk([&](Operation *op) {
      if (isSoftmaxLike(op))
        softmaxes.push_back(op);
    });
    for (Operation *softmax : softmaxes)
      if (!erased.contains(softmax))
        fuse(softmax);
    root->walk([&](ValuesOp values) { remarkOnValues(values); });
    cancelReshapes(&getContext(), created.getArrayRef());
    if (!created.empty())
      resolveSizes(root);
    SmallVector<AttentionOp> attentions;
    root->walk([&](AttentionOp op) { attentions.push_back(op); });
    for (AttentionOp op : attentions)
      numSinks += raiseSinks(op);
    created.clear();
    erased.clear();
  }

private:
  static std::string getFunction(Operation *op) {
    auto parent = op->getParentOfType<FunctionOpInterface>();
    return parent ? parent.getName().str() : "";
  }

  /// Returns true if `op` belongs to a function with its gradients. The
  /// softmaxes of that function had their remarks before it was differentiated,
  /// and quotients and products of its backward pass only look like those of
  /// attention.
  static bool isOfGradients(Operation *op) {
    auto parent = op->getParentOfType<FunctionOpInterface>();
    return parent && parent->hasAttr(kJointAttrName);
  }

  /// Remarks that an op is not attention because it has no softmax.
  void remarkOnValues(ValuesOp values) {
    Operation *probabilities = findScores(values);
    if (!probabilities || isOfGradients(values))
      return;
    std::string function = getFunction(values);
    remark::missed(values.getLoc(), remark::RemarkOpts::name("values")
                                        .category(getArgument())
                                        .function(function))
        << "values are not fused into attention: what they are multiplied with "
           "is no softmax of scores, but made from them by '" +
               probabilities->getName().getStringRef().str() + "'";
  }

  void fuse(Operation *softmax) {
    Location loc = softmax->getLoc();
    LDBG() << softmax->getName() << " at " << loc << " looks like a softmax";
    std::string function = getFunction(softmax);
    auto options = [&](StringRef name) {
      return remark::RemarkOpts::name(name)
          .category(getArgument())
          .function(function);
    };
    std::string why, firstWhy;
    Operation *obstacle = nullptr;
    for (auto [op, input] : findContractions(softmax, obstacle)) {
      std::unique_ptr<Plan> plan = Plan::create(op, input, why);
      LDBG() << "  operand " << input << " of " << op->getName() << " at "
             << op->getLoc() << ": "
             << (plan ? "probabilities times values" : why);
      if (!plan) {
        if (firstWhy.empty())
          firstWhy = why;
        continue;
      }
      if (plan->hasFiniteMask())
        remark::missed(loc, options("finite-mask"))
            << "a mask by a finite constant stays in the score region: no key "
               "is proven to be kept in every row";
      SmallVector<Operation *> gone, made;
      plan->build(gone, made);
      // A later op may reuse the memory of an erased one, so `created` is
      // limited to ops that exist.
      created.insert(made.begin(), made.end());
      for (Operation *op : gone) {
        created.remove(op);
        erased.insert(op);
      }
      ++numFused;
      remark::passed(loc, options("softmax")) << "fused into attn.attention";
      return;
    }
    ++numRejected;
    // The pass that saved these probabilities has already given the reason.
    if (isOfGradients(softmax) ||
        llvm::any_of(softmax->getUses(), [](OpOperand &use) {
          auto backward = dyn_cast<AttentionBackwardOp>(use.getOwner());
          return backward && backward.getProbabilities() == use.get();
        }))
      return;
    if (firstWhy.empty()) {
      if (!sumsExponentials(softmax))
        return;
      firstWhy = "its result does not reach a contraction with values";
      if (obstacle)
        firstWhy += ", but '" + obstacle->getName().getStringRef().str() + "'";
    }
    remark::missed(loc, options("softmax"))
        << "softmax is not fused into attention: " + firstWhy;
  }

  /// Softmaxes that were erased with the attention of another softmax.
  DenseSet<Operation *> erased;
  SetVector<Operation *> created;
};
} // namespace
