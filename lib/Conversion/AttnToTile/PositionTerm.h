//===- PositionTerm.h - A score's term in the key's position ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores that are a sum of a term that is linear in the position of the key,
// as ALiBi's, and of another one.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_POSITIONTERM_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_POSITIONTERM_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fovea {

/// A score is `rest` plus `position` times `sign` and all `factors`, which are
/// numbers that do not depend on the key.
struct PositionTerm {
  /// Returns the term of what `score`, which may be empty, yields; nullopt if
  /// it yields no such sum of f32.
  static std::optional<PositionTerm> find(mlir::Region &score);

  mlir::Value rest;
  /// The float of a sum of coordinates.
  mlir::Value position;
  /// What is added to the sum from one key to the next.
  int64_t step = 0;
  double sign = 1.0;
  llvm::SmallVector<mlir::Value> factors;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_POSITIONTERM_H
