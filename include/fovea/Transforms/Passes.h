//===- Passes.h - Passes from attn and linalg to the machine ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TRANSFORMS_PASSES_H
#define FOVEA_TRANSFORMS_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace fovea {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "fovea/Transforms/Passes.h.inc"

} // namespace fovea

#endif // FOVEA_TRANSFORMS_PASSES_H
