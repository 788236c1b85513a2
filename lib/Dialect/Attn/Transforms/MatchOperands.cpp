//===- MatchOperands.cpp - One element type for all operands --------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Analysis/Formula.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/IR/Remarks.h"

#define DEBUG_TYPE "attn-match-operands"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNMATCHOPERANDS
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
struct MatchOperands : fovea::attn::impl::AttnMatchOperandsBase<MatchOperands> {
  void runOnOperation() override {
    if (!machine::getTargetOrDefault(getOperation()).isGpu())
      return;
    getOperation()->walk([&](Operation *op) {
      if (auto attention = dyn_cast<AttentionOp>(op))
        match(attention,
              {&attention.getQueryMutable(), &attention.getKeyMutable(),
               &attention.getValueMutable()});
      else if (auto backward = dyn_cast<AttentionBackwardOp>(op))
        match(backward,
              {&backward.getQueryMutable(), &backward.getKeyMutable(),
               &backward.getValueMutable(), &backward.getGradientMutable()});
    });
  }

private:
  template <typename OpTy>
  void match(OpTy op, ArrayRef<OpOperand *> operands) {
    FloatType type = getProductType(op);
    OpBuilder builder(op);
    bool isConverted = false;
    for (OpOperand *operand : operands) {
      if (getElementTypeOrSelf(operand->get()) == type)
        continue;
      LDBG() << "operand " << operand->getOperandNumber() << " of "
             << op->getName() << " at " << op.getLoc() << " is "
             << getElementTypeOrSelf(operand->get())
             << ", products are in the join of all, " << type;
      operand->set(convertFloats(builder, op.getLoc(), operand->get(), type));
      ++numConverted;
      isConverted = true;
    }
    if (!isConverted)
      return;
    std::string text;
    llvm::raw_string_ostream(text)
        << "operands of different element types are converted to " << type;
    remark::passed(op.getLoc(), remark::RemarkOpts::name("types").category(
                                    "attn-match-operands"))
        << text;
  }
};
} // namespace
