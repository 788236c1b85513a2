//===- Counters.h - Counters of the runs of a program's block ---*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_COUNTERS_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_COUNTERS_H

#include "mlir/IR/PatternMatch.h"

namespace fovea::tile {

/// Returns true if `op` is in a loop of a launch, inside only loops and
/// branches.
bool isInLoop(mlir::Operation *op);

/// Returns a value, defined before `op`, that counts how often the block of
/// `op`, which is in a loop (`isInLoop`), has run before: the value by which a
/// ring of the same block counts its uses, or a new value that loops carry and
/// branches yield.
mlir::Value getCounter(mlir::RewriterBase &rewriter, mlir::Operation *op);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_COUNTERS_H
