// RUN: fovea-opt --attn-decompose-backward --verify-diagnostics %s

func.func @tile(%q: tensor<1x1x8x16xf32>, %l: tensor<1x1x8xf32>, %i: index,
                %seed: i64) -> tensor<1x1x8x16xf32> {
  // expected-error@+1 {{'attn.attention_backward' op cannot be decomposed: a tile with a dropout}}
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(1.0)
      statistics(%l, %l : tensor<1x1x8xf32>, tensor<1x1x8xf32>)
      dropout(0.5, %seed, %seed) at [%i, %i, %i, %i]
      : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>,
        tensor<1x1x8x16xf32>
        -> tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
  return %dq : tensor<1x1x8x16xf32>
}
