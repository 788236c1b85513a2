//===- MaskTables.h - Extremes of captured tensors by block -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_MASKTABLES_H
#define FOVEA_ANALYSIS_MASKTABLES_H

#include "fovea/Analysis/MaskAnalysis.h"

namespace fovea {

/// Tiles of rows that are not at multiples of their size: the first row of
/// each, and the one behind its last, which are the same where a tile is empty,
/// as tensors of integers without sign, `[count]`. Of `rows` rows all are in a
/// tile, and first ones are among them.
struct RowTiles {
  mlir::Value firsts, ends;
  mlir::OpFoldResult count, rows;
  /// The parts of a tile, and the rows of each.
  int64_t parts, rowsOfPart;

  /// Returns the first row of a tile, and the one behind its last.
  std::pair<mlir::OpFoldResult, mlir::OpFoldResult>
  getTile(IndexMath &math, mlir::Value number) const;
};

/// Returns the integer of at most 32 bits that `value` is, or that it extends
/// by its sign; null for others.
mlir::Value getNarrow(mlir::Value value);

/// The minimum and maximum, in each block of rows or keys, of every value of a
/// mask region that the analysis looks up (rule R2), as tensors of `i1` for
/// conditions, of `i32` for what fits (`getNarrow`) and else of `index`, with
/// the dimensions [batch]? [head]? [block].
class MaskTables {
public:
  MaskTables() = default;
  /// Emits the kernels that fill the tables of `mask`, one `scf.forall` for
  /// each value, or one for all if they are those of `rowTiles`, at the
  /// builder's insertion point. `sizes` are those of the whole scores: batches,
  /// heads, queries, keys. Blocks of rows are parts of `rowTiles`, if these are
  /// given.
  MaskTables(mlir::OpBuilder &builder, mlir::Location loc, mlir::Region &mask,
             llvm::ArrayRef<mlir::OpFoldResult> sizes, int64_t queryTile,
             int64_t keyTile, std::optional<RowTiles> rowTiles = std::nullopt);

  size_t size() const { return tables.size(); }
  /// Returns the parts of a tile's rows that tables tell apart, and the rows of
  /// each; one part if tiles are at multiples of their size.
  int64_t getNumParts() const {
    return tables.empty() ? 1 : tables.front().parts.size();
  }
  int64_t getRowsOfPart() const { return tables.front().block; }
  /// Returns the tables, two for each value, or for each part of a tile.
  llvm::SmallVector<mlir::Value> getTensors() const;

  /// Sets the number of the tile whose rows are looked up, where these are not
  /// multiples of its size.
  void setRowTile(mlir::Value number) { rowTile = number; }

  /// Returns the extremes of a tabled value in the tile at `coordinates`, whose
  /// rows and keys are multiples of the tile sizes, but for the rows of a tile
  /// that has a number; of such a tile those in one part, if that is given.
  /// `mask` is the region that the tables were made for, or a copy of it.
  std::optional<Span> lookup(mlir::Region &mask, mlir::Value value,
                             IndexMath &math,
                             llvm::ArrayRef<mlir::OpFoldResult> coordinates,
                             std::optional<int64_t> part = std::nullopt) const;

private:
  void fillByTiles(mlir::OpBuilder &builder, mlir::Location loc,
                   mlir::Region &mask, const RowTiles &rowTiles);

  struct Table {
    /// The minimum and the maximum, of each part.
    llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> parts;
    unsigned coordinates;
    int64_t block;
  };
  llvm::SmallVector<Table> tables;
  mlir::Value rowTile;
};

} // namespace fovea

#endif // FOVEA_ANALYSIS_MASKTABLES_H
