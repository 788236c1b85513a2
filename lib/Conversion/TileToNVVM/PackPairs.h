//===- PackPairs.h - Pairs of 16-bit numbers in one register ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_TILETONVVM_PACKPAIRS_H
#define FOVEA_LIB_CONVERSION_TILETONVVM_PACKPAIRS_H

#include "mlir/IR/Builders.h"

namespace fovea::tile {

/// Returns two 16-bit numbers as one register, an i32 with `low` in the low
/// bits.
mlir::Value packPair(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value low, mlir::Value high);

/// Rewrites pairs within `root`, after tile ops are gone: loops carry pairs as
/// such rather than as two registers, and pairs that are rounded from f32 are
/// rounded by one instruction. Canonicalisation erases the ops that become
/// superfluous.
void packPairs(mlir::Operation *root);

} // namespace fovea::tile

#endif // FOVEA_LIB_CONVERSION_TILETONVVM_PACKPAIRS_H
