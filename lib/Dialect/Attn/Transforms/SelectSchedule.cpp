//===- SelectSchedule.cpp - Choice of a schedule for every attention ------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"

#include "fovea/Analysis/ScheduleModel.h"
#include "fovea/Analysis/Widening.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Support/DebugLog.h"

#include "mlir/IR/Remarks.h"

#define DEBUG_TYPE "attn-select-schedule"

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
    if (passes < 1 || passes > 3) {
      getOperation()->emitError()
          << "attn-select-schedule: expects option 'passes' to be 1, 2 or 3, "
             "but it is "
          << passes.getValue();
      return signalPassFailure();
    }
    std::pair<StringRef, int64_t> expected[] = {
        {"typical-length", typicalLength},
        {"typical-rows", typicalRows},
        {"tile-rows", tileRows}};
    for (auto [name, value] : expected)
      if (value < 0) {
        getOperation()->emitError()
            << "attn-select-schedule: " << name
            << " must be at least 1, or 0 for what is usual, but is " << value;
        return signalPassFailure();
      }
    if (queryTile < 0 || keyTile < 0) {
      getOperation()->emitError()
          << "attn-select-schedule: query-tile and key-tile must be at least "
             "1, or 0 to choose, but are "
          << queryTile.getValue() << " and " << keyTile.getValue();
      return signalPassFailure();
    }
    if (failed(takeGiven()))
      return signalPassFailure();
    machine::TargetAttr target = machine::getTargetOrDefault(getOperation());
    WalkResult result = getOperation()->walk([&](Operation *op) {
      LogicalResult isValid = success();
      if (auto attention = dyn_cast<AttentionOp>(op))
        isValid = select(attention, target, "attention");
      else if (auto backward = dyn_cast<AttentionBackwardOp>(op);
               backward && backward.getLse())
        isValid = select(backward, target, "the backward pass");
      else if (auto online = dyn_cast<OnlineAttentionOp>(op);
               online && online.getSchedule())
        isValid = verifySchedule(online);
      return failed(isValid) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Gives attentions the schedules that the module has for them.
  LogicalResult takeGiven() {
    auto given = getOperation()->getAttrOfType<ArrayAttr>(kSchedulesAttrName);
    if (!given)
      return success();
    getOperation()->removeAttr(kSchedulesAttrName);
    SmallVector<Operation *> ops = findUnscheduled(getOperation());
    if (given.size() != ops.size())
      return getOperation()->emitError()
             << "attn-select-schedule: expects '" << kSchedulesAttrName
             << "' to have a schedule for each of " << ops.size()
             << " attentions that have none, but it has " << given.size();
    for (auto [op, attribute] : llvm::zip_equal(ops, given)) {
      auto schedule = dyn_cast<ScheduleAttr>(attribute);
      if (!schedule)
        continue;
      LDBG() << "the attention at " << op->getLoc() << " is given " << schedule;
      if (auto attention = dyn_cast<AttentionOp>(op))
        attention.setScheduleAttr(schedule);
      else
        cast<AttentionBackwardOp>(op).setScheduleAttr(schedule);
    }
    return success();
  }

  ScheduleAttr choose(AttentionOp op, machine::TargetAttr target) {
    return selectSchedule(
        op, target,
        {passes, exactProducts, typicalLength, typicalRows, tileRows});
  }
  ScheduleAttr choose(AttentionBackwardOp op, machine::TargetAttr target) {
    return selectSchedule(op, target);
  }

  /// Adds to a schedule what it leaves open.
  void complete(AttentionOp, machine::TargetAttr) {}
  void complete(AttentionBackwardOp op, machine::TargetAttr target) {
    ScheduleAttr schedule = op.getScheduleAttr();
    if (schedule.getGradients() || getUnfitReason(op, target))
      return;
    SmallVector<std::string> texts;
    GradientsAttr gradients =
        selectGradients(op, schedule, target, deterministic, texts);
    op.setScheduleAttr(schedule.with({.gradients = gradients}));
    for (const std::string &text : texts)
      remark::passed(
          op.getLoc(),
          remark::RemarkOpts::name("captures").category("attn-select-schedule"))
          << text;
  }

  LogicalResult check(AttentionOp op) { return verifySchedule(op, passes); }
  LogicalResult check(AttentionBackwardOp op) { return verifySchedule(op); }

  /// Says why the schedule does less than it might.
  void explain(AttentionOp op, machine::TargetAttr target) {
    if (!target.isGpu() || op.getScheduleAttr().getWiden() ||
        !widensOperands(op))
      return;
    remark::missed(op.getLoc(), remark::RemarkOpts::name("widen").category(
                                    "attn-select-schedule"))
        << "a kernel in front widens keys and values from 8 bits: " +
               getWideningObstacle(op, target).value_or("the schedule says so");
  }
  void explain(AttentionBackwardOp, machine::TargetAttr) {}

  /// Takes a schedule away with which attention could not be computed. Returns
  /// true if it did.
  template <typename OpTy>
  bool dropUnfit(OpTy op, machine::TargetAttr target) {
    std::optional<std::string> obstacle = getScheduleObstacle(op, target);
    if (!obstacle)
      return false;
    remark::missed(op.getLoc(), remark::RemarkOpts::name("unfit").category(
                                    "attn-select-schedule"))
        << *obstacle + ", so that its schedule is not used";
    op.removeScheduleAttr();
    return true;
  }

  template <typename OpTy>
  LogicalResult select(OpTy op, machine::TargetAttr target, StringRef what) {
    if (op.getSchedule() && !dropUnfit(op, target)) {
      ++numKept;
      LDBG() << what << " at " << op.getLoc() << " has " << op.getScheduleAttr()
             << " already";
      complete(op, target);
      return check(op);
    }
    ScheduleAttr chosen = choose(op, target);
    if (!chosen) {
      std::string reason =
          getUnfitReason(op, target)
              .value_or("no tile of this head dim fits the target");
      remark::missed(op.getLoc(), remark::RemarkOpts::name("unfit").category(
                                      "attn-select-schedule"))
          << reason + "; " + what.str() + " is written out, kernel by kernel";
      ++numUnfit;
      return success();
    }
    chosen = withOptions(op, chosen);
    if (!chosen)
      return failure();
    op.setScheduleAttr(chosen);
    complete(op, target);
    explain(op, target);
    ++numSelected;
    LDBG() << what << " at " << op.getLoc() << " gets " << op.getScheduleAttr();
    return check(op);
  }

  ScheduleAttr withOptions(Operation *op, ScheduleAttr chosen) {
    return ScheduleAttr::getChecked(
        [&] { return op->emitOpError("has an invalid schedule: "); },
        chosen.getContext(), queryTile ? queryTile : chosen.getQueryTile(),
        keyTile ? keyTile : chosen.getKeyTile(), chosen.getOrder(),
        chosen.getWarps(), chosen.getStages(), chosen.getMaximum(),
        chosen.getKeys(), chosen.getQueries(), chosen.getBlocks(),
        chosen.getProducts(), chosen.getGroups(), chosen.getCaptures(),
        chosen.getSplit(), chosen.getSplitSize(), chosen.getWiden(),
        chosen.getParts(), chosen.getCluster(), chosen.getGradients());
  }
};
} // namespace
