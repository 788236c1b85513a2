//===- TileVerifyMemory.cpp - Verifiers of ops on memory ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileVerify.h"

#include "fovea/Dialect/Tile/IR/SharedMemory.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"

using namespace mlir;
using namespace fovea::tile;

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

/// Checks that a tile of `shape` along `dims` fits a tensor of `rank` that is
/// accessed at `indices`.
static LogicalResult verifyAccess(Operation *op, ArrayRef<int64_t> shape,
                                  ArrayRef<int64_t> dims, int64_t rank,
                                  size_t indices) {
  if (static_cast<int64_t>(indices) != rank)
    return op->emitOpError("expected ") << rank << " indices, got " << indices;
  int64_t inner = getInnerRows(op);
  if (inner && (!llvm::isPowerOf2_64(inner) || inner > kGroupRows ||
                shape.front() % inner))
    return op->emitOpError("expected 'inner' to be a power of two up to ")
           << kGroupRows << " that divides the tile's " << shape.front()
           << " rows, got " << inner;
  int64_t used = getUsedRows(op);
  bool isGiven = op->getInherentAttr("used").value_or(Attribute()) != nullptr;
  if (isGiven && used >= inner)
    return op->emitOpError("expected 'used' to be less than 'inner', ")
           << inner << ", got " << used;
  size_t along = shape.size() + (inner ? 1 : 0);
  if (dims.size() != along)
    return op->emitOpError("expected a dimension of the memref for each of the "
                           "tile's ")
           << shape.size() << (inner ? ", and one for 'inner'" : "") << ", got "
           << dims.size();
  for (auto [index, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= rank ||
        llvm::is_contained(dims.take_front(index), dim))
      return op->emitOpError(
                 "expected different dimensions of a memref of rank ")
             << rank << ", got " << dim;
  return success();
}

static LogicalResult verifyElements(Operation *op, Type tile, Type memory) {
  if (tile == memory)
    return success();
  return op->emitOpError("expected a tile of the memref's elements, ")
         << memory << ", got " << tile;
}

/// Checks that there are two bounds of rows, or none.
static LogicalResult verifyRows(Operation *op, size_t bounds) {
  if (bounds == 0 || bounds == 2)
    return success();
  return op->emitOpError("expected the first of the rows and their end, got ")
         << bounds << " bounds";
}

/// Checks the region that gives the places of the rows of a load, which copies
/// to `tile` from a memref or tensor map of rank `rank`.
template <typename OpTy>
static LogicalResult verifyPlaces(OpTy op, SharedType tile, int64_t rank) {
  Region &region = op.getPlace();
  if (!op.getIndices().empty())
    return op.emitOpError("expected indices or a region, got both");
  int64_t runs = *op.getRuns();
  if (tile.getShape().front() % runs)
    return op.emitOpError("expected runs that divide the tile's ")
           << tile.getShape().front() << " rows, got " << runs;
  if (region.empty() || region.getNumArguments() != 1 ||
      !region.getArgument(0).getType().isIndex())
    return op.emitOpError("expected a region with a row, an index, as its "
                          "argument");
  auto yield = dyn_cast_or_null<YieldOp>(
      region.front().empty() ? nullptr : &region.front().back());
  if (!yield)
    return op.emitOpError("expected a region that ends with tile.yield");
  bool isPlace = llvm::all_of(yield.getValues().getTypes(),
                              [](Type type) { return type.isIndex(); });
  if (!isPlace || static_cast<int64_t>(yield.getValues().size()) != rank - 1)
    return yield.emitOpError("expected ")
           << rank - 1 << " indices, one for each dimension but the last, got "
           << yield.getValues().getTypes();
  if (op.getDims().empty() || op.getDims().back() != rank - 1)
    return op.emitOpError("expected the tile's columns along the last "
                          "dimension, ")
           << rank - 1;
  return success();
}

/// Checks that a load without runs has no attribute or region for them.
template <typename OpTy>
static LogicalResult verifyNoPlaces(OpTy op) {
  if (op.getWholeRuns())
    return op.emitOpError("has 'whole_runs', so it needs 'runs'");
  if (!op.getPlace().empty())
    return op.emitOpError("has a region, so it needs 'runs'");
  return success();
}

/// Checks that a load of rows along two dimensions has no runs or bounds.
template <typename OpTy>
static LogicalResult verifyInner(OpTy op) {
  if (op.getInner() && (op.getRuns() || !op.getRows().empty()))
    return op.emitOpError("has 'inner', so it can have neither 'rows' nor "
                          "'runs'");
  return success();
}

LogicalResult LoadOp::verify() {
  auto [shape, elementType] = getTile(getResult().getType());
  MemRefType source = getSource().getType();
  if (failed(verifyRows(*this, getRows().size())) || failed(verifyInner(*this)))
    return failure();
  if (getAligned() && !isa<FragmentType>(getResult().getType()))
    return emitOpError("expected a fragment whose rows are aligned, got ")
           << getResult().getType();
  if (getRuns()) {
    auto tile = dyn_cast<SharedType>(getResult().getType());
    if (!tile)
      return emitOpError("expected a tile in shared memory whose rows a region "
                         "places, got ")
             << getResult().getType();
    if (failed(verifyElements(*this, elementType, source.getElementType())) ||
        failed(verifyPlaces(*this, tile, source.getRank())))
      return failure();
    return verifyAccess(*this, shape, getDims(), source.getRank(),
                        source.getRank());
  }
  if (failed(verifyNoPlaces(*this)))
    return failure();
  if (getInner() && !isa<SharedType>(getResult().getType()))
    return emitOpError("expected a tile in shared memory whose rows run along "
                       "two dimensions, got ")
           << getResult().getType();
  if (!getRows().empty() && !isa<SharedType>(getResult().getType()))
    return emitOpError("expected a tile in shared memory to bound the rows "
                       "of, got ")
           << getResult().getType();
  if (failed(verifyElements(*this, elementType, source.getElementType())))
    return failure();
  return verifyAccess(*this, shape, getDims(), source.getRank(),
                      getIndices().size());
}

LogicalResult StoreOp::verify() {
  auto [shape, elementType] = getTile(getValue().getType());
  MemRefType target = getTarget().getType();
  if (getAdd() &&
      !isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(elementType))
    return emitOpError("expected elements of f16, bf16, f32 or f64 to add, "
                       "got ")
           << elementType;
  if (failed(verifyElements(*this, elementType, target.getElementType())))
    return failure();
  return verifyAccess(*this, shape, getDims(), target.getRank(),
                      getIndices().size());
}

/// Checks an asynchronous copy of `tile` between shared memory and `global`, a
/// memref or a tensor map.
static LogicalResult verifyCopy(Operation *op, SharedType tile, Type global,
                                ArrayRef<int64_t> dims, size_t indices) {
  if (auto map = dyn_cast<TensorMapType>(global)) {
    if (map.getTile() != tile)
      return op->emitOpError("expected a tensor map of tiles ")
             << tile << ", got " << map.getTile();
    return verifyAccess(op, tile.getShape(), dims, map.getNumIndices(),
                        indices);
  }
  auto memref = cast<MemRefType>(global);
  if (failed(
          verifyElements(op, tile.getElementType(), memref.getElementType())))
    return failure();
  return verifyAccess(op, tile.getShape(), dims, memref.getRank(), indices);
}

LogicalResult LoadAsyncOp::verify() {
  if (failed(verifyRows(*this, getRows().size())) || failed(verifyInner(*this)))
    return failure();
  int64_t runs = getSlot().getType().getRuns();
  if (runs && static_cast<int64_t>(getRuns().value_or(0)) != runs)
    return emitOpError("expected 'runs ")
           << runs << "' to fill a slot " << getSlot().getType();
  if (!getRuns()) {
    if (failed(verifyNoPlaces(*this)))
      return failure();
    return verifyCopy(*this, getSlot().getType(), getSource().getType(),
                      getDims(), getIndices().size());
  }
  auto map = dyn_cast<TensorMapType>(getSource().getType());
  int64_t rank = map ? map.getNumIndices()
                     : cast<MemRefType>(getSource().getType()).getRank();
  if (failed(verifyPlaces(*this, getSlot().getType(), rank)))
    return failure();
  SharedType tile = map ? getCopiedTile() : getSlot().getType();
  if (!tile)
    return emitOpError("by a tensor map expected runs of a multiple of 8 rows, "
                       "got ")
           << *getRuns();
  return verifyCopy(*this, tile, getSource().getType(), getDims(), rank);
}

LogicalResult ShiftRowsOp::verify() {
  if (getTile().getType().getRuns())
    return emitOpError("expected a tile that is not in runs, got ")
           << getTile().getType();
  return success();
}

LogicalResult StoreAsyncOp::verify() {
  SharedType tile = getSource().getType();
  Type type = tile.getElementType();
  if (tile.getRuns())
    return emitOpError("expected a tile that is not in runs, got ") << tile;
  if (getAdd() && !type.isF16() && !type.isBF16() && !type.isF32())
    return emitOpError("expected elements of f16, bf16 or f32 to add, got ")
           << type;
  if (needsClippedMap() && getIndices().size() > kLargestClippedRank)
    return emitOpError("expected at most ")
           << kLargestClippedRank
           << " dimensions where some rows are not written, got "
           << getIndices().size();
  return verifyCopy(*this, tile, getTarget().getType(), getDims(),
                    getIndices().size());
}

/// Checks that `tile` can hold a fragment.
static LogicalResult verifyWrite(Operation *op, FragmentType value,
                                 SharedType tile, bool isTransposed) {
  SmallVector<int64_t> shape(value.getShape());
  if (isTransposed)
    std::reverse(shape.begin(), shape.end());
  else if (isa<WriteOp>(op))
    shape.front() = getTileRows(op, tile, shape.front());
  if (ArrayRef(shape) == tile.getShape() &&
      value.getElementType() == tile.getElementType())
    return success();
  return op->emitOpError("expected a tile of the fragment's ")
         << (isTransposed ? "transposed shape" : "shape") << " and elements, "
         << value << ", got " << tile;
}

/// Checks that a slot has a row of i32, with room for numbers.
static LogicalResult verifyNumbers(Operation *op, SharedType slot,
                                   TypeRange numbers) {
  if (numbers.empty())
    return op->emitOpError("expected at least one number");
  if (slot.getShape().front() != 1 || !slot.getElementType().isInteger(32))
    return op->emitOpError("expected a slot of a row of i32, got ") << slot;
  int64_t bytes = getNumberBytes(numbers);
  int64_t room = slot.getShape().back() * int64_t(sizeof(int32_t));
  if (bytes <= room)
    return success();
  return op->emitOpError("expected a slot of ")
         << bytes << " bytes for the numbers, got " << room;
}

LogicalResult PublishOp::verify() {
  if (auto role = (*this)->getParentOfType<RoleOp>(); role && !role.getSingle())
    return emitOpError("expected a role of one thread");
  return verifyNumbers(*this, getSlot().getType(), getNumbers().getTypes());
}

LogicalResult ReadNumbersOp::verify() {
  return verifyNumbers(*this, getSource().getType(), getNumbers().getTypes());
}

LogicalResult ClaimOp::verify() {
  auto type = cast<MemRefType>(getCounter().getType());
  if (type.getRank() == 1 && type.getElementType().isInteger(32))
    return success();
  return emitOpError("expected a memref of one i32, got ") << type;
}

LogicalResult WriteOp::verify() {
  FragmentType value = getValue().getType();
  SharedType slot = getSlot().getType();
  if (!getColumn())
    return verifyWrite(*this, value, slot, /*isTransposed=*/false);
  if (value.getRank() != 2 ||
      getTileRows(*this, slot, value.getShape()[0]) != slot.getShape()[0] ||
      value.getElementType() != slot.getElementType())
    return emitOpError("expected a tile of the fragment's rows and elements, ")
           << value << ", got " << slot;
  auto column = static_cast<int64_t>(*getColumn());
  int64_t columns = slot.getShape()[1];
  if (column < 0 || column % columns || column + columns > value.getShape()[1])
    return emitOpError("expected a first column that is a multiple of the "
                       "slot's ")
           << columns << " and leaves as many of the fragment's "
           << value.getShape()[1] << ", got " << column;
  return success();
}

/// Checks that `tile` can hold what the bytes of `source`, of type `from`, are
/// widened to by `warps` warps.
static LogicalResult verifyWidening(Operation *op, SharedType source, Type from,
                                    SharedType tile, int64_t warps) {
  constexpr int64_t kUnit = 8;
  Type wide = tile.getElementType();
  if (!isa<Float8E4M3FNType>(from))
    return op->emitOpError("expected bytes of f8E4M3FN, got ") << from;
  if (!source.getElementType().isInteger(8) || source.getShape().back() % kUnit)
    return op->emitOpError(
               "expected a tile of i8 with columns in multiples of ")
           << kUnit << ", got " << source;
  if (source.getShape() != tile.getShape() || (!wide.isF16() && !wide.isBF16()))
    return op->emitOpError("expected a tile of the shape of ")
           << source << " with elements of f16 or bf16, got " << tile;
  if (warps % kGroupWarps)
    return op->emitOpError("expected warps in groups of ")
           << kGroupWarps << ", got " << warps;
  return success();
}

LogicalResult WidenOp::verify() {
  return verifyWidening(*this, getSource().getType(), getFrom(),
                        getResult().getType(),
                        static_cast<int64_t>(getWarps()));
}

LogicalResult WidenIntoOp::verify() {
  return verifyWidening(*this, getSource().getType(), getFrom(),
                        getSlot().getType(), static_cast<int64_t>(getWarps()));
}

LogicalResult ToSharedOp::verify() {
  SharedType tile = getResult().getType();
  if (failed(verifyWrite(*this, getValue().getType(), tile, getTransposed())))
    return failure();
  if (getSlots() && getRing())
    return emitOpError("must not reuse a ring and have slots of its own");
  if (getSlots() && *getSlots() < 2)
    return emitOpError("expected at least 2 slots, got ") << *getSlots();
  if (!getRing())
    return success();
  RingType ring = getRing().getType();
  int64_t bytes = ring.getTile().getSizeInBytes() * ring.getStages();
  if (tile.getSizeInBytes() > bytes)
    return emitOpError("expected a tile of at most the ring's ")
           << bytes << " bytes, got " << tile.getSizeInBytes();
  return success();
}

/// Checks that `turns` has a number for each lane of each block.
static LogicalResult verifyTurns(Operation *op, MemRefType turns,
                                 size_t indices, int64_t lanes) {
  if (!turns.getElementType().isInteger(32) || turns.getRank() == 0)
    return op->emitOpError("expected a memref of i32 of rank 1 or more, got ")
           << turns;
  if (static_cast<int64_t>(indices) != turns.getRank())
    return op->emitOpError("expected ")
           << turns.getRank() << " indices, got " << indices;
  if (lanes > 1 &&
      (turns.getRank() == 1 || turns.getDimSize(turns.getRank() - 2) != lanes))
    return op->emitOpError("expected the dimension before the last to be of ")
           << lanes << " lanes, got " << turns;
  return success();
}

LogicalResult TakeTurnOp::verify() {
  return verifyTurns(*this, getTurns().getType(), getIndices().size(),
                     getLanes());
}

LogicalResult PassTurnOp::verify() {
  return verifyTurns(*this, getTurns().getType(), getIndices().size(),
                     getLanes());
}

/// Checks that `flags` has a number for each warp at `indices`.
static LogicalResult verifyFlags(Operation *op, MemRefType flags,
                                 size_t indices) {
  if (!flags.getElementType().isInteger(32) || flags.getRank() == 0)
    return op->emitOpError("expected a memref of i32 of rank 1 or more, got ")
           << flags;
  if (static_cast<int64_t>(indices) + 1 != flags.getRank())
    return op->emitOpError("expected ")
           << flags.getRank() - 1 << " indices, got " << indices;
  auto launch = op->getParentOfType<LaunchOp>();
  if (launch &&
      flags.getShape().back() != static_cast<int64_t>(launch.getWarps()))
    return op->emitOpError("expected a last dimension of ")
           << launch.getWarps() << ", the warps that compute, got " << flags;
  return success();
}

LogicalResult SignalOp::verify() {
  return verifyFlags(*this, getFlags().getType(), getIndices().size());
}

LogicalResult AwaitOp::verify() {
  return verifyFlags(*this, getFlags().getType(), getIndices().size());
}

LogicalResult PrefetchOp::verify() {
  int64_t rank = getSource().getType().getRank();
  if (rank > 0 && static_cast<int64_t>(getIndices().size()) == rank - 1)
    return success();
  return emitOpError("expected an index for each dimension but the last of ")
         << getSource().getType() << ", got " << getIndices().size();
}

LogicalResult FromSharedOp::verify() {
  SharedType tile = getSource().getType();
  FragmentType result = getResult().getType();
  if (bool(getFirst()) != bool(getSteps()))
    return emitOpError("expected a first column and steps, or neither");
  if (getTransposed() && getSteps())
    return emitOpError("expected 'transposed' or steps, not both");
  if (getTransposed()) {
    if (result.getRank() != 2 ||
        tile.getElementType() != result.getElementType() ||
        !llvm::equal(llvm::reverse(tile.getShape()), result.getShape()))
      return emitOpError("expected a matrix of the elements of the tile, its "
                         "rows the tile's columns, ")
             << tile << ", got " << result;
    return success();
  }
  if (std::optional<ArrayRef<int64_t>> steps = getSteps()) {
    if (result.getRank() != 2 || steps->size() != 2 ||
        tile.getShape().front() != 1 ||
        tile.getElementType() != result.getElementType())
      return emitOpError("expected a matrix of the elements of a tile of one "
                         "row by two steps, got ")
             << result << " of " << tile << " by " << steps->size();
    int64_t columns = getLineColumns(*steps, result.getShape());
    if (columns > tile.getShape().back())
      return emitOpError("expected a tile of at least ")
             << columns << " columns, got " << tile;
    return success();
  }
  bool isRow = result.getRank() == 1 && tile.getShape().front() == 1;
  if ((isRow ? tile.getShape().drop_front() : tile.getShape()) !=
          result.getShape() ||
      tile.getElementType() != result.getElementType())
    return emitOpError("expected a fragment of the tile's shape and elements, "
                       "or of its only row, ")
           << tile << ", got " << result;
  return success();
}

LogicalResult TensorMapOp::verify() {
  MemRefType source = getSource().getType();
  TensorMapType map = getResult().getType();
  SharedType tile = map.getTile();
  if (failed(verifyElements(*this, tile.getElementType(),
                            source.getElementType())))
    return failure();
  if (getClipped() && getUsed())
    return emitOpError("has 'used', so it cannot be 'clipped': its rows are "
                       "those of one place");
  int64_t rank = getTensorMapRank(source.getRank() + getClipped(), tile);
  if (map.getRank() != rank)
    return emitOpError("expected a map of rank ")
           << rank << ", got " << map.getRank();
  if (failed(verifyAccess(*this, tile.getShape(), getDims(), source.getRank(),
                          source.getRank())))
    return failure();
  if (getDims().back() != source.getRank() - 1)
    return emitOpError("expected the tile's columns along the memref's last "
                       "dimension, got ")
           << getDims().back();
  if (!hasWholePanels(source, tile))
    return emitOpError("expected a memref of a multiple of ")
           << tile.getPanelColumns() << " columns to copy panels of, got "
           << source;
  return success();
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

/// Checks a ring whose slots the blocks of a cluster fill together.
static LogicalResult verifyCluster(RingOp op) {
  int64_t blocks = op.getBlocksOfCluster();
  if (auto launch = op->getParentOfType<LaunchOp>();
      launch && launch.getBlocksOfCluster() != blocks)
    return op.emitOpError("is filled by ")
           << blocks << " blocks, in a launch whose clusters have "
           << launch.getBlocksOfCluster();
  if (op.getBase() || op.getGroups())
    return op.emitOpError("is filled by a cluster; expected no shared slots, "
                          "and none of groups");
  if (int64_t panels = op.getRing().getType().getTile().getNumPanels();
      panels % blocks)
    return op.emitOpError("expected a number of panels that ")
           << blocks << " blocks divide, got " << panels;
  for (Operation *user : op.getRing().getUsers()) {
    auto load = dyn_cast<LoadAsyncOp>(user);
    bool isPlain = load && load.getRows().empty() && !load.getRuns();
    if (isPlain || isa<AcquireOp, WaitOp, ReleaseOp, ToSharedOp>(user))
      continue;
    InFlightDiagnostic error = op.emitOpError(
        "is filled by a cluster; expected copies of whole tiles");
    error.attachNote(user->getLoc()) << "used here";
    return error;
  }
  return success();
}

LogicalResult RingOp::verify() {
  if ((*this)->getParentOfType<RoleOp>())
    return emitOpError("must stand before the roles that share it");
  if (getRing().getType().getStages() % getNumGroups() ||
      (getBase() && getGroups()))
    return emitOpError("expected slots of its own for ")
           << getNumGroups() << " groups, got " << getRing().getType()
           << (getBase() ? " that shares others" : "");
  if (getCluster() && failed(verifyCluster(*this)))
    return failure();
  if (!getBase())
    return success();
  RingType ring = getRing().getType(), base = getBase().getType();
  if (auto op = getBase().getDefiningOp<RingOp>(); op && op.getBase())
    return emitOpError("must not share the slots of a ring that shares others");
  if (ring.getStages() != base.getStages())
    return emitOpError("expected as many slots as the shared ring has, ")
           << base.getStages() << ", got " << ring.getStages();
  if (getSlotBytes(ring) > getSlotBytes(base))
    return emitOpError("expected slots of at most the shared ring's ")
           << getSlotBytes(base) << " bytes, got " << getSlotBytes(ring);
  return success();
}
