// RUN: fovea-opt %s --attn-online-softmax --attn-tile --split-input-file --verify-diagnostics

func.func @no_schedule(%q: tensor<1x1x8x4xf32>) -> tensor<1x1x8x4xf32> {
  // expected-error@+1 {{'attn.online_attention' op has no schedule to tile it by: run attn-select-schedule, or write `schedule = #attn.schedule<...>`}}
  %o = attn.attention %q, %q, %q scale(0.5)
    : tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32> -> tensor<1x1x8x4xf32>
  return %o : tensor<1x1x8x4xf32>
}

// -----

// Values without features have been folded away before.
func.func @no_features(%q: tensor<1x1x8x4xf32>, %v: tensor<1x1x8x0xf32>) -> tensor<1x1x8x0xf32> {
  // expected-error@+1 {{'attn.online_attention' op expects values to have features, but they are 'tensor<1x1x8x0xf32>': run attn-fold-empty before}}
  %o = attn.attention %q, %q, %v scale(0.5) {schedule = #attn.schedule<tile = 8x8, order = linear>}
    : tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x0xf32> -> tensor<1x1x8x0xf32>
  return %o : tensor<1x1x8x0xf32>
}
