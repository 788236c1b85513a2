//===- TileToNVVM.cpp - convert-tile-to-nvvm ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CarryUses.h"
#include "PackPairs.h"
#include "Patterns.h"
#include "Rings.h"
#include "Roles.h"
#include "TensorMaps.h"

#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Tile/IR/SharedMemory.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_TILETONVVM
#include "fovea/Conversion/Passes.h.inc"

using namespace tile;

namespace {
struct TileToNVVM final : impl::TileToNVVMBase<TileToNVVM> {
  void runOnOperation() override {
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>())
      if (failed(convert(module)))
        return signalPassFailure();
    if (failed(lowerTensorMaps(getOperation())))
      signalPassFailure();
  }

private:
  LogicalResult convert(gpu::GPUModuleOp module) {
    for (auto kernel : module.getOps<gpu::GPUFuncOp>())
      if (failed(verifyKernel(kernel)))
        return failure();

    WarpNumbers warps(module);
    RingReaders readers(module);
    prepareMaps(module);
    MLIRContext *context = &getContext();
    TileTypeConverter converter;
    RewritePatternSet patterns(context);
    ConversionTarget target(*context);
    populateFragmentPatterns(converter, patterns);
    populateDiagonalPatterns(converter, patterns);
    populateMemoryPatterns(converter, patterns, readers);
    populateSharedFragmentPatterns(converter, patterns);
    populateProductPatterns(converter, patterns);
    populateRingPatterns(converter, patterns, readers);
    populateRolePatterns(converter, patterns, warps);
    populateSignalPatterns(converter, patterns);
    populateTensorMemoryAcceleratorPatterns(converter, patterns, readers);
    populateTurnPatterns(converter, patterns, warps);
    populateWgmmaPatterns(converter, patterns, warps);
    populateWidenPatterns(converter, patterns);
    populateFunctionOpInterfaceTypeConversionPattern<gpu::GPUFuncOp>(patterns,
                                                                     converter);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    target.addIllegalDialect<TileDialect>();
    target.addLegalOp<RolesOp, RoleOp, ReturnOp>();
    target.addDynamicallyLegalOp<gpu::GPUFuncOp>([&](gpu::GPUFuncOp kernel) {
      return converter.isSignatureLegal(kernel.getFunctionType());
    });
    target.markUnknownOpDynamicallyLegal(
        [&](Operation *op) { return converter.isLegal(op); });
    describeTensorMaps(module);
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return failure();
    packPairs(module);
    carryUses(module);
    return lowerRoles(module, warps);
  }

  /// Checks the properties that patterns rely on.
  LogicalResult verifyKernel(gpu::GPUFuncOp kernel) {
    WalkResult result = kernel.walk([&](Operation *op) {
      if (!isa_and_present<TileDialect>(op->getDialect()))
        return WalkResult::advance();
      ++numOps;
      if (!kernel.getKnownBlockSize()) {
        op->emitOpError("stands in a kernel without a known block size");
        return WalkResult::interrupt();
      }
      if (hasTiles(op) && !op->hasAttr(kSharedOffsetAttrName)) {
        op->emitOpError("has no place in shared memory; see "
                        "convert-tile-launch-to-gpu");
        return WalkResult::interrupt();
      }
      for (Type type : op->getResultTypes()) {
        auto fragment = dyn_cast<FragmentType>(type);
        if (!fragment)
          continue;
        if (!fragment.getLayout()) {
          op->emitOpError("has a fragment without a layout, ")
              << fragment << "; assign layouts first";
          return WalkResult::interrupt();
        }
        if (fragment.getLayout().getNumThreads() != getNumThreads(op)) {
          op->emitOpError("has a fragment over ")
              << fragment.getLayout().getNumThreads() << " threads, but "
              << getNumThreads(op) << " run it";
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }
};
} // namespace
} // namespace fovea
