//===- HostBufferize.cpp - host-bufferize ---------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_HOSTBUFFERIZE
#include "fovea/Transforms/Passes.h.inc"

/// Returns the layout of an argument: all strides and the offset are unknown,
/// except for the innermost stride, 1.
static StridedLayoutAttr getArgumentLayout(RankedTensorType type) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  return StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic,
                                strides);
}

/// Returns the value of which `value` is all elements, in the order of memory.
/// Loops pass buffers on.
static Value getOrigin(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      if (getOrigin(loop.getYieldedValues()[number]) !=
          loop.getRegionIterArg(number))
        break;
      value = loop.getInitArgs()[number];
      continue;
    }
    if (!isa<memref::CastOp, memref::ExpandShapeOp, memref::CollapseShapeOp>(
            op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

using bufferization::BufferizationDialect;

static bool isWritable(func::FuncOp function, unsigned argument) {
  auto attribute = function.getArgAttrOfType<BoolAttr>(
      argument, BufferizationDialect::kWritableAttrName);
  return attribute && attribute.getValue();
}

/// Fails where a writable argument is updated in memory of its own: the caller
/// would not see it.
static LogicalResult
checkUpdates(func::FuncOp function,
             bufferization::OneShotAnalysisState &analysis) {
  auto checkOperand = [&](OpOperand &operand) -> LogicalResult {
    if (!isa<TensorType>(operand.get().getType()) ||
        !analysis.bufferizesToMemoryWrite(operand) ||
        analysis.isInPlace(operand))
      return success();
    for (BlockArgument argument : function.getArguments())
      if (isWritable(function, argument.getArgNumber()) &&
          analysis.areAliasingBufferizedValues(argument, operand.get()))
        return operand.getOwner()->emitError()
               << "updates operand " << argument.getArgNumber() << " of @"
               << function.getName()
               << ", which is writable, but its elements from before the "
                  "update are read later";
    return success();
  };
  WalkResult result = function.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (failed(checkOperand(operand)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static DenseSet<Operation *> getGlobals(ModuleOp module) {
  auto globals = module.getOps<memref::GlobalOp>();
  return DenseSet<Operation *>(globals.begin(), globals.end());
}

/// Names and sorts the globals that are not `known` as they are first read.
/// Bufferization visits functions in the order of their addresses, so that
/// names would differ between runs, and with them what a disk cache is asked
/// for.
static void orderGlobals(ModuleOp module, const DenseSet<Operation *> &known) {
  SymbolTable symbols(module);
  SetVector<Operation *> globals;
  module.walk([&](memref::GetGlobalOp read) {
    if (Operation *global = symbols.lookup(read.getName());
        !known.contains(global))
      globals.insert(global);
  });
  int64_t number = 0;
  for (Operation *global : globals) {
    std::string name;
    do
      name = "constant" + std::to_string(number++);
    while (symbols.lookup(name));
    [[maybe_unused]] LogicalResult renamed = symbols.rename(global, name);
    assert(succeeded(renamed) && "no other symbol has the name");
  }
  for (Operation *global : llvm::reverse(globals))
    global->moveBefore(&module.getBody()->front());
}

namespace {
struct HostBufferize final : impl::HostBufferizeBase<HostBufferize> {
  using HostBufferizeBase::HostBufferizeBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions;
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPublic())
        functions.push_back(function);
    for (func::FuncOp function : functions) {
      for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        if (!tensor)
          continue;
        function.setArgAttr(
            i, BufferizationDialect::kWritableAttrName,
            BoolAttr::get(&getContext(), inPlace && isWritable(function, i)));
        function.setArgAttr(i, BufferizationDialect::kBufferLayoutAttrName,
                            getArgumentLayout(tensor));
      }
    }

    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.allowReturnAllocsFromLoops = true;
    bufferization::OneShotAnalysisState analysis(module, options);
    bufferization::BufferizationState state;
    DenseSet<Operation *> globals = getGlobals(module);
    if (failed(bufferization::analyzeModuleOp(module, analysis)))
      return signalPassFailure();
    for (func::FuncOp function : functions)
      if (failed(checkUpdates(function, analysis)))
        return signalPassFailure();
    if (failed(bufferization::insertTensorCopies(module, analysis, state)) ||
        failed(bufferization::bufferizeModuleOp(module, options, state)))
      return signalPassFailure();
    bufferization::removeBufferizationAttributesInModule(module);
    orderGlobals(module, globals);

    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPublic() && !function.isDeclaration())
        ownResults(function);
  }

  /// Makes every result of `function` a buffer of its own.
  void ownResults(func::FuncOp function) {
    SmallVector<func::ReturnOp> returns(function.getOps<func::ReturnOp>());
    if (returns.size() != 1)
      return;
    func::ReturnOp ret = returns.front();
    OpBuilder builder(ret);
    DenseSet<Operation *> owned;
    for (OpOperand &operand : ret->getOpOperands()) {
      Value value = operand.get();
      auto type = dyn_cast<MemRefType>(value.getType());
      if (!type)
        continue;
      if (auto alloc = getOrigin(value).getDefiningOp<memref::AllocOp>())
        if (type.getLayout().isIdentity() &&
            alloc->getBlock() == ret->getBlock() && owned.insert(alloc).second)
          continue;
      Location loc = ret.getLoc();
      SmallVector<Value> sizes;
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (type.isDynamicDim(dim))
          sizes.push_back(memref::DimOp::create(builder, loc, value, dim));
      auto identity = MemRefType::get(type.getShape(), type.getElementType());
      Value copy = memref::AllocOp::create(builder, loc, identity, sizes,
                                           builder.getI64IntegerAttr(64));
      memref::CopyOp::create(builder, loc, value, copy);
      operand.set(copy);
      ++numResultCopies;
    }
    function.setType(builder.getFunctionType(function.getArgumentTypes(),
                                             ret.getOperandTypes()));
  }
};
} // namespace
} // namespace fovea
