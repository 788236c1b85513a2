//===- WholeTiles.h - Tiles that are known to be whole ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_WHOLETILES_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_WHOLETILES_H

#include "mlir/IR/PatternMatch.h"

namespace fovea {

/// Replaces the sizes `min(step, end - i)` of tiles in loops `for i = begin to
/// end step step` by `step` where the step is known to divide both ends: a
/// bound that follows from a causal mask is a sum and a minimum of multiples.
void replaceWholeSizes(mlir::IRRewriter &rewriter, mlir::Operation *root);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_WHOLETILES_H
