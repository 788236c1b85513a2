// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --split-input-file | FileCheck %s

// Few queries leave the rows that a thread holds beside those of the first eight
// empty: their scores are 0, also behind a mask, and what is computed of them folds.
// CHECK-LABEL: func.func @masked(
// CHECK: %[[S:.*]] = tile.mma {{.*}} rows 4 :
// CHECK: %[[MASKED:.*]] = scf.if
// CHECK: tile.map ins(%[[S]] :
// CHECK: %[[KEPT:.*]] = tile.map ins(%[[MASKED]] :
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[ROW:.*]]: index, %{{.*}}: index):
// CHECK-NEXT: %[[BIT:.*]] = arith.andi %[[ROW]], %c8
// CHECK-NEXT: %[[ISBEHIND:.*]] = arith.cmpi ne, %[[BIT]], %c0
// CHECK-NEXT: %[[Y:.*]] = arith.select %[[ISBEHIND]], %{{.*}}, %[[X]] : f32
// CHECK-NEXT: tile.yield %[[Y]]
// CHECK: tile.reduce max %[[KEPT]]
func.func @masked(%q: tensor<1x2x4x64xbf16>, %k: tensor<1x2x?x64xbf16>, %n: index) -> tensor<1x2x4x64xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi slt, %j, %n : index
        attn.yield %keep : i1
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2>}
      : tensor<1x2x4x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x2x4x64xbf16>
  return %o : tensor<1x2x4x64xbf16>
}

// -----

// More queries than eight are in both.
// CHECK-LABEL: func.func @more(
// CHECK: tile.mma {{.*}} rows 9 :
// CHECK-NOT: arith.andi
// CHECK: tile.reduce max
func.func @more(%q: tensor<1x2x9x64xbf16>, %k: tensor<1x2x64x64xbf16>) -> tensor<1x2x9x64xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2>}
      : tensor<1x2x9x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x9x64xbf16>
  return %o : tensor<1x2x9x64xbf16>
}
