//===- Check.h - Is a result as exact as its type promises? -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DRIVER_CHECK_H
#define FOVEA_DRIVER_CHECK_H

#include "fovea/Driver/Tensor.h"

namespace fovea {

/// How far a result is from its reference.
struct Comparison {
  /// The largest difference of two elements.
  double maxError = 0;
  /// That, relative to the largest finite magnitude of the reference.
  double relativeError = 0;
  /// Elements of which one is infinite or NaN and the other is not the same,
  /// and unequal integers.
  int64_t mismatches = 0;
  /// Elements that are 0 where the reference is NaN. They do not fail: a
  /// softmax of steps divides 0 by 0 in a row of which every key is masked,
  /// where attention is defined to give 0.
  int64_t undefined = 0;
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
Comparison compare(const Tensor &result, const Tensor &reference);

} // namespace fovea

#endif // FOVEA_DRIVER_CHECK_H
