//===- Differences.h - What differs between blocks or warps -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_DIFFERENCES_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_DIFFERENCES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fovea::tile {

/// What differs between those that run the same code, such as the blocks of a
/// cluster: what follows from values that tell them apart.
class Differences {
public:
  explicit Differences(mlir::ValueRange sources);

  /// Returns true if all run `op` equally often.
  bool isRunAlike(mlir::Operation *op) const;
  /// Returns true if all run `op` equally often, with equal operands.
  bool isSame(mlir::Operation *op) const;

private:
  void add(mlir::Value value);
  void add(mlir::ValueRange values) {
    for (mlir::Value value : values)
      add(value);
  }
  void addUse(mlir::OpOperand &use);
  void addAll(mlir::Operation *op);

  llvm::SmallDenseSet<mlir::Value> values;
  /// Ops with regions that are run differently often.
  llvm::SmallPtrSet<mlir::Operation *, 4> branches;
  llvm::SmallVector<mlir::Value> toFollow;
};

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_DIFFERENCES_H
