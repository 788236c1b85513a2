//===- ExpandForLLVM.cpp - expand-for-llvm --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Transforms/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

/// Applies patterns to the ops in `root` that they are for, and to those that
/// come of it. Returns how many ops there were.
static FailureOr<size_t> applyToOwnOps(Operation *root,
                                       RewritePatternSet &&patterns) {
  FrozenRewritePatternSet frozen(std::move(patterns));
  const auto &patternsByName = frozen.getOpSpecificNativePatterns();
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    // LLVM has these, and GPUs have an instruction for each.
    if (isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
            arith::MinNumFOp>(op))
      return;
    if (patternsByName.contains(op->getName()))
      ops.push_back(op);
  });
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  if (failed(applyOpPatternsGreedily(ops, frozen, config)))
    return failure();
  return ops.size();
}

namespace fovea {
#define GEN_PASS_DEF_EXPANDFORLLVM
#include "fovea/Transforms/Passes.h.inc"

namespace {

struct ExpandForLLVM final : impl::ExpandForLLVMBase<ExpandForLLVM> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    // Of views come affine maps, which join those that they read, and of affine
    // maps come minima, for which the targets have instructions.
    RewritePatternSet scalars(context), views(context), maps(context);
    arith::populateArithExpandOpsPatterns(scalars);
    memref::populateExpandStridedMetadataPatterns(views);
    populateAffineToStdConversionPatterns(maps);
    populateAffineToVectorConversionPatterns(maps);
    for (RewritePatternSet *patterns : {&scalars, &views, &maps}) {
      FailureOr<size_t> count =
          applyToOwnOps(getOperation(), std::move(*patterns));
      if (failed(count))
        return signalPassFailure();
      numExpanded += *count;
    }
  }
};

} // namespace
} // namespace fovea
