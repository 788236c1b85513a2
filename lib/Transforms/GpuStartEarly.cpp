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

/// Returns true if `op`, without the ops in it, touches no memory that another
/// kernel may write: it computes, prepares barriers in shared memory, waits for
/// threads of the block, or brings descriptors of tensors nearer.
static bool onlyPrepares(Operation *op) {
  constexpr StringLiteral kInstructions[] = {
      "mbarrier.init.", "fence.mbarrier_init.", "prefetch.tensormap "};
  if (auto text = dyn_cast<LLVM::InlineAsmOp>(op))
    return llvm::any_of(kInstructions, [&](StringRef name) {
      return text.getAsmString().starts_with(name);
    });
  return op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
         isMemoryEffectFree(op) || isa<NVVM::BarrierOp, NVVM::ShflOp>(op);
}

/// Returns true if `op` and all ops in it only prepare a kernel.
static bool isPreparation(Operation *op) {
  return !op->walk([](Operation *nested) {
              return onlyPrepares(nested) ? WalkResult::advance()
                                          : WalkResult::interrupt();
            }).wasInterrupted();
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
