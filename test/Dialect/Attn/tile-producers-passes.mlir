// RUN: fovea-opt %s --attn-online-softmax=passes=3 --attn-tile | FileCheck %s

// Each pass computes the keys that it loads, and only the last the values.

// CHECK-LABEL: func @three_passes
// CHECK:       update(max) ins(%{{.*}}, %[[K1:.*]], %[[NONE:.*]] :
// CHECK:       update(sum) ins(%{{.*}}, %[[K2:.*]], %{{.*}} :
// CHECK:       attn.rope
// CHECK:       attn.scale
// CHECK-NOT:   attn.scale
// CHECK:       update(acc)
func.func @three_passes(%q: tensor<1x2x1x16xf32>, %k: tensor<1x2x128x16xf32>, %cos: tensor<128x8xf32>, %sin: tensor<128x8xf32>) -> tensor<1x2x1x16xf32> {
  %r = attn.rope %k, %cos, %sin : tensor<1x2x128x16xf32>, tensor<128x8xf32>, tensor<128x8xf32>
  %s = attn.scale %k by 0.5 : tensor<1x2x128x16xf32>
  %o = attn.attention %q, %r, %s scale(0.25) {schedule = #attn.schedule<tile = 16x64, order = linear>}
    : tensor<1x2x1x16xf32>, tensor<1x2x128x16xf32>, tensor<1x2x128x16xf32> -> tensor<1x2x1x16xf32>
  return %o : tensor<1x2x1x16xf32>
}
