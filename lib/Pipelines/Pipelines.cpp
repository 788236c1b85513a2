//===- Pipelines.cpp - From an attention graph to LLVM IR -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Pipelines/Pipelines.h"

#include "fovea/Conversion/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

static void addCleanup(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

/// From memrefs, scf and vector to the LLVM dialect.
static void addToLLVM(OpPassManager &manager) {
  // No machine that we target computes in bf16; conversions are integer work.
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16"};
  emulate.targetTypeStr = "f32";
  manager.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  manager.addPass(math::createMathExtendToSupportedTypes());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  manager.addPass(arith::createArithExpandOpsPass(expand));
  manager.addPass(fovea::createOutlineParallel());
  manager.addPass(createConvertVectorToSCFPass());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  addCleanup(manager);
  manager.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectorOptions;
  vectorOptions.vectorTransposeLowering =
      vector::VectorTransposeLowering::Shuffle16x16;
  manager.addPass(createConvertVectorToLLVMPass(vectorOptions));
  manager.addPass(fovea::createHostToLLVM());
  manager.addPass(createReconcileUnrealizedCastsPass());
  addCleanup(manager);
}

/// From linalg on tensors to linalg on memrefs, buffers placed.
static void addBufferization(OpPassManager &manager) {
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  manager.addPass(fovea::createHostBufferize());
  addCleanup(manager);
  manager.addPass(fovea::createPlaceBuffers());
}

void fovea::buildHostPipeline(OpPassManager &manager,
                              const HostOptions &options) {
  if (options.level == Level::Attn)
    return;
  manager.addPass(createAttnToLinalg());
  manager.addPass(createLinalgPrepare());
  addCleanup(manager);
  LinalgFuseRowsOptions fusion;
  fusion.scope = options.strategy == Strategy::Unfused ? "op" : "graph";
  manager.addPass(createLinalgFuseRows(fusion));
  addCleanup(manager);
  if (options.level != Level::LLVM)
    return;
  addBufferization(manager);
  manager.addPass(createLinalgToVector());
  addToLLVM(manager);
}

void fovea::buildReferencePipeline(OpPassManager &manager) {
  manager.addPass(createPromoteToF64());
  manager.addPass(createAttnToLinalg());
  manager.addPass(createLinalgPrepare());
  addCleanup(manager);
  addBufferization(manager);
  LinalgToVectorOptions scalars;
  scalars.vectorBytes = 1;
  manager.addPass(createLinalgToVector(scalars));
  addToLLVM(manager);
}
