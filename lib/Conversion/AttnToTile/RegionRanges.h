//===- RegionRanges.h - Ranges of a region's integers -----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_ATTNTOTILE_REGIONRANGES_H
#define FOVEA_LIB_CONVERSION_ATTNTOTILE_REGIONRANGES_H

#include "mlir/IR/Block.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"

#include <optional>

namespace fovea {

/// MLIR's ranges of the integers of a region on coordinates, which come last of
/// its arguments and are less than `kMaxPosition`.
class RegionRanges {
public:
  explicit RegionRanges(mlir::Block &block);

  /// Returns the range of an integer or an index; nullopt if nothing is known
  /// of it, as of values that the region got later.
  std::optional<mlir::ConstantIntRanges> get(mlir::Value value) const;
  /// Returns true if the value is known to have at most this many bits.
  bool fits(mlir::Value value, unsigned bits = 32) const;
  bool isNonNegative(mlir::Value value) const;

private:
  llvm::DenseMap<mlir::Value, mlir::ConstantIntRanges> ranges;
};

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_ATTNTOTILE_REGIONRANGES_H
