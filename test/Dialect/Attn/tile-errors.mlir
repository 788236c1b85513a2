// RUN: fovea-opt %s --attn-online-softmax --attn-tile --split-input-file --verify-diagnostics

func.func @no_schedule(%q: tensor<1x1x8x4xf32>) -> tensor<1x1x8x4xf32> {
  // expected-error@+1 {{'attn.online_attention' op has no schedule to tile it by: run attn-select-schedule, or write `schedule = #attn.schedule<...>`}}
  %o = attn.attention %q, %q, %q scale(0.5)
    : tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32> -> tensor<1x1x8x4xf32>
  return %o : tensor<1x1x8x4xf32>
}
