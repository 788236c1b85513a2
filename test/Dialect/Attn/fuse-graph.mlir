// RUN: fovea-opt %s --attn-fuse --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-fuse --split-input-file --remarks-filter=attn-fuse \
// RUN:   2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Attention in the graph ops of attn.

// CHECK-LABEL: @attend
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x16x?x64xf16>, %[[K:[^:]*]]: tensor<2x4x?x64xf16>, %[[V:[^:]*]]: tensor<2x4x?x64xf16>, %[[SLOPES:[^:]*]]: tensor<16xf32>
// CHECK-NEXT: attn.attention %[[Q]], %[[K]], %[[V]] scale(1.250000e-01) score {
// CHECK-NEXT: ^bb0(%[[S:[^:]*]]: f32, %{{[^:]*}}: index, %[[H:[^:]*]]: index, %[[I:[^:]*]]: index, %[[J:[^:]*]]: index):
// CHECK-NEXT: tensor.extract %[[SLOPES]][%[[H]]]
// CHECK-NEXT: arith.subi %[[J]], %[[I]]
// CHECK: arith.addf %[[S]],
// CHECK: } mask {
// CHECK-NEXT: ^bb0(%{{[^:]*}}: index, %{{[^:]*}}: index, %[[I2:[^:]*]]: index, %[[J2:[^:]*]]: index):
// CHECK-NEXT: %[[KEEP:.*]] = arith.cmpi sge, %[[I2]], %[[J2]]
// CHECK-NEXT: attn.yield %[[KEEP]]
// CHECK-NOT: attn.softmax

// REMARK: remark: [Passed] softmax | Category:attn-fuse | Function=attend | Remark="fused into attn.attention"
func.func @attend(%q: tensor<2x16x?x64xf16>, %k: tensor<2x4x?x64xf16>, %v: tensor<2x4x?x64xf16>, %slopes: tensor<16xf32>) -> tensor<2x16x?x64xf16> {
  %s = attn.scores %q, %k : tensor<2x16x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x16x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<2x16x?x?xf32>
  %a = attn.modify %t {
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : tensor<16xf32>
    %d = arith.subi %j, %i : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %bias = arith.mulf %slope, %f : f32
    %r = arith.addf %score, %bias : f32
    attn.yield %r : f32
  } : tensor<2x16x?x?xf32>
  %m = attn.mask %a {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x16x?x?xf32>
  %p = attn.softmax %m : tensor<2x16x?x?xf32> -> tensor<2x16x?x?xf32>
  %o = attn.values %p, %v : tensor<2x16x?x?xf32>, tensor<2x4x?x64xf16> -> tensor<2x16x?x64xf16>
  return %o : tensor<2x16x?x64xf16>
}
// -----

// The number of query heads per KV head may be known at run time only.
// CHECK-LABEL: @heads
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x?x?x64xf16>, %[[K:[^:]*]]: tensor<2x?x?x64xf16>, %[[V:[^:]*]]: tensor<2x?x?x64xf16>
// CHECK-NEXT: attn.attention %[[Q]], %[[K]], %[[V]] scale(1.000000e+00) :
func.func @heads(%q: tensor<2x?x?x64xf16>, %k: tensor<2x?x?x64xf16>, %v: tensor<2x?x?x64xf16>) -> tensor<2x?x?x64xf16> {
  %s = attn.scores %q, %k : tensor<2x?x?x64xf16>, tensor<2x?x?x64xf16> -> tensor<2x?x?x?xf32>
  %p = attn.softmax %s : tensor<2x?x?x?xf32> -> tensor<2x?x?x?xf32>
  %o = attn.values %p, %v : tensor<2x?x?x?xf32>, tensor<2x?x?x64xf16> -> tensor<2x?x?x64xf16>
  return %o : tensor<2x?x?x64xf16>
}
