//===- Passes.h - Passes that make gradients --------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_DIFFERENTIATE_PASSES_H
#define FOVEA_DIALECT_ATTN_DIFFERENTIATE_PASSES_H

#include "fovea/Support/Choices.h"

#include "mlir/Pass/Pass.h"

namespace fovea::attn {

/// The policy by which attn-insert-recomputation recomputes probabilities.
enum class Recomputation {
  /// Only where that is predicted to be faster.
  Auto,
  Always,
  Never,
};

Choices<Recomputation> getRecomputationChoices();

/// Returns the name of the function that `attn-differentiate` adds for
/// `function`.
inline std::string getGradientName(llvm::StringRef function) {
  return (function + "_gradient").str();
}

/// Return the names of the two functions that `attn-partition-gradient` makes
/// of it.
inline std::string getForwardName(llvm::StringRef function) {
  return (function + "_forward").str();
}
inline std::string getBackwardName(llvm::StringRef function) {
  return (function + "_backward").str();
}

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "fovea/Dialect/Attn/Differentiate/Passes.h.inc"

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_DIFFERENTIATE_PASSES_H
