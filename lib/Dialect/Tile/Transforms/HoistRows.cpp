//===- HoistRows.cpp - Reads of rows in front of a loop over keys ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask that reads what a query has, as where its sequence begins, would wait
// for memory in each step that applies it.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "UnwrittenMemory.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "llvm/ADT/SetVector.h"

#define DEBUG_TYPE "tile-hoist-rows"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEHOISTROWS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {
struct HoistRows : fovea::tile::impl::TileHoistRowsBase<HoistRows> {
  void runOnOperation() override;
};

/// Finds values that are computed alike of the same ones.
class SameValues {
public:
  SameValues() = default;
  /// `a` and `b` are the same, whatever they are computed by.
  SameValues(Value a, Value b) { known.insert({a, b}); }

  bool areSame(Value a, Value b);
  bool areSame(ValueRange a, ValueRange b) {
    return llvm::all_of_zip(a, b,
                            [&](Value x, Value y) { return areSame(x, y); });
  }

private:
  /// Pairs that were found: a value may be read on many ways.
  DenseSet<std::pair<Value, Value>> known;
};

/// A read in a map over a tile, in a loop, at an address that is the same for
/// all elements of a row and in all steps.
class RowRead {
public:
  /// Returns the read if it can be moved in front of `loop`.
  static std::optional<RowRead> get(memref::LoadOp read, scf::ForOp loop);

  /// Reads for each row in front of the loop. Returns what it reads.
  Value hoist();
  /// Gives the map what is read for each row.
  void replaceBy(Value rows);
  /// Returns true if `other`, perhaps of another map, reads the same.
  bool isSame(RowRead &other);
  /// Returns true if of what the map computes only the extremes matter.
  bool isForExtremes() {
    return llvm::all_of(map->getUsers(), llvm::IsaPred<ExtremesOp>);
  }

private:
  RowRead(memref::LoadOp read, MapOp map, scf::ForOp loop)
      : read(read), map(map), loop(loop) {}

  bool collect(Value value);
  Value getRow() { return map.getBody().getArgument(map->getNumOperands()); }

  memref::LoadOp read;
  MapOp map;
  scf::ForOp loop;
  /// What the address is computed by in the loop, each op after those that it
  /// needs.
  llvm::SetVector<Operation *> slice;
};
} // namespace

bool SameValues::areSame(Value a, Value b) {
  if (a == b || known.contains({a, b}))
    return true;
  Operation *op = a.getDefiningOp(), *other = b.getDefiningOp();
  if (!op || !other || !isPure(op) ||
      cast<OpResult>(a).getResultNumber() !=
          cast<OpResult>(b).getResultNumber() ||
      !OperationEquivalence::isEquivalentTo(
          op, other, [&](Value x, Value y) { return success(areSame(x, y)); },
          /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations))
    return false;
  known.insert({a, b});
  return true;
}

/// Adds what `value` is computed by in the loop. Returns false if that depends
/// on more than the row.
bool RowRead::collect(Value value) {
  if (value == getRow() ||
      !loop.getRegion().isAncestor(value.getParentRegion()))
    return true;
  Operation *op = value.getDefiningOp();
  if (slice.contains(op))
    return true;
  if (!op || op->getNumRegions() != 0 || !isPure(op) ||
      !llvm::all_of(op->getOperands(),
                    [&](Value operand) { return collect(operand); }))
    return false;
  slice.insert(op);
  return true;
}

std::optional<RowRead> RowRead::get(memref::LoadOp read, scf::ForOp loop) {
  constexpr unsigned kMostBits = 32;
  auto map = dyn_cast<MapOp>(read->getParentOp());
  Type type = read.getType();
  if (!map || !type.isIntOrFloat() ||
      type.getIntOrFloatBitWidth() > kMostBits ||
      !isUnwritten(read.getMemRef()))
    return std::nullopt;
  RowRead found(read, map, loop);
  if (!llvm::all_of(read.getIndices(),
                    [&](Value index) { return found.collect(index); }))
    return std::nullopt;
  // What is the same for all rows is read once anyway.
  bool isOfRow = llvm::any_of(found.slice, [&](Operation *op) {
    return llvm::is_contained(op->getOperands(), found.getRow());
  });
  if (!isOfRow && !llvm::is_contained(read.getIndices(), found.getRow()))
    return std::nullopt;
  return found;
}

bool RowRead::isSame(RowRead &other) {
  return read.getMemRef() == other.read.getMemRef() &&
         SameValues(getRow(), other.getRow())
             .areSame(read.getIndices(), other.read.getIndices());
}

void RowRead::replaceBy(Value rows) {
  bool isOfRows = map.getResult().getType().getRank() == 1;
  unsigned argument = map.getInputs().size();
  if (isOfRows) {
    map.getInputsMutable().append(rows);
  } else {
    argument += map.getRows().size();
    map.getRowsMutable().append(rows);
  }
  Value given =
      map.getBody().insertArgument(argument, read.getType(), read.getLoc());
  read.replaceAllUsesWith(given);
  read.erase();
}

Value RowRead::hoist() {
  Location loc = read.getLoc();
  OpBuilder builder(loop);
  // Without a step there may be nothing to read. The loop alone is to have what
  // holds for some of the rows.
  auto ofAll = [](Value bound) {
    auto ofRows = bound.getDefiningOp<OfRowsOp>();
    return ofRows ? ofRows.getWhole() : bound;
  };
  Value isRead = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                       ofAll(loop.getLowerBound()),
                                       ofAll(loop.getUpperBound()));
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> last;
  for (int64_t dim = 0, rank = read.getMemRefType().getRank(); dim < rank;
       ++dim) {
    Value size =
        builder.createOrFold<memref::DimOp>(loc, read.getMemRef(), dim);
    last.push_back(arith::SubIOp::create(builder, loc, size, one));
    Value isThere = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::sgt, size, zero);
    isRead = arith::AndIOp::create(builder, loc, isRead, isThere);
  }
  auto type = FragmentType::get(builder.getContext(),
                                {map.getResult().getType().getShape().front()},
                                read.getType(), /*layout=*/{});
  auto rows = MapOp::create(builder, loc, type, ValueRange(), ValueRange(),
                            ValueRange());
  Block *body =
      builder.createBlock(&rows.getBody(), {}, builder.getIndexType(), loc);
  IRMapping mapping;
  mapping.map(getRow(), body->getArgument(0));
  for (Operation *op : slice)
    builder.clone(*op, mapping);
  // A row that no step reads, as one behind the last, may be out of bounds.
  SmallVector<Value> place;
  for (auto [index, last] : llvm::zip_equal(read.getIndices(), last)) {
    Value least = arith::MaxSIOp::create(builder, loc,
                                         mapping.lookupOrDefault(index), zero);
    place.push_back(arith::MinSIOp::create(builder, loc, least, last));
  }
  auto element = scf::IfOp::create(
      builder, loc, isRead,
      [&](OpBuilder &nested, Location loc) {
        Value element =
            memref::LoadOp::create(nested, loc, read.getMemRef(), place);
        scf::YieldOp::create(nested, loc, element);
      },
      [&](OpBuilder &nested, Location loc) {
        Value element = arith::ConstantOp::create(
            nested, loc, nested.getZeroAttr(read.getType()));
        scf::YieldOp::create(nested, loc, element);
      });
  YieldOp::create(builder, loc, element.getResult(0));

  return rows;
}

/// Moves what the loop computes of rows, and warps ask of that, in front of it
/// where it is the same in all steps.
static void hoistUnchanging(scf::ForOp loop) {
  moveLoopInvariantCode(
      &loop.getRegion(),
      [&](Value value, Region *) { return loop.isDefinedOutsideOfLoop(value); },
      [](Operation *op, Region *) {
        auto map = dyn_cast<MapOp>(op);
        bool isOfRows = map && map.getResult().getType().getRank() == 1;
        return (isOfRows || isa<AnyOp, ExtremesOp>(op)) &&
               isMemoryEffectFree(op);
      },
      [&](Operation *op, Region *) { op->moveBefore(loop); });
}

/// Returns what a program has read in front of `loop`, if a read in the loop
/// reads the same, or null.
static memref::LoadOp findEarlier(memref::LoadOp read, scf::ForOp loop) {
  if (!isUnwritten(read.getMemRef()))
    return {};
  for (auto other : loop->getBlock()->getOps<memref::LoadOp>())
    if (other->isBeforeInBlock(loop) && other.getMemRef() == read.getMemRef() &&
        SameValues().areSame(read.getIndices(), other.getIndices()))
      return other;
  return {};
}

/// Lets maps in the loop take what the program has read in front of it.
static void reuseReads(scf::ForOp loop) {
  loop.walk([&](memref::LoadOp read) {
    if (!isa<MapOp>(read->getParentOp()))
      return;
    if (memref::LoadOp earlier = findEarlier(read, loop)) {
      read.replaceAllUsesWith(earlier.getResult());
      read.erase();
    }
  });
}

void HoistRows::runOnOperation() {
  // Each takes two registers of a thread, while the loop runs.
  constexpr size_t kMostReads = 2;
  getOperation()->walk([&](LaunchOp launch) {
    for (auto loop : launch.getBody().getOps<scf::ForOp>()) {
      reuseReads(loop);
      // The reads of each row that are the same.
      SmallVector<SmallVector<RowRead>> reads;
      loop.walk([&](memref::LoadOp read) {
        std::optional<RowRead> found = RowRead::get(read, loop);
        if (!found)
          return;
        auto same = llvm::find_if(reads, [&](SmallVector<RowRead> &others) {
          return others.front().isSame(*found);
        });
        if (same == reads.end())
          same = &reads.emplace_back();
        same->push_back(std::move(*found));
      });
      if (reads.size() > kMostReads) {
        LDBG() << "loop at " << loop.getLoc() << " keeps all but extremes: it "
               << "has " << reads.size() << " reads of rows";
        for (SmallVector<RowRead> &same : reads)
          llvm::erase_if(same,
                         [](RowRead &read) { return !read.isForExtremes(); });
      }
      for (SmallVector<RowRead> &same : reads) {
        if (same.empty())
          continue;
        Value rows = same.front().hoist();
        for (RowRead &read : same)
          read.replaceBy(rows);
        ++numHoisted;
      }
      hoistUnchanging(loop);
    }
  });
}
