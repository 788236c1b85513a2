//===- TiledOps.cpp - Ops that attention is tiled with --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes themselves decide what they tile: in a copy of the module with a
// location of its own for each op, the ops that remain are those that have a
// kernel of their own.
//
//===----------------------------------------------------------------------===//

#include "Stages.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

/// The prefix of the name in an op's location, by which the op is recognised.
static constexpr llvm::StringLiteral kPrefix = "fovea.op.";

/// Returns true for ops on tensors that are computed by themselves, as opposed
/// to views, destinations and loops.
static bool isKernel(Operation &op) {
  return !isa<linalg::FillOp, scf::ForallOp>(op) &&
         !isa<tensor::TensorDialect>(op.getDialect()) &&
         !op.hasTrait<OpTrait::ConstantLike>() &&
         !op.hasTrait<OpTrait::IsTerminator>() &&
         llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

llvm::DenseSet<Operation *> fovea::findTiledOps(ModuleOp module,
                                                Strategy strategy) {
  llvm::DenseSet<Operation *> tiled;
  OwningOpRef<ModuleOp> copy(module.clone());
  llvm::StringMap<Operation *> candidates;
  for (auto [function, other] : llvm::zip_equal(module.getOps<func::FuncOp>(),
                                                copy->getOps<func::FuncOp>())) {
    if (function.isExternal())
      continue;
    for (auto [op, twin] : llvm::zip_equal(function.front(), other.front())) {
      if (!isKernel(op))
        continue;
      std::string name = (kPrefix + Twine(candidates.size())).str();
      twin.setLoc(NameLoc::get(StringAttr::get(module.getContext(), name)));
      candidates[name] = &op;
    }
  }
  ScopedDiagnosticHandler silence(module.getContext(),
                                  [](Diagnostic &) { return success(); });
  PassManager manager(module.getContext());
  addTiling(manager, strategy);
  if (failed(manager.run(*copy)))
    return tiled;
  for (auto function : copy->getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    for (Operation &op : function.front())
      if (isKernel(op))
        op.getLoc()->walk([&](Location location) {
          if (auto name = dyn_cast<NameLoc>(location))
            candidates.erase(name.getName());
          return WalkResult::advance();
        });
  }
  for (auto &candidate : candidates)
    tiled.insert(candidate.getValue());
  return tiled;
}
