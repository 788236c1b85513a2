// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule --attn-online-softmax \
// RUN:   --convert-elementwise-to-linalg --attn-tile --canonicalize --cse --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s

// Work items of a GPU are tiles of keys. They loop over the query heads of their
// group and the tiles of queries that the mask keeps, round what they have
// alone, and add to the gradients of queries.
// CHECK-LABEL: func.func @causal
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<2x4x512x64xf32>
// CHECK: scf.forall (%[[B:.*]], %[[G:.*]], %[[J:.*]]) = (0, 0, 0) to (2, 2, 512) step (1, 1, [[KEYS:[0-9]+]]) shared_outs(%[[DQ:.*]] = %[[ZEROS]], %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<2x4x512x64xf32>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>)
// CHECK:   scf.for %[[M:.*]] = %c0 to %c2 step %c1{{ }}
// CHECK:     scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK:       attn.online_backward {{.*}} at[%[[B]], %{{.*}}, %[[I]], %[[J]]] partial(
// CHECK-COUNT-2: arith.truncf
// CHECK:   scf.forall.in_parallel {
// CHECK-DAG: attn.parallel_add_slice %{{.*}} into %[[DQ]][%[[B]], %{{.*}}, 0, 0] [1, 2, 512, 64] : tensor<1x2x512x64xf32> into tensor<2x4x512x64xf32>
// CHECK-DAG: tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[B]], %[[G]], %[[J]], 0] [1, 1, [[KEYS]], 64]
func.func @causal(%q: tensor<2x4x512x64xbf16>, %k: tensor<2x2x512x64xbf16>, %l: tensor<2x4x512xf32>)
    -> (tensor<2x4x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %k, %q scale(0.125)
      statistics(%l, %l : tensor<2x4x512xf32>, tensor<2x4x512xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      }
      : tensor<2x4x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x4x512x64xbf16>
        -> tensor<2x4x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>
  return %dq, %dk, %dv : tensor<2x4x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>
}

// -----

// One tile of keys still adds to the gradients of queries: a block has those of
// one tile of queries at a time.
// CHECK-LABEL: func.func @one_tile
// CHECK:   attn.parallel_add_slice
func.func @one_tile(%q: tensor<1x1x16x64xbf16>, %l: tensor<1x1x16xf32>) -> tensor<1x1x16x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.125)
      statistics(%l, %l : tensor<1x1x16xf32>, tensor<1x1x16xf32>)
      : tensor<1x1x16x64xbf16>, tensor<1x1x16x64xbf16>, tensor<1x1x16x64xbf16>, tensor<1x1x16x64xbf16>
        -> tensor<1x1x16x64xbf16>, tensor<1x1x16x64xbf16>, tensor<1x1x16x64xbf16>
  return %dq : tensor<1x1x16x64xbf16>
}
