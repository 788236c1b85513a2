//===- Finalize.cpp - attn.finalize as loops over vectors -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace fovea::attn;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns the score of the key that a row begins from; minus infinity where
/// `when` says that there is none.
static Value loadInit(KernelBuilder &b, FinalizeOp op, ValueRange row) {
  Value lse = op.getInitLse();
  SmallVector<Value> place;
  for (int64_t dim : getInitDims(cast<MemRefType>(lse.getType()).getRank()))
    place.push_back(row[dim]);
  Value init = b.load(lse, place);
  if (!op.getWhen())
    return init;
  Value none = b.constant(init.getType(), -kInfinity);
  return arith::SelectOp::create(b, op.getWhen(), init, none);
}

/// Emits output and log-sum-exp of one row.
static void emitRow(KernelBuilder &b, FinalizeOp op, int64_t lanes,
                    ValueRange row) {
  Type type = getElementTypeOrSelf(op.getAcc().getType());
  Type outputType = getElementTypeOrSelf(op.getOutput().getType());
  Value max = b.load(op.getMax(), row);
  Value sum = b.load(op.getSum(), row);
  Value zero = b.constant(type, 0.0);
  // A sum is 0 only in rows without a key: a maximum's exponential is 1. The
  // comparison is unordered: a NaN reaches the output.
  Value hasKey = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sum, zero);
  Value init = op.getInitLse() ? loadInit(b, op, row) : Value();

  // Returns the natural logarithm of the sum in elements of `wide`. Where the
  // maximum is large, the only rounding that counts is the last.
  auto getLogarithm = [&](Type wide) -> Value {
    SplitConstant ln2 = SplitConstant::ln2(wide);
    Value largest = b.convert(max, wide);
    Value natural =
        arith::MulFOp::create(b, math::Log2Op::create(b, b.convert(sum, wide)),
                              b.constant(wide, ln2.high));
    if (op.getNatural())
      natural = arith::AddFOp::create(b, largest, natural);
    else
      for (double part : {ln2.low, ln2.high})
        natural =
            math::FmaOp::create(b, largest, b.constant(wide, part), natural);
    return arith::SelectOp::create(b, hasKey, natural,
                                   b.constant(wide, -kInfinity));
  };
  Value inverse = arith::DivFOp::create(b, b.constant(type, 1.0), sum);
  Value lse = op.getLse(), rest = op.getRest();
  // Where a rest is wanted, the logarithm is computed in f64.
  Type lseType = !lse   ? type
                 : rest ? b.getF64Type()
                        : getElementTypeOrSelf(lse.getType());
  auto storeLse = [&](Value all) {
    Type stored = getElementTypeOrSelf(lse.getType());
    Value nearest = b.convert(all, stored);
    b.store(nearest, lse, row);
    if (!rest)
      return;
    Value rounded = b.convert(nearest, lseType);
    Value isInfinite = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ,
                                             math::AbsFOp::create(b, rounded),
                                             b.constant(lseType, kInfinity));
    Value difference = arith::SubFOp::create(b, all, rounded);
    b.store(b.convert(arith::SelectOp::create(
                          b, isInfinite, b.constant(lseType, 0.0), difference),
                      stored),
            rest, row);
  };
  if (init) {
    // With d the difference of the two, the smaller one is exp(-|d|) of the
    // larger one.
    Value keys = getLogarithm(lseType);
    init = b.convert(init, lseType);
    Value largest = arith::MaxNumFOp::create(b, keys, init);
    Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, largest,
                                          b.constant(lseType, -kInfinity));
    auto getPart = [&](Value part) -> Value {
      Value difference = arith::SubFOp::create(b, part, largest);
      return math::ExpOp::create(b, b.convert(difference, type));
    };
    Value ofKeys = getPart(keys);
    Value total = arith::AddFOp::create(b, ofKeys, getPart(init));
    if (lse) {
      Value logarithm = math::LogOp::create(b, b.convert(total, lseType));
      Value all = arith::AddFOp::create(b, largest, logarithm);
      storeLse(arith::SelectOp::create(b, isEmpty,
                                       b.constant(lseType, -kInfinity), all));
    }
    inverse = arith::MulFOp::create(b, inverse,
                                    arith::DivFOp::create(b, ofKeys, total));
  } else if (lse) {
    storeLse(getLogarithm(lseType));
  }

  // A scalar condition would become a branch for each vector.
  Value lanesKept = b.splat(VectorType::get({lanes}, b.getI1Type()), hasKey);
  auto emit = [&](Value feature, Type loaded) {
    SmallVector<Value> indices(row);
    indices.push_back(feature);
    Value value, kept = hasKey, factor = inverse, none = zero;
    if (auto vector = dyn_cast<VectorType>(loaded)) {
      value = b.loadVector(vector, op.getAcc(), indices);
      factor = b.splat(vector, inverse);
      none = b.constant(vector, 0.0);
      kept = lanesKept;
    } else {
      value = b.load(op.getAcc(), indices);
    }
    Value quotient = arith::MulFOp::create(b, value, factor);
    Value result = arith::SelectOp::create(b, kept, quotient, none);
    b.store(b.convert(result, outputType), op.getOutput(), indices);
  };

  Value features = b.dim(op.getOutput(), 3), done = b.index(0);
  auto isContiguous = [](Value memref) {
    return cast<MemRefType>(memref.getType()).isLastDimUnitStride();
  };
  if (isContiguous(op.getAcc()) && isContiguous(op.getOutput())) {
    done = b.roundDown(features, lanes);
    b.loop(b.index(0), done, lanes, [&](Value feature) {
      emit(feature, VectorType::get({lanes}, type));
    });
  }
  b.loop(done, features, 1, [&](Value feature) { emit(feature, type); });
}

void fovea::attn::emitFinalize(KernelBuilder &b, FinalizeOp op,
                               const VectorUnit &unit) {
  int64_t lanes = unit.lanes(getElementTypeOrSelf(op.getAcc().getType()));
  Value zero = b.index(0);
  b.loop(zero, b.dim(op.getOutput(), 0), 1, [&](Value batch) {
    b.loop(zero, b.dim(op.getOutput(), 1), 1, [&](Value head) {
      b.loop(zero, b.dim(op.getOutput(), 2), 1,
             [&](Value row) { emitRow(b, op, lanes, {batch, head, row}); });
    });
  });
  op.erase();
}
