//===- AttnGraphOps.td - Graphs and fused attention --------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNGRAPHOPS_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNGRAPHOPS_TD

include "fovea/Dialect/Attn/IR/AttnAttrs.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Attn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic, traits>;

/// An op of the graph. It works on tensors and has no side effects.
class Attn_GraphOp<string mnemonic, list<Trait> traits = []>
    : Attn_Op<mnemonic, !listconcat(traits, [Pure,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
            ["reifyResultShapes"]>])>;

/// A graph op whose only result has the shape of its first operand.
class Attn_SameShapeOp<string mnemonic, list<Trait> traits = []>
    : Attn_GraphOp<mnemonic, traits> {
  let extraClassDefinition = [{
    ::mlir::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &shapes) {
      shapes.push_back(
          ::mlir::tensor::getMixedSizes(builder, getLoc(), getOperation()->getOperand(0)));
      return ::mlir::success();
    }
  }];
}

def Attn_FloatTensor : TensorRankOf<[F16, BF16, F32, F64],
                                    [1, 2, 3, 4, 5, 6, 7, 8]>;
def Attn_Tensor4D : 4DTensorOf<[F16, BF16, F32, F64]>;
def Attn_Scalar : AnyTypeOf<[AnyFloat, AnySignlessInteger, Index]>;

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

def ScoresOp : Attn_GraphOp<"scores"> {
  let summary = "Scores of all queries against all keys";
  let description = [{
    `s[b, h, i, j] = sum over d of q[b, h, i, d] * k[b, h floordiv G, j, d]`
    with `q: [B, H, Sq, D]`, `k: [B, Hkv, Sk, D]`, `G = H / Hkv` and the result
    `[B, H, Sq, Sk]`. The sum is in the accumulation type and rounded once.

    ```mlir
    %s = attn.scores %q, %k : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>
                              -> tensor<2x16x?x?xf32>
    ```
  }];
  let arguments = (ins Attn_Tensor4D:$query, Attn_Tensor4D:$key);
  let results = (outs Attn_Tensor4D:$result);
  let assemblyFormat = [{
    $query `,` $key attr-dict `:` type($query) `,` type($key) `->` type($result)
  }];
  let hasVerifier = 1;
}

def ScaleOp : Attn_SameShapeOp<"scale", [SameOperandsAndResultType]> {
  let summary = "Multiplies every element by a constant";
  let description = [{
    `result[...] = input[...] * factor`.

    ```mlir
    %t = attn.scale %s by 0.125 : tensor<2x16x?x?xf32>
    ```
  }];
  let arguments = (ins Attn_FloatTensor:$input, F64Attr:$factor);
  let results = (outs Attn_FloatTensor:$result);
  let assemblyFormat = "$input `by` $factor attr-dict `:` type($input)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def ModifyOp : Attn_SameShapeOp<"modify",
    [SameOperandsAndResultType, SingleBlock]> {
  let summary = "Changes every score by a scalar function of it and its place";
  let description = [{
    `result[b, h, i, j] = body(input[b, h, i, j], b, h, i, j)`. The region has
    the arguments `(score: element type, b, h, i, j: index)` and yields the new
    score; it may read captured tensors by `tensor.extract`. It is evaluated for
    every score, including those that a mask excludes later. The dialect's
    description lists the operations that regions may hold, and the undefined
    cases.

    ```mlir
    %a = attn.modify %t {
    ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
      %slope = tensor.extract %slopes[%h] : tensor<16xf32>
      %d = arith.subi %j, %i : index
      %n = arith.index_cast %d : index to i32
      %f = arith.sitofp %n : i32 to f32
      %bias = arith.mulf %slope, %f : f32
      %r = arith.addf %score, %bias : f32
      attn.yield %r : f32
    } : tensor<2x16x?x?xf32>
    ```
  }];
  let arguments = (ins Attn_Tensor4D:$input);
  let results = (outs Attn_Tensor4D:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$input $body attr-dict `:` type($input)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def MaskOp : Attn_SameShapeOp<"mask",
    [SameOperandsAndResultType, SingleBlock]> {
  let summary = "Keeps the scores where a predicate holds";
  let description = [{
    `result[b, h, i, j] = body(b, h, i, j) ? input[b, h, i, j] : -infinity`. The
    region has the arguments `(b, h, i, j: index)` and yields an `i1`. The value
    of a removed score does not matter: it may be NaN.

    ```mlir
    %m = attn.mask %a {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } : tensor<2x16x?x?xf32>
    ```
  }];
  let arguments = (ins Attn_Tensor4D:$input);
  let results = (outs Attn_Tensor4D:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$input $body attr-dict `:` type($input)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def SoftmaxOp : Attn_SameShapeOp<"softmax"> {
  let summary = "Softmax over the last dimension";
  let description = [{
    `result[..., j] = exp(x[..., j] - m) / sum over j of exp(x[..., j] - m)`
    with `m` the row's maximum, in the accumulation type. A row that is all
    minus infinity gives zeros.

    ```mlir
    %p = attn.softmax %m : tensor<2x16x?x?xf32> -> tensor<2x16x?x?xf32>
    ```
  }];
  let arguments = (ins Attn_FloatTensor:$input);
  let results = (outs Attn_FloatTensor:$result);
  let assemblyFormat = [{
    $input attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def DropoutOp : Attn_SameShapeOp<"dropout", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Drops elements at random, keyed by element";
  let description = [{
    `result[x] = keep(x) ? input[x] / (1 - p) : 0`, where Philox-4x32-10 decides
    `keep` from `seed`, `offset` and the element's position, as the dialect's
    description states. `0 <= p < 1`.

    ```mlir
    %d = attn.dropout %p, 0.1 seed(%seed, %offset) : tensor<2x16x?x?xf32>
    ```
  }];
  let arguments = (ins Attn_FloatTensor:$input, F64Attr:$probability,
                       I64:$seed, I64:$offset);
  let results = (outs Attn_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $probability `seed` `(` $seed `,` $offset `)` attr-dict
    `:` type($input)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def ValuesOp : Attn_GraphOp<"values"> {
  let summary = "Values averaged by the probabilities";
  let description = [{
    `o[b, h, i, d] = sum over j of p[b, h, i, j] * v[b, h floordiv G, j, d]`
    with `p: [B, H, Sq, Sk]`, `v: [B, Hkv, Sk, Dv]` and the result
    `[B, H, Sq, Dv]`. The sum is in the accumulation type and rounded once. A
    key whose probability is 0 contributes nothing, whatever its value holds.

    ```mlir
    %o = attn.values %p, %v : tensor<2x16x?x?xf32>, tensor<2x4x?x64xf16>
                              -> tensor<2x16x?x64xf16>
    ```
  }];
  let arguments = (ins Attn_Tensor4D:$probabilities, Attn_Tensor4D:$value);
  let results = (outs Attn_Tensor4D:$result);
  let assemblyFormat = [{
    $probabilities `,` $value attr-dict
    `:` type($probabilities) `,` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
}

def LogSumExpOp : Attn_GraphOp<"log_sum_exp"> {
  let summary = "Logarithm of the sum of exponentials of every row";
  let description = [{
    `result[...] = log(sum over j of exp(x[..., j]))`, in the accumulation type,
    without overflow. A row that is all minus infinity, or that is empty, gives
    minus infinity. `exp(x[..., j] - result[...])` is the softmax of the row.

    ```mlir
    %l = attn.log_sum_exp %m : tensor<2x16x?x?xf32> -> tensor<2x16x?xf32>
    ```
  }];
  let arguments = (ins Attn_FloatTensor:$input);
  let results = (outs TensorOf<[F16, BF16, F32, F64]>:$result);
  let assemblyFormat = [{
    $input attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Ops for gradients
//===----------------------------------------------------------------------===//

def SoftmaxBackwardOp : Attn_SameShapeOp<"softmax_backward"> {
  let summary = "Gradient of a softmax from its result";
  let description = [{
    The result is the gradient of a softmax's input, from the softmax's result
    `p` and the gradient `g` of that result, in the accumulation type:

    `result[..., j] = p[..., j] * (g[..., j] - sum over k of p[..., k] * g[..., k])`.

    An element whose probability is 0 has the gradient 0, and adds nothing to
    the sum, whatever the value of `g` there.

    ```mlir
    %ds = attn.softmax_backward %p, %dp
          : tensor<2x16x?x?xf32>, tensor<2x16x?x?xf32> -> tensor<2x16x?x?xf32>
    ```
  }];
  let arguments = (ins Attn_FloatTensor:$probabilities,
                       Attn_FloatTensor:$gradient);
  let results = (outs Attn_FloatTensor:$result);
  let assemblyFormat = [{
    $probabilities `,` $gradient attr-dict
    `:` type($probabilities) `,` type($gradient) `->` type($result)
  }];
  let hasVerifier = 1;
}

def SumQueriesOp : Attn_GraphOp<"sum_queries"> {
  let summary = "For every key, the sum of all queries' vectors, weighted";
  let description = [{
    `r[b, g, j, d] = sum over h in the group of g, and i, of w[b, h, i, j] *
    x[b, h, i, d]` with `w: [B, H, Sq, Sk]`, `x: [B, H, Sq, D]` and the result
    `[B, Hkv, Sk, D]`; the group of `g` consists of the heads `h` with
    `h floordiv (H / Hkv) = g`. The sum is in the accumulation type and rounded
    once.

    Gradients reach keys and values by this op: it sums over the reads of
    `attn.scores` and `attn.values`. `heads` is `Hkv` where the result's type
    does not give it.

    ```mlir
    %dv = attn.sum_queries %p, %do : tensor<2x16x?x?xf32>, tensor<2x16x?x64xf16>
                                     -> tensor<2x4x?x64xf16>
    %dk = attn.sum_queries %ds, %q heads(%n)
          : tensor<2x?x?x?xf32>, tensor<2x?x?x64xf16> -> tensor<2x?x?x64xf16>
    ```
  }];
  let arguments = (ins Attn_Tensor4D:$weights, Attn_Tensor4D:$input,
                       Optional<Index>:$heads);
  let results = (outs Attn_Tensor4D:$result);
  let assemblyFormat = [{
    $weights `,` $input (`heads` `(` $heads^ `)`)? attr-dict
    `:` type($weights) `,` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// The work around attention
//===----------------------------------------------------------------------===//

def LayerNormOp : Attn_SameShapeOp<"layer_norm",
    [AllTypesMatch<["input", "result"]>, AttrSizedOperandSegments]> {
  let summary = "Layer normalisation over the last dimension";
  let description = [{
    `y = (x - mean) / sqrt(variance + epsilon) * weight + bias` with the mean
    and the (biased) variance over the last dimension (Ba et al., "Layer
    Normalization", arXiv 1607.06450), in the accumulation type. `weight` and
    `bias` have the size of the last dimension.

    ```mlir
    %y = attn.layer_norm %x weight(%w : tensor<512xf32>)
         bias(%c : tensor<512xf32>) epsilon(1.0e-5) : tensor<2x?x512xbf16>
    ```
  }];
  let arguments = (ins Attn_FloatTensor:$input,
                       Optional<1DTensorOf<[AnyFloat]>>:$weight,
                       Optional<1DTensorOf<[AnyFloat]>>:$bias,
                       F64Attr:$epsilon);
  let results = (outs Attn_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `:` type($weight) `)`)?
    (`bias` `(` $bias^ `:` type($bias) `)`)?
    `epsilon` `(` $epsilon `)` attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def RMSNormOp : Attn_SameShapeOp<"rms_norm",
    [AllTypesMatch<["input", "result"]>]> {
  let summary = "Root-mean-square normalisation over the last dimension";
  let description = [{
    `y = x / sqrt(mean(x^2) + epsilon) * weight` (Zhang and Sennrich, "Root Mean
    Square Layer Normalization", arXiv 1910.07467), computed in the accumulation
    type.

    ```mlir
    %y = attn.rms_norm %x weight(%w : tensor<512xf32>) epsilon(1.0e-6)
         : tensor<2x?x512xbf16>
    ```
  }];
  let arguments = (ins Attn_FloatTensor:$input,
                       Optional<1DTensorOf<[AnyFloat]>>:$weight,
                       F64Attr:$epsilon);
  let results = (outs Attn_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `:` type($weight) `)`)?
    `epsilon` `(` $epsilon `)` attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def RopeOp : Attn_SameShapeOp<"rope", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Rotary position embedding";
  let description = [{
    Rotates pairs of features by an angle that depends on the position (Su et
    al., "RoFormer", arXiv 2104.09864). `x: [B, H, S, D]` with D even, `cos` and
    `sin`: `[S, D/2]`. For pair `t < D/2` with elements `(x0, x1)`:

        y0 = x0 * cos[s, t] - x1 * sin[s, t]
        y1 = x1 * cos[s, t] + x0 * sin[s, t]

    The pair is `(t, t + D/2)`, or `(2t, 2t + 1)` where `interleaved` is given.
    The rotation is computed in the accumulation type.

    ```mlir
    %y = attn.rope %x, %cos, %sin
         : tensor<2x16x?x64xf16>, tensor<?x32xf32>, tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Attn_Tensor4D:$input, 2DTensorOf<[AnyFloat]>:$cos,
                       2DTensorOf<[AnyFloat]>:$sin, UnitAttr:$interleaved);
  let results = (outs Attn_Tensor4D:$result);
  let assemblyFormat = [{
    $input `,` $cos `,` $sin (`interleaved` $interleaved^)? attr-dict
    `:` type($input) `,` type($cos) `,` type($sin)
  }];
  let hasVerifier = 1;
}

def ResidualAddOp : Attn_SameShapeOp<"residual_add",
    [AllTypesMatch<["input", "result"]>]> {
  let summary = "Adds a residual";
  let description = [{
    `result[...] = input[...] + residual[...]`, computed in the accumulation
    type. The residual has the shape of the input; its element type may differ.

    ```mlir
    %y = attn.residual_add %x, %r : tensor<2x?x512xbf16>, tensor<2x?x512xf32>
    ```
  }];
  let arguments = (ins Attn_FloatTensor:$input, Attn_FloatTensor:$residual);
  let results = (outs Attn_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $residual attr-dict `:` type($input) `,` type($residual)
  }];
  let hasVerifier = 1;
}

def ElementwiseOp : Attn_SameShapeOp<"elementwise", [SingleBlock]> {
  let summary = "A scalar function of one element of each input";
  let description = [{
    `result[...] = body(inputs[0][...], inputs[1][...], ...)`. All inputs and
    the result have the same shape; the region's arguments are one element of
    each.

    ```mlir
    %y = attn.elementwise %x, %gate {
    ^bb0(%a: f32, %g: f32):
      %r = arith.mulf %a, %g : f32
      attn.yield %r : f32
    } : (tensor<2x?x512xf32>, tensor<2x?x512xf32>) -> tensor<2x?x512xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs);
  let results = (outs AnyRankedTensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs $body attr-dict `:` functional-type($inputs, $result)
  }];
  let hasVerifier = 1;
}

def YieldOp : Attn_Op<"yield", [Pure, ReturnLike, Terminator,
    ParentOneOf<["ModifyOp", "MaskOp", "ElementwiseOp", "AttentionOp",
                 "AttentionBackwardOp", "OnlineAttentionOp",
                 "OnlineBackwardOp"]>]> {
  let summary = "Ends a score, mask or elementwise region";
  let arguments = (ins Attn_Scalar:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------===//
// Fused
//===----------------------------------------------------------------------===//

def AttentionOp : Attn_GraphOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "Fused attention";
  let description = [{
    With `q: [B, H, Sq, D]`, `k: [B, Hkv, Sk, D]`, `v: [B, Hkv, Sk, Dv]`:

        s[i, j] = score(scale * sum over d of q[i, d] * k[j, d], b, h, i, j)
        s[i, j] = mask(b, h, i, j) ? s[i, j] : -infinity
        lse[i]  = log(sum over j of exp(s[i, j]))
        p[i, j] = dropout(exp(s[i, j] - lse[i]))
        o[i, d] = sum over j of p[i, j] * v[j, d]

    for every batch and head. With `init(%o0, %lse0)` attention starts from a
    state, the results of attention to other keys: of the same two formulas with
    `v` and `s`, `lse` and `o` are those of all keys,

        lse[i]  = log(exp(lse0[i]) + sum over j of exp(s[i, j]))
        o[i, d] = exp(lse0[i] - lse[i]) * o0[i, d] + sum over j of p[i, j] * v[j, d]

    Without `%o0`, as in `init(%lse0)`, `o0` is 0: `%lse0` is then the score of
    one more key whose value is 0, a sink. `%o0` has the shape of the output;
    `%lse0` is f32 or f64, and `[B, H, Sq]`, `[H, Sq]` for all batches, or
    `[H]` for all queries of a head. Where `lse0` is minus infinity there is no
    state, whatever `o0` holds. Dropout does not act on the state.

    Both regions are optional: without a score region
    scores are unchanged, without a mask region all are kept. Both may be
    evaluated for every score, the score region also where the mask excludes the
    score; the dialect's description lists the operations that they may hold,
    and the undefined cases. The score region's score has the accumulation type.
    The optional `lse` result `[B, H, Sq]` has that type or f64: the `lse` of a
    row of `n` equal scores is their value plus `log(n)`, and where scores are
    large, f32 has no room for both. The dropout acts on the element
    `[b, h, i, j]` of a `[B, H, Sq, Sk]` tensor and not on `lse`.

    With `split_size`, a positive multiple of 64, the sums over keys are divided
    at all multiples of so many keys and merged in their order (`split = fixed` of
    `#attn.schedule`): a row's bits then depend on the row alone, and not on which
    other batches there are, how long these are, or how many keys there might be.

    A key that the mask removes contributes nothing, whatever its key and value
    hold: a cache may contain NaN behind a sequence's length. This holds, also
    for the gradients, of every key that comparisons on the key remove for all
    queries of its batch and of the heads that share it, if the comparisons do
    not depend on the query, or if captured values take part in them:
    `j < length[b]`, `j >= start[b]`, `j <= position[b] + i`, constants, and
    conjunctions (`and`) of these with others (rule R7 in `MaskAnalysis.h`). A
    key must have finite values, and be finite where there are gradients, if it
    is masked for some queries only, or if only a diagonal of sizes or a tensor
    of booleans removes it.

    ```mlir
    %o, %lse = attn.attention %q, %k, %v scale(0.125)
        dropout(0.1, %seed, %offset)
        score {
        ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
          %r = math.tanh %s : f32
          attn.yield %r : f32
        }
        mask {
        ^bb0(%b: index, %h: index, %i: index, %j: index):
          %keep = arith.cmpi sge, %i, %j : index
          attn.yield %keep : i1
        }
        : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>
          -> tensor<2x16x?x64xf16>, tensor<2x16x?xf32>
    ```
  }];
  let arguments = (ins Attn_Tensor4D:$query, Attn_Tensor4D:$key,
                       Attn_Tensor4D:$value, F64Attr:$scale,
                       OptionalAttr<F64Attr>:$dropout, Optional<I64>:$seed,
                       Optional<I64>:$offset,
                       Optional<Attn_Tensor4D>:$initOutput,
                       Optional<TensorRankOf<[F32, F64], [1, 2, 3]>>:$initLse,
                       OptionalAttr<I64Attr>:$split_size,
                       OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let results = (outs Attn_Tensor4D:$output,
                      Optional<3DTensorOf<[F32, F64]>>:$lse);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$mask);
  let assemblyFormat = [{
    $query `,` $key `,` $value `scale` `(` $scale `)`
    (`dropout` `(` $dropout^ `,` $seed `,` $offset `)`)?
    custom<Init>($initOutput, type($initOutput), $initLse, type($initLse))
    (`score` $score^)? (`mask` $mask^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value)
    `->` type($output) (`,` type($lse)^)?
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    /// Returns the type that products, softmax and the score region compute in.
    ::mlir::FloatType getAccumulationType();

    /// Replaces the op by ops of the graph, in order of execution.
    void decompose(::llvm::SmallVectorImpl<::mlir::Operation *> &graph);
  }];
}

def AttentionBackwardOp : Attn_GraphOp<"attention_backward",
    [AttrSizedOperandSegments]> {
  let summary = "Gradients of fused attention";
  let description = [{
    Computes the gradients of `attn.attention` with the same operands, scale,
    dropout and regions, from the gradient `do: [B, H, Sq, Dv]` of its output.
    With `x` the scaled products, `s = score(x)` and `keep` as drawn by the
    dropout:

        dv[j] = sum over i of dropout(p[i, j]) * do[i]
        dp[i, j] = keep[i, j] / (1 - dropout) * (do[i] . v[j])
        ds[i, j] = p[i, j] * (dp[i, j] - delta[i])
        dx[i, j] = ds[i, j] * score'(x[i, j])
        dq[i] = scale * sum over j of dx[i, j] * k[j]
        dk[j] = scale * sum over i of dx[i, j] * q[i]

    where the gradients of keys and values of grouped heads also sum over their
    query heads. `captures` are tensors that the score region reads. Each gets
    another result: the sum of `ds[i, j]` times the derivative of the score by
    the elements that the region reads of it.

    Probabilities come in one of two ways:

    - `probabilities(%p)` are read as the forward pass saved them, before the
      dropout; `delta[i] = sum over j of p[i, j] * dp[i, j] - dl[i]`, with `dl`
      from `lse_gradient` if that is given. This is the textbook's way;
    - `statistics(%lse, %delta)`: probabilities are recomputed,
      `p = exp(s - lse)`, from queries, keys and the log-sum-exp of every row;
      `delta` is given, as `sum over d of do[i, d] * o[i, d] - dl[i]`, which is
      the same number. `lse` has the accumulation type or f64. Its error
      multiplies the row's probabilities by a factor, `exp(|lse| * 2^-24)` for
      an f32. Even f64 has no room for the logarithm of a sum beside scores
      beyond 1e15: where several keys of a row share the largest score, each
      then has the probability 1.

    A row without a key has gradients of zero. Results have any float type and
    are rounded once.

    A `schedule` describes a GPU's kernel, in which a block adds up the
    gradients of one tile of keys: its warps share each product, rows 16 at a
    time and columns 8 at a time; its `stages` are tiles of queries in shared
    memory at once. It needs statistics.

    ```mlir
    %dq, %dk, %dv, %dslopes = attn.attention_backward %q, %k, %v, %do
        scale(0.125) statistics(%lse, %delta : tensor<2x16x?xf32>,
                                               tensor<2x16x?xf32>)
        captures(%slopes : tensor<16xf32>)
        score {
        ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
          %slope = tensor.extract %slopes[%h] : tensor<16xf32>
          %r = arith.mulf %s, %slope : f32
          attn.yield %r : f32
        }
        : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>,
          tensor<2x16x?x64xf16>
          -> tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>,
             tensor<16xf32>
    ```
  }];
  let arguments = (ins Attn_Tensor4D:$query, Attn_Tensor4D:$key,
                       Attn_Tensor4D:$value, Attn_Tensor4D:$gradient,
                       Optional<Attn_Tensor4D>:$probabilities,
                       Optional<3DTensorOf<[F32, F64]>>:$lse,
                       Optional<3DTensorOf<[F32, F64]>>:$delta,
                       Optional<3DTensorOf<[F32, F64]>>:$lseGradient,
                       Variadic<AnyRankedTensor>:$captures,
                       F64Attr:$scale, OptionalAttr<F64Attr>:$dropout,
                       Optional<I64>:$seed, Optional<I64>:$offset,
                       OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let results = (outs Attn_Tensor4D:$queryGradient, Attn_Tensor4D:$keyGradient,
                      Attn_Tensor4D:$valueGradient,
                      Variadic<AnyRankedTensor>:$captureGradients);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$mask);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $gradient `scale` `(` $scale `)`
    (`probabilities` `(` $probabilities^ `:` type($probabilities) `)`)?
    (`statistics` `(` $lse^ `,` $delta `:` type($lse) `,` type($delta) `)`)?
    (`lse_gradient` `(` $lseGradient^ `:` type($lseGradient) `)`)?
    (`captures` `(` $captures^ `:` type($captures) `)`)?
    (`dropout` `(` $dropout^ `,` $seed `,` $offset `)`)?
    (`score` $score^)? (`mask` $mask^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($gradient)
    `->` type($queryGradient) `,` type($keyGradient) `,` type($valueGradient)
    (`,` type($captureGradients)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the type that products, softmax and the score region compute in.
    ::mlir::FloatType getAccumulationType();
  }];
}

def MergeOp : Attn_GraphOp<"merge"> {
  let summary = "Merges attention to several parts of the keys";
  let description = [{
    `parts: [P, B, H, Sq, Dv]` and `part_lse: [P, B, H, Sq]` are the outputs and
    log-sum-exps of attention of the same queries to `P` disjoint parts of the
    keys. The results are those of attention to all of these keys:

        m[b, h, i]    = max over p of part_lse[p, b, h, i]
        w[p, b, h, i] = exp(part_lse[p, b, h, i] - m[b, h, i])
        o[b, h, i, d] = sum over p of w[p, b, h, i] * parts[p, b, h, i, d]
                        / sum over p of w[p, b, h, i]
        lse[b, h, i]  = m[b, h, i] + log(sum over p of w[p, b, h, i])

    A part without a key, whose log-sum-exp is minus infinity, adds nothing,
    whatever its output holds. If no part has a key, or there is no part, the
    output is 0 and `lse` is minus infinity.

    The order of all sums depends on `P` only, and that of the output is
    ascending: the results have the same bits in every run. Weights and sums are
    in the accumulation type; f64 log-sum-exps are subtracted in f64, before
    that. Parts should be in the accumulation type, so
    that each element is rounded once. As everywhere, a log-sum-exp has no room
    for the logarithm of a sum beside large scores: beyond 1e15 in f64, parts
    with the same largest score get the same weight.

    `attn-tile` makes the op where a schedule splits the keys. A graph may have
    it for keys that lie apart: a prefix that several sequences share, or the
    keys of several devices.

    ```mlir
    %o, %lse = attn.merge %parts, %lses
               : tensor<8x2x16x?x64xf32>, tensor<8x2x16x?xf32>
                 -> tensor<2x16x?x64xbf16>, tensor<2x16x?xf32>
    ```
  }];
  let arguments = (ins TensorRankOf<[F16, BF16, F32, F64], [5]>:$parts,
                       4DTensorOf<[F32, F64]>:$partLse);
  let results = (outs Attn_Tensor4D:$output,
                      Optional<3DTensorOf<[F32, F64]>>:$lse);
  let assemblyFormat = [{
    $parts `,` $partLse attr-dict `:` type($parts) `,` type($partLse)
    `->` type($output) (`,` type($lse)^)?
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

#endif // FOVEA_DIALECT_ATTN_IR_ATTNGRAPHOPS_TD
