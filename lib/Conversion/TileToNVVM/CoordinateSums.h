//===- CoordinateSums.h - Sums of coordinates -------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_COORDINATESUMS_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_COORDINATESUMS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include <optional>

namespace fovea::tile {

/// Splits values of a map's body into sums of coordinates, each times a
/// constant, and of values that all elements share.
class CoordinateSums {
public:
  using Coefficients = llvm::SmallVector<int64_t, 2>;

  CoordinateSums(mlir::Block &body,
                 llvm::ArrayRef<mlir::BlockArgument> coordinates)
      : body(body), coordinates(coordinates) {}

  /// Returns a sum with these coefficients at `coordinates`.
  static int64_t evaluate(llvm::ArrayRef<int64_t> coefficients,
                          llvm::ArrayRef<int64_t> coordinates);
  /// Returns a bound on the magnitude of such a sum in a tile of `shape`.
  static int64_t getReach(llvm::ArrayRef<int64_t> coefficients,
                          llvm::ArrayRef<int64_t> shape);

  /// Returns true if all elements share `value`.
  bool isShared(mlir::Value value) const;

  /// Returns the factor of each coordinate in `value`; nullopt if it is no such
  /// sum.
  std::optional<Coefficients> getCoefficients(mlir::Value value) const;

  /// Returns true if `value` is not so large that coordinates could make it
  /// wrap.
  static bool isNarrow(mlir::Value value);

  /// Emits, by `builder`, the rest of a sum without its coordinates; null if
  /// nothing is left.
  mlir::Value createRest(mlir::OpBuilder &builder, mlir::Value value);

private:
  mlir::Value clone(mlir::OpBuilder &builder, mlir::Value value);

  mlir::Block &body;
  llvm::ArrayRef<mlir::BlockArgument> coordinates;
  mlir::IRMapping mapping;
};

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_COORDINATESUMS_H
