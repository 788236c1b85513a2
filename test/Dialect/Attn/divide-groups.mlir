// RUN: fovea-opt %s --attn-divide-groups --split-input-file | FileCheck %s

#shares = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key], shares = 3>>

// Three copies of each head of keys and values, whose gradients are added up in f32
// and rounded once. Regions stay as they are.
// CHECK-LABEL: func @divided
// CHECK-SAME: %[[Q:[^:]*]]: tensor<?x12x?x64xbf16>, %[[K:[^:]*]]: tensor<?x2x?x64xbf16>, %[[V:[^:]*]]: tensor<?x2x?x32xbf16>
// CHECK: %[[K3:.*]] = linalg.broadcast ins(%[[K]] : {{.*}}) outs(%{{.*}} : tensor<?x2x3x?x64xbf16>) dimensions = [2]
// CHECK: %[[KEYS:.*]] = tensor.collapse_shape %[[K3]] {{\[\[}}0], [1, 2], [3], [4]] : tensor<?x2x3x?x64xbf16> into tensor<?x6x?x64xbf16>
// CHECK: %[[V3:.*]] = linalg.broadcast ins(%[[V]] : {{.*}}) outs(%{{.*}} : tensor<?x2x3x?x32xbf16>) dimensions = [2]
// CHECK: %[[VALUES:.*]] = tensor.collapse_shape %[[V3]]
// CHECK: %[[DQ:[^,]*]], %[[DK:[^,]*]], %[[DV:.*]], %[[DS:.*]] = attn.attention_backward %[[Q]], %[[KEYS]], %[[VALUES]], %{{.*}} scale(1.250000e-01)
// CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: index, %[[H:.*]]: index, %{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT: tensor.extract %{{.*}}[%[[H]]] : tensor<12xf32>
// CHECK: {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key], captures = [over_queries]>>}
// CHECK-SAME: -> tensor<?x12x?x64xbf16>, tensor<?x6x?x64xf32>, tensor<?x6x?x32xf32>, tensor<12xf32>
// CHECK: %[[X:.*]] = tensor.expand_shape %[[DK]] {{\[\[}}0], [1, 2], [3], [4]] {{.*}} : tensor<?x6x?x64xf32> into tensor<?x2x3x?x64xf32>
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<?x2x3x?x64xf32>)
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : {{.*}} to tensor<?x2x?x64xbf16>
// CHECK: %[[Y:.*]] = tensor.expand_shape %[[DV]] {{.*}} into tensor<?x2x3x?x32xf32>
// CHECK: %[[SUM2:.*]] = linalg.generic {{.*}} ins(%[[Y]] :
// CHECK: %[[ROUNDED2:.*]] = arith.truncf %[[SUM2]]
// CHECK: return %[[DQ]], %[[ROUNDED]], %[[ROUNDED2]], %[[DS]]
func.func @divided(%q: tensor<?x12x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x32xbf16>, %g: tensor<?x12x?x32xbf16>, %l: tensor<?x12x?xf32>, %slopes: tensor<12xf32>)
    -> (tensor<?x12x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x32xbf16>, tensor<12xf32>) {
  %0:4 = attn.attention_backward %q, %k, %v, %g scale(0.125) statistics(%l, %l : tensor<?x12x?xf32>, tensor<?x12x?xf32>)
    captures(%slopes : tensor<12xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %slope = tensor.extract %slopes[%h] : tensor<12xf32>
      %r = arith.mulf %s, %slope : f32
      attn.yield %r : f32
    } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key], shares = 3, captures = [over_queries]>>}
    : tensor<?x12x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x32xbf16>, tensor<?x12x?x32xbf16> -> tensor<?x12x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x32xbf16>, tensor<12xf32>
  return %0#0, %0#1, %0#2, %0#3 : tensor<?x12x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x32xbf16>, tensor<12xf32>
}

// Static sizes, and results that are not rounded.
// CHECK-LABEL: func @static
// CHECK: attn.attention_backward {{.*}} -> tensor<1x3x8x16xf32>, tensor<1x3x8x16xf32>, tensor<1x3x8x16xf32>
// CHECK: tensor.expand_shape {{.*}} : tensor<1x3x8x16xf32> into tensor<1x1x3x8x16xf32>
// CHECK: return %{{.*}}, %{{.*}} : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
func.func @static(%q: tensor<1x3x8x16xf32>, %k: tensor<1x1x8x16xf32>, %l: tensor<1x3x8xf32>) -> (tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) {
  %0:3 = attn.attention_backward %q, %k, %k, %q scale(0.125) statistics(%l, %l : tensor<1x3x8xf32>, tensor<1x3x8xf32>)
    {schedule = #shares} : tensor<1x3x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x3x8x16xf32> -> tensor<1x3x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
  return %0#1, %0#2 : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
}

// One share, and no schedule.
// CHECK-LABEL: func @kept
// CHECK-NOT: linalg
// CHECK-NOT: collapse_shape
// CHECK: attn.attention_backward {{.*}} -> tensor<1x3x8x16xbf16>, tensor<1x1x8x16xbf16>, tensor<1x1x8x16xbf16>
// CHECK-NEXT: attn.attention_backward {{.*}} -> tensor<1x3x8x16xbf16>, tensor<1x1x8x16xbf16>, tensor<1x1x8x16xbf16>
// CHECK-NEXT: return
func.func @kept(%q: tensor<1x3x8x16xbf16>, %k: tensor<1x1x8x16xbf16>, %l: tensor<1x3x8xf32>) -> (tensor<1x1x8x16xbf16>, tensor<1x1x8x16xbf16>) {
  %0:3 = attn.attention_backward %q, %k, %k, %q scale(0.125) statistics(%l, %l : tensor<1x3x8xf32>, tensor<1x3x8xf32>)
    {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]>>}
    : tensor<1x3x8x16xbf16>, tensor<1x1x8x16xbf16>, tensor<1x1x8x16xbf16>, tensor<1x3x8x16xbf16> -> tensor<1x3x8x16xbf16>, tensor<1x1x8x16xbf16>, tensor<1x1x8x16xbf16>
  %1:3 = attn.attention_backward %q, %k, %k, %q scale(0.125) statistics(%l, %l : tensor<1x3x8xf32>, tensor<1x3x8xf32>)
    : tensor<1x3x8x16xbf16>, tensor<1x1x8x16xbf16>, tensor<1x1x8x16xbf16>, tensor<1x3x8x16xbf16> -> tensor<1x3x8x16xbf16>, tensor<1x1x8x16xbf16>, tensor<1x1x8x16xbf16>
  return %0#1, %1#2 : tensor<1x1x8x16xbf16>, tensor<1x1x8x16xbf16>
}
