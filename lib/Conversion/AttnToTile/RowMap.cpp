//===- RowMap.cpp - Places of the rows of a gathered tensor ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowMap.h"

#include "fovea/Analysis/Widening.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fovea;

namespace {
/// Follows an element of a tensor to the tensor that has it.
class ElementTracer {
public:
  ElementTracer(Value tensor, scf::ForallOp loop, bool widens);

  /// Goes on to the operand that the element of the tensor comes from; returns
  /// false, and stays, if there is none, if it has another column, or if others
  /// read the tensor too.
  bool step();

  bool isGathered() const { return gathered; }
  /// Returns the type of the numbers that the tensor's bytes are; null if they
  /// are not widened.
  FloatType getWidenedType() const { return from; }
  /// Returns the map of rows, if the element's column is that of the tensor
  /// that was begun with, and nothing else depends on it.
  std::optional<RowMap> finish();

private:
  bool isOwn(Operation *op);
  bool trace(tensor::CollapseShapeOp op);
  bool trace(tensor::ExpandShapeOp op);
  bool trace(tensor::ExtractSliceOp op);
  bool trace(linalg::LinalgOp op);
  /// Returns a scalar of the body of `op` at the iteration `ivs`; null if it
  /// cannot be computed alone.
  Value emit(Value value, linalg::LinalgOp op, ArrayRef<Value> ivs,
             IRMapping &values);
  Value emitOp(Operation *op);
  bool isNonNegative(Value value);
  SmallVector<Value> apply(AffineMap map, ArrayRef<Value> ivs);
  Value getSize(Value tensor, int64_t dim) {
    return getValueOrCreateConstantIndexOp(
        builder, loc, tensor::getMixedSize(builder, loc, tensor, dim));
  }

  scf::ForallOp loop;
  Location loc;
  std::unique_ptr<Block> body;
  OpBuilder builder;
  Value tensor;
  /// The op that reads the tensor, the last that was followed.
  Operation *reader = nullptr;
  SmallVector<Value> indices;
  bool gathered = false;
  bool widens;
  FloatType from;
};
} // namespace

ElementTracer::ElementTracer(Value tensor, scf::ForallOp loop, bool widens)
    : loop(loop), loc(loop.getLoc()), body(std::make_unique<Block>()),
      builder(loop.getContext()), tensor(tensor), widens(widens) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    indices.push_back(body->addArgument(builder.getIndexType(), loc));
  builder.setInsertionPointToEnd(body.get());
}

/// Returns true if only the loop, or the op that was followed last, reads the
/// results of `op`.
bool ElementTracer::isOwn(Operation *op) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    return user == reader || isa<tensor::DimOp>(user) ||
           loop->isProperAncestor(user) || user->getBlock() == body.get();
  });
}

bool ElementTracer::step() {
  Operation *op = tensor.getDefiningOp();
  if (!op || !isOwn(op))
    return false;
  SmallVector<Value> before = indices;
  FloatType fromBefore = from;
  bool isTraced =
      TypeSwitch<Operation *, bool>(op)
          .Case<tensor::CastOp>([&](tensor::CastOp cast) {
            tensor = cast.getSource();
            return true;
          })
          .Case<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                tensor::ExtractSliceOp>([&](auto view) { return trace(view); })
          .Case<linalg::LinalgOp>([&](auto linalg) { return trace(linalg); })
          .Default(false);
  if (!isTraced || indices.back() != body->getArguments().back()) {
    tensor = op->getResult(0);
    indices = std::move(before);
    from = fromBefore;
    return false;
  }
  reader = op;
  return true;
}

/// The dimensions of a group are those of one dimension of the result, the last
/// fastest.
bool ElementTracer::trace(tensor::CollapseShapeOp op) {
  SmallVector<Value> expanded;
  for (auto [index, group] :
       llvm::zip_equal(indices, op.getReassociationIndices())) {
    SmallVector<Value> parts;
    Value rest = index;
    for (int64_t dim : llvm::reverse(ArrayRef(group).drop_front())) {
      Value size = getSize(op.getSrc(), dim);
      parts.push_back(arith::RemUIOp::create(builder, loc, rest, size));
      rest = arith::DivUIOp::create(builder, loc, rest, size);
    }
    parts.push_back(rest);
    llvm::append_range(expanded, llvm::reverse(parts));
  }
  indices = std::move(expanded);
  tensor = op.getSrc();
  return true;
}

bool ElementTracer::trace(tensor::ExpandShapeOp op) {
  SmallVector<Value> collapsed;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    Value index = indices[group.front()];
    for (int64_t dim : ArrayRef(group).drop_front()) {
      index = builder.createOrFold<arith::MulIOp>(loc, index,
                                                  getSize(op.getResult(), dim));
      index = builder.createOrFold<arith::AddIOp>(loc, index, indices[dim]);
    }
    collapsed.push_back(index);
  }
  indices = std::move(collapsed);
  tensor = op.getSrc();
  return true;
}

bool ElementTracer::trace(tensor::ExtractSliceOp op) {
  if (!op.hasUnitStride())
    return false;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  SmallVector<Value> inSource;
  size_t next = 0;
  for (auto [dim, offset] : llvm::enumerate(op.getMixedOffsets())) {
    Value index = getValueOrCreateConstantIndexOp(builder, loc, offset);
    if (!dropped[dim])
      index = builder.createOrFold<arith::AddIOp>(loc, indices[next++], index);
    inSource.push_back(index);
  }
  indices = std::move(inSource);
  tensor = op.getSource();
  return true;
}

/// Follows an elementwise op whose elements are those of one tensor, or are
/// widened from them.
bool ElementTracer::trace(linalg::LinalgOp op) {
  if (op->getNumResults() != 1 || op.getNumReductionLoops() != 0)
    return false;
  AffineMap written = op.getIndexingMapsArray().back();
  if (!written.isPermutation())
    return false;
  SmallVector<Value> ivs(indices.size());
  for (auto [dim, index] : llvm::enumerate(indices))
    ivs[written.getDimPosition(dim)] = index;
  Value element = op.getBlock()->getTerminator()->getOperand(0);
  FloatType widened = from;
  if (widens && !from)
    if (std::optional<Widening> widening = Widening::get(element)) {
      element = widening->bits;
      widened = widening->from;
    }
  IRMapping values;
  if (auto argument = dyn_cast<BlockArgument>(element)) {
    if (argument.getOwner() != op.getBlock() ||
        argument.getArgNumber() >= op.getNumDpsInputs())
      return false;
    OpOperand *input = op.getDpsInputOperand(argument.getArgNumber());
    if (!isa<RankedTensorType>(input->get().getType()))
      return false;
    indices = apply(op.getMatchingIndexingMap(input), ivs);
    tensor = input->get();
    from = widened;
    return true;
  }
  auto extract = element.getDefiningOp<tensor::ExtractOp>();
  if (!extract || extract->getBlock() != op.getBlock())
    return false;
  SmallVector<Value> place;
  for (Value index : extract.getIndices()) {
    place.push_back(emit(index, op, ivs, values));
    if (!place.back())
      return false;
  }
  indices = std::move(place);
  tensor = extract.getTensor();
  from = widened;
  gathered = true;
  return true;
}

SmallVector<Value> ElementTracer::apply(AffineMap map, ArrayRef<Value> ivs) {
  SmallVector<Value> results;
  for (unsigned number = 0; number < map.getNumResults(); ++number) {
    AffineMap single = map.getSubMap(number);
    if (auto dim = dyn_cast<AffineDimExpr>(single.getResult(0)))
      results.push_back(ivs[dim.getPosition()]);
    else
      results.push_back(
          affine::AffineApplyOp::create(builder, loc, single, ivs));
  }
  return results;
}

Value ElementTracer::emit(Value value, linalg::LinalgOp op, ArrayRef<Value> ivs,
                          IRMapping &values) {
  if (!op->getRegion(0).isAncestor(value.getParentRegion()))
    return value;
  if (Value emitted = values.lookupOrNull(value))
    return emitted;
  Value result;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getArgNumber() >= op.getNumDpsInputs())
      return {};
    OpOperand *input = op.getDpsInputOperand(argument.getArgNumber());
    if (!isa<RankedTensorType>(input->get().getType()))
      return input->get();
    result =
        tensor::ExtractOp::create(builder, loc, input->get(),
                                  apply(op.getMatchingIndexingMap(input), ivs));
  } else if (auto index = value.getDefiningOp<linalg::IndexOp>()) {
    result = ivs[index.getDim()];
  } else {
    Operation *scalar = value.getDefiningOp();
    if (scalar->getNumRegions() || scalar->getNumResults() != 1 ||
        !isMemoryEffectFree(scalar))
      return {};
    for (Value operand : scalar->getOperands()) {
      Value emitted = emit(operand, op, ivs, values);
      if (!emitted)
        return {};
      values.map(operand, emitted);
    }
    Operation *clone = scalar->clone(values);
    result = emitOp(clone);
    if (!result)
      result = builder.insert(clone)->getResult(0);
  }
  values.map(value, result);
  return result;
}

/// Returns a simpler form of `op`, which is destroyed then: quotients of
/// numbers that are not negative are unsigned, as runs of rows need them; null
/// if there is none.
Value ElementTracer::emitOp(Operation *op) {
  APInt divisor;
  if (!isa<arith::DivSIOp, arith::FloorDivSIOp, arith::RemSIOp>(op) ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) ||
      !divisor.isStrictlyPositive() || !isNonNegative(op->getOperand(0)))
    return {};
  Value a = op->getOperand(0), b = op->getOperand(1), result;
  if (isa<arith::RemSIOp>(op))
    result = arith::RemUIOp::create(builder, loc, a, b);
  else
    result = arith::DivUIOp::create(builder, loc, a, b);
  op->destroy();
  return result;
}

/// Returns true if `value` is known not to be negative. Positions in tensors
/// are not, and do not wrap.
bool ElementTracer::isNonNegative(Value value) {
  if (isa<BlockArgument>(value))
    return value.getParentBlock() == body.get();
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isNonNegative();
  Operation *op = value.getDefiningOp();
  return isa<tensor::DimOp>(op) ||
         (isa<arith::AddIOp, arith::MulIOp, arith::DivUIOp, arith::RemUIOp,
              arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op) &&
          llvm::all_of(op->getOperands(),
                       [&](Value operand) { return isNonNegative(operand); }));
}

std::optional<RowMap> ElementTracer::finish() {
  Value column = body->getArguments().back();
  if (!column.use_empty() ||
      llvm::is_contained(ArrayRef(indices).drop_back(), column))
    return std::nullopt;
  RowMap map;
  map.source = tensor;
  map.place.assign(indices.begin(), indices.end() - 1);
  body->eraseArgument(body->getNumArguments() - 1);
  map.body = std::move(body);
  return map;
}

std::optional<RowMap> RowMap::get(Value tensor, scf::ForallOp loop,
                                  bool widens) {
  ElementTracer tracer(tensor, loop, widens);
  while (tracer.step())
    ;
  if (!tracer.isGathered() && !tracer.getWidenedType())
    return std::nullopt;
  std::optional<RowMap> map = tracer.finish();
  if (!map)
    return std::nullopt;
  map->from = tracer.getWidenedType();
  // Columns that a tile has beyond the rows must lie beyond the source's rows
  // too: they are zero.
  auto from = cast<RankedTensorType>(map->source.getType()),
       to = cast<RankedTensorType>(tensor.getType());
  if (from.getRank() < 2 || from.getShape().back() != to.getShape().back() ||
      to.isDynamicDim(to.getRank() - 1) ||
      (!map->from && from.getElementType() != to.getElementType()))
    return std::nullopt;
  return map;
}
