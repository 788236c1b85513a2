//===- AssignLayouts.cpp - Choice of layouts, swizzles and products -------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/TensorMaps.h"
#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Dialect/Tile/IR/Warps.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/EquivalenceClasses.h"

#define DEBUG_TYPE "tile-assign-layouts"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEASSIGNLAYOUTS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

namespace {

/// Finds the fragments of rank 1 that run along the columns of a tile, and
/// those of rank 2 that products of bytes have as quads. Values that must have
/// the same type form one class.
class Classes {
public:
  explicit Classes(LaunchOp launch) {
    launch->walk([&](Operation *op) { collect(op); });
  }

  /// Returns the number of rows of the tile whose columns `value` runs along;
  /// nullopt if there is no such tile.
  std::optional<int64_t> getRows(Value value) const {
    for (auto [column, rows] : columns)
      if (classes.isEquivalent(value, column))
        return rows;
    return std::nullopt;
  }

  /// Returns true if products of bytes add to `value`, and if they read it.
  bool isSumOfBytes(Value value) const { return contains(results, value); }
  bool isLeftOfBytes(Value value) const { return contains(lefts, value); }

private:
  bool contains(ArrayRef<Value> values, Value value) const {
    return llvm::any_of(values, [&](Value other) {
      return classes.isEquivalent(value, other);
    });
  }

  void unite(Value a, Value b) {
    if (isa<FragmentType>(a.getType()))
      classes.unionSets(a, b);
  }

  void unite(ValueRange as, ValueRange bs) {
    for (auto [a, b] : llvm::zip_equal(as, bs))
      unite(a, b);
  }

  void collect(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      unite(loop.getInitArgs(), loop.getRegionIterArgs());
      unite(loop.getInitArgs(), loop.getYieldedValues());
      unite(loop.getInitArgs(), loop.getResults());
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (branch.getNumResults()) {
        unite(branch.getResults(), branch.thenYield().getResults());
        unite(branch.getResults(), branch.elseYield().getResults());
      }
    } else if (auto map = dyn_cast<MapOp>(op)) {
      for (Value input : map.getInputs())
        unite(map.getResult(), input);
      for (Value column : map.getColumns())
        add(column, map.getResult());
    } else if (auto sums = dyn_cast<SumDiagonalsOp>(op)) {
      unite(sums.getInput(), sums.getResult());
    } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
      unite(reduce.getInit(), reduce.getResult());
      if (reduce.getDim() == 0 && reduce.getResult().getType().getRank() == 1)
        add(reduce.getResult(), reduce.getInput());
    } else if (auto product = dyn_cast<MmaOp>(op)) {
      if (product.getAcc())
        unite(product.getAcc(), product.getResult());
      if (product.getFrom() && product.getTransposeB())
        lefts.push_back(product.getA());
      else if (product.getFrom())
        results.push_back(product.getResult());
    }
  }

  void add(Value column, Value tile) {
    columns.emplace_back(column,
                         cast<FragmentType>(tile.getType()).getShape().front());
  }

  llvm::EquivalenceClasses<Value> classes;
  SmallVector<std::pair<Value, int64_t>> columns;
  SmallVector<Value> results, lefts;
};

struct AssignLayouts : fovea::tile::impl::TileAssignLayoutsBase<AssignLayouts> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](LaunchOp launch) {
      return failed(assign(launch)) ? WalkResult::interrupt()
                                    : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult assign(LaunchOp launch);
  LogicalResult assign(Value value, const Classes &classes, int64_t warps);
  MmaKind chooseKind(MmaOp op, int64_t warps);
  bool readsRuns(MmaOp op, int64_t warps, int64_t runs);
  void chooseRuns(LoadOp load, int64_t warps);
  void passLeftOperand(MmaOp op, int64_t warps);
};

} // namespace

LogicalResult AssignLayouts::assign(LaunchOp launch) {
  Classes classes(launch);
  int64_t warps = launch.getWarps();
  WalkResult result = launch->walk([&](Operation *op) {
    for (Value value : op->getResults())
      if (failed(assign(value, classes, warps)))
        return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          if (failed(assign(argument, classes, warps)))
            return WalkResult::interrupt();
    if (auto product = dyn_cast<MmaOp>(op)) {
      passLeftOperand(product, warps);
      if (!product.getKind())
        product.setKind(chooseKind(product, warps));
      LDBG() << "product " << product.getA().getType() << " x "
             << product.getB().getType() << " at " << product.getLoc() << ": "
             << stringifyMmaKind(*product.getKind());
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult AssignLayouts::assign(Value value, const Classes &classes,
                                    int64_t warps) {
  if (auto shared = dyn_cast<SharedType>(value.getType())) {
    // Products read these, or threads that widen them. Products of wider
    // elements have their operands row by row; what only threads read may be of
    // any width.
    bool isElementwise =
        value.getDefiningOp<LoadOp>() && !value.use_empty() &&
        llvm::all_of(value.getUsers(), llvm::IsaPred<FromSharedOp>);
    if (!shared.getSwizzle() &&
        (shared.getElementBytes() <= 2 || isElementwise))
      value.setType(shared.cloneWith(shared.getWidestSwizzle()));
    if (auto load = value.getDefiningOp<LoadOp>())
      chooseRuns(load, warps);
    return success();
  }
  auto type = dyn_cast<FragmentType>(value.getType());
  if (!type || type.getLayout())
    return success();
  // A vector has the layout of a tile of which it is one side.
  std::optional<int64_t> tileRows;
  if (type.getRank() == 1)
    tileRows = classes.getRows(value);
  int64_t rows = tileRows.value_or(type.getShape().front());
  WarpGrid grid = WarpGrid::get(rows, warps);
  // Sums of the parts of rows that threads hold.
  if (type.getRank() == 2 && type.getShape().back() == kRowThreads &&
      grid.columns == 1 && grid.divides(rows, /*columns=*/8)) {
    value.setType(type.cloneWith(
        LayoutAttr::getRowThreads(&getContext(), rows, grid.rows)));
    return success();
  }
  bool isWhole = classes.isLeftOfBytes(value);
  if (type.getRank() == 2 && (isWhole || classes.isSumOfBytes(value))) {
    int64_t columns = type.getShape().back();
    int64_t multiple = 16 * (isWhole ? 1 : grid.columns);
    if (!grid.divides(rows, /*columns=*/8 * grid.columns) || columns % multiple)
      return emitError(value.getLoc())
             << "cannot lay out " << type << " over " << grid.rows << " by "
             << grid.columns
             << " warps, for products of bytes: expected rows in multiples of "
             << 16 * grid.rows << " and columns in multiples of " << multiple;
    value.setType(type.cloneWith(LayoutAttr::getQuads(
        &getContext(), rows, columns, grid.rows, grid.columns, isWhole)));
    return success();
  }
  // Numbers of the warps that share a row: of each its own, and, read from
  // shared memory, of all of them.
  if (type.getRank() == 2 && grid.columns > 1 &&
      type.getShape().back() == grid.columns) {
    value.setType(type.cloneWith(LayoutAttr::getWarpColumns(
        &getContext(), rows, grid.rows, grid.columns,
        /*isWhole=*/isa_and_present<FromSharedOp>(value.getDefiningOp()))));
    return success();
  }
  bool isRow = type.getRank() == 1 && !tileRows;
  int64_t width = isRow ? 8 * grid.columns : type.getShape().back();
  if (!grid.divides(rows, width))
    return emitError(value.getLoc())
           << "cannot lay out " << type << " over " << grid.rows << " by "
           << grid.columns << " warps: expected rows in multiples of "
           << 16 * grid.rows << " and columns in multiples of "
           << 8 * grid.columns;
  auto layout = LayoutAttr::getAccumulator(&getContext(), rows, width,
                                           grid.rows, grid.columns);
  if (type.getRank() == 1)
    layout = layout.dropDim(tileRows ? 0 : 1);
  value.setType(type.cloneWith(layout));
  return success();
}

/// Returns true if a product takes its right operand in runs as fast as not.
bool AssignLayouts::readsRuns(MmaOp op, int64_t warps, int64_t runs) {
  if (op.getKind().value_or(chooseKind(op, warps)) != MmaKind::Wgmma)
    return false;
  // The rows are along the inner dimension, of which an instruction has 16.
  if (!op.getTransposeB())
    return runs == 8 || runs % 16 == 0;
  // An instruction has the columns of one group of 8 of each run, and reads the
  // left operand for these alone: few rows leave time for that.
  constexpr int64_t kFewestColumns = 64;
  ArrayRef<int64_t> shape = op.getResult().getType().getShape();
  int64_t columns = shape[1] / WarpGrid::get(shape[0], warps).columns;
  int64_t each = columns / (runs / 8);
  return runs == op.getB().getType().getShape().front() ||
         (shape[0] == kGroupRows && columns % runs == 0 &&
          each >= kFewestColumns);
}

/// Lets TMA copy all panels of a run of rows at once, if only products read the
/// tile: a copy takes time for each of its instructions.
void AssignLayouts::chooseRuns(LoadOp load, int64_t warps) {
  auto runs = static_cast<int64_t>(load.getRuns().value_or(0));
  auto tile = cast<SharedType>(load.getResult().getType());
  if (!runs || runs % kSwizzledRows || tile.getRuns() ||
      tile.getNumPanels() == 1)
    return;
  auto copied = SharedType::get(&getContext(), {runs, tile.getShape().back()},
                                tile.getElementType(), tile.getSwizzle(), runs);
  if (!tile.getSwizzle() ||
      !suitsTensorMap(load.getSource().getType(), load.getDims(), copied))
    return;
  if (llvm::all_of(load->getUsers(), [&](Operation *user) {
        auto product = dyn_cast<MmaOp>(user);
        return product && product.getA() != load.getResult() &&
               readsRuns(product, warps, runs);
      }))
    load.getResult().setType(tile.cloneWithRuns(runs));
}

/// Passes the left operand through shared memory where warps share its columns,
/// since a warp needs whole rows of it.
void AssignLayouts::passLeftOperand(MmaOp op, int64_t warps) {
  auto type = dyn_cast<FragmentType>(op.getA().getType());
  // Each warp has all of what keys of bytes are multiplied by.
  if (op.getFrom() && op.getTransposeB())
    return;
  if (!type || WarpGrid::get(type.getShape().front(), warps).columns == 1)
    return;
  auto tile = SharedType::get(&getContext(), type.getShape(),
                              type.getElementType(), /*swizzle=*/0);
  if (tile.getElementBytes() == 2)
    tile = tile.cloneWith(tile.getWidestSwizzle());
  OpBuilder builder(op);
  op.getAMutable().assign(
      ToSharedOp::create(builder, op.getLoc(), tile, op.getA()));
}

MmaKind AssignLayouts::chooseKind(MmaOp op, int64_t warps) {
  if (op.getFrom())
    return MmaKind::MmaSync;
  if (op.getB().getType().getElementBytes() != 2)
    return MmaKind::Fma;
  ArrayRef<int64_t> shape = op.getResult().getType().getShape();
  int64_t panel =
      op.getTransposeB() ? 0 : op.getB().getType().getPanelColumns();
  if (WarpGrid::get(shape[0], warps)
          .canUseWgmma(machine::getGpuOrDefault(op).getGpuArch(), shape[1],
                       panel))
    return MmaKind::Wgmma;
  return MmaKind::MmaSync;
}
