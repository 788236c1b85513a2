//===- Check.cpp - Is a result as exact as its type promises? -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Check.h"

#include <cmath>

using namespace fovea;

double fovea::getErrorBound(DType type) {
  switch (type) {
  case DType::F64:
    return 1e-11;
  case DType::F32:
    return 2e-5;
  case DType::F16:
    return 4e-3;
  case DType::BF16:
    return 3.2e-2;
  default:
    return 0;
  }
}

Comparison fovea::compare(const Tensor &result, const Tensor &reference) {
  Comparison comparison;
  comparison.bound = getErrorBound(result.getType());
  double magnitude = 0;
  for (int64_t i = 0, e = reference.getNumElements(); i < e; ++i) {
    double expected = reference.read(i), actual = result.read(i);
    if (std::isfinite(expected))
      magnitude = std::max(magnitude, std::abs(expected));
    bool same =
        actual == expected || (std::isnan(actual) && std::isnan(expected));
    if (same)
      continue;
    if (std::isnan(expected) && actual == 0) {
      ++comparison.undefined;
      continue;
    }
    if (!std::isfinite(actual) || !std::isfinite(expected) ||
        !isFloat(result.getType())) {
      ++comparison.mismatches;
      continue;
    }
    comparison.maxError =
        std::max(comparison.maxError, std::abs(actual - expected));
  }
  if (comparison.maxError > 0)
    comparison.relativeError =
        comparison.maxError / (magnitude > 0 ? magnitude : 1);
  return comparison;
}
