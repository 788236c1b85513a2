//===- LinalgToGpu.cpp - convert-linalg-to-gpu ----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First every op that touches memory becomes a launch of its own, or is moved
// into one; then what is left on the host must be arithmetic on sizes, views,
// allocations and control flow.
//
//===----------------------------------------------------------------------===//

#include "../HostUtils.h"
#include "Launch.h"
#include "PointLoops.h"

#include "fovea/Conversion/Passes.h"
#include "fovea/Target/GpuModel.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_LINALGTOGPU
#include "fovea/Conversion/Passes.h.inc"

namespace {

/// Bytes of the largest buffer that a thread has to itself.
constexpr int64_t kThreadBuffer = 512;
/// Blocks of a kernel whose threads have buffers in memory.
constexpr int64_t kBufferedGrid = 128;
/// Bytes that buffers in memory are aligned to.
constexpr int64_t kBufferAlignment = 64;

int64_t getElementBytes(Type type) {
  return type.isIndex() ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

bool isHostBuffer(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    if (isa<memref::AllocaOp>(op))
      return true;
    auto view = dyn_cast<ViewLikeOpInterface>(op);
    if (!view)
      return false;
    memref = view.getViewSource();
  }
  return false;
}

/// Whether `memref` is an operand of the function, which is never written.
bool isOperand(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  auto argument = dyn_cast<BlockArgument>(memref);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

//===----------------------------------------------------------------------===//
// Parallel loops
//===----------------------------------------------------------------------===//

/// Turns an `scf.forall` into a kernel with an iteration a thread.
class ForallConverter {
public:
  ForallConverter(OpBuilder &builder, scf::ForallOp forall)
      : builder(builder), forall(forall), loc(forall.getLoc()) {}

  LogicalResult convert() {
    builder.setInsertionPoint(forall);
    SmallVector<Value> lowers = getValues(forall.getMixedLowerBound());
    SmallVector<Value> uppers = getValues(forall.getMixedUpperBound());
    SmallVector<Value> steps = getValues(forall.getMixedStep());
    SmallVector<Value> sizes;
    for (auto [lower, upper, step] : llvm::zip_equal(lowers, uppers, steps)) {
      AffineExpr s0, s1, s2;
      bindSymbols(builder.getContext(), s0, s1, s2);
      OpFoldResult size = affine::makeComposedFoldedAffineApply(
          builder, loc, (s1 - s0).ceilDiv(s2),
          {getAsOpFoldResult(lower), getAsOpFoldResult(upper),
           getAsOpFoldResult(step)});
      Value trips = getValueOrCreateConstantIndexOp(builder, loc, size);
      Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
      sizes.push_back(builder.createOrFold<arith::MaxSIOp>(loc, trips, zero));
    }
    Value items = getProduct(builder, loc, sizes);
    LogicalResult result = success();
    emitUnlessEmpty(builder, loc, items, [&] {
      result = createBuffers(items);
      if (failed(result))
        return;
      emitItemLaunch(builder, loc, items,
                     workspaces.empty() ? kLargestGrid : kBufferedGrid,
                     [&](OpBuilder &, Value item, Value thread) {
                       emitBody(item, thread, lowers, steps, sizes);
                     });
      for (Workspace &workspace : workspaces)
        memref::DeallocOp::create(builder, loc, workspace.memory);
    });
    if (succeeded(result))
      forall.erase();
    return result;
  }

private:
  /// Memory of the buffers that an allocation in the body makes, one for each
  /// thread.
  struct Workspace {
    memref::AllocOp alloc;
    Value memory;
    Value bytesPerThread;
  };

  SmallVector<Value> getValues(ArrayRef<OpFoldResult> values) {
    return llvm::map_to_vector(values, [&](OpFoldResult value) {
      return getValueOrCreateConstantIndexOp(builder, loc, value);
    });
  }

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  static bool isPrivate(memref::AllocOp alloc) {
    MemRefType type = alloc.getType();
    return type.hasStaticShape() &&
           type.getNumElements() * getElementBytes(type.getElementType()) <=
               kThreadBuffer;
  }

  /// Allocates memory for the buffers of the body that no thread can hold.
  LogicalResult createBuffers(Value items) {
    SmallVector<memref::AllocOp> allocations;
    forall.walk([&](memref::AllocOp alloc) {
      if (!isPrivate(alloc))
        allocations.push_back(alloc);
    });
    if (allocations.empty())
      return success();
    Value threads = builder.createOrFold<arith::MinUIOp>(
        loc,
        arith::CeilDivUIOp::create(builder, loc, items, constant(kItemBlock)),
        constant(kBufferedGrid));
    threads =
        arith::MulIOp::create(builder, loc, threads, constant(kItemBlock));
    for (memref::AllocOp alloc : allocations) {
      SmallVector<Value> sizes;
      for (auto [dim, size] : llvm::enumerate(alloc.getMixedSizes())) {
        FailureOr<OpFoldResult> bound = arith::reifyValueBound(
            builder, loc, presburger::BoundType::UB,
            ValueBoundsConstraintSet::Variable(size),
            [&](Value value, std::optional<int64_t>,
                ValueBoundsConstraintSet &) {
              return !forall.getRegion().isAncestor(value.getParentRegion());
            },
            /*closedUB=*/true);
        if (failed(bound))
          return alloc.emitOpError()
                 << "in a parallel loop has no bound on its size "
                 << "in dimension " << dim
                 << " that is known before the loop, which a GPU needs";
        sizes.push_back(getValueOrCreateConstantIndexOp(builder, loc, *bound));
      }
      Value bytes = arith::MulIOp::create(
          builder, loc, getProduct(builder, loc, sizes),
          constant(getElementBytes(alloc.getType().getElementType())));
      bytes = arith::CeilDivUIOp::create(builder, loc, bytes,
                                         constant(kBufferAlignment));
      bytes = arith::MulIOp::create(builder, loc, bytes,
                                    constant(kBufferAlignment));
      Value total = arith::MulIOp::create(builder, loc, bytes, threads);
      auto type = MemRefType::get(ShapedType::kDynamic, builder.getI8Type());
      Value memory =
          memref::AllocOp::create(builder, loc, type, total,
                                  builder.getI64IntegerAttr(kBufferAlignment));
      workspaces.push_back({alloc, memory, bytes});
    }
    return success();
  }

  void emitBody(Value item, Value thread, ValueRange lowers, ValueRange steps,
                ValueRange sizes) {
    IRMapping mapping;
    SmallVector<Value> indices = delinearize(builder, loc, item, sizes);
    for (auto [iv, index, lower, step] :
         llvm::zip_equal(forall.getInductionVars(), indices, lowers, steps)) {
      Value offset = builder.createOrFold<arith::MulIOp>(loc, index, step);
      mapping.map(iv, builder.createOrFold<arith::AddIOp>(loc, lower, offset));
    }
    DenseMap<Operation *, Workspace *> memory;
    for (Workspace &workspace : workspaces)
      memory[workspace.alloc] = &workspace;
    // The clones of allocations, in the order of the originals.
    SmallVector<Workspace *> order;
    forall.getBody()->walk(
        [&](memref::AllocOp alloc) { order.push_back(memory.lookup(alloc)); });
    SmallVector<Operation *> clones;
    for (Operation &op : forall.getBody()->without_terminator())
      clones.push_back(builder.clone(op, mapping));
    size_t next = 0;
    for (Operation *clone : clones)
      clone->walk([&](memref::AllocOp alloc) {
        placeBuffer(alloc, order[next++], thread);
      });
    for (Operation *clone : clones)
      clone->walk([](memref::DeallocOp op) { op.erase(); });
  }

  void placeBuffer(memref::AllocOp alloc, Workspace *workspace, Value thread) {
    OpBuilder inner(alloc);
    Value buffer;
    if (workspace) {
      Value offset =
          arith::MulIOp::create(inner, loc, thread, workspace->bytesPerThread);
      buffer =
          memref::ViewOp::create(inner, loc, alloc.getType(), workspace->memory,
                                 offset, alloc.getDynamicSizes());
    } else {
      auto launch = alloc->getParentOfType<gpu::LaunchOp>();
      inner.setInsertionPointToStart(&launch.getBody().front());
      buffer =
          memref::AllocaOp::create(inner, loc, alloc.getType(), ValueRange(),
                                   inner.getI64IntegerAttr(16));
    }
    alloc.replaceAllUsesWith(buffer);
    alloc.erase();
  }

  OpBuilder &builder;
  scf::ForallOp forall;
  Location loc;
  SmallVector<Workspace> workspaces;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct LinalgToGpu final : impl::LinalgToGpuBase<LinalgToGpu> {
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
  /// Calls `visit` for every op that the host would execute.
  static void walkHost(func::FuncOp function,
                       function_ref<void(Operation *)> visit) {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      visit(op);
      return isa<func::FuncOp, scf::ForOp, scf::IfOp, scf::WhileOp,
                 scf::IndexSwitchOp>(op)
                 ? WalkResult::advance()
                 : WalkResult::skip();
    });
  }

  LogicalResult convert(func::FuncOp function) {
    SmallVector<Operation *> work;
    walkHost(function, [&](Operation *op) {
      if (isa<linalg::LinalgOp, memref::CopyOp, scf::ForallOp, memref::LoadOp,
              memref::StoreOp>(op))
        work.push_back(op);
    });
    OpBuilder builder(&getContext());
    for (Operation *op : work)
      if (failed(convertOp(builder, op)))
        return failure();

    SmallVector<gpu::LaunchOp> launches;
    walkHost(function, [&](Operation *op) {
      if (auto launch = dyn_cast<gpu::LaunchOp>(op))
        launches.push_back(launch);
    });
    for (gpu::LaunchOp launch : launches) {
      sinkDeviceValues(launch);
      if (failed(convertBody(launch)))
        return failure();
    }
    eraseUnused(function);
    return checkHost(function);
  }

  LogicalResult convertOp(OpBuilder &builder, Operation *op) {
    builder.setInsertionPoint(op);
    if (auto copy = dyn_cast<memref::CopyOp>(op)) {
      if (copy.getSource() != copy.getTarget()) {
        if (!isa<MemRefType>(copy.getSource().getType()) ||
            !isa<MemRefType>(copy.getTarget().getType()))
          return op->emitOpError(
              "of an unranked memref cannot become a kernel");
        auto generic = createCopy(builder, copy);
        convertLinalg(builder, generic);
      }
      copy.erase();
      return success();
    }
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      if (!linalgOp.hasPureBufferSemantics())
        return op->emitOpError("has operands that are tensors, expected "
                               "memrefs: run bufferization first");
      convertLinalg(builder, linalgOp);
      return success();
    }
    if (auto forall = dyn_cast<scf::ForallOp>(op)) {
      if (forall->getNumResults() != 0)
        return op->emitOpError("has results that are tensors, expected "
                               "memrefs: run bufferization first");
      ++numLoops;
      return ForallConverter(builder, forall).convert();
    }
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      snapshot(builder, load);
      return success();
    }
    auto store = cast<memref::StoreOp>(op);
    if (isHostBuffer(store.getMemref()))
      return success();
    Value one = arith::ConstantIndexOp::create(builder, op->getLoc(), 1);
    emitItemLaunch(builder, op->getLoc(), one, kLargestGrid,
                   [&](OpBuilder &body, Value, Value) { body.clone(*op); });
    op->erase();
    ++numScalars;
    return success();
  }

  void convertLinalg(OpBuilder &builder, linalg::LinalgOp op) {
    Location loc = op.getLoc();
    ++numOps;
    if (!writesApart(op)) {
      // Threads would write the same element: one does it all.
      Value one = arith::ConstantIndexOp::create(builder, loc, 1);
      emitItemLaunch(
          builder, loc, one, kLargestGrid,
          [&](OpBuilder &body, Value, Value) { emitLoops(body, op); });
      op.erase();
      return;
    }
    // Neighbouring threads write neighbouring elements of the first result.
    SmallVector<Value> sizes = getLoopSizes(builder, op);
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    SmallVector<unsigned> dims = llvm::map_to_vector(
        llvm::seq<unsigned>(map.getNumResults()),
        [&](unsigned result) { return map.getDimPosition(result); });
    SmallVector<Value> parallel =
        llvm::map_to_vector(dims, [&](unsigned dim) { return sizes[dim]; });
    Value items = getProduct(builder, loc, parallel);
    emitUnlessEmpty(builder, loc, items, [&] {
      emitItemLaunch(builder, loc, items, kLargestGrid,
                     [&](OpBuilder &body, Value item, Value) {
                       SmallVector<Value> ivs(sizes.size());
                       for (auto [dim, iv] : llvm::zip_equal(
                                dims, delinearize(body, loc, item, parallel)))
                         ivs[dim] = iv;
                       emitPoint(body, op, sizes, ivs);
                     });
    });
    op.erase();
  }

  /// What the host loads may be overwritten before a kernel uses it: keeps it.
  void snapshot(OpBuilder &builder, memref::LoadOp load) {
    if (isHostBuffer(load.getMemref()) || isOperand(load.getMemref()))
      return;
    Location loc = load.getLoc();
    auto type = MemRefType::get({}, load.getType());
    Value copy = memref::AllocOp::create(builder, loc, type);
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    emitItemLaunch(builder, loc, one, kLargestGrid,
                   [&](OpBuilder &body, Value, Value) {
                     Value value = body.clone(*load)->getResult(0);
                     memref::StoreOp::create(body, loc, value, copy);
                   });
    load.replaceAllUsesWith(
        memref::LoadOp::create(builder, loc, copy).getResult());
    // Behind the last kernel that may read it.
    builder.setInsertionPoint(load->getBlock()->getTerminator());
    memref::DeallocOp::create(builder, loc, copy);
    load.erase();
    ++numScalars;
  }

  /// Whether `value` is made from what is in the device's memory, by ops that
  /// can be done in a kernel just as well.
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

  /// Turns what the body of a parallel loop had in it into sequential loops.
  static LogicalResult convertBody(gpu::LaunchOp launch) {
    IRRewriter rewriter(launch.getContext());
    SmallVector<scf::ForallOp> loops;
    launch.walk([&](scf::ForallOp forall) { loops.push_back(forall); });
    for (scf::ForallOp forall : loops) {
      rewriter.setInsertionPoint(forall);
      if (failed(scf::forallToForLoop(rewriter, forall)))
        return failure();
    }
    SmallVector<memref::CopyOp> copies;
    launch.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
    for (memref::CopyOp copy : copies) {
      rewriter.setInsertionPoint(copy);
      if (copy.getSource() != copy.getTarget())
        createCopy(rewriter, copy);
      rewriter.eraseOp(copy);
    }
    SmallVector<linalg::LinalgOp> ops;
    launch.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops) {
      rewriter.setInsertionPoint(op);
      emitLoops(rewriter, op);
      rewriter.eraseOp(op);
    }
    return success();
  }

  /// Erases what only kernels needed.
  static void eraseUnused(func::FuncOp function) {
    SmallVector<Operation *> ops;
    walkHost(function, [&](Operation *op) { ops.push_back(op); });
    for (Operation *op : llvm::reverse(ops))
      if (op->use_empty() &&
          (isa<memref::LoadOp, memref::GetGlobalOp>(op) || isPure(op)) &&
          !op->hasTrait<OpTrait::IsTerminator>())
        op->erase();
  }

  static LogicalResult checkHost(func::FuncOp function) {
    LogicalResult result = success();
    walkHost(function, [&](Operation *op) {
      auto load = dyn_cast<memref::LoadOp>(op);
      if (!load || isHostBuffer(load.getMemref()))
        return;
      InFlightDiagnostic diagnostic =
          load.emitOpError("reads on the host what is in the GPU's memory; "
                           "only kernels can");
      diagnostic.attachNote(load->getUsers().begin()->getLoc())
          << "used here to decide what the host does";
      result = failure();
    });
    return result;
  }
};

} // namespace
} // namespace fovea
