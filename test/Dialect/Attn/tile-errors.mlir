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

// -----

// Rests are of parts, which this pass makes.
func.func @rest(%q: tensor<1x1x8x4xf32>, %m: tensor<1x1x8xf32>) -> (tensor<1x1x8x4xf32>, tensor<1x1x8xf32>) {
  %s:3 = attn.online_attention scale(0.5) update(all) ins(%q, %q, %q : tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>)
      outs(%q, %m, %m : tensor<1x1x8x4xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
      {schedule = #attn.schedule<tile = 4x4, order = linear, split = 2>} -> tensor<1x1x8x4xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
  // expected-error@+1 {{'attn.finalize' op has a rest already, as only tiles that are parts have}}
  %o, %l, %r = attn.finalize ins(%s#0, %s#1, %s#2 : tensor<1x1x8x4xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
      outs(%q, %m, %m : tensor<1x1x8x4xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
      -> tensor<1x1x8x4xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
  return %o, %r : tensor<1x1x8x4xf32>, tensor<1x1x8xf32>
}
