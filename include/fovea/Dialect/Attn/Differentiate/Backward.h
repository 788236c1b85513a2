//===- Backward.h - Reverse mode on ops -------------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reverse mode: ops are visited from the last to the first, and each sends the
// gradients of its results to its operands. The rules for ops are in LoopRules
// (scalar programs in loops: linalg, score and elementwise regions), GraphRules
// (the other ops of attn) and TensorRules (views).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_DIFFERENTIATE_BACKWARD_H
#define FOVEA_DIALECT_ATTN_DIFFERENTIATE_BACKWARD_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fovea::attn::differentiate {

class Backward {
public:
  /// Emits ops at `builder`, whose insertion point moves on.
  explicit Backward(mlir::OpBuilder &builder) : builder(builder) {}

  mlir::OpBuilder &builder;

  /// Makes `value` a variable.
  void addVariable(mlir::Value value) { varied.insert(value); }

  /// Sums the gradient of `value` in `type` instead of the type of `value`.
  void setGradientType(mlir::Value value, mlir::FloatType type) {
    gradientTypes[value] = type;
  }
  /// Returns the type of float that the gradient of `value` has.
  mlir::FloatType getGradientType(mlir::Value value) const;

  /// Marks the results of `op` that depend on variables. Its operands must have
  /// been visited before.
  void visit(mlir::Operation *op);

  /// Returns true if `value` consists of floats that depend on a variable, so
  /// that it has a gradient.
  bool isVaried(mlir::Value value) const { return varied.contains(value); }

  /// Returns the gradient of `value` so far, which has its shape; null if it is
  /// zero.
  mlir::Value lookup(mlir::Value value) const {
    return gradients.lookup(value);
  }

  /// Adds to the gradient of `value`, if it has one. `gradient` has the shape
  /// of `value`, except for static sizes, and any float type.
  void add(mlir::Location loc, mlir::Value value, mlir::Value gradient);

  /// Sends the gradients of the results of `op` to its operands. Fails with an
  /// error where `op` has no derivative.
  mlir::LogicalResult pull(mlir::Operation *op);

private:
  llvm::DenseSet<mlir::Value> varied;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
  llvm::DenseMap<mlir::Value, mlir::FloatType> gradientTypes;
};

/// Rules by kinds of ops. They return nullopt for an op of another kind.
std::optional<mlir::LogicalResult> pullLoops(Backward &backward,
                                             mlir::Operation *op);
std::optional<mlir::LogicalResult> pullGraph(Backward &backward,
                                             mlir::Operation *op);
std::optional<mlir::LogicalResult> pullTensor(Backward &backward,
                                              mlir::Operation *op);

} // namespace fovea::attn::differentiate

#endif // FOVEA_DIALECT_ATTN_DIFFERENTIATE_BACKWARD_H
