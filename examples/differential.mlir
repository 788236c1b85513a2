// Differential attention (Ye et al., arXiv 2410.05258): the difference of two
// softmaxes, times the values. @paper is how the paper writes it, and is not
// fused: what is multiplied with the values is no softmax. @attentions is the
// same by the distributive law, as two attentions, each of which is fused.
//
//   fovea-run examples/differential.mlir --entry=attentions --random=1 --check

!x = tensor<1x4x128x64xf32>
!v = tensor<1x4x128x128xf32>
!s = tensor<1x4x128x128xf32>

func.func @paper(%q1: !x, %k1: !x, %q2: !x, %k2: !x, %v: !v, %lambda: f32) -> !v {
  %s1 = attn.scores %q1, %k1 : !x, !x -> !s
  %t1 = attn.scale %s1 by 0.125 : !s
  %p1 = attn.softmax %t1 : !s -> !s
  %s2 = attn.scores %q2, %k2 : !x, !x -> !s
  %t2 = attn.scale %s2 by 0.125 : !s
  %p2 = attn.softmax %t2 : !s -> !s
  %d = attn.elementwise %p1, %p2 {
  ^bb0(%a: f32, %b: f32):
    %x = arith.mulf %b, %lambda : f32
    %y = arith.subf %a, %x : f32
    attn.yield %y : f32
  } : (!s, !s) -> !s
  %o = attn.values %d, %v : !s, !v -> !v
  return %o : !v
}

func.func @attentions(%q1: !x, %k1: !x, %q2: !x, %k2: !x, %v: !v, %lambda: f32) -> !v {
  %s1 = attn.scores %q1, %k1 : !x, !x -> !s
  %t1 = attn.scale %s1 by 0.125 : !s
  %p1 = attn.softmax %t1 : !s -> !s
  %o1 = attn.values %p1, %v : !s, !v -> !v
  %s2 = attn.scores %q2, %k2 : !x, !x -> !s
  %t2 = attn.scale %s2 by 0.125 : !s
  %p2 = attn.softmax %t2 : !s -> !s
  %o2 = attn.values %p2, %v : !s, !v -> !v
  %o = attn.elementwise %o1, %o2 {
  ^bb0(%a: f32, %b: f32):
    %x = arith.mulf %b, %lambda : f32
    %y = arith.subf %a, %x : f32
    attn.yield %y : f32
  } : (!v, !v) -> !v
  return %o : !v
}
