//===- FuseOperands.cpp - Operands in attention's layout ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FuseOperands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;

namespace fovea::attn::fuse {

//===----------------------------------------------------------------------===//
// Sources of operands
//===----------------------------------------------------------------------===//

/// Returns the leaf of which `scalar` is a widening or a constant multiple.
/// Other leaves are searched for constants.
static std::optional<Source> getFactors(ScalarGraph &graph, Value scalar) {
  auto constant = [&](Value value) -> std::optional<double> {
    if (const Leaf *leaf = graph.lookupLeaf(value)) {
      Leaf copy = *leaf;
      value = graph.read(copy.tensor, copy.access);
    }
    std::optional<double> factor = getConstantFloat(stripCasts(value));
    if (factor && !std::isfinite(*factor))
      return std::nullopt;
    return factor;
  };
  double factor = 1.0;
  while (!graph.lookupLeaf(scalar)) {
    Operation *op = scalar.getDefiningOp();
    if (!op)
      return std::nullopt;
    // A value that is wider than an accumulator must stay as wide.
    if (isa<arith::ExtFOp>(op) && !scalar.getType().isF64()) {
      scalar = op->getOperand(0);
    } else if (isa<arith::NegFOp>(op)) {
      factor = -factor;
      scalar = op->getOperand(0);
    } else if (isa<arith::MulFOp>(op)) {
      std::optional<double> rhs = constant(op->getOperand(1));
      std::optional<double> lhs =
          rhs ? std::nullopt : constant(op->getOperand(0));
      if (!rhs && !lhs)
        return std::nullopt;
      factor *= rhs ? *rhs : *lhs;
      scalar = op->getOperand(rhs ? 0 : 1);
    } else if (isa<arith::DivFOp>(op)) {
      std::optional<double> divisor = constant(op->getOperand(1));
      if (!divisor || *divisor == 0.0)
        return std::nullopt;
      factor /= *divisor;
      scalar = op->getOperand(0);
    } else {
      return std::nullopt;
    }
  }
  if (!isa<FloatType>(scalar.getType()) || !std::isfinite(factor))
    return std::nullopt;
  const Leaf *leaf = graph.lookupLeaf(scalar);
  return Source{leaf->tensor, leaf->access, factor};
}

SmallVector<Source> getSources(ScalarGraph &graph, Value operand,
                               const Access &access, bool allowFactor) {
  SmallVector<Source> result = {{operand, graph.getAxes().flatten(access)}};
  while (true) {
    Source last = result.back();
    Value scalar = graph.readOnce(last.tensor, last.access);
    std::optional<Source> next =
        scalar ? getFactors(graph, scalar) : std::nullopt;
    if (!next || (!allowFactor && next->factor != 1.0))
      break;
    next->factor *= last.factor;
    if (!std::isfinite(next->factor))
      break;
    result.push_back(*next);
  }
  unsigned passes = 0;
  for (Source &source : llvm::reverse(llvm::drop_end(result))) {
    bool isView =
        isa<tensor::CastOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
            source.tensor.getDefiningOp());
    passes += !isView;
    source.passes = passes;
  }
  return result;
}

bool hasAxis(const Access &access, Axis axis) {
  return llvm::any_of(
      access, [&](const Axes &list) { return llvm::is_contained(list, axis); });
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static Axes concat(ArrayRef<Axes> lists) {
  Axes result;
  for (const Axes &list : lists)
    result.append(list);
  return result;
}

/// Returns true if a dimension of axes `list` can be expanded, which infers at
/// most one size.
static bool isExpandable(AxisTable &axes, const Axes &list) {
  return llvm::count_if(list, [&](Axis axis) {
           return ShapedType::isDynamic(axes.size(axis));
         }) <= 1;
}

/// Axes that stay neighbours on the way from one layout to another and are
/// moved as one dimension.
using Run = Axes;
using Runs = SmallVector<Run, 2>;

/// Returns the dimensions `lists` in runs of axes: axes that are neighbours in
/// one dimension of both `lists` and `others`.
static SmallVector<Runs> getRuns(ArrayRef<Axes> lists, ArrayRef<Axes> others) {
  auto areNeighbours = [&](Axis first, Axis second) {
    return llvm::any_of(others, [&](const Axes &list) {
      const Axis *place = llvm::find(list, first);
      return place != list.end() && place + 1 != list.end() &&
             place[1] == second;
    });
  };
  SmallVector<Runs> result;
  for (const Axes &list : lists) {
    Runs &runs = result.emplace_back();
    for (auto [index, axis] : llvm::enumerate(list))
      if (index > 0 && areNeighbours(list[index - 1], axis))
        runs.back().push_back(axis);
      else
        runs.push_back({axis});
  }
  return result;
}

static Runs concatRuns(ArrayRef<Runs> lists) {
  Runs result;
  for (const Runs &list : lists)
    result.append(list);
  return result;
}

static RankedTensorType getType(AxisTable &axes, ArrayRef<Axes> lists,
                                Type element) {
  auto shape = llvm::map_to_vector(
      lists, [&](const Axes &list) { return axes.size(list); });
  return RankedTensorType::get(shape, element);
}

static Value castTo(OpBuilder &builder, Location loc, Value value,
                    RankedTensorType type) {
  if (value.getType() == type)
    return value;
  return tensor::CastOp::create(builder, loc, type, value);
}

/// Groups dimensions of which those marked true have size one: each of these
/// joins the next other dimension, the last ones the one before. Without any
/// other dimension, there are no groups.
static SmallVector<ReassociationIndices> groupUnits(ArrayRef<bool> isUnit) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices pending;
  for (auto [dim, unit] : llvm::enumerate(isUnit)) {
    pending.push_back(dim);
    if (unit)
      continue;
    groups.push_back(pending);
    pending.clear();
  }
  if (!groups.empty())
    groups.back().append(pending);
  return groups;
}

/// Reshapes `value` from dimensions `dims` to one dimension for each run, or,
/// if `reverse`, from runs to dimensions `dims`.
static Value toRuns(OpBuilder &builder, Location loc, AxisTable &axes,
                    Value value, ArrayRef<Runs> dims, bool reverse) {
  Type element = getElementTypeOrSelf(value.getType());
  SmallVector<Axes> wholeLists, unitLists, runLists;
  SmallVector<bool> isUnit;
  SmallVector<ReassociationIndices> runGroups;
  for (const Runs &runs : dims) {
    wholeLists.push_back(concat(runs));
    isUnit.push_back(runs.empty());
    if (runs.empty())
      continue;
    unitLists.push_back(concat(runs));
    ReassociationIndices &group = runGroups.emplace_back();
    for (const Run &run : runs) {
      group.push_back(runLists.size());
      runLists.push_back(run);
    }
  }
  RankedTensorType whole = getType(axes, wholeLists, element);
  RankedTensorType units = getType(axes, unitLists, element);
  RankedTensorType single = getType(axes, runLists, element);
  SmallVector<ReassociationIndices> unitGroups = groupUnits(isUnit);
  bool hasUnits = unitLists.size() != wholeLists.size();
  bool hasProducts = runLists.size() != unitLists.size();
  auto expand = [&](Value value, RankedTensorType type,
                    ArrayRef<ReassociationIndices> groups) -> Value {
    return tensor::ExpandShapeOp::create(builder, loc, type, value, groups);
  };
  auto collapse = [&](Value value, RankedTensorType type,
                      ArrayRef<ReassociationIndices> groups) -> Value {
    return tensor::CollapseShapeOp::create(builder, loc, type, value, groups);
  };
  if (reverse) {
    value = castTo(builder, loc, value, single);
    if (hasProducts)
      value = collapse(value, units, runGroups);
    return hasUnits ? expand(value, whole, unitGroups) : value;
  }
  value = castTo(builder, loc, value, whole);
  if (hasUnits)
    value = collapse(value, units, unitGroups);
  return hasProducts ? expand(value, single, runGroups) : value;
}

/// Transposes `value`, with one dimension for each run of `from`, to `to`.
static Value transpose(OpBuilder &builder, Location loc, Value value,
                       const Runs &from, const Runs &to) {
  if (from == to)
    return value;
  auto permutation = llvm::map_to_vector(to, [&](const Run &run) -> int64_t {
    return llvm::find(from, run) - from.begin();
  });
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, value);
  SmallVector<OpFoldResult> permuted =
      llvm::map_to_vector(permutation, [&](int64_t dim) { return sizes[dim]; });
  Value init = tensor::EmptyOp::create(builder, loc, permuted,
                                       getElementTypeOrSelf(value.getType()));
  return linalg::TransposeOp::create(builder, loc, value, init, permutation)
      ->getResult(0);
}

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

/// Returns a tensor one of whose dimensions is exactly `axis`, and that
/// dimension.
static std::optional<std::pair<Value, int64_t>>
findSize(AxisTable &axes, Axis axis, ArrayRef<Source> sizes) {
  for (const Source &source : sizes)
    for (auto [dim, list] : llvm::enumerate(source.access))
      if (list.size() == 1 && list.front() == axis)
        return std::pair<Value, int64_t>(source.tensor, dim);
  return std::nullopt;
}

std::optional<Source> chooseSource(AxisTable &axes, ArrayRef<Source> sources,
                                   const Layout &layout, ArrayRef<Source> sizes,
                                   bool mayBroadcast) {
  Axes target = concat(layout);
  const Source *best = nullptr;
  unsigned bestCost = 0;
  // A broadcast that must be made costs most, then an operand that is wider
  // than needed, then passes over memory, then a reshape.
  for (const Source &source : sources) {
    Axes present = concat(source.access);
    auto isTarget = [&](Axis axis) { return llvm::is_contained(target, axis); };
    if (!llvm::all_of(present, isTarget) ||
        !llvm::all_of(source.access, [&](const Axes &list) {
          return isExpandable(axes, list);
        }))
      continue;
    unsigned cost = 0;
    Axes order;
    bool isBuildable = mayBroadcast || present.size() == target.size();
    for (Axis axis : target) {
      if (llvm::is_contained(present, axis)) {
        order.push_back(axis);
        continue;
      }
      cost += 1000;
      isBuildable &= !ShapedType::isDynamic(axes.size(axis)) ||
                     findSize(axes, axis, sizes).has_value();
    }
    // A duplicate (a diagonal) is not a view.
    if (!isBuildable || order.size() != present.size())
      continue;
    cost +=
        getElementTypeOrSelf(source.tensor.getType()).getIntOrFloatBitWidth();
    cost += 4 * (source.passes + (order != present));
    cost += source.access != Access(layout.begin(), layout.end()) ? 1 : 0;
    // An equal cost further back means that the work in between is not needed.
    if (best && cost > bestCost)
      continue;
    best = &source;
    bestCost = cost;
  }
  if (!best)
    return std::nullopt;
  return *best;
}

Value buildOperand(OpBuilder &builder, Location loc, AxisTable &axes,
                   const Source &source, const Layout &layout,
                   ArrayRef<Source> sizes) {
  Type element = getElementTypeOrSelf(source.tensor.getType());
  RankedTensorType type = getType(axes, layout, element);
  if (ArrayRef(source.access) == ArrayRef(layout))
    return castTo(builder, loc, source.tensor, type);
  SmallVector<Runs> from = getRuns(source.access, layout);
  SmallVector<Runs> to = getRuns(layout, source.access);
  Runs order = concatRuns(from), target = concatRuns(to), missing;
  Value value = toRuns(builder, loc, axes, source.tensor, from, false);
  for (const Run &run : target)
    if (!llvm::is_contained(order, run))
      missing.push_back(run);
  if (!missing.empty()) {
    // The new dimensions come first; a run of missing axes is one axis.
    SmallVector<OpFoldResult> shape;
    for (const Run &run : missing) {
      if (!ShapedType::isDynamic(axes.size(run))) {
        shape.push_back(builder.getIndexAttr(axes.size(run)));
        continue;
      }
      auto [tensor, dim] = *findSize(axes, run.front(), sizes);
      shape.push_back(tensor::getMixedSize(builder, loc, tensor, dim));
    }
    llvm::append_range(shape, tensor::getMixedSizes(builder, loc, value));
    Value init = tensor::EmptyOp::create(builder, loc, shape, element);
    auto dims = llvm::to_vector(
        llvm::seq<int64_t>(0, static_cast<int64_t>(missing.size())));
    value = linalg::BroadcastOp::create(builder, loc, value, init, dims)
                ->getResult(0);
    missing.append(order);
    order = missing;
  }
  value = transpose(builder, loc, value, order, target);
  return toRuns(builder, loc, axes, value, to, true);
}

bool canBuildResult(AxisTable &axes, ArrayRef<Axes> layout,
                    const Access &access) {
  auto isLayoutExpandable = llvm::all_of(
      layout, [&](const Axes &list) { return isExpandable(axes, list); });
  if (!isLayoutExpandable)
    return false;
  Axes from = concat(layout), to = concat(access);
  return from.size() == to.size() && llvm::all_of(to, [&](Axis axis) {
           return llvm::count(to, axis) == 1 && llvm::is_contained(from, axis);
         });
}

Value buildResult(OpBuilder &builder, Location loc, AxisTable &axes,
                  Value result, ArrayRef<Axes> layout, const Access &access,
                  RankedTensorType type) {
  if (ArrayRef(access) != layout) {
    SmallVector<Runs> from = getRuns(layout, access);
    SmallVector<Runs> to = getRuns(access, layout);
    result = toRuns(builder, loc, axes, result, from, false);
    result = transpose(builder, loc, result, concatRuns(from), concatRuns(to));
    result = toRuns(builder, loc, axes, result, to, true);
  }
  return castTo(builder, loc, result, type);
}

} // namespace fovea::attn::fuse
