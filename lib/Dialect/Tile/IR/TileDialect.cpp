//===- TileDialect.cpp - The tile dialect ---------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fovea::tile;

#include "fovea/Dialect/Tile/IR/TileDialect.cpp.inc"
#include "fovea/Dialect/Tile/IR/TileEnums.cpp.inc"
#define GET_OP_CLASSES
#include "fovea/Dialect/Tile/IR/TileOps.cpp.inc"

namespace {
/// Prints layouts once, as aliases, since they are long.
struct TileAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (!isa<LayoutAttr>(attribute))
      return AliasResult::NoAlias;
    os << "layout";
    return AliasResult::FinalAlias;
  }
};
} // namespace

void TileDialect::initialize() {
  addInterfaces<TileAsmInterface>();
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "fovea/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

BlockArgument LaunchOp::getTiedArgument(OpOperand &operand) {
  return getBody().getArgument(operand.getOperandNumber());
}

OpOperand &LaunchOp::getTiedOperand(BlockArgument argument) {
  assert(argument.getArgNumber() >= getGrid().size() && "a block's index");
  return getOperation()->getOpOperand(argument.getArgNumber());
}

void LaunchOp::createProgram(OpBuilder &builder) {
  Block *program = builder.createBlock(&getBody());
  for (Type type : (*this)->getOperandTypes()) {
    if (auto shaped = dyn_cast<ShapedType>(type))
      type = getArgumentType(shaped);
    program->addArgument(type, getLoc());
  }
}

MemRefType LaunchOp::getArgumentType(ShapedType type) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  Attribute space;
  if (auto memref = dyn_cast<MemRefType>(type))
    space = memref.getMemorySpace();
  return MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides),
      space);
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

using Effects = SmallVectorImpl<MemoryEffects::EffectInstance>;

/// Adds the effects of the region, if any, that gives the places of rows.
static void addPlaceEffects(Region &place, Effects &effects) {
  if (place.empty())
    return;
  for (Operation &op : place.front())
    if (auto nested = getEffectsRecursively(&op))
      llvm::append_range(effects, *nested);
    else
      effects.emplace_back(MemoryEffects::Read::get());
}

SharedType LoadAsyncOp::getCopiedTile() {
  SharedType tile = getSlot().getType();
  if (!getRuns())
    return tile;
  auto runs = static_cast<int64_t>(*getRuns());
  if (runs % kSwizzledRows)
    return {};
  return SharedType::get(getContext(), {runs, tile.getShape().back()},
                         tile.getElementType(), tile.getSwizzle(),
                         tile.getRuns());
}

void LoadOp::getEffects(Effects &effects) {
  addPlaceEffects(getPlace(), effects);
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable());
  // The tile is in memory of the op's own.
  if (isa<SharedType>(getResult().getType()))
    effects.emplace_back(MemoryEffects::Write::get(), SharedMemory::get());
}

void PrefetchOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable());
  // A hint that nobody reads is not dead.
  effects.emplace_back(MemoryEffects::Write::get(), Caches::get());
}

void StoreOp::getEffects(Effects &effects) {
  if (getAdd())
    effects.emplace_back(MemoryEffects::Read::get(), &getTargetMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getTargetMutable());
}

void ToSharedOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), SharedMemory::get());
  effects.emplace_back(MemoryEffects::Write::get(), SharedMemory::get());
}

void StoreAsyncOp::getEffects(Effects &effects) {
  // Stores keep their order, and stay between the tile's writes and waits.
  effects.emplace_back(MemoryEffects::Read::get(), SharedMemory::get());
  effects.emplace_back(MemoryEffects::Write::get(), SharedMemory::get());
  if (!isa<MemRefType>(getTarget().getType()))
    return;
  if (getAdd())
    effects.emplace_back(MemoryEffects::Read::get(), &getTargetMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getTargetMutable());
}

/// Several blocks read and write numbers: reads and writes of `ordered` stay in
/// front of the op or behind.
static void addMeetingEffects(OpOperand &numbers,
                              SideEffects::Resource *ordered,
                              Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &numbers);
  effects.emplace_back(MemoryEffects::Write::get(), &numbers);
  effects.emplace_back(MemoryEffects::Read::get(), ordered);
  effects.emplace_back(MemoryEffects::Write::get(), ordered);
}

void ClaimOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getCounterMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getCounterMutable());
}

void SignalOp::getEffects(Effects &effects) {
  addMeetingEffects(getFlagsMutable(), SideEffects::DefaultResource::get(),
                    effects);
}

void AwaitOp::getEffects(Effects &effects) {
  addMeetingEffects(getFlagsMutable(), SideEffects::DefaultResource::get(),
                    effects);
}

void TakeTurnOp::getEffects(Effects &effects) {
  addMeetingEffects(getTurnsMutable(), SharedMemory::get(), effects);
}

void PassTurnOp::getEffects(Effects &effects) {
  addMeetingEffects(getTurnsMutable(), SharedMemory::get(), effects);
}

void LoadAsyncOp::getEffects(Effects &effects) {
  addPlaceEffects(getPlace(), effects);
  if (isa<MemRefType>(getSource().getType()))
    effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable());
  effects.emplace_back(MemoryEffects::Read::get(), SharedMemory::get());
  effects.emplace_back(MemoryEffects::Write::get(), SharedMemory::get());
}

void MmaOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), SharedMemory::get());
}

void MmaAsyncOp::getEffects(Effects &effects) {
  // Issues keep their order, and stay between the wait and the release of a
  // slot.
  effects.emplace_back(MemoryEffects::Read::get(), SharedMemory::get());
  effects.emplace_back(MemoryEffects::Write::get(), SharedMemory::get());
}

void TensorMapOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Allocate::get(),
                       cast<OpResult>(getResult()));
}

/// Returns what `get` does of `op`, if that copies a tile from or to global
/// memory.
template <typename Get>
static std::optional<uint64_t> getOfAccess(Operation *op, Get get) {
  return llvm::TypeSwitch<Operation *, std::optional<uint64_t>>(op)
      .Case<LoadOp, LoadAsyncOp, StoreOp, StoreAsyncOp, TensorMapOp>(get)
      .Default(std::nullopt);
}

int64_t fovea::tile::getInnerRows(Operation *op) {
  auto get = [](auto access) { return access.getInner(); };
  return static_cast<int64_t>(getOfAccess(op, get).value_or(0));
}

int64_t fovea::tile::getUsedRows(Operation *op) {
  auto get = [](auto access) { return access.getUsed(); };
  std::optional<uint64_t> used = getOfAccess(op, get);
  return used ? static_cast<int64_t>(*used) : getInnerRows(op);
}

int64_t fovea::tile::countPlaces(Operation *op, int64_t rows) {
  return rows / std::max<int64_t>(getInnerRows(op), 1);
}
