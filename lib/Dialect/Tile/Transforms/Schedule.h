//===- Schedule.h - The schedule of a loop as attributes --------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attributes that --tile-schedule sets and --tile-expand-pipeline reads.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_SCHEDULE_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_SCHEDULE_H

#include "mlir/IR/Operation.h"

namespace fovea::tile {

/// Returns the operands of `op` and the values from above that its regions use.
llvm::SmallVector<mlir::Value> getUsedValues(mlir::Operation *op);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_SCHEDULE_H
