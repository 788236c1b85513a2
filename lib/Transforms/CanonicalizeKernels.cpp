//===- CanonicalizeKernels.cpp - canonicalize-kernels ---------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_CANONICALIZEKERNELS
#include "fovea/Transforms/Passes.h.inc"

namespace {

struct CanonicalizeKernels final
    : impl::CanonicalizeKernelsBase<CanonicalizeKernels> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    for (Dialect *dialect : context->getLoadedDialects())
      dialect->getCanonicalizationPatterns(set);
    for (RegisteredOperationName op : context->getRegisteredOperations())
      op.getCanonicalizationPatterns(set, context);
    // These compare the values that a loop carries, some of them each pair.
    patterns = FrozenRewritePatternSet(
        std::move(set), /*disabledPatternLabels=*/
        {"(anonymous namespace)::MakeRegionBranchOpSuccessorInputsDead",
         "(anonymous namespace)::RemoveDeadRegionBranchOpSuccessorInputs",
         "(anonymous namespace)::RemoveDuplicateSuccessorInputUses"});
    return success();
  }

  void runOnOperation() override {
    // Apart, so that an op that changes does not bring up all loops around it.
    canonicalize([](Operation *op) { return op->getNumRegions() == 0; });
    canonicalize([](Operation *op) { return op->getNumRegions() != 0; });
  }

private:
  /// Canonicalizes the ops of a kind, from the first on, and those that this
  /// makes.
  void canonicalize(function_ref<bool(Operation *)> isOfKind) {
    SmallVector<Operation *> ops;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != getOperation() && isOfKind(op))
        ops.push_back(op);
    });
    // The driver takes the last one first.
    std::reverse(ops.begin(), ops.end());
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    (void)applyOpPatternsGreedily(ops, patterns, config);
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
} // namespace fovea
