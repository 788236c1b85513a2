//===- ScalarTape.h - Derivatives of scalar programs ------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Score regions, elementwise regions and the bodies of linalg ops are blocks of
// scalar ops. A tape replays such a block at another place and then emits, from
// its last op to its first, the derivatives of the result by some of its
// values.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_DIFFERENTIATE_SCALARTAPE_H
#define FOVEA_DIALECT_ATTN_DIFFERENTIATE_SCALARTAPE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

namespace fovea::attn::differentiate {

/// Gradients are scalars of the accumulation type of their value, except for
/// variables for which another type is requested.
class ScalarTape {
public:
  /// Replays and emits ops at `builder`.
  ScalarTape(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  /// Returns the replacement for the result of an op that is replayed, such as
  /// an index of a loop; null to copy the op, as without a substitute.
  using Substitute = llvm::function_ref<mlir::Value(mlir::Operation *)>;

  /// Copies the ops of the block that `value` needs. `mapping` gives the values
  /// of the block's arguments, and afterwards those of the copied ops.
  mlir::Value replay(mlir::Block &block, mlir::Value value,
                     mlir::IRMapping &mapping, Substitute substitute = nullptr);

  /// Makes `leaf`, a replayed value or an argument of one, a variable. Its
  /// gradient is of type `type`, if given.
  void addVariable(mlir::Value leaf, mlir::FloatType type = {}) {
    active.insert(leaf);
    if (type)
      gradientTypes[leaf] = type;
  }

  /// Emits the derivatives of `result` by the variables, times `cotangent`, a
  /// scalar of `result`'s accumulation type. Fails with an error at an op that
  /// has no derivative.
  mlir::LogicalResult pull(mlir::Value result, mlir::Value cotangent);

  /// Returns the gradient of a variable after `pull`; null if it is zero.
  mlir::Value getGradient(mlir::Value leaf) const {
    return gradients.lookup(leaf);
  }

  /// Returns `value` as a scalar of its accumulation type.
  mlir::Value widen(mlir::Value value);

private:
  void markActive();
  mlir::LogicalResult pullOp(mlir::Operation *op, mlir::Value cotangent);
  void add(mlir::Value value, mlir::Value gradient);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  /// The replayed ops, and those of them that depend on variables.
  llvm::SmallVector<mlir::Operation *> ops, activeOps;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
  llvm::DenseMap<mlir::Value, mlir::FloatType> gradientTypes;
};

} // namespace fovea::attn::differentiate

#endif // FOVEA_DIALECT_ATTN_DIFFERENTIATE_SCALARTAPE_H
