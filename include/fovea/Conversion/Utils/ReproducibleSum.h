//===- ReproducibleSum.h - Exact sums of floats, in any order ---*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum that many threads add to in any order has the same bits in every run if
// its additions commute, as those of integers do. The sum is a row of 64-bit
// integers, each for the terms of some neighbouring exponents: a term's
// mantissa, shifted to its exponent's place among them, is added to one.
// Nothing is rounded before the end, so the sum is exact, as in U. Kulisch's
// long accumulator; that integers have room for many terms and carry at the end
// only is from J. Demmel and H. D. Nguyen, "Parallel Reproducible Summation",
// IEEE Transactions on Computers 64 (7), 2015.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_CONVERSION_UTILS_REPRODUCIBLESUM_H
#define FOVEA_CONVERSION_UTILS_REPRODUCIBLESUM_H

#include "mlir/IR/Builders.h"

namespace fovea {

/// How floats of one type are added up in integers. A memref of sums has one
/// dimension more than what it has sums of, the first, which is `getSize()`; it
/// holds zeros before.
class ReproducibleSum {
public:
  /// Of no more than `terms` floats of type f32 or f64, 2^37 at most. The fewer
  /// terms, the fewer integers: what is not constant here is computed by
  /// `builder`.
  ReproducibleSum(mlir::OpBuilder &builder, mlir::Location loc,
                  mlir::FloatType type, mlir::OpFoldResult terms);

  /// How many integers a sum is: 19 for f32 up to 2^23 terms, 35 up to 2^31,
  /// then 67 and more; for f64 264 up to 2^37.
  mlir::OpFoldResult getSize() const { return size; }

  /// Adds `term` to the sum at `place` of the memref `sums`, atomically: once
  /// for f32, three times for f64.
  void add(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value term,
           mlir::Value sums, mlir::ValueRange place) const;

  /// Reads an integer of a sum, by its number.
  using ReadFn = llvm::function_ref<mlir::Value(
      mlir::OpBuilder &builder, mlir::Location loc, mlir::Value number)>;
  /// The sum as f64. Of f32 terms, rounded once more to f32 or less it is the
  /// float next to the exact sum, ties to even; of f64 terms it is that itself,
  /// but for subnormals, which are rounded twice. What has no terms is 0; with
  /// infinities or NaN it is what adding floats gives.
  mlir::Value round(mlir::OpBuilder &builder, mlir::Location loc,
                    ReadFn read) const;

private:
  mlir::Value getInteger(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::OpFoldResult index, mlir::Type integer) const;

  mlir::FloatType type;
  /// How many exponents an integer has, and that number's logarithm.
  mlir::OpFoldResult width, logWidth;
  /// The integers of finite terms; behind are the numbers of terms that are
  /// infinity, minus infinity and NaN.
  mlir::OpFoldResult numFinite, size;
};

} // namespace fovea

#endif // FOVEA_CONVERSION_UTILS_REPRODUCIBLESUM_H
