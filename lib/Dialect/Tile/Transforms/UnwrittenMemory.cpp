//===- UnwrittenMemory.cpp - Memory that a launch only reads --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "UnwrittenMemory.h"

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace fovea::tile;

bool fovea::tile::isUnwritten(Value memory) {
  auto argument = dyn_cast_if_present<BlockArgument>(memory);
  if (!argument || !isa<LaunchOp>(argument.getOwner()->getParentOp()))
    return false;
  return llvm::all_of(argument.getUsers(), [&](Operation *user) {
    std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
        getEffectsRecursively(user);
    return effects && !isa<ViewLikeOpInterface>(user) &&
           llvm::all_of(*effects, [&](auto &effect) {
             return isa<MemoryEffects::Read>(effect.getEffect()) ||
                    (effect.getValue() && effect.getValue() != memory) ||
                    effect.getResource() == SharedMemory::get() ||
                    effect.getResource() == Caches::get();
           });
  });
}

bool fovea::tile::onlyReads(Operation *op) {
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(op);
  return effects && llvm::all_of(*effects, [](auto &effect) {
           return isa<MemoryEffects::Read>(effect.getEffect());
         });
}

bool fovea::tile::isFixed(Operation *op) {
  if (isMemoryEffectFree(op))
    return true;
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(op);
  return effects && llvm::all_of(*effects, [](auto &effect) {
           return isa<MemoryEffects::Read>(effect.getEffect()) &&
                  isUnwritten(effect.getValue());
         });
}
