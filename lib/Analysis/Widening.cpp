//===- Widening.cpp - Numbers that a graph widens from 8 bits -------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Widening.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
/// A scalar as a function of a byte, which can be evaluated.
class ByteFunction {
public:
  /// Collects the ops that compute `value`; `isValid` says if all of them are
  /// scalar ops without effects, and one byte is all that they depend on.
  explicit ByteFunction(Value value) : result(value) {
    isValid = collect(value) && bits && value != bits;
  }
  ~ByteFunction() {
    for (auto [op, copy] : ops)
      copy->destroy();
  }
  ByteFunction(const ByteFunction &) = delete;
  ByteFunction &operator=(const ByteFunction &) = delete;

  /// Returns the value for a byte; null if it is not known.
  Attribute evaluate(const APInt &byte);

  bool isValid;
  Value bits;

private:
  bool collect(Value value);

  Value result;
  /// The ops, in an order in which they can be evaluated, and copies of them:
  /// folding may change an op.
  llvm::MapVector<Operation *, Operation *> ops;
};
} // namespace

bool ByteFunction::collect(Value value) {
  constexpr size_t kMostOps = 64;
  if (value.getType().isInteger(8) &&
      (isa<BlockArgument>(value) || value.getDefiningOp<tensor::ExtractOp>())) {
    if (bits && bits != value)
      return false;
    bits = value;
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() || op->getNumResults() != 1 ||
      !value.getType().isIntOrFloat() || !isMemoryEffectFree(op) ||
      ops.size() == kMostOps)
    return false;
  if (ops.contains(op))
    return true;
  for (Value operand : op->getOperands())
    if (!collect(operand))
      return false;
  ops.insert({op, op->clone()});
  return true;
}

Attribute ByteFunction::evaluate(const APInt &byte) {
  DenseMap<Value, Attribute> known;
  known[bits] = IntegerAttr::get(bits.getType(), byte);
  for (auto [op, copy] : ops) {
    Attribute value;
    if (!matchPattern(op, m_Constant(&value))) {
      auto operands =
          llvm::map_to_vector(copy->getOperands(), [&](Value operand) {
            return known.lookup(operand);
          });
      SmallVector<OpFoldResult> folded;
      if (failed(copy->fold(operands, folded)) || folded.empty())
        return {};
      value = dyn_cast<Attribute>(folded.front());
      if (!value)
        value = known.lookup(cast<Value>(folded.front()));
    }
    if (!value)
      return {};
    known[op->getResult(0)] = value;
  }
  return known.lookup(result);
}

std::optional<Widening> Widening::get(Value value) {
  if (!isa<BFloat16Type, Float16Type, Float32Type>(value.getType()))
    return std::nullopt;
  ByteFunction function(value);
  if (!function.isValid)
    return std::nullopt;
  auto from = Float8E4M3FNType::get(value.getContext());
  const llvm::fltSemantics &to =
      cast<FloatType>(value.getType()).getFloatSemantics();
  for (unsigned byte = 0; byte < 256; ++byte) {
    APInt bits(8, byte);
    auto found = dyn_cast_or_null<FloatAttr>(function.evaluate(bits));
    APFloat expected(from.getFloatSemantics(), bits);
    bool losesInfo;
    expected.convert(to, APFloat::rmNearestTiesToEven, &losesInfo);
    if (!found || (!found.getValue().bitwiseIsEqual(expected) &&
                   !(found.getValue().isNaN() && expected.isNaN())))
      return std::nullopt;
  }
  return Widening{function.bits, from};
}

/// Returns true if the elements of `tensor` are widened from bytes.
static bool isWidened(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
            tensor::ExtractSliceOp>(op)) {
      tensor = op->getOperand(0);
      continue;
    }
    auto linalg = dyn_cast<linalg::LinalgOp>(op);
    if (!linalg || linalg->getNumResults() != 1 ||
        linalg.getNumReductionLoops() != 0)
      return false;
    Value element = linalg.getBlock()->getTerminator()->getOperand(0);
    if (Widening::get(element))
      return true;
    // Elements of another tensor that may be widened before.
    auto argument = dyn_cast<BlockArgument>(element);
    if (argument && argument.getOwner() == linalg.getBlock() &&
        argument.getArgNumber() < linalg.getNumDpsInputs())
      tensor = linalg.getDpsInputOperand(argument.getArgNumber())->get();
    else if (auto extract = element.getDefiningOp<tensor::ExtractOp>())
      tensor = extract.getTensor();
    else
      return false;
  }
  return false;
}

bool fovea::widensOperands(AttentionOp op) {
  return isWidened(op.getKey()) && isWidened(op.getValue());
}

std::optional<std::string>
fovea::getWideningObstacle(AttentionOp op, machine::TargetAttr target) {
  // The columns of the narrowest swizzle.
  constexpr int64_t kFeatures = 32;
  if (!target.isGpu() || !target.getGpuArch().hasBulkCopies)
    return ("\"" + target.getName() + "\" has no copies for a role that widens")
        .str();
  if (!widensOperands(op))
    return "keys and values are not both widened from 8 bits";
  if (getElementTypeOrSelf(op.getQuery()) !=
          getElementTypeOrSelf(op.getKey()) ||
      getElementTypeOrSelf(op.getKey()) != getElementTypeOrSelf(op.getValue()))
    return "queries have another type than what keys and values are widened to";
  if (getElementTypeOrSelf(op.getQuery()).getIntOrFloatBitWidth() != 16)
    return "its products are not those of 16 bits";
  for (Value operand : {op.getKey(), op.getValue()}) {
    int64_t dim = cast<RankedTensorType>(operand.getType()).getDimSize(3);
    if (ShapedType::isDynamic(dim) || dim % kFeatures)
      return "a head dim is no multiple of " + std::to_string(kFeatures);
  }
  return std::nullopt;
}
