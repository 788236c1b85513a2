// RUN: fovea-opt %s --attn-online-softmax --convert-elementwise-to-linalg --attn-tile --attn-list-tiles \
// RUN:   --attn-order-tiles --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax --convert-elementwise-to-linalg --attn-tile --attn-list-tiles \
// RUN:   --attn-order-tiles=deterministic=true --canonicalize --cse --split-input-file --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=TURNS

// Tiles of keys are sorted by the tiles of queries that see them, the first ones of as
// many in front, and so for all heads: the loop over those of a group is around that over
// tiles. Blocks that take turns begin in the order of tiles.

// CHECK-LABEL: func @documents
// CHECK:       %[[LISTS:.*]]:2 = scf.forall (%{{.*}}, %{{.*}}) in (4, 32)
// CHECK:       %[[STEPS:.*]] = scf.forall (%{{.*}}) in (4)
// CHECK:         %[[N32:.*]] = tensor.extract %[[LISTS]]#1[%{{.*}}, %c31]
// CHECK:         %[[N:.*]] = arith.index_castui %[[N32]]
// CHECK:         arith.ceildivsi %{{.*}}, %c2
// CHECK:       %[[ORDER:.*]] = scf.forall (%[[T:.*]]) in (4)
// CHECK:         scf.for %[[O:.*]] = %c0 to %c4 step %c1
// CHECK:           tensor.extract %[[STEPS]][%[[O]]]
// CHECK:           arith.cmpi slt, %[[O]], %[[T]]
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[J:.*]]) = (0, 0, 0) to (2, 2, 512) step (1, 1, 128)
// CHECK-NEXT:    %[[PLACE:.*]] = arith.divsi %[[J]], %c128
// CHECK-NEXT:    %[[OWN32:.*]] = tensor.extract %[[ORDER]][%[[PLACE]]]
// CHECK-NEXT:    %[[OWN:.*]] = arith.index_castui %[[OWN32]]
// CHECK-NEXT:    %[[FIRST:.*]] = arith.muli %[[OWN]], %c128
// CHECK-NOT:     %[[J]]
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             attn.online_backward {{.*}} at[%{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST]]]
// TURNS-LABEL: func @documents
// TURNS:       scf.forall (%{{.*}}, %{{.*}}, %[[J:.*]]) = (0, 0, 0) to (2, 2, 512) step (1, 1, 128)
// TURNS:         attn.online_backward {{.*}} at[%{{.*}}, %{{.*}}, %{{.*}}, %[[J]]]
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
      } {schedule = #attn.schedule<tile = 64x128, order = longest_first, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]>>}
      : tensor<2x4x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x4x512x64xbf16>
        -> tensor<2x4x512x64xbf16>, tensor<2x2x512x64xbf16>, tensor<2x2x512x64xbf16>
  return %dq : tensor<2x4x512x64xbf16>
}

// -----

// Left alone: under a causal mask tiles are in order, and a schedule may want them so.

// CHECK-LABEL: func @causal
// CHECK-COUNT-1: scf.forall
// CHECK-NOT:   scf.forall (
// CHECK:       return
func.func @causal(%q: tensor<2x4x512x64xbf16>, %l: tensor<2x4x512xf32>) -> tensor<2x4x512x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.125)
      statistics(%l, %l : tensor<2x4x512xf32>, tensor<2x4x512xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x128, order = longest_first, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]>>}
      : tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>
        -> tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>
  return %dq : tensor<2x4x512x64xbf16>
}

// -----

// CHECK-LABEL: func @linear
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[J:.*]]) = (0, 0, 0) to (2, 4, 512) step (1, 1, 128)
// CHECK:         attn.online_backward {{.*}} at[%{{.*}}, %{{.*}}, %{{.*}}, %[[J]]]
func.func @linear(%q: tensor<2x4x512x64xbf16>, %l: tensor<2x4x512xf32>, %ids: tensor<512xi32>) -> tensor<2x4x512x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.125)
      statistics(%l, %l : tensor<2x4x512xf32>, tensor<2x4x512xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %p = tensor.extract %ids[%i] : tensor<512xi32>
        %r = tensor.extract %ids[%j] : tensor<512xi32>
        %keep = arith.cmpi eq, %p, %r : i32
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]>>}
      : tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>
        -> tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>
  return %dq : tensor<2x4x512x64xbf16>
}
