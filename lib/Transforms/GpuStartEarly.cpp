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

/// Returns true if `op` and the ops in it touch no memory that another kernel
/// may write: they compute, prepare barriers in shared memory, wait for threads of
/// the block, or bring descriptors of tensors nearer.
static bool isPreparation(Operation *op) {
  return !op->walk([](Operation *nested) {
              if (nested->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                  isMemoryEffectFree(nested) ||
                  isa<NVVM::BarrierOp, NVVM::ShflOp>(nested))
                return WalkResult::advance();
              auto text = dyn_cast<LLVM::InlineAsmOp>(nested);
              bool prepares =
                  text && llvm::any_of(
                              ArrayRef<StringRef>{"mbarrier.init.",
                                                  "fence.mbarrier_init.",
                                                  "prefetch.tensormap "},
                              [&](StringRef name) {
                                return text.getAsmString().starts_with(name);
                              });
              return prepares ? WalkResult::advance() : WalkResult::interrupt();
            })
              .wasInterrupted();
}

/// Returns the last op at the start of a kernel that has effects, but only
/// prepares; null if there is none.
static Operation *findPreparation(Block &block) {
  Operation *last = nullptr;
  for (Operation &op : block) {
    if (!isPreparation(&op))
      break;
    if (!isMemoryEffectFree(&op))
      last = &op;
  }
  return last;
}

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
      Block &block = kernel.front();
      if (Operation *last = findPreparation(block))
        builder.setInsertionPointAfter(last);
      else
        builder.setInsertionPointToStart(&block);
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
