//===- Schedule.cpp - Chooses how the work of a loop overlaps -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

namespace fovea::tile {
#define GEN_PASS_DEF_TILESCHEDULE
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

SmallVector<Value> fovea::tile::getUsedValues(Operation *op) {
  SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  return used.takeVector();
}

namespace {

struct Schedule : fovea::tile::impl::TileScheduleBase<Schedule> {
  void runOnOperation() override;
};

/// The ops of a loop's body and how they depend on one another.
class BodyGraph {
public:
  explicit BodyGraph(scf::ForOp loop);

  /// The products that depend on another product of the same iteration.
  SmallVector<Operation *> getDependentProducts() const;

  /// Adds all that `seeds` depend on in an iteration, or that depends on them.
  void addDependences(DenseSet<Operation *> &ops) const;
  void addDependents(DenseSet<Operation *> &ops) const;

  ArrayRef<Operation *> getOps() const { return ops; }
  ArrayRef<Operation *> getPredecessors(Operation *op) const {
    return predecessors.find(op)->second;
  }

private:
  SmallVector<Operation *> ops;
  DenseMap<Operation *, SmallVector<Operation *>> predecessors;
};

} // namespace

/// The wait of the slot that a release ends the use of.
static bool endsUse(ReleaseOp release, WaitOp wait) {
  return release.getRing() == wait.getRing() &&
         release.getUse() == wait.getUse();
}

BodyGraph::BodyGraph(scf::ForOp loop) {
  Block *body = loop.getBody();
  for (Operation &op : body->without_terminator()) {
    SmallVector<Operation *> &before = predecessors[&op];
    for (Value value : getUsedValues(&op))
      if (Operation *producer = value.getDefiningOp())
        if (producer->getBlock() == body)
          before.push_back(producer);
    // A wait follows the copy, where one role does both.
    if (auto wait = dyn_cast<WaitOp>(op))
      for (Operation *earlier : ops) {
        auto copy = dyn_cast<LoadAsyncOp>(earlier);
        if (copy && copy.getRing() == wait.getRing() &&
            copy.getUse() == wait.getUse())
          before.push_back(copy);
      }
    // A release follows the wait for every product that reads the slot.
    if (auto release = dyn_cast<ReleaseOp>(op))
      for (Operation *earlier : ops) {
        auto wait = dyn_cast<WaitOp>(earlier);
        if (!wait || !endsUse(release, wait))
          continue;
        before.push_back(wait);
        for (Operation *reader : wait->getUsers())
          if (auto product = dyn_cast<MmaAsyncOp>(reader))
            llvm::append_range(before, product->getUsers());
          else
            before.push_back(body->findAncestorOpInBlock(*reader));
      }
    ops.push_back(&op);
  }
}

void BodyGraph::addDependences(DenseSet<Operation *> &set) const {
  for (Operation *op : llvm::reverse(ops))
    if (set.contains(op))
      set.insert_range(getPredecessors(op));
}

void BodyGraph::addDependents(DenseSet<Operation *> &set) const {
  for (Operation *op : ops)
    if (llvm::any_of(getPredecessors(op),
                     [&](Operation *before) { return set.contains(before); }))
      set.insert(op);
}

SmallVector<Operation *> BodyGraph::getDependentProducts() const {
  return llvm::filter_to_vector(ops, [&](Operation *op) {
    if (!isa<MmaAsyncOp>(op))
      return false;
    DenseSet<Operation *> before = {op};
    addDependences(before);
    return llvm::count_if(before, llvm::IsaPred<MmaAsyncOp>) > 1;
  });
}

/// Splits synchronous WGMMA products into issue and wait.
static void splitProducts(LaunchOp launch) {
  launch->walk([](MmaOp product) {
    if (product.getKind() != MmaKind::Wgmma)
      return;
    OpBuilder builder(product);
    auto type =
        TokenType::get(product.getContext(), product.getResult().getType());
    Value token = MmaAsyncOp::create(
        builder, product.getLoc(), type, product.getA(), product.getB(),
        product.getAcc(), product.getTransposeB(), product.getKindAttr());
    product.getResult().replaceAllUsesWith(
        WaitMmaOp::create(builder, product.getLoc(), token));
    product.erase();
  });
}

static void schedule(scf::ForOp loop) {
  BodyGraph graph(loop);
  SmallVector<Operation *> later = graph.getDependentProducts();
  if (later.empty())
    return;

  // Stage 1: those products, what depends on them, and the slots they read.
  DenseSet<Operation *> second(later.begin(), later.end());
  graph.addDependents(second);
  for (Operation *op : graph.getOps()) {
    auto wait = dyn_cast<WaitOp>(op);
    if (wait && llvm::all_of(wait->getUsers(), [&](Operation *user) {
          return second.contains(user);
        }))
      second.insert(wait);
  }

  DenseSet<Operation *> ordered;
  int64_t order = 0;
  Builder builder(loop.getContext());
  auto place = [&](auto &&isNext) {
    for (Operation *op : graph.getOps()) {
      if (ordered.contains(op) || !isNext(op))
        continue;
      ordered.insert(op);
      op->setAttr(kStageAttrName,
                  builder.getI64IntegerAttr(second.contains(op)));
      op->setAttr(kOrderAttrName, builder.getI64IntegerAttr(order++));
    }
  };

  // The issues of both stages with what they need at once.
  DenseSet<Operation *> issues;
  for (Operation *op : graph.getOps())
    if (isa<MmaAsyncOp>(op) && !second.contains(op))
      issues.insert(op);
  graph.addDependences(issues);
  place([&](Operation *op) { return issues.contains(op); });
  DenseSet<Operation *> laterIssues(later.begin(), later.end());
  graph.addDependences(laterIssues);
  place([&](Operation *op) {
    return second.contains(op) && laterIssues.contains(op);
  });
  // What does not need the later products of the iteration before.
  DenseSet<Operation *> carried;
  for (auto [argument, yielded] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
    if (Operation *producer = yielded.getDefiningOp();
        producer && second.contains(producer))
      for (Operation *user : argument.getUsers())
        carried.insert(loop.getBody()->findAncestorOpInBlock(*user));
  graph.addDependents(carried);
  place([&](Operation *op) {
    return !second.contains(op) && !carried.contains(op);
  });
  place([&](Operation *op) { return second.contains(op); });
  place([](Operation *) { return true; });
}

void Schedule::runOnOperation() {
  getOperation()->walk([](LaunchOp launch) {
    splitProducts(launch);
    launch->walk([](scf::ForOp loop) {
      if (loop.getBody()->getOps<scf::ForOp>().empty())
        schedule(loop);
    });
  });
}
