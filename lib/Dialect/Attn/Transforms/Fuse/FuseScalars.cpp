//===- FuseScalars.cpp - Elements of tensors as scalar graphs -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FuseScalars.h"

#include "FuseContraction.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using linalg::LinalgOp;

namespace fovea::attn::fuse {

/// Elements beyond this depth are leaves: so deep or large a graph is not the
/// elementwise work around attention.
static constexpr unsigned kMaxDepth = 256;
static constexpr unsigned kMaxScalars = 8192;

ScalarGraph::ScalarGraph(AxisTable &axes, MLIRContext *context)
    : axes(axes), builder(context) {
  builder.setInsertionPointToEnd(&scratch);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value ScalarGraph::getLeaf(const Leaf &leaf) {
  Access access = axes.flatten(leaf.access);
  for (BlockArgument argument : scratch.getArguments()) {
    auto it = leaves.find(argument);
    if (it != leaves.end() && it->second.tensor == leaf.tensor &&
        it->second.access == access &&
        it->second.productOnly == leaf.productOnly)
      return argument;
  }
  Value argument = scratch.addArgument(getElementTypeOrSelf(leaf.tensor),
                                       leaf.tensor.getLoc());
  leaves[argument] = {leaf.tensor, access, leaf.productOnly};
  return argument;
}

Value ScalarGraph::getIndex(ArrayRef<Axis> list) {
  Axes flat = axes.flatten(list);
  Location loc = builder.getUnknownLoc();
  if (flat.empty())
    return createConstant(loc, builder.getIndexAttr(0));
  for (BlockArgument argument : scratch.getArguments()) {
    auto it = indices.find(argument);
    if (it != indices.end() && it->second == flat)
      return argument;
  }
  Value argument = scratch.addArgument(builder.getIndexType(), loc);
  indices[argument] = flat;
  return argument;
}

const Leaf *ScalarGraph::lookupOrigin(Value scalar) const {
  auto it = origins.find(scalar);
  return it == origins.end() ? nullptr : &it->second;
}

Operation *ScalarGraph::lookupObstacle(Value tensor) const {
  Operation *maker = tensor.getDefiningOp();
  const auto *found = llvm::find_if(obstacles, [&](Operation *obstacle) {
    return obstacle->getParentOp() == maker;
  });
  return found == obstacles.end() ? nullptr : *found;
}

const Leaf *ScalarGraph::lookupLeaf(Value scalar) const {
  auto it = leaves.find(scalar);
  return it == leaves.end() ? nullptr : &it->second;
}

const Axes *ScalarGraph::lookupIndex(Value scalar) const {
  auto it = indices.find(scalar);
  return it == indices.end() ? nullptr : &it->second;
}

/// Takes over `op`, the last op of the scratch block, or finds the equal op
/// that exists.
Value ScalarGraph::intern(Operation *op) {
  SmallVector<OpFoldResult, 1> folded;
  if (!op->hasTrait<OpTrait::ConstantLike>()) {
    for (unsigned round = 0; round < 4 && succeeded(op->fold(folded)); ++round)
      if (!folded.empty())
        break;
    if (!folded.empty()) {
      Value value = dyn_cast<Value>(folded.front());
      if (!value)
        if (auto attr = dyn_cast<TypedAttr>(cast<Attribute>(folded.front())))
          if (isa<FloatAttr, IntegerAttr>(attr) &&
              attr.getType() == op->getResult(0).getType())
            value = createConstant(op->getLoc(), attr);
      if (value) {
        op->erase();
        return value;
      }
    }
  }
  size_t hash = OperationEquivalence::computeHash(
      op, OperationEquivalence::directHashValue,
      OperationEquivalence::ignoreHashValue,
      OperationEquivalence::IgnoreLocations);
  // The hash is shifted, as the map reserves the largest values as keys.
  SmallVector<Operation *, 1> &candidates = interned[hash >> 1];
  for (Operation *other : candidates) {
    if (OperationEquivalence::isEquivalentTo(
            op, other, OperationEquivalence::exactValueMatch,
            /*markEquivalent=*/nullptr,
            OperationEquivalence::IgnoreLocations)) {
      op->erase();
      return other->getResult(0);
    }
  }
  candidates.push_back(op);
  return op->getResult(0);
}

Value ScalarGraph::createConstant(Location loc, TypedAttr value) {
  return create<arith::ConstantOp>(loc, value);
}

Value ScalarGraph::createFloat(Location loc, Type type, double value) {
  return createConstant(loc, builder.getFloatAttr(type, value));
}

Value ScalarGraph::createLike(Operation *op, ValueRange operands, Type result) {
  OperationState state(op->getLoc(), op->getName(), operands, result,
                       op->getAttrs());
  return intern(builder.create(state));
}

Value ScalarGraph::cast(Location loc, Value scalar, Type type) {
  auto from = llvm::cast<FloatType>(scalar.getType());
  auto to = llvm::cast<FloatType>(type);
  if (from == to)
    return scalar;
  if (from.getWidth() < to.getWidth())
    return create<arith::ExtFOp>(loc, to, scalar);
  if (from.getWidth() > to.getWidth())
    return create<arith::TruncFOp>(loc, to, scalar);
  // A cast between f16 and bf16 goes through f32.
  return cast(loc, cast(loc, scalar, builder.getF32Type()), type);
}

/// Returns a scalar that is defined outside of all payloads; a constant is
/// copied into the graph.
Value ScalarGraph::getOutside(Value scalar) {
  Operation *def = scalar.getDefiningOp();
  if (!def || isa<ShapedType>(scalar.getType()))
    return scalar;
  Attribute attr;
  if (!matchPattern(scalar, m_Constant(&attr))) {
    SmallVector<OpFoldResult, 1> folded;
    // This folds a tensor.extract of a constant. The fold changes no op, since
    // it is tried only where all operands are constants.
    bool constantOperands = def->getNumOperands() > 0 &&
                            def->getNumRegions() == 0 &&
                            def->getNumResults() == 1 &&
                            llvm::all_of(def->getOperands(), [](Value value) {
                              return matchPattern(value, m_Constant());
                            });
    if (!constantOperands || failed(def->fold(folded)) || folded.empty())
      return scalar;
    attr = dyn_cast<Attribute>(folded.front());
  }
  if (auto typed = dyn_cast_or_null<TypedAttr>(attr))
    if (isa<FloatAttr, IntegerAttr>(typed) &&
        typed.getType() == scalar.getType())
      return createConstant(scalar.getLoc(), typed);
  return scalar;
}

DenseSet<Value>
ScalarGraph::dependents(function_ref<bool(BlockArgument)> isSource) {
  DenseSet<Value> result;
  for (BlockArgument argument : scratch.getArguments())
    if (isSource(argument))
      result.insert(argument);
  for (Operation &op : scratch)
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return result.contains(operand); }))
      result.insert_range(op.getResults());
  return result;
}

DenseSet<Value> ScalarGraph::varying(ArrayRef<Axis> along) {
  Axes flat = axes.flatten(along);
  auto meets = [&](const Axes &list) {
    return llvm::any_of(
        list, [&](Axis axis) { return llvm::is_contained(flat, axis); });
  };
  return dependents([&](BlockArgument argument) {
    if (const Axes *index = lookupIndex(argument))
      return meets(*index);
    const Leaf *leaf = lookupLeaf(argument);
    return leaf && llvm::any_of(leaf->access, meets);
  });
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Value ScalarGraph::read(Value tensor, const Access &access) {
  Access flat = axes.flatten(access);
  auto &entries = known[tensor];
  for (auto &[place, value] : entries)
    if (place == flat)
      return value;
  ++depth;
  llvm::scope_exit leave([&] { --depth; });
  Value value;
  if (depth < kMaxDepth &&
      leaves.size() + scratch.getOperations().size() < kMaxScalars)
    value = expand(tensor, flat, [&](Value source, const Access &place) {
      return read(source, place);
    });
  if (!value)
    value = getLeaf({tensor, flat});
  else if (value.getDefiningOp())
    origins.try_emplace(value, Leaf{tensor, flat});
  known[tensor].push_back({flat, value});
  return value;
}

Value ScalarGraph::readOnce(Value tensor, const Access &access) {
  return expand(tensor, axes.flatten(access),
                [&](Value source, const Access &place) {
                  return getLeaf({source, place});
                });
}

Value ScalarGraph::expand(Value tensor, const Access &access, Reader read) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  Operation *op = tensor.getDefiningOp();
  if (!type || !op)
    return nullptr;
  axes.learn(type, access);
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::ConstantOp constant) -> Value {
        auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
        if (!splat)
          return nullptr;
        auto value = dyn_cast<TypedAttr>(splat.getSplatValue<Attribute>());
        if (!value || !isa<FloatAttr, IntegerAttr>(value))
          return nullptr;
        return createConstant(op->getLoc(), value);
      })
      .Case([&](tensor::SplatOp splat) -> Value {
        return getOutside(splat.getInput());
      })
      .Case([&](tensor::CastOp cast) -> Value {
        auto source = dyn_cast<RankedTensorType>(cast.getSource().getType());
        if (!source)
          return nullptr;
        axes.learn(source, access);
        return read(cast.getSource(), access);
      })
      .Case([&](tensor::ExpandShapeOp expand) -> Value {
        Access source;
        for (const ReassociationIndices &group :
             expand.getReassociationIndices()) {
          Axes &list = source.emplace_back();
          for (int64_t dim : group)
            list.append(access[dim]);
        }
        return read(expand.getSrc(), source);
      })
      .Case([&](tensor::CollapseShapeOp collapse) -> Value {
        ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
        Access source;
        for (auto [group, list] :
             llvm::zip_equal(collapse.getReassociationIndices(), access)) {
          std::optional<SmallVector<Axes>> pieces =
              axes.cut(list, shape.slice(group.front(), group.size()));
          if (!pieces)
            return nullptr;
          source.append(pieces->begin(), pieces->end());
        }
        // Where a group is empty (rank 0), all sizes are one.
        source.resize(shape.size());
        return read(collapse.getSrc(), source);
      })
      .Case([&](tensor::GenerateOp generate) -> Value {
        Block &body = generate.getBody().front();
        IRMapping mapping;
        for (auto [argument, list] :
             llvm::zip_equal(body.getArguments(), access))
          mapping.map(argument, getIndex(list));
        return cloneBody(body, body.getTerminator()->getOperand(0), mapping,
                         [](Value) { return Value(); });
      })
      .Case([&](LinalgOp linalg) -> Value {
        return expandLinalg(linalg, cast<OpResult>(tensor).getResultNumber(),
                            access, read);
      })
      .Default([&](Operation *) -> Value {
        if (isa<AttnDialect>(op->getDialect()))
          return expandAttn(op, access, read);
        return expandElementwise(op, access, read);
      });
}

/// Expands an elementwise op of arith or math on whole tensors.
Value ScalarGraph::expandElementwise(Operation *op, const Access &access,
                                     Reader read) {
  if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1 ||
      op->getNumRegions() != 0 || !isMemoryEffectFree(op))
    return nullptr;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType())
                           ? read(operand, access)
                           : getOutside(operand));
  return createLike(op, operands,
                    getElementTypeOrSelf(op->getResult(0).getType()));
}

Value ScalarGraph::expandAttn(Operation *op, const Access &access,
                              Reader read) {
  Location loc = op->getLoc();
  auto coordinates = [&](Block &body, unsigned first, IRMapping &mapping) {
    for (auto [argument, list] :
         llvm::zip_equal(body.getArguments().drop_front(first), access))
      mapping.map(argument, getIndex(list));
  };
  auto none = [](Value) { return Value(); };
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](ScaleOp scale) -> Value {
        // The product is in f64, so that the factor stays exact.
        Value input = read(scale.getInput(), access);
        Type f64 = builder.getF64Type();
        Value product =
            create<arith::MulFOp>(loc, cast(loc, input, f64),
                                  createConstant(loc, scale.getFactorAttr()));
        return cast(loc, product, input.getType());
      })
      .Case([&](ModifyOp modify) -> Value {
        Block &body = modify.getBody().front();
        IRMapping mapping;
        mapping.map(body.getArgument(0), read(modify.getInput(), access));
        coordinates(body, 1, mapping);
        return cloneBody(body, body.getTerminator()->getOperand(0), mapping,
                         none);
      })
      .Case([&](MaskOp mask) -> Value {
        Block &body = mask.getBody().front();
        IRMapping mapping;
        coordinates(body, 0, mapping);
        Value keep =
            cloneBody(body, body.getTerminator()->getOperand(0), mapping, none);
        if (!keep)
          return nullptr;
        Value input = read(mask.getInput(), access);
        Value masked = createFloat(loc, input.getType(),
                                   -std::numeric_limits<double>::infinity());
        return create<arith::SelectOp>(loc, keep, input, masked);
      })
      .Case([&](ElementwiseOp elementwise) -> Value {
        Block &body = elementwise.getBody().front();
        IRMapping mapping;
        for (auto [argument, input] :
             llvm::zip_equal(body.getArguments(), elementwise.getInputs()))
          mapping.map(argument, read(input, access));
        return cloneBody(body, body.getTerminator()->getOperand(0), mapping,
                         none);
      })
      .Case([&](ResidualAddOp add) -> Value {
        Type type = getElementTypeOrSelf(add.getResult().getType());
        Value lhs = read(add.getInput(), access);
        Value rhs = read(add.getResidual(), access);
        bool isWide = lhs.getType().isF64() || rhs.getType().isF64();
        Type wide = isWide ? builder.getF64Type() : builder.getF32Type();
        Value sum = create<arith::AddFOp>(loc, cast(loc, lhs, wide),
                                          cast(loc, rhs, wide));
        return cast(loc, sum, type);
      })
      .Default([](Operation *) { return Value(); });
}

std::optional<Loops> bindLoops(AxisTable &axes, LinalgOp op, AffineMap map,
                               const Access &access) {
  Loops loops(op.getNumLoops());
  for (auto [expr, list] : llvm::zip_equal(map.getResults(), access)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      if (loops[dim.getPosition()])
        return std::nullopt;
      loops[dim.getPosition()] = list;
      continue;
    }
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    if (!constant || constant.getValue() != 0)
      return std::nullopt;
  }
  for (auto [loop, size] : llvm::zip_equal(loops, op.getStaticLoopRanges()))
    if (loop)
      axes.learn(*loop, size);
  return loops;
}

Value ScalarGraph::expandLinalg(LinalgOp op, unsigned result,
                                const Access &access, Reader read) {
  if (!op.hasPureTensorSemantics())
    return nullptr;
  if (std::optional<Contraction> contraction =
          matchContraction(*this, op->getResult(result), access)) {
    if (contraction->startsAtZero)
      return nullptr;
    // The sum of the product and its initial value.
    Value product = getLeaf({op->getResult(result), access, true});
    return create<arith::AddFOp>(
        op->getLoc(), product,
        this->read(contraction->init, contraction->initAccess));
  }
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  std::optional<Loops> loops = bindLoops(axes, op, map, access);
  if (!loops || !llvm::all_of(*loops, [](const auto &loop) { return !!loop; }))
    return nullptr;
  Operation *yield = op.getBlock()->getTerminator();
  return readPayload(op, yield->getOperand(result), *loops,
                     [&](BlockArgument argument) {
                       return readArgument(op, argument, *loops, read);
                     });
}

Value ScalarGraph::readArgument(LinalgOp op, BlockArgument argument,
                                const Loops &loops) {
  return readArgument(
      op, argument, loops,
      [&](Value tensor, const Access &access) { return read(tensor, access); });
}

Value ScalarGraph::readArgument(LinalgOp op, BlockArgument argument,
                                const Loops &loops, Reader read) {
  OpOperand *operand = op.getMatchingOpOperand(argument);
  if (!isa<RankedTensorType>(operand->get().getType()))
    return isa<ShapedType>(operand->get().getType())
               ? nullptr
               : getOutside(operand->get());
  AffineMap map = op.getMatchingIndexingMap(operand);
  // The partial sum of a reduction is not an element of a tensor.
  if (op.isDpsInit(operand) && map.getNumResults() < op.getNumLoops() &&
      op.getNumReductionLoops() > 0)
    return nullptr;
  std::optional<Access> access = axes.apply(map, loops);
  if (!access)
    return nullptr;
  axes.learn(cast<RankedTensorType>(operand->get().getType()), *access);
  return read(operand->get(), *access);
}

Value ScalarGraph::readPayload(LinalgOp op, Value value, const Loops &loops,
                               function_ref<Value(BlockArgument)> argument) {
  IRMapping mapping;
  return cloneBody(*op.getBlock(), value, mapping, [&](Value inside) -> Value {
    if (auto blockArgument = dyn_cast<BlockArgument>(inside))
      return argument(blockArgument);
    auto index = inside.getDefiningOp<linalg::IndexOp>();
    if (!index || !loops[index.getDim()])
      return nullptr;
    return getIndex(*loops[index.getDim()]);
  });
}

/// Copies the ops that compute `value` in `body`. Calls `missing` for arguments
/// and ops that are not in `mapping`.
Value ScalarGraph::cloneBody(Block &body, Value value, IRMapping &mapping,
                             function_ref<Value(Value)> missing) {
  if (Value mapped = mapping.lookupOrNull(value))
    return mapped;
  if (value.getParentBlock() != &body) {
    // A region nested in an op of the body has no scalars of the body's own
    // level.
    if (body.getParent()->isAncestor(value.getParentRegion()))
      return nullptr;
    return getOutside(value);
  }
  Value result = missing(value);
  Operation *op = value.getDefiningOp();
  if (!result && op && op->getNumResults() == 1 && op->getNumRegions() == 0 &&
      isMemoryEffectFree(op) && !isa<linalg::IndexOp>(op)) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(cloneBody(body, operand, mapping, missing));
      if (!operands.back())
        return nullptr;
    }
    result = createLike(op, operands, value.getType());
  }
  if (result)
    mapping.map(value, result);
  else if (op && !isa<linalg::IndexOp>(op))
    obstacles.insert(op);
  return result;
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

std::optional<double> getConstantFloat(Value scalar) {
  FloatAttr attr;
  if (!matchPattern(scalar, m_Constant(&attr)))
    return std::nullopt;
  return attr.getValueAsDouble();
}

Value stripCasts(Value scalar) {
  while (Operation *op = scalar.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    scalar = op->getOperand(0);
  }
  return scalar;
}

} // namespace fovea::attn::fuse
