//===- AttachGpuTarget.cpp - attach-gpu-target ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Transforms/Passes.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_ATTACHGPUTARGET
#include "fovea/Transforms/Passes.h.inc"

namespace {
struct AttachGpuTarget final : impl::AttachGpuTargetBase<AttachGpuTarget> {
  using AttachGpuTargetBase::AttachGpuTargetBase;

  void runOnOperation() override {
    const machine::GpuArch *arch = machine::GpuArch::find(target);
    if (!arch) {
      getOperation().emitError("attach-gpu-target: target is `")
          << target << "`, expected " << machine::GpuArch::listNames();
      return signalPassFailure();
    }
    machine::TargetAttr current = machine::getTarget(getOperation());
    if (current && current.getName() == target)
      return;
    getOperation()->setAttr(machine::kTargetAttrName,
                            machine::getTypicalGpu(&getContext(), *arch));
  }
};
} // namespace
} // namespace fovea
