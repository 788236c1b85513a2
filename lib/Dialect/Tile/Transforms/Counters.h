//===- Counters.h - How often a block of a program has run ------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_TILE_TRANSFORMS_COUNTERS_H
#define FOVEA_LIB_DIALECT_TILE_TRANSFORMS_COUNTERS_H

#include "mlir/IR/PatternMatch.h"

namespace fovea::tile {

/// Whether `op` stands in a loop of a launch, in nothing but loops and
/// branches.
bool isInLoop(mlir::Operation *op);

/// A value, defined before `op`, that counts how often the block of `op`, which
/// is in a loop (`isInLoop`), has run before: what a ring of the same block
/// counts its uses by, or a new value that loops carry and branches give.
mlir::Value getCounter(mlir::RewriterBase &rewriter, mlir::Operation *op);

} // namespace fovea::tile

#endif // FOVEA_LIB_DIALECT_TILE_TRANSFORMS_COUNTERS_H
