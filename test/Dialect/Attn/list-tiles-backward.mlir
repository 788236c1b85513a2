// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule --attn-online-softmax \
// RUN:   --convert-elementwise-to-linalg --attn-tile --attn-list-tiles --canonicalize --cse \
// RUN:   --mlir-print-local-scope | FileCheck %s
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule --attn-online-softmax \
// RUN:   --convert-elementwise-to-linalg --attn-tile --attn-list-tiles=deterministic=true --canonicalize --cse \
// RUN:   --mlir-print-local-scope | FileCheck %s --check-prefix=ORDER

// Blocks that take turns come to all tiles.
// ORDER-LABEL: func @documents
// ORDER-NOT:   arith.shrui
// ORDER:       %[[TEST:.*]] = arith.andi
// ORDER-NOT:   arith.shrui
// ORDER:       scf.if %[[TEST]]
// ORDER:         attn.online_backward
// ORDER-LABEL: func @heads

// The backward pass loops over tiles of queries, which have lists by tile of
// keys.

// CHECK-LABEL: func @documents
// CHECK:       %[[LISTS:.*]]:2 = scf.forall {{.*}} -> (tensor<{{[0-9]+x[0-9]+}}xi32>, tensor<{{[0-9]+x[0-9]+}}xi32>) {
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0)
// CHECK:         scf.for
// CHECK:           scf.for %[[K:.*]] = %c0 to %{{.*}} step %c1{{ }}
// CHECK-NOT:         scf.if
// CHECK:             %[[E32:.*]] = tensor.extract %[[LISTS]]#0[%{{.*}}, %[[K]]]
// CHECK:             %[[E:.*]] = arith.index_castui %[[E32]] : i32 to index
// CHECK:             %[[UNITS:.*]] = arith.shrui %[[E]], %c1
// CHECK:             %[[I:.*]] = arith.muli %[[UNITS]], %c
// CHECK:             attn.online_backward {{.*}} at[%{{.*}}, %{{.*}}, %[[I]], %{{.*}}]
func.func @documents(%q: tensor<2x4x512x64xbf16>, %k: tensor<2x2x512x64xbf16>, %l: tensor<2x4x512xf32>, %ids: tensor<512xi32>)
    -> tensor<2x4x512x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %k, %q scale(0.125)
      statistics(%l, %l : tensor<2x4x512xf32>, tensor<2x4x512xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %p = tensor.extract %ids[%i] : tensor<512xi32>
        %r = tensor.extract %ids[%j] : tensor<512xi32>
        %keep = arith.cmpi eq, %p, %r : i32
        attn.yield %keep : i1
      }
      : tensor<2x4x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x4x512x64xbf16>
        -> tensor<2x4x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>
  return %dq : tensor<2x4x512x64xbf16>
}

// A loop around the tests, over the heads of a group, tells them apart: they
// cannot be made before.

// CHECK-LABEL: func @heads
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0)
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             %[[ANY:.*]] = arith.andi
// CHECK:             scf.if %[[ANY]]
// CHECK:               attn.online_backward
func.func @heads(%q: tensor<2x4x512x64xbf16>, %k: tensor<2x2x512x64xbf16>, %l: tensor<2x4x512xf32>, %ids: tensor<4x512xi32>)
    -> tensor<2x4x512x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %k, %q scale(0.125)
      statistics(%l, %l : tensor<2x4x512xf32>, tensor<2x4x512xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %p = tensor.extract %ids[%h, %i] : tensor<4x512xi32>
        %r = tensor.extract %ids[%h, %j] : tensor<4x512xi32>
        %keep = arith.cmpi eq, %p, %r : i32
        attn.yield %keep : i1
      }
      : tensor<2x4x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x4x512x64xbf16>
        -> tensor<2x4x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>
  return %dq : tensor<2x4x512x64xbf16>
}

// A loop that repeats the parallel one, over heads: the lists are made once. Their
// tiles are one chunk, which needs no counts.

// CHECK-LABEL: func @repeated
// CHECK-NOT:   tensor<16x1xi32>
// CHECK:       %[[LISTS:.*]]:2 = scf.forall (%{{.*}}) in (16, 32) {{.*}} -> (tensor<16x32xi32>, tensor<16x32xi32>)
// CHECK:       scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK:         scf.forall (%{{.*}}, %{{.*}}) = (0, 0)
// CHECK:           tensor.extract %[[LISTS]]#0
// CHECK-NOT:       scf.if
// CHECK:           attn.online_backward
func.func @repeated(%q: tensor<2x4x512x64xbf16>, %l: tensor<2x4x512xf32>, %ids: tensor<512xi32>) -> tensor<2x4x512x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.125)
      statistics(%l, %l : tensor<2x4x512xf32>, tensor<2x4x512xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %p = tensor.extract %ids[%i] : tensor<512xi32>
        %r = tensor.extract %ids[%j] : tensor<512xi32>
        %keep = arith.cmpi eq, %p, %r : i32
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 32x32, order = linear, warps = 2, stages = 2, gradients = <parallel = [batch, key]>>}
      : tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>
        -> tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>
  return %dq : tensor<2x4x512x64xbf16>
}

// Left alone: repetitions differ in the tests.

// CHECK-LABEL: func @repeated_heads
// CHECK:       scf.for
// CHECK:         scf.forall
// CHECK:           scf.if
// CHECK:             attn.online_backward
func.func @repeated_heads(%q: tensor<2x4x512x64xbf16>, %l: tensor<2x4x512xf32>, %ids: tensor<4x512xi32>) -> tensor<2x4x512x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.125)
      statistics(%l, %l : tensor<2x4x512xf32>, tensor<2x4x512xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %p = tensor.extract %ids[%h, %i] : tensor<4x512xi32>
        %r = tensor.extract %ids[%h, %j] : tensor<4x512xi32>
        %keep = arith.cmpi eq, %p, %r : i32
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 32x32, order = linear, warps = 2, stages = 2, gradients = <parallel = [batch, key]>>}
      : tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>
        -> tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>
  return %dq : tensor<2x4x512x64xbf16>
}

// A mask of one bound: whether it keeps all of a tile is the opposite of a test.

// CHECK-LABEL: func @ends
// CHECK:       %[[LISTS:.*]]:2 = scf.forall (%{{.*}}, %{{.*}}) in (4, 32)
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0) to (1, 1, 512)
// CHECK:         scf.for %[[K:.*]] = %c0 to %{{.*}} step %c1{{ }}
// CHECK-NOT:       scf.if
// CHECK:           %[[E32:.*]] = tensor.extract %[[LISTS]]#0[%{{.*}}, %[[K]]]
// CHECK:           %[[E:.*]] = arith.index_castui %[[E32]] : i32 to index
// CHECK:           %[[SET:.*]] = arith.andi %[[E]], %c1
// CHECK:           %[[PARTIAL:.*]] = arith.cmpi eq, %[[SET]], %c1
// CHECK:           attn.online_backward {{.*}} partial(%[[PARTIAL]])
func.func @ends(%q: tensor<1x1x512x64xbf16>, %l: tensor<1x1x512xf32>, %ends: tensor<512xi32>) -> tensor<1x1x512x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.125)
      statistics(%l, %l : tensor<1x1x512xf32>, tensor<1x1x512xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %e = tensor.extract %ends[%i] : tensor<512xi32>
        %n = arith.index_cast %e : i32 to index
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]>>}
      : tensor<1x1x512x64xbf16>, tensor<1x1x512x64xbf16>, tensor<1x1x512x64xbf16>, tensor<1x1x512x64xbf16>
        -> tensor<1x1x512x64xbf16>, tensor<1x1x512x64xbf16>, tensor<1x1x512x64xbf16>
  return %dq : tensor<1x1x512x64xbf16>
}
