//===- TileVerify.cpp - Verifiers of tile ops -----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/IR/SharedMemory.h"
#include "fovea/Dialect/Tile/IR/TensorMaps.h"

using namespace mlir;
using namespace fovea::tile;

//===----------------------------------------------------------------------===//
// Attributes of ops
//===----------------------------------------------------------------------===//

/// Checks that an attribute is an i64 from 0 up, below `end` if that is given,
/// and a multiple of `factor`.
static LogicalResult verifyNumber(Operation *op, NamedAttribute attribute,
                                  int64_t factor,
                                  std::optional<int64_t> end = std::nullopt) {
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (number && number.getType().isSignlessInteger(64) &&
      number.getInt() >= 0 && (!end || number.getInt() < *end) &&
      number.getInt() % factor == 0)
    return success();
  InFlightDiagnostic error = op->emitOpError()
                             << "expects '" << attribute.getName().getValue()
                             << "' to be an i64 of at least 0";
  if (end)
    error << " and below " << *end;
  if (factor > 1)
    error << ", a multiple of " << factor;
  return error << ", but it is " << attribute.getValue();
}

/// Checks that an op with the attribute `name` also has the attribute `other`.
static LogicalResult verifyPair(Operation *op, StringRef name,
                                StringRef other) {
  if (op->hasAttr(other))
    return success();
  return op->emitOpError() << "has '" << name << "', so it needs '" << other
                           << "'";
}

static LogicalResult verifyPlace(Operation *op, StringRef name, bool isPlace,
                                 StringRef places) {
  if (isPlace)
    return success();
  return op->emitOpError() << "expects '" << name << "' only on " << places;
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kStageAttrName)
    return failure(failed(verifyNumber(op, attribute, 1, /*end=*/2)) ||
                   failed(verifyPair(op, name, kOrderAttrName)));
  if (name == kOrderAttrName)
    return failure(failed(verifyNumber(op, attribute, 1)) ||
                   failed(verifyPair(op, name, kStageAttrName)));
  if (name == kSharedOffsetAttrName)
    return failure(failed(verifyNumber(op, attribute, kSharedAlignment)) ||
                   failed(verifyPlace(op, name, hasTiles(op),
                                      "an op with a place for tiles")) ||
                   (isa<RingOp>(op) &&
                    failed(verifyPair(op, name, kBarrierOffsetAttrName))));
  if (name == kBarrierOffsetAttrName)
    return failure(
        failed(verifyNumber(op, attribute, kBarrierBytes)) ||
        failed(verifyPlace(op, name, isa<RingOp>(op), "a tile.ring")) ||
        failed(verifyPair(op, name, kSharedOffsetAttrName)));
  return op->emitOpError() << "has the attribute " << attribute.getName()
                           << ", which the tile dialect does not know";
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verify() {
  if (getGrid().empty() || getGrid().size() > 3)
    return emitOpError("expected a grid of 1 to 3 dimensions, got ")
           << getGrid().size();
  auto arguments = getBody().getArguments();
  if (arguments.size() != getNumOperands())
    return emitOpError("expected ")
           << getNumOperands()
           << " region arguments, one for each dimension of the grid and each "
              "operand, got "
           << arguments.size();
  for (auto [argument, operand] : llvm::zip_equal(arguments, getOperands())) {
    Type expected = operand.getType();
    if (auto shaped = dyn_cast<ShapedType>(expected))
      expected = getArgumentType(shaped);
    if (argument.getType() != expected)
      return emitOpError("expected region argument ")
             << argument.getArgNumber() << " of type " << expected << ", got "
             << argument.getType();
  }
  size_t tensors =
      llvm::count_if(getOutputs().getTypes(), llvm::IsaPred<RankedTensorType>);
  if (getNumResults() != tensors)
    return emitOpError("expected a result for each tensor of outs, ")
           << tensors << ", got " << getNumResults();
  return success();
}

LogicalResult RolesOp::verify() {
  int64_t warps = 0;
  RoleOp before;
  for (Operation &op : getBody().front()) {
    auto role = dyn_cast<RoleOp>(op);
    if (!role)
      return op.emitOpError("must not stand among roles");
    if (warps % kGroupWarps && role.getRegisters() != before.getRegisters())
      return role.emitOpError("expected the register budget of role \"")
             << before.getName() << "\", with which it shares a warp group";
    warps += role.getWarps();
    before = role;
  }
  if (before && before.getRegisters() && warps % kGroupWarps)
    return before.emitOpError("with a register budget must end a warp group of "
                              "4 warps, got ")
           << warps << " warps to its end";
  return success();
}

LogicalResult RoleOp::verify() {
  std::optional<int64_t> registers = getRegisters();
  if (!registers)
    return success();
  if (*registers < 24 || *registers > 256 || *registers % 8)
    return emitOpError("expected a register budget of 24 to 256, a multiple of "
                       "8, got ")
           << *registers;
  return success();
}

/// Verifies an op that each warp group of a role runs.
static LogicalResult verifyOfGroups(Operation *op) {
  auto role = op->getParentOfType<RoleOp>();
  if (!role)
    return op->emitOpError("expected to stand in a role");
  int64_t warps = role.getWarps();
  if (role.getSingle() || warps % kGroupWarps)
    return op->emitOpError("expected a role that whole warp groups of 4 warps "
                           "run, got ")
           << (role.getSingle() ? "one thread" : "part of a group")
           << " in role \"" << role.getName() << "\"";
  return success();
}

LogicalResult GroupOp::verify() { return verifyOfGroups(*this); }

/// Verifies an op on the turn of a role's warp groups.
static LogicalResult verifyGroupTurn(Operation *op) {
  if (failed(verifyOfGroups(op)))
    return failure();
  auto role = op->getParentOfType<RoleOp>();
  if (int64_t groups = role.getWarps() / kGroupWarps; groups < 2)
    return op->emitOpError("expected a role of at least 2 warp groups, got ")
           << groups << " in role \"" << role.getName() << "\"";
  return success();
}

LogicalResult TakeGroupTurnOp::verify() { return verifyGroupTurn(*this); }

LogicalResult PassGroupTurnOp::verify() { return verifyGroupTurn(*this); }

LogicalResult ClusterRankOp::verify() {
  if (auto launch = (*this)->getParentOfType<LaunchOp>();
      launch && launch.getCluster())
    return success();
  return emitOpError("expected to stand in a launch of clusters");
}

LogicalResult OfRowsOp::verify() {
  Block &body = getBody().front();
  auto isIndex = [](Type type) { return isa<IndexType>(type); };
  if (body.getNumArguments() != 2 ||
      !llvm::all_of(body.getArgumentTypes(), isIndex))
    return emitOpError("expected a region of two indices, the first and the "
                       "last row");
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || yield.getValues().size() != 1 ||
      yield.getValue().getType() != getWhole().getType())
    return emitOpError("expected a region that yields ")
           << getWhole().getType();
  return success();
}

LogicalResult OfItemOp::verify() {
  Block &body = getBody().front();
  if (body.getNumArguments() != 1 || !body.getArgument(0).getType().isIndex())
    return emitOpError("expected a region of one index, a program's number");
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || yield.getValues().getTypes() != getNumbers().getTypes())
    return emitOpError("expected a region that yields (")
           << getNumbers().getTypes() << ")";
  return success();
}

LogicalResult CombinePartsOp::verify() {
  Block &body = getBody().front();
  SmallVector<Type> parts(getValues().getTypes());
  parts.append(getValues().getTypes().begin(), getValues().getTypes().end());
  if (body.getArgumentTypes() != TypeRange(parts))
    return emitOpError("expected a region of the values of two parts, first "
                       "those of the earlier one");
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || yield.getValues().getTypes() != getValues().getTypes())
    return emitOpError("expected a region that yields values of the types of "
                       "its operands");
  return success();
}

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

static std::pair<ArrayRef<int64_t>, Type> getTile(Type type) {
  if (auto shared = dyn_cast<SharedType>(type))
    return {shared.getShape(), shared.getElementType()};
  auto fragment = cast<FragmentType>(type);
  return {fragment.getShape(), fragment.getElementType()};
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

/// Returns the rows of a tile that an op with a fragment of `rows` reads or
/// writes: these, or those of one of the warp groups of its role that run
/// apart.
static int64_t getTileRows(Operation *op, SharedType tile, int64_t rows) {
  auto role = op->getParentOfType<RoleOp>();
  bool isOfGroup =
      role && tile.getShape().front() == kGroupRows &&
      rows * kGroupWarps == kGroupRows * static_cast<int64_t>(role.getWarps());
  return isOfGroup ? kGroupRows : rows;
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
// Fragments
//===----------------------------------------------------------------------===//

LogicalResult MapOp::verify() {
  FragmentType result = getResult().getType();
  LayoutAttr layout = result.getLayout();
  auto verifyOperand = [&](Value operand, ArrayRef<int64_t> shape,
                           LayoutAttr expected) -> LogicalResult {
    auto type = cast<FragmentType>(operand.getType());
    if (type.getShape() != shape)
      return emitOpError("expected an operand of shape ")
             << shape << ", got " << type;
    if (!layout && !type.getLayout())
      return success();
    if (!layout)
      return emitOpError("expected an operand without a layout, as the "
                         "result, got ")
             << type;
    // The order of registers may differ; threads must hold the elements they
    // need.
    if (!type.getLayout() || !expected.getPermutationFrom(type.getLayout()))
      return emitOpError("expected an operand whose threads hold the result's "
                         "elements, as in ")
             << expected << ", got " << type;
    return success();
  };
  for (Value input : getInputs())
    if (failed(verifyOperand(input, result.getShape(), layout)))
      return failure();
  if (!(getRows().empty() && getColumns().empty()) && result.getRank() != 2)
    return emitOpError("with rows or columns must have a result of rank 2");
  for (Value row : getRows())
    if (failed(verifyOperand(row, result.getShape().front(),
                             layout ? layout.dropDim(1) : layout)))
      return failure();
  for (Value column : getColumns())
    if (failed(verifyOperand(column, result.getShape().back(),
                             layout ? layout.dropDim(0) : layout)))
      return failure();

  SmallVector<Type> expected;
  for (Value operand : getOperands())
    expected.push_back(cast<FragmentType>(operand.getType()).getElementType());
  expected.append(result.getRank(), IndexType::get(getContext()));
  if (getBody().getArgumentTypes() != TypeRange(expected))
    return emitOpError("expected region arguments ")
           << TypeRange(expected) << ": one element of each operand, then "
           << result.getRank() << " coordinates; got "
           << getBody().getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (!yield || yield.getValues().size() != 1 ||
      yield.getValue().getType() != result.getElementType())
    return emitOpError("expected the region to yield ")
           << result.getElementType();
  return success();
}

LogicalResult SumDiagonalsOp::verify() {
  FragmentType input = getInput().getType();
  if (input.getRank() != 2 || !isa<FloatType>(input.getElementType()))
    return emitOpError("expected a fragment of rank 2 of floats, got ")
           << input;
  return success();
}

LogicalResult AnyOp::verify() {
  if (!getInput().getType().getElementType().isInteger(1))
    return emitOpError("expected a fragment of i1, got ")
           << getInput().getType();
  return success();
}

LogicalResult ExtremesOp::verify() {
  if (!getInput().getType().getElementType().isInteger(32))
    return emitOpError("expected a fragment of i32, got ")
           << getInput().getType();
  return success();
}

std::optional<SmallVector<int64_t>> ReduceOp::getCombinedRegisters() {
  LayoutAttr from = getInput().getType().getLayout(),
             to = getResult().getType().getLayout();
  return getNeighbors() ? from.getJoinedRegisters(to)
                        : from.getWrappedRegisters(to);
}

LogicalResult ReduceOp::verify() {
  FragmentType input = getInput().getType(), result = getResult().getType();
  if (input.getRank() != 2 || getDim() < 0 || getDim() > 1)
    return emitOpError("expected a fragment of rank 2 and a dimension of it, "
                       "got ")
           << input << " and " << getDim();
  int64_t dim = getDim(), kept = input.getShape()[1 - dim];
  bool isPart = result.getRank() == 2;
  if (getNeighbors() && !isPart)
    return emitOpError("expected a result of rank 2 of neighbors, got ")
           << result;
  if (isPart) {
    int64_t size = input.getShape()[dim], part = result.getShape()[dim];
    if (result.getShape()[1 - dim] != kept || part >= size || size % part ||
        result.getElementType() != input.getElementType())
      return emitOpError("expected a result of ")
             << kept << " elements of " << input.getElementType()
             << ", or of rank 2 that is narrower along dimension " << dim
             << " by a whole factor, got " << result;
  } else if (result.getShape() != ArrayRef(kept) ||
             result.getElementType() != input.getElementType()) {
    return emitOpError("expected a result of ")
           << kept << " elements of " << input.getElementType() << ", got "
           << result;
  }
  LayoutAttr from = input.getLayout(), to = result.getLayout();
  if (!from != !to)
    return emitOpError("expected a result with a layout if and only if the "
                       "operand has one, got ")
           << result;
  if (!from)
    return success();
  if (isPart) {
    if (!getCombinedRegisters())
      return emitOpError("expected a result whose threads hold the places of "
                         "their elements ")
             << (getNeighbors() ? "divided by the factor of the sizes"
                                : "modulo its size")
             << ", got " << result << " of " << input;
    if (!getNeighbors())
      return success();
  } else if (!to.getPermutationFrom(from.dropDim(getDim())))
    return emitOpError("expected a result whose threads hold the rows or "
                       "columns that remain, as in ")
           << from.dropDim(getDim()) << ", got " << result;
  // Elements that are less apart are combined.
  int64_t reach = input.getShape()[dim];
  if (isPart)
    reach /= result.getShape()[dim];
  int64_t weight = 1;
  for (const Digit &digit : from.getThreads()) {
    weight *= digit.size;
    if (digit.dim == dim && digit.stride < reach && weight > kWarpSize)
      return emitOpError("expected a dimension that lies within warps of ")
             << kWarpSize << " threads, got dimension " << getDim() << " of "
             << input;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

template <typename ProductOp>
static LogicalResult verifyProduct(ProductOp op, FragmentType result) {
  auto [a, aType] = getTile(op.getA().getType());
  auto [b, bType] = getTile(op.getB().getType());
  if (a.size() != 2)
    return op.emitOpError("expected a left operand of rank 2");
  bool isNarrow = aType.isF16() || aType.isBF16();
  if (op.getFrom()) {
    if (!isa<Float8E4M3FNType>(*op.getFrom()))
      return op.emitOpError("expected bytes of f8E4M3FN, got ")
             << *op.getFrom();
    if (!bType.isInteger(8) || !isNarrow)
      return op.emitOpError(
                 "expected a right operand of i8, which is widened to "
                 "f16 or bf16, got ")
             << bType << " and " << aType;
    if (op.getKind().value_or(MmaKind::MmaSync) != MmaKind::MmaSync)
      return op.emitOpError("by ") << stringifyMmaKind(*op.getKind())
                                   << " expected no bytes to widen";
  } else if (aType != bType || !(aType.isF16() || aType.isBF16() ||
                                 aType.isF32() || aType.isF64()))
    return op.emitOpError("expected operands of one type of f16, bf16, f32 or "
                          "f64, got ")
           << aType << " and " << bType;
  int64_t k = op.getTransposeB() ? b[1] : b[0];
  int64_t n = op.getTransposeB() ? b[0] : b[1];
  if (a[1] != k)
    return op.emitOpError("expected both operands to have one inner size, got ")
           << a[1] << " and " << k;
  int64_t rows = a[0];
  if (auto tile = dyn_cast<SharedType>(op.getA().getType());
      tile && result.getRank() == 2 && a[0] < result.getShape()[0] &&
      op.getKind().value_or(MmaKind::Wgmma) == MmaKind::Wgmma &&
      getTileRows(op, tile, result.getShape()[0]) == a[0])
    rows = result.getShape()[0];
  if (result.getRank() != 2 || result.getShape()[0] != rows ||
      result.getShape()[1] != n)
    return op.emitOpError("expected a result of ")
           << rows << "x" << n << " elements, got " << result;
  if (aType.isF64() ? !result.getElementType().isF64()
                    : !result.getElementType().isF32())
    return op.emitOpError("expected a result of ")
           << (aType.isF64() ? "f64" : "f32") << ", got "
           << result.getElementType();
  Type acc = op.getAcc() ? op.getAcc().getType() : Type(result);
  if (auto token = dyn_cast<TokenType>(acc))
    acc = token.getFragment();
  if (acc != result)
    return op.emitOpError("expected an accumulator of the result's type ")
           << result << ", got " << op.getAcc().getType();
  if (auto inner = op.getInner()) {
    bool isRange = inner->size() == 2 && (*inner)[0] >= 0 &&
                   (*inner)[0] < (*inner)[1] && (*inner)[1] <= k &&
                   (*inner)[0] % 16 == 0 && (*inner)[1] % 16 == 0;
    if (!isRange)
      return op.emitOpError("expected a range of inner indices of ")
             << k << ", in multiples of 16, got " << *inner;
  }
  if (op.getRows() &&
      (op.getAcc() || static_cast<int64_t>(*op.getRows()) > rows))
    return op.emitOpError("expected rows of the result's ")
           << rows << ", and no accumulator, beside rows " << *op.getRows();
  if (op.getKind() && *op.getKind() != MmaKind::Fma && !isNarrow)
    return op.emitOpError("by ")
           << stringifyMmaKind(*op.getKind())
           << " expected operands of f16 or bf16, got " << aType;
  return success();
}

LogicalResult MmaOp::verify() {
  return verifyProduct(*this, getResult().getType());
}

LogicalResult MmaAsyncOp::verify() {
  if (getKind() && *getKind() != MmaKind::Wgmma)
    return emitOpError("expected wgmma, the only asynchronous product, got ")
           << stringifyMmaKind(*getKind());
  if (getFrom())
    return emitOpError("expected no bytes to widen");
  return verifyProduct(*this, getToken().getType().getFragment());
}

LogicalResult WaitMmaOp::verify() {
  if (getPending() < 0 || getPending() > 7)
    return emitOpError("expected 0 to 7 products pending, got ")
           << getPending();
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
