//===- TileView.h - Place of a tile in a tensor -----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_TILEVIEW_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_TILEVIEW_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <vector>

namespace fovea {

/// A tile as a part of a tensor: the tensor's elements at `offsets` plus the
/// tile's coordinates. Dimension `d` of the tile runs along dimension `dims[d]`
/// of the tensor, -1 for a dimension of size one that no dimension stands for.
/// The rows of a tile of the queries of several heads, its dimension 2, may run
/// along two: `inner` neighbours along `innerDim`, of which the tensor has the
/// first `used`.
struct TileView {
  mlir::Value tensor;
  /// The offset in each dimension of the tensor. Empty: the tile is all of it.
  mlir::SmallVector<mlir::OpFoldResult> offsets;
  mlir::SmallVector<mlir::OpFoldResult> sizes;
  mlir::SmallVector<int64_t> dims;
  int64_t innerDim = -1, inner = 0, used = 0;

  /// Returns the dimension of the tensor along which dimension `dim` of the
  /// tile runs; one of static size one where the tile's has size one. -1: there
  /// is none.
  int64_t getDim(int64_t dim) const;

  /// Returns true if the tile has `extent` elements along its dimension `dim`,
  /// or those that are left where the tensor ends sooner.
  bool isClipped(int64_t dim, int64_t extent) const;

  /// Returns the number of the rows of a tile of rank 4, which run along its
  /// dimension 2, or of the whole that it is of.
  mlir::OpFoldResult getRowCount(mlir::OpBuilder &builder, mlir::Location loc,
                                 bool ofWhole) const;

  /// Returns the dimensions of the tensor along which the tile's dimensions
  /// `along` run, as loads and stores have them; -1 where there is none.
  mlir::SmallVector<int64_t> getDims(mlir::ArrayRef<int64_t> along) const;

  /// Returns the view by which `tile` is read, in `region`, through slices,
  /// reshapes that add or drop dimensions of size one, and those that make rows
  /// of two dimensions; none if `tile` is something else.
  static std::optional<TileView> getSource(mlir::Value tile,
                                           mlir::Region &region);

  /// Returns the view through which `tensor.parallel_insert_slice`, the only
  /// use of `tile`, inserts it.
  static std::optional<TileView> getTarget(mlir::Value tile);

  /// Returns the views through which `tile` is inserted, beside other uses;
  /// none if one of them is something else than `getTarget` follows.
  static std::optional<std::vector<TileView>> getTargets(mlir::Value tile);
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_TILEVIEW_H
