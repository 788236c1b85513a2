//===- FoldEmpty.cpp - attn-fold-empty ------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmptyTensor.h"

#include "fovea/Dialect/Attn/Differentiate/DecomposeBackward.h"
#include "fovea/Dialect/Attn/Differentiate/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNFOLDEMPTY
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea::attn;

/// Returns true if `value` is a tensor whose type has no elements.
static bool isEmpty(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && llvm::is_contained(type.getShape(), 0);
}

/// Returns the value of every element of `result`, a sum over nothing.
static double getValueOfEmptySum(OpResult result) {
  auto merge = dyn_cast<MergeOp>(result.getOwner());
  bool isLse =
      merge ? result == merge.getLse() : isa<LogSumExpOp>(result.getOwner());
  return isLse ? -std::numeric_limits<double>::infinity() : 0.0;
}

/// Replaces the results of `op`, which have no element, or whose elements are
/// sums over nothing.
static LogicalResult foldGraphOp(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  ReifiedRankedShapedTypeDims shapes;
  if (failed(cast<ReifyRankedShapedTypeOpInterface>(op).reifyResultShapes(
          builder, shapes)))
    return failure();
  for (auto [result, shape] : llvm::zip_equal(op->getResults(), shapes)) {
    auto type = cast<RankedTensorType>(result.getType());
    Value folded = emptyOf(builder, loc, type, shape);
    if (!isEmpty(result)) {
      Value number = arith::ConstantOp::create(
          builder, loc,
          builder.getFloatAttr(type.getElementType(),
                               getValueOfEmptySum(result)));
      folded =
          linalg::FillOp::create(builder, loc, number, folded).getResult(0);
    }
    result.replaceAllUsesWith(folded);
  }
  op->erase();
  return success();
}

/// Returns true if `op` has no iteration, so that its destinations keep their
/// values.
static bool hasNoIteration(Operation *op) {
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  if (!destination || !destination.hasPureTensorSemantics())
    return false;
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return llvm::is_contained(linalg.getStaticLoopRanges(), 0);
  return isa<linalg::LinalgDialect>(op->getDialect()) &&
         llvm::all_of(op->getResults(), isEmpty);
}

namespace {
struct FoldEmpty final : fovea::attn::impl::AttnFoldEmptyBase<FoldEmpty> {
  using AttnFoldEmptyBase::AttnFoldEmptyBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    AttnFoldEmptyBase::getDependentDialects(registry);
    // Dialects that decomposed backward passes use.
    createAttnDecomposeBackward()->getDependentDialects(registry);
  }

  void runOnOperation() override {
    SmallVector<Operation *> fused;
    getOperation()->walk([&](Operation *op) {
      if (isa<AttentionOp, AttentionBackwardOp>(op) &&
          llvm::any_of(op->getOperands(), isEmpty))
        fused.push_back(op);
    });
    for (Operation *op : fused) {
      if (auto attention = dyn_cast<AttentionOp>(op)) {
        SmallVector<Operation *> graph;
        attention.decompose(graph);
      } else if (failed(decomposeBackward(cast<AttentionBackwardOp>(op)))) {
        return signalPassFailure();
      }
    }

    SmallVector<Operation *> graph, loops;
    getOperation()->walk([&](Operation *op) {
      if (auto merge = dyn_cast<MergeOp>(op);
          merge && isEmpty(merge.getPartLse()))
        graph.push_back(op);
      else if (isa<ReifyRankedShapedTypeOpInterface>(op) &&
               isa<AttnDialect>(op->getDialect()) && op->getNumResults() == 1 &&
               (isEmpty(op->getResult(0)) ||
                (isa<ScoresOp, ValuesOp, SumQueriesOp, LogSumExpOp>(op) &&
                 llvm::any_of(op->getOperands(), isEmpty))))
        graph.push_back(op);
      else if (hasNoIteration(op))
        loops.push_back(op);
    });
    numFolded += graph.size() + loops.size();
    for (Operation *op : graph)
      if (failed(foldGraphOp(op)))
        return signalPassFailure();
    for (Operation *op : loops) {
      for (auto [result, init] :
           llvm::zip_equal(op->getResults(),
                           cast<DestinationStyleOpInterface>(op).getDpsInits()))
        result.replaceAllUsesWith(init);
      op->erase();
    }
  }
};
} // namespace
