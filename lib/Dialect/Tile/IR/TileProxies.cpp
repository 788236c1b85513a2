//===- TileProxies.cpp - Ways to shared memory that need a fence ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/IR/Proxies.h"

#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fovea::tile;

bool fovea::tile::readsByWgmma(Operation *op) {
  auto product = dyn_cast<MmaOp>(op);
  return isa<MmaAsyncOp>(op) ||
         (product && product.getKind() == MmaKind::Wgmma);
}

bool fovea::tile::mayBeReadByProxy(Value tile) {
  return !llvm::all_of(tile.getUsers(), [](Operation *user) {
    return isa<MmaOp>(user) && !readsByWgmma(user);
  });
}

/// Adds to `tiles` the values that are the tile of `use` where control flow
/// passes it on. Returns true if the op does nothing else with it.
static bool followControlFlow(OpOperand &use, SetVector<Value> &tiles) {
  Operation *op = use.getOwner();
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  if (isa<RegionBranchTerminatorOpInterface>(op))
    branch = dyn_cast<RegionBranchOpInterface>(op->getParentOp());
  if (!branch)
    return false;
  RegionBranchSuccessorMapping successors;
  branch.getSuccessorOperandInputMapping(successors);
  auto inputs = successors.find(&use);
  if (inputs == successors.end())
    return false;
  tiles.insert_range(inputs->second);
  return true;
}

void fovea::tile::findReadsByThreads(
    Value ring, llvm::SmallPtrSetImpl<Operation *> &reads) {
  SetVector<Value> tiles;
  for (Operation *user : ring.getUsers())
    if (auto wait = dyn_cast<WaitOp>(user))
      tiles.insert(wait.getResult());
  for (size_t index = 0; index < tiles.size(); ++index) {
    for (OpOperand &use : tiles[index].getUses()) {
      Operation *op = use.getOwner();
      if (auto view = dyn_cast<ShiftRowsOp>(op))
        tiles.insert(view.getResult());
      else if (!followControlFlow(use, tiles) && !readsByWgmma(op) &&
               !isa<StoreAsyncOp>(op))
        reads.insert(op);
    }
  }
}

bool fovea::tile::endsWithProxyFence(Operation *op) {
  auto write = dyn_cast<ToSharedOp>(op);
  return isa<WriteOp, WidenOp, WidenIntoOp>(op) ||
         (write && mayBeReadByProxy(write.getResult()));
}
