//===- Check.h - Checks of a result's exactness -----------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A result is right if it is within its bound of the unfused graph evaluated in
// f64. The graph's own computation in narrow types may be far from that
// evaluation, as with scores to which -1e4 is added. In this case a result is
// compared with the unfused graph in its own types, with the same bound plus
// the changes that rounding may cause there. These are the changes seen where
// operands that are summed over are moved by some units in the last place, and
// where all operands are moved by one, as long as the latter change little:
// where they change everything, as with scores to which -1e9 is added, they
// excuse nothing. A wrong kernel is near neither reference.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_CHECK_H
#define FOVEA_DRIVER_CHECK_H

#include "fovea/Driver/Program.h"

namespace fovea {

/// The distance of a result from its reference.
struct Comparison {
  /// The largest difference of two elements.
  double maxError = 0;
  /// The largest difference relative to the largest finite magnitude of the
  /// reference.
  double relativeError = 0;
  /// The number of elements where one side is infinite or NaN and the other is
  /// not the same, of unequal integers, and of elements that differ by more
  /// than a bound of their own.
  int64_t mismatches = 0;
  /// The largest `relativeError` that is allowed.
  double bound = 0;

  bool passes() const { return mismatches == 0 && relativeError <= bound; }
};

/// Returns the relative error that a result of this type may have. For f32 it
/// is 2e-5: the 5e-6 for sums in another order and 2 * 2^-24 times the largest
/// score of python/tests/attention.py, for scores up to 126, as the scores are
/// not known here. For f64 it is 1e-11, for f16 4e-3 and for bf16 3.2e-2, which
/// is 8 roundings of the small types: a graph may round between its ops.
/// Integers are exact.
double getErrorBound(DType type);

/// Compares a result with a reference of the same shape.
Comparison compare(const Tensor &result, const Tensor &reference, double bound);

/// Results of the graph in its own types.
struct Rounded {
  Tensor graph;
  /// The same where operands that are summed over are moved up and down.
  llvm::SmallVector<Tensor, 0> summed;
  /// The same where all operands are moved.
  llvm::SmallVector<Tensor, 0> all;
};

/// Compares a result with the graph in its own types, where each element may
/// differ by more: by twice the largest difference between `graph` and `summed`
/// in its row, and the same of `all` if that is below a tenth of the largest
/// magnitude.
Comparison compareRounded(const Tensor &result, const Rounded &rounded,
                          double bound);

/// Compares the results of a function, or of its forward and backward pass,
/// with those of its reference; an error names the wrong ones. Gradients of the
/// reference are compared with differences. Prints the comparisons made.
llvm::Error checkResults(const Program &program, size_t function,
                         bool gradients, llvm::ArrayRef<TensorView> operands,
                         llvm::ArrayRef<Tensor> results,
                         llvm::raw_ostream &stream);

/// Compares gradients with central differences of the function in f64, along a
/// random direction of a few elements of each operand: two evaluations an
/// operand. The differences share no derivative rule with `gradients`, which
/// are those of the reference. Elements at which the function is not smooth, as
/// steps of half the size show, are left out, which is printed. `cotangents`
/// has one for each floating-point result.
llvm::Error checkGradients(const Program &program, size_t function,
                           llvm::ArrayRef<TensorView> operands,
                           llvm::ArrayRef<TensorView> cotangents,
                           llvm::ArrayRef<Tensor> gradients,
                           llvm::raw_ostream &stream);

} // namespace fovea

#endif // FOVEA_DRIVER_CHECK_H
