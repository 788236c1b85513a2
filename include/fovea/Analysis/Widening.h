//===- Widening.h - Numbers that a graph widens from 8 bits -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_ANALYSIS_WIDENING_H
#define FOVEA_ANALYSIS_WIDENING_H

#include "fovea/Dialect/Attn/IR/Attn.h"

#include <string>

namespace fovea {

/// An `i8` whose bits are those of a number of type `from`.
struct Widening {
  mlir::Value bits;
  mlir::FloatType from;

  /// Returns the `i8` whose bits, as an `f8E4M3FN`, are the number `value`, a
  /// scalar that the block around it computes from an argument of it or from an
  /// element of a tensor; nullopt if there is none. What matters is the value
  /// for each of the 256 bytes, not the ops.
  static std::optional<Widening> get(mlir::Value value);
};

/// Returns true if keys and values of `op` are computed, element by element, by
/// ops in front that widen bytes.
bool widensOperands(attn::AttentionOp op);

/// Returns why no kernel for `target` widens keys and values of `op`, which has
/// a schedule with warps or gets one; nullopt if one can.
std::optional<std::string> getWideningObstacle(attn::AttentionOp op,
                                               machine::TargetAttr target);

} // namespace fovea

#endif // FOVEA_ANALYSIS_WIDENING_H
