//===- TensorMaps.cpp - TMA descriptors on the host -----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMaps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace fovea::tile;

/// The runtime's function, see `Runtime/GpuRuntime.h`.
static constexpr llvm::StringLiteral kEncode = "fovea_gpu_tensor_map";
static constexpr int64_t kMapBytes = 128;
static constexpr int64_t kMapAlignment = 64;

namespace {

/// Turns the maps of one function into calls.
class MapEncoder {
public:
  explicit MapEncoder(func::FuncOp function)
      : function(function),
        pointer(LLVM::LLVMPointerType::get(function.getContext())),
        int64(IntegerType::get(function.getContext(), 64)) {}

  LogicalResult encode(TensorMapOp op);

private:
  /// Returns a slot on the function's stack, which loops reuse.
  Value allocate(Type type, int64_t count, int64_t alignment) {
    auto top = OpBuilder::atBlockBegin(&function.getBody().front());
    Value size =
        arith::ConstantIntOp::create(top, function.getLoc(), count, 64);
    return LLVM::AllocaOp::create(top, function.getLoc(), pointer, type, size,
                                  alignment);
  }

  /// Stores these values in an array of i64.
  Value store(ImplicitLocOpBuilder &builder, ValueRange values) {
    Value array = allocate(int64, values.size(), 8);
    for (auto [index, value] : llvm::enumerate(values)) {
      Value place = LLVM::GEPOp::create(builder, pointer, int64, array,
                                        ArrayRef<LLVM::GEPArg>{int32_t(index)});
      LLVM::StoreOp::create(builder, value, place);
    }
    return array;
  }

  func::FuncOp function;
  Type pointer, int64;
};

} // namespace

/// Returns the runtime's number of an element type, or none if TMA has no such
/// type.
static std::optional<int64_t> getElementKind(Type type) {
  if (type.isF16())
    return 0;
  if (type.isBF16())
    return 1;
  if (type.isF32())
    return 2;
  if (type.isF64())
    return 3;
  // Booleans lie in bytes.
  if (type.isInteger(8) || type.isInteger(1))
    return 5;
  if (type.isInteger(16))
    return 6;
  if (type.isInteger(32))
    return 7;
  return std::nullopt;
}

LogicalResult MapEncoder::encode(TensorMapOp op) {
  MemRefType source = op.getSource().getType();
  SharedType tile = op.getResult().getType().getTile();
  std::optional<int64_t> kind = getElementKind(source.getElementType());
  if (!kind)
    return op.emitOpError("expected elements of f16, bf16, f32, f64 or an "
                          "integer of 1, 8, "
                          "16 or 32 bits, got ")
           << source.getElementType();
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, value, 64);
  };
  auto toInt = [&](Value value) -> Value {
    return arith::IndexCastOp::create(builder, int64, value);
  };
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, op.getLoc(),
                                                           op.getSource());
  int64_t elementBytes = tile.getElementBytes();
  Value address = toInt(
      memref::ExtractAlignedPointerAsIndexOp::create(builder, op.getSource()));
  Value offset = arith::MulIOp::create(builder, toInt(metadata.getOffset()),
                                       constant(elementBytes));
  Value begin = arith::AddIOp::create(builder, address, offset);

  SmallVector<Value> sizes, strides, box;
  int64_t inner = getInnerRows(op);
  int64_t rows = countPlaces(op, tile.getShape().front());
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(source.getRank())));
  moveInnerRows(op, op.getDims(), order);
  for (int64_t dim : order) {
    Value size = toInt(metadata.getSizes()[dim]);
    Value stride = arith::MulIOp::create(
        builder, toInt(metadata.getStrides()[dim]), constant(elementBytes));
    bool isRows = dim == op.getDims().front();
    int64_t extent = 1;
    if (dim == op.getDims().back())
      extent = tile.getPanelColumns();
    else if (isRows)
      extent = op.getUsed() ? 1 : rows;
    else if (inner && dim == op.getDims()[1])
      extent = getUsedRows(op);
    if (isRows && op.getClipped()) {
      sizes.push_back(constant(rows));
      strides.push_back(stride);
      box.push_back(constant(rows));
      begin = arith::SubIOp::create(
          builder, begin,
          arith::MulIOp::create(builder, stride, constant(rows)));
      size = arith::AddIOp::create(builder, size, constant(rows));
      extent = 1;
    }
    sizes.push_back(size);
    if (dim + 1 < source.getRank())
      strides.push_back(stride);
    box.push_back(constant(extent));
  }
  if (tile.getRuns()) {
    // The outermost dimension is from panel to panel.
    sizes.front() = constant(tile.getPanelColumns());
    strides.push_back(constant(tile.getRowBytes()));
    sizes.push_back(
        constant(source.getShape().back() / tile.getPanelColumns()));
    box.push_back(constant(tile.getNumPanels()));
  }
  Value base = LLVM::IntToPtrOp::create(builder, pointer, begin);

  Value map = allocate(LLVM::LLVMArrayType::get(builder.getI8Type(), kMapBytes),
                       1, kMapAlignment);
  SmallVector<Value> operands = {map,
                                 base,
                                 constant(*kind),
                                 constant(op.getResult().getType().getRank()),
                                 store(builder, sizes),
                                 store(builder, strides),
                                 store(builder, box),
                                 constant(tile.getSwizzle())};
  auto module = function->getParentOfType<ModuleOp>();
  auto callee = module.lookupSymbol<func::FuncOp>(kEncode);
  if (!callee) {
    auto top = OpBuilder::atBlockBegin(module.getBody());
    callee = func::FuncOp::create(
        top, module.getLoc(), kEncode,
        builder.getFunctionType(ValueRange(operands).getTypes(), {}));
    callee.setPrivate();
  }
  func::CallOp::create(builder, callee, operands);
  op.getResult().replaceAllUsesWith(map);
  op.erase();
  return success();
}

LogicalResult fovea::tile::lowerTensorMaps(ModuleOp module) {
  for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
    MapEncoder encoder(function);
    SmallVector<TensorMapOp> ops;
    function.walk([&](TensorMapOp op) { ops.push_back(op); });
    for (TensorMapOp op : ops)
      if (failed(encoder.encode(op)))
        return failure();
  }
  return success();
}

void fovea::tile::describeTensorMaps(gpu::GPUModuleOp module) {
  Builder builder(module.getContext());
  Type map = LLVM::LLVMArrayType::get(builder.getI8Type(), kMapBytes);
  for (auto kernel : module.getOps<gpu::GPUFuncOp>())
    for (BlockArgument argument : kernel.getArguments()) {
      if (!isa<TensorMapType>(argument.getType()))
        continue;
      unsigned index = argument.getArgNumber();
      kernel.setArgAttr(index, LLVM::LLVMDialect::getByValAttrName(),
                        TypeAttr::get(map));
      kernel.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                        builder.getI64IntegerAttr(kMapAlignment));
    }
}
