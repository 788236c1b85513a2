//===- BackwardStep.cpp - Gradients of a tile of scores -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BackwardStep.h"

#include "FragmentMath.h"

#include "fovea/Analysis/CaptureReads.h"
#include "fovea/Analysis/Formula.h"
#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Attn/Differentiate/ScalarTape.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;
using namespace fovea::tile;

namespace {
class BackwardEmitter {
public:
  /// Fragments of what the score region reads by its ops.
  using Reads = llvm::MapVector<Operation *, Value>;

  BackwardEmitter(OpBuilder &builder, const TileSizes &sizes,
                  const BackwardStep &step)
      : builder(builder), op(step.op), loc(op.getLoc()), math(builder, loc),
        sizes(sizes), step(step), factor(op.getScale().convertToDouble()),
        unit(ScoreUnit::get(op.getScale(), op.getScore())),
        scoreShape{sizes.keys, sizes.queries},
        scoreType(getFragment(scoreShape, sizes.accumulation)) {
    if (op.getDropout() && op.getDropout()->convertToDouble() > 0)
      dropout = op.getDropout()->convertToDouble();
  }

  FailureOr<BackwardGradients> emit(const BackwardGradients &sums);

private:
  FragmentType getFragment(ArrayRef<int64_t> shape, Type type) {
    return FragmentType::get(builder.getContext(), shape, type, LayoutAttr());
  }
  Formula formula(OpBuilder &body) { return {body, loc, sizes.accumulation}; }
  /// Accessors of an element's coordinates in a fragment.
  static Value getQuery(ValueRange coordinates) { return coordinates[1]; }
  static Value getKey(ValueRange coordinates) { return coordinates[0]; }
  /// Maps fragments of scores and of a statistic of queries.
  Value map(ValueRange inputs, Value statistic, FragmentMath::Body body) {
    return math.map(scoreType, inputs, {}, statistic, body);
  }

  Value product(Value a, Value b, bool transposes, Value acc,
                ArrayRef<int64_t> shape);
  Value scoreProduct(Value ofQueries, Value ofKeys);
  Reads readTiles(ArrayRef<TileRead> reads, ArrayRef<CapturedTile> tiles);
  Reads readAhead();
  Value modified(Value products, const Reads &ahead);
  SmallVector<Value> joinWords(OpBuilder &body, ValueRange words);
  Value masked(Value scores);
  Value probabilities(Value scores);
  Value weights(Value probabilities);
  Value slopes(Value probabilities, Value scores);
  Value scoreGradients(Value slopes, Value products, Value weights);
  Value operand(Value fragment);

  SmallVector<Value> getScoreArguments(OpBuilder &body, Value product,
                                       ValueRange coordinates);
  Value pullScore(OpBuilder &body, Value product, ValueRange coordinates,
                  Value cotangent, ScalarTape::Substitute substitute,
                  tensor::ExtractOp read = {});
  Value difference(OpBuilder &body, Value product, Value negatedDelta,
                   Value weight);
  using SendFn = llvm::function_ref<Value(
      OpBuilder &body, Value gradient, Value product, ValueRange coordinates)>;
  Value readGradients(tensor::ExtractOp read, Value p, Value products,
                      Value scores, Value weights, SendFn send = nullptr);
  OpFoldResult exists(OpBuilder &body, ValueRange coordinates);
  void send(OpBuilder &body, ScatteredRead read, Value gradient,
            ValueRange arguments, std::optional<OpFoldResult> matters);
  void scatter(ScatteredRead read, Value p, Value products, Value scores,
               Value weights);
  void scatterDiagonals(ScatteredRead read, Value p, Value products,
                        Value scores, Value weights);

  OpBuilder &builder;
  OnlineBackwardOp op;
  Location loc;
  FragmentMath math;
  const TileSizes &sizes;
  const BackwardStep &step;
  double factor;
  ScoreUnit unit;
  std::optional<double> dropout;
  std::array<int64_t, 2> scoreShape;
  FragmentType scoreType;
  /// What the score region reads of tiles.
  Reads scoreTiles;
  bool hasFailed = false;
};
} // namespace

Value BackwardEmitter::product(Value a, Value b, bool transposes, Value acc,
                               ArrayRef<int64_t> shape) {
  return MmaOp::create(builder, loc, getFragment(shape, sizes.accumulation), a,
                       b, acc, transposes, MmaKindAttr());
}

/// Multiplies each row of `ofKeys` with each row of `ofQueries`.
Value BackwardEmitter::scoreProduct(Value ofQueries, Value ofKeys) {
  return product(ofKeys, ofQueries, /*transposes=*/true, /*acc=*/Value(),
                 scoreShape);
}

//===----------------------------------------------------------------------===//
// Probabilities
//===----------------------------------------------------------------------===//

/// Returns the arguments of the score region for an element.
SmallVector<Value> BackwardEmitter::getScoreArguments(OpBuilder &body,
                                                      Value product,
                                                      ValueRange coordinates) {
  Value scaled = factor == 1.0 ? product : formula(body).mul(product, factor);
  SmallVector<Value> arguments{scaled};
  Value query = getQuery(coordinates), key = getKey(coordinates);
  SmallVector<Value> place =
      step.tile.getExisting(body, loc, query, key, op.getScore());
  arguments.append(place.empty() ? step.tile.getPlace(body, loc, query, key)
                                 : place);
  return arguments;
}

/// Returns fragments of `tiles`, whose rows are columns here, by what reads
/// them.
BackwardEmitter::Reads
BackwardEmitter::readTiles(ArrayRef<TileRead> reads,
                           ArrayRef<CapturedTile> tiles) {
  Reads fragments;
  for (auto [read, captured] : llvm::zip_equal(reads, tiles)) {
    FragmentType type = getFragment(
        scoreShape, cast<SharedType>(captured.tile.getType()).getElementType());
    if (!captured.steps) {
      fragments[read.op] = FromSharedOp::create(
          builder, loc, type, captured.tile, /*transposed=*/true);
      continue;
    }
    ArrayRef<int64_t> steps = captured.steps;
    fragments[read.op] =
        FromSharedOp::create(builder, loc, type, captured.tile, captured.first,
                             builder.getDenseI64ArrayAttr({steps[1], steps[0]}),
                             /*transposed=*/UnitAttr());
  }
  return fragments;
}

/// Returns what stands for the results of `reads` where `elements` begins with
/// theirs.
static auto getSubstitute(const llvm::MapVector<Operation *, Value> &reads,
                          ValueRange elements) {
  return [&reads, elements](Operation *op) -> Value {
    const auto *found = reads.find(op);
    return found == reads.end() ? Value() : elements[found - reads.begin()];
  };
}

/// Reads ahead, while products run, the values that scores read at indices that
/// depend on their coordinates only; returns these and those of tiles.
BackwardEmitter::Reads BackwardEmitter::readAhead() {
  Reads ahead = scoreTiles;
  if (op.getScore().empty())
    return ahead;
  Block &block = op.getScore().front();
  llvm::SmallDenseSet<Value> ofScores =
      getDependents(block, block.getArgument(0));
  llvm::SmallDenseSet<Value> ofQueries =
      getDependents(block, block.getArgument(3));
  llvm::SmallDenseSet<Value> ofKeys =
      getDependents(block, block.getArgument(4));
  for (auto read : block.getOps<tensor::ExtractOp>()) {
    Value element = read.getResult();
    auto type = dyn_cast<FloatType>(element.getType());
    if (!type || ahead.contains(read) || ofScores.contains(element) ||
        !ofQueries.contains(element) || !ofKeys.contains(element))
      continue;
    Value fragment = math.map(
        getFragment(scoreShape, type), {}, {},
        [&](OpBuilder &body, ValueRange, ValueRange coordinates) -> Value {
          IRMapping mapping;
          Value none = formula(body).number(0.0);
          mapping.map(block.getArguments(),
                      getScoreArguments(body, none, coordinates));
          ScalarTape tape(body, loc);
          return tape.replay(block, element, mapping);
        });
    ahead.try_emplace(read, fragment);
  }
  return ahead;
}

Value BackwardEmitter::modified(Value products, const Reads &ahead) {
  if (unit.isRaw)
    return products;
  SmallVector<Value> inputs{products};
  llvm::append_range(inputs, llvm::make_second_range(ahead));
  return math.map(
      scoreType, inputs, {},
      [&](OpBuilder &body, ValueRange elements,
          ValueRange coordinates) -> Value {
        Formula f = formula(body);
        if (op.getScore().empty())
          return f.mul(elements[0], factor);
        Block &block = op.getScore().front();
        IRMapping mapping;
        mapping.map(block.getArguments(),
                    getScoreArguments(body, elements[0], coordinates));
        ScalarTape tape(body, loc);
        return tape.replay(block, block.getTerminator()->getOperand(0), mapping,
                           getSubstitute(ahead, elements.drop_front()));
      });
}

/// Returns what the mask reads for a query from the words of this: by the first
/// of its reads.
SmallVector<Value> BackwardEmitter::joinWords(OpBuilder &body,
                                              ValueRange words) {
  SmallVector<Value> numbers;
  for (const TileRead &read : step.tile.getTileReads(op.getMask())) {
    if (words.empty())
      break;
    Type type = read.op->getResult(0).getType();
    if (!type.isInteger(64)) {
      numbers.push_back(words.front());
      words = words.drop_front();
      continue;
    }
    Value low = arith::ExtUIOp::create(body, loc, type, words[0]),
          high = arith::ExtUIOp::create(body, loc, type, words[1]);
    Value bits = arith::ConstantIntOp::create(body, loc, type, 32);
    high = arith::ShLIOp::create(body, loc, high, bits);
    numbers.push_back(arith::OrIOp::create(body, loc, high, low));
    words = words.drop_front(2);
  }
  return numbers;
}

Value BackwardEmitter::masked(Value scores) {
  IndexMath index(builder, loc);
  // Queries that do not exist have the shift minus infinity. A score of a
  // region need not be finite: their sum may be NaN.
  OpFoldResult isShort = index.less(step.tile.keys, index.constant(sizes.keys));
  OpFoldResult needed = index.logicalOr(step.tile.partial, isShort);
  bool testsQueries = !op.getScore().empty() && step.tile.mayLackQueries();
  if (testsQueries)
    needed = index.logicalOr(
        needed, index.less(step.tile.queries, index.constant(sizes.queries)));
  auto map = [&](const ScoreTile &tile) {
    SmallVector<Value> words;
    for (Value each : step.maskWords) {
      Type element = cast<SharedType>(each.getType()).getElementType();
      auto type = FragmentType::get(builder.getContext(), {sizes.queries},
                                    element, LayoutAttr());
      words.push_back(FromSharedOp::create(builder, loc, type, each));
    }
    SmallVector<Value> inputs = {scores};
    SmallVector<TileRead> maskReads = step.tile.getTileReads(op.getMask());
    Reads tiles =
        readTiles(ArrayRef(maskReads).take_back(step.maskCaptures.size()),
                  step.maskCaptures);
    llvm::append_range(inputs, llvm::make_second_range(tiles));
    return math.map(
        scoreType, inputs, {}, words,
        [&](OpBuilder &body, ValueRange elements,
            ValueRange coordinates) -> Value {
          IndexMath inner(body, loc);
          SmallVector<Value> read =
              joinWords(body, elements.drop_front(inputs.size()));
          llvm::append_range(read,
                             elements.take_front(inputs.size()).drop_front());
          OpFoldResult kept =
              tile.isKept(body, loc, getQuery(coordinates), getKey(coordinates),
                          op.getMask(), read);
          if (testsQueries)
            kept = inner.logicalAnd(
                kept, inner.less(getQuery(coordinates), tile.queries));
          Formula f = formula(body);
          Value lowest = f.number(-std::numeric_limits<double>::infinity());
          return f.select(inner.materialize(kept, /*isBoolean=*/true),
                          elements[0], lowest);
        });
  };
  return chooseMasked(math, step.tile, op.getMask(), scores, needed, isShort,
                      map);
}

Value BackwardEmitter::probabilities(Value scores) {
  SmallVector<Value> statistics{step.shift};
  if (step.rest)
    statistics.push_back(step.rest);
  bool isFused = isFusedBackward(unit, sizes);
  return math.map(
      scoreType, scores, {}, statistics,
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Formula f = formula(body);
        Value base2 = f.number(unit.getBase2());
        auto fma = [&](Value x, Value y) {
          return f.make<math::FmaOp>(x, base2, y);
        };
        Value exponent;
        if (isFused) {
          exponent = fma(elements[0], elements[1]);
        } else {
          Value difference = emitExactSum(body, loc, elements[0], elements[1]);
          exponent = step.rest ? fma(difference, elements[2])
                               : f.mul(difference, unit.getBase2());
        }
        return f.make<math::Exp2Op>(exponent);
      });
}

/// Converts `fragment` to the left operand of a product.
Value BackwardEmitter::operand(Value fragment) {
  if (sizes.element == sizes.accumulation)
    return fragment;
  return math.map(
      getFragment(scoreShape, sizes.element), fragment, {},
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        return convertFloats(body, loc, elements[0], sizes.element);
      });
}

/// Returns the weights of values as a left operand: 0 where the dropout drops.
Value BackwardEmitter::weights(Value probabilities) {
  if (!dropout)
    return operand(probabilities);
  return math.map(
      getFragment(scoreShape, sizes.element), probabilities, {},
      [&](OpBuilder &body, ValueRange elements,
          ValueRange coordinates) -> Value {
        Formula f = formula(body);
        Value kept = step.tile.isUndropped(body, loc, getQuery(coordinates),
                                           getKey(coordinates), *dropout);
        Value scaled = f.mul(elements[0], 1.0 / (1.0 - *dropout));
        return convertFloats(body, loc, f.select(kept, scaled, f.number(0.0)),
                             sizes.element);
      });
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Returns `cotangent` times the derivative of the score region by the score,
/// or by the value of `read`; `substitute` is for replaying the region. The
/// result is 0 where `cotangent` is 0: masked scores may have no derivative.
Value BackwardEmitter::pullScore(OpBuilder &body, Value product,
                                 ValueRange coordinates, Value cotangent,
                                 ScalarTape::Substitute substitute,
                                 tensor::ExtractOp read) {
  Block &block = op.getScore().front();
  SmallVector<Value> arguments = getScoreArguments(body, product, coordinates);
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  ScalarTape tape(body, loc);
  Value score = tape.replay(block, block.getTerminator()->getOperand(0),
                            mapping, substitute);
  Value variable =
      read ? mapping.lookupOrDefault(read.getResult()) : arguments[0];
  // With f64 operands, the terms of a narrower captured tensor are not rounded.
  tape.addVariable(variable, sizes.accumulation.isF64() ? sizes.accumulation
                                                        : FloatType());
  Formula f = formula(body);
  if (failed(tape.pull(score, cotangent))) {
    hasFailed = true;
    return cotangent;
  }
  Value gradient = tape.getGradient(variable);
  if (!gradient)
    return f.number(0.0);
  // The accumulation type of the element that is read.
  gradient = f.convert(gradient);
  if (gradient == cotangent)
    return cotangent;
  Value isZero = f.compare(arith::CmpFPredicate::OEQ, cotangent, f.number(0.0));
  return f.select(isZero, f.number(0.0), gradient);
}

/// Returns probabilities times derivatives of the score region.
Value BackwardEmitter::slopes(Value probabilities, Value scores) {
  if (op.getScore().empty())
    return probabilities;
  SmallVector<Value> inputs{probabilities, scores};
  llvm::append_range(inputs, llvm::make_second_range(scoreTiles));
  return math.map(scoreType, inputs, {},
                  [&](OpBuilder &body, ValueRange elements,
                      ValueRange coordinates) -> Value {
                    return pullScore(
                        body, elements[1], coordinates, elements[0],
                        getSubstitute(scoreTiles, elements.drop_front(2)));
                  });
}

/// Returns `dp - delta` of an element. If it has no `weight`, the dropout drops
/// its product; a null `weight` means that there is no dropout.
Value BackwardEmitter::difference(OpBuilder &body, Value product,
                                  Value negatedDelta, Value weight) {
  Formula f = formula(body);
  if (dropout) {
    Value scaled = f.mul(product, 1.0 / (1.0 - *dropout));
    Value zero = f.number(0.0);
    Value kept = f.compare(arith::CmpFPredicate::OGT, f.convert(weight), zero);
    product = f.select(kept, scaled, zero);
  }
  return f.add(product, negatedDelta);
}

/// Returns gradients of the scaled products, `p * score' * (dp - delta)`, as a
/// left operand.
Value BackwardEmitter::scoreGradients(Value slopes, Value products,
                                      Value weights) {
  SmallVector<Value> inputs{slopes, products};
  if (dropout)
    inputs.push_back(weights);
  return operand(map(
      inputs, step.negatedDelta,
      [&](OpBuilder &body, ValueRange elements, ValueRange) -> Value {
        Formula f = formula(body);
        return f.mul(elements[0], difference(body, elements[1], elements.back(),
                                             dropout ? elements[2] : Value()));
      }));
}

/// Returns gradients of the values that the score region reads by `read`, one
/// for each score; `send` may store each where it belongs.
Value BackwardEmitter::readGradients(tensor::ExtractOp read, Value p,
                                     Value products, Value scores,
                                     Value weights, SendFn send) {
  SmallVector<Value> inputs{p, products, scores};
  if (dropout)
    inputs.push_back(weights);
  size_t firstTile = inputs.size();
  llvm::append_range(inputs, llvm::make_second_range(scoreTiles));
  return map(
      inputs, step.negatedDelta,
      [&](OpBuilder &body, ValueRange elements,
          ValueRange coordinates) -> Value {
        Value gradient = formula(body).mul(
            elements[0], difference(body, elements[1], elements.back(),
                                    dropout ? elements[3] : Value()));
        gradient = pullScore(
            body, elements[2], coordinates, gradient,
            getSubstitute(scoreTiles, elements.drop_front(firstTile)), read);
        return send ? send(body, gradient, elements[2], coordinates) : gradient;
      });
}

/// Returns true, as a value, if an element's query and key exist.
OpFoldResult BackwardEmitter::exists(OpBuilder &body, ValueRange coordinates) {
  IndexMath index(body, loc);
  OpFoldResult result = index.boolean(true);
  if (step.tile.mayLackQueries())
    result = index.less(getQuery(coordinates), step.tile.queries);
  if (step.tile.mayLackKeys())
    result = index.logicalAnd(result,
                              index.less(getKey(coordinates), step.tile.keys));
  return result;
}

/// Writes or adds `gradient` at the place that `read` reads with `arguments` of
/// the score region, if `matters` holds; if `matters` is not given, where
/// `gradient` is not zero.
void BackwardEmitter::send(OpBuilder &body, ScatteredRead read, Value gradient,
                           ValueRange arguments,
                           std::optional<OpFoldResult> matters) {
  Formula f = formula(body);
  IndexMath index(body, loc);
  Value condition =
      matters ? index.materialize(*matters, /*isBoolean=*/true)
              : f.compare(arith::CmpFPredicate::UNE, gradient, f.number(0.0));
  auto branch =
      scf::IfOp::create(body, loc, condition, /*withElseRegion=*/false);
  OpBuilder inner = branch.getThenBodyBuilder();
  Block &block = op.getScore().front();
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  ScalarTape tape(inner, loc);
  SmallVector<Value> place;
  for (Value at : read.op.getIndices())
    place.push_back(tape.replay(block, at, mapping));
  if (read.integers)
    return read.integers->add(inner, loc, gradient, read.target, place);
  auto element = cast<FloatType>(getElementTypeOrSelf(read.target));
  Value term = convertFloats(inner, loc, gradient, element);
  if (read.isShared)
    memref::AtomicRMWOp::create(inner, loc, arith::AtomicRMWKind::addf, term,
                                read.target, place);
  else
    memref::StoreOp::create(inner, loc, term, read.target, place);
}

/// Sends gradients to memory. Where memory holds zeros, gradients of zero are
/// left out, for example those of scores that are masked or do not exist.
void BackwardEmitter::scatter(ScatteredRead read, Value p, Value products,
                              Value scores, Value weights) {
  auto sendOne = [&](OpBuilder &body, Value gradient, Value product,
                     ValueRange coordinates) {
    std::optional<OpFoldResult> matters;
    if (!read.isZeroed)
      matters = exists(body, coordinates);
    send(body, read, gradient, getScoreArguments(body, product, coordinates),
         matters);
    return gradient;
  };
  readGradients(read.op, p, products, scores, weights, sendOne);
}

/// Adds sums of gradients at the same distance of query and key; the distance
/// determines where they are added.
void BackwardEmitter::scatterDiagonals(ScatteredRead read, Value p,
                                       Value products, Value scores,
                                       Value weights) {
  // Elements that do not exist may be at a place of their own.
  auto dropMissing = [&](OpBuilder &body, Value gradient, Value,
                         ValueRange coordinates) -> Value {
    OpFoldResult kept = exists(body, coordinates);
    if (IndexMath::isTrue(kept))
      return gradient;
    Formula f = formula(body);
    IndexMath index(body, loc);
    return f.select(index.materialize(kept, /*isBoolean=*/true), gradient,
                    f.number(0.0));
  };
  Value gradients =
      readGradients(read.op, p, products, scores, weights, dropMissing);
  Value sums = SumDiagonalsOp::create(builder, loc, gradients);
  math.map(scoreType, sums, {},
           [&](OpBuilder &body, ValueRange elements,
               ValueRange coordinates) -> Value {
             // A sum may lie where no score is; its distance is that of some
             // score.
             IndexMath index(body, loc);
             const PerCoordinate<Value> &at = step.tile.at;
             SmallVector<Value> arguments{elements[0], at.batch, at.head};
             for (auto [first, coordinate] :
                  {std::pair(at.row, getQuery(coordinates)),
                   {at.key, getKey(coordinates)}})
               arguments.push_back(index.materialize(
                   index.add(OpFoldResult(first), OpFoldResult(coordinate))));
             send(body, read, elements[0], arguments, /*matters=*/std::nullopt);
             return elements[0];
           });
}

FailureOr<BackwardGradients>
BackwardEmitter::emit(const BackwardGradients &sums) {
  scoreTiles =
      readTiles(step.tile.getTileReads(op.getScore()), step.scoreCaptures);
  Reads ahead = readAhead();
  Value scores = scoreProduct(step.query, step.key);
  // Only one of the two stays in registers while a region is computed.
  bool hasRegion = !op.getScore().empty();
  Value products;
  if (!hasRegion)
    products = scoreProduct(step.gradient, step.value);
  Value p = probabilities(masked(modified(scores, ahead)));
  Value left = weights(p);
  BackwardGradients result;
  result.value = product(left, step.gradient, /*transposes=*/false, sums.value,
                         {sizes.keys, sizes.valueDim});
  Value slopes = this->slopes(p, scores);
  if (hasRegion)
    products = scoreProduct(step.gradient, step.value);
  Value gradients = scoreGradients(slopes, products, left);
  result.key = product(gradients, step.query, /*transposes=*/false, sums.key,
                       {sizes.keys, sizes.headDim});
  for (auto [read, sum] : llvm::zip_equal(step.reads, sums.reads))
    result.reads.push_back(math.reduce(
        Reduction::Add, readGradients(read, p, products, scores, left), sum));
  auto type = SharedType::get(builder.getContext(), {sizes.queries, sizes.keys},
                              sizes.element, /*swizzle=*/0);
  Value transposed = ToSharedOp::create(builder, loc, type, gradients,
                                        /*ring=*/Value(), /*transposed=*/true);
  result.query = product(transposed, step.key, /*transposes=*/false,
                         /*acc=*/Value(), {sizes.queries, sizes.headDim});
  // Runs while products do.
  for (ScatteredRead read : step.scattered)
    if (read.addsDiagonals)
      scatterDiagonals(read, p, products, scores, left);
    else
      scatter(read, p, products, scores, left);
  if (hasFailed)
    return failure();
  return result;
}

bool fovea::isFusedBackward(ScoreUnit unit, const TileSizes &sizes) {
  return unit.isRaw && sizes.element.getIntOrFloatBitWidth() == 16;
}

FailureOr<BackwardGradients>
fovea::emitBackwardStep(OpBuilder &builder, const TileSizes &sizes,
                        const BackwardStep &step,
                        const BackwardGradients &sums) {
  return BackwardEmitter(builder, sizes, step).emit(sums);
}
