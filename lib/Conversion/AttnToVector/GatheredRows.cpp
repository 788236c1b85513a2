//===- GatheredRows.cpp - Rows that are read where they lie ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GatheredRows.h"

#include "fovea/Analysis/Memory.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Returns true if `op` writes only memory that was allocated for it, and none
/// of `read`.
static bool writesApart(Operation *op, const llvm::DenseSet<Value> &read) {
  if (isMemoryEffectFree(op) || isa<memref::AllocOp, memref::AllocaOp>(op))
    return true;
  auto isApart = [&](Value init) {
    Value base = getBase(init);
    return isa_and_present<memref::AllocOp, memref::AllocaOp>(
               base.getDefiningOp()) &&
           !read.contains(base);
  };
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  return destination && llvm::all_of(destination.getDpsInits(), isApart);
}

/// Returns the load of a copy's only result, if its last index is the feature
/// and nothing else in the body depends on that.
static memref::LoadOp matchBody(linalg::GenericOp copy) {
  Block &body = *copy.getBody();
  auto load =
      body.getTerminator()->getOperand(0).getDefiningOp<memref::LoadOp>();
  if (!load || load->getBlock() != &body || !load->hasOneUse())
    return {};
  auto feature = load.getIndices().back().getDefiningOp<linalg::IndexOp>();
  if (!feature || feature.getDim() != 3)
    return {};
  for (Operation &op : body.without_terminator()) {
    bool isKnown = isa<linalg::IndexOp, memref::LoadOp>(op) || isPure(&op);
    if (!isKnown || op.getNumRegions() != 0)
      return {};
    for (OpOperand &operand : op.getOpOperands()) {
      auto index = operand.get().getDefiningOp<linalg::IndexOp>();
      bool isFeature = index && index.getDim() == 3;
      bool isLast =
          &op == load && operand.getOperandNumber() + 1 == op.getNumOperands();
      if (isFeature != isLast || operand.get() == body.getArgument(0))
        return {};
    }
  }
  return load;
}

std::optional<GatheredRows> GatheredRows::find(OnlineAttentionOp op,
                                               Value operand) {
  auto buffer = operand.getDefiningOp<memref::AllocOp>();
  auto type = cast<MemRefType>(operand.getType());
  if (!buffer || type.getDimSize(0) != 1 || type.getDimSize(1) != 1 ||
      type.isDynamicDim(3))
    return {};
  linalg::GenericOp copy;
  for (Operation *user : operand.getUsers()) {
    if (user == op || isa<memref::DeallocOp>(user))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (!generic || copy)
      return {};
    copy = generic;
  }
  if (!copy || copy->getBlock() != op->getBlock() ||
      !copy->isBeforeInBlock(op) || copy->getNumOperands() != 1 ||
      copy.getNumParallelLoops() != 4 ||
      !copy.getIndexingMapsArray()[0].isIdentity())
    return {};
  memref::LoadOp load = matchBody(copy);
  if (!load || !load.getMemRefType().isLastDimUnitStride() ||
      load.getType() != type.getElementType())
    return {};
  llvm::DenseSet<Value> read;
  copy.getBody()->walk(
      [&](memref::LoadOp each) { read.insert(getBase(each.getMemRef())); });
  for (Operation *each = copy->getNextNode(); each != op->getNextNode();
       each = each->getNextNode())
    if (!writesApart(each, read))
      return {};
  return GatheredRows(copy, load);
}

OperandRows GatheredRows::emit(KernelBuilder &b, OnlineAttentionOp op) {
  auto buffer = copy.getDpsInits()[0].getDefiningOp<memref::AllocOp>();
  // The buffer will be no more.
  Value count = buffer.getDynamicSizes().empty()
                    ? b.index(buffer.getType().getDimSize(2))
                    : buffer.getDynamicSizes()[0];
  auto metadata = memref::ExtractStridedMetadataOp::create(b, load.getMemRef());
  Value rows =
      allocateScratch(b, op, {ShapedType::kDynamic}, b.getIndexType(), count);
  b.setInsertionPoint(op);
  // Index arithmetic, which convert-linalg-to-vector does in vectors.
  linalg::GenericOp::create(
      b, TypeRange(), ValueRange(), rows, b.getMultiDimIdentityMap(1),
      utils::IteratorType::parallel,
      [&](OpBuilder &nested, Location loc, ValueRange) {
        KernelBuilder body(loc, nested);
        IRMapping values;
        for (Operation &each : copy.getBody()->without_terminator()) {
          if (auto index = dyn_cast<linalg::IndexOp>(each))
            values.map(index, index.getDim() == 2
                                  ? linalg::IndexOp::create(body, 0).getResult()
                                  : body.index(0));
          else if (&each != load)
            body.clone(each, values);
        }
        Value place = body.index(0);
        for (auto [index, stride] :
             llvm::zip(load.getIndices().drop_back(),
                       metadata.getStrides().drop_back()))
          place =
              body.add(place, body.mul(values.lookupOrDefault(index), stride));
        linalg::YieldOp::create(body, place);
      });

  // Rows are as many elements apart as their places: one.
  int64_t features = buffer.getType().getDimSize(3);
  auto type =
      MemRefType::get({1, 1, ShapedType::kDynamic, features}, load.getType(),
                      StridedLayoutAttr::get(
                          b.getContext(), ShapedType::kDynamic, {1, 1, 1, 1}));
  OpFoldResult one = b.getIndexAttr(1);
  Value memory = memref::ReinterpretCastOp::create(
      b, type, metadata.getBaseBuffer(), OpFoldResult(metadata.getOffset()),
      ArrayRef<OpFoldResult>{one, one, count, b.getIndexAttr(features)},
      ArrayRef<OpFoldResult>{one, one, one, one});
  return {memory, rows};
}

void GatheredRows::erase() {
  Value buffer = copy.getDpsInits()[0];
  for (Operation *user : llvm::make_early_inc_range(buffer.getUsers()))
    user->erase();
  buffer.getDefiningOp()->erase();
}
