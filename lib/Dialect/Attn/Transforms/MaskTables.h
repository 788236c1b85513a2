//===- MaskTables.h - Extremes of captured tensors by block -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_MASKTABLES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_MASKTABLES_H

#include "fovea/Analysis/MaskAnalysis.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// Minimum and maximum, in each block of rows or keys, of every value of a mask
/// region that the analysis looks up (rule R2): tensors of `index` (of `i1` for
/// conditions) with the dimensions [batch]? [head]? [block].
class MaskTables {
public:
  /// Emits the kernels that fill the tables of the mask of `pass`, one
  /// `scf.forall` for each value, at the builder's insertion point.
  MaskTables(mlir::OpBuilder &builder, OnlineAttentionOp pass,
             int64_t queryTile, int64_t keyTile);

  size_t size() const { return tables.size(); }

  /// The extremes of a tabled value in the tile at `coordinates`, of which rows
  /// and keys are multiples of the tile sizes. `mask` is the region that the
  /// tables were made for, or a copy of it.
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

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_MASKTABLES_H
