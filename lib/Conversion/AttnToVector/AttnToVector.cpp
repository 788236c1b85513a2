//===- AttnToVector.cpp - attn on memrefs as loops over vectors -----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineKernel.h"

#include "fovea/Conversion/Passes.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

namespace fovea {
#define GEN_PASS_DEF_ATTNTOVECTOR
#include "fovea/Conversion/Passes.h.inc"
} // namespace fovea

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Vectors of queries in a tile, where no packing pass has chosen the tile.
static constexpr int64_t kUnpackedVectors = 3;

/// Verifies the properties of operands that the code below relies on.
static LogicalResult verifyOperands(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (isa<TensorType>(operand.get().getType()))
      return op->emitOpError("operand #")
             << operand.getOperandNumber() << " must be a memref, but is "
             << operand.get().getType() << "; bufferize first";
  // Running values are read and written as vectors.
  auto verifyContiguous = [&](Value memref, StringRef name) -> LogicalResult {
    if (cast<MemRefType>(memref.getType()).isLastDimUnitStride())
      return success();
    return op->emitOpError() << name << " must have a last stride of 1, but is "
                             << memref.getType();
  };
  if (auto backward = dyn_cast<OnlineBackwardOp>(op)) {
    if (!backward.getPackedQuery())
      return op->emitOpError("has queries that are not packed: run "
                             "attn-pack-queries on its tiles");
    SmallVector<std::pair<Value, StringRef>> operands = {
        {backward.getPackedQuery(), "the packed query"},
        {backward.getPackedGradient(), "the packed gradient"},
        {backward.getQueryGradient(), "the query's gradient"},
        {backward.getKeyGradient(), "the key's gradient"},
        {backward.getValueGradient(), "the value's gradient"}};
    if (backward.getScores()) {
      operands.push_back({backward.getScores(), "scores"});
      operands.push_back({backward.getScoreGradient(), "the scores' gradient"});
    }
    for (auto [memref, name] : operands)
      if (failed(verifyContiguous(memref, name)))
        return failure();
    return success();
  }
  auto online = dyn_cast<OnlineAttentionOp>(op);
  if (!online || !online.getRows())
    return success();
  if (failed(verifyContiguous(online.getQuery(), "the packed query")) ||
      failed(verifyContiguous(online.getAcc(), "the accumulator")) ||
      failed(verifyContiguous(online.getMax(), "the maximum")) ||
      failed(verifyContiguous(online.getSum(), "the sum")))
    return failure();
  return success();
}

static bool usesPairs(Operation *op) {
  if (auto online = dyn_cast<OnlineAttentionOp>(op))
    return online.hasQueryPairs();
  auto backward = dyn_cast<OnlineBackwardOp>(op);
  return backward && backward.hasQueryPairs();
}

/// Verifies that the unit has the shape that products of pairs need.
static LogicalResult verifyPairs(Operation *op, const VectorUnit &unit) {
  if (!usesPairs(op) || unit.bytes == 64)
    return success();
  return op->emitOpError("has queries packed in pairs, which need vectors of "
                         "64 bytes, but vectors have ")
         << unit.bytes;
}

/// Returns the degree of powers of two in f32 whose error is far below the
/// rounding of a result of type `element`.
static int64_t getPowerDegree(Type element) {
  if (element.isBF16())
    return 3;
  return element.isF16() ? 4 : kFullPowerDegree;
}

/// Returns the same for the results of `op`, whose weights are rounded for
/// their products: a forward pass has those of all `attn.finalize` of its
/// function.
static int64_t getPowerDegree(Operation *op) {
  if (auto backward = dyn_cast<OnlineBackwardOp>(op))
    return backward.getScores()
               ? kFullPowerDegree
               : getPowerDegree(getElementTypeOrSelf(backward.getValue()));
  int64_t degree = 0;
  op->getParentOfType<func::FuncOp>().walk([&](FinalizeOp finalize) {
    int64_t own =
        finalize.getLse()
            ? kFullPowerDegree
            : getPowerDegree(getElementTypeOrSelf(finalize.getOutput()));
    degree = std::max(degree, own);
  });
  return degree ? degree : kFullPowerDegree;
}

/// Makes the functions of `ops` that use matrix tiles begin with a call of the
/// runtime's function that asks for them.
static void requestTiles(ArrayRef<Operation *> ops) {
  constexpr StringLiteral name = "fovea_use_matrix_tiles";
  llvm::SmallSetVector<func::FuncOp, 4> functions;
  for (Operation *op : ops)
    if (usesPairs(op))
      functions.insert(op->getParentOfType<func::FuncOp>());
  for (func::FuncOp function : functions) {
    auto module = function->getParentOfType<ModuleOp>();
    OpBuilder builder(module.getBodyRegion());
    if (!module.lookupSymbol(name))
      func::FuncOp::create(builder, function.getLoc(), name,
                           builder.getFunctionType({}, {}))
          .setPrivate();
    builder.setInsertionPointToStart(&function.front());
    func::CallOp::create(builder, function.getLoc(), name, TypeRange());
  }
}

namespace {

struct AttnToVector : public fovea::impl::AttnToVectorBase<AttnToVector> {
  using AttnToVectorBase::AttnToVectorBase;

  void runOnOperation() override {
    VectorUnit unit;
    if (machine::TargetAttr target = machine::getTarget(getOperation())) {
      unit.bytes = target.getVectorBytes();
      unit.registers = target.getVectorRegisters();
      unit.isAVX512 = target.hasAVX512();
      unit.hasDotProducts = target.hasDotProducts();
    }
    if (vectorBytes)
      unit.bytes = vectorBytes;
    if (vectorRegisters)
      unit.registers = vectorRegisters;

    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<OnlineAttentionOp, OnlineBackwardOp, FinalizeOp, PackQueryOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(verifyOperands(op)) || failed(verifyPairs(op, unit)))
        return signalPassFailure();

    for (Operation *&op : ops) {
      auto online = dyn_cast<OnlineAttentionOp>(op);
      if (!online || online.getRows())
        continue;
      KernelBuilder b(op->getLoc(), op);
      int64_t lanes = unit.lanes(online.getAccumulationType());
      op = packOperands(b, online, kUnpackedVectors * lanes);
      ++numUnpacked;
    }
    // Packing has made new pack_query ops.
    ops.clear();
    getOperation()->walk([&](Operation *op) {
      if (isa<OnlineAttentionOp, OnlineBackwardOp, FinalizeOp, PackQueryOp>(op))
        ops.push_back(op);
    });
    if (!unit.hasDotProducts)
      requestTiles(ops);
    llvm::SmallDenseMap<Operation *, int64_t> degrees;
    for (Operation *op : ops)
      if (!exactFunctions && isa<OnlineAttentionOp, OnlineBackwardOp>(op) &&
          usesPairs(op))
        degrees[op] = getPowerDegree(op);
    for (Operation *op : ops) {
      KernelBuilder b(op->getLoc(), op);
      b.hasPowers = unit.isAVX512;
      b.hasDotProducts = unit.hasDotProducts;
      if (auto degree = degrees.find(op); degree != degrees.end())
        b.powerDegree = degree->second;
      if (auto online = dyn_cast<OnlineAttentionOp>(op))
        emitOnlineAttention(b, online, unit);
      else if (auto backward = dyn_cast<OnlineBackwardOp>(op))
        emitOnlineBackward(b, backward, unit);
      else if (auto finalize = dyn_cast<FinalizeOp>(op))
        emitFinalize(b, finalize, unit);
      else
        emitPackQuery(b, cast<PackQueryOp>(op), unit);
      ++numConverted;
    }
  }
};

} // namespace
