//===- BufferizableOpInterfaceImpl.cpp - tile bufferization ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Tile/Transforms/BufferizableOpInterfaceImpl.h"

#include "fovea/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace fovea::tile;

/// Returns true if the elements of the last dimension are known to be
/// contiguous.
static bool hasUnitStride(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         (strides.empty() || strides.back() == 1);
}

/// Copies `buffer` to memory of its own.
static FailureOr<Value> createCopy(RewriterBase &rewriter, Location loc,
                                   Value buffer,
                                   const BufferizationOptions &options) {
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(memref::DimOp::create(rewriter, loc, buffer, dim));
  auto packed =
      MemRefType::get(type.getShape(), type.getElementType(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  FailureOr<Value> copy = options.createAlloc(rewriter, loc, packed, sizes);
  if (failed(copy) ||
      failed(options.createMemCpy(rewriter, loc, buffer, *copy)))
    return failure();
  return copy;
}

namespace {
struct LaunchModel
    : DstBufferizableOpInterfaceExternalModel<LaunchModel, LaunchOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &state) const {
    // Elements that no block writes keep the value of `outs`.
    return true;
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto launch = cast<LaunchOp>(op);
    if (launch.hasPureBufferSemantics())
      return success();
    Location loc = op->getLoc();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    SmallVector<Value> operands, results;
    // Copies of outputs, and the buffers they are copied to after the launch.
    SmallVector<std::pair<Value, Value>> copies;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (isa<TensorType>(value.getType())) {
        FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
        if (failed(buffer))
          return failure();
        value = *buffer;
        if (launch.isDpsInit(&operand))
          results.push_back(value);
        if (!hasUnitStride(cast<MemRefType>(value.getType()))) {
          FailureOr<Value> copy = createCopy(rewriter, loc, value, options);
          if (failed(copy))
            return failure();
          if (launch.isDpsInit(&operand))
            copies.emplace_back(*copy, value);
          value = *copy;
        }
      }
      if (auto memref = dyn_cast<MemRefType>(value.getType())) {
        MemRefType expected = LaunchOp::getArgumentType(memref);
        if (memref != expected)
          value = memref::CastOp::create(rewriter, loc, expected, value);
      }
      operands.push_back(value);
    }

    OperationState newState(loc, op->getName(), operands, TypeRange(),
                            op->getDiscardableAttrDictionary().getValue());
    newState.propertiesAttr = op->getPropertiesAsAttribute();
    newState.addRegion()->takeBody(launch.getBody());
    rewriter.create(newState);
    for (auto [copy, target] : copies)
      if (failed(options.createMemCpy(rewriter, loc, copy, target)))
        return failure();
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};
} // namespace

void fovea::tile::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, TileDialect *) {
    LaunchOp::attachInterface<LaunchModel>(*context);
  });
}
