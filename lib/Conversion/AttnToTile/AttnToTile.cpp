//===- AttnToTile.cpp - convert-attn-to-tile ------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchBuilder.h"

#include "fovea/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_ATTNTOTILE
#include "fovea/Conversion/Passes.h.inc"

namespace {
struct AttnToTile final : impl::AttnToTileBase<AttnToTile> {
  void runOnOperation() override {
    SetVector<scf::ForallOp> loops;
    getOperation()->walk([&](attn::FinalizeOp op) {
      auto loop = dyn_cast<scf::ForallOp>(op->getParentOp());
      if (loop && op.hasPureTensorSemantics())
        loops.insert(loop);
    });
    IRRewriter rewriter(&getContext());
    for (scf::ForallOp loop : loops) {
      Location loc = loop.getLoc();
      LaunchBuilder builder(rewriter, loop);
      if (succeeded(builder.run())) {
        ++numConverted;
        continue;
      }
      ++numKept;
      remark::missed(loc, remark::RemarkOpts::name("unfit").category(
                              "convert-attn-to-tile"))
          << ("attention stays a loop over tiles: " + builder.getReason())
                 .str();
    }
  }
};
} // namespace
} // namespace fovea
