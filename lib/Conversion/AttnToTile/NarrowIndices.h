//===- NarrowIndices.h - Indices of regions in 32 bits ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_NARROWINDICES_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_NARROWINDICES_H

#include "mlir/IR/PatternMatch.h"

namespace fovea {

/// Rewrites integers of a region on coordinates so that an element takes few
/// instructions of a GPU, whose registers have 32 bits:
///
/// - a comparison with a minimum or a maximum becomes two comparisons;
/// - arithmetic on indices and 64-bit integers that fits in 32 bits, by MLIR's
///   ranges of the coordinates, is done in 32 bits, without signs where there
///   are none;
/// - a comparison has what depends on the query on one side and what depends on
///   the key on the other, so that elements of a row or a column share both.
///
/// Comparisons of sums of coordinates, and indices that are such sums, are left
/// as they are: elements share these as differences.
void narrowIndices(mlir::RewriterBase &rewriter, mlir::Region &region);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_NARROWINDICES_H
