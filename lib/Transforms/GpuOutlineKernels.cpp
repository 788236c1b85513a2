//===- GpuOutlineKernels.cpp - gpu-outline-kernels ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Machine/IR/GpuArch.h"
#include "fovea/Transforms/GpuKernels.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;

gpu::GPUModuleOp fovea::getKernelModule(ModuleOp module) {
  return module.lookupSymbol<gpu::GPUModuleOp>(kKernelModule);
}

SmallVector<StringRef> fovea::getKernelNames(gpu::GPUModuleOp kernels) {
  SmallVector<StringRef> names;
  for (Operation &op : *kernels.getBody()) {
    if (auto function = dyn_cast<gpu::GPUFuncOp>(op);
        function && function.isKernel())
      names.push_back(function.getName());
    else if (isa<LLVM::LLVMFuncOp>(op) &&
             op.hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      names.push_back(SymbolTable::getSymbolName(&op).getValue());
  }
  return names;
}

/// Returns true if computing `op` in the kernel is cheaper than passing its
/// result.
static bool isCheap(Operation *op) {
  return matchPattern(op, m_Constant()) || isa<memref::DimOp>(op);
}

/// Returns `name` with the characters replaced that PTX does not allow in
/// names.
static std::string toKernelName(StringRef name) {
  std::string result = name.str();
  for (char &c : result)
    if (!llvm::isAlnum(c) && c != '_')
      c = '_';
  return result;
}

namespace fovea {
#define GEN_PASS_DEF_GPUOUTLINEKERNELS
#include "fovea/Transforms/Passes.h.inc"

namespace {

struct GpuOutlineKernels final
    : impl::GpuOutlineKernelsBase<GpuOutlineKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<std::pair<func::FuncOp, gpu::LaunchOp>> launches;
    for (auto function : module.getOps<func::FuncOp>())
      function.walk([&](gpu::LaunchOp launch) {
        launches.push_back({function, launch});
      });
    if (launches.empty())
      return;
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    UnitAttr::get(&getContext()));
    gpu::GPUModuleOp kernels = getOrCreateKernelModule(module);
    SymbolTable symbols(kernels), hostSymbols(module);
    DenseMap<func::FuncOp, unsigned> numbers;
    for (auto [function, launch] : launches)
      if (failed(outline(launch,
                         toKernelName(function.getName()) + "_" +
                             std::to_string(numbers[function]++),
                         symbols, hostSymbols)))
        return signalPassFailure();
  }

private:
  gpu::GPUModuleOp getOrCreateKernelModule(ModuleOp module) {
    if (gpu::GPUModuleOp kernels = getKernelModule(module))
      return kernels;
    auto builder = OpBuilder::atBlockEnd(module.getBody());
    auto kernels =
        gpu::GPUModuleOp::create(builder, module.getLoc(), kKernelModule);
    machine::TargetAttr target = machine::getTarget(module);
    if (!target || !target.isGpu())
      return kernels;
    const machine::GpuArch &arch = target.getGpuArch();
    llvm::Triple triple("nvptx64-nvidia-cuda");
    kernels.setTargetsAttr(builder.getArrayAttr(NVVM::NVVMTargetAttr::get(
        &getContext(), /*optLevel=*/3, triple.str(), arch.name,
        "+ptx" + std::to_string(arch.ptxVersion))));
    kernels->setAttr(LLVM::LLVMDialect::getTargetTripleAttrName(),
                     builder.getStringAttr(triple.str()));
    kernels->setAttr(LLVM::LLVMDialect::getDataLayoutAttrName(),
                     builder.getStringAttr(triple.computeDataLayout()));
    return kernels;
  }

  LogicalResult outline(gpu::LaunchOp launch, const std::string &name,
                        SymbolTable &symbols, SymbolTable &hostSymbols) {
    if (failed(sinkOperationsIntoLaunchOp(launch, isCheap)))
      return failure();
    SmallVector<Value> operands;
    gpu::GPUFuncOp kernel = outlineKernelFunc(launch, name, operands);
    for (NamedAttribute attribute : launch->getDiscardableAttrs())
      kernel->setAttr(attribute.getName(), attribute.getValue());
    if (failed(takeGlobals(kernel, symbols, hostSymbols)))
      return failure();
    gpu::GPUFuncOp same = findEqual(kernel, symbols);
    if (same) {
      kernel.erase();
      kernel = same;
      ++numShared;
    } else {
      symbols.insert(kernel);
      ++numKernels;
    }
    OpBuilder builder(launch);
    gpu::LaunchFuncOp::create(builder, launch.getLoc(), kernel,
                              launch.getGridSizeOperandValues(),
                              launch.getBlockSizeOperandValues(),
                              launch.getDynamicSharedMemorySize(), operands);
    launch.erase();
    return success();
  }

  /// Copies the constants that a kernel reads into the kernel's module.
  static LogicalResult takeGlobals(gpu::GPUFuncOp kernel, SymbolTable &symbols,
                                   SymbolTable &hostSymbols) {
    WalkResult result = kernel.walk([&](memref::GetGlobalOp get) {
      if (symbols.lookup(get.getName()))
        return WalkResult::advance();
      auto global = hostSymbols.lookup<memref::GlobalOp>(get.getName());
      if (!global) {
        get.emitOpError() << "names @" << get.getName()
                          << ", which is no global of this module";
        return WalkResult::interrupt();
      }
      symbols.insert(global->clone());
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Returns a kernel that differs in its name only.
  static gpu::GPUFuncOp findEqual(gpu::GPUFuncOp kernel, SymbolTable &symbols) {
    auto getAttributes = [](gpu::GPUFuncOp function) {
      NamedAttrList attributes(function->getAttrs());
      attributes.erase(SymbolTable::getSymbolAttrName());
      return attributes.getDictionary(function.getContext());
    };
    for (auto other :
         symbols.getOp()->getRegion(0).front().getOps<gpu::GPUFuncOp>())
      if (getAttributes(other) == getAttributes(kernel) &&
          OperationEquivalence::isRegionEquivalentTo(
              &other.getBody(), &kernel.getBody(),
              OperationEquivalence::IgnoreLocations))
        return other;
    return {};
  }
};

} // namespace
} // namespace fovea
