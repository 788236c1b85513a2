//===- Pipelines.cpp - From an attention graph to LLVM IR -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Pipelines/Pipelines.h"

#include "fovea/Conversion/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void fovea::buildHostPipeline(OpPassManager &manager,
                              const HostOptions &options) {
  if (options.level == Level::Attn)
    return;
  manager.addPass(createAttnToLinalg());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void fovea::buildReferencePipeline(OpPassManager &manager) {
  manager.addPass(createAttnToLinalg());
}
