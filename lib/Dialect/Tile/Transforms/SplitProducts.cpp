//===- SplitProducts.cpp - tile-split-products ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

#include <array>
#include <limits>

#define DEBUG_TYPE "tile-split-products"

namespace fovea::tile {
#define GEN_PASS_DEF_TILESPLITPRODUCTS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace fovea::tile

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

static constexpr int64_t kParts = 3;

/// The parts of a value, the largest first.
using Parts = std::array<Value, kParts>;

/// The left and right parts of the products that f32 can tell from zero beside
/// that of the first parts, and of that one, the smallest first.
static constexpr std::pair<unsigned, unsigned> kProducts[] = {
    {2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}};

static Value createNumber(OpBuilder &builder, Location loc, double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getF32FloatAttr(float(value)));
}

static Value round(OpBuilder &builder, Location loc, Value number) {
  return arith::TruncFOp::create(builder, loc, builder.getBF16Type(), number);
}

/// Returns the number less a part of it, which is exact.
static Value getRest(OpBuilder &builder, Location loc, Value number,
                     Value part) {
  return arith::SubFOp::create(
      builder, loc, number,
      arith::ExtFOp::create(builder, loc, builder.getF32Type(), part));
}

/// Returns the parts of a number in f32 that is finite or NaN, of which the
/// first is given.
static Parts splitFinite(OpBuilder &builder, Location loc, Value number,
                         Value first) {
  Value rest = getRest(builder, loc, number, first);
  Value second = round(builder, loc, rest);
  Value third = round(builder, loc, getRest(builder, loc, rest, second));
  return {first, second, third};
}

/// Returns the parts of any number in f32.
static Parts split(OpBuilder &builder, Location loc, Value number) {
  // The largest number of bf16; others would be rounded to infinity.
  constexpr double kLargest = 0x1.FEp127;
  Value size = math::AbsFOp::create(builder, loc, number);
  Value bound = arith::MinNumFOp::create(builder, loc, size,
                                         createNumber(builder, loc, kLargest));
  Value bounded = math::CopySignOp::create(builder, loc, bound, number);
  Parts finite =
      splitFinite(builder, loc, number, round(builder, loc, bounded));
  Value one = math::CopySignOp::create(builder, loc,
                                       createNumber(builder, loc, 1.0), number);
  Parts other = {round(builder, loc, one),
                 round(builder, loc, createNumber(builder, loc, 0.0)),
                 round(builder, loc, number)};
  Value isFinite = arith::CmpFOp::create(
      builder, loc, arith::CmpFPredicate::OLT, size,
      createNumber(builder, loc, std::numeric_limits<double>::infinity()));
  Parts parts;
  for (unsigned part = 0; part < kParts; ++part)
    parts[part] = arith::SelectOp::create(builder, loc, isFinite, finite[part],
                                          other[part]);
  return parts;
}

/// Returns the parts of a tensor, computed by one op.
static Parts splitTensor(OpBuilder &builder, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto partType = type.clone(builder.getBF16Type());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  SmallVector<Value> outputs(
      kParts,
      tensor::EmptyOp::create(builder, loc, sizes, builder.getBF16Type()));
  SmallVector<Type> types(kParts, partType);
  SmallVector<AffineMap> maps(
      kParts + 1, builder.getMultiDimIdentityMap(unsigned(type.getRank())));
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      builder, loc, types, tensor, outputs, maps, loops,
      [](OpBuilder &body, Location place, ValueRange elements) {
        linalg::YieldOp::create(body, place,
                                ValueRange(split(body, place, elements[0])));
      });
  return {op.getResult(0), op.getResult(1), op.getResult(2)};
}

namespace {
/// Splits the products of one launch.
class Splitter {
public:
  Splitter(LaunchOp launch, int64_t &count)
      : launch(launch), builder(launch), count(count) {}

  LogicalResult run();

private:
  LogicalResult splitProduct(MmaOp product);
  FailureOr<Parts> splitOperand(MmaOp product, Value operand);
  Parts splitFragment(MmaOp product, Value fragment);
  Parts splitLoad(LoadOp load, BlockArgument source);
  Parts getMemRefs(BlockArgument source);

  LaunchOp launch;
  OpBuilder builder;
  int64_t &count;
  DenseMap<Value, Parts> tensors, memrefs, tiles;
  /// The parts of fragments, in the blocks of their products.
  DenseMap<std::pair<Value, Block *>, Parts> fragments;
};

struct SplitProducts final
    : fovea::tile::impl::TileSplitProductsBase<SplitProducts> {
  using TileSplitProductsBase::TileSplitProductsBase;

  void runOnOperation() override {
    SmallVector<LaunchOp> launches;
    getOperation()->walk([&](LaunchOp launch) {
      if (launch.getParts())
        launches.push_back(launch);
    });
    int64_t count = 0;
    for (LaunchOp launch : launches)
      if (failed(Splitter(launch, count).run()))
        return signalPassFailure();
    numSplit += count;
  }
};
} // namespace

/// Returns the parts of an operand of the launch, which are other operands.
Parts Splitter::getMemRefs(BlockArgument source) {
  auto [found, isNew] = memrefs.try_emplace(source);
  if (!isNew)
    return found->second;
  // An operand that is given twice is split once.
  Value tensor = launch.getTiedOperand(source).get();
  auto [split, isFirst] = tensors.try_emplace(tensor);
  if (isFirst) {
    OpBuilder outside(launch);
    split->second = splitTensor(outside, launch.getLoc(), tensor);
  }
  Parts parts = split->second, arguments;
  unsigned place = launch.getGrid().size() + launch.getInputs().size();
  for (auto [part, argument] : llvm::zip_equal(parts, arguments)) {
    launch.getInputsMutable().append(part);
    argument = launch.getBody().insertArgument(
        place++, LaunchOp::getArgumentType(cast<ShapedType>(part.getType())),
        launch.getLoc());
  }
  memrefs[source] = arguments;
  return arguments;
}

Parts Splitter::splitLoad(LoadOp load, BlockArgument source) {
  if (auto found = tiles.find(load); found != tiles.end())
    return found->second;
  Parts parts = getMemRefs(source), loads;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(load);
  for (auto [part, each] : llvm::zip_equal(parts, loads)) {
    auto clone = cast<LoadOp>(builder.clone(*load));
    clone.getSourceMutable().assign(part);
    clone.getResult().setType(
        SharedType::get(builder.getContext(),
                        cast<SharedType>(load.getResult().getType()).getShape(),
                        builder.getBF16Type(), /*swizzle=*/0));
    each = clone.getResult();
  }
  tiles[load] = loads;
  return loads;
}

/// Returns the parts of a fragment of probabilities, which has no infinities.
Parts Splitter::splitFragment(MmaOp product, Value fragment) {
  auto [found, isNew] = fragments.try_emplace({fragment, product->getBlock()});
  Parts &parts = found->second;
  if (!isNew)
    return parts;
  Location loc = fragment.getLoc();
  auto type = cast<FragmentType>(fragment.getType());
  for (auto [number, part] : llvm::enumerate(parts)) {
    auto op = MapOp::create(builder, loc, type.cloneWith(builder.getBF16Type()),
                            fragment, ValueRange(), ValueRange());
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.createBlock(&op.getBody());
    Value element = block->addArgument(type.getElementType(), loc);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      block->addArgument(builder.getIndexType(), loc);
    Value first = round(builder, loc, element);
    Value each =
        number == 0 ? first : splitFinite(builder, loc, element, first)[number];
    tile::YieldOp::create(builder, loc, each);
    part = op.getResult();
  }
  return parts;
}

FailureOr<Parts> Splitter::splitOperand(MmaOp product, Value operand) {
  if (isa<FragmentType>(operand.getType()))
    return splitFragment(product, operand);
  auto load = operand.getDefiningOp<LoadOp>();
  auto source = load ? dyn_cast<BlockArgument>(load.getSource()) : nullptr;
  if (!source || source.getOwner()->getParentOp() != launch)
    return product.emitOpError("expected an operand in shared memory to be a "
                               "tile.load of an operand of the launch, whose "
                               "parts can be computed in front of it");
  if (!isa<RankedTensorType>(launch.getTiedOperand(source).get().getType()))
    return product.emitOpError("expected the launch to be on tensors, of which "
                               "parts can be computed: run this pass before "
                               "bufferization");
  return splitLoad(load, source);
}

LogicalResult Splitter::splitProduct(MmaOp product) {
  builder.setInsertionPoint(product);
  FailureOr<Parts> left = splitOperand(product, product.getA()),
                   right = failed(left) ? FailureOr<Parts>()
                                        : splitOperand(product, product.getB());
  if (failed(left) || failed(right))
    return failure();
  Location loc = product.getLoc();
  auto type = cast<FragmentType>(product.getResult().getType());
  Value sum;
  for (auto [a, b] : kProducts) {
    auto each = MmaOp::create(builder, loc, type, (*left)[a], (*right)[b], sum,
                              product.getTransposeB(), MmaKindAttr());
    sum = each.getResult();
  }
  if (Value before = product.getAcc()) {
    auto op = MapOp::create(builder, loc, type, ValueRange{before, sum},
                            ValueRange(), ValueRange());
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.createBlock(&op.getBody());
    Value x = block->addArgument(type.getElementType(), loc),
          y = block->addArgument(type.getElementType(), loc);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      block->addArgument(builder.getIndexType(), loc);
    tile::YieldOp::create(
        builder, loc, arith::AddFOp::create(builder, loc, x, y).getResult());
    sum = op.getResult();
  }
  LDBG() << "product at " << loc << ": " << std::size(kProducts)
         << " products of parts"
         << (product.getAcc() ? ", in an accumulator of their own" : "");
  product.getResult().replaceAllUsesWith(sum);
  product.erase();
  ++count;
  return success();
}

LogicalResult Splitter::run() {
  SmallVector<MmaOp> products;
  launch.walk([&](MmaOp product) {
    if (product.getB().getType().getElementType().isF32())
      products.push_back(product);
  });
  for (MmaOp product : products)
    if (failed(splitProduct(product)))
      return failure();
  for (auto [load, parts] : tiles)
    if (load.use_empty())
      load.getDefiningOp()->erase();
  launch.removePartsAttr();
  return success();
}
