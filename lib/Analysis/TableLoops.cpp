//===- TableLoops.cpp - Parallel loops that fill tables -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/TableLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fovea;

SmallVector<Value> fovea::fillTables(OpBuilder &builder, Location loc,
                                     ArrayRef<OpFoldResult> shape,
                                     ArrayRef<Type> types, FillTablesFn emit) {
  SmallVector<Value> inits;
  for (Type type : types)
    inits.push_back(tensor::EmptyOp::create(builder, loc, shape, type));
  auto fill = [&](OpBuilder &nested, Location loc, ValueRange arguments) {
    ValueRange item = arguments.drop_back(types.size()),
               outs = arguments.take_back(types.size());
    SmallVector<OpFoldResult> place = getAsOpFoldResult(item);
    SmallVector<OpFoldResult> ones(item.size(), nested.getIndexAttr(1));
    SmallVector<Value> elements = emit(nested, item, place);
    Value zero = arith::ConstantIndexOp::create(nested, loc, 0);
    SmallVector<Value> zeros(item.size(), zero);
    SmallVector<Value> slices;
    for (auto [element, type, out] : llvm::zip_equal(elements, types, outs)) {
      if (element.getType() != type)
        element = arith::IndexCastUIOp::create(nested, loc, type, element);
      Value slice =
          tensor::ExtractSliceOp::create(nested, loc, out, place, ones, ones);
      slices.push_back(
          tensor::InsertOp::create(nested, loc, element, slice, zeros));
    }
    auto parallel = scf::InParallelOp::create(nested, loc);
    nested.setInsertionPointToStart(parallel.getBody());
    for (auto [slice, out] : llvm::zip_equal(slices, outs))
      tensor::ParallelInsertSliceOp::create(nested, loc, slice, out, place,
                                            ones, ones);
  };
  return llvm::to_vector_of<Value>(
      scf::ForallOp::create(builder, loc, shape, inits,
                            /*mapping=*/std::nullopt, fill)
          .getResults());
}

SmallVector<Value> fovea::fillRanges(
    OpBuilder &builder, Location loc, OpFoldResult items,
    ArrayRef<OpFoldResult> sizes, Type type,
    llvm::function_ref<SmallVector<TableRange>(OpBuilder &, Value)> emit) {
  SmallVector<Value> inits;
  for (OpFoldResult size : sizes)
    inits.push_back(tensor::EmptyOp::create(builder, loc, {size}, type));
  auto body = [&](OpBuilder &nested, Location loc, ValueRange arguments) {
    ValueRange outs = arguments.drop_front();
    SmallVector<TableRange> written = emit(nested, arguments.front());
    auto convert = [&](IndexMath &math, OpFoldResult value) -> Value {
      Value index = math.materialize(value);
      if (index.getType() == type)
        return index;
      return arith::IndexCastUIOp::create(math.getBuilder(), loc, type, index);
    };
    OpFoldResult stride = nested.getIndexAttr(1);
    SmallVector<Value> slices;
    for (auto [range, out] : llvm::zip_equal(written, outs)) {
      Value slice = tensor::ExtractSliceOp::create(
          nested, loc, out, {range.first}, {range.count}, {stride});
      IndexMath math(nested, loc);
      Value zero = math.materialize(math.constant(0)), same;
      if (!range.getMore)
        same = convert(math, range.value);
      auto getElement = [&, &range = range](OpBuilder &inner, Value number) {
        if (same)
          return same;
        IndexMath math(inner, loc);
        return convert(math,
                       math.add(range.value, range.getMore(math, number)));
      };
      if (isConstantIntValue(range.count, 1)) {
        slices.push_back(tensor::InsertOp::create(
            nested, loc, getElement(nested, zero), slice, zero));
        continue;
      }
      auto fill = [&](OpBuilder &inner, Location loc, Value number,
                      ValueRange carried) {
        Value next = tensor::InsertOp::create(
            inner, loc, getElement(inner, number), carried[0], number);
        scf::YieldOp::create(inner, loc, next);
      };
      slices.push_back(
          scf::ForOp::create(nested, loc, zero, math.materialize(range.count),
                             math.materialize(math.constant(1)), slice, fill)
              .getResult(0));
    }
    auto parallel = scf::InParallelOp::create(nested, loc);
    nested.setInsertionPointToStart(parallel.getBody());
    for (auto [slice, range, out] : llvm::zip_equal(slices, written, outs))
      tensor::ParallelInsertSliceOp::create(
          nested, loc, slice, out, {range.first}, {range.count}, {stride});
  };
  return llvm::to_vector_of<Value>(
      scf::ForallOp::create(builder, loc, {items}, inits,
                            /*mapping=*/std::nullopt, body)
          .getResults());
}

Value fovea::countDoublings(IndexMath &math, OpFoldResult span,
                            OpFoldResult step) {
  OpBuilder &builder = math.getBuilder();
  Location loc = math.getLoc();
  OpFoldResult one = math.constant(1);
  // Of no step and of one the digits of 0 are counted: there are none.
  OpFoldResult last = math.sub(math.max(math.ceilDiv(span, step), one), one);
  Value number = arith::IndexCastUIOp::create(
      builder, loc, builder.getI32Type(), math.materialize(last));
  Value zeros = math::CountLeadingZerosOp::create(builder, loc, number);
  return arith::SubIOp::create(
      builder, loc, arith::ConstantIntOp::create(builder, loc, 32, 32), zeros);
}

OpFoldResult fovea::countShortSteps(IndexMath &math, OpFoldResult items,
                                    int64_t blocks) {
  // Each has a step at least, and a block may end as late as by a fourth of
  // these.
  constexpr int64_t kItemsOfStep = 4;
  return math.add(math.floorDiv(items, math.constant(kItemsOfStep * blocks)),
                  math.constant(1));
}
