//===- Check.h - Is a result as exact as its type promises? -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A result is right if it is within its bound of the unfused graph evaluated in
// f64. What the graph computes in narrow types may be far from that in itself,
// such as scores to which -1e4 is added. Where it is, a result is compared with
// the unfused graph in its own types, with the same bound and what rounding may
// change there. That is what is seen where operands that are summed over are
// moved by some units in the last place, and where all operands are moved by
// one, as long as that changes little: where it changes everything, such as
// scores to which -1e9 is added, it excuses nothing. A wrong kernel is near
// neither.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_CHECK_H
#define FOVEA_DRIVER_CHECK_H

#include "fovea/Driver/Program.h"

namespace fovea {

/// How far a result is from its reference.
struct Comparison {
  /// The largest difference of two elements.
  double maxError = 0;
  /// That, relative to the largest finite magnitude of the reference.
  double relativeError = 0;
  /// Elements of which one is infinite or NaN and the other is not the same,
  /// unequal integers, and what is further off than a bound of its own.
  int64_t mismatches = 0;
  /// What `relativeError` may be.
  double bound = 0;

  bool passes() const { return mismatches == 0 && relativeError <= bound; }
};

/// The relative error that a result of this type may have. For f32 it is 2e-5:
/// the 5e-6 for sums in another order and 2 * 2^-24 times the largest score of
/// python/tests/attention.py, for scores up to 126, as they are not known here.
/// For f64 it is 1e-11, for f16 4e-3 and for bf16 3.2e-2, which is 8 roundings
/// of the small types: a graph may round between its ops. Integers are exact.
double getErrorBound(DType type);

/// Compares a result with a reference of the same shape.
Comparison compare(const Tensor &result, const Tensor &reference, double bound);

/// The graph in its own types.
struct Rounded {
  Tensor graph;
  /// The same of operands that are summed over moved up and down.
  llvm::SmallVector<Tensor, 0> summed;
  /// The same of all operands moved.
  llvm::SmallVector<Tensor, 0> all;
};

/// Compares a result with the graph in its own types, where each element may
/// differ by more: by twice the most that its row differs from `graph` in
/// `summed`, and in `all` if that is below a tenth of the largest magnitude.
Comparison compareRounded(const Tensor &result, const Rounded &rounded,
                          double bound);

/// Compares the results of a function, or of its forward and backward pass,
/// with those of its reference; an error says which are wrong. Gradients of the
/// reference are compared with differences. What was compared is printed.
llvm::Error checkResults(const Program &program, size_t function,
                         bool gradients, llvm::ArrayRef<TensorView> operands,
                         llvm::ArrayRef<Tensor> results,
                         llvm::raw_ostream &stream);

/// Compares gradients with central differences of the function in f64, along a
/// random direction of a few elements of each operand: two evaluations an
/// operand. They share no derivative rule with `gradients`, which are those of
/// the reference. Elements at which the function is not smooth, as steps of
/// half the size show, are passed over; what is left out is printed.
/// `cotangents` has one for each floating-point result.
llvm::Error checkGradients(const Program &program, size_t function,
                           llvm::ArrayRef<TensorView> operands,
                           llvm::ArrayRef<TensorView> cotangents,
                           llvm::ArrayRef<Tensor> gradients,
                           llvm::raw_ostream &stream);

} // namespace fovea

#endif // FOVEA_DRIVER_CHECK_H
