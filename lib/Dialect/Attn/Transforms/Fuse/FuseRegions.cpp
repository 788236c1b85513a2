//===- FuseRegions.cpp - Score and mask regions of a fusion ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FuseRegions.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace fovea::attn::fuse {

/// Returns the coordinate whose axes are a prefix of `list` from `start` on, or
/// nullopt.
static std::optional<unsigned> findCoordinate(ArrayRef<Axis> rest,
                                              const Layout &layout) {
  for (auto [index, group] : llvm::enumerate(layout))
    if (!group.empty() && rest.take_front(group.size()) == ArrayRef(group))
      return index;
  return std::nullopt;
}

bool canIndex(AxisTable &axes, const Axes &list, const Layout &layout) {
  auto isStatic = [&](ArrayRef<Axis> inner) {
    return !ShapedType::isDynamic(axes.size(inner));
  };
  ArrayRef<Axis> rest = list;
  while (!rest.empty()) {
    size_t used = 1;
    if (std::optional<unsigned> whole = findCoordinate(rest, layout)) {
      used = layout[*whole].size();
    } else {
      const auto *group = llvm::find_if(layout, [&](const Axes &group) {
        return llvm::is_contained(group, rest.front());
      });
      if (group == layout.end())
        return false;
      const Axis *place = llvm::find(*group, rest.front());
      ArrayRef<Axis> inner(place + 1, group->end());
      if (!isStatic(inner) || (place != group->begin() && !isStatic(*place)))
        return false;
    }
    // All parts except the outermost are multiplied past.
    if (rest.size() < list.size() && !isStatic(rest.take_front(used)))
      return false;
    rest = rest.drop_front(used);
  }
  return true;
}

SmallVector<Value> getIngredients(ScalarGraph &graph, ValueRange roots,
                                  Value base) {
  SmallVector<Value> result, worklist(roots);
  DenseSet<Value> visited;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (value == base || !visited.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (op && op->getBlock() == &graph.getBlock())
      llvm::append_range(worklist, op->getOperands());
    else
      result.push_back(value);
  }
  return result;
}

namespace {
class RegionBuilder {
public:
  RegionBuilder(ScalarGraph &graph, const Layout &layout, Location loc,
                Region &region)
      : graph(graph), axes(graph.getAxes()), layout(layout), loc(loc),
        builder(loc.getContext()) {
    builder.setInsertionPointToStart(&region.emplaceBlock());
    alongRows = graph.varying(layout[2]);
    alongKeys = graph.varying(layout[3]);
  }

  /// Adds the argument that stands for the scalar `base`.
  void addBase(Value base, FloatType type) {
    wide = type;
    emitted[base] = builder.getBlock()->addArgument(type, loc);
    widened.insert(base);
    fromBase.insert(base);
    for (Operation &op : graph.getBlock())
      if (llvm::any_of(op.getOperands(), [&](Value operand) {
            return fromBase.contains(operand);
          }))
        fromBase.insert_range(op.getResults());
  }

  void addCoordinates() {
    for (unsigned index = 0; index < layout.size(); ++index)
      coordinates.push_back(
          builder.getBlock()->addArgument(builder.getIndexType(), loc));
  }

  void yield(Value scalar) {
    Value value = emit(scalar);
    if (wide && !widened.contains(scalar))
      value = castTo(value, wide);
    YieldOp::create(builder, loc, value);
  }

private:
  Value emit(Value scalar) {
    if (Value known = emitted.lookup(scalar))
      return known;
    Value value;
    const Leaf *leaf = graph.lookupLeaf(scalar);
    if (isWorthReading(scalar))
      leaf = graph.lookupOrigin(scalar);
    if (leaf) {
      SmallVector<Value> indices;
      for (const Axes &list : leaf->access)
        indices.push_back(getIndex(list));
      value =
          fold(tensor::ExtractOp::create(builder, loc, leaf->tensor, indices));
    } else if (const Axes *list = graph.lookupIndex(scalar)) {
      value = getIndex(*list);
    } else if (Operation *op = scalar.getDefiningOp();
               op && op->getBlock() == &graph.getBlock()) {
      value = emitOp(op);
    } else {
      value = scalar;
    }
    emitted[scalar] = value;
    return value;
  }

  /// Returns true if reading an element of a tensor with fewer dimensions than
  /// the scores is better than computing it for every score.
  bool isWorthReading(Value scalar) {
    Operation *op = scalar.getDefiningOp();
    if (!isa_and_nonnull<math::ExpOp, math::Exp2Op, math::LogOp, math::PowFOp,
                         math::TanhOp, math::SinOp, math::CosOp, math::ErfOp,
                         math::SqrtOp, math::RsqrtOp, arith::DivFOp>(op) ||
        fromBase.contains(scalar) ||
        (alongRows.contains(scalar) && alongKeys.contains(scalar)))
      return false;
    const Leaf *origin = graph.lookupOrigin(scalar);
    return origin && llvm::all_of(origin->access, [&](const Axes &list) {
             return canIndex(axes, list, layout);
           });
  }

  /// Values that depend on the product, or are narrower, are computed in the
  /// accumulation type, as intermediate tensors are not rounded.
  Value emitOp(Operation *op) {
    SmallVector<Value> operands = llvm::map_to_vector(
        op->getOperands(), [&](Value operand) { return emit(operand); });
    Value result = op->getResult(0);
    bool isWidened = llvm::any_of(op->getOperands(), [&](Value operand) {
      return widened.contains(operand);
    });
    if (isa<arith::ConstantOp>(op))
      return create(op, operands, result.getType());
    if (!isWidened && !isNarrow(result.getType()))
      return create(op, operands, result.getType());
    if (isa<arith::ExtFOp, arith::TruncFOp>(op) &&
        (isWidened || operands.front().getType() == wide)) {
      widened.insert(result);
      return operands.front();
    }
    if (canWiden(op)) {
      for (Value &operand : operands)
        if (isa<FloatType>(operand.getType()))
          operand = castTo(operand, wide);
      Type type = result.getType();
      if (isa<FloatType>(type)) {
        widened.insert(result);
        type = wide;
      }
      return create(op, operands, type);
    }
    for (auto [operand, original] :
         llvm::zip_equal(operands, op->getOperands()))
      if (widened.contains(original))
        operand = castTo(operand, cast<FloatType>(original.getType()));
    return create(op, operands, result.getType());
  }

  bool isNarrow(Type type) {
    auto narrow = dyn_cast<FloatType>(type);
    return wide && narrow && narrow.getWidth() < wide.getWidth();
  }

  /// Returns true if all float operands and results of `op` may have another
  /// type.
  static bool canWiden(Operation *op) {
    if (isa<arith::CmpFOp, arith::SelectOp, arith::SIToFPOp, arith::UIToFPOp>(
            op))
      return true;
    if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
      return false;
    Type type = op->getResult(0).getType();
    return isa<FloatType>(type) &&
           llvm::all_of(op->getOperandTypes(),
                        [&](Type other) { return other == type; });
  }

  Value create(Operation *op, ArrayRef<Value> operands, Type type) {
    OperationState state(loc, op->getName(), operands, type, op->getAttrs());
    return fold(builder.create(state));
  }

  Value fold(Operation *op) {
    SmallVector<Value> results;
    if (op->hasTrait<OpTrait::ConstantLike>() ||
        failed(builder.tryFold(op, results)) || results.empty())
      return op->getResult(0);
    op->erase();
    return results.front();
  }

  Value castTo(Value value, FloatType type) {
    auto from = cast<FloatType>(value.getType());
    if (from == type)
      return value;
    if (from.getWidth() == type.getWidth())
      return castTo(castTo(value, builder.getF32Type()), type);
    if (from.getWidth() < type.getWidth())
      return fold(arith::ExtFOp::create(builder, loc, type, value));
    return fold(arith::TruncFOp::create(builder, loc, type, value));
  }

  Value getIndex(ArrayRef<Axis> rest) {
    Value result;
    while (!rest.empty()) {
      Value next;
      size_t used = 1;
      if (std::optional<unsigned> whole = findCoordinate(rest, layout)) {
        next = coordinates[*whole];
        used = layout[*whole].size();
      } else {
        next = getAxis(rest.front());
      }
      if (result) {
        Value stride = constant(axes.size(rest.take_front(used)));
        result = fold(arith::MulIOp::create(builder, loc, result, stride));
        result = fold(arith::AddIOp::create(builder, loc, result, next));
      } else {
        result = next;
      }
      rest = rest.drop_front(used);
    }
    return result ? result : constant(0);
  }

  Value getAxis(Axis axis) {
    if (Value known = axisValues.lookup(axis))
      return known;
    const auto *group = llvm::find_if(layout, [&](const Axes &group) {
      return llvm::is_contained(group, axis);
    });
    const Axis *place = llvm::find(*group, axis);
    Value value = coordinates[group - layout.begin()];
    int64_t inner = axes.size(ArrayRef<Axis>(place + 1, group->end()));
    if (inner != 1)
      value =
          fold(arith::DivUIOp::create(builder, loc, value, constant(inner)));
    if (place != group->begin())
      value = fold(arith::RemUIOp::create(builder, loc, value,
                                          constant(axes.size(axis))));
    axisValues[axis] = value;
    return value;
  }

  Value constant(int64_t value) {
    Value &known = constants[value];
    if (!known)
      known = arith::ConstantIndexOp::create(builder, loc, value);
    return known;
  }

  ScalarGraph &graph;
  AxisTable &axes;
  const Layout &layout;
  Location loc;
  OpBuilder builder;
  FloatType wide;
  SmallVector<Value, 4> coordinates;
  DenseSet<Value> alongRows, alongKeys, fromBase;
  DenseMap<Value, Value> emitted;
  DenseSet<Value> widened;
  DenseMap<Axis, Value> axisValues;
  DenseMap<int64_t, Value> constants;
};
} // namespace

void buildScoreRegion(ScalarGraph &graph, const Score &score,
                      const Layout &layout, FloatType type, Location loc,
                      Region &region) {
  RegionBuilder builder(graph, layout, loc, region);
  builder.addBase(score.base, type);
  builder.addCoordinates();
  builder.yield(score.value);
}

void buildMaskRegion(ScalarGraph &graph, const Score &score,
                     const Layout &layout, Location loc, Region &region) {
  RegionBuilder builder(graph, layout, loc, region);
  builder.addCoordinates();
  builder.yield(score.keep);
}

} // namespace fovea::attn::fuse
