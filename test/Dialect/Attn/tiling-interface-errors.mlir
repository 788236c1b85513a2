// RUN: fovea-opt %s --transform-interpreter --split-input-file --verify-diagnostics

// Three heads are one and a half groups.

module attributes {transform.with_named_sequence} {
  func.func @half_a_group(%q: tensor<1x6x16x8xf32>, %k: tensor<1x3x32x8xf32>, %acc: tensor<1x6x16x8xf32>, %max: tensor<1x6x16xf32>, %sum: tensor<1x6x16xf32>) -> tensor<1x6x16x8xf32> {
    // expected-error@+2 {{'attn.online_attention' op cannot be tiled by a number of heads that is neither 1, nor all, nor a multiple of those that share one KV head}}
    // expected-error@+1 {{}}
    %r:3 = attn.online_attention scale(0.5) update(all)
      ins(%q, %k, %k : tensor<1x6x16x8xf32>, tensor<1x3x32x8xf32>, tensor<1x3x32x8xf32>)
      outs(%acc, %max, %sum : tensor<1x6x16x8xf32>, tensor<1x6x16xf32>, tensor<1x6x16xf32>)
      -> tensor<1x6x16x8xf32>, tensor<1x6x16xf32>, tensor<1x6x16xf32>
    return %r#0 : tensor<1x6x16x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 3] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
