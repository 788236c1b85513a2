//===- CoordinateFloats.h - Coordinates as floats ---------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_COORDINATEFLOATS_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_COORDINATEFLOATS_H

#include "CoordinateSums.h"
#include "Patterns.h"

namespace fovea::tile {

/// The conversions to f32 or f64 in a map's body of sums of the coordinates,
/// such as the distance of a key from its query. The elements of a thread
/// differ by constants: its first sum is converted, and the others are float
/// additions of a constant, where each would be a conversion of 64 bits, at a
/// sixteenth of the rate of an addition. The result is that of the conversion
/// where the first sum is a number of the type (f32: below 2^24); beyond that
/// it is another rounding away.
class CoordinateFloats {
public:
  /// Emits, in front of `map`, the conversions of a thread's first element.
  CoordinateFloats(mlir::OpBuilder &builder, MapOp map,
                   llvm::ArrayRef<mlir::BlockArgument> coordinates);

  /// Returns the result of `op` for the thread's element that is `offset` from
  /// its first one; null if `op` is no such conversion.
  mlir::Value create(mlir::OpBuilder &builder, mlir::Operation &op,
                     llvm::ArrayRef<int64_t> offset) const;

  /// Returns the result of `op` if it is a multiply-add, with the flag
  /// `reassoc`, of a conversion, a factor and an addend that are the same for
  /// all elements of a row: of the multiple at a thread's first element of the
  /// row, with the addend, and of that of a constant. `mapping` has the
  /// element's operands. Returns null for other ops.
  mlir::Value createProductSum(mlir::OpBuilder &builder, mlir::Operation &op,
                               llvm::ArrayRef<int64_t> offset,
                               const mlir::IRMapping &mapping) const;

private:
  void findProductSums(MapOp map,
                       llvm::ArrayRef<mlir::BlockArgument> coordinates);

  struct Conversion {
    /// The sum at the thread's first element.
    mlir::Value first;
    CoordinateSums::Coefficients coefficients;
  };
  llvm::DenseMap<mlir::Operation *, Conversion> conversions;

  struct ProductSum {
    mlir::Operation *conversion;
    mlir::Value factor;
  };
  llvm::DenseMap<mlir::Operation *, ProductSum> productSums;
};

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_COORDINATEFLOATS_H
