//===- Launches.cpp - Launches of the kernels of a module -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launches.h"

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace fovea;

/// Returns the product of three sizes; nullopt if one is known at run time
/// only.
static std::optional<int64_t> multiply(mlir::gpu::KernelDim3 sizes) {
  int64_t product = 1;
  for (mlir::Value size : {sizes.x, sizes.y, sizes.z}) {
    std::optional<int64_t> constant = mlir::getConstantIntValue(size);
    if (!constant)
      return std::nullopt;
    product *= *constant;
  }
  return product;
}

static mlir::FileLineColLoc findPlace(mlir::Operation *op) {
  return op->getLoc()->findInstanceOf<mlir::FileLineColLoc>();
}

/// Returns the op of the graph that another op was made from.
static mlir::Operation *findSource(mlir::ModuleOp graph, mlir::Operation *op) {
  mlir::FileLineColLoc place = findPlace(op);
  mlir::Operation *source = nullptr;
  if (place)
    graph.walk([&](mlir::Operation *candidate) {
      if (findPlace(candidate) != place)
        return mlir::WalkResult::advance();
      source = candidate;
      return mlir::WalkResult::interrupt();
    });
  return source;
}

/// Records that a kernel only copies or only fills memory, if that is so.
static void classify(mlir::gpu::GPUFuncOp kernel, KernelLaunch &launch) {
  bool reads = false, computes = false;
  kernel.walk([&](mlir::Operation *op) {
    auto isFloat = [](mlir::Type type) {
      return mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type)) &&
             !mlir::isa<mlir::BaseMemRefType>(type);
    };
    bool isRead = mlir::hasEffect<mlir::MemoryEffects::Read>(op);
    reads |= isRead;
    computes |= llvm::any_of(op->getResultTypes(), isFloat) && !isRead &&
                !op->hasTrait<mlir::OpTrait::ConstantLike>();
    computes |= mlir::isa<tile::TileDialect>(op->getDialect());
  });
  launch.isCopy = reads && !computes;
  launch.isFill = !reads && !computes;
}

llvm::SmallVector<KernelLaunch> fovea::findLaunches(mlir::ModuleOp lowered,
                                                    mlir::ModuleOp graph) {
  llvm::SmallVector<KernelLaunch> launches;
  mlir::SymbolTableCollection symbols;
  lowered.walk<mlir::WalkOrder::PreOrder>([&](mlir::gpu::LaunchFuncOp op) {
    KernelLaunch &launch = launches.emplace_back();
    launch.kernel = op.getKernelName().str();
    if (mlir::FileLineColLoc place = findPlace(op))
      launch.line = place.getLine();
    if (mlir::Operation *source = findSource(graph, op))
      launch.op = source->getName().getStringRef().str();
    launch.blocks = multiply(op.getGridSizeOperandValues());
    launch.threads = multiply(op.getBlockSizeOperandValues());
    launch.dynamicSharedBytes = 0;
    if (mlir::Value bytes = op.getDynamicSharedMemorySize())
      launch.dynamicSharedBytes = mlir::getConstantIntValue(bytes);
    if (auto kernel = symbols.lookupNearestSymbolFrom<mlir::gpu::GPUFuncOp>(
            op, op.getKernel()))
      classify(kernel, launch);
    launch.isConditional = op->getParentOfType<mlir::scf::IfOp>() != nullptr;
    launch.isInLoop =
        op->getParentOfType<mlir::LoopLikeOpInterface>() != nullptr;
  });
  return launches;
}
