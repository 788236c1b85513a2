//===- Counters.cpp - Counters of the runs of a program's block -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counters.h"

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fovea::tile;

/// Returns the loop or branch around the op, or the launch.
static Operation *getNest(Operation *op) {
  Operation *parent = op->getParentOp();
  return isa<scf::ForOp, scf::IfOp, LaunchOp>(parent) ? parent : nullptr;
}

bool fovea::tile::isInLoop(Operation *op) {
  bool hasLoop = false;
  for (op = getNest(op); op && !isa<LaunchOp>(op); op = getNest(op))
    hasLoop |= isa<scf::ForOp>(op);
  return op && hasLoop;
}

/// Appends a value to the results of the branch: `region` yields `next` of it,
/// the other region the value itself. Returns the branch that replaces the old
/// one.
static scf::IfOp addResult(RewriterBase &rewriter, scf::IfOp branch,
                           Value value, Region *region,
                           function_ref<Value(Location)> next) {
  Location loc = branch.getLoc();
  unsigned number = region->getRegionNumber();
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(value.getType());
  rewriter.setInsertionPoint(branch);
  auto extended = scf::IfOp::create(rewriter, loc, types, branch.getCondition(),
                                    /*addThenBlock=*/false,
                                    /*addElseBlock=*/false);
  for (auto [from, to] :
       llvm::zip_equal(branch->getRegions(), extended->getRegions())) {
    to.takeBody(from);
    if (to.empty()) {
      rewriter.createBlock(&to);
      scf::YieldOp::create(rewriter, loc);
    }
    Operation *yield = to.front().getTerminator();
    rewriter.setInsertionPoint(yield);
    yield->insertOperands(yield->getNumOperands(),
                          to.getRegionNumber() == number ? next(loc) : value);
  }
  rewriter.replaceOp(branch, extended.getResults().drop_back());
  return extended;
}

/// Returns a new counter of the runs of the block of `op`.
static Value addCounter(RewriterBase &rewriter, Operation *op) {
  // From the outermost loop inwards; ops around that loop never run again.
  SmallVector<Operation *> nest;
  for (Operation *at = getNest(op); !isa<LaunchOp>(at); at = getNest(at))
    nest.push_back(at);
  while (!isa<scf::ForOp>(nest.back()))
    nest.pop_back();
  rewriter.setInsertionPoint(nest.back());
  Value count =
      arith::ConstantIndexOp::create(rewriter, nest.back()->getLoc(), 0);
  for (Operation *at : llvm::reverse(nest)) {
    bool isLast = at == nest.front();
    auto increment = [&](Location loc) -> Value {
      if (!isLast)
        return count;
      Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
      return arith::AddIOp::create(rewriter, loc, count, one);
    };
    Operation *around = at == nest.back() ? nullptr : at->getParentOp();
    Value total;
    if (auto loop = dyn_cast<scf::ForOp>(at)) {
      rewriter.setInsertionPoint(loop);
      auto counted = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
          rewriter, count, /*replaceInitOperandUsesInLoop=*/false,
          [&](OpBuilder &, Location loc, ArrayRef<BlockArgument> counts) {
            count = counts.front();
            return SmallVector<Value>{increment(loc)};
          }));
      count = counted.getRegionIterArgs().back();
      total = counted.getResults().back();
    } else {
      auto branch = cast<scf::IfOp>(at);
      Region *region = nullptr;
      for (Region &candidate : branch->getRegions())
        if (candidate.isAncestor(op->getParentRegion()))
          region = &candidate;
      auto counted = addResult(rewriter, branch, count, region, increment);
      total = counted.getResults().back();
    }
    if (!around)
      continue;
    // The surrounding op carries on from here.
    Operation *end = total.getParentBlock()->getTerminator();
    end->setOperand(end->getNumOperands() - 1, total);
  }
  return count;
}

Value fovea::tile::getCounter(RewriterBase &rewriter, Operation *op) {
  for (auto acquire : op->getBlock()->getOps<AcquireOp>()) {
    bool isOnly = llvm::count_if(acquire.getRing().getUsers(),
                                 llvm::IsaPred<AcquireOp>) == 1;
    Operation *producer = acquire.getUse().getDefiningOp();
    bool isBefore = !producer || producer->getBlock() != op->getBlock() ||
                    producer->isBeforeInBlock(op);
    // A constant counts uses only where the block runs once.
    if (isOnly && isBefore && !matchPattern(acquire.getUse(), m_Constant()))
      return acquire.getUse();
  }
  return addCounter(rewriter, op);
}
