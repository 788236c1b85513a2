//===- BatchTables.cpp - Tables that batches fill -------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BatchTables.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

static Value getIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

SmallVector<Value> fovea::attn::sumOverBatches(
    OpBuilder &builder, Location loc, OpFoldResult batches, unsigned count,
    llvm::function_ref<SmallVector<OpFoldResult>(IndexMath &, Value batch)>
        getTerms) {
  auto body = [&](OpBuilder &nested, Location loc, Value batch,
                  ValueRange carried) {
    IndexMath math(nested, loc);
    SmallVector<Value> sums;
    for (auto [sum, term] : llvm::zip_equal(carried, getTerms(math, batch)))
      sums.push_back(
          arith::AddIOp::create(nested, loc, sum, math.materialize(term)));
    scf::YieldOp::create(nested, loc, sums);
  };
  Value zero = getIndex(builder, loc, 0);
  return scf::ForOp::create(
             builder, loc, zero,
             getValueOrCreateConstantIndexOp(builder, loc, batches),
             getIndex(builder, loc, 1), SmallVector<Value>(count, zero), body)
      .getResults();
}

SmallVector<Value> fovea::attn::fillByBatches(
    OpBuilder &builder, Location loc, OpFoldResult batches,
    ArrayRef<OpFoldResult> sizes, Type element,
    llvm::function_ref<SmallVector<OwnElements>(OpBuilder &, Value)> emit) {
  SmallVector<Value> inits;
  for (OpFoldResult size : sizes)
    inits.push_back(tensor::EmptyOp::create(builder, loc, {size}, element));
  auto body = [&](OpBuilder &nested, Location loc, ValueRange arguments) {
    ValueRange outs = arguments.drop_front();
    SmallVector<OwnElements> written = emit(nested, arguments.front());
    OpFoldResult stride = nested.getIndexAttr(1);
    SmallVector<Value> slices;
    for (auto [elements, out] : llvm::zip_equal(written, outs)) {
      Value slice = tensor::ExtractSliceOp::create(
          nested, loc, out, {elements.first}, {elements.count}, {stride});
      Value zero = getIndex(nested, loc, 0), one = getIndex(nested, loc, 1);
      auto insert = [&](OpBuilder &inner, Value place, Value into) -> Value {
        Value value = elements.value;
        if (elements.step > 0)
          value = arith::AddIOp::create(inner, loc, value, place);
        else if (elements.step < 0)
          value = arith::SubIOp::create(inner, loc, value, place);
        value = inner.createOrFold<arith::IndexCastUIOp>(loc, element, value);
        return tensor::InsertOp::create(inner, loc, value, into, place);
      };
      if (isConstantIntValue(elements.count, 1)) {
        slices.push_back(insert(nested, zero, slice));
        continue;
      }
      auto fill = [&](OpBuilder &inner, Location loc, Value place,
                      ValueRange carried) {
        scf::YieldOp::create(inner, loc, insert(inner, place, carried[0]));
      };
      slices.push_back(scf::ForOp::create(nested, loc, zero,
                                          getValueOrCreateConstantIndexOp(
                                              nested, loc, elements.count),
                                          one, slice, fill)
                           .getResult(0));
    }
    auto parallel = scf::InParallelOp::create(nested, loc);
    nested.setInsertionPointToStart(parallel.getBody());
    for (auto [slice, elements, out] : llvm::zip_equal(slices, written, outs))
      tensor::ParallelInsertSliceOp::create(nested, loc, slice, out,
                                            {elements.first}, {elements.count},
                                            {stride});
  };
  return llvm::to_vector_of<Value>(
      scf::ForallOp::create(builder, loc, {batches}, inits,
                            /*mapping=*/std::nullopt, body)
          .getResults());
}
