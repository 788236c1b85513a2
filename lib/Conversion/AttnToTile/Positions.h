//===- Positions.h - Sums of coordinates as floats --------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_POSITIONS_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_POSITIONS_H

#include "fovea/Dialect/Attn/IR/Coordinates.h"

#include "mlir/IR/PatternMatch.h"

namespace fovea {

/// Rewrites conversions to floats, in a region on coordinates, of sums of these
/// that fit in their integers: they convert the sum as an index, without a
/// truncation and by its sign, so that only additions lie between a coordinate
/// and its float.
void convertPositionsWhole(mlir::IRRewriter &rewriter, mlir::Region &region);

/// Returns what is added to `value` where `coordinate` grows by 1, if `value`
/// is a sum of coordinates that fits in its integers.
std::optional<int64_t> getPositionStep(mlir::Region &region, mlir::Value value,
                                       attn::Coordinate coordinate);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_POSITIONS_H
