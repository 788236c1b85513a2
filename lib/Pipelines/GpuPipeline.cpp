//===- GpuPipeline.cpp - From an attention graph to kernels ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stages.h"

#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/Differentiate/Passes.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Dialect/Tile/Transforms/Passes.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace fovea;

/// Appends passes from fused attention to loops over tiles and, beyond level
/// `tiled`, programs of thread blocks, without their cleanup, which comes with
/// that of backward passes. Attention without a schedule is left to be written
/// out.
static void addAttention(OpPassManager &manager, const GpuOptions &options) {
  attn::AttnOnlineSoftmaxOptions online;
  online.passes = getPasses(options.strategy);
  online.scheduledOnly = true;
  manager.addPass(attn::createAttnOnlineSoftmax(online));
  addCleanup(manager);
  // Elementwise ops on the output, and the rounding of gradients, get the form
  // that is tiled with them.
  AttnToLinalgOptions elementwise;
  elementwise.scope = "elementwise";
  manager.addPass(createAttnToLinalg(elementwise));
  manager.addPass(createConvertElementwiseToLinalgPass());
  attn::AttnTileOptions tiling;
  tiling.fuseProducers = false;
  tiling.exactFunctions = options.exactFunctions;
  manager.addPass(attn::createAttnTile(tiling));
  manager.addPass(attn::createAttnListTiles(
      attn::AttnListTilesOptions{options.deterministic}));
  manager.addPass(attn::createAttnOrderTiles(
      attn::AttnOrderTilesOptions{options.deterministic}));
  manager.addPass(attn::createAttnJoinTables());
  // A program of a thread block asks for the sizes of operands only, not for
  // those of tiles that loops carry.
  manager.addPass(createSCFForLoopCanonicalizationPass());
  manager.addPass(memref::createResolveRankedShapeTypeResultDimsPass());
  if (options.level == Level::Tiled)
    return;
  // This comes before the canonicalizer, to which a loop of one iteration is no
  // loop.
  AttnToTileOptions programs;
  programs.exactFunctions = options.exactFunctions;
  manager.addPass(createAttnToTile(programs));
  addCleanup(manager);
  manager.addPass(tile::createTileSplitColumns());
  manager.addPass(tile::createTileSplitProducts());
  manager.addPass(tile::createTileFormBoxes());
  manager.addPass(tile::createTileHoistRows());
  if (options.deterministic)
    manager.addPass(tile::createTileOrderAdds());
  else
    manager.addPass(tile::createTileGroupBlocks());
  manager.addPass(tile::createTileShareItems());
  manager.addPass(tile::createTilePersist());
  manager.addPass(tile::createTilePrecomputeItems());
  manager.addPass(tile::createTileAssignLayouts());
  if (options.arch->hasBulkCopies) {
    manager.addPass(tile::createTileMultibuffer());
    manager.addPass(tile::createTileStageStores());
    manager.addPass(tile::createTileSpecializeWarps());
    manager.addPass(tile::createTileSkipRows());
    manager.addPass(tile::createTileSwapGroups());
    manager.addPass(tile::createTileOwnSlots());
    manager.addPass(tile::createTileSchedule());
    manager.addPass(tile::createTileExpandPipeline());
    manager.addPass(tile::createTileOverlapItems());
    manager.addPass(tile::createTileReleaseEarly());
    manager.addPass(tile::createTileShareFences());
    manager.addPass(tile::createTileCarryValues());
    manager.addPass(tile::createTileTakeTurns());
    manager.addPass(tile::createTileMulticast());
    manager.addPass(tile::createTileDealItems());
  } else {
    manager.addPass(tile::createTileSkipRows());
    // Copies that do not run ahead need no barriers of their own.
    tile::TileMultibufferOptions rings;
    rings.minStages = 2;
    manager.addPass(tile::createTileMultibuffer(rings));
    manager.addPass(tile::createTilePrefetch());
    manager.addPass(tile::createTileDealItems());
  }
  manager.addPass(tile::createTilePrefetchTables());
  manager.addPass(tile::createTileNarrowPositions());
}

/// Appends the canonicalization of kernels in the LLVM dialect, which also
/// merges blocks that are the same. Looking at all ops again finds nothing.
static void addKernelCanonicalizer(OpPassManager &manager) {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Aggressive);
  config.setMaxIterations(1);
  manager.addPass(createCanonicalizerPass(config));
}

/// Appends passes that lower the kernels from the gpu dialect to the NVVM and
/// LLVM dialects.
static void addDeviceLowering(OpPassManager &manager,
                              const machine::GpuArch &arch) {
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  if (arch.hasDependentLaunch())
    kernels.addPass(createGpuStartEarly());
  kernels.addPass(math::createMathExtendToSupportedTypes());
  ExpandMathOptions math;
  math.all = true;
  kernels.addPass(createExpandMath(math));
  kernels.addPass(createExpandForLLVM());
  kernels.addPass(createCanonicalizeKernels());
  kernels.addPass(createCSEPass());
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createGpuKernelsToNVVM());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  addKernelCanonicalizer(kernels);
}

void fovea::buildGpuHostPipeline(OpPassManager &manager) {
  // The function's scalars that kernels get, and places in loops.
  manager.addPass(createExpandMath());
  addFloatEmulation(manager);
  manager.addPass(createExpandForLLVM());
  addCleanup(manager);
  manager.addPass(createSCFToControlFlowPass());
  addMathLowering(manager);
  manager.addPass(createHostToLLVM());
  manager.addPass(createReconcileUnrealizedCastsPass());
  addCleanup(manager);
}

void fovea::buildGpuKernelPipeline(OpPassManager &manager,
                                   const GpuOptions &options) {
  AttachGpuTargetOptions target;
  target.target = options.arch->name.str();
  manager.addPass(createAttachGpuTarget(target));
  addInlining(manager);
  if (options.level == Level::Attn)
    return addCleanup(manager);
  addFoldingOfEmpty(manager);
  if (options.strategy != Strategy::Unfused) {
    manager.addPass(attn::createAttnFuse());
    addCleanup(manager);
    attn::AttnPackGroupsOptions groups;
    groups.batches = options.packsBatches;
    manager.addPass(attn::createAttnPackGroups(groups));
    manager.addPass(attn::createAttnMatchOperands());
    if (!options.exactFunctions)
      manager.addPass(attn::createAttnApproximate());
    manager.addPass(attn::createAttnTabulateDistances());
    attn::AttnSelectScheduleOptions schedules;
    schedules.passes = getPasses(options.strategy);
    schedules.deterministic = options.deterministic;
    schedules.exactProducts = options.exactFunctions;
    schedules.typicalLength = options.typicalLength;
    schedules.typicalRows = options.typicalRows;
    schedules.tileRows = options.tileRows;
    if (options.selectsSchedules)
      manager.addPass(attn::createAttnSelectSchedule(schedules));
  }
  if (options.level == Level::Fused)
    return;
  if (options.strategy != Strategy::Unfused) {
    manager.addPass(attn::createAttnDivideGroups());
    addAttention(manager, options);
  }
  addBackward(manager);
  addLinalg(manager);
  if (options.strategy != Strategy::Unfused)
    manager.addPass(createLinalgSplitSums());
  LinalgFuseRowsOptions fusion;
  fusion.scope = options.strategy == Strategy::Unfused ? "op" : "graph";
  manager.addPass(createLinalgFuseRows(fusion));
  addCleanup(manager);
  if (options.level == Level::Tiled)
    return;
  addBufferization(manager, /*useStack=*/false);
  if (options.level == Level::Tile)
    return;
  if (options.arch->hasBulkCopies) {
    tile::TilePackOperandsOptions packing;
    packing.outlineTests = options.outlinesTests;
    manager.addPass(tile::createTilePackOperands(packing));
  }
  // Programs of blocks come first, so that scalars in the GPU's memory are also
  // read in them.
  manager.addPass(createTileLaunchToGpu());
  LinalgToGpuOptions kernels;
  kernels.deterministic = options.deterministic;
  manager.addPass(createLinalgToGpu(kernels));
  addCleanup(manager);
  manager.addPass(createGpuJoinLaunches());
  manager.addPass(createGpuOutlineKernels());
  addCleanup(manager);
  if (options.level == Level::Gpu)
    return;
  manager.addPass(createTileToNVVM());
  addDeviceLowering(manager, *options.arch);
  if (options.level == Level::NVVM)
    return;
  manager.addPass(createGpuToRuntime());
}

void fovea::buildGpuPipeline(OpPassManager &manager,
                             const GpuOptions &options) {
  buildGpuKernelPipeline(manager, options);
  if (options.level == Level::LLVM)
    buildGpuHostPipeline(manager);
}
