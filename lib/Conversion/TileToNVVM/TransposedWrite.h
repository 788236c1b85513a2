//===- TransposedWrite.h - Fragments as columns of a tile -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_TRANSPOSEDWRITE_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_TRANSPOSEDWRITE_H

#include "WarpMatrices.h"

namespace fovea::tile {

/// Writes the fragment of a `tile.to_shared transposed` to the tile at
/// `address`. Matrices of 8 by 8 elements of 16 bits are transposed between
/// the lanes of a warp: by `stmatrix` on Hopper, else by `movmatrix`. Other
/// elements are written one by one.
class TransposedWrite {
public:
  TransposedWrite(mlir::OpBuilder &builder, ToSharedOp op, mlir::Value address);

  void store(mlir::ValueRange registers);

private:
  void moveMatrices(mlir::ValueRange registers);
  void storeElements(mlir::ValueRange registers);

  mlir::OpBuilder &builder;
  ToSharedOp op;
  mlir::Location loc;
  SharedType type;
  mlir::Value address;
  WarpMatrices matrices;
};

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_TRANSPOSEDWRITE_H
