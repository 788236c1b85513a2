//===- Softmax.cpp - The online softmax of a block of scores --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace fovea::attn;

namespace {

/// The constants of `2^x = 2^n * 2^f`, with n the integer nearest to x, in one
/// type.
struct Exp2Constants {
  /// 1.5 * 2^p + bias, where p is the number of bits of the significand: x +
  /// magic, rounded, has n plus the exponents' bias in its lowest bits.
  double magic;
  int64_t significandBits;
  /// The least exponent of a normal number, below which the result is 0: the
  /// bits of a smaller power are not one shifted integer.
  double lowest;
  /// Minimax polynomial of 2^f on [-0.5, 0.5] by relative error.
  ArrayRef<double> coefficients;
};

} // namespace

// Both polynomials have exp2(0) = 1, so that the accumulator and the sum, which
// a row rescales by it with every tile of keys, do not drift. The errors are
// 9.1e-8 (1.7e-7 with f32's roundings) and 4e-17.
static constexpr double kExp2F32[] = {1.0,
                                      0.6931469775987844,
                                      0.240222420847439,
                                      0.05550733743522588,
                                      0.00967151268104054,
                                      0.001326472724158371};
static constexpr double kExp2F64[] = {1.0,
                                      0.6931471805599453305,
                                      0.240226506959101562,
                                      0.05550410866481992124,
                                      0.009618129107588335793,
                                      0.00133335581467899904,
                                      0.0001540353046251459519,
                                      0.00001525273348993422089,
                                      1.32154330893601295e-6,
                                      1.017819804076137214e-7,
                                      7.074105691995071883e-9,
                                      4.435280238502226643e-10};

/// The same of 2^f on [0, 1); their errors are 8.6e-5, 2.9e-6 and 8.2e-8.
static constexpr double kExp2OfFractionDegree3[] = {
    1.0, 0.6951167864133931, 0.22764499119523876, 0.07706704200379727};
static constexpr double kExp2OfFractionDegree4[] = {
    1.0, 0.6930448448986961, 0.2412802047740393, 0.052242474187569894,
    0.013426684289534687};
static constexpr double kExp2OfFractionF32[] = {1.0,
                                                0.6931513118075230,
                                                0.2401644501360676,
                                                0.05579991314596807,
                                                0.009017030284436749,
                                                0.001867130081907008};

/// Returns the value at `x` of a polynomial.
static Value emitPolynomial(KernelBuilder &b, ArrayRef<double> coefficients,
                            Value x) {
  Type type = x.getType();
  Value sum = b.constant(type, coefficients.back());
  for (double c : llvm::reverse(coefficients.drop_back()))
    sum = vector::FMAOp::create(b, sum, x, b.constant(type, c));
  return sum;
}

/// Emits `2^x` for 16 lanes of f32 by VREDUCEPS, which takes the fraction of a
/// number, and VSCALEFPS, which multiplies by 2 to the integer below a number;
/// lanes outside of `inRange` become 0.
static Value emitExp2OfAVX512(KernelBuilder &b, Value x, Value inRange) {
  auto constant = [&](int64_t bits, int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, b.getIntegerType(bits), value);
  };
  auto call = [&](StringRef name, ValueRange arguments) -> Value {
    return LLVM::CallIntrinsicOp::create(b, x.getType(), b.getStringAttr(name),
                                         arguments)
        .getResult(0);
  };
  // Rounding down, without exceptions; no other rounding mode.
  constexpr int64_t kDown = 9, kCurrent = 4;
  Value fraction = call(
      "llvm.x86.avx512.mask.reduce.ps.512",
      {x, constant(32, kDown), x, constant(16, -1), constant(32, kCurrent)});
  ArrayRef<double> coefficients = kExp2OfFractionF32;
  if (b.powerDegree == 3)
    coefficients = kExp2OfFractionDegree3;
  else if (b.powerDegree == 4)
    coefficients = kExp2OfFractionDegree4;
  Value power = emitPolynomial(b, coefficients, fraction);
  Value mask = vector::ExtractOp::create(
      b, vector::BitCastOp::create(
             b, VectorType::get({1}, b.getIntegerType(16)), inRange));
  return call(
      "llvm.x86.avx512.mask.scalef.ps.512",
      {power, x, b.constant(x.getType(), 0.0), mask, constant(32, kCurrent)});
}

Value fovea::attn::emitExp2OfNonPositive(KernelBuilder &b, Value x) {
  Type type = x.getType();
  Type element = getElementTypeOrSelf(type);
  Exp2Constants k = {0x1.8p23 + 127, 23, -126.0, kExp2F32};
  if (element.isF64())
    k = {0x1.8p52 + 1023, 52, -1022.0, kExp2F64};
  Type bits = b.getIntegerType(element.getIntOrFloatBitWidth());
  if (auto vector = dyn_cast<VectorType>(type))
    bits = vector.clone(bits);

  Value inRange = arith::CmpFOp::create(b, arith::CmpFPredicate::UGE, x,
                                        b.constant(type, k.lowest));
  if (b.hasPowers && type == VectorType::get({16}, b.getF32Type()))
    return emitExp2OfAVX512(b, x, inRange);

  Value magic = b.constant(type, k.magic);
  Value shifted = arith::AddFOp::create(b, x, magic);
  Value n = arith::SubFOp::create(b, shifted, magic);
  Value f = arith::SubFOp::create(b, x, n);
  Value power = emitPolynomial(b, k.coefficients, f);
  Value exponent =
      arith::ShLIOp::create(b, arith::BitcastOp::create(b, bits, shifted),
                            b.constantInt(bits, k.significandBits));
  // A product is used: a NaN stays a NaN, whatever its bits.
  Value scaled = arith::MulFOp::create(
      b, power, arith::BitcastOp::create(b, type, exponent));
  return arith::SelectOp::create(b, inRange, scaled, b.constant(type, 0.0));
}

Value fovea::attn::emitExpOfNonPositive(KernelBuilder &b, Value x,
                                        bool isBase2) {
  if (!isBase2)
    x = arith::MulFOp::create(b, x,
                              b.constant(x.getType(), std::numbers::log2e));
  return emitExp2OfNonPositive(b, x);
}

GroupSoftmax::GroupSoftmax(OnlineKernel &kernel, Value column)
    : kernel(kernel), column(column), isBase2(kernel.op.getScore().empty()) {
  KernelBuilder &b = kernel.b;
  OnlineAttentionOp op = kernel.op;
  Value lowest =
      b.constant(kernel.vector, -std::numeric_limits<double>::infinity());
  Value zero = b.constant(kernel.vector, 0.0);
  SmallVector<Value> blockMax, alpha;
  if (op.updatesMax())
    blockMax = kernel.loadGroup(kernel.blockMax, Value(), column);
  for (int64_t v = 0; v < kernel.shape.groupVectors; ++v) {
    Value oldMax = b.loadVector(kernel.vector, op.getMax(), stateAt(v));
    Value max = oldMax;
    if (op.updatesMax()) {
      Value largest = blockMax[v];
      if (kernel.factor)
        largest = arith::MulFOp::create(b, largest, kernel.factor);
      max = b.maxOrSecond(largest, oldMax);
      b.store(max, op.getMax(), stateAt(v));
    }
    if (!needsWeights())
      continue;
    // The row has kept no key so far: any finite shift makes the weights 0,
    // not NaN.
    Value none =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max, lowest);
    shift.push_back(arith::SelectOp::create(b, none, zero, max));
    if (op.updatesMax())
      alpha.push_back(emitExpOfNonPositive(
          b, arith::SubFOp::create(b, oldMax, shift.back()), isBase2));
    if (!op.updatesSum())
      continue;
    Value sum = b.loadVector(kernel.vector, op.getSum(), stateAt(v));
    sums.push_back(op.updatesMax() ? arith::MulFOp::create(b, sum, alpha.back())
                                   : sum);
  }
  if (!needsWeights())
    return;
  if (kernel.alpha)
    kernel.storeGroup(alpha, kernel.alpha, Value(), column);
  if (kernel.factor)
    for (Value &m : shift)
      m = arith::NegFOp::create(b, m);
}

SmallVector<Value> GroupSoftmax::stateAt(int64_t v) {
  KernelBuilder &b = kernel.b;
  return {kernel.batch, kernel.head,
          b.add(kernel.firstQuery, b.add(column, v * kernel.shape.lanes))};
}

bool GroupSoftmax::needsWeights() {
  return kernel.op.updatesSum() || kernel.op.updatesAcc();
}

Value GroupSoftmax::emitWeights(Value scores, Value shift) {
  KernelBuilder &b = kernel.b;
  Value difference =
      kernel.factor
          ? vector::FMAOp::create(b, scores, kernel.factor, shift).getResult()
          : arith::SubFOp::create(b, scores, shift).getResult();
  return emitExpOfNonPositive(b, difference, isBase2);
}

SmallVector<Value> GroupSoftmax::emitRow(Value key, ValueRange carried) {
  KernelBuilder &b = kernel.b;
  SmallVector<Value> weights = kernel.loadGroup(kernel.scores, key, column);
  for (auto [weight, m] : llvm::zip(weights, shift))
    weight = emitWeights(weight, m);
  if (kernel.op.updatesAcc())
    kernel.storeGroup(weights, kernel.scores, key, column);
  SmallVector<Value> next(carried);
  for (auto [sum, weight] : llvm::zip(next, weights))
    sum = arith::AddFOp::create(b, sum, weight);
  return next;
}

void GroupSoftmax::storeSums(ValueRange sums) {
  for (auto [v, sum] : llvm::enumerate(sums))
    kernel.b.store(sum, kernel.op.getSum(), stateAt(v));
}

void fovea::attn::emitSoftmax(OnlineKernel &kernel) {
  kernel.forGroups([&](Value column, IndexRange keys) {
    GroupSoftmax softmax(kernel, column);
    if (softmax.needsWeights())
      softmax.storeSums(kernel.b.loop(keys.first, keys.end, 1,
                                      softmax.getSums(),
                                      [&](Value key, ValueRange carried) {
                                        return softmax.emitRow(key, carried);
                                      }));
  });
}
