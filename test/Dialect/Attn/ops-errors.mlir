// RUN: fovea-opt %s --verify-diagnostics --split-input-file

func.func @scores_heads(%q: tensor<2x6x8x64xf32>, %k: tensor<2x4x8x64xf32>) -> tensor<2x6x8x8xf32> {
  // expected-error@+1 {{expects the number of query heads to be a multiple of the number of key and value heads, but they are 6 and 4}}
  %s = attn.scores %q, %k : tensor<2x6x8x64xf32>, tensor<2x4x8x64xf32> -> tensor<2x6x8x8xf32>
  return %s : tensor<2x6x8x8xf32>
}

// -----

func.func @scores_head_dim(%q: tensor<2x4x8x64xf32>, %k: tensor<2x4x8x32xf32>) -> tensor<2x4x8x8xf32> {
  // expected-error@+1 {{expects query and key to have the same head dim, but they have 64 and 32}}
  %s = attn.scores %q, %k : tensor<2x4x8x64xf32>, tensor<2x4x8x32xf32> -> tensor<2x4x8x8xf32>
  return %s : tensor<2x4x8x8xf32>
}

// -----

func.func @scores_batch(%q: tensor<2x4x8x64xf32>, %k: tensor<3x4x8x64xf32>) -> tensor<2x4x8x8xf32> {
  // expected-error@+1 {{expects query and key to have the same batch size, but they have 2 and 3}}
  %s = attn.scores %q, %k : tensor<2x4x8x64xf32>, tensor<3x4x8x64xf32> -> tensor<2x4x8x8xf32>
  return %s : tensor<2x4x8x8xf32>
}

// -----

func.func @scores_result(%q: tensor<2x4x8x64xf32>, %k: tensor<2x4x9x64xf32>) -> tensor<2x4x8x8xf32> {
  // expected-error@+1 {{expects key and result to have the same number of keys, but they have 9 and 8}}
  %s = attn.scores %q, %k : tensor<2x4x8x64xf32>, tensor<2x4x9x64xf32> -> tensor<2x4x8x8xf32>
  return %s : tensor<2x4x8x8xf32>
}

// -----

func.func @scores_rank(%q: tensor<4x8x64xf32>, %k: tensor<2x4x9x64xf32>) -> tensor<2x4x8x9xf32> {
  // expected-error@+1 {{operand #0 must be 4D tensor of 16-bit float or bfloat16 type or 32-bit float or 64-bit float values}}
  %s = attn.scores %q, %k : tensor<4x8x64xf32>, tensor<2x4x9x64xf32> -> tensor<2x4x8x9xf32>
  return %s : tensor<2x4x8x9xf32>
}

// -----

func.func @scale_infinite(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  // expected-error@+1 {{expects a finite factor}}
  %t = attn.scale %s by 0x7FF0000000000000 : tensor<1x1x8x8xf32>
  return %t : tensor<1x1x8x8xf32>
}

// -----

func.func @modify_arguments(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  // expected-error@+1 {{expects the modify region to have 5 arguments, but it has 1}}
  %t = attn.modify %s {
  ^bb0(%x: f32):
    attn.yield %x : f32
  } : tensor<1x1x8x8xf32>
  return %t : tensor<1x1x8x8xf32>
}

// -----

func.func @modify_argument_type(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  // expected-error@+1 {{expects argument 0 of the modify region to be 'f32', but it is 'f64'}}
  %t = attn.modify %s {
  ^bb0(%x: f64, %b: index, %h: index, %i: index, %j: index):
    attn.yield %x : f64
  } : tensor<1x1x8x8xf32>
  return %t : tensor<1x1x8x8xf32>
}

// -----

func.func @mask_yield(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %t = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{expects to yield 'i1' from the mask region, but yields 'index'}}
    attn.yield %i : index
  } : tensor<1x1x8x8xf32>
  return %t : tensor<1x1x8x8xf32>
}

// -----

func.func private @effect()
func.func @mask_effects(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %t = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'func.call' op is not allowed in the mask region of 'attn.mask': expected operations on numbers (arith, math, index, affine.apply, scf.if, scf.for, scf.while), tensor.extract or tensor.dim; what is computed on tensors or has side effects belongs in front of 'attn.mask'}}
    func.call @effect() : () -> ()
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x1x8x8xf32>
  return %t : tensor<1x1x8x8xf32>
}

// -----

func.func @softmax_shape(%s: tensor<4x8xf32>) -> tensor<4x9xf32> {
  // expected-error@+1 {{expects input and result to have the same shape, but they are 'tensor<4x8xf32>' and 'tensor<4x9xf32>'}}
  %t = attn.softmax %s : tensor<4x8xf32> -> tensor<4x9xf32>
  return %t : tensor<4x9xf32>
}

// -----

func.func @dropout_probability(%s: tensor<4x8xf32>, %i: i64) -> tensor<4x8xf32> {
  // expected-error@+1 {{expects a dropout probability in [0, 1), but got 1}}
  %t = attn.dropout %s, 1.0 seed(%i, %i) : tensor<4x8xf32>
  return %t : tensor<4x8xf32>
}

// -----

func.func @values_keys(%p: tensor<2x4x8x8xf32>, %v: tensor<2x4x9x64xf32>) -> tensor<2x4x8x64xf32> {
  // expected-error@+1 {{expects probabilities and value to have the same number of keys, but they have 8 and 9}}
  %o = attn.values %p, %v : tensor<2x4x8x8xf32>, tensor<2x4x9x64xf32> -> tensor<2x4x8x64xf32>
  return %o : tensor<2x4x8x64xf32>
}

// -----

func.func @layer_norm_weight(%x: tensor<4x8xf32>, %w: tensor<4xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{expects input and weight to have the same size of the last dimension, but they have 8 and 4}}
  %y = attn.layer_norm %x weight(%w : tensor<4xf32>) epsilon(1.0e-5) : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @rms_norm_epsilon(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{expects a finite epsilon of at least 0, but got -1}}
  %y = attn.rms_norm %x epsilon(-1.0) : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @rope_odd(%x: tensor<1x1x4x7xf32>, %t: tensor<4x3xf32>) -> tensor<1x1x4x7xf32> {
  // expected-error@+1 {{expects an even head dim, but it is 7}}
  %y = attn.rope %x, %t, %t : tensor<1x1x4x7xf32>, tensor<4x3xf32>, tensor<4x3xf32>
  return %y : tensor<1x1x4x7xf32>
}

// -----

func.func @rope_pairs(%x: tensor<1x1x4x8xf32>, %t: tensor<4x8xf32>) -> tensor<1x1x4x8xf32> {
  // expected-error@+1 {{expects input and cos to have the same number of pairs, but they have 4 and 8}}
  %y = attn.rope %x, %t, %t : tensor<1x1x4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  return %y : tensor<1x1x4x8xf32>
}

// -----

func.func @residual_shape(%x: tensor<4x8xf32>, %r: tensor<4x9xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{expects input and residual to have the same shape}}
  %y = attn.residual_add %x, %r : tensor<4x8xf32>, tensor<4x9xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @elementwise_shape(%x: tensor<4x8xf32>) -> tensor<4x9xf32> {
  // expected-error@+1 {{expects an input and the result to have the same shape}}
  %y = attn.elementwise %x {
  ^bb0(%a: f32):
    attn.yield %a : f32
  } : (tensor<4x8xf32>) -> tensor<4x9xf32>
  return %y : tensor<4x9xf32>
}

// -----

func.func @attention_keys(%q: tensor<1x2x8x64xf32>, %k: tensor<1x2x9x64xf32>, %v: tensor<1x2x8x64xf32>) -> tensor<1x2x8x64xf32> {
  // expected-error@+1 {{expects key and value to have the same number of keys, but they have 9 and 8}}
  %o = attn.attention %q, %k, %v scale(1.0) : tensor<1x2x8x64xf32>, tensor<1x2x9x64xf32>, tensor<1x2x8x64xf32> -> tensor<1x2x8x64xf32>
  return %o : tensor<1x2x8x64xf32>
}

// -----

func.func @attention_lse(%q: tensor<1x2x8x64xf64>) -> (tensor<1x2x8x64xf64>, tensor<1x2x8xf32>) {
  // expected-error@+1 {{expects lse to have element type 'f64', but it is 'tensor<1x2x8xf32>'}}
  %o, %l = attn.attention %q, %q, %q scale(1.0) : tensor<1x2x8x64xf64>, tensor<1x2x8x64xf64>, tensor<1x2x8x64xf64> -> tensor<1x2x8x64xf64>, tensor<1x2x8xf32>
  return %o, %l : tensor<1x2x8x64xf64>, tensor<1x2x8xf32>
}

// -----

func.func @attention_score_type(%q: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  // expected-error@+1 {{expects argument 0 of the score region to be 'f32', but it is 'f16'}}
  %o = attn.attention %q, %q, %q scale(1.0) score {
  ^bb0(%s: f16, %b: index, %h: index, %i: index, %j: index):
    attn.yield %s : f16
  } : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16> -> tensor<1x2x8x64xf16>
  return %o : tensor<1x2x8x64xf16>
}

// -----

func.func @attention_dropout(%q: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  // expected-error@+1 {{expects a dropout probability, a seed and an offset together, or none of them}}
  %o = "attn.attention"(%q, %q, %q) <{scale = 1.0 : f64, dropout = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0>}> ({}, {})
    : (tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16>
  return %o : tensor<1x2x8x64xf16>
}

// -----

func.func @online_mixed(%q: tensor<1x1x8x64xf32>, %acc: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>) {
  // expected-error@+1 {{expects all operands to be tensors or all to be memrefs, but both occur}}
  attn.online_attention scale(1.0) update(all)
    ins(%q, %q, %q : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>)
    outs(%acc, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
  return
}

// -----

func.func @online_partial(%q: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %p: i1) {
  // expected-error@+1 {{expects `partial` only with a mask region}}
  attn.online_attention scale(1.0) update(all)
    ins(%q, %q, %q : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
    outs(%q, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    partial(%p)
  return
}

// -----

func.func @online_ends(%q: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %i: index) {
  // expected-error@+1 {{expects `ends` only with a mask region and a schedule}}
  attn.online_attention scale(1.0) update(all)
    ins(%q, %q, %q : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
    outs(%q, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    ends [%i, %i]
  return
}

// -----

func.func @online_ends_number(%q: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %i: index) {
  // expected-error@+1 {{expects a number of `ends` that divides the 128 queries of a tile, but it is 3}}
  attn.online_attention scale(1.0) update(all)
    ins(%q, %q, %q : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
    outs(%q, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    ends [%i, %i, %i]
    mask {
    ^bb0(%b: index, %h: index, %r: index, %j: index):
      %keep = arith.cmpi sge, %r, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
  return
}

// -----

func.func @online_at(%q: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %i: index) {
  // expected-error@+1 {{expects 4 coordinates in `at`, but got 2}}
  attn.online_attention scale(1.0) update(all)
    ins(%q, %q, %q : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
    outs(%q, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    at [%i, %i]
  return
}

// -----

func.func @online_results(%q: tensor<1x1x8x64xf32>, %m: tensor<1x1x8xf32>) {
  // expected-error@+1 {{expects 3 results, but has 0}}
  attn.online_attention scale(1.0) update(all)
    ins(%q, %q, %q : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>)
    outs(%q, %m, %m : tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @online_packed(%q: memref<1x1x64x?xf32>, %k: memref<1x1x8x64xf32>, %a: memref<1x1x?x64xf32>, %m: memref<1x1x?xf32>, %i: index) {
  // expected-error@+1 {{expects a packed query to have a static number of queries}}
  attn.online_attention scale(1.0) update(all)
    ins(%q, %k, %k : memref<1x1x64x?xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
    outs(%a, %m, %m : memref<1x1x?x64xf32>, memref<1x1x?xf32>, memref<1x1x?xf32>)
    packed(%i)
  return
}

// -----

func.func @finalize_shape(%a: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %o: memref<1x1x8x32xf32>) {
  // expected-error@+1 {{expects acc and output to have the same shape}}
  attn.finalize ins(%a, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>) outs(%o : memref<1x1x8x32xf32>)
  return
}

// -----

func.func @finalize_lse(%a: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %l: memref<1x1x8xf16>) {
  // expected-error@+1 {{expects lse to have element type 'f32' or f64, but it is 'memref<1x1x8xf16>'}}
  attn.finalize ins(%a, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>) outs(%a, %l : memref<1x1x8x64xf32>, memref<1x1x8xf16>)
  return
}

// -----

// Only the generic form can have a rest without a log-sum-exp.
func.func @finalize_rest_alone(%a: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>) {
  // expected-error@+1 {{expects `rest` only beside `lse`}}
  "attn.finalize"(%a, %m, %m, %a, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1, 0, 1>}>
    : (memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>, memref<1x1x8x64xf32>, memref<1x1x8xf32>) -> ()
  return
}

// -----

func.func @finalize_rest_type(%a: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %r: memref<1x1x8xf64>) {
  // expected-error@+1 {{expects rest to have element type 'f32'}}
  attn.finalize ins(%a, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>) outs(%a, %m, %r : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf64>)
  return
}

// -----

// Two numbers of f64 are not computed of sums of f32.
func.func @finalize_rest_wide(%a: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %r: memref<1x1x8xf64>) {
  // expected-error@+1 {{expects lse beside a rest to have element type 'f32', but it is 'memref<1x1x8xf64>'}}
  attn.finalize ins(%a, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>) outs(%a, %r, %r : memref<1x1x8x64xf32>, memref<1x1x8xf64>, memref<1x1x8xf64>)
  return
}

// -----

func.func @finalize_rest_shape(%a: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %r: memref<1x1x9xf32>) {
  // expected-error@+1 {{expects lse and rest to have the same shape}}
  attn.finalize ins(%a, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>) outs(%a, %m, %r : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x9xf32>)
  return
}

// -----

func.func @finalize_rest_rank(%a: memref<1x1x8x64xf32>, %m: memref<1x1x8xf32>, %r: memref<8xf32>) {
  // expected-error@+1 {{expects rest to have rank 3}}
  attn.finalize ins(%a, %m, %m : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>) outs(%a, %m, %r : memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<8xf32>)
  return
}

// -----

func.func @pack_columns(%q: memref<1x1x49x64xf32>, %p: memref<1x1x64x48xf32>) {
  // expected-error@+1 {{expects between 1 and 48 queries, the columns of packed, but got 49}}
  attn.pack_query by 1.0 ins(%q : memref<1x1x49x64xf32>) outs(%p : memref<1x1x64x48xf32>)
  return
}

// -----

func.func @pack_pairs(%q: memref<1x1x48x64xbf16>, %p: memref<1x1x24x96xbf16>) {
  // expected-error@+1 {{expects packed pairs to have a static multiple of 16 pairs of features and of 16 queries, but they are 'memref<1x1x24x96xbf16>'}}
  attn.pack_query by 1.0 ins(%q : memref<1x1x48x64xbf16>) outs(%p : memref<1x1x24x96xbf16>)
  return
}

// -----

func.func @pack_pairs_features(%q: memref<1x1x48x64xbf16>, %p: memref<1x1x16x96xbf16>) {
  // expected-error@+1 {{expects query and packed to have the same head dim, but they have 64 and 32}}
  attn.pack_query by 1.0 ins(%q : memref<1x1x48x64xbf16>) outs(%p : memref<1x1x16x96xbf16>)
  return
}

// -----

func.func @pack_pairs_factor(%q: memref<1x1x48x64xbf16>, %p: memref<1x1x32x96xbf16>) {
  // expected-error@+1 {{expects no factor for pairs, but it is 5.000000e-01}}
  attn.pack_query by 0.5 ins(%q : memref<1x1x48x64xbf16>) outs(%p : memref<1x1x32x96xbf16>)
  return
}

// -----

func.func @pack_pairs_type(%q: memref<1x1x48x64xf32>, %p: memref<1x1x32x96xbf16>) {
  // expected-error@+1 {{expects a query that is packed in pairs to be in bf16 or f16, but it is 'memref<1x1x48x64xf32>'}}
  attn.pack_query by 1.0 ins(%q : memref<1x1x48x64xf32>) outs(%p : memref<1x1x32x96xbf16>)
  return
}

// -----

func.func @pack_parts(%q: memref<1x1x48x64xf16>, %p: memref<1x1x48x96xbf16>) {
  // expected-error@+1 {{expects packed pairs to have a static multiple of 32 pairs of features and of 16 queries, but they are 'memref<1x1x48x96xbf16>'}}
  attn.pack_query by 1.0 ins(%q : memref<1x1x48x64xf16>) outs(%p : memref<1x1x48x96xbf16>)
  return
}

// -----

func.func @pack_parts_features(%q: memref<1x1x48x64xf16>, %p: memref<1x1x32x96xbf16>) {
  // expected-error@+1 {{expects query and packed to have the same head dim, but they have 64 and 32}}
  attn.pack_query by 1.0 ins(%q : memref<1x1x48x64xf16>) outs(%p : memref<1x1x32x96xbf16>)
  return
}

// -----

func.func @online_pairs_type(%q: memref<1x1x32x64xbf16>, %k: memref<1x1x8x64xf32>, %a: memref<1x1x32x64xf32>, %m: memref<1x1x32xf32>, %i: index) {
  // expected-error@+1 {{expects keys of queries that are packed in pairs to be in bf16 or f16, but they are 'memref<1x1x8x64xf32>'}}
  attn.online_attention scale(1.0) update(all)
    ins(%q, %k, %k : memref<1x1x32x64xbf16>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
    outs(%a, %m, %m : memref<1x1x32x64xf32>, memref<1x1x32xf32>, memref<1x1x32xf32>)
    packed(%i)
  return
}

// -----

func.func @online_pairs_values(%q: memref<1x1x64x64xbf16>, %k: memref<1x1x8x64xf16>, %v: memref<1x1x8x64xbf16>, %a: memref<1x1x32x64xf32>, %m: memref<1x1x32xf32>, %i: index) {
  // expected-error@+1 {{expects value to have element type 'f16'}}
  attn.online_attention scale(1.0) update(all)
    ins(%q, %k, %v : memref<1x1x64x64xbf16>, memref<1x1x8x64xf16>, memref<1x1x8x64xbf16>)
    outs(%a, %m, %m : memref<1x1x32x64xf32>, memref<1x1x32xf32>, memref<1x1x32xf32>)
    packed(%i)
  return
}

// -----

func.func @online_pairs(%q: memref<1x1x32x64xbf16>, %k: memref<1x1x8x64xbf16>, %a: memref<1x1x48x64xf32>, %m: memref<1x1x48xf32>, %i: index) {
  // expected-error@+1 {{expects query and acc to have the same number of queries, but they have 32 and 48}}
  attn.online_attention scale(1.0) update(all)
    ins(%q, %k, %k : memref<1x1x32x64xbf16>, memref<1x1x8x64xbf16>, memref<1x1x8x64xbf16>)
    outs(%a, %m, %m : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
    packed(%i)
  return
}

// -----

func.func @log_sum_exp_rank(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{expects result to have rank 1, but it is 'tensor<2x3xf32>'}}
  %l = attn.log_sum_exp %x : tensor<2x3xf32> -> tensor<2x3xf32>
  return %l : tensor<2x3xf32>
}

// -----

func.func @log_sum_exp_shape(%x: tensor<2x3x4xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expects input and result to have the same size of dimension 1, but they have 3 and 4}}
  %l = attn.log_sum_exp %x : tensor<2x3x4xf32> -> tensor<2x4xf32>
  return %l : tensor<2x4xf32>
}

// -----

func.func @softmax_backward_shape(%p: tensor<2x3xf32>, %g: tensor<2x4xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{expects probabilities and gradient to have the same shape, but they are 'tensor<2x3xf32>' and 'tensor<2x4xf32>'}}
  %d = attn.softmax_backward %p, %g : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<2x3xf32>
  return %d : tensor<2x3xf32>
}

// -----

func.func @softmax_backward_result(%p: tensor<2x3xf32>, %g: tensor<2x3xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expects probabilities and result to have the same shape, but they are 'tensor<2x3xf32>' and 'tensor<2x4xf32>'}}
  %d = attn.softmax_backward %p, %g : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x4xf32>
  return %d : tensor<2x4xf32>
}

// -----

func.func @sum_queries_queries(%p: tensor<2x4x8x6xf32>, %x: tensor<2x4x7x16xf32>) -> tensor<2x2x6x16xf32> {
  // expected-error@+1 {{expects weights and input to have the same number of queries, but they have 8 and 7}}
  %r = attn.sum_queries %p, %x : tensor<2x4x8x6xf32>, tensor<2x4x7x16xf32> -> tensor<2x2x6x16xf32>
  return %r : tensor<2x2x6x16xf32>
}

// -----

func.func @sum_queries_keys(%p: tensor<2x4x8x6xf32>, %x: tensor<2x4x8x16xf32>) -> tensor<2x2x5x16xf32> {
  // expected-error@+1 {{expects weights and result to have the same number of keys, but they have 6 and 5}}
  %r = attn.sum_queries %p, %x : tensor<2x4x8x6xf32>, tensor<2x4x8x16xf32> -> tensor<2x2x5x16xf32>
  return %r : tensor<2x2x5x16xf32>
}

// -----

func.func @sum_queries_groups(%p: tensor<2x4x8x6xf32>, %x: tensor<2x4x8x16xf32>) -> tensor<2x3x6x16xf32> {
  // expected-error@+1 {{expects the number of query heads to be a multiple of the number of key and value heads, but they are 4 and 3}}
  %r = attn.sum_queries %p, %x : tensor<2x4x8x6xf32>, tensor<2x4x8x16xf32> -> tensor<2x3x6x16xf32>
  return %r : tensor<2x3x6x16xf32>
}

// -----

func.func @sum_queries_heads(%p: tensor<2x4x8x6xf32>, %x: tensor<2x4x8x16xf32>) -> tensor<2x?x6x16xf32> {
  // expected-error@+1 {{expects `heads` exactly where the result's number of heads is dynamic, but the result is 'tensor<2x?x6x16xf32>'}}
  %r = attn.sum_queries %p, %x : tensor<2x4x8x6xf32>, tensor<2x4x8x16xf32> -> tensor<2x?x6x16xf32>
  return %r : tensor<2x?x6x16xf32>
}

// -----

func.func @attention_backward_queries(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>, %g: tensor<1x2x7x16xf32>) {
  // expected-error@+1 {{expects query and gradient to have the same number of queries, but they have 8 and 7}}
  %0:3 = attn.attention_backward %x, %x, %x, %g scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>)
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x7x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_backward_value_dim(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>, %g: tensor<1x2x8x15xf32>) {
  // expected-error@+1 {{expects value and gradient to have the same value dim, but they have 16 and 15}}
  %0:3 = attn.attention_backward %x, %x, %x, %g scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>)
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x15xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_backward_neither(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>) {
  // expected-error@+1 {{expects either probabilities or statistics, but has neither}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) 
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_backward_both(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>, %p: tensor<1x2x8x8xf32>) {
  // expected-error@+1 {{expects either probabilities or statistics, but has both}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) probabilities(%p : tensor<1x2x8x8xf32>) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>)
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_backward_keys(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>, %p: tensor<1x2x8x9xf32>) {
  // expected-error@+1 {{expects key and probabilities to have the same number of keys, but they have 8 and 9}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) probabilities(%p : tensor<1x2x8x9xf32>)
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_backward_lse_gradient(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>) {
  // expected-error@+1 {{expects `lse_gradient` only with probabilities; delta has it otherwise}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>) lse_gradient(%l : tensor<1x2x8xf32>)
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_backward_statistics_type(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>, %m: tensor<1x2x8xf64>) {
  // expected-error@+1 {{expects delta to have element type 'f32', but it is 'tensor<1x2x8xf64>'}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) statistics(%m, %m : tensor<1x2x8xf64>, tensor<1x2x8xf64>)
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_backward_captures(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>, %c: tensor<2xf32>) {
  // expected-error@+1 {{expects a result for each of 1 captures, but has 0}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>) captures(%c : tensor<2xf32>)
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_backward_no_region(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>, %c: tensor<2xf32>) {
  // expected-error@+1 {{expects captures only with a score region}}
  %0:4 = attn.attention_backward %x, %x, %x, %x scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>) captures(%c : tensor<2xf32>)
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<2xf32>
  return
}

// -----

func.func @attention_backward_result(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>) {
  // expected-error@+1 {{expects key and its gradient to have the same shape, but they are 'tensor<1x2x8x16xf32>' and 'tensor<1x2x9x16xf32>'}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>)
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x9x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_backward_dropout(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>, %i: i64) {
  // expected-error@+1 {{expects a dropout probability in [0, 1), but got 1.0}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>) dropout(1.0, %i, %i)
    : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_backward_mask(%x: tensor<1x2x8x16xf32>, %l: tensor<1x2x8xf32>) {
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c = arith.constant 1 : index
      // expected-error@+1 {{expects to yield 'i1' from the mask region, but yields 'index'}}
      attn.yield %c : index
    } : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32> -> tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
  return
}

// -----

func.func @online_backward_partial(%pq: memref<1x1x64x16xf32>, %q: memref<1x1x8x64xf32>, %k: memref<1x1x8x64xf32>, %l: memref<1x1x8xf32>, %dk: memref<1x1x8x64xf32>, %p: i1) {
  // expected-error@+1 {{expects `partial` only with a mask region}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x64x16xf32>, memref<1x1x64x16xf32>)
    ins(%q, %q, %k, %k, %l, %l : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    outs(%q, %dk, %dk : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>) partial(%p)
  return
}

// -----

func.func @online_backward_packed(%pq: memref<1x1x64x?xf32>, %q: memref<1x1x8x64xf32>, %k: memref<1x1x8x64xf32>, %l: memref<1x1x8xf32>, %dk: memref<1x1x8x64xf32>) {
  // expected-error@+1 {{expects a packed query to have a static number of queries, but it is 'memref<1x1x64x?xf32>'}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x64x?xf32>, memref<1x1x64x?xf32>)
    ins(%q, %q, %k, %k, %l, %l : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    outs(%q, %dk, %dk : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
  return
}

// -----

func.func @online_backward_pairs(%pq: memref<1x1x16x32xbf16>, %q: memref<1x1x8x32xbf16>, %l: memref<1x1x8xf32>, %dq: memref<1x1x8x32xf32>) {
  // expected-error@+1 {{expects groups of packed pairs to have a multiple of 32 queries, but they have 16}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x16x32xbf16>, memref<1x1x16x32xbf16>)
    ins(%q, %q, %q, %q, %l, %l : memref<1x1x8x32xbf16>, memref<1x1x8x32xbf16>, memref<1x1x8x32xbf16>, memref<1x1x8x32xbf16>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    outs(%dq, %dq, %dq : memref<1x1x8x32xf32>, memref<1x1x8x32xf32>, memref<1x1x8x32xf32>)
  return
}

// -----

func.func @online_backward_pairs_features(%pq: memref<1x1x24x64xbf16>, %q: memref<1x1x8x48xbf16>, %l: memref<1x1x8xf32>, %dq: memref<1x1x8x48xf32>) {
  // expected-error@+1 {{expects packed pairs to have a static multiple of 16 pairs of features and of 16 queries, but they are 'memref<1x1x24x64xbf16>'}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x24x64xbf16>, memref<1x1x24x64xbf16>)
    ins(%q, %q, %q, %q, %l, %l : memref<1x1x8x48xbf16>, memref<1x1x8x48xbf16>, memref<1x1x8x48xbf16>, memref<1x1x8x48xbf16>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    outs(%dq, %dq, %dq : memref<1x1x8x48xf32>, memref<1x1x8x48xf32>, memref<1x1x8x48xf32>)
  return
}

// -----

func.func @online_backward_pairs_type(%pq: memref<1x1x16x64xbf16>, %q: memref<1x1x8x32xbf16>, %g: memref<1x1x8x32xf32>, %l: memref<1x1x8xf32>, %dq: memref<1x1x8x32xf32>) {
  // expected-error@+1 {{expects gradient to have element type 'bf16', but it is 'memref<1x1x8x32xf32>'}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x16x64xbf16>, memref<1x1x16x64xbf16>)
    ins(%q, %g, %q, %q, %l, %l : memref<1x1x8x32xbf16>, memref<1x1x8x32xf32>, memref<1x1x8x32xbf16>, memref<1x1x8x32xbf16>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    outs(%dq, %dq, %dq : memref<1x1x8x32xf32>, memref<1x1x8x32xf32>, memref<1x1x8x32xf32>)
  return
}

// -----

func.func @online_backward_pairs_element(%pq: memref<1x1x16x64xbf16>, %q: memref<1x1x8x32xf32>, %l: memref<1x1x8xf32>, %dq: memref<1x1x8x32xf32>) {
  // expected-error@+1 {{expects a query that is packed in pairs to be in bf16 or f16, but it is 'memref<1x1x8x32xf32>'}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x16x64xbf16>, memref<1x1x16x64xbf16>)
    ins(%q, %q, %q, %q, %l, %l : memref<1x1x8x32xf32>, memref<1x1x8x32xf32>, memref<1x1x8x32xf32>, memref<1x1x8x32xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    outs(%dq, %dq, %dq : memref<1x1x8x32xf32>, memref<1x1x8x32xf32>, memref<1x1x8x32xf32>)
  return
}

// -----

// Two parts of 32 features are 32 pairs.
func.func @online_backward_pairs_half(%pq: memref<1x1x16x64xbf16>, %q: memref<1x1x8x32xf16>, %l: memref<1x1x8xf32>, %dq: memref<1x1x8x32xf32>) {
  // expected-error@+1 {{expects packed pairs to have a static multiple of 32 pairs of features and of 16 queries, but they are 'memref<1x1x16x64xbf16>'}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x16x64xbf16>, memref<1x1x16x64xbf16>)
    ins(%q, %q, %q, %q, %l, %l : memref<1x1x8x32xf16>, memref<1x1x8x32xf16>, memref<1x1x8x32xf16>, memref<1x1x8x32xf16>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    outs(%dq, %dq, %dq : memref<1x1x8x32xf32>, memref<1x1x8x32xf32>, memref<1x1x8x32xf32>)
  return
}

// -----

func.func @online_backward_heads(%pq: memref<1x1x64x16xf32>, %q: memref<1x1x8x64xf32>, %k: memref<1x2x8x64xf32>, %l: memref<1x1x8xf32>, %dk: memref<1x1x8x64xf32>) {
  // expected-error@+1 {{expects one head, but key is 'memref<1x2x8x64xf32>'}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x64x16xf32>, memref<1x1x64x16xf32>)
    ins(%q, %q, %k, %k, %l, %l : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x2x8x64xf32>, memref<1x2x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    outs(%q, %dk, %dk : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
  return
}

// -----

func.func @online_backward_keys(%pq: memref<1x1x64x16xf32>, %q: memref<1x1x8x64xf32>, %k: memref<1x1x8x64xf32>, %l: memref<1x1x8xf32>, %dk: memref<1x1x9x64xf32>) {
  // expected-error@+1 {{expects key and the key's gradient to have the same shape, but they are 'memref<1x1x8x64xf32>' and 'memref<1x1x9x64xf32>'}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x64x16xf32>, memref<1x1x64x16xf32>)
    ins(%q, %q, %k, %k, %l, %l : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    outs(%q, %dk, %dk : memref<1x1x8x64xf32>, memref<1x1x9x64xf32>, memref<1x1x9x64xf32>)
  return
}

// -----

func.func @online_backward_type(%pq: memref<1x1x64x16xf32>, %q: memref<1x1x8x64xf32>, %k: memref<1x1x8x64xf32>, %l: memref<1x1x8xf32>, %h: memref<1x1x8xf16>, %dk: memref<1x1x8x64xf32>) {
  // expected-error@+1 {{expects lse to have element type 'f32' or f64, but it is 'memref<1x1x8xf16>'}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x64x16xf32>, memref<1x1x64x16xf32>)
    ins(%q, %q, %k, %k, %h, %l : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8xf16>, memref<1x1x8xf32>)
    outs(%q, %dk, %dk : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
  return
}

// -----

func.func @online_backward_derivative(%pq: memref<1x1x64x16xf32>, %q: memref<1x1x8x64xf32>, %k: memref<1x1x8x64xf32>, %l: memref<1x1x8xf32>, %dk: memref<1x1x8x64xf32>) {
  // expected-error@+1 {{expects a derivative if packed queries have a score region, and only then, but has none}}
  attn.online_backward scale(1.0) packed(%pq, %pq : memref<1x1x64x16xf32>, memref<1x1x64x16xf32>)
    ins(%q, %q, %k, %k, %l, %l : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8xf32>, memref<1x1x8xf32>)
    outs(%q, %dk, %dk : memref<1x1x8x64xf32>, memref<1x1x8x64xf32>, memref<1x1x8x64xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      attn.yield %s : f32
    }
  return
}

// -----

func.func @online_backward_groups(%q: tensor<1x3x8x64xf32>, %k: tensor<1x2x8x64xf32>, %l: tensor<1x3x8xf32>) {
  // expected-error@+1 {{expects the number of query heads to be a multiple of the number of key and value heads, but they are 3 and 2}}
  %0:3 = attn.online_backward scale(1.0) ins(%q, %q, %k, %k, %l, %l : tensor<1x3x8x64xf32>, tensor<1x3x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>)
    outs(%q, %k, %k : tensor<1x3x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>)
    -> tensor<1x3x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>
  return
}

// -----

func.func @online_backward_sums(%q: tensor<1x1x8x64xf32>, %l: tensor<1x1x8xf32>, %t: tensor<8xf32>, %s: tensor<1x8xf32>) {
  // expected-error@+1 {{expects capture 0 and its sum to be tensors of floats of one rank, but got 'tensor<8xf32>' and 'tensor<1x8xf32>'}}
  %0:4 = attn.online_backward scale(1.0) ins(%q, %q, %q, %q, %l, %l : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
    outs(%q, %q, %q : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>)
    captures(%t : tensor<8xf32>) sums(%s : tensor<1x8xf32>)
    -> tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x8xf32>
  return
}

// -----

func.func @online_backward_packed_captures(%pq: tensor<1x1x64x16xf32>, %q: tensor<1x1x8x64xf32>, %l: tensor<1x1x8xf32>, %t: tensor<8xf32>) {
  // expected-error@+1 {{expects captures only without packed queries}}
  %0:4 = attn.online_backward scale(1.0) packed(%pq, %pq : tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>)
    ins(%q, %q, %q, %q, %l, %l : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
    outs(%q, %q, %q : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>)
    captures(%t : tensor<8xf32>) sums(%t : tensor<8xf32>)
    -> tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<8xf32>
  return
}

// -----

func.func @online_backward_scores(%q: tensor<1x1x8x64xf32>, %l: tensor<1x1x8xf32>, %x: tensor<1x1x8x16xf32>) {
  // expected-error@+1 {{expects scores only with packed queries}}
  %0:5 = attn.online_backward scale(1.0) ins(%q, %q, %q, %q, %l, %l : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
    outs(%q, %q, %q : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>)
    scores(%x, %x : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>)
    -> tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
  return
}

// -----

func.func @parallel_add_type(%s: tensor<4xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %r = scf.forall (%i) in (2) shared_outs(%o = %x) -> (tensor<8xf32>) {
    scf.forall.in_parallel {
      // expected-error@+1 {{expects to add floats of type 'tensor<2xf32>', but they are 'tensor<4xf32>'}}
      attn.parallel_add_slice %s into %o[%i] [2] : tensor<4xf32> into tensor<8xf32>
    }
  }
  return %r : tensor<8xf32>
}

// -----

func.func @parallel_add_rank(%s: tensor<4xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = scf.forall (%i) in (2) shared_outs(%o = %x) -> (tensor<8x8xf32>) {
    scf.forall.in_parallel {
      // expected-error@+1 {{expects an offset and a size for each dimension of 'tensor<8x8xf32>'}}
      attn.parallel_add_slice %s into %o[%i] [4] : tensor<4xf32> into tensor<8x8xf32>
    }
  }
  return %r : tensor<8x8xf32>
}

// -----

func.func @parallel_add_place(%s: tensor<4xf32>, %x: tensor<8xf32>) {
  // expected-error@+1 {{expects to be in the terminator of a parallel loop}}
  attn.parallel_add_slice %s into %x[0] [4] : tensor<4xf32> into tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{parallel must be of batch, head and key, but has row: items cut the queries of a head}}
#rows = #attn.gradients<parallel = [batch, row]>

// -----

// expected-error@+1 {{parallel has head twice}}
#twice = #attn.gradients<parallel = [head, head]>

// -----

// expected-error@+1 {{items must be at least 1, but are 0}}
#items = #attn.gradients<parallel = [head], items = 0>

// -----

// expected-error@+1 {{items are of a host, which has no parallel `key`, but are 4}}
#gpu_items = #attn.gradients<parallel = [head, key], items = 4>

// -----

// expected-error@+1 {{captures are added up by_tile on a host, but one is own}}
#host_captures = #attn.gradients<parallel = [head], captures = [by_tile, own]>

// -----

// expected-error@+1 {{captures are added up otherwise than by_tile on a GPU, but one is by_tile}}
#gpu_captures = #attn.gradients<parallel = [head, key], captures = [by_tile]>

// -----

func.func @schedule_of_saved(%x: tensor<1x2x8x16xf16>, %p: tensor<1x2x8x8xf32>) {
  // expected-error@+1 {{expects a schedule only with statistics}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) probabilities(%p : tensor<1x2x8x8xf32>)
    {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>
  return
}

// -----

func.func @split_size(%x: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  // expected-error@+1 {{expects split_size to be a positive multiple of 64, but it is 100}}
  %o = attn.attention %x, %x, %x scale(1.0) {split_size = 100 : i64}
    : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

func.func @other_split(%x: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  // expected-error@+1 {{expects a schedule with split = fixed(128), but it is #attn.schedule<tile = 64x64, order = linear, split = 2>}}
  %o = attn.attention %x, %x, %x scale(1.0) {split_size = 128 : i64, schedule = #attn.schedule<tile = 64x64, order = linear, split = 2>}
    : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

func.func @split_backward(%x: tensor<1x2x8x16xf16>, %l: tensor<1x2x8xf32>) {
  // expected-error@+1 {{expects a schedule that does not split the keys, but it is #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 3>}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>)
    {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 3>}
    : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>
  return
}

// -----

func.func @merge_parts(%p: tensor<3x1x2x8x16xf32>, %l: tensor<2x1x2x8xf32>) {
  // expected-error@+1 {{expects parts and part_lse to have the same number of parts, but they have 3 and 2}}
  %o = attn.merge %p, %l : tensor<3x1x2x8x16xf32>, tensor<2x1x2x8xf32> -> tensor<1x2x8x16xf32>
  return
}

// -----

func.func @merge_queries(%p: tensor<3x1x2x?x16xf32>, %l: tensor<3x1x2x8xf32>) {
  // expected-error@+1 {{expects part_lse and output to have the same number of queries, but they have 8 and 9}}
  %o = attn.merge %p, %l : tensor<3x1x2x?x16xf32>, tensor<3x1x2x8xf32> -> tensor<1x2x9x16xf32>
  return
}

// -----

func.func @merge_features(%p: tensor<3x1x2x8x16xf32>, %l: tensor<3x1x2x8xf32>) {
  // expected-error@+1 {{expects parts and output to have the same head dim, but they have 16 and 8}}
  %o = attn.merge %p, %l : tensor<3x1x2x8x16xf32>, tensor<3x1x2x8xf32> -> tensor<1x2x8x8xf32>
  return
}

// -----

func.func @merge_lse(%p: tensor<3x1x2x8x16xf32>, %l: tensor<3x1x2x8xf32>) {
  // expected-error@+1 {{expects parts and lse to have the same number of heads, but they have 2 and 4}}
  %o, %r = attn.merge %p, %l : tensor<3x1x2x8x16xf32>, tensor<3x1x2x8xf32> -> tensor<1x2x8x16xf32>, tensor<1x4x8xf32>
  return
}

// -----

func.func @merge_type(%p: tensor<3x1x2x8x16xf32>, %l: tensor<3x1x2x8xf16>) {
  // expected-error@+1 {{operand #1 must be 4D tensor of 32-bit float or 64-bit float values, but got 'tensor<3x1x2x8xf16>'}}
  %o = attn.merge %p, %l : tensor<3x1x2x8x16xf32>, tensor<3x1x2x8xf16> -> tensor<1x2x8x16xf32>
  return
}
