//===- Product.h - Products of matrices in register tiles -------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOVECTOR_PRODUCT_H
#define FOVEA_LIB_CONVERSION_ATTNTOVECTOR_PRODUCT_H

#include "KernelBuilder.h"
#include "VectorUnit.h"

namespace fovea::attn {

/// `sum[m, n] = (sum[m, n] +) sum over k of left[m, k] * right[k, n]` on
/// matrices of one float type, where `right` and `sum` have contiguous rows. A
/// register tile reads single elements of `left` and vectors of `right`.
struct Product {
  mlir::Value left, right, sum;
  IndexRange rows;     ///< m, of which tiles are computed; not empty
  mlir::Value columns; ///< n
  mlir::Value depth;   ///< k
  int64_t tileRows;    ///< rows of the register tile
  int64_t tileVectors; ///< vectors of columns of the register tile
  /// True if `left` is `[k, m]`.
  bool transposed = false;
  /// True if `left` has as many rows as whole tiles have, and so may be read
  /// beyond `rows`.
  bool paddedLeft = false;
  /// True if `sum` has as many rows, and so may be written beyond `rows`.
  bool paddedSum = false;
  /// True if products are added to the contents of `sum`.
  bool accumulates = false;
  /// With `accumulates`: returns the range of `k` in which rows `row ... row +
  /// tileRows - 1` of `left` may have elements other than zero; by default all.
  llvm::function_ref<IndexRange(mlir::Value row)> depthOf = nullptr;

  /// Chooses the register tile that takes the least time for `rows` rows of
  /// `vectors` vectors of columns.
  void chooseTile(const VectorUnit &unit, int64_t rows, int64_t vectors);
};

void emitProduct(KernelBuilder &b, mlir::VectorType vector,
                 const Product &product);

} // namespace fovea::attn

#endif // FOVEA_LIB_CONVERSION_ATTNTOVECTOR_PRODUCT_H
