//===- TensorRules.cpp - Gradients of views and slices --------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Formula.h"
#include "fovea/Dialect/Attn/Differentiate/Backward.h"

#include "fovea/Dialect/Attn/Differentiate/LoopNest.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using namespace fovea::attn::differentiate;

/// Returns zeros of the shape and the element type of `tensor`.
static Value zerosLike(Backward &backward, Location loc, Value tensor) {
  return buildZeros(backward.builder, loc, tensor,
                    cast<FloatType>(getElementTypeOrSelf(tensor)));
}

/// Returns the part of `gradient` at `offsets`, with the sizes of `like`.
static Value sliceLike(Backward &backward, Location loc, Value gradient,
                       ArrayRef<OpFoldResult> offsets, Value like) {
  OpBuilder &builder = backward.builder;
  SmallVector<OpFoldResult> strides(offsets.size(), builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(
      builder, loc, gradient, offsets,
      tensor::getMixedSizes(builder, loc, like), strides);
}

static void pull(Backward &backward, tensor::ExtractSliceOp op,
                 Value gradient) {
  Location loc = op.getLoc();
  backward.add(
      loc, op.getSource(),
      tensor::InsertSliceOp::create(backward.builder, loc, gradient,
                                    zerosLike(backward, loc, op.getSource()),
                                    op.getMixedOffsets(), op.getMixedSizes(),
                                    op.getMixedStrides()));
}

static void pull(Backward &backward, tensor::InsertSliceOp op, Value gradient) {
  OpBuilder &builder = backward.builder;
  Location loc = op.getLoc();
  if (backward.isVaried(op.getSource()))
    backward.add(loc, op.getSource(),
                 tensor::ExtractSliceOp::create(
                     builder, loc, op.getSourceType(), gradient,
                     op.getMixedOffsets(), op.getMixedSizes(),
                     op.getMixedStrides()));
  if (backward.isVaried(op.getDest()))
    backward.add(loc, op.getDest(),
                 tensor::InsertSliceOp::create(
                     builder, loc, zerosLike(backward, loc, op.getSource()),
                     gradient, op.getMixedOffsets(), op.getMixedSizes(),
                     op.getMixedStrides()));
}

static void pull(Backward &backward, tensor::ConcatOp op, Value gradient) {
  OpBuilder &builder = backward.builder;
  Location loc = op.getLoc();
  int64_t rank = op.getResultType().getRank(), dim = op.getDim();
  SmallVector<OpFoldResult> offsets(rank, builder.getIndexAttr(0));
  for (Value input : op.getInputs()) {
    if (backward.isVaried(input))
      backward.add(loc, input,
                   sliceLike(backward, loc, gradient, offsets, input));
    OpFoldResult size = tensor::getMixedSize(builder, loc, input, dim);
    Value end = arith::AddIOp::create(
        builder, loc,
        getValueOrCreateConstantIndexOp(builder, loc, offsets[dim]),
        getValueOrCreateConstantIndexOp(builder, loc, size));
    offsets[dim] = end;
  }
}

std::optional<LogicalResult> differentiate::pullTensor(Backward &backward,
                                                       Operation *op) {
  OpBuilder &builder = backward.builder;
  Location loc = op->getLoc();
  if (op->getNumResults() != 1)
    return std::nullopt;
  Value gradient = backward.lookup(op->getResult(0));
  return TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<tensor::ExtractSliceOp, tensor::InsertSliceOp, tensor::ConcatOp>(
          [&](auto o) {
            pull(backward, o, gradient);
            return success();
          })
      .Case([&](tensor::CastOp o) {
        backward.add(loc, o.getSource(), gradient);
        return success();
      })
      .Case([&](tensor::ExpandShapeOp o) {
        backward.add(loc, o.getSrc(),
                     tensor::CollapseShapeOp::create(
                         builder, loc, o.getSrcType(), gradient,
                         o.getReassociationIndices()));
        return success();
      })
      .Case([&](tensor::CollapseShapeOp o) {
        backward.add(loc, o.getSrc(),
                     tensor::ExpandShapeOp::create(
                         builder, loc, o.getSrcType(), gradient,
                         o.getReassociationIndices(),
                         tensor::getMixedSizes(builder, loc, o.getSrc())));
        return success();
      })
      .Case([&](tensor::PadOp o) -> LogicalResult {
        Value padding = o.getBody()->getTerminator()->getOperand(0);
        if (backward.isVaried(padding))
          return o.emitOpError(
              "has no derivative with respect to what it pads with");
        backward.add(loc, o.getSource(),
                     sliceLike(backward, loc, gradient, o.getMixedLowPad(),
                               o.getSource()));
        return success();
      })
      .Case([&](tensor::ExtractOp o) {
        backward.add(
            loc, o.getTensor(),
            tensor::InsertOp::create(builder, loc, gradient,
                                     zerosLike(backward, loc, o.getTensor()),
                                     o.getIndices()));
        return success();
      })
      .Case([&](tensor::InsertOp o) {
        Value scalar = o.getScalar();
        if (backward.isVaried(scalar))
          backward.add(loc, scalar,
                       tensor::ExtractOp::create(builder, loc, gradient,
                                                 o.getIndices()));
        if (backward.isVaried(o.getDest())) {
          Formula f = {builder, loc, cast<FloatType>(scalar.getType())};
          backward.add(loc, o.getDest(),
                       tensor::InsertOp::create(builder, loc, f.number(0.0),
                                                gradient, o.getIndices()));
        }
        return success();
      })
      .Default([](Operation *) { return std::nullopt; });
}
