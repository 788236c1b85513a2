// Several tiles of queries and keys, with a mask, score region and residual.
func.func @causal(%q: tensor<2x4x?x32xf16>, %k: tensor<2x2x?x32xf16>, %v: tensor<2x2x?x32xf16>, %r: tensor<2x4x?x32xf16>) -> tensor<2x4x?x32xf16> {
  %s = attn.scores %q, %k : tensor<2x4x?x32xf16>, tensor<2x2x?x32xf16> -> tensor<2x4x?x?xf32>
  %t = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %y = math.tanh %x : f32
    attn.yield %y : f32
  } : tensor<2x4x?x?xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x4x?x?xf32>
  %p = attn.softmax %m : tensor<2x4x?x?xf32> -> tensor<2x4x?x?xf32>
  %o = attn.values %p, %v : tensor<2x4x?x?xf32>, tensor<2x2x?x32xf16> -> tensor<2x4x?x32xf16>
  %y = attn.residual_add %o, %r : tensor<2x4x?x32xf16>, tensor<2x4x?x32xf16>
  return %y : tensor<2x4x?x32xf16>
}

// One tile of keys: no loop over keys is left.
func.func @short(%q: tensor<1x2x100x16xf32>, %k: tensor<1x2x50x16xf32>) -> tensor<1x2x100x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x100x16xf32>, tensor<1x2x50x16xf32> -> tensor<1x2x100x50xf32>
  %p = attn.softmax %s : tensor<1x2x100x50xf32> -> tensor<1x2x100x50xf32>
  %o = attn.values %p, %k : tensor<1x2x100x50xf32>, tensor<1x2x50x16xf32> -> tensor<1x2x100x16xf32>
  return %o : tensor<1x2x100x16xf32>
}

// Keys normed in the loads.
func.func @decode(%q: tensor<1x2x1x16xf32>, %k: tensor<1x2x?x16xf32>) -> tensor<1x2x1x16xf32> {
  %n = attn.rms_norm %k epsilon(1.0e-6) : tensor<1x2x?x16xf32>
  %s = attn.scores %q, %n : tensor<1x2x1x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x1x?xf32>
  %p = attn.softmax %s : tensor<1x2x1x?xf32> -> tensor<1x2x1x?xf32>
  %o = attn.values %p, %k : tensor<1x2x1x?xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x1x16xf32>
  return %o : tensor<1x2x1x16xf32>
}
