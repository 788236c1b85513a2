//===- LaneRegion.cpp - A scalar region applied to vector lanes -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneRegion.h"

using namespace mlir;
using namespace fovea::attn;

LaneRegion::LaneRegion(KernelBuilder &b, Region &region, int64_t lanes,
                       int64_t vectors)
    : b(b), body(region.front()), lanes(lanes), vectors(vectors) {}

bool LaneRegion::isVectorizable(Region &region, ArrayRef<Value> varying) {
  llvm::DenseSet<Value> inLanes(varying.begin(), varying.end());
  for (Operation &op : region.front().without_terminator()) {
    if (op.getNumRegions() != 0)
      return false;
    if (llvm::none_of(op.getOperands(),
                      [&](Value v) { return inLanes.contains(v); }))
      continue;
    if (!isa<memref::LoadOp>(op) && !OpTrait::hasElementwiseMappableTraits(&op))
      return false;
    inLanes.insert_range(op.getResults());
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void LaneRegion::define(Value value, Lanes lanes) {
  bound[value] = std::move(lanes);
}

void LaneRegion::bindUniform(Value argument, Value scalar) {
  define(argument, {{scalar}, /*isUniform=*/true, Value()});
}

void LaneRegion::bindLanes(Value argument, ValueRange values) {
  define(argument,
         {SmallVector<Value, 4>(values), /*isUniform=*/false, Value()});
}

void LaneRegion::bindQueries(Value argument, ArrayRef<Queries> perVector) {
  queries.assign(perVector.begin(), perVector.end());
  SmallVector<Value, 4> coordinates;
  for (const Queries &query : queries)
    coordinates.push_back(query.coordinates);
  define(argument, {coordinates, /*isUniform=*/false, b.index(0)});
}

bool LaneRegion::isBound(Value value) {
  return bound.contains(value) || value.getParentBlock() != &body;
}

LaneRegion::Lanes LaneRegion::get(Value value) {
  auto it = bound.find(value);
  if (it != bound.end())
    return it->second;
  // These values are defined above the region.
  return {{value}, /*isUniform=*/true, Value()};
}

Value LaneRegion::getVector(Value value, int64_t v) {
  Lanes of = get(value);
  if (!of.isUniform)
    return of.values[v];
  return b.splat(VectorType::get({lanes}, value.getType()), of.values.front());
}

SmallVector<Value> LaneRegion::getYielded() {
  SmallVector<Value> result;
  for (int64_t v = 0; v < vectors; ++v)
    result.push_back(getVector(body.getTerminator()->getOperand(0), v));
  return result;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

void LaneRegion::emitBound() {
  for (Operation &op : body.without_terminator()) {
    bool isBuilt = llvm::all_of(
        op.getResults(), [&](Value value) { return bound.contains(value); });
    if (!isBuilt && llvm::all_of(op.getOperands(),
                                 [&](Value value) { return isBound(value); }))
      emit(&op);
  }
}

/// Clones `op` with other operands and with vector result types.
static Operation *cloneOn(KernelBuilder &b, Operation *op, ValueRange operands,
                          std::optional<int64_t> lanes) {
  SmallVector<Type> types(op->getResultTypes());
  if (lanes)
    for (Type &type : types)
      type = VectorType::get({*lanes}, type);
  OperationState state(op->getLoc(), op->getName(), operands, types,
                       op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return b.create(state);
}

void LaneRegion::emit(Operation *op) {
  bool isUniform = llvm::all_of(
      op->getOperands(), [&](Value value) { return get(value).isUniform; });
  if (isUniform) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(get(operand).values.front());
    Operation *copy = cloneOn(b, op, operands, std::nullopt);
    for (auto [value, built] : llvm::zip(op->getResults(), copy->getResults()))
      bindUniform(value, built);
    return;
  }
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    define(load.getResult(), emitLoad(load));
    return;
  }

  SmallVector<Lanes> results(op->getNumResults(), {{}, false, Value()});
  for (int64_t v = 0; v < vectors; ++v) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(getVector(operand, v));
    Operation *copy = cloneOn(b, op, operands, lanes);
    for (auto [result, built] : llvm::zip(results, copy->getResults()))
      result.values.push_back(built);
  }
  // Keeps positions relative to the query recognisable.
  if (isa<arith::AddIOp, arith::SubIOp>(op) &&
      op->getResult(0).getType().isIndex()) {
    Lanes lhs = get(op->getOperand(0)), rhs = get(op->getOperand(1));
    if (lhs.queryOffset && rhs.isUniform)
      results[0].queryOffset = isa<arith::AddIOp>(op)
                                   ? b.add(lhs.queryOffset, rhs.values.front())
                                   : b.sub(lhs.queryOffset, rhs.values.front());
    else if (rhs.queryOffset && lhs.isUniform && isa<arith::AddIOp>(op))
      results[0].queryOffset = b.add(rhs.queryOffset, lhs.values.front());
  }
  for (auto [value, result] : llvm::zip(op->getResults(), results))
    define(value, std::move(result));
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

LaneRegion::Lanes LaneRegion::emitLoad(memref::LoadOp load) {
  MemRefType type = load.getMemRefType();
  unsigned width =
      type.getElementType().isIntOrFloat() ? type.getElementTypeBitWidth() : 64;
  auto isUniform = [&](Value index) { return get(index).isUniform; };
  bool isContiguous = width >= 8 && type.isLastDimUnitStride() &&
                      get(load.getIndices().back()).queryOffset &&
                      llvm::all_of(load.getIndices().drop_back(), isUniform);
  Lanes result{{}, /*isUniform=*/false, Value()};
  for (int64_t v = 0; v < vectors; ++v) {
    if (isContiguous)
      result.values.push_back(emitContiguousLoad(load, v));
    else if (width == 32 || width == 64)
      result.values.push_back(emitGather(load, v));
    else
      result.values.push_back(emitLaneLoads(load, v));
  }
  return result;
}

/// Lanes of consecutive queries read consecutive elements; lanes beyond the
/// last query get its element, without a read beyond the tensor.
Value LaneRegion::emitContiguousLoad(memref::LoadOp load, int64_t v) {
  SmallVector<Value> indices;
  for (Value index : load.getIndices().drop_back())
    indices.push_back(get(index).values.front());
  Value offset = get(load.getIndices().back()).queryOffset;
  indices.push_back(b.add(queries[v].last, offset));
  auto type = VectorType::get({lanes}, load.getType());
  Value last = b.splat(type, b.load(load.getMemRef(), indices));
  indices.back() = b.add(queries[v].first, offset);
  return vector::MaskedLoadOp::create(b, type, load.getMemRef(), indices,
                                      queries[v].mask, last);
}

/// Emits a gather: each lane reads at its distance from the memref's first
/// element.
Value LaneRegion::emitGather(memref::LoadOp load, int64_t v) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, load.getMemRef());
  Value uniform = metadata.getOffset();
  Value varying;
  auto indexType = VectorType::get({lanes}, b.getIndexType());
  for (auto [index, stride] :
       llvm::zip(load.getIndices(), metadata.getStrides())) {
    Lanes of = get(index);
    if (of.isUniform) {
      uniform = b.add(uniform, b.mul(of.values.front(), stride));
      continue;
    }
    Value term =
        arith::MulIOp::create(b, of.values[v], b.splat(indexType, stride));
    varying = varying ? arith::AddIOp::create(b, varying, term) : term;
  }
  Type element = load.getType();
  auto flatType = MemRefType::get(
      {ShapedType::kDynamic}, element,
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}));
  // The size is neither known nor needed: every lane's index is in bounds.
  Value flat = memref::ReinterpretCastOp::create(
      b, flatType, metadata.getBaseBuffer(), OpFoldResult(uniform),
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  auto type = VectorType::get({lanes}, element);
  Value all = b.constantInt(VectorType::get({lanes}, b.getI1Type()), 1);
  Value none =
      isa<FloatType>(element) ? b.constant(type, 0.0) : b.constantInt(type, 0);
  return vector::GatherOp::create(b, type, flat, ValueRange{b.index(0)},
                                  varying, all, none);
}

/// Emits one load for each lane, for element types that no vector unit gathers,
/// booleans among them.
Value LaneRegion::emitLaneLoads(memref::LoadOp load, int64_t v) {
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    SmallVector<Value> indices;
    for (Value index : load.getIndices()) {
      Lanes of = get(index);
      indices.push_back(of.isUniform
                            ? of.values.front()
                            : vector::ExtractOp::create(b, of.values[v], lane));
    }
    elements.push_back(b.load(load.getMemRef(), indices));
  }
  return vector::FromElementsOp::create(
      b, VectorType::get({lanes}, load.getType()), elements);
}
