//===- Indices.h - Arithmetic on indices ------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_INDICES_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_INDICES_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fovea::tile {

/// Arithmetic on indices, of which constants are constants of the IR; or on
/// numbers of 32 bits, which take half of the registers.
class Indices {
public:
  using Value = mlir::Value;

  Indices(mlir::OpBuilder &builder, mlir::Location loc,
          mlir::Type type = nullptr)
      : builder(builder), loc(loc), type(type ? type : builder.getIndexType()) {
  }

  Value constant(int64_t value);
  /// Converts a number between indices and 32 bits, which hold it.
  Value cast(Value number);
  template <typename OpTy>
  Value create(Value a, Value b) {
    return builder.createOrFold<OpTy>(loc, a, b);
  }

  /// Returns quotient and remainder of numbers that 32 bits hold: a division of
  /// 64 bits takes several times the instructions and registers.
  std::pair<Value, Value> divide(Value a, Value b);

  /// Returns the greatest common divisor of a positive number and a constant.
  Value getCommonDivisor(Value a, int64_t b);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type type;
};

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_INDICES_H
