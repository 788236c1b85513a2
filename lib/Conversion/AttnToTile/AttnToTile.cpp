//===- AttnToTile.cpp - convert-attn-to-tile ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BackwardBuilder.h"
#include "LaunchBuilder.h"

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
    SmallVector<attn::AttentionBackwardOp> gradients;
    getOperation()->walk([&](attn::AttentionBackwardOp op) {
      if (op.getSchedule())
        gradients.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (scf::ForallOp loop : loops)
      convert(LaunchBuilder(rewriter, loop), loop.getLoc(),
              "attention stays a loop over tiles: ");
    for (attn::AttentionBackwardOp op : gradients)
      convert(BackwardBuilder(rewriter, op, deterministic), op.getLoc(),
              "the backward pass is written out, kernel by kernel: ");
  }

  template <typename Builder>
  void convert(Builder builder, Location loc, StringRef consequence) {
    if (succeeded(builder.run())) {
      ++numConverted;
      return;
    }
    ++numKept;
    remark::missed(
        loc, remark::RemarkOpts::name("unfit").category("convert-attn-to-tile"))
        << (consequence + builder.getReason()).str();
  }
};
} // namespace
} // namespace fovea
