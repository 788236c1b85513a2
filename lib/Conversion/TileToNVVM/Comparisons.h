//===- Comparisons.h - Comparisons of coordinates ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_COMPARISONS_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_COMPARISONS_H

#include "CoordinateSums.h"
#include "Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fovea::tile {

/// The comparisons in a map's body whose sides are sums of the coordinates and
/// of values that all elements share, as the terms of most masks are. The
/// elements of a thread differ by constants: all compare one difference, an
/// i32, with a number of their own. Otherwise each column would have a 64-bit
/// index, and ptxas computes those of all columns first, which costs more
/// registers than there are (head dim 16, backward: 52 bytes spilled).
///
/// And comparisons of the column with an operand of its row, in 32 bits: those
/// of a thread's row compare one number with constants, too.
class CoordinateComparisons {
public:
  /// Emits, in front of `map`, the values that its elements share.
  CoordinateComparisons(mlir::OpBuilder &builder, MapOp map,
                        llvm::ArrayRef<mlir::BlockArgument> coordinates);

  /// Returns the result of `op` for the thread's element that is `offset` from
  /// its first one, and whose operands `element` maps; null if `op` is no such
  /// comparison.
  mlir::Value create(mlir::OpBuilder &builder, mlir::Operation &op,
                     llvm::ArrayRef<int64_t> offset,
                     const mlir::IRMapping &element);

private:
  struct Comparison {
    /// The left side minus the right side, at the thread's first element.
    mlir::Value difference;
    /// The factor of each coordinate in the difference.
    CoordinateSums::Coefficients coefficients;
  };
  llvm::DenseMap<mlir::Operation *, Comparison> comparisons;

  /// The thread's first column, for comparisons of one with an operand of its
  /// row.
  llvm::DenseMap<mlir::Operation *, mlir::Value> firstColumns;
  /// How far such an operand is from that column.
  llvm::DenseMap<mlir::Value, mlir::Value> distances;
};

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_COMPARISONS_H
