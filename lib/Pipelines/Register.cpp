//===- Register.cpp - Dialects, passes and pipelines for the tools --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/Differentiate/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/BufferizableOpInterfaceImpl.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Dialect/Tile/Transforms/BufferizableOpInterfaceImpl.h"
#include "fovea/Dialect/Tile/Transforms/Passes.h"
#include "fovea/Pipelines/Pipelines.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/BufferViewFlowOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/InlinerInterfaceImpl.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/TilingInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/BufferViewFlowOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/TensorTilingInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/Transforms/SubsetOpInterfaceImpl.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

using namespace mlir;

void fovea::registerAllDialects(DialectRegistry &registry) {
  registry
      .insert<affine::AffineDialect, arith::ArithDialect, attn::AttnDialect,
              bufferization::BufferizationDialect, cf::ControlFlowDialect,
              func::FuncDialect, gpu::GPUDialect, index::IndexDialect,
              linalg::LinalgDialect, LLVM::LLVMDialect, machine::MachineDialect,
              math::MathDialect, memref::MemRefDialect, NVVM::NVVMDialect,
              scf::SCFDialect, tensor::TensorDialect, tile::TileDialect,
              ub::UBDialect, vector::VectorDialect>();

  attn::registerBufferizableOpInterfaceExternalModels(registry);
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(
      registry);
  cf::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tile::registerBufferizableOpInterfaceExternalModels(registry);
  vector::registerBufferizableOpInterfaceExternalModels(registry);

  cf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  scf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  arith::registerBufferViewFlowOpInterfaceExternalModels(registry);
  memref::registerBufferViewFlowOpInterfaceExternalModels(registry);
  memref::registerAllocationOpInterfaceExternalModels(registry);

  linalg::registerSubsetOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  vector::registerSubsetOpInterfaceExternalModels(registry);

  linalg::registerTilingInterfaceExternalModels(registry);
  tensor::registerTilingInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);

  affine::registerValueBoundsOpInterfaceExternalModels(registry);
  arith::registerValueBoundsOpInterfaceExternalModels(registry);
  linalg::registerValueBoundsOpInterfaceExternalModels(registry);
  memref::registerValueBoundsOpInterfaceExternalModels(registry);
  scf::registerValueBoundsOpInterfaceExternalModels(registry);
  tensor::registerValueBoundsOpInterfaceExternalModels(registry);
  vector::registerValueBoundsOpInterfaceExternalModels(registry);

  func::registerInlinerExtension(registry);
  LLVM::registerInlinerInterface(registry);
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

namespace {
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Option<fovea::Strategy> strategy{
      *this, "strategy", llvm::cl::desc("How attention is computed"),
      llvm::cl::init(fovea::Strategy::Fused), fovea::getStrategyChoices()};
};

struct HostPipelineOptions : PipelineOptions {
  Option<bool> exactFunctions{
      *this, "exact-functions",
      llvm::cl::desc("Compute powers of two as exactly for 16-bit types as for "
                     "f32"),
      llvm::cl::init(false)};
  Option<fovea::Level> level{*this, "level",
                             llvm::cl::desc("Where the pipeline stops"),
                             llvm::cl::init(fovea::Level::LLVM),
                             fovea::getLevelChoices(/*isGpu=*/false)};
};

struct GpuPipelineOptions : PipelineOptions {
  Option<bool> deterministic{
      *this, "deterministic",
      llvm::cl::desc("Fix the order of all sums, those between blocks too"),
      llvm::cl::init(false)};
  Option<bool> exactFunctions{
      *this, "exact-functions",
      llvm::cl::desc("Never use a GPU's approximate functions in scores and on "
                     "attention's output, nor products of parts of f32"),
      llvm::cl::init(false)};
  Option<std::string> target{
      *this, "target", llvm::cl::desc("The GPU that code is for, by its name"),
      llvm::cl::init("sm_90a")};
  Option<fovea::Level> level{*this, "level",
                             llvm::cl::desc("Where the pipeline stops"),
                             llvm::cl::init(fovea::Level::LLVM),
                             fovea::getLevelChoices(/*isGpu=*/true)};
};

struct GradientPipelineOptions : PassPipelineOptions<GradientPipelineOptions> {
  Option<std::string> function{
      *this, "function",
      llvm::cl::desc("Function to differentiate; all public ones if empty"),
      llvm::cl::init("")};
  Option<bool> textbook{
      *this, "textbook",
      llvm::cl::desc("Differentiate the graph op by op, as it is written"),
      llvm::cl::init(false)};
  Option<fovea::attn::Recomputation> recomputation{
      *this, "recompute",
      llvm::cl::desc("Where probabilities of fused attention are recomputed"),
      llvm::cl::init(fovea::attn::Recomputation::Auto),
      fovea::attn::getRecomputationChoices()};
  Option<bool> partition{
      *this, "partition",
      llvm::cl::desc("Split forward and backward pass into two functions"),
      llvm::cl::init(false)};
};
} // namespace

void fovea::registerFoveaPasses() {
  registerConversionPasses();
  registerTransformsPasses();
  attn::registerAttnDifferentiatePasses();
  attn::registerAttnPasses();
  tile::registerTilePasses();
  PassPipelineRegistration<HostPipelineOptions>(
      "fovea-host-pipeline", "Compiles attention graphs for the host",
      [](OpPassManager &manager, const HostPipelineOptions &options) {
        buildHostPipeline(
            manager, {options.strategy, options.level, options.exactFunctions});
      });
  PassPipelineRegistration<GpuPipelineOptions>(
      "fovea-gpu-pipeline", "Compiles attention graphs for a GPU",
      [](OpPassManager &manager, const GpuPipelineOptions &options) {
        fovea::GpuOptions gpu{options.strategy, options.level,
                              fovea::machine::GpuArch::find(options.target),
                              options.deterministic, options.exactFunctions};
        if (gpu.arch)
          return buildGpuPipeline(manager, gpu);
        // The error lists the valid names.
        fovea::AttachGpuTargetOptions target;
        target.target = options.target;
        manager.addPass(fovea::createAttachGpuTarget(target));
      });
  PassPipelineRegistration<GradientPipelineOptions>(
      "fovea-gradient-pipeline", "Adds gradients to attention graphs",
      [](OpPassManager &manager, const GradientPipelineOptions &options) {
        buildGradientPipeline(manager,
                              {options.function, options.textbook,
                               options.recomputation, options.partition,
                               /*gpu=*/nullptr});
      });
  PassPipelineRegistration<>(
      "fovea-reference-pipeline",
      "Compiles a graph to its unfused, scalar f64 reference",
      [](OpPassManager &manager) { buildReferencePipeline(manager); });
}
