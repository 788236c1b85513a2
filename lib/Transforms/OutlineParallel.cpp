//===- OutlineParallel.cpp - outline-parallel -----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/IndexMath.h"
#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Transforms/Passes.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_OUTLINEPARALLEL
#include "fovea/Transforms/Passes.h.inc"

static constexpr llvm::StringLiteral kRuntimeFunction = "fovea_parallel_for";

namespace {
struct OutlineParallel final : impl::OutlineParallelBase<OutlineParallel> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable table(module);
    symbols = &table;
    SmallVector<scf::ForallOp> loops;
    module.walk<WalkOrder::PreOrder>([&](scf::ForallOp op) {
      loops.push_back(op);
      return WalkResult::skip();
    });
    for (scf::ForallOp op : loops)
      if (failed(outline(op)))
        return signalPassFailure();
  }

  /// Makes the parallel loops in the body of `op` sequential.
  LogicalResult sequentialise(scf::ForallOp op) {
    SmallVector<scf::ForallOp> inner;
    op.getBody()->walk([&](scf::ForallOp nested) { inner.push_back(nested); });
    IRRewriter rewriter(op.getContext());
    for (scf::ForallOp nested : inner) {
      rewriter.setInsertionPoint(nested);
      if (failed(scf::forallToForLoop(rewriter, nested)))
        return failure();
    }
    return success();
  }

  /// Returns the block in which stack buffers of the code around `op` belong.
  static Block *getFunctionEntry(Operation *op) {
    return &op->getParentOfType<func::FuncOp>().getBody().front();
  }

  LogicalResult outline(scf::ForallOp op) {
    if (op.getNumResults() != 0)
      return op.emitOpError("must be bufferised before it is outlined: it has ")
             << op.getNumResults() << " tensor results";
    if (failed(sequentialise(op)))
      return failure();
    Location loc = op.getLoc();
    OpBuilder builder(op);
    IndexMath index(builder, loc);

    // Fields: the number of iterations, dimension by dimension, and of calls.
    SmallVector<Value> counts, lower, step;
    for (auto [lb, ub, st] :
         llvm::zip_equal(op.getMixedLowerBound(), op.getMixedUpperBound(),
                         op.getMixedStep())) {
      lower.push_back(index.materialize(lb));
      step.push_back(index.materialize(st));
      OpFoldResult count = index.ceilDiv(index.sub(ub, lb), st);
      counts.push_back(index.materialize(index.max(count, index.constant(0))));
    }
    OpFoldResult product = index.constant(1);
    for (Value count : counts)
      product = index.mul(product, count);
    Value items = index.materialize(product);
    int64_t grain = 1;
    if (auto attr = op->getAttrOfType<IntegerAttr>(machine::kGrainAttrName))
      grain = std::max<int64_t>(1, attr.getInt());
    Value calls =
        index.materialize(index.ceilDiv(product, index.constant(grain)));

    // Fields: the values that the body uses.
    llvm::SetVector<Value> used;
    getUsedValuesDefinedAbove(op.getRegion(), used);
    used.insert_range(counts);
    used.insert_range(lower);
    used.insert_range(step);
    used.insert(items);
    SmallVector<Value> captured;
    SmallVector<Operation *> constants;
    LLVMTypeConverter converter(&getContext());
    SmallVector<Type> fields;
    for (Value value : used) {
      if (value.getDefiningOp() &&
          value.getDefiningOp()->hasTrait<OpTrait::ConstantLike>()) {
        constants.push_back(value.getDefiningOp());
        continue;
      }
      Type field = converter.convertType(value.getType());
      if (!field)
        return op.emitOpError("uses a value of type ")
               << value.getType() << ", which has no place in memory";
      captured.push_back(value);
      fields.push_back(field);
    }
    auto contextType = LLVM::LLVMStructType::getLiteral(&getContext(), fields);

    func::FuncOp body = createBody(op, contextType, captured, constants, counts,
                                   lower, step, items, grain);

    // The call.
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    Value context;
    {
      OpBuilder entry = OpBuilder::atBlockBegin(getFunctionEntry(op));
      Value one = LLVM::ConstantOp::create(entry, loc, entry.getI64Type(), 1);
      context =
          LLVM::AllocaOp::create(entry, loc, pointer, contextType, one, 64);
    }
    for (auto [i, value] : llvm::enumerate(captured)) {
      Value place = getField(builder, loc, contextType, context, i);
      LLVM::StoreOp::create(builder, loc,
                            castTo(builder, loc, fields[i], value), place);
    }
    Value function = func::ConstantOp::create(
        builder, loc, body.getFunctionType(), FlatSymbolRefAttr::get(body));
    Value callCount =
        arith::IndexCastOp::create(builder, loc, builder.getI64Type(), calls);
    func::CallOp::create(builder, loc, getRuntimeFunction(),
                         ValueRange{castTo(builder, loc, pointer, function),
                                    context, callCount});
    op.erase();
    ++numOutlined;
    return success();
  }

  /// Creates the function that executes the iterations of `op` in one call.
  func::FuncOp createBody(scf::ForallOp op, LLVM::LLVMStructType contextType,
                          ArrayRef<Value> captured,
                          ArrayRef<Operation *> constants,
                          ArrayRef<Value> counts, ArrayRef<Value> lower,
                          ArrayRef<Value> step, Value items, int64_t grain) {
    Location loc = op.getLoc();
    auto parent = op->getParentOfType<func::FuncOp>();
    OpBuilder builder(parent);
    builder.setInsertionPointAfter(parent);
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    auto type = builder.getFunctionType({pointer, builder.getI64Type()}, {});
    auto body = func::FuncOp::create(
        builder, loc, (parent.getName() + "_parallel").str(), type);
    body.setPrivate();
    symbols->insert(body);
    Block *entry = body.addEntryBlock();
    builder.setInsertionPointToStart(entry);

    IRMapping mapping;
    for (Operation *constant : constants)
      builder.clone(*constant, mapping);
    for (auto [i, value] : llvm::enumerate(captured)) {
      Value place =
          getField(builder, loc, contextType, entry->getArgument(0), i);
      Value loaded =
          LLVM::LoadOp::create(builder, loc, contextType.getBody()[i], place);
      mapping.map(value, castTo(builder, loc, value.getType(), loaded));
    }

    Value call = arith::IndexCastOp::create(
        builder, loc, builder.getIndexType(), entry->getArgument(1));
    Value item = call;
    Operation *last = func::ReturnOp::create(builder, loc);
    builder.setInsertionPoint(last);
    if (grain > 1) {
      IndexMath index(builder, loc);
      OpFoldResult size = index.constant(grain);
      Value begin = index.materialize(index.mul(call, size));
      OpFoldResult end =
          index.min(index.add(begin, size), mapping.lookup(items));
      auto loop =
          scf::ForOp::create(builder, loc, begin, index.materialize(end),
                             index.materialize(index.constant(1)));
      item = loop.getInductionVar();
      last = loop.getBody()->getTerminator();
      builder.setInsertionPoint(last);
    }
    IndexMath index(builder, loc);
    SmallVector<Value> ivs(counts.size());
    for (int64_t dim = counts.size() - 1; dim >= 0; --dim) {
      Value position = item;
      if (dim > 0) {
        Value count = mapping.lookup(counts[dim]);
        position = arith::RemUIOp::create(builder, loc, item, count);
        item = arith::DivUIOp::create(builder, loc, item, count);
      }
      OpFoldResult scaled = index.mul(position, mapping.lookup(step[dim]));
      ivs[dim] =
          index.materialize(index.add(scaled, mapping.lookup(lower[dim])));
    }
    mapping.map(op.getInductionVars(), ivs);
    for (Operation &nested : op.getBody()->without_terminator())
      builder.clone(nested, mapping);

    if (auto loop = dyn_cast<scf::ForOp>(last->getParentOp()))
      hoistBuffers(loop);
    // Stack buffers are for the whole call, not for every iteration.
    SmallVector<memref::AllocaOp> buffers;
    body.walk([&](memref::AllocaOp alloca) {
      if (alloca->getNumOperands() == 0)
        buffers.push_back(alloca);
    });
    for (memref::AllocaOp alloca : llvm::reverse(buffers))
      alloca->moveBefore(entry, entry->begin());
    return body;
  }

  /// Allocates buffers that have the same size in each iteration once for all
  /// of them.
  static void hoistBuffers(scf::ForOp loop) {
    moveLoopInvariantCode(loop);
    for (auto alloc :
         llvm::to_vector(loop.getBody()->getOps<memref::AllocOp>())) {
      if (!llvm::all_of(alloc->getOperands(), [&](Value size) {
            return loop.isDefinedOutsideOfLoop(size);
          }))
        continue;
      for (Operation *user : alloc->getUsers())
        if (isa<memref::DeallocOp>(user) &&
            user->getBlock() == loop.getBody()) {
          alloc->moveBefore(loop);
          user->moveAfter(loop);
          break;
        }
    }
  }

  static Value getField(OpBuilder &builder, Location loc,
                        LLVM::LLVMStructType type, Value context,
                        int32_t field) {
    return LLVM::GEPOp::create(builder, loc, context.getType(), type, context,
                               ArrayRef<LLVM::GEPArg>{0, field});
  }

  static Value castTo(OpBuilder &builder, Location loc, Type type,
                      Value value) {
    if (value.getType() == type)
      return value;
    return UnrealizedConversionCastOp::create(builder, loc, type, value)
        .getResult(0);
  }

  func::FuncOp getRuntimeFunction() {
    if (auto found = symbols->lookup<func::FuncOp>(kRuntimeFunction))
      return found;
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    OpBuilder builder(&getContext());
    builder.setInsertionPointToStart(getOperation().getBody());
    auto function = func::FuncOp::create(
        builder, getOperation().getLoc(), kRuntimeFunction,
        builder.getFunctionType({pointer, pointer, builder.getI64Type()}, {}));
    function.setPrivate();
    symbols->insert(function);
    return function;
  }

  /// Symbols of the module, while the pass runs.
  SymbolTable *symbols = nullptr;
};
} // namespace
} // namespace fovea
