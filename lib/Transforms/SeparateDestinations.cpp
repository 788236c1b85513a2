//===- SeparateDestinations.cpp - separate-destinations -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_SEPARATEDESTINATIONS
#include "fovea/Transforms/Passes.h.inc"

/// Returns true if `op` is cheaper to repeat than its result is to copy: an op
/// that writes elements without reading them.
static bool isFill(Operation *op) {
  if (isa_and_nonnull<tensor::EmptyOp>(op))
    return true;
  auto fill = dyn_cast_or_null<linalg::LinalgOp>(op);
  return fill && fill.hasPureTensorSemantics() && op->getNumResults() == 1 &&
         llvm::none_of(
             fill.getDpsInputs(),
             [](Value input) { return isa<TensorType>(input.getType()); }) &&
         fill.getDpsInits().front().getDefiningOp<tensor::EmptyOp>();
}

/// Returns a tensor with the elements of `value`, in memory of its own.
static Value makeSeparate(OpBuilder &builder, Value value) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(value);
  Operation *op = value.getDefiningOp();
  if (!isFill(op)) {
    auto type = cast<RankedTensorType>(value.getType());
    return bufferization::AllocTensorOp::create(builder, value.getLoc(), type,
                                                ValueRange(), value);
  }
  Operation *copy = builder.clone(*op);
  if (auto fill = dyn_cast<linalg::LinalgOp>(copy))
    for (OpOperand &init : fill.getDpsInitsMutable()) {
      builder.setInsertionPoint(copy);
      init.set(builder.clone(*init.get().getDefiningOp())->getResult(0));
    }
  return copy->getResult(0);
}

namespace {
struct SeparateDestinations final
    : impl::SeparateDestinationsBase<SeparateDestinations> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> loops;
    getOperation()->walk([&](scf::ForallOp loop) { loops.push_back(loop); });
    for (scf::ForallOp loop : loops)
      separate(loop);
  }

  void separate(scf::ForallOp loop) {
    bufferization::BufferizationOptions options;
    bufferization::AnalysisState state(options);
    OpBuilder builder(loop);
    // The tensors that the sources so far may overwrite.
    DenseSet<Value> origins;
    SmallPtrSet<Value, 4> sources;
    for (Operation &op : loop.getTerminator().getYieldingOps()) {
      auto insertion = cast<tensor::ParallelInsertSliceOp>(op);
      OpOperand &source = insertion.getSourceMutable();
      // One value that has two destinations does not overwrite itself.
      if (!sources.insert(source.get()).second)
        continue;
      SmallVector<OpOperand *> work = {&source};
      DenseSet<Value> own;
      while (!work.empty()) {
        OpOperand *use = work.pop_back_val();
        if (use->get() == insertion.getDest() ||
            !loop.getRegion().isAncestor(use->get().getParentRegion()))
          continue;
        if (origins.contains(use->get())) {
          use->set(makeSeparate(builder, use->get()));
          ++numSeparated;
        }
        if (!own.insert(use->get()).second)
          continue;
        if (auto argument = dyn_cast<BlockArgument>(use->get())) {
          auto inner =
              dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
          if (inner && inner != loop)
            if (OpOperand *init = inner.getTiedLoopInit(argument))
              work.push_back(init);
          continue;
        }
        for (const bufferization::AliasingOpOperand &alias :
             state.getAliasingOpOperands(use->get()))
          work.push_back(alias.opOperand);
      }
      origins.insert_range(own);
    }
  }
};
} // namespace
} // namespace fovea
