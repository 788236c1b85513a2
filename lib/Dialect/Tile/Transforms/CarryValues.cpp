//===- CarryValues.cpp - Values carried by loops instead of computed ------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

#define DEBUG_TYPE "tile-carry-values"

namespace fovea::tile {
#define GEN_PASS_DEF_TILECARRYVALUES
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

struct CarryValues : fovea::tile::impl::TileCarryValuesBase<CarryValues> {
  void runOnOperation() override;
};

/// What a loop computes in each iteration of one number of each row, which
/// changes only under a branch.
class RowValues {
public:
  RowValues(scf::ForOp loop, unsigned number)
      : loop(loop), number(number), rows(loop.getRegionIterArg(number)) {}

  /// Finds the values; returns false if there are none to carry.
  bool analyze();

  /// Lets the loop carry them; returns the new loop.
  scf::ForOp rewrite(IRRewriter &rewriter);

  size_t size() const { return results.size(); }

private:
  bool isKept(Value next) const;
  bool followsFromRows(Operation &op);
  SmallVector<Value> clone(OpBuilder &builder, Value next) const;
  SmallVector<Value> carry(IRRewriter &rewriter, Value next, ValueRange before);

  scf::ForOp loop;
  unsigned number;
  BlockArgument rows;
  /// The ops that need nothing but the rows and what the loop does not change.
  SetVector<Operation *> ops;
  /// Their results that others use.
  SmallVector<Value> results;
};

} // namespace

/// Returns true if `next` is the rows as they were unless a branch is taken.
bool RowValues::isKept(Value next) const {
  auto branch = next.getDefiningOp<scf::IfOp>();
  if (!branch)
    return false;
  unsigned result = cast<OpResult>(next).getResultNumber();
  return llvm::any_of(ArrayRef{branch.thenYield(), branch.elseYield()},
                      [&](scf::YieldOp end) {
                        Value value = end->getOperand(result);
                        return value == rows || isKept(value);
                      });
}

/// Returns true if a value has a number for each score: it takes more registers
/// than it saves time.
static bool isWide(Value value) {
  auto type = dyn_cast<FragmentType>(value.getType());
  return type && type.getRank() != 1;
}

bool RowValues::followsFromRows(Operation &op) {
  if (!isMemoryEffectFree(&op) || llvm::any_of(op.getResults(), isWide))
    return false;
  SetVector<Value> used;
  used.insert_range(op.getOperands());
  getUsedValuesDefinedAbove(op.getRegions(), used);
  bool usesRows = false;
  for (Value value : used) {
    bool isRows = value == rows || ops.contains(value.getDefiningOp());
    if (!isRows && !loop.isDefinedOutsideOfLoop(value))
      return false;
    usesRows |= isRows;
  }
  return usesRows;
}

bool RowValues::analyze() {
  auto type = dyn_cast<FragmentType>(rows.getType());
  if (!type || type.getRank() != 1 || !isKept(loop.getYieldedValues()[number]))
    return false;
  for (Operation &op : loop.getBody()->without_terminator())
    if (followsFromRows(op))
      ops.insert(&op);
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (!llvm::all_of(result.getUsers(), [&](Operation *user) {
            return ops.contains(loop.getBody()->findAncestorOpInBlock(*user));
          }))
        results.push_back(result);
  return !results.empty();
}

/// Returns the values that follow from `next`.
SmallVector<Value> RowValues::clone(OpBuilder &builder, Value next) const {
  IRMapping mapping;
  mapping.map(rows, next);
  for (Operation *op : ops)
    builder.clone(*op, mapping);
  return llvm::map_to_vector(
      results, [&](Value value) { return mapping.lookup(value); });
}

/// Returns the values that follow from `next`, which the block yields that the
/// rewriter is in. Those from before hold where the rows stay.
SmallVector<Value> RowValues::carry(IRRewriter &rewriter, Value next,
                                    ValueRange before) {
  if (next == rows)
    return llvm::to_vector(before);
  if (!isKept(next))
    return clone(rewriter, next);
  auto branch = next.getDefiningOp<scf::IfOp>();
  unsigned result = cast<OpResult>(next).getResultNumber();
  for (scf::YieldOp end : {branch.thenYield(), branch.elseYield()}) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(end);
    SmallVector<Value> values =
        carry(rewriter, end->getOperand(result), before);
    rewriter.modifyOpInPlace(end,
                             [&] { end.getResultsMutable().append(values); });
  }
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(branch);
  auto wider = scf::IfOp::create(
      rewriter, branch.getLoc(), branch.thenYield()->getOperandTypes(),
      branch.getCondition(), /*withElseRegion=*/true);
  wider.getThenRegion().takeBody(branch.getThenRegion());
  wider.getElseRegion().takeBody(branch.getElseRegion());
  unsigned count = branch.getNumResults();
  rewriter.replaceOp(branch, wider.getResults().take_front(count));
  return llvm::to_vector_of<Value>(wider.getResults().drop_front(count));
}

scf::ForOp RowValues::rewrite(IRRewriter &rewriter) {
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> first = clone(rewriter, loop.getInitArgs()[number]);
  auto yield = [&](OpBuilder &, Location,
                   ArrayRef<BlockArgument> arguments) -> SmallVector<Value> {
    SmallVector<Value> before(arguments.begin(), arguments.end());
    SmallVector<Value> next =
        carry(rewriter, loop.getYieldedValues()[number], before);
    for (auto [value, carried] : llvm::zip_equal(results, before))
      rewriter.replaceAllUsesExcept(value, carried, value.getDefiningOp());
    for (Operation *op : llvm::reverse(ops.getArrayRef()))
      if (op->use_empty())
        rewriter.eraseOp(op);
    return next;
  };
  return cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, first, /*replaceInitOperandUsesInLoop=*/false, yield));
}

void CarryValues::runOnOperation() {
  IRRewriter rewriter(&getContext());
  SmallVector<scf::ForOp> loops;
  getOperation()->walk([&](scf::ForOp loop) {
    if (loop->getParentOfType<LaunchOp>())
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops)
    for (unsigned number = 0, count = loop.getInitArgs().size();
         number != count; ++number) {
      RowValues values(loop, number);
      if (!values.analyze())
        continue;
      LDBG() << "loop at " << loop.getLoc() << ": carries " << values.size()
             << " values that follow from argument " << number;
      numCarried += values.size();
      loop = values.rewrite(rewriter);
    }
}
