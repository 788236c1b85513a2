//===- SplitColumns.cpp - Accumulators as parts of their columns ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/DialectConversion.h"

#define DEBUG_TYPE "tile-split-columns"

namespace fovea::tile {
#define GEN_PASS_DEF_TILESPLITCOLUMNS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea::tile;

/// Returns true if a fragment of this type has `columns` columns.
static bool hasColumns(Type type, int64_t columns) {
  auto fragment = dyn_cast<FragmentType>(type);
  return fragment && fragment.getRank() == 2 &&
         fragment.getShape()[1] == columns;
}

/// Returns the tile of a product that is divided by columns, if its columns are
/// elements of neighbouring places in memory; else null.
static LoadOp getDividedTile(MmaOp product) {
  auto load = product.getB().getDefiningOp<LoadOp>();
  return load && !load.getRuns() && !product.getTransposeB() &&
                 !product.getKind()
             ? load
             : LoadOp();
}

/// Returns the columns that accumulators of products are to be divided into,
/// and how many of these a part has; equal numbers if there is nothing to do.
static std::pair<int64_t, int64_t> getColumns(LaunchOp launch) {
  int64_t columns = 0;
  launch.walk([&](MmaOp product) {
    if (product.getAcc())
      columns = std::max(
          columns,
          cast<FragmentType>(product.getResult().getType()).getShape()[1]);
  });
  return {columns, getColumnsOfPart(columns)};
}

/// Returns an op that needs all columns of a row, or null.
static Operation *findObstacle(LaunchOp launch, int64_t columns) {
  Operation *obstacle = nullptr;
  launch.getBody().walk([&](Operation *op) {
    auto isWide = [&](Type type) { return hasColumns(type, columns); };
    if (llvm::none_of(op->getOperandTypes(), isWide) &&
        llvm::none_of(op->getResultTypes(), isWide))
      return WalkResult::advance();
    bool isDivided =
        isa<FillOp, StoreOp, scf::ForOp, scf::IfOp, scf::YieldOp>(op);
    if (auto load = dyn_cast<LoadOp>(op))
      isDivided = !load.getRuns();
    else if (auto map = dyn_cast<MapOp>(op))
      isDivided = map.getColumns().empty() && isWide(map.getResult().getType());
    else if (auto product = dyn_cast<MmaOp>(op))
      isDivided = getDividedTile(product) && !isWide(product.getA().getType());
    if (isDivided)
      return WalkResult::advance();
    obstacle = op;
    return WalkResult::interrupt();
  });
  return obstacle;
}

namespace {

/// A pattern that makes an op for each part of the columns.
template <typename OpTy>
class DivideOp : public OpConversionPattern<OpTy> {
public:
  DivideOp(const TypeConverter &converter, MLIRContext *context, int64_t width)
      : OpConversionPattern<OpTy>(converter, context), width(width) {}

protected:
  /// Returns the types of the parts of `type`.
  SmallVector<Type> getParts(Type type) const {
    SmallVector<Type> parts;
    (void)this->getTypeConverter()->convertTypes(type, parts);
    return parts;
  }

  /// Returns `indices` of a tile whose columns run along the last of `dims`, as
  /// those of a part.
  SmallVector<Value> getIndices(OpBuilder &builder, Location loc,
                                ValueRange indices, ArrayRef<int64_t> dims,
                                int64_t part) const {
    SmallVector<Value> moved(indices);
    if (part)
      moved[dims.back()] = arith::AddIOp::create(
          builder, loc, moved[dims.back()],
          arith::ConstantIndexOp::create(builder, loc, part * width));
    return moved;
  }

  /// Returns a clone of `load` that loads a part of its columns, as a `type`.
  Value loadPart(OpBuilder &builder, LoadOp load, Type type,
                 int64_t part) const {
    SmallVector<Value> indices = getIndices(
        builder, load.getLoc(), load.getIndices(), load.getDims(), part);
    auto clone = cast<LoadOp>(builder.clone(*load));
    clone.getIndicesMutable().assign(indices);
    clone.getResult().setType(cast<ShapedType>(type));
    return clone.getResult();
  }

  /// The columns of a part.
  int64_t width;
};

struct DivideFill final : DivideOp<FillOp> {
  using DivideOp::DivideOp;

  LogicalResult
  matchAndRewrite(FillOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    for (Type type : getParts(op.getType()))
      parts.push_back(
          FillOp::create(rewriter, op.getLoc(), type,
                         llvm::getSingleElement(adaptor.getValue())));
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

struct DivideLoad final : DivideOp<LoadOp> {
  using DivideOp::DivideOp;

  LogicalResult
  matchAndRewrite(LoadOp op, OneToNOpAdaptor /*adaptor*/,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    for (auto [part, type] :
         llvm::enumerate(getParts(op.getResult().getType())))
      parts.push_back(this->loadPart(rewriter, op, type, int64_t(part)));
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

struct DivideStore final : DivideOp<StoreOp> {
  using DivideOp::DivideOp;

  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    for (auto [part, value] : llvm::enumerate(adaptor.getValue())) {
      SmallVector<Value> indices = getIndices(
          rewriter, op.getLoc(), op.getIndices(), op.getDims(), int64_t(part));
      auto store = cast<StoreOp>(rewriter.clone(*op));
      store.getValueMutable().assign(value);
      store.getIndicesMutable().assign(indices);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct DivideMap final : DivideOp<MapOp> {
  using DivideOp::DivideOp;

  LogicalResult
  matchAndRewrite(MapOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SmallVector<Value> parts, rows;
    for (ValueRange each : adaptor.getRows())
      rows.push_back(llvm::getSingleElement(each));
    for (auto [part, type] :
         llvm::enumerate(getParts(op.getResult().getType()))) {
      SmallVector<Value> inputs;
      for (ValueRange each : adaptor.getInputs())
        inputs.push_back(each[part]);
      auto map = MapOp::create(rewriter, loc, type, inputs, rows, ValueRange(),
                               op.getExact());
      cloneBody(rewriter, op.getBody().front(), map.getBody(), int64_t(part));
      parts.push_back(map.getResult());
    }
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }

private:
  /// Clones the body of a map, which computes elements of part `part`.
  void cloneBody(OpBuilder &builder, Block &from, Region &to,
                 int64_t part) const {
    OpBuilder::InsertionGuard guard(builder);
    Location loc = from.getParentOp()->getLoc();
    SmallVector<Location> places(from.getNumArguments(), loc);
    Block *body = builder.createBlock(&to, {}, from.getArgumentTypes(), places);
    IRMapping mapping;
    mapping.map(from.getArguments(), body->getArguments());
    BlockArgument column = from.getArguments().back();
    if (part && !column.use_empty())
      mapping.map(column,
                  arith::AddIOp::create(builder, loc, mapping.lookup(column),
                                        arith::ConstantIndexOp::create(
                                            builder, loc, part * width))
                      .getResult());
    for (Operation &op : from)
      builder.clone(op, mapping);
  }
};

struct DivideProduct final : DivideOp<MmaOp> {
  using DivideOp::DivideOp;

  LogicalResult
  matchAndRewrite(MmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoadOp load = getDividedTile(op);
    auto tile = cast<SharedType>(load.getResult().getType());
    auto partOfTile =
        SharedType::get(rewriter.getContext(), {tile.getShape()[0], width},
                        tile.getElementType(), tile.getSwizzle());
    SmallVector<Value> parts;
    for (auto [part, type] :
         llvm::enumerate(getParts(op.getResult().getType()))) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(load);
      Value columns = loadPart(rewriter, load, partOfTile, int64_t(part));
      rewriter.setInsertionPoint(op);
      auto product = cast<MmaOp>(rewriter.clone(*op));
      product.getBMutable().assign(columns);
      if (op.getAcc())
        product.getAccMutable().assign(adaptor.getAcc()[part]);
      product.getResult().setType(cast<FragmentType>(type));
      parts.push_back(product.getResult());
    }
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

struct SplitColumns final
    : fovea::tile::impl::TileSplitColumnsBase<SplitColumns> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](LaunchOp launch) {
      if (launch.getParts() && failed(divide(launch)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult divide(LaunchOp launch);
};

} // namespace

LogicalResult SplitColumns::divide(LaunchOp launch) {
  auto [columns, width] = getColumns(launch);
  if (width == columns)
    return success();
  if (Operation *obstacle = findObstacle(launch, columns)) {
    LDBG() << "accumulators at " << launch.getLoc()
           << " are not divided: " << obstacle->getName()
           << " needs whole rows";
    return success();
  }
  SmallVector<LoadOp> divided;
  launch.walk([&](MmaOp product) {
    if (hasColumns(product.getResult().getType(), columns))
      divided.push_back(getDividedTile(product));
  });

  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [columns = columns, width = width](
          FragmentType type,
          SmallVectorImpl<Type> &parts) -> std::optional<LogicalResult> {
        if (!hasColumns(type, columns))
          return std::nullopt;
        parts.append(
            columns / width,
            FragmentType::get(type.getContext(), {type.getShape()[0], width},
                              type.getElementType(), type.getLayout()));
        return success();
      });
  MLIRContext *context = &getContext();
  RewritePatternSet patterns(context);
  ConversionTarget target(*context);
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  patterns.add<DivideFill, DivideLoad, DivideStore, DivideMap, DivideProduct>(
      converter, context, width);
  target.markUnknownOpDynamicallyLegal(
      [&](Operation *op) { return converter.isLegal(op); });
  LDBG() << "accumulators at " << launch.getLoc() << " of " << columns
         << " columns are " << columns / width << " of " << width;
  if (failed(applyPartialConversion(launch, target, std::move(patterns))))
    return failure();
  for (LoadOp load : divided)
    if (load->use_empty())
      load.erase();
  numDivided += int64_t(divided.size());
  return success();
}
