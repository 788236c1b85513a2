//===- Multiples.h - Integers that are multiples of a number ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_SUPPORT_MULTIPLES_H
#define FOVEA_SUPPORT_MULTIPLES_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Value.h"

namespace fovea {

/// Proves that integers are multiples of a number, from how they are computed:
/// by arithmetic without overflow, by affine maps, by loops from multiples by
/// multiples, and as sizes of new tensors.
class Multiples {
public:
  /// Returns values of which the result of an op of another dialect is one;
  /// none if it may be another.
  using ChoicesFn = mlir::ValueRange (*)(mlir::Operation *op);

  explicit Multiples(int64_t number, ChoicesFn getChoices = nullptr)
      : number(number), getChoices(getChoices) {}

  /// The arguments of `region` are taken for multiples.
  Multiples(int64_t number, mlir::Region &region)
      : number(number), region(&region) {}

  bool contains(mlir::Value value) const;
  bool contains(mlir::OpFoldResult value) const;
  bool contains(const llvm::APInt &value) const {
    return value.srem(number) == 0;
  }
  /// An expression of an affine map that is applied to `operands`.
  bool contains(mlir::AffineExpr expr, mlir::AffineMap map,
                mlir::ValueRange operands) const;

private:
  int64_t number;
  ChoicesFn getChoices = nullptr;
  mlir::Region *region = nullptr;
};

/// Returns the operand that a dimension or symbol of `map` stands for; null for
/// other expressions.
mlir::Value getOperand(mlir::AffineExpr expr, mlir::AffineMap map,
                       mlir::ValueRange operands);

} // namespace fovea

#endif // FOVEA_SUPPORT_MULTIPLES_H
