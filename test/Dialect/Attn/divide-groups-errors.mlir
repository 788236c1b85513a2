// RUN: fovea-opt %s --attn-divide-groups --split-input-file --verify-diagnostics

#shares = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key], shares = 2>>

func.func @odd(%q: tensor<1x3x8x16xf16>, %k: tensor<1x1x8x16xf16>, %l: tensor<1x3x8xf32>) {
  // expected-error@+1 {{has a schedule with 2 shares of 3 heads on 1: expects them to divide the heads of a group}}
  %0:3 = attn.attention_backward %q, %k, %k, %q scale(0.125) statistics(%l, %l : tensor<1x3x8xf32>, tensor<1x3x8xf32>)
    {schedule = #shares} : tensor<1x3x8x16xf16>, tensor<1x1x8x16xf16>, tensor<1x1x8x16xf16>, tensor<1x3x8x16xf16> -> tensor<1x3x8x16xf16>, tensor<1x1x8x16xf16>, tensor<1x1x8x16xf16>
  return
}

// -----

#shares = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key], shares = 2>>

func.func @unknown(%q: tensor<1x?x8x16xf16>, %k: tensor<1x1x8x16xf16>, %l: tensor<1x?x8xf32>) {
  // expected-error@+1 {{has a schedule with 2 shares of heads whose number is not static}}
  %0:3 = attn.attention_backward %q, %k, %k, %q scale(0.125) statistics(%l, %l : tensor<1x?x8xf32>, tensor<1x?x8xf32>)
    {schedule = #shares} : tensor<1x?x8x16xf16>, tensor<1x1x8x16xf16>, tensor<1x1x8x16xf16>, tensor<1x?x8x16xf16> -> tensor<1x?x8x16xf16>, tensor<1x1x8x16xf16>, tensor<1x1x8x16xf16>
  return
}
