//===- WarpMatrices.h - Fragments as matrices of warps ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_WARPMATRICES_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_WARPMATRICES_H

#include "Access.h"
#include "Patterns.h"

namespace fovea::tile {

/// An accumulator's fragment, which goes to a tile of 16 bits in shared memory,
/// or comes from it, as matrices of 8 by 8 elements: a lane has two neighbours
/// of row `lane / 4` of each. A warp has `getGroups()` of them along its
/// columns, and two, its halves, in each of `getBlocks()` blocks of rows.
class WarpMatrices {
public:
  /// Rows and columns of a matrix.
  static constexpr int64_t kSize = 8;

  WarpMatrices(mlir::OpBuilder &builder, mlir::Operation *op, LayoutAttr layout,
               SharedType tile);

  /// Returns false if the fragment has another layout, or the tile other
  /// elements or no whole matrices.
  explicit operator bool() const { return rowWarps != 0; }

  int64_t getGroups() const { return groups; }
  int64_t getBlocks() const { return blocks; }
  /// Returns the rows from one block to the next.
  int64_t getBlockRows() const { return 2 * kSize * rowWarps; }

  /// Returns where the executing warp's first matrix begins, an i32.
  mlir::Value getFirstRow();
  mlir::Value getFirstColumn();
  /// Returns the bits that a row may have in which a lane adds `ofLane` to the
  /// first one.
  uint64_t getRowBits(uint64_t ofLane) const {
    return getBits(rowWarps, 2 * kSize, ofLane);
  }
  /// Returns `bits` bits of the lane from `bit` on, times `factor`.
  mlir::Value getLaneBits(int64_t bit, int64_t bits, int64_t factor);

  /// Returns the executing lane's elements of a matrix, packed.
  mlir::Value getPair(mlir::ValueRange registers, int64_t block, int64_t group,
                      int64_t half);

  /// Writes the fragment, or those of its columns from `column` on that the
  /// tile at `address` has, by `stmatrix` (PTX ISA 9.7.14.5.16), which writes
  /// four matrices; rows are columns of the tile if it is `transposed`.
  void store(mlir::ValueRange registers, mlir::Value address, bool transposed,
             int64_t column = 0);

  /// Reads the fragment, whose rows are columns of the tile at `address`.
  llvm::SmallVector<mlir::Value> loadTransposed(mlir::Value address);

private:
  mlir::Value add(mlir::Value a, mlir::Value b);
  /// Returns the fragment's register that has the first of the executing lane's
  /// two elements of a matrix (`part` 0), or the second.
  int64_t getRegister(int64_t block, int64_t group, int64_t half,
                      int64_t part) const {
    return permutation[2 * (half + 2 * (group + groups * block)) + part];
  }
  /// Returns access to the row of a matrix that the lane gives the address of:
  /// lane `8 * m + r` that of row `r` of matrix `m`, both halves of a group of
  /// columns, then those of the next one. Rows are columns of the tile if it is
  /// `transposed`.
  SharedAccess getAccess(mlir::Value address, bool transposed);
  /// Returns the bits that a place may have in a dimension in which `count`
  /// warps are `distance` apart, and a lane adds `ofLane`.
  static uint64_t getBits(int64_t count, int64_t distance, uint64_t ofLane);

  mlir::OpBuilder &builder;
  mlir::Operation *op;
  mlir::Location loc;
  SharedType tile;
  /// The fragment's register for each register of the accumulator.
  llvm::SmallVector<int64_t> permutation;
  int64_t rowWarps = 0, columnWarps = 0, groups = 0, blocks = 0;
};

/// Reads `count` matrices of 8 by 8 elements of 16 bits, whose rows lanes have
/// the addresses of, by `ldmatrix` (PTX ISA 9.7.14.5.15): one, two or four.
/// Returns the executing lane's two elements of each, as an i32.
llvm::SmallVector<mlir::Value> loadMatrices(mlir::OpBuilder &builder,
                                            mlir::Location loc,
                                            mlir::Value pointer, int64_t count,
                                            bool transposed);

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_WARPMATRICES_H
