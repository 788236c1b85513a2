//===- SimulationPipeline.cpp - From a graph to what can be simulated -----===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stages.h"

#include "fovea/Conversion/Passes.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace fovea;

void fovea::buildSimulationPipeline(OpPassManager &manager,
                                    const GpuOptions &options,
                                    bool hasPrograms) {
  if (hasPrograms) {
    addInlining(manager);
    addLinalg(manager);
    addBufferization(manager, /*useStack=*/false);
  } else {
    GpuOptions toTile = options;
    toTile.level = Level::Tile;
    buildGpuPipeline(manager, toTile);
  }
  manager.addPass(createConvertLinalgToLoopsPass());
}
