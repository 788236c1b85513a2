//===- Check.cpp - Checks of a result's exactness -------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Check.h"

#include <cmath>
#include <limits>
#include <vector>

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

/// Returns the largest finite magnitude.
static double getMagnitude(const Tensor &tensor) {
  double magnitude = 0;
  for (int64_t i = 0, e = tensor.getNumElements(); i < e; ++i)
    if (double value = tensor.read(i); std::isfinite(value))
      magnitude = std::max(magnitude, std::abs(value));
  return magnitude;
}

/// Compares elements; each may differ by `allow(i)`, and at most by what the
/// bound allows.
static Comparison compareElements(const Tensor &result, const Tensor &reference,
                                  double bound, double magnitude,
                                  llvm::function_ref<double(int64_t)> allow) {
  Comparison comparison;
  comparison.bound = bound;
  for (int64_t i = 0, e = reference.getNumElements(); i < e; ++i) {
    double expected = reference.read(i), actual = result.read(i);
    bool same =
        actual == expected || (std::isnan(actual) && std::isnan(expected));
    if (same)
      continue;
    if (!std::isfinite(actual) || !std::isfinite(expected) ||
        !isFloat(result.getType())) {
      ++comparison.mismatches;
      continue;
    }
    double error = std::abs(actual - expected);
    comparison.maxError = std::max(comparison.maxError, error);
    comparison.mismatches += error > allow(i);
  }
  if (comparison.maxError > 0)
    comparison.relativeError =
        comparison.maxError / (magnitude > 0 ? magnitude : 1);
  return comparison;
}

Comparison fovea::compare(const Tensor &result, const Tensor &reference,
                          double bound) {
  return compareElements(
      result, reference, bound, getMagnitude(reference),
      [](int64_t) { return std::numeric_limits<double>::infinity(); });
}

/// Returns, for each row, the largest difference of `others` from `graph`.
static std::vector<double>
getSpreads(const Tensor &graph, llvm::ArrayRef<Tensor> others, int64_t row) {
  std::vector<double> spreads(row ? size_t(graph.getNumElements() / row) : 0,
                              0.0);
  for (const Tensor &other : others)
    for (int64_t i = 0, e = graph.getNumElements(); i < e; ++i)
      if (double spread = std::abs(graph.read(i) - other.read(i));
          std::isfinite(spread))
        spreads[i / row] = std::max(spreads[i / row], spread);
  return spreads;
}

Comparison fovea::compareRounded(const Tensor &result, const Rounded &rounded,
                                 double bound) {
  constexpr double kSpreads = 2, kLargestSpread = 0.1;
  const Tensor &graph = rounded.graph;
  double magnitude = getMagnitude(graph);
  double scale = magnitude > 0 ? magnitude : 1;
  int64_t row = graph.getShape().empty() ? 1 : graph.getShape().back();
  std::vector<double> allowed = getSpreads(graph, rounded.summed, row);
  double widest = 0;
  for (auto [spread, other] :
       llvm::zip_equal(allowed, getSpreads(graph, rounded.all, row))) {
    if (other <= kLargestSpread * scale)
      spread = std::max(spread, other);
    spread = bound * scale + kSpreads * spread;
    widest = std::max(widest, spread);
  }
  return compareElements(result, graph, std::max(bound, widest / scale),
                         magnitude,
                         [&](int64_t i) { return allowed[i / row]; });
}
