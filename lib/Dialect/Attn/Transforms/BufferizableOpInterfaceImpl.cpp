//===- BufferizableOpInterfaceImpl.cpp - attn on buffers ------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/BufferizableOpInterfaceImpl.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace fovea::attn;

namespace {

/// One model for all: every tensor operand becomes its buffer, regions move
/// over, and each result is the buffer of its destination.
template <typename OpTy>
struct DestinationOpModel
    : public DstBufferizableOpInterfaceExternalModel<DestinationOpModel<OpTy>,
                                                     OpTy> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &state) const {
    // Outputs are overwritten as a whole; running values are read.
    if (auto backward = dyn_cast<OnlineBackwardOp>(op))
      return operand.get() != backward.getScores() &&
             operand.get() != backward.getScoreGradient();
    return isa<OnlineAttentionOp>(op) ||
           !cast<DestinationStyleOpInterface>(op).isDpsInit(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto destination = cast<DestinationStyleOpInterface>(op);
    if (destination.hasPureBufferSemantics())
      return success();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    SmallVector<Value> operands, results;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (isa<TensorType>(value.getType())) {
        FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
        if (failed(buffer))
          return failure();
        value = *buffer;
      }
      operands.push_back(value);
      if (destination.isDpsInit(&operand))
        results.push_back(value);
    }

    OperationState newState(op->getLoc(), op->getName(), operands, TypeRange(),
                            op->getDiscardableAttrDictionary().getValue());
    newState.propertiesAttr = op->getPropertiesAsAttribute();
    for (Region &region : op->getRegions())
      newState.addRegion()->takeBody(region);
    rewriter.create(newState);
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

} // namespace

void fovea::attn::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    OnlineAttentionOp::attachInterface<DestinationOpModel<OnlineAttentionOp>>(
        *context);
    OnlineBackwardOp::attachInterface<DestinationOpModel<OnlineBackwardOp>>(
        *context);
    FinalizeOp::attachInterface<DestinationOpModel<FinalizeOp>>(*context);
    PackQueryOp::attachInterface<DestinationOpModel<PackQueryOp>>(*context);
  });
}
