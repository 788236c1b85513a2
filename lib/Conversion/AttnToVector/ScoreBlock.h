//===- ScoreBlock.h - A block of scores, queries in the lanes ---*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State that the kernels of attention and of its gradients share: scores, or
// values computed from them, in scratch memory `[key][query]`. Queries are
// taken in groups of as many vectors as the score product keeps in registers.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_SCOREBLOCK_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_SCOREBLOCK_H

#include "KernelBuilder.h"

#include "fovea/Dialect/Attn/IR/Coordinates.h"

namespace fovea::attn {

struct ScoreBlock {
  KernelBuilder &b;
  mlir::Region &mask;      ///< the op's mask region; may be empty
  mlir::VectorType vector; ///< lanes of the accumulation type
  int64_t groupVectors;    ///< vectors of queries of a group
  /// True if the mask's bounds on keys are recomputed within the block.
  bool boundsKeys = false;
  /// If not 0, the mask is asked for so many keys and a group of queries
  /// whether it keeps all of them, which then stay as they are. Needs
  /// `boundsKeys`.
  int64_t maskKeys = 0;

  mlir::Value rows = {};       ///< queries that exist, at least 1
  mlir::Value usedGroups = {}; ///< groups that hold them
  mlir::Value keys = {};       ///< keys of the block, at least 1
  /// The place of the first query and the block's first key.
  PerCoordinate<mlir::Value> at = {};

  mlir::Value scores = {}; ///< [key][query]
  /// [query]: regions store the maximum of the block's scores here; or null.
  mlir::Value blockMax = {};

  int64_t lanes() const { return vector.getNumElements(); }
  int64_t groupQueries() const { return groupVectors * lanes(); }

  /// Returns the keys that some of the queries `row ... row + count - 1` may
  /// keep: all, or those within the mask's bounds.
  IndexRange getKeys(mlir::Value row, int64_t count);
  /// Returns true if the queries `row ... row + count - 1` that exist keep all
  /// of the block's keys `first ... end - 1`, as far as the mask's bounds say.
  mlir::Value keepAll(mlir::Value row, int64_t count, IndexRange keys);
  /// Returns the queries in use that may keep some of the block's keys `key ...
  /// key + count - 1`: all, or those within the mask's bounds.
  IndexRange getQueries(mlir::Value key, int64_t count);

  /// Builds `body(column of the group's first query, keys the group may keep)`
  /// for all groups in use.
  void
  forGroups(llvm::function_ref<void(mlir::Value column, IndexRange keys)> body);

  /// Builds `body(group, its first query)` for all groups in use, each of which
  /// is the whole block meanwhile: `at`, `rows` and `usedGroups` are the
  /// group's.
  void forGroupTiles(
      llvm::function_ref<void(mlir::Value group, mlir::Value first)> body);

  /// Loads the group's vectors of row `row` of `memref: [rows][query]`, or of
  /// `memref: [query]` where `row` is null.
  llvm::SmallVector<mlir::Value> loadGroup(mlir::Value memref, mlir::Value row,
                                           mlir::Value column);
  void storeGroup(mlir::ValueRange vectors, mlir::Value memref, mlir::Value row,
                  mlir::Value column);
};

/// Returns true if a mask's bounds are a few integer operations, cheap enough
/// to be computed for each register tile.
bool hasCheapBounds(mlir::Region &mask);

/// A dropout on the elements of a whole tensor of scores.
struct BlockDropout {
  double probability;
  mlir::Value seed, offset;   ///< i64
  mlir::Value heads, queries; ///< of the whole, which number its rows
};

/// `2^x` for `x <= 0`, as the softmax needs it: 0 where it is not normal, below
/// -126 (f64: -1022), NaN for NaN. Relative error 9.1e-8 (f64: 4e-17) besides
/// rounding, or that of the builder's degree in f32.
mlir::Value emitExp2OfNonPositive(KernelBuilder &b, mlir::Value x);
/// Emits `e^x` for `x <= 0`, or `2^x` where `isBase2`.
mlir::Value emitExpOfNonPositive(KernelBuilder &b, mlir::Value x, bool isBase2);

/// Emits scores = score(scores, b, h, i, j).
void emitScoreRegion(ScoreBlock &block, mlir::Region &score);
/// Emits target = derivative(scores, b, h, i, j).
void emitDerivative(ScoreBlock &block, mlir::Region &derivative,
                    mlir::Value target);
/// Emits scores = mask(b, h, i, j) ? scores : -infinity.
void emitMaskRegion(ScoreBlock &block);
/// Emits scores = keep(b, h, i, j) ? scores / (1 - probability) : 0.
void emitDropout(ScoreBlock &block, const BlockDropout &dropout);

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_SCOREBLOCK_H
