//===- MatrixForward.cpp - The forward pass by matrix tiles ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of attention:
//
//   scores   [key][query]:     keys as they lie, times queries in pairs of
//                              features
//   values   [query][feature]: weights with a query's in a row, times values in
//                              pairs of keys
//
// Keys in bf16 are read where they lie, unless there are fewer than a tile has
// or their features lie apart; queries come packed. Values of a block are
// packed in scratch once for all queries; then one group of queries after the
// other takes all steps of the block, so that its scores stay in the fast
// memory from step to step, and reads each tile of values once.
//
// Tiles and vectors are units of their own. Where groups overlap, the scores of
// the next group are multiplied between the rows of a group's softmax, 32 keys
// at a time, and take the place of the weights that have just been transposed.
//
//===----------------------------------------------------------------------===//

#include "MatrixTiles.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

static constexpr int64_t kSide = Tiles::kSide, kDepth = Tiles::kDepth;

void fovea::attn::allocateMatrixScratch(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  OnlineAttentionOp op = kernel.op;
  Type narrow = b.getBF16Type();
  int64_t parts = countPairParts(getElementTypeOrSelf(op.getKey().getType()));
  int64_t keys = llvm::alignTo(kernel.shape.blockKeys, kDepth);
  auto sizeOf = [](Value operand, int64_t dim) {
    return cast<MemRefType>(operand.getType()).getDimSize(dim);
  };
  kernel.keyBlock =
      allocateScratch(b, op,
                      {Tiles::getScratchRows(b, op.getKey(), keys),
                       parts * sizeOf(op.getKey(), 3)},
                      narrow);
  if (!op.updatesAcc())
    return;
  kernel.weights =
      allocateScratch(b, op, {kernel.groupQueries(), parts * keys}, narrow);
  kernel.valueBlock = allocateScratch(
      b, op, {parts * keys / 2, 2 * sizeOf(op.getValue(), 3)}, narrow);
}

static Tiles getTiles(OnlineKernel &kernel, bool isExact = false) {
  Type type = getElementTypeOrSelf(kernel.op.getKey().getType());
  return Tiles(kernel, countPairParts(type), isExact);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

namespace {
/// The product of the block's keys and of a group of queries. It is exact to
/// f32, for a log-sum-exp, which is in f32, has its error.
class GroupScores {
public:
  /// `query` is the group's first query in the tile.
  GroupScores(OnlineKernel &kernel, Value column, Value query)
      : kernel(kernel), tiles(getTiles(kernel, /*isExact=*/true)),
        column(column), query(query),
        features(cast<MemRefType>(kernel.op.getKey().getType()).getDimSize(3)) {
  }

  /// Returns the maxima of no scores, if maxima are wanted.
  SmallVector<Value> getLowest();
  /// Reads row `key` for maxima, and multiplies it with the factor where the
  /// softmax does not.
  SmallVector<Value> emitRead(Value key, ValueRange carried);
  SmallVector<Value> multiply(IndexRange keys, ValueRange maxima);
  void multiplyStep(Value key,
                    llvm::function_ref<void(int64_t, int64_t)> fillStep);

private:
  Tiles::Place getRight(int64_t v, Value feature, int64_t part);

  OnlineKernel &kernel;
  Tiles tiles;
  Value column, query;
  int64_t features;
};
} // namespace

Tiles::Place GroupScores::getRight(int64_t v, Value feature, int64_t part) {
  KernelBuilder &b = kernel.b;
  Value pair = b.floorDiv(b.add(feature, part * features), 2);
  return {kernel.op.getQuery(),
          {kernel.batch, kernel.head, pair, b.mul(b.add(query, v * kSide), 2)}};
}

SmallVector<Value> GroupScores::getLowest() {
  // A region has yet to change the scores: their maximum is taken after it.
  if (!kernel.op.updatesMax() || !kernel.op.getScore().empty())
    return {};
  return SmallVector<Value>(
      kernel.shape.groupVectors,
      kernel.b.constant(kernel.vector,
                        -std::numeric_limits<double>::infinity()));
}

SmallVector<Value> GroupScores::emitRead(Value key, ValueRange carried) {
  KernelBuilder &b = kernel.b;
  SmallVector<Value> scores = kernel.loadGroup(kernel.scores, key, column);
  if (!kernel.factor) {
    Value factor =
        b.constant(kernel.vector, getPackingFactor(kernel.op.getScaleAttr(),
                                                   kernel.op.getScore()));
    for (Value &score : scores)
      score = arith::MulFOp::create(b, score, factor);
    kernel.storeGroup(scores, kernel.scores, key, column);
  }
  SmallVector<Value> next(carried);
  for (auto [maximum, score] : llvm::zip(next, scores))
    maximum = b.maxOrSecond(score, maximum);
  return next;
}

SmallVector<Value> GroupScores::multiply(IndexRange keys, ValueRange maxima) {
  auto getOperand = [&](int64_t v, Value feature, int64_t part) {
    return getRight(v, feature, part);
  };
  auto read = [&](Value key, ValueRange carried) {
    return emitRead(key, carried);
  };
  bool isRead = !kernel.factor || !maxima.empty();
  return tiles.multiplyKeys(kernel.keyBlock, features, getOperand,
                            kernel.scores, column, keys, maxima,
                            isRead ? KernelBuilder::LoopBody(read) : nullptr);
}

void GroupScores::multiplyStep(
    Value key, llvm::function_ref<void(int64_t, int64_t)> fillStep) {
  KernelBuilder &b = kernel.b;
  auto getOperand = [&](int64_t v, Value feature, int64_t part) {
    return getRight(v, feature, part);
  };
  int64_t rows = std::min(tiles.getStepRows(), kDepth / kSide);
  for (int64_t row = 0; row < kDepth / kSide; row += rows)
    tiles.multiplyStep(kernel.keyBlock, features, getOperand, kernel.scores,
                       column, b.add(key, row * kSide), rows,
                       row == 0 ? fillStep : nullptr);
}

/// Returns the keys of the block in whole tiles of which the group before has
/// multiplied the scores, where groups overlap.
static IndexRange getMultipliedBefore(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  Value zero = b.index(0);
  OnlineKernel before = kernel;
  before.at.row = b.sub(before.at.row, b.index(before.groupQueries()));
  before.rows = b.index(before.groupQueries());
  Tiles tiles(before);
  IndexRange kept = tiles.getKept(zero, before.groupQueries());
  IndexRange whole = tiles.getWhole(kept);
  Value isAny = arith::AndIOp::create(
      b,
      arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, kernel.group, zero),
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, kept.first,
                            kept.end));
  return {arith::SelectOp::create(b, isAny, whole.first, zero),
          arith::SelectOp::create(b, isAny, whole.end, zero)};
}

void fovea::attn::emitMatrixScoreProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  OnlineAttentionOp op = kernel.op;
  // The softmax takes a positive factor: it keeps the order of scores.
  double number = getPackingFactor(op.getScaleAttr(), op.getScore());
  Value factor = b.constant(kernel.vector, number);
  kernel.factor = op.getScore().empty() && number > 0 ? factor : Value();
  kernel.forGroups([&](Value column, IndexRange keys) {
    GroupScores scores(kernel, column, b.add(kernel.firstQuery, column));
    SmallVector<Value> maxima = scores.getLowest();
    if (!kernel.group) {
      maxima = scores.multiply(keys, maxima);
    } else {
      if (!maxima.empty())
        maxima = kernel.loadGroup(kernel.blockMax, Value(), column);
      IndexRange before = getMultipliedBefore(kernel);
      if (kernel.boundsKeys)
        maxima = scores.multiply({keys.first, b.min(before.first, keys.end)},
                                 maxima);
      maxima =
          scores.multiply({b.max(keys.first, before.end), keys.end}, maxima);
    }
    kernel.storeGroup(maxima, kernel.blockMax, Value(), column);
  });
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Sets the rows of scores to zero that a group's whole tiles of weights have
/// beyond `keys`.
static void clearOutside(OnlineKernel &kernel, const Tiles &tiles,
                         IndexRange keys, Value column) {
  KernelBuilder &b = kernel.b;
  IndexRange whole = tiles.getWhole(keys);
  SmallVector<Value> zeros(kernel.shape.groupVectors,
                           b.constant(kernel.vector, 0.0));
  for (auto [first, end] :
       {std::pair(whole.first, keys.first), std::pair(keys.end, whole.end)})
    b.loop(first, end, 1, [&](Value key) {
      kernel.storeGroup(zeros, kernel.scores, key, column);
    });
}

/// Writes the weights of one group's queries, those of a query in a row.
static void emitWeightRows(OnlineKernel &kernel, const Tiles &tiles,
                           Value column) {
  IndexRange keys = tiles.getKept(column, kernel.groupQueries());
  clearOutside(kernel, tiles, keys, column);
  tiles.transpose(kernel.scores, column, kernel.groupQueries(),
                  tiles.getWhole(keys), kernel.weights, column);
}

/// Emits the softmax of the group that the kernel is set to, with the scores of
/// the next one, if there is one, between its rows.
static void emitOverlappedSoftmax(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  Tiles tiles = getTiles(kernel);
  Value column = b.index(0);
  int64_t queries = kernel.groupQueries();
  IndexRange keys = tiles.getKept(column, queries),
             whole = tiles.getWhole(keys);
  clearOutside(kernel, tiles, keys, column);
  GroupSoftmax softmax(kernel, column);

  // Takes `count` rows from `first` on to weights.
  auto emitRows = [&](Value first, int64_t count, ValueRange sums) {
    return b.loop(b.max(first, keys.first),
                  b.min(b.add(first, count), keys.end), 1, sums,
                  [&](Value key, ValueRange carried) {
                    return softmax.emitRow(key, carried);
                  });
  };
  auto transpose = [&](Value key) {
    tiles.transpose(kernel.scores, column, queries, {key, b.add(key, kDepth)},
                    kernel.weights, column);
  };

  Value query = b.add(kernel.firstQuery, queries);
  Value hasNext = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, query,
                                        kernel.tileRows);
  auto choice = scf::IfOp::create(b, TypeRange(softmax.getSums()), hasNext,
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    OnlineKernel next = kernel;
    next.at.row = b.add(next.at.row, queries);
    next.rows = b.min(b.index(queries), b.sub(kernel.tileRows, query));
    IndexRange nextKeys = Tiles(next).getKept(column, queries);
    GroupScores scores(kernel, column, query);
    // Rows are read behind the products of the next step.
    auto readBefore = [&](Value key, ValueRange maxima) {
      Value first = b.max(b.max(b.sub(key, b.index(kDepth)), whole.first),
                          nextKeys.first);
      return b.loop(first, b.min(key, nextKeys.end), 1, maxima,
                    [&](Value row, ValueRange carried) {
                      return scores.emitRead(row, carried);
                    });
    };
    SmallVector<Value> state(softmax.getSums());
    size_t sumCount = state.size();
    llvm::append_range(state, scores.getLowest());
    state = b.loop(whole.first, whole.end, kDepth, state,
                   [&](Value key, ValueRange carried) {
                     SmallVector<Value> sums(carried.take_front(sumCount)),
                         maxima(carried.drop_front(sumCount));
                     scores.multiplyStep(key, [&](int64_t step, int64_t steps) {
                       int64_t first = step * kDepth / steps,
                               end = (step + 1) * kDepth / steps;
                       sums = emitRows(b.add(key, first), end - first, sums);
                       if (step == 0)
                         maxima = readBefore(key, maxima);
                       if (step == steps - 1)
                         transpose(key);
                     });
                     llvm::append_range(sums, maxima);
                     return sums;
                   });
    ValueRange last(state);
    SmallVector<Value> maxima =
        readBefore(whole.end, last.drop_front(sumCount));
    kernel.storeGroup(maxima, kernel.blockMax, Value(), column);
    b.setInsertionPointToEnd(choice.thenBlock());
    scf::YieldOp::create(b, last.take_front(sumCount));
  }
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.elseBlock());
    SmallVector<Value> sums =
        b.loop(whole.first, whole.end, kDepth, softmax.getSums(),
               [&](Value key, ValueRange carried) {
                 SmallVector<Value> next = emitRows(key, kDepth, carried);
                 transpose(key);
                 return next;
               });
    b.setInsertionPointToEnd(choice.elseBlock());
    scf::YieldOp::create(b, sums);
  }
  softmax.storeSums(choice.getResults());
}

void fovea::attn::emitMatrixSoftmax(OnlineKernel &kernel) {
  if (kernel.group)
    emitOverlappedSoftmax(kernel);
  else
    emitSoftmax(kernel);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Multiplies 16 queries of the accumulator, from `row` on, by their factors,
/// where one of these is not 1: the maxima of most blocks are not new.
static void emitRescaledRows(OnlineKernel &kernel, Value row) {
  KernelBuilder &b = kernel.b;
  Value acc = kernel.op.getAcc();
  int64_t features = cast<MemRefType>(acc.getType()).getDimSize(3);
  Value factors = b.loadVector(kernel.vector, kernel.alpha, row);
  Value differs = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factors,
                                        b.constant(kernel.vector, 1.0));
  b.when(vector::ReductionOp::create(b, vector::CombiningKind::OR, differs),
         [&] {
           b.loop(row, b.add(row, kSide), 1, [&](Value query) {
             Value alpha = b.splat(kernel.vector, b.load(kernel.alpha, query));
             b.loop(b.index(0), b.index(features), kSide, [&](Value feature) {
               SmallVector<Value> place = {kernel.batch, kernel.head,
                                           b.add(kernel.firstQuery, query),
                                           feature};
               Value old = b.loadVector(kernel.vector, acc, place);
               b.store(arith::MulFOp::create(b, old, alpha), acc, place);
             });
           });
         });
}

void fovea::attn::emitMatrixValueProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  Value acc = kernel.op.getAcc();
  Tiles tiles = getTiles(kernel);
  kernel.forGroups([&](Value column, IndexRange) {
    if (!kernel.group)
      emitWeightRows(kernel, tiles, column);
    Value end = b.min(b.add(column, kernel.groupQueries()), kernel.rows);
    if (kernel.alpha)
      b.loop(column, end, kSide,
             [&](Value row) { emitRescaledRows(kernel, row); });
    IndexRange keys =
        tiles.getWhole(tiles.getKept(column, kernel.groupQueries()));
    tiles.addProducts(
        kernel.weights, column, kernel.shape.groupVectors, kernel.valueBlock,
        keys, acc,
        {kernel.batch, kernel.head, b.add(kernel.firstQuery, column)},
        cast<MemRefType>(acc.getType()).getDimSize(3));
  });
}

/// Returns true if the scores of a group are multiplied with the softmax of the
/// one before: the softmax has their factor, and nothing comes between weights
/// and their rows.
static bool overlapsGroups(OnlineKernel &kernel) {
  OnlineAttentionOp op = kernel.op;
  int64_t features = cast<MemRefType>(op.getKey().getType()).getDimSize(3);
  return kernel.shape.groups > 1 && op.updatesSum() && op.updatesAcc() &&
         op.getScore().empty() && !op.getDropout() &&
         getPackingFactor(op.getScaleAttr(), op.getScore()) > 0 &&
         Tiles::hasFewSteps(features) && !kernel.b.hasDotProducts;
}

void fovea::attn::emitMatrixBlock(OnlineKernel &kernel,
                                  llvm::function_ref<void()> emitGroup) {
  KernelBuilder &b = kernel.b;
  Value scratch = kernel.keyBlock;
  Tiles tiles = getTiles(kernel);
  Value place[] = {kernel.batch, kernel.kvHead, kernel.firstKey};
  kernel.keyBlock =
      tiles.getRows(kernel.op.getKey(), place, kernel.keys, scratch);
  // Values that no query keeps become zeros.
  if (kernel.op.updatesAcc())
    tiles.packPairs(kernel.op.getValue(), place,
                    tiles.getKept(b.index(0), kernel.shape.queries),
                    kernel.keys, Tiles::Pairing::Neighbours, kernel.valueBlock);
  bool overlaps = overlapsGroups(kernel);
  kernel.tileRows = kernel.rows;
  if (overlaps && kernel.blockMax)
    kernel.storeGroup(SmallVector<Value>(
                          kernel.shape.groupVectors,
                          b.constant(kernel.vector,
                                     -std::numeric_limits<double>::infinity())),
                      kernel.blockMax, Value(), b.index(0));
  kernel.forGroupTiles([&](Value group, Value first) {
    kernel.firstQuery = first;
    if (overlaps)
      kernel.group = group;
    if (!kernel.boundsKeys)
      return emitGroup();
    // Nothing changes for queries that keep none of the keys.
    IndexRange keys = kernel.getKeys(b.index(0), kernel.groupQueries());
    b.when(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, keys.first,
                                 keys.end),
           emitGroup);
  });
  kernel.keyBlock = scratch;
  kernel.group = Value();
  kernel.firstQuery = b.index(0);
}
