//===- TileCaptures.cpp - Gradients of captured tensors by tiles ----------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileCaptures.h"

#include "fovea/Dialect/Attn/Differentiate/Backward.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

/// Returns the coordinate that `value`, an index in the score region, equals.
static std::optional<Axis> getAxis(Block &score, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &score || !argument.getArgNumber())
    return std::nullopt;
  return static_cast<Axis>(argument.getArgNumber() - 1);
}

std::optional<SmallVector<TiledCapture>>
fovea::attn::findTiledCaptures(AttentionBackwardOp op) {
  SmallVector<TiledCapture> captures;
  for (Value tensor : op.getCaptures()) {
    Block &score = op.getScore().front();
    TiledCapture capture{tensor, {}, FloatType()};
    bool isNested = false, isRead = false;
    score.walk([&](tensor::ExtractOp extract) {
      if (extract.getTensor() != tensor)
        return;
      isNested |= extract->getBlock() != &score;
      SmallVector<std::optional<Axis>> axes;
      for (Value index : extract.getIndices())
        axes.push_back(getAxis(score, index));
      if (!isRead)
        capture.axes = axes;
      isRead = true;
      for (auto [axis, other] : llvm::zip_equal(capture.axes, axes))
        if (axis != other)
          axis = std::nullopt;
    });
    if (isNested)
      return std::nullopt;
    if (!isRead)
      capture.axes.resize(cast<RankedTensorType>(tensor.getType()).getRank());
    // A coordinate that indexes two dimensions cuts out a diagonal.
    for (std::optional<Axis> &axis : capture.axes)
      if (axis && llvm::count(capture.axes, axis) > 1)
        llvm::replace(capture.axes, std::optional<Axis>(*axis),
                      std::optional<Axis>());
    capture.sumType = capture.isLarge()
                          ? op.getAccumulationType()
                          : FloatType(Float64Type::get(op.getContext()));
    captures.push_back(std::move(capture));
  }
  return captures;
}

/// Copies the score region to `to`, a region of a tile's own coordinates.
/// Captures are read from the tile's slices.
static void cloneOfTile(OpBuilder &builder, AttentionBackwardOp op,
                        ArrayRef<TiledCapture> captures, ValueRange slices,
                        ValueRange at, Region &to) {
  Block &score = op.getScore().front();
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(
      &to, to.end(), score.getArgumentTypes(),
      SmallVector<Location>(score.getNumArguments(), op.getLoc()));
  IRMapping mapping;
  mapping.map(score.getArgument(0), block->getArgument(0));
  for (auto [argument, own, offset] :
       llvm::zip_equal(score.getArguments().drop_front(),
                       block->getArguments().drop_front(), at))
    mapping.map(
        argument,
        arith::AddIOp::create(builder, op.getLoc(), own, offset).getResult());
  for (Operation &step : score) {
    auto extract = dyn_cast<tensor::ExtractOp>(step);
    auto isOf = [&](const TiledCapture &capture) {
      return extract && capture.tensor == extract.getTensor();
    };
    const auto *capture = llvm::find_if(captures, isOf);
    if (capture == captures.end()) {
      builder.clone(step, mapping);
      continue;
    }
    SmallVector<Value> indices;
    for (auto [axis, index] :
         llvm::zip_equal(capture->axes, extract.getIndices()))
      indices.push_back(axis ? block->getArgument(1 + unsigned(*axis))
                             : mapping.lookupOrDefault(index));
    Value element = tensor::ExtractOp::create(
        builder, extract.getLoc(), slices[capture - captures.begin()], indices);
    mapping.map(extract.getResult(), element);
  }
}

FailureOr<SmallVector<Value>> fovea::attn::buildCaptureGradients(
    OpBuilder &builder, AttentionBackwardOp op, ArrayRef<TiledCapture> captures,
    ValueRange slices, Value scores, Value gradients, ValueRange at) {
  auto modify =
      ModifyOp::create(builder, op.getLoc(), scores.getType(), scores);
  cloneOfTile(builder, op, captures, slices, at, modify.getBody());
  Backward backward(builder);
  for (auto [capture, slice] : llvm::zip_equal(captures, slices)) {
    backward.addVariable(slice);
    backward.setGradientType(slice, capture.sumType);
  }
  backward.visit(modify);
  backward.add(op.getLoc(), modify, gradients);
  if (failed(backward.pull(modify)))
    return failure();
  SmallVector<Value> results;
  for (Value slice : slices)
    results.push_back(backward.lookup(slice));
  modify.erase();
  return results;
}
