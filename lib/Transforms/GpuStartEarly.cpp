//===- GpuStartEarly.cpp - gpu-start-early --------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

/// `nvvm.griddepcontrol wait` does not say that it touches memory: loads could
/// go past it.
static void emitWait(ImplicitLocOpBuilder &builder) {
  LLVM::InlineAsmOp::create(builder, TypeRange(), ValueRange(),
                            "griddepcontrol.wait;", "~{memory}",
                            /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::TailCallKind::None, LLVM::AsmDialectAttr{},
                            /*operand_attrs=*/ArrayAttr{});
}

namespace fovea {
#define GEN_PASS_DEF_GPUSTARTEARLY
#include "fovea/Transforms/Passes.h.inc"

namespace {

struct GpuStartEarly final : impl::GpuStartEarlyBase<GpuStartEarly> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      if (!kernel.isKernel() || kernel->hasAttr(machine::kStartsEarlyAttrName))
        continue;
      ImplicitLocOpBuilder builder(kernel.getLoc(), &getContext());
      builder.setInsertionPointToStart(&kernel.front());
      // A kernel signals its successor when its predecessor is complete: no
      // kernel waits for one that itself waits.
      emitWait(builder);
      NVVM::GriddepcontrolOp::create(
          builder, NVVM::GridDepActionKind::launch_dependents);
      kernel->setAttr(machine::kStartsEarlyAttrName, builder.getUnitAttr());
      ++numKernels;
    }
  }
};

} // namespace
} // namespace fovea
