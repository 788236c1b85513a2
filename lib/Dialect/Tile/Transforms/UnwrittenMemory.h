//===- UnwrittenMemory.h - Memory that a launch only reads ------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_UNWRITTENMEMORY_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_UNWRITTENMEMORY_H

#include "mlir/IR/Operation.h"

namespace fovea::tile {

/// Returns true if `memory` is an operand of a launch, no op of which writes
/// it: what is read there is the same at all times.
bool isUnwritten(mlir::Value memory);

/// Returns true if all effects of `op` and of its nested ops are reads.
bool onlyReads(mlir::Operation *op);

/// Returns true if `op` gives the same wherever it stands in its role: it has
/// no effects, or reads tables that nothing writes meanwhile.
bool isFixed(mlir::Operation *op);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_UNWRITTENMEMORY_H
