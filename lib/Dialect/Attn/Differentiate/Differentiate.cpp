//===- Differentiate.cpp - attn-differentiate -----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Differentiate/Backward.h"

#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"
#include "fovea/Dialect/Attn/Differentiate/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNDIFFERENTIATE
#include "fovea/Dialect/Attn/Differentiate/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

static bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

/// Leaves only ops that have rules: linalg ops replace elementwise ops on
/// tensors and softmax.
static void prepare(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  SmallVector<linalg::AggregatedOpInterface> aggregates;
  function.walk(
      [&](linalg::AggregatedOpInterface op) { aggregates.push_back(op); });
  for (linalg::AggregatedOpInterface op : aggregates) {
    rewriter.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
    if (succeeded(values))
      rewriter.replaceOp(op, *values);
  }
  RewritePatternSet patterns(function.getContext());
  linalg::populateElementwiseToLinalgConversionPatterns(patterns);
  (void)applyPatternsGreedily(function, std::move(patterns));
}

/// Drops operands of loops that they do not read.
static void cleanUp(func::FuncOp function) {
  RewritePatternSet patterns(function.getContext());
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  (void)applyPatternsGreedily(function, std::move(patterns));
}

/// Makes `function` its own joint function.
static LogicalResult addGradients(func::FuncOp function) {
  MLIRContext *context = function.getContext();
  Block &body = function.getBody().front();
  Operation *end = body.getTerminator();
  OpBuilder builder(end);
  Backward backward(builder);
  SmallVector<Value> inputs(body.getArguments());
  for (Value input : inputs)
    if (isFloatTensor(input.getType()))
      backward.addVariable(input);
  SmallVector<Operation *> forward;
  for (Operation &op : body.without_terminator()) {
    backward.visit(&op);
    forward.push_back(&op);
  }

  SmallVector<Value> results(end->getOperands());
  SmallVector<int64_t> counts = {int64_t(inputs.size()),
                                 int64_t(results.size())};
  function->setAttr(kJointAttrName, builder.getDenseI64ArrayAttr(counts));
  for (auto [number, result] : llvm::enumerate(results)) {
    if (!isFloatTensor(result.getType()))
      continue;
    Location loc = NameLoc::get(
        StringAttr::get(context, "cotangent" + Twine(number)), end->getLoc());
    unsigned position = function.getNumArguments();
    if (failed(function.insertArgument(position, result.getType(), {}, loc)))
      return failure();
    backward.add(loc, result, body.getArgument(position));
  }
  for (Operation *op : llvm::reverse(forward))
    if (failed(backward.pull(op)))
      return failure();

  // Attention was replaced in the meantime.
  llvm::copy(end->getOperands(), results.begin());
  for (Value input : inputs) {
    if (!isFloatTensor(input.getType()))
      continue;
    Value gradient = backward.lookup(input);
    if (!gradient)
      gradient =
          castTensor(builder, input.getLoc(),
                     buildZeros(builder, input.getLoc(), input,
                                cast<FloatType>(getElementTypeOrSelf(input))),
                     input.getType());
    results.push_back(gradient);
    if (failed(function.insertResult(function.getNumResults(), input.getType(),
                                     {})))
      return failure();
  }
  end->setOperands(results);
  return success();
}

namespace {
struct Differentiate final
    : fovea::attn::impl::AttnDifferentiateBase<Differentiate> {
  using AttnDifferentiateBase::AttnDifferentiateBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto op : getOperation().getOps<func::FuncOp>()) {
      bool isChosen = function.empty() ? op.isPublic() && !op.isExternal()
                                       : op.getName() == function;
      if (isChosen)
        functions.push_back(op);
    }
    if (functions.empty() && !function.empty()) {
      getOperation().emitError()
          << "attn-differentiate: the module has no function @" << function;
      return signalPassFailure();
    }
    for (func::FuncOp op : functions)
      if (failed(differentiate(op)))
        return signalPassFailure();
  }

private:
  LogicalResult differentiate(func::FuncOp op) {
    std::string name = getGradientName(op.getName());
    if (Operation *other = getOperation().lookupSymbol(name)) {
      InFlightDiagnostic error = op.emitOpError()
                                 << "cannot be differentiated: the name @"
                                 << name << " is taken";
      error.attachNote(other->getLoc()) << "here";
      return error;
    }
    if (!op.getBody().hasOneBlock())
      return op.emitOpError("cannot be differentiated: expected a body of one "
                            "block, got ")
             << op.getBody().getBlocks().size();
    if (llvm::none_of(op.getResultTypes(), isFloatTensor))
      return op.emitOpError("cannot be differentiated: no result is a tensor "
                            "of floating-point numbers");
    func::FuncOp joint = op.clone();
    joint.setName(name);
    getOperation().insert(std::next(op->getIterator()), joint);
    prepare(joint);
    if (failed(addGradients(joint))) {
      joint.erase();
      return failure();
    }
    cleanUp(joint);
    ++numDifferentiated;
    return success();
  }
};
} // namespace
