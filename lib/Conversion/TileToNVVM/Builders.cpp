//===- Builders.cpp - Threads, shared memory, instructions ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InlinePtx.h"
#include "Patterns.h"

#include "fovea/Dialect/Machine/IR/Machine.h"
#include "fovea/Dialect/Tile/IR/SharedMemory.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea::tile;

const fovea::machine::GpuArch &fovea::tile::getGpuArch(Operation *op) {
  return machine::getGpuOrDefault(op).getGpuArch();
}

/// The name of the block's dynamic shared memory.
static constexpr llvm::StringLiteral kSharedMemoryName = "fovea_shared_memory";

//===----------------------------------------------------------------------===//
// The threads that run an op
//===----------------------------------------------------------------------===//

/// Returns the number of `role` among its neighbours, and its first warp.
static std::pair<int64_t, int64_t> getPlace(RoleOp role) {
  int64_t number = 0, warps = 0;
  for (auto other : role->getParentOp()->getRegion(0).getOps<RoleOp>()) {
    if (other == role)
      break;
    ++number;
    warps += other.getWarps();
  }
  return {number, warps};
}

int64_t fovea::tile::getNumThreads(Operation *op) {
  if (auto role = op->getParentOfType<RoleOp>())
    return kWarpSize * role.getWarps();
  auto sizes = op->getParentOfType<gpu::GPUFuncOp>().getKnownBlockSizeAttr();
  return llvm::product_of(sizes.asArrayRef());
}

Value fovea::tile::getThread(OpBuilder &builder, Operation *op) {
  Location loc = op->getLoc();
  Value thread = NVVM::ThreadIdXOp::create(builder, loc, builder.getI32Type());
  if (auto role = op->getParentOfType<RoleOp>())
    if (int64_t first = getPlace(role).second)
      thread = arith::SubIOp::create(builder, loc, thread,
                                     getI32(builder, loc, first * kWarpSize));
  return thread;
}

Value fovea::tile::getLane(OpBuilder &builder, Operation *op) {
  Location loc = op->getLoc();
  Value thread = NVVM::ThreadIdXOp::create(builder, loc, builder.getI32Type());
  return arith::AndIOp::create(builder, loc, thread,
                               getI32(builder, loc, kWarpSize - 1));
}

Value fovea::tile::getThreadCoordinate(OpBuilder &builder, Operation *op,
                                       LayoutAttr layout, int64_t dim) {
  Location loc = op->getLoc();
  Value thread = getThread(builder, op), sum;
  int64_t weight = 1, threads = layout.getNumThreads();
  for (const Digit &digit : layout.getThreads()) {
    int64_t above = weight * digit.size;
    if (digit.dim == dim) {
      Value place = thread;
      if (weight != 1)
        place = arith::DivUIOp::create(builder, loc, place,
                                       getI32(builder, loc, weight));
      if (above != threads)
        place = arith::RemUIOp::create(builder, loc, place,
                                       getI32(builder, loc, digit.size));
      if (digit.stride != 1)
        place = arith::MulIOp::create(builder, loc, place,
                                      getI32(builder, loc, digit.stride));
      sum = sum ? arith::AddIOp::create(builder, loc, sum, place).getResult()
                : place;
    }
    weight = above;
  }
  return sum ? sum : getI32(builder, loc, 0);
}

void fovea::tile::emitBarrier(OpBuilder &builder, Operation *op) {
  Location loc = op->getLoc();
  auto role = op->getParentOfType<RoleOp>();
  if (!role) {
    NVVM::BarrierOp::create(builder, loc);
    return;
  }
  if (role.getWarps() == 1) {
    NVVM::SyncWarpOp::create(builder, loc, getI32(builder, loc, -1));
    return;
  }
  // Barrier 0 is for the whole block.
  NVVM::BarrierOp::create(builder, loc, TypeRange{},
                          getI32(builder, loc, getPlace(role).first + 1),
                          getI32(builder, loc, getNumThreads(op)),
                          NVVM::BarrierReductionAttr{}, Value{});
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// The array that stands for the block's dynamic shared memory.
static LLVM::GlobalOp getSharedMemory(OpBuilder &builder, Operation *op) {
  auto module = op->getParentOfType<gpu::GPUModuleOp>();
  if (auto global = module.lookupSymbol<LLVM::GlobalOp>(kSharedMemoryName))
    return global;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  return LLVM::GlobalOp::create(builder, module.getLoc(), type,
                                /*isConstant=*/false, LLVM::Linkage::External,
                                kSharedMemoryName, Attribute{},
                                kSharedAlignment, kSharedSpace);
}

Value fovea::tile::getSharedAddress(OpBuilder &builder, Operation *op,
                                    int64_t offset) {
  Location loc = op->getLoc();
  Value base =
      LLVM::AddressOfOp::create(builder, loc, getSharedMemory(builder, op));
  Value address =
      LLVM::PtrToIntOp::create(builder, loc, builder.getI32Type(), base);
  if (!offset)
    return address;
  return arith::AddIOp::create(builder, loc, address,
                               getI32(builder, loc, offset));
}

Value fovea::tile::getZeros(OpBuilder &builder, Operation *op, int64_t bytes) {
  constexpr unsigned kAlignment = 16;
  auto module = op->getParentOfType<gpu::GPUModuleOp>();
  std::string name = llvm::formatv("fovea_zeros_{0}", bytes);
  auto global = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!global) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes);
    global = LLVM::GlobalOp::create(builder, module.getLoc(), type,
                                    /*isConstant=*/true,
                                    LLVM::Linkage::Internal, name,
                                    builder.getZeroAttr(RankedTensorType::get(
                                        {bytes}, builder.getI8Type())),
                                    kAlignment, kGlobalSpace);
  }
  return LLVM::AddressOfOp::create(builder, op->getLoc(), global);
}

Value fovea::tile::toSharedPointer(OpBuilder &builder, Location loc,
                                   Value address, int64_t offset) {
  auto type = LLVM::LLVMPointerType::get(builder.getContext(), kSharedSpace);
  Value pointer = LLVM::IntToPtrOp::create(builder, loc, type, address);
  if (!offset)
    return pointer;
  return LLVM::GEPOp::create(builder, loc, type, builder.getI8Type(), pointer,
                             LLVM::GEPArg(static_cast<int32_t>(offset)));
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

Value fovea::tile::getI32(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}

Value fovea::tile::packVector(OpBuilder &builder, Location loc,
                              ValueRange values) {
  if (values.size() == 1)
    return values.front();
  Type elementType = values.front().getType();
  SmallVector<Value> elements(values);
  bool areRounded = llvm::all_of(values, [](Value value) {
    auto round = value.getDefiningOp<arith::TruncFOp>();
    return round && round.getIn().getType().isF32();
  });
  if (areRounded)
    for (Value &element : elements)
      element = element.getDefiningOp<arith::TruncFOp>().getIn();
  int64_t size = elements.size();
  Value vector = LLVM::PoisonOp::create(
      builder, loc, VectorType::get(size, elements.front().getType()));
  for (auto [index, element] : llvm::enumerate(elements))
    vector = LLVM::InsertElementOp::create(builder, loc, vector, element,
                                           getI32(builder, loc, index));
  if (areRounded)
    vector = arith::TruncFOp::create(
        builder, loc, VectorType::get(size, elementType), vector);
  return vector;
}

Value fovea::tile::shuffle(OpBuilder &builder, Location loc, Value value,
                           NVVM::ShflKind kind, Value place) {
  Type type = value.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  assert(width <= 64 && "more than two registers");
  Type i32 = builder.getI32Type();
  auto exchange = [&](Value word) -> Value {
    return NVVM::ShflOp::create(
        builder, loc, word.getType(), getI32(builder, loc, -1), word, place,
        getI32(builder, loc, kWarpSize - 1), kind, UnitAttr{});
  };
  if (type.isF32() || type.isInteger(32))
    return exchange(value);
  Type bits = builder.getIntegerType(width);
  auto cast = [&](Value from, Type to) -> Value {
    return from.getType() == to
               ? from
               : arith::BitcastOp::create(builder, loc, to, from).getResult();
  };
  Value number = cast(value, bits);
  if (width < 32) {
    Value word = arith::ExtUIOp::create(builder, loc, i32, number);
    return cast(arith::TruncIOp::create(builder, loc, bits, exchange(word)),
                type);
  }
  auto pair = VectorType::get(2, i32);
  Value words = LLVM::BitcastOp::create(builder, loc, pair, number);
  Value result = LLVM::PoisonOp::create(builder, loc, pair);
  for (int64_t index : {0, 1}) {
    Value at = getI32(builder, loc, index);
    Value word = LLVM::ExtractElementOp::create(builder, loc, words, at);
    result =
        LLVM::InsertElementOp::create(builder, loc, result, exchange(word), at);
  }
  return cast(LLVM::BitcastOp::create(builder, loc, bits, result), type);
}

SmallVector<Value> fovea::tile::emitAsm(OpBuilder &builder, Location loc,
                                        TypeRange results, StringRef text,
                                        StringRef constraints,
                                        ValueRange operands) {
  MLIRContext *context = builder.getContext();
  SmallVector<Type> types;
  if (results.size() == 1)
    types.push_back(results.front());
  else if (!results.empty())
    types.push_back(
        LLVM::LLVMStructType::getLiteral(context, SmallVector<Type>(results)));
  std::string all = constraints.str();
  all += all.empty() ? "~{memory}" : ",~{memory}";
  auto op = LLVM::InlineAsmOp::create(
      builder, loc, types, operands, text, all, /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr{}, /*operand_attrs=*/ArrayAttr{});
  if (results.empty())
    return {};
  if (results.size() == 1)
    return {op.getRes()};
  SmallVector<Value> values;
  for (size_t index = 0; index < results.size(); ++index)
    values.push_back(
        LLVM::ExtractValueOp::create(builder, loc, op.getRes(), index));
  return values;
}
