//===- Approximate.cpp - attn-approximate ---------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/Dialect/Math/IR/Math.h"

#define DEBUG_TYPE "attn-approximate"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNAPPROXIMATE
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
struct Approximate : fovea::attn::impl::AttnApproximateBase<Approximate> {
  void runOnOperation() override {
    if (!machine::getTargetOrDefault(getOperation()).isGpu())
      return;
    getOperation()->walk([&](Operation *op) {
      if (auto attention = dyn_cast<AttentionOp>(op))
        approximate(attention);
      else if (auto backward = dyn_cast<AttentionBackwardOp>(op))
        approximate(backward);
    });
  }

private:
  template <typename OpTy>
  void approximate(OpTy op) {
    if (!getProductType(op).isBF16())
      return;
    op.getScore().walk([&](math::TanhOp tanh) {
      // Other types round the result more than the instruction does, or less.
      if (!tanh.getType().isF32())
        return;
      LDBG() << "tanh at " << tanh.getLoc() << " is the machine's";
      tanh.setFastmath(tanh.getFastmath() | arith::FastMathFlags::afn);
      ++numApproximated;
    });
  }
};
} // namespace
