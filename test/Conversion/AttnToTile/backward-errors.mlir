// RUN: fovea-opt %s --attn-select-schedule --attn-online-softmax --attn-tile --convert-attn-to-tile \
// RUN:   --split-input-file --verify-diagnostics

func.func @no_derivative(%q: tensor<1x2x64x16xf16>, %l: tensor<1x2x64xf32>) -> tensor<1x2x64x16xf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c = arith.cmpi eq, %i, %j : index
        // expected-error@+1 {{'scf.if' op has no derivative}}
        %r = scf.if %c -> f32 {
          scf.yield %s : f32
        } else {
          %t = math.tanh %s : f32
          scf.yield %t : f32
        }
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>
  return %dq : tensor<1x2x64x16xf16>
}

// -----

func.func @mixed_gradient(%q: tensor<1x2x64x16xf16>, %do: tensor<1x2x64x16xf32>, %l: tensor<1x2x64xf32>) -> tensor<1x2x64x16xf16> {
  // expected-error@+1 {{is in a loop that cannot become a launch: its operands have different element types}}
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %do scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>)
      {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf32> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>
  return %dq : tensor<1x2x64x16xf16>
}
