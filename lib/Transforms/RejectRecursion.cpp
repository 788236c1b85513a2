//===- RejectRecursion.cpp - reject-recursion -----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Transforms/Passes.h"

#include "mlir/Analysis/CallGraph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SCCIterator.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_REJECTRECURSION
#include "fovea/Transforms/Passes.h.inc"

/// Returns the call by which a function of `cycle` calls one of `cycle`.
static CallOpInterface findCall(func::FuncOp function,
                                ArrayRef<func::FuncOp> cycle) {
  CallOpInterface found;
  function.walk([&](CallOpInterface call) {
    auto callee = dyn_cast_or_null<func::FuncOp>(call.resolveCallable());
    if (!callee || !llvm::is_contained(cycle, callee))
      return WalkResult::advance();
    found = call;
    return WalkResult::interrupt();
  });
  return found;
}

namespace {
struct RejectRecursion final : impl::RejectRecursionBase<RejectRecursion> {
  void runOnOperation() override {
    const CallGraph graph(getOperation());
    for (auto it = llvm::scc_begin(&graph); !it.isAtEnd(); ++it) {
      if (!it.hasCycle())
        continue;
      SmallVector<func::FuncOp> cycle;
      for (CallGraphNode *node : *it)
        if (!node->isExternal())
          if (auto function = dyn_cast<func::FuncOp>(
                  node->getCallableRegion()->getParentOp()))
            cycle.push_back(function);
      if (!cycle.empty()) {
        report(cycle);
        signalPassFailure();
      }
    }
  }

private:
  /// Reports the functions of a cycle at the one that comes first in the text.
  static void report(ArrayRef<func::FuncOp> cycle) {
    func::FuncOp first = cycle.front();
    for (func::FuncOp function : cycle)
      if (function->isBeforeInBlock(first))
        first = function;
    InFlightDiagnostic error = first.emitError()
                               << "@" << first.getName() << " calls itself";
    if (CallOpInterface call = findCall(first, cycle)) {
      auto callee = cast<func::FuncOp>(call.resolveCallable());
      if (callee != first)
        error << " by way of @" << callee.getName();
      error.attachNote(call.getLoc()) << "called here";
    }
    error << "; recursive functions are not supported";
  }
};
} // namespace
} // namespace fovea
