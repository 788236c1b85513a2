// RUN: fovea-opt --attn-decompose-backward --split-input-file \
// RUN:   --mlir-print-local-scope %s | FileCheck %s
// RUN: fovea-opt --attn-decompose-backward=stored-only --split-input-file %s \
// RUN:   | FileCheck %s --check-prefix=STORED

// STORED-LABEL: func.func @recompute
// STORED:         attn.attention_backward
// STORED-LABEL: func.func @saved
// STORED-NOT:     attn.attention_backward
// STORED-LABEL: func.func @unread

// Probabilities from the log-sum-exp; the difference from delta.
// CHECK-LABEL: func.func @recompute
// CHECK-SAME: %[[Q:.*]]: tensor<1x4x8x16xf16>, %[[K:.*]]: tensor<1x2x6x16xf16>, %[[V:.*]]: tensor<1x2x6x32xf16>,
// CHECK-SAME: %[[DO:.*]]: tensor<1x4x8x32xf16>, %[[L:.*]]: tensor<1x4x8xf32>, %[[DELTA:.*]]: tensor<1x4x8xf32>
// CHECK: %[[S:.*]] = attn.scores %[[Q]], %[[K]]
// CHECK: %[[X:.*]] = attn.scale %[[S]] by 2.500000e-01
// CHECK: %[[M:.*]] = attn.mask %[[X]]
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[L]]
// CHECK:   math.exp
// CHECK: %[[DP:.*]] = attn.scores %[[DO]], %[[V]]
// CHECK: %[[DS:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[DP]], %[[DELTA]]
// CHECK:   arith.subf
// CHECK:   arith.mulf
// CHECK: %[[DX:.*]] = attn.scale %[[DS]] by 2.500000e-01
// CHECK: attn.values %[[DX]], %[[K]] : tensor<1x4x8x6xf32>, tensor<1x2x6x16xf16> -> tensor<1x4x8x16xf32>
// CHECK: attn.sum_queries %[[DX]], %[[Q]]
// CHECK: attn.sum_queries %[[P]], %[[DO]]
func.func @recompute(%q: tensor<1x4x8x16xf16>, %k: tensor<1x2x6x16xf16>,
                     %v: tensor<1x2x6x32xf16>, %do: tensor<1x4x8x32xf16>,
                     %lse: tensor<1x4x8xf32>, %delta: tensor<1x4x8xf32>)
    -> (tensor<1x4x8x16xf32>, tensor<1x2x6x16xf16>, tensor<1x2x6x32xf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %do scale(0.25)
      statistics(%lse, %delta : tensor<1x4x8xf32>, tensor<1x4x8xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      }
      : tensor<1x4x8x16xf16>, tensor<1x2x6x16xf16>, tensor<1x2x6x32xf16>,
        tensor<1x4x8x32xf16>
        -> tensor<1x4x8x16xf32>, tensor<1x2x6x16xf16>, tensor<1x2x6x32xf16>
  return %dq, %dk, %dv
      : tensor<1x4x8x16xf32>, tensor<1x2x6x16xf16>, tensor<1x2x6x32xf16>
}

// -----

// Saved probabilities; the dropout draws the same numbers for both directions.
// CHECK-LABEL: func.func @saved
// CHECK-SAME: %[[P:[a-z0-9]*]]: tensor<1x1x8x8xf32>, %[[DL:.*]]: tensor<1x1x8xf32>, %[[SEED:.*]]: i64
// CHECK: %[[D:.*]] = attn.dropout %[[P]], 5.000000e-01 seed(%[[SEED]], %[[SEED]])
// CHECK: %[[DD:.*]] = attn.scores
// CHECK: %[[DP:.*]] = attn.dropout %[[DD]], 5.000000e-01 seed(%[[SEED]], %[[SEED]])
// CHECK: %[[B:.*]] = attn.softmax_backward %[[P]], %[[DP]]
// CHECK: linalg.generic {{.*}} ins(%[[B]], %[[P]], %[[DL]]
// CHECK: attn.sum_queries %[[D]]
func.func @saved(%q: tensor<1x1x8x16xf32>, %do: tensor<1x1x8x16xf32>,
                 %p: tensor<1x1x8x8xf32>, %dl: tensor<1x1x8xf32>, %seed: i64)
    -> (tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %do scale(1.0)
      probabilities(%p : tensor<1x1x8x8xf32>)
      lse_gradient(%dl : tensor<1x1x8xf32>) dropout(0.5, %seed, %seed)
      : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>,
        tensor<1x1x8x16xf32>
        -> tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
  return %dq, %dk, %dv
      : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
}

// -----

// A score region that does not read its score: queries and keys get zeros, and
// what the region captures gets its gradient.
// CHECK-LABEL: func.func @unread
// CHECK: %[[DS:.*]] = attn.softmax_backward
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[DS]] :
// CHECK: %[[Z:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<1x1x4x4xf32>)
// CHECK: attn.values %[[Z]],
// CHECK: attn.sum_queries %[[Z]],
// CHECK: attn.sum_queries
func.func @unread(%q: tensor<1x1x4x8xf32>, %do: tensor<1x1x4x8xf32>, %p: tensor<1x1x4x4xf32>, %bias: tensor<4x4xf32>)
    -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<4x4xf32>) {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %do scale(0.5)
      probabilities(%p : tensor<1x1x4x4xf32>) captures(%bias : tensor<4x4xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%i, %j] : tensor<4x4xf32>
        attn.yield %x : f32
      }
      : tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>
        -> tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<4x4xf32>
  return %dq, %dk, %dv, %db : tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<4x4xf32>
}
