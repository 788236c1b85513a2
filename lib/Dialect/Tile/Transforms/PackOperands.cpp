//===- PackOperands.cpp - Packed copies of operands for TMA ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/Passes.h"

#include "fovea/Dialect/Tile/IR/TensorMaps.h"
#include "fovea/Support/DebugLog.h"
#include "fovea/Support/OutlinedChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "tile-pack-operands"

using namespace mlir;

namespace fovea::tile {
#define GEN_PASS_DEF_TILEPACKOPERANDS
#include "fovea/Dialect/Tile/Transforms/Passes.h.inc"

static int64_t getElementBytes(MemRefType type) {
  return llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Returns true if a row of `type` has whole units of a descriptor's strides.
static bool hasWholeRows(MemRefType type) {
  int64_t columns = type.getShape().back();
  return !ShapedType::isDynamic(columns) &&
         columns * getElementBytes(type) % kTensorMapAlignment == 0;
}

/// Returns true if `value` is all of a buffer that was allocated in this
/// function, in the order of memory, with rows of whole units: allocations are
/// aligned.
static bool isAligned(Value value) {
  while (auto cast = value.getDefiningOp<memref::CastOp>())
    value = cast.getSource();
  auto alloc = value.getDefiningOp<memref::AllocOp>();
  return alloc && alloc.getType().getLayout().isIdentity() &&
         hasWholeRows(alloc.getType());
}

/// Returns true if a copy from or to shared memory accesses `argument` in a way
/// that TMA supports.
static bool isAccessedByDescriptor(BlockArgument argument) {
  auto type = cast<MemRefType>(argument.getType());
  return llvm::any_of(argument.getUsers(), [&](Operation *user) {
    if (auto load = dyn_cast<LoadAsyncOp>(user))
      return load.getSource() == argument &&
             suitsTensorMap(type, load.getDims(), load.getCopiedTile());
    if (auto store = dyn_cast<StoreAsyncOp>(user))
      return store.getTarget() == argument &&
             suitsTensorMap(type, store.getDims(), store.getSource().getType());
    return false;
  });
}

/// Returns true if `value` can be computed from the arguments of `function`
/// alone, as ops that were `seen` can. Constants are in the device's memory
/// only while the function runs.
static bool isComputable(Value value, func::FuncOp function,
                         llvm::SmallPtrSetImpl<Operation *> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return llvm::is_contained(function.getArguments(), value);
  if (seen.contains(op))
    return true;
  if (op->getNumRegions() || !isPure(op) || isa<memref::GetGlobalOp>(op))
    return false;
  for (Value operand : op->getOperands())
    if (!isComputable(operand, function, seen))
      return false;
  seen.insert(op);
  return true;
}

/// Creates the function that returns 1 if all `tests` of `function` hold, which
/// depend on its arguments only, and else 0.
static void createCheck(func::FuncOp function, ArrayRef<Value> tests) {
  ImplicitLocOpBuilder builder(function.getLoc(), function.getContext());
  builder.setInsertionPointAfter(function);
  auto check =
      func::FuncOp::create(builder, getAlignmentCheckName(function.getName()),
                           builder.getFunctionType(function.getArgumentTypes(),
                                                   builder.getIndexType()));
  Block *body = check.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  mapping.map(function.getArguments(), body->getArguments());
  Value all = cloneSlice(builder, tests.front(), mapping);
  for (Value test : tests.drop_front()) {
    Value other = cloneSlice(builder, test, mapping);
    all = arith::AndIOp::create(builder, all, other);
  }
  Value result =
      arith::IndexCastUIOp::create(builder, builder.getIndexType(), all);
  func::ReturnOp::create(builder, result);
}

namespace {
struct TilePackOperands final
    : fovea::tile::impl::TilePackOperandsBase<TilePackOperands> {
  using TilePackOperandsBase::TilePackOperandsBase;

  void runOnOperation() override {
    SmallVector<LaunchOp> launches;
    getOperation()->walk([&](LaunchOp op) { launches.push_back(op); });
    for (LaunchOp launch : launches) {
      // An operand that is given twice is packed once.
      DenseMap<Value, Value> packed;
      for (OpOperand &operand : launch->getOpOperands()) {
        // A memref without elements is not accessed, whatever its address.
        auto type = dyn_cast<MemRefType>(operand.get().getType());
        if (!type || llvm::is_contained(type.getShape(), 0) ||
            !isAccessedByDescriptor(launch.getTiedArgument(operand)) ||
            isAligned(operand.get()))
          continue;
        bool isOutput = launch.isDpsInit(&operand);
        Value buffer = isOutput ? Value() : packed.lookup(operand.get());
        if (!buffer) {
          buffer = replace(launch, operand.get(), isOutput);
          LDBG() << "operand " << operand.getOperandNumber() << ", " << type
                 << ": "
                 << (buffer == operand.get() ? "the caller tests its strides"
                                             : "copied where a descriptor does "
                                               "not suit its strides");
          ++numChecked;
        }
        if (!isOutput)
          packed[operand.get()] = buffer;
        operand.set(buffer);
      }
    }
    for (auto &[function, tests] : outlined)
      createCheck(function, tests);
    outlined.clear();
  }

private:
  Value replace(LaunchOp launch, Value operand, bool isOutput);
  Value pack(LaunchOp launch, memref::ExtractStridedMetadataOp metadata,
             Value suits, bool isOutput);

  /// The tests that the callers of functions make.
  llvm::MapVector<func::FuncOp, SmallVector<Value>> outlined;
};
} // namespace

/// Returns what the launch gets in the place of `operand`.
Value TilePackOperands::replace(LaunchOp launch, Value operand, bool isOutput) {
  ImplicitLocOpBuilder builder(launch.getLoc(), launch);
  auto type = cast<MemRefType>(operand.getType());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, value);
  };
  auto toBytes = [&](Value elements) -> Value {
    return arith::MulIOp::create(builder, elements,
                                 constant(getElementBytes(type)));
  };

  auto metadata = memref::ExtractStridedMetadataOp::create(builder, operand);
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, operand);
  Value bits =
      arith::AddIOp::create(builder, address, toBytes(metadata.getOffset()));
  // A descriptor may have a stride of 0, as that of a broadcast, but none that
  // is negative.
  for (Value stride : metadata.getStrides().drop_back())
    bits = arith::OrIOp::create(builder, bits, toBytes(stride));
  Value isPositive = arith::CmpIOp::create(builder, arith::CmpIPredicate::sge,
                                           bits, constant(0));
  Value rest =
      arith::AndIOp::create(builder, bits, constant(kTensorMapAlignment - 1));
  Value divides = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, rest,
                                        constant(0));
  Value suits = arith::AndIOp::create(builder, isPositive, divides);

  auto function = launch->getParentOfType<func::FuncOp>();
  llvm::SmallPtrSet<Operation *, 16> seen;
  if (outlineTests && hasWholeRows(type) && function.isPublic() &&
      isComputable(suits, function, seen)) {
    outlined[function].push_back(suits);
    return operand;
  }
  return pack(launch, metadata, suits, isOutput);
}

/// Returns an operand if it `suits` a descriptor, else a suitable copy, which
/// is freed after the launch; the copy of an output is copied back.
Value TilePackOperands::pack(LaunchOp launch,
                             memref::ExtractStridedMetadataOp metadata,
                             Value suits, bool isOutput) {
  ImplicitLocOpBuilder builder(launch.getLoc(), launch);
  Value operand = metadata.getSource();
  auto type = cast<MemRefType>(operand.getType());
  int64_t rank = type.getRank(), bytes = getElementBytes(type);
  auto branch = scf::IfOp::create(builder, TypeRange(type), suits,
                                  /*withElseRegion=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, operand);
  builder.setInsertionPointToStart(branch.elseBlock());
  // Rows of whole units.
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<OpFoldResult> sizes;
  SmallVector<Value> allocated;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    bool isDynamic = ShapedType::isDynamic(size);
    Value value = metadata.getSizes()[dim];
    sizes.push_back(isDynamic ? OpFoldResult(value)
                              : builder.getIndexAttr(size));
    if (isDynamic)
      allocated.push_back(value);
  }
  int64_t unit = std::max<int64_t>(1, kTensorMapAlignment / bytes);
  if (ShapedType::isDynamic(shape.back())) {
    Value rowUnit = arith::ConstantIndexOp::create(builder, unit);
    Value units =
        arith::CeilDivUIOp::create(builder, allocated.back(), rowUnit);
    allocated.back() = arith::MulIOp::create(builder, units, rowUnit);
  } else {
    shape.back() = llvm::alignTo(shape.back(), unit);
  }
  auto whole =
      MemRefType::get(shape, type.getElementType(), MemRefLayoutAttrInterface(),
                      type.getMemorySpace());
  Value buffer = memref::AllocOp::create(builder, whole, allocated);
  SmallVector<OpFoldResult> zeros(rank, builder.getIndexAttr(0)),
      ones(rank, builder.getIndexAttr(1));
  Value view = memref::SubViewOp::create(builder, buffer, zeros, sizes, ones);
  memref::CopyOp::create(builder, operand, view);
  Value cast = memref::CastOp::create(builder, type, view);
  scf::YieldOp::create(builder, cast);

  builder.setInsertionPointAfter(launch);
  Value isCopy = arith::XOrIOp::create(
      builder, suits,
      arith::ConstantOp::create(builder, builder.getBoolAttr(true)));
  auto cleanup = scf::IfOp::create(builder, isCopy, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(cleanup.thenBlock());
  if (isOutput)
    memref::CopyOp::create(builder, branch.getResult(0), operand);
  memref::DeallocOp::create(builder, branch.getResult(0));
  return branch.getResult(0);
}

} // namespace fovea::tile
