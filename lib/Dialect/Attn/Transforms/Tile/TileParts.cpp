//===- TileParts.cpp - Parts of the keys of listed tiles ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileParts.h"

#include "MergeParts.h"
#include "TileTransposes.h"

#include "../HeadGroups.h"

#include "fovea/Analysis/Formula.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The dimensions of tensors of attention: [B, H, rows], and features, if there
/// are any.
enum : int64_t { kBatch, kHead, kRow, kFeature };

/// An output, and its log-sum-exp as two numbers.
static constexpr unsigned kNumbers = 3;

Value fovea::attn::addTiles(OpBuilder &builder, Location loc, ValueRange tiles,
                            FloatType element) {
  Value first = tiles.front();
  auto type = cast<RankedTensorType>(first.getType());
  if (tiles.size() == 1 && type.getElementType() == element)
    return first;
  SmallVector<AffineMap> maps(tiles.size() + 1,
                              builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  Value room = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, first), element);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange elements) {
    Formula f = {nested, loc, element};
    Value sum = f.convert(elements[0]);
    for (Value more : elements.take_front(tiles.size()).drop_front())
      sum = f.add(sum, f.convert(more));
    linalg::YieldOp::create(nested, loc, sum);
  };
  return linalg::GenericOp::create(builder, loc, room.getType(), tiles, room,
                                   maps, loops, body)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// What iterations write
//===----------------------------------------------------------------------===//

/// Returns the result of the op that ends the work on a tile of which `value`
/// is another shape, or null.
static OpResult findTile(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<FinalizeOp>(op))
      return cast<OpResult>(value);
    if (std::optional<Transposition> transpose = Transposition::get(op))
      value = transpose->input;
    else if (isa<tensor::ExtractSliceOp, tensor::CollapseShapeOp,
                 tensor::ExpandShapeOp>(op))
      value = op->getOperand(0);
    else
      break;
  }
  return {};
}

/// Returns what `rows / group` divides, and the group; `rows` and 1 if it is no
/// quotient.
static std::pair<Value, int64_t> getRowsAndGroup(Value rows) {
  auto quotient = rows.getDefiningOp<arith::DivSIOp>();
  std::optional<int64_t> group =
      quotient ? getConstantIntValue(quotient.getRhs()) : std::nullopt;
  if (!group)
    return {rows, 1};
  return {quotient.getLhs(), *group};
}

/// Returns true if `rows`, of heads of a group, are all of a tile but those of
/// so many `places` of each query that have no head.
static bool dropsPlacesOf(Value rows, int64_t places) {
  if (std::optional<Transposition> swap =
          Transposition::get(rows.getDefiningOp()))
    rows = swap->input;
  auto slice = rows.getDefiningOp<tensor::ExtractSliceOp>();
  return slice && dropsPlaces(slice, kRow) &&
         slice.getSourceType().getDimSize(kRow) == places;
}

bool PartedTiles::analyze() {
  for (Operation &op : loop.getTerminator().getYieldingOps()) {
    auto insertion = cast<tensor::ParallelInsertSliceOp>(op);
    OpResult result = findTile(insertion.getSource());
    if (!result || insertion.getDestType().getRank() <= kRow ||
        !insertion.hasUnitStride() || insertion.getSizes().size() != 1)
      return false;
    auto source = cast<FinalizeOp>(result.getOwner());
    auto [all, ofGroup] = getRowsAndGroup(insertion.getSizes().front());
    Written of = {insertion, result.getResultNumber(), kRow};
    if (insertion.isDynamicSize(kHead))
      of.rowDim = kHead;
    if (!insertion.isDynamicSize(of.rowDim) ||
        !insertion.isDynamicOffset(of.rowDim) ||
        insertion.isDynamicSize(kHead + kRow - of.rowDim) ||
        insertion.getStaticSize(kBatch) != 1)
      return false;
    int64_t own = insertion.getStaticSize(kHead + kRow - of.rowDim);
    if (own != ofGroup && !dropsPlacesOf(insertion.getSource(), ofGroup))
      return false;
    if (written.empty()) {
      tile = source;
      rows = all;
      group = ofGroup;
      heads = own;
    } else if (tile != source || rows != all || group != ofGroup ||
               heads != own) {
      return false;
    }
    written.push_back(of);
    for (Value offset : insertion.getOffsets())
      if (!places.collect(offset))
        return false;
  }
  // Parts are some of the steps of each loop over keys.
  auto hasSteps = [](scf::ForOp keys) {
    return getConstantIntValue(keys.getStep()).has_value();
  };
  return llvm::all_of(loop.getBody()->getOps<scf::ForOp>(), hasSteps) && tile &&
         !tile.getInitLse() && !tile.getWhen() && !tile.getRest() &&
         places.collect(rows) && queryTile % group == 0 &&
         !ShapedType::isDynamic(
             cast<RankedTensorType>(tile.getOutput().getType())
                 .getDimSize(kFeature)) &&
         getConstantIntValue(loop.getMixedUpperBound()[kHead]);
}

std::optional<PartedTiles> PartedTiles::get(scf::ForallOp loop,
                                            int64_t queryTile) {
  PartedTiles tiles(loop);
  tiles.queryTile = queryTile;
  if (!tiles.analyze())
    return std::nullopt;
  return tiles;
}

SmallVector<Value> PartedTiles::createRooms(OpBuilder &builder,
                                            int64_t parts) const {
  auto type = cast<RankedTensorType>(FinalizeOp(tile).getAcc().getType());
  int64_t heads =
      *getConstantIntValue(scf::ForallOp(loop).getMixedUpperBound()[kHead]);
  SmallVector<int64_t> shape = {parts * heads, queryTile,
                                type.getDimSize(kFeature)};
  SmallVector<Value> rooms;
  for (unsigned number = 0; number < kNumbers; ++number)
    rooms.push_back(tensor::EmptyOp::create(
        builder, FinalizeOp(tile).getLoc(),
        ArrayRef(shape).drop_back(number ? 1 : 0), type.getElementType()));
  return rooms;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

namespace {
/// Computes values again of others in place of some.
class Rebuilder {
public:
  Rebuilder(OpBuilder &builder, Block &block)
      : builder(builder), block(block) {}

  void map(Value from, Value to) { mapping.map(from, to); }

  Value get(Value value) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &block)
      return value;
    bool isSame = true;
    for (Value operand : op->getOperands())
      isSame &= get(operand) == operand;
    if (isSame)
      mapping.map(op->getResults(), op->getResults());
    else
      builder.clone(*op, mapping);
    return mapping.lookup(value);
  }

private:
  OpBuilder &builder;
  Block &block;
  IRMapping mapping;
};
} // namespace

void PartedTiles::compute(RewriterBase &rewriter, scf::ForallOp listed,
                          const KeyPart &part, Value item) const {
  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = listed.getLoc();
  Block &body = *listed.getBody();
  for (auto keys : body.getOps<scf::ForOp>()) {
    rewriter.setInsertionPoint(keys);
    IndexMath math(rewriter, loc);
    auto [begin, end] =
        getTilesOf(math, part, keys.getLowerBound(), keys.getUpperBound(),
                   *getConstantIntValue(keys.getStep()));
    keys.setLowerBound(math.materialize(begin));
    keys.setUpperBound(math.materialize(end));
  }

  // What says where rows are written, and whether, comes before them. Nearly
  // all items are a whole tile, whose store all of them have, of no row for a
  // part: no branch is around it, in which it could not go through shared
  // memory.
  FinalizeOp whole = tile;
  rewriter.setInsertionPoint(whole);
  IndexMath math(rewriter, loc);
  OpFoldResult zero = math.constant(0), one = math.constant(1);
  OpFoldResult isWhole = math.equal(part.count, one);
  auto limit = [&](OpFoldResult count, int64_t most) {
    return math.materialize(
        math.min(count, math.select(isWhole, math.constant(most), zero)));
  };
  Value ofWhole = limit(rows, queryTile),
        queriesOfWhole =
            limit(math.truncDiv(rows, math.constant(group)), getQueries());
  // Warps that compute have two numbers more: whether they write rows of a
  // part follows from how many, and a place has items and heads.
  OpFoldResult some = math.select(isWhole, zero, rows);
  Value ofPart =
      math.materialize(math.select(math.equal(some, zero), zero, some));
  OpFoldResult heads = listed.getMixedUpperBound()[kHead];
  int64_t places = cast<RankedTensorType>(listed.getResults().back().getType())
                       .getDimSize(0);
  OpFoldResult own = math.add(math.mul(OpFoldResult(item), heads),
                              OpFoldResult(listed.getInductionVar(kHead)));
  SmallVector<OpFoldResult> place = {math.min(own, math.constant(places - 1)),
                                     zero, zero};
  SmallVector<Value> inits;
  for (unsigned number = 0; number < kNumbers; ++number) {
    Value like = number ? whole.getSum() : whole.getAcc();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, like);
    sizes[kRow] = rows;
    inits.push_back(tensor::EmptyOp::create(rewriter, loc, sizes,
                                            getElementTypeOrSelf(like)));
  }
  auto sums =
      FinalizeOp::create(rewriter, loc, ValueRange(inits).getTypes(),
                         whole.getAcc(), whole.getMax(), whole.getSum(),
                         /*initLse=*/Value(), /*when=*/Value(), inits[0],
                         inits[1], inits[2], whole.getNatural());
  auto getRows = [&](Value tensor, Value count) -> Value {
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, tensor);
    sizes[kRow] = count;
    SmallVector<OpFoldResult> zeros(sizes.size(), zero),
        ones(sizes.size(), one);
    return tensor::ExtractSliceOp::create(rewriter, loc, tensor, zeros, sizes,
                                          ones);
  };
  Rebuilder rebuilder(rewriter, body);
  rebuilder.map(rows, ofWhole);
  for (OpResult result : whole->getResults()) {
    // The log-sum-exp of a whole is rounded once, as that of merged parts.
    bool isLse = result.getResultNumber();
    ValueRange terms = sums->getResults().drop_front(isLse ? 1 : 0);
    Value value = addTiles(rewriter, loc, isLse ? terms : terms.take_front(),
                           cast<FloatType>(getElementTypeOrSelf(result)));
    rebuilder.map(result, getRows(value, ofWhole));
  }
  rewriter.setInsertionPoint(body.getTerminator());
  for (const Written &of : written) {
    tensor::ParallelInsertSliceOp insertion = of.insertion;
    rebuilder.map(insertion.getSizes().front(), queriesOfWhole);
    Value source = rebuilder.get(insertion.getSource());
    rewriter.modifyOpInPlace(insertion, [&] {
      insertion.getSourceMutable().assign(source);
      insertion.getSizesMutable().assign(queriesOfWhole);
    });
  }

  auto rooms = ValueRange(listed.getRegionIterArgs()).take_back(kNumbers);
  for (auto [room, result] : llvm::zip_equal(rooms, sums->getResults())) {
    int64_t rank = cast<RankedTensorType>(result.getType()).getRank();
    Value some = tensor::CollapseShapeOp::create(
        rewriter, loc, getRows(result, ofPart), getGroupsWithPair(rank - 1, 0));
    SmallVector<OpFoldResult> sizes = {one, ofPart}, ones(rank - 1, one);
    if (rank > kFeature)
      sizes.push_back(rewriter.getIndexAttr(
          cast<RankedTensorType>(room.getType()).getShape().back()));
    OpBuilder::InsertionGuard inner(rewriter);
    rewriter.setInsertionPointToEnd(listed.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(
        rewriter, loc, some, room, ArrayRef(place).take_front(sizes.size()),
        sizes, ones);
  }
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

/// Returns the row of `rows`, [rows, features] or [rows], at `row`: [features],
/// or a number.
static tensor::ExtractSliceOp getRow(OpBuilder &builder, Location loc,
                                     Value rows, Value row) {
  auto type = cast<RankedTensorType>(rows.getType());
  SmallVector<OpFoldResult> place(type.getRank(), builder.getIndexAttr(0)),
      ones(type.getRank(), builder.getIndexAttr(1)),
      size = getAsIndexOpFoldResult(builder.getContext(), type.getShape());
  place.front() = row;
  size.front() = ones.front();
  auto ofRow = RankedTensorType::get(type.getShape().drop_front(),
                                     type.getElementType());
  return tensor::ExtractSliceOp::create(builder, loc, ofRow, rows, place, size,
                                        ones);
}

SmallVector<Value> PartedTiles::emitRow(OpBuilder &builder, Location loc,
                                        ValueRange rooms, const Item &item,
                                        Value number, OpFoldResult inTile,
                                        int64_t usual, ValueRange outs) {
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  IndexMath math(builder, loc);
  SmallVector<Value> parts;
  // Items have the results of all heads.
  OpFoldResult heads = loop.getMixedUpperBound()[kHead];
  OpFoldResult first = math.add(math.mul(item.first, heads), item.head);
  for (Value room : rooms) {
    auto type = cast<RankedTensorType>(room.getType());
    SmallVector<int64_t> shape = {ShapedType::kDynamic};
    SmallVector<OpFoldResult> place = {first, inTile, zero},
                              size = {item.count, one},
                              step = {heads, one, one};
    if (type.getRank() == kFeature) {
      shape.push_back(type.getDimSize(kFeature - 1));
      size.push_back(builder.getIndexAttr(shape.back()));
    }
    place.resize(size.size());
    step.resize(size.size());
    parts.push_back(tensor::ExtractSliceOp::create(
        builder, loc, RankedTensorType::get(shape, type.getElementType()), room,
        place, size, step));
  }
  SmallVector<tensor::ExtractSliceOp> places;
  Value output;
  FloatType lse;
  for (auto [to, out] : llvm::zip_equal(written, outs)) {
    places.push_back(getRow(builder, loc, out, number));
    if (to.number == 0)
      output = places.back();
    else
      lse = cast<FloatType>(getElementTypeOrSelf(out));
  }
  if (!output)
    output = tensor::EmptyOp::create(
        builder, loc,
        cast<RankedTensorType>(parts.front().getType()).getShape().drop_front(),
        getElementTypeOrSelf(parts.front()));
  MergedRow merged = mergeParts(builder, loc, {parts[0], parts[1], parts[2]},
                                item.count, usual, output, lse);
  SmallVector<Value> values;
  for (auto [to, place, out] : llvm::zip_equal(written, places, outs)) {
    Value value = merged.output;
    if (to.number != 0) {
      Value ofFirst = tensor::ExtractOp::create(
          builder, loc, merged.lse, math.materialize(math.constant(0)));
      value =
          tensor::InsertOp::create(builder, loc, ofFirst, place, ValueRange());
    }
    values.push_back(tensor::InsertSliceOp::create(
        builder, loc, value, out, place.getMixedOffsets(),
        place.getMixedSizes(), place.getMixedStrides()));
  }
  return values;
}

SmallVector<Value> PartedTiles::emitPlace(OpBuilder &builder, Location loc,
                                          const Merged &of, Value head,
                                          Value query, Value member) {
  IndexMath math(builder, loc);
  IRMapping mapping;
  mapping.map(loop.getInductionVar(kBatch), math.materialize(of.batch));
  mapping.map(loop.getInductionVar(kHead), head);
  mapping.map(loop.getInductionVar(kRow), math.materialize(of.row));
  for (Operation *op : places.getOps())
    builder.clone(*op, mapping);
  OpFoldResult zero = math.constant(0), one = math.constant(1);
  OpFoldResult queries = math.truncDiv(mapping.lookupOrDefault(rows),
                                       math.constant(group)),
               isRow = math.less(query, queries);
  SmallVector<Value> place = {math.materialize(math.select(isRow, one, zero))};
  for (Written &to : written)
    for (auto [dim, offset] : llvm::enumerate(to.insertion.getMixedOffsets())) {
      auto value = dyn_cast<Value>(offset);
      OpFoldResult first = value ? mapping.lookupOrDefault(value) : offset;
      // What is no row is nowhere else than in the tensor.
      if (int64_t(dim) == to.rowDim)
        first = math.select(isRow, math.add(first, query), zero);
      else if (int64_t(dim) == kHead || int64_t(dim) == kRow)
        first = math.add(first, member);
      place.push_back(math.materialize(first));
    }
  return place;
}

SmallVector<PartedTiles::Slice>
PartedTiles::emitSlices(OpBuilder &builder, Location loc, const Merged &of,
                        Value head, Value query, Value member) {
  // A tile that there is not is looked for nowhere.
  auto branch = scf::IfOp::create(
      builder, loc, of.exists,
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc,
                             emitPlace(nested, loc, of, head, query, member));
      },
      [&](OpBuilder &nested, Location loc) {
        size_t count = 1;
        for (Written &to : written)
          count += to.insertion.getMixedOffsets().size();
        Value zero = arith::ConstantIndexOp::create(nested, loc, 0);
        scf::YieldOp::create(nested, loc, SmallVector<Value>(count, zero));
      });
  Value count = branch.getResults().front();
  ValueRange place = branch.getResults().drop_front();
  SmallVector<Slice> slices;
  for (Written &to : written) {
    Slice &slice = slices.emplace_back();
    slice.sizes = to.insertion.getMixedSizes();
    slice.sizes[to.rowDim] = count;
    slice.sizes[kHead + kRow - to.rowDim] = builder.getIndexAttr(1);
    size_t rank = slice.sizes.size();
    llvm::append_range(slice.offsets, place.take_front(rank));
    // The memory of features is known to begin with the first one.
    if (rank > kFeature)
      slice.offsets[kFeature] = to.insertion.getMixedOffsets()[kFeature];
    place = place.drop_front(rank);
  }
  return slices;
}

SmallVector<Value> PartedTiles::merge(
    OpBuilder &builder, OpFoldResult most, ValueRange rooms, ValueRange results,
    int64_t usual,
    llvm::function_ref<Merged(IndexMath &, Value number)> getTile) {
  Location loc = loop.getLoc();
  auto emit = [&](OpBuilder &nested, Location loc, ValueRange arguments) {
    Value number = arguments[0], head = arguments[1], query = arguments[2],
          member = arguments[3];
    ValueRange outs = arguments.drop_front(4);
    IndexMath math(nested, loc);
    Merged of = getTile(math, number);
    SmallVector<Slice> places =
        emitSlices(nested, loc, of, head, query, member);
    Item item = {of.first, head, math.materialize(of.count)};
    OpFoldResult inTile =
        math.add(math.mul(query, math.constant(group)), OpFoldResult(member));
    SmallVector<Value> slices;
    for (auto [place, out] : llvm::zip_equal(places, outs)) {
      auto type = cast<RankedTensorType>(out.getType());
      SmallVector<int64_t> shape = {ShapedType::kDynamic};
      if (type.getRank() > kFeature)
        shape.push_back(type.getDimSize(kFeature));
      SmallVector<OpFoldResult> ones(type.getRank(), nested.getIndexAttr(1));
      slices.push_back(tensor::ExtractSliceOp::create(
          nested, loc, RankedTensorType::get(shape, type.getElementType()), out,
          place.offsets, place.sizes, ones));
    }
    // A loop of one step, or of none.
    Value count = cast<Value>(places.front().sizes[written.front().rowDim]);
    auto ifRow = scf::ForOp::create(
        nested, loc, math.materialize(math.constant(0)), count,
        math.materialize(math.constant(1)), slices,
        [&](OpBuilder &inner, Location loc, Value number, ValueRange carried) {
          scf::YieldOp::create(
              inner, loc,
              emitRow(inner, loc, rooms, item, number, inTile, usual, carried));
        });
    auto parallel = scf::InParallelOp::create(nested, loc);
    nested.setInsertionPointToStart(parallel.getBody());
    for (auto [value, out, slice] :
         llvm::zip_equal(ifRow.getResults(), outs, places)) {
      SmallVector<OpFoldResult> ones(slice.sizes.size(),
                                     nested.getIndexAttr(1));
      tensor::ParallelInsertSliceOp::create(nested, loc, value, out,
                                            slice.offsets, slice.sizes, ones);
    }
  };
  SmallVector<OpFoldResult> upper = {most, loop.getMixedUpperBound()[kHead],
                                     builder.getIndexAttr(getQueries()),
                                     builder.getIndexAttr(heads)};
  return llvm::to_vector_of<Value>(
      scf::ForallOp::create(builder, loc, upper, results,
                            /*mapping=*/std::nullopt, emit)
          .getResults());
}
