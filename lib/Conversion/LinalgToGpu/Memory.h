//===- Memory.h - What memrefs are in which memory --------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LINALGTOGPU_MEMORY_H
#define FOVEA_LIB_CONVERSION_LINALGTOGPU_MEMORY_H

#include "mlir/IR/Value.h"

namespace fovea {

/// What `memref` is a view of.
mlir::Value getBase(mlir::Value memref);

/// Whether `memref` is in the host's memory, as what the host passes to kernels
/// by address is; everything else is in the GPU's.
bool isHostBuffer(mlir::Value memref);

/// Whether `memref` is an operand of the function, which is never written.
bool isOperand(mlir::Value memref);

/// Whether no other memref of the function is in the same memory, views apart,
/// for `base` that is a view of nothing.
bool isDistinct(mlir::Value base);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LINALGTOGPU_MEMORY_H
