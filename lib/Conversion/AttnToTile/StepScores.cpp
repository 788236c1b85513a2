//===- StepScores.cpp - The scores of a step ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepScores.h"

#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/IndexMath.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

#include <limits>
#include <numbers>

#define DEBUG_TYPE "convert-attn-to-tile"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::tile;

FragmentType TileSizes::getScores() const {
  return FragmentType::get(accumulation.getContext(), {queries, keys},
                           accumulation, LayoutAttr());
}

FragmentType TileSizes::getWeights() const {
  return FragmentType::get(accumulation.getContext(), {queries, keys}, element,
                           LayoutAttr());
}

FragmentType TileSizes::getOutput() const {
  return FragmentType::get(accumulation.getContext(), {queries, valueDim},
                           accumulation, LayoutAttr());
}

FragmentType TileSizes::getRows() const {
  return FragmentType::get(accumulation.getContext(), {queries}, accumulation,
                           LayoutAttr());
}

FragmentType TileSizes::getSums() const {
  if (!usesTensorCores())
    return getRows();
  return FragmentType::get(accumulation.getContext(),
                           {queries, keyWarps > 1 ? keyWarps : kRowThreads},
                           accumulation, LayoutAttr());
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

/// Returns true if scores may have `factor` as their unit: other factors could
/// make f32 numbers zero or infinite.
static bool isUnit(double factor) {
  constexpr double kSmallest = 0x1p-96, kLargest = 0x1p96;
  return factor >= kSmallest && factor <= kLargest;
}

ScoreUnit ScoreUnit::get(const APFloat &scale, Region &score) {
  double factor = scale.convertToDouble();
  if (score.empty() && isUnit(factor))
    return {factor, /*isRaw=*/true};
  return {1.0, /*isRaw=*/false};
}

/// Returns true if `factor` is the same in all steps, for it is none of a
/// loop's, and clamped to what may be a unit; a clamp makes a number of NaN.
static bool isClampedToUnits(Value factor) {
  if (!isa<FunctionOpInterface>(factor.getParentRegion()->getParentOp()))
    return false;
  auto below = factor.getDefiningOp<arith::MinNumFOp>();
  auto above =
      below ? below.getLhs().getDefiningOp<arith::MaxNumFOp>() : nullptr;
  APFloat least(0.0), most(0.0);
  return above && matchPattern(above.getRhs(), m_ConstantFloat(&least)) &&
         matchPattern(below.getRhs(), m_ConstantFloat(&most)) &&
         isUnit(least.convertToDouble()) && isUnit(most.convertToDouble());
}

namespace {
/// A product in a score region.
struct LastProduct {
  Value other;
  ScoreUnit unit;
};
} // namespace

/// Returns the product that `value`, of the region `score`, is with a number
/// that may be a unit.
static std::optional<LastProduct> getLastProduct(Region &score, Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product || product->getBlock() != &score.front())
    return std::nullopt;
  for (auto [constant, other] :
       {std::pair(product.getRhs(), product.getLhs()),
        std::pair(product.getLhs(), product.getRhs())}) {
    APFloat number(0.0);
    if (matchPattern(constant, m_ConstantFloat(&number)) &&
        isUnit(number.convertToDouble()))
      return LastProduct{other, {number.convertToDouble(), /*isRaw=*/false}};
    if (isClampedToUnits(constant))
      return LastProduct{other, {1.0, /*isRaw=*/false, constant}};
  }
  return std::nullopt;
}

/// Returns the product that `score` yields with a number that may be a unit.
static std::optional<LastProduct> getLastProduct(Region &score) {
  if (score.empty())
    return std::nullopt;
  return getLastProduct(score, score.front().getTerminator()->getOperand(0));
}

ScoreUnit ScoreUnit::get(OnlineAttentionOp op) {
  if (std::optional<LastProduct> last = getLastProduct(op.getScore()))
    return last->unit;
  return get(op.getScale(), op.getScore());
}

double ScoreUnit::getBase2() const { return unit * std::numbers::log2e; }

Value ScoreUnit::emitProduct(OpBuilder &builder, Location loc, FloatType type,
                             double number) const {
  Formula f = {builder, loc, type};
  Value product = f.number(number);
  return factor ? f.mul(f.convert(factor), product) : product;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

StepScores::StepScores(OpBuilder &builder, const TileSizes &sizes,
                       const KeyStep &step)
    : builder(builder), op(step.op), loc(op.getLoc()), math(builder, loc),
      sizes(sizes), step(step), unit(ScoreUnit::get(op)), heldUnit(unit) {
  if (std::optional<LastProduct> last = getLastProduct(op.getScore()))
    held = last->other;
}

bool StepScores::isStale() {
  return op.getScheduleAttr().getMaximum() == Maximum::Stale &&
         op.updatesMax() && op.updatesSum() && op.updatesAcc();
}

MmaOp StepScores::multiply(FragmentType type, Value a, Value b, Value acc,
                           bool transposeB) {
  auto product = MmaOp::create(builder, loc, type, a, b, acc, transposeB,
                               /*kind=*/MmaKindAttr());
  if (product.getB().getType().getElementType().isInteger(8))
    product.setFrom(step.from);
  return product;
}

Value StepScores::scores(Value query) {
  Value keys = step.loadKeys(builder);
  MmaOp products = multiply(sizes.getScores(), query, keys, /*acc=*/Value(),
                            /*transposeB=*/true);
  // Few queries, as in decoding, leave most rows of a tile empty. Several warp
  // groups may change their rows with one another.
  std::optional<int64_t> queries = getConstantIntValue(step.tile.queries);
  int64_t warps = op.getScheduleAttr().getWarps();
  if (queries && *queries < sizes.queries && warps <= kGroupWarps)
    products.setRows(*queries);
  else if (isStale() && isFused())
    separateTerm();
  Value factored = products;
  if (step.factors)
    factored = math.map(
        sizes.getScores(), products.getResult(), step.factors,
        [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
          return arith::MulFOp::create(body, loc, elements[0], elements[1]);
        });
  Value scores = masked(modified(factored));
  return products.getRows() ? cleared(scores, *products.getRows()) : scores;
}

/// Returns scores that are 0 in rows of no query, where few queries are in the
/// first eight: the registers of a thread that hold others hold none, and what
/// is computed of them folds away.
Value StepScores::cleared(Value scores, int64_t queries) {
  constexpr int64_t kEight = 8;
  if (queries > kEight)
    return scores;
  return math.map(
      sizes.getScores(), scores, {},
      [&](OpBuilder &body, ValueRange elements,
          ValueRange coordinates) -> Value {
        IndexMath index(body, loc);
        Value bit =
            arith::AndIOp::create(body, loc, coordinates[0],
                                  index.materialize(index.constant(kEight)));
        Value isBehind =
            arith::CmpIOp::create(body, loc, arith::CmpIPredicate::ne, bit,
                                  index.materialize(index.constant(0)));
        return arith::SelectOp::create(body, loc, isBehind, constant(body, 0.0),
                                       elements[0]);
      });
}

/// Leaves the term in the key's position out of the scores: the exponent is a
/// multiply-add of scores, and what it adds to them, the term and the shift, is
/// one of the position. Only a step that starts again needs whole scores, and
/// their mask once more, which then must not be a tile that is loaded.
void StepScores::separateTerm() {
  Region &region = op.getScore();
  if (step.tile.getTileReads(op.getMask()).empty())
    term = PositionTerm::find(region);
  if (!term)
    return;
  held = term->rest;
  heldUnit = {1.0, /*isRaw=*/false};
  double scale = op.getScale().convertToDouble();
  if (held == region.getArgument(0) && isUnit(scale)) {
    heldUnit = {scale, /*isRaw=*/true};
  } else if (std::optional<LastProduct> last = getLastProduct(region, held)) {
    held = last->other;
    heldUnit = last->unit;
  }
  slopes = getSlopes();
  LDBG() << "attention at " << loc
         << ": exponents add a term in the position of the key";
}

/// Returns the loop over keys if what the score region uses, other than the
/// key, is from outside of it; null otherwise.
static scf::ForOp findKeyLoop(OpBuilder &builder, const KeyStep &step) {
  Operation *parent = builder.getInsertionBlock()->getParentOp();
  auto loop = dyn_cast<scf::ForOp>(parent);
  if (!loop)
    loop = parent->getParentOfType<scf::ForOp>();
  OnlineAttentionOp op = step.op;
  auto source = op->getParentOfType<scf::ForOp>();
  if (!loop || !source)
    return nullptr;
  SetVector<Value> captures;
  getUsedValuesDefinedAbove(op.getScore(), captures);
  const ScoreTile &tile = step.tile;
  SmallVector<OpFoldResult> places = {tile.at.batch, tile.at.head, tile.at.row,
                                      tile.queries};
  bool isOutside = llvm::all_of(captures,
                                [&](Value capture) {
                                  return source.isDefinedOutsideOfLoop(capture);
                                }) &&
                   llvm::all_of(places, [&](OpFoldResult place) {
                     auto value = dyn_cast<Value>(place);
                     return !value || loop.isDefinedOutsideOfLoop(value);
                   });
  return isOutside ? loop : nullptr;
}

/// Emits the numbers that positions are multiplied by, in front of the loop
/// over keys: a tensor that has them is not read in each step.
Value StepScores::getSlopes() {
  OpBuilder::InsertionGuard guard(builder);
  if (scf::ForOp loop = findKeyLoop(builder, step))
    builder.setInsertionPoint(loop);
  IndexMath index(builder, loc);
  ScoreTile tile = step.tile.getFirst(builder, loc);
  return math.map(
      sizes.getRows(), {}, {},
      [&](OpBuilder &body, ValueRange, ValueRange coordinates) -> Value {
        Formula f = {body, loc, sizes.accumulation};
        Value key = IndexMath(body, loc).materialize(index.constant(0));
        Value slope = f.number(term->sign);
        for (Value factor : term->factors)
          slope = f.mul(emitScore(body, tile, f.number(0.0),
                                  {coordinates[0], key}, factor),
                        slope);
        return slope;
      });
}

Value StepScores::emitScore(OpBuilder &body, const ScoreTile &tile,
                            Value scaled, ValueRange coordinates, Value value,
                            const IRMapping &known) {
  Region &region = op.getScore();
  SmallVector<Value> arguments{scaled}, existing;
  arguments.append(tile.getPlace(body, loc, coordinates[0], coordinates[1]));
  if (SmallVector<Value> place =
          tile.getExisting(body, loc, coordinates[0], coordinates[1], region);
      !place.empty()) {
    existing.push_back(scaled);
    existing.append(place);
  }
  return tile.emitRegion(body, region, arguments, existing, value, known);
}

Value StepScores::whole(Value scores) {
  if (!term)
    return scores;
  Value added = math.map(
      sizes.getScores(), scores, slopes,
      [&](OpBuilder &body, ValueRange elements,
          ValueRange coordinates) -> Value {
        Formula f = {body, loc, sizes.accumulation};
        Value rest = elements[0];
        if (heldUnit.unit != 1.0 || heldUnit.factor)
          rest = f.mul(rest, heldUnit.emitProduct(body, loc, sizes.accumulation,
                                                  heldUnit.unit));
        Value position = emitScore(body, step.tile, f.number(0.0), coordinates,
                                   term->position);
        return f.add(rest, f.mul(elements[1], position));
      });
  // The term need not be finite: a key without weight gets its score again.
  return masked(added);
}

/// Loads the tiles that `region` reads; returns nothing if that fails.
std::optional<SmallVector<CapturedTile>>
StepScores::loadCaptures(Region &region) {
  SmallVector<CapturedTile> tiles;
  for (const TileRead &read : step.tile.getTileReads(region)) {
    tiles.push_back(step.loadCapture(builder, read));
    if (!tiles.back().tile)
      return std::nullopt;
  }
  return tiles;
}

/// Reads the elements of scores from `tiles`.
SmallVector<Value> StepScores::readCaptures(ArrayRef<CapturedTile> tiles) {
  return llvm::map_to_vector(tiles, [&](const CapturedTile &captured) -> Value {
    auto shared = cast<SharedType>(captured.tile.getType());
    FragmentType type = sizes.getScores().cloneWith(shared.getElementType());
    return FromSharedOp::create(builder, loc, type, captured.tile,
                                captured.first, captured.steps);
  });
}

Value StepScores::modified(Value products) {
  if (heldUnit.isRaw)
    return products;
  Region &region = op.getScore();
  double factor = op.getScale().convertToDouble();
  std::optional<SmallVector<CapturedTile>> tiles = loadCaptures(region);
  if (!tiles)
    return products;
  SmallVector<Value> inputs = {products};
  llvm::append_range(inputs, readCaptures(*tiles));
  return math.map(
      sizes.getScores(), inputs, {},
      [&](OpBuilder &body, ValueRange elements,
          ValueRange coordinates) -> Value {
        Value scaled = elements[0];
        if (factor != 1.0)
          scaled =
              arith::MulFOp::create(body, loc, scaled, constant(body, factor));
        if (region.empty())
          return scaled;
        IRMapping known;
        for (auto [read, element] : llvm::zip_equal(
                 step.tile.getTileReads(region), elements.drop_front()))
          known.map(read.op->getResult(0), element);
        return emitScore(body, step.tile, scaled, coordinates, held, known);
      });
}

Value fovea::chooseMasked(
    FragmentMath &math, const ScoreTile &tile, Region &mask, Value scores,
    OpFoldResult isNeeded, OpFoldResult isShort,
    llvm::function_ref<Value(const ScoreTile &tile)> map) {
  auto type = cast<FragmentType>(scores.getType());
  auto emit = [&]() -> Value {
    std::optional<ScoreTile> whole = tile.getWhole(mask);
    if (!whole)
      return map(tile);
    return math.choose(
        isShort, type, [&] { return map(tile); }, [&] { return map(*whole); });
  };
  return math.choose(isNeeded, type, emit, [&] { return scores; });
}

SmallVector<Value> StepScores::emitLimits(const ScoreTile &tile,
                                          const KeyBounds &bounds) {
  FragmentType type = sizes.getRows().cloneWith(builder.getI32Type());
  ScoreTile first = tile.getFirst(builder, loc);
  // No read that limits need is made for the whole tile, as these have keys.
  first.tileReads.clear();
  auto emit = [&](bool isEnd) {
    return math.map(
        type, {}, {},
        [&](OpBuilder &body, ValueRange, ValueRange coordinates) -> Value {
          IndexMath index(body, loc);
          auto emitValue = [&](Value value) {
            return first.emit(body, loc, coordinates[0], index.constant(0),
                              op.getMask(), /*read=*/{}, value);
          };
          OpFoldResult limit = isEnd ? bounds.emitEnd(index, emitValue)
                                     : bounds.emitFirst(index, emitValue);
          limit = index.sub(limit, tile.at.key);
          limit =
              index.min(limit, isEnd ? tile.keys : index.constant(sizes.keys));
          limit = index.max(limit, index.constant(0));
          return arith::IndexCastOp::create(body, loc, body.getI32Type(),
                                            index.materialize(limit));
        });
  };
  SmallVector<Value> limits = {emit(/*isEnd=*/true)};
  if (bounds.hasFirst())
    limits.push_back(emit(/*isEnd=*/false));
  return limits;
}

OpFoldResult StepScores::isKept(OpBuilder &body, const ScoreTile &tile,
                                ValueRange coordinates, const KeyBounds &bounds,
                                ValueRange limits, ValueRange read) {
  IndexMath index(body, loc);
  Value key =
      arith::IndexCastOp::create(body, loc, body.getI32Type(), coordinates[1]);
  OpFoldResult kept =
      arith::CmpIOp::create(body, loc, arith::CmpIPredicate::slt, key,
                            limits.front())
          .getResult();
  if (limits.size() > 1)
    kept = index.logicalAnd(
        kept, arith::CmpIOp::create(body, loc, arith::CmpIPredicate::sge, key,
                                    limits.back())
                  .getResult());
  for (Value condition : bounds.getRest())
    kept = index.logicalAnd(kept,
                            tile.emit(body, loc, coordinates[0], coordinates[1],
                                      op.getMask(), read, condition));
  return kept;
}

Value StepScores::masked(Value scores) {
  IndexMath index(builder, loc);
  OpFoldResult isShort = index.less(step.tile.keys, index.constant(sizes.keys));
  if (auto condition = dyn_cast<Value>(isShort); condition && step.isLastFirst)
    isShort = FirstOnlyOp::create(builder, loc, condition).getResult();
  OpFoldResult partial = step.tile.partial;
  if (step.arePartial)
    partial = step.arePartial(builder);
  OpFoldResult isNeeded = index.logicalOr(partial, isShort);
  // Copies do not wait for the branch.
  std::optional<SmallVector<CapturedTile>> tiles = SmallVector<CapturedTile>();
  if (!IndexMath::isFalse(isNeeded))
    tiles = loadCaptures(op.getMask());
  if (!tiles)
    return scores;
  std::optional<KeyBounds> bounds = KeyBounds::get(op.getMask());
  auto map = [&](const ScoreTile &tile) {
    SmallVector<Value> inputs = {scores}, limits;
    llvm::append_range(inputs, readCaptures(*tiles));
    if (bounds)
      limits = emitLimits(tile, *bounds);
    return math.map(
        sizes.getScores(), inputs, limits,
        [&](OpBuilder &body, ValueRange elements,
            ValueRange coordinates) -> Value {
          Value lowest =
              constant(body, -std::numeric_limits<double>::infinity());
          ValueRange read = elements.drop_front().drop_back(limits.size());
          OpFoldResult kept;
          if (bounds)
            kept = isKept(body, tile, coordinates, *bounds,
                          elements.take_back(limits.size()), read);
          else
            kept = tile.isKept(body, loc, coordinates[0], coordinates[1],
                               op.getMask(), read);
          Value condition =
              IndexMath(body, loc).materialize(kept, /*isBoolean=*/true);
          return arith::SelectOp::create(body, loc, condition, elements[0],
                                         lowest);
        });
  };
  // Limits know of keys that do not exist.
  if (bounds && bounds->getRest().empty())
    return math.choose(
        isNeeded, sizes.getScores(), [&] { return map(step.tile); },
        [&] { return scores; });
  return chooseMasked(math, step.tile, op.getMask(), scores, isNeeded, isShort,
                      map);
}
