//===- PrefetchTables.cpp - Tables of places that are asked for early -----===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "Dependence.h"
#include "UnwrittenMemory.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#define DEBUG_TYPE "tile-prefetch-tables"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEPREFETCHTABLES
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

struct PrefetchTables
    : fovea::tile::impl::TilePrefetchTablesBase<PrefetchTables> {
  void runOnOperation() override;
};

/// A row of a table, which loads read where they find the places of rows.
struct TableRow {
  Value table;
  SmallVector<Value> indices;
  /// What runs first where the row's number is known.
  Operation *point;

  bool operator==(const TableRow &other) const {
    return table == other.table && indices == other.indices &&
           point == other.point;
  }
};

} // namespace

/// Returns the op in front of which all of `indices` are known, the first one
/// possible in `program`, of a role or a launch.
static Operation *findPoint(Region &program, ValueRange indices,
                            DominanceInfo &dominance) {
  Operation *point = &program.front().front();
  for (Value index : indices) {
    if (!program.isAncestor(index.getParentRegion()))
      continue;
    Operation *op = index.getDefiningOp();
    Operation *next = op ? op->getNextNode() : &index.getParentBlock()->front();
    if (dominance.dominates(point, next))
      point = next;
  }
  return point;
}

/// Returns true if `op` is in a loop that `point` is in front of.
static bool isInLoopBehind(Operation *op, Operation *point) {
  for (auto loop = op->getParentOfType<LoopLikeOpInterface>(); loop;
       loop = loop->getParentOfType<LoopLikeOpInterface>())
    if (!loop->isProperAncestor(point))
      return true;
  return false;
}

/// Returns the row that `read` reads, in the region that gives the places of
/// `load`, if a loop can find it near.
static std::optional<TableRow> getRow(memref::LoadOp read, Operation *load,
                                      Region &place, DominanceInfo &dominance) {
  ValueRange indices = read.getIndices();
  // A table of one dimension is that of all sequences.
  if (indices.size() < 2 || !isUnwritten(read.getMemRef()) ||
      !dependsOn(indices.back(), place.getArgument(0)))
    return std::nullopt;
  indices = indices.drop_back();
  auto role = load->getParentOfType<RoleOp>();
  Region &program =
      role ? role.getBody() : load->getParentOfType<LaunchOp>().getBody();
  Operation *point = findPoint(program, indices, dominance);
  if (!isInLoopBehind(load, point))
    return std::nullopt;
  return TableRow{read.getMemRef(), llvm::to_vector(indices), point};
}

void PrefetchTables::runOnOperation() {
  auto &dominance = getAnalysis<DominanceInfo>();
  getOperation()->walk([&](LaunchOp launch) {
    SmallVector<TableRow> rows;
    auto collect = [&](Operation *load, Region &place) {
      place.walk([&](memref::LoadOp read) {
        std::optional<TableRow> row = getRow(read, load, place, dominance);
        LDBG() << "read at " << read.getLoc() << (row ? " is" : " is not")
               << " asked for";
        if (row && !llvm::is_contained(rows, *row))
          rows.push_back(*row);
      });
    };
    launch.walk([&](LoadOp load) { collect(load, load.getPlace()); });
    launch.walk([&](LoadAsyncOp load) { collect(load, load.getPlace()); });
    for (const TableRow &row : rows) {
      OpBuilder builder(row.point);
      PrefetchOp::create(builder, row.table.getLoc(), row.table, row.indices);
      ++numPrefetched;
    }
  });
}
