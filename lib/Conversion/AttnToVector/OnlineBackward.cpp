//===- OnlineBackward.cpp - attn.online_backward as loops over vectors ----===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One `attn.online_backward` on memrefs becomes, for each block of keys, with
// all blocks of scores as [key][query]:
//
//   product     P = K * Q^T
//   regions     F = derivative(P); P = score(P), masked where partial
//   softmax     P = exp(P - lse), or exp2 without a score region
//   dropout     M = keep / (1 - p)
//   product     S = V * dO^T
//   gradient    S = P * (S * M - delta) * F * scale; P = P * M
//   products    dV += P * dO;  dK += S * Q;  dQ += S^T * K
//
// With queries in the lanes, all five products read single elements of one
// operand and vectors of the other as they lie in memory, except for Q^T and
// dO^T, which are packed once for a tile of queries.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Keys of a block where the op has more, or does not say how many it has.
static constexpr int64_t kBlockKeys = 48;
/// The same for products by matrix tiles, which add up 32 keys at a time.
static constexpr int64_t kMatrixBlockKeys = 64;
/// Bytes of a cache's line.
static constexpr int64_t kLineBytes = 64;

static int64_t getBlockKeys(OnlineBackwardOp op) {
  int64_t keys = cast<MemRefType>(op.getKey().getType()).getDimSize(2);
  bool hasTiles = op.hasQueryPairs();
  int64_t most = hasTiles ? kMatrixBlockKeys : kBlockKeys;
  if (ShapedType::isDynamic(keys) || keys > most)
    return most;
  return llvm::alignTo(std::max<int64_t>(keys, 1),
                       hasTiles ? Tiles::kDepth : 1);
}

/// Returns the queries of a group of packed queries.
static int64_t getGroupQueries(OnlineBackwardOp op) {
  auto packed = cast<MemRefType>(op.getPackedQuery().getType());
  return packed.getDimSize(3) / (op.hasQueryPairs() ? 2 : 1);
}

BackwardKernel::BackwardKernel(KernelBuilder &b, OnlineBackwardOp op,
                               const VectorUnit &unit)
    : b(b), op(op), unit(unit), type(op.getAccumulationType()),
      packed(cast<MemRefType>(op.getPackedQuery().getType())),
      hasTiles(op.hasQueryPairs()),
      parts(countPairParts(getElementTypeOrSelf(op.getKey().getType()))),
      queries(packed.getDimSize(1) * getGroupQueries(op)),
      block{b, op.getMask(),
            VectorType::get({unit.lanesDividing(type, getGroupQueries(op))},
                            type),
            getGroupQueries(op) / unit.lanesDividing(type, getGroupQueries(op)),
            !op.getScores() && hasCheapBounds(op.getMask())},
      blockKeys(getBlockKeys(op)) {}

Value BackwardKernel::allocate(int64_t rows, int64_t columns) {
  return allocateScratch(b, op, {rows, columns}, type);
}

/// Chooses the register tile that adds to gradients of `features` features.
void BackwardKernel::chooseTile(Product &product, bool transposed,
                                int64_t features) {
  // A dynamic number of features is taken to be four vectors.
  product.chooseTile(unit, transposed ? queries : blockKeys,
                     ShapedType::isDynamic(features)
                         ? 4
                         : llvm::divideCeil(features, block.lanes()));
}

/// Allocates the copy of rows of `operand`, if they are copied: where the rows
/// cannot be read as vectors, or where register tiles have parts of rows of a
/// right operand. If rows are a power of two long, the same part of each lies
/// in a few sets of a cache; copies are therefore an odd number of lines long.
void BackwardKernel::allocateCopy(OpOperand &use, int64_t bound, bool isRight) {
  Value operand = use.get();
  int64_t features = cast<MemRefType>(operand.getType()).getDimSize(3);
  if (ShapedType::isDynamic(features)) {
    if (!isReadableAs(operand, type))
      copies[&use] =
          allocateScratch(b, op, {bound, features}, type, b.dim(operand, 3));
    return;
  }
  Product tiles{};
  chooseTile(tiles, /*transposed=*/false, features);
  bool isCut = isRight && features > tiles.tileVectors * block.lanes();
  if (isReadableAs(operand, type) && !isCut)
    return;
  int64_t inLine = std::max<int64_t>(1, kLineBytes * 8 / type.getWidth());
  int64_t lines = llvm::divideCeil(features, inLine);
  int64_t stride = isCut ? (lines | 1) * inLine : features;
  copies[&use] = allocate(bound, stride);
}

/// Returns the matrix of `rows x columns` of a memref's last two dimensions at
/// `at`.
static Value getMatrix(KernelBuilder &b, Value memref, ValueRange at,
                       Value rows, Value columns) {
  SmallVector<OpFoldResult> sizes(at.size() - 2, b.getIndexAttr(1)),
      strides(at.size(), b.getIndexAttr(1));
  SmallVector<int64_t> shape;
  for (Value size : {rows, columns}) {
    sizes.push_back(getAsOpFoldResult(size));
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  }
  SmallVector<OpFoldResult> offsets = getAsOpFoldResult(at);
  MemRefType matrix = memref::SubViewOp::inferRankReducedResultType(
      shape, cast<MemRefType>(memref.getType()), offsets, sizes, strides);
  return memref::SubViewOp::create(b, matrix, memref, offsets, sizes, strides);
}

/// Returns rows `firstRow ...` of an operand of one head as a matrix that can
/// be read as vectors: the operand itself, or a copy.
Value BackwardKernel::getReadable(OpOperand &use, Value firstRow, Value rows) {
  Value operand = use.get();
  Value features = b.dim(operand, 3);
  if (Value copy = copies.lookup(&use)) {
    b.loop(b.index(0), rows, 1, [&](Value row) {
      emitCopyRow(b, block.lanes(), operand,
                  {b.index(0), b.index(0), b.add(firstRow, row)}, b.index(0),
                  features, copy, row);
    });
    return copy;
  }
  return getMatrix(b, operand, {b.index(0), b.index(0), firstRow, b.index(0)},
                   rows, features);
}

/// Returns `[feature][query]` of the group whose first query is `column`.
Value BackwardKernel::getGroup(Value packed, Value column) {
  Value group = b.floorDiv(column, block.groupQueries());
  Value zero = b.index(0);
  return getMatrix(b, packed, {zero, group, zero, zero}, b.dim(packed, 2),
                   b.index(block.groupQueries()));
}

/// Returns `[key][query]` of the group whose first query is `column`.
Value BackwardKernel::getColumns(Value scores, Value column) {
  return getMatrix(b, scores, {b.index(0), column}, b.dim(scores, 0),
                   b.index(block.groupQueries()));
}

/// Sets the scores that a group of queries does not keep to zero: the last
/// three products read whole tiles of them.
void BackwardKernel::clearOutside(Value memref, Value column, IndexRange keys) {
  if (!hasTiles && !block.boundsKeys)
    return;
  Value count = hasTiles ? getWholeKeys() : block.keys;
  SmallVector<Value> zeros(block.groupVectors, b.constant(block.vector, 0.0));
  auto clear = [&](Value key) { block.storeGroup(zeros, memref, key, column); };
  Value first = b.min(keys.first, block.keys);
  b.loop(b.index(0), first, 1, clear);
  b.loop(b.max(keys.end, first), count, 1, clear);
}

/// Two numbers hold the log-sum-exp, so that a large one is not rounded away.
void BackwardKernel::emitStatistics() {
  const double infinity = std::numeric_limits<double>::infinity();
  Value zero = b.index(0);
  FloatType exact = b.getF64Type();
  SplitConstant log2e = SplitConstant::log2e(exact);
  b.loop(zero, block.rows, 1, [&](Value row) {
    Value lse = b.convert(b.load(op.getLse(), {zero, zero, row}), exact);
    Value wanted = lse, tail = b.constant(exact, 0.0);
    if (op.getScore().empty()) {
      wanted = arith::MulFOp::create(b, lse, b.constant(exact, log2e.high));
      tail = math::FmaOp::create(b, lse, b.constant(exact, log2e.high),
                                 arith::NegFOp::create(b, wanted));
      tail = math::FmaOp::create(b, lse, b.constant(exact, log2e.low), tail);
    }
    Value rounded = b.convert(wanted, type);
    Value left = arith::SubFOp::create(b, wanted, b.convert(rounded, exact));
    Value rest = arith::AddFOp::create(b, left, tail);
    if (!op.getScore().empty())
      rest = arith::MulFOp::create(b, rest, b.constant(exact, log2e.high));
    // A row without a key has no probabilities, but no NaN either.
    Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, lse,
                                          b.constant(exact, -infinity));
    auto select = [&](double ofEmpty, Value value) -> Value {
      return arith::SelectOp::create(b, isEmpty, b.constant(type, ofEmpty),
                                     b.convert(value, type));
    };
    b.store(select(infinity, wanted), statistics, {zero, row});
    b.store(select(0.0, rest), statistics, {b.index(1), row});
  });
  emitCopyRow(b, block.lanes(), op.getDelta(), {zero, zero}, zero, block.rows,
              statistics, b.index(2));
  if (!hasTiles)
    return;
  // Whole tiles of queries are added up: those that do not exist have no
  // probabilities, either.
  b.loop(block.rows, b.index(queries), 1, [&](Value row) {
    b.store(b.constant(type, infinity), statistics, {zero, row});
    for (int64_t kind : {1, 2})
      b.store(b.constant(type, 0.0), statistics, {b.index(kind), row});
  });
}

/// Writes the scores to the op's destination, if it has one.
void BackwardKernel::emitScores(Value firstKey) {
  Value wanted = op.getScores(), zero = b.index(0);
  if (!wanted)
    return;
  block.forGroups([&](Value column, IndexRange keys) {
    b.loop(keys.first, keys.end, 1, [&](Value key) {
      for (auto [v, score] :
           llvm::enumerate(block.loadGroup(block.scores, key, column)))
        b.store(score, wanted,
                {zero, zero, b.add(firstKey, key),
                 b.add(b.add(firstQuery, column), v * block.lanes())});
    });
  });
}

/// Computes P and the other values of a score that are needed later: F and M.
void BackwardKernel::emitProbabilities() {
  if (factors)
    emitDerivative(block, op.getDerivative(), factors);
  if (!op.getScore().empty())
    emitScoreRegion(block, op.getScore());
  if (Value partial = op.getPartial())
    b.when(partial, [&] { emitMaskRegion(block); });
  else if (!op.getMask().empty())
    emitMaskRegion(block);

  bool isBase2 = op.getScore().empty();
  Value log2e = b.constant(block.vector, std::numbers::log2e);
  block.forGroups([&](Value column, IndexRange keys) {
    Value query = b.add(firstQuery, column);
    SmallVector<Value> lse = block.loadGroup(statistics, b.index(0), query);
    SmallVector<Value> tails = block.loadGroup(statistics, b.index(1), query);
    for (Value &tail : tails)
      tail = arith::NegFOp::create(b, tail);
    b.loop(keys.first, keys.end, 1, [&](Value key) {
      SmallVector<Value> weights = block.loadGroup(block.scores, key, column);
      for (auto [weight, shift, tail] : llvm::zip_equal(weights, lse, tails)) {
        if (factor)
          weight = vector::FMAOp::create(b, weight, factor,
                                         arith::NegFOp::create(b, shift));
        else
          weight = arith::SubFOp::create(b, weight, shift);
        weight = isBase2 ? arith::AddFOp::create(b, weight, tail).getResult()
                         : vector::FMAOp::create(b, weight, log2e, tail);
        weight = emitExp2OfNonPositive(b, weight);
      }
      block.storeGroup(weights, block.scores, key, column);
      if (kept) {
        SmallVector<Value> ones(weights.size(), b.constant(block.vector, 1.0));
        block.storeGroup(ones, kept, key, column);
      }
    });
    if (!hasTiles)
      clearOutside(block.scores, column, keys);
  });
  if (!kept)
    return;
  ScoreBlock mask = block;
  mask.scores = kept;
  SmallVector<Value> whole(op.getWhole());
  if (whole.empty())
    whole = {b.index(1), b.dim(op.getQuery(), 2)};
  emitDropout(mask, {op.getDropout()->convertToDouble(), op.getSeed(),
                     op.getOffset(), whole[0], whole[1]});
}

/// Computes S from dP, and P as the forward pass multiplied it with the values.
void BackwardKernel::emitScoreGradient(Value firstKey) {
  Value scale = b.constant(block.vector, op.getScale().convertToDouble());
  Value wanted = op.getScoreGradient();
  block.forGroups([&](Value column, IndexRange keys) {
    Value query = b.add(firstQuery, column);
    SmallVector<Value> deltas = block.loadGroup(statistics, b.index(2), query);
    b.loop(keys.first, keys.end, 1, [&](Value key) {
      SmallVector<Value> p = block.loadGroup(block.scores, key, column);
      SmallVector<Value> g = block.loadGroup(gradients, key, column);
      SmallVector<Value> dropped = p;
      if (kept) {
        SmallVector<Value> m = block.loadGroup(kept, key, column);
        for (auto [p, g, m, d] : llvm::zip_equal(p, g, m, dropped)) {
          g = arith::MulFOp::create(b, g, m);
          d = arith::MulFOp::create(b, p, m);
        }
        if (!hasTiles)
          block.storeGroup(dropped, block.scores, key, column);
      }
      if (hasTiles)
        storeRounded(dropped, weights, key);
      for (auto [p, g, delta] : llvm::zip_equal(p, g, deltas)) {
        g = arith::MulFOp::create(b, p, arith::SubFOp::create(b, g, delta));
        // Whole tiles are added up, whatever the values of masked keys are.
        if (hasTiles && !op.getMask().empty()) {
          Value zero = b.constant(block.vector, 0.0);
          g = arith::SelectOp::create(
              b, arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, p, zero),
              zero, g);
        }
      }
      if (wanted)
        for (auto [v, value] : llvm::enumerate(g))
          b.store(value, wanted,
                  {b.index(0), b.index(0), b.add(firstKey, key),
                   b.add(query, v * block.lanes())});
      if (factors) {
        SmallVector<Value> f = block.loadGroup(factors, key, column);
        for (auto [g, f] : llvm::zip_equal(g, f))
          g = arith::MulFOp::create(b, g, f);
      }
      for (Value &value : g)
        value = arith::MulFOp::create(b, value, scale);
      block.storeGroup(g, gradients, key, column);
      if (hasTiles)
        storeRounded(g, scoreRows, key);
    });
    clearOutside(gradients, column, keys);
  });
}

/// `query` and `gradient` are the operands' matrices.
void BackwardKernel::emitBlock(Value firstKey, Value query, Value gradient) {
  Value zero = b.index(0);
  auto ofBlock = [&](OpOperand &operand) {
    return getReadable(operand, firstKey, block.keys);
  };
  Value key = ofBlock(op.getKeyMutable());

  // A group's queries stay in the fastest cache while the loop goes over the
  // keys.
  auto multiplyByQueries = [&](Value left, Value packed, Value sum) {
    block.forGroups([&](Value column, IndexRange keys) {
      Product product{};
      product.left = left;
      product.right = getGroup(packed, column);
      product.sum = getColumns(sum, column);
      product.paddedSum = true;
      product.rows = keys;
      product.columns = b.index(block.groupQueries());
      product.depth = b.dim(packed, 2);
      product.tileVectors = block.groupVectors;
      product.tileRows =
          std::max<int64_t>(1, unit.accumulators() / block.groupVectors);
      emitProduct(b, block.vector, product);
    });
  };
  multiplyByQueries(key, op.getPackedQuery(), block.scores);
  emitScores(firstKey);
  emitProbabilities();
  multiplyByQueries(ofBlock(op.getValueMutable()), op.getPackedGradient(),
                    gradients);
  emitScoreGradient(firstKey);

  auto accumulate = [&](Value left, Value right, Value sum, bool transposed) {
    Product product{};
    product.left = left;
    product.right = right;
    product.sum = sum;
    product.rows = {zero, transposed ? block.rows : block.keys};
    product.depth = transposed ? block.keys : block.rows;
    product.columns = b.dim(sum, 1);
    product.transposed = transposed;
    product.paddedLeft = true;
    product.accumulates = true;
    chooseTile(product, transposed,
               cast<MemRefType>(sum.getType()).getDimSize(1));
    auto depthOf = [&](Value row) {
      return transposed ? block.getKeys(row, product.tileRows)
                        : block.getQueries(row, product.tileRows);
    };
    if (block.boundsKeys)
      product.depthOf = depthOf;
    emitProduct(b, block.vector, product);
  };
  accumulate(block.scores, gradient, ofBlock(op.getValueGradientMutable()),
             false);
  accumulate(gradients, query, ofBlock(op.getKeyGradientMutable()), false);
  accumulate(gradients, key,
             getReadable(op.getQueryGradientMutable(), zero, block.rows), true);
}

/// Allocates the blocks of scores, and of what is computed from them.
void BackwardKernel::allocateBlocks(int64_t scratchRows, int64_t columns) {
  block.scores = allocate(scratchRows, columns);
  gradients = allocate(scratchRows, columns);
  if (!op.getDerivative().empty())
    factors = allocate(blockKeys, columns);
  if (op.getDropout())
    kept = allocate(blockKeys, columns);
}

void BackwardKernel::emit() {
  Value zero = b.index(0);
  block.rows = b.dim(op.getQuery(), 2);
  block.usedGroups = b.ceilDiv(block.rows, block.groupQueries());
  firstQuery = zero;
  if (hasTiles) {
    allocateMatrixScratch();
  } else {
    // Whole register tiles may be read and written; they have at most as many
    // rows or columns as there are accumulators.
    allocateBlocks(blockKeys + unit.accumulators(), queries);
    for (OpOperand *operand : {&op.getQueryMutable(), &op.getGradientMutable()})
      allocateCopy(*operand, queries, /*isRight=*/true);
    allocateCopy(op.getKeyMutable(), blockKeys, /*isRight=*/true);
    allocateCopy(op.getValueMutable(), blockKeys, /*isRight=*/false);
  }
  statistics = allocate(3, queries);
  emitStatistics();

  SmallVector<Value, 4> at(op.getAt());
  if (at.empty())
    at.assign(4, zero);
  Value keys = b.dim(op.getKey(), 2), query, gradient;
  block.at = {at[0], at[1], at[2], at[3]};
  if (hasTiles) {
    packQueryPairs(keys);
  } else {
    query = getReadable(op.getQueryMutable(), zero, block.rows);
    gradient = getReadable(op.getGradientMutable(), zero, block.rows);
  }
  b.loop(zero, keys, blockKeys, [&](Value firstKey) {
    block.keys = b.min(b.index(blockKeys), b.sub(keys, firstKey));
    block.at = {at[0], at[1], at[2], b.add(at[3], firstKey)};
    if (hasTiles)
      emitMatrixBlock(firstKey);
    else
      emitBlock(firstKey, query, gradient);
  });
}

void fovea::attn::emitOnlineBackward(KernelBuilder &b, OnlineBackwardOp op,
                                     const VectorUnit &unit) {
  BackwardKernel(b, op, unit).emit();
  op.erase();
}
