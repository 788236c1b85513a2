//===- PlaceBuffers.cpp - place-buffers -----------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Loops.h"
#include "fovea/Support/DebugLog.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"

#define DEBUG_TYPE "place-buffers"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_PLACEBUFFERS
#include "fovea/Transforms/Passes.h.inc"

/// Returns the bytes of a buffer of static size, or nothing.
static std::optional<int64_t> getStaticBytes(MemRefType type) {
  if (!type.hasStaticShape() || !type.getLayout().isIdentity() ||
      !type.getElementType().isIntOrIndexOrFloat())
    return std::nullopt;
  int64_t bytes = type.getElementType().isIndex()
                      ? 8
                      : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t size : type.getShape())
    if (llvm::MulOverflow(bytes, size, bytes))
      return std::nullopt;
  return bytes;
}

namespace {
struct PlaceBuffers final : impl::PlaceBuffersBase<PlaceBuffers> {
  using PlaceBuffersBase::PlaceBuffersBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    PlaceBuffersBase::getDependentDialects(registry);
    // Dialects that the ownership-based fallback may load.
    getFallback().getDependentDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<std::pair<memref::AllocOp, Operation *>> lastUses;
    bool complicated = false;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isDeclaration())
        continue;
      BufferViewFlowAnalysis views(function);
      SmallVector<memref::AllocOp> allocations;
      function.walk([&](memref::AllocOp op) { allocations.push_back(op); });
      DenseMap<Block *, int64_t> stackBytes;
      for (memref::AllocOp alloc : allocations) {
        auto [lastUse, escapes, returned] = analyse(alloc, views);
        if (!escapes && !returned && putOnStack(alloc, stackBytes))
          continue;
        complicated |= escapes;
        LDBG() << alloc.getType() << " at " << alloc.getLoc() << ": "
               << (escapes    ? "in the heap, and leaves its block"
                   : returned ? "in the heap, and returned"
                              : "in the heap, freed after its last use");
        if (!escapes && !returned)
          lastUses.push_back({alloc, lastUse});
      }
    }
    if (complicated && freeEscaping) {
      OpPassManager fallback = getFallback();
      if (failed(runPipeline(fallback, module)))
        signalPassFailure();
      return;
    }
    for (auto [alloc, lastUse] : lastUses) {
      OpBuilder builder(alloc->getContext());
      builder.setInsertionPointAfter(lastUse);
      memref::DeallocOp::create(builder, alloc.getLoc(), alloc);
      ++numFreed;
    }
  }

  static OpPassManager getFallback() {
    OpPassManager fallback("builtin.module");
    bufferization::buildBufferDeallocationPipeline(fallback);
    fallback.addPass(createConvertBufferizationToMemRefPass());
    return fallback;
  }

  struct Uses {
    /// The last op in the allocation's block that may use it.
    Operation *last;
    /// True if the buffer leaves its block other than by the function's return.
    bool escapes;
    /// True if the function returns the buffer.
    bool returned;
  };

  static Uses analyse(memref::AllocOp alloc,
                      const BufferViewFlowAnalysis &views) {
    Block *block = alloc->getBlock();
    Uses uses = {alloc, false, false};
    for (Value alias : views.resolve(alloc))
      for (Operation *user : alias.getUsers()) {
        Operation *top = block->findAncestorOpInBlock(*user);
        if (!top) {
          uses.escapes = true;
          continue;
        }
        if (top->hasTrait<OpTrait::IsTerminator>()) {
          bool isReturn = isa<func::ReturnOp>(top);
          uses.returned |= isReturn;
          uses.escapes |= !isReturn;
          continue;
        }
        if (uses.last->isBeforeInBlock(top))
          uses.last = top;
      }
    return uses;
  }

  bool putOnStack(memref::AllocOp alloc, DenseMap<Block *, int64_t> &used) {
    MemRefType type = alloc.getType();
    std::optional<int64_t> bytes = getStaticBytes(type);
    if (!bytes || *bytes > stackLimit)
      return false;
    Block *block = getStackBlock(alloc);
    if (!block || used[block] + *bytes > stackTotal)
      return false;
    used[block] += *bytes;
    LDBG() << type << " at " << alloc.getLoc() << ": on the stack, which has "
           << used[block] << " of " << stackTotal << " bytes";
    OpBuilder builder = OpBuilder::atBlockBegin(block);
    Value alloca =
        memref::AllocaOp::create(builder, alloc.getLoc(), type, ValueRange(),
                                 builder.getI64IntegerAttr(64));
    alloc.replaceAllUsesWith(alloca);
    alloc.erase();
    ++numStack;
    return true;
  }
};
} // namespace
} // namespace fovea
