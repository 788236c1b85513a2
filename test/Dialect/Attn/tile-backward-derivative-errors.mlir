// RUN: fovea-opt --attn-select-schedule --attn-online-softmax --attn-tile --attn-pack-queries \
// RUN:   --verify-diagnostics %s

func.func @step(%q: tensor<1x1x8x16xf32>, %l: tensor<1x1x8xf32>)
    -> tensor<1x1x8x16xf32> {
  %0:3 = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x1x8xf32>, tensor<1x1x8xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c = arith.cmpi sgt, %i, %j : index
        // expected-error@+1 {{'scf.if' op has no derivative}}
        %r = scf.if %c -> f32 {
          scf.yield %s : f32
        } else {
          %t = arith.mulf %s, %s : f32
          scf.yield %t : f32
        }
        attn.yield %r : f32
      }
      : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>,
        tensor<1x1x8x16xf32>
        -> tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
  return %0#0 : tensor<1x1x8x16xf32>
}
