//===- BackwardKernel.h - Parts of the backward kernel ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_BACKWARDKERNEL_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_BACKWARDKERNEL_H

#include "MatrixTiles.h"
#include "OnlineKernel.h"
#include "Product.h"

#include "llvm/ADT/DenseMap.h"

namespace fovea::attn {

/// One `attn.online_backward` and its scratch memory. With matrix tiles one
/// group of queries after the other is the block of scores.
class BackwardKernel {
public:
  using Value = mlir::Value;

  BackwardKernel(KernelBuilder &b, OnlineBackwardOp op, const VectorUnit &unit);

  void emit();

private:
  Value allocate(int64_t rows, int64_t columns);
  void allocateBlocks(int64_t scratchRows, int64_t columns);
  void emitStatistics();
  void emitScores(Value firstKey);
  void emitProbabilities();
  void clearOutside(Value memref, Value column, IndexRange keys);
  void emitScoreGradient(Value firstKey);

  // Products by register tiles.
  void chooseTile(Product &product, bool transposed, int64_t features);
  void allocateCopy(mlir::OpOperand &operand, int64_t bound, bool isRight);
  Value getReadable(mlir::OpOperand &operand, Value firstRow, Value rows);
  Value getGroup(Value packed, Value column);
  Value getColumns(Value scores, Value column);
  void emitBlock(Value firstKey, Value query, Value gradient);

  // Products by matrix tiles.
  void allocateMatrixScratch();
  void packQueryPairs(Value keys);
  void emitMatrixBlock(Value firstKey);
  void emitMatrixGroup(Value firstKey, Value group, Value keyRows,
                       Value valueRows);
  void storeRounded(mlir::ValueRange vectors, Value target, Value key);
  void clearRounded(IndexRange keys);
  Tiles getTiles() { return Tiles(block, parts); }
  /// Returns the block's number of keys in whole tiles.
  Value getWholeKeys() {
    return b.mul(b.ceilDiv(block.keys, Tiles::kDepth), Tiles::kDepth);
  }
  void addToRows(Value sum, Value firstRow, Value rows, Value scratch,
                 Value left, Value right,
                 llvm::function_ref<IndexRange(Value row)> getDepth);

  KernelBuilder &b;
  OnlineBackwardOp op;
  const VectorUnit &unit;
  mlir::FloatType type;
  mlir::MemRefType packed; ///< [1][group][feature][query of the group]
  bool hasTiles;           ///< products are by matrix tiles
  int64_t parts;           ///< in bf16, of numbers that matrix tiles multiply
  int64_t queries;         ///< of the tile
  ScoreBlock block;
  int64_t blockKeys;
  /// The tile's queries that keep some of its keys; for matrix tiles.
  IndexRange keptQueries = {};
  /// The place of query 0 of the scores in the tile.
  Value firstQuery = {};

  // Blocks, as in OnlineBackward.cpp; null where the op does not need them.
  Value factors = {}, kept = {}, gradients = {};
  /// [3][query]: lse in the units of scores, its rounding error in base 2, and
  /// delta.
  Value statistics = {};
  /// Scratch for the rows of operands whose rows cannot be read as vectors.
  llvm::SmallDenseMap<mlir::OpOperand *, Value, 4> copies;

  /// What the probabilities have yet to multiply scores with, or null.
  Value factor = {};

  // For matrix tiles, in bf16, with their parts as MatrixTiles.h says: rows of
  // keys and values that are not read where they lie; pairs of keys, queries
  // and gradients; P and S as [key][query], and S as [query][key].
  Value keyRows = {}, valueRows = {}, keyPairs = {}, queryPairs = {},
        gradientPairs = {}, weights = {}, scoreRows = {}, scoreColumns = {};
  /// Sums of 16 rows of which not all exist, of keys and of values.
  Value keySums = {}, valueSums = {};
};

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_BACKWARDKERNEL_H
