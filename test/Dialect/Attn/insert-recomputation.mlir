// RUN: fovea-opt --attn-insert-recomputation=policy=always --split-input-file \
// RUN:   %s | FileCheck %s
// RUN: fovea-opt --attn-insert-recomputation=policy=never --split-input-file \
// RUN:   %s | FileCheck %s --check-prefix=NEVER

// The forward pass is fused, the log-sum-exp is its second result, and the
// softmax's Jacobian needs a row sum of the output and its gradient.
// CHECK-LABEL: func.func @recompute
// CHECK-SAME: %[[Q:.*]]: tensor<1x4x?x16xf16>, %[[K:.*]]: tensor<1x2x?x16xf16>, %[[V:.*]]: tensor<1x2x?x16xf16>,
// CHECK-SAME: %[[SLOPES:.*]]: tensor<4xf32>, %[[SEED:.*]]: i64, %[[DO:.*]]: tensor<1x4x?x16xf16>, %[[DL:.*]]: tensor<1x4x?xf32>
// CHECK-NOT: attn.scores
// CHECK-NOT: attn.softmax
// CHECK: %[[O:.*]], %[[L:.*]] = attn.attention %[[Q]], %[[K]], %[[V]] scale(2.500000e-01) dropout(1.000000e-01, %[[SEED]], %[[SEED]])
// CHECK: arith.mulf
// CHECK: arith.cmpi sge
// CHECK: -> tensor<1x4x?x16xf16>, tensor<1x4x?xf64>
// The log-sum-exp of the graph is that one, rounded.
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[L]] : tensor<1x4x?xf64> to tensor<1x4x?xf32>
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[DO]], %[[O]] : tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16>)
// CHECK: %[[DELTA:.*]] = arith.subf %[[SUM]], %[[DL]] : tensor<1x4x?xf32>
// CHECK: attn.attention_backward %[[Q]], %[[K]], %[[V]], %[[DO]] scale(2.500000e-01)
// CHECK-SAME: statistics(%[[L]], %[[DELTA]] : tensor<1x4x?xf64>, tensor<1x4x?xf32>)
// CHECK-SAME: captures(%[[SLOPES]] : tensor<4xf32>) dropout(1.000000e-01, %[[SEED]], %[[SEED]])
// CHECK: return %[[O]], %[[ROUNDED]]
// NEVER-LABEL: func.func @recompute
// NEVER: attn.softmax
// NEVER: attn.attention_backward {{.*}} probabilities(
func.func @recompute(%q: tensor<1x4x?x16xf16>, %k: tensor<1x2x?x16xf16>,
                     %v: tensor<1x2x?x16xf16>, %slopes: tensor<4xf32>,
                     %seed: i64, %do: tensor<1x4x?x16xf16>,
                     %dl: tensor<1x4x?xf32>)
    -> (tensor<1x4x?x16xf16>, tensor<1x4x?xf32>, tensor<1x4x?x16xf16>,
        tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<4xf32>) {
  %s = attn.scores %q, %k
      : tensor<1x4x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x4x?x?xf32>
  %t = attn.scale %s by 0.25 : tensor<1x4x?x?xf32>
  %a = attn.modify %t {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : tensor<4xf32>
    %r = arith.mulf %x, %slope : f32
    attn.yield %r : f32
  } : tensor<1x4x?x?xf32>
  %m = attn.mask %a {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x4x?x?xf32>
  %p = attn.softmax %m : tensor<1x4x?x?xf32> -> tensor<1x4x?x?xf32>
  %d = attn.dropout %p, 0.1 seed(%seed, %seed) : tensor<1x4x?x?xf32>
  %o = attn.values %d, %v
      : tensor<1x4x?x?xf32>, tensor<1x2x?x16xf16> -> tensor<1x4x?x16xf16>
  %l = attn.log_sum_exp %m : tensor<1x4x?x?xf32> -> tensor<1x4x?xf32>
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %k, %v, %do scale(0.25)
      probabilities(%p : tensor<1x4x?x?xf32>)
      lse_gradient(%dl : tensor<1x4x?xf32>)
      captures(%slopes : tensor<4xf32>) dropout(0.1, %seed, %seed)
      score {
      ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<4xf32>
        %r = arith.mulf %x, %slope : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      }
      : tensor<1x4x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>,
        tensor<1x4x?x16xf16>
        -> tensor<1x4x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>,
           tensor<4xf32>
  return %o, %l, %dq, %dk, %dv, %ds
      : tensor<1x4x?x16xf16>, tensor<1x4x?xf32>, tensor<1x4x?x16xf16>,
        tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<4xf32>
}

// -----

// Probabilities of another scale are not what would be recomputed.
// CHECK-LABEL: func.func @another_scale
// CHECK: attn.softmax
// CHECK: attn.attention_backward {{.*}} probabilities(
func.func @another_scale(%q: tensor<1x1x8x16xf32>, %do: tensor<1x1x8x16xf32>)
    -> (tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) {
  %s = attn.scores %q, %q
      : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32> -> tensor<1x1x8x8xf32>
  %t = attn.scale %s by 0.25 : tensor<1x1x8x8xf32>
  %p = attn.softmax %t : tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  %o = attn.values %p, %q
      : tensor<1x1x8x8xf32>, tensor<1x1x8x16xf32> -> tensor<1x1x8x16xf32>
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %do scale(0.5)
      probabilities(%p : tensor<1x1x8x8xf32>)
      : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>,
        tensor<1x1x8x16xf32>
        -> tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
  return %o, %dq : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
}
