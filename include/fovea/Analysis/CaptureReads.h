//===- CaptureReads.h - Reads of captured tensors ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A score region reads elements of captured tensors at places that it computes
// from the coordinates of a score. The gradient of such a tensor sums, for each
// element, the contributions of all scores that read it. How a GPU's kernel
// adds these up depends on which scores share an element.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_CAPTUREREADS_H
#define FOVEA_ANALYSIS_CAPTUREREADS_H

#include "fovea/Dialect/Attn/IR/Coordinates.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/DenseSet.h"

#include <array>
#include <optional>

namespace fovea {

using attn::CaptureSum;
using attn::Coordinate;

/// Returns true if a warp adds up scores at the same distance of query and key
/// before they add to a gradient in memory.
inline bool sumsDiagonals(CaptureSum sum) {
  return sum == CaptureSum::Diagonals || sum == CaptureSum::DiagonalIntegers;
}

/// Returns true if sums of a gradient are in integers.
inline bool sumsIntegers(CaptureSum sum) {
  return sum == CaptureSum::Integers || sum == CaptureSum::DiagonalIntegers;
}

/// A read of a captured tensor that has a gradient.
struct CaptureRead {
  mlir::tensor::ExtractOp op;
  /// The simplest way to add up its gradients on a GPU: `OverQueries`, `Own` or
  /// `InMemory`.
  CaptureSum sum;
  /// True if queries and keys that differ by the same distance read the same
  /// element.
  bool isByDistance;
};

/// Returns the reads of `captures` in the region `score`, in its order, of
/// scores of static or dynamic `sizes` [batches, heads, queries, keys]; nullopt
/// if a read is in a region nested in the score region.
std::optional<llvm::SmallVector<CaptureRead>>
findCaptureReads(mlir::ValueRange captures, mlir::Region &score,
                 llvm::ArrayRef<int64_t> sizes);
std::optional<llvm::SmallVector<CaptureRead>>
findCaptureReads(attn::AttentionBackwardOp op);

/// Returns the type in which gradients of capture `number` are added up: the
/// type of its gradient where no two scores share an element on a GPU; else
/// f64, for such sums have terms of both signs, of which little may be left,
/// unless the rounding of the operands outweighs that of the sum.
mlir::FloatType getCaptureSumType(attn::AttentionBackwardOp op, size_t number);

/// Returns true if blocks under `schedule` can compute the sums over queries
/// that `op` needs: one warp must have all queries of a key in a tile, so it
/// has 16 keys.
bool canSumCaptures(attn::AttentionBackwardOp op, attn::ScheduleAttr schedule);

/// Returns the coordinates that index the dimensions of a captured tensor, if
/// each dimension is indexed by a different coordinate, unchanged.
std::optional<llvm::SmallVector<Coordinate>>
getIndexingCoordinates(mlir::tensor::ExtractOp read);

/// Returns true if query and key each index a dimension of a captured tensor,
/// unchanged.
bool isIndexedByPair(mlir::tensor::ExtractOp read);

/// Returns the coordinates in which two scores that read the same element by
/// `read` may differ: those that have several values and do not index a
/// dimension unchanged. `sizes` are as in `findCaptureReads`.
llvm::SmallVector<Coordinate>
getSharingCoordinates(mlir::tensor::ExtractOp read,
                      llvm::ArrayRef<int64_t> sizes);

/// An index that grows by `steps` with query and key: what it is for the first
/// of both is the sum of `constant` and of multiples of values that are the
/// same for all scores of a tile.
struct LineIndex {
  std::array<int64_t, 2> steps = {0, 0};
  int64_t constant = 0;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> terms;
};

/// A read in a score or mask region that a block makes for all scores of a tile
/// under `captures = tiled`: of numbers of 16 or 32 bits, booleans, or integers
/// of 8 bits.
struct TileRead {
  mlir::tensor::ExtractOp op;
  /// The last index, if scores read numbers of a row: of each distance, query
  /// or key. Else query and key, unchanged, are the last two indices. All other
  /// indices are the same for all scores of a tile.
  std::optional<LineIndex> line;

  int64_t getElementBytes() const;
  /// Returns true if rows are multiples of 16 bytes, as TMA wants them, or of a
  /// size that is not static.
  bool mayHaveWholeUnits() const;
  /// Returns the columns of a row of which a tile of scores reads a part, from
  /// a multiple of 16 bytes on that is up to `before` columns in front of what
  /// it reads: TMA copies such rows, whole or in equal parts.
  int64_t getColumns(int64_t queries, int64_t keys, int64_t before) const;
};

/// Returns these reads in the region's order. Rows of which tiles are read have
/// multiples of 16 bytes, if their size is static.
llvm::SmallVector<TileRead> findTileReads(mlir::Region &region);

/// Returns the reads of a mask, in its order, of numbers of 32 bits, and
/// integers of 64, that depend on the query, and not on the key.
llvm::SmallVector<mlir::tensor::ExtractOp> findQueryReads(mlir::Region &mask);

/// Returns the number of words of 32 bits that these reads have of a query.
int64_t countQueryWords(mlir::Region &mask);

/// The reads of both regions of an attention that may be made for whole tiles.
struct TileReads {
  llvm::SmallVector<TileRead> reads;
  /// The bytes that tiles have for each score, without rows, and those of their
  /// narrowest element; 0 if there is none.
  int64_t bytes = 0, narrowest = 0;

  static TileReads get(mlir::Region &score, mlir::Region &mask);

  bool contains(mlir::tensor::ExtractOp op) const;
};

/// Returns the values of a score region that depend on query and key by their
/// distance only, and not on the score.
llvm::SmallDenseSet<mlir::Value> getValuesOfDistance(mlir::Region &score);

/// Returns true if ops of a region read elements of tensors.
bool readsTensors(mlir::Region &region);

/// Returns `seeds` and all values computed from them in the block of a region.
llvm::SmallDenseSet<mlir::Value> getDependents(mlir::Block &body,
                                               mlir::ValueRange seeds);

} // namespace fovea

#endif // FOVEA_ANALYSIS_CAPTUREREADS_H
