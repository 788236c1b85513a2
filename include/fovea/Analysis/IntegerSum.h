//===- IntegerSum.h - Size of exact sums of floats --------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum of floats that does not depend on their order can be kept in integers
// (`Conversion/Utils/ReproducibleSum.h` says how). The number of these depends
// on the type and on the number of terms.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_INTEGERSUM_H
#define FOVEA_ANALYSIS_INTEGERSUM_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace fovea {

/// The fields of a float: a sign, then the exponent, then the fraction; and the
/// pieces of its mantissa that are added: `pieces` of `pieceBits` each. An
/// integer takes the pieces of 2^log neighbouring exponents.
struct IntegerSum {
  explicit IntegerSum(mlir::FloatType type)
      : width(type.getWidth()), fractionBits(type.getFPMantissaWidth() - 1),
        largestExponent((int64_t(1) << (width - fractionBits - 1)) - 1),
        pieces(llvm::divideCeil(fractionBits + 1, kMostPieceBits)),
        pieceBits(llvm::divideCeil(fractionBits + 1, pieces)) {}

  /// Returns the exponent e such that a fraction's last bit has, at the
  /// exponents 0 and 1, the value 2^e.
  int64_t getLowestExponent() const {
    return 1 - largestExponent / 2 - fractionBits;
  }
  /// Returns the number of exponents of pieces, which count from the lowest. No
  /// finite number has the largest exponent, and 0 counts as 1.
  int64_t getNumExponents() const {
    return largestExponent - 1 + (pieces - 1) * pieceBits;
  }
  /// Returns the largest `log`. The wider the integers, the fewer digits the
  /// sum's uppermost integer has, of which f64 takes 53.
  int64_t getLargestLog() const { return width == 64 ? 3 : 4; }
  /// Returns the most terms that integers of 2^`log` exponents take: a piece at
  /// the largest exponent, times the number of terms, is below 2^62, which
  /// leaves room for carries.
  int64_t getMostTerms(int64_t log) const {
    return int64_t(1) << (63 - pieceBits - (int64_t(1) << log));
  }
  /// Returns the number of integers of a sum of at most `terms` terms.
  int64_t getSize(int64_t terms) const {
    int64_t exponents = 1;
    for (int64_t log = 1; log <= getLargestLog(); ++log)
      if (terms <= getMostTerms(log))
        exponents = int64_t(1) << log;
    return llvm::divideCeil(getNumExponents(), exponents) + kNumSpecial;
  }

  /// Counts of special values: infinity, minus infinity, NaN.
  static constexpr int64_t kNumSpecial = 3;
  static constexpr int64_t kMostPieceBits = 24;
  int64_t width, fractionBits;
  /// The exponent of infinities and NaN.
  int64_t largestExponent;
  int64_t pieces, pieceBits;
};

} // namespace fovea

#endif // FOVEA_ANALYSIS_INTEGERSUM_H
