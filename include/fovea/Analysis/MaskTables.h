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

/// The minimum and maximum, in each block of rows or keys, of every value of a
/// mask region that the analysis looks up (rule R2), as tensors of `index` (of
/// `i1` for conditions) with the dimensions [batch]? [head]? [block].
class MaskTables {
public:
  MaskTables() = default;
  /// Emits the kernels that fill the tables of `mask`, one `scf.forall` for
  /// each value, at the builder's insertion point. `sizes` are those of the
  /// whole scores: batches, heads, queries, keys.
  MaskTables(mlir::OpBuilder &builder, mlir::Location loc, mlir::Region &mask,
             llvm::ArrayRef<mlir::OpFoldResult> sizes, int64_t queryTile,
             int64_t keyTile);

  size_t size() const { return tables.size(); }
  /// Returns the tables, two for each value.
  llvm::SmallVector<mlir::Value> getTensors() const;

  /// Returns the extremes of a tabled value in the tile at `coordinates`, whose
  /// rows and keys are multiples of the tile sizes. `mask` is the region that
  /// the tables were made for, or a copy of it.
  std::optional<Span>
  lookup(mlir::Region &mask, mlir::Value value, IndexMath &math,
         llvm::ArrayRef<mlir::OpFoldResult> coordinates) const;

private:
  struct Table {
    mlir::Value min, max;
    unsigned coordinates;
    int64_t block;
  };
  llvm::SmallVector<Table> tables;
};

} // namespace fovea

#endif // FOVEA_ANALYSIS_MASKTABLES_H
