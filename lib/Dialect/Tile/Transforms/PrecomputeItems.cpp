//===- PrecomputeItems.cpp - What follows from a program's number ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a program's rows and keys lie is a chain of divisions and of reads of
// tables, for which each role would wait between two programs. Collected in
// one op, the chain can be computed by the role that deals.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "Schedule.h"
#include "UnwrittenMemory.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#define DEBUG_TYPE "tile-precompute-items"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEPRECOMPUTEITEMS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

struct PrecomputeItems
    : fovea::tile::impl::TilePrecomputeItemsBase<PrecomputeItems> {
  void runOnOperation() override;
};

/// What follows from the number of a program, in the block that asks for it.
class ItemNumbers {
public:
  explicit ItemNumbers(DealtOp item) : item(item) {
    collect();
    choose();
  }

  /// Returns how many numbers take more than a few short ops.
  size_t getCount() const { return chosen.size(); }
  void rewrite();

private:
  void collect();
  void choose();
  /// Returns the numbers of the program that `op` is computed from, and not
  /// from the same ones in all programs.
  SetVector<Value> getSources(Operation *op);

  DealtOp item;
  /// All ops of the loop that compute numbers from that of the program and from
  /// what is the same for all programs, in order; and those of them that need
  /// the former.
  SetVector<Operation *> ops, ofItem;
  /// The numbers from which few short ops give all others that are needed.
  SetVector<Value> chosen;
};

} // namespace

/// Returns true if `op` takes longer than what computes it from its operands
/// once more.
static bool isLong(Operation *op) {
  return op->getNumRegions() != 0 ||
         isa<memref::LoadOp, arith::DivUIOp, arith::DivSIOp, arith::RemUIOp,
             arith::RemSIOp, arith::CeilDivUIOp, arith::CeilDivSIOp,
             arith::FloorDivSIOp, affine::AffineApplyOp>(op);
}

/// Returns true if `op` computes numbers, and always the same ones from its
/// operands.
static bool isNumeric(Operation *op) {
  auto isNumber = [](Type type) { return type.isIntOrIndex(); };
  if (op->getNumResults() == 0 || !isFixed(op) ||
      !llvm::all_of(op->getResultTypes(), isNumber))
    return false;
  return !op->walk([](Operation *nested) {
              return isa<TileDialect>(nested->getDialect())
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            }).wasInterrupted();
}

void ItemNumbers::collect() {
  Block *block = item->getBlock();
  for (Operation &op : *block) {
    if (!isNumeric(&op))
      continue;
    bool isFound = true, isOfItem = false;
    for (Value value : getUsedValues(&op)) {
      Operation *source = value.getDefiningOp();
      isOfItem |= source == item || ofItem.contains(source);
      isFound &= source == item || value.getParentBlock() != block ||
                 ops.contains(source);
    }
    if (!isFound)
      continue;
    ops.insert(&op);
    if (isOfItem)
      ofItem.insert(&op);
  }
}

SetVector<Value> ItemNumbers::getSources(Operation *op) {
  SetVector<Value> sources;
  for (Value value : getUsedValues(op))
    if (value == item || ofItem.contains(value.getDefiningOp()))
      sources.insert(value);
  return sources;
}

void ItemNumbers::choose() {
  for (Operation *op : ofItem)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !ofItem.contains(
                item->getBlock()->findAncestorOpInBlock(*user));
          }))
        chosen.insert(result);
  // What takes a short op is computed again: from numbers that are needed
  // anyway, the last ones first, and then from one other, which may be
  // narrower.
  auto replace = [&](bool isByOther) {
    bool isChanged = false;
    SmallVector<Value> before(chosen.getArrayRef());
    for (Value value : llvm::reverse(before)) {
      SetVector<Value> sources = getSources(value.getDefiningOp());
      bool isKnown = llvm::all_of(sources, [&](Value source) {
        return source == item || chosen.contains(source);
      });
      if (isLong(value.getDefiningOp()) ||
          !(isKnown || (isByOther && sources.size() == 1)))
        continue;
      chosen.remove(value);
      for (Value source : sources)
        if (source != item)
          chosen.insert(source);
      isChanged = true;
    }
    return isChanged;
  };
  while (replace(/*isByOther=*/false) || replace(/*isByOther=*/true))
    ;
}

void ItemNumbers::rewrite() {
  SetVector<Operation *> needed;
  SmallVector<Value> open(chosen.getArrayRef());
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!ops.contains(op) || !needed.insert(op))
      continue;
    llvm::append_range(open, getUsedValues(op));
  }

  OpBuilder builder(item->getContext());
  builder.setInsertionPointAfter(item);
  Location loc = item.getLoc();
  auto numbers = OfItemOp::create(
      builder, loc, TypeRange(ValueRange(chosen.getArrayRef())), item);
  Block &body = numbers.getBody().emplaceBlock();
  IRMapping mapping;
  mapping.map(item, body.addArgument(builder.getIndexType(), loc));
  builder.setInsertionPointToStart(&body);
  for (Operation *op : ops)
    if (needed.contains(op))
      builder.clone(*op, mapping);
  YieldOp::create(builder, loc, llvm::map_to_vector(chosen, [&](Value value) {
                    return mapping.lookup(value);
                  }));
  for (auto [value, number] :
       llvm::zip_equal(chosen.takeVector(), numbers.getNumbers()))
    value.replaceAllUsesWith(number);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
}

void PrecomputeItems::runOnOperation() {
  SmallVector<DealtOp> items;
  getOperation()->walk([&](DealtOp item) { items.push_back(item); });
  for (DealtOp item : items) {
    ItemNumbers numbers(item);
    LDBG() << "program at " << item.getLoc() << ": " << numbers.getCount()
           << " numbers";
    if (numbers.getCount() == 0)
      continue;
    numbers.rewrite();
    ++numPrecomputed;
  }
}
