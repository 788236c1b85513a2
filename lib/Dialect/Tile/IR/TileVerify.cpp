//===- TileVerify.cpp - Verifiers of tile ops -----------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileVerify.h"

#include "fovea/Dialect/Tile/IR/SharedMemory.h"

using namespace mlir;
using namespace fovea::tile;

std::pair<ArrayRef<int64_t>, Type> fovea::tile::getTile(Type type) {
  if (auto shared = dyn_cast<SharedType>(type))
    return {shared.getShape(), shared.getElementType()};
  auto fragment = cast<FragmentType>(type);
  return {fragment.getShape(), fragment.getElementType()};
}

int64_t fovea::tile::getTileRows(Operation *op, SharedType tile, int64_t rows) {
  auto role = op->getParentOfType<RoleOp>();
  bool isOfGroup =
      role && tile.getShape().front() == kGroupRows &&
      rows * kGroupWarps == kGroupRows * static_cast<int64_t>(role.getWarps());
  return isOfGroup ? kGroupRows : rows;
}

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
