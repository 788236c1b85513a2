//===- IndexRange.h - Range of an index in a region -------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TRANSFORMS_OUTLINESHAPECHECKS_INDEXRANGE_H
#define FOVEA_LIB_TRANSFORMS_OUTLINESHAPECHECKS_INDEXRANGE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace fovea {

/// The least and the largest value of an index, both as index values outside of
/// the region.
struct IndexRange {
  mlir::Value low, high;
};

/// Bounds integers that a region computes from its coordinates, by interval
/// arithmetic that is emitted before the region's op.
class IndexRanges {
public:
  IndexRanges(mlir::OpBuilder &builder, mlir::Region &region)
      : builder(builder), region(region) {}

  /// States that `coordinate` runs from 0 to `extent - 1`.
  void setExtent(mlir::Value coordinate, mlir::Value extent);

  /// Returns the range of `value`, or none if it does not follow from
  /// coordinates, constants and values from outside.
  std::optional<IndexRange> get(mlir::Value value);

private:
  std::optional<IndexRange> compute(mlir::Value value);
  std::optional<IndexRange> computeSelect(mlir::arith::SelectOp select);
  /// Returns the range of the sum of two values of which one is the difference
  /// of a third and the other, as x and -x are; none of others.
  std::optional<IndexRange> computeSum(mlir::Value a, mlir::Value b);
  std::optional<IndexRange> computeAbsolute(mlir::Value value);
  mlir::Value constant(int64_t value);

  /// Narrows the ranges of what `condition` compares to those where it holds,
  /// or does not, and returns true if it narrows any. A range of nothing has a
  /// low end above its high one.
  bool assume(mlir::Value condition, bool holds);
  bool assume(mlir::arith::CmpIPredicate predicate, mlir::Value left,
              mlir::Value right);

  mlir::OpBuilder &builder;
  mlir::Region &region;
  /// The ranges that others are computed from.
  llvm::DenseMap<mlir::Value, IndexRange> given;
  /// The number of conditions that are assumed.
  unsigned depth = 0;
  llvm::DenseMap<mlir::Value, std::optional<IndexRange>> known;
};

} // namespace fovea

#endif // FOVEA_LIB_TRANSFORMS_OUTLINESHAPECHECKS_INDEXRANGE_H
