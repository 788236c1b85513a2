//===- Passes.h - Passes on the attn dialect --------------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_H
#define FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace fovea::attn {

/// The policy by which attn-tile computes keys and values where they are
/// loaded.
enum class KeyFusion {
  /// Only where the model of the target finds that faster.
  Auto,
  Always,
  Never,
};

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_H
