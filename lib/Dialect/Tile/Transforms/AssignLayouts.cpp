//===- AssignLayouts.cpp - Forms of fragments, tiles and products ---------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace fovea::tile {
#define GEN_PASS_DEF_TILEASSIGNLAYOUTS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

namespace {

/// Which fragments of rank 1 run along the columns of a tile. Values that must
/// have one type are one class.
class Columns {
public:
  explicit Columns(LaunchOp launch) {
    launch->walk([&](Operation *op) { collect(op); });
  }

  bool contains(Value value) const {
    for (Value column : columns)
      if (classes.isEquivalent(value, column))
        return true;
    return false;
  }

private:
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
      llvm::append_range(columns, map.getColumns());
    } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
      unite(reduce.getInit(), reduce.getResult());
      if (reduce.getDim() == 0)
        columns.push_back(reduce.getResult());
    }
  }

  llvm::EquivalenceClasses<Value> classes;
  SmallVector<Value> columns;
};

struct AssignLayouts : fovea::tile::impl::TileAssignLayoutsBase<AssignLayouts> {
  using TileAssignLayoutsBase::TileAssignLayoutsBase;

  void runOnOperation() override {
    if (target != "sm_80" && target != "sm_90a") {
      getOperation()->emitError()
          << "tile-assign-layouts: expected target sm_80 or sm_90a, got '"
          << target << "'";
      return signalPassFailure();
    }
    WalkResult result = getOperation()->walk([&](LaunchOp launch) {
      return failed(assign(launch)) ? WalkResult::interrupt()
                                    : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult assign(LaunchOp launch);
  LogicalResult assign(Value value, const Columns &columns, int64_t warps);
  MmaKind chooseKind(MmaOp op, int64_t warps);
};

} // namespace

LogicalResult AssignLayouts::assign(LaunchOp launch) {
  Columns columns(launch);
  int64_t warps = launch.getWarps();
  WalkResult result = launch->walk([&](Operation *op) {
    for (Value value : op->getResults())
      if (failed(assign(value, columns, warps)))
        return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          if (failed(assign(argument, columns, warps)))
            return WalkResult::interrupt();
    if (auto product = dyn_cast<MmaOp>(op); product && !product.getKind())
      product.setKind(chooseKind(product, warps));
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult AssignLayouts::assign(Value value, const Columns &columns,
                                    int64_t warps) {
  if (auto shared = dyn_cast<SharedType>(value.getType())) {
    if (!shared.getSwizzle())
      value.setType(shared.cloneWith(shared.getWidestSwizzle()));
    return success();
  }
  auto type = dyn_cast<FragmentType>(value.getType());
  if (!type || type.getLayout())
    return success();
  bool isColumn = type.getRank() == 1 && columns.contains(value);
  // A vector lies as in a tile of which it is one side; how long the other is
  // does not matter.
  int64_t rowsPerStep = 16 * warps;
  int64_t rows = isColumn ? rowsPerStep : type.getShape().front();
  int64_t width = type.getRank() == 1 && !isColumn ? 8 : type.getShape().back();
  if (rows % rowsPerStep || width % 8)
    return emitError(value.getLoc())
           << "cannot lay out " << type << " over " << warps
           << " warps: expected rows in multiples of " << rowsPerStep
           << " and columns in multiples of 8";
  auto layout = LayoutAttr::getRowOwned(&getContext(), rows, width, warps);
  if (type.getRank() == 1)
    layout = layout.dropDim(isColumn ? 0 : 1);
  value.setType(type.cloneWith(layout));
  return success();
}

MmaKind AssignLayouts::chooseKind(MmaOp op, int64_t warps) {
  if (op.getB().getType().getElementBytes() != 2)
    return MmaKind::Fma;
  ArrayRef<int64_t> shape = op.getResult().getType().getShape();
  bool isWholeGroups = warps % 4 == 0 && shape[0] % (16 * warps) == 0;
  if (target == "sm_90a" && isWholeGroups && shape[1] <= 256)
    return MmaKind::Wgmma;
  return MmaKind::MmaSync;
}
