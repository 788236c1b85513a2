//===- GpuToRuntime.cpp - convert-gpu-to-runtime --------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Memory.h"
#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Transforms/GpuKernels.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;

/// Returns true if argument `index` of a kernel is the data that the pointer
/// passed for it points to.
static bool isByValue(FunctionOpInterface kernel, unsigned index) {
  return index < kernel.getNumArguments() &&
         kernel.getArgAttr(index, LLVM::LLVMDialect::getByValAttrName());
}

/// Returns the allocation that `value` is a view of, or null.
static memref::AllocOp getAllocation(Value value) {
  return fovea::getBase(value).getDefiningOp<memref::AllocOp>();
}

/// Returns which arguments of each kernel in the LLVM dialect nothing uses:
/// above all, parts of the descriptors of memrefs.
static llvm::StringMap<llvm::BitVector>
findUnusedArguments(gpu::GPUModuleOp kernels) {
  llvm::StringMap<llvm::BitVector> unused;
  for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>())
    if (kernel->hasAttr(gpu::GPUDialect::getKernelFuncAttrName())) {
      llvm::BitVector &bits = unused[kernel.getName()];
      for (BlockArgument argument : kernel.getArguments())
        bits.push_back(argument.use_empty());
    }
  return unused;
}

namespace fovea {
#define GEN_PASS_DEF_GPUTORUNTIME
#include "fovea/Conversion/Passes.h.inc"

namespace {

// The runtime's functions, see `Runtime/GpuRuntime.h`.
constexpr llvm::StringLiteral kLaunch = "fovea_gpu_launch";
constexpr llvm::StringLiteral kLaunchEarly = "fovea_gpu_launch_early";
constexpr llvm::StringLiteral kAllocate = "fovea_gpu_allocate";
constexpr llvm::StringLiteral kResult = "fovea_gpu_result";
constexpr llvm::StringLiteral kFree = "fovea_gpu_free";
constexpr llvm::StringLiteral kRead = "fovea_gpu_read";

/// Turns the launches and buffers of one module into calls.
class RuntimeCaller {
public:
  explicit RuntimeCaller(ModuleOp module)
      : module(module), converter(module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())),
        int64(IntegerType::get(module.getContext(), 64)) {
    gpu::GPUModuleOp kernels = getKernelModule(module);
    if (!kernels)
      return;
    for (auto [index, name] : llvm::enumerate(getKernelNames(kernels)))
      indices[name] = index;
    unused = findUnusedArguments(kernels);
  }

  LogicalResult launch(gpu::LaunchFuncOp op);
  LogicalResult allocate(memref::AllocOp op, std::optional<int64_t> result);
  void free(memref::DeallocOp op);
  LogicalResult read(gpu::MemcpyOp op);
  /// Takes the arguments that launches do not pass from the kernels.
  void eraseUnusedArguments();

private:
  void call(ImplicitLocOpBuilder &builder, StringRef name, ValueRange operands,
            Type result, Value &value) {
    auto callee = module.lookupSymbol<func::FuncOp>(name);
    if (!callee) {
      auto type = builder.getFunctionType(
          operands.getTypes(), result ? TypeRange(result) : TypeRange());
      OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
      callee = func::FuncOp::create(top, module.getLoc(), name, type);
      callee.setPrivate();
    }
    auto call = func::CallOp::create(builder, callee, operands);
    value = result ? call.getResult(0) : Value();
  }
  void call(ImplicitLocOpBuilder &builder, StringRef name,
            ValueRange operands) {
    Value none;
    call(builder, name, operands, nullptr, none);
  }

  Value constant(ImplicitLocOpBuilder &builder, int64_t value) {
    return arith::ConstantIntOp::create(builder, int64, value);
  }
  Value toInt(ImplicitLocOpBuilder &builder, Value value) {
    if (value.getType().isIndex())
      return arith::IndexCastOp::create(builder, int64, value);
    if (value.getType() == int64)
      return value;
    return arith::ExtUIOp::create(builder, int64, value);
  }
  Value cast(ImplicitLocOpBuilder &builder, Type type, Value value) {
    return UnrealizedConversionCastOp::create(builder, type, value)
        .getResult(0);
  }

  ModuleOp module;
  LLVMTypeConverter converter;
  Type pointer, int64;
  llvm::StringMap<int64_t> indices;
  llvm::StringMap<llvm::BitVector> unused;
};

} // namespace

LogicalResult RuntimeCaller::launch(gpu::LaunchFuncOp op) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  auto found = indices.find(op.getKernelName().getValue());
  if (op.getKernelModuleName() != kKernelModule || found == indices.end())
    return op.emitOpError() << "launches " << op.getKernel()
                            << ", which is no kernel of @" << kKernelModule;
  if (op.getAsyncToken() || !op.getAsyncDependencies().empty() ||
      op.getAsyncObject() || op.hasClusterSize())
    return op.emitOpError("is asynchronous or has clusters; expected a launch "
                          "in the order of the program");
  auto kernel = llvm::cast<FunctionOpInterface>(
      SymbolTable::lookupSymbolIn(getKernelModule(module), op.getKernelName()));
  bool isLowered = isa<LLVM::LLVMFuncOp>(kernel);

  // The values that the pointers to arguments point to: a memref is passed as
  // the parts of its descriptor.
  SmallVector<Value> values;
  SmallVector<bool> byValue;
  for (auto [index, operand] : llvm::enumerate(op.getKernelOperands())) {
    Type type = converter.convertType(operand.getType());
    if (!type)
      return op.emitOpError() << "passes a value of type " << operand.getType()
                              << ", which has no counterpart in LLVM";
    Value value =
        type == operand.getType() ? operand : cast(builder, type, operand);
    byValue.push_back(
        isByValue(kernel, isLowered ? unsigned(values.size()) : index));
    if (auto memref = dyn_cast<MemRefType>(operand.getType()))
      MemRefDescriptor::unpack(builder, op.getLoc(), value, memref, values);
    else
      values.push_back(value);
    byValue.resize(values.size(), false);
  }
  if (auto found = unused.find(kernel.getName()); found != unused.end()) {
    const llvm::BitVector &skipped = found->second;
    if (skipped.size() != values.size())
      return op.emitOpError()
             << "passes " << values.size() << " values to " << op.getKernel()
             << ", which has " << skipped.size() << " arguments";
    for (unsigned index : llvm::reverse(skipped.set_bits())) {
      values.erase(values.begin() + index);
      byValue.erase(byValue.begin() + index);
    }
  }

  // The stack does not grow with each launch in a loop.
  auto function = op->getParentOfType<func::FuncOp>();
  ImplicitLocOpBuilder top(op.getLoc(), op);
  top.setInsertionPointToStart(&function.getBody().front());
  Value one = constant(top, 1);
  Value slots, storage;
  LLVM::LLVMStructType slotsType;
  if (!values.empty()) {
    slotsType = LLVM::LLVMStructType::getLiteral(
        module.getContext(), llvm::to_vector(TypeRange(ValueRange(values))));
    slots = LLVM::AllocaOp::create(top, pointer, slotsType, one);
    storage = LLVM::AllocaOp::create(
        top, pointer, LLVM::LLVMArrayType::get(pointer, values.size()), one);
  } else {
    storage = LLVM::AllocaOp::create(top, pointer, pointer, one);
  }
  for (auto [index, value] : llvm::enumerate(values)) {
    Value slot = value;
    if (!byValue[index]) {
      slot = LLVM::GEPOp::create(builder, pointer, slotsType, slots,
                                 ArrayRef<LLVM::GEPArg>{0, int32_t(index)});
      LLVM::StoreOp::create(builder, value, slot);
    }
    Value place = LLVM::GEPOp::create(builder, pointer, pointer, storage,
                                      ArrayRef<LLVM::GEPArg>{int32_t(index)});
    LLVM::StoreOp::create(builder, slot, place);
  }

  SmallVector<Value> operands = {constant(builder, found->second)};
  gpu::KernelDim3 grid = op.getGridSizeOperandValues();
  gpu::KernelDim3 block = op.getBlockSizeOperandValues();
  for (Value size : {grid.x, grid.y, grid.z, block.x, block.y, block.z})
    operands.push_back(toInt(builder, size));
  Value shared = op.getDynamicSharedMemorySize();
  operands.push_back(shared ? toInt(builder, shared) : constant(builder, 0));
  operands.push_back(storage);
  call(builder,
       kernel->hasAttr(machine::kStartsEarlyAttrName) ? kLaunchEarly : kLaunch,
       operands);
  op.erase();
  return success();
}

void RuntimeCaller::eraseUnusedArguments() {
  for (const auto &[name, arguments] : unused) {
    auto kernel = getKernelModule(module).lookupSymbol<LLVM::LLVMFuncOp>(name);
    SmallVector<Type> types;
    for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
      if (!arguments.test(index))
        types.push_back(type);
    // `eraseArguments` fails for functions without a result.
    function_interface_impl::eraseFunctionArguments(
        kernel, arguments,
        LLVM::LLVMFunctionType::get(kernel.getFunctionType().getReturnType(),
                                    types));
  }
}

LogicalResult RuntimeCaller::allocate(memref::AllocOp op,
                                      std::optional<int64_t> result) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  MemRefType type = op.getType();
  auto descriptorType =
      dyn_cast_or_null<LLVM::LLVMStructType>(converter.convertType(type));
  if (!type.getLayout().isIdentity() || !descriptorType ||
      !op.getSymbolOperands().empty())
    return op.emitOpError() << "makes a buffer of type " << type
                            << ", expected one with the identity layout";
  SmallVector<Value> sizes =
      llvm::map_to_vector(op.getMixedSizes(), [&](OpFoldResult size) {
        return toInt(builder, getValueOrCreateConstantIndexOp(
                                  builder, op.getLoc(), size));
      });
  SmallVector<Value> strides(sizes.size());
  Value stride = constant(builder, 1);
  for (size_t dim = sizes.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride = arith::MulIOp::create(builder, stride, sizes[dim]);
  }
  Type element = type.getElementType();
  int64_t elementBytes =
      element.isIndex() ? 8
                        : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  Value bytes =
      arith::MulIOp::create(builder, stride, constant(builder, elementBytes));
  Value buffer;
  if (result)
    call(builder, kResult, {constant(builder, *result), bytes}, pointer,
         buffer);
  else
    call(builder, kAllocate, bytes, pointer, buffer);

  Location loc = op.getLoc();
  auto descriptor = MemRefDescriptor::poison(builder, loc, descriptorType);
  descriptor.setAllocatedPtr(builder, loc, buffer);
  descriptor.setAlignedPtr(builder, loc, buffer);
  descriptor.setConstantOffset(builder, loc, 0);
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    descriptor.setSize(builder, loc, dim, size);
    descriptor.setStride(builder, loc, dim, strides[dim]);
  }
  op.replaceAllUsesWith(cast(builder, type, descriptor));
  op.erase();
  return success();
}

void RuntimeCaller::free(memref::DeallocOp op) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  Value memref = op.getMemref();
  MemRefDescriptor descriptor(
      cast(builder, converter.convertType(memref.getType()), memref));
  call(builder, kFree, descriptor.allocatedPtr(builder, op.getLoc()));
  op.erase();
}

LogicalResult RuntimeCaller::read(gpu::MemcpyOp op) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  auto type = llvm::cast<MemRefType>(op.getDst().getType());
  if (type.getRank() != 0 || op.getAsyncToken() ||
      !op.getAsyncDependencies().empty() ||
      !op.getDst().getDefiningOp<memref::AllocaOp>())
    return op.emitOpError(
        "expected to copy one element to a `memref.alloca` of "
        "the host, in the order of the program");
  int64_t bytes = type.getElementType().isIndex()
                      ? 8
                      : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  auto getAddress = [&](Value memref) -> Value {
    MemRefDescriptor descriptor(
        cast(builder, converter.convertType(memref.getType()), memref));
    return descriptor.bufferPtr(builder, op.getLoc(), converter,
                                llvm::cast<MemRefType>(memref.getType()));
  };
  call(builder, kRead,
       {getAddress(op.getDst()), getAddress(op.getSrc()),
        constant(builder, bytes)});
  op.erase();
  return success();
}

namespace {
struct GpuToRuntime final : impl::GpuToRuntimeBase<GpuToRuntime> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    RuntimeCaller caller(module);
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (failed(convert(caller, function)))
        return signalPassFailure();
    caller.eraseUnusedArguments();
  }

private:
  LogicalResult convert(RuntimeCaller &caller, func::FuncOp function) {
    DenseMap<Operation *, int64_t> results;
    if (function.isPublic() && failed(findResults(function, results)))
      return failure();
    if (failed(checkConstants(function)))
      return failure();
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (isa<gpu::LaunchFuncOp, gpu::MemcpyOp, memref::AllocOp,
              memref::DeallocOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
        if (failed(caller.launch(launch)))
          return failure();
        ++numLaunches;
      } else if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
        auto found = results.find(op);
        std::optional<int64_t> result;
        if (found != results.end())
          result = found->second;
        if (failed(caller.allocate(alloc, result)))
          return failure();
        ++numBuffers;
      } else if (auto copy = dyn_cast<gpu::MemcpyOp>(op)) {
        if (failed(caller.read(copy)))
          return failure();
      } else {
        caller.free(cast<memref::DeallocOp>(op));
      }
    }
    return success();
  }

  /// Kernels cannot access what the host has in its own memory.
  static LogicalResult checkConstants(func::FuncOp function) {
    WalkResult result = function.walk([](memref::GetGlobalOp get) {
      for (Operation *user : get->getUsers())
        if (!isa<memref::LoadOp>(user)) {
          InFlightDiagnostic diagnostic =
              get.emitOpError()
              << "is in the host's memory, expected a copy in the GPU's where "
                 "it is more than loaded";
          diagnostic.attachNote(user->getLoc()) << "used here";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  static LogicalResult findResults(func::FuncOp function,
                                   DenseMap<Operation *, int64_t> &results) {
    for (auto ret : function.getOps<func::ReturnOp>())
      for (auto [index, value] : llvm::enumerate(ret.getOperands())) {
        if (!isa<MemRefType>(value.getType()))
          continue;
        memref::AllocOp alloc = getAllocation(value);
        if (!alloc || alloc->getBlock() != ret->getBlock() ||
            !results.try_emplace(alloc, index).second)
          return ret.emitOpError()
                 << "returns as result " << index
                 << " a buffer that is not its own allocation; expected one "
                    "`memref.alloc` in this block for each result";
      }
    return success();
  }
};

} // namespace
} // namespace fovea
