//===- LinalgToGpu.cpp - convert-linalg-to-gpu ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First every op that touches memory becomes a launch of its own, or is moved
// into one. Then only arithmetic on sizes, views, allocations and control flow
// are left on the host, and the elements that they need of the GPU's memory are
// copied.
//
//===----------------------------------------------------------------------===//

#include "HostLoops.h"
#include "Launch.h"
#include "ParallelLoops.h"
#include "PointLoops.h"
#include "RowLoops.h"
#include "fovea/Analysis/Loops.h"
#include "fovea/Analysis/Memory.h"

#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Machine/IR/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_LINALGTOGPU
#include "fovea/Conversion/Passes.h.inc"

namespace {

struct LinalgToGpu final : impl::LinalgToGpuBase<LinalgToGpu> {
  using LinalgToGpuBase::LinalgToGpuBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto function = dyn_cast<func::FuncOp>(op))
        functions.push_back(function);
      return isa<func::FuncOp, gpu::GPUModuleOp>(op) ? WalkResult::skip()
                                                     : WalkResult::advance();
    });
    for (func::FuncOp function : functions)
      if (failed(convert(function)))
        return signalPassFailure();
  }

private:
  /// Of the function that is converted.
  DenseSet<Value> writtenOperands;

  /// Calls `visit` for every op that the host would execute.
  static void walkHost(func::FuncOp function,
                       function_ref<void(Operation *)> visit) {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      visit(op);
      return isa<func::FuncOp>(op) || (isControl(op) && !isScalarProgram(op))
                 ? WalkResult::advance()
                 : WalkResult::skip();
    });
  }
  static bool isControl(Operation *op) {
    return isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp>(op);
  }

  /// The host starts kernels one after another: a parallel loop around kernels
  /// becomes a sequential loop on the host.
  static LogicalResult serializeAroundKernels(func::FuncOp function) {
    SmallVector<scf::ForallOp> parallel;
    function.walk([&](scf::ForallOp loop) {
      if (loop.getNumResults() == 0 &&
          loop.walk([](gpu::LaunchOp) { return WalkResult::interrupt(); })
              .wasInterrupted())
        parallel.push_back(loop);
    });
    IRRewriter rewriter(function.getContext());
    for (scf::ForallOp loop : parallel) {
      rewriter.setInsertionPoint(loop);
      if (failed(scf::forallToForLoop(rewriter, loop)))
        return failure();
    }
    return success();
  }

  /// Returns the operands that the function may write.
  static DenseSet<Value> findWrittenOperands(func::FuncOp function) {
    DenseSet<Value> written;
    auto note = [&](Value value) {
      if (isa<MemRefType>(value.getType()) && isOperand(value))
        written.insert(getBase(value));
    };
    function.walk([&](Operation *op) {
      auto interface = dyn_cast<MemoryEffectOpInterface>(op);
      if (!interface) {
        if (!op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
            !op->hasTrait<OpTrait::IsTerminator>() &&
            !isa<func::FuncOp, gpu::LaunchOp>(op))
          llvm::for_each(op->getOperands(), note);
        return;
      }
      SmallVector<MemoryEffects::EffectInstance> effects;
      interface.getEffects<MemoryEffects::Write>(effects);
      for (const MemoryEffects::EffectInstance &effect : effects)
        if (Value value = effect.getValue())
          note(value);
    });
    return written;
  }

  LogicalResult convert(func::FuncOp function) {
    if (failed(serializeAroundKernels(function)))
      return failure();
    writtenOperands = findWrittenOperands(function);
    SmallVector<Operation *> work;
    walkHost(function, [&](Operation *op) {
      if (isa<linalg::LinalgOp, memref::CopyOp, scf::ForallOp, memref::LoadOp,
              memref::StoreOp>(op) ||
          isScalarProgram(op))
        work.push_back(op);
    });
    OpBuilder builder(&getContext());
    for (Operation *op : work)
      if (failed(convertOp(builder, op)))
        return failure();

    sinkDeviceValues(function);
    if (failed(copyConstants(builder, function)))
      return failure();
    readOnHost(function);
    return success();
  }

  LogicalResult convertOp(OpBuilder &builder, Operation *op) {
    builder.setInsertionPoint(op);
    if (auto copy = dyn_cast<memref::CopyOp>(op)) {
      if (copy.getSource() != copy.getTarget()) {
        if (!isa<MemRefType>(copy.getSource().getType()) ||
            !isa<MemRefType>(copy.getTarget().getType()))
          return op->emitOpError(
              "of an unranked memref cannot become a kernel");
        linalg::LinalgOp generic = createCopy(builder, copy);
        copy.erase();
        return convertLinalg(builder, generic);
      }
      copy.erase();
      return success();
    }
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      if (!linalgOp.hasPureBufferSemantics())
        return op->emitOpError("has operands that are tensors, expected "
                               "memrefs: run bufferization first");
      return convertLinalg(builder, linalgOp);
    }
    if (auto forall = dyn_cast<scf::ForallOp>(op)) {
      if (forall->getNumResults() != 0)
        return op->emitOpError("has results that are tensors, expected "
                               "memrefs: run bufferization first");
      ++numLoops;
      return convertParallelLoop(builder, forall);
    }
    if (isScalarProgram(op)) {
      ++numPrograms;
      return convertScalarProgram(
          builder, op, deterministic,
          [&](linalg::LinalgOp own) { return convertOp(builder, own); });
    }
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      snapshot(builder, load);
      return success();
    }
    auto store = cast<memref::StoreOp>(op);
    if (isHostBuffer(store.getMemref()))
      return success();
    Value one = arith::ConstantIndexOp::create(builder, op->getLoc(), 1);
    emitItemLaunch(builder, op->getLoc(), one, machine::kLargestGrid,
                   [&](gpu::LaunchOp, Value, Value) { builder.clone(*op); });
    op->erase();
    ++numScalars;
    return success();
  }

  LogicalResult convertLinalg(OpBuilder &builder, linalg::LinalgOp op) {
    Location loc = op.getLoc();
    ++numOps;
    if (scf::ForallOp rows = createRowLoop(builder, op))
      return convertParallelLoop(builder, rows);
    builder.setInsertionPoint(op);
    if (!writesApart(op)) {
      // Threads would write the same element: one thread does it all.
      remark::missed(loc, remark::RemarkOpts::name("one-thread")
                              .category("convert-linalg-to-gpu"))
          << "may write an element twice: one thread of the GPU does it all";
      Value one = arith::ConstantIndexOp::create(builder, loc, 1);
      emitItemLaunch(
          builder, loc, one, machine::kLargestGrid,
          [&](gpu::LaunchOp, Value, Value) { emitLoops(builder, op); });
      op.erase();
      return success();
    }
    // Neighbouring threads write neighbouring elements of the first result.
    SmallVector<Value> sizes = getLoopSizes(builder, op);
    SmallVector<unsigned> dims = getPointDims(op);
    SmallVector<Value> parallel =
        llvm::map_to_vector(dims, [&](unsigned dim) { return sizes[dim]; });
    Value items = getProduct(builder, loc, parallel);
    emitUnlessEmpty(builder, loc, items, [&] {
      emitItemLaunch(builder, loc, items, machine::kLargestGrid,
                     [&](gpu::LaunchOp, Value item, Value) {
                       SmallVector<Value> ivs(sizes.size());
                       for (auto [dim, iv] :
                            llvm::zip_equal(dims, delinearize(builder, loc,
                                                              item, parallel)))
                         ivs[dim] = iv;
                       emitPoint(builder, op, sizes, ivs);
                     });
    });
    op.erase();
    return success();
  }

  /// Keeps a copy of an element that the host loads, because it may be
  /// overwritten before a kernel uses it.
  void snapshot(OpBuilder &builder, memref::LoadOp load) {
    Value base = getBase(load.getMemref());
    if (isHostBuffer(base) ||
        (isOperand(base) && !writtenOperands.contains(base)))
      return;
    Location loc = load.getLoc();
    auto type = MemRefType::get({}, load.getType());
    Value copy = memref::AllocOp::create(builder, loc, type);
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    emitItemLaunch(builder, loc, one, machine::kLargestGrid,
                   [&](gpu::LaunchOp, Value, Value) {
                     Value value = builder.clone(*load)->getResult(0);
                     memref::StoreOp::create(builder, loc, value, copy);
                   });
    load.replaceAllUsesWith(
        memref::LoadOp::create(builder, loc, copy).getResult());
    // The copy is freed behind the last kernel that may read it.
    builder.setInsertionPoint(load->getBlock()->getTerminator());
    memref::DeallocOp::create(builder, loc, copy);
    load.erase();
    ++numScalars;
  }

  /// Returns true if `value` is computed from the contents of the device's
  /// memory, by ops that a kernel can execute just as well.
  static bool isDeviceValue(Value value, DenseMap<Value, bool> &known) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumRegions() != 0)
      return false;
    auto found = known.find(value);
    if (found != known.end())
      return found->second;
    bool result = isa<memref::GetGlobalOp>(op);
    if (auto load = dyn_cast<memref::LoadOp>(op))
      result = !isHostBuffer(load.getMemref());
    else if (isPure(op))
      result |= llvm::any_of(op->getOperands(), [&](Value operand) {
        return isDeviceValue(operand, known);
      });
    known[value] = result;
    return result;
  }

  static void sinkDeviceValues(gpu::LaunchOp launch) {
    DenseMap<Value, bool> known;
    IRMapping mapping;
    OpBuilder builder(&launch.getBody().front(),
                      launch.getBody().front().begin());
    std::function<void(Value)> sink = [&](Value value) {
      if (mapping.contains(value) || !isDeviceValue(value, known))
        return;
      Operation *op = value.getDefiningOp();
      for (Value operand : op->getOperands())
        sink(operand);
      builder.clone(*op, mapping);
    };
    llvm::SetVector<Value> captured;
    launch.getBody().walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (!launch.getBody().isAncestor(operand.getParentRegion()))
          captured.insert(operand);
    });
    for (Value value : captured) {
      sink(value);
      if (Value own = mapping.lookupOrNull(value))
        value.replaceUsesWithIf(own, [&](OpOperand &use) {
          return launch.getBody().isAncestor(
                     use.getOwner()->getParentRegion()) &&
                 use.get() != own;
        });
    }
  }

  static void sinkDeviceValues(func::FuncOp function) {
    SmallVector<gpu::LaunchOp> launches;
    walkHost(function, [&](Operation *op) {
      if (auto launch = dyn_cast<gpu::LaunchOp>(op))
        launches.push_back(launch);
    });
    for (gpu::LaunchOp launch : launches)
      sinkDeviceValues(launch);
    eraseUnused(function);
  }

  /// Constants whose address the host hands over, as that in a tensor map or
  /// that of one branch of a condition, get buffers, for the address of a
  /// constant on the host is one of the host's memory.
  LogicalResult copyConstants(OpBuilder &builder, func::FuncOp function) {
    SmallVector<memref::GetGlobalOp> constants;
    walkHost(function, [&](Operation *op) {
      if (auto get = dyn_cast<memref::GetGlobalOp>(op))
        constants.push_back(get);
    });
    if (constants.empty())
      return success();
    for (memref::GetGlobalOp get : constants) {
      Location loc = get.getLoc();
      builder.setInsertionPointToStart(&function.getBody().front());
      Value source = builder.clone(*get)->getResult(0);
      Value buffer = memref::AllocOp::create(builder, loc, get.getType());
      auto copy = memref::CopyOp::create(builder, loc, source, buffer);
      get.replaceAllUsesWith(buffer);
      get.erase();
      if (failed(convertOp(builder, copy)))
        return failure();
      for (auto end : function.getOps<func::ReturnOp>()) {
        builder.setInsertionPoint(end);
        memref::DeallocOp::create(builder, loc, buffer);
      }
      ++numConstants;
    }
    sinkDeviceValues(function);
    return success();
  }

  /// Erases ops that only kernels needed.
  static void eraseUnused(func::FuncOp function) {
    SmallVector<Operation *> ops;
    walkHost(function, [&](Operation *op) { ops.push_back(op); });
    for (Operation *op : llvm::reverse(ops))
      if (op->use_empty() &&
          (isa<memref::LoadOp, memref::GetGlobalOp>(op) || isPure(op)) &&
          !op->hasTrait<OpTrait::IsTerminator>())
        op->erase();
  }

  /// Copies the elements of the GPU's memory that the host needs for its
  /// decisions.
  static void readOnHost(func::FuncOp function) {
    SmallVector<memref::LoadOp> loads;
    walkHost(function, [&](Operation *op) {
      auto load = dyn_cast<memref::LoadOp>(op);
      if (load && !isHostBuffer(load.getMemref()))
        loads.push_back(load);
    });
    for (memref::LoadOp load : loads) {
      Location loc = load.getLoc();
      remark::missed(loc, remark::RemarkOpts::name("host-read")
                              .category("convert-linalg-to-gpu"))
          << "decides what the host does: the host waits for the GPU to read "
             "it";
      OpBuilder builder(&function.getBody().front(),
                        function.getBody().front().begin());
      auto type = MemRefType::get({}, load.getType());
      Value copy = memref::AllocaOp::create(builder, loc, type);
      builder.setInsertionPoint(load);
      SmallVector<OpFoldResult> place = getAsOpFoldResult(load.getIndices());
      SmallVector<OpFoldResult> ones(place.size(), builder.getIndexAttr(1));
      Value element = load.getMemref();
      if (!place.empty())
        element = memref::SubViewOp::create(
            builder, loc,
            memref::SubViewOp::inferRankReducedResultType(
                {}, load.getMemRefType(), place, ones, ones),
            element, place, ones, ones);
      gpu::MemcpyOp::create(builder, loc, TypeRange(), ValueRange(), copy,
                            element);
      load.replaceAllUsesWith(
          memref::LoadOp::create(builder, loc, copy).getResult());
      load.erase();
    }
  }
};

} // namespace
} // namespace fovea
