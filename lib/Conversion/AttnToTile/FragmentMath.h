//===- FragmentMath.h - Arithmetic on fragments -----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_FRAGMENTMATH_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_FRAGMENTMATH_H

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

namespace fovea {

/// Emits ops on fragments at the builder's insertion point.
class FragmentMath {
public:
  FragmentMath(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  /// Computes an element from one element of each operand and its coordinates.
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &builder,
                                              mlir::ValueRange elements,
                                              mlir::ValueRange coordinates)>;

  /// `ins` have the shape of the result; `rows` have one element for each of
  /// its rows, `columns` one for each of its columns.
  mlir::Value map(tile::FragmentType type, mlir::ValueRange ins,
                  mlir::ValueRange rows, mlir::ValueRange columns, Body body);
  mlir::Value map(tile::FragmentType type, mlir::ValueRange ins,
                  mlir::ValueRange rows, Body body) {
    return map(type, ins, rows, {}, body);
  }

  /// Returns the fragment of `type` that `then` emits where `condition` holds,
  /// else the one that `otherwise` emits.
  using Emitter = llvm::function_ref<mlir::Value()>;
  mlir::Value choose(mlir::OpFoldResult condition, tile::FragmentType type,
                     Emitter then, Emitter otherwise);

  /// Returns true in warps for which `body` computes an element that is true,
  /// of a fragment of the shape of `type`.
  mlir::Value any(tile::FragmentType type, mlir::ValueRange ins, Body body);

  mlir::Value fill(tile::FragmentType type, double value);
  mlir::Value reduce(tile::Reduction kind, mlir::Value input, mlir::Value init);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_FRAGMENTMATH_H
