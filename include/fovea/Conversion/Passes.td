//===- Passes.td - Passes from attn and linalg to the machine -*- tablegen -*-//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_CONVERSION_PASSES_TD
#define FOVEA_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// attn-to-linalg
//===----------------------------------------------------------------------===//

def AttnToLinalg : Pass<"attn-to-linalg"> {
  let summary = "Writes the ops of the attention graph as linalg on tensors";
  let description = [{
    Every graph op becomes a few `linalg.generic`s that state its formula, with
    sums and norms in the accumulation type and one rounding at the end.
    `attn.attention` is decomposed to the graph ops that it stands for first.
    The ops that one graph op became carry the same number in the attribute
    `fovea.kernel`, so that the graph can be run kernel by kernel
    (`linalg-fuse-rows{scope=op}`).

    `attn.online_attention` and the ops around it stay.
  }];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Number of graph ops converted">
  ];
}

#endif // FOVEA_CONVERSION_PASSES_TD
