//===- Memory.h - Memory that memrefs are in --------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_MEMORY_H
#define FOVEA_ANALYSIS_MEMORY_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SetVector.h"

namespace fovea {

/// Returns the memref that `memref` is a view of.
mlir::Value getBase(mlir::Value memref);

/// Returns true if `memref` is in the host's memory, as buffers are that the
/// host passes to kernels by address; all others are in the GPU's.
bool isHostBuffer(mlir::Value memref);

/// Returns true if `memref` is an operand of the function.
bool isOperand(mlir::Value memref);

/// Returns true if no other memref of the function is in the same memory, apart
/// from views and, where neither is written, other operands. `base` must not be
/// a view.
bool isDistinct(mlir::Value base);

/// The memory that ops access, by the memrefs that are no views.
struct MemoryUse {
  llvm::SmallSetVector<mlir::Value, 8> reads, writes;

  /// Adds what `op` and the ops in it access, apart from what they allocate
  /// themselves. Returns false if that is not known.
  bool add(mlir::Operation *op);

  /// Returns true if either may write what the other accesses.
  bool conflictsWith(const MemoryUse &other) const;
};

} // namespace fovea

#endif // FOVEA_ANALYSIS_MEMORY_H
