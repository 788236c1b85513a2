//===- SharedAdds.cpp - Additions that blocks share -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedAdds.h"

#include "Dependence.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

SmallVector<scf::ForOp> tile::getLoops(Operation *op) {
  SmallVector<scf::ForOp> loops;
  for (Operation *parent = op->getParentOp(); !isa<LaunchOp>(parent);
       parent = parent->getParentOp())
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      loops.push_back(loop);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

SmallVector<unsigned> tile::getSharedDims(LaunchOp launch, StoreOp store) {
  SmallVector<unsigned> shared;
  for (auto [dim, id] : llvm::enumerate(launch.getBlockIds()))
    if (llvm::none_of(store.getIndices(),
                      [&](Value index) { return dependsOn(index, id); }) &&
        getConstantIntValue(launch.getGrid()[dim]) != 1)
      shared.push_back(dim);
  return shared;
}
