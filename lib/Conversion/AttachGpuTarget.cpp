//===- AttachGpuTarget.cpp - attach-gpu-target ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Conversion/Passes.h"
#include "fovea/Target/GpuModel.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_ATTACHGPUTARGET
#include "fovea/Conversion/Passes.h.inc"

namespace {
struct AttachGpuTarget final : impl::AttachGpuTargetBase<AttachGpuTarget> {
  using AttachGpuTargetBase::AttachGpuTargetBase;

  void runOnOperation() override {
    std::optional<GpuArch> arch = parseGpuArch(target);
    if (!arch) {
      getOperation().emitError("attach-gpu-target: target is `")
          << target << "`, expected `sm_80` or `sm_90a`";
      return signalPassFailure();
    }
    attn::TargetAttr current = attn::getTarget(getOperation());
    if (current && current.getName() == target)
      return;
    getOperation()->setAttr(attn::kTargetAttrName,
                            getGpuModel(&getContext(), *arch));
  }
};
} // namespace
} // namespace fovea
