//===- ScoreProduct.cpp - Scores of a block of keys -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

#include <limits>

using namespace mlir;
using namespace fovea::attn;

namespace {

/// Reads single features of the keys of one tile.
class KeyReader {
public:
  /// Converts the block's keys, if they need it.
  explicit KeyReader(OnlineKernel &kernel) : kernel(kernel) {
    KernelBuilder &b = kernel.b;
    Value key = kernel.op.getKey();
    features = b.dim(key, 3);
    if (kernel.keyBlock) {
      b.loop(b.index(0), kernel.keys, 1, [&](Value row) {
        emitCopyRow(b, kernel.shape.lanes, key,
                    {kernel.batch, kernel.kvHead, b.add(kernel.firstKey, row)},
                    b.index(0), features, kernel.keyBlock, row);
      });
      return;
    }
    metadata = memref::ExtractStridedMetadataOp::create(b, key);
    ValueRange strides = metadata.getStrides();
    headOffset =
        b.add(metadata.getOffset(), b.add(b.mul(kernel.batch, strides[0]),
                                          b.mul(kernel.kvHead, strides[1])));
  }

  /// Makes the keys from `tile` on readable. Keys beyond the block's last
  /// repeat the last one: the tile is always computed whole, and its results
  /// beyond the block are not read.
  void open(Value tile) {
    KernelBuilder &b = kernel.b;
    Value lastKey = b.sub(kernel.keys, b.index(1));
    rows.clear();
    for (int64_t key = 0; key < kernel.shape.tileKeys; ++key) {
      Value row = b.min(b.add(tile, key), lastKey);
      rows.push_back(kernel.keyBlock ? row : getRow(row));
    }
  }

  Value read(int64_t key, Value feature) {
    KernelBuilder &b = kernel.b;
    if (kernel.keyBlock)
      return b.load(kernel.keyBlock, {rows[key], feature});
    return b.load(rows[key], feature);
  }

private:
  /// Returns one key as a memref of its own, so that only a feature's index is
  /// left to add in the inner loop.
  Value getRow(Value row) {
    KernelBuilder &b = kernel.b;
    auto operand = cast<MemRefType>(kernel.op.getKey().getType());
    auto type = MemRefType::get(
        {operand.getDimSize(3)}, operand.getElementType(),
        StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}));
    Value offset = b.add(headOffset, b.mul(b.add(kernel.firstKey, row),
                                           metadata.getStrides()[2]));
    return memref::ReinterpretCastOp::create(
        b, type, metadata.getBaseBuffer(), OpFoldResult(offset),
        ArrayRef<OpFoldResult>{getAsOpFoldResult(features)},
        ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  }

  OnlineKernel &kernel;
  memref::ExtractStridedMetadataOp metadata;
  Value features, headOffset;
  /// For each key of the tile, its memref or its row in the converted block.
  SmallVector<Value> rows;
};

} // namespace

/// Emits the register tile: `tileKeys` keys times `groupVectors` vectors of
/// queries, summed over the features.
static SmallVector<Value> emitTile(OnlineKernel &kernel, KeyReader &keys,
                                   Value column) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  Value query = kernel.op.getQuery();
  int64_t size = shape.tileKeys * shape.groupVectors;
  SmallVector<Value> zeros(size, b.constant(kernel.vector, 0.0));

  auto addFeature = [&](Value feature, SmallVector<Value> sums) {
    SmallVector<Value> queries;
    for (int64_t v = 0; v < shape.groupVectors; ++v)
      queries.push_back(b.loadVector(kernel.vector, query,
                                     {kernel.batch, kernel.head, feature,
                                      b.add(column, v * shape.lanes)}));
    for (int64_t key = 0; key < shape.tileKeys; ++key) {
      Value splat = b.splat(kernel.vector, keys.read(key, feature));
      for (int64_t v = 0; v < shape.groupVectors; ++v) {
        Value &sum = sums[key * shape.groupVectors + v];
        sum = vector::FMAOp::create(b, splat, queries[v], sum);
      }
    }
    return sums;
  };

  // Two features a step halve the loop's own work.
  auto type = cast<MemRefType>(query.getType());
  int64_t step = !type.isDynamicDim(2) && type.getDimSize(2) % 2 == 0 ? 2 : 1;
  return b.loop(b.index(0), b.dim(query, 2), step, zeros,
                [&](Value feature, ValueRange carried) {
                  SmallVector<Value> sums(carried);
                  for (int64_t f = 0; f < step; ++f)
                    sums = addFeature(b.add(feature, f), std::move(sums));
                  return sums;
                });
}

void fovea::attn::emitScoreProduct(OnlineKernel &kernel) {
  KernelBuilder &b = kernel.b;
  const TileShape &shape = kernel.shape;
  if (kernel.hasFlatScores)
    return emitFlatScores(kernel);
  // A region has yet to change the scores: their maximum is taken after it.
  SmallVector<Value> inits;
  if (kernel.op.updatesMax() && kernel.op.getScore().empty())
    inits.assign(
        shape.groupVectors,
        b.constant(kernel.vector, -std::numeric_limits<double>::infinity()));

  std::optional<KeyReader> reader;
  if (shape.fewQueries)
    emitQueryRows(kernel);
  else
    reader.emplace(kernel);
  // A group's queries stay in the fastest cache while the loop goes over the
  // keys.
  kernel.forGroups([&](Value column, IndexRange keys) {
    SmallVector<Value> maxima = b.loop(
        b.roundDown(keys.first, shape.tileKeys), keys.end, shape.tileKeys,
        inits, [&](Value tile, ValueRange carried) {
          SmallVector<Value> scores;
          if (shape.fewQueries) {
            scores = emitFewScores(kernel, tile);
          } else {
            reader->open(tile);
            scores = emitTile(kernel, *reader, column);
          }
          SmallVector<Value> next(carried);
          for (int64_t key = 0; key < shape.tileKeys; ++key) {
            ArrayRef<Value> row = ArrayRef(scores).slice(
                key * shape.groupVectors, shape.groupVectors);
            kernel.storeGroup(row, kernel.scores, b.add(tile, key), column);
            for (auto [maximum, score] : llvm::zip(next, row))
              maximum = b.maxOrSecond(score, maximum);
          }
          return next;
        });
    kernel.storeGroup(maxima, kernel.blockMax, Value(), column);
  });
}
