// RUN: fovea-opt --attn-select-schedule="query-tile=8 key-tile=16" \
// RUN:   --attn-online-softmax=scheduled-only --attn-tile --canonicalize --cse \
// RUN:   --attn-pack-queries --canonicalize \
// RUN:   --cse --split-input-file --mlir-print-local-scope %s | FileCheck %s

// A head of keys has its group's queries for itself: gradients are added to
// without conflict. Keys beyond the diagonal are not visited; a tile sees the
// coordinates of the whole. Queries are packed and widened once for all keys.
// CHECK-LABEL: func.func @causal
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x64x16xf16>, %[[K:.*]]: tensor<2x2x64x16xf16>, %[[V:.*]]: tensor<2x2x64x16xf16>,
// CHECK: scf.forall (%[[B:.*]], %[[G:.*]]) in (2, 2) shared_outs({{.*}}) -> (tensor<2x4x64x16xf32>, tensor<2x2x64x16xf32>, tensor<2x2x64x16xf32>) {
// CHECK-COUNT-3: linalg.fill
// CHECK:   scf.for %[[M:.*]] = %c0 to %c2 step %c1{{ }}
// CHECK:     scf.for %[[I:.*]] = %c0 to %c64 step %c8{{ }}
// CHECK:       %[[WIDE:.*]] = arith.extf %{{.*}} : tensor<1x1x8x16xf16> to tensor<1x1x8x16xf32>
// CHECK:       %[[PQ:.*]] = attn.pack_query by 0.36067376022224085
// CHECK:       %[[PDO:.*]] = attn.pack_query by 1.000000e+00
// CHECK:       scf.for %[[J:.*]] = %c0 to %[[END:.*]] step %c16 iter_args(%[[DQ:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK:         attn.online_backward scale(2.500000e-01) packed(%[[PQ]], %[[PDO]] : tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>) ins(%[[WIDE]],
// CHECK-SAME:      outs(%[[DQ]], {{.*}} : tensor<1x1x8x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>)
// CHECK-SAME:      at[%[[B]], %{{.*}}, %[[I]], %[[J]]] partial(%{{.*}}) mask {
// CHECK:   scf.forall.in_parallel
// CHECK-COUNT-3: tensor.parallel_insert_slice
// CHECK: arith.truncf %{{.*}} : tensor<2x4x64x16xf32> to tensor<2x4x64x16xf16>
func.func @causal(%q: tensor<2x4x64x16xf16>, %k: tensor<2x2x64x16xf16>,
                  %v: tensor<2x2x64x16xf16>, %do: tensor<2x4x64x16xf16>,
                  %l: tensor<2x4x64xf32>, %d: tensor<2x4x64xf32>)
    -> (tensor<2x4x64x16xf16>, tensor<2x2x64x16xf16>, tensor<2x2x64x16xf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %do scale(0.25)
      statistics(%l, %d : tensor<2x4x64xf32>, tensor<2x4x64xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      }
      : tensor<2x4x64x16xf16>, tensor<2x2x64x16xf16>, tensor<2x2x64x16xf16>,
        tensor<2x4x64x16xf16>
        -> tensor<2x4x64x16xf16>, tensor<2x2x64x16xf16>, tensor<2x2x64x16xf16>
  return %dq, %dk, %dv
      : tensor<2x4x64x16xf16>, tensor<2x2x64x16xf16>, tensor<2x2x64x16xf16>
}

// -----

// Sizes that are not known; no mask, no bounds.
// CHECK-LABEL: func.func @dynamic
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (%{{.*}}, 3)
// CHECK: scf.for
// CHECK:   %[[ROWS:.*]] = affine.min affine_map<(d0)[s0] -> (-d0 + s0, 8)>
// CHECK:   scf.for
// CHECK:     %[[KEYS:.*]] = affine.min affine_map<(d0)[s0] -> (-d0 + s0, 16)>
// CHECK:     attn.online_backward
// CHECK:     -> tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>
func.func @dynamic(%q: tensor<?x3x?x16xf32>, %k: tensor<?x3x?x16xf32>,
                   %v: tensor<?x3x?x16xf32>, %do: tensor<?x3x?x16xf32>,
                   %l: tensor<?x3x?xf32>, %d: tensor<?x3x?xf32>)
    -> tensor<?x3x?x16xf32> {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %do scale(0.25)
      statistics(%l, %d : tensor<?x3x?xf32>, tensor<?x3x?xf32>)
      : tensor<?x3x?x16xf32>, tensor<?x3x?x16xf32>, tensor<?x3x?x16xf32>,
        tensor<?x3x?x16xf32>
        -> tensor<?x3x?x16xf32>, tensor<?x3x?x16xf32>, tensor<?x3x?x16xf32>
  return %dq : tensor<?x3x?x16xf32>
}

// -----

// The score region comes with its derivative, and a dropout with the sizes that
// number its rows.
// CHECK-LABEL: func.func @soft_cap
// CHECK-SAME: %[[SEED:[a-z0-9]*]]: i64
// CHECK: attn.pack_query by 2.500000e-01
// CHECK: attn.online_backward {{.*}} dropout(5.000000e-01, %[[SEED]], %[[SEED]]) {{.*}} whole[%c1, %c8] score {
// CHECK:   math.tanh
// CHECK: } derivative {
// CHECK: ^bb0(%[[S:.*]]: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index):
// CHECK:   %[[T:.*]] = math.tanh %[[S]]
// CHECK:   %[[BELOW:.*]] = arith.subf %cst{{.*}}, %[[T]]
// CHECK:   %[[ABOVE:.*]] = arith.addf %[[T]], %cst
// CHECK:   %[[D:.*]] = arith.mulf %[[BELOW]], %[[ABOVE]]
// CHECK:   attn.yield %[[D]]
func.func @soft_cap(%q: tensor<1x1x8x16xf32>, %l: tensor<1x1x8xf32>, %seed: i64)
    -> tensor<1x1x8x16xf32> {
  %0:3 = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x1x8xf32>, tensor<1x1x8xf32>)
      dropout(0.5, %seed, %seed)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %r = math.tanh %s : f32
        attn.yield %r : f32
      }
      : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>,
        tensor<1x1x8x16xf32>
        -> tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
  return %0#0 : tensor<1x1x8x16xf32>
}

// -----

// Few heads for two cores: the queries are cut into four shares, the last one
// first, each with sums of its own for the keys, which are added in order.
module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2,
    vector_bytes = 64, vector_registers = 32, fast_memory = 32768,
    near_memory = 1048576, bandwidth = 12000, peak = 300>} {
// CHECK-LABEL: func.func @shares
// CHECK: scf.forall (%[[SHARE:.*]]) in (4) shared_outs({{.*}}) -> (tensor<1x1x64x16xf32>, tensor<4x1x1x64x16xf32>, tensor<4x1x1x64x16xf32>) {
// CHECK:   %[[PLACE:.*]] = arith.subi %c3, %[[SHARE]]
// CHECK:   %[[FIRST:.*]] = arith.muli %[[PLACE]], %c16{{ }}
// CHECK:   scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8{{ }}
// CHECK:     attn.online_backward
// CHECK: scf.for %[[OTHER:.*]] = %c0 to %c4 step %c1{{ }}
// CHECK:   tensor.extract_slice %{{.*}}[%[[OTHER]], 0, 0, 0, 0]
// CHECK:   arith.addf
func.func @shares(%q: tensor<1x1x64x16xf32>, %l: tensor<1x1x64xf32>)
    -> (tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>) {
  %0:3 = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      : tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>,
        tensor<1x1x64x16xf32>
        -> tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>
  return %0#0, %0#1, %0#2
      : tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>
}
}

// -----

// Enough heads for two cores: no shares, whatever the number of queries.
module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2,
    vector_bytes = 64, vector_registers = 32, fast_memory = 32768,
    near_memory = 1048576, bandwidth = 12000, peak = 300>} {
// CHECK-LABEL: func.func @heads
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (2, 2)
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c8{{ }}
func.func @heads(%q: tensor<2x2x?x16xf32>, %l: tensor<2x2x?xf32>)
    -> tensor<2x2x?x16xf32> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<2x2x?xf32>, tensor<2x2x?xf32>)
      : tensor<2x2x?x16xf32>, tensor<2x2x?x16xf32>, tensor<2x2x?x16xf32>,
        tensor<2x2x?x16xf32>
        -> tensor<2x2x?x16xf32>, tensor<2x2x?x16xf32>, tensor<2x2x?x16xf32>
  return %dk : tensor<2x2x?x16xf32>
}
}

// -----

// Slopes are read by heads, which are work items: each has its part, and one sum
// for each batch, in f64. Of each tile the scores and their gradients are kept.
// CHECK-LABEL: func.func @slopes
// CHECK: scf.forall (%[[B:.*]], %[[H:.*]]) in (2, 4) shared_outs({{.*}}) -> (tensor<2x4xf64>) {
// CHECK:   tensor.extract_slice %{{.*}}[%[[B]], %[[H]]] [1, 1] [1, 1] : tensor<2x4xf64> to tensor<1xf64>
// CHECK:   attn.online_backward {{.*}} scores(%{{.*}}, %{{.*}} : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>)
// CHECK-COUNT-2: linalg.transpose
// CHECK:   linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "reduction", "reduction"]
// CHECK:     arith.extf
// CHECK:     arith.addf %{{.*}} : f64
// CHECK:   linalg.generic
// CHECK:     arith.addf %{{.*}} : f64
// CHECK: scf.for %{{.*}} = %c0 to %c2 step %c1{{ }}
// CHECK: arith.truncf %{{.*}} : tensor<4xf64> to tensor<4xf32>
func.func @slopes(%q: tensor<2x4x8x16xf32>, %l: tensor<2x4x8xf32>,
                  %slopes: tensor<4xf32>) -> tensor<4xf32> {
  %0:4 = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<2x4x8xf32>, tensor<2x4x8xf32>)
      captures(%slopes : tensor<4xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<4xf32>
        %r = arith.mulf %s, %slope : f32
        attn.yield %r : f32
      }
      : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>,
        tensor<2x4x8x16xf32>
        -> tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>,
           tensor<4xf32>
  return %0#3 : tensor<4xf32>
}

// -----

// A bias as large as the scores of a head has one gradient, in the accumulation
// type, to which the batches of a head add one after another.
// CHECK-LABEL: func.func @bias
// CHECK: scf.forall (%[[H:.*]]) in (4) shared_outs({{.*}}) -> (tensor<4x8x8xf32>) {
// CHECK:   scf.for %[[B:.*]] = %c0 to %c2 step %c1{{ }}
// CHECK:     attn.online_backward
// CHECK:   tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[H]], 0, 0] [1, 8, 8] [1, 1, 1]
// CHECK-NOT: scf.for
func.func @bias(%q: tensor<2x4x8x16xf32>, %l: tensor<2x4x8xf32>,
                %bias: tensor<4x8x8xf32>) -> tensor<4x8x8xf32> {
  %0:4 = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<2x4x8xf32>, tensor<2x4x8xf32>)
      captures(%bias : tensor<4x8x8xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %t = tensor.extract %bias[%h, %i, %j] : tensor<4x8x8xf32>
        %r = arith.addf %s, %t : f32
        attn.yield %r : f32
      }
      : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>,
        tensor<2x4x8x16xf32>
        -> tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>,
           tensor<4x8x8xf32>
  return %0#3 : tensor<4x8x8xf32>
}

// -----

// What stays: a captured tensor that is read in a branch, saved probabilities.
// CHECK-LABEL: func.func @untiled
// CHECK-NOT: scf.for
func.func @untiled(%q: tensor<1x1x8x16xf32>, %l: tensor<1x1x8xf32>,
                   %p: tensor<1x1x8x8xf32>, %slopes: tensor<1xf32>)
    -> (tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) {
  %0:4 = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x1x8xf32>, tensor<1x1x8xf32>)
      captures(%slopes : tensor<1xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c = arith.cmpi sgt, %i, %j : index
        %slope = scf.if %c -> f32 {
          %t = tensor.extract %slopes[%h] : tensor<1xf32>
          scf.yield %t : f32
        } else {
          scf.yield %s : f32
        }
        attn.yield %slope : f32
      }
      : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>,
        tensor<1x1x8x16xf32>
        -> tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>,
           tensor<1xf32>
  %2:3 = attn.attention_backward %q, %q, %q, %q scale(0.25)
      probabilities(%p : tensor<1x1x8x8xf32>)
      : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>,
        tensor<1x1x8x16xf32>
        -> tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
  return %0#0, %2#0 : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
}
