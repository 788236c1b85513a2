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
  explicit KeyReader(OnlineKernel &kernel) : kernel(kernel) {
    if (kernel.keyTile)
      return;
    KernelBuilder &b = kernel.b;
    metadata = memref::ExtractStridedMetadataOp::create(b, kernel.op.getKey());
    ValueRange strides = metadata.getStrides();
    headOffset =
        b.add(metadata.getOffset(), b.add(b.mul(kernel.batch, strides[0]),
                                          b.mul(kernel.kvHead, strides[1])));
  }

  /// Makes the keys from `tile` on readable. Keys beyond the block's last are
  /// the last one: the tile is always computed whole, and what it writes beyond
  /// the block is not read.
  void open(Value tile) {
    KernelBuilder &b = kernel.b;
    Value lastKey = b.sub(kernel.keys, b.index(1));
    auto keyOf = [&](Value inTile) {
      return b.add(kernel.firstKey, b.min(b.add(tile, inTile), lastKey));
    };
    Value features = b.dim(kernel.op.getKey(), 3);
    if (kernel.keyTile) {
      b.loop(b.index(0), b.index(kernel.shape.tileKeys), 1, [&](Value row) {
        emitCopyRow(b, kernel.shape.lanes, kernel.op.getKey(),
                    {kernel.batch, kernel.kvHead, keyOf(row)}, b.index(0),
                    features, kernel.keyTile, row);
      });
      return;
    }
    // One memref for each key, so that nothing but a feature's index is left to
    // add in the inner loop.
    auto operand = cast<MemRefType>(kernel.op.getKey().getType());
    auto type = MemRefType::get(
        {operand.getDimSize(3)}, operand.getElementType(),
        StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}));
    rows.clear();
    for (int64_t key = 0; key < kernel.shape.tileKeys; ++key) {
      Value offset = b.add(
          headOffset, b.mul(keyOf(b.index(key)), metadata.getStrides()[2]));
      rows.push_back(memref::ReinterpretCastOp::create(
          b, type, metadata.getBaseBuffer(), OpFoldResult(offset),
          ArrayRef<OpFoldResult>{getAsOpFoldResult(features)},
          ArrayRef<OpFoldResult>{b.getIndexAttr(1)}));
    }
  }

  Value read(int64_t key, Value feature) {
    KernelBuilder &b = kernel.b;
    if (kernel.keyTile)
      return b.load(kernel.keyTile, {b.index(key), feature});
    return b.load(rows[key], feature);
  }

private:
  OnlineKernel &kernel;
  memref::ExtractStridedMetadataOp metadata;
  Value headOffset;
  SmallVector<Value> rows;
};

} // namespace

/// The register tile: `tileKeys` keys times `groupVectors` vectors of queries,
/// summed over the features.
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
  // A region still changes the scores: their maximum is taken after it.
  bool tracksMax = kernel.op.updatesMax() && kernel.op.getScore().empty();
  if (tracksMax) {
    SmallVector<Value> lowest(
        shape.groupVectors,
        b.constant(kernel.vector, -std::numeric_limits<double>::infinity()));
    kernel.forGroups([&](Value column) {
      kernel.storeGroup(lowest, kernel.blockMax, Value(), column);
    });
  }

  KeyReader reader(kernel);
  b.loop(b.index(0), kernel.keys, shape.tileKeys, [&](Value tile) {
    reader.open(tile);
    kernel.forGroups([&](Value column) {
      SmallVector<Value> tileScores = emitTile(kernel, reader, column);
      SmallVector<Value> maxima;
      if (tracksMax)
        maxima = kernel.loadGroup(kernel.blockMax, Value(), column);
      for (int64_t key = 0; key < shape.tileKeys; ++key) {
        ArrayRef<Value> row =
            ArrayRef(tileScores)
                .slice(key * shape.groupVectors, shape.groupVectors);
        kernel.storeGroup(row, kernel.scores, b.add(tile, key), column);
        for (auto [maximum, score] : llvm::zip(maxima, row))
          maximum = b.maxOrSecond(score, maximum);
      }
      if (tracksMax)
        kernel.storeGroup(maxima, kernel.blockMax, Value(), column);
    });
  });
}
