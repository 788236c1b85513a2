//===- TransposedWrite.h - Fragments as columns of a tile -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_TRANSPOSEDWRITE_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_TRANSPOSEDWRITE_H

#include "Patterns.h"

namespace fovea::tile {

/// Writes the fragment of a `tile.to_shared transposed` to the tile at
/// `address`. Matrices of 8 by 8 elements of 16 bits are transposed between
/// the lanes of a warp: by `stmatrix` on Hopper, which writes four, else by
/// `movmatrix`. Other elements are written one by one.
class TransposedWrite {
public:
  TransposedWrite(mlir::OpBuilder &builder, ToSharedOp op, mlir::Value address);

  void store(mlir::ValueRange registers);

private:
  /// The executing lane's access to the tile: it adds `inMatrix` to the row and
  /// the column at which its warp's first matrix begins.
  mlir::Value getWarpRow();
  mlir::Value getWarpColumn();
  mlir::Value getLaneBits(int64_t bit, int64_t bits, int64_t factor);

  void storeMatrices(mlir::ValueRange registers);
  void moveMatrices(mlir::ValueRange registers);
  void storeElements(mlir::ValueRange registers);

  mlir::Value add(mlir::Value a, mlir::Value b);
  /// Returns two neighbours in a row of matrix (`group`, `half`) of rows from
  /// `16 * rowWarps * block` of the fragment.
  mlir::Value getPair(mlir::ValueRange registers, int64_t block, int64_t group,
                      int64_t half);

  mlir::OpBuilder &builder;
  ToSharedOp op;
  mlir::Location loc;
  SharedType type;
  LayoutAttr layout;
  mlir::Value address;
  /// If the fragment is an accumulator of this many warps along its rows and
  /// columns: its register for each register of the accumulator.
  llvm::SmallVector<int64_t> permutation;
  int64_t rowWarps = 0, columnWarps = 0;
  /// Groups of 8 columns of a warp, and blocks of its rows.
  int64_t groups = 0, blocks = 0;
};

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_TRANSPOSEDWRITE_H
