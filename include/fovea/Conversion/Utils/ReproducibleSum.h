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
// mantissa, shifted to the place of its exponent among these, is added to one
// integer. Nothing is rounded before the end, so the sum is exact, as in U.
// Kulisch's long accumulator. Integers that have room for many terms and carry
// at the end only are from J. Demmel and H. D. Nguyen, "Parallel Reproducible
// Summation", IEEE Transactions on Computers 64 (7), 2015.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_CONVERSION_UTILS_REPRODUCIBLESUM_H
#define FOVEA_CONVERSION_UTILS_REPRODUCIBLESUM_H

#include "mlir/IR/Builders.h"

namespace fovea {

/// The representation in integers of sums of floats of one type. A memref of
/// sums has one dimension more, the first, of size `getSize()`; it must hold
/// zeros at the start.
class ReproducibleSum {
public:
  /// Creates sums of at most `terms` floats of type f32 or f64, 2^37 at most.
  /// The fewer terms, the fewer integers: numbers that are not constant here
  /// are computed by `builder`.
  ReproducibleSum(mlir::OpBuilder &builder, mlir::Location loc,
                  mlir::FloatType type, mlir::OpFoldResult terms);

  /// Returns the number of integers of a sum: 19 for f32 up to 2^23 terms, 35
  /// up to 2^31, then 67 and more; for f64 264 up to 2^37.
  mlir::OpFoldResult getSize() const { return size; }

  /// Adds `term` to the sum at `place` of the memref `sums`, atomically: once
  /// for f32, three times for f64.
  void add(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value term,
           mlir::Value sums, mlir::ValueRange place) const;

  /// Reads an integer of a sum, by its number.
  using ReadFn = llvm::function_ref<mlir::Value(
      mlir::OpBuilder &builder, mlir::Location loc, mlir::Value number)>;
  /// Returns the sum as f64. For f32 terms, the result, rounded once more to
  /// f32 or less, is the float next to the exact sum, ties to even. For f64
  /// terms it is that float itself, except for subnormals, which are rounded
  /// twice. A sum without terms is 0; with infinities or NaN the result is that
  /// of adding floats.
  mlir::Value round(mlir::OpBuilder &builder, mlir::Location loc,
                    ReadFn read) const;

private:
  mlir::Value getInteger(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::OpFoldResult index, mlir::Type integer) const;

  mlir::FloatType type;
  /// The number of exponents of an integer, and that number's logarithm.
  mlir::OpFoldResult width, logWidth;
  /// The number of integers for finite terms, and of all: behind the former are
  /// counts of terms that are infinity, minus infinity and NaN.
  mlir::OpFoldResult numFinite, size;
};

} // namespace fovea

#endif // FOVEA_CONVERSION_UTILS_REPRODUCIBLESUM_H
