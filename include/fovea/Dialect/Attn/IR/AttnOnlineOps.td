//===- AttnOnlineOps.td - Attention tile by tile -----------*- tablegen -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNONLINEOPS_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNONLINEOPS_TD

include "fovea/Dialect/Attn/IR/AttnGraphOps.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/ParallelCombiningOpInterface.td"
include "mlir/Interfaces/TilingInterface.td"

/// A destination-passing op on tensors (with results) or memrefs (without).
class Attn_DestinationOp<string mnemonic, list<Trait> traits = []>
    : Attn_Op<mnemonic, !listconcat(traits, [DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
            ["reifyResultShapes"]>])>;

def Attn_TensorOrMemRef : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef]>;

def Attn_Tiling : DeclareOpInterfaceMethods<TilingInterface, [
    "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
    "getResultTilePosition", "generateResultTileValue",
    "getIterationDomainTileFromResultTile"]>;

def OnlineAttentionOp : Attn_DestinationOp<"online_attention",
    [AttrSizedOperandSegments, Attn_Tiling]> {
  let summary = "One pass over keys with running accumulator, maximum and sum";
  let description = [{
    The recurrence of online softmax (Milakov and Gimelshein, arXiv 1805.02867;
    Rabe and Staats, arXiv 2112.05682; Dao et al., FlashAttention, arXiv
    2205.14135). With the scores `s` of the op's keys, computed as in
    `attn.attention`:

        m'      = max(m, max over j of s[j])
        p[j]    = exp(s[j] - m')
        sum'    = sum * exp(m - m') + sum over j of p[j]
        acc'[d] = acc[d] * exp(m - m') + sum over j of dropout(p[j]) * v[j, d]

    `acc: [B, H, Sq, Dv]`, `max` and `sum`: `[B, H, Sq]`, all of the
    accumulation type. Without a score region `max` is in base 2, `log2(e) * m`,
    for queries are also scaled by that factor. Scores that a score region
    yields are not scaled, for they may be as low as any number. `acc`, `max`
    and `sum` start as 0, minus infinity and 0. The maximum of NaN and numbers
    is that of the numbers. The order of keys, and their division among several
    ops, affects only rounding.

    `update` gives the running values that a pass computes; the others are read
    or ignored and are returned unchanged. `all` is the single pass. Two passes
    are `max_sum`, then `acc`; three are `max`, `sum`, `acc`: there `max` is
    final, and a rescale by `exp(m - m')` does not occur.

    `at [b, h, i, j]` are the coordinates of the operands' first element in the
    whole attention (absent: zeros), which regions and dropout see.
    `whole [H, Sq]` are the numbers of heads and queries of the whole attention,
    by which dropout numbers its rows, and by which keys are absent that none of
    its queries sees (absent: those of the tensors that operands are slices of).
    `partial(%p)`: the mask region is applied only where `%p` is true; otherwise
    the producer has proven that it keeps all of this tile.
    `ends [%e0, %e1, ...]`: the rows of a tile of the schedule are divided into as
    many equal parts, and the producer has proven that the rows of part `n` see no
    key from coordinate `%en` on.

    Where `packed(%rows)` is given, the query is the result of
    `attn.pack_query`, `[B, H, D, Q]` in the accumulation type with the scale
    applied (and log2(e), if there is no score region), `Q` static; or pairs in
    bf16 without the scale, for a unit that multiplies such pairs: `[B, H, D/2,
    2 Q]`, or, where keys and values are f16, both parts of these, `[B, H, D,
    2 Q]`. `acc`, `max` and `sum` have `Q` rows. Rows from `%rows` on repeat the last row: they have
    its coordinates, and their results are not used.

    On tensors the op returns the new values; on memrefs it updates in place.

    ```mlir
    %acc1, %max1, %sum1 = attn.online_attention scale(0.125) update(all)
        ins(%q, %k, %v : tensor<1x1x48x64xf16>, tensor<1x1x?x64xf16>,
                         tensor<1x1x?x64xf16>)
        outs(%acc, %max, %sum : tensor<1x1x48x64xf32>, tensor<1x1x48xf32>,
                                tensor<1x1x48xf32>)
        at [%b, %h, %i, %j] partial(%p)
        mask {
        ^bb0(%b_: index, %h_: index, %i_: index, %j_: index):
          %keep = arith.cmpi sge, %i_, %j_ : index
          attn.yield %keep : i1
        }
        -> tensor<1x1x48x64xf32>, tensor<1x1x48xf32>, tensor<1x1x48xf32>
    ```
  }];
  let arguments = (ins Attn_TensorOrMemRef:$query, Attn_TensorOrMemRef:$key,
                       Attn_TensorOrMemRef:$value, Attn_TensorOrMemRef:$acc,
                       Attn_TensorOrMemRef:$max, Attn_TensorOrMemRef:$sum,
                       Variadic<Index>:$at, Variadic<Index>:$whole,
                       Optional<Index>:$rows, Optional<I1>:$partial,
                       Variadic<Index>:$ends, F64Attr:$scale,
                       Attn_UpdateAttr:$update,
                       OptionalAttr<F64Attr>:$dropout, Optional<I64>:$seed,
                       Optional<I64>:$offset,
                       OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$mask);
  let assemblyFormat = [{
    `scale` `(` $scale `)` `update` `(` custom<Update>($update) `)`
    (`dropout` `(` $dropout^ `,` $seed `,` $offset `)`)?
    `ins` `(` $query `,` $key `,` $value `:`
              type($query) `,` type($key) `,` type($value) `)`
    `outs` `(` $acc `,` $max `,` $sum `:`
               type($acc) `,` type($max) `,` type($sum) `)`
    (`at` `[` $at^ `]`)? (`whole` `[` $whole^ `]`)?
    (`packed` `(` $rows^ `)`)? (`partial` `(` $partial^ `)`)?
    (`ends` `[` $ends^ `]`)? (`score` $score^)? (`mask` $mask^)? attr-dict
    (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::FloatType getAccumulationType();
    ::mlir::MutableOperandRange getDpsInitsMutable();
    bool updatesMax();
    bool updatesSum();
    bool updatesAcc();

    /// Returns true if the query is packed in pairs of features.
    bool hasQueryPairs() {
      return getRows() &&
             ::llvm::cast<::mlir::ShapedType>(getQuery().getType())
                 .getElementType()
                 .isBF16();
    }
  }];
}

def OnlineBackwardOp : Attn_DestinationOp<"online_backward",
    [AttrSizedOperandSegments,
     DeclareOpInterfaceMethods<TilingInterface, [
         "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
         "getResultTilePosition"]>]> {
  let summary = "The gradients of scores, added to running sums";
  let description = [{
    Adds to the destinations what the op's queries and keys contribute to the
    gradients of `attn.attention_backward` with statistics. With `p`, `dp`, `ds`
    and `dx` as defined there,

        dq[i] += scale * sum over j of dx[i, j] * k[j]
        dk[j] += scale * sum over h of the group and i of dx[h, i, j] * q[h, i]
        dv[j] += sum over h of the group and i of
                 dropout(p[h, i, j]) * do[h, i]

    `query: [B, H, Sq, D]`, `gradient: [B, H, Sq, Dv]`, `key: [B, Hkv, Sk, D]`,
    `value: [B, Hkv, Sk, Dv]`; `lse`, `delta`: `[B, H, Sq]`, of the accumulation
    type; `lse` may be f64. The first three destinations have the accumulation
    type and the shapes of query, key and value.

    `captures(%t) sums(%s)`: tensors that the score region reads, and a
    destination for the gradient of each, of any float type. Where one
    coordinate of the score indexes a dimension unchanged in all reads, and no
    other dimension (`getCaptureAxes`), the destination begins, in that
    dimension, at the op's first coordinate, and may end behind its last; in
    other dimensions it is as large as the tensor.

    The op's iteration domain is (batch, head of keys, query head of its group,
    query, key); all sums are carried in the destinations, so that its tiles may
    be computed in any order, one after another.

    `at`, `whole` and `partial` are as in `attn.online_attention`.

    `packed(%pq, %pdo)` is the form for hosts, by `attn-pack-queries`: the op has
    one head, and its queries come twice: unchanged, and packed by
    `attn.pack_query` as `G` groups of `C` queries, `[1, G, D or Dv, C]`, the
    query with the scale applied (and log2(e), if there is no score region); or,
    where all four operands are bf16, for a unit that multiplies pairs, as pairs
    of features in bf16, `[1, G, D/2 or Dv/2, 2 C]` with `C` a multiple of 32,
    without the scale; where they are f16, as both parts of such pairs, `[1, G, D
    or Dv, 2 C]`. Groups beyond `Sq` are not read. The `derivative` region has the score
    region's arguments and yields the derivative of that region's result by the
    score. `scores(%x, %ds)`, instead of `captures`, are two more destinations,
    `[1, 1, Sk, Q]` with `Q = G * C`: `x`, the score given to the score region,
    and `ds`. They are overwritten, except for columns without a query.

    ```mlir
    %dq1, %dk1, %dv1 = attn.online_backward scale(0.125)
        ins(%q, %do, %k, %v, %lse, %delta
            : tensor<1x8x96x64xf16>, tensor<1x8x96x64xf16>,
              tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>,
              tensor<1x8x96xf32>, tensor<1x8x96xf32>)
        outs(%dq, %dk, %dv : tensor<1x8x96x64xf32>, tensor<1x2x?x64xf32>,
                             tensor<1x2x?x64xf32>)
        at [%b, %h, %i, %j] partial(%p)
        mask {
        ^bb0(%b_: index, %h_: index, %i_: index, %j_: index):
          %keep = arith.cmpi sge, %i_, %j_ : index
          attn.yield %keep : i1
        }
        -> tensor<1x8x96x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>
    ```
  }];
  let arguments = (ins Attn_TensorOrMemRef:$query,
                       Attn_TensorOrMemRef:$gradient,
                       Attn_TensorOrMemRef:$key, Attn_TensorOrMemRef:$value,
                       Attn_TensorOrMemRef:$lse, Attn_TensorOrMemRef:$delta,
                       Optional<Attn_TensorOrMemRef>:$packedQuery,
                       Optional<Attn_TensorOrMemRef>:$packedGradient,
                       Variadic<AnyRankedTensor>:$captures,
                       Attn_TensorOrMemRef:$queryGradient,
                       Attn_TensorOrMemRef:$keyGradient,
                       Attn_TensorOrMemRef:$valueGradient,
                       Variadic<AnyRankedTensor>:$sums,
                       Optional<Attn_TensorOrMemRef>:$scores,
                       Optional<Attn_TensorOrMemRef>:$scoreGradient,
                       Variadic<Index>:$at, Variadic<Index>:$whole,
                       Optional<I1>:$partial, F64Attr:$scale,
                       OptionalAttr<F64Attr>:$dropout, Optional<I64>:$seed,
                       Optional<I64>:$offset,
                       OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$derivative,
                        MaxSizedRegion<1>:$mask);
  let assemblyFormat = [{
    `scale` `(` $scale `)` (`dropout` `(` $dropout^ `,` $seed `,` $offset `)`)?
    (`packed` `(` $packedQuery^ `,` $packedGradient `:`
                  type($packedQuery) `,` type($packedGradient) `)`)?
    `ins` `(` $query `,` $gradient `,` $key `,` $value `,` $lse `,` $delta `:`
              type($query) `,` type($gradient) `,` type($key) `,` type($value)
              `,` type($lse) `,` type($delta) `)`
    `outs` `(` $queryGradient `,` $keyGradient `,` $valueGradient `:`
               type($queryGradient) `,` type($keyGradient) `,`
               type($valueGradient) `)`
    (`captures` `(` $captures^ `:` type($captures) `)`
     `sums` `(` $sums `:` type($sums) `)`)?
    (`scores` `(` $scores^ `,` $scoreGradient `:`
                  type($scores) `,` type($scoreGradient) `)`)?
    (`at` `[` $at^ `]`)? (`whole` `[` $whole^ `]`)?
    (`partial` `(` $partial^ `)`)?
    (`score` $score^)? (`derivative` $derivative^)? (`mask` $mask^)?
    attr-dict (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::FloatType getAccumulationType();
    ::mlir::MutableOperandRange getDpsInitsMutable();

    /// Returns true if queries and gradients are packed in pairs of features.
    bool hasQueryPairs() {
      return getPackedQuery() &&
             ::llvm::cast<::mlir::ShapedType>(getPackedQuery().getType())
                 .getElementType()
                 .isBF16();
    }
  }];
}

def ParallelAddSliceOp : Attn_Op<"parallel_add_slice",
    [AttrSizedOperandSegments,
     DeclareOpInterfaceMethods<ParallelCombiningOpInterface,
         ["getUpdatedDestinations", "getIteratingParent"]>]> {
  let summary = "Adds to a slice of a result of a parallel loop";
  let description = [{
    Stands where `tensor.parallel_insert_slice` does, in the terminator of an
    `scf.forall`. It adds `source`, element by element, to a slice of the result
    whose value so far is `dest`; several iterations may add to the same
    elements, in any order. `offsets` and `sizes` are those of a slice with unit
    strides.

    ```mlir
    scf.forall.in_parallel {
      attn.parallel_add_slice %part into %dq[%b, %h, 0, 0] [1, 4, 96, 64]
          : tensor<1x4x96x64xf32> into tensor<2x8x96x64xf32>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$dest,
                       Variadic<Index>:$offsets, Variadic<Index>:$sizes,
                       DenseI64ArrayAttr:$static_offsets,
                       DenseI64ArrayAttr:$static_sizes);
  let assemblyFormat = [{
    $source `into` $dest ``
    custom<DynamicIndexList>($offsets, $static_offsets)
    custom<DynamicIndexList>($sizes, $static_sizes)
    attr-dict `:` type($source) `into` type($dest)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$source, "::mlir::Value":$dest,
                   "::llvm::ArrayRef<::mlir::OpFoldResult>":$offsets,
                   "::llvm::ArrayRef<::mlir::OpFoldResult>":$sizes)>
  ];
  let hasVerifier = 1;
}

def FinalizeOp : Attn_DestinationOp<"finalize",
    [AttrSizedOperandSegments, Attn_Tiling]> {
  let summary = "Output and log-sum-exp from the running values";
  let description = [{
    `out[i, d] = acc[i, d] / sum[i]` rounded to the output's element type, and
    `lse[i] = (max[i] + log2(sum[i])) * ln(2)`, or with `natural`, after a score
    region, `lse[i] = max[i] + log(sum[i])`. `lse` has the element type of `acc`
    or f64. Where `sum` is 0, in rows without a kept key, the output is 0 and
    `lse` is minus infinity; where it is NaN, both are NaN.

    With `init(%lse0)` rows have one more key, of score `%lse0`, a natural
    logarithm, and of value 0: with `l` the `lse` of above,
    `lse[i] = log(exp(l[i]) + exp(lse0[i]))`, and the output is multiplied by
    `exp(l[i] - lse[i])`. Rows without another key have output 0 and `lse0[i]`
    as `lse`. `%lse0` is `[B, H, Sq]`, `[H, Sq]` or `[H]`, as in
    `attn.attention`. With `when(%c)` there is such a key only where `%c` holds.

    A third result, `rest`, is what `lse` is rounded by, both in the element type
    of `acc`: the sum of both is as near to the logarithm as a wider `lse` would
    be. Where `lse` is infinite, `rest` is 0.

    ```mlir
    %o, %l = attn.finalize
        ins(%acc, %max, %sum : tensor<1x1x48x64xf32>, tensor<1x1x48xf32>,
                               tensor<1x1x48xf32>)
        outs(%o0, %l0 : tensor<1x1x48x64xf16>, tensor<1x1x48xf32>)
        -> tensor<1x1x48x64xf16>, tensor<1x1x48xf32>
    ```
  }];
  let arguments = (ins Attn_TensorOrMemRef:$acc, Attn_TensorOrMemRef:$max,
                       Attn_TensorOrMemRef:$sum,
                       Optional<Attn_TensorOrMemRef>:$initLse,
                       Optional<I1>:$when, Attn_TensorOrMemRef:$output,
                       Optional<Attn_TensorOrMemRef>:$lse,
                       Optional<Attn_TensorOrMemRef>:$rest, UnitAttr:$natural);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    (`natural` $natural^)? `ins` `(` $acc `,` $max `,` $sum `:`
              type($acc) `,` type($max) `,` type($sum) `)`
    (`init` `(` $initLse^ `:` type($initLse) `)`)? (`when` `(` $when^ `)`)?
    `outs` `(` $output (`,` $lse^)? (`,` $rest^)? `:`
               type($output) (`,` type($lse)^)? (`,` type($rest)^)? `)`
    attr-dict (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
  }];
}

def PackQueryOp : Attn_DestinationOp<"pack_query"> {
  let summary = "A tile of queries, one query a lane";
  let description = [{
    `packed[b, h, d, q] = factor * query[b, h, min(q, Sq - 1), d]` in the
    accumulation type: queries lie along vector lanes, so that the softmax of a
    tile needs no horizontal operation. Columns beyond the last query repeat it;
    where there is none, as in a tile of a sequence without rows, all are unspecified.

    A result in bf16 has pairs of features, as AMX tiles and dot products of
    AVX512-BF16 multiply them, for a multiple of 32 features and of 16 queries and
    a factor of 1: `packed[b, h, d / 2, 2 q + d mod 2]` for a query in bf16. Each
    number of a query in f16 is the sum of two in bf16, exactly, if it is finite:
    the result has `D/2` rows with those nearest to the numbers, then as many with
    the rest, and pairs join features `d` and `d + 16` of each 32.

    ```mlir
    %p = attn.pack_query by 0.18033688011112042
         ins(%q : tensor<1x1x?x64xf16>) outs(%p0 : tensor<1x1x64x48xf32>)
         -> tensor<1x1x64x48xf32>
    ```
  }];
  let arguments = (ins Attn_TensorOrMemRef:$query, Attn_TensorOrMemRef:$packed,
                       F64Attr:$factor);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `by` $factor `ins` `(` $query `:` type($query) `)`
    `outs` `(` $packed `:` type($packed) `)` attr-dict (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();

    /// Returns true if the result has pairs of features.
    bool makesPairs() {
      return ::llvm::cast<::mlir::ShapedType>(getPacked().getType())
                 .getElementType()
                 .isBF16();
    }
  }];
}

#endif // FOVEA_DIALECT_ATTN_IR_ATTNONLINEOPS_TD
