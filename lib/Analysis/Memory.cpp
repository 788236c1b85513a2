//===- Memory.cpp - Memory that memrefs are in ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Memory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace fovea;

Value fovea::getBase(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

bool fovea::isHostBuffer(Value memref) {
  return getBase(memref).getDefiningOp<memref::AllocaOp>() != nullptr;
}

bool fovea::isOperand(Value memref) {
  auto argument = dyn_cast<BlockArgument>(getBase(memref));
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

/// Returns true if `base` is a buffer of a launch's blocks or threads.
static bool isBufferOfLaunch(Value base) {
  auto argument = dyn_cast<BlockArgument>(base);
  return argument && isa<gpu::LaunchOp>(argument.getOwner()->getParentOp());
}

bool fovea::isDistinct(Value base) {
  return base.getDefiningOp<memref::AllocOp>() || isOperand(base) ||
         isBufferOfLaunch(base);
}

/// Adds what an op itself does. `root` is the outermost op.
static bool addEffects(MemoryUse &use, Operation *op, Operation *root) {
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface)
    return op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
           op->hasTrait<OpTrait::IsTerminator>();
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  for (const MemoryEffects::EffectInstance &effect : effects) {
    if (isa<MemoryEffects::Allocate>(effect.getEffect()))
      continue;
    Value value = effect.getValue();
    if (!value || !isa<MemRefType>(value.getType()))
      return false;
    Value base = getBase(value);
    if (root->isAncestor(base.getParentBlock()->getParentOp()) &&
        root != base.getDefiningOp())
      continue;
    bool isRead = isa<MemoryEffects::Read>(effect.getEffect());
    if (!isDistinct(base) &&
        !(isRead && base.getDefiningOp<memref::GetGlobalOp>()))
      return false;
    (isRead ? use.reads : use.writes).insert(base);
  }
  return true;
}

bool MemoryUse::add(Operation *op) {
  return !op->walk([&](Operation *inner) {
              // What a launch does is what is in it, and what its threads tell
              // each other is nobody else's.
              return isa<gpu::LaunchOp, gpu::BarrierOp, gpu::ShuffleOp,
                         gpu::SubgroupReduceOp>(inner) ||
                             addEffects(*this, inner, op)
                         ? WalkResult::advance()
                         : WalkResult::interrupt();
            }).wasInterrupted();
}

bool MemoryUse::conflictsWith(const MemoryUse &other) const {
  auto isAccessed = [](const MemoryUse &use, Value base) {
    return use.reads.contains(base) || use.writes.contains(base);
  };
  return llvm::any_of(writes,
                      [&](Value base) { return isAccessed(other, base); }) ||
         llvm::any_of(other.writes,
                      [&](Value base) { return isAccessed(*this, base); });
}
