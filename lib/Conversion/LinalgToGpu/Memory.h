//===- Memory.h - Memory that memrefs are in --------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_MEMORY_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_MEMORY_H

#include "mlir/IR/Value.h"

namespace fovea {

/// Returns the memref that `memref` is a view of.
mlir::Value getBase(mlir::Value memref);

/// Returns true if `memref` is in the host's memory, as buffers are that the
/// host passes to kernels by address; all others are in the GPU's.
bool isHostBuffer(mlir::Value memref);

/// Returns true if `memref` is an operand of the function; operands are never
/// written.
bool isOperand(mlir::Value memref);

/// Returns true if no other memref of the function is in the same memory, apart
/// from views. `base` must not be a view.
bool isDistinct(mlir::Value base);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_MEMORY_H
