// RUN: fovea-opt %s --convert-attn-to-tile=deterministic --canonicalize --cse --remarks-filter=convert-attn-to-tile 2>%t \
// RUN:   | FileCheck %s --implicit-check-not="store add" --implicit-check-not=to_shared --implicit-check-not=atomic_rmw
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// Queries' gradients by a launch of their own: no block adds to what another
// adds to.

// CHECK-LABEL: func @causal
// CHECK:       %[[KEYS:.*]]:2 = tile.launch kernel "attention_backward"
// CHECK:         scf.for
// CHECK:           tile.mma {{.*}} transpose_b : !tile.shared<128x64xbf16>, !tile.shared<64x64xbf16> -> !tile.fragment<128x64xf32>
// CHECK:           tile.mma {{.*}} transpose_b
// CHECK:           tile.map {{.*}} columns(
// CHECK:           tile.mma {{.*}} into
// CHECK:           tile.mma {{.*}} into
// CHECK:       %[[QUERIES:.*]] = tile.launch kernel "attention_backward_queries"
// CHECK:         tile.load {{.*}} -> !tile.shared<128x64xbf16>
// CHECK:         tile.load {{.*}} -> !tile.shared<128x64xbf16>
// CHECK:         tile.load {{.*}} -> !tile.fragment<128xf32>
// CHECK:         tile.load {{.*}} -> !tile.fragment<128xf32>
// CHECK:         scf.for
// CHECK:           tile.mma {{.*}} transpose_b : !tile.shared<128x64xbf16>, !tile.shared<64x64xbf16> -> !tile.fragment<128x64xf32>
// CHECK:           tile.map {{.*}} rows(
// CHECK:             math.exp2
// CHECK:           tile.mma {{.*}} transpose_b
// CHECK:           tile.map {{.*}} rows(
// CHECK:           tile.mma {{.*}} into
// CHECK:         tile.store
// CHECK:       return %[[QUERIES]], %[[KEYS]]#0, %[[KEYS]]#1
func.func @causal(%q: tensor<1x4x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %lse: tensor<1x4x?xf32>, %delta: tensor<1x4x?xf32>) -> (tensor<1x4x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %k, %q scale(0.125)
      statistics(%lse, %delta : tensor<1x4x?xf32>, tensor<1x4x?xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x128, order = longest_first, warps = 8, stages = 2>}
      : tensor<1x4x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x4x?x64xbf16> -> tensor<1x4x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>
  return %dq, %dk, %dv : tensor<1x4x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>
}

// A score that has an element of its own writes it, in any order.
// CHECK-LABEL: func @own_elements
// CHECK:       tile.launch kernel "attention_backward"
// CHECK:         memref.store
// CHECK:       tile.launch kernel "attention_backward_queries"
// CHECK-NOT:     memref.store
// CHECK:       return
func.func @own_elements(%q: tensor<1x2x?x16xf16>, %lse: tensor<1x2x?xf32>, %bias: tensor<2x?x?xf32>) -> (tensor<1x2x?x16xf16>, tensor<2x?x?xf32>) {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x?xf32>, tensor<1x2x?xf32>) captures(%bias : tensor<2x?x?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %i, %j] : tensor<2x?x?xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<2x?x?xf32>
  return %dq, %db : tensor<1x2x?x16xf16>, tensor<2x?x?xf32>
}

// Those that share one would add to it in any order.
// REMARK: the backward pass is written out, kernel by kernel: in a fixed order, scores cannot add to elements of a captured tensor that they share
// CHECK-LABEL: func @shared_elements
// CHECK-NOT:   tile.launch
// CHECK:       attn.attention_backward
func.func @shared_elements(%q: tensor<2x2x?x16xf16>, %lse: tensor<2x2x?xf32>, %bias: tensor<2x?x?xf32>) -> tensor<2x?x?xf32> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<2x2x?xf32>, tensor<2x2x?xf32>) captures(%bias : tensor<2x?x?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %bias[%h, %i, %j] : tensor<2x?x?xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16> -> tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x?x?xf32>
  return %db : tensor<2x?x?xf32>
}
