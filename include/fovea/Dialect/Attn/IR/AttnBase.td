//===- AttnBase.td - The attn dialect and its base classes -*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNBASE_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::fovea::attn";
  let summary = "Attention as a graph, fused, and as an online recurrence";
  let description = [{
    The dialect holds attention at three levels, all on values with the layout
    `[batch, head, position, feature]`:

    1. *The graph*, as a textbook or an exporter writes it, on tensors:
       `attn.scores`, `attn.scale`, `attn.modify`, `attn.mask`, `attn.softmax`,
       `attn.dropout`, `attn.values`, and the work around attention
       (`attn.layer_norm`, `attn.rms_norm`, `attn.rope`, `attn.residual_add`,
       `attn.elementwise`). Every op can be executed on its own; that is the
       baseline against which fusion is measured.
    2. *Fused*: `attn.attention`. All elementwise work on the score matrix is in
       one of two regions over scalars, so that no score tensor exists.
       `attn.merge` puts attention to several parts of the keys together.
    3. *Online*: `attn.online_attention`, a destination-passing step that
       updates an accumulator, a running maximum and a running sum, and is
       associative along the keys; `attn.finalize` turns these into the output
       and the log-sum-exp. Both ops implement MLIR's tiling interface, so that
       tiling, split keys and ring attention are one mechanism.

    **Coordinates.** Score and mask regions see the batch `b`, the *query* head
    `h`, the query position `i` and the key position `j`, always in the
    coordinates of the whole tensor, on every level and in every tile.

    **Captures.** Regions read captured tensors (bias tables, slopes, document
    ids, lengths) and scalars by using values defined above them;
    `tensor.extract` reads a tensor.

    **Regions** hold operations on numbers (f16, bf16, f32, f64, index, signless
    integers of at most 64 bits) without side effects: those of `arith`, `math`
    and `index`, `affine.apply`, `affine.min` and `affine.max`, `scf.if`,
    `scf.for` and `scf.while`, and, on tensors, `tensor.extract` and
    `tensor.dim`. `docs/regions.md` lists them, by target and with their
    derivatives.

    **Operations without a value.** A region is evaluated for every score,
    including those that the mask excludes. For each score its indices must lie
    within their tensors, no divisor of integers may be 0, and no quotient may
    exceed its type; else the behaviour is undefined. Where only the coordinates
    and sizes decide this, a call with such sizes is an error; where data
    decide, only `--check-bounds` checks them. Any other operation without a
    value (a shift by the width or more, a conversion of a float to an integer
    that does not hold it) gives an arbitrary number, which is harmless if a
    select or the mask discards it.

    **Grouped heads.** Keys and values may have fewer heads than queries: query
    head `h` of `H` reads KV head `h floordiv (H / Hkv)`; `Hkv` divides `H`.

    **Numerics.** Products, softmax and normalisation are computed in the
    *accumulation type*: f64 where an operand is f64, else f32; `attn.scores`,
    `attn.values` and `attn.sum_queries` also sum in f64 where their result is
    f64. A result is rounded once, to the element type of the result. A row in
    which every key is masked, or has a score of minus infinity, or which has no
    key, gives zeros and a log-sum-exp of minus infinity. A row with a kept
    score of NaN or plus infinity gives NaN, as do its gradients and those of
    its keys and values. Scores may be as large as the accumulation type's
    numbers; in attention without a score region this holds for scores times
    log2(e), so that they reach 2.3e38 in f32.

    **Dropout** is Philox-4x32-10 (Salmon et al., "Parallel random numbers: as
    easy as 1, 2, 3", SC 2011), keyed by element. For the element at column `c`
    (its last index) of row `r` (its leading indices, linearised) the 128-bit
    counter is `c / 4 + 2^32 * r + 2^64 * offset` and the key is `seed`; word
    `c mod 4` of the result is the element's random number `u`. The element is
    kept, and divided by `1 - p`, if `u >= floor(p * 2^32)`, else it becomes 0.
    So the mask depends neither on the target nor on the tile size.

    **Attributes of functions.** `attn.joint`, an array of two i64 on a function
    with gradients, holds the numbers of operands and of results that belong to
    the function that was differentiated. They come first
    (`--attn-differentiate`, `--attn-partition-gradient`).

    **Attributes of modules.** `attn.schedules`, an array with a `#attn.schedule`
    or `unit` for each attention of a module that has none, in their order, gives
    them these schedules; to `unit` the model's (`--attn-select-schedule`). An
    autotuner speaks to the compiler by it.
  }];
  let dependentDialects = [
    "::fovea::machine::MachineDialect", "::mlir::arith::ArithDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void attachTilingInterfaces();
  }];
}

#endif // FOVEA_DIALECT_ATTN_IR_ATTNBASE_TD
