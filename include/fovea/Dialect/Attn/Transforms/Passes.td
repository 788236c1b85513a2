//===- Passes.td - Passes on the attn dialect --------------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_TD
#define FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnFuse : Pass<"attn-fuse"> {
  let summary = "Turns unfused attention into attn.attention";
  let description = [{
    Finds attention by its structure: a softmax whose input is, elementwise, a
    function of one contraction of queries with keys, and whose result is, by
    casts, reshapes and dropout, the left side of one contraction with values.
    It may be written with the graph ops of `attn` or with
    linalg/tensor/arith/math as importers leave it.

    - Constant factors on the products, or on either of their sides, become
      `scale`.
    - Masks (selections of minus infinity by a condition on positions and
      captured tensors) become the mask region.
    - All else that is elementwise on the scores becomes the score region;
      tensors that it reads are captured.
    - A broadcast of KV heads is undone; transposes and reshapes of the operands
      are folded where they cancel.

    What is not attention stays as it is, with a missed remark that says why
    (`--remarks-filter=attn-fuse`).

    Two things differ from the unfused graph, both by the definition of
    `attn.attention`: a row in which every key is masked by minus infinity gives
    zeros, not NaN; and roundings of intermediate tensors to narrow element
    types do not happen.
  }];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numFused", "num-fused", "Number of attentions fused">,
    Statistic<"numRejected", "num-rejected",
              "Number of softmaxes that are not a fusable attention">
  ];
}

def AttnSelectSchedule : Pass<"attn-select-schedule"> {
  let summary = "Attaches a schedule to every attention";
  let description = [{
    Gives each `attn.attention` that has none a `#attn.schedule`: among tiles
    whose working set fits the target's near memory, the one with the least
    time by the model in `Analysis/ScheduleModel.h` (vector operations of a
    tile, widening of 16-bit keys and values, ragged last tiles, an even share
    for every core). The target is the module's `attn.target`, or a common
    machine where there is none. Attention with a mask is handed out longest
    tile first.

    A schedule that is there, by hand or by an autotuner, stays.
  }];
  let options = [
    Option<"queryTile", "query-tile", "int64_t", "0",
           "Queries of a tile; 0: the model chooses">,
    Option<"keyTile", "key-tile", "int64_t", "0",
           "Keys of a tile; 0: the model chooses">
  ];
  let statistics = [
    Statistic<"numSelected", "num-selected", "Number of schedules chosen">,
    Statistic<"numKept", "num-kept", "Number of schedules that were there">
  ];
}

#endif // FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_TD
