//===- LaunchBuilder.cpp - A loop over tiles as one launch ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchBuilder.h"

#include "BlockId.h"
#include "NarrowIndices.h"

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::tile;

LogicalResult LaunchBuilder::fail(const Twine &why) {
  reason = why.str();
  return failure();
}

//===----------------------------------------------------------------------===//
// Values from outside the launch
//===----------------------------------------------------------------------===//

bool LaunchBuilder::isOutside(Value value) {
  return !forall->isAncestor(value.getParentBlock()->getParentOp());
}

Value LaunchBuilder::getMemRef(Value tensor) {
  while (auto cast = tensor.getDefiningOp<tensor::CastOp>()) {
    if (memrefs.contains(tensor))
      break;
    tensor = cast.getSource();
  }
  return memrefs.lookup(tensor);
}

Value LaunchBuilder::getSize(Value tensor, int64_t dim) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(launch);
  return tensor::DimOp::create(rewriter, loc, getShaped(tensor), dim);
}

OpFoldResult LaunchBuilder::getMapped(OpFoldResult value) {
  if (auto dynamic = dyn_cast<Value>(value))
    return mapping.lookupOrDefault(dynamic);
  return value;
}

PerCoordinate<Value> LaunchBuilder::getPlace(ValueRange at) {
  if (at.empty()) {
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    return {zero, zero, zero, zero};
  }
  SmallVector<Value> place = llvm::map_to_vector(
      at, [&](Value each) { return mapping.lookupOrDefault(each); });
  return {place[0], place[1], place[2], place[3]};
}

template <typename OpTy>
ScoreTile LaunchBuilder::getScoreTile(OpTy op, const TileView &query,
                                      const TileView &key) {
  for (Region &region : op->getRegions())
    narrowIndices(rewriter, region);
  IndexMath index(rewriter, loc);
  ScoreTile tile;
  tile.at = getPlace(op.getAt());
  tile.queryTile = sizes.queries;
  tile.keyTile = sizes.keys;
  tile.queries = getTileSize(query, 2);
  tile.keys = getTileSize(key, 2);
  tile.partial = index.boolean(!op.getMask().empty());
  if (op.getPartial())
    tile.partial = index.logicalAnd(tile.partial,
                                    mapping.lookupOrDefault(op.getPartial()));
  if (op.getDropout()) {
    // Without `whole` the operands are the whole.
    bool isPart = !op.getWhole().empty();
    tile.wholeHeads = isPart ? mapping.lookupOrDefault(op.getWhole()[0])
                             : index.materialize(getTileSize(query, 1));
    tile.wholeQueries = isPart ? mapping.lookupOrDefault(op.getWhole()[1])
                               : index.materialize(tile.queries);
    tile.seed = mapping.lookupOrDefault(op.getSeed());
    tile.offset = mapping.lookupOrDefault(op.getOffset());
  }
  tile.emitRegion = [this](OpBuilder &builder, Region &region,
                           ValueRange arguments, ValueRange existing,
                           Value value, const IRMapping &known) {
    if (!value)
      value = region.front().getTerminator()->getOperand(0);
    if (Value result =
            emitRegion(builder, region, arguments, existing, value, known))
      return result;
    // Any value of the type will do: the program is thrown away.
    Type type = value.getType();
    return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type))
        .getResult();
  };
  return tile;
}

template ScoreTile LaunchBuilder::getScoreTile(OnlineAttentionOp,
                                               const TileView &,
                                               const TileView &);
template ScoreTile LaunchBuilder::getScoreTile(OnlineBackwardOp,
                                               const TileView &,
                                               const TileView &);

SmallVector<Value> LaunchBuilder::getPresentRows(PresentKeys keys,
                                                 OpFoldResult first) {
  for (std::optional<OpFoldResult> *bound : {&keys.first, &keys.end})
    if (*bound)
      *bound = getMapped(**bound);
  IndexMath index(rewriter, loc);
  return fovea::getPresentRows(index, keys, first, sizes.keys);
}

OpFoldResult LaunchBuilder::getTileSize(const TileView &view, int64_t dim) {
  int64_t source = view.dims[dim];
  if (source < 0)
    return rewriter.getIndexAttr(1);
  if (!view.sizes.empty()) {
    OpFoldResult size = getMapped(view.sizes[source]);
    IndexMath index(rewriter, loc);
    return view.inner && dim == 2 ? index.mul(size, index.constant(view.inner))
                                  : size;
  }
  auto type = cast<RankedTensorType>(view.tensor.getType());
  if (!type.isDynamicDim(source))
    return rewriter.getIndexAttr(type.getDimSize(source));
  return getSize(view.tensor, source);
}

/// Returns the view of a tensor from outside that a tile with rows and columns
/// accesses.
FailureOr<TileView> LaunchBuilder::getOperandView(Value tile) {
  std::optional<TileView> view = TileView::getSource(tile, forall.getRegion());
  if (view->getDim(2) < 0 || view->getDim(3) < 0)
    return fail("an operand's rows do not run along a dimension of it");
  return *view;
}

SmallVector<Value> LaunchBuilder::getIndices(OpBuilder &builder,
                                             const TileView &view) {
  int64_t rank = cast<RankedTensorType>(view.tensor.getType()).getRank();
  SmallVector<OpFoldResult> offsets(rank, builder.getIndexAttr(0));
  for (auto [offset, source] : llvm::zip(offsets, view.offsets))
    offset = getMapped(source);
  return getValueOrCreateConstantIndexOp(builder, loc, offsets);
}

FailureOr<Value> LaunchBuilder::loadAhead(Value tile, int64_t rows,
                                          int64_t columns,
                                          PresentFn getPresent) {
  if (Value loaded = ahead.lookup(tile))
    return loaded;
  FailureOr<TileView> view = getOperandView(tile);
  if (failed(view))
    return failure();
  OpBuilder::InsertionGuard guard(rewriter);
  bool isOfBlock = isOutside(tile) || tile.getParentBlock() == forall.getBody();
  // The insertion point is in front of the innermost loop around it, if any.
  Block *program = &launch.getBody().front();
  if (isOfBlock && rewriter.getInsertionBlock() != program)
    rewriter.setInsertionPoint(program->findAncestorOpInBlock(
        *rewriter.getInsertionBlock()->getParentOp()));
  SmallVector<Value> present = getPresent ? getPresent() : SmallVector<Value>();
  Value loaded = loadTile(rewriter, *view, rows, columns, present,
                          /*wholeRuns=*/present.empty());
  if (isOfBlock)
    ahead[tile] = loaded;
  return loaded;
}

FloatType LaunchBuilder::getWidenedType(Value tensor) {
  auto map = rowMaps.find(tensor);
  return map == rowMaps.end() ? FloatType() : map->second.from;
}

Value LaunchBuilder::loadTile(OpBuilder &builder, const TileView &view,
                              int64_t rows, int64_t columns, ValueRange present,
                              bool wholeRuns) {
  auto type = SharedType::get(builder.getContext(), {rows, columns},
                              getWidenedType(view.tensor)
                                  ? sizes.element
                                  : getElementTypeOrSelf(view.tensor),
                              /*swizzle=*/0);
  if (auto map = rowMaps.find(view.tensor); map != rowMaps.end())
    return loadRows(builder, view, map->second, type, present, wholeRuns);
  auto load = LoadOp::create(builder, loc, type, getMemRef(view.tensor),
                             getIndices(builder, view), view.getDims({2, 3}),
                             wholeRuns ? ValueRange() : present);
  if (view.inner)
    load.setInner(view.inner);
  if (view.used < view.inner)
    load.setUsed(view.used);
  return load;
}

Value LaunchBuilder::loadRows(OpBuilder &builder, const TileView &view,
                              const RowMap &map, SharedType type,
                              ValueRange present, bool wholeRuns) {
  // Rows that the gathered tensor does not have need not have a place.
  IndexMath index(builder, loc);
  OpFoldResult count = getTileSize(view, 2);
  SmallVector<Value> rows;
  if (!present.empty())
    rows = {present[0], index.materialize(index.min(present[1], count))};
  else if (!isConstantIntValue(count, type.getShape().front()))
    rows = {index.materialize(index.constant(0)), index.materialize(count)};
  SmallVector<Value> first = getIndices(builder, view);

  int64_t rank = cast<RankedTensorType>(map.source.getType()).getRank();
  SharedType stored = type;
  if (map.from)
    stored = SharedType::get(builder.getContext(), type.getShape(),
                             getElementTypeOrSelf(map.source), /*swizzle=*/0);
  auto load = LoadOp::create(builder, loc, stored, getMemRef(map.source),
                             /*indices=*/ValueRange(),
                             ArrayRef<int64_t>{rank - 2, rank - 1}, rows);
  load.setRuns(1);
  load.setWholeRuns(wholeRuns && !rows.empty());
  Value tile = load.getResult();
  // Else products widen it.
  if (map.from && wideners)
    tile = WidenOp::create(builder, loc, type, tile, map.from, wideners);
  OpBuilder::InsertionGuard guard(builder);
  Block *body =
      builder.createBlock(&load.getPlace(), {}, builder.getIndexType(), loc);
  IRMapping values(mapping);
  for (auto [dim, argument] : llvm::enumerate(map.body->getArguments())) {
    Value place = first[dim];
    if (static_cast<int64_t>(dim) == view.getDim(2))
      place =
          builder.createOrFold<arith::AddIOp>(loc, place, body->getArgument(0));
    values.map(argument, place);
  }
  for (Operation &op : *map.body)
    if (failed(cloneScalar(builder, op, values)))
      break;
  SmallVector<Value> place = llvm::map_to_vector(
      map.place, [&](Value each) { return values.lookupOrDefault(each); });
  tile::YieldOp::create(builder, loc, place);
  return tile;
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

SetVector<Value> LaunchBuilder::getTensorsRead() {
  SetVector<Value> tensors;
  forall.walk([&](Operation *op) {
    if (op == forall || isa<tensor::DimOp>(op))
      return;
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && isOutside(operand) &&
          !rowMaps.contains(operand))
        tensors.insert(operand);
  });
  for (const auto &[gathered, map] : rowMaps) {
    tensors.insert(map.source);
    for (auto read : map.body->getOps<tensor::ExtractOp>())
      tensors.insert(read.getTensor());
  }
  return tensors;
}

void LaunchBuilder::createLaunch(ScheduleAttr schedule, StringRef name,
                                 ArrayRef<Value> inputs, ValueRange outputs) {
  IndexMath index(rewriter, loc);
  SmallVector<OpFoldResult> lower = forall.getMixedLowerBound(),
                            upper = forall.getMixedUpperBound(),
                            step = forall.getMixedStep();
  SmallVector<OpFoldResult> counts;
  for (auto [begin, end, each] : llvm::zip_equal(lower, upper, step))
    counts.push_back(index.ceilDiv(index.sub(end, begin), each));
  // The last dimension of the loop is the first of the grid, its fastest. The
  // grid's first has all of the loop that the grid has no dimension for.
  constexpr int64_t kGridRank = 3;
  int64_t rank = forall.getRank();
  int64_t outer = std::min(rank, kGridRank) - 1;
  OpFoldResult fastest = counts[outer];
  for (OpFoldResult count : ArrayRef(counts).drop_front(outer + 1))
    fastest = index.mul(fastest, count);
  // The blocks of a cluster take tiles of queries side by side. One behind the
  // last tile reads zeros, and its results are not written; the only tile may
  // be as small as its rows, and has no neighbour.
  int64_t cluster =
      IndexMath::constantOf(fastest) == 1 ? 1 : schedule.getCluster();
  if (cluster > 1)
    fastest = index.ceilDiv(fastest, index.constant(cluster));
  SmallVector<Value> grid = {index.materialize(fastest)};
  for (int64_t dim = outer - 1; dim >= 0; --dim)
    grid.push_back(index.materialize(counts[dim]));
  launch =
      LaunchOp::create(rewriter, loc, outputs.getTypes(), grid, inputs, outputs,
                       rewriter.getI64IntegerAttr(schedule.getWarps()),
                       rewriter.getI64IntegerAttr(schedule.getStages()),
                       rewriter.getStringAttr(name));
  if (cluster > 1)
    launch.setCluster(cluster);
  if (schedule.getBlocks() == Blocks::Shared)
    launch.setPersistent(ItemOrder::Shared);
  else if (schedule.getBlocks() == Blocks::Dealt)
    launch.setPersistent(ItemOrder::Dealt);
  else if (schedule.getBlocks() == Blocks::Persistent)
    launch.setPersistent(schedule.getOrder() == WorkOrder::LongestFirst
                             ? ItemOrder::Snaked
                             : ItemOrder::Linear);
  launch.setAlternating(schedule.getProducts() == Products::Alternating);
  launch.setInTurn(schedule.getGroups() == WarpGroups::InTurn);
  if (schedule.getParts())
    launch.setParts(schedule.getParts());

  launch.createProgram(rewriter);
  for (OpOperand &operand : launch.getInputsMutable())
    memrefs[operand.get()] = launch.getTiedArgument(operand);

  IndexMath inside(rewriter, loc);
  SmallVector<OpFoldResult> ids(rank);
  for (int64_t dim = 0; dim <= outer; ++dim)
    ids[dim] = getBlockId(inside, launch, outer - dim);
  if (cluster > 1) {
    Value rank = ClusterRankOp::create(rewriter, loc);
    ids[outer] =
        inside.add(inside.mul(ids[outer], inside.constant(cluster)), rank);
  }
  for (int64_t dim = rank - 1; dim > outer; --dim) {
    OpFoldResult rest = inside.truncDiv(ids[outer], counts[dim]);
    ids[dim] = inside.sub(ids[outer], inside.mul(rest, counts[dim]));
    ids[outer] = rest;
  }
  for (auto [dim, id] : llvm::enumerate(ids)) {
    OpFoldResult offset = inside.mul(id, step[dim]);
    // What is divided by the step again is then known to be the block's number.
    if (auto value = dyn_cast<Value>(offset))
      if (auto product = value.getDefiningOp<arith::MulIOp>())
        product.setOverflowFlags(arith::IntegerOverflowFlags::nsw);
    mapping.map(forall.getInductionVar(dim),
                inside.materialize(inside.add(lower[dim], offset)));
  }
}

//===----------------------------------------------------------------------===//
// Scalars and control flow
//===----------------------------------------------------------------------===//

FailureOr<Operation *> LaunchBuilder::cloneScalar(OpBuilder &builder,
                                                  Operation &op,
                                                  IRMapping &values) {
  // Sizes are computed on the host; elements are read from memrefs.
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    if (!isOutside(dim.getSource()) || !dim.getConstantIndex())
      return fail("the size of a tile is asked for");
    Value size = getSize(dim.getSource(), *dim.getConstantIndex());
    values.map(dim.getResult(), size);
    return size.getDefiningOp();
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    Value memref = getMemRef(extract.getTensor());
    if (!memref)
      return fail("a tensor that is computed within the loop is read");
    SmallVector<Value> indices;
    for (Value index : extract.getIndices())
      indices.push_back(values.lookupOrDefault(index));
    auto load = memref::LoadOp::create(builder, op.getLoc(), memref, indices);
    values.map(extract.getResult(), load.getResult());
    return load.getOperation();
  }
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  if (llvm::any_of(op.getOperandTypes(), isTensor) ||
      llvm::any_of(op.getResultTypes(), isTensor))
    return fail("'" + op.getName().getStringRef() +
                "' is computed within the loop");
  Operation *clone = op.cloneWithoutRegions(values);
  builder.insert(clone);
  for (auto [from, to] : llvm::zip_equal(op.getRegions(), clone->getRegions()))
    for (Block &block : from) {
      OpBuilder::InsertionGuard guard(builder);
      Block *copy = builder.createBlock(&to);
      for (BlockArgument argument : block.getArguments())
        values.map(argument,
                   copy->addArgument(argument.getType(), argument.getLoc()));
      for (Operation &nested : block)
        if (failed(cloneScalar(builder, nested, values)))
          return failure();
    }
  return clone;
}

/// Returns the ops of `block`, in order, that `value` needs beside the values
/// that `known` maps.
static SmallVector<Operation *> getNeeded(Block &block, Value value,
                                          const IRMapping &known) {
  llvm::SmallDenseSet<Value> needed;
  auto add = [&](Value each) {
    if (!known.contains(each))
      needed.insert(each);
  };
  add(value);
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (llvm::none_of(op.getResults(),
                      [&](Value result) { return needed.contains(result); }))
      continue;
    ops.push_back(&op);
    op.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        add(operand);
    });
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

/// Returns those of `ops`, of one block, that the ones whose result exists for
/// some operands only are computed by.
static llvm::SmallDenseSet<Operation *> findSources(ArrayRef<Operation *> ops) {
  llvm::SmallDenseSet<Operation *> sources;
  for (Operation *op : llvm::reverse(ops)) {
    if (!isPartial(*op) && !sources.contains(op))
      continue;
    SetVector<Value> used(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), used);
    for (Value value : used)
      if (Operation *source = value.getDefiningOp();
          source && source->getBlock() == op->getBlock())
        sources.insert(source);
  }
  return sources;
}

Value LaunchBuilder::emitRegion(OpBuilder &builder, Region &region,
                                ValueRange arguments, ValueRange existing,
                                Value value, const IRMapping &known) {
  IRMapping values(mapping), ofExisting(mapping);
  Block &block = region.front();
  values.map(block.getArguments(), arguments);
  for (auto [from, to] : known.getValueMap()) {
    values.map(from, to);
    ofExisting.map(from, to);
  }
  SmallVector<Operation *> ops = getNeeded(block, value, known);
  llvm::SmallDenseSet<Operation *> sources;
  if (!existing.empty()) {
    ofExisting.map(block.getArguments(), existing);
    sources = findSources(ops);
  }
  for (Operation *op : ops) {
    bool isWhole = existing.empty() || !isPartial(*op);
    if (isWhole && failed(cloneScalar(builder, *op, values)))
      return Value();
    if (existing.empty() || (isWhole && !sources.contains(op)))
      continue;
    if (failed(cloneScalar(builder, *op, ofExisting)))
      return Value();
    if (!isWhole)
      for (Value result : op->getResults())
        values.map(result, ofExisting.lookup(result));
  }
  return values.lookupOrDefault(value);
}

namespace {
/// Where a step's part of a row begins.
struct LineStart {
  /// The column that the copy begins at, a multiple of 16 bytes, and that of
  /// the copy that the first query and key read.
  Value aligned, first;
  /// The most columns by which the copy begins before what is read.
  int64_t mostBefore;
};
} // namespace

/// Returns the start for `tile`; `emit` emits values of the region.
static LineStart getLineStart(OpBuilder &builder, const TileRead &read,
                              const ScoreTile &tile,
                              function_ref<Value(Value)> emit) {
  Location loc = read.op->getLoc();
  int64_t unit = kTensorMapAlignment / read.getElementBytes();
  IndexMath index(builder, loc);
  OpFoldResult moving = index.constant(0);
  int64_t least = 0;
  auto addTerm = [&](Value value, int64_t factor) {
    OpFoldResult product = index.mul(value, index.constant(std::abs(factor)));
    moving =
        factor < 0 ? index.sub(moving, product) : index.add(moving, product);
  };
  for (auto [step, at, size] :
       {std::tuple(read.line->steps[0], tile.at.row, tile.queryTile),
        std::tuple(read.line->steps[1], tile.at.key, tile.keyTile)}) {
    addTerm(at, step);
    least += std::min<int64_t>(0, step * (size - 1));
  }
  for (auto [value, factor] : read.line->terms)
    addTerm(getValueOrCreateCastToIndexLike(
                builder, loc, builder.getIndexType(), emit(value)),
            factor);
  // Bits are masked off also where there are none: later passes may have the
  // place from memory.
  auto mask = [&](OpFoldResult value) -> Value {
    return arith::AndIOp::create(builder, loc, index.materialize(value),
                                 index.materialize(index.constant(-unit)));
  };
  int64_t fixed = read.line->constant + least;
  if (suitsTensorMap(index.materialize(moving),
                     read.op->getResult(0).getType())) {
    int64_t before = llvm::mod(fixed, static_cast<uint64_t>(unit));
    return {mask(index.add(moving, index.constant(fixed - before))),
            index.materialize(index.constant(before - least)), before};
  }
  OpFoldResult start = index.add(moving, index.constant(fixed));
  Value aligned = mask(start);
  OpFoldResult before = index.sub(start, aligned);
  return {aligned, index.materialize(index.sub(before, index.constant(least))),
          unit - 1};
}

SmallVector<TileRead> LaunchBuilder::getTileReads(Operation *op,
                                                  ArrayRef<TileRead> reads,
                                                  OpFoldResult key) {
  IndexMath index(rewriter, loc);
  Value column = index.materialize(key);
  bool hasBulkCopies = machine::getGpuOrDefault(op).getGpuArch().hasBulkCopies;
  SmallVector<TileRead> chosen;
  for (const TileRead &read : reads) {
    // Copies by TMA of rows may begin anywhere, and in front of the tensor.
    if (read.line ? hasBulkCopies
                  : suitsTensorMap(column, read.op->getResult(0).getType())) {
      chosen.push_back(read);
      continue;
    }
    if (read.line)
      continue;
    remark::missed(
        read.op->getLoc(),
        remark::RemarkOpts::name("unaligned").category("convert-attn-to-tile"))
        << "elements are read one by one, not as tiles: tiles of keys begin at "
           "places that are not known to be multiples of 16 bytes";
  }
  return chosen;
}

CapturedTile LaunchBuilder::loadCapture(OpBuilder &builder,
                                        const TileRead &read,
                                        const ScoreTile &tile) {
  tensor::ExtractOp op = read.op;
  Value memref = getMemRef(op.getTensor());
  if (!memref) {
    (void)fail("a tensor that is computed within the loop is read");
    return {};
  }
  Region &region = *op->getParentRegion();
  SmallVector<Value> arguments = {tile.at.batch, tile.at.head, tile.at.row,
                                  tile.at.key};
  // No index depends on the score.
  if (region.getNumArguments() > arguments.size()) {
    Type type = region.getArgument(0).getType();
    arguments.insert(
        arguments.begin(),
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type)));
  }
  auto emit = [&](Value value) {
    return tile.emitRegion(builder, region, arguments, /*existing=*/{}, value,
                           /*known=*/{});
  };
  int64_t rank = op.getTensor().getType().getRank();
  SmallVector<int64_t> dims = {rank - 2, rank - 1};
  auto getType = [&](int64_t rows, int64_t columns) {
    return SharedType::get(builder.getContext(), {rows, columns}, op.getType(),
                           /*swizzle=*/0);
  };
  SmallVector<Value> indices;
  if (!read.line) {
    for (Value index : op.getIndices())
      indices.push_back(emit(index));
    auto type = getType(tile.queryTile, tile.keyTile);
    return {LoadOp::create(builder, loc, type, memref, indices, dims),
            /*first=*/{}, /*steps=*/{}};
  }

  for (Value index : op.getIndices().drop_back())
    indices.push_back(emit(index));
  LineStart start = getLineStart(builder, read, tile, emit);
  indices.push_back(start.aligned);
  auto type = getType(
      1, read.getColumns(tile.queryTile, tile.keyTile, start.mostBefore));
  return {LoadOp::create(builder, loc, type, memref, indices, dims),
          start.first, builder.getDenseI64ArrayAttr(read.line->steps)};
}

scf::ForOp LaunchBuilder::createLoop(scf::ForOp loop, ValueRange inits) {
  auto converted = scf::ForOp::create(
      rewriter, loop.getLoc(), mapping.lookupOrDefault(loop.getLowerBound()),
      mapping.lookupOrDefault(loop.getUpperBound()),
      mapping.lookupOrDefault(loop.getStep()), inits);
  mapping.map(loop.getInductionVar(), converted.getInductionVar());
  // Without running values the builder has already made the terminator.
  if (!converted.getBody()->empty())
    rewriter.eraseOp(converted.getBody()->getTerminator());
  return converted;
}

LogicalResult LaunchBuilder::convertBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(convertOp(op)))
      return failure();
  return success();
}
