//===- Multicast.cpp - Copies that the blocks of a cluster share ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/TensorMaps.h"
#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#define DEBUG_TYPE "tile-multicast"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEMULTICAST
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

/// What differs between the blocks of a cluster: what follows from their
/// numbers in it.
class Differences {
public:
  explicit Differences(LaunchOp launch);

  /// Returns true if the blocks run `op` equally often, with equal operands.
  bool isSame(Operation *op) const;

private:
  void add(Value value);
  void add(ValueRange values) {
    for (Value value : values)
      add(value);
  }
  void addUse(OpOperand &use);
  void addAll(Operation *op);

  llvm::SmallDenseSet<Value> values;
  /// Ops with regions that the blocks run differently often.
  llvm::SmallPtrSet<Operation *, 4> branches;
  SmallVector<Value> toFollow;
};

struct Multicast : fovea::tile::impl::TileMulticastBase<Multicast> {
  void runOnOperation() override;
};

} // namespace

Differences::Differences(LaunchOp launch) {
  launch.walk([&](ClusterRankOp op) { add(op.getResult()); });
  while (!toFollow.empty())
    for (OpOperand &use : toFollow.pop_back_val().getUses())
      addUse(use);
}

void Differences::add(Value value) {
  if (values.insert(value).second)
    toFollow.push_back(value);
}

/// Adds all that an op with regions gives.
void Differences::addAll(Operation *op) {
  branches.insert(op);
  add(op->getResults());
  for (Region &region : op->getRegions())
    for (Block &block : region)
      add(block.getArguments());
}

void Differences::addUse(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    unsigned controls = loop.getNumControlOperands();
    if (number < controls)
      return addAll(loop);
    add(loop.getRegionIterArg(number - controls));
    return add(loop.getResult(number - controls));
  }
  if (isa<scf::YieldOp>(op)) {
    Operation *parent = op->getParentOp();
    if (!isa<scf::ForOp, scf::IfOp>(parent))
      return addAll(parent);
    add(parent->getResult(number));
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      add(loop.getRegionIterArg(number));
    return;
  }
  if (op->getNumRegions())
    return addAll(op);
  add(op->getResults());
}

bool Differences::isSame(Operation *op) const {
  auto differs = [&](Value operand) { return values.contains(operand); };
  if (llvm::any_of(op->getOperands(), differs))
    return false;
  while (!isa<LaunchOp>(op)) {
    op = op->getParentOp();
    if (branches.contains(op))
      return false;
  }
  return true;
}

/// Returns the reason for which blocks do not fill a ring together, or nullopt.
static std::optional<StringRef> getObstacle(RingOp ring, int64_t blocks,
                                            const Differences &differences) {
  if (ring.getBase() || ring.getGroups())
    return "has slots of groups, or another ring's";
  if (ring.getRing().getType().getTile().getNumPanels() % blocks)
    return "has a number of panels that they do not divide";
  for (Operation *user : ring.getRing().getUsers()) {
    // A block that reuses the memory has waited for all that is copied to it.
    if (isa<WaitOp, ReleaseOp, ToSharedOp>(user))
      continue;
    if (isa<RingOp>(user))
      return "shares its slots";
    if (!isa<AcquireOp, LoadAsyncOp>(user))
      return "is not filled by copies";
    if (!differences.isSame(user))
      return "is filled differently in each of them";
    auto load = dyn_cast<LoadAsyncOp>(user);
    if (!load)
      continue;
    if (!load.getRows().empty() || load.getRuns())
      return "is filled with parts of tiles";
    if (auto source = dyn_cast<MemRefType>(load.getSource().getType());
        source && !suitsTensorMap(source, load.getDims(), load.getCopiedTile()))
      return "is filled by threads";
  }
  return std::nullopt;
}

void Multicast::runOnOperation() {
  getOperation()->walk([&](LaunchOp launch) {
    int64_t blocks = launch.getBlocksOfCluster();
    if (blocks == 1)
      return;
    Differences differences(launch);
    for (auto ring : launch.getBody().getOps<RingOp>()) {
      std::optional<StringRef> obstacle =
          getObstacle(ring, blocks, differences);
      LDBG() << "ring at " << ring.getLoc() << " "
             << obstacle.value_or("is filled by the cluster");
      if (obstacle)
        continue;
      ring.setCluster(blocks);
      ++numShared;
    }
  });
}
