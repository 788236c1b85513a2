//===- SelectSchedule.cpp - Attaches a schedule to every attention --------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Remarks.h"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNSELECTSCHEDULE
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
struct SelectSchedule
    : fovea::attn::impl::AttnSelectScheduleBase<SelectSchedule> {
  using AttnSelectScheduleBase::AttnSelectScheduleBase;

  void runOnOperation() override {
    if (queryTile < 0 || keyTile < 0) {
      getOperation()->emitError()
          << "attn-select-schedule: query-tile and key-tile must be at least "
             "1, or 0 to choose, but are "
          << queryTile.getValue() << " and " << keyTile.getValue();
      return signalPassFailure();
    }
    TargetAttr target = getTargetOrDefault(getOperation());
    WalkResult result = getOperation()->walk([&](AttentionOp op) {
      if (op.getSchedule()) {
        ++numKept;
        return WalkResult::advance();
      }
      ScheduleAttr chosen = selectSchedule(op, target);
      if (!chosen) {
        std::string reason =
            getUnfitReason(op, target)
                .value_or("no tile of this head dim fits the target");
        remark::missed(op.getLoc(), remark::RemarkOpts::name("unfit").category(
                                        "attn-select-schedule"))
            << reason + "; attention is written out, kernel by kernel";
        ++numUnfit;
        return WalkResult::advance();
      }
      chosen = withOptions(op, chosen);
      if (!chosen)
        return WalkResult::interrupt();
      op.setScheduleAttr(chosen);
      ++numSelected;
      return failed(op.verify()) ? WalkResult::interrupt()
                                 : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  ScheduleAttr withOptions(AttentionOp op, ScheduleAttr chosen) {
    return ScheduleAttr::getChecked(
        [&] { return op.emitOpError("has an invalid schedule: "); },
        chosen.getContext(), queryTile ? queryTile : chosen.getQueryTile(),
        keyTile ? keyTile : chosen.getKeyTile(), chosen.getOrder(),
        chosen.getWarps(), chosen.getStages());
  }
};
} // namespace
