//===- Fuse.cpp - attn-fuse: unfused attention to attn.attention ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNFUSE
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"

namespace {
struct AttnFuse final : impl::AttnFuseBase<AttnFuse> {
  void runOnOperation() override {
    getOperation()->walk([&](SoftmaxOp softmax) { ++numRejected; });
  }
};
} // namespace
} // namespace fovea::attn
