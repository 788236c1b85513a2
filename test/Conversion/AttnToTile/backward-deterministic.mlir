// RUN: fovea-opt %s --convert-attn-to-tile=deterministic --canonicalize --cse \
// RUN:   | FileCheck %s --implicit-check-not="store add" --implicit-check-not=to_shared

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
