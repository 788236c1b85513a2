//===- BufferizableOpInterfaceImpl.cpp - attn bufferization ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/BufferizableOpInterfaceImpl.h"

#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

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

  /// Regions run for every score, but write nothing.
  bool isRepetitiveRegion(Operation *, unsigned) const { return false; }

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

/// Regions run any number of times, in any order. They get no operand and yield
/// no result. Ownership-based deallocation asks for this where an op has
/// several regions. (An external model must spell out defaults.)
template <typename OpTy>
struct RegionModel
    : public RegionBranchOpInterface::ExternalModel<RegionModel<OpTy>, OpTy> {
  using Successors = SmallVectorImpl<RegionSuccessor>;

  void getSuccessorRegions(Operation *op, RegionBranchPoint,
                           Successors &successors) const {
    for (Region &region : op->getRegions())
      if (!region.empty())
        successors.emplace_back(&region);
    successors.emplace_back(op, op->getResults().take_front(0));
  }
  // TableGen numbers overloads. NOLINTNEXTLINE(readability-identifier-naming)
  void getSuccessorRegions_3(Operation *op, Region &,
                             Successors &successors) const {
    getSuccessorRegions(op, RegionBranchPoint::parent(), successors);
  }
  void getEntrySuccessorRegions(Operation *op, ArrayRef<Attribute>,
                                Successors &successors) const {
    getSuccessorRegions(op, RegionBranchPoint::parent(), successors);
  }
  OperandRange getEntrySuccessorOperands(Operation *op, RegionSuccessor) const {
    return op->getOperands().take_front(0);
  }
  void getPredecessorValues(Operation *, RegionSuccessor, int,
                            SmallVectorImpl<Value> &) const {}
};

} // namespace

void fovea::attn::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    OnlineAttentionOp::attachInterface<DestinationOpModel<OnlineAttentionOp>>(
        *context);
    OnlineBackwardOp::attachInterface<DestinationOpModel<OnlineBackwardOp>>(
        *context);
    OnlineAttentionOp::attachInterface<RegionModel<OnlineAttentionOp>>(
        *context);
    OnlineBackwardOp::attachInterface<RegionModel<OnlineBackwardOp>>(*context);
    FinalizeOp::attachInterface<DestinationOpModel<FinalizeOp>>(*context);
    PackQueryOp::attachInterface<DestinationOpModel<PackQueryOp>>(*context);
  });
}
