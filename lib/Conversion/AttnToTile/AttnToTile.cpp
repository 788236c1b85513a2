//===- AttnToTile.cpp - convert-attn-to-tile ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBuilder.h"
#include "BackwardBuilder.h"
#include "Positions.h"
#include "WholeTiles.h"

#include "fovea/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_ATTNTOTILE
#include "fovea/Conversion/Passes.h.inc"

namespace {
struct AttnToTile final : impl::AttnToTileBase<AttnToTile> {
  using AttnToTileBase::AttnToTileBase;

  void runOnOperation() override {
    SetVector<scf::ForallOp> loops;
    getOperation()->walk([&](attn::FinalizeOp op) {
      auto loop = dyn_cast<scf::ForallOp>(op->getParentOp());
      if (loop && op.hasPureTensorSemantics())
        loops.insert(loop);
    });
    SmallVector<attn::OnlineBackwardOp> gradients;
    getOperation()->walk([&](attn::OnlineBackwardOp op) {
      if (op->getParentOfType<scf::ForallOp>() && op.hasPureTensorSemantics())
        gradients.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (scf::ForallOp loop : loops)
      replaceWholeSizes(rewriter, loop);
    getOperation()->walk([&](Operation *op) {
      if (isa<attn::OnlineAttentionOp, attn::OnlineBackwardOp>(op))
        for (Region &region : op->getRegions())
          convertPositionsWhole(rewriter, region);
    });
    for (scf::ForallOp loop : loops) {
      AttentionBuilder builder(rewriter, loop, exactFunctions);
      if (succeeded(builder.run())) {
        ++numConverted;
        continue;
      }
      ++numKept;
      remark::missed(loop.getLoc(), remark::RemarkOpts::name("unfit").category(
                                        "convert-attn-to-tile"))
          << ("attention stays a loop over tiles: " + builder.getReason())
                 .str();
    }
    for (attn::OnlineBackwardOp op : gradients) {
      BackwardBuilder builder(rewriter, op->getParentOfType<scf::ForallOp>(),
                              op);
      if (succeeded(builder.run())) {
        ++numConverted;
        continue;
      }
      // A score without a derivative has been reported.
      if (!builder.getReason().empty())
        op.emitOpError("is in a loop that cannot become a launch: ")
            << builder.getReason();
      signalPassFailure();
    }
  }
};
} // namespace
} // namespace fovea
