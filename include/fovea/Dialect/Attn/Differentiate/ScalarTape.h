//===- ScalarTape.h - Derivatives of scalar programs ------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Score regions, elementwise regions and the bodies of linalg ops are blocks of
// scalar ops. A tape replays such a block at another place and then emits, from
// its last op to its first, how the result depends on some of its values.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_DIFFERENTIATE_SCALARTAPE_H
#define FOVEA_DIALECT_ATTN_DIFFERENTIATE_SCALARTAPE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

namespace fovea::attn::differentiate {

/// Gradients are scalars of the accumulation type of what they belong to, but
/// for variables for which another is asked for.
class ScalarTape {
public:
  /// Replays and emits at `builder`.
  ScalarTape(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  /// What stands for the result of an op when that is replayed, such as for an
  /// index of a loop; null, as without this, to copy the op.
  using Substitute = llvm::function_ref<mlir::Value(mlir::Operation *)>;

  /// Copies what `value` needs of the ops of its block; `mapping` says what the
  /// block's arguments are, and afterwards what else has become what.
  mlir::Value replay(mlir::Block &block, mlir::Value value,
                     mlir::IRMapping &mapping, Substitute substitute = nullptr);

  /// Makes `leaf`, a value that is replayed or an argument of that, a variable.
  /// Its gradient is of type `type`, if that is given.
  void addVariable(mlir::Value leaf, mlir::FloatType type = {}) {
    active.insert(leaf);
    if (type)
      gradientTypes[leaf] = type;
  }

  /// Emits how `result` depends on the variables, times `cotangent`, a scalar
  /// of `result`'s accumulation type. Fails with an error at an op that has no
  /// derivative.
  mlir::LogicalResult pull(mlir::Value result, mlir::Value cotangent);

  /// The gradient of a variable after `pull`; null if it is zero.
  mlir::Value getGradient(mlir::Value leaf) const {
    return gradients.lookup(leaf);
  }

  /// `value` as a scalar of its accumulation type.
  mlir::Value widen(mlir::Value value);

private:
  void markActive();
  mlir::LogicalResult pullOp(mlir::Operation *op, mlir::Value cotangent);
  void add(mlir::Value value, mlir::Value gradient);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  /// What was replayed, and of that what depends on variables.
  llvm::SmallVector<mlir::Operation *> ops, activeOps;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
  llvm::DenseMap<mlir::Value, mlir::FloatType> gradientTypes;
};

} // namespace fovea::attn::differentiate

#endif // FOVEA_DIALECT_ATTN_DIFFERENTIATE_SCALARTAPE_H
