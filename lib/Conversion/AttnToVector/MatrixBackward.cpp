//===- MatrixBackward.cpp - The backward pass by AMX tiles ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of OnlineBackward.cpp for matrix tiles:
//
//   scores     [key][query]:     keys and values as they lie, times queries and
//                                gradients in pairs of features
//   dV, dK     [key][feature]:   P and S with a key's in a row, times gradients
//                                and queries in pairs of queries
//   dQ         [query][feature]: S with a query's in a row, times keys in pairs
//                                of keys
//
// One group of queries after the other takes all steps up to S, so that its
// scores in f32 stay in the fast memory. P and S are kept in bf16 for all
// queries of the tile: each sum is loaded and stored once for a block of keys.
//
// P and S join each query with the one 16 behind it, as the pairs of queries
// do: two vectors are then rounded to one line without a permutation. Of
// operands in f16 they have two parts in bf16, too.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernel.h"

#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

static constexpr int64_t kSide = Tiles::kSide, kDepth = Tiles::kDepth;

static int64_t getFeatures(Value operand) {
  return cast<MemRefType>(operand.getType()).getDimSize(3);
}

/// Returns what is in both ranges; an empty one has `end` at `first`.
static IndexRange intersect(KernelBuilder &b, IndexRange x, IndexRange y) {
  IndexRange both = {b.min(b.max(x.first, y.first), y.end), Value()};
  both.end = b.max(b.min(x.end, y.end), both.first);
  return both;
}

void BackwardKernel::allocateMatrixScratch() {
  int64_t features = getFeatures(op.getKey()),
          valueFeatures = getFeatures(op.getValue());
  auto allocateNarrow = [&](int64_t rows, int64_t columns) {
    return allocateScratch(b, op, {rows, columns}, b.getBF16Type());
  };
  auto getRows = [&](Value operand) {
    return Tiles::getScratchRows(b, operand, blockKeys);
  };
  allocateBlocks(blockKeys, block.groupQueries());
  keyRows = allocateNarrow(getRows(op.getKey()), parts * features);
  valueRows = allocateNarrow(getRows(op.getValue()), parts * valueFeatures);
  keyPairs = allocateNarrow(parts * blockKeys / 2, 2 * features);
  queryPairs = allocateNarrow(parts * queries / 2, 2 * features);
  gradientPairs = allocateNarrow(parts * queries / 2, 2 * valueFeatures);
  weights = allocateNarrow(blockKeys, parts * queries);
  scoreRows = allocateNarrow(blockKeys, parts * queries);
  scoreColumns = allocateNarrow(queries, parts * blockKeys);
  keySums = allocate(kSide, features);
  valueSums = allocate(kSide, valueFeatures);
}

/// Packs the tile's queries and gradients in pairs, once for all its keys, of
/// which there are `keys`. Those that keep no key become zeros.
void BackwardKernel::packQueryPairs(Value keys) {
  Value zero = b.index(0);
  block.keys = keys;
  keptQueries =
      intersect(b, block.getQueries(zero, std::numeric_limits<int32_t>::max()),
                {zero, block.rows});
  Tiles tiles = getTiles();
  for (auto [operand, pairs] : {std::pair(op.getQuery(), queryPairs),
                                std::pair(op.getGradient(), gradientPairs)})
    tiles.packPairs(operand, {zero, zero, zero}, keptQueries, block.rows,
                    Tiles::Pairing::Halves, pairs);
}

/// Writes a group's vectors of row `key` to `target`, rounded.
void BackwardKernel::storeRounded(ValueRange vectors, Value target, Value key) {
  Tiles tiles = getTiles();
  for (size_t v = 0; v < vectors.size(); v += 2)
    for (auto [part, pairs] :
         llvm::enumerate(emitPairParts(b, vectors[v], vectors[v + 1], parts)))
      b.store(vector::BitCastOp::create(b, tiles.line, pairs), target,
              {key, b.add(firstQuery,
                          int64_t(part) * queries + int64_t(v) * kSide)});
}

/// Sets the rows of P and S that the group does not keep to zero: those outside
/// of `keys`.
void BackwardKernel::clearRounded(IndexRange keys) {
  Value zeros = b.constant(getTiles().line, 0.0);
  auto clear = [&](Value key) {
    for (Value target : {weights, scoreRows})
      for (int64_t part = 0; part < parts; ++part)
        for (int64_t query = 0; query < block.groupQueries(); query += kDepth)
          b.store(zeros, target,
                  {key, b.add(firstQuery, part * queries + query)});
  };
  b.loop(b.index(0), keys.first, 1, clear);
  b.loop(keys.end, getWholeKeys(), 1, clear);
}

/// Takes the group of queries that the block is set to from its scores to P and
/// S. `keys` and `values` are the block's rows.
void BackwardKernel::emitMatrixGroup(Value firstKey, Value group, Value keys,
                                     Value values) {
  Tiles tiles = getTiles();
  Value zero = b.index(0);
  auto multiply = [&](Value left, Value packed, int64_t features,
                      Value result) {
    block.forGroups([&](Value column, IndexRange range) {
      tiles.multiplyKeys(
          left, features,
          [&](int64_t v, Value feature, int64_t part) -> Tiles::Place {
            Value pair = b.floorDiv(b.add(feature, part * features), 2);
            return {packed, {zero, group, pair, b.index(v * kDepth)}};
          },
          result, column, range);
    });
  };
  multiply(keys, op.getPackedQuery(), getFeatures(op.getKey()), block.scores);
  // The probabilities take the factor where nothing else reads the scores.
  double number = getPackingFactor(op.getScaleAttr(), op.getScore());
  factor = b.constant(block.vector, number);
  if (!op.getScore().empty() || op.getScores() || number <= 0) {
    block.forGroups([&](Value column, IndexRange range) {
      b.loop(range.first, range.end, 1, [&](Value key) {
        SmallVector<Value> scores = block.loadGroup(block.scores, key, column);
        for (Value &score : scores)
          score = arith::MulFOp::create(b, score, factor);
        block.storeGroup(scores, block.scores, key, column);
      });
    });
    factor = Value();
  }
  emitScores(firstKey);
  emitProbabilities();
  multiply(values, op.getPackedGradient(), getFeatures(op.getValue()),
           gradients);
  emitScoreGradient(firstKey);
  clearRounded(tiles.getKept(zero, block.groupQueries()));
  tiles.transpose(gradients, zero, block.groupQueries(), {zero, getWholeKeys()},
                  scoreColumns, firstQuery);
}

/// Adds products to `rows` rows of `sum`, from `firstRow` on: those of a row of
/// `left` within `getDepth(row)`, of 16 rows.
void BackwardKernel::addToRows(
    Value sum, Value firstRow, Value rows, Value scratch, Value left,
    Value right, llvm::function_ref<IndexRange(Value row)> getDepth) {
  Tiles tiles = getTiles();
  Value zero = b.index(0);
  int64_t features = getFeatures(sum);
  auto line = VectorType::get({kSide}, type);
  b.loop(zero, rows, kSide, [&](Value row) {
    IndexRange depth = getDepth(row);
    Value isAny = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                        depth.first, depth.end);
    b.when(isAny, [&] {
      // Tiles have 16 rows, of which the last ones need not exist.
      Value count = b.min(b.index(kSide), b.sub(rows, row));
      Value isPart = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, count,
                                           b.index(kSide));
      Value place = b.add(firstRow, row);
      auto copy = [&](bool isBack) {
        b.loop(zero, count, 1, [&](Value r) {
          b.loop(zero, b.index(features), kSide, [&](Value feature) {
            SmallVector<Value> own = {zero, zero, b.add(place, r), feature},
                               other = {r, feature};
            if (isBack)
              b.store(b.loadVector(line, scratch, other), sum, own);
            else
              b.store(b.loadVector(line, sum, own), scratch, other);
          });
        });
      };
      b.when(isPart, [&] { copy(/*isBack=*/false); });
      Value target =
          tiles.selectRows(isPart, scratch, sum, {zero, zero, place}, count);
      tiles.addProducts(left, row, 1, right, tiles.getWhole(depth), target,
                        zero, features);
      b.when(isPart, [&] { copy(/*isBack=*/true); });
    });
  });
}

void BackwardKernel::emitMatrixBlock(Value firstKey) {
  Tiles tiles = getTiles();
  Value zero = b.index(0);
  Value place[] = {zero, zero, firstKey};
  Value keys = tiles.getRows(op.getKey(), place, block.keys, keyRows);
  Value values = tiles.getRows(op.getValue(), place, block.keys, valueRows);
  // Keys that no query keeps become zeros.
  IndexRange keptKeys = tiles.getKept(zero, queries);
  tiles.packPairs(op.getKey(), place, keptKeys, block.keys,
                  Tiles::Pairing::Neighbours, keyPairs);

  block.forGroupTiles([&](Value group, Value first) {
    firstQuery = first;
    if (!block.boundsKeys)
      return emitMatrixGroup(firstKey, group, keys, values);
    IndexRange kept = tiles.getKept(zero, block.groupQueries());
    b.when(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, kept.first,
                                 kept.end),
           [&] { emitMatrixGroup(firstKey, group, keys, values); });
    b.when(arith::CmpIOp::create(b, arith::CmpIPredicate::sge, kept.first,
                                 kept.end),
           [&] {
             clearRounded({zero, zero});
             Value zeros = b.constant(tiles.line, 0.0);
             b.loop(zero, b.index(block.groupQueries()), 1, [&](Value query) {
               b.loop(zero, getWholeKeys(), kDepth, [&](Value key) {
                 for (int64_t part = 0; part < parts; ++part)
                   b.store(zeros, scoreColumns,
                           {b.add(firstQuery, query),
                            b.add(key, part * blockKeys)});
               });
             });
           });
  });
  firstQuery = zero;

  auto getQueries = [&](Value key) {
    return intersect(b, block.getQueries(key, kSide), keptQueries);
  };
  auto getKeys = [&](Value row) {
    return intersect(b, block.getKeys(row, kSide), keptKeys);
  };
  addToRows(op.getValueGradient(), firstKey, block.keys, valueSums, weights,
            gradientPairs, getQueries);
  addToRows(op.getKeyGradient(), firstKey, block.keys, keySums, scoreRows,
            queryPairs, getQueries);
  addToRows(op.getQueryGradient(), zero, block.rows, keySums, scoreColumns,
            keyPairs, getKeys);
}
