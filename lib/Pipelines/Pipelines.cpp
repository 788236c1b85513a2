//===- Pipelines.cpp - From an attention graph to LLVM IR -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stages.h"

#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/Differentiate/Passes.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace fovea;

void fovea::addFloatEmulation(OpPassManager &manager) {
  // No target machine computes in bf16; conversions are integer work.
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16"};
  emulate.targetTypeStr = "f32";
  manager.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  manager.addPass(math::createMathExtendToSupportedTypes());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  manager.addPass(arith::createArithExpandOpsPass(expand));
}

void fovea::addMathLowering(OpPassManager &manager) {
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertMathToLibmPass());
}

/// Appends passes from memrefs, scf and vector to the LLVM dialect.
static void addToLLVM(OpPassManager &manager) {
  fovea::addFloatEmulation(manager);
  manager.addPass(fovea::createOutlineParallel());
  manager.addPass(createConvertVectorToSCFPass());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  addCleanup(manager);
  manager.addPass(createSCFToControlFlowPass());
  fovea::addMathLowering(manager);
  ConvertVectorToLLVMPassOptions vectorOptions;
  vectorOptions.vectorTransposeLowering =
      vector::VectorTransposeLowering::Shuffle16x16;
  manager.addPass(createConvertVectorToLLVMPass(vectorOptions));
  manager.addPass(fovea::createHostToLLVM());
  manager.addPass(createReconcileUnrealizedCastsPass());
  addCleanup(manager);
}

void fovea::addCleanup(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void fovea::addImport(OpPassManager &manager) {
  manager.addPass(createRejectRecursion());
  manager.addPass(createExpandScalars());
}

void fovea::addInlining(OpPassManager &manager) {
  addImport(manager);
  manager.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  manager.addPass(createSymbolDCEPass());
}

void fovea::addFoldingOfEmpty(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(attn::createAttnFoldEmpty());
  // There are no remarks on computations for empty tensors only.
  manager.addPass(createCanonicalizerPass());
}

void fovea::addLinalg(OpPassManager &manager) {
  manager.addPass(createAttnToLinalg());
  manager.addPass(createLinalgPrepare());
  addCleanup(manager);
}

void fovea::addBackward(OpPassManager &manager) {
  manager.addPass(attn::createAttnDecomposeBackward());
  addCleanup(manager);
}

void fovea::addBufferization(OpPassManager &manager, bool useStack,
                             bool inPlace) {
  manager.addPass(createSeparateDestinations());
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  HostBufferizeOptions boundaries;
  boundaries.inPlace = inPlace;
  manager.addPass(createHostBufferize(boundaries));
  addCleanup(manager);
  PlaceBuffersOptions placement;
  if (!useStack) {
    placement.stackLimit = 0;
    placement.freeEscaping = false;
  }
  manager.addPass(createPlaceBuffers(placement));
}

fovea::Choices<fovea::Strategy> fovea::getStrategyChoices() {
  static const Choice<Strategy> all[] = {
      {Strategy::Unfused, "unfused", "the graph as written, kernel by kernel"},
      {Strategy::ThreePass, "three-pass", "fused, over the keys three times"},
      {Strategy::TwoPass, "two-pass", "fused, over the keys twice"},
      {Strategy::Fused, "fused", "over the keys once"}};
  return {"strategy", all};
}

fovea::Choices<fovea::Level> fovea::getLevelChoices(bool isGpu) {
  static const Choice<Level> host[] = {
      {Level::Attn, "attn", "the graph"},
      {Level::Fused, "fused", "attention with its schedule"},
      {Level::Tiled, "tiled", "loops over tiles"},
      {Level::LLVM, "llvm", "the LLVM dialect"}};
  static const Choice<Level> gpu[] = {
      {Level::Attn, "attn", "the graph"},
      {Level::Fused, "fused", "attention with its schedule"},
      {Level::Tiled, "tiled", "loops over tiles"},
      {Level::Tile, "tile", "programs of thread blocks, on buffers"},
      {Level::Gpu, "gpu", "kernels in the gpu dialect"},
      {Level::NVVM, "nvvm", "kernels in the NVVM and LLVM dialects"},
      {Level::LLVM, "llvm", "the LLVM dialect, on the host too"}};
  return {"level", isGpu ? llvm::ArrayRef(gpu) : llvm::ArrayRef(host)};
}

int fovea::getPasses(Strategy strategy) {
  switch (strategy) {
  case Strategy::ThreePass:
    return 3;
  case Strategy::TwoPass:
    return 2;
  case Strategy::Unfused:
  case Strategy::Fused:
    return 1;
  }
  llvm_unreachable("unknown strategy");
}

void fovea::addTiling(OpPassManager &manager, Strategy strategy) {
  attn::AttnOnlineSoftmaxOptions online;
  online.passes = getPasses(strategy);
  online.scheduledOnly = true;
  manager.addPass(attn::createAttnOnlineSoftmax(online));
  addCleanup(manager);
  // Elementwise ops around attention get the form that is tiled with it.
  AttnToLinalgOptions elementwise;
  elementwise.scope = "elementwise";
  manager.addPass(createAttnToLinalg(elementwise));
  manager.addPass(createConvertElementwiseToLinalgPass());
  manager.addPass(attn::createAttnTile());
  addCleanup(manager);
}

/// Appends passes from the graph to loops over tiles of attention, or to a
/// level before. Ops that do not become attention stay as they are.
static void addAttention(OpPassManager &manager,
                         const fovea::HostOptions &options) {
  manager.addPass(fovea::attn::createAttnFuse());
  addCleanup(manager);
  manager.addPass(fovea::attn::createAttnPackGroups());
  if (options.selectsSchedules)
    manager.addPass(fovea::attn::createAttnSelectSchedule());
  if (options.level == fovea::Level::Fused)
    return;
  fovea::addTiling(manager, options.strategy);
}

void fovea::buildHostPipeline(OpPassManager &manager,
                              const HostOptions &options) {
  bool isUnfused = options.strategy == Strategy::Unfused;
  addInlining(manager);
  if (options.level == Level::Attn)
    return addCleanup(manager);
  addFoldingOfEmpty(manager);
  if (!isUnfused)
    addAttention(manager, options);
  if (options.level == Level::Fused)
    return;
  if (!isUnfused && options.level != Level::Tiled)
    manager.addPass(attn::createAttnPackQueries());
  addBackward(manager);
  addLinalg(manager);
  LinalgFuseRowsOptions fusion;
  fusion.scope = isUnfused ? "op" : "graph";
  manager.addPass(createLinalgFuseRows(fusion));
  addCleanup(manager);
  if (options.level == Level::Tiled)
    return;
  addBufferization(manager);
  AttnToVectorOptions kernels;
  kernels.exactFunctions = options.exactFunctions;
  manager.addPass(createAttnToVector(kernels));
  manager.addPass(createContractionToVector());
  manager.addPass(createLinalgToVector());
  manager.addPass(createExpandMath());
  addToLLVM(manager);
}

/// Appends passes from linalg on buffers to scalar loops, and further to the
/// LLVM dialect.
static void addScalarLoops(OpPassManager &manager) {
  LinalgToVectorOptions scalars;
  scalars.vectorBytes = 1;
  manager.addPass(createLinalgToVector(scalars));
  addToLLVM(manager);
}

void fovea::buildReferencePipeline(OpPassManager &manager,
                                   const ReferenceOptions &options) {
  addInlining(manager);
  if (options.fused) {
    manager.addPass(attn::createAttnFuse());
    addCleanup(manager);
  }
  addBackward(manager);
  if (!options.ownTypes)
    manager.addPass(createPromoteToF64());
  addLinalg(manager);
  addBufferization(manager, /*useStack=*/true, /*inPlace=*/false);
  addScalarLoops(manager);
}

void fovea::buildCheckedPipeline(OpPassManager &manager) {
  addInlining(manager);
  addBackward(manager);
  addLinalg(manager);
  addBufferization(manager, /*useStack=*/true, /*inPlace=*/false);
  manager.addPass(createInstrumentAccesses());
  addScalarLoops(manager);
}

void fovea::buildGradientPipeline(OpPassManager &manager,
                                  const GradientOptions &options) {
  if (options.gpu) {
    AttachGpuTargetOptions target;
    target.target = options.gpu->name.str();
    manager.addPass(createAttachGpuTarget(target));
  }
  addImport(manager);
  // Functions that others call stay until these are differentiated themselves.
  manager.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  addFoldingOfEmpty(manager);
  if (!options.textbook) {
    manager.addPass(attn::createAttnFuse());
    addCleanup(manager);
  }
  attn::AttnDifferentiateOptions differentiate;
  differentiate.function = options.function;
  manager.addPass(attn::createAttnDifferentiate(differentiate));
  if (!options.textbook) {
    attn::AttnInsertRecomputationOptions recomputation;
    recomputation.policy = options.recomputation;
    manager.addPass(attn::createAttnInsertRecomputation(recomputation));
  }
  addCleanup(manager);
  if (!options.partition)
    return;
  manager.addPass(attn::createAttnPartitionGradient());
  addCleanup(manager);
}
