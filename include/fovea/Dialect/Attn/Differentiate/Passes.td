//===- Passes.td - Passes that make gradients --------------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_DIFFERENTIATE_PASSES_TD
#define FOVEA_DIALECT_ATTN_DIFFERENTIATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnDifferentiate : Pass<"attn-differentiate", "::mlir::ModuleOp"> {
  let summary = "Adds functions that compute gradients";
  let description = [{
    For a function `@f(inputs) -> results` on tensors, the pass adds the
    function

        @f_gradient(inputs, cotangents) -> (results, gradients)

    by reverse-mode differentiation of its graph. There is one cotangent for
    each result of a floating-point type, with the type of that result, and one
    gradient for each operand that is a tensor of floating-point numbers, with
    the type of that operand: the gradient of
    `sum over results of sum(result * cotangent)`. Numbers count as constants,
    and so do values that depend only on integers.

    This is the textbook's backward pass: it reads the values that the forward
    pass computed, including probabilities and scores, from memory.

    - Graph ops have rules: the gradients of `attn.scores` use `attn.values` and
      vice versa, and `attn.sum_queries` computes those of keys and values;
      dropout draws the same numbers again; norms and `attn.rope` have closed
      forms.
    - `attn.attention` is written as graph ops, so that its probabilities are
      saved, and `attn.attention_backward` reads them.
      `attn-insert-recomputation` then decides whether they are saved.
    - Score regions, elementwise regions and the bodies of linalg ops are
      differentiated as scalar programs. An op of linalg may be elementwise, or
      have reductions by a sum, a maximum or a minimum.
    - A tensor that a region captures gets the sum of the contributions of its
      elements' reads. Where loops index the tensor, that is a reduction over
      the other loops; where indices are computed, as in an embedding of
      relative positions, contributions are added one by one.
    - Views, slices, padding and concatenation of tensors have their inverse.

    Gradients are computed in the accumulation type of all operands of an op,
    and rounded once for each op, as results are. Sums of many terms of both
    signs are in f64: those for captured tensors that are not indexed by query
    and key, and those over rows of data that is read once, such as gradients of
    weights and biases (but not products of matrices). Where a maximum is
    attained more than once, its gradient is shared. An op without a derivative
    is an error that names the op, if a gradient has to pass it. A function that
    calls others must be inlined first.
  }];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let options = [
    Option<"function", "function", "std::string", /*default=*/"\"\"",
           "Function to differentiate; all public ones if empty">
  ];
  let statistics = [
    Statistic<"numDifferentiated", "num-differentiated",
              "Number of functions differentiated">
  ];
}

def AttnInsertRecomputation : Pass<"attn-insert-recomputation"> {
  let summary = "Recomputes probabilities instead of saving them";
  let description = [{
    The pass changes each `attn.attention_backward` that reads saved
    probabilities. It replaces the forward pass by `attn.attention`, which has
    no probabilities to save, and lets the backward pass recompute them from
    queries, keys and the log-sum-exp of every row, which is saved in f64. The
    softmax's Jacobian then needs `rowsum(do * o)` instead of a sum over
    probabilities. No saved tensor then grows with the number of scores.

    `policy` says where this is done:

    - `always`, `never`;
    - `auto`: on a GPU, it is done where the backward pass has a kernel (see
      `attn-select-schedule`), which keeps scores in registers. It is also done
      wherever the number of scores is not known. Elsewhere it is done where the
      model of the target predicts that both passes take less time this way:
      saving moves scores, probabilities and their gradients through memory,
      some eleven times an element, and computes scores that a mask excludes;
      recomputing takes one more product of queries and keys. The predicted
      times are those of `fovea-run --grad --report`, at the target's rates.

    A remark gives the decision and its reason
    (`--remarks-filter=attn-insert-recomputation`).
  }];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
  let options = [
    Option<"policy", "policy", "::fovea::attn::Recomputation",
           /*default=*/"::fovea::attn::Recomputation::Auto",
           "Where probabilities are recomputed",
           "::fovea::attn::getRecomputationChoices()">
  ];
  let statistics = [
    Statistic<"numRecomputed", "num-recomputed",
              "Number of attentions whose probabilities are recomputed">,
    Statistic<"numSaved", "num-saved",
              "Number of attentions whose probabilities are saved">
  ];
}

def AttnDecomposeBackward : Pass<"attn-decompose-backward"> {
  let summary = "Writes attn.attention_backward as ops of the graph";
  let description = [{
    The pass writes each `attn.attention_backward` as the textbook does: scores,
    scale, score region, probabilities (as they were saved, or `exp(s - lse)`),
    and the gradients of each, by the rules of `attn-differentiate`. `--cse`
    merges values that the forward pass also computes.

    This form runs everywhere, and faster forms are compared with it. For a tile
    (`at`), all scores of the tile exist at once.
  }];
  let options = [
    Option<"storedOnly", "stored-only", "bool", "false",
           "Only those that read stored probabilities">
  ];
  let dependentDialects = [
    "::fovea::attn::AttnDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numDecomposed", "num-decomposed", "Number of ops decomposed">
  ];
}

def AttnPartitionGradient
    : Pass<"attn-partition-gradient", "::mlir::ModuleOp"> {
  let summary = "Splits a joint function into forward and backward";
  let description = [{
    The pass splits each
    `@f_gradient(inputs, cotangents) -> (results, gradients)`, as
    `attn-differentiate` makes it, into two functions that are called at
    different times:

        @f_forward(inputs) -> (results, saved)
        @f_backward(inputs, results, saved, cotangents) -> gradients

    The backward function contains the ops that depend on a cotangent. Other
    tensors that these ops read are saved, unless they are inputs or results:
    those are passed unchanged, but only the ones that are read. Numbers, sizes
    and constants are computed again.

    The names of the backward function's operands help its callers: the names of
    the inputs (`arg0`, ... where those have no name), `result0`, ..., `saved0`,
    ... and `cotangent0`, ... by number.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let statistics = [
    Statistic<"numPartitioned", "num-partitioned",
              "Number of joint functions split">,
    Statistic<"numTensorsSaved", "num-tensors-saved",
              "Number of tensors that are saved and are not inputs or results">
  ];
}

#endif // FOVEA_DIALECT_ATTN_DIFFERENTIATE_PASSES_TD
